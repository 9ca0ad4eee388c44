/* The reference kernels other than element-wise programs, on numbers worked out by hand or by a plain formula
 * in long double. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/host/kernel.h"
#include "backend/run_op.h"
#include <math.h>

static const mix_dtype floats[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64};
enum { FLOATS = 4 };

static double unit(mix_dtype dtype) {
  return dtype == MIX_FLOAT16    ? 0x1p-11
         : dtype == MIX_BFLOAT16 ? 0x1p-8
         : dtype == MIX_FLOAT32  ? 0x1p-24
                                 : 0x1p-53;
}

/* Runs an op with one result on the reference, frees the operands and returns the result. */
static operand ref(const mix_op *op, const void *attributes, int count, operand *inputs, mix_dtype dtype,
                   mix_shape shape) {
  operand out = operand_of(dtype, shape, NULL);
  assert_int_equal(run_step(&mix_backend_ref, 1, op, attributes, NULL, count, inputs, 1, &out), MIX_OK);
  free_operands(count, inputs);
  return out;
}

static void assert_values(operand x, const double *expected) {
  for (int64_t i = 0; i < mix_shape_size(x.shape); i++) {
    double got =
        mix_dtype_is_floating(x.dtype) ? element(x, i) : (double)mix_load_integer(x.data, x.dtype, i);
    if (isnan(expected[i]) ? !isnan(got) : got != expected[i])
      fail_msg("element %d: %.17g, expected %.17g", (int)i, got, expected[i]);
  }
  free(x.data);
}

static operand reduce(const mix_op *op, operand x, int axis_count, int first, int second, mix_shape result) {
  mix_reduce_attributes attributes = {.axis_count = axis_count, .axes = {first, second}};
  return ref(op, &attributes, 1, &x, x.dtype, result);
}

static void reductions(void **state) {
  (void)state;
  const double x[12] = {1, 2, 3, 4, 5, 6, -1, -2, -3, -4, -5, 7}; /* (2, 3, 2) */
  for (int d = 0; d < FLOATS; d++) {
    mix_dtype dtype = floats[d];
    mix_shape shape = MIX_SHAPE(2, 3, 2);
    assert_values(reduce(&mix_op_reduce_sum, operand_of(dtype, shape, x), 1, 1, 0, MIX_SHAPE(2, 2)),
                  NUMBERS(9, 12, -9, 1));
    assert_values(reduce(&mix_op_reduce_sum, operand_of(dtype, shape, x), 2, 0, 2, MIX_SHAPE(3)),
                  NUMBERS(0, 0, 13));
    assert_values(reduce(&mix_op_reduce_mean, operand_of(dtype, shape, x), 1, 2, 0, MIX_SHAPE(2, 3, 1)),
                  NUMBERS(1.5, 3.5, 5.5, -1.5, -3.5, 1));
    assert_values(reduce(&mix_op_reduce_prod, operand_of(dtype, shape, x), 1, 0, 0, MIX_SHAPE(3, 2)),
                  NUMBERS(-1, -4, -9, -16, -25, 42));
    assert_values(reduce(&mix_op_reduce_max, operand_of(dtype, shape, x), 2, 0, 1, MIX_SHAPE(2)),
                  NUMBERS(5, 7));
    assert_values(reduce(&mix_op_reduce_min, operand_of(dtype, shape, x), 1, 1, 0, MIX_SHAPE(2, 2)),
                  NUMBERS(1, 2, -5, -4));
    assert_values(
        reduce(&mix_op_reduce_max, operand_of(dtype, MIX_SHAPE(3), NUMBERS(1, NAN, 3)), 1, 0, 0, MIX_SCALAR),
        NUMBERS(NAN));
    assert_values(
        reduce(&mix_op_reduce_min, operand_of(dtype, MIX_SHAPE(3), NUMBERS(NAN, 2, 3)), 1, 0, 0, MIX_SCALAR),
        NUMBERS(NAN));
    assert_values(reduce(&mix_op_reduce_sum, operand_of(dtype, MIX_SCALAR, x), 0, 0, 0, MIX_SCALAR),
                  NUMBERS(1));
    assert_values(reduce(&mix_op_reduce_sum, operand_of(dtype, MIX_SHAPE(0, 2), NULL), 1, 0, 0, MIX_SHAPE(2)),
                  NUMBERS(0, 0));
    assert_values(reduce(&mix_op_reduce_max, operand_of(dtype, MIX_SHAPE(0), NULL), 1, 0, 0, MIX_SCALAR),
                  NUMBERS(-INFINITY));
    operand y = operand_of(dtype, shape, x);
    assert_values(ref(&mix_op_bias_add_grad, NULL, 1, &y, dtype, MIX_SHAPE(2)), NUMBERS(0, 13));
  }
  double ones[70000]; /* a float16 mean for which neither the sum nor the count is a float16 number */
  for (int i = 0; i < 70000; i++) ones[i] = 1;
  assert_values(
      reduce(&mix_op_reduce_mean, operand_of(MIX_FLOAT16, MIX_SHAPE(70000), ones), 1, 0, 0, MIX_SCALAR),
      NUMBERS(1));
}

