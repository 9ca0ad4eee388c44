/* Resizing along an axis, and projective transforms of images. */
#include "backend/ref/ref.h"
#include "ops/resize.h"
#include <math.h>
#include <mixtape/image.h>
#include <string.h>

static bool prepare_weights(mix_kernel_args *args, int threads) {
  (void)threads;
  return (args->prepared = mix_resize_weights_new(args->attributes)) != NULL;
}

static size_t row_bytes(const mix_kernel_args *args, int threads) {
  (void)threads;
  const mix_resize_attributes *a = args->attributes;
  return (size_t)a->from * sizeof(double);
}

static void resize_axis_run(const mix_kernel_args *args, const mix_team *team) {
  (void)team;
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

typedef struct image {
  const mix_kernel_args *args;
  int64_t height, width, channels, first; /* first: its first element */
  double fill;
} image;

static double pixel(const image *m, float y, float x, int64_t channel) {
  if (!(y >= 0 && y < (float)m->height && x >= 0 && x < (float)m->width)) return m->fill;
  const int64_t at = ((int64_t)y * m->width + (int64_t)x) * m->channels + channel;
  return mix_ref_load(m->args->inputs[0], m->args->input_types[0].dtype, m->first + at).real;
}

static double between(const image *m, float y, float x, int64_t channel) {
  const float y0 = floorf(y), x0 = floorf(x), y1 = y0 + 1, x1 = x0 + 1;
  const double top = (double)(x1 - x) * pixel(m, y0, x0, channel) +
                     (double)(x - x0) * pixel(m, y0, x1, channel),
               bottom = (double)(x1 - x) * pixel(m, y1, x0, channel) +
                        (double)(x - x0) * pixel(m, y1, x1, channel);
  return (double)(y1 - y) * top + (double)(y - y0) * bottom;
}

static void projective_transform_run(const mix_kernel_args *args, const mix_team *team) {
  (void)team;
  const mix_transform_attributes *a = args->attributes;
  const mix_shape shape = args->input_types[0].shape;
  const mix_dtype dtype = args->input_types[0].dtype;
  image m = {.args = args,
             .height = shape.dims[1],
             .width = shape.dims[2],
             .channels = shape.dims[3],
             .fill = a->fill_value};
  int64_t element = 0;
  for (int64_t b = 0; b < shape.dims[0]; b++, m.first = element) {
    const float *t = (const float *)args->inputs[1] + 8 * b;
    for (int64_t i = 0; i < m.height * m.width; i++) {
      const float x = (float)(i % m.width), y = (float)(i / m.width), k = t[6] * x + t[7] * y + 1;
      const float from_x = mapped((t[0] * x + t[1] * y + t[2]) / k, m.width, a->fill_mode),
                  from_y = mapped((t[3] * x + t[4] * y + t[5]) / k, m.height, a->fill_mode);
      for (int64_t c = 0; c < m.channels; c++, element++) {
        const double value = k == 0 ? m.fill
                             : a->interpolation == MIX_BILINEAR
                                 ? between(&m, from_y, from_x, c)
                                 : pixel(&m, roundf(from_y), roundf(from_x), c);
        mix_ref_store(args->outputs[0], dtype, element, mix_ref_round((mix_ref_value){.real = value}, dtype));
      }
    }
  }
}

const mix_kernel mix_ref_resize_axis = {.name = "ref_resize_axis",
                                        .serial = mix_ref_serial,
                                        .prepare = prepare_weights,
                                        .workspace = row_bytes,
                                        .run = resize_axis_run};
const mix_kernel mix_ref_projective_transform = {
    .name = "ref_projective_transform", .serial = mix_ref_serial, .run = projective_transform_run};
