/* Weights that are stored as integers of 8 or 4 bits, and their products. What a stored number means is
 * Keras 3's (keras/src/quantizers/quantizers.py). */
#include "ops/rules.h"

static const mix_stored_attributes *stored_of(const mix_node *node) { return node->attributes; }

#define FIELD(name, kind, member)                                                                            \
  { name, MIX_ATTRIBUTE_##kind, offsetof(mix_stored_attributes, member) }
#define STORED_FIELDS                                                                                        \
  FIELD("bits", INT, bits), FIELD("columns", INT64, columns), FIELD("block", INT64, block),                  \
      FIELD("transposed", BOOL, transposed)
static const mix_attribute_row product_fields[] = {STORED_FIELDS, {NULL}};
static const mix_attribute_row dequantize_fields[] = {STORED_FIELDS, FIELD("dtype", DTYPE, dtype), {NULL}};

/* ---- shapes ---- */

static int64_t divide_up(int64_t a, int64_t b) { return a < 0 ? a : a / b + (a % b != 0); }

static bool expect(mix_node *node, int operand, mix_shape expected, const char *what) {
  const mix_shape shape = mix_input_value(node, operand)->shape;
  char text[160];
  int64_t merged;
  bool good = shape.rank == expected.rank;
  for (int d = 0; good && d < shape.rank; d++)
    good = mix_dimension_merge(shape.dims[d], expected.dims[d], &merged);
  return good || mix_rule_fail(node, "the %s must have the shape %s", what,
                               mix_shape_text(expected, text, sizeof text));
}

/* The shape of the numbers in operand `first`, whose scale and zero are the next operands. */
static bool weight_shape(mix_node *node, int first, mix_shape *shape) {
  const mix_stored_attributes *a = stored_of(node);
  mix_shape s = mix_input_value(node, first)->shape;
  if (a->bits != 8 && a->bits != 4) return mix_rule_fail(node, "bits is %d; expected 8 or 4", a->bits);
  if (a->columns < 0)
    return mix_rule_fail(node, "columns is %lld; expected 0 or more", (long long)a->columns);
  const bool blocks = node->input_count - first == 3;
  if (blocks ? a->block < 1 : a->block != 0)
    return mix_rule_fail(node, "block is %lld; expected %s", (long long)a->block,
                         blocks ? "1 or more, as there is a zero" : "0, as there is no zero");
  if (a->transposed ? s.rank < 1 : s.rank != 2)
    return mix_rule_fail(node,
                         a->transposed ? "a scalar holds no rows" : "the stored weight must be a matrix");
  int64_t *last = &s.dims[s.rank - 1], bytes = a->bits == 4 ? divide_up(a->columns, 2) : a->columns;
  if (*last >= 0 && *last != bytes)
    return mix_rule_fail(node, "%lld columns of %d bits are %lld bytes in a row", (long long)a->columns,
                         a->bits, (long long)bytes);
  *last = a->columns;
  mix_shape scale = s;
  int64_t *const groups = &scale.dims[a->transposed ? s.rank - 1 : 0];
  if (blocks)
    *groups = divide_up(*groups, a->block);
  else if (a->transposed)
    scale.rank--;
  else
    scale = (mix_shape){.rank = 1, .dims = {s.dims[1]}};
  *shape = s;
  return expect(node, first + 1, scale, "scale") && (!blocks || expect(node, first + 2, scale, "zero"));
}

static bool dequantize_infer(mix_node *node) {
  mix_shape shape = {0};
  node->outputs[0].dtype = stored_of(node)->dtype;
  return weight_shape(node, 0, &shape) && mix_rule_output(node, 0, shape);
}

static bool product_infer(mix_node *node) {
  mix_shape x = mix_input_value(node, 0)->shape, weight = {0};
  if (!weight_shape(node, 1, &weight)) return false;
  if (weight.rank != 2) return mix_rule_fail(node, "the stored weight must be a matrix");
  if (x.rank < 2) return mix_rule_fail(node, "expected x of at least two dimensions");
  const bool transposed = stored_of(node)->transposed;
  int64_t *last = &x.dims[x.rank - 1], merged;
  const int64_t depth = weight.dims[transposed];
  if (!mix_dimension_merge(*last, depth, &merged))
    return mix_rule_fail(node, "the inner dimensions differ: %lld and %lld", (long long)*last,
                         (long long)depth);
  *last = weight.dims[!transposed];
  return mix_rule_output(node, 0, x);
}

/* Rows of x; the weight has none of the batch. */
static bool product_rows(const mix_row_query *query) {
  for (int i = 1; i < query->input_count; i++)
    if (query->batched[i]) return false;
  return query->batched[0];
}

/* Rows with scales of their own, or with those of the columns. */
static bool dequantize_rows(const mix_row_query *query) {
  const mix_stored_attributes *a = query->attributes;
  if (!a->transposed && !a->block) return query->batched[0] && !query->batched[1];
  for (int i = 0; i < query->input_count; i++)
    if (!query->batched[i]) return false;
  return a->transposed ? query->result.rank > 1 : a->block == 1;
}

/* ---- gradients: Keras's, of the weight as the compute dtype has it ---- */

static void product_gradient(mix_node *node, mix_tensor *const *output_gradients,
                             mix_tensor **input_gradients) {
  const mix_stored_attributes *a = stored_of(node);
  const mix_stored_options options = {.size = sizeof options,
                                      .bits = a->bits,
                                      .columns = a->columns,
                                      .block = a->block,
                                      .transposed = a->transposed,
                                      .dtype = mix_input_value(node, 0)->dtype};
  mix_tensor *zero = a->block ? mix_node_input(node, 3) : NULL;
  mix_tensor *weight =
      mix_dequantize_stored(mix_node_input(node, 1), mix_node_input(node, 2), zero, &options);
  input_gradients[0] = mix_matmul(output_gradients[0], weight, false, !a->transposed);
}

#define PRODUCT(called, operands, words)                                                                     \
  const mix_op mix_op_##called = {.name = #called,                                                           \
                                  .signature = operands,                                                     \
                                  .types = words,                                                            \
                                  .attributes_size = sizeof(mix_stored_attributes),                          \
                                  .infer = product_infer,                                                    \
                                  .row_independent = product_rows,                                           \
                                  .gradient = product_gradient,                                              \
                                  .fields = product_fields};