static void integer_and_bool_reductions(void **state) {
  (void)state;
  mix_shape four = MIX_SHAPE(4);
  assert_values(
      reduce(&mix_op_reduce_sum, operand_of(MIX_INT8, four, NUMBERS(100, 27, 1, 1)), 1, 0, 0, MIX_SCALAR),
      NUMBERS(-127));
  assert_values(
      reduce(&mix_op_reduce_max, operand_of(MIX_INT8, four, NUMBERS(-5, -7, -3, -9)), 1, 0, 0, MIX_SCALAR),
      NUMBERS(-3));
  assert_values(reduce(&mix_op_reduce_min, operand_of(MIX_UINT8, four, NUMBERS(200, 250, 255, 201)), 1, 0, 0,
                       MIX_SCALAR),
                NUMBERS(200));
  assert_values(
      reduce(&mix_op_reduce_prod, operand_of(MIX_INT32, four, NUMBERS(2, -3, 5, 7)), 1, 0, 0, MIX_SCALAR),
      NUMBERS(-210));
  mix_shape two = MIX_SHAPE(2, 2);
  assert_values(
      reduce(&mix_op_reduce_all, operand_of(MIX_BOOL, two, NUMBERS(1, 1, 1, 0)), 1, 1, 0, MIX_SHAPE(2)),
      NUMBERS(1, 0));
  assert_values(
      reduce(&mix_op_reduce_any, operand_of(MIX_BOOL, two, NUMBERS(0, 0, 1, 0)), 1, 1, 0, MIX_SHAPE(2)),
      NUMBERS(0, 1));
  assert_values(reduce(&mix_op_reduce_all, operand_of(MIX_BOOL, MIX_SHAPE(0), NULL), 1, 0, 0, MIX_SCALAR),
                NUMBERS(1));
  assert_values(reduce(&mix_op_reduce_any, operand_of(MIX_BOOL, MIX_SHAPE(0), NULL), 1, 0, 0, MIX_SCALAR),
                NUMBERS(0));
  int64_t smallest = INT64_MIN, result;
  operand in = {MIX_INT64, MIX_SHAPE(1), &smallest}, out = {MIX_INT64, MIX_SCALAR, &result};
  mix_reduce_attributes attributes = {.axis_count = 1};
  assert_int_equal(run_step(&mix_backend_ref, 1, &mix_op_reduce_max, &attributes, NULL, 1, &in, 1, &out),
                   MIX_OK);
  assert_true(result == INT64_MIN);
}

static void sums_of_tensors(void **state) {
  (void)state;
  operand f16[3] = {operand_of(MIX_FLOAT16, MIX_SHAPE(2), NUMBERS(2048, 60000)),
                    operand_of(MIX_FLOAT16, MIX_SHAPE(2), NUMBERS(1, 60000)),
                    operand_of(MIX_FLOAT16, MIX_SHAPE(2), NUMBERS(1, -60000))};
  assert_values(ref(&mix_op_add_n, NULL, 3, f16, MIX_FLOAT16, MIX_SHAPE(2)), NUMBERS(2050, 60000));
  operand i8[2] = {operand_of(MIX_INT8, MIX_SHAPE(2), NUMBERS(100, -100)),
                   operand_of(MIX_INT8, MIX_SHAPE(2), NUMBERS(100, 1))};
  assert_values(ref(&mix_op_add_n, NULL, 2, i8, MIX_INT8, MIX_SHAPE(2)), NUMBERS(-56, -99));
}

static operand position(const mix_op *op, operand x, int axis, mix_shape result) {
  mix_axis_attributes attributes = {axis};
  return ref(op, &attributes, 1, &x, MIX_INT64, result);
}

