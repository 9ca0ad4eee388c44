/* Products of matrices. */
#include "base/error.h"
#include "nn/layers/keras_operations/keras_operation.h"
#include <mixtape/einsum.h>

/* Integers multiply in float32, as in Keras on TensorFlow. `result`: the dtype of the product. */
static bool operands_of(const mix_operands *o, mix_tensor **pair, mix_dtype *result) {
  if (!mix_operand_pair(o, MIX_OPERANDS_TYPED, pair)) return false;
  *result = mix_tensor_dtype(pair[0]);
  for (int i = 0; i < 2; i++) pair[i] = mix_operand_floating(pair[i]);
  return !mix_failed();
}

/* Vectors are rows on the left and columns on the right. */
static mix_tensor *product(mix_tensor *a, mix_tensor *b) {
  const bool row = mix_tensor_shape(a).rank == 1, column = mix_tensor_shape(b).rank == 1;
  mix_tensor *y =
      mix_matmul(row ? mix_expand_dims(a, 0) : a, column ? mix_expand_dims(b, 1) : b, false, false);
  if (column && y) y = mix_squeeze(y, MIX_AXES(-1));
  return row && y ? mix_squeeze(y, column ? MIX_AXES(-1) : MIX_AXES(-2)) : y;
}

static mix_list *matmul_call(const mix_operands *o) {
  mix_tensor *pair[2];
  mix_dtype dtype;
  if (!operands_of(o, pair, &dtype)) return NULL;
  if (!mix_tensor_shape(pair[0]).rank || !mix_tensor_shape(pair[1]).rank)
    return mix_fail(MIX_VALUE_ERROR, "%s: an operand is a scalar; expected vectors or matrices",
                    o->layer->name);
  mix_tensor *y = product(pair[0], pair[1]);
  return y ? mix_one_result(mix_cast(y, dtype)) : NULL;
}

static mix_list *dot_call(const mix_operands *o) {
  mix_tensor *pair[2];
  mix_dtype dtype;
  if (!operands_of(o, pair, &dtype)) return NULL;
  const int left = mix_tensor_shape(pair[0]).rank, right = mix_tensor_shape(pair[1]).rank;
  if (right > 2)
    return mix_fail(MIX_UNSUPPORTED, "%s: x2 of the Keras operation Dot has rank %d; expected at most 2",
                    o->layer->name, right);
  mix_tensor *y = left && right ? product(pair[0], pair[1]) : mix_multiply(pair[0], pair[1]);
  return y ? mix_one_result(mix_cast(y, dtype)) : NULL;
}

static mix_list *einsum_call(const mix_operands *o) {
  enum { MOST = 8 };
  mix_tensor *tensors[MOST];
  const char *equation = mix_operand_text(o, "subscripts", NULL);
  if (!equation && !mix_failed()) return mix_operand_refused(o, "subscripts", NULL, "a string");
  mix_list *list = equation ? mix_operand_list(o, "operands") : NULL;
  if (!list) return NULL;
  const int count = mix_list_count(list);
  if (count > MOST)
    return mix_fail(MIX_UNSUPPORTED, "%s: the Keras operation Einsum has %d operands; expected at most %d",
                    o->layer->name, count, MOST);
  const mix_dtype dtype = mix_tensor_dtype(mix_list_get(list, 0));
  for (int i = 0; i < count; i++) tensors[i] = mix_operand_floating(mix_list_get(list, i));
  mix_tensor *y = mix_failed() ? NULL : mix_einsum(equation, count, tensors);
  return y ? mix_one_result(mix_cast(y, dtype)) : NULL;
}

/* ---- the table ---- */

const mix_keras_operation mix_keras_product_operations[] = {
    MIX_KERAS_OPERATION("Matmul", "numpy", "x1|x2", "", .call = matmul_call),
    MIX_KERAS_OPERATION("Dot", "numpy", "x1|x2", "", .call = dot_call),
    MIX_KERAS_OPERATION("Einsum", "numpy", "operands", "subscripts", .call = einsum_call,
                        .takes_several = true),
    {.operands = NULL}};
