/* Forward values of the operations that are not element-wise: reductions, products, softmax and
 * cross-entropies, indices, shapes. Small integers make every result exact, in any order of summation. */
#include "ops/support.h"
#include <mixtape/device.h>

static mix_tensor *bools(mix_shape shape, const uint8_t *values) {
  return mix_tensor_from(values, MIX_BOOL, shape);
}

static void reductions(void **state) {
  (void)state;
  for (int d = 0; d < COUNT(numbers); d++) {
    mix_tensor *x = tensor(numbers[d], MIX_SHAPE(2, 3, 2), NUMBERS(1, 2, 3, 1, 2, 1, 1, 4, 1, 2, 3, 1));
    has_values(mix_reduce_sum(x, MIX_AXES(1), false), 4, NUMBERS(6, 4, 5, 7));
    has_values(mix_reduce_sum(x, MIX_AXES(0, 2), true), 3, NUMBERS(8, 7, 7));
    has_values(mix_reduce_sum(x, MIX_AXES(-1), false), 6, NUMBERS(3, 4, 3, 5, 3, 4));
    has_values(mix_reduce_sum(x, MIX_ALL_AXES, false), 1, NUMBERS(22));
    has_values(mix_reduce_prod(x, MIX_AXES(1), false), 4, NUMBERS(6, 2, 3, 8));
    has_values(mix_reduce_max(x, MIX_AXES(1), false), 4, NUMBERS(3, 2, 3, 4));
    has_values(mix_reduce_min(x, MIX_AXES(0, 1), false), 2, NUMBERS(1, 1));
    has_values(mix_bias_add_gradient(x), 2, NUMBERS(11, 11));
    has_values(mix_reduce_sum(mix_scalar(5, numbers[d]), MIX_ALL_AXES, false), 1, NUMBERS(5));
    has_values(mix_argmax(x, 1), 4, NUMBERS(1, 0, 2, 0)); /* the first of equal elements */
    has_values(mix_argmin(x, 1), 4, NUMBERS(0, 1, 0, 2));
    has_values(mix_argmax(x, -1), 6, NUMBERS(1, 0, 0, 1, 1, 0));
    if (!mix_dtype_is_floating(numbers[d])) continue;
    has_values(mix_reduce_mean(x, MIX_AXES(2), false), 6, NUMBERS(1.5, 2, 1.5, 2.5, 1.5, 2));
    has_values(mix_reduce_mean(tensor(numbers[d], MIX_SHAPE(4), NUMBERS(1, 2, 4, 9)), MIX_ALL_AXES, true), 1,
               NUMBERS(4));
    mix_tensor *odd = tensor(numbers[d], MIX_SHAPE(4), NUMBERS(1, NAN, 3, NAN));
    has_values(mix_reduce_max(odd, MIX_ALL_AXES, false), 1, NUMBERS(NAN));
    has_values(mix_reduce_min(odd, MIX_ALL_AXES, false), 1, NUMBERS(NAN));
    has_values(mix_argmax(odd, 0), 1, NUMBERS(1));
    has_values(mix_argmin(odd, 0), 1, NUMBERS(1));
    has_values(mix_all_finite(odd), 1, NUMBERS(0));
    has_values(mix_all_finite(tensor(numbers[d], MIX_SHAPE(3), NUMBERS(1, -INFINITY, 2))), 1, NUMBERS(0));
    has_values(mix_all_finite(x), 1, NUMBERS(1));
    has_values(mix_all_finite(mix_fill(MIX_SHAPE(0), 1, numbers[d])), 1, NUMBERS(1));
  }
  mix_tensor *p = bools(MIX_SHAPE(2, 2), (const uint8_t[]){1, 1, 0, 1});
  has_values(mix_reduce_all(p, MIX_AXES(1), false), 2, NUMBERS(1, 0));
  has_values(mix_reduce_any(p, MIX_AXES(0), false), 2, NUMBERS(1, 1));
  has_values(mix_reduce_all(p, MIX_ALL_AXES, false), 1, NUMBERS(0));
  has_values(mix_reduce_any(mix_logical_not(p), MIX_AXES(1), true), 2, NUMBERS(0, 1));
}