static void positions_of_extremes(void **state) {
  (void)state;
  const double x[6] = {1, 5, 5, 7, -2, 7};
  static const mix_dtype dtypes[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32,
                                     MIX_FLOAT64, MIX_INT8,     MIX_INT64};
  for (int d = 0; d < 6; d++) {
    assert_values(position(&mix_op_argmax, operand_of(dtypes[d], MIX_SHAPE(2, 3), x), 1, MIX_SHAPE(2)),
                  NUMBERS(1, 0));
    assert_values(position(&mix_op_argmin, operand_of(dtypes[d], MIX_SHAPE(2, 3), x), 1, MIX_SHAPE(2)),
                  NUMBERS(0, 1));
    assert_values(position(&mix_op_argmax, operand_of(dtypes[d], MIX_SHAPE(2, 3), x), 0, MIX_SHAPE(3)),
                  NUMBERS(1, 0, 1));
  }
  assert_values(position(&mix_op_argmax,
                         operand_of(MIX_FLOAT16, MIX_SHAPE(5), NUMBERS(1, INFINITY, NAN, 3, NAN)), 0,
                         MIX_SCALAR),
                NUMBERS(2));
  assert_values(position(&mix_op_argmin, operand_of(MIX_FLOAT32, MIX_SHAPE(3), NUMBERS(-INFINITY, 0, NAN)), 0,
                         MIX_SCALAR),
                NUMBERS(2));
}

static void finite_test(void **state) {
  (void)state;
  for (int d = 0; d < FLOATS; d++) {
    operand good = operand_of(floats[d], MIX_SHAPE(2, 2), NUMBERS(1, -2, 0, 0.5)),
            bad = operand_of(floats[d], MIX_SHAPE(3), NUMBERS(1, -INFINITY, 0));
    assert_values(ref(&mix_op_all_finite, NULL, 1, &good, MIX_BOOL, MIX_SCALAR), NUMBERS(1));
    assert_values(ref(&mix_op_all_finite, NULL, 1, &bad, MIX_BOOL, MIX_SCALAR), NUMBERS(0));
  }
}

/* ---- products ---- */

/* Integers so small that every sum is exact in every dtype: tolerance 0. */
static void matmul_in_every_layout_and_dtype(void **state) {
  (void)state;
  enum { M = 3, K = 5, N = 4 };
  static const mix_dtype dtypes[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64, MIX_INT32};
  for (int d = 0; d < 5; d++)
    for (int layout = 0; layout < 4; layout++) {
      mix_matmul_attributes attributes = {layout & 1, layout >> 1};
      double a[M * K], b[K * N], expected[M * N];
      for (int i = 0; i < M; i++)
        for (int p = 0; p < K; p++)
          a[attributes.transpose_a ? p * M + i : i * K + p] = (i * 3 + p * 2) % 5 - 2;
      for (int p = 0; p < K; p++)
        for (int j = 0; j < N; j++) b[attributes.transpose_b ? j * K + p : p * N + j] = (p + j * 4) % 7 - 3;
      for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
          expected[i * N + j] = 0;
          for (int p = 0; p < K; p++)
            expected[i * N + j] += ((i * 3 + p * 2) % 5 - 2) * ((p + j * 4) % 7 - 3);
        }
      operand in[2] = {operand_of(dtypes[d], attributes.transpose_a ? MIX_SHAPE(K, M) : MIX_SHAPE(M, K), a),
                       operand_of(dtypes[d], attributes.transpose_b ? MIX_SHAPE(N, K) : MIX_SHAPE(K, N), b)};
      assert_values(ref(&mix_op_matmul, &attributes, 2, in, dtypes[d], MIX_SHAPE(M, N)), expected);
    }
}

static void matmul_rounds_once(void **state) {
  (void)state;
  mix_matmul_attributes plain = {0};
  /* 2048 + 1 + 1: a float16 accumulator would stay at 2048. 300 * 300 - 300 * 300 + 1: it would overflow. */
  operand sum[2] = {operand_of(MIX_FLOAT16, MIX_SHAPE(1, 3), NUMBERS(2048, 1, 1)),
                    operand_of(MIX_FLOAT16, MIX_SHAPE(3, 1), NUMBERS(1, 1, 1))};
  assert_values(ref(&mix_op_matmul, &plain, 2, sum, MIX_FLOAT16, MIX_SHAPE(1, 1)), NUMBERS(2050));
  operand big[2] = {operand_of(MIX_FLOAT16, MIX_SHAPE(1, 3), NUMBERS(300, -300, 1)),
                    operand_of(MIX_FLOAT16, MIX_SHAPE(3, 1), NUMBERS(300, 300, 1))};
  assert_values(ref(&mix_op_matmul, &plain, 2, big, MIX_FLOAT16, MIX_SHAPE(1, 1)), NUMBERS(1));
  operand over[2] = {operand_of(MIX_FLOAT16, MIX_SHAPE(1, 1), NUMBERS(300)),
                     operand_of(MIX_FLOAT16, MIX_SHAPE(1, 1), NUMBERS(300))};
  assert_values(ref(&mix_op_matmul, &plain, 2, over, MIX_FLOAT16, MIX_SHAPE(1, 1)), NUMBERS(INFINITY));
  operand wrap[2] = {operand_of(MIX_INT32, MIX_SHAPE(1, 1), NUMBERS(65536)),
                     operand_of(MIX_INT32, MIX_SHAPE(1, 1), NUMBERS(65537))};
  assert_values(ref(&mix_op_matmul, &plain, 2, wrap, MIX_INT32, MIX_SHAPE(1, 1)), NUMBERS(65536));
  operand none[2] = {operand_of(MIX_FLOAT32, MIX_SHAPE(2, 0), NULL),
                     operand_of(MIX_FLOAT32, MIX_SHAPE(0, 2), NULL)};
  assert_values(ref(&mix_op_matmul, &plain, 2, none, MIX_FLOAT32, MIX_SHAPE(2, 2)), NUMBERS(0, 0, 0, 0));
}

