/* The trait row_independent of every op against its values: rows of the operands that it is asked about are
 * moved, and replaced by copies of others, on the reference device. */
/* Holds docs/NUMERICS.md: Padded batches. */
#include "ops/support.h"
#include "ops/decompositions.h"
#include "graph/op.h"
#include "ops/debug_ops.h"
#include "ops/with_number.h"
#include "tensor/shape.h"
#include <mixtape/device.h>
#include <mixtape/einsum.h>
#include <mixtape/image.h>
#include <mixtape/linear_algebra.h>
#include <mixtape/pooling.h>

enum { ROWS = 5, OPERANDS = 6, RESULTS = 3, BYTES = 4096, OPS_MAX = 256 };

/* ---- values ---- */

static uint64_t drawn;
static double draw(void) {
  drawn = drawn * 6364136223846793005u + 1442695040888963407u;
  return 0.1 + 0.8 * (double)(drawn >> 40) * 0x1p-24;
}
/* Numbers 1/8 to 7/8, integers 0 to 2, bools: some equal, some not. */
static mix_tensor *values(mix_dtype dtype, mix_shape shape) {
  double drawn_values[BYTES / 8];
  const int64_t count = mix_shape_size(shape);
  assert_true(count >= 0 && count <= COUNT(drawn_values));
  for (int64_t i = 0; i < count; i++)
    drawn_values[i] = mix_dtype_is_floating(dtype) ? round(draw() * 8) / 8
                                                   : floor(draw() * (dtype == MIX_BOOL ? 2.2 : 3.3));
  return mix_cast(mix_tensor_from_doubles(drawn_values, dtype == MIX_BOOL ? MIX_INT32 : dtype, shape), dtype);
}
#define F(...) values(MIX_FLOAT32, MIX_SHAPE(__VA_ARGS__))
#define I(...) values(MIX_INT32, MIX_SHAPE(__VA_ARGS__))
#define B(...) values(MIX_BOOL, MIX_SHAPE(__VA_ARGS__))

/* ---- nodes ---- */

typedef struct example {
  const mix_op *op;
  const void *attributes;
  int count;
  mix_tensor *operands[OPERANDS];
} example;

static mix_tensor *apply(const example *e, mix_tensor *const *operands) {
  mix_tensor *result = mix_apply(e->op, e->attributes, e->count, operands);
  no_error();
  return result;
}

static mix_shape shape_of(const example *e, int operand) { return mix_tensor_shape(e->operands[operand]); }

static bool claims(const example *e, unsigned batched) {
  bool marks[OPERANDS];
  mix_shape shapes[OPERANDS];
  for (int i = 0; i < e->count; i++) marks[i] = batched >> i & 1, shapes[i] = shape_of(e, i);
  const mix_row_query query = {.attributes = e->attributes,
                               .input_count = e->count,
                               .inputs = shapes,
                               .batched = marks,
                               .result = mix_tensor_shape(apply(e, e->operands))};
  return e->op->row_independent && e->op->row_independent(&query);
}

/* The operand with its rows taken from these. */
static mix_tensor *with_rows(mix_tensor *x, const int *rows) {
  char bytes[BYTES];
  const mix_shape shape = mix_tensor_shape(x);
  const size_t size = mix_value_bytes(mix_tensor_dtype(x), shape), row = size / (size_t)shape.dims[0];
  assert_true(size <= sizeof bytes);
  for (int64_t i = 0; i < shape.dims[0]; i++)
    memcpy(bytes + (size_t)i * row, (const char *)mix_tensor_data(x) + (size_t)rows[i] * row, row);
  return mix_tensor_from(bytes, mix_tensor_dtype(x), shape);
}

static int result_count(const example *e) {
  int count = 1;
  for (const char *p = strstr(e->op->signature, "->"); *p; p++) count += *p == ',';
  return count;
}

static const char *row_of(mix_node *node, int output, int64_t i, size_t *bytes) {
  mix_tensor *y = mix_tensor_of(node, output);
  const char *data = mix_tensor_data(y);
  no_error();
  *bytes = mix_value_bytes(mix_tensor_dtype(y), mix_tensor_shape(y)) / (size_t)mix_tensor_shape(y).dims[0];
  return data + (size_t)i * *bytes;
}

/* Is row i of each result with these rows of the batch the row rows[i] of the result without? Only where
 * `compared` says so. */
