/* Helpers that the layers share: configs, shapes, axes, noise, categories, and the list of layer classes. */
#pragma once

#include "nn/config.h"
#include "nn/fields.h"
#include "nn/layer/layer.h"
#include "tensor/shape.h"
#include <mixtape/attention.h>

/* Keras's quantization_config: how the layer computes in the mode of its policy. */
#define MIX_QUANTIZATION_CONFIG_FIELD(type)                                                                  \
  {                                                                                                          \
    MIX_FIELD(type, quantization_config), &mix_field_quantization_config,                                    \
        .other = offsetof(mix_layer_common, policy), .only = MIX_RULE(config_newer_options)                  \
  }

/* That of the inner layers of attention: Keras has none there, and refuses such files. */
#define MIX_INNER_QUANTIZATION_FIELD(type)                                                                   \
  {                                                                                                          \
    MIX_FIELD(type, quantization_config), &mix_field_quantization_config,                                    \
        .other = offsetof(mix_layer_common, policy), .only = MIX_RULE(config_newer_options),                 \
        .omit_none = MIX_ALWAYS                                                                              \
  }

/* The layers that are made from configs, mix_<name>_kind, by the folder of their files: nn/layers/, and below
 * it convolution/, spatial/, recurrent/, attention/ and operations/. */
/* clang-format off */
#define MIX_PLAIN_LAYERS(X)                                                                                  \
  X(dense) X(activation) X(flatten) X(dropout) X(softmax_layer) X(relu_layer) X(leaky_relu_layer) X(prelu)   \
  X(elu_layer) X(thresholded_relu) X(reshape_layer) X(permute) X(repeat_vector) X(masking) X(add_layer)      \
  X(subtract_layer) X(multiply_layer) X(average) X(maximum_layer) X(minimum_layer) X(concatenate) X(dot)     \
  X(rescaling) X(normalization) X(discretization) X(category_encoding) X(embedding) X(batch_normalization)   \
  X(layer_normalization) X(group_normalization) X(rms_normalization) X(unit_normalization)                   \
  X(spatial_dropout1d) X(spatial_dropout2d) X(spatial_dropout3d) X(gaussian_noise) X(gaussian_dropout)       \
  X(alpha_dropout) X(activity_regularization) X(lambda) X(spectral_normalization)                            \
  X(identity_layer) X(layer_scale) X(stochastic_depth) X(custom_scale) X(reversible_embedding)               \
  X(add_loss) X(add_metric)
#define MIX_CONVOLUTION_LAYERS(X)                                                                            \
  X(conv1d) X(conv2d) X(conv3d) X(conv1d_transpose) X(conv2d_transpose) X(conv3d_transpose)                  \
  X(depthwise_conv1d) X(depthwise_conv2d) X(separable_conv1d) X(separable_conv2d)                            \
  X(locally_connected1d) X(locally_connected2d)
#define MIX_SPATIAL_LAYERS(X)                                                                                \
  X(max_pooling1d) X(max_pooling2d) X(max_pooling3d)                                                         \
  X(average_pooling1d) X(average_pooling2d) X(average_pooling3d)                                             \
  X(global_max_pooling1d) X(global_max_pooling2d) X(global_max_pooling3d)                                    \
  X(global_average_pooling1d) X(global_average_pooling2d) X(global_average_pooling3d)                        \
  X(adaptive_max_pooling1d) X(adaptive_max_pooling2d) X(adaptive_max_pooling3d)                              \
  X(adaptive_average_pooling1d) X(adaptive_average_pooling2d) X(adaptive_average_pooling3d)                  \
  X(zero_padding1d) X(zero_padding2d) X(zero_padding3d) X(cropping1d) X(cropping2d) X(cropping3d)            \
  X(up_sampling1d) X(up_sampling2d) X(up_sampling3d) X(resizing) X(center_crop)                              \
  X(random_crop) X(random_flip) X(random_rotation) X(random_translation) X(random_zoom) X(random_contrast)   \
  X(random_brightness)
#define MIX_RECURRENT_LAYERS(X)                                                                              \
  X(simple_rnn_cell) X(lstm_cell) X(gru_cell) X(stacked_rnn_cells) X(rnn) X(simple_rnn) X(lstm) X(gru)       \
  X(bidirectional) X(time_distributed) X(conv_lstm1d) X(conv_lstm2d) X(conv_lstm3d)
#define MIX_ATTENTION_LAYERS(X)                                                                              \
  X(einsum_dense) X(multi_head_attention) X(grouped_query_attention) X(attention) X(additive_attention)
#define MIX_OPERATION_LAYERS(X) X(tf_op_lambda) X(slicing_op_lambda)
#define MIX_BUILT_IN_LAYERS(X)                                                                               \
  MIX_PLAIN_LAYERS(X) MIX_CONVOLUTION_LAYERS(X) MIX_SPATIAL_LAYERS(X) MIX_RECURRENT_LAYERS(X)                \
  MIX_ATTENTION_LAYERS(X) MIX_OPERATION_LAYERS(X)
