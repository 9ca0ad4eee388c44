/* Softmax and the cross-entropies of the CPU against the reference, which computes in double and rounds
 * once. */
/* Holds docs/NUMERICS.md: Softmax, cross-entropies, losses. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/cpu_kernels.h"

#include "backend/ref/ref.h"
#include "ops/table.h"

static const int64_t shapes[][2] = {{1, 1},   {3, 2},    {128, 10}, {7, 16},    {65, 17},
                                    {9, 513}, {4, 2048}, {3, 2049}, {2, 10007}, {5000, 5}};
enum { SHAPES = sizeof shapes / sizeof *shapes };
static const mix_dtype dtypes[] = {MIX_FLOAT32, MIX_FLOAT16, MIX_BFLOAT16};
static const mix_dtype label_dtypes[] = {MIX_INT32, MIX_INT64, MIX_UINT8, MIX_INT8, MIX_INT16};

typedef struct call {
  mix_kernel_args args;
  mix_type inputs[2], outputs[2];
  const void *from[2];
  void *to[2];
  int64_t rows, classes;
} call;

static void begin(call *c, const mix_op *op, mix_dtype dtype, int64_t rows, int64_t classes, int inputs,
                  mix_dtype labels) {
  memset(c, 0, sizeof *c);
  const bool losses = inputs == 2;
  c->rows = rows;
  c->classes = classes;
  c->inputs[0] = (mix_type){dtype, MIX_SHAPE(rows, classes)};
  c->inputs[1] = labels ? (mix_type){labels, MIX_SHAPE(rows)} : c->inputs[0];
  c->outputs[0] = losses ? (mix_type){dtype, MIX_SHAPE(rows)} : c->inputs[0];
  c->outputs[1] = c->inputs[0];
  c->args = (mix_kernel_args){.op = op,
                              .input_count = inputs,
                              .output_count = inputs,
                              .input_types = c->inputs,
                              .output_types = c->outputs,
                              .inputs = c->from,
                              .outputs = c->to};
  for (int i = 0; i < inputs; i++) {
    c->from[i] = calloc((size_t)(rows * classes), 8);
    c->to[i] = malloc((size_t)(i == 0 && losses ? rows : rows * classes) * mix_dtype_size(dtype));
  }
}
static void end(call *c) {
  for (int i = 0; i < c->args.input_count; i++) {
    free((void *)(uintptr_t)c->from[i]);
    free(c->to[i]);
  }
}

/* Float32 arithmetic on logits of magnitude up to `range`: x - max has an error of half an ulp of 2 range,
 * which exp turns into a relative error of range * 2^-23. The sum of n terms, the quotient and exp itself add
 * about 8 ulp. Then the dtype's own rounding. */
static double relative_bound(mix_dtype dtype, double range) {
  const double own = dtype == MIX_FLOAT32 ? 0x1p-23 : dtype == MIX_FLOAT16 ? 0x1p-10 : 0x1p-7;
  return (range + 8) * 0x1p-23 + own;
}
static void assert_near(const char *what, const void *result, const void *expected, mix_dtype dtype,
                        int64_t n, double relative, double scale) {
  for (int64_t i = 0; i < n; i++) {
    const double x = mix_load_double(result, dtype, i), y = mix_load_double(expected, dtype, i);
    if (isnan(x) && isnan(y)) continue;
    if (x == y) continue;
    if (!(fabs(x - y) <= relative * (fabs(y) + scale)))
      fail_msg("%s: %s element %lld of %lld is %.9g, expected %.9g", what, mix_dtype_name(dtype),
               (long long)i, (long long)n, x, y);
  }
}

/* float16 has no numbers below 2^-24. The bound is relative down to the smallest normal number of the
 * dtype. */
static double smallest(mix_dtype dtype) { return dtype == MIX_FLOAT16 ? 0x1p-14 : 0x1p-126; }

