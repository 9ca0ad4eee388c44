/* Pooling over windows of one to three spatial axes, channels last. The gradients are ops too, as in
 * TensorFlow. */
#include "ops/pooling.h"
#include "ops/rules.h"
#include <mixtape/pooling.h>

static const mix_pool_attributes *windows(const mix_node *node) { return node->attributes; }

mix_pool mix_pool_of(const mix_pool_attributes *a, mix_shape x, mix_shape y) {
  const int spatial = x.rank - 2, missing = MIX_POOL_AXES - spatial;
  mix_pool pool = {.batch = x.dims[0], .channels = x.dims[x.rank - 1], .in_cells = 1, .out_cells = 1};
  for (int d = 0; d < MIX_POOL_AXES; d++) {
    const bool has = d >= missing;
    const int axis = d - missing;
    pool.in[d] = has ? x.dims[axis + 1] : 1;
    pool.out[d] = has ? y.dims[axis + 1] : 1;
    pool.size[d] = has ? a->size.dims[axis] : 1;
    pool.stride[d] = has ? a->strides.dims[axis] : 1;
    pool.before[d] = has ? a->before.dims[axis] : 0;
    pool.in_cells *= pool.in[d];
    pool.out_cells *= pool.out[d];
  }
  return pool;
}

/* ---- shape rules ---- */

/* The shape of the result for x (batch, spatial..., channels). */
static bool pooled_shape(mix_node *node, mix_shape x, mix_shape *y) {
  const mix_pool_attributes *a = windows(node);
  const int spatial = x.rank - 2;
  if (spatial < 1 || spatial > MIX_POOL_AXES || a->size.rank != spatial || a->strides.rank != spatial ||
      a->before.rank != spatial || a->after.rank != spatial)
    return mix_rule_fail(node, "expected x (batch, 1 to 3 spatial axes, channels) and as many sizes, strides "
                               "and paddings as it has spatial axes");
  *y = x;
  for (int d = 0; d < spatial; d++) {
    const int64_t size = a->size.dims[d], stride = a->strides.dims[d], before = a->before.dims[d],
                  after = a->after.dims[d], n = x.dims[d + 1];
    int64_t padded;
    if (size < 1 || stride < 1 || before < 0 || after < 0 || before >= size || after >= size)
      return mix_rule_fail(node,
                           "spatial axis %d has size %lld, stride %lld and paddings %lld and %lld; expected "
                           "positive sizes and strides, and paddings of 0 to size - 1",
                           d, (long long)size, (long long)stride, (long long)before, (long long)after);
    if (n == MIX_UNKNOWN) continue;
    if (__builtin_add_overflow(n, before, &padded) || __builtin_add_overflow(padded, after, &padded) ||
        padded < size)
      return mix_rule_fail(node, "the window of %lld does not fit into spatial axis %d of %lld",
                           (long long)size, d, (long long)n);
    y->dims[d + 1] = (padded - size) / stride + 1;
  }
  return true;
}

static bool pool_infer(mix_node *node) {
  mix_shape y;
  return pooled_shape(node, mix_input_value(node, 0)->shape, &y) && mix_rule_output(node, 0, y);
}

/* Is operand `index` of that shape, where both are known? */
static bool operand_has(mix_node *node, int index, mix_shape shape) {
  const mix_shape given = mix_input_value(node, index)->shape;
  bool equal = given.rank == shape.rank;
  for (int d = 0; equal && d < shape.rank; d++)
    equal = mix_dimension_merge(given.dims[d], shape.dims[d], &shape.dims[d]);
  return equal || mix_rule_fail(node, "operand %d must have the shape %s", index, MIX_SHAPE_TEXT(shape));
}

/* x, max_pool(x), dy -> dx */
static bool max_grad_infer(mix_node *node) {
  const mix_shape x = mix_input_value(node, 0)->shape;
  mix_shape y;
  return pooled_shape(node, x, &y) && operand_has(node, 1, y) && operand_has(node, 2, y) &&
         mix_rule_output(node, 0, x);
}

