/* Operations of keras.ops.image. Images are (height, width, channels) or a batch of them. */
#include "base/error.h"
#include "nn/formulas.h"
#include "nn/layers/moments.h"
#include "nn/layers/operations/operation.h"
#include "nn/layers/spatial/spatial.h"
#include "ops/table.h"
#include "ops/with_number.h"
#include <math.h>
#include <mixtape/convolution.h>
#include <strings.h>

static mix_tensor *number(mix_tensor *x, double value) { return mix_scalar_like(x, value); }
static mix_tensor *clipped(mix_tensor *x) { return mix_clip_between(x, 0, 1); }

/* ---- batches with channels last ---- */

static const char *format_of(const mix_operands *o) {
  return mix_operand_json(o, "data_format") ? mix_operand_text(o, "data_format") : "channels_last";
}
static mix_tensor *batch_of(const mix_operands *o, mix_tensor *x) {
  const char *format = format_of(o);
  return mix_failed() ? NULL : mix_image_batch(o->layer, x, format);
}
/* y as x was. */
static mix_tensor *result_of(const mix_operands *o, mix_tensor *y, mix_tensor *x) {
  return y ? mix_image_result(y, x, format_of(o)) : NULL;
}
/* Two sizes, or one for both; of TensorFlow also four, with 1 for the batch and the channels. */
static bool read_sizes(const mix_operands *o, const char *name, int64_t *sizes) {
  int64_t given[4];
  const int most = mix_operands_of_tf(o) ? 4 : 2, count = mix_operand_integers(o, name, most, given);
  const bool four = count == 4 && given[0] == 1 && given[3] == 1;
  if (count == 3 || (count == 4 && !four))
    return mix_operand_refused(o, MIX_VALUE_ERROR, name, "[1, height, width, 1]");
  if (count) sizes[0] = given[four], sizes[1] = given[four ? 2 : count - 1];
  const bool good = count && sizes[0] > 0 && sizes[1] > 0 && sizes[0] < 1 << 24 && sizes[1] < 1 << 24;
  return good || mix_operand_refused(o, MIX_VALUE_ERROR, name, "one or two positive integers");
}

/* ---- sizes ---- */

static mix_tensor *resize(const mix_operands *o, mix_tensor *x) {
  const char *name = mix_operands_of_tf(o) ? "method" : "interpolation", *method = mix_operand_text(o, name);
  const bool crop = mix_operand_flag(o, "crop_to_aspect_ratio"),
             pad = mix_operand_flag(o, "pad_to_aspect_ratio");
  int64_t size[2];
  if (!method || !read_sizes(o, "size", size)) return NULL;
  if (mix_parameter_place("nearest bilinear bicubic lanczos3 lanczos5", method) < 0 || (crop && pad))
    return mix_operand_refused(o, MIX_VALUE_ERROR, name,
                               "nearest, bilinear, bicubic, lanczos3 or lanczos5, and to crop or to pad");
  mix_tensor *images = batch_of(o, x);
  if (!images) return NULL;
  const mix_dtype given = mix_tensor_dtype(x),
                  dtype = *method == 'n' || given == MIX_FLOAT64 ? given : MIX_FLOAT32;
  if (mix_is_open(images, 1, 2))
    return mix_cast(mix_open_result(x, mix_image_shape(mix_tensor_shape(x), format_of(o), size[0], size[1])),
                    dtype);
  if (crop) images = mix_crop_to_aspect(images, size[0], size[1]);
  if (pad) images = mix_pad_to_aspect(images, size[0], size[1], mix_operand_number(o, "fill_value"));
  mix_tensor *y = mix_resize_images(images, size[0], size[1], mix_interpolation_named(method),
                                    mix_operand_flag(o, "antialias"));
  return result_of(o, mix_cast(y, dtype), x);
}

enum { MOST_PIXELS = 1 << 24 };

typedef struct border {
  const char *before, *after, *target;
} border;