static void compare(call *c, const char *what, const mix_kernel *kernel, const mix_kernel *reference,
                    double range, const double *scales) {
  const mix_dtype dtype = c->inputs[0].dtype;
  void *own[2] = {c->to[0], c->to[1]}, *expected[2] = {0};
  const int64_t all = c->rows * c->classes;
  for (int i = 0; i < c->args.output_count; i++) expected[i] = c->to[i] = malloc((size_t)all * 8);
  assert_null(run_kernel(reference, &c->args, 1));
  memcpy(c->to, own, sizeof own);
  assert_null(kernel->unsupported_reason(&c->args));
  for (int threads = 1; threads <= 3; threads++) {
    for (int i = 0; i < c->args.output_count; i++) memset(own[i], 0x33, mix_dtype_size(dtype));
    assert_null(run_kernel(kernel, &c->args, threads));
    for (int i = 0; i < c->args.output_count; i++)
      assert_near(what, own[i], expected[i], dtype, i == 0 && c->args.output_count == 2 ? c->rows : all,
                  relative_bound(dtype, range), scales[i]);
  }
  for (int i = 0; i < c->args.output_count; i++) free(expected[i]);
}

static void softmax_and_its_logarithm(void **state) {
  NEED_INSTRUCTION_SET(state);
  for (int i = 0; i < SHAPES; i++)
    for (int d = 0; d < 3; d++)
      for (int logarithm = 0; logarithm < 2; logarithm++) {
        call c;
        char what[64];
        snprintf(what, sizeof what, "%ssoftmax (%lld, %lld)", logarithm ? "log " : "",
                 (long long)shapes[i][0], (long long)shapes[i][1]);
        begin(&c, logarithm ? &mix_op_log_softmax : &mix_op_softmax, dtypes[d], shapes[i][0], shapes[i][1], 1,
              MIX_DTYPE_NONE);
        fill_between((void *)(uintptr_t)c.from[0], dtypes[d], c.rows * c.classes, 11, -8, 8);
        /* log softmax is a difference of numbers up to 16 + log n < 32, so their rounding counts */
        compare(&c, what, best_kernel(logarithm ? mix_cpu_log_softmax_kernels : mix_cpu_softmax_kernels),
                logarithm ? &mix_ref_log_softmax : &mix_ref_softmax, 16,
                (const double[]){logarithm ? 1 : smallest(dtypes[d])});
        end(&c);
      }
}

/* Rows sum to one, adding a constant to the logits changes nothing, large logits do not overflow, and NaN
 * stays NaN. */
static void softmax_of_special_rows(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const int64_t sizes[] = {3, 40, 3000};
  for (int i = 0; i < 3; i++) {
    const int64_t n = sizes[i];
    call c;
    begin(&c, &mix_op_softmax, MIX_FLOAT32, 6, n, 1, MIX_DTYPE_NONE);
    float *x = (float *)(uintptr_t)c.from[0];
    for (int64_t j = 0; j < n; j++) {
      x[j] = 1e30f;
      x[n + j] = j == n - 1 ? NAN : 0;
      x[2 * n + j] = j == 1 ? INFINITY : 0;
      x[3 * n + j] = -INFINITY;
      x[4 * n + j] = j == n - 2 ? 5 : -INFINITY;
      x[5 * n + j] = -3e38f;
    }
    assert_null(run_kernel(best_kernel(mix_cpu_softmax_kernels), &c.args, 2));
    const float *y = c.to[0];
    for (int64_t j = 0; j < n; j++) {
      assert_true(fabs(y[j] * (double)n - 1) < 1e-6 && fabs(y[5 * n + j] * (double)n - 1) < 1e-6);
      assert_true(isnan(y[n + j]) && isnan(y[2 * n + j]) && isnan(y[3 * n + j]));
      assert_true(y[4 * n + j] == (j == n - 2));
    }
    end(&c);
  }
}

