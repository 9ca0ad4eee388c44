/* Layers that run a cell over sequences: one scan, whose carry are the states, and the output before where a
 * masked step repeats it or it is the result. */
#include "base/error.h"
#include "nn/layers/recurrent/recurrent.h"
#include <mixtape/scan.h>
#include <stdio.h>
#include <string.h>

mix_rnn *mix_rnn_of(const mix_layer *layer) { return layer->class.call == mix_rnn_call ? layer->data : NULL; }

/* ---- building ---- */

/* (batch, steps, ...) without the steps. */
static mix_shape shape_of_step(const mix_rnn *rnn, mix_shape sequence) {
  mix_shape step = {.rank = sequence.rank - 1, .dims = {sequence.dims[rnn->flags.time_major ? 1 : 0]}};
  for (int i = 1; i < step.rank; i++) step.dims[i] = sequence.dims[i + 1];
  return step;
}

static bool make_state_variables(mix_layer *layer, int64_t batch, const mix_cell_states *sizes) {
  char name[300];
  const mix_dtype dtype = layer->variable != MIX_DTYPE_NONE ? layer->variable : mix_floatx();
  mix_release(layer->states);
  layer->states = mix_retain(mix_list_new(0, NULL));
  snprintf(name, sizeof name, "%s/rnn_state", layer->path ? layer->path : layer->name);
  for (int i = 0; i < sizes->count && !mix_failed(); i++)
    mix_list_append(layer->states,
                    mix_variable_new(mix_fill(mix_with_batch(batch, sizes->states[i]), 0, dtype),
                                     .name = name, .not_trainable = true));
  return !mix_failed();
}

mix_status mix_rnn_build(mix_layer *layer, int count, const mix_shape *inputs) {
  mix_rnn *rnn = layer->data;
  if (inputs[0].rank < 3)
    return mix_fail_status(MIX_VALUE_ERROR,
                           "%s: the input has shape %s; expected sequences (batch, steps, ...)", layer->name,
                           MIX_SHAPE_TEXT(inputs[0]));
  const mix_shape step = shape_of_step(rnn, inputs[0]);
  if (mix_cell_build(rnn->cell, step) || !mix_cell_states_of(rnn->cell, step, &rnn->sizes))
    return mix_error();
  if (!rnn->flags.stateful) return MIX_OK;
  if (step.dims[0] == MIX_UNKNOWN)
    return mix_fail_status(MIX_VALUE_ERROR,
                           "%s: a stateful layer needs a batch of known size; the input has shape %s",
                           layer->name, MIX_SHAPE_TEXT(inputs[0]));
  make_state_variables(layer, step.dims[0], &rnn->sizes);
  return mix_error();
}

/* ---- a call ---- */

typedef struct rnn_call {
  mix_layer *layer;
  const mix_rnn *rnn;
  const mix_call_args *args;
  mix_tensor *inputs;      /* (steps, batch, ...) */
  mix_tensor *mask;        /* bool (steps, batch), or NULL */
  mix_list *initial_state; /* given, or NULL */
  mix_shape step;          /* of the inputs of a step, with batch */
  mix_cell_states sizes;
  mix_cell_run run;
  bool carries_output;
} rnn_call;

static mix_tensor *swap_axes(mix_tensor *x) {
  mix_axes order = {.count = x ? mix_tensor_shape(x).rank : 0};
  for (int i = 0; i < order.count; i++) order.axis[i] = i < 2 ? 1 - i : i;
  return mix_transpose(x, order);
}

static mix_tensor *reverse_steps(mix_tensor *x, int axis) {
  const int64_t steps = x ? mix_tensor_shape(x).dims[axis] : 0;
  return mix_gather(x, mix_range((double)steps - 1, -1, -1, MIX_INT32), axis);
}

static bool fail_shape(const rnn_call *call, const char *what, int index, mix_tensor *got,
                       mix_shape expected) {
  return mix_fail_value("%s: %s %d has shape %s; expected %s", call->layer->name, what, index,
                        MIX_SHAPE_TEXT(mix_tensor_shape(got)), MIX_SHAPE_TEXT(expected));
}