/* (2, 1, 1, 2) x (3, 2, 1) -> (2, 3, 1, 1). */
static void batches_broadcast(void **state) {
  (void)state;
  mix_matmul_attributes plain = {0};
  operand in[2] = {operand_of(MIX_FLOAT32, MIX_SHAPE(2, 1, 1, 2), NUMBERS(1, 2, 3, 4)),
                   operand_of(MIX_FLOAT32, MIX_SHAPE(3, 2, 1), NUMBERS(1, 0, 0, 1, 10, 100))};
  assert_values(ref(&mix_op_batch_matmul, &plain, 2, in, MIX_FLOAT32, MIX_SHAPE(2, 3, 1, 1)),
                NUMBERS(1, 2, 210, 3, 4, 430));
}

/* Holds docs/NUMERICS.md: Element-wise operations. */
/* relu(round16(x w) + bias) in float16, with the sum cast to float32 as a second result. 2049 x 1 rounds
 * before the bias is added. */
static void epilogue_sees_the_rounded_product(void **state) {
  (void)state;
  mix_matmul_attributes plain = {0};
  operand in[3] = {operand_of(MIX_FLOAT16, MIX_SHAPE(2, 2), NUMBERS(2048, 1, -3, 1)),
                   operand_of(MIX_FLOAT16, MIX_SHAPE(2, 2), NUMBERS(1, 2, 1, 0)),
                   operand_of(MIX_FLOAT16, MIX_SHAPE(2), NUMBERS(1, 2))};
  operand out[2] = {operand_of(MIX_FLOAT16, MIX_SHAPE(2, 2), NULL),
                    operand_of(MIX_FLOAT32, MIX_SHAPE(2, 2), NULL)};
  mix_program_load loads[] = {{MIX_FROM_ACCUMULATOR, MIX_FLOAT16, {0}}, {2, MIX_FLOAT16, {0, 1}}};
  mix_instruction instructions[] = {{MIX_OPCODE_ADD, MIX_FLOAT16, {0, 1}, 0},
                                    {MIX_OPCODE_RELU, MIX_FLOAT16, {2}, 0},
                                    {MIX_OPCODE_CAST, MIX_FLOAT32, {2}, 0}};
  mix_program_store stores[] = {{0, 3}, {1, 4}};
  mix_program program = {.rank = 2,
                         .dims = {2, 2},
                         .load_count = 2,
                         .instruction_count = 3,
                         .store_count = 2,
                         .loads = loads,
                         .instructions = instructions,
                         .stores = stores};
  assert_int_equal(run_step(&mix_backend_ref, 1, &mix_op_matmul, &plain, &program, 3, in, 2, out), MIX_OK);
  free_operands(3, in);
  /* products: 2049 -> 2048, 4096; -2, -6 */
  assert_values(out[0],
                NUMBERS(2048 /* 2049 again */, 4096 /* 4098, between 4096 and 4100, ties to even */, 0, 0));
  assert_values(out[1], NUMBERS(2048, 4096, -1, -4));
}

/* ---- softmax and cross-entropies ---- */

static void softmax_rows(void **state) {
  (void)state;
  const double x[6] = {1, 2, 3, -1000, 0, 1000};
  for (int d = 0; d < FLOATS; d++) {
    double bound = 1.1 * unit(floats[d]); /* one rounding of a result computed in double */
    for (int logarithm = 0; logarithm < 2; logarithm++) {
      operand in = operand_of(floats[d], MIX_SHAPE(2, 3), x);
      operand y =
          ref(logarithm ? &mix_op_log_softmax : &mix_op_softmax, NULL, 1, &in, floats[d], MIX_SHAPE(2, 3));
      for (int i = 0; i < 6; i++) {
        long double sum = 0;
        for (int j = 0; j < 3; j++) sum += expl((long double)(x[i / 3 * 3 + j] - x[i]));
        double expected = (double)(logarithm ? -logl(sum) : 1 / sum);
        assert_true(fabs(element(y, i) - expected) <=
                    bound * fabs(expected) + 1e-300 + (floats[d] == MIX_FLOAT64 ? 1e-15 : 0));
      }
      free(y.data);
    }
    operand bad = operand_of(floats[d], MIX_SHAPE(1, 3), NUMBERS(1, NAN, 2)),
            infinite = operand_of(floats[d], MIX_SHAPE(1, 2), NUMBERS(0, INFINITY));
    assert_values(ref(&mix_op_softmax, NULL, 1, &bad, floats[d], MIX_SHAPE(1, 3)), NUMBERS(NAN, NAN, NAN));
    assert_values(ref(&mix_op_softmax, NULL, 1, &infinite, floats[d], MIX_SHAPE(1, 2)), NUMBERS(NAN, NAN));
    operand masked = operand_of(floats[d], MIX_SHAPE(1, 3), NUMBERS(0, -INFINITY, 0));
    assert_values(ref(&mix_op_softmax, NULL, 1, &masked, floats[d], MIX_SHAPE(1, 3)), NUMBERS(0.5, 0, 0.5));
  }
}

