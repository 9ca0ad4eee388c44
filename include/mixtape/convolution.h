/* Convolutions: operations and layers, of one to three spatial axes. As in Keras they are correlations (the
 * kernel is not flipped): y[p] = sum over k of x[p stride + k dilation - before] kernel[k]. */
#ifndef MIXTAPE_CONVOLUTION_H
#define MIXTAPE_CONVOLUTION_H

#include <mixtape/layers.h>

MIX_BEGIN_DECLARATIONS

/* ---- operations: channels last ---- */

typedef struct mix_conv_options {
  size_t size;
  mix_tensor *kernel; /* required */
  /* Each: one number for each spatial axis, or one for all; rank 0: 1. */
  mix_shape strides, dilation;
  /* "valid" (NULL): none. "same": the result has size / stride cells, rounded up; an odd cell comes after.
   * "causal", of one axis: all before. In any case. */
  const char *padding;
  mix_shape before, after; /* instead of `padding`: cells of zeros around x; rank 0: none */
  int64_t groups; /* 0: 1. Channels and filters are split into equal blocks, convolved by themselves */
  mix_shape output_padding; /* of mix_conv_transpose alone: Keras's; rank 0: None */
} mix_conv_options;

/* x (batch, spatial..., channels), kernel (spatial..., channels / groups, filters) of one floating dtype ->
 * (batch, spatial..., filters). 16-bit sums are accumulated in float32. ValueError for other ranks, channels
 * that do not fit, and a kernel larger than the padded x. TensorFlow's Conv2D and Conv3D. */
MIX_API mix_tensor *mix_conv_with(mix_tensor *x, const mix_conv_options *options);
/* The gradient of such a convolution for its input: x (batch, spatial..., channels), kernel (spatial...,
 * filters / groups, channels) -> (batch, spatial..., filters), of Keras's size for transposed convolutions.
 */
MIX_API mix_tensor *mix_conv_transpose_with(mix_tensor *x, const mix_conv_options *options);
/* Each channel by itself, of one or two spatial axes: kernel (spatial..., channels, multiplier) -> (batch,
 * spatial..., channels * multiplier). `groups` is not used. TensorFlow's DepthwiseConv2dNative. */
MIX_API mix_tensor *mix_depthwise_conv_with(mix_tensor *x, const mix_conv_options *options);
MIX_API mix_conv_options mix_conv_defaults(void); /* with `size` set, for C++ */

/* ---- layers ----
 * A size (kernel_size, strides, dilation_rate, output_padding) is one number for each spatial axis, or one
 * for all: MIX_SHAPE(3). The input has rank 3, 4 or 5. ValueError for another rank, an unknown number of
 * channels, groups that do not divide filters and channels, strides together with dilation, and a result
 * without cells. */

/* Conv1D, 2D, 3D: activation(conv(x) + bias). Weights: kernel (spatial..., channels / groups, filters), bias
 * (filters). */
typedef struct mix_conv_layer_options {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t filters;                  /* required, positive */
  int64_t kernel;                   /* kernel_size of all axes: mix_conv2d(32, 3) */
  mix_shape kernel_size;            /* this or kernel is required, positive */
  mix_shape strides, dilation_rate; /* rank 0: 1 */
  const char *padding;              /* NULL: "valid"; "same"; of Conv1D also "causal" */
  const char *data_format;          /* NULL: "channels_last"; "channels_first" */
  int64_t groups;                   /* 0: 1 */
  const char *activation;           /* NULL: linear */
  bool no_bias;                     /* Keras: use_bias=True */
  const char *kernel_initializer;   /* NULL: "glorot_uniform" */
  mix_initializer *kernel_initializer_object;
  const char *bias_initializer; /* NULL: "zeros" */
  mix_initializer *bias_initializer_object;
  mix_regularizer *kernel_regularizer, *bias_regularizer;
  mix_constraint *kernel_constraint, *bias_constraint;
  MIX_LORA_OPTIONS
} mix_conv_layer_options;
MIX_API mix_layer *mix_conv1d_with(const mix_conv_layer_options *options);
MIX_API mix_layer *mix_conv2d_with(const mix_conv_layer_options *options);
MIX_API mix_layer *mix_conv3d_with(const mix_conv_layer_options *options);

