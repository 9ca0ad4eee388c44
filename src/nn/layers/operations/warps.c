/* Images taken from other places: projective transforms, coordinates, and scales with translations. */
#include "base/error.h"
#include "base/philox.h"
#include "nn/layers/moments.h"
#include "nn/layers/operations/operation.h"
#include "nn/layers/spatial/spatial.h"
#include "ops/table.h"
#include "ops/with_number.h"
#include "tensor/shape.h"
#include <math.h>
#include <mixtape/random.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

static mix_tensor *number(mix_tensor *x, double value) { return mix_scalar_like(x, value); }

/* ---- projective transforms ---- */

/* The inverses of matrices whose rows are (a0, a1, a2), (b0, b1, b2), (c0, c1, 1), divided by their last
 * element, which makes the determinant unnecessary. */
static mix_tensor *inverted(mix_tensor *transforms) {
  mix_tensor *m[9], *inverse[9];
  for (int i = 0; i < 8; i++) m[i] = mix_layer_range(transforms, 1, i, 1, 1);
  m[8] = mix_ones_like(m[0]);
  for (int i = 0; i < 9; i++) { /* the cofactor of the transposed place */
    const int row = i % 3, column = i / 3, r1 = (row + 1) % 3, r2 = (row + 2) % 3, c1 = (column + 1) % 3,
              c2 = (column + 2) % 3;
    inverse[i] = mix_subtract(mix_multiply(m[3 * r1 + c1], m[3 * r2 + c2]),
                              mix_multiply(m[3 * r1 + c2], m[3 * r2 + c1]));
  }
  for (int i = 0; i < 8; i++) inverse[i] = mix_divide(inverse[i], inverse[8]);
  return mix_concat(8, inverse, 1);
}

/* The gradient is TensorFlow's, an estimate: that of the result, transformed by the inverse matrices. It is
 * the exact gradient of the transpose of that transform. */
static mix_tensor *transformed(const mix_operands *o, mix_tensor *x, mix_tensor *transforms,
                               mix_fill_mode mode) {
  const char *format = mix_operand_json(o, "data_format") ? mix_operand_text(o, "data_format") : NULL,
             *interpolation = mix_operand_text(o, "interpolation");
  const double fill = mix_operand_number(o, "fill_value");
  mix_tensor *images = mix_failed() ? NULL : mix_image_batch(o->layer, x, format);
  if (!images) return NULL;
  if (strcmp(interpolation, "nearest") && strcmp(interpolation, "bilinear"))
    return mix_operand_refused(o, MIX_VALUE_ERROR, "interpolation", "nearest or bilinear");
  if (mix_operand_rank(transforms) == 1) transforms = mix_expand_dims(transforms, 0);
  transforms = mix_stop_gradient(mix_cast(transforms, MIX_FLOAT32));
  const int64_t batch = mix_operand_size(images, 0);
  if (mix_failed() || mix_operand_rank(transforms) != 2 || mix_operand_size(transforms, 1) != 8)
    return mix_operand_refused(o, MIX_VALUE_ERROR, "transform", "8 numbers, or as many for each image");
  if (mix_operand_size(transforms, 0) == 1 && batch > 1)
    transforms = mix_broadcast_to(transforms, MIX_SHAPE(batch, 8));
  if (batch < 0 || mix_is_open(images, 1, 2)) return mix_identity(x); /* of shapes alone */
  const mix_interpolation method = *interpolation == 'n' ? MIX_NEAREST : MIX_BILINEAR;
  mix_tensor *y = mix_projective_transform(mix_stop_gradient(images), transforms, method, mode, fill);
  if (y && mix_dtype_is_floating(mix_tensor_dtype(images))) {
    const mix_transform_attributes back = {method, mode, 0, true};
    y = mix_surrogate_gradient(
        y, mix_apply(&mix_op_projective_transform, &back, 2, (mix_tensor *[]){images, inverted(transforms)}));
  }
  return y ? mix_image_result(y, x, format) : NULL;
}

