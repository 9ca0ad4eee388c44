/* LocallyConnected1D, LocallyConnected2D of tf_keras: convolutions whose kernel is another one at each place.
 * Its three implementations store the weights in different shapes; here all become one product for each place
 * of the patch there. */
#include "base/error.h"
#include "nn/layer/remat.h"
#include "nn/layers/convolution/convolution.h"
#include "tensor/shape.h"
#include <mixtape/einsum.h>
#include <string.h>

typedef struct locally_connected {
  mix_locally_connected_options options;
  mix_variable *kernel, *bias; /* owned by the layer's list */
  mix_shape in, out;           /* of the spatial axes */
  int64_t channels;
} locally_connected;

static bool is_first(const locally_connected *l) { return !strcmp(l->options.data_format, "channels_first"); }

static bool locally_connected_check(mix_locally_connected_options *o, const char *call, int axes) {
  mix_shape dilation = {.rank = 0};
  const mix_window_options window = {&o->kernel_size, &o->strides, &dilation, NULL, &o->padding, false};
  if (!mix_check_window(call, axes, &window)) return false;
  if (o->implementation < 1 || o->implementation > 3)
    return mix_fail_value("%s: implementation is %lld; expected 1, 2 or 3", call,
                          (long long)o->implementation);
  if (o->implementation > 1 || !strcmp(o->padding, "valid")) return true;
  return mix_fail_value("%s: padding is '%s'; implementation 1 has valid alone: use implementation 2", call,
                        o->padding);
}

/* ---- geometry ---- */

static int64_t cells_of(const locally_connected *l) { return mix_shape_size(l->options.kernel_size); }

/* For each place of the result and each cell of its patch the place in the input; -1: beyond its ends. A
 * patch of "same" begins half a kernel before its place, whatever the strides (conv_connected_inputs of
 * tf_keras). */
static double *patch_places(const locally_connected *l) {
  const mix_locally_connected_options *o = &l->options;
  const int axes = l->in.rank;
  const int64_t places = mix_shape_size(l->out), cells = cells_of(l);
  const bool same = *o->padding == 's';
  double *table = mix_scoped_memory((size_t)(places * cells) * sizeof *table);
  for (int64_t i = 0; table && i < places * cells; i++) {
    int64_t place = i / cells, cell = i % cells, at = 0, stride = 1;
    for (int d = axes - 1; d >= 0; d--) {
      const int64_t size = o->kernel_size.dims[d], begin = place % l->out.dims[d] * o->strides.dims[d],
                    x = begin + cell % size - (same ? size / 2 : 0);
      at = at < 0 || x < 0 || x >= l->in.dims[d] ? -1 : at + x * stride;
      stride *= l->in.dims[d], place /= l->out.dims[d], cell /= size;
    }
    table[i] = (double)at;
  }
  return table;
}

/* ---- weights ---- */

/* (places, cells channels, filters) of implementation 1, the whole matrix of 2, in 3 those of its elements
 * that connect something. */
static mix_shape kernel_shape(const locally_connected *l) {
  const int64_t filters = l->options.filters, places = mix_shape_size(l->out), cells = cells_of(l);
  const mix_shape parts[] = {l->in, l->out};
  const int64_t channels[] = {l->channels, filters};
  mix_shape shape = {.rank = 0};
  int64_t connected = 0;
  if (l->options.implementation == 1) return MIX_SHAPE(places, cells * l->channels, filters);
  for (int side = 0; side < 2 && l->options.implementation == 2; side++) {
    if (is_first(l)) shape.dims[shape.rank++] = channels[side];
    for (int d = 0; d < l->in.rank; d++) shape.dims[shape.rank++] = parts[side].dims[d];
    if (!is_first(l)) shape.dims[shape.rank++] = channels[side];
  }
  if (shape.rank) return shape;
  const double *table = patch_places(l);
  for (int64_t i = 0; table && i < places * cells; i++) connected += table[i] >= 0;
  return MIX_SHAPE(connected * l->channels * filters);
}

