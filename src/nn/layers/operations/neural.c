/* Operations of keras.ops.nn that layers and losses have too: normalizations, cross-entropies, windows,
 * convolutions, blocks of pixels. */
#include "base/error.h"
#include "nn/formulas.h"
#include "nn/layers/moments.h"
#include "nn/layers/operations/operation.h"
#include "nn/layers/spatial/spatial.h"
#include "ops/table.h"
#include "ops/with_number.h"
#include <mixtape/convolution.h>
#include <mixtape/pooling.h>
#include <string.h>
#include <strings.h>

#define EPSILON 1e-7 /* Keras's, which files do not say */

static mix_tensor *number(mix_tensor *x, double value) { return mix_scalar_like(x, value); }
static mix_tensor *given(const mix_operands *o, const char *name, mix_tensor *like) {
  return mix_operand_json(o, name) ? mix_cast(mix_operand(o, name), mix_tensor_dtype(like)) : NULL;
}
static double epsilon_of(const mix_operands *o) {
  return mix_operand_json(o, "epsilon") ? mix_operand_number(o, "epsilon") : EPSILON;
}

/* ---- normalizations ---- */

/* A vector along one axis of x. */
static mix_tensor *along(mix_tensor *vector, int axis, const mix_tensor *x) {
  for (int i = axis + 1; vector && i < mix_operand_rank(x); i++) vector = mix_expand_dims(vector, -1);
  return vector;
}

static mix_tensor *batch_norm(const mix_operands *o, mix_tensor *x) {
  const int axis = mix_operand_axis(o, "axis", mix_operand_rank(x));
  mix_tensor *mean = along(given(o, "mean", x), axis, x), *variance = along(given(o, "variance", x), axis, x),
             *offset = along(given(o, "offset", x), axis, x), *scale = along(given(o, "scale", x), axis, x);
  const double epsilon = mix_operand_number(o, "epsilon");
  if (mix_failed()) return NULL;
  if (!mean || !variance)
    return mix_operand_refused(o, MIX_TYPE_ERROR, mean ? "variance" : "mean", "a vector");
  mix_tensor *inverse = mix_rsqrt(mix_plus(variance, epsilon));
  if (scale) inverse = mix_multiply(inverse, scale);
  mix_tensor *shift = mix_multiply(mean, inverse);
  shift = offset ? mix_subtract(offset, shift) : mix_negative(shift);
  return mix_add(mix_multiply(x, inverse), shift);
}

/* gamma and beta have the sizes of the axes. */
static mix_tensor *over_axes(const mix_operands *o, const char *name, mix_tensor *x, mix_axes axes) {
  mix_tensor *value = given(o, name, x);
  const mix_shape shape = mix_tensor_shape(x);
  if (!value || mix_operand_rank(value) == shape.rank || (axes.count == 1 && axes.axis[0] == shape.rank - 1))
    return value;
  return mix_reshape(value, mix_shape_of_axes(shape, axes, true));
}

static mix_tensor *layer_norm(const mix_operands *o, mix_tensor *given_x) {
  mix_tensor *x = mix_cast(given_x, mix_widened(mix_tensor_dtype(given_x))), *mean, *variance;
  const mix_axes axes = mix_operand_axes(o, "axis", mix_operand_rank(x));
  mix_tensor *gamma = over_axes(o, "gamma", x, axes), *beta = over_axes(o, "beta", x, axes);
  const double epsilon = epsilon_of(o);
  if (mix_failed() || !mix_moments(x, axes, false, &mean, &variance)) return NULL;
  mix_tensor *inverse = mix_rsqrt(mix_plus(variance, epsilon));
  if (mix_operand_flag(o, "rms_scaling")) { /* the variance, without the mean's shift */
    mix_tensor *scaled = mix_multiply(x, inverse);
    return mix_cast(gamma ? mix_multiply(scaled, gamma) : scaled, mix_tensor_dtype(given_x));
  }
  if (gamma) inverse = mix_multiply(inverse, gamma);
  mix_tensor *rest = mix_multiply(mix_negative(mean), inverse);
  if (beta) rest = mix_add(rest, beta);
  return mix_cast(mix_add(mix_multiply(x, inverse), rest), mix_tensor_dtype(given_x));
}

