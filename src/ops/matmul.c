/* Matrix products. */
#include "ops/rules.h"

static const mix_matmul_attributes *product(const mix_node *node) { return node->attributes; }

/* a (..., m, k), b (..., k, n) -> (..., m, n); the attributes may transpose either operand. */
static bool matmul_infer(mix_node *node) {
  mix_shape a = mix_input_value(node, 0)->shape, b = mix_input_value(node, 1)->shape, result;
  if (a.rank < 2 || b.rank < 2) return mix_rule_fail(node, "expected matrices: at least two dimensions each");
  bool ta = product(node)->transpose_a, tb = product(node)->transpose_b;
  int64_t m = a.dims[a.rank - (ta ? 1 : 2)], k_a = a.dims[a.rank - (ta ? 2 : 1)];
  int64_t k_b = b.dims[b.rank - (tb ? 1 : 2)], n = b.dims[b.rank - (tb ? 2 : 1)], k;
  if (!mix_dimension_merge(k_a, k_b, &k))
    return mix_rule_fail(node, "the inner dimensions differ: %lld and %lld%s", (long long)k_a, (long long)k_b,
                         ta && tb ? " (both transposed)"
                         : ta     ? " (a transposed)"
                         : tb     ? " (b transposed)"
                                  : "");
  a.rank -= 2;
  b.rank -= 2;
  if (!mix_shape_broadcast(a, b, &result))
    return mix_rule_fail(node, "the leading dimensions do not broadcast");
  result.dims[result.rank++] = m;
  result.dims[result.rank++] = n;
  return mix_rule_output(node, 0, result);
}

/* TensorFlow's four cases (python/ops/math_grad.py, _MatMulGrad): no product needs a transposed copy. */
static void matmul_gradient(mix_node *node, mix_tensor *const *output_gradients,
                            mix_tensor **input_gradients) {
  mix_tensor *a = mix_node_input(node, 0), *b = mix_node_input(node, 1), *dy = output_gradients[0], *da, *db;
  bool ta = product(node)->transpose_a, tb = product(node)->transpose_b;
  if (!ta && !tb) {
    da = mix_matmul(dy, b, false, true);
    db = mix_matmul(a, dy, true, false);
  } else if (!ta) {
    da = mix_matmul(dy, b, false, false);
    db = mix_matmul(dy, a, true, false);
  } else if (!tb) {
    da = mix_matmul(b, dy, false, true);
    db = mix_matmul(a, dy, false, false);
  } else {
    da = mix_matmul(b, dy, true, true);
    db = mix_matmul(dy, a, true, true);
  }
  input_gradients[0] = mix_unbroadcast(node, 0, da);
  input_gradients[1] = mix_unbroadcast(node, 1, db);
}

/* Of matrices: the rows of A. Of more dimensions: the first one counts matrices. */
static bool matmul_rows(const mix_row_query *query) {
  if (query->result.rank > 2) return mix_rows_elementwise(query);
  return !((const mix_matmul_attributes *)query->attributes)->transpose_a && !query->batched[1];
}

/* The number of multiplications, where no operand is broadcast. */
static double multiplications(const void *attributes, const mix_shape operands[MIX_CONTRACTED]) {
  const mix_matmul_attributes *flags = attributes;
  const mix_shape *a = &operands[0], *b = &operands[1];
  double count = (double)b->dims[b->rank - (flags->transpose_b ? 2 : 1)];
  for (int d = 0; d < a->rank; d++) count *= (double)a->dims[d];
  return count;
}

static const mix_op *finite_bound(const void *attributes) {
  const mix_matmul_attributes *flags = attributes;
  return flags->transpose_a && !flags->transpose_b ? &mix_op_matmul_finite_bound : NULL;
}

static const char *matmul_violation(const mix_node *node) {
  bool matrices = mix_input_value(node, 0)->shape.rank == 2 && mix_input_value(node, 1)->shape.rank == 2;
  return matrices ? NULL : "matmul multiplies matrices; batch_matmul has more dimensions";
}

#define FLAG_FIELDS                                                                                          \
  {"transpose_a", MIX_ATTRIBUTE_BOOL, offsetof(mix_matmul_attributes, transpose_a)}, {                       \
    "transpose_b", MIX_ATTRIBUTE_BOOL, offsetof(mix_matmul_attributes, transpose_b)                          \
  }
static const mix_attribute_row matmul_fields[] = {FLAG_FIELDS, {NULL}};
static const mix_attribute_row downcast_fields[] = {
    FLAG_FIELDS,
    {"dtype", MIX_ATTRIBUTE_DTYPE, offsetof(mix_matmul_attributes, dtype)},
    {"round_operands", MIX_ATTRIBUTE_BOOL, offsetof(mix_matmul_attributes, round_operands)},
    {NULL}};