/* x, max_pool(x), values like x -> values like y */
static bool max_grad_grad_infer(mix_node *node) {
  const mix_shape x = mix_input_value(node, 0)->shape;
  mix_shape y;
  return pooled_shape(node, x, &y) && operand_has(node, 1, y) && operand_has(node, 2, x) &&
         mix_rule_output(node, 0, y);
}

/* dy -> dx, whose spatial sizes are an attribute */
static bool avg_grad_infer(mix_node *node) {
  const mix_shape dy = mix_input_value(node, 0)->shape, spatial = windows(node)->spatial;
  mix_shape x = dy, y;
  if (spatial.rank != dy.rank - 2)
    return mix_rule_fail(node, "expected a spatial size for each axis between the batch and the channels");
  for (int d = 0; d < spatial.rank; d++) x.dims[d + 1] = spatial.dims[d];
  return pooled_shape(node, x, &y) && operand_has(node, 0, y) && mix_rule_output(node, 0, x);
}

static bool pool_rows(const mix_row_query *query) {
  for (int i = 0; i < query->input_count; i++)
    if (!query->batched[i]) return false;
  return true;
}

/* ---- gradients ---- */

/* The op of the same family for that many spatial axes: TensorFlow names those of three apart. */
#define FAMILY(name)                                                                                         \
  static const mix_op *name##_op(int rank) {                                                                 \
    return rank == MIX_POOL_AXES + 2 ? &mix_op_##name##3d : &mix_op_##name;                                  \
  }
FAMILY(max_pool)
FAMILY(max_pool_grad)
FAMILY(max_pool_grad_grad)
FAMILY(avg_pool)
FAMILY(avg_pool_grad)
#undef FAMILY

static mix_tensor *apply3(const mix_op *op, const mix_node *node, mix_tensor *x, mix_tensor *y,
                          mix_tensor *values) {
  return mix_apply(op, node->attributes, 3, (mix_tensor *[]){x, y, values});
}

static void max_pool_gradient(mix_node *node, mix_tensor *const *output_gradients,
                              mix_tensor **input_gradients) {
  mix_tensor *x = mix_node_input(node, 0);
  if (mix_flows_to(node, 0))
    input_gradients[0] = apply3(max_pool_grad_op(mix_tensor_shape(x).rank), node, x, mix_tensor_of(node, 0),
                                output_gradients[0]);
}

/* Where the maximum is does not change. */
static void max_grad_gradient(mix_node *node, mix_tensor *const *output_gradients,
                              mix_tensor **input_gradients) {
  mix_tensor *x = mix_node_input(node, 0), *y = mix_node_input(node, 1);
  input_gradients[2] =
      apply3(max_pool_grad_grad_op(mix_tensor_shape(x).rank), node, x, y, output_gradients[0]);
}

static void max_grad_grad_gradient(mix_node *node, mix_tensor *const *output_gradients,
                                   mix_tensor **input_gradients) {
  mix_tensor *x = mix_node_input(node, 0), *y = mix_node_input(node, 1);
  input_gradients[2] = apply3(max_pool_grad_op(mix_tensor_shape(x).rank), node, x, y, output_gradients[0]);
}

static void avg_pool_gradient(mix_node *node, mix_tensor *const *output_gradients,
                              mix_tensor **input_gradients) {
  const mix_shape x = mix_input_value(node, 0)->shape;
  mix_pool_attributes attributes = *windows(node);
  attributes.spatial.rank = x.rank - 2;
  for (int d = 0; d < attributes.spatial.rank; d++) attributes.spatial.dims[d] = x.dims[d + 1];
  input_gradients[0] = mix_apply(avg_pool_grad_op(x.rank), &attributes, 1, output_gradients);
}

static void avg_grad_gradient(mix_node *node, mix_tensor *const *output_gradients,
                              mix_tensor **input_gradients) {
  mix_pool_attributes attributes = *windows(node);
  attributes.spatial = (mix_shape){.rank = 0};
  input_gradients[0] =
      mix_apply(avg_pool_op(mix_tensor_shape(output_gradients[0]).rank), &attributes, 1, output_gradients);
}

