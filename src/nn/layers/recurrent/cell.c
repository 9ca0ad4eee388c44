/* What the cells have in common: weights, dropout masks, products of all gates, and how loops run them. */
#include "base/error.h"
#include "nn/layers/activation_functions.h"
#include "nn/layer/remat.h"
#include "nn/layers/recurrent/recurrent.h"

/* ---- options ---- */

static bool resolve_activation(const mix_field *field) {
  const char **name = field->value;
  if (!*name) *name = field->row->text;
  return mix_field_activation.resolve(field);
}
static bool resolve_conv_lstm_gate(const mix_field *field) {
  const char **name = field->value;
  if (!*name) *name = field->rules->conv_lstm_hard_sigmoid ? "hard_sigmoid" : "sigmoid";
  return mix_field_activation.resolve(field);
}
static json_t *write_activation(const mix_field *field) { return mix_field_activation.write(field); }
static bool read_activation(const mix_field *field, const json_t *value) {
  if (!json_is_null(value)) return mix_field_activation.read(field, value);
  *(const char **)field->value = "linear";
  return true;
}
const mix_value_kind mix_field_cell_activation = {
    "a string", sizeof(char *), resolve_activation, NULL, write_activation, read_activation, NULL};
const mix_value_kind mix_field_conv_lstm_gate = {
    "a string", sizeof(char *), resolve_conv_lstm_gate, NULL, write_activation, read_activation, NULL};

static double clamp(double rate) { return rate < 0 ? 0 : rate > 1 ? 1 : rate; }

bool mix_cell_check(void *options, const mix_layer_kind *kind) {
  mix_cell_options *o = options;
  o->dropout = clamp(o->dropout);
  o->recurrent_dropout = clamp(o->recurrent_dropout);
  return true;
}

bool mix_cell_ready(mix_layer *layer, const mix_cell_kind *kind) {
  mix_cell *cell = layer->data;
  cell->kind = kind;
  return (cell->generator = mix_layer_generator(layer, cell->options.seed)) != NULL;
}

mix_status mix_cell_unit_states(mix_layer *layer, mix_shape inputs, mix_cell_states *states) {
  const mix_cell *cell = layer->data;
  states->count = cell->kind->states;
  for (int i = 0; i < states->count; i++) states->states[i] = states->output = MIX_SHAPE(cell->options.units);
  return MIX_OK;
}

/* ---- weights ---- */

mix_status mix_cell_add_weights(mix_layer *layer, mix_shape kernel, mix_shape recurrent, mix_shape bias) {
  mix_cell *cell = layer->data;
  const mix_cell_options *o = &cell->options;
  cell->kernel = mix_layer_add_weight(
      layer, "kernel", .shape = kernel, .initializer_object = o->kernel_initializer_object,
      .regularizer_object = o->kernel_regularizer, .constraint_object = o->kernel_constraint);
  cell->recurrent = mix_layer_add_weight(
      layer, "recurrent_kernel", .shape = recurrent, .initializer_object = o->recurrent_initializer_object,
      .regularizer_object = o->recurrent_regularizer, .constraint_object = o->recurrent_constraint);
  if (!o->no_bias)
    cell->bias = mix_layer_add_weight(
        layer, "bias", .shape = bias, .initializer_object = o->bias_initializer_object,
        .regularizer_object = o->bias_regularizer, .constraint_object = o->bias_constraint);
  return mix_error();
}

mix_status mix_cell_build_weights(mix_layer *layer, int gates, mix_shape bias, const mix_shape *inputs) {
  const int64_t units = ((const mix_cell *)layer->data)->options.units;
  const mix_shape shape = inputs[0];
  const int64_t in = shape.rank ? shape.dims[shape.rank - 1] : MIX_UNKNOWN;
  if (shape.rank != 2 || in == MIX_UNKNOWN)
    return mix_fail_status(
        MIX_VALUE_ERROR, "%s: a step has inputs of shape %s; expected (batch, features), with features known",
        layer->name, MIX_SHAPE_TEXT(shape));
  return mix_cell_add_weights(layer, MIX_SHAPE(in, gates * units), MIX_SHAPE(units, gates * units), bias);
}

mix_shape mix_with_batch(int64_t batch, mix_shape shape) {
  mix_shape with = {.rank = shape.rank + 1, .dims = {batch}};
  for (int i = 0; i < shape.rank; i++) with.dims[i + 1] = shape.dims[i];
  return with;
}

mix_status mix_cell_build(mix_layer *cell, mix_shape inputs) { return mix_layer_build(cell, inputs); }