static mix_tensor *rms_norm(const mix_operands *o, mix_tensor *given_x) {
  mix_tensor *x = mix_cast(given_x, mix_widened(mix_tensor_dtype(given_x))), *scale = given(o, "scale", x);
  const mix_axes axes = mix_operand_axes(o, "axis", mix_operand_rank(x));
  const double epsilon = epsilon_of(o);
  if (mix_failed()) return NULL;
  mix_tensor *squares = mix_reduce_mean(mix_square(x), axes, true);
  mix_tensor *y = mix_multiply(x, mix_rsqrt(mix_plus(squares, epsilon)));
  return mix_cast(scale ? mix_multiply(y, scale) : y, mix_tensor_dtype(given_x));
}

/* ---- cross-entropies ---- */

/* Target and output, of one shape. */
static bool target_and_output(const mix_operands *o, mix_tensor **pair) {
  pair[1] = mix_operand_floating(mix_operand(o, "output"));
  pair[0] = mix_operand(o, "target");
  if (mix_failed()) return false;
  pair[0] = mix_cast(pair[0], mix_tensor_dtype(pair[1]));
  if (mix_operand_rank(pair[0]) == mix_operand_rank(pair[1])) return true;
  mix_operation_fail(o, MIX_VALUE_ERROR, "the target has rank %d and the output %d",
                     mix_operand_rank(pair[0]), mix_operand_rank(pair[1]));
  return false;
}
static mix_tensor *inside(mix_tensor *x) { return mix_clip_between(x, EPSILON, 1 - EPSILON); }

static mix_tensor *binary_crossentropy(const mix_operands *o, mix_tensor *unused) {
  mix_tensor *pair[2];
  if (!target_and_output(o, pair)) return NULL;
  mix_tensor *t = pair[0], *x = pair[1];
  if (mix_operand_flag(o, "from_logits"))
    return mix_add(mix_subtract(mix_relu(x), mix_multiply(x, t)),
                   mix_log1p(mix_exp(mix_negative(mix_abs(x)))));
  x = inside(x);
  mix_tensor *hit = mix_multiply(t, mix_log(x)),
             *miss = mix_multiply(mix_subtract(number(t, 1), t), mix_log(mix_subtract(number(x, 1), x)));
  return mix_negative(mix_add(hit, miss));
}

static mix_tensor *categorical_crossentropy(const mix_operands *o, mix_tensor *unused) {
  mix_tensor *pair[2];
  if (!target_and_output(o, pair)) return NULL;
  const int rank = mix_operand_rank(pair[1]), axis = mix_operand_axis(o, "axis", rank);
  if (axis < 0) return NULL;
  for (int i = 0; i < 2; i++) pair[i] = mix_axis_moved(pair[i], axis, rank - 1);
  if (mix_operand_flag(o, "from_logits")) return mix_softmax_cross_entropy(pair[0], pair[1]);
  mix_tensor *x = mix_divide(pair[1], mix_reduce_sum(pair[1], MIX_AXES(-1), true));
  return mix_negative(mix_reduce_sum(mix_multiply(pair[0], mix_log(inside(x))), MIX_AXES(-1), false));
}

static mix_tensor *sparse_categorical_crossentropy(const mix_operands *o, mix_tensor *target) {
  mix_tensor *x = mix_operand_floating(mix_operand(o, "output"));
  const int rank = mix_operand_rank(x);
  if (mix_failed() || mix_operand_axis(o, "axis", rank) != rank - 1)
    return mix_operand_refused(o, MIX_UNSUPPORTED, "axis", "the last");
  const mix_shape shape = mix_tensor_shape(target);
  if (shape.rank == rank && shape.dims[rank - 1] == 1) target = mix_squeeze(target, MIX_AXES(-1));
  if (!mix_operand_flag(o, "from_logits")) x = mix_log(inside(x));
  return mix_sparse_softmax_cross_entropy(mix_cast(target, MIX_INT64), x);
}

