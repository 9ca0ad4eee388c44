/* Keras's layers on images and volumes without weights: padding, cropping, upsampling, resizing, and random
 * changes of images for training. Tensors are (batch, spatial..., channels), or with channels first; the
 * layers for images also take a single one (height, width, channels). */
#ifndef MIXTAPE_IMAGE_H
#define MIXTAPE_IMAGE_H

#include <mixtape/layer.h>

MIX_BEGIN_DECLARATIONS

/* ---- padding, cropping, upsampling ---- */

/* Cells at the borders of the spatial axes: one number for all, one for both ends of each axis, or a pair
 * (before, after) for each axis. count 0: the default. */
typedef struct mix_borders {
  int count;
  int64_t cells[6];
} mix_borders;
#ifndef __cplusplus
#define MIX_BORDERS(...)                                                                                     \
  ((mix_borders){.count = (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), .cells = {__VA_ARGS__}})
#endif

/* ZeroPadding1D, 2D, 3D. */
typedef struct mix_zero_padding_options {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t cells;           /* padding of all sides: mix_zero_padding2d(2); MIX_INT_ZERO is accepted */
  mix_borders padding;     /* or for each; count 0: 1 */
  const char *data_format; /* NULL: "channels_last"; "channels_first" (1D: keras3 alone) */
} mix_zero_padding_options;
MIX_API mix_layer *mix_zero_padding1d_with(const mix_zero_padding_options *options);
MIX_API mix_layer *mix_zero_padding2d_with(const mix_zero_padding_options *options);
MIX_API mix_layer *mix_zero_padding3d_with(const mix_zero_padding_options *options);

/* Cropping1D, 2D, 3D. ValueError if nothing is left. */
typedef struct mix_cropping_options {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t cells;           /* cropping of all sides; MIX_INT_ZERO is accepted */
  mix_borders cropping;    /* or for each; count 0: 1; 2D: 0 */
  const char *data_format; /* NULL: "channels_last"; "channels_first" (not 1D) */
} mix_cropping_options;
MIX_API mix_layer *mix_cropping1d_with(const mix_cropping_options *options);
MIX_API mix_layer *mix_cropping2d_with(const mix_cropping_options *options);
MIX_API mix_layer *mix_cropping3d_with(const mix_cropping_options *options);

/* UpSampling1D, 2D, 3D: repeats cells; 2D also interpolates. */
typedef struct mix_up_sampling_options {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t factor;            /* Keras: size. The factor of all axes */
  mix_shape factors;         /* or of each; rank 0: 2 */
  const char *data_format;   /* NULL: "channels_last"; "channels_first" (not 1D) */
  const char *interpolation; /* 2D: NULL: "nearest"; else as Resizing */
} mix_up_sampling_options;
MIX_API mix_layer *mix_up_sampling1d_with(const mix_up_sampling_options *options);
MIX_API mix_layer *mix_up_sampling2d_with(const mix_up_sampling_options *options);
MIX_API mix_layer *mix_up_sampling3d_with(const mix_up_sampling_options *options);

/* ---- sizes of images ---- */

/* Resizing, as TensorFlow's tf.image.resize: pixels are at half-integer positions. Interpolations: nearest,
 * bilinear, bicubic, lanczos3, lanczos5; tf_keras also area, gaussian, mitchellcubic, which have antialiasing
 * always. Images with an integer dtype are rounded and keep it (keras3), or become floating. */
typedef struct mix_resizing_options {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t height, width;     /* required, positive (ValueError) */
  const char *interpolation; /* NULL: "bilinear" */
  bool crop_to_aspect_ratio; /* first crops to the aspect ratio of the result */
  bool pad_to_aspect_ratio;  /* keras3: first pads to it, with fill_value */
  double fill_value;         /* keras3 */
  bool antialias;            /* keras3: when images become smaller, averages what a pixel covers */
  const char *data_format;   /* NULL: "channels_last"; keras3: "channels_first" */
} mix_resizing_options;
MIX_API mix_layer *mix_resizing_with(const mix_resizing_options *options);

/* CenterCrop: the middle of the image; an image that is smaller is resized (bilinear) and cropped to the
 * aspect ratio. */