/* Conv1DTranspose, 2D, 3D: activation(mix_conv_transpose(x) + bias). Weights: kernel (spatial..., filters,
 * channels), bias (filters). */
typedef struct mix_conv_transpose_layer_options {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t filters;                      /* required, positive */
  int64_t kernel;                       /* kernel_size of all axes */
  mix_shape kernel_size;                /* this or kernel is required, positive */
  mix_shape strides, dilation_rate;     /* rank 0: 1 */
  const char *padding;                  /* NULL: "valid"; "same" */
  mix_shape output_padding;             /* rank 0: None; each less than its stride */
  const char *data_format, *activation; /* as above */
  bool no_bias;
  const char *kernel_initializer; /* NULL: "glorot_uniform" */
  mix_initializer *kernel_initializer_object;
  const char *bias_initializer; /* NULL: "zeros" */
  mix_initializer *bias_initializer_object;
  mix_regularizer *kernel_regularizer, *bias_regularizer;
  mix_constraint *kernel_constraint, *bias_constraint;
} mix_conv_transpose_layer_options;
MIX_API mix_layer *mix_conv1d_transpose_with(const mix_conv_transpose_layer_options *options);
MIX_API mix_layer *mix_conv2d_transpose_with(const mix_conv_transpose_layer_options *options);
MIX_API mix_layer *mix_conv3d_transpose_with(const mix_conv_transpose_layer_options *options);

/* DepthwiseConv1D, 2D: each channel by itself. Weights: kernel (spatial..., channels, depth_multiplier), bias
 * (channels * depth_multiplier). */
typedef struct mix_depthwise_conv_layer_options {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t kernel;                       /* kernel_size of all axes */
  mix_shape kernel_size;                /* this or kernel is required, positive */
  mix_shape strides, dilation_rate;     /* rank 0: 1 */
  const char *padding;                  /* NULL: "valid"; "same" */
  int64_t depth_multiplier;             /* 0: 1 */
  const char *data_format, *activation; /* as above */
  bool no_bias;
  const char *depthwise_initializer; /* NULL: "glorot_uniform" */
  mix_initializer *depthwise_initializer_object;
  const char *bias_initializer; /* NULL: "zeros" */
  mix_initializer *bias_initializer_object;
  mix_regularizer *depthwise_regularizer, *bias_regularizer;
  mix_constraint *depthwise_constraint, *bias_constraint;
} mix_depthwise_conv_layer_options;
MIX_API mix_layer *mix_depthwise_conv1d_with(const mix_depthwise_conv_layer_options *options);
MIX_API mix_layer *mix_depthwise_conv2d_with(const mix_depthwise_conv_layer_options *options);

/* SeparableConv1D, 2D: a depthwise convolution, then one of a single cell. Weights: depthwise_kernel
 * (spatial..., channels, depth_multiplier), pointwise_kernel (1..., channels * depth_multiplier, filters),
 * bias (filters). */