static void cross_entropies(void **state) {
  NEED_INSTRUCTION_SET(state);
  for (int i = 0; i < SHAPES; i++)
    for (int d = 0; d < 3; d++) {
      call c;
      char what[64];
      snprintf(what, sizeof what, "cross entropy (%lld, %lld)", (long long)shapes[i][0],
               (long long)shapes[i][1]);
      begin(&c, &mix_op_softmax_cross_entropy, dtypes[d], shapes[i][0], shapes[i][1], 2, MIX_DTYPE_NONE);
      fill_between((void *)(uintptr_t)c.from[0], dtypes[d], c.rows * c.classes, 12, -8, 8);
      fill_between((void *)(uintptr_t)c.from[1], dtypes[d], c.rows * c.classes, 13, 0,
                   2.0 / (double)c.classes);
      /* The loss sums n terms, each from 0 to 2/n * 32. The gradient is a difference of numbers in [0, 2]. */
      const double scale = dtypes[d] == MIX_FLOAT32 ? 1 : smallest(dtypes[d]) + 0x1p-10;
      compare(&c, what, best_kernel(mix_cpu_softmax_cross_entropy_kernels), &mix_ref_softmax_cross_entropy,
              32, (const double[]){1, scale});
      end(&c);
    }
}

static void fill_labels(call *c, mix_dtype dtype, int64_t limit) {
  for (int64_t i = 0; i < c->rows; i++)
    mix_store_integer((void *)(uintptr_t)c->from[1], dtype, i,
                      (int64_t)(mix_philox_word(4, 0, (uint64_t)i) % (uint64_t)limit));
}

static void sparse_cross_entropies(void **state) {
  NEED_INSTRUCTION_SET(state);
  for (int i = 0; i < SHAPES; i++)
    for (int d = 0; d < 3; d++)
      for (int l = 0; l < 5; l++) {
        call c;
        char what[96];
        snprintf(what, sizeof what, "sparse (%lld, %lld) labels %s", (long long)shapes[i][0],
                 (long long)shapes[i][1], mix_dtype_name(label_dtypes[l]));
        begin(&c, &mix_op_sparse_softmax_cross_entropy, dtypes[d], shapes[i][0], shapes[i][1], 2,
              label_dtypes[l]);
        fill_between((void *)(uintptr_t)c.from[0], dtypes[d], c.rows * c.classes, 14, -8, 8);
        fill_labels(&c, label_dtypes[l], c.classes < 100 ? c.classes : 100);
        /* the gradient at the label is a difference of numbers in [0, 1] */
        compare(&c, what, best_kernel(mix_cpu_sparse_softmax_cross_entropy_kernels),
                &mix_ref_sparse_softmax_cross_entropy, 32,
                (const double[]){1, dtypes[d] == MIX_FLOAT32 ? 1 : 0x1p-10});
        end(&c);
      }
}

/* Holds docs/NUMERICS.md: NaN, infinity and the error word. */
static void labels_outside_the_classes(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const int64_t classes[] = {10, 40, 5000};
  static const int64_t bad[] = {-1, INT64_MAX, INT64_MIN, 5000};
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < 4; k++)
      for (int threads = 1; threads <= 3; threads++) {
        call c;
        const int64_t rows = 1000 / (i * i + 1), n = classes[i];
        begin(&c, &mix_op_sparse_softmax_cross_entropy, MIX_FLOAT32, rows, n, 2, MIX_INT64);
        fill_between((void *)(uintptr_t)c.from[0], MIX_FLOAT32, rows * n, 15, -8, 8);
        fill_labels(&c, MIX_INT64, n);
        int64_t *labels = (void *)(uintptr_t)c.from[1];
        labels[rows / 2] = bad[k], labels[rows - 1] = -2; /* the first one is named */
        char expected[160];
        const char *failure =
            run_kernel(best_kernel(mix_cpu_sparse_softmax_cross_entropy_kernels), &c.args, threads);
        assert_non_null(failure);
        snprintf(expected, sizeof expected, "label %lld%s (element %lld) is outside the classes, [0, %lld)",
                 (long long)bad[k],
                 bad[k] == INT64_MIN   ? ", which -inf becomes as an integer,"
                 : bad[k] == INT64_MAX ? ", which inf becomes as an integer,"
                                       : "",
                 (long long)(rows / 2), (long long)n);
        if (!strstr(failure, expected)) fail_msg("%s: %s", expected, failure);
        const float *losses = c.to[0], *gradient = c.to[1];
        for (int64_t row = 0; row < rows; row++) {
          assert_true(isnan(losses[row]) == (row == rows / 2 || row == rows - 1));
          assert_true(isnan(gradient[row * n]) == (row == rows / 2 || row == rows - 1));
        }
        end(&c);
      }
}