bool mix_cell_states_of(mix_layer *cell, mix_shape inputs, mix_cell_states *states) {
  *states = (mix_cell_states){0};
  if (!cell->class.cell_states)
    return mix_fail_type("%s: layer '%s' of class %s is no recurrent cell: its class has no cell_states",
                         "rnn", cell->name, cell->class.name);
  const mix_status status = cell->class.cell_states(cell, inputs, states);
  if (!status && !mix_failed() && states->count >= 1 && states->count <= MIX_CELL_STATES) return true;
  return mix_fail(status ? status : MIX_VALUE_ERROR, "%s: a cell has %d states; expected 1 to %d", cell->name,
                  states->count, MIX_CELL_STATES);
}

/* ---- products ---- */

/* x (..., in) times kernel (in, n). */
static mix_tensor *matrix_product(mix_tensor *x, mix_tensor *kernel) {
  mix_shape shape = mix_tensor_shape(x);
  if (shape.rank == 2) return mix_matmul(x, kernel, false, false);
  mix_tensor *rows = mix_reshape(
      x, MIX_SHAPE(mix_shape_size(shape) / shape.dims[shape.rank - 1], shape.dims[shape.rank - 1]));
  shape.dims[shape.rank - 1] = mix_tensor_shape(kernel).dims[1];
  return mix_reshape(mix_matmul(rows, kernel, false, false), shape);
}

mix_tensor *mix_gate(mix_tensor *x, int gate, int count, int64_t units) {
  if (!x) return NULL;
  mix_shape size = mix_tensor_shape(x), begin = {.rank = size.rank};
  begin.dims[size.rank - 1] = gate * units;
  size.dims[size.rank - 1] = count * units;
  return mix_slice(x, begin, size);
}

static mix_tensor *product(const mix_cell_run *run, mix_tensor *x, mix_tensor *kernel, bool of_state) {
  return run->kind->product ? run->kind->product(run, x, kernel, of_state) : matrix_product(x, kernel);
}

/* x, masked for each gate, times the columns of the gate. */
static mix_tensor *masked_product(const mix_cell_run *run, mix_tensor *x, mix_tensor *kernel, int gates,
                                  bool of_state) {
  const int64_t units = mix_cell_of(run)->options.units;
  mix_tensor *const *masks = of_state ? run->state_masks : run->input_masks, *parts[MIX_CELL_GATES];
  if (!masks[0])
    return product(run, x, gates < run->kind->gates ? mix_gate(kernel, 0, gates, units) : kernel, of_state);
  if (run->mask_count == 1) return product(run, mix_multiply(x, masks[0]), kernel, of_state);
  for (int g = 0; g < gates; g++)
    parts[g] = product(run, mix_multiply(x, masks[g]), mix_gate(kernel, g, 1, units), of_state);
  return mix_failed() ? NULL : mix_concat(gates, parts, mix_tensor_shape(parts[0]).rank - 1);
}

mix_tensor *mix_cell_gates_of_inputs(const mix_cell_run *run, mix_tensor *inputs) {
  return masked_product(run, inputs, mix_variable_value(mix_cell_of(run)->kernel), run->kind->gates, false);
}

mix_tensor *mix_cell_gates_of_state(const mix_cell_run *run, mix_tensor *state, int gates) {
  return masked_product(run, state, mix_variable_value(mix_cell_of(run)->recurrent), gates, true);
}

mix_tensor *mix_cell_bias(const mix_cell_run *run) {
  mix_variable *bias = mix_cell_of(run)->bias;
  return bias ? mix_variable_value(bias) : NULL;
}

mix_tensor *mix_cell_bias_row(const mix_cell_run *run, int row) {
  mix_tensor *bias = mix_cell_bias(run);
  if (!bias) return NULL;
  const int64_t columns = mix_tensor_shape(bias).dims[1];
  return mix_reshape(mix_slice(bias, MIX_SHAPE(row, 0), MIX_SHAPE(1, columns)), MIX_SHAPE(columns));
}

/* ---- runs ---- */

static const mix_cell_kind *kind_of(const mix_layer *cell) {
  return cell->class.call == mix_cell_call ? ((const mix_cell *)cell->data)->kind : NULL;
}

static bool draw_masks(mix_cell_run *run, mix_tensor **masks, double rate, mix_shape shape, mix_dtype dtype) {
  if (!run->training || rate <= 0 || rate >= 1) return true;
  mix_tensor *ones = mix_fill(shape, 1, dtype);
  for (int i = 0; i < run->mask_count && ones; i++)
    masks[i] = mix_dropped(ones, rate, shape, mix_cell_of(run)->generator);
  return !mix_failed();
}

