/* concat, slice and pad. Slice and pad are each other's gradient. */
#include "ops/rules.h"

/* ---- concat ---- */

static int concat_axis(const mix_node *node) { return ((const mix_axis_attributes *)node->attributes)->axis; }

static bool concat_infer(mix_node *node) {
  mix_shape result = mix_input_value(node, 0)->shape;
  int joined = concat_axis(node);
  if (!mix_rule_axis(node, joined)) return false;
  for (int i = 1; i < node->input_count; i++) {
    mix_shape next = mix_input_value(node, i)->shape;
    bool fit = next.rank == result.rank;
    for (int axis = 0; fit && axis < result.rank; axis++) {
      int64_t *dimension = &result.dims[axis];
      if (axis != joined)
        fit = mix_dimension_merge(*dimension, next.dims[axis], dimension);
      else if (*dimension == MIX_UNKNOWN || next.dims[axis] == MIX_UNKNOWN)
        *dimension = MIX_UNKNOWN;
      else
        *dimension = next.dims[axis] > INT64_MAX - *dimension
                         ? INT64_MAX
                         /* Saturates; mix_rule_output reports the overflow. */
                         : *dimension + next.dims[axis];
    }
    if (!fit)
      return mix_rule_fail(node, "operand %d does not fit; expected equal shapes but for axis %d", i, joined);
  }
  return mix_rule_output(node, 0, result);
}

static void concat_gradient(mix_node *node, mix_tensor *const *output_gradients,
                            mix_tensor **input_gradients) {
  mix_shape begin = {.rank = node->outputs[0].shape.rank};
  for (int i = 0; i < node->input_count; i++) {
    mix_shape size = mix_input_value(node, i)->shape;
    input_gradients[i] = mix_slice(output_gradients[0], begin, size);
    begin.dims[concat_axis(node)] += size.dims[concat_axis(node)];
  }
}

static bool concat_rows(const mix_row_query *query) {
  return ((const mix_axis_attributes *)query->attributes)->axis > 0;
}

const mix_op mix_op_concat = {.name = "concat",
                              .tf_name = "ConcatV2",
                              .signature = "T*->T",
                              .types = "any",
                              .flags = MIX_OP_PARTS,
                              .attributes_size = sizeof(mix_axis_attributes),
                              .infer = concat_infer,
                              .row_independent = concat_rows,
                              .gradient = concat_gradient,
                              .fields = mix_axis_fields};

mix_tensor *mix_concat(int count, mix_tensor *const *tensors, int axis) {
  if (mix_failed()) return NULL;
  if (count < 1)
    return mix_call_fail(MIX_VALUE_ERROR, "concat", NULL, "got %d tensors; expected at least one", count);
  if (!mix_given(tensors, NULL, "concat", "an array of tensors")) return NULL;
  for (int i = 0; i < count; i++)
    if (!mix_operand_ready("concat", tensors[i])) return NULL;
  mix_axis_attributes attributes = {mix_call_axis("concat", tensors[0], axis, 0)};
  if (attributes.axis < 0) return NULL;
  return count == 1 ? tensors[0] : mix_apply(&mix_op_concat, &attributes, count, tensors);
}

/* ---- slice ---- */

static bool slice_infer(mix_node *node) {
  const mix_slice_attributes *cut = node->attributes;
  mix_shape x = mix_input_value(node, 0)->shape;
  if (cut->begin.rank != x.rank || cut->size.rank != x.rank)
    return mix_rule_fail(node, "begin has %d and size %d numbers; expected one for each of %d axes",
                         cut->begin.rank, cut->size.rank, x.rank);
  for (int axis = 0; axis < x.rank; axis++) {
    int64_t begin = cut->begin.dims[axis], size = cut->size.dims[axis], all = x.dims[axis];
    bool open = size == MIX_UNKNOWN && all == MIX_UNKNOWN;
    if (begin < 0 || (size < 0 && !open) || (all != MIX_UNKNOWN && (begin > all || size > all - begin))) {
      int64_t end;
      if (__builtin_add_overflow(begin, size, &end)) end = INT64_MAX;
      return mix_rule_fail(node, "axis %d has no elements %lld to %lld", axis, (long long)begin,
                           (long long)end);
    }
  }
  return mix_rule_output(node, 0, cut->size);
}

static void slice_gradient(mix_node *node, mix_tensor *const *output_gradients,
                           mix_tensor **input_gradients) {
  const mix_slice_attributes *cut = node->attributes;
  mix_shape x = mix_input_value(node, 0)->shape, after = {.rank = x.rank};
  for (int axis = 0; axis < x.rank; axis++)
    after.dims[axis] = x.dims[axis] - cut->begin.dims[axis] - cut->size.dims[axis];
  input_gradients[0] = mix_pad(output_gradients[0], cut->begin, after, 0);
}