/* ---- records ---- */

#define WINDOW_FIELDS                                                                                        \
  {"size", MIX_ATTRIBUTE_NUMBERS, offsetof(mix_pool_attributes, size)},                                      \
      {"strides", MIX_ATTRIBUTE_NUMBERS, offsetof(mix_pool_attributes, strides)},                            \
      {"before", MIX_ATTRIBUTE_NUMBERS, offsetof(mix_pool_attributes, before)}, {                            \
    "after", MIX_ATTRIBUTE_NUMBERS, offsetof(mix_pool_attributes, after)                                     \
  }
static const mix_attribute_row fields[] = {WINDOW_FIELDS, {NULL}};
static const mix_attribute_row grad_fields[] = {
    WINDOW_FIELDS, {"spatial", MIX_ATTRIBUTE_NUMBERS, offsetof(mix_pool_attributes, spatial)}, {NULL}};

#define OP(called, tf, letters, dtypes, rule, derive, rows)                                                  \
  const mix_op mix_op_##called = {.name = #called,                                                           \
                                  .tf_name = tf,                                                             \
                                  .signature = letters,                                                      \
                                  .types = dtypes,                                                           \
                                  .attributes_size = sizeof(mix_pool_attributes),                            \
                                  .infer = rule,                                                             \
                                  .row_independent = pool_rows,                                              \
                                  .gradient = derive,                                                        \
                                  .fields = rows};
OP(max_pool, "MaxPool", "T->T", "number", pool_infer, max_pool_gradient, fields)
OP(max_pool3d, "MaxPool3D", "T->T", "number", pool_infer, max_pool_gradient, fields)
OP(max_pool_grad, "MaxPoolGrad", "T,T,T->T", "float", max_grad_infer, max_grad_gradient, fields)
OP(max_pool_grad3d, "MaxPool3DGrad", "T,T,T->T", "float", max_grad_infer, max_grad_gradient, fields)
OP(max_pool_grad_grad, "MaxPoolGradGrad", "T,T,T->T", "float", max_grad_grad_infer, max_grad_grad_gradient,
   fields)
OP(max_pool_grad_grad3d, "MaxPool3DGradGrad", "T,T,T->T", "float", max_grad_grad_infer,
   max_grad_grad_gradient, fields)
OP(avg_pool, "AvgPool", "T->T", "float", pool_infer, avg_pool_gradient, fields)
OP(avg_pool3d, "AvgPool3D", "T->T", "float", pool_infer, avg_pool_gradient, fields)
OP(avg_pool_grad, "AvgPoolGrad", "T->T", "float", avg_grad_infer, avg_grad_gradient, grad_fields)
OP(avg_pool_grad3d, "AvgPool3DGrad", "T->T", "float", avg_grad_infer, avg_grad_gradient, grad_fields)
#undef OP

/* ---- public ---- */

static mix_tensor *pool(const mix_op *(*op)(int rank), const char *call, mix_tensor *x,
                        const mix_pool_window *window) {
  if (!mix_operand_ready(call, x)) return NULL;
  if (!window) return mix_call_fail(MIX_TYPE_ERROR, call, x, "the window is NULL");
  const mix_shape size = window->size;
  mix_pool_attributes attributes = {.size = size,
                                    .strides = window->strides.rank ? window->strides : size,
                                    .before = window->before,
                                    .after = window->after};
  if (!attributes.before.rank) attributes.before.rank = size.rank;
  if (!attributes.after.rank) attributes.after.rank = size.rank;
  return mix_apply(op(mix_tensor_shape(x).rank), &attributes, 1, &x);
}

mix_tensor *mix_max_pool(mix_tensor *x, const mix_pool_window *window) {
  return pool(max_pool_op, "max_pool", x, window);
}
mix_tensor *mix_avg_pool(mix_tensor *x, const mix_pool_window *window) {
  return pool(avg_pool_op, "avg_pool", x, window);
}
