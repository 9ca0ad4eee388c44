/* Products of matrices, and attention. */
#include "base/error.h"
#include "nn/layers/attention/attention.h"
#include "nn/layers/operations/operation.h"
#include <math.h>
#include <mixtape/einsum.h>

/* Integers multiply in float32, as in Keras on TensorFlow. `result`: the dtype of the product. */
static bool operands_of(const mix_operands *o, mix_tensor **pair, mix_dtype *result) {
  if (!mix_operand_pair(o, pair)) return false;
  *result = mix_tensor_dtype(pair[0]);
  for (int i = 0; i < 2; i++) pair[i] = mix_operand_floating(pair[i]);
  return !mix_failed();
}

/* Vectors are rows on the left and columns on the right. */
static mix_tensor *product(mix_tensor *a, mix_tensor *b) {
  const bool row = mix_tensor_shape(a).rank == 1, column = mix_tensor_shape(b).rank == 1;
  mix_tensor *y =
      mix_matmul(row ? mix_expand_dims(a, 0) : a, column ? mix_expand_dims(b, 1) : b, false, false);
  if (column) y = mix_squeeze(y, MIX_AXES(-1));
  return row ? mix_squeeze(y, column ? MIX_AXES(-1) : MIX_AXES(-2)) : y;
}

static mix_tensor *matmul(const mix_operands *o, mix_tensor *x) {
  mix_tensor *pair[2];
  mix_dtype dtype;
  if (!operands_of(o, pair, &dtype)) return NULL;
  if (!mix_tensor_shape(pair[0]).rank || !mix_tensor_shape(pair[1]).rank)
    return mix_operation_fail(o, MIX_VALUE_ERROR, "an operand is a scalar; expected vectors or matrices");
  return mix_cast(product(pair[0], pair[1]), dtype);
}

static mix_tensor *dot(const mix_operands *o, mix_tensor *x) {
  mix_tensor *pair[2];
  mix_dtype dtype;
  if (!operands_of(o, pair, &dtype)) return NULL;
  const int left = mix_tensor_shape(pair[0]).rank, right = mix_tensor_shape(pair[1]).rank;
  if (right > 2)
    return mix_operation_fail(o, MIX_UNSUPPORTED,
                              "x2 of the Keras operation Dot has rank %d; expected at most 2", right);
  return mix_cast((left && right ? product : mix_multiply)(pair[0], pair[1]), dtype);
}

static mix_tensor *tf_matmul(const mix_operands *o, mix_tensor *x) {
  mix_tensor *pair[2];
  const bool turn_a = mix_operand_flag(o, "transpose_a"), turn_b = mix_operand_flag(o, "transpose_b"),
             conjugate_a = mix_operand_flag(o, "adjoint_a"), conjugate_b = mix_operand_flag(o, "adjoint_b");
  if (!mix_operand_pair(o, pair)) return NULL;
  return mix_matmul(pair[0], pair[1], turn_a || conjugate_a, turn_b || conjugate_b);
}

static mix_tensor *einsum(const mix_operands *o, mix_list *list) {
  enum { MOST = 8 };
  mix_tensor *tensors[MOST];
  const char *equation = mix_operand_text(o, "subscripts");
  const int count = mix_list_count(list);
  if (count > MOST)
    return mix_operation_fail(o, MIX_UNSUPPORTED,
                              "the Keras operation Einsum has %d operands; expected at most %d", count, MOST);
  for (int i = 0; i < count; i++) tensors[i] = mix_operand_floating(mix_list_get(list, i));
  return mix_failed()
             ? NULL
             : mix_cast(mix_einsum(equation, count, tensors), mix_tensor_dtype(mix_list_get(list, 0)));
}

/* ---- attention ---- */