static mix_tensor *affine_transform(const mix_operands *o, mix_tensor *x) {
  static const char *const modes[] = {"constant", "reflect", "wrap", "nearest"};
  const char *name = mix_operand_text(o, "fill_mode");
  int mode = 0;
  while (name && mode < 4 && strcmp(modes[mode], name)) mode++;
  if (mode == 4)
    return mix_operand_refused(o, MIX_VALUE_ERROR, "fill_mode", "constant, reflect, wrap or nearest");
  mix_tensor *transforms = mix_operand(o, "transform");
  return transforms ? transformed(o, x, transforms, (mix_fill_mode)mode) : NULL;
}

/* Solves the n equations of a (n, n + 1) by elimination with pivots. False: a is singular. */
static bool solve(double *a, int n) {
  const int width = n + 1;
  for (int k = 0; k < n; k++) {
    int best = k;
    for (int i = k + 1; i < n; i++)
      if (fabs(a[i * width + k]) > fabs(a[best * width + k])) best = i;
    if (a[best * width + k] == 0) return false;
    for (int j = 0; j < width; j++) {
      const double swapped = a[k * width + j];
      a[k * width + j] = a[best * width + j], a[best * width + j] = swapped;
    }
    for (int i = 0; i < n; i++) {
      const double factor = i == k ? 0 : a[i * width + k] / a[k * width + k];
      for (int j = k; j < width && factor != 0; j++) a[i * width + j] -= factor * a[k * width + j];
    }
  }
  for (int k = 0; k < n; k++) a[k * width + n] /= a[k * width + k];
  return true;
}

/* The transform that takes four points to four others: (images, 4, 2) each. */
static mix_tensor *perspective_transform(const mix_operands *o, mix_tensor *x) {
  enum { MOST = 4096, NUMBERS = 8 };
  mix_tensor *points[2] = {mix_operand(o, "start_points"), mix_operand(o, "end_points")};
  double *numbers[2];
  if (mix_failed()) return NULL;
  const mix_shape s = mix_tensor_shape(points[0]);
  const int64_t count = s.rank == 3 ? s.dims[0] : 1;
  if (!mix_shape_equal(s, mix_tensor_shape(points[1])) || (s.rank != 2 && s.rank != 3) ||
      s.dims[s.rank - 2] != 4 || s.dims[s.rank - 1] != 2 || count < 1 || count > MOST)
    return mix_operand_refused(o, MIX_VALUE_ERROR, "start_points",
                               "(4, 2) or (images, 4, 2), as the end_points");
  for (int k = 0; k < 2; k++) {
    if (mix_tensor_is_symbolic(points[k]))
      return mix_operation_fail(o, MIX_UNSUPPORTED,
                                "points that are computed in the model are not supported");
    numbers[k] = mix_scoped_memory((size_t)count * NUMBERS * sizeof(double));
    if (!numbers[k] || mix_tensor_read(points[k], MIX_FLOAT64, numbers[k], count * NUMBERS) != MIX_OK)
      return NULL;
  }
  for (int64_t i = 0; i < count; i++) {
    double a[NUMBERS * (NUMBERS + 1)] = {0}, *start = numbers[0] + i * NUMBERS,
                                  *end = numbers[1] + i * NUMBERS;
    for (int row = 0; row < NUMBERS; row++) {
      double *line = a + row * (NUMBERS + 1);
      const double ex = end[row / 2 * 2], ey = end[row / 2 * 2 + 1], to = start[row];
      line[row % 2 * 3] = ex, line[row % 2 * 3 + 1] = ey, line[row % 2 * 3 + 2] = 1;
      line[6] = -to * ex, line[7] = -to * ey, line[8] = to;
    }
    if (!solve(a, NUMBERS))
      return mix_operation_fail(o, MIX_VALUE_ERROR,
                                "no transform takes the points of image %lld to the others", (long long)i);
    for (int k = 0; k < NUMBERS; k++) start[k] = a[k * (NUMBERS + 1) + NUMBERS];
  }
  mix_tensor *transforms = mix_tensor_from_doubles(numbers[0], MIX_FLOAT32, MIX_SHAPE(count, NUMBERS));
  return transformed(o, x, transforms, MIX_FILL_CONSTANT);
}

/* ---- coordinates ---- */

