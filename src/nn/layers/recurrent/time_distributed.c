/* TimeDistributed: a layer on every step of sequences, as one batch of all steps where that is the same. */
#include "base/error.h"
#include "nn/layer/decoding.h"
#include "nn/layers/operations/operation.h"
#include "nn/layers/recurrent/recurrent.h"

static mix_layer *inner_of(const mix_layer *layer) {
  return ((const mix_time_distributed_options *)layer->data)->layer;
}

static bool ready(mix_layer *layer) {
  mix_layer *inner = inner_of(layer);
  if (!inner) return mix_fail_value("%s: got no layer", layer->name);
  inner->attribute = "layer";
  return mix_layer_add_layer(layer, inner) != NULL;
}

/* (batch, steps, ...) as (batch * steps, ...). */
static mix_shape folded(mix_shape shape) {
  mix_shape rows = {.rank = shape.rank - 1};
  const bool known = shape.dims[0] != MIX_UNKNOWN && shape.dims[1] != MIX_UNKNOWN;
  rows.dims[0] = known ? shape.dims[0] * shape.dims[1] : MIX_UNKNOWN;
  for (int i = 1; i < rows.rank; i++) rows.dims[i] = shape.dims[i + 1];
  return rows;
}

/* The first two dimensions of `sequence`, then those of `rows` after the first. */
static mix_shape unfolded(mix_shape sequence, mix_shape rows) {
  mix_shape shape = {.rank = rows.rank + 1, .dims = {sequence.dims[0], sequence.dims[1]}};
  for (int i = 1; i < rows.rank; i++) shape.dims[i + 1] = rows.dims[i];
  return shape;
}

static bool is_sequence(const mix_layer *layer, mix_shape shape) {
  if (shape.rank >= 3) return true;
  return mix_fail_value("%s: the input has shape %s; expected (batch, steps, ...)", layer->name,
                        MIX_SHAPE_TEXT(shape));
}

/* Of one step, as Keras says it in its config. */
static mix_status build(mix_layer *layer, int count, const mix_shape *inputs) {
  if (!is_sequence(layer, inputs[0])) return mix_error();
  mix_shape step = folded(inputs[0]);
  step.dims[0] = inputs[0].dims[0];
  return mix_layer_build(inner_of(layer), step);
}

static mix_tensor *symbol(mix_dtype dtype, mix_shape shape) {
  mix_node *node = mix_node_placeholder(dtype, shape, true);
  mix_tensor *tensor = mix_tensor_of(node, 0);
  mix_release(node);
  return tensor;
}

/* ---- step by step ---- */

/* A layer of a user's may do what it likes with a batch, and an operation of Keras 3 takes any axis. */
static bool mixes_samples(const mix_layer *layer, bool training) {
  const mix_rnn *rnn = mix_rnn_of(layer);
  bool mixes = (!layer->kind && !layer->is_model && !layer->is_input) || (rnn && rnn->flags.stateful) ||
               mix_keras_operation_of(layer) ||
               (training && layer->kind && layer->kind->mixes_samples && layer->kind->mixes_samples(layer));
  for (int i = 0; !mixes && i < mix_list_count(layer->layers); i++) {
    const mix_layer *inner = mix_list_items(layer->layers)[i];
    mixes = inner->activity_regularizer || mixes_samples(inner, training); /* a loss for each call */
  }
  return mixes;
}

/* Step `step` of (batch, steps, ...). */
static mix_tensor *step_of(mix_tensor *x, int64_t step) {
  return mix_squeeze(mix_layer_range(x, 1, step, 1, 1), MIX_AXES(1));
}

/* keras3 calls the layer's `call` itself, which adds no activity loss. */
static mix_tensor *call_inner(const mix_layer *layer, mix_tensor *x, mix_tensor *mask, bool training) {
  const mix_call_keywords keywords = {.no_activity_loss = layer->semantics->time_distributed_by_step};
  mix_list *masks = mask ? mix_list_of(mask) : NULL;
  mix_list *results = mix_layer_call_outputs(inner_of(layer), mix_list_of(x), false, NULL, masks, NULL,
                                             training ? MIX_TRUE : MIX_FALSE, &keywords);
  return results ? mix_list_get(results, 0) : NULL;
}

/* Keras, too, has a call for each step in its graph. */
static mix_list *call_steps(mix_layer *layer, const mix_call_args *args, mix_tensor *x, mix_tensor *mask) {
  const int64_t steps = mix_tensor_shape(x).dims[1];
  mix_list *results = mix_list_new(0, NULL);
  for (int64_t i = 0; i < steps && !mix_failed(); i++) {
    mix_tensor *y = call_inner(layer, step_of(x, i), mask ? step_of(mask, i) : NULL, args->training);
    mix_list_append(results, y);
  }
  return mix_failed() ? NULL : mix_one_result(mix_layer_stack(results, 1));
}

/* ---- calling ---- */

/* May the result of one step depend on others, by a function that is not the library's? */
static bool couples_steps(const mix_layer *layer) {
  const bool function = !layer->kind && !layer->is_model && !layer->is_input;
  bool couples = function || layer->kind == &mix_lambda_kind || (layer->kind && layer->kind->call_has_form);
  for (int i = 0; !couples && i < mix_list_count(layer->layers); i++)
    couples = couples_steps(mix_list_items(layer->layers)[i]);
  return couples;
}

static bool time_distributed_decodes(const mix_layer *layer, const mix_call_args *args) {
  return !couples_steps(inner_of(layer));
}

static mix_list *call_all(mix_layer *layer, const mix_call_args *args) {
  mix_tensor *x = mix_call_input(args, 0), *mask = mix_call_mask(args);
  if (!x || !is_sequence(layer, mix_tensor_shape(x))) return NULL;
  const mix_shape sequence = mix_tensor_shape(x), rows = folded(sequence);
  const bool symbolic = args->symbolic;
  if (!symbolic && sequence.dims[1] > 0 && layer->semantics->time_distributed_by_step &&
      mixes_samples(inner_of(layer), args->training))
    return call_steps(layer, args, x, mask);
  mix_tensor *steps = symbolic ? symbol(mix_tensor_dtype(x), rows) : mix_reshape(x, rows);
  if (mask && !symbolic) mask = mix_reshape(mask, folded(mix_tensor_shape(mask)));
  mix_tensor *y = call_inner(layer, steps, symbolic ? NULL : mask, args->training);
  if (!y) return NULL;
  const mix_shape shape = unfolded(sequence, mix_tensor_shape(y));
  return mix_one_result(symbolic ? symbol(mix_tensor_dtype(y), shape) : mix_reshape(y, shape));
}

/* Positions of the inner layer are others than those that are decoded. */
static mix_list *call(mix_layer *layer, const mix_call_args *args) {
  mix_decoding *decoding = mix_decoding_set(NULL);
  mix_list *results = call_all(layer, args);
  mix_decoding_set(decoding);
  return results;
}

static const mix_field_row fields[] = {
    {MIX_FIELD(mix_time_distributed_options, layer), &mix_field_layer, .required = true}, {0}};
MIX_LAYER_KIND(time_distributed, mix_time_distributed_options, .fields = fields, .ready = ready,
               .call_has_mask = true, .decodes = time_distributed_decodes,
               MIX_LAYER_CLASS(.name = "TimeDistributed", .build = build, .call = call,
                               .supports_masking = true))