/* Rows or columns at both ends of an axis, of which one may follow from the size of the result. */
static bool read_border(const mix_operands *o, const border *b, int64_t size, bool padding, int64_t *ends) {
  const bool before = mix_operand_json(o, b->before), after = mix_operand_json(o, b->after);
  const char *const names[] = {b->before, b->after, b->target};
  int64_t given[3] = {0};
  for (int i = 0; i < 3; i++)
    if (mix_operand_json(o, names[i]) &&
        !mix_json_integer_within(mix_operand_json(o, names[i]), 0, MOST_PIXELS, &given[i]))
      return mix_operand_refused(o, MIX_TYPE_ERROR, names[i], "an integer from 0 to 2^24");
  const int64_t change = mix_operand_json(o, b->target) ? (padding ? 1 : -1) * (given[2] - size) : 0;
  ends[0] = given[0];
  ends[1] = after ? given[1] : change - ends[0];
  if (!before) ends[0] = change - ends[1];
  const bool good =
      before + after + (mix_operand_json(o, b->target) != NULL) == 2 && ends[0] >= 0 && ends[1] >= 0;
  return good || mix_operand_refused(o, MIX_VALUE_ERROR, b->target, "two of both borders and the size");
}
static mix_tensor *change_borders(const mix_operands *o, mix_tensor *x, const border *borders, bool padding) {
  mix_tensor *images = batch_of(o, x);
  int64_t ends[2][2];
  if (!images) return NULL;
  const mix_shape s = mix_tensor_shape(images);
  for (int i = 0; i < 2; i++) {
    if (s.dims[i + 1] < 0)
      return mix_operation_fail(o, MIX_UNSUPPORTED, "images of unknown sizes are not supported");
    if (!read_border(o, &borders[i], s.dims[i + 1], padding, ends[i])) return NULL;
  }
  const int64_t height = s.dims[1] - ends[0][0] - ends[0][1], width = s.dims[2] - ends[1][0] - ends[1][1];
  if (padding)
    return result_of(
        o,
        mix_pad(images, MIX_SHAPE(0, ends[0][0], ends[1][0], 0), MIX_SHAPE(0, ends[0][1], ends[1][1], 0), 0),
        x);
  if (height < 0 || width < 0)
    return mix_operation_fail(o, MIX_VALUE_ERROR, "nothing is left of %s", MIX_SHAPE_TEXT(s));
  return result_of(o, mix_crop(images, ends[0][0], ends[1][0], height, width), x);
}
static mix_tensor *pad_images(const mix_operands *o, mix_tensor *x) {
  static const border borders[] = {{"top_padding", "bottom_padding", "target_height"},
                                   {"left_padding", "right_padding", "target_width"}};
  return change_borders(o, x, borders, true);
}
static mix_tensor *crop_images(const mix_operands *o, mix_tensor *x) {
  static const border borders[] = {{"top_cropping", "bottom_cropping", "target_height"},
                                   {"left_cropping", "right_cropping", "target_width"}};
  return change_borders(o, x, borders, false);
}

