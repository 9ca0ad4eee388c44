/* GRU (Cho et al.: Learning phrase representations using RNN encoder-decoder; arXiv:1406.1078), gates in the
 * order update, reset, candidate. */
#include "base/error.h"
#include "nn/layer/remat.h"
#include "nn/layers/recurrent/recurrent.h"

enum { UPDATE, RESET, CANDIDATE, GATES };

static mix_status build(mix_layer *layer, int count, const mix_shape *inputs) {
  const mix_cell_options *o = &((const mix_cell *)layer->data)->options;
  const mix_shape bias = o->reset_before ? MIX_SHAPE(GATES * o->units) : MIX_SHAPE(2, GATES * o->units);
  return mix_cell_build_weights(layer, GATES, bias, inputs);
}

static mix_tensor *project(const mix_cell_run *run, mix_tensor *inputs) {
  mix_tensor *x = mix_cell_gates_of_inputs(run, inputs);
  mix_tensor *bias = mix_cell_of(run)->options.reset_before ? mix_cell_bias(run) : mix_cell_bias_row(run, 0);
  return bias ? mix_bias_add(x, bias) : x;
}

/* The candidate's share of the state, after the reset gate; `inner`: products of the state. */
static mix_tensor *reset_state(const mix_cell_run *run, mix_tensor *reset, mix_tensor *inner,
                               mix_tensor *state) {
  const mix_cell_options *o = &mix_cell_of(run)->options;
  if (!o->reset_before) return mix_multiply(reset, mix_gate(inner, CANDIDATE, 1, o->units));
  mix_tensor *mask = run->state_masks[0] ? run->state_masks[CANDIDATE] : NULL;
  mix_tensor *masked = mask ? mix_multiply(state, mask) : state;
  mix_tensor *kernel = mix_gate(mix_variable_value(mix_cell_of(run)->recurrent), CANDIDATE, 1, o->units);
  return mix_matmul(mix_multiply(reset, masked), kernel, false, false);
}

static mix_list *step(const mix_cell_run *run, mix_tensor *x, mix_tensor *const *states) {
  const mix_cell_options *o = &mix_cell_of(run)->options;
  const mix_semantics *rules = run->layer->semantics;
  mix_tensor *before = states[0], *inner = mix_cell_gates_of_state(run, before, o->reset_before ? 2 : GATES);
  mix_tensor *bias = o->reset_before ? NULL : mix_cell_bias_row(run, 1);
  if (bias) inner = mix_bias_add(inner, bias);
  mix_tensor *z = mix_add(mix_gate(x, UPDATE, 1, o->units), mix_gate(inner, UPDATE, 1, o->units));
  mix_tensor *r = mix_add(mix_gate(x, RESET, 1, o->units), mix_gate(inner, RESET, 1, o->units));
  z = mix_activate(o->recurrent_activation, z, .semantics = rules);
  r = mix_activate(o->recurrent_activation, r, .semantics = rules);
  mix_tensor *candidate = mix_add(mix_gate(x, CANDIDATE, 1, o->units), reset_state(run, r, inner, before));
  candidate = mix_layer_activate(run->layer, o->activation, candidate);
  if (mix_failed()) return NULL;
  mix_tensor *h =
      mix_add(mix_multiply(z, before), mix_multiply(mix_subtract(mix_scalar_like(z, 1), z), candidate));
  return h ? mix_list_of(h, h) : NULL;
}

static const mix_cell_kind cell_kind = {.gates = GATES, .states = 1, .project = project, .step = step};
static bool ready(mix_layer *layer) { return mix_cell_ready(layer, &cell_kind); }

static const mix_field_row fields[] = {
    MIX_CELL_FIELDS_BEGIN(mix_cell_options),
    MIX_CELL_FIELDS_GATE(mix_cell_options),
    MIX_CELL_FIELDS_WEIGHTS(mix_cell_options),
    MIX_CELL_FIELDS_PENALTIES(mix_cell_options),
    MIX_CELL_FIELDS_END(mix_cell_options),
    MIX_CELL_FIELD_IMPLEMENTATION,
    {"reset_after", offsetof(mix_cell_options, reset_before), &mix_field_negated},
    MIX_CELL_FIELD_SEED(mix_cell_options),
    {0}};
MIX_LAYER_KIND_ONLY(gru_cell, mix_cell_options, .fields = fields, .check = mix_cell_check, .ready = ready,
                    .call_training = MIX_FALSE,
                    MIX_LAYER_CLASS(.name = "GRUCell", .instance_size = sizeof(mix_cell), .build = build,
                                    .call = mix_cell_call, .cell_states = mix_cell_unit_states))
