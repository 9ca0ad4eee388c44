/* The kernel that resizes float32 along an axis against the reference: the same bits, with one thread and
 * several. */
/* Holds docs/NUMERICS.md: Windows and images. */
#include "backend/cpu_kernels.h"

#include "backend/ref/ref.h"
#include "ops/table.h"
#include <mixtape/image.h>

/* Few and many elements behind the axis, a strip's end within them; the first, a middle and the last axis. */
static const struct {
  mix_shape x;
  int axis;
  int64_t to;
} cases[] = {
    {{.rank = 4, .dims = {2, 9, 7, 3}}, 1, 5}, {{.rank = 4, .dims = {2, 9, 7, 3}}, 2, 16},
    {{.rank = 3, .dims = {3, 8, 300}}, 1, 11}, {{.rank = 2, .dims = {40, 17}}, 0, 13},
    {{.rank = 2, .dims = {5, 64}}, 1, 64},     {{.rank = 4, .dims = {2, 64, 64, 16}}, 1, 90},
};
static const mix_interpolation interpolations[] = {MIX_NEAREST, MIX_BILINEAR, MIX_BICUBIC,
                                                   MIX_AREA,    MIX_LANCZOS3, MIX_GAUSSIAN};
enum { CASES = sizeof cases / sizeof *cases, WAYS = sizeof interpolations / sizeof *interpolations };

static float *resized_by(const mix_kernel *kernel, const mix_resize_attributes *a, mix_shape shape,
                         const float *x, int64_t *count, int threads) {
  const mix_type from = {MIX_FLOAT32, shape};
  mix_type to = from;
  to.shape.dims[a->axis] = a->to;
  *count = mix_shape_size(to.shape);
  void *y = malloc((size_t)*count * sizeof(float));
  const void *inputs[] = {x};
  mix_kernel_args args = {.op = &mix_op_resize_axis,
                          .attributes = a,
                          .input_count = 1,
                          .output_count = 1,
                          .input_types = &from,
                          .output_types = &to,
                          .inputs = inputs,
                          .outputs = &y};
  if (kernel->unsupported_reason) assert_null(kernel->unsupported_reason(&args));
  assert_null(run_kernel(kernel, &args, threads));
  return y;
}

static void bits_are_those_of_the_reference(void **state) {
  (void)state;
  static const float special[] = {INFINITY, -INFINITY, NAN, -0.0f, 3e38f, 1e-30f};
  for (int c = 0; c < CASES; c++)
    for (int way = 0; way < WAYS; way++)
      for (int antialias = 0; antialias < 2; antialias++) {
        const int64_t size = mix_shape_size(cases[c].x);
        float *x = malloc((size_t)size * sizeof *x);
        for (int64_t i = 0; i < size; i++)
          x[i] =
              i % 97 == 96 ? special[i / 97 % 6] : (float)mix_philox_word(7, 1, (uint64_t)i) * 0x1p-31f - 1;
        const mix_resize_attributes a = {.axis = cases[c].axis,
                                         .from = cases[c].x.dims[cases[c].axis],
                                         .to = cases[c].to,
                                         .interpolation = interpolations[way],
                                         .antialias = antialias};
        int64_t count;
        float *expected = resized_by(&mix_ref_resize_axis, &a, cases[c].x, x, &count, 1);
        for (int threads = 1; threads <= 3; threads++) {
          float *got = resized_by(mix_cpu_resize_axis_kernels[0], &a, cases[c].x, x, &count, threads);
          for (int64_t i = 0; i < count; i++)
            if (memcmp(&got[i], &expected[i], sizeof *got) && !(isnan(got[i]) && isnan(expected[i])))
              fail_msg("case %d, interpolation %d, %d threads: element %lld is %.9g, expected %.9g", c,
                       interpolations[way], threads, (long long)i, (double)got[i], (double)expected[i]);
          free(got);
        }
        free(expected);
        free(x);
      }
}

static void the_rest_is_left_to_the_reference(void **state) {
  (void)state;
  mix_resize_attributes a = {.axis = 0, .from = 4, .to = 2, .interpolation = MIX_BILINEAR};
  mix_type type = {MIX_FLOAT64, {.rank = 1, .dims = {4}}};
  const mix_kernel_args args = {.op = &mix_op_resize_axis, .attributes = &a, .input_types = &type};
  const mix_kernel *kernel = mix_cpu_resize_axis_kernels[0];
  assert_string_equal(kernel->unsupported_reason(&args), "operands other than float32");
  type.dtype = MIX_FLOAT32;
  assert_null(kernel->unsupported_reason(&args));
  a.transposed = true;
  assert_string_equal(kernel->unsupported_reason(&args), "the gradient");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bits_are_those_of_the_reference),
                                     cmocka_unit_test(the_rest_is_left_to_the_reference)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