static mix_status cross_entropy(const mix_op *op, operand logits, operand labels, operand *losses,
                                operand *backprop) {
  mix_shape shape = logits.shape;
  shape.rank--;
  *losses = operand_of(logits.dtype, shape, NULL);
  *backprop = operand_of(logits.dtype, logits.shape, NULL);
  operand in[2] = {logits, labels}, out[2] = {*losses, *backprop};
  mix_status status = run_step(&mix_backend_ref, 1, op, NULL, NULL, 2, in, 2, out);
  free_operands(2, in);
  return status;
}

static void cross_entropies(void **state) {
  (void)state;
  const double x[6] = {1, 2, 3, 100, -100, 0.5}, soft[6] = {0.25, 0.25, 0.5, 1, 0, 0};
  for (int d = 0; d < FLOATS; d++) {
    /* Rounded once from double: half an ulp of the result, plus double's own error, which the cancellation in
     * softmax - 1 leaves. */
    double bound = 1.01 * unit(floats[d]), slack = 1e-13;
    operand losses, backprop;
    for (int sparse = 0; sparse < 2; sparse++) {
      operand logits = operand_of(floats[d], MIX_SHAPE(2, 3), x);
      operand labels = sparse ? operand_of(MIX_UINT8, MIX_SHAPE(2), NUMBERS(2, 0))
                              : operand_of(floats[d], MIX_SHAPE(2, 3), soft);
      const mix_op *op = sparse ? &mix_op_sparse_softmax_cross_entropy : &mix_op_softmax_cross_entropy;
      assert_int_equal(cross_entropy(op, logits, labels, &losses, &backprop), MIX_OK);
      for (int i = 0; i < 2; i++) {
        long double sum = 0, loss = 0;
        for (int j = 0; j < 3; j++) sum += expl((long double)x[i * 3 + j]);
        for (int j = 0; j < 3; j++) {
          long double label = sparse ? j == (i ? 0 : 2) : soft[i * 3 + j],
                      p = expl((long double)x[i * 3 + j]) / sum;
          loss += label * (logl(sum) - x[i * 3 + j]);
          double gradient = (double)(p - label);
          /* float16 holds multiples of 2^-24 */
          assert_true(fabs(element(backprop, i * 3 + j) - gradient) <=
                      bound * fabs(gradient) + slack + (floats[d] == MIX_FLOAT16 ? 0x1p-25 : 0));
        }
        assert_true(fabs(element(losses, i) - (double)loss) <=
                    bound * (double)loss + slack + (floats[d] == MIX_FLOAT16 ? 0x1p-25 : 0));
      }
      free(losses.data);
      free(backprop.data);
    }
  }
}

static void a_label_outside_the_classes_is_an_error(void **state) {
  (void)state;
  for (int d = 0; d < FLOATS; d++) {
    operand losses, backprop, logits = operand_of(floats[d], MIX_SHAPE(3, 2), NUMBERS(0, 0, 0, 0, 0, 0));
    operand labels = operand_of(MIX_INT32, MIX_SHAPE(3), NUMBERS(1, 2, -1));
    assert_int_equal(cross_entropy(&mix_op_sparse_softmax_cross_entropy, logits, labels, &losses, &backprop),
                     MIX_VALUE_ERROR);
    assert_non_null(strstr(mix_error_message(), "label 2 (element 1) is outside the classes, [0, 2)"));
    assert_non_null(strstr(mix_error_message(), "sparse_softmax_cross_entropy in model/layer"));
    mix_error_clear();
    assert_true(isnan(element(losses, 1)) && isnan(element(losses, 2)) && !isnan(element(losses, 0)));
    assert_values(backprop, NUMBERS(0.5, -0.5, NAN, NAN, NAN, NAN));
    free(losses.data);
  }
}