PRODUCT(matmul_channels, "T,S,U->T", "float,int8,float")
PRODUCT(matmul_blocks, "T,S,U,B->T", "float,int8,float,number")

#define DEQUANTIZE(called, operands, words)                                                                  \
  const mix_op mix_op_##called = {.name = #called,                                                           \
                                  .signature = operands,                                                     \
                                  .types = words,                                                            \
                                  .attributes_size = sizeof(mix_stored_attributes),                          \
                                  .infer = dequantize_infer,                                                 \
                                  .row_independent = dequantize_rows,                                        \
                                  .fields = dequantize_fields};
DEQUANTIZE(dequantize_channels, "S,U->D", "int8,float,float")
DEQUANTIZE(dequantize_blocks, "S,U,B->D", "int8,float,number,float")

/* ---- nibbles ---- */

static bool nibble_axis(mix_node *node, int64_t **length) {
  const mix_nibble_attributes *a = node->attributes;
  if (!mix_rule_axis(node, a->axis)) return false;
  node->outputs[0].shape = mix_input_value(node, 0)->shape;
  *length = &node->outputs[0].shape.dims[a->axis];
  return true;
}

static bool unpack_infer(mix_node *node) {
  const mix_nibble_attributes *a = node->attributes;
  int64_t *length;
  if (!nibble_axis(node, &length)) return false;
  if (a->size < 0 || (*length >= 0 && *length != divide_up(a->size, 2)))
    return mix_rule_fail(node, "%lld numbers of 4 bits along axis %d are %lld bytes", (long long)a->size,
                         a->axis, (long long)divide_up(a->size, 2));
  *length = a->size;
  return mix_rule_output(node, 0, node->outputs[0].shape);
}

static bool pack_infer(mix_node *node) {
  int64_t *length;
  if (!nibble_axis(node, &length)) return false;
  *length = divide_up(*length, 2);
  return mix_rule_output(node, 0, node->outputs[0].shape);
}

