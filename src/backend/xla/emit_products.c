/* Products of matrices and Einstein sums: those of 16-bit operands add in float32 and round once. */
#include "backend/xla/emit_inside.h"

/* The operand with its matrices' leading dimensions broadcast. */
static mix_hlo with_batch(mix_emitter *e, mix_hlo x, mix_shape batch) {
  mix_shape shape = batch;
  for (int i = 2; i > 0; i--) shape.dims[shape.rank++] = x.shape.dims[x.shape.rank - i];
  return mix_hlo_broadcast(&e->w, x, shape);
}

/* matmul, batch_matmul and matmul_downcast */
void mix_emit_matmul(mix_emitter *e, const mix_ir_node *node) {
  const mix_matmul_attributes *a = node->attributes;
  mix_hlo x = mix_emit_operand(e, node, 0), y = mix_emit_operand(e, node, 1);
  mix_shape batch = mix_emit_type(e, node, 0).shape;
  batch.rank -= 2;
  if (a->round_operands) {
    x = mix_hlo_convert(&e->w, x, a->dtype);
    y = mix_hlo_convert(&e->w, y, a->dtype);
  }
  x = with_batch(e, x, batch);
  y = with_batch(e, y, batch);
  mix_hlo_dot dot = {.batch_count = batch.rank,
                     .contracted_count = 1,
                     .contracted = {{batch.rank + !a->transpose_a}, {batch.rank + a->transpose_b}},
                     .precision = mix_emit_precision(e, x.dtype)};
  for (int d = 0; d < batch.rank; d++) dot.batch[0][d] = dot.batch[1][d] = d;
  mix_emit_result(e, node, 0,
                  mix_hlo_dot_general(&e->w, x, y, &dot, mix_emit_product_dtype(e, node, x.dtype)));
}

void mix_emit_einsum(mix_emitter *e, const mix_ir_node *node) {
  const mix_einsum_attributes *labels = node->attributes;
  const mix_hlo a = mix_emit_operand(e, node, 0), b = mix_emit_operand(e, node, 1);
  mix_hlo_dot dot = {.precision = mix_emit_precision(e, a.dtype)};
  int64_t order[MIX_MAX_RANK * 2]; /* the labels of the product */
  int count = 0, permutation[MIX_MAX_RANK];
  for (int i = 0; i < labels->a.rank; i++) {
    const int other = mix_einsum_find(&labels->b, labels->a.dims[i]);
    if (other < 0) continue;
    const bool kept = mix_einsum_find(&labels->result, labels->a.dims[i]) >= 0;
    int *const place = kept ? &dot.batch_count : &dot.contracted_count;
    (kept ? dot.batch : dot.contracted)[0][*place] = i;
    (kept ? dot.batch : dot.contracted)[1][*place] = other;
    ++*place;
    if (kept) order[count++] = labels->a.dims[i];
  }
  for (int i = 0; i < labels->a.rank; i++)
    if (mix_einsum_find(&labels->b, labels->a.dims[i]) < 0) order[count++] = labels->a.dims[i];
  for (int i = 0; i < labels->b.rank; i++)
    if (mix_einsum_find(&labels->a, labels->b.dims[i]) < 0) order[count++] = labels->b.dims[i];
  for (int r = 0; r < labels->result.rank; r++)
    for (int i = 0; i < count; i++)
      if (order[i] == labels->result.dims[r]) permutation[r] = i;
  const mix_hlo product = mix_hlo_dot_general(&e->w, a, b, &dot, mix_emit_product_dtype(e, node, a.dtype));
  mix_emit_result(e, node, 0, mix_hlo_transpose(&e->w, product, permutation));
}