/* Storage in 16 bits, accumulation in float32: 8192 ones give 8192. A sum in float16 would stay at 2048, in
 * bfloat16 at 256. In int8 the int64 sum wraps only at the end. */
static void sums_accumulate_wide(void **state) {
  (void)state;
  static const mix_dtype narrow[] = {MIX_FLOAT16, MIX_BFLOAT16};
  for (int d = 0; d < COUNT(narrow); d++) {
    mix_tensor *x = mix_fill(MIX_SHAPE(8192, 2), 1, narrow[d]);
    has_values(mix_reduce_sum(x, MIX_AXES(0), false), 2, NUMBERS(8192, 8192));
    has_values(mix_reduce_sum(x, MIX_ALL_AXES, false), 1, NUMBERS(16384));
    has_values(mix_reduce_mean(x, MIX_ALL_AXES, false), 1, NUMBERS(1));
    has_values(mix_bias_add_gradient(x), 2, NUMBERS(8192, 8192));
    has_values(mix_matmul(mix_fill(MIX_SHAPE(1, 4096), 1, narrow[d]),
                          mix_fill(MIX_SHAPE(4096, 1), 1, narrow[d]), false, false),
               1, NUMBERS(4096));
  }
  /* the mean divides a float32 sum: 4 * 60000 overflows float16 */
  has_values(mix_reduce_mean(mix_fill(MIX_SHAPE(4), 60000, MIX_FLOAT16), MIX_ALL_AXES, false), 1,
             NUMBERS(60000));
  has_values(mix_reduce_sum(mix_fill(MIX_SHAPE(4), 60000, MIX_FLOAT16), MIX_ALL_AXES, false), 1,
             NUMBERS(INFINITY));
  has_values(
      mix_reduce_sum(tensor(MIX_FLOAT16, MIX_SHAPE(3), NUMBERS(60000, 60000, -60000)), MIX_ALL_AXES, false),
      1, NUMBERS(60000));
  has_values(mix_reduce_sum(tensor(MIX_INT8, MIX_SHAPE(3), NUMBERS(100, 100, -90)), MIX_ALL_AXES, false), 1,
             NUMBERS(110));
}

/* Against three loops, for every transposition and for leading dimensions that broadcast. Integers up to 3:
 * sums are below 256. */
static void products(void **state) {
  (void)state;
  enum { BATCH = 2, ROWS = 3, INNER = 5, COLUMNS = 4 };
  static const mix_dtype allowed[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64, MIX_INT32};
  for (int d = 0; d < COUNT(allowed); d++)
    for (int mode = 0; mode < 16; mode++) {
      bool ta = mode & 1, tb = mode & 2, batch_a = mode & 4, batch_b = mode & 8;
      double a[BATCH * ROWS * INNER], b[BATCH * INNER * COLUMNS], wanted[BATCH * ROWS * COLUMNS] = {0};
      for (int i = 0; i < COUNT(a); i++) a[i] = i * 5 % 7 - 3;
      for (int i = 0; i < COUNT(b); i++) b[i] = i * 3 % 5 - 2;
      int batches = batch_a || batch_b ? BATCH : 1;
      for (int n = 0; n < batches; n++)
        for (int i = 0; i < ROWS; i++)
          for (int j = 0; j < COLUMNS; j++)
            for (int k = 0; k < INNER; k++) {
              const double *matrix_a = a + (batch_a ? n * ROWS * INNER : 0),
                           *matrix_b = b + (batch_b ? n * INNER * COLUMNS : 0);
              wanted[(n * ROWS + i) * COLUMNS + j] += matrix_a[ta ? k * ROWS + i : i * INNER + k] *
                                                      matrix_b[tb ? j * INNER + k : k * COLUMNS + j];
            }
      int64_t a1 = ta ? INNER : ROWS, a2 = ta ? ROWS : INNER, b1 = tb ? COLUMNS : INNER,
              b2 = tb ? INNER : COLUMNS;
      mix_shape shape_a = batch_a ? MIX_SHAPE(BATCH, a1, a2) : MIX_SHAPE(a1, a2);
      mix_shape shape_b = batch_b ? MIX_SHAPE(BATCH, b1, b2) : MIX_SHAPE(b1, b2);
      has_values(mix_matmul(tensor(allowed[d], shape_a, a), tensor(allowed[d], shape_b, b), ta, tb),
                 batches * ROWS * COLUMNS, wanted);
    }
}

