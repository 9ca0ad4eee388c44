/* Operations that move elements or make them. */
#include "onnx/emit.h"

#include "tensor/convert.h"
#include "tensor/shape.h"

/* The sizes of a result. */
static int sizes_of(mix_onnx_emitter *e, const mix_ir_node *node, mix_onnx_size *sizes) {
  const int rank = mix_onnx_type(e, node, 0).shape.rank;
  for (int d = 0; d < rank; d++) sizes[d] = mix_onnx_axis(e, node->first_output, d);
  return rank;
}

void mix_onnx_emit_reshape(mix_onnx_emitter *e, const mix_ir_node *node) {
  mix_onnx_size sizes[MIX_MAX_RANK];
  const int rank = sizes_of(e, node, sizes);
  mix_onnx_result(e, node, 0, mix_onnx_reshape(e, mix_onnx_operand(e, node, 0), rank, sizes));
}

/* An axis that the operand has already is 1: Expand keeps it. */
void mix_onnx_emit_broadcast(mix_onnx_emitter *e, const mix_ir_node *node) {
  mix_onnx_size sizes[MIX_MAX_RANK];
  const int rank = sizes_of(e, node, sizes);
  const mix_shape shape = mix_onnx_type(e, node, 0).shape, x = mix_onnx_operand_type(e, node, 0).shape;
  for (int d = 0; d < x.rank; d++)
    if (x.dims[d] == shape.dims[rank - x.rank + d]) sizes[rank - x.rank + d] = mix_onnx_known(1);
  mix_onnx_result(e, node, 0,
                  mix_onnx_node2(e, "Expand", mix_onnx_operand(e, node, 0), mix_onnx_sizes(e, rank, sizes)));
}

void mix_onnx_emit_transpose(mix_onnx_emitter *e, const mix_ir_node *node) {
  const mix_transpose_attributes *a = node->attributes;
  mix_onnx_result(e, node, 0,
                  mix_onnx_transpose(e, mix_onnx_operand(e, node, 0), mix_onnx_type(e, node, 0).shape.rank,
                                     a->permutation));
}

void mix_onnx_emit_concat(mix_onnx_emitter *e, const mix_ir_node *node) {
  const char **parts = mix_ir_array(e->root, node->input_count + 1, sizeof *parts);
  if (!parts) {
    e->failed = true;
    return;
  }
  for (int i = 0; i < node->input_count; i++) parts[i] = mix_onnx_operand(e, node, i);
  mix_onnx_int(e, "axis", ((const mix_axis_attributes *)node->attributes)->axis);
  mix_onnx_result(e, node, 0, mix_onnx_node(e, "Concat", node->input_count, parts));
}

/* Of the axes of which a part is taken. */
void mix_onnx_emit_slice(mix_onnx_emitter *e, const mix_ir_node *node) {
  const mix_slice_attributes *a = node->attributes;
  const mix_shape x = mix_onnx_operand_type(e, node, 0).shape, y = mix_onnx_type(e, node, 0).shape;
  mix_onnx_size begin[MIX_MAX_RANK], end[MIX_MAX_RANK];
  int64_t axes[MIX_MAX_RANK];
  int count = 0;
  for (int d = 0; d < x.rank; d++) {
    if (x.dims[d] == y.dims[d]) continue;
    const mix_onnx_size size = mix_onnx_axis(e, node->first_output, d);
    begin[count] = mix_onnx_attribute(e, node, &a->begin.dims[d]);
    end[count] = (mix_onnx_size){begin[count].factor + size.factor, begin[count].rest + size.rest};
    axes[count++] = d;
  }
  mix_onnx_result(e, node, 0, mix_onnx_operand(e, node, 0));
  if (!count) return;
  const char *operands[] = {mix_onnx_operand(e, node, 0), mix_onnx_sizes(e, count, begin),
                            mix_onnx_sizes(e, count, end), mix_onnx_int64s(e, count, axes)};
  mix_onnx_result(e, node, 0, mix_onnx_node(e, "Slice", 4, operands));
}

void mix_onnx_emit_pad(mix_onnx_emitter *e, const mix_ir_node *node) {
  const mix_pad_attributes *a = node->attributes;
  const mix_type x = mix_onnx_operand_type(e, node, 0);
  mix_onnx_size pads[2 * MIX_MAX_RANK];
  const char *around;
  int64_t known[2 * MIX_MAX_RANK];
  for (int d = 0; d < x.shape.rank; d++) {
    pads[d] = mix_onnx_attribute(e, node, &a->before.dims[d]);
    pads[x.shape.rank + d] = mix_onnx_attribute(e, node, &a->after.dims[d]);
  }
  for (int d = 0; d < 2 * x.shape.rank; d++) {
    known[d] = pads[d].rest;
    if (pads[d].factor) mix_onnx_refuse(e, node, "as many elements as the batch are around it");
  }
  around = mix_onnx_int64s(e, 2 * x.shape.rank, known);
  mix_onnx_result(
      e, node, 0,
      mix_onnx_node3(e, "Pad", mix_onnx_operand(e, node, 0), around, mix_onnx_scalar(e, x.dtype, a->value)));
}

void mix_onnx_emit_gather(mix_onnx_emitter *e, const mix_ir_node *node) {
  mix_onnx_int(e, "axis", ((const mix_axis_attributes *)node->attributes)->axis);
  mix_onnx_result(e, node, 0,
                  mix_onnx_node2(e, "Gather", mix_onnx_operand(e, node, 0), mix_onnx_operand(e, node, 1)));
}