/* (batch, rows, columns, height width channels of a patch). */
static mix_tensor *extract_patches(const mix_operands *o, mix_tensor *x) {
  const char *padding = mix_operand_text(o, "padding");
  int64_t size[2], strides[2], dilation[2], before[2] = {0, 0}, after[2] = {0, 0}, count[2];
  mix_tensor *images = batch_of(o, x);
  if (!images || !padding || !read_sizes(o, o->second, size) ||
      !read_sizes(o, mix_operands_of_tf(o) ? "rates" : "dilation_rate", dilation))
    return NULL;
  if (!read_sizes(o, mix_operand_json(o, "strides") ? "strides" : o->second, strides)) return NULL;
  const mix_shape s = mix_tensor_shape(images);
  for (int i = 0; i < 2; i++) {
    const int64_t n = s.dims[i + 1], window = (size[i] - 1) * dilation[i] + 1;
    if (n < 0 || s.dims[3] < 0)
      return mix_operation_fail(o, MIX_UNSUPPORTED, "images of unknown sizes are not supported");
    if (!strcasecmp(padding, "same"))
      after[i] = mix_same_padding(n, window, strides[i], &before[i]) - before[i];
    if (window > n + before[i] + after[i])
      return mix_operation_fail(o, MIX_VALUE_ERROR, "patches of %lld x %lld are larger than the images, %s",
                                (long long)size[0], (long long)size[1], MIX_SHAPE_TEXT(s));
    count[i] = (n + before[i] + after[i] - window) / strides[i] + 1;
  }
  const mix_patches p = {.rows = count[0],
                         .columns = count[1],
                         .height = size[0],
                         .width = size[1],
                         .image_width = s.dims[2] + before[1] + after[1],
                         .stride = {strides[0], strides[1]},
                         .dilation = {dilation[0], dilation[1]}};
  images = mix_pad(images, MIX_SHAPE(0, before[0], before[1], 0), MIX_SHAPE(0, after[0], after[1], 0), 0);
  mix_tensor *patches = mix_image_patches(images, &p);
  return result_of(
      o, mix_layer_reshape(patches, MIX_SHAPE(s.dims[0], count[0], count[1], size[0] * size[1] * s.dims[3])),
      x);
}

/* ---- colours ---- */

static mix_tensor *channel(mix_tensor *images, int i) {
  return mix_squeeze(mix_layer_range(images, 3, i, 1, 1), MIX_AXES(3));
}
static bool colours(const mix_operands *o, mix_tensor *images, mix_tensor **of) {
  if (!images) return false;
  if (mix_operand_size(images, 3) != 3)
    return mix_operation_fail(o, MIX_VALUE_ERROR, "images of %lld channels; expected 3",
                              (long long)mix_operand_size(images, 3));
  for (int i = 0; i < 3; i++) of[i] = channel(images, i);
  return !mix_failed();
}

static mix_tensor *rgb_to_grayscale(const mix_operands *o, mix_tensor *x) {
  mix_tensor *images = batch_of(o, x), *rgb[3];
  if (images && mix_operand_size(images, 3) == 1) return mix_identity(x);
  if (!colours(o, mix_operand_floating(images), rgb)) return NULL;
  mix_tensor *y =
      mix_add(mix_add(mix_times(rgb[0], 0.2989), mix_times(rgb[1], 0.5870)), mix_times(rgb[2], 0.1140));
  return result_of(o, mix_cast(mix_expand_dims(y, 3), mix_tensor_dtype(x)), x);
}

/* Smith: Color gamut transform pairs, 1978; with TensorFlow's order of ties. */
static mix_tensor *rgb_to_hsv(const mix_operands *o, mix_tensor *x) {
  mix_tensor *c[3];
  if (!colours(o, batch_of(o, x), c)) return NULL;
  mix_tensor *value = mix_maximum(mix_maximum(c[0], c[1]), c[2]), *zero = number(value, 0),
             *range = mix_subtract(value, mix_minimum(mix_minimum(c[0], c[1]), c[2]));
  mix_tensor *saturation = mix_select(mix_greater(value, zero), mix_divide_no_nan(range, value), zero);
  mix_tensor *norm = mix_divide_no_nan(number(range, 1.0 / 6), range);
  mix_tensor *red = mix_multiply(norm, mix_subtract(c[1], c[2])),
             *green = mix_plus(mix_multiply(norm, mix_subtract(c[2], c[0])), 2.0 / 6),
             *blue = mix_plus(mix_multiply(norm, mix_subtract(c[0], c[1])), 4.0 / 6);
  mix_tensor *hue = mix_select(mix_equal(c[0], value), red, mix_select(mix_equal(c[1], value), green, blue));
  hue = mix_select(mix_greater(range, zero), hue, zero);
  hue = mix_select(mix_less(hue, zero), mix_plus(hue, 1), hue);
  return mix_failed() ? NULL : result_of(o, mix_layer_stack(mix_list_of(hue, saturation, value), 3), x);
}
static mix_tensor *hsv_to_rgb(const mix_operands *o, mix_tensor *x) {
  mix_tensor *hsv[3], *rgb[3];
  if (!colours(o, batch_of(o, x), hsv)) return NULL;
  for (int i = 0; i < 3; i++) {
    mix_tensor *distance = mix_abs(mix_plus(mix_times(hsv[0], 6), i == 0 ? -3 : -2 * i));
    mix_tensor *part = clipped(i ? mix_subtract(number(distance, 2), distance) : mix_plus(distance, -1));
    rgb[i] =
        mix_multiply(mix_add(mix_subtract(number(hsv[1], 1), hsv[1]), mix_multiply(hsv[1], part)), hsv[2]);
  }
  return mix_failed() ? NULL : result_of(o, mix_layer_stack(mix_list_of(rgb[0], rgb[1], rgb[2]), 3), x);
}

