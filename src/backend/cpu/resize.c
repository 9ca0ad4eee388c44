/* Resizing of float32 along an axis, with the bits of the reference: sums in double, in its order, rounded
 * once. */
#include "backend/cpu/kernel_rows.h"
#include "base/alloc.h"
#include "ops/resize.h"

enum {
  STRIP = 256, /* sums at a time: 2 KiB */
  SHORT = 16,  /* lines of fewer elements, such as the channels of an image, are summed one by one */
};

static const char *resize_unsupported(const mix_kernel_args *args) {
  if (args->input_types[0].dtype != MIX_FLOAT32) return "operands other than float32";
  return ((const mix_resize_attributes *)args->attributes)->transposed ? "the gradient" : NULL;
}

static bool prepare_weights(mix_kernel_args *args, int threads) {
  return (args->prepared = mix_resize_weights_new(args->attributes)) != NULL;
}

/* A line of the result is the weighted sum of `count` lines of the operand, which follow each other. */
static void sum_short(const float *from, float *to, int64_t length, const double *weights, int64_t count) {
  for (int64_t j = 0; j < length; j++) {
    double sum = 0;
    for (int64_t k = 0; k < count; k++) sum += weights[k] * (double)from[k * length + j];
    to[j] = (float)sum;
  }
}

static void sum_strip(const float *from, float *to, int64_t length, int64_t width, const double *weights,
                      int64_t count) {
  double sums[STRIP] = {0};
  for (int64_t k = 0; k < count; k++)
    for (int64_t j = 0; j < width; j++) sums[j] += weights[k] * (double)from[k * length + j];
  for (int64_t j = 0; j < width; j++) to[j] = (float)sums[j];
}

static void sum_lines(const float *from, float *to, int64_t length, const double *weights, int64_t count) {
  if (length < SHORT) {
    sum_short(from, to, length, weights, count);
    return;
  }
  for (int64_t j = 0; j < length; j += STRIP)
    sum_strip(from + j, to + j, length, length - j < STRIP ? length - j : STRIP, weights, count);
}

static void resize_axis_run(const mix_kernel_args *args, const mix_team *team) {
  const mix_resize_attributes *a = args->attributes;
  const mix_resize_weights *w = args->prepared;
  const mix_shape shape = args->input_types[0].shape;
  int64_t outer = 1, length = 1, begin, end;
  for (int d = 0; d < a->axis; d++) outer *= shape.dims[d];
  for (int d = a->axis + 1; d < shape.rank; d++) length *= shape.dims[d];
  mix_team_share(team, outer * a->to, 1, &begin, &end);
  for (int64_t line = begin; line < end; line++) {
    const int64_t i = line % a->to, first = line / a->to * a->from + w->first[i];
    sum_lines((const float *)args->inputs[0] + first * length, (float *)args->outputs[0] + line * length,
              length, w->weights + i * w->span, w->count[i]);
  }
}

static bool resize_serial(const mix_kernel_args *args) {
  return mix_shape_size(args->output_types[0].shape) < MIX_CPU_SMALL;
}

static const mix_kernel resize_axis_kernel = {.name = "resize_axis_f32",
                                              .unsupported_reason = resize_unsupported,
                                              .run = resize_axis_run,
                                              .prepare = prepare_weights,
                                              .serial = resize_serial};
const mix_kernel *const mix_cpu_resize_axis_kernels[] = {&resize_axis_kernel, NULL};