/* Places along an axis moved inside; in mode constant `valid` says which were. */
static mix_tensor *inside(const char *mode, mix_tensor *places, double size, mix_tensor **valid) {
  mix_tensor *zero = number(places, 0), *last = number(places, size - 1);
  *valid = mix_logical_and(mix_greater_equal(places, zero), mix_less_equal(places, last));
  if (*mode == 'c' || *mode == 'n') return mix_minimum(mix_maximum(places, zero), last);
  if (*mode == 'w') return mix_floor_mod(places, number(places, size));
  mix_tensor *mod = mix_floor_mod(mix_abs(places), number(places, 2 * size));
  mix_tensor *over = mix_subtract(number(places, 2 * size - (*mode == 'r')), mod);
  return mix_minimum(mix_select(mix_less(mod, number(places, size)), mod, over), last);
}

enum { MOST_AXES = 6 };
typedef struct sampling {
  int64_t order;
  const char *mode;
  double fill;
} sampling;

static bool read_sampling(const mix_operands *o, const char *modes, sampling *s) {
  s->mode = mix_operand_text(o, "fill_mode");
  s->fill = mix_operand_number(o, "fill_value");
  if (mix_failed()) return false;
  if (mix_parameter_place(modes, s->mode) >= 0) return true;
  return mix_operand_refused(o, MIX_VALUE_ERROR, "fill_mode", modes);
}

/* Of arrays of those sizes that are flat (elements), or (pixels, channels), the values at places along each
 * axis; `begin`: where each place's array begins, NULL: at 0. */
static mix_tensor *sampled(mix_tensor *flat, mix_shape sizes, mix_tensor *const *axes, mix_tensor *begin,
                           const sampling *s) {
  const bool channels = mix_operand_rank(flat) > 1;
  const mix_dtype dtype = mix_tensor_dtype(axes[0]);
  mix_tensor *sum = NULL;
  for (int corner = 0; corner < (s->order ? 1 << sizes.rank : 1) && !mix_failed(); corner++) {
    mix_tensor *place = NULL, *weight = NULL, *every = NULL, *valid;
    for (int i = 0; i < sizes.rank; i++) {
      const bool upper = corner >> i & 1;
      mix_tensor *low = s->order ? mix_floor(axes[i]) : mix_round(axes[i]),
                 *part = mix_subtract(axes[i], low);
      mix_tensor *index = mix_cast(upper ? mix_plus(low, 1) : low, MIX_INT64);
      index = inside(s->mode, index, (double)sizes.dims[i], &valid);
      if (!upper) part = mix_subtract(number(part, 1), part);
      place = place ? mix_add(mix_times(place, (double)sizes.dims[i]), index) : index;
      weight = weight ? mix_multiply(weight, part) : part;
      every = every ? mix_logical_and(every, valid) : valid;
    }
    if (channels) weight = mix_expand_dims(weight, -1), every = mix_expand_dims(every, -1);
    mix_tensor *value = mix_cast(mix_gather(flat, begin ? mix_add(place, begin) : place, 0), dtype);
    if (*s->mode == 'c') value = mix_select(every, value, number(value, s->fill));
    value = s->order ? mix_multiply(weight, value) : value;
    sum = sum ? mix_add(sum, value) : value;
  }
  return sum;
}

static mix_tensor *map_coordinates(const mix_operands *o, mix_tensor *x) {
  mix_tensor *coordinates = mix_operand_floating(mix_operand(o, "coordinates"));
  sampling s = {.order = mix_operand_integer(o, "order")};
  if (!read_sampling(o, "constant nearest mirror reflect wrap", &s)) return NULL;
  const mix_shape shape = mix_tensor_shape(x);
  if (s.order < 0 || s.order > 1) return mix_operand_refused(o, MIX_UNSUPPORTED, "order", "0 or 1");
  if (mix_operand_rank(coordinates) < 2 || mix_operand_size(coordinates, 0) != shape.rank ||
      shape.rank > MOST_AXES)
    return mix_operand_refused(o, MIX_VALUE_ERROR, "coordinates",
                               "a row for each axis of the inputs, at most 6");
  mix_tensor *axes[MOST_AXES];
  for (int i = 0; i < shape.rank; i++)
    axes[i] = mix_squeeze(mix_layer_range(coordinates, 0, i, 1, 1), MIX_AXES(0));
  if (mix_shape_size(shape) < 0) return mix_open_result(x, mix_tensor_shape(axes[0])); /* of shapes alone */
  mix_tensor *y = sampled(mix_flattened(x), shape, axes, NULL, &s);
  return mix_cast(mix_dtype_is_floating(mix_tensor_dtype(x)) ? y : mix_round(y), mix_tensor_dtype(x));
}

