/* ConvLSTM1D, 2D, 3D: LSTM whose products are convolutions. Inside a step the channels come last; inputs,
 * states and results have the layer's order. */
#include "base/error.h"
#include "nn/layers/convolution/convolution.h"
#include "nn/layers/recurrent/recurrent.h"
#include <string.h>

/* ---- the cell ---- */

static const mix_conv_lstm_cell_options *options_of(const mix_layer *cell) {
  return &((const mix_cell *)cell->data)->conv_lstm;
}

/* Where the spatial axes of a step begin. */
static int first_axis(const char *data_format) { return strcmp(data_format, "channels_first") ? 1 : 2; }

static mix_status build(mix_layer *layer, int count, const mix_shape *inputs) {
  const mix_conv_lstm_cell_options *o = options_of(layer);
  const int64_t columns = MIX_LSTM_GATES * o->units,
                channels = mix_conv_channels(layer, o->kernel_size.rank, o->data_format, count, inputs);
  if (channels < 0 ||
      mix_cell_add_weights(layer, mix_kernel_shape(o->kernel_size, channels, columns),
                           mix_kernel_shape(o->kernel_size, o->units, columns), MIX_SHAPE(columns)))
    return mix_error();
  return mix_lstm_set_forget_bias(layer->data);
}

/* Cells along one axis after the convolution of the inputs. */
static int64_t output_size(const mix_conv_lstm_cell_options *o, int axis, int64_t size) {
  const int64_t stride = o->strides.dims[axis],
                span = (o->kernel_size.dims[axis] - 1) * o->dilation_rate.dims[axis];
  if (size == MIX_UNKNOWN) return size;
  if (!strcmp(o->padding, "same")) return (size + stride - 1) / stride;
  return size > span ? (size - span - 1) / stride + 1 : 0;
}

static mix_status states(mix_layer *layer, mix_shape inputs, mix_cell_states *states) {
  const mix_conv_lstm_cell_options *o = options_of(layer);
  const int axes = o->kernel_size.rank, first = first_axis(o->data_format);
  mix_shape shape = {.rank = axes + 1};
  shape.dims[first == 1 ? axes : 0] = o->units;
  for (int i = 0; i < axes; i++) {
    const int64_t size = output_size(o, i, inputs.dims[first + i]);
    if (size == 0)
      return mix_fail_status(MIX_VALUE_ERROR,
                             "%s: a step of shape %s is smaller than the kernel along spatial axis %d",
                             layer->name, MIX_SHAPE_TEXT(inputs), i);
    shape.dims[first - 1 + i] = size;
  }
  states->count = 2;
  states->states[0] = states->states[1] = states->output = shape;
  return MIX_OK;
}

/* Of a state, or of the inputs of one step or of all; the result has its channels last. */
static mix_tensor *convolve(const mix_cell_run *run, mix_tensor *x, mix_tensor *kernel, bool of_state) {
  const mix_conv_lstm_cell_options *o = options_of(run->layer);
  if (!x || !kernel) return NULL;
  const mix_shape shape = mix_tensor_shape(x);
  const bool is_sequence = shape.rank > o->kernel_size.rank + 2;
  if (is_sequence) {
    mix_shape steps = {.rank = shape.rank - 1, .dims = {shape.dims[0] * shape.dims[1]}};
    for (int i = 1; i < steps.rank; i++) steps.dims[i] = shape.dims[i + 1];
    x = mix_reshape(x, steps);
  }
  x = mix_channels_to_last(x, o->data_format);
  mix_tensor *y = of_state ? mix_conv(x, kernel, .padding = "same")
                           : mix_conv(x, kernel, .strides = o->strides, .dilation = o->dilation_rate,
                                      .padding = o->padding);
  if (!y || !is_sequence) return y;
  mix_shape result = mix_with_batch(shape.dims[0], mix_tensor_shape(y));
  result.dims[1] = shape.dims[1];
  return mix_reshape(y, result);
}

static mix_list *step(const mix_cell_run *run, mix_tensor *x, mix_tensor *const *states) {
  const char *data_format = options_of(run->layer)->data_format;
  mix_tensor *inside[] = {states[0], mix_channels_to_last(states[1], data_format)};
  mix_list *results = inside[1] ? mix_lstm_step(run, x, inside) : NULL;
  if (!results) return NULL;
  mix_tensor *h = mix_channels_from_last(mix_list_get(results, 0), data_format);
  mix_tensor *c = mix_channels_from_last(mix_list_get(results, 2), data_format);
  return h && c ? mix_list_of(h, h, c) : NULL;
}

static const mix_cell_kind cell_kind = {.gates = MIX_LSTM_GATES,
                                        .masks_by_gate = true,
                                        .product = convolve,
                                        .project = mix_lstm_project,
                                        .step = step};
static bool cell_ready(mix_layer *layer) { return mix_cell_ready(layer, &cell_kind); }

#define WINDOW_FIELDS(type)                                                                                  \
  MIX_WINDOW_FIELDS(type), { MIX_PER_AXIS_FIELD(type, dilation_rate) }