/* clang-format on */
#define MIX_DECLARE_KIND(name) extern const mix_layer_kind mix_##name##_kind;
MIX_BUILT_IN_LAYERS(MIX_DECLARE_KIND)
#undef MIX_DECLARE_KIND

/* ---- configs ---- */

/* Some classes of Keras 3 take no `trainable` and save a dtype name instead of a policy. Adapts a config to
 * that rule: removes `trainable` and writes the dtype's name. */
bool mix_config_without_trainable(mix_layer *layer, mix_config *config);

/* "axis" of a normalization as the generation saves it: the axes counted from 0 once it is built, or a list
 * in any case. The first form alone is for layers of one axis. */
mix_status mix_config_resolved_axes(mix_layer *layer, mix_config *config, mix_axes axes);
mix_status mix_config_axes(mix_layer *layer, mix_config *config, mix_axes axes);

/* ---- shapes ---- */

#define MIX_DATA_FORMAT_FIELD(type)                                                                          \
  {                                                                                                          \
    MIX_FIELD(type, data_format), &mix_field_text, .text = "channels_last",                                  \
                                                   .choices = "channels_last|channels_first"                 \
  }

/* output_shape of layers that keep the input's shape. */
mix_shape mix_layer_same_shape(mix_layer *layer, int count, const mix_shape *input_shapes);
/* Resolves axes for a tensor of that rank and sorts them; an empty list means the last axis. False with a
 * ValueError for an axis that is out of range or given twice. */
bool mix_layer_axes(const mix_layer *layer, mix_axes given, int rank, mix_axes *axes);
/* All axes of that rank except these. */
mix_axes mix_other_axes(mix_axes axes, int rank);
/* The sizes along the axes. in_place: with the shape's rank, and 1 along all other axes. */
mix_shape mix_shape_of_axes(mix_shape shape, mix_axes axes, bool in_place);
/* `count` items of x along an axis of known size, from `begin` on, `step` apart. They lie inside it. */
mix_tensor *mix_layer_range(mix_tensor *x, int axis, int64_t begin, int64_t count, int64_t step);
/* Each of the `count` items along an axis, without the axis. */
mix_list *mix_layer_unstack(mix_tensor *x, int axis, int64_t count);
/* The tensors of a list one after another along an axis, or along a new one. */
mix_tensor *mix_layer_concat(const mix_list *list, int axis);
mix_tensor *mix_layer_stack(const mix_list *list, int axis);
/* A reshape that allows several unknown dimensions in a symbolic tensor. */
mix_tensor *mix_layer_reshape(mix_tensor *x, mix_shape shape);
/* x, cast to the layer's compute dtype if it is not floating-point. */
mix_tensor *mix_layer_floating(const mix_layer *layer, mix_tensor *x);
/* The mask of the only input, or NULL. */
mix_tensor *mix_call_mask(const mix_call_args *args);
/* compute_mask of layers whose results have no mask, even if the result is the input itself. */
mix_tensor *mix_no_mask(mix_layer *layer, const mix_call_args *args);
/* x (..., in) times a matrix (in, out). Higher ranks are reshaped to one matrix, so that the product and each
 * gradient is one matmul. */
mix_tensor *mix_matmul_rows(mix_tensor *x, mix_tensor *matrix);
/* A list of one result; NULL for NULL. */
static inline mix_list *mix_one_result(mix_tensor *y) { return y ? mix_list_of(y) : NULL; }

/* ---- noise ---- */

/* Dropout: drops elements of x with probability `rate` and scales the others by 1 / (1 - rate). The decision
 * is shared along axes where the noise shape is 1. */
mix_tensor *mix_dropped(mix_tensor *x, double rate, mix_shape noise_shape, mix_generator *generator);
/* x's shape with the dimensions that `given` fixes (rank 0: none). False with a ValueError if the ranks
 * differ. */
bool mix_noise_shape(const mix_layer *layer, mix_shape given, mix_shape shape, mix_shape *noise_shape);

/* ---- categories ---- */

typedef enum mix_category_mode {
  MIX_CATEGORY_INT,
  MIX_CATEGORY_ONE_HOT,
  MIX_CATEGORY_MULTI_HOT,
  MIX_CATEGORY_COUNT
} mix_category_mode;
/* The mode of a known name. */
mix_category_mode mix_category_mode_named(const char *name);
/* ids (..., n) of an integer dtype -> (..., depth), or (..., n, depth) for one_hot if n is not 1. weights:
 * NULL, or of the ids' shape. */
mix_tensor *mix_encode_categories(mix_tensor *ids, mix_category_mode mode, int64_t depth, mix_tensor *weights,
                                  mix_dtype dtype);