/* ---- filters ---- */

/* A kernel of `count` filters (rows, columns) for each channel by itself. */
static mix_tensor *filtered(mix_tensor *images, const double *kernel, mix_shape size, const char *padding) {
  const int64_t channels = mix_operand_size(images, 3), count = size.dims[2];
  mix_tensor *one = mix_tensor_from_doubles(kernel, mix_tensor_dtype(images),
                                            MIX_SHAPE(size.dims[0], size.dims[1], 1, count));
  const mix_conv_options options = {
      .size = sizeof options,
      .kernel = mix_broadcast_to(one, MIX_SHAPE(size.dims[0], size.dims[1], channels, count)),
      .padding = padding};
  return mix_depthwise_conv_with(images, &options);
}

enum { LARGEST_FILTER = 64 };

static void gaussian(int64_t size, double sigma, double *weights) {
  double sum = 0;
  for (int64_t i = 0; i < size; i++) {
    const double place = ((double)i - (double)(size - 1) / 2) / sigma;
    sum += weights[i] = exp(-0.5 * place * place);
  }
  for (int64_t i = 0; i < size; i++) weights[i] /= sum;
}
/* Products of the weights of rows and of columns. */
static bool make_gaussian(const mix_operands *o, const int64_t *size, const double *sigma, double *kernel) {
  double weights[2][LARGEST_FILTER];
  if (size[0] > LARGEST_FILTER || size[1] > LARGEST_FILTER || !(sigma[0] > 0) || !(sigma[1] > 0))
    return mix_operation_fail(o, MIX_VALUE_ERROR,
                              "a filter of %lld x %lld; expected at most %d, and sigma above 0",
                              (long long)size[0], (long long)size[1], LARGEST_FILTER);
  for (int i = 0; i < 2; i++) gaussian(size[i], sigma[i], weights[i]);
  for (int64_t i = 0; i < size[1]; i++)
    for (int64_t j = 0; j < size[0]; j++) kernel[i * size[0] + j] = weights[1][i] * weights[0][j];
  return true;
}

static mix_tensor *gaussian_blur(const mix_operands *o, mix_tensor *x) {
  double kernel[LARGEST_FILTER * LARGEST_FILTER], sigma[2];
  int64_t size[2];
  const json_t *given = mix_operand_json(o, "sigma");
  mix_tensor *images = batch_of(o, x);
  if (!images || !read_sizes(o, "kernel_size", size)) return NULL;
  for (size_t i = 0; i < 2; i++)
    if (!mix_json_number_read(json_is_array(given) ? json_array_get(given, i) : given, &sigma[i]))
      return mix_operand_refused(o, MIX_TYPE_ERROR, "sigma", "two numbers");
  if (!make_gaussian(o, size, sigma, kernel)) return NULL;
  return result_of(o, filtered(images, kernel, MIX_SHAPE(size[0], size[1], 1), "same"), x);
}

