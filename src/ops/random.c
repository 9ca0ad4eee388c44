/* Random numbers: stateless operations on a state of key and counter. Generators are in
 * compile/generator.c. */
#include "ops/rules.h"
#include <mixtape/random.h>

/* Operand: state, int64 (2). */
static bool random_infer(mix_node *node) {
  const mix_shape_attributes *attributes = node->attributes;
  mix_shape state = mix_input_value(node, 0)->shape;
  if (state.rank != 1 || (state.dims[0] != 2 && state.dims[0] != MIX_UNKNOWN))
    return mix_rule_fail(node, "expected a state (2): key and counter");
  node->outputs[0].dtype = attributes->dtype;
  return mix_rule_output(node, 0, attributes->shape);
}

static const mix_attribute_row random_fields[] = {
    {"shape", MIX_ATTRIBUTE_SHAPE, offsetof(mix_shape_attributes, shape)},
    {"dtype", MIX_ATTRIBUTE_DTYPE, offsetof(mix_shape_attributes, dtype)},
    {NULL}};

static mix_tensor *stateless(const mix_op *op, mix_tensor *state, mix_shape shape, mix_dtype dtype) {
  if (!mix_operand_ready(op->name, state) || !mix_dtype_checked(op->name, dtype)) return NULL;
  if (!mix_dtype_is_floating(dtype))
    return mix_call_fail(MIX_TYPE_ERROR, op->name, NULL, "dtype %s; expected a floating one",
                         mix_dtype_name(dtype));
  bool printable = shape.rank >= 0 && shape.rank <= MIX_MAX_RANK;
  if (!printable || mix_shape_checked_size(shape) < 0) {
    return mix_call_fail(MIX_VALUE_ERROR, op->name, NULL,
                         "the shape %s has an unknown or negative dimension, or too many elements%s",
                         printable ? MIX_SHAPE_TEXT(shape) : "", printable ? mix_open_shape_hint(shape) : "");
  }
  return mix_apply(op, &(mix_shape_attributes){.shape = shape, .dtype = dtype}, 1, &state);
}

#define OP(called, tf)                                                                                       \
  const mix_op mix_op_random_##called = {.name = "random_" #called,                                          \
                                         .tf_name = tf,                                                      \
                                         .signature = "l->T",                                                \
                                         .types = "float",                                                   \
                                         .flags = MIX_OP_RANDOM,                                             \
                                         .attributes_size = sizeof(mix_shape_attributes),                    \
                                         .infer = random_infer,                                              \
                                         .fields = random_fields};                                           \
  mix_tensor *mix_stateless_##called(mix_tensor *state, mix_shape shape, mix_dtype dtype) {                  \
    return stateless(&mix_op_random_##called, state, shape, dtype);                                          \
  }
OP(uniform, "StatelessRandomUniformV2")
OP(normal, "StatelessRandomNormalV2")
OP(truncated_normal, "StatelessTruncatedNormalV2")
