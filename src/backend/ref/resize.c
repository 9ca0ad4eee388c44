/* Resizing along an axis, and projective transforms of images. */
#include "backend/ref/ref.h"
#include "ops/resize.h"
#include <math.h>
#include <mixtape/image.h>
#include <string.h>

static bool prepare_weights(mix_kernel_args *args, int threads) {
  return (args->prepared = mix_resize_weights_new(args->attributes)) != NULL;
}

static size_t row_bytes(const mix_kernel_args *args, int threads) {
  const mix_resize_attributes *a = args->attributes;
  return (size_t)a->from * sizeof(double);
}

static void resize_axis_run(const mix_kernel_args *args, const mix_team *team) {
  const mix_resize_attributes *a = args->attributes;
  const mix_resize_weights *w = args->prepared;
  const mix_dtype dtype = args->input_types[0].dtype;
  const mix_shape shape = args->input_types[0].shape;
  double *sums = args->workspace; /* of the transpose */
  int64_t outer = 1, inner = 1;
  for (int d = 0; d < a->axis; d++) outer *= shape.dims[d];
  for (int d = a->axis + 1; d < shape.rank; d++) inner *= shape.dims[d];
  for (int64_t o = 0; o < outer; o++)
    for (int64_t j = 0; j < inner; j++) {
      if (a->transposed) memset(sums, 0, (size_t)a->from * sizeof *sums);
      for (int64_t i = 0; i < a->to; i++) {
        const double *weights = w->weights + i * w->span;
        const int64_t whole = (o * a->to + i) * inner + j;
        double sum = 0, x = a->transposed ? mix_ref_load(args->inputs[0], dtype, whole).real : 0;
        for (int64_t k = 0; k < w->count[i]; k++) {
          const int64_t at = w->first[i] + k;
          if (a->transposed)
            sums[at] += weights[k] * x;
          else
            sum += weights[k] * mix_ref_load(args->inputs[0], dtype, (o * a->from + at) * inner + j).real;
        }
        if (!a->transposed)
          mix_ref_store(args->outputs[0], dtype, whole, mix_ref_round((mix_ref_value){.real = sum}, dtype));
      }
      for (int64_t i = 0; i < a->from && a->transposed; i++)
        mix_ref_store(args->outputs[0], dtype, (o * a->from + i) * inner + j,
                      mix_ref_round((mix_ref_value){.real = sums[i]}, dtype));
    }
}

/* ---- projective transforms: coordinates in float32, as in TensorFlow ---- */

static float reflected(float at, float n) {
  const float period = 2 * n;
  if (n <= 1) return 0;
  if (at < 0) {
    if (at < period) at = period * truncf(-at / period) + at;
    return at < -n ? at + period : -at - 1;
  }
  at -= period * truncf(at / period);
  return at >= n ? period - at - 1 : at;
}

static float wrapped(float at, float n) {
  if (n <= 1) return 0;
  if (at < 0) return at + n * (truncf(-at / (n - 1)) + 1);
  return at - n * truncf(at / (n - 1));
}

/* The coordinate inside [0, n - 1], or itself for constant filling. */
static float mapped(float at, int64_t count, int mode) {
  const float n = (float)count;
  if (mode == MIX_FILL_CONSTANT) return at;
  if (mode == MIX_FILL_REFLECT && (at < 0 || at > n - 1)) at = reflected(at, n);
  if (mode == MIX_FILL_WRAP && (at < 0 || at > n - 1)) at = wrapped(at, n);
  return fminf(fmaxf(at, 0), n - 1);
}

/* A pixel of an image, of which a pixel of the result has `weight`; -1: outside. */
typedef struct term {
  int64_t pixel;
  double weight;
} term;

static int64_t pixel_at(mix_shape images, float y, float x) {
  const int64_t height = images.dims[1], width = images.dims[2];
  if (!(y >= 0 && y < (float)height && x >= 0 && x < (float)width)) return -1;
  return (int64_t)y * width + (int64_t)x;
}