/* ---- elastic transforms ---- */

/* tf.random.stateless_normal of the seed (seed, 0): the seed itself is scrambled by Philox (GenerateKey of
 * core/kernels/stateless_random_ops.cc), then each block gives four numbers by Box and Muller (1958) in
 * float32 (core/lib/random/random_distributions.h). */
static float unit_float(uint32_t word) { return (float)(word & 0x7fffffU) * 0x1p-23F; }
static mix_tensor *seeded_normal(int64_t seed, mix_shape shape, mix_dtype dtype) {
  const int64_t count = mix_shape_checked_size(shape);
  double *values = mix_scoped_memory(((size_t)count + 3) * sizeof *values);
  const mix_philox mix = mix_philox_block(0x02461e293ec8f720U, 0, (uint64_t)seed);
  const uint64_t key = mix.v[0] | (uint64_t)mix.v[1] << 32, counter = mix.v[2] | (uint64_t)mix.v[3] << 32;
  for (int64_t i = 0; values && i < count; i += 4) {
    const mix_philox block = mix_philox_block(key, counter, (uint64_t)i / 4);
    for (int k = 0; k < 4; k += 2) {
      const float radius = sqrtf(-2 * logf(fmaxf(unit_float(block.v[k]), 1e-7F))),
                  angle = (float)(2 * PI) * unit_float(block.v[k + 1]);
      values[i + k] = sinf(angle) * radius, values[i + k + 1] = cosf(angle) * radius;
    }
  }
  return values ? mix_tensor_from_doubles(values, dtype, shape) : NULL;
}

/* The matrix (size, size) of a Gaussian filter of that deviation and of 6 sigma | 1 weights whose sum is 1,
 * with zeros beyond the ends. */
static mix_tensor *filter_matrix(int64_t size, double sigma, mix_dtype dtype) {
  const int64_t reach = 6 * (int64_t)sigma / 2;
  double *values = mix_scoped_memory((size_t)(size * size) * sizeof *values), sum = 0;
  for (int64_t d = -reach; d <= reach; d++) sum += exp(-0.5 * (double)(d * d) / (sigma * sigma));
  for (int64_t i = 0; values && i < size; i++)
    for (int64_t j = 0; j < size; j++)
      if (llabs(i - j) <= reach)
        values[i * size + j] = exp(-0.5 * (double)((i - j) * (i - j)) / (sigma * sigma)) / sum;
  return values ? mix_tensor_from_doubles(values, dtype, MIX_SHAPE(size, size)) : NULL;
}

/* Simard, Steinkraus, Platt: Best practices for convolutional neural networks applied to visual document
 * analysis, 2003. Keras moves each pixel as far down as to the right, by one noise of its seed. */