/* ---- categories ---- */

/* Over the places along axis 1, or of a vector all. */
static mix_tensor *multi_hot(const mix_operands *o, mix_tensor *x) {
  const mix_dtype dtype = mix_operand_dtype(o, "dtype", mix_floatx());
  const int64_t classes = mix_operand_integer(o, "num_classes");
  const int rank = mix_operand_rank(x) + 1, axis = mix_operand_axis(o, "axis", rank);
  if (mix_failed()) return NULL;
  if (!mix_dtype_is_integer(mix_tensor_dtype(x)) || classes < 0 || classes > 1 << 24)
    return mix_operand_refused(o, MIX_VALUE_ERROR, "num_classes", "a number of classes, of integers");
  mix_tensor *hot = mix_axis_moved(mix_one_hot(x, classes, dtype), rank - 1, axis);
  return (dtype == MIX_BOOL ? mix_reduce_any : mix_reduce_max)(hot, MIX_AXES(rank > 2), false);
}

/* ---- windows and convolutions ---- */

enum { MOST_PLACES = 1 << 24 };

/* One number for all axes or one for each; absent: rank 0. */
static mix_shape sizes_of(const mix_operands *o, const char *name, int axes) {
  mix_shape sizes = {.rank = 0};
  if (!mix_operand_json(o, name)) return sizes;
  sizes = mix_operand_shape(o, name);
  if (mix_operands_of_tf(o) && sizes.rank == axes + 2 && sizes.dims[0] == 1 && sizes.dims[axes + 1] == 1) {
    for (int i = 0; i < axes; i++) sizes.dims[i] = sizes.dims[i + 1]; /* [1, height, width, 1] */
    sizes.rank = axes;
  }
  bool good = sizes.rank == axes || sizes.rank == 1;
  for (int i = 0; good && i < axes; i++) {
    if (i >= sizes.rank) sizes.dims[i] = sizes.dims[0];
    good = sizes.dims[i] >= 1 && sizes.dims[i] <= MOST_PLACES;
  }
  sizes.rank = axes;
  if (!good)
    mix_operand_refused(o, MIX_VALUE_ERROR, name, "an integer from 1 to 2^24, or one for each spatial axis");
  return sizes;
}

static const char *format_of(const mix_operands *o) {
  return mix_operand_json(o, "data_format") ? mix_operand_text(o, "data_format") : "channels_last";
}

/* Of an axis of n elements with windows that cover `window`. */
static int64_t windows_of(int64_t n, int64_t window, int64_t stride, bool same) {
  if (n < 0) return MIX_UNKNOWN;
  return same ? mix_same_length(n, stride) : n < window ? 0 : (n - window) / stride + 1;
}

static bool is_same(const mix_operands *o) {
  const char *padding = mix_operand_text(o, "padding");
  const bool same = padding && !strcasecmp(padding, "same");
  if (padding && !same && strcasecmp(padding, "valid"))
    mix_operand_refused(o, MIX_VALUE_ERROR, "padding", "valid or same");
  return same;
}

static mix_tensor *pool(const mix_operands *o, mix_tensor *given_x,
                        mix_tensor *(*function)(mix_tensor *x, const mix_pool_window *window)) {
  const char *format = format_of(o);
  const int axes = mix_operand_rank(given_x) - 2;
  const bool same = is_same(o);
  if (mix_failed() || axes < 1 || axes > 3)
    return mix_operation_fail(o, MIX_VALUE_ERROR, "expected one to three spatial axes");
  mix_pool_window window = {.size = sizes_of(o, o->second, axes), .strides = sizes_of(o, "strides", axes)};
  mix_tensor *x = mix_to_channels_last(given_x, format);
  if (mix_failed()) return NULL;
  if (!window.size.rank) return mix_operand_refused(o, MIX_TYPE_ERROR, o->second, "the size of a window");
  if (!window.strides.rank) window.strides = window.size;
  window.before.rank = window.after.rank = axes;
  mix_shape result = mix_tensor_shape(x);
  for (int i = 0; i < axes; i++) {
    const int64_t n = result.dims[i + 1], size = window.size.dims[i], stride = window.strides.dims[i];
    if (same && n > 0)
      window.after.dims[i] =
          mix_same_padding(n, size, stride, &window.before.dims[i]) - window.before.dims[i];
    result.dims[i + 1] = windows_of(n, size, stride, same);
  }
  mix_tensor *y = mix_is_open(x, 1, axes) ? mix_open_result(x, result) : function(x, &window);
  return mix_from_channels_last(y, format);
}
static mix_tensor *max_pool(const mix_operands *o, mix_tensor *x) { return pool(o, x, mix_max_pool); }
static mix_tensor *average_pool(const mix_operands *o, mix_tensor *x) { return pool(o, x, mix_avg_pool); }