/* The terms of pixel `i` of a result. Returns how many. */
static int terms_of(const mix_transform_attributes *a, mix_shape images, const float *t, int64_t i,
                    term terms[4]) {
  const int64_t height = images.dims[1], width = images.dims[2];
  const float x = (float)(i % width), y = (float)(i / width), k = t[6] * x + t[7] * y + 1;
  terms[0] = (term){.pixel = -1, .weight = 1};
  if (k == 0) return 1;
  const float from_x = mapped((t[0] * x + t[1] * y + t[2]) / k, width, a->fill_mode),
              from_y = mapped((t[3] * x + t[4] * y + t[5]) / k, height, a->fill_mode);
  if (a->interpolation == MIX_NEAREST) {
    terms[0].pixel = pixel_at(images, roundf(from_y), roundf(from_x));
    return 1;
  }
  const float y0 = floorf(from_y), x0 = floorf(from_x), y1 = y0 + 1, x1 = x0 + 1;
  for (int j = 0; j < 4; j++) {
    const bool below = j / 2, right = j % 2;
    const double of_y = (double)(below ? from_y - y0 : y1 - from_y),
                 of_x = (double)(right ? from_x - x0 : x1 - from_x);
    terms[j] = (term){pixel_at(images, below ? y1 : y0, right ? x1 : x0), of_y * of_x};
  }
  return 4;
}

static size_t image_bytes(const mix_kernel_args *args, int threads) {
  const mix_shape images = args->input_types[0].shape;
  const bool transposed = ((const mix_transform_attributes *)args->attributes)->transposed;
  return transposed ? (size_t)(images.dims[1] * images.dims[2] * images.dims[3]) * sizeof(double) : 0;
}

/* Image b, or its gradient, which is summed in the workspace. */
static void transform_image(const mix_kernel_args *args, int64_t b) {
  const mix_transform_attributes *a = args->attributes;
  const mix_dtype dtype = args->input_types[0].dtype;
  const mix_shape images = args->input_types[0].shape;
  const float *t = (const float *)args->inputs[1] + 8 * b;
  const int64_t pixels = images.dims[1] * images.dims[2], channels = images.dims[3],
                first = b * pixels * channels;
  double *sums = args->workspace;
  if (a->transposed) memset(sums, 0, (size_t)(pixels * channels) * sizeof *sums);
  for (int64_t i = 0; i < pixels; i++) {
    term terms[4];
    const int count = terms_of(a, images, t, i, terms);
    for (int64_t c = 0; c < channels; c++) {
      const int64_t element = first + i * channels + c;
      const double dy = a->transposed ? mix_ref_load(args->inputs[0], dtype, element).real : 0;
      double sum = 0;
      for (int j = 0; j < count; j++) {
        const int64_t at = terms[j].pixel * channels + c;
        const bool outside = terms[j].pixel < 0;
        if (!a->transposed)
          sum += terms[j].weight *
                 (outside ? a->fill_value : mix_ref_load(args->inputs[0], dtype, first + at).real);
        else if (!outside)
          sums[at] += terms[j].weight * dy;
      }
      if (!a->transposed)
        mix_ref_store(args->outputs[0], dtype, element, mix_ref_round((mix_ref_value){.real = sum}, dtype));
    }
  }
  for (int64_t i = 0; i < pixels * channels && a->transposed; i++)
    mix_ref_store(args->outputs[0], dtype, first + i, mix_ref_round((mix_ref_value){.real = sums[i]}, dtype));
}

static void projective_transform_run(const mix_kernel_args *args, const mix_team *team) {
  for (int64_t b = 0; b < args->input_types[0].shape.dims[0]; b++) transform_image(args, b);
}

const mix_kernel mix_ref_resize_axis = {.name = "ref_resize_axis",
                                        .serial = mix_ref_serial,
                                        .prepare = prepare_weights,
                                        .workspace = row_bytes,
                                        .run = resize_axis_run};
const mix_kernel mix_ref_projective_transform = {.name = "ref_projective_transform",
                                                 .serial = mix_ref_serial,
                                                 .workspace = image_bytes,
                                                 .run = projective_transform_run};