typedef struct mix_center_crop_options {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t height, width;   /* required, positive (ValueError) */
  const char *data_format; /* NULL: "channels_last"; keras3: "channels_first" */
} mix_center_crop_options;
MIX_API mix_layer *mix_center_crop_with(const mix_center_crop_options *options);

/* ---- random changes, in training only. Outside models, a call without `training` is training, as in Keras.
 * Their numbers come from a generator of the layer. ---- */

/* RandomCrop: the same part of all images of a batch; smaller images are resized. Outside training, keras3
 * returns the images as they are, and tf_keras the middle, cropped to the aspect ratio and resized. */
typedef struct mix_random_crop_options {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t height, width;   /* required, positive (ValueError) */
  uint64_t seed;           /* 0: derived from the global seed */
  const char *data_format; /* NULL: "channels_last"; keras3: "channels_first" */
} mix_random_crop_options;
MIX_API mix_layer *mix_random_crop_with(const mix_random_crop_options *options);

/* RandomFlip: each image with probability 1/2. With both directions, tf_keras draws for each; keras3 flips
 * both or none. */
typedef struct mix_random_flip_options {
  size_t size;
  MIX_LAYER_OPTIONS
  const char *mode;        /* NULL: "horizontal_and_vertical"; "horizontal", "vertical" */
  uint64_t seed;           /* 0: derived from the global seed */
  const char *data_format; /* NULL: "channels_last"; keras3: "channels_first" */
} mix_random_flip_options;
MIX_API mix_layer *mix_random_flip_with(const mix_random_flip_options *options);

/* A range of random numbers: from -number to number, or from low to high. */
typedef struct mix_factor {
  bool given;
  bool is_pair;
  double low, high; /* high alone without is_pair */
} mix_factor;
#ifndef __cplusplus
#define MIX_FACTOR(number) ((mix_factor){.given = true, .high = (number)})
#define MIX_FACTORS(from, to) ((mix_factor){.given = true, .is_pair = true, .low = (from), .high = (to)})
#endif

/* Where pixels outside an image come from, and pixels between others. */
#define MIX_TRANSFORM_OPTIONS                                                                                \
  const char *fill_mode;     /* NULL: "reflect"; "constant", "wrap", "nearest" */                            \
  const char *interpolation; /* NULL: "bilinear"; "nearest" */                                               \
  uint64_t seed;             /* 0: derived from the global seed */                                           \
  double fill_value;         /* for "constant" */                                                            \
  const char *data_format;   /* NULL: "channels_last"; keras3: "channels_first" */

/* RandomRotation: by an angle in the range, in turns, counter-clockwise. */
typedef struct mix_random_rotation_options {
  size_t size;
  MIX_LAYER_OPTIONS
  double number;     /* factor, if it is one number: mix_random_rotation(0.1) */
  mix_factor factor; /* or a range. Required; keras3: within [-1, 1] (ValueError) */
  MIX_TRANSFORM_OPTIONS
} mix_random_rotation_options;
MIX_API mix_layer *mix_random_rotation_with(const mix_random_rotation_options *options);

/* RandomTranslation: by fractions of height and width. */
typedef struct mix_random_translation_options {
  size_t size;
  MIX_LAYER_OPTIONS
  double height_number, width_number;     /* height_factor and width_factor, if they are one number each */
  mix_factor height_factor, width_factor; /* or ranges. Required, within [-1, 1] (ValueError) */
  MIX_TRANSFORM_OPTIONS
} mix_random_translation_options;
MIX_API mix_layer *mix_random_translation_with(const mix_random_translation_options *options);

/* RandomZoom: positive numbers zoom out. */
typedef struct mix_random_zoom_options {
  size_t size;
  MIX_LAYER_OPTIONS
  double height_number;     /* height_factor, if it is one number: mix_random_zoom(0.2) */
  mix_factor height_factor; /* or a range. Required, within (-1, 1] (ValueError) */
  mix_factor width_factor;  /* not given: the number drawn for the height, which keeps the aspect ratio */
  MIX_TRANSFORM_OPTIONS
} mix_random_zoom_options;
MIX_API mix_layer *mix_random_zoom_with(const mix_random_zoom_options *options);

/* RandomContrast: (x - mean) c + mean for each channel of an image, and clipped. c is drawn from 1 - low to
 * 1 + high. A factor of one number: tf_keras from 1 - number; keras3, whose lower bound is 0, from 1. */