static bool follows(const example *e, unsigned batched, mix_node *before, const int *rows,
                    unsigned compared) {
  mix_tensor *operands[OPERANDS];
  for (int i = 0; i < e->count; i++)
    operands[i] = batched >> i & 1 ? with_rows(e->operands[i], rows) : e->operands[i];
  mix_node *after = apply(e, operands)->node;
  for (int o = 0; o < result_count(e); o++)
    for (int i = 0; i < ROWS; i++) {
      size_t bytes;
      if (!(compared >> i & 1)) continue;
      const char *moved = row_of(after, o, i, &bytes);
      if (memcmp(moved, row_of(before, o, rows[i], &bytes), bytes)) return false;
    }
  return true;
}

static bool behaves(const example *e, unsigned batched) {
  mix_node *before = apply(e, e->operands)->node;
  for (int o = 0; o < result_count(e); o++) {
    const mix_shape shape = mix_tensor_shape(mix_tensor_of(before, o));
    if (shape.rank < 1 || shape.dims[0] != ROWS) return false;
  }
  if (!follows(e, batched, before, (const int[ROWS]){1, 2, 3, 4, 0}, ~0u)) return false;
  for (int kept = 0; kept < ROWS; kept++) { /* all others become copies of the next one */
    int rows[ROWS];
    for (int i = 0; i < ROWS; i++) rows[i] = i == kept ? i : (kept + 1) % ROWS;
    if (!follows(e, batched, before, rows, 1u << kept)) return false;
  }
  return true;
}

/* ---- the examples ---- */

static int met[OPS_MAX], yes[OPS_MAX];
static int index_of(const mix_op *op) {
  for (int i = 0; mix_all_ops[i]; i++)
    if (mix_all_ops[i] == op) return i;
  fail_msg("%s is not in the table", op->name);
  return 0;
}

static bool may_have_batch(const example *e, unsigned batched) {
  for (int i = 0; i < e->count; i++)
    if ((batched >> i & 1) && (shape_of(e, i).rank < 1 || shape_of(e, i).dims[0] != ROWS)) return false;
  return true;
}

/* An operand without the batch that lies along it is the caller's affair: it must have equal rows. */
static bool another_lies_along(const example *e, unsigned batched) {
  for (int i = 0; i < e->count; i++)
    if (!(batched >> i & 1) && may_have_batch(e, 1u << i) && claims(e, batched | 1u << i)) return true;
  return false;
}

/* A "no" needs one example of values that show it; the first ones may not (equal bools). */
static bool shows_no(const example *e, unsigned batched) {
  example other = *e;
  for (int draws = 0; draws < 50; draws++) {
    if (!behaves(&other, batched)) return true;
    for (int i = 0; i < e->count; i++)
      other.operands[i] = values(mix_tensor_dtype(e->operands[i]), shape_of(e, i));
  }
  return false;
}

/* Every set of operands that may have the batch. */
static void check(const example *e) {
  MIX_SCOPE {
    met[index_of(e->op)]++;
    for (unsigned batched = 1; batched < 1u << e->count; batched++) {
      if (!may_have_batch(e, batched)) continue;
      const bool claimed = claims(e, batched);
      yes[index_of(e->op)] += claimed;
      if (claimed && another_lies_along(e, batched)) continue;
      if (claimed ? behaves(e, batched) : shows_no(e, batched)) continue;
      char text[OPERANDS][160];
      for (int i = 0; i < OPERANDS; i++)
        mix_shape_text(i < e->count ? shape_of(e, i) : MIX_SCALAR, text[i], sizeof text[i]);
      fail_msg("%s of %d operands %s %s %s: row_independent says %s for the operands %#x, its values do not",
               e->op->name, e->count, text[0], text[1], text[2], claimed ? "yes" : "no", batched);
    }
  }
}

static void check_node(mix_tensor *result) {
  no_error();
  const mix_node *node = result->node;
  example e = {.op = node->op, .attributes = node->attributes, .count = node->input_count};
  assert_true(e.count <= OPERANDS);
  for (int i = 0; i < e.count; i++) e.operands[i] = mix_node_input(result->node, i);
  check(&e);
}

static mix_dtype dtype_of(char letter, const mix_op *op) {
  if (letter == 'b') return MIX_BOOL;
  if (letter == 'i') return MIX_INT32;
  if (letter == 'l') return MIX_INT64;
  if (letter == 'f') return MIX_FLOAT32;
  return mix_op_allows(op, 0, MIX_FLOAT32) ? MIX_FLOAT32 : MIX_INT32;
}