typedef mix_tensor *convolution(mix_tensor *x, const mix_conv_options *options);

/* x has its channels last. */
static mix_tensor *convolved(const mix_operands *o, mix_tensor *x, mix_tensor *kernel, bool depthwise,
                             convolution *function) {
  const int axes = mix_operand_rank(x) - 2;
  const bool same = is_same(o);
  if (mix_failed() || axes < 1 || axes > 3 || mix_operand_rank(kernel) != axes + 2)
    return mix_operation_fail(o, MIX_VALUE_ERROR,
                              "the input has rank %d and the kernel %d; expected 3 to 5 of both", axes + 2,
                              mix_operand_rank(kernel));
  const mix_shape of_kernel = mix_tensor_shape(kernel);
  mix_conv_options options = {.size = sizeof options,
                              .kernel = kernel,
                              .padding = same ? "same" : "valid",
                              .strides = sizes_of(o, "strides", axes),
                              .dilation = sizes_of(o, "dilation_rate", axes)};
  mix_shape result = mix_tensor_shape(x);
  if (mix_failed()) return NULL;
  const int64_t channels = result.dims[axes + 1], depth = of_kernel.dims[axes];
  if (!depthwise && function == mix_conv_with && channels > 0 && depth > 0) {
    if (channels % depth)
      return mix_operation_fail(o, MIX_VALUE_ERROR, "%lld channels; the kernel has %lld", (long long)channels,
                                (long long)depth);
    options.groups = channels / depth;
  }
  if (!mix_is_open(x, 1, axes) || function != mix_conv_with) return function(x, &options);
  for (int i = 0; i < axes; i++)
    result.dims[i + 1] =
        windows_of(result.dims[i + 1], (of_kernel.dims[i] - 1) * options.dilation.dims[i] + 1,
                   options.strides.dims[i], same);
  result.dims[axes + 1] = of_kernel.dims[axes + 1];
  return mix_open_result(x, result);
}

static mix_tensor *operand_kernel(const mix_operands *o, const char *name, mix_tensor *x) {
  mix_tensor *kernel = mix_operand(o, name);
  return kernel ? mix_cast(kernel, mix_tensor_dtype(x)) : NULL;
}
static mix_tensor *conv_by(const mix_operands *o, mix_tensor *x, const char *name, bool depthwise,
                           convolution *function) {
  const char *format = format_of(o);
  mix_tensor *kernel = operand_kernel(o, name, x), *last = mix_to_channels_last(x, format);
  return mix_failed() ? NULL
                      : mix_from_channels_last(convolved(o, last, kernel, depthwise, function), format);
}
static mix_tensor *conv(const mix_operands *o, mix_tensor *x) {
  return conv_by(o, x, "kernel", false, mix_conv_with);
}
static mix_tensor *depthwise_conv(const mix_operands *o, mix_tensor *x) {
  return conv_by(o, x, "kernel", true, mix_depthwise_conv_with);
}
static mix_tensor *conv_transpose(const mix_operands *o, mix_tensor *x) {
  return conv_by(o, x, "kernel", false, mix_conv_transpose_with);
}
static mix_tensor *separable_conv(const mix_operands *o, mix_tensor *x) {
  const char *format = format_of(o);
  mix_tensor *pointwise = operand_kernel(o, "pointwise_kernel", x);
  mix_tensor *y = conv_by(o, x, "depthwise_kernel", true, mix_depthwise_conv_with);
  if (mix_failed()) return NULL;
  const mix_conv_options options = {.size = sizeof options, .kernel = pointwise};
  return mix_from_channels_last(mix_conv_with(mix_to_channels_last(y, format), &options), format);
}