/* Where the weights (places, cells, channels, filters) are in the flat kernel of implementation 2 or 3;
 * behind its end where there is none. Those of 3 are in the order of (element of the result, element of the
 * input).
 */
static mix_tensor *weight_places(const locally_connected *l, const double *table, int64_t behind) {
  const int64_t filters = l->options.filters, channels = l->channels, places = mix_shape_size(l->out),
                cells = cells_of(l), inputs = mix_shape_size(l->in);
  const bool first = is_first(l), sparse = l->options.implementation == 3;
  double *where = mix_scoped_memory((size_t)(places * cells * channels * filters) * sizeof *where),
         *next = where;
  int64_t before = 0, all = 0;
  for (int64_t i = 0; i < places * cells; i++) all += table[i] >= 0;
  for (int64_t p = 0; where && p < places; p++) {
    int64_t count = 0, rank = 0;
    for (int64_t k = 0; k < cells; k++) count += table[p * cells + k] >= 0;
    for (int64_t k = 0; k < cells; k++) {
      const int64_t x = (int64_t)table[p * cells + k];
      for (int64_t c = 0; c < channels; c++)
        for (int64_t f = 0; f < filters; f++)
          *next++ = (double)(x < 0    ? behind
                             : sparse ? (first ? (f * all + before) * channels + c * count + rank
                                               : ((before * filters) + f * count + rank) * channels + c)
                             : first  ? ((c * inputs + x) * filters + f) * places + p
                                      : ((x * channels + c) * places + p) * filters + f);
      rank += x >= 0;
    }
    before += count;
  }
  return where ? mix_tensor_from_doubles(where, MIX_INT64, MIX_SHAPE(places, cells, channels, filters))
               : NULL;
}

/* (places, cells channels, filters) with the channels inside. */
static mix_tensor *kernel_of(const locally_connected *l, const double *table) {
  const int64_t filters = l->options.filters, places = mix_shape_size(l->out), cells = cells_of(l);
  const mix_shape whole = MIX_SHAPE(places, cells * l->channels, filters);
  mix_tensor *kernel = mix_variable_value(l->kernel);
  if (l->options.implementation > 1) {
    const int64_t size = mix_shape_size(mix_tensor_shape(kernel));
    mix_tensor *flat = mix_pad(mix_reshape(kernel, MIX_SHAPE(size)), MIX_SHAPE(0), MIX_SHAPE(1), 0);
    return mix_reshape(mix_gather(flat, weight_places(l, table, size), 0), whole);
  }
  if (!is_first(l)) return kernel;
  kernel = mix_reshape(kernel, MIX_SHAPE(places, l->channels, cells, filters));
  return mix_reshape(mix_transpose(kernel, MIX_AXES(0, 2, 1, 3)), whole);
}

/* ---- the layer ---- */

static mix_status locally_connected_build(mix_layer *layer, int axes, int count, const mix_shape *shapes) {
  locally_connected *l = mix_layer_data(layer);
  const mix_locally_connected_options *o = &l->options;
  l->channels = mix_conv_channels(layer, axes, o->data_format, count, shapes);
  if (l->channels < 0) return mix_error();
  l->in.rank = l->out.rank = axes;
  for (int d = 0; d < axes; d++) {
    const int64_t size = l->in.dims[d] = shapes[0].dims[d + (is_first(l) ? 2 : 1)],
                  cells = *o->padding == 's' ? size : size - o->kernel_size.dims[d] + 1;
    if (size < 1 || cells < 1)
      return mix_fail_status(MIX_VALUE_ERROR,
                             "%s: the input has shape %s; expected known sizes of at least the kernel's, %s",
                             layer->name, MIX_SHAPE_TEXT(shapes[0]), MIX_SHAPE_TEXT(o->kernel_size));
    l->out.dims[d] = (cells - 1) / o->strides.dims[d] + 1;
  }
  if (mix_shape_checked_size(MIX_SHAPE(mix_shape_size(l->out), cells_of(l), l->channels, o->filters)) < 0)
    return mix_fail_status(
        MIX_VALUE_ERROR, "%s: a kernel of %s cells at each place of %s has more weights than can be counted",
        layer->name, MIX_SHAPE_TEXT(o->kernel_size), MIX_SHAPE_TEXT(l->out));
  l->kernel = mix_layer_add_weight(
      layer, "kernel", .shape = kernel_shape(l), .initializer_object = o->kernel_initializer_object,
      .regularizer_object = o->kernel_regularizer, .constraint_object = o->kernel_constraint);
  mix_shape of_bias = l->out;
  of_bias.dims[of_bias.rank++] = o->filters;
  if (!o->no_bias && !mix_failed())
    l->bias = mix_layer_add_weight(
        layer, "bias", .shape = of_bias, .initializer_object = o->bias_initializer_object,
        .regularizer_object = o->bias_regularizer, .constraint_object = o->bias_constraint);
  return mix_error();
}