/* Rows shorter than a packet of eight: TensorFlow uses exp and log of the C library, and adds one by one. A
 * confident row loses digits there: 1 + exp(-16) has few. */
static void losses_of_small_batches_have_tensorflows_bits(void **state) {
  NEED_INSTRUCTION_SET(state);
  for (int draw = 0; draw < 200; draw++) {
    call c;
    begin(&c, &mix_op_sparse_softmax_cross_entropy, MIX_FLOAT32, 2, 3, 2, MIX_INT32);
    float *x = (void *)(uintptr_t)c.from[0];
    const int32_t *labels = c.from[1];
    fill_between(x, MIX_FLOAT32, 6, 60 + (uint64_t)draw, -8, 8);
    if (draw % 2) x[1] = x[0] + 16;
    fill_labels(&c, MIX_INT32, 3);
    assert_null(run_kernel(best_kernel(mix_cpu_sparse_softmax_cross_entropy_kernels), &c.args, 1));
    for (int row = 0; row < 2; row++, x += 3) {
      const float largest = fmaxf(fmaxf(x[0], x[1]), x[2]);
      float sum = 0, gradient[3];
      for (int j = 0; j < 3; j++) sum += gradient[j] = expf(x[j] - largest);
      for (int j = 0; j < 3; j++) gradient[j] = gradient[j] / sum - (j == labels[row] ? 1.0f : 0.0f);
      const float loss = logf(sum) - (x[labels[row]] - largest);
      assert_true(((float *)c.to[0])[row] == loss);
      for (int j = 0; j < 3; j++) assert_true(((float *)c.to[1])[row * 3 + j] == gradient[j]);
    }
    end(&c);
  }
}

/* Gradients may overwrite the logits. */
static void gradients_in_place(void **state) {
  NEED_INSTRUCTION_SET(state);
  for (int i = 0; i < SHAPES; i++)
    for (int sparse = 0; sparse < 2; sparse++) {
      call c;
      begin(&c, sparse ? &mix_op_sparse_softmax_cross_entropy : &mix_op_softmax_cross_entropy, MIX_FLOAT32,
            shapes[i][0], shapes[i][1], 2, sparse ? MIX_INT32 : MIX_DTYPE_NONE);
      const mix_kernel *kernel = best_kernel(sparse ? mix_cpu_sparse_softmax_cross_entropy_kernels
                                                    : mix_cpu_softmax_cross_entropy_kernels);
      fill_between((void *)(uintptr_t)c.from[0], MIX_FLOAT32, c.rows * c.classes, 16, -8, 8);
      if (sparse)
        fill_labels(&c, MIX_INT32, c.classes);
      else
        fill_between((void *)(uintptr_t)c.from[1], MIX_FLOAT32, c.rows * c.classes, 17, 0, 1);
      assert_null(run_kernel(kernel, &c.args, 2));
      void *separate = c.to[1], *losses = malloc((size_t)c.rows * 4);
      memcpy(losses, c.to[0], (size_t)c.rows * 4);
      c.to[1] = (void *)(uintptr_t)c.from[0];
      assert_null(run_kernel(kernel, &c.args, 2));
      assert_memory_equal(c.to[1], separate, (size_t)(c.rows * c.classes) * 4);
      assert_memory_equal(c.to[0], losses, (size_t)c.rows * 4);
      free(losses);
      c.to[1] = separate;
      end(&c);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_EACH_SET(softmax_and_its_logarithm),
      ON_EACH_SET(softmax_of_special_rows),
      ON_EACH_SET(cross_entropies),
      ON_EACH_SET(sparse_cross_entropies),
      ON_EACH_SET(labels_outside_the_classes),
      ON_EACH_SET(gradients_in_place),
      ON_EACH_SET(losses_of_small_batches_have_tensorflows_bits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