typedef struct mix_random_contrast_options {
  size_t size;
  MIX_LAYER_OPTIONS
  double number;           /* factor, if it is one number */
  mix_factor factor;       /* or a range. Required, within [0, 1] (ValueError) */
  double value_range[2];   /* keras3: clips to it; both 0: 0 to 255 */
  uint64_t seed;           /* 0: derived from the global seed */
  const char *data_format; /* NULL: "channels_last"; keras3: "channels_first" */
} mix_random_contrast_options;
MIX_API mix_layer *mix_random_contrast_with(const mix_random_contrast_options *options);

/* RandomBrightness: adds a number, drawn for each image from the range times the width of the value range,
 * and clips. */
typedef struct mix_random_brightness_options {
  size_t size;
  MIX_LAYER_OPTIONS
  double number;           /* factor, if it is one number */
  mix_factor factor;       /* or a range. Required, within [-1, 1] (ValueError) */
  double value_range[2];   /* both 0: 0 to 255 */
  uint64_t seed;           /* 0: derived from the global seed */
  const char *data_format; /* NULL: "channels_last"; keras3: "channels_first" */
} mix_random_brightness_options;
MIX_API mix_layer *mix_random_brightness_with(const mix_random_brightness_options *options);

/* ---- operations ---- */

typedef enum mix_interpolation {
  MIX_NEAREST,
  MIX_BILINEAR,
  MIX_BICUBIC,
  MIX_LANCZOS3,
  MIX_LANCZOS5,
  MIX_AREA,
  MIX_GAUSSIAN,
  MIX_MITCHELL_CUBIC,
} mix_interpolation;
/* x with another number of elements along an axis, whose elements are interpolated as tf.image.resize does;
 * float32 sums, rounded to x's floating dtype. */
MIX_API mix_tensor *mix_resize_axis(mix_tensor *x, int axis, int64_t length, mix_interpolation interpolation,
                                    bool antialias);

typedef enum mix_fill_mode {
  MIX_FILL_CONSTANT,
  MIX_FILL_REFLECT,
  MIX_FILL_WRAP,
  MIX_FILL_NEAREST
} mix_fill_mode;
/* TensorFlow's ImageProjectiveTransformV3 of images (batch, height, width, channels): pixel (x, y) of a
 * result is the pixel ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k) of the image, k = c0 x + c1 y + 1,
 * with a row (a0, a1, a2, b0, b1, b2, c0, c1) of the float32 transforms (batch, 8). interpolation:
 * MIX_NEAREST or MIX_BILINEAR. The gradient of the images adds to each pixel what the
 * result's pixels have of it (TensorFlow transforms the result's gradient by the inverse matrices instead, an
 * estimate); transforms have none. */
MIX_API mix_tensor *mix_projective_transform(mix_tensor *images, mix_tensor *transforms,
                                             mix_interpolation interpolation, mix_fill_mode fill_mode,
                                             double fill_value);

/* Options with `size` set, for C++. */
MIX_API mix_zero_padding_options mix_zero_padding_defaults(void);
MIX_API mix_cropping_options mix_cropping_defaults(void);
MIX_API mix_up_sampling_options mix_up_sampling_defaults(void);
MIX_API mix_resizing_options mix_resizing_defaults(void);
MIX_API mix_center_crop_options mix_center_crop_defaults(void);
MIX_API mix_random_crop_options mix_random_crop_defaults(void);
MIX_API mix_random_flip_options mix_random_flip_defaults(void);
MIX_API mix_random_rotation_options mix_random_rotation_defaults(void);
MIX_API mix_random_translation_options mix_random_translation_defaults(void);
MIX_API mix_random_zoom_options mix_random_zoom_defaults(void);
MIX_API mix_random_contrast_options mix_random_contrast_defaults(void);
MIX_API mix_random_brightness_options mix_random_brightness_defaults(void);

#ifndef __cplusplus
#define mix_zero_padding1d(...)                                                                              \
  MIX_LAYER_OF(mix_zero_padding1d, "!cells; MIX_BORDERS(padding)", #__VA_ARGS__, mix_zero_padding_options,   \
               __VA_ARGS__)