/* ---- blocks of pixels ---- */

/* (batch, height, width, channels) in blocks of pixels, whose places become channels in front, or back. */
static mix_tensor *blocks(const mix_operands *o, mix_tensor *given_x, bool to_depth) {
  const char *format = format_of(o);
  const int64_t b = mix_operand_integer(o, "block_size");
  mix_tensor *x = mix_to_channels_last(given_x, format);
  if (mix_failed()) return NULL;
  const mix_shape s = mix_tensor_shape(x);
  const int64_t height = s.dims[1], width = s.dims[2], channels = s.dims[3];
  const bool fits = s.rank == 4 && b >= 2 && b <= 4096 &&
                    (to_depth ? (height < 0 || height % b == 0) && (width < 0 || width % b == 0)
                              : channels > 0 && channels % (b * b) == 0);
  if (!fits)
    return mix_operation_fail(o, MIX_VALUE_ERROR, "blocks of %lld x %lld pixels do not fill %s", (long long)b,
                              (long long)b, MIX_SHAPE_TEXT(s));
  mix_shape apart, result = s;
  if (to_depth) {
    const int64_t rows = height < 0 ? height : height / b, columns = width < 0 ? width : width / b;
    apart = MIX_SHAPE(s.dims[0], rows, b, columns, b, channels);
    result = MIX_SHAPE(s.dims[0], rows, columns, channels < 0 ? channels : channels * b * b);
  } else {
    apart = MIX_SHAPE(s.dims[0], height, width, b, b, channels / (b * b));
    result = MIX_SHAPE(s.dims[0], height < 0 ? height : height * b, width < 0 ? width : width * b,
                       channels / (b * b));
  }
  mix_tensor *moved = mix_transpose(mix_layer_reshape(x, apart), MIX_AXES(0, 1, 3, 2, 4, 5));
  return mix_from_channels_last(mix_layer_reshape(moved, result), format);
}
static mix_tensor *depth_to_space(const mix_operands *o, mix_tensor *x) { return blocks(o, x, false); }
static mix_tensor *space_to_depth(const mix_operands *o, mix_tensor *x) { return blocks(o, x, true); }

mix_tensor *mix_patch_places(const mix_patches *p) {
  mix_tensor *sum = NULL;
  const int64_t counts[] = {p->rows, p->columns, p->height, p->width},
                steps[] = {p->stride[0] * p->image_width, p->stride[1], p->dilation[0] * p->image_width,
                           p->dilation[1]};
  for (int k = 0; k < 4; k++) {
    mix_tensor *part = mix_range(0, (double)(counts[k] * steps[k]), (double)steps[k], MIX_INT64);
    mix_shape place = {.rank = 4, .dims = {1, 1, 1, 1}};
    place.dims[k] = counts[k];
    part = mix_reshape(part, place);
    sum = sum ? mix_add(sum, part) : part;
  }
  return sum;
}

mix_tensor *mix_image_patches(mix_tensor *x, const mix_patches *p) {
  const mix_shape s = mix_tensor_shape(x);
  mix_tensor *pixels = mix_layer_reshape(x, MIX_SHAPE(s.dims[0], s.dims[1] * s.dims[2], s.dims[3]));
  return mix_gather(pixels, mix_patch_places(p), 1);
}

/* Two numbers, or one for both. */
static bool read_pair(const mix_operands *o, const char *name, int64_t least, int64_t *pair) {
  const int count = mix_operand_integers(o, name, 2, pair);
  if (count == 1) pair[1] = pair[0];
  const bool good = count && pair[0] >= least && pair[1] >= least && pair[0] < 1 << 24 && pair[1] < 1 << 24;
  return good || mix_operand_refused(o, MIX_VALUE_ERROR, name, "one or two integers in range");
}