static bool fits(mix_shape shape, mix_shape expected) {
  bool same = shape.rank == expected.rank;
  for (int i = 0; same && i < shape.rank; i++)
    same =
        shape.dims[i] == expected.dims[i] || shape.dims[i] == MIX_UNKNOWN || expected.dims[i] == MIX_UNKNOWN;
  return same;
}

/* tf_keras gives states as further inputs too. */
static bool find_initial_state(rnn_call *call) {
  const mix_call_args *args = call->args;
  call->initial_state = args->initial_state;
  for (int i = 1; i < mix_list_count(args->inputs) && !args->initial_state; i++) {
    if (!call->initial_state) call->initial_state = mix_list_new(0, NULL);
    mix_list_append(call->initial_state, mix_list_get(args->inputs, i));
  }
  if (!call->initial_state || mix_failed()) return !mix_failed();
  const int count = mix_list_count(call->initial_state);
  if (count != call->sizes.count)
    return mix_fail_value("%s: initial_state has %d tensors; expected %d, one for each state of the cell",
                          call->layer->name, count, call->sizes.count);
  for (int i = 0; i < count; i++) {
    mix_tensor *state = mix_list_get(call->initial_state, i);
    const mix_shape expected = mix_with_batch(call->step.dims[0], call->sizes.states[i]);
    if (!state) return mix_fail_type("%s: initial state %d is NULL", call->layer->name, i);
    if (!fits(mix_tensor_shape(state), expected))
      return fail_shape(call, "initial state", i, state, expected);
  }
  return true;
}

static bool find_mask(rnn_call *call, mix_shape sequence) {
  mix_tensor *mask = mix_call_mask(call->args);
  if (!mask) return true;
  const mix_shape expected = MIX_SHAPE(sequence.dims[0], sequence.dims[1]);
  if (!fits(mix_tensor_shape(mask), expected)) return fail_shape(call, "mask", 0, mask, expected);
  call->mask = mask;
  return true;
}

/* Checks what was given, and finds states and mask. */
static bool prepare(rnn_call *call, mix_tensor *x) {
  const mix_rnn_flags *flags = &call->rnn->flags;
  const mix_shape sequence = mix_tensor_shape(x);
  const int64_t steps = sequence.dims[flags->time_major ? 0 : 1];
  call->step = shape_of_step(call->rnn, sequence);
  if (flags->unroll && steps == MIX_UNKNOWN)
    return mix_fail_value("%s: a layer with unroll needs a known number of steps; the input has shape %s",
                          call->layer->name, MIX_SHAPE_TEXT(sequence));
  if (steps == 0)
    return mix_fail_value("%s: the input has shape %s; expected one step or more", call->layer->name,
                          MIX_SHAPE_TEXT(sequence));
  if (!mix_cell_states_of(call->rnn->cell, call->step, &call->sizes) || !find_mask(call, sequence) ||
      !find_initial_state(call))
    return false;
  const mix_variable *held = call->layer->states ? mix_list_get(call->layer->states, 0) : NULL;
  if (!held || call->step.dims[0] == MIX_UNKNOWN || held->shape.dims[0] == call->step.dims[0]) return true;
  return mix_fail_value("%s: a stateful layer has states for a batch of %lld; the input has %lld",
                        call->layer->name, (long long)held->shape.dims[0], (long long)call->step.dims[0]);
}

/* ---- one step ---- */

/* A mask (batch) for a value (batch, ...). */
static mix_tensor *kept(mix_tensor *mask, mix_tensor *now, mix_tensor *before) {
  mix_shape shape = {.rank = mix_tensor_shape(now).rank, .dims = {mix_tensor_shape(mask).dims[0]}};
  for (int i = 1; i < shape.rank; i++) shape.dims[i] = 1;
  return mix_select(mix_reshape(mask, shape), now, before);
}