/* ---- rows by index ---- */

static void gathering(void **state) {
  (void)state;
  static const mix_dtype dtypes[] = {MIX_FLOAT16, MIX_FLOAT64, MIX_INT8, MIX_BOOL, MIX_INT64};
  for (int d = 0; d < 5; d++) {
    const double x[6] = {0, 1, 1, 0, 1, 1}; /* (3, 2) */
    operand rows[2] = {operand_of(dtypes[d], MIX_SHAPE(3, 2), x),
                       operand_of(MIX_INT64, MIX_SHAPE(2, 2), NUMBERS(2, 0, 1, 1))};
    assert_values(ref(&mix_op_gather, &(mix_axis_attributes){0}, 2, rows, dtypes[d], MIX_SHAPE(2, 2, 2)),
                  NUMBERS(1, 1, 0, 1, 1, 0, 1, 0));
    operand columns[2] = {operand_of(dtypes[d], MIX_SHAPE(3, 2), x),
                          operand_of(MIX_UINT8, MIX_SHAPE(1), NUMBERS(1))};
    assert_values(ref(&mix_op_gather, &(mix_axis_attributes){1}, 2, columns, dtypes[d], MIX_SHAPE(3, 1)),
                  NUMBERS(1, 0, 1));
  }
  operand in[2] = {operand_of(MIX_FLOAT32, MIX_SHAPE(2), NUMBERS(5, 6)),
                   operand_of(MIX_INT32, MIX_SHAPE(2), NUMBERS(1, 2))};
  operand out = operand_of(MIX_FLOAT32, MIX_SHAPE(2), NULL);
  assert_int_equal(
      run_step(&mix_backend_ref, 1, &mix_op_gather, &(mix_axis_attributes){0}, NULL, 2, in, 1, &out),
      MIX_VALUE_ERROR);
  mix_error_clear();
  free_operands(2, in);
  assert_values(out, NUMBERS(6, 0));
}

/* Operands without elements are NULL, which memcpy and memset may not get (the undefined behaviour sanitizer
 * says so); an index outside is an error all the same. */
static void rows_without_elements(void **state) {
  (void)state;
  const double indices[2][2] = {{2, 0}, {2, 3}};
  for (int i = 0; i < 2; i++) {
    operand in[2] = {{MIX_FLOAT32, MIX_SHAPE(3, 0), NULL}, operand_of(MIX_INT32, MIX_SHAPE(2), indices[i])};
    const operand out = {MIX_FLOAT32, MIX_SHAPE(2, 0), NULL}, sums = {MIX_FLOAT32, MIX_SHAPE(3, 0), NULL};
    const mix_status expected = i ? MIX_VALUE_ERROR : MIX_OK;
    assert_int_equal(
        run_step(&mix_backend_ref, 1, &mix_op_gather, &(mix_axis_attributes){0}, NULL, 2, in, 1, &out),
        expected);
    mix_error_clear();
    in[0].shape = MIX_SHAPE(2, 0);
    assert_int_equal(run_step(&mix_backend_ref, 1, &mix_op_segment_sum, &(mix_segment_attributes){3}, NULL, 2,
                              in, 1, &sums),
                     expected);
    mix_error_clear();
    free_operands(2, in);
  }
}

static void segment_sums(void **state) {
  (void)state;
  operand in[2] = {operand_of(MIX_FLOAT16, MIX_SHAPE(3, 2), NUMBERS(2048, 1, 1, 2, 1, 4)),
                   operand_of(MIX_INT32, MIX_SHAPE(3), NUMBERS(2, 2, 2))};
  assert_values(ref(&mix_op_segment_sum, &(mix_segment_attributes){3}, 2, in, MIX_FLOAT16, MIX_SHAPE(3, 2)),
                NUMBERS(0, 0, 0, 0, 2050, 7));
  operand bad[2] = {operand_of(MIX_INT32, MIX_SHAPE(2), NUMBERS(3, 4)),
                    operand_of(MIX_INT64, MIX_SHAPE(2), NUMBERS(-1, 1))};
  operand out = operand_of(MIX_INT32, MIX_SHAPE(2), NULL);
  assert_int_equal(
      run_step(&mix_backend_ref, 1, &mix_op_segment_sum, &(mix_segment_attributes){2}, NULL, 2, bad, 1, &out),
      MIX_VALUE_ERROR);
  mix_error_clear();
  free_operands(2, bad);
  assert_values(out, NUMBERS(0, 4));
}

static void one_hot_rows(void **state) {
  (void)state;
  operand in = operand_of(MIX_INT8, MIX_SHAPE(3), NUMBERS(1, -1, 2));
  assert_values(
      ref(&mix_op_one_hot, &(mix_one_hot_attributes){2, MIX_BFLOAT16}, 1, &in, MIX_BFLOAT16, MIX_SHAPE(3, 2)),
      NUMBERS(0, 1, 0, 0, 0, 0));
}