bool mix_cell_begin(mix_cell_run *run, mix_layer *layer, mix_shape inputs, mix_dtype dtype, bool training) {
  *run = (mix_cell_run){.layer = layer, .kind = kind_of(layer), .training = training};
  if (!run->kind) return true;
  if (run->kind->begin) return run->kind->begin(run, inputs, dtype);
  const mix_cell_options *o = &mix_cell_of(run)->options;
  mix_cell_states states;
  if (!mix_cell_states_of(layer, inputs, &states)) return false;
  run->mask_count = run->kind->masks_by_gate || o->recurrent_dropout > 0 ? run->kind->gates : 1;
  return draw_masks(run, run->input_masks, o->dropout, inputs, dtype) &&
         draw_masks(run, run->state_masks, o->recurrent_dropout,
                    mix_with_batch(inputs.dims[0], states.states[0]), dtype);
}

/* Cast dtype and path of the cell are in force, as in a call of it. */
typedef struct cell_scope {
  mix_dtype cast;
  const char *path;
} cell_scope;

static cell_scope enter(const mix_layer *cell) {
  const bool casts = mix_dtype_is_floating(cell->compute) && cell->compute != cell->variable;
  return (cell_scope){mix_cast_dtype_set(casts ? cell->compute : MIX_DTYPE_NONE),
                      mix_graph_scope_set(cell->path ? cell->path : mix_graph_scope())};
}

static void leave(cell_scope former) {
  mix_cast_dtype_set(former.cast);
  mix_graph_scope_set(former.path);
}

mix_tensor *mix_cell_project(const mix_cell_run *run, mix_tensor *inputs) {
  if (!run->kind || !run->kind->project) return inputs;
  const cell_scope former = enter(run->layer);
  mix_tensor *projected = run->kind->project(run, mix_cast(inputs, run->layer->compute));
  leave(former);
  return projected;
}

static mix_list *call_cell(const mix_cell_run *run, mix_tensor *inputs, mix_tensor *const *states) {
  mix_cell_states sizes;
  if (!mix_cell_states_of(run->layer, mix_tensor_shape(inputs), &sizes)) return NULL;
  mix_list *arguments = mix_list_new(0, NULL);
  for (int i = 0; i < sizes.count; i++) mix_list_append(arguments, states[i]);
  mix_list *results = mix_call_outputs(run->layer, inputs, .arguments = arguments,
                                       .training = run->training ? MIX_TRUE : MIX_FALSE);
  if (!results || mix_list_count(results) == 1 + sizes.count) return results;
  return mix_fail_value("%s: a cell returned %d results; expected its output and %d states", run->layer->name,
                        mix_list_count(results), sizes.count);
}

static mix_list *step_of_kind(const mix_cell_run *run, mix_tensor *projected, mix_tensor *const *states) {
  if (mix_failed() || !projected) return NULL;
  const cell_scope former = enter(run->layer);
  mix_list *results = run->kind->step(run, projected, states);
  leave(former);
  return results;
}

mix_list *mix_cell_step(const mix_cell_run *run, mix_tensor *projected, mix_tensor *const *states) {
  if (mix_failed() || !projected) return NULL;
  if (!run->kind) return call_cell(run, projected, states);
  mix_segment *segment = mix_remat_begin_call(run->layer);
  mix_list *results = step_of_kind(run, projected, states);
  mix_remat_end_call(run->layer, segment, results);
  return results;
}

/* A call of the cell itself. */
mix_list *mix_cell_call(mix_layer *layer, const mix_call_args *args) {
  mix_tensor *x = mix_call_input(args, 0), *states[MIX_CELL_STATES];
  mix_cell_states sizes;
  mix_cell_run run;
  if (!mix_cell_states_of(layer, mix_tensor_shape(x), &sizes)) return NULL;
  if (mix_list_count(args->arguments) != sizes.count)
    return mix_fail_value("%s: got %d states; expected %d, in .arguments", layer->name,
                          mix_list_count(args->arguments), sizes.count);
  for (int i = 0; i < sizes.count; i++) states[i] = mix_list_get(args->arguments, i);
  const bool training = args->training && !args->symbolic;
  if (!mix_cell_begin(&run, layer, mix_tensor_shape(x), mix_tensor_dtype(x), training)) return NULL;
  return step_of_kind(&run, mix_cell_project(&run, x), states);
}