static mix_list *step(void *context, mix_list *carry, mix_list *inputs) {
  rnn_call *call = context;
  mix_tensor *states[MIX_CELL_STATES], *mask = call->mask ? mix_list_get(inputs, 1) : NULL;
  const int count = call->sizes.count;
  for (int i = 0; i < count; i++) states[i] = mix_list_get(carry, i);
  mix_list *results = mix_cell_step(&call->run, mix_list_get(inputs, 0), states);
  mix_list *next = mix_list_new(0, NULL), *outputs = mix_list_new(0, NULL);
  if (!results || !outputs) return NULL;
  mix_tensor *output = mix_list_get(results, 0);
  if (mask && call->rnn->flags.zero_output_for_mask)
    output = kept(mask, output, mix_scalar_like(output, 0));
  else if (mask)
    output = kept(mask, output, mix_list_get(carry, count));
  for (int i = 0; i < count && !mix_failed(); i++) {
    mix_tensor *state = mix_list_get(results, i + 1);
    if (!mix_shape_equal(mix_tensor_shape(state), mix_tensor_shape(states[i])))
      return fail_shape(call, "the next state", i, state, mix_tensor_shape(states[i])), NULL;
    mix_list_append(next, mask ? kept(mask, state, states[i]) : state);
  }
  if (call->carries_output) mix_list_append(next, output);
  if (call->rnn->flags.return_sequences) mix_list_append(outputs, output);
  return mix_failed() ? NULL : mix_list_of(next, outputs);
}

/* ---- the loop ---- */

static mix_tensor *first_state(const rnn_call *call, int index) {
  const mix_dtype dtype = call->rnn->cell->compute;
  const bool casts = call->layer->semantics->rnn_casts_initial_state;
  if (call->initial_state) {
    mix_tensor *given = mix_list_get(call->initial_state, index);
    return casts ? mix_cast(given, dtype) : given;
  }
  if (call->layer->states)
    return mix_cast(mix_variable_true_value(mix_list_get(call->layer->states, index)), dtype);
  return mix_fill(mix_with_batch(call->step.dims[0], call->sizes.states[index]), 0, dtype);
}

/* Is the output of a step its first state? Of cells of the library that are no stack. */
static bool is_first_state(const rnn_call *call) { return call->run.kind && !call->run.kind->begin; }

static mix_list *first_carry(rnn_call *call) {
  const mix_rnn_flags *flags = &call->rnn->flags;
  mix_list *carry = mix_list_new(0, NULL);
  for (int i = 0; i < call->sizes.count && !mix_failed(); i++) mix_list_append(carry, first_state(call, i));
  const bool repeats = call->mask && !flags->zero_output_for_mask;
  call->carries_output = repeats || (!flags->return_sequences && (call->mask || !is_first_state(call)));
  if (call->carries_output)
    mix_list_append(
        carry, mix_fill(mix_with_batch(call->step.dims[0], call->sizes.output), 0, call->rnn->cell->compute));
  return mix_failed() ? NULL : carry;
}

static mix_list *run_loop(rnn_call *call, mix_tensor *x) {
  const mix_rnn_flags *flags = &call->rnn->flags;
  if (!flags->time_major) {
    x = swap_axes(x);
    call->mask = call->mask ? swap_axes(call->mask) : NULL;
  }
  if (!x || !mix_cell_begin(&call->run, call->rnn->cell, call->step, call->rnn->cell->compute,
                            call->args->training))
    return NULL;
  mix_list *inputs = mix_list_of(mix_cell_project(&call->run, x)), *carry = first_carry(call);
  if (call->mask) mix_list_append(inputs, mix_cast(call->mask, MIX_BOOL));
  return mix_failed() ? NULL : mix_scan(step, call, carry, inputs, .reverse = flags->go_backwards);
}

static void keep_states(const rnn_call *call, mix_list *carry) {
  for (int i = 0; call->layer->states && i < call->sizes.count && !mix_failed(); i++) {
    mix_variable *state = mix_list_get(call->layer->states, i);
    mix_variable_assign(state, mix_cast(mix_list_get(carry, i), state->dtype));
  }
}

static mix_tensor *sequences(const rnn_call *call, mix_tensor *outputs) {
  const mix_rnn_flags *flags = &call->rnn->flags;
  if (!flags->time_major) outputs = swap_axes(outputs);
  const bool reverse = flags->go_backwards != mix_call_steps_reversed();
  return reverse ? reverse_steps(outputs, flags->time_major ? 0 : 1) : outputs;
}