enum { EXAMPLES = 3, CLASSES = 4 };
static const double some_logits[EXAMPLES * CLASSES] = {0.5, -1, 2, 0.25, 1, 1, 1, 1, -3, 0, 0.5, 4};
static const double some_labels[EXAMPLES * CLASSES] = {0.25, 0.25, 0.5,   0,     1,    0,
                                                       0,    0,    0.125, 0.125, 0.25, 0.5};
static const int some_classes[EXAMPLES] = {2, 0, 3};

/* log(sum(exp)) of a row, in double. */
static double log_sum(const double *row) {
  double sum = 0;
  for (int j = 0; j < CLASSES; j++) sum += exp(row[j]);
  return log(sum);
}

/* Internals in float32: an exponential (4 ulp), a sum of four, a division or logarithm: within 16 u of
 * float32, of values up to 8. Then one rounding to the storage dtype. */
static void close_values(mix_tensor *t, int count, const double *wanted) {
  double got[64], u = unit_roundoff(mix_tensor_dtype(t)),
                  internal = mix_tensor_dtype(t) == MIX_FLOAT64 ? 0x1p-53 : 0x1p-24;
  read_into(t, count, got);
  for (int i = 0; i < count; i++)
    if (!(fabs(got[i] - wanted[i]) <=
          u * fabs(wanted[i]) + 16 * internal * fmax(1, fabs(wanted[i])) + smallest(mix_tensor_dtype(t))))
      fail_msg("%s, %s: element %d is %.9g; expected %.9g", t->node->op->name,
               mix_dtype_name(mix_tensor_dtype(t)), i, got[i], wanted[i]);
}

static void softmax(void **state) {
  (void)state;
  double probabilities[EXAMPLES * CLASSES], logarithms[EXAMPLES * CLASSES];
  for (int i = 0; i < EXAMPLES * CLASSES; i++) {
    logarithms[i] = some_logits[i] - log_sum(some_logits + i / CLASSES * CLASSES);
    probabilities[i] = exp(logarithms[i]);
  }
  for (int d = 0; d < COUNT(floating); d++) {
    mix_tensor *logits = tensor(floating[d], MIX_SHAPE(EXAMPLES, CLASSES), some_logits);
    close_values(mix_softmax(logits), EXAMPLES * CLASSES, probabilities);
    close_values(mix_log_softmax(logits), EXAMPLES * CLASSES, logarithms);
    /* shifted by the largest logit: no overflow */
    mix_tensor *large = tensor(floating[d], MIX_SHAPE(2, 2), NUMBERS(30000, 30000, -30000, 30000));
    has_values(mix_softmax(large), 4, NUMBERS(0.5, 0.5, 0, 1));
    close_values(mix_log_softmax(large), 4,
                 NUMBERS(-M_LN2, -M_LN2, floating[d] == MIX_BFLOAT16 ? -59904 : -60000, 0));
    has_values(mix_softmax(tensor(floating[d], MIX_SHAPE(1, 3), NUMBERS(-INFINITY, 0, -INFINITY))), 3,
               NUMBERS(0, 1, 0));
    has_values(mix_softmax(tensor(floating[d], MIX_SHAPE(1, 2), NUMBERS(NAN, 0))), 2, NUMBERS(NAN, NAN));
  }
}