static bool nibble_rows(const mix_row_query *query) {
  return ((const mix_nibble_attributes *)query->attributes)->axis > 0;
}

static const mix_attribute_row nibble_fields[] = {
    {"axis", MIX_ATTRIBUTE_INT, offsetof(mix_nibble_attributes, axis)},
    {"size", MIX_ATTRIBUTE_INT64, offsetof(mix_nibble_attributes, size)},
    {NULL}};

#define NIBBLES(called)                                                                                      \
  const mix_op mix_op_##called##_int4 = {.name = #called "_int4",                                            \
                                         .signature = "T->T",                                                \
                                         .types = "int8",                                                    \
                                         .attributes_size = sizeof(mix_nibble_attributes),                   \
                                         .infer = called##_infer,                                            \
                                         .row_independent = nibble_rows,                                     \
                                         .fields = nibble_fields};
NIBBLES(unpack)
NIBBLES(pack)

/* ---- public ---- */

mix_stored_options mix_stored_defaults(void) {
  return (mix_stored_options){.size = sizeof(mix_stored_options)};
}

static int axis_of(const char *call, const mix_tensor *x, int axis) {
  return mix_operand_ready(call, x) ? mix_call_axis(call, x, axis, 0) : -1;
}

mix_tensor *mix_unpack_int4(mix_tensor *packed, int axis, int64_t size) {
  axis = axis_of("unpack_int4", packed, axis);
  if (axis < 0) return NULL;
  return mix_apply(&mix_op_unpack_int4, &(mix_nibble_attributes){axis, size}, 1, &packed);
}

mix_tensor *mix_pack_int4(mix_tensor *values, int axis) {
  axis = axis_of("pack_int4", values, axis);
  if (axis < 0) return NULL;
  return mix_apply(&mix_op_pack_int4, &(mix_nibble_attributes){.axis = axis}, 1, &values);
}

/* False with the error recorded. */
static bool read_options(const char *call, const mix_tensor *stored, const mix_stored_options *given,
                         mix_stored_attributes *a) {
  mix_stored_options options;
  if (!mix_options_copy(&options, sizeof options, given, call)) return false;
  *a = (mix_stored_attributes){.bits = options.bits ? options.bits : 8,
                               .columns = options.columns,
                               .block = options.block,
                               .transposed = options.transposed,
                               .dtype = options.dtype ? options.dtype : MIX_FLOAT32};
  const mix_shape shape = mix_tensor_shape(stored);
  if (!a->columns && shape.rank && shape.dims[shape.rank - 1] > 0)
    a->columns = shape.dims[shape.rank - 1] * (a->bits == 4 ? 2 : 1);
  return true;
}

mix_tensor *mix_dequantize_stored(mix_tensor *stored, mix_tensor *scale, mix_tensor *zero,
                                  const mix_stored_options *options) {
  static const char call[] = "dequantize_stored";
  mix_stored_attributes a;
  if (!mix_operand_ready(call, stored) || !mix_operand_ready(call, scale)) return NULL;
  if (!read_options(call, stored, options, &a)) return NULL;
  if (!mix_dtype_is_real(a.dtype))
    return mix_call_fail(MIX_TYPE_ERROR, call, stored,
                         "dtype %s; expected a floating dtype other than float8", mix_dtype_name(a.dtype));
  return mix_apply(zero ? &mix_op_dequantize_blocks : &mix_op_dequantize_channels, &a, zero ? 3 : 2,
                   (mix_tensor *[]){stored, scale, zero});
}

mix_tensor *mix_matmul_stored(mix_tensor *x, mix_tensor *stored, mix_tensor *scale, mix_tensor *zero,
                              const mix_stored_options *options) {
  static const char call[] = "matmul_stored";
  mix_stored_attributes a;
  if (!mix_operand_ready(call, x) || !mix_operand_ready(call, stored) || !mix_operand_ready(call, scale))
    return NULL;
  if (!read_options(call, stored, options, &a)) return NULL;
  a.dtype = MIX_DTYPE_NONE;
  return mix_apply(zero ? &mix_op_matmul_blocks : &mix_op_matmul_channels, &a, zero ? 4 : 3,
                   (mix_tensor *[]){x, stored, scale, zero});
}
