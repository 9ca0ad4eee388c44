/* Pooling: the operations, and Keras's layers of those names. Tensors are (batch, spatial..., channels), with
 * one to three spatial axes; layers also take channels first. */
#ifndef MIXTAPE_POOLING_H
#define MIXTAPE_POOLING_H

#include <mixtape/layer.h>

MIX_BEGIN_DECLARATIONS

/* ---- operations ---- */

/* The windows, one entry for each spatial axis. Paddings are smaller than the size, so that each window has
 * an element of x. Windows that do not fit at the end are left out. */
typedef struct mix_pool_window {
  mix_shape size;
  mix_shape strides;       /* rank 0: the size */
  mix_shape before, after; /* padding; rank 0: none */
} mix_pool_window;
/* The largest element of each window of x, of an integer or floating dtype; a NaN is the largest. The
 * gradient goes to the first one, and with three spatial axes to each of them, as in TensorFlow's kernels of
 * MaxPool and MaxPool3D. ValueError for windows that x does not have. */
MIX_API mix_tensor *mix_max_pool(mix_tensor *x, const mix_pool_window *window);
/* The mean of the elements of each window of x, of a floating dtype, without the padding (AvgPool and
 * AvgPool3D). 16-bit elements are added in float32. */
MIX_API mix_tensor *mix_avg_pool(mix_tensor *x, const mix_pool_window *window);

/* ---- layers ---- */

/* MaxPooling1D, 2D, 3D and AveragePooling1D, 2D, 3D. An average's divisor counts the elements without the
 * padding. ValueErrors: an input of another rank, a window that it does not have. */
typedef struct mix_pooling_options {
  size_t size;
  MIX_LAYER_OPTIONS
  /* For all axes, or for each one. Rank 0: 2, but a TypeError for averages under keras3. */
  int64_t pool; /* pool_size of all axes: mix_max_pooling2d(2) */
  mix_shape pool_size;
  mix_shape strides;   /* rank 0: the pool size */
  const char *padding; /* NULL: "valid"; "same" pads so that the output has input / stride elements, rounded
                        * up */
  const char *data_format; /* NULL: "channels_last"; "channels_first" */
} mix_pooling_options;
MIX_API mix_layer *mix_max_pooling1d_with(const mix_pooling_options *options);
MIX_API mix_layer *mix_max_pooling2d_with(const mix_pooling_options *options);
MIX_API mix_layer *mix_max_pooling3d_with(const mix_pooling_options *options);
MIX_API mix_layer *mix_average_pooling1d_with(const mix_pooling_options *options);
MIX_API mix_layer *mix_average_pooling2d_with(const mix_pooling_options *options);
MIX_API mix_layer *mix_average_pooling3d_with(const mix_pooling_options *options);

/* GlobalMaxPooling1D, 2D, 3D and GlobalAveragePooling1D, 2D, 3D: over all spatial axes. A mask of
 * GlobalAveragePooling1D leaves steps out. */
typedef struct mix_global_pooling_options {
  size_t size;
  MIX_LAYER_OPTIONS
  const char *data_format; /* NULL: "channels_last"; "channels_first" */
  bool keepdims;           /* the spatial axes stay, with size 1 */
} mix_global_pooling_options;
MIX_API mix_layer *mix_global_max_pooling1d_with(const mix_global_pooling_options *options);
MIX_API mix_layer *mix_global_max_pooling2d_with(const mix_global_pooling_options *options);
MIX_API mix_layer *mix_global_max_pooling3d_with(const mix_global_pooling_options *options);
MIX_API mix_layer *mix_global_average_pooling1d_with(const mix_global_pooling_options *options);
MIX_API mix_layer *mix_global_average_pooling2d_with(const mix_global_pooling_options *options);
MIX_API mix_layer *mix_global_average_pooling3d_with(const mix_global_pooling_options *options);

/* AdaptiveMaxPooling1D, 2D, 3D and AdaptiveAveragePooling1D, 2D, 3D (Keras 3): windows such that the result
 * has a given size. */
typedef struct mix_adaptive_pooling_options {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t output;          /* output_size of all axes */
  mix_shape output_size;   /* or for each one; one of both is required; at most 65536 (ValueError) */
  const char *data_format; /* NULL: "channels_last"; "channels_first" */
} mix_adaptive_pooling_options;
MIX_API mix_layer *mix_adaptive_max_pooling1d_with(const mix_adaptive_pooling_options *options);
MIX_API mix_layer *mix_adaptive_max_pooling2d_with(const mix_adaptive_pooling_options *options);
MIX_API mix_layer *mix_adaptive_max_pooling3d_with(const mix_adaptive_pooling_options *options);
MIX_API mix_layer *mix_adaptive_average_pooling1d_with(const mix_adaptive_pooling_options *options);
MIX_API mix_layer *mix_adaptive_average_pooling2d_with(const mix_adaptive_pooling_options *options);
MIX_API mix_layer *mix_adaptive_average_pooling3d_with(const mix_adaptive_pooling_options *options);