typedef struct mix_separable_conv_layer_options {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t filters;                      /* required, positive */
  int64_t kernel;                       /* kernel_size of all axes */
  mix_shape kernel_size;                /* this or kernel is required, positive */
  mix_shape strides, dilation_rate;     /* rank 0: 1 */
  const char *padding;                  /* NULL: "valid"; "same" */
  int64_t depth_multiplier;             /* 0: 1 */
  const char *data_format, *activation; /* as above */
  bool no_bias;
  const char *depthwise_initializer; /* NULL: "glorot_uniform" */
  mix_initializer *depthwise_initializer_object;
  const char *pointwise_initializer; /* NULL: "glorot_uniform" */
  mix_initializer *pointwise_initializer_object;
  const char *bias_initializer; /* NULL: "zeros" */
  mix_initializer *bias_initializer_object;
  mix_regularizer *depthwise_regularizer, *pointwise_regularizer, *bias_regularizer;
  mix_constraint *depthwise_constraint, *pointwise_constraint, *bias_constraint;
} mix_separable_conv_layer_options;
MIX_API mix_layer *mix_separable_conv1d_with(const mix_separable_conv_layer_options *options);
MIX_API mix_layer *mix_separable_conv2d_with(const mix_separable_conv_layer_options *options);

/* LocallyConnected1D, 2D (Keras 2): as Conv1D and 2D with a kernel for each place of the result, of inputs
 * with known sizes. Weights: kernel, bias (places..., filters). The kernel's shape is that of its
 * implementation: 1: (places, patch * channels, filters); 2: a matrix of the whole input and the whole
 * result, (spatial..., channels, places..., filters), of which what connects nothing is not used; 3:
 * (connections). They compute the same; 1 has padding "valid" alone. */
typedef struct mix_locally_connected_options {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t filters;                      /* required, positive */
  int64_t kernel;                       /* kernel_size of all axes */
  mix_shape kernel_size;                /* this or kernel is required, positive */
  mix_shape strides;                    /* rank 0: 1 */
  const char *padding;                  /* NULL: "valid"; "same" */
  const char *data_format, *activation; /* as above */
  bool no_bias;
  const char *kernel_initializer; /* NULL: "glorot_uniform" */
  mix_initializer *kernel_initializer_object;
  const char *bias_initializer; /* NULL: "zeros" */
  mix_initializer *bias_initializer_object;
  mix_regularizer *kernel_regularizer, *bias_regularizer;
  mix_constraint *kernel_constraint, *bias_constraint;
  int64_t implementation; /* 0: 1; 2, 3 */
} mix_locally_connected_options;
MIX_API mix_layer *mix_locally_connected1d_with(const mix_locally_connected_options *options);
MIX_API mix_layer *mix_locally_connected2d_with(const mix_locally_connected_options *options);

/* Options with `size` set, for C++. */
MIX_API mix_conv_layer_options mix_conv_layer_defaults(void);
MIX_API mix_conv_transpose_layer_options mix_conv_transpose_layer_defaults(void);
MIX_API mix_depthwise_conv_layer_options mix_depthwise_conv_layer_defaults(void);
MIX_API mix_separable_conv_layer_options mix_separable_conv_layer_defaults(void);
MIX_API mix_locally_connected_options mix_locally_connected_defaults(void);