/* An element-wise op from its signature, with operands of shapes that broadcast in every way it allows. */
static void check_elementwise(const mix_op *op) {
  static const mix_shape shapes[] = {{2, {ROWS, 3}}, {1, {3}}, {2, {ROWS, 1}},       {2, {1, 3}},
                                     {1, {ROWS}},    {0, {0}}, {2, {ROWS, ROWS}},    {3, {2, ROWS, 3}},
                                     {2, {3, ROWS}}, {1, {1}}, {3, {ROWS, ROWS, 3}}, {3, {ROWS, 1, 3}}};
  static const mix_alpha_attributes alpha = {0.25};
  static const mix_cast_attributes cast = {MIX_FLOAT16};
  example e = {.op = op};
  e.attributes = !op->attributes_size ? NULL : op == &mix_op_cast ? (const void *)&cast : &alpha;
  char letters[OPERANDS];
  for (const char *p = op->signature; *p != '-'; p++)
    if (*p != ',') letters[e.count++] = *p;
  int sets = 1, accepted = 0;
  for (int i = 0; i < e.count; i++) sets *= COUNT(shapes);
  for (int set = 0; set < sets; set++) {
    MIX_SCOPE {
      for (int i = 0, rest = set; i < e.count; i++, rest /= COUNT(shapes))
        e.operands[i] = values(dtype_of(letters[i], op), shapes[rest % COUNT(shapes)]);
      if (mix_opcode_draws(op->opcode)) /* numbers that bfloat16 holds are not rounded */
        e.operands[0] = mix_times(e.operands[0], 1.0 / 3);
      const bool fits = mix_apply(op, e.attributes, e.count, e.operands) != NULL;
      mix_error_clear();
      if (fits) accepted++, check(&e);
    }
  }
  assert_true(accepted > e.count);
}

static void elementwise_ops(void **state) {
  (void)state;
  for (int i = 0; mix_all_ops[i]; i++)
    if (mix_all_ops[i]->flags & MIX_OP_ELEMENTWISE) check_elementwise(mix_all_ops[i]);
}

static void reductions(void **state) {
  (void)state;
  mix_tensor *(*const floats[])(mix_tensor *, mix_axes, bool) = {
      mix_reduce_sum, mix_reduce_mean, mix_reduce_prod, mix_reduce_max, mix_reduce_min};
  mix_tensor *(*const bools[])(mix_tensor *, mix_axes, bool) = {mix_reduce_all, mix_reduce_any};
  const mix_axes axes[] = {MIX_AXES(0),    MIX_AXES(1),    MIX_AXES(2),
                           MIX_AXES(1, 2), MIX_AXES(0, 2), MIX_ALL_AXES};
  for (int keep = 0; keep < 2; keep++)
    for (int a = 0; a < COUNT(axes); a++) {
      for (int i = 0; i < COUNT(floats); i++) check_node(floats[i](F(ROWS, ROWS, 3), axes[a], keep));
      for (int i = 0; i < COUNT(bools); i++) check_node(bools[i](B(ROWS, ROWS, 3), axes[a], keep));
    }
  for (int axis = 0; axis < 2; axis++) {
    check_node(mix_argmax(F(ROWS, ROWS), axis));
    check_node(mix_argmin(F(ROWS, ROWS), axis));
  }
  check_node(mix_argsort(F(ROWS, 3), 1, true));
  check_node(mix_argsort(F(ROWS), 0, false));
  for (int inverse = 0; inverse < 2; inverse++) {
    check(&(example){.op = &mix_op_fourier,
                     .attributes = &(mix_fourier_attributes){inverse},
                     .count = 2,
                     .operands = {F(ROWS, 4), F(ROWS, 4)}});
    check(&(example){.op = &mix_op_fourier,
                     .attributes = &(mix_fourier_attributes){inverse},
                     .count = 2,
                     .operands = {F(ROWS), F(ROWS)}});
  }
  for (int rank = 2; rank < 4; rank++) {
    mix_tensor *square = rank == 2 ? F(ROWS, ROWS) : F(ROWS, 3, 3),
               *x = rank == 2 ? F(ROWS, 3) : F(ROWS, 3, 2);
    mix_list *parts[] = {mix_eigh(square), mix_eig(square), mix_svd(x, false), mix_svd(x, true)};
    for (int i = 0; i < COUNT(parts); i++) check_node(mix_list_get(parts[i], 0));
    check(&(example){.op = &mix_op_matrix_solve, .count = 2, .operands = {square, square}});
  }
  check_node(mix_bias_add_gradient(F(ROWS, ROWS)));
  check_node(mix_bias_add_gradient(F(ROWS)));
  check_node(mix_all_finite(F(ROWS, 3)));
  for (int first = 0; first < 2; first++)
    check(&(example){.op = &mix_op_row_moments, /* no public call makes it */
                     .attributes = &(mix_reduce_attributes){2 - first, {first, first ? 0 : 1}, true},
                     .count = 1,
                     .operands = {F(ROWS, 3)}});
  check_node(mix_magnitudes(F(ROWS, 3)));
}

