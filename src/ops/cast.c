/* Changes of dtype, and identities. */
#include "ops/rules.h"

static bool cast_infer(mix_node *node) {
  node->outputs[0].dtype = ((const mix_cast_attributes *)node->attributes)->dtype;
  return mix_rule_same(node);
}

/* Casts back to the operand's dtype. Integers and bools get no gradient. */
static void cast_gradient(mix_node *node, mix_tensor *const *output_gradients, mix_tensor **input_gradients) {
  if (mix_flows_to(node, 0))
    input_gradients[0] = mix_cast(output_gradients[0], mix_input_value(node, 0)->dtype);
}

static const mix_attribute_row cast_fields[] = {
    {"dtype", MIX_ATTRIBUTE_DTYPE, offsetof(mix_cast_attributes, dtype)}, {NULL}};

const mix_op mix_op_cast = {.name = "cast",
                            .tf_name = "Cast",
                            .signature = "S->D",
                            .types = "any,any",
                            .flags = MIX_OP_ELEMENTWISE,
                            .opcode = MIX_OPCODE_CAST,
                            .attributes_size = sizeof(mix_cast_attributes),
                            .infer = cast_infer,
                            .row_independent = mix_rows_elementwise,
                            .gradient = cast_gradient,
                            .fields = cast_fields};

mix_tensor *mix_cast(mix_tensor *x, mix_dtype dtype) {
  if (!mix_operand_ready("cast", x) || !mix_dtype_checked("cast", dtype)) return NULL;
  if (mix_tensor_is_rows(x) && mix_tensor_dtype(x) != dtype)
    return mix_with_values(x, mix_cast(mix_rows_values(x), dtype));
  return mix_tensor_dtype(x) == dtype ? x : mix_apply(&mix_op_cast, &(mix_cast_attributes){dtype}, 1, &x);
}

/* ---- the bits of another dtype ---- */

static bool bitcast_infer(mix_node *node) {
  const mix_value *x = mix_input_value(node, 0);
  const mix_dtype dtype = ((const mix_cast_attributes *)node->attributes)->dtype;
  const int64_t from = (int64_t)mix_dtype_size(x->dtype), to = (int64_t)mix_dtype_size(dtype);
  mix_shape shape = x->shape;
  node->outputs[0].dtype = dtype;
  if (from == to) return mix_rule_output(node, 0, shape);
  if (!shape.rank)
    return mix_rule_fail(node, "a scalar cannot be %s, whose elements have %lld bytes", mix_dtype_name(dtype),
                         (long long)to);
  int64_t *last = &shape.dims[shape.rank - 1], bytes;
  if (*last < 0) return mix_rule_output(node, 0, shape);
  if (__builtin_mul_overflow(*last, from, &bytes) || bytes % to)
    return mix_rule_fail(node, "its rows do not divide into elements of %s, of %lld bytes",
                         mix_dtype_name(dtype), (long long)to);
  *last = bytes / to;
  return mix_rule_output(node, 0, shape);
}

const mix_op mix_op_bitcast = {.name = "bitcast",
                               .tf_name = "Bitcast",
                               .signature = "S->D",
                               .types = "number,number",
                               .attributes_size = sizeof(mix_cast_attributes),
                               .infer = bitcast_infer,
                               .row_independent = mix_rows_before_classes,
                               .fields = cast_fields};

mix_tensor *mix_bitcast(mix_tensor *x, mix_dtype dtype) {
  if (!mix_operand_ready("bitcast", x) || !mix_dtype_checked("bitcast", dtype)) return NULL;
  if (!mix_dtype_is_real(dtype) && !mix_dtype_is_integer(dtype))
    return mix_call_fail(MIX_TYPE_ERROR, "bitcast", x,
                         "got %s to be read as %s; expected floating-point (not float8) or integers",
                         mix_dtype_name(mix_tensor_dtype(x)), mix_dtype_name(dtype));
  return mix_apply(&mix_op_bitcast, &(mix_cast_attributes){dtype}, 1, &x);
}

/* ---- identities ---- */

static void pass_gradient(mix_node *node, mix_tensor *const *output_gradients, mix_tensor **input_gradients) {
  input_gradients[0] = output_gradients[0];
}

const mix_op mix_op_identity = {.name = "identity",
                                .tf_name = "Identity",
                                .signature = "T->T",
                                .types = "any",
                                .flags = MIX_OP_ELEMENTWISE,
                                .opcode = MIX_OPCODE_IDENTITY,
                                .infer = mix_rule_same,
                                .row_independent = mix_rows_elementwise,
                                .gradient = pass_gradient};

const mix_op mix_op_stop_gradient = {.name = "stop_gradient",
                                     .tf_name = "StopGradient",
                                     .signature = "T->T",
                                     .types = "any",
                                     .flags = MIX_OP_ELEMENTWISE,
                                     .opcode = MIX_OPCODE_IDENTITY,
                                     .infer = mix_rule_same,
                                     .row_independent = mix_rows_elementwise};

/* On none of the rewrite's lists: it neither converts this op nor looks through it, so unscaling and
 * updates keep their dtype. */
const mix_op mix_op_gradient = {.name = "gradient",
                                .signature = "T->T",
                                .types = "any",
                                .flags = MIX_OP_ELEMENTWISE | MIX_OP_KEEP,
                                .opcode = MIX_OPCODE_IDENTITY,
                                .infer = mix_rule_same,
                                .row_independent = mix_rows_elementwise,
                                .gradient = pass_gradient};

mix_tensor *mix_identity(mix_tensor *x) { return mix_apply1(&mix_op_identity, x); }
mix_tensor *mix_stop_gradient(mix_tensor *x) { return mix_apply1(&mix_op_stop_gradient, x); }
mix_tensor *mix_gradient_identity(mix_tensor *x) { return mix_apply1(&mix_op_gradient, x); }