#define mix_zero_padding2d(...)                                                                              \
  MIX_LAYER_OF(mix_zero_padding2d, "!cells; MIX_BORDERS(padding)", #__VA_ARGS__, mix_zero_padding_options,   \
               __VA_ARGS__)
#define mix_zero_padding3d(...)                                                                              \
  MIX_LAYER_OF(mix_zero_padding3d, "!cells; MIX_BORDERS(padding)", #__VA_ARGS__, mix_zero_padding_options,   \
               __VA_ARGS__)
#define mix_cropping1d(...)                                                                                  \
  MIX_LAYER_OF(mix_cropping1d, "!cells; MIX_BORDERS(cropping)", #__VA_ARGS__, mix_cropping_options,          \
               __VA_ARGS__)
#define mix_cropping2d(...)                                                                                  \
  MIX_LAYER_OF(mix_cropping2d, "!cells; MIX_BORDERS(cropping)", #__VA_ARGS__, mix_cropping_options,          \
               __VA_ARGS__)
#define mix_cropping3d(...)                                                                                  \
  MIX_LAYER_OF(mix_cropping3d, "!cells; MIX_BORDERS(cropping)", #__VA_ARGS__, mix_cropping_options,          \
               __VA_ARGS__)
#define mix_up_sampling1d(...)                                                                               \
  MIX_LAYER_OF(mix_up_sampling1d, "!factor; MIX_SHAPE(factors)", #__VA_ARGS__, mix_up_sampling_options,      \
               __VA_ARGS__)
#define mix_up_sampling2d(...)                                                                               \
  MIX_LAYER_OF(mix_up_sampling2d, "!factor; MIX_SHAPE(factors)", #__VA_ARGS__, mix_up_sampling_options,      \
               __VA_ARGS__)
#define mix_up_sampling3d(...)                                                                               \
  MIX_LAYER_OF(mix_up_sampling3d, "!factor; MIX_SHAPE(factors)", #__VA_ARGS__, mix_up_sampling_options,      \
               __VA_ARGS__)
#define mix_resizing(...)                                                                                    \
  MIX_LAYER_OF(mix_resizing, "height, width, !interpolation, crop_to_aspect_ratio, pad_to_aspect_ratio",     \
               #__VA_ARGS__, mix_resizing_options, __VA_ARGS__)
#define mix_center_crop(...)                                                                                 \
  MIX_LAYER_OF(mix_center_crop, "height, width", #__VA_ARGS__, mix_center_crop_options, __VA_ARGS__)
#define mix_random_crop(...)                                                                                 \
  MIX_LAYER_OF(mix_random_crop, "height, width", #__VA_ARGS__, mix_random_crop_options, __VA_ARGS__)
#define mix_random_flip(...)                                                                                 \
  MIX_LAYER_OF(mix_random_flip, "!mode", #__VA_ARGS__, mix_random_flip_options, __VA_ARGS__)
#define mix_random_rotation(...)                                                                             \
  MIX_LAYER_OF(mix_random_rotation, "!number; MIX_FACTOR(factor)", #__VA_ARGS__,                             \
               mix_random_rotation_options, __VA_ARGS__)
#define mix_random_translation(...)                                                                          \
  MIX_LAYER_OF(mix_random_translation,                                                                       \
               "!height_number, !width_number; MIX_FACTOR(height_factor, width_factor)", #__VA_ARGS__,       \
               mix_random_translation_options, __VA_ARGS__)
#define mix_random_zoom(...)                                                                                 \
  MIX_LAYER_OF(mix_random_zoom, "!height_number; MIX_FACTOR(height_factor, width_factor)", #__VA_ARGS__,     \
               mix_random_zoom_options, __VA_ARGS__)
#define mix_random_contrast(...)                                                                             \
  MIX_LAYER_OF(mix_random_contrast, "!number; MIX_FACTOR(factor)", #__VA_ARGS__,                             \
               mix_random_contrast_options, __VA_ARGS__)
#define mix_random_brightness(...)                                                                           \
  MIX_LAYER_OF(mix_random_brightness, "!number; MIX_FACTOR(factor)", #__VA_ARGS__,                           \
               mix_random_brightness_options, __VA_ARGS__)
#endif

MIX_END_DECLARATIONS
#endif