/* (batch, places, heads, size) of numbers with fractions; heads of keys and values are shared evenly. */
static bool check_heads(const mix_operands *o, mix_tensor *const heads[3]) {
  mix_shape shapes[3];
  for (int i = 0; i < 3; i++) {
    shapes[i] = mix_tensor_shape(heads[i]);
    if (shapes[i].rank == 4 && shapes[i].dims[2] > 0 && shapes[i].dims[3] > 0 &&
        mix_dtype_is_floating(mix_tensor_dtype(heads[i])))
      continue;
    return mix_operation_fail(
        o, MIX_VALUE_ERROR,
        "an operand of DotProductAttention is %s %s; expected four axes of floating-point "
        "numbers, of which the last two have known sizes",
        mix_dtype_name(mix_tensor_dtype(heads[i])), MIX_SHAPE_TEXT(shapes[i]));
  }
  if (shapes[1].dims[2] == shapes[2].dims[2] && shapes[0].dims[2] % shapes[1].dims[2] == 0) return true;
  return mix_operation_fail(
      o, MIX_VALUE_ERROR,
      "query, key and value of DotProductAttention have %lld, %lld and %lld heads; expected "
      "as many of the key as of the value, and a multiple of them of the query",
      (long long)shapes[0].dims[2], (long long)shapes[1].dims[2], (long long)shapes[2].dims[2]);
}

/* Bias or mask of scores, with the axes that it lacks in front; NULL without an error: it is not given. */
static mix_tensor *of_scores(const mix_operands *o, const char *name, mix_dtype dtype) {
  mix_tensor *tensor = mix_operand_json(o, name) ? mix_operand(o, name) : NULL;
  if (tensor && dtype == MIX_BOOL && mix_tensor_dtype(tensor) != MIX_BOOL)
    return mix_operation_fail(o, MIX_TYPE_ERROR, "%s of DotProductAttention is %s; expected bool", name,
                              mix_dtype_name(mix_tensor_dtype(tensor)));
  while (tensor && mix_tensor_shape(tensor).rank < 4) tensor = mix_expand_dims(tensor, 0);
  return tensor ? mix_cast(tensor, dtype) : NULL;
}

/* Flash attention is another way to the same numbers. */
static mix_list *dot_product_attention(const mix_operands *o, mix_tensor *x) {
  static const char *const names[] = {"query", "key", "value"};
  mix_head_attention attention = {
      .attention_axes = 1, .query_first = true, .dot = "btnh,bsnh->bnts", .combine = "bnts,bsnh->btnh"};
  mix_call_args args = {.size = sizeof args, .symbolic = o->symbolic};
  mix_tensor *heads[3];
  if (!mix_operands_promoted(o, 3, names, heads) || !check_heads(o, heads)) return NULL;
  attention.scale = mix_operand_json(o, "scale") ? mix_operand_number(o, "scale")
                                                 : 1 / sqrt((double)mix_tensor_shape(heads[1]).dims[3]);
  args.use_causal_mask = mix_operand_flag(o, "is_causal");
  mix_operand_flag(o, "flash_attention");
  attention.bias = of_scores(o, "bias", mix_tensor_dtype(heads[0]));
  mix_tensor *mask = of_scores(o, "mask", MIX_BOOL);
  return mix_failed() ? NULL : mix_attend(&mix_semantics_keras3, &attention, &args, heads, mask);
}

/* ---- the tables ---- */

const mix_keras_operation mix_keras_product_operations[] = {
    MIX_KERAS_OPERATION("Matmul", "numpy", "x1 x2", "", .build = matmul, .rule = MIX_OPERANDS_TYPED),
    MIX_KERAS_OPERATION("Dot", "numpy", "x1 x2", "", .build = dot, .rule = MIX_OPERANDS_TYPED),
    MIX_KERAS_OPERATION("Einsum", "numpy", "operands", "subscripts", .join = einsum, .takes_several = true),
    MIX_KERAS_OPERATION("DotProductAttention", "nn", "query key value bias mask scale",
                        "is_causal flash_attention !attn_logits_soft_cap", .results = dot_product_attention),
    {.operation = {0}}};

const mix_operation mix_tf_product_operations[] = {
    MIX_TF_OPERATION("linalg.matmul", "a",
                     "b transpose_a transpose_b adjoint_a adjoint_b !a_is_sparse=false !b_is_sparse=false "
                     "!output_type !grad_a=false !grad_b=false",
                     .build = tf_matmul),
    {0}};
