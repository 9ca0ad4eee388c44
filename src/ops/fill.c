/* Operations without operands: fill and range; and constants that take dtype or shape from a tensor. */
#include "ops/rules.h"
#include "base/float_modes.h"
#include "tensor/convert.h"
#include <math.h>

static bool fill_infer(mix_node *node) {
  const mix_shape_attributes *attributes = node->attributes;
  node->outputs[0].dtype = attributes->dtype;
  return mix_rule_output(node, 0, attributes->shape);
}

static const mix_attribute_row fill_fields[] = {
    {"shape", MIX_ATTRIBUTE_SHAPE, offsetof(mix_shape_attributes, shape)},
    {"dtype", MIX_ATTRIBUTE_DTYPE, offsetof(mix_shape_attributes, dtype)},
    {"value", MIX_ATTRIBUTE_DOUBLE, offsetof(mix_shape_attributes, value)},
    {NULL}};

const mix_op mix_op_fill = {.name = "fill",
                            .tf_name = "Fill",
                            .signature = "->T",
                            .types = "any",
                            .flags = MIX_OP_UNIFORM,
                            .attributes_size = sizeof(mix_shape_attributes),
                            .infer = fill_infer,
                            .fields = fill_fields};

mix_tensor *mix_fill(mix_shape shape, double value, mix_dtype dtype) {
  MIX_OWN_FLOAT_MODES;
  if (mix_failed() || !mix_dtype_checked("fill", dtype)) return NULL;
  if (shape.rank < 0 || shape.rank > MIX_MAX_RANK || mix_shape_checked_size(shape) < 0) {
    bool printable = shape.rank >= 0 && shape.rank <= MIX_MAX_RANK;
    return mix_call_fail(MIX_VALUE_ERROR, "fill", NULL,
                         "the shape %s has an unknown or negative dimension, or too many elements%s",
                         printable ? MIX_SHAPE_TEXT(shape) : "", printable ? mix_open_shape_hint(shape) : "");
  }
  return mix_apply(&mix_op_fill, &(mix_shape_attributes){.shape = shape, .dtype = dtype, .value = value}, 0,
                   NULL);
}

mix_tensor *mix_scalar_like(mix_tensor *x, double value) {
  return mix_operand_ready("scalar_like", x) ? mix_scalar(value, mix_tensor_dtype(x)) : NULL;
}

/* A symbolic tensor may have unknown dimensions, so the result must be symbolic too: a select of two equal
 * scalars, which never runs. */
static mix_tensor *fill_like(mix_tensor *x, double value) {
  if (!mix_operand_ready("fill_like", x)) return NULL;
  if (!mix_tensor_is_symbolic(x)) return mix_fill(mix_tensor_shape(x), value, mix_tensor_dtype(x));
  mix_tensor *scalar = mix_scalar_like(x, value);
  return mix_select(mix_equal(x, x), scalar, scalar);
}
mix_tensor *mix_zeros_like(mix_tensor *x) { return fill_like(x, 0); }
mix_tensor *mix_ones_like(mix_tensor *x) { return fill_like(x, 1); }

/* ---- range ---- */

static bool range_infer(mix_node *node) {
  const mix_range_attributes *range = node->attributes;
  node->outputs[0].dtype = range->dtype;
  return mix_rule_output(node, 0, (mix_shape){.rank = 1, .dims = {range->count}});
}

static const mix_attribute_row range_fields[] = {
    {"start", MIX_ATTRIBUTE_DOUBLE, offsetof(mix_range_attributes, start)},
    {"step", MIX_ATTRIBUTE_DOUBLE, offsetof(mix_range_attributes, step)},
    {"count", MIX_ATTRIBUTE_INT64, offsetof(mix_range_attributes, count)},
    {"dtype", MIX_ATTRIBUTE_DTYPE, offsetof(mix_range_attributes, dtype)},
    {NULL}};

const mix_op mix_op_range = {.name = "range",
                             .tf_name = "Range",
                             .signature = "->T",
                             .types = "number",
                             .attributes_size = sizeof(mix_range_attributes),
                             .infer = range_infer,
                             .fields = range_fields};

/* Does an integer dtype have the number, cut to a whole one? */
static bool has_integer(mix_dtype dtype, double x) {
  return trunc(x) >= (double)mix_dtype_lowest(dtype) && trunc(x) < (double)mix_dtype_highest(dtype) + 1;
}

mix_tensor *mix_range(double start, double stop, double step, mix_dtype dtype) {
  MIX_OWN_FLOAT_MODES;
  if (mix_failed() || !mix_dtype_checked("range", dtype)) return NULL;
  double count = ceil((stop - start) / step);
  if (!isfinite(start) || !isfinite(stop) || !isfinite(step) || step == 0 || count > 0x1p53)
    return mix_call_fail(
        MIX_VALUE_ERROR, "range", NULL,
        "start %g, stop %g, step %g; expected finite numbers, a step other than 0, and a countable result",
        start, stop, step);
  const double last = start + (count - 1) * step;
  if (count > 0 && mix_dtype_is_integer(dtype) && !(has_integer(dtype, start) && has_integer(dtype, last)))
    return mix_call_fail(MIX_VALUE_ERROR, "range", NULL,
                         "%.17g to %.17g; %s does not have all of these numbers", start, last,
                         mix_dtype_name(dtype));
  mix_range_attributes attributes = {
      .start = start, .step = step, .count = count > 0 ? (int64_t)count : 0, .dtype = dtype};
  return mix_apply(&mix_op_range, &attributes, 0, NULL);
}