/* Options with `size` set, for C++. */
MIX_API mix_pooling_options mix_pooling_defaults(void);
MIX_API mix_global_pooling_options mix_global_pooling_defaults(void);
MIX_API mix_adaptive_pooling_options mix_adaptive_pooling_defaults(void);

#ifndef __cplusplus
#define mix_max_pooling1d(...)                                                                               \
  MIX_LAYER_OF(mix_max_pooling1d, "!pool; MIX_SHAPE(pool_size, strides)", #__VA_ARGS__, mix_pooling_options, \
               __VA_ARGS__)
#define mix_max_pooling2d(...)                                                                               \
  MIX_LAYER_OF(mix_max_pooling2d, "!pool; MIX_SHAPE(pool_size, strides)", #__VA_ARGS__, mix_pooling_options, \
               __VA_ARGS__)
#define mix_max_pooling3d(...)                                                                               \
  MIX_LAYER_OF(mix_max_pooling3d, "!pool; MIX_SHAPE(pool_size, strides)", #__VA_ARGS__, mix_pooling_options, \
               __VA_ARGS__)
#define mix_average_pooling1d(...)                                                                           \
  MIX_LAYER_OF(mix_average_pooling1d, "!pool; MIX_SHAPE(pool_size, strides)", #__VA_ARGS__,                  \
               mix_pooling_options, __VA_ARGS__)
#define mix_average_pooling2d(...)                                                                           \
  MIX_LAYER_OF(mix_average_pooling2d, "!pool; MIX_SHAPE(pool_size, strides)", #__VA_ARGS__,                  \
               mix_pooling_options, __VA_ARGS__)
#define mix_average_pooling3d(...)                                                                           \
  MIX_LAYER_OF(mix_average_pooling3d, "!pool; MIX_SHAPE(pool_size, strides)", #__VA_ARGS__,                  \
               mix_pooling_options, __VA_ARGS__)
#define mix_global_max_pooling1d(...)                                                                        \
  MIX_LAYER_OF(mix_global_max_pooling1d, "data_format, keepdims", #__VA_ARGS__, mix_global_pooling_options,  \
               __VA_ARGS__)
#define mix_global_max_pooling2d(...)                                                                        \
  MIX_LAYER_OF(mix_global_max_pooling2d, "data_format, keepdims", #__VA_ARGS__, mix_global_pooling_options,  \
               __VA_ARGS__)
#define mix_global_max_pooling3d(...)                                                                        \
  MIX_LAYER_OF(mix_global_max_pooling3d, "data_format, keepdims", #__VA_ARGS__, mix_global_pooling_options,  \
               __VA_ARGS__)
#define mix_global_average_pooling1d(...)                                                                    \
  MIX_LAYER_OF(mix_global_average_pooling1d, "data_format, keepdims", #__VA_ARGS__,                          \
               mix_global_pooling_options, __VA_ARGS__)
#define mix_global_average_pooling2d(...)                                                                    \
  MIX_LAYER_OF(mix_global_average_pooling2d, "data_format, keepdims", #__VA_ARGS__,                          \
               mix_global_pooling_options, __VA_ARGS__)
#define mix_global_average_pooling3d(...)                                                                    \
  MIX_LAYER_OF(mix_global_average_pooling3d, "data_format, keepdims", #__VA_ARGS__,                          \
               mix_global_pooling_options, __VA_ARGS__)
#define mix_adaptive_max_pooling1d(...)                                                                      \
  MIX_LAYER_OF(mix_adaptive_max_pooling1d, "!output; MIX_SHAPE(output_size)", #__VA_ARGS__,                  \
               mix_adaptive_pooling_options, __VA_ARGS__)
#define mix_adaptive_max_pooling2d(...)                                                                      \
  MIX_LAYER_OF(mix_adaptive_max_pooling2d, "!output; MIX_SHAPE(output_size)", #__VA_ARGS__,                  \
               mix_adaptive_pooling_options, __VA_ARGS__)
#define mix_adaptive_max_pooling3d(...)                                                                      \
  MIX_LAYER_OF(mix_adaptive_max_pooling3d, "!output; MIX_SHAPE(output_size)", #__VA_ARGS__,                  \
               mix_adaptive_pooling_options, __VA_ARGS__)
#define mix_adaptive_average_pooling1d(...)                                                                  \
  MIX_LAYER_OF(mix_adaptive_average_pooling1d, "!output; MIX_SHAPE(output_size)", #__VA_ARGS__,              \
               mix_adaptive_pooling_options, __VA_ARGS__)
#define mix_adaptive_average_pooling2d(...)                                                                  \
  MIX_LAYER_OF(mix_adaptive_average_pooling2d, "!output; MIX_SHAPE(output_size)", #__VA_ARGS__,              \
               mix_adaptive_pooling_options, __VA_ARGS__)
#define mix_adaptive_average_pooling3d(...)                                                                  \
  MIX_LAYER_OF(mix_adaptive_average_pooling3d, "!output; MIX_SHAPE(output_size)", #__VA_ARGS__,              \
               mix_adaptive_pooling_options, __VA_ARGS__)
#endif

MIX_END_DECLARATIONS
#endif