/* Numbers start, start + step, ... as a tensor of the file. */
static const char *numbers(mix_onnx_emitter *e, mix_dtype dtype, int64_t count, double start, double step) {
  dtype = mix_onnx_written(e, dtype);
  char *data = mix_ir_alloc(e->root, mix_dtype_size(dtype) * (size_t)count + 1);
  if (!data) {
    e->failed = true;
    return "";
  }
  for (int64_t i = 0; i < count; i++) mix_store_double(data, dtype, i, start + (double)i * step);
  return mix_onnx_constant(e, dtype, MIX_SHAPE(count), data);
}

/* OneHot counts negative indices from the end; here they are of no class. */
void mix_onnx_emit_one_hot(mix_onnx_emitter *e, const mix_ir_node *node) {
  const mix_one_hot_attributes *a = node->attributes;
  const mix_type x = mix_onnx_operand_type(e, node, 0);
  const char *classes = numbers(e, x.dtype, a->depth, 0, 1),
             *column = mix_onnx_node2(e, "Unsqueeze", mix_onnx_operand(e, node, 0),
                                      mix_onnx_int64s(e, 1, (const int64_t[]){x.shape.rank})),
             *is_class = mix_onnx_node2(e, "Equal", column, classes);
  mix_onnx_result(e, node, 0, mix_onnx_cast(e, is_class, MIX_BOOL, a->dtype));
}

void mix_onnx_emit_fill(mix_onnx_emitter *e, const mix_ir_node *node) {
  const mix_shape_attributes *a = node->attributes;
  const mix_type type = mix_onnx_type(e, node, 0);
  mix_onnx_size sizes[MIX_MAX_RANK];
  const int rank = sizes_of(e, node, sizes);
  const char *value = mix_onnx_scalar(e, type.dtype, a->value);
  mix_onnx_result(e, node, 0,
                  rank ? mix_onnx_node2(e, "Expand", value, mix_onnx_sizes(e, rank, sizes)) : value);
}

/* Are its start or its step others for another batch? */
static bool range_moves(const mix_onnx_emitter *e, const mix_ir_node *node, const mix_range_attributes *a) {
  const mix_range_attributes *other = e->others[0]->nodes[node - e->ir->nodes].attributes;
  return other->start != a->start || other->step != a->step;
}

/* As many as the batch: of whole numbers, as start and step of a range are then. */
static const char *open_range(mix_onnx_emitter *e, const mix_range_attributes *a, mix_onnx_size count) {
  const char *operands[] = {mix_onnx_scalar(e, MIX_INT64, 0), mix_onnx_size_scalar(e, count),
                            mix_onnx_scalar(e, MIX_INT64, 1)},
             *places = mix_onnx_node(e, "Range", 3, operands);
  const mix_dtype wide = mix_dtype_is_floating(a->dtype) ? MIX_FLOAT32 : MIX_INT64;
  places = mix_onnx_cast(e, places, MIX_INT64, wide);
  if (a->step != 1) places = mix_onnx_node2(e, "Mul", places, mix_onnx_scalar(e, wide, a->step));
  if (a->start != 0) places = mix_onnx_node2(e, "Add", places, mix_onnx_scalar(e, wide, a->start));
  return mix_onnx_cast(e, places, wide, a->dtype);
}

void mix_onnx_emit_range(mix_onnx_emitter *e, const mix_ir_node *node) {
  const mix_range_attributes *a = node->attributes;
  const mix_onnx_size count = mix_onnx_axis(e, node->first_output, 0);
  if (count.factor && range_moves(e, node, a))
    mix_onnx_refuse(e, node, "its start or its step depends on the batch");
  else
    mix_onnx_result(e, node, 0,
                    count.factor ? open_range(e, a, count)
                                 : numbers(e, a->dtype, a->count, a->start, a->step));
}

/* Rows of zeros, to which the updates are added at their indices. */
void mix_onnx_emit_segment_sum(mix_onnx_emitter *e, const mix_ir_node *node) {
  const mix_type type = mix_onnx_type(e, node, 0), indices = mix_onnx_operand_type(e, node, 1);
  const int64_t axis = indices.shape.rank;
  mix_onnx_size sizes[MIX_MAX_RANK];
  const int rank = sizes_of(e, node, sizes);
  const char *zero = mix_onnx_scalar(e, type.dtype, 0),
             *zeros = mix_onnx_node2(e, "Expand", zero, mix_onnx_sizes(e, rank, sizes)),
             *places = mix_onnx_cast(e, mix_onnx_operand(e, node, 1), indices.dtype, MIX_INT64);
  places = mix_onnx_node2(e, "Unsqueeze", places, mix_onnx_int64s(e, 1, &axis));
  mix_onnx_text(e, "reduction", "add");
  mix_onnx_result(e, node, 0, mix_onnx_node3(e, "ScatterND", zeros, places, mix_onnx_operand(e, node, 0)));
}

/* TopK of all elements: equal ones come in their order. */
void mix_onnx_emit_argsort(mix_onnx_emitter *e, const mix_ir_node *node) {
  const mix_type x = mix_onnx_operand_type(e, node, 0);
  const mix_onnx_size length = mix_onnx_axis(e, node->inputs[0], x.shape.rank - 1);
  const char *operands[] = {mix_onnx_operand(e, node, 0), mix_onnx_sizes(e, 1, &length)}, *results[2];
  mix_onnx_int(e, "axis", -1);
  mix_onnx_int(e, "largest", ((const mix_argsort_attributes *)node->attributes)->descending);
  mix_onnx_nodes(e, "TopK", 2, operands, 2, results);
  mix_onnx_result(e, node, 0, mix_onnx_cast(e, results[1], MIX_INT64, MIX_INT32));
}