static bool slice_rows(const mix_row_query *query) {
  const mix_slice_attributes *cut = query->attributes;
  return cut->size.rank > 0 && cut->begin.dims[0] == 0 && cut->size.dims[0] == query->inputs[0].dims[0];
}

static const mix_attribute_row slice_fields[] = {
    {"begin", MIX_ATTRIBUTE_NUMBERS, offsetof(mix_slice_attributes, begin)},
    {"size", MIX_ATTRIBUTE_NUMBERS, offsetof(mix_slice_attributes, size)},
    {NULL}};

const mix_op mix_op_slice = {.name = "slice",
                             .tf_name = "Slice",
                             .signature = "T->T",
                             .types = "any",
                             .flags = MIX_OP_PARTS | MIX_OP_SLICE,
                             .attributes_size = sizeof(mix_slice_attributes),
                             .infer = slice_infer,
                             .row_independent = slice_rows,
                             .gradient = slice_gradient,
                             .fields = slice_fields};

mix_tensor *mix_slice(mix_tensor *x, mix_shape begin, mix_shape size) {
  if (!mix_operand_ready("slice", x)) return NULL;
  mix_shape from = mix_tensor_shape(x);
  for (int axis = 0; axis < from.rank && axis < size.rank && axis < begin.rank; axis++)
    if (size.dims[axis] == MIX_UNKNOWN && from.dims[axis] != MIX_UNKNOWN && begin.dims[axis] >= 0 &&
        begin.dims[axis] <= from.dims[axis])
      size.dims[axis] = from.dims[axis] - begin.dims[axis];
  return mix_apply(&mix_op_slice, &(mix_slice_attributes){begin, size}, 1, &x);
}

/* ---- pad ---- */

static bool pad_infer(mix_node *node) {
  const mix_pad_attributes *pad = node->attributes;
  mix_shape x = mix_input_value(node, 0)->shape;
  if (pad->before.rank != x.rank || pad->after.rank != x.rank)
    return mix_rule_fail(node, "before has %d and after %d numbers; expected one for each of %d axes",
                         pad->before.rank, pad->after.rank, x.rank);
  for (int axis = 0; axis < x.rank; axis++) {
    int64_t before = pad->before.dims[axis], after = pad->after.dims[axis];
    if (before < 0 || after < 0)
      return mix_rule_fail(node, "axis %d is padded by %lld and %lld; expected 0 or more", axis,
                           (long long)before, (long long)after);
    if (x.dims[axis] == MIX_UNKNOWN) continue;
    if (__builtin_add_overflow(x.dims[axis], before, &x.dims[axis]) ||
        __builtin_add_overflow(x.dims[axis], after, &x.dims[axis]))
      return mix_rule_fail(node, "axis %d would be too long", axis);
  }
  return mix_rule_output(node, 0, x);
}

static void pad_gradient(mix_node *node, mix_tensor *const *output_gradients, mix_tensor **input_gradients) {
  const mix_pad_attributes *pad = node->attributes;
  input_gradients[0] = mix_slice(output_gradients[0], pad->before, mix_input_value(node, 0)->shape);
}

static bool pad_rows(const mix_row_query *query) {
  const mix_pad_attributes *pad = query->attributes;
  return pad->before.rank > 0 && pad->before.dims[0] == 0 && pad->after.dims[0] == 0;
}

static const mix_attribute_row pad_fields[] = {
    {"before", MIX_ATTRIBUTE_NUMBERS, offsetof(mix_pad_attributes, before)},
    {"after", MIX_ATTRIBUTE_NUMBERS, offsetof(mix_pad_attributes, after)},
    {"value", MIX_ATTRIBUTE_DOUBLE, offsetof(mix_pad_attributes, value)},
    {NULL}};

const mix_op mix_op_pad = {.name = "pad",
                           .tf_name = "PadV2",
                           .signature = "T->T",
                           .types = "any",
                           .flags = MIX_OP_PARTS | MIX_OP_PAD,
                           .attributes_size = sizeof(mix_pad_attributes),
                           .infer = pad_infer,
                           .row_independent = pad_rows,
                           .gradient = pad_gradient,
                           .fields = pad_fields};

mix_tensor *mix_pad(mix_tensor *x, mix_shape before, mix_shape after, double value) {
  if (!mix_operand_ready("pad", x)) return NULL;
  return mix_apply(&mix_op_pad, &(mix_pad_attributes){before, after, value}, 1, &x);
}