/* x with the neighbours of both ends mirrored along an axis. */
static mix_tensor *reflected(mix_tensor *x, int axis) {
  const int64_t size = mix_operand_size(x, axis);
  mix_tensor *pieces[] = {mix_layer_range(x, axis, 1, 1, 1), x, mix_layer_range(x, axis, size - 2, 1, 1)};
  return mix_concat(3, pieces, axis);
}
/* Slopes along rows and along columns, as a last axis. */
static mix_tensor *sobel_edges(const mix_operands *o, mix_tensor *x) {
  static const double kernel[] = {-1, -1, -2, 0, -1, 1, 0, -2, 0, 0, 0, 2, 1, -1, 2, 0, 1, 1};
  mix_tensor *images = mix_to_channels_last(x, format_of(o));
  if (mix_failed() || mix_operand_rank(images) != 4)
    return mix_operation_fail(o, MIX_VALUE_ERROR, "expected a batch of images");
  mix_shape s = mix_tensor_shape(images);
  if (s.dims[1] < 2 || s.dims[2] < 2)
    return mix_operation_fail(o, MIX_VALUE_ERROR, "images of %lld x %lld; expected known sizes of at least 2",
                              (long long)s.dims[1], (long long)s.dims[2]);
  mix_tensor *y = filtered(reflected(reflected(images, 1), 2), kernel, MIX_SHAPE(3, 3, 2), "valid");
  s.dims[s.rank++] = 2;
  y = mix_layer_reshape(y, s);
  return mix_is_channels_first(format_of(o)) ? mix_transpose(y, MIX_AXES(0, 3, 1, 2, 4)) : y;
}

/* Wang et al.: Image quality assessment: from error visibility to structural similarity, 2004. */
static mix_tensor *ssim(const mix_operands *o, mix_tensor *unused) {
  const char *const names[] = {o->first, mix_operands_of_tf(o) ? "img2" : "image2"};
  mix_tensor *pair[2], *images[2], *means[2], *variances[2];
  double kernel[LARGEST_FILTER * LARGEST_FILTER];
  const double most = mix_operand_number(o, "max_val"), sigma = mix_operand_number(o, "filter_sigma"),
               c1 = pow(mix_operand_number(o, "k1") * most, 2),
               c2 = pow(mix_operand_number(o, "k2") * most, 2);
  const int64_t size = mix_operand_integer(o, "filter_size");
  if (!mix_operands_promoted(o, 2, names, pair)) return NULL;
  for (int i = 0; i < 2; i++)
    if (!(images[i] = batch_of(o, pair[i]))) return NULL;
  const mix_shape s = mix_tensor_shape(images[0]), window = MIX_SHAPE(size, size, 1);
  if (size < 1) return mix_operand_refused(o, MIX_VALUE_ERROR, "filter_size", "1 to 64");
  if (!make_gaussian(o, (int64_t[]){size, size}, (double[]){sigma, sigma}, kernel)) return NULL;
  if ((s.dims[1] >= 0 && s.dims[1] < size) || (s.dims[2] >= 0 && s.dims[2] < size))
    return mix_operation_fail(o, MIX_VALUE_ERROR, "a filter of %lld is larger than the images",
                              (long long)size);
  for (int i = 0; i < 2; i++) {
    means[i] = filtered(images[i], kernel, window, "valid");
    variances[i] =
        mix_subtract(filtered(mix_square(images[i]), kernel, window, "valid"), mix_square(means[i]));
  }
  mix_tensor *both = mix_multiply(means[0], means[1]),
             *joint =
                 mix_subtract(filtered(mix_multiply(images[0], images[1]), kernel, window, "valid"), both);
  mix_tensor *top = mix_multiply(mix_plus(mix_times(both, 2), c1), mix_plus(mix_times(joint, 2), c2));
  mix_tensor *squares = mix_plus(mix_add(mix_square(means[0]), mix_square(means[1])), c1);
  mix_tensor *bottom = mix_multiply(squares, mix_plus(mix_add(variances[0], variances[1]), c2));
  mix_tensor *y = mix_reduce_mean(mix_divide(top, bottom), MIX_AXES(1, 2, 3), false);
  return mix_operand_rank(pair[0]) == 3 && y ? mix_squeeze(y, MIX_AXES(0)) : y;
}