/* Windows of an image of that height and width with its padding. */
static bool windows(const mix_operands *o, int64_t height, int64_t width, int64_t *padding, mix_patches *p) {
  int64_t size[2];
  if (!read_pair(o, "kernel_size", 1, size) || !read_pair(o, "dilation", 1, p->dilation) ||
      !read_pair(o, "padding", 0, padding) || !read_pair(o, "stride", 1, p->stride))
    return false;
  p->height = size[0], p->width = size[1], p->image_width = width + 2 * padding[1];
  const int64_t high = height + 2 * padding[0] - p->dilation[0] * (size[0] - 1) - 1,
                wide = p->image_width - p->dilation[1] * (size[1] - 1) - 1;
  p->rows = high / p->stride[0] + 1, p->columns = wide / p->stride[1] + 1;
  return (high >= 0 && wide >= 0) ||
         mix_operation_fail(o, MIX_VALUE_ERROR,
                            "windows of %lld x %lld are larger than the image of %lld x %lld",
                            (long long)size[0], (long long)size[1], (long long)height, (long long)width);
}

/* (batch, channels, height, width) -> (batch, channels height width of the window, windows). */
static mix_tensor *unfold(const mix_operands *o, mix_tensor *x) {
  const mix_shape s = mix_tensor_shape(x);
  int64_t padding[2];
  mix_patches p;
  if (s.rank != 4 || s.dims[1] < 1 || s.dims[2] < 0 || s.dims[3] < 0)
    return mix_operation_fail(o, MIX_VALUE_ERROR, "expected (batch, channels, height, width) of known sizes");
  if (!windows(o, s.dims[2], s.dims[3], padding, &p)) return NULL;
  const mix_shape pad = MIX_SHAPE(0, padding[0], padding[1], 0);
  mix_tensor *last = mix_pad(mix_transpose(x, MIX_AXES(0, 2, 3, 1)), pad, pad, 0);
  mix_tensor *patches = mix_transpose(mix_image_patches(last, &p), MIX_AXES(0, 5, 3, 4, 1, 2));
  return mix_layer_reshape(patches, MIX_SHAPE(s.dims[0], s.dims[1] * p.height * p.width, p.rows * p.columns));
}

/* Adds windows up to an image: the transpose of unfold. */
static mix_tensor *fold(const mix_operands *o, mix_tensor *x) {
  const mix_shape s = mix_tensor_shape(x);
  int64_t size[2], padding[2];
  mix_patches p;
  if (!read_pair(o, "output_size", 1, size) || !windows(o, size[0], size[1], padding, &p)) return NULL;
  const int64_t part = p.height * p.width, channels = s.dims[1] / part, rows = size[0] + 2 * padding[0];
  if (s.rank != 3 || s.dims[1] < 1 || s.dims[1] % part || s.dims[2] != p.rows * p.columns)
    return mix_operation_fail(o, MIX_VALUE_ERROR, "%s has not the windows of that image", MIX_SHAPE_TEXT(s));
  mix_tensor *apart = mix_layer_reshape(x, MIX_SHAPE(s.dims[0], channels, part, s.dims[2]));
  mix_tensor *places = mix_reshape(mix_patch_places(&p), MIX_SHAPE(s.dims[2], part));
  mix_tensor *sums =
      mix_segment_sum(mix_transpose(apart, MIX_AXES(3, 2, 0, 1)), places, rows * p.image_width);
  if (s.dims[0] < 0) return mix_open_result(sums, MIX_SHAPE(MIX_UNKNOWN, channels, size[0], size[1]));
  mix_tensor *image = mix_reshape(mix_transpose(sums, MIX_AXES(1, 2, 0)),
                                  MIX_SHAPE(s.dims[0], channels, rows, p.image_width));
  return mix_slice(image, MIX_SHAPE(0, 0, padding[0], padding[1]), MIX_SHAPE(-1, -1, size[0], size[1]));
}

/* ---- the tables ---- */

#define ENTROPY(name, options, function)                                                                     \
  MIX_KERAS_OPERATION(name, "nn", "target output", "from_logits " options, .build = function)
