/* LSTM (Hochreiter and Schmidhuber: Long short-term memory; Neural Computation 9(8), 1997), gates in the
 * order input, forget, cell, output. */
#include "base/error.h"
#include "nn/layer/remat.h"
#include "nn/layers/recurrent/recurrent.h"

mix_status mix_lstm_set_forget_bias(mix_cell *cell) {
  if (!cell->bias || cell->options.no_forget_bias || mix_failed()) return mix_error();
  const int64_t units = cell->options.units;
  mix_tensor *bias = mix_variable_true_value(cell->bias);
  mix_tensor *parts[] = {mix_gate(bias, MIX_LSTM_INPUT, 1, units),
                         mix_fill(MIX_SHAPE(units), 1, mix_tensor_dtype(bias)),
                         mix_gate(bias, MIX_LSTM_CELL, 2, units)};
  return mix_variable_assign(cell->bias, mix_concat(3, parts, 0));
}

static mix_status build(mix_layer *layer, int count, const mix_shape *inputs) {
  mix_cell *cell = layer->data;
  const mix_shape bias = MIX_SHAPE(MIX_LSTM_GATES * cell->options.units);
  if (mix_cell_build_weights(layer, MIX_LSTM_GATES, bias, inputs)) return mix_error();
  return mix_lstm_set_forget_bias(cell);
}

/* Where each gate has its own masks, Keras adds the bias before the state. */
static bool bias_first(const mix_cell_run *run) { return run->mask_count > 1; }

mix_tensor *mix_lstm_project(const mix_cell_run *run, mix_tensor *inputs) {
  mix_tensor *x = mix_cell_gates_of_inputs(run, inputs), *bias = mix_cell_bias(run);
  return bias && bias_first(run) ? mix_bias_add(x, bias) : x;
}

mix_list *mix_lstm_step(const mix_cell_run *run, mix_tensor *x, mix_tensor *const *states) {
  const mix_cell_options *o = &mix_cell_of(run)->options;
  const mix_semantics *rules = run->layer->semantics;
  mix_tensor *z = mix_add(x, mix_cell_gates_of_state(run, states[0], MIX_LSTM_GATES)),
             *bias = mix_cell_bias(run);
  if (bias && !bias_first(run)) z = mix_bias_add(z, bias);
  mix_tensor *i =
      mix_activate(o->recurrent_activation, mix_gate(z, MIX_LSTM_INPUT, 1, o->units), .semantics = rules);
  mix_tensor *f =
      mix_activate(o->recurrent_activation, mix_gate(z, MIX_LSTM_FORGET, 1, o->units), .semantics = rules);
  mix_tensor *g = mix_layer_activate(run->layer, o->activation, mix_gate(z, MIX_LSTM_CELL, 1, o->units));
  mix_tensor *c = mix_add(mix_multiply(f, states[1]), mix_multiply(i, g));
  mix_tensor *out =
      mix_activate(o->recurrent_activation, mix_gate(z, MIX_LSTM_OUTPUT, 1, o->units), .semantics = rules);
  mix_tensor *h = mix_multiply(out, mix_layer_activate(run->layer, o->activation, c));
  return h ? mix_list_of(h, h, c) : NULL;
}

static const mix_cell_kind cell_kind = {
    .gates = MIX_LSTM_GATES, .states = 2, .project = mix_lstm_project, .step = mix_lstm_step};
static bool ready(mix_layer *layer) { return mix_cell_ready(layer, &cell_kind); }

static const mix_field_row fields[] = {
    MIX_CELL_FIELDS_BEGIN(mix_cell_options),
    MIX_CELL_FIELDS_GATE(mix_cell_options),
    MIX_CELL_FIELDS_WEIGHTS(mix_cell_options),
    {"unit_forget_bias", offsetof(mix_cell_options, no_forget_bias), &mix_field_negated},
    MIX_CELL_FIELDS_PENALTIES(mix_cell_options),
    MIX_CELL_FIELDS_END(mix_cell_options),
    MIX_CELL_FIELD_IMPLEMENTATION,
    MIX_CELL_FIELD_SEED(mix_cell_options),
    {0}};
MIX_LAYER_KIND_ONLY(lstm_cell, mix_cell_options, .fields = fields, .check = mix_cell_check, .ready = ready,
                    .call_training = MIX_FALSE,
                    MIX_LAYER_CLASS(.name = "LSTMCell", .instance_size = sizeof(mix_cell), .build = build,
                                    .call = mix_cell_call, .cell_states = mix_cell_unit_states))