static mix_list *locally_connected_call(mix_layer *layer, const mix_call_args *args) {
  const locally_connected *l = mix_layer_data(layer);
  const mix_locally_connected_options *o = &l->options;
  const int64_t places = mix_shape_size(l->out), cells = cells_of(l), inputs = mix_shape_size(l->in);
  mix_tensor *x = mix_conv_input(layer, args, o->data_format);
  double *table = x ? patch_places(l) : NULL;
  if (!table) return NULL;
  const int64_t batch = mix_tensor_shape(x).dims[0];
  mix_tensor *kernel = kernel_of(l, table);
  for (int64_t i = 0; i < places * cells; i++)
    if (table[i] < 0) table[i] = (double)inputs; /* zeros behind the input */
  mix_tensor *flat = mix_layer_reshape(x, MIX_SHAPE(batch, inputs, l->channels));
  flat = mix_pad(flat, MIX_SHAPE(0, 0, 0), MIX_SHAPE(0, *o->padding == 's', 0), 0);
  mix_tensor *where = mix_tensor_from_doubles(table, MIX_INT64, MIX_SHAPE(places, cells));
  mix_tensor *patches =
      mix_layer_reshape(mix_gather(flat, where, 1), MIX_SHAPE(batch, places, cells * l->channels));
  mix_tensor *y = mix_failed() ? NULL : mix_einsum("bpk,pkf->bpf", 2, (mix_tensor *[]){patches, kernel});
  mix_shape shape = {.rank = 1, .dims = {batch}}, of_bias = {.rank = 1, .dims = {o->filters}};
  for (int d = 0; d < l->out.rank; d++)
    shape.dims[shape.rank++] = of_bias.dims[of_bias.rank++] = l->out.dims[d];
  shape.dims[shape.rank++] = o->filters;
  y = mix_channels_from_last(mix_layer_reshape(y, shape), o->data_format);
  if (y && l->bias) { /* with its channels first tf_keras reshapes the bias, and does not transpose it */
    mix_tensor *bias = mix_variable_value(l->bias);
    y = mix_add(y, is_first(l) ? mix_reshape(bias, of_bias) : bias);
  }
  return y ? mix_one_result(mix_layer_activate(layer, o->activation, y)) : NULL;
}

#define TYPE mix_locally_connected_options
static const mix_field_row fields[] = {{MIX_FIELD(TYPE, filters), &mix_field_integer, .range = MIX_POSITIVE},
                                       MIX_WINDOW_FIELDS(TYPE),
                                       MIX_KERNEL_FIELDS(TYPE, kernel),
                                       MIX_BIAS_FIELDS(TYPE),
                                       {MIX_FIELD(TYPE, implementation), &mix_field_integer, .number = 1},
                                       {0}};
MIX_CONV_KIND(locally_connected, locally_connected1d, 1, "LocallyConnected1D", TYPE, NULL, .fields = fields,
              .tf_keras_only = true)
MIX_CONV_KIND(locally_connected, locally_connected2d, 2, "LocallyConnected2D", TYPE, NULL, .fields = fields,
              .tf_keras_only = true)
mix_locally_connected_options mix_locally_connected_defaults(void) { return (TYPE){.size = sizeof(TYPE)}; }