static void products(void **state) {
  (void)state;
  for (int t = 0; t < 4; t++) {
    const bool a = t & 1, b = t & 2;
    check_node(mix_matmul(F(ROWS, ROWS), F(ROWS, ROWS), a, b));
    check_node(mix_matmul(a ? F(3, ROWS) : F(ROWS, 3), b ? F(ROWS, 3) : F(3, ROWS), a, b));
    check_node(mix_matmul(F(ROWS, ROWS, ROWS), F(ROWS, ROWS), a, b));
    check_node(mix_matmul(F(ROWS, ROWS), F(ROWS, ROWS, ROWS), a, b));
    check_node(mix_matmul(F(ROWS, ROWS, ROWS), F(ROWS, ROWS, ROWS), a, b));
    check_node(mix_matmul(F(ROWS, 1, 2, 2), F(ROWS, 2, 2), a, b));
    check_node(mix_matmul(F(ROWS, 2, 2), F(1, 2, 2), a, b));
    check_node(mix_matmul_integer(values(MIX_INT8, MIX_SHAPE(ROWS, ROWS)),
                                  values(MIX_INT8, MIX_SHAPE(ROWS, ROWS)), a, b));
    check(&(example){.op = &mix_op_matmul_downcast,
                     .attributes = &(mix_matmul_attributes){a, b, MIX_FLOAT16},
                     .count = 2,
                     .operands = {F(ROWS, ROWS), F(ROWS, ROWS)}});
    check(&(example){.op = &mix_op_batch_matmul, /* of matrices, as no public call makes it */
                     .attributes = &(mix_matmul_attributes){a, b, MIX_DTYPE_NONE},
                     .count = 2,
                     .operands = {F(ROWS, ROWS), F(ROWS, ROWS)}});
  }
}

static void convolutions(void **state) {
  (void)state;
  mix_conv_attributes a = {.strides = {1, {2}},
                           .dilation = {1, {1}},
                           .before = {1, {1}},
                           .after = {1, {1}},
                           .sizes = {1, {ROWS}},
                           .groups = 1};
  const mix_op *const one_axis[] = {
      &mix_op_conv,           &mix_op_conv_input_gradient,           &mix_op_conv_kernel_gradient,
      &mix_op_depthwise_conv, &mix_op_depthwise_conv_input_gradient, &mix_op_depthwise_conv_kernel_gradient};
  const mix_op *const three_axes[] = {&mix_op_conv3d, &mix_op_conv3d_input_gradient,
                                      &mix_op_conv3d_kernel_gradient};
  const mix_shape x = MIX_SHAPE(ROWS, ROWS, 2), kernel = MIX_SHAPE(ROWS, 2, 2),
                  y = MIX_SHAPE(ROWS, (ROWS + 2 - ROWS) / 2 + 1, 2);
  for (int i = 0; i < COUNT(one_axis); i++) {
    a.groups = i < 3;
    mix_shape first = i % 3 == 1 ? y : x, second = i % 3 == 2 ? y : kernel;
    if (i >= 3 && i % 3 == 1) first.dims[2] = 4;
    if (i >= 3 && i % 3 == 2) second.dims[2] = 4;
    check(&(example){.op = one_axis[i],
                     .attributes = &a,
                     .count = 2,
                     .operands = {values(MIX_FLOAT32, first), values(MIX_FLOAT32, second)}});
  }
  a = (mix_conv_attributes){.strides = {3, {1, 1, 1}},
                            .dilation = {3, {1, 1, 1}},
                            .before = {3, {0, 0, 0}},
                            .after = {3, {0, 0, 0}},
                            .groups = 1};
  for (int i = 0; i < COUNT(three_axes); i++) {
    a.sizes = i == 1 ? MIX_SHAPE(2, 2, 2) : MIX_SHAPE(1, 1, 2);
    check(&(example){.op = three_axes[i],
                     .attributes = &a,
                     .count = 2,
                     .operands = {i == 1 ? F(ROWS, 2, 2, 1, 3) : F(ROWS, 2, 2, 2, 2),
                                  i == 2 ? F(ROWS, 2, 2, 1, 3) : F(1, 1, 2, 2, 3)}});
  }
}