/* ---- of TensorFlow ---- */

static mix_tensor *flip_left_right(const mix_operands *o, mix_tensor *x) {
  mix_tensor *images = batch_of(o, x);
  return images ? result_of(o, mix_flipped(images, 2), x) : NULL;
}
static mix_tensor *flip_up_down(const mix_operands *o, mix_tensor *x) {
  mix_tensor *images = batch_of(o, x);
  return images ? result_of(o, mix_flipped(images, 1), x) : NULL;
}
static mix_tensor *transpose_image(const mix_operands *o, mix_tensor *x) {
  mix_tensor *images = batch_of(o, x);
  return images ? result_of(o, mix_transpose(images, MIX_AXES(0, 2, 1, 3)), x) : NULL;
}
/* Against the clock: the columns are reversed, then rows and columns transposed. */
static mix_tensor *rotate(const mix_operands *o, mix_tensor *x) {
  const int64_t turns = (mix_operand_integer(o, "k") % 4 + 4) % 4;
  mix_tensor *images = batch_of(o, x);
  for (int64_t i = 0; i < turns && images; i++)
    images = mix_transpose(mix_flipped(images, 2), MIX_AXES(0, 2, 1, 3));
  return mix_failed() ? NULL : result_of(o, images, x);
}

static mix_tensor *grayscale_to_rgb(const mix_operands *o, mix_tensor *x) {
  mix_tensor *images = batch_of(o, x);
  if (!images) return NULL;
  if (mix_operand_size(images, 3) != 1)
    return mix_operation_fail(o, MIX_VALUE_ERROR, "images of %lld channels; expected 1",
                              (long long)mix_operand_size(images, 3));
  mix_tensor *three[] = {images, images, images};
  return result_of(o, mix_concat(3, three, 3), x);
}
/* The products of a pixel's colours with a matrix. */
static mix_tensor *mixed(const mix_operands *o, mix_tensor *x, const double *matrix) {
  mix_tensor *images = batch_of(o, x), *of[3];
  if (!colours(o, images, of)) return NULL;
  mix_tensor *weights = mix_tensor_from_doubles(matrix, mix_tensor_dtype(x), MIX_SHAPE(3, 3));
  return result_of(o, mix_matmul_rows(images, weights), x);
}
#define COLOURS(name, ...)                                                                                   \
  static mix_tensor *name(const mix_operands *o, mix_tensor *x) {                                            \
    return mixed(o, x, (const double[]){__VA_ARGS__});                                                       \
  }
COLOURS(rgb_to_yiq, 0.299, 0.59590059, 0.2115, 0.587, -0.27455667, -0.52273617, 0.114, -0.32134392,
        0.31119955)
COLOURS(yiq_to_rgb, 1, 1, 1, 0.95598634, -0.27201283, -1.10674021, 0.6208248, -0.64720424, 1.70423049)
COLOURS(rgb_to_yuv, 0.299, -0.14714119, 0.61497538, 0.587, -0.28886916, -0.51496512, 0.114, 0.43601035,
        -0.10001026)
COLOURS(yuv_to_rgb, 1, 1, 1, 0, -0.394642334, 2.03206185, 1.13988303, -0.58062185, 0)