static void cross_entropies(void **state) {
  (void)state;
  double losses[EXAMPLES], backprop[EXAMPLES * CLASSES], sparse_losses[EXAMPLES],
      sparse_backprop[EXAMPLES * CLASSES];
  for (int i = 0; i < EXAMPLES; i++) {
    const double *row = some_logits + i * CLASSES, *label = some_labels + i * CLASSES;
    losses[i] = 0;
    for (int j = 0; j < CLASSES; j++) {
      losses[i] += label[j] * (log_sum(row) - row[j]);
      backprop[i * CLASSES + j] = exp(row[j] - log_sum(row)) - label[j];
      sparse_backprop[i * CLASSES + j] = exp(row[j] - log_sum(row)) - (j == some_classes[i]);
    }
    sparse_losses[i] = log_sum(row) - row[some_classes[i]];
  }
  for (int d = 0; d < COUNT(floating); d++) {
    mix_tensor *logits = tensor(floating[d], MIX_SHAPE(EXAMPLES, CLASSES), some_logits);
    mix_tensor *loss =
        mix_softmax_cross_entropy(tensor(floating[d], MIX_SHAPE(EXAMPLES, CLASSES), some_labels), logits);
    close_values(loss, EXAMPLES, losses);
    close_values(mix_tensor_of(loss->node, 1), EXAMPLES * CLASSES, backprop);
    for (int k = 0; k < COUNT(integers); k++) {
      loss = mix_sparse_softmax_cross_entropy(tensor(integers[k], MIX_SHAPE(EXAMPLES), NUMBERS(2, 0, 3)),
                                              logits);
      close_values(loss, EXAMPLES, sparse_losses);
      close_values(mix_tensor_of(loss->node, 1), EXAMPLES * CLASSES, sparse_backprop);
    }
  }
}

/* Errors that depend on values are reported by the read and name the wrong value. */
static void fails_when_read(mix_tensor *t, const char *part) {
  char message[1024];
  no_error();
  assert_non_null(t);
  assert_null(mix_tensor_data(t));
  assert_int_equal(mix_error_take(message, sizeof message), MIX_VALUE_ERROR);
  if (!strstr(message, part)) fail_msg("\"%s\" is not in: %s", part, message);
}

static void indices_outside(void **state) {
  (void)state;
  mix_tensor *x = tensor(MIX_FLOAT32, MIX_SHAPE(3, 2), NUMBERS(1, 2, 3, 4, 5, 6));
  for (int side = 0; side < 2; side++) {
    mix_tensor *index = tensor(MIX_INT32, MIX_SHAPE(2), NUMBERS(0, side ? 3 : -1));
    fails_when_read(mix_gather(x, index, 0),
                    side ? "gather: index 3 (element 1) is outside the gathered axis, [0, 3)"
                         : "gather: index -1 (element 1) is outside");
    fails_when_read(
        mix_sparse_softmax_cross_entropy(tensor(MIX_INT32, MIX_SHAPE(3), NUMBERS(0, 1, side ? 2 : -1)), x),
        side ? "sparse_softmax_cross_entropy: label 2 (element 2) is outside the classes, [0, 2): labels are"
             : "sparse_softmax_cross_entropy: label -1 (element 2) is outside the classes");
    has_values(mix_one_hot(index, 3, MIX_FLOAT32), 6, NUMBERS(1, 0, 0, 0, 0, 0)); /* out of range: zeros */
  }
}

