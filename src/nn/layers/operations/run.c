/* Runs an operation by what its row has. */
#include "nn/layers/operations/operation.h"

#include "base/error.h"

/* An empty list of axes is none; null is all. */
static mix_tensor *reduce(const mix_operands *o, mix_tensor *x) {
  const mix_axes axes = mix_operand_axes(o, "axis", mix_tensor_shape(x).rank);
  const bool keep = mix_operand_flag(o, "keepdims");
  if (axes.count || !json_is_array(mix_operand_json(o, "axis"))) return o->operation->reduce(x, axes, keep);
  return o->operation->is_spread ? mix_zeros_like(x) : mix_identity(x);
}

static mix_tensor *compute(const mix_operands *o, mix_tensor *x) {
  const mix_operation *operation = o->operation;
  if (operation->build) return operation->build(o, x);
  if (operation->activation)
    return mix_activate(operation->activation, x, .semantics = &mix_semantics_keras3);
  return operation->reduce ? reduce(o, x) : operation->unary(x);
}

static mix_tensor *first_operand(const mix_operands *o) {
  mix_tensor *x = mix_operand(o, o->first);
  const mix_operand_rule rule = o->operation->rule;
  if (rule == MIX_OPERANDS_FLOATING) return mix_operand_floating(x);
  return rule == MIX_OPERANDS_BOOLEAN ? mix_cast(x, MIX_BOOL) : x;
}

static mix_list *run(const mix_operands *o) {
  const mix_operation *operation = o->operation;
  mix_tensor *pair[2];
  if (operation->refusal)
    return mix_operation_fail(o, MIX_UNSUPPORTED, "%s is not supported: %s", operation->name,
                              operation->refusal);
  if (operation->binary)
    return mix_operand_pair(o, pair) ? mix_one_result(operation->binary(pair[0], pair[1])) : NULL;
  if (operation->join) {
    mix_list *list = mix_operand_list(o);
    return list ? mix_one_result(operation->join(o, list)) : NULL;
  }
  mix_tensor *x = operation->bare ? NULL : first_operand(o);
  if (!x && !operation->bare) return NULL;
  return operation->results ? operation->results(o, x) : mix_one_result(compute(o, x));
}

mix_list *mix_operation_run(const mix_operands *o) {
  mix_list *results = run(o);
  if (!results && !mix_failed()) mix_operation_fail(o, MIX_INTERNAL_ERROR, "the operation gave no result");
  return mix_failed() ? NULL : results;
}
