/* TimeDistributed: a layer on every step of sequences, as one batch of all steps. */
#include "base/error.h"
#include "nn/layers/recurrent/recurrent.h"
#include "tensor/shape.h"

static mix_layer *inner_of(const mix_layer *layer) {
  return ((const mix_time_distributed_options *)layer->data)->layer;
}

static bool ready(mix_layer *layer) {
  mix_layer *inner = inner_of(layer);
  if (!inner) return mix_fail(MIX_VALUE_ERROR, "%s: got no layer", layer->name), false;
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
  char text[160];
  if (shape.rank >= 3) return true;
  return mix_fail(MIX_VALUE_ERROR, "%s: the input has shape %s; expected (batch, steps, ...)", layer->name,
                  mix_shape_text(shape, text, sizeof text)),
         false;
}

/* Of one step, as Keras says it in its config. */
static mix_status build(mix_layer *layer, int count, const mix_shape *inputs) {
  (void)count;
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

static mix_list *call(mix_layer *layer, const mix_call_args *args) {
  mix_tensor *x = mix_call_input(args, 0), *mask = mix_call_mask(args);
  if (!x || !is_sequence(layer, mix_tensor_shape(x))) return NULL;
  const mix_shape sequence = mix_tensor_shape(x), rows = folded(sequence);
  const bool symbolic = args->symbolic;
  mix_tensor *steps = symbolic ? symbol(mix_tensor_dtype(x), rows) : mix_reshape(x, rows);
  if (mask && !symbolic) mask = mix_reshape(mask, folded(mix_tensor_shape(mask)));
  mix_tensor *y = mix_call(inner_of(layer), steps, .mask = symbolic ? NULL : mask,
                           .training = args->training ? MIX_TRUE : MIX_FALSE);
  if (!y) return NULL;
  const mix_shape shape = unfolded(sequence, mix_tensor_shape(y));
  return mix_one_result(symbolic ? symbol(mix_tensor_dtype(y), shape) : mix_reshape(y, shape));
}

static const mix_field_row fields[] = {
    {MIX_FIELD(mix_time_distributed_options, layer), &mix_field_layer, .required = true}, {0}};
MIX_LAYER_KIND(time_distributed, mix_time_distributed_options, .fields = fields, .ready = ready,
               .call_has_mask = true,
               MIX_LAYER_CLASS(.name = "TimeDistributed", .build = build, .call = call,
                               .supports_masking = true))
