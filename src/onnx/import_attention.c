/* ONNX's Attention as keras.ops.dot_product_attention, whose heads come after the places. */
#include "onnx/import.h"

#include "base/error.h"
#include "tensor/shape.h"
#include <math.h>

/* Scores of what is masked, finite as Keras's: the softmax of a row that sees nothing is no NaN. */
#define MASKED_SCORE (-2.3e38)

static mix_tensor *transposed(mix_import *in, mix_tensor *x) {
  return x ? mix_import_apply(in, "Transpose", x, MIX_PACK("{s:[i,i,i,i]}", "axes", 0, 2, 1, 3)) : NULL;
}

/* (batch, places, heads, size), of heads before places or, of rank 3, of heads in the last axis. */
static mix_tensor *heads_of(mix_import *in, int index, const char *count) {
  mix_tensor *x = mix_import_operand(in, index);
  if (!x) return NULL;
  const mix_shape shape = mix_tensor_shape(x);
  const int64_t heads = mix_onnx_integer(in->node, count, 0);
  if (!mix_dtype_is_floating(mix_tensor_dtype(x)) || (shape.rank != 3 && shape.rank != 4))
    return mix_import_fail(in, MIX_FORMAT_ERROR, "input %d is %s %s; expected rank 3 or 4 of floats", index,
                           mix_dtype_name(mix_tensor_dtype(x)), MIX_SHAPE_TEXT(shape));
  if (shape.rank == 4) return transposed(in, x);
  if (heads < 1 || shape.dims[2] < 1 || shape.dims[2] % heads)
    return mix_import_fail(in, MIX_FORMAT_ERROR, "%s is %lld, and input %d has shape %s", count,
                           (long long)heads, index, MIX_SHAPE_TEXT(shape));
  if (shape.dims[1] < 0)
    return mix_import_fail(in, MIX_UNSUPPORTED, "input %d has shape %s; expected a known length", index,
                           MIX_SHAPE_TEXT(shape));
  const int64_t sizes[] = {-1, shape.dims[1], heads, shape.dims[2] / heads};
  return mix_import_apply(in, "Reshape", x, MIX_PACK("{s:o}", "newshape", mix_import_list(4, sizes)));
}

/* Keras's operation wants as many heads of keys and values as of the query: a group for each of its heads. */
static mix_tensor *repeated(mix_import *in, mix_tensor *x, int64_t heads) {
  if (!x) return NULL;
  const mix_shape shape = mix_tensor_shape(x);
  const int64_t groups = shape.dims[2];
  if (groups == heads) return x;
  if (groups < 1 || heads < 1 || heads % groups)
    return mix_import_fail(in, MIX_FORMAT_ERROR, "%lld heads of the query for %lld of keys and values",
                           (long long)heads, (long long)groups);
  return mix_import_apply(in, "Repeat", x,
                          MIX_PACK("{s:I,s:i}", "repeats", (json_int_t)(heads / groups), "axis", 2));
}

/* Of a mask of conditions: 0 where it holds. */
static mix_tensor *bias_of(mix_import *in, const mix_tensor *like) {
  mix_tensor *mask = mix_import_operand(in, 3);
  if (!mask || mix_tensor_dtype(mask) != MIX_BOOL) return mask;
  const bool half = mix_tensor_dtype(like) == MIX_FLOAT16;
  mix_tensor *three[] = {mask, mix_import_number_like(like, 0),
                         mix_import_number_like(like, half ? -32768 : MASKED_SCORE)};
  return mix_import_run_one(in, "Where", 3, three, NULL);
}

static bool check_options(mix_import *in) {
  for (int i = 4; i < in->node->input_count; i++)
    if (*in->node->inputs[i])
      return mix_import_fail(in, MIX_UNSUPPORTED, "it has former keys and values (input %d)", i);
  for (int i = 1; i < in->node->output_count; i++)
    if (mix_import_is_used(in, i))
      return mix_import_fail(in, MIX_UNSUPPORTED, "its output %d is used; expected the first alone", i);
  if (mix_onnx_number(in->node, "softcap", 0) != 0)
    return mix_import_fail(in, MIX_UNSUPPORTED, "softcap is %g; expected 0",
                           mix_onnx_number(in->node, "softcap", 0));
  return true;
}

/* (batch, places, heads, size) as the query came: heads before places, or joined. */
static mix_tensor *as_given(mix_import *in, mix_tensor *y) {
  const mix_tensor *query = mix_import_operand(in, 0);
  if (!y || !query) return NULL;
  if (mix_tensor_shape(query).rank == 4) return transposed(in, y);
  const mix_shape shape = mix_tensor_shape(y);
  const int64_t sizes[] = {-1, shape.dims[1], shape.dims[2] * shape.dims[3]};
  return mix_import_apply(in, "Reshape", y, MIX_PACK("{s:o}", "newshape", mix_import_list(3, sizes)));
}

bool mix_import_attention(mix_import *in) {
  mix_tensor *operands[4] = {NULL};
  if (!check_options(in) || !(operands[0] = heads_of(in, 0, "q_num_heads"))) return false;
  const mix_shape query = mix_tensor_shape(operands[0]);
  for (int i = 1; i < 3; i++) {
    operands[i] = repeated(in, heads_of(in, i, "kv_num_heads"), query.dims[2]);
    if (!operands[i]) return false;
  }
  const bool masked = mix_import_input(in, 3);
  if (query.dims[3] < 1)
    return mix_import_fail(in, MIX_UNSUPPORTED, "heads of an unknown size, %s", MIX_SHAPE_TEXT(query));
  if (masked && !(operands[3] = bias_of(in, operands[0]))) return false;
  const double scale = mix_onnx_number(in->node, "scale", 1 / sqrt((double)query.dims[3]));
  json_t *config =
      MIX_PACK("{s:b,s:n}", "is_causal", mix_onnx_integer(in->node, "is_causal", 0) != 0, "flash_attention");
  json_t *further = masked ? MIX_PACK("[n,f]", scale) : MIX_PACK("[n,n,f]", scale);
  mix_list *results = mix_import_run(in, "DotProductAttention", masked ? 4 : 3, operands, config, further);
  return results && mix_import_bind(in, 0, as_given(in, mix_list_get(results, 0)));
}