static mix_tensor *elastic_transform(const mix_operands *o, mix_tensor *x) {
  enum { MOST_PIXELS = 4096, MOST_SIGMA = 1024 };
  const char *format = mix_operand_json(o, "data_format") ? mix_operand_text(o, "data_format") : NULL,
             *interpolation = mix_operand_text(o, "interpolation");
  const double alpha = mix_operand_number(o, "alpha"), sigma = mix_operand_number(o, "sigma");
  const bool seeded = mix_operand_json(o, "seed");
  const int64_t seed = seeded ? mix_operand_integer(o, "seed") : 0;
  sampling how = {.order = interpolation && *interpolation == 'b'};
  if (!read_sampling(o, "constant nearest reflect wrap", &how)) return NULL;
  if (strcmp(interpolation, "nearest") && strcmp(interpolation, "bilinear"))
    return mix_operand_refused(o, MIX_VALUE_ERROR, "interpolation", "nearest or bilinear");
  if (!(sigma > 0 && sigma <= MOST_SIGMA))
    return mix_operand_refused(o, MIX_VALUE_ERROR, "sigma", "a number above 0, at most 1024");
  const mix_dtype dtype = mix_tensor_dtype(x);
  if (!mix_dtype_is_floating(dtype))
    return mix_operation_fail(o, MIX_TYPE_ERROR, "its images are %s; expected floating-point, as in Keras",
                              mix_dtype_name(dtype));
  mix_tensor *images = mix_image_batch(o->layer, x, format);
  if (!images) return NULL;
  const mix_shape s = mix_tensor_shape(images), plane = MIX_SHAPE(s.dims[0], s.dims[1], s.dims[2]);
  if (mix_shape_size(s) < 0) return mix_identity(x); /* of shapes alone */
  if (s.dims[1] > MOST_PIXELS || s.dims[2] > MOST_PIXELS)
    return mix_operation_fail(o, MIX_UNSUPPORTED, "images of more than %d x %d pixels", MOST_PIXELS,
                              MOST_PIXELS);
  mix_tensor *noise = seeded ? seeded_normal(seed, plane, dtype)
                             : mix_random_normal(mix_generator_of(o->layer), plane, dtype);
  noise = mix_matmul_rows(mix_times(noise, sigma), filter_matrix(s.dims[2], sigma, dtype));
  noise = mix_matmul(filter_matrix(s.dims[1], sigma, dtype), noise, false, false);
  mix_tensor *shift = mix_times(noise, alpha), *axes[2], *begin;
  for (int i = 0; i < 2; i++) {
    mix_tensor *pixels = mix_range(0, (double)s.dims[i + 1], 1, dtype);
    axes[i] = mix_add(shift, i ? pixels : mix_expand_dims(pixels, 1));
  }
  begin = mix_times(mix_range(0, (double)s.dims[0], 1, MIX_INT64), (double)(s.dims[1] * s.dims[2]));
  begin = mix_expand_dims(mix_expand_dims(begin, 1), 1);
  mix_tensor *rows = mix_reshape(images, MIX_SHAPE(s.dims[0] * s.dims[1] * s.dims[2], s.dims[3]));
  if (mix_failed()) return NULL;
  mix_tensor *y = sampled(rows, MIX_SHAPE(s.dims[1], s.dims[2]), axes, begin, &how);
  return y ? mix_image_result(y, x, format) : NULL;
}

/* ---- scales and translations ---- */

static mix_tensor *lanczos(mix_tensor *x, double radius) {
  mix_tensor *angle = mix_times(x, PI), *small = mix_less_equal(x, number(x, 1e-3));
  mix_tensor *product = mix_times(mix_multiply(mix_sin(angle), mix_sin(mix_over(angle, radius))), radius);
  mix_tensor *y = mix_select(small, number(x, 1),
                             mix_divide(product, mix_select(small, number(x, 1), mix_square(angle))));
  return mix_select(mix_greater(x, number(x, radius)), number(x, 0), y);
}
/* Keys: Cubic convolution interpolation, 1981. */
static mix_tensor *cubic(mix_tensor *x) {
  mix_tensor *near = mix_plus(mix_multiply(mix_multiply(mix_plus(mix_times(x, 1.5), -2.5), x), x), 1),
             *far = mix_plus(
                 mix_multiply(mix_plus(mix_multiply(mix_plus(mix_times(x, -0.5), 2.5), x), -4), x), 2);
  mix_tensor *y = mix_select(mix_greater_equal(x, number(x, 1)), far, near);
  return mix_select(mix_greater_equal(x, number(x, 2)), number(x, 0), y);
}
/* The weight of a distance; NULL without an error: the method is not known. */
static mix_tensor *weight_of(const char *method, mix_tensor *x) {
  if (mix_parameter_place("linear bilinear trilinear triangle", method) >= 0)
    return mix_maximum(number(x, 0), mix_subtract(number(x, 1), x));
  if (mix_parameter_place("cubic bicubic tricubic", method) >= 0) return cubic(x);
  return !strcmp(method, "lanczos3") ? lanczos(x, 3) : !strcmp(method, "lanczos5") ? lanczos(x, 5) : NULL;
}