#define CONVOLUTION(name, kernels, options, function)                                                        \
  MIX_KERAS_OPERATION(name, "nn", "inputs " kernels,                                                         \
                      "strides=1 padding=\"valid\" data_format dilation_rate=1 " options, .build = function, \
                      .rule = MIX_OPERANDS_FLOATING)
#define POOL(name, function)                                                                                 \
  MIX_KERAS_OPERATION(name, "nn", "inputs", "pool_size strides padding=\"valid\" data_format",               \
                      .build = function)
#define BLOCKS(name, function)                                                                               \
  MIX_KERAS_OPERATION(name, "nn", "x", "block_size data_format", .build = function)
#define COMPLEX "tensors have no complex numbers"
#define WINDOWS "kernel_size dilation=1 padding=0 stride=1"

const mix_keras_operation mix_keras_neural_operations[] = {
    MIX_KERAS_OPERATION("BatchNorm", "nn", "x mean variance offset scale", "axis epsilon=1e-3",
                        .build = batch_norm, .rule = MIX_OPERANDS_FLOATING),
    MIX_KERAS_OPERATION("LayerNorm", "nn", "x gamma beta", "axis=-1 epsilon rms_scaling", .build = layer_norm,
                        .rule = MIX_OPERANDS_FLOATING),
    MIX_KERAS_OPERATION("RMSNorm", "nn", "x scale", "axis=-1 epsilon", .build = rms_norm,
                        .rule = MIX_OPERANDS_FLOATING),
    ENTROPY("BinaryCrossentropy", "", binary_crossentropy),
    ENTROPY("CategoricalCrossentropy", "axis=-1", categorical_crossentropy),
    ENTROPY("SparseCategoricalCrossentropy", "axis=-1", sparse_categorical_crossentropy),
    MIX_KERAS_OPERATION("MultiHot", "nn", "inputs", "num_classes axis=-1 dtype !sparse=false",
                        .build = multi_hot),
    POOL("MaxPool", max_pool),
    POOL("AveragePool", average_pool),
    CONVOLUTION("Conv", "kernel", "", conv),
    CONVOLUTION("DepthwiseConv", "kernel", "", depthwise_conv),
    CONVOLUTION("SeparableConv", "depthwise_kernel pointwise_kernel", "", separable_conv),
    CONVOLUTION("ConvTranspose", "kernel", "!output_padding", conv_transpose),
    BLOCKS("DepthToSpace", depth_to_space),
    BLOCKS("SpaceToDepth", space_to_depth),
    MIX_KERAS_OPERATION("Unfold", "nn", "x", WINDOWS, .build = unfold),
    MIX_KERAS_OPERATION("Fold", "nn", "x", "output_size " WINDOWS, .build = fold),
    MIX_KERAS_OPERATION("Polar", "nn", "abs_ angle", "", .refusal = COMPLEX),
    MIX_KERAS_OPERATION("ViewAsComplex", "math", "x", "", .refusal = COMPLEX),
    MIX_KERAS_OPERATION("ViewAsReal", "math", "x", "", .refusal = COMPLEX),
    {.operation = {0}}};

#define TF_BLOCKS(name, function)                                                                            \
  MIX_TF_OPERATION(name, "input", "block_size !data_format=\"NHWC\"", .build = function)

#define TF_POOL(name, format, function)                                                                      \
  MIX_TF_OPERATION(name, "input", "ksize strides padding " format, .build = function)

const mix_operation mix_tf_neural_operations[] = {
    TF_BLOCKS("nn.depth_to_space", depth_to_space),
    TF_BLOCKS("nn.space_to_depth", space_to_depth),
    TF_POOL("nn.max_pool1d", "!data_format=\"NWC\"", max_pool),
    TF_POOL("nn.max_pool2d", "!data_format=\"NHWC\"", max_pool),
    TF_POOL("nn.avg_pool1d", "!data_format=\"NWC\"", average_pool),
    TF_POOL("nn.avg_pool2d", "!data_format=\"NHWC\"", average_pool),
    TF_POOL("nn.avg_pool", "!data_format", average_pool),
    {0}};
