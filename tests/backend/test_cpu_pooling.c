/* The pooling kernels of the CPU against the reference, for every instruction set and several threads. */
/* Holds docs/NUMERICS.md: Windows and images. */
#include "backend/cpu_kernels.h"

#include "backend/ref/ref.h"
#include "ops/table.h"

static const mix_dtype dtypes[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64};

typedef struct window {
  mix_shape x;
  mix_pool_attributes attributes; /* without `spatial` */
} window;
#define LIST(...)                                                                                            \
  {                                                                                                          \
    .rank = (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), .dims = { __VA_ARGS__ }                             \
  }
/* Few and many channels, more than a strip, strides below and above the size, paddings. */
static const window windows[] = {
    {LIST(3, 7, 5), {LIST(3), LIST(2), LIST(1), LIST(1), {0}}},
    {LIST(2, 9, 8, 16), {LIST(3, 3), LIST(2, 2), LIST(0, 1), LIST(1, 1), {0}}},
    {LIST(1, 6, 5, 300), {LIST(2, 2), LIST(1, 1), LIST(0, 0), LIST(1, 0), {0}}},
    {LIST(5, 8, 8, 70), {LIST(2, 3), LIST(3, 4), LIST(0, 0), LIST(0, 0), {0}}},
    {LIST(2, 4, 3, 5, 3), {LIST(2, 2, 2), LIST(1, 2, 1), LIST(1, 0, 0), LIST(0, 1, 1), {0}}},
};
enum { WINDOWS = sizeof windows / sizeof *windows, DTYPES = sizeof dtypes / sizeof *dtypes };

static mix_shape pooled(const window *w) {
  mix_shape y = w->x;
  for (int d = 0; d < y.rank - 2; d++)
    y.dims[d + 1] = (y.dims[d + 1] + w->attributes.before.dims[d] + w->attributes.after.dims[d] -
                     w->attributes.size.dims[d]) /
                        w->attributes.strides.dims[d] +
                    1;
  return y;
}

/* Small whole numbers, so that maxima are equal and sums are exact. */
static void fill(void *data, mix_dtype dtype, int64_t count, uint64_t seed) {
  for (int64_t i = 0; i < count; i++)
    mix_store_double(data, dtype, i, (double)(mix_philox_word(seed, 3, (uint64_t)i) % 9) - 4);
}

/* Runs a kernel with x, y and dy in the order of the op; the result in new memory. */
static void *run_with(const mix_kernel *kernel, const mix_op *op, const mix_pool_attributes *attributes,
                      int count, const mix_type *types, const void *const *inputs, mix_type result,
                      int threads) {
  const void *from[3] = {inputs[0], count > 1 ? inputs[1] : NULL, count > 1 ? inputs[2] : NULL};
  void *to = malloc((size_t)mix_shape_size(result.shape) * 8);
  mix_kernel_args args = {.op = op,
                          .attributes = attributes,
                          .input_count = count,
                          .output_count = 1,
                          .input_types = types,
                          .output_types = &result,
                          .inputs = from,
                          .outputs = &to};
  if (kernel->unsupported_reason) assert_null(kernel->unsupported_reason(&args));
  assert_null(run_kernel(kernel, &args, threads));
  return to;
}

/* Whole numbers are exact. Of quotients of at most 4, float32 sums of at most 27 have 27 roundings of sums of
 * at most 108; then the dtype rounds. */
static void assert_near(const mix_op *op, const void *got, const void *expected, mix_dtype dtype,
                        int64_t count) {
  const bool quotients = op == &mix_op_avg_pool_grad || op == &mix_op_avg_pool;
  const double unit = dtype == MIX_FLOAT16    ? 0x1p-11
                      : dtype == MIX_BFLOAT16 ? 0x1p-8
                      : dtype == MIX_FLOAT32  ? 0x1p-24
                                              : 0x1p-53;
  const double sums = 27 * 108 * (dtype == MIX_FLOAT64 ? 0x1p-53 : 0x1p-24);
  for (int64_t i = 0; i < count; i++) {
    const double x = mix_load_double(got, dtype, i), y = mix_load_double(expected, dtype, i);
    if (!(fabs(x - y) <= (quotients ? 2 * unit * fabs(y) + sums : 0)))
      fail_msg("%s: %s element %lld is %.9g, expected %.9g", op->name, mix_dtype_name(dtype), (long long)i, x,
               y);
  }
}

static void compare(const window *w, mix_dtype dtype, const mix_op *op, const mix_kernel *const *kernels,
                    const mix_kernel *reference, bool backward, bool with_x) {
  const mix_shape y_shape = pooled(w);
  const int64_t x_count = mix_shape_size(w->x), y_count = mix_shape_size(y_shape);
  const mix_type x_type = {dtype, w->x}, y_type = {dtype, y_shape}, result = backward ? x_type : y_type;
  mix_pool_attributes attributes = w->attributes;
  attributes.spatial.rank = w->x.rank - 2;
  for (int d = 0; d < attributes.spatial.rank; d++) attributes.spatial.dims[d] = w->x.dims[d + 1];
  void *x = calloc((size_t)x_count, 8), *dy = calloc((size_t)y_count, 8);
  fill(x, dtype, x_count, 1);
  fill(dy, dtype, y_count, 2);
  const void *first[] = {x};
  void *y = run_with(&mix_ref_max_pool, &mix_op_max_pool, &attributes, 1, &x_type, first, y_type, 1);
  const mix_type three[] = {x_type, y_type, y_type};
  const void *all[] = {x, y, dy}, *only_dy[] = {dy};
  const int count = with_x ? 3 : 1;
  const mix_type *types = with_x ? three : backward ? &y_type : &x_type;
  const void *const *inputs = with_x ? all : backward ? only_dy : first;
  void *expected = run_with(reference, op, &attributes, count, types, inputs, result, 1);
  for (int threads = 1; threads <= 2; threads++) {
    void *got = run_with(best_kernel(kernels), op, &attributes, count, types, inputs, result, threads);
    assert_near(op, got, expected, dtype, mix_shape_size(result.shape));
    free(got);
  }
  free(expected);
  free(x);
  free(y);
  free(dy);
}

static void pooling_agrees_with_the_reference(void **state) {
  NEED_INSTRUCTION_SET(state);
  for (int w = 0; w < WINDOWS; w++)
    for (int d = 0; d < DTYPES; d++) {
      compare(&windows[w], dtypes[d], &mix_op_max_pool, mix_cpu_max_pool_kernels, &mix_ref_max_pool, false,
              false);
      compare(&windows[w], dtypes[d], &mix_op_avg_pool, mix_cpu_avg_pool_kernels, &mix_ref_avg_pool, false,
              false);
      compare(&windows[w], dtypes[d], &mix_op_max_pool_grad, mix_cpu_max_pool_grad_kernels,
              &mix_ref_max_pool_grad, true, true);
      compare(&windows[w], dtypes[d], &mix_op_avg_pool_grad, mix_cpu_avg_pool_grad_kernels,
              &mix_ref_avg_pool_grad, true, false);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {ON_EACH_SET(pooling_agrees_with_the_reference)};
  return cmocka_run_group_tests_name("cpu pooling", tests, NULL, NULL);
}