static void classes(void **state) {
  (void)state;
  const mix_shape shapes[] = {MIX_SHAPE(ROWS), MIX_SHAPE(ROWS, 3), MIX_SHAPE(ROWS, ROWS),
                              MIX_SHAPE(ROWS, 2, 3)};
  for (int s = 0; s < COUNT(shapes); s++) {
    mix_shape labels = shapes[s];
    labels.rank--;
    check_node(mix_softmax(values(MIX_FLOAT32, shapes[s])));
    check_node(mix_log_softmax(values(MIX_FLOAT32, shapes[s])));
    check_node(mix_softmax_cross_entropy(values(MIX_FLOAT32, shapes[s]), values(MIX_FLOAT32, shapes[s])));
    check_node(mix_sparse_softmax_cross_entropy(values(MIX_INT32, labels), values(MIX_FLOAT32, shapes[s])));
  }
}

static void indices_and_rows(void **state) {
  (void)state;
  for (int axis = 0; axis < 2; axis++) {
    check_node(mix_gather(F(ROWS, 4), I(ROWS), axis));
    check_node(mix_gather(F(ROWS, ROWS), I(ROWS, 2), axis));
    check_node(mix_gather(F(4, ROWS), I(ROWS), axis));
  }
  check_node(mix_gather(F(ROWS, 4), I(2), 0));
  check_node(mix_gather(F(ROWS), mix_scalar(1, MIX_INT32), 0));
  check_node(mix_bitcast(F(ROWS, 4), MIX_INT16));
  check_node(mix_bitcast(F(ROWS, 4), MIX_INT64));
  check_node(mix_one_hot(I(ROWS), 3, MIX_FLOAT32));
  check_node(mix_one_hot(I(ROWS, 2), ROWS, MIX_INT32));
  check_node(mix_segment_sum(F(ROWS, 2), I(ROWS), ROWS));
  check_node(mix_rows(F(ROWS, 2), I(ROWS), ROWS));
  mix_tensor *first;
  check_node(mix_combine_rows(F(ROWS, 2), I(ROWS), ROWS, &first));
  check_node(mix_gather_rows(F(ROWS, 2), I(ROWS)));
  check_node(mix_gather_rows(F(4, 2), I(ROWS)));
  const double places[] = {3, -1, 0, 4, 2};
  check_node(mix_replace_rows(F(ROWS, 2), tensor(MIX_INT32, MIX_SHAPE(ROWS), places), F(ROWS, 2)));
}

static void einsums(void **state) {
  (void)state;
  static const char *const equations[] = {"ab,bc->ac", "ab,cb->ac", "ab,cb->ca", "ab,ac->abc",
                                          "ab,ac->bc", "ba,bc->ac", "ab,ab->ab", "ab,ab->ba"};
  for (int i = 0; i < COUNT(equations); i++)
    check_node(mix_einsum(equations[i], 2, (mix_tensor *[]){F(ROWS, ROWS), F(ROWS, ROWS)}));
  check_node(mix_einsum("abc,adc->adb", 2, (mix_tensor *[]){F(ROWS, 2, 3), F(ROWS, 4, 3)}));
}

static void attentions(void **state) {
  (void)state;
  const double key[] = {7, 1};
  for (int rate = 0; rate < 2; rate++)
    for (int masks = 0; masks < 2; masks++) {
      const mix_attention_attributes attributes = {
          .scale = 0.5, .mask_value = -1e9, .rate = rate ? 0.5 : 0, .causal = masks};
      mix_tensor *mask = masks ? B(ROWS, 1, 1, 3) : B(1, 1, 2, 3);
      mix_tensor *operands[] = {
          F(ROWS, 2, 2, 2), F(ROWS, 3, 1, 2), F(ROWS, 3, 1, 4), mask, tensor(MIX_INT64, MIX_SHAPE(2), key),
          F(ROWS, 2, 2, 4)};
      check_node(mix_apply(&mix_op_attention, &attributes, 5, operands));
      check_node(mix_apply(&mix_op_attention_grad, &attributes, 6, operands));
    }
}