/* The matrix (from, to) of an axis. */
static mix_tensor *axis_weights(const mix_operands *o, int64_t from, int64_t to, mix_tensor *scale,
                                mix_tensor *shift) {
  const mix_dtype dtype = mix_tensor_dtype(scale);
  mix_tensor *inverse = mix_divide(number(scale, 1), scale), *width = number(scale, 1);
  if (mix_operand_flag(o, "antialias")) width = mix_maximum(inverse, width);
  mix_tensor *sample = mix_multiply(mix_plus(mix_range(0, (double)to, 1, dtype), 0.5), inverse);
  sample = mix_plus(mix_subtract(sample, mix_multiply(shift, inverse)), -0.5);
  mix_tensor *places = mix_reshape(mix_range(0, (double)from, 1, dtype), MIX_SHAPE(from, 1));
  const char *method = mix_operand_text(o, "method");
  mix_tensor *weights =
      mix_failed() ? NULL : weight_of(method, mix_divide(mix_abs(mix_subtract(sample, places)), width));
  if (!weights)
    return mix_operand_refused(o, MIX_VALUE_ERROR, "method", "linear, cubic, lanczos3 or lanczos5");
  mix_tensor *sum = mix_reduce_sum(weights, MIX_AXES(0), true), *none = mix_equal(sum, number(sum, 0));
  mix_tensor *enough = mix_greater(mix_abs(sum), number(sum, 1000 * 0x1p-23));
  weights = mix_select(enough, mix_divide(weights, mix_select(none, number(sum, 1), sum)), number(sum, 0));
  mix_tensor *within = mix_logical_and(mix_greater_equal(sample, number(sample, -0.5)),
                                       mix_less_equal(sample, number(sample, (double)from - 0.5)));
  return mix_select(within, weights, number(weights, 0));
}

static mix_tensor *scale_and_translate(const mix_operands *o, mix_tensor *x) {
  const mix_shape result = mix_operand_shape(o, "output_shape");
  const mix_axes axes = mix_operand_axes(o, "spatial_dims", mix_operand_rank(x));
  mix_tensor *scale = mix_operand_floating(mix_operand(o, "scale")),
             *shift = mix_cast(mix_operand(o, "translation"), mix_tensor_dtype(scale)),
             *y = mix_operand_floating(x);
  if (mix_failed()) return NULL;
  for (int i = 0; i < axes.count && y; i++) {
    const int axis = axes.axis[i], last = mix_operand_rank(y) - 1;
    const int64_t from = mix_operand_size(y, axis);
    if (result.rank <= axis || from < 1 || result.dims[axis] < 1)
      return mix_operand_refused(o, MIX_VALUE_ERROR, "output_shape",
                                 "a size for each axis, of images of known sizes");
    mix_tensor *weights = axis_weights(o, from, result.dims[axis], mix_layer_range(scale, 0, i, 1, 1),
                                       mix_layer_range(shift, 0, i, 1, 1));
    y = mix_matmul_rows(mix_axis_moved(y, axis, last), mix_cast(weights, mix_tensor_dtype(y)));
    y = mix_axis_moved(y, last, axis);
  }
  return mix_cast(mix_dtype_is_floating(mix_tensor_dtype(x)) ? y : mix_round(y), mix_tensor_dtype(x));
}

/* ---- the table ---- */

const mix_keras_operation mix_keras_warp_operations[] = {
    MIX_KERAS_OPERATION("AffineTransform", "image", "images transform",
                        "interpolation=\"bilinear\" fill_mode=\"constant\" fill_value=0 data_format",
                        .build = affine_transform),
    MIX_KERAS_OPERATION("PerspectiveTransform", "image", "images start_points end_points",
                        "interpolation=\"bilinear\" fill_value=0 data_format",
                        .build = perspective_transform),
    MIX_KERAS_OPERATION("MapCoordinates", "image", "inputs coordinates",
                        "order fill_mode=\"constant\" fill_value=0", .build = map_coordinates),
    MIX_KERAS_OPERATION("ElasticTransform", "image", "images",
                        "alpha=20 sigma=5 interpolation=\"bilinear\" fill_mode=\"reflect\" fill_value=0 seed "
                        "data_format",
                        .build = elastic_transform, .draws = true),
    MIX_KERAS_OPERATION("ScaleAndTranslate", "image", "images output_shape scale translation",
                        "spatial_dims method antialias=true", .build = scale_and_translate),
    {.operation = {0}}};