/* ---- shapes ---- */

static void other_bits(void **state) {
  (void)state;
  operand a = operand_of(MIX_FLOAT32, MIX_SHAPE(1, 2), NUMBERS(1, -2));
  const mix_cast_attributes to = {MIX_INT16};
  assert_values(ref(&mix_op_bitcast, &to, 1, &a, MIX_INT16, MIX_SHAPE(1, 4)), NUMBERS(0, 0x3f80, 0, -0x4000));
}

static void moving_elements(void **state) {
  (void)state;
  const double x[6] = {1, 2, 3, 4, 5, 6};
  static const mix_dtype dtypes[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64,
                                     MIX_INT8,    MIX_INT16,    MIX_INT64,   MIX_UINT8};
  for (int d = 0; d < 8; d++) {
    mix_dtype t = dtypes[d];
    operand a = operand_of(t, MIX_SHAPE(2, 3), x);
    assert_values(ref(&mix_op_transpose, &(mix_transpose_attributes){{1, 0}}, 1, &a, t, MIX_SHAPE(3, 2)),
                  NUMBERS(1, 4, 2, 5, 3, 6));
    a = operand_of(t, MIX_SHAPE(1, 2, 3), x); /* result axis i is axis permutation[i] of x */
    assert_values(
        ref(&mix_op_transpose, &(mix_transpose_attributes){{2, 0, 1}}, 1, &a, t, MIX_SHAPE(3, 1, 2)),
        NUMBERS(1, 4, 2, 5, 3, 6));
    a = operand_of(t, MIX_SHAPE(2, 1), NUMBERS(1, 2));
    assert_values(ref(&mix_op_broadcast_to, &(mix_shape_attributes){0}, 1, &a, t, MIX_SHAPE(2, 2, 3)),
                  NUMBERS(1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2));
    a = operand_of(t, MIX_SHAPE(2, 3), x);
    assert_values(ref(&mix_op_slice, &(mix_slice_attributes){MIX_SHAPE(0, 1), MIX_SHAPE(2, 2)}, 1, &a, t,
                      MIX_SHAPE(2, 2)),
                  NUMBERS(2, 3, 5, 6));
    a = operand_of(t, MIX_SHAPE(1, 2), NUMBERS(1, 2));
    assert_values(ref(&mix_op_pad, &(mix_pad_attributes){MIX_SHAPE(1, 0), MIX_SHAPE(0, 1), 7}, 1, &a, t,
                      MIX_SHAPE(2, 3)),
                  NUMBERS(7, 7, 7, 1, 2, 7));
    a = operand_of(t, MIX_SHAPE(2, 3), x);
    assert_values(ref(&mix_op_reshape, &(mix_shape_attributes){0}, 1, &a, t, MIX_SHAPE(6)), x);
    operand two[2] = {operand_of(t, MIX_SHAPE(2, 1), NUMBERS(1, 2)),
                      operand_of(t, MIX_SHAPE(2, 2), NUMBERS(3, 4, 5, 6))};
    assert_values(ref(&mix_op_concat, &(mix_axis_attributes){1}, 2, two, t, MIX_SHAPE(2, 3)),
                  NUMBERS(1, 3, 4, 2, 5, 6));
    assert_values(ref(&mix_op_fill, &(mix_shape_attributes){.value = 3}, 0, NULL, t, MIX_SHAPE(2)),
                  NUMBERS(3, 3));
    assert_values(ref(&mix_op_range, &(mix_range_attributes){1, 2, 3, t}, 0, NULL, t, MIX_SHAPE(3)),
                  NUMBERS(1, 3, 5));
  }
  assert_values(
      ref(&mix_op_fill, &(mix_shape_attributes){.value = INFINITY}, 0, NULL, MIX_FLOAT16, MIX_SHAPE(1)),
      NUMBERS(INFINITY));
}

/* ---- random numbers ---- */

static operand drawn(const mix_op *op, int64_t key, int64_t counter, mix_dtype dtype, int64_t count) {
  int64_t *numbers = malloc(2 * sizeof *numbers);
  numbers[0] = key;
  numbers[1] = counter;
  operand in = {MIX_INT64, MIX_SHAPE(2), numbers};
  mix_shape_attributes attributes = {.shape = MIX_SHAPE(count), .dtype = dtype};
  return ref(op, &attributes, 1, &in, dtype, attributes.shape);
}

/* Mean and variance of n draws differ by at most 5 standard deviations: sqrt(variance / n), and
 * sqrt((kurtosis - 1) / n) variance. */