static mix_list *compute(rnn_call *call, mix_tensor *x) {
  mix_list *loop = run_loop(call, x);
  if (!loop) return NULL;
  mix_list *carry = mix_list_get(loop, 0), *outputs = mix_list_get(loop, 1);
  const mix_dtype dtype = call->layer->compute;
  mix_tensor *output = call->rnn->flags.return_sequences ? sequences(call, mix_list_get(outputs, 0))
                       : call->carries_output            ? mix_list_get(carry, call->sizes.count)
                                                         : mix_list_get(carry, 0);
  mix_list *results = mix_list_of(mix_cast(output, dtype));
  for (int i = 0; call->rnn->flags.return_state && i < call->sizes.count && !mix_failed(); i++)
    mix_list_append(results, mix_cast(mix_list_get(carry, i), dtype));
  keep_states(call, carry);
  return mix_failed() ? NULL : results;
}

/* ---- symbolic calls: dtypes and shapes alone ---- */

static mix_tensor *symbol(const rnn_call *call, mix_shape shape) {
  mix_node *node = mix_node_placeholder(call->layer->compute, shape, true);
  mix_tensor *tensor = mix_tensor_of(node, 0);
  mix_release(node);
  return tensor;
}

static mix_shape output_shape_of(const rnn_call *call, mix_shape sequence) {
  const mix_shape one = mix_with_batch(call->step.dims[0], call->sizes.output);
  if (!call->rnn->flags.return_sequences) return one;
  mix_shape all = {.rank = one.rank + 1, .dims = {sequence.dims[0], sequence.dims[1]}};
  for (int i = 1; i < one.rank; i++) all.dims[i + 1] = one.dims[i];
  return all;
}

static mix_list *symbols(const rnn_call *call, mix_tensor *x) {
  mix_list *results = mix_list_of(symbol(call, output_shape_of(call, mix_tensor_shape(x))));
  for (int i = 0; call->rnn->flags.return_state && i < call->sizes.count; i++)
    mix_list_append(results, symbol(call, mix_with_batch(call->step.dims[0], call->sizes.states[i])));
  return mix_failed() ? NULL : results;
}

mix_list *mix_rnn_call(mix_layer *layer, const mix_call_args *args) {
  mix_tensor *x = mix_call_input(args, 0);
  rnn_call c = {.layer = layer, .rnn = layer->data, .args = args};
  mix_rnn *rnn = layer->data;
  if (!x || !prepare(&c, x)) return NULL;
  if (!rnn->called) rnn->called_with_states = c.initial_state && args->initial_state;
  rnn->called = true;
  return args->symbolic ? symbols(&c, x) : compute(&c, x);
}

mix_tensor *mix_rnn_mask(mix_layer *layer, const mix_call_args *args) {
  return ((const mix_rnn *)layer->data)->flags.return_sequences ? mix_call_mask(args) : NULL;
}

/* ---- states ---- */

mix_status mix_layer_reset_states(mix_layer *layer) {
  if (!mix_given(layer, &mix_layer_object_class, "layer_reset_states", "a layer")) return mix_error();
  for (int i = 0; layer->states && i < mix_list_count(layer->states) && !mix_failed(); i++) {
    mix_variable *state = mix_list_get(layer->states, i);
    mix_variable_assign(state, mix_fill(state->shape, 0, state->dtype));
  }
  for (int i = 0; i < mix_list_count(layer->layers) && !mix_failed(); i++)
    mix_layer_reset_states(mix_list_items(layer->layers)[i]);
  return mix_error();
}

/* ---- the layer and its cell ---- */

bool mix_rnn_ready(mix_layer *layer, mix_layer *cell, const void *flags) {
  mix_rnn *rnn = layer->data;
  memcpy(&rnn->flags, flags, sizeof rnn->flags);
  if (!cell) return false;
  if (rnn->flags.time_major && !layer->semantics->rnn_time_major)
    return mix_fail_value("%s: this generation of Keras has no argument time_major", layer->name);
  cell->attribute = "cell";
  return (rnn->cell = mix_layer_add_layer(layer, cell)) != NULL;
}
