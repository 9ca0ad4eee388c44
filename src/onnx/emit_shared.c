/* Forms that families of operations share. */
#include "onnx/emit.h"

#include <string.h>

const char *mix_onnx_cast(mix_onnx_emitter *e, const char *x, mix_dtype from, mix_dtype to) {
  if (mix_onnx_written(e, from) == mix_onnx_written(e, to)) return x;
  if (mix_dtype_is_float8(to)) mix_onnx_int(e, "saturate", 0); /* what is too large becomes NaN or infinity */
  mix_onnx_int(e, "to", mix_onnx_type_of(mix_onnx_written(e, to)));
  return mix_onnx_node1(e, "Cast", x);
}

const char *mix_onnx_transpose(mix_onnx_emitter *e, const char *x, int rank, const int *permutation) {
  int64_t order[MIX_MAX_RANK + 2];
  bool moves = false;
  for (int d = 0; d < rank; d++) {
    order[d] = permutation[d];
    moves |= permutation[d] != d;
  }
  if (!moves) return x;
  mix_onnx_ints(e, "perm", rank, order);
  return mix_onnx_node1(e, "Transpose", x);
}

/* One size that depends on the batch is -1, where no other is 0. */
const char *mix_onnx_reshape(mix_onnx_emitter *e, const char *x, int rank, const mix_onnx_size *sizes) {
  mix_onnx_size shape[MIX_MAX_RANK + 2];
  int open = 0, zeros = 0, last = 0;
  for (int d = 0; d < rank; d++) {
    shape[d] = sizes[d];
    if (sizes[d].factor) last = d, open++;
    if (!sizes[d].factor && !sizes[d].rest) zeros++;
  }
  if (open == 1 && !zeros) shape[last] = mix_onnx_known(-1);
  if (zeros) mix_onnx_int(e, "allowzero", 1);
  return mix_onnx_node2(e, "Reshape", x, mix_onnx_sizes(e, rank, shape));
}

const char *mix_onnx_reduce(mix_onnx_emitter *e, const char *op, const char *x, int count, const int *axes,
                            bool keep_dims) {
  enum { AXES_ARE_OPERANDS = 18 }; /* of all but ReduceSum, from this opset on */
  int64_t list[MIX_MAX_RANK];
  for (int i = 0; i < count; i++) list[i] = axes[i];
  const bool operand = e->opset >= AXES_ARE_OPERANDS || !strcmp(op, "ReduceSum");
  const char *given = operand && count ? mix_onnx_int64s(e, count, list) : NULL;
  mix_onnx_int(e, "keepdims", keep_dims);
  if (!count && operand) mix_onnx_int(e, "noop_with_empty_axes", 1);
  if (!operand) mix_onnx_ints(e, "axes", count, list);
  return mix_onnx_node(e, op, given ? 2 : 1, (const char *[]){x, given});
}