static void gathering(void **state) {
  (void)state;
  for (int d = 0; d < COUNT(numbers); d++)
    for (int k = 0; k < COUNT(integers); k++) {
      mix_tensor *x = tensor(numbers[d], MIX_SHAPE(3, 2), NUMBERS(1, 2, 3, 4, 5, 6)),
                 *index = tensor(integers[k], MIX_SHAPE(2, 2), NUMBERS(2, 0, 0, 1));
      has_values(mix_gather(x, index, 0), 8, NUMBERS(5, 6, 1, 2, 1, 2, 3, 4));
      has_values(mix_gather(x, tensor(integers[k], MIX_SHAPE(3), NUMBERS(1, 1, 0)), 1), 9,
                 NUMBERS(2, 2, 1, 4, 4, 3, 6, 6, 5));
      has_values(mix_gather(x, tensor(integers[k], MIX_SCALAR, NUMBERS(1)), 0), 2, NUMBERS(3, 4));
      has_values(mix_one_hot(index, 3, numbers[d]), 12, NUMBERS(0, 0, 1, 1, 0, 0, 1, 0, 0, 0, 1, 0));
      has_values(mix_segment_sum(tensor(numbers[d], MIX_SHAPE(4, 2), NUMBERS(1, 2, 3, 4, 5, 6, 7, 8)),
                                 tensor(integers[k], MIX_SHAPE(4), NUMBERS(1, 3, 1, 0)), 4),
                 8, NUMBERS(7, 8, 6, 8, 0, 0, 3, 4));
      has_values(mix_segment_sum(tensor(numbers[d], MIX_SHAPE(2, 2), NUMBERS(1, 2, 3, 4)), index, 3), 3,
                 NUMBERS(5, 4, 1));
    }
  /* duplicates are added in float32 and rounded once: 2048 + 1 + 1 in float16 */
  has_values(mix_segment_sum(tensor(MIX_FLOAT16, MIX_SHAPE(3), NUMBERS(2048, 1, 1)),
                             tensor(MIX_INT32, MIX_SHAPE(3), NUMBERS(0, 0, 0)), 1),
             1, NUMBERS(2050));
}