static void stored_weights(void **state) {
  (void)state;
#define N(...) values(MIX_INT8, MIX_SHAPE(__VA_ARGS__))
  mix_stored_options channels = {.size = sizeof channels},
                     blocks = {.size = sizeof blocks, .bits = 4, .block = 2};
  check_node(mix_matmul_stored(F(ROWS, ROWS), N(ROWS, ROWS), F(ROWS), NULL, &channels));
  check_node(mix_matmul_stored(F(ROWS, 2, 3), N(3, 2), F(2, 4), N(2, 4), &blocks));
  for (int axis = 0; axis < 2; axis++) {
    check_node(mix_pack_int4(N(ROWS, 3), axis));
    check_node(mix_unpack_int4(N(ROWS, 2), axis, axis ? 3 : 2 * ROWS));
  }
  check_node(mix_dequantize_stored(N(ROWS, ROWS), F(ROWS), NULL, &channels));
  check_node(mix_dequantize_stored(N(ROWS, 1), F(3, 2), N(3, 2), &blocks));
  channels.transposed = blocks.transposed = true;
  check_node(mix_matmul_stored(F(ROWS, ROWS), N(ROWS, ROWS), F(ROWS), NULL, &channels));
  check_node(mix_dequantize_stored(N(ROWS, ROWS), F(ROWS), NULL, &channels));
  check_node(mix_dequantize_stored(N(ROWS, 2), F(ROWS, 2), N(ROWS, 2), &blocks));
#undef N
}

static void parts_and_shapes(void **state) {
  (void)state;
  for (int axis = 0; axis < 2; axis++)
    check_node(mix_concat(3, (mix_tensor *[]){F(ROWS, ROWS), F(ROWS, ROWS), F(ROWS, ROWS)}, axis));
  check_node(mix_add_n(3, (mix_tensor *[]){F(ROWS, 3), F(ROWS, 3), F(ROWS, 3)}));
  check_node(mix_slice(F(ROWS, 4), MIX_SHAPE(0, 1), MIX_SHAPE(ROWS, 2)));
  check_node(mix_slice(F(ROWS, 4), MIX_SHAPE(1, 0), MIX_SHAPE(3, 4)));
  check_node(mix_pad(F(ROWS, 4), MIX_SHAPE(0, 1), MIX_SHAPE(0, 2), 0.5));
  check_node(mix_pad(F(ROWS, 4), MIX_SHAPE(1, 0), MIX_SHAPE(0, 0), 0.5));
  check_node(mix_pad(F(ROWS, 4), MIX_SHAPE(0, 0), MIX_SHAPE(2, 0), 0.5));
  check_node(mix_reshape(F(ROWS, 4), MIX_SHAPE(ROWS, 2, 2)));
  check_node(mix_apply(&mix_op_optimization_barrier, NULL, 2, (mix_tensor *[]){F(ROWS, 4), I(ROWS)}));
  check_node(mix_apply(&mix_op_check_numerics, &(mix_check_numerics_attributes){.message = NULL}, 1,
                       (mix_tensor *[]){F(ROWS, 4)}));
  check_node(mix_apply(&mix_op_print, &(mix_print_attributes){.label = "rows"}, 2,
                       (mix_tensor *[]){F(ROWS, 4), mix_scalar(0, MIX_INT64)}));
  check_node(mix_reshape(F(ROWS, 4), MIX_SHAPE(4, ROWS)));
  check_node(mix_reshape(F(ROWS, 4), MIX_SHAPE(1, ROWS, 4)));
  check_node(mix_reshape(F(ROWS, 2, 2), MIX_SHAPE(ROWS, 4)));
  check_node(mix_reshape(F(ROWS, 1), MIX_SHAPE(ROWS)));
  check_node(mix_broadcast_to(F(ROWS, 1), MIX_SHAPE(ROWS, 3)));
  check_node(mix_broadcast_to(F(ROWS, 3), MIX_SHAPE(2, ROWS, 3)));
  check_node(mix_broadcast_to(F(ROWS), MIX_SHAPE(ROWS, ROWS)));
  check_node(mix_transpose(F(ROWS, ROWS), MIX_AXES(1, 0)));
  check_node(mix_transpose(F(ROWS, 2, 3), MIX_AXES(0, 2, 1)));
  check_node(mix_transpose(F(ROWS, ROWS, 3), MIX_AXES(1, 0, 2)));
}

