/* What layers over spatial axes share: sizes for each axis, padding names, channels first. */
#pragma once

#include "nn/layers/builtin.h"
#include <mixtape/image.h>
#include <string.h>

/* mix_shape: one positive number for all axes, or one for each; a list in configs. The row's `number` is how
 * many axes there are, `text` the default, or `other` the offset of the value that it has then. */
extern const mix_value_kind mix_field_per_axis;
mix_field_resolve mix_resolve_per_axis;
mix_field_write mix_write_per_axis;
mix_field_read mix_read_per_axis;
/* "valid" or "same", in any case. */
extern const mix_value_kind mix_field_padding;

/* The same for layers that take it in Keras 3 alone. */
#define MIX_IMAGE_DATA_FORMAT_FIELD(type)                                                                    \
  {                                                                                                          \
    MIX_FIELD(type, data_format), &mix_field_text, .text = "channels_last",                                  \
                                                   .choices = "channels_last|channels_first",                \
                                                   .only = MIX_RULE(config_image_data_format)                \
  }

/* What configs of tf_keras say of the generator of a random layer. */
#define MIX_RANDOM_TYPE_FIELD                                                                                \
  {                                                                                                          \
    "rng_type", 0, &mix_field_fixed, .text = "\"stateful\"", .optional = true,                               \
                                     .except = MIX_RULE(config_image_data_format)                            \
  }

static inline bool mix_is_channels_first(const char *data_format) {
  return data_format && !strcmp(data_format, "channels_first");
}
/* x with its channels last, and back. */
mix_tensor *mix_to_channels_last(mix_tensor *x, const char *data_format);
mix_tensor *mix_from_channels_last(mix_tensor *x, const char *data_format);
/* The first spatial axis. */
static inline int mix_spatial_begin(const char *data_format) {
  return mix_is_channels_first(data_format) ? 2 : 1;
}
/* The input has that many axes between batch and channels. */
bool mix_layer_spatial(mix_layer *layer, int axes);
/* Does a symbolic x lack the size of a spatial axis? Then its result is only a shape. */
bool mix_is_open(mix_tensor *x, int begin, int axes);
mix_tensor *mix_open_result(mix_tensor *x, mix_shape shape);
/* Each element along the axis `times` times. */
mix_tensor *mix_repeat_axis(mix_tensor *x, int axis, int64_t times);

/* ---- images: (batch, height, width, channels) ---- */

/* A batch of one for an image (height, width, channels), with its channels last; and back. A ValueError for
 * other ranks. */
mix_tensor *mix_image_batch(const mix_layer *layer, mix_tensor *x, const char *data_format);
mix_tensor *mix_image_result(mix_tensor *y, mix_tensor *x, const char *data_format);
/* The shape with another height and width, of an image or a batch. */
mix_shape mix_image_shape(mix_shape shape, const char *data_format, int64_t height, int64_t width);
/* The interpolation of a known name. */
mix_interpolation mix_interpolation_named(const char *name);
/* Names of interpolations, as the generation has them. */
extern const mix_value_kind mix_field_interpolation;
/* Computed in float32 or float64. */
mix_tensor *mix_resize_images(mix_tensor *x, int64_t height, int64_t width, mix_interpolation interpolation,
                              bool antialias);
/* The part in the middle that has the aspect ratio of height to width, or the images padded to it. */
mix_tensor *mix_crop_to_aspect(mix_tensor *x, int64_t height, int64_t width);
mix_tensor *mix_pad_to_aspect(mix_tensor *x, int64_t height, int64_t width, double fill_value);
/* Resized to fit, as far as the aspect ratio allows, and zeros around: tf.image.resize_with_pad. A ValueError
 * that begins with the name, if nothing is left of the shorter side. */
mix_tensor *mix_resize_with_pad(const char *name, mix_tensor *x, int64_t height, int64_t width,
                                mix_interpolation interpolation);
/* height x width pixels from (top, left) on. */
mix_tensor *mix_crop(mix_tensor *x, int64_t top, int64_t left, int64_t height, int64_t width);
/* What crops do to images that are smaller: the part of the aspect ratio, resized. */
mix_tensor *mix_crop_and_resize(mix_tensor *x, int64_t height, int64_t width);

/* The output of a window along an axis of n elements with "same" padding, and how much precedes them. */
int64_t mix_same_length(int64_t n, int64_t stride);
int64_t mix_same_padding(int64_t n, int64_t window, int64_t stride, int64_t *before);