static void assert_moments(operand x, double mean, double variance, double kurtosis) {
  double n = (double)mix_shape_size(x.shape), sum = 0, squares = 0;
  for (int64_t i = 0; i < mix_shape_size(x.shape); i++) sum += element(x, i);
  for (int64_t i = 0; i < mix_shape_size(x.shape); i++) squares += pow(element(x, i) - sum / n, 2);
  double rounding = unit(x.dtype); /* bfloat16 uniforms round down: this moves the mean by less than */
  assert_true(fabs(sum / n - mean) < 5 * sqrt(variance / n) + rounding);
  assert_true(fabs(squares / n - variance) < 5 * sqrt((kurtosis - 1) / n) * variance + rounding);
}

static void random_numbers(void **state) {
  (void)state;
  enum { N = 20000 };
  /* Var of a normal cut at +-2: 1 - 2 * 2 phi(2) / (2 Phi(2) - 1); its kurtosis is below 3. */
  double phi = exp(-2) / sqrt(2 * acos(-1)), inside = erf(sqrt(2)), cut = 1 - 4 * phi / inside;
  for (int d = 0; d < FLOATS; d++) {
    operand uniform = drawn(&mix_op_random_uniform, 7, 3, floats[d], N),
            again = drawn(&mix_op_random_uniform, 7, 3, floats[d], N);
    operand other = drawn(&mix_op_random_uniform, 7, 4, floats[d], N),
            normal = drawn(&mix_op_random_normal, 7, 3, floats[d], N);
    operand truncated = drawn(&mix_op_random_truncated_normal, 7, 3, floats[d], N);
    assert_memory_equal(uniform.data, again.data, N * mix_dtype_size(floats[d]));
    assert_memory_not_equal(uniform.data, other.data, N * mix_dtype_size(floats[d]));
    double reach = 0;
    for (int i = 0; i < N; i++) {
      assert_true(element(uniform, i) >= 0 && element(uniform, i) < 1);
      assert_true(fabs(element(truncated, i)) <= 2);
      reach = fmax(reach, fabs(element(normal, i)));
    }
    assert_true(reach > 3); /* P(none of 20000 beyond 3) = 0.9973^20000, about 1e-24 */
    assert_moments(uniform, 0.5, 1.0 / 12, 1.8);
    assert_moments(normal, 0, 1, 3);
    assert_moments(truncated, 0, cut, 3);
    operand all[] = {uniform, again, other, normal, truncated};
    free_operands(5, all);
  }
}

/* The 16-bit numbers are the float32 numbers rounded down: at most one ulp below, never above. */
static void narrow_uniforms_round_down(void **state) {
  (void)state;
  enum { N = 5000 };
  operand wide = drawn(&mix_op_random_uniform, 1, 0, MIX_FLOAT32, N);
  for (int d = 0; d < 2; d++) {
    operand narrow = drawn(&mix_op_random_uniform, 1, 0, floats[d], N);
    for (int i = 0; i < N; i++) {
      double x = element(wide, i), y = element(narrow, i);
      assert_true(y <= x && x - y < 2 * unit(floats[d]) * x);
    }
    free(narrow.data);
  }
  free(wide.data);
}

/* Element-wise ops run as programs. */
static void every_op_has_a_kernel(void **state) {
  (void)state;
  for (int i = 0; mix_all_ops[i]; i++) {
    bool found = mix_all_ops[i]->flags & (MIX_OP_SOURCE | MIX_OP_ELEMENTWISE);
    for (const mix_kernel_row *row = mix_ref_kernels; row->op; row++) found |= row->op == mix_all_ops[i];
    if (!found) fail_msg("%s has no kernel: see src/ops/list.h", mix_all_ops[i]->name);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_op_has_a_kernel),
      cmocka_unit_test(reductions),
      cmocka_unit_test(integer_and_bool_reductions),
      cmocka_unit_test(sums_of_tensors),
      cmocka_unit_test(positions_of_extremes),
      cmocka_unit_test(finite_test),
      cmocka_unit_test(matmul_in_every_layout_and_dtype),
      cmocka_unit_test(matmul_rounds_once),
      cmocka_unit_test(batches_broadcast),
      cmocka_unit_test(epilogue_sees_the_rounded_product),
      cmocka_unit_test(softmax_rows),
      cmocka_unit_test(cross_entropies),
      cmocka_unit_test(a_label_outside_the_classes_is_an_error),
      cmocka_unit_test(gathering),
      cmocka_unit_test(rows_without_elements),
      cmocka_unit_test(segment_sums),
      cmocka_unit_test(one_hot_rows),
      cmocka_unit_test(other_bits),
      cmocka_unit_test(moving_elements),
      cmocka_unit_test(random_numbers),
      cmocka_unit_test(narrow_uniforms_round_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