/* Those of integers TensorFlow first scales to [0, 1]. */
static mix_tensor *real_images(const mix_operands *o, mix_tensor *x) {
  if (mix_dtype_is_floating(mix_tensor_dtype(x))) return batch_of(o, x);
  return mix_operation_fail(o, MIX_UNSUPPORTED, "images of %s; supported are floating-point ones",
                            mix_dtype_name(mix_tensor_dtype(x)));
}
static mix_tensor *adjust_brightness(const mix_operands *o, mix_tensor *x) {
  mix_tensor *images = real_images(o, x);
  return images ? result_of(o, mix_plus(images, mix_operand_number(o, "delta")), x) : NULL;
}
static mix_tensor *adjust_contrast(const mix_operands *o, mix_tensor *x) {
  const double factor = mix_operand_number(o, "contrast_factor");
  mix_tensor *images = real_images(o, x),
             *mean = images ? mix_reduce_mean(images, MIX_AXES(1, 2), true) : NULL;
  return mean ? result_of(o, mix_add(mix_times(mix_subtract(images, mean), factor), mean), x) : NULL;
}
static mix_tensor *adjust_gamma(const mix_operands *o, mix_tensor *x) {
  const double gamma = mix_operand_number(o, "gamma"), gain = mix_operand_number(o, "gain");
  mix_tensor *images = real_images(o, x);
  if (!images) return NULL;
  if (gamma < 0) return mix_operand_refused(o, MIX_VALUE_ERROR, "gamma", "a number of at least 0");
  return result_of(o, mix_times(mix_power(images, number(images, gamma)), gain), x);
}
static mix_tensor *standardized(const mix_operands *o, mix_tensor *x) {
  mix_tensor *images = real_images(o, x);
  if (!images) return NULL;
  const mix_shape s = mix_tensor_shape(images);
  if (s.dims[1] < 0 || s.dims[2] < 0 || s.dims[3] < 0) return mix_identity(x); /* of shapes alone */
  const double least = 1 / sqrt((double)(s.dims[1] * s.dims[2] * s.dims[3]));
  mix_tensor *rest = mix_subtract(images, mix_reduce_mean(images, MIX_AXES(1, 2, 3), true));
  mix_tensor *deviation = mix_sqrt(mix_reduce_mean(mix_square(rest), MIX_AXES(1, 2, 3), true));
  return result_of(o, mix_divide(rest, mix_maximum(deviation, number(deviation, least))), x);
}

/* A box of the image, or a larger image in which it is one. */
static bool read_box(const mix_operands *o, mix_shape s, int64_t *begin, int64_t *size) {
  static const char *const names[] = {"offset_height", "offset_width", "target_height", "target_width"};
  for (int i = 0; i < 4; i++) {
    const int64_t value = mix_operand_integer(o, names[i]);
    if (mix_failed()) return false;
    if (value < i / 2 || value > MOST_PIXELS)
      return mix_operand_refused(o, MIX_VALUE_ERROR, names[i], "a number of pixels");
    *(i < 2 ? &begin[i] : &size[i - 2]) = value;
  }
  return (s.dims[1] > 0 && s.dims[2] > 0) ||
         mix_operation_fail(o, MIX_UNSUPPORTED, "images of unknown sizes are not supported");
}
static mix_tensor *crop_box(const mix_operands *o, mix_tensor *x) {
  mix_tensor *images = batch_of(o, x);
  int64_t begin[2], size[2];
  if (!images || !read_box(o, mix_tensor_shape(images), begin, size)) return NULL;
  const mix_shape s = mix_tensor_shape(images);
  if (begin[0] + size[0] > s.dims[1] || begin[1] + size[1] > s.dims[2])
    return mix_operand_refused(o, MIX_VALUE_ERROR, "target_height", "a box inside the image");
  return result_of(o, mix_crop(images, begin[0], begin[1], size[0], size[1]), x);
}
static mix_tensor *pad_box(const mix_operands *o, mix_tensor *x) {
  mix_tensor *images = batch_of(o, x);
  int64_t begin[2], size[2];
  if (!images || !read_box(o, mix_tensor_shape(images), begin, size)) return NULL;
  const mix_shape s = mix_tensor_shape(images);
  const int64_t below = size[0] - begin[0] - s.dims[1], right = size[1] - begin[1] - s.dims[2];
  if (below < 0 || right < 0)
    return mix_operand_refused(o, MIX_VALUE_ERROR, "target_height", "an image that holds the given one");
  return result_of(o, mix_pad(images, MIX_SHAPE(0, begin[0], begin[1], 0), MIX_SHAPE(0, below, right, 0), 0),
                   x);
}

