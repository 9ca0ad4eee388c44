/* SimpleRNN: h = activation(x . kernel + bias + h' . recurrent_kernel). */
#include "base/error.h"
#include "nn/layer/remat.h"
#include "nn/layers/recurrent/recurrent.h"

static mix_status build(mix_layer *layer, int count, const mix_shape *inputs) {
  const int64_t units = ((const mix_cell *)layer->data)->options.units;
  return mix_cell_build_weights(layer, 1, MIX_SHAPE(units), inputs);
}

static mix_tensor *project(const mix_cell_run *run, mix_tensor *inputs) {
  mix_tensor *x = mix_cell_gates_of_inputs(run, inputs), *bias = mix_cell_bias(run);
  return bias ? mix_bias_add(x, bias) : x;
}

static mix_list *step(const mix_cell_run *run, mix_tensor *x, mix_tensor *const *states) {
  const mix_cell_options *o = &mix_cell_of(run)->options;
  mix_tensor *h = mix_add(x, mix_cell_gates_of_state(run, states[0], 1));
  h = mix_layer_activate(run->layer, o->activation, h);
  return h ? mix_list_of(h, h) : NULL;
}

static const mix_cell_kind cell_kind = {.gates = 1, .states = 1, .project = project, .step = step};
static bool ready(mix_layer *layer) { return mix_cell_ready(layer, &cell_kind); }

static const mix_field_row fields[] = {
    MIX_CELL_FIELDS_BEGIN(mix_cell_options),     MIX_CELL_FIELDS_WEIGHTS(mix_cell_options),
    MIX_CELL_FIELDS_PENALTIES(mix_cell_options), MIX_CELL_FIELDS_END(mix_cell_options),
    MIX_CELL_FIELD_SEED(mix_cell_options),       {0}};
MIX_LAYER_KIND_ONLY(simple_rnn_cell, mix_cell_options, .fields = fields, .check = mix_cell_check,
                    .ready = ready, .call_training = MIX_FALSE,
                    MIX_LAYER_CLASS(.name = "SimpleRNNCell", .instance_size = sizeof(mix_cell),
                                    .build = build, .call = mix_cell_call,
                                    .cell_states = mix_cell_unit_states))
mix_cell_options mix_cell_defaults(void) { return (mix_cell_options){.size = sizeof(mix_cell_options)}; }