#ifndef __cplusplus
/* mix_conv(x, kernel, .strides = MIX_SHAPE(2), .padding = "same") */
#define mix_conv(x, ...)                                                                                     \
  mix_conv_with(x, MIX_ARGUMENTS("mix_conv",                                                                 \
                                 "kernel; MIX_SHAPE(strides, dilation, before, after, output_padding)",      \
                                 #__VA_ARGS__, mix_conv_options, .kernel = __VA_ARGS__))
#define mix_conv_transpose(x, ...)                                                                           \
  mix_conv_transpose_with(                                                                                   \
      x, MIX_ARGUMENTS("mix_conv_transpose",                                                                 \
                       "kernel; MIX_SHAPE(strides, dilation, before, after, output_padding)", #__VA_ARGS__,  \
                       mix_conv_options, .kernel = __VA_ARGS__))
#define mix_depthwise_conv(x, ...)                                                                           \
  mix_depthwise_conv_with(                                                                                   \
      x, MIX_ARGUMENTS("mix_depthwise_conv",                                                                 \
                       "kernel; MIX_SHAPE(strides, dilation, before, after, output_padding)", #__VA_ARGS__,  \
                       mix_conv_options, .kernel = __VA_ARGS__))
/* mix_conv2d(32, 3, .padding = "same") */
#define mix_conv1d(...)                                                                                      \
  MIX_LAYER_OF(mix_conv1d, "filters, !kernel; MIX_SHAPE(kernel_size, strides, dilation_rate)", #__VA_ARGS__, \
               mix_conv_layer_options, __VA_ARGS__)
#define mix_conv2d(...)                                                                                      \
  MIX_LAYER_OF(mix_conv2d, "filters, !kernel; MIX_SHAPE(kernel_size, strides, dilation_rate)", #__VA_ARGS__, \
               mix_conv_layer_options, __VA_ARGS__)
#define mix_conv3d(...)                                                                                      \
  MIX_LAYER_OF(mix_conv3d, "filters, !kernel; MIX_SHAPE(kernel_size, strides, dilation_rate)", #__VA_ARGS__, \
               mix_conv_layer_options, __VA_ARGS__)
#define mix_conv1d_transpose(...)                                                                            \
  MIX_LAYER_OF(mix_conv1d_transpose,                                                                         \
               "filters, !kernel; MIX_SHAPE(kernel_size, strides, dilation_rate, output_padding)",           \
               #__VA_ARGS__, mix_conv_transpose_layer_options, __VA_ARGS__)
#define mix_conv2d_transpose(...)                                                                            \
  MIX_LAYER_OF(mix_conv2d_transpose,                                                                         \
               "filters, !kernel; MIX_SHAPE(kernel_size, strides, dilation_rate, output_padding)",           \
               #__VA_ARGS__, mix_conv_transpose_layer_options, __VA_ARGS__)
#define mix_conv3d_transpose(...)                                                                            \
  MIX_LAYER_OF(mix_conv3d_transpose,                                                                         \
               "filters, !kernel; MIX_SHAPE(kernel_size, strides, dilation_rate, output_padding)",           \
               #__VA_ARGS__, mix_conv_transpose_layer_options, __VA_ARGS__)
#define mix_depthwise_conv1d(...)                                                                            \
  MIX_LAYER_OF(mix_depthwise_conv1d, "!kernel; MIX_SHAPE(kernel_size, strides, dilation_rate)",              \
               #__VA_ARGS__, mix_depthwise_conv_layer_options, __VA_ARGS__)
#define mix_depthwise_conv2d(...)                                                                            \
  MIX_LAYER_OF(mix_depthwise_conv2d, "!kernel; MIX_SHAPE(kernel_size, strides, dilation_rate)",              \
               #__VA_ARGS__, mix_depthwise_conv_layer_options, __VA_ARGS__)
#define mix_separable_conv1d(...)                                                                            \
  MIX_LAYER_OF(mix_separable_conv1d, "filters, !kernel; MIX_SHAPE(kernel_size, strides, dilation_rate)",     \
               #__VA_ARGS__, mix_separable_conv_layer_options, __VA_ARGS__)
#define mix_separable_conv2d(...)                                                                            \
  MIX_LAYER_OF(mix_separable_conv2d, "filters, !kernel; MIX_SHAPE(kernel_size, strides, dilation_rate)",     \
               #__VA_ARGS__, mix_separable_conv_layer_options, __VA_ARGS__)
#define mix_locally_connected1d(...)                                                                         \
  MIX_LAYER_OF(mix_locally_connected1d, "filters, !kernel; MIX_SHAPE(kernel_size, strides)", #__VA_ARGS__,   \
               mix_locally_connected_options, __VA_ARGS__)
#define mix_locally_connected2d(...)                                                                         \
  MIX_LAYER_OF(mix_locally_connected2d, "filters, !kernel; MIX_SHAPE(kernel_size, strides)", #__VA_ARGS__,   \
               mix_locally_connected_options, __VA_ARGS__)
#endif

MIX_END_DECLARATIONS
#endif