#define GATE_FIELDS(type)                                                                                    \
  {MIX_FIELD(type, activation), &mix_field_cell_activation, .text = "tanh"},                                 \
      {MIX_FIELD(type, recurrent_activation), &mix_field_conv_lstm_gate}, MIX_CELL_FIELDS_WEIGHTS(type),     \
      {"unit_forget_bias", offsetof(type, no_forget_bias), &mix_field_negated},                              \
      MIX_CELL_FIELDS_PENALTIES(type)

/* No class of Keras: only layers make it. */
#define CELL mix_conv_lstm_cell_options
static const mix_field_row cell_fields[] = {
    {MIX_FIELD(CELL, units), &mix_field_integer, .range = MIX_POSITIVE},
    WINDOW_FIELDS(CELL),
    GATE_FIELDS(CELL),
    MIX_CELL_FIELDS_END(CELL),
    MIX_CELL_FIELD_SEED(CELL),
    {0}};
static const mix_layer_kind cell_layer_kind = {
    .call = "conv_lstm_cell",
    .options_size = sizeof(CELL),
    .fields = cell_fields,
    .ready = cell_ready,
    .call_training = MIX_FALSE,
    MIX_LAYER_CLASS(.name = "ConvLSTMCell", .instance_size = sizeof(mix_cell), .build = build,
                    .call = mix_cell_call, .cell_states = states)};

/* ---- the layers ---- */

#define LAYER mix_conv_lstm_options

static bool check(LAYER *o, const char *call, int axes) {
  mix_cell_options rates = {.dropout = o->dropout, .recurrent_dropout = o->recurrent_dropout};
  if (!mix_check_window(call, axes, MIX_WINDOW_OF(o, .causal = false)) || !mix_cell_check(&rates, NULL))
    return false;
  o->dropout = rates.dropout;
  o->recurrent_dropout = rates.recurrent_dropout;
  return true;
}

static bool ready(mix_layer *layer) {
  const LAYER *o = &((mix_rnn *)layer->data)->options.conv_lstm;
  CELL cell = {0};
  /* What both begin with, up to the number of filters; the window; what gates have. */
  memcpy(&cell, o, offsetof(CELL, activation));
  memcpy(&cell.kernel_size, &o->kernel_size, offsetof(LAYER, activation) - offsetof(LAYER, kernel_size));
  memcpy(&cell.activation, &o->activation, offsetof(CELL, reset_before) - offsetof(CELL, activation));
  cell.size = sizeof cell;
  cell.name = "conv_lstm_cell";
  cell.activity_regularizer = NULL;
  return mix_rnn_ready(layer, mix_layer_of_kind(&cell_layer_kind, &cell), &o->return_sequences);
}

static mix_status build_layer(mix_layer *layer, int count, const mix_shape *inputs) {
  const LAYER *o = &((mix_rnn *)layer->data)->options.conv_lstm;
  const int axes = o->kernel_size.rank, first = first_axis(o->data_format) + 1;
  mix_input_spec spec = {.size = sizeof spec, .rank = axes + 3, .axis_count = 1};
  char text[160];
  mix_shape_text(inputs[0], text, sizeof text);
  if (inputs[0].rank != axes + 3)
    return mix_fail_status(MIX_VALUE_ERROR, "%s: the input has shape %s; expected %d dimensions", layer->name,
                           text, axes + 3);
  for (int i = 0; i < axes && layer->semantics->conv_lstm_sizes_known; i++)
    if (inputs[0].dims[first + i] == MIX_UNKNOWN)
      return mix_fail_status(MIX_VALUE_ERROR, "%s: the input has shape %s; expected known spatial sizes",
                             layer->name, text);
  if (mix_rnn_build(layer, count, inputs)) return mix_error();
  spec.axes[0] = first == 2 ? axes + 2 : 2;
  spec.axis_sizes[0] = inputs[0].dims[spec.axes[0]];
  return mix_layer_set_input_spec(layer, &spec);
}

static const mix_field_row fields[] = {MIX_RNN_FIELDS(LAYER),
                                       {MIX_FIELD(LAYER, filters), &mix_field_integer, .range = MIX_POSITIVE},
                                       WINDOW_FIELDS(LAYER),
                                       GATE_FIELDS(LAYER),
                                       {MIX_FIELD(LAYER, activity_regularizer), &mix_field_regularizer},
                                       MIX_CELL_FIELDS_END(LAYER),
                                       MIX_CELL_FIELD_SEED(LAYER),
                                       {0}};
#define CONV_LSTM(axes, title)                                                                               \
  static bool check_##axes(void *options, const mix_layer_kind *kind) {                                      \
    return check(options, kind->call, axes);                                                                 \
  }                                                                                                          \
  MIX_LAYER_KIND_ONLY(conv_lstm##axes##d, LAYER, .fields = fields, .check = check_##axes, .ready = ready,    \
                      MIX_RNN_CLASS(title, build_layer))
CONV_LSTM(1, "ConvLSTM1D")
CONV_LSTM(2, "ConvLSTM2D")
CONV_LSTM(3, "ConvLSTM3D")
LAYER mix_conv_lstm_defaults(void) { return (LAYER){.size = sizeof(LAYER)}; }