static void shapes(void **state) {
  (void)state;
  for (int d = 0; d < COUNT(numbers); d++) {
    mix_dtype t = numbers[d];
    mix_tensor *x = tensor(t, MIX_SHAPE(2, 3), NUMBERS(1, 2, 3, 4, 5, 6));
    has_values(mix_reshape(x, MIX_SHAPE(3, 2)), 6, NUMBERS(1, 2, 3, 4, 5, 6));
    has_values(mix_transpose(x, MIX_ALL_AXES), 6, NUMBERS(1, 4, 2, 5, 3, 6));
    has_values(mix_transpose(tensor(t, MIX_SHAPE(2, 1, 3), NUMBERS(1, 2, 3, 4, 5, 6)), MIX_AXES(2, 0, 1)), 6,
               NUMBERS(1, 4, 2, 5, 3, 6));
    has_values(
        mix_transpose(tensor(t, MIX_SHAPE(2, 2, 2), NUMBERS(1, 2, 3, 4, 5, 6, 7, 8)), MIX_AXES(1, 2, 0)), 8,
        NUMBERS(1, 5, 2, 6, 3, 7, 4, 8));
    has_values(mix_broadcast_to(tensor(t, MIX_SHAPE(2, 1), NUMBERS(1, 2)), MIX_SHAPE(2, 2, 2)), 8,
               NUMBERS(1, 1, 2, 2, 1, 1, 2, 2));
    has_values(mix_concat(3, (mix_tensor *[]){x, x, tensor(t, MIX_SHAPE(2, 1), NUMBERS(7, 8))}, 1), 14,
               NUMBERS(1, 2, 3, 1, 2, 3, 7, 4, 5, 6, 4, 5, 6, 8));
    has_values(mix_concat(2, (mix_tensor *[]){x, tensor(t, MIX_SHAPE(1, 3), NUMBERS(7, 8, 9))}, 0), 9,
               NUMBERS(1, 2, 3, 4, 5, 6, 7, 8, 9));
    has_values(mix_slice(x, MIX_SHAPE(0, 1), MIX_SHAPE(-1, 2)), 4, NUMBERS(2, 3, 5, 6));
    has_values(mix_slice(x, MIX_SHAPE(1, 0), MIX_SHAPE(1, -1)), 3, NUMBERS(4, 5, 6));
    has_values(mix_pad(x, MIX_SHAPE(1, 0), MIX_SHAPE(0, 1), 9), 12,
               NUMBERS(9, 9, 9, 9, 1, 2, 3, 9, 4, 5, 6, 9));
    has_values(mix_pad(x, MIX_SHAPE(0, 1), MIX_SHAPE(0, 0), 0), 8, NUMBERS(0, 1, 2, 3, 0, 4, 5, 6));
    has_values(mix_fill(MIX_SHAPE(3), 5, t), 3, NUMBERS(5, 5, 5));
    has_values(mix_fill(MIX_SCALAR, 5, t), 1, NUMBERS(5));
    has_values(mix_zeros_like(x), 6, NUMBERS(0, 0, 0, 0, 0, 0));
    has_values(mix_ones_like(x), 6, NUMBERS(1, 1, 1, 1, 1, 1));
    has_values(mix_scalar_like(x, 3), 1, NUMBERS(3));
    has_values(mix_range(2, 11, 3, t), 3, NUMBERS(2, 5, 8));
    has_values(mix_expand_dims(x, 1), 6, NUMBERS(1, 2, 3, 4, 5, 6));
  }
  has_values(mix_range(1, 0, -0.25, MIX_FLOAT16), 4, NUMBERS(1, 0.75, 0.5, 0.25));
  has_values(mix_fill(MIX_SHAPE(2), 0.1, MIX_FLOAT16), 2, NUMBERS(0x1.998p-4, 0x1.998p-4));
  mix_tensor *p = bools(MIX_SHAPE(2, 2), (const uint8_t[]){1, 0, 0, 1});
  has_values(mix_transpose(p, MIX_ALL_AXES), 4, NUMBERS(1, 0, 0, 1));
  has_values(mix_concat(2, (mix_tensor *[]){p, p}, 0), 8, NUMBERS(1, 0, 0, 1, 1, 0, 0, 1));
  has_values(mix_slice(p, MIX_SHAPE(0, 0), MIX_SHAPE(1, 2)), 2, NUMBERS(1, 0));
  has_values(mix_broadcast_to(mix_reshape(p, MIX_SHAPE(4)), MIX_SHAPE(2, 4)), 8,
             NUMBERS(1, 0, 0, 1, 1, 0, 0, 1));
}

static void empty_tensors(void **state) {
  (void)state;
  mix_tensor *none = mix_fill(MIX_SHAPE(0, 3), 1, MIX_FLOAT32);
  has_values(mix_add(none, none), 0, NUMBERS(0));
  has_values(mix_reduce_sum(none, MIX_AXES(0), false), 3, NUMBERS(0, 0, 0));
  has_values(mix_reduce_prod(none, MIX_AXES(0), false), 3, NUMBERS(1, 1, 1));
  has_values(mix_concat(2, (mix_tensor *[]){none, tensor(MIX_FLOAT32, MIX_SHAPE(1, 3), NUMBERS(1, 2, 3))}, 0),
             3, NUMBERS(1, 2, 3));
  has_values(mix_matmul(mix_transpose(none, MIX_ALL_AXES), none, false, false), 9,
             NUMBERS(0, 0, 0, 0, 0, 0, 0, 0, 0));
  has_values(mix_softmax(none), 0, NUMBERS(0));
}

static int on_ref(void **state) { return (void)state, mix_set_device("ref") != MIX_OK; }

/* On the default device, then on the scalar reference. */
int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(reductions),      TEST(sums_accumulate_wide), TEST(products),  TEST(softmax),
      TEST(cross_entropies), TEST(indices_outside),      TEST(gathering), TEST(shapes),
      TEST(empty_tensors),
  };
  int failed = cmocka_run_group_tests_name("ops/values_of_arrays", tests, NULL, NULL);
  return failed + cmocka_run_group_tests_name("ops/values_of_arrays on ref", tests, on_ref, NULL);
}