static const mix_contraction matmul_traits = {.transpose = {&matmul_fields[0], &matmul_fields[1]},
                                              .swaps = true,
                                              .epilogue = true,
                                              .downcast = &mix_op_matmul_downcast,
                                              .finite_bound = finite_bound,
                                              .multiplications = multiplications};
static const mix_contraction batch_matmul_traits = {
    .transpose = {&matmul_fields[0], &matmul_fields[1]}, .swaps = true, .multiplications = multiplications};
/* Transposes were folded before the pass "upcast_matmul". */
static const mix_contraction downcast_traits = {.epilogue = true,
                                                .result_dtype = &downcast_fields[2],
                                                .round_operands = &downcast_fields[3],
                                                .finite_bound = finite_bound,
                                                .multiplications = multiplications};

#define OP(called, tf, rule)                                                                                 \
  const mix_op mix_op_##called = {.name = #called,                                                           \
                                  .tf_name = tf,                                                             \
                                  .signature = "T,T->T",                                                     \
                                  .types = "float int32",                                                    \
                                  .attributes_size = sizeof(mix_matmul_attributes),                          \
                                  .infer = matmul_infer,                                                     \
                                  .row_independent = matmul_rows,                                            \
                                  .gradient = matmul_gradient,                                               \
                                  .fields = matmul_fields,                                                   \
                                  .contraction = &called##_traits,                                           \
                                  .accumulator = MIX_FLOAT32,                                                \
                                  .violation = rule};
OP(matmul, "MatMul", matmul_violation)
OP(batch_matmul, "BatchMatMulV2", NULL)

/* A product of float32 matrices that is rounded to 16 bits. The passes "upcast_matmul" and
 * "round_weights" create it, after all gradients, for processors that must widen 16-bit operands. Beside an
 * operand that it rounds, the other one may be in 16 bits. */
static bool downcast_infer(mix_node *node) {
  const mix_matmul_attributes *attributes = product(node);
  const mix_dtype a = mix_input_value(node, 0)->dtype, b = mix_input_value(node, 1)->dtype;
  const mix_dtype narrow = attributes->round_operands ? attributes->dtype : MIX_FLOAT32;
  if ((a != MIX_FLOAT32 && a != narrow) || (b != MIX_FLOAT32 && b != narrow) ||
      (a != MIX_FLOAT32 && b != MIX_FLOAT32))
    return mix_rule_fail(node, "expected float32 matrices, or with round_operands one of the result's dtype");
  node->outputs[0].dtype = attributes->dtype;
  return matmul_infer(node);
}

const mix_op mix_op_matmul_downcast = {.name = "matmul_downcast",
                                       .signature = "T,U->D",
                                       .types = "float32 float16 bfloat16,float32 float16 bfloat16,"
                                                "float16 bfloat16",
                                       .attributes_size = sizeof(mix_matmul_attributes),
                                       .infer = downcast_infer,
                                       .row_independent = matmul_rows,
                                       .fields = downcast_fields,
                                       .contraction = &downcast_traits,
                                       .accumulator = MIX_FLOAT32,
                                       .violation = matmul_violation};

const mix_op mix_op_matmul_finite_bound = {.name = "matmul_finite_bound",
                                           .attributes_size = sizeof(mix_finite_bound_attributes)};

static bool integer_infer(mix_node *node) {
  node->outputs[0].dtype = MIX_INT32;
  return matmul_infer(node);
}

const mix_op mix_op_matmul_integer = {.name = "matmul_integer",
                                      .signature = "T,T->D",
                                      .types = "int8,int32",
                                      .attributes_size = sizeof(mix_matmul_attributes),
                                      .infer = integer_infer,
                                      .row_independent = matmul_rows,
                                      .fields = matmul_fields};

mix_tensor *mix_matmul_integer(mix_tensor *a, mix_tensor *b, bool transpose_a, bool transpose_b) {
  if (!mix_operand_ready("matmul_integer", a) || !mix_operand_ready("matmul_integer", b)) return NULL;
  return mix_apply(&mix_op_matmul_integer,
                   &(mix_matmul_attributes){.transpose_a = transpose_a, .transpose_b = transpose_b}, 2,
                   (mix_tensor *[]){a, b});
}

mix_tensor *mix_matmul(mix_tensor *a, mix_tensor *b, bool transpose_a, bool transpose_b) {
  if (!mix_operand_ready("matmul", a) || !mix_operand_ready("matmul", b)) return NULL;
  bool batch = mix_tensor_shape(a).rank > 2 || mix_tensor_shape(b).rank > 2;
  return mix_apply(batch ? &mix_op_batch_matmul : &mix_op_matmul,
                   &(mix_matmul_attributes){.transpose_a = transpose_a, .transpose_b = transpose_b}, 2,
                   (mix_tensor *[]){a, b});
}