static void windows_and_images(void **state) {
  (void)state;
  const mix_pool_window flat = {.size = MIX_SHAPE(2)}, deep = {.size = MIX_SHAPE(2, 1, 1)};
  mix_tensor *lines = F(ROWS, 3, 2), *volumes = F(ROWS, 2, 1, 2, 2);
  check_node(mix_max_pool(lines, &flat));
  check_node(mix_avg_pool(lines, &flat));
  check_node(mix_max_pool(volumes, &deep));
  check_node(mix_avg_pool(volumes, &deep));
  const mix_shape none = MIX_SHAPE(0), nowhere = MIX_SHAPE(0, 0, 0);
  mix_pool_attributes a = {MIX_SHAPE(2), MIX_SHAPE(2), none, none, MIX_SHAPE(3)},
                      b = {MIX_SHAPE(2, 1, 1), MIX_SHAPE(2, 1, 1), nowhere, nowhere, MIX_SHAPE(2, 1, 2)};
  mix_tensor *tops = F(ROWS, 1, 2), *summits = F(ROWS, 1, 1, 2, 2);
  check_node(mix_apply(&mix_op_max_pool_grad, &a, 3, (mix_tensor *[]){lines, tops, tops}));
  check_node(mix_apply(&mix_op_max_pool_grad_grad, &a, 3, (mix_tensor *[]){lines, tops, lines}));
  check_node(mix_apply(&mix_op_avg_pool_grad, &a, 1, &tops));
  check_node(mix_apply(&mix_op_max_pool_grad3d, &b, 3, (mix_tensor *[]){volumes, summits, summits}));
  check_node(mix_apply(&mix_op_max_pool_grad_grad3d, &b, 3, (mix_tensor *[]){volumes, summits, volumes}));
  check_node(mix_apply(&mix_op_avg_pool_grad3d, &b, 1, &summits));
  for (int axis = 0; axis < 2; axis++) check_node(mix_resize_axis(F(ROWS, 4), axis, 3, MIX_BILINEAR, false));
  check_node(mix_projective_transform(F(ROWS, 2, 2, 1), F(ROWS, 8), MIX_BILINEAR, MIX_FILL_REFLECT, 0));
}

static void sources(void **state) {
  (void)state;
  check_node(mix_fill(MIX_SHAPE(ROWS, 2), 1, MIX_FLOAT32));
  check_node(mix_range(0, ROWS, 1, MIX_FLOAT32));
  const double key[] = {7, 1};
  mix_tensor *seed = tensor(MIX_INT64, MIX_SHAPE(2), key);
  check_node(mix_stateless_uniform(seed, MIX_SHAPE(ROWS, 2), MIX_FLOAT32));
  check_node(mix_stateless_normal(seed, MIX_SHAPE(ROWS, 2), MIX_FLOAT32));
  check_node(mix_stateless_truncated_normal(seed, MIX_SHAPE(ROWS, 2), MIX_FLOAT32));
}

/* Runs after the others: no op was left out, and one with the trait was seen to have it. */
static void every_op_was_checked(void **state) {
  (void)state;
  for (int i = 0; mix_all_ops[i]; i++) {
    const mix_op *op = mix_all_ops[i];
    /* loops: tests/nn/test_layers_all.c; the rows of collectives are those of all ranks */
    if (op->flags & (MIX_OP_SOURCE | MIX_OP_LOOP) || mix_op_is_collective(op)) {
      assert_null(op->row_independent);
    } else {
      if (!met[i]) fail_msg("op '%s': an example in this test is missing", op->name);
      if (op->row_independent && !yes[i]) fail_msg("op '%s': no example keeps its rows", op->name);
    }
  }
}

static int on_the_reference(void **state) {
  (void)state;
  return mix_set_device("ref") != MIX_OK;
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(elementwise_ops),
                                     TEST(reductions),
                                     TEST(products),
                                     TEST(convolutions),
                                     TEST(einsums),
                                     TEST(stored_weights),
                                     TEST(attentions),
                                     TEST(classes),
                                     TEST(indices_and_rows),
                                     TEST(parts_and_shapes),
                                     TEST(windows_and_images),
                                     TEST(sources),
                                     TEST(every_op_was_checked)};
  return cmocka_run_group_tests_name("ops/row_independence", tests, on_the_reference, NULL);
}
