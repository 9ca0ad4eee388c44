/* join_pads: a sum of tensors in paddings of zeros that overlap nowhere and leave no gap is their
 * concatenation: the gradient of what was cut into slices. Each part still gets a zero added, so that a
 * negative zero becomes a positive one as in the sum. */
#include "passes/passes.h"

#include "tensor/shape.h"
#include <math.h>

/* The padding that computes the value, or NULL. */
static const mix_ir_node *padding_of(const mix_ir *ir, int value) {
  const mix_ir_node *node = &ir->nodes[mix_ir_producer(ir, value)];
  const mix_pad_attributes *pad = node->attributes;
  return !node->source && (node->op->flags & MIX_OP_PAD) && pad->value == 0 && !signbit(pad->value) ? node
                                                                                                    : NULL;
}

/* The one axis along which something is padded; -1: there are none or several. */
static int padded_axis(const mix_pad_attributes *pad) {
  int axis = -1;
  for (int d = 0; d < pad->before.rank; d++) {
    if (!pad->before.dims[d] && !pad->after.dims[d]) continue;
    if (axis >= 0) return -1;
    axis = d;
  }
  return axis;
}

static int64_t begin_of(const mix_ir *ir, int value, int axis) {
  const mix_pad_attributes *pad = padding_of(ir, value)->attributes;
  return pad->before.dims[axis];
}

/* The operands of the sum in the order in which they follow each other along the axis, which they fill;
 * false: they do not. */
static bool find_order(const mix_ir *ir, const mix_ir_node *sum, int *axis, int *order) {
  const int count = sum->input_count;
  for (int i = 0; i < count; i++) {
    const mix_ir_node *pad = padding_of(ir, sum->inputs[i]);
    const int own = pad ? padded_axis(pad->attributes) : -1;
    if (own < 0 || (i && own != *axis) ||
        !mix_shape_equal(ir->values[sum->inputs[i]].shape, ir->values[sum->first_output].shape))
      return false;
    *axis = own;
    int place = i;
    for (; place && begin_of(ir, order[place - 1], own) > begin_of(ir, sum->inputs[i], own); place--)
      order[place] = order[place - 1];
    order[place] = sum->inputs[i];
  }
  int64_t end = 0;
  for (int i = 0; i < count; i++) {
    if (begin_of(ir, order[i], *axis) != end) return false;
    end += ir->values[padding_of(ir, order[i])->inputs[0]].shape.dims[*axis];
  }
  return end == ir->values[sum->first_output].shape.dims[*axis];
}

static int add_zero(mix_ir *ir, int value, const mix_ir_node *like) {
  const char *scope = like->scope;
  const mix_type type = ir->values[value].type;
  mix_shape_attributes *zero = mix_ir_alloc(ir, sizeof *zero);
  if (!zero) return -1;
  *zero = (mix_shape_attributes){.dtype = type.dtype};
  const int fill = mix_ir_add(ir, &mix_op_fill, zero, 0, NULL, 1, &(mix_type){.dtype = type.dtype});
  if (fill < 0) return -1;
  const int inputs[] = {value, ir->nodes[fill].first_output};
  const int sum = mix_ir_add(ir, &mix_op_add, NULL, 2, inputs, 1, &type);
  if (sum < 0) return -1;
  ir->nodes[sum].scope = scope;
  return ir->nodes[sum].first_output;
}

static bool join(mix_ir *ir, int n) {
  const int count = ir->nodes[n].input_count;
  int *order = mix_ir_ints(ir, count + 1), axis = -1;
  mix_axis_attributes *attributes = mix_ir_alloc(ir, sizeof *attributes);
  if (!order || !attributes) return false;
  if (!find_order(ir, &ir->nodes[n], &axis, order)) return true;
  for (int i = 0; i < count; i++)
    if ((order[i] = add_zero(ir, padding_of(ir, order[i])->inputs[0], &ir->nodes[n])) < 0) return false;
  attributes->axis = axis;
  mix_ir_node *node = &ir->nodes[n];
  node->op = &mix_op_concat;
  node->attributes = attributes;
  node->inputs = order;
  return true;
}

bool mix_pass_join_pads(mix_ir *ir) {
  const int count = ir->node_count;
  for (int n = 0; n < count; n++) {
    const mix_ir_node *node = &ir->nodes[n];
    if (node->dead || node->source || !(node->op->flags & MIX_OP_SUM) || node->input_count < 2 ||
        !mix_dtype_is_floating(ir->values[node->first_output].dtype) || !padding_of(ir, node->inputs[0]))
      continue;
    if (!join(ir, n)) return false;
  }
  return mix_ir_sort(ir);
}