/* ---- the tables ---- */

#define IMAGES(name, options, function)                                                                      \
  MIX_KERAS_OPERATION(name, "image", "images", options "data_format", .build = function)

const mix_keras_operation mix_keras_image_operations[] = {
    IMAGES("Resize",
           "size interpolation=\"bilinear\" antialias crop_to_aspect_ratio pad_to_aspect_ratio "
           "!fill_mode=\"constant\" fill_value=0 ",
           resize),
    IMAGES("PadImages", "top_padding left_padding bottom_padding right_padding target_height target_width ",
           pad_images),
    IMAGES("CropImages",
           "top_cropping left_cropping bottom_cropping right_cropping target_height target_width ",
           crop_images),
    IMAGES("ExtractPatches", "size strides dilation_rate=1 padding=\"valid\" ", extract_patches),
    IMAGES("RGBToGrayscale", "", rgb_to_grayscale),
    IMAGES("RGBToHSV", "", rgb_to_hsv),
    IMAGES("HSVToRGB", "", hsv_to_rgb),
    IMAGES("GaussianBlur", "kernel_size=[3,3] sigma=[1,1] ", gaussian_blur),
    IMAGES("SobelEdges", "", sobel_edges),
    MIX_KERAS_OPERATION("SSIM", "image", "image1 image2",
                        "max_val=1 filter_size=11 filter_sigma=1.5 k1=0.01 k2=0.03 data_format",
                        .build = ssim, .rule = MIX_OPERANDS_FLOATING),
    {.operation = {0}}};

#define TF_IMAGE(name, operand, options, function)                                                           \
  MIX_TF_OPERATION("image." name, operand, options, .build = function)
#define BOX "offset_height offset_width target_height target_width"

const mix_operation mix_tf_image_operations[] = {
    TF_IMAGE("flip_left_right", "image", "", flip_left_right),
    TF_IMAGE("flip_up_down", "image", "", flip_up_down),
    TF_IMAGE("transpose", "image", "", transpose_image),
    TF_IMAGE("rot90", "image", "k=1", rotate),
    TF_IMAGE("resize", "images", "size method=\"bilinear\" !preserve_aspect_ratio=false antialias", resize),
    TF_IMAGE("extract_patches", "images", "sizes strides rates padding", extract_patches),
    TF_IMAGE("crop_to_bounding_box", "image", BOX, crop_box),
    TF_IMAGE("pad_to_bounding_box", "image", BOX, pad_box),
    TF_IMAGE("rgb_to_grayscale", "images", "", rgb_to_grayscale),
    TF_IMAGE("grayscale_to_rgb", "images", "", grayscale_to_rgb),
    TF_IMAGE("rgb_to_hsv", "images", "", rgb_to_hsv),
    TF_IMAGE("hsv_to_rgb", "images", "", hsv_to_rgb),
    TF_IMAGE("rgb_to_yiq", "images", "", rgb_to_yiq),
    TF_IMAGE("yiq_to_rgb", "images", "", yiq_to_rgb),
    TF_IMAGE("rgb_to_yuv", "images", "", rgb_to_yuv),
    TF_IMAGE("yuv_to_rgb", "images", "", yuv_to_rgb),
    TF_IMAGE("adjust_brightness", "image", "delta", adjust_brightness),
    TF_IMAGE("adjust_contrast", "images", "contrast_factor", adjust_contrast),
    TF_IMAGE("adjust_gamma", "image", "gamma=1 gain=1", adjust_gamma),
    TF_IMAGE("per_image_standardization", "image", "", standardized),
    TF_IMAGE("ssim", "img1",
             "img2 max_val filter_size=11 filter_sigma=1.5 k1=0.01 k2=0.03 !return_index_map=false", ssim),
    {0}};
