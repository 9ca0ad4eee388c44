/* Every layer in the same ways: gradients, 16-bit policies against float32, shapes with an unknown batch,
 * captures, config round trips. */
#include "base/alloc.h"
#include "nn/layer_support.h"
#include "nn/layers/builtin.h"
#include <mixtape/convolution.h>
#include <mixtape/device.h>
#include <mixtape/image.h>
#include <mixtape/pooling.h>
#include <mixtape/recurrent.h>

static mix_tensor *cube(void *context, const mix_call_args *args) {
  (void)context;
  mix_tensor *x = mix_call_input(args, 0);
  return mix_multiply(mix_square(x), x);
}

/* A layer that only files have, from its class and its own keys. */
static mix_layer *from_file(const char *class_name, const char *keys, const char *dtype) {
  char config[200];
  snprintf(config, sizeof config, "{\"dtype\": \"%s\", %s}", dtype, keys);
  return mix_layer_from_config(class_name, config, NULL);
}

/* Layers over spatial axes. */
#define SPATIAL_LAYERS(X)                                                                                    \
  X(max_pooling1d, mix_max_pooling1d(.padding = "same", .dtype = dtype))                                     \
  X(max_pooling2d, mix_max_pooling2d(.pool_size = MIX_SHAPE(3, 2), .strides = MIX_SHAPE(2, 1),               \
                                     .padding = "SAME", .data_format = "channels_first", .dtype = dtype))    \
  X(max_pooling3d, mix_max_pooling3d(.pool_size = MIX_SHAPE(2, 1, 1), .dtype = dtype))                       \
  X(average_pooling1d, mix_average_pooling1d(3, .strides = MIX_SHAPE(1), .padding = "same", .dtype = dtype)) \
  X(average_pooling2d, mix_average_pooling2d(2, .data_format = "channels_first", .dtype = dtype))            \
  X(average_pooling3d, mix_average_pooling3d(2, .padding = "same", .dtype = dtype))                          \
  X(global_max_pooling1d, mix_global_max_pooling1d(.dtype = dtype))                                          \
  X(global_max_pooling2d, mix_global_max_pooling2d("channels_first", true, .dtype = dtype))                  \
  X(global_max_pooling3d, mix_global_max_pooling3d(.keepdims = true, .dtype = dtype))                        \
  X(global_average_pooling1d, mix_global_average_pooling1d(.data_format = "channels_first", .dtype = dtype)) \
  X(global_average_pooling2d, mix_global_average_pooling2d(.keepdims = true, .dtype = dtype))                \
  X(global_average_pooling3d, mix_global_average_pooling3d(.dtype = dtype))                                  \
  X(adaptive_max_pooling1d, mix_adaptive_max_pooling1d(2, .dtype = dtype))                                   \
  X(adaptive_max_pooling2d, mix_adaptive_max_pooling2d(.output_size = MIX_SHAPE(2, 1),                       \
                                                       .data_format = "channels_first", .dtype = dtype))     \
  X(adaptive_max_pooling3d, mix_adaptive_max_pooling3d(.output_size = MIX_SHAPE(1, 2, 1), .dtype = dtype))   \
  X(adaptive_average_pooling1d, mix_adaptive_average_pooling1d(2, .dtype = dtype))                           \
  X(adaptive_average_pooling2d, mix_adaptive_average_pooling2d(3, .dtype = dtype))                           \
  X(adaptive_average_pooling3d,                                                                              \
    mix_adaptive_average_pooling3d(1, .data_format = "channels_first", .dtype = dtype))                      \
  X(zero_padding1d, mix_zero_padding1d(.padding = MIX_BORDERS(1, 2), .dtype = dtype))                        \
  X(zero_padding2d,                                                                                          \
    mix_zero_padding2d(.padding = MIX_BORDERS(1, 0, 0, 2), .data_format = "channels_first", .dtype = dtype)) \
  X(zero_padding3d, mix_zero_padding3d(.dtype = dtype))                                                      \
  X(cropping1d, mix_cropping1d(.dtype = dtype))                                                              \
  X(cropping2d,                                                                                              \
    mix_cropping2d(.cropping = MIX_BORDERS(1, 0), .data_format = "channels_first", .dtype = dtype))          \
  X(cropping3d, mix_cropping3d(.cropping = MIX_BORDERS(1, 0, 0, 0, 0, 1), .dtype = dtype))                   \
  X(up_sampling1d, mix_up_sampling1d(.dtype = dtype))                                                        \
  X(up_sampling2d, mix_up_sampling2d(.factors = MIX_SHAPE(2, 3), .data_format = "channels_first",            \
                                     .interpolation = "bilinear", .dtype = dtype))                           \
  X(up_sampling3d, mix_up_sampling3d(.dtype = dtype))                                                        \
  X(resizing, mix_resizing(5, 2, "bicubic", .dtype = dtype))                                                 \
  X(resizing_cropped, mix_resizing(3, 3, "lanczos3", .crop_to_aspect_ratio = true, .dtype = dtype))          \
  X(center_crop, mix_center_crop(2, 1, .dtype = dtype))                                                      \
  X(center_crop_larger, mix_center_crop(4, 5, .dtype = dtype))                                               \
  X(random_crop, mix_random_crop(2, 2, .seed = 3, .dtype = dtype))                                           \
  X(random_flip, mix_random_flip(.seed = 3, .dtype = dtype))                                                 \
  X(random_rotation, mix_random_rotation(.factor = MIX_FACTOR(0.1), .seed = 3, .dtype = dtype))              \
  X(random_translation,                                                                                      \
    mix_random_translation(.height_factor = MIX_FACTOR(0.3), .width_factor = MIX_FACTORS(-0.1, 0.3),         \
                           .seed = 3, .dtype = dtype))                                                       \
  X(random_zoom, mix_random_zoom(.height_factor = MIX_FACTOR(0.3), .seed = 3, .dtype = dtype))               \
  X(random_contrast,                                                                                         \
    mix_random_contrast(.factor = MIX_FACTOR(0.3), .value_range = {-2, 2}, .seed = 3, .dtype = dtype))       \
  X(random_brightness,                                                                                       \
    mix_random_brightness(.factor = MIX_FACTOR(0.3), .value_range = {-2, 2}, .seed = 3, .dtype = dtype))
/* name of the row, the layer under a policy `dtype` */
#define LAYERS(X)                                                                                            \
  X(dense, mix_dense(.units = 3, .activation = "tanh", .dtype = dtype))                                      \
  X(activation, mix_activation("gelu", .dtype = dtype))                                                      \
  X(flatten, mix_flatten(.dtype = dtype))                                                                    \
  X(dropout, mix_dropout(.rate = 0.5, .dtype = dtype))                                                       \
  X(spatial_dropout2d, mix_spatial_dropout2d(.rate = 0.5, .dtype = dtype))                                   \
  X(spatial_dropout3d, mix_spatial_dropout3d(.rate = 0.5, .dtype = dtype))                                   \
  X(softmax, mix_softmax_layer(.dtype = dtype))                                                              \
  X(softmax_axes, mix_softmax_layer(.axis = MIX_AXES(1, -1), .dtype = dtype))                                \
  X(softmax_axis_1, mix_softmax_layer(.axis = MIX_AXES(1), .dtype = dtype))                                  \
  X(relu, mix_relu_layer(.max_value = 0.6, .negative_slope = 0.1, .threshold = 0.3, .dtype = dtype))         \
  X(leaky_relu, mix_leaky_relu_layer(.dtype = dtype))                                                        \
  X(prelu, mix_prelu(.dtype = dtype))                                                                        \
  X(layer_scale, from_file("LayerScale", "\"init_values\": 0.5, \"projection_dim\": 4", dtype))              \
  X(stochastic_depth, from_file("StochasticDepth", "\"drop_path_rate\": 0.5", dtype))                        \
  X(custom_scale, from_file("CustomScaleLayer", "\"scale\": 0.25", dtype))                                   \
  X(prelu_shared, mix_prelu(.shared_axes = MIX_AXES(1), .dtype = dtype))                                     \
  X(elu, mix_elu_layer(.alpha = 0.5, .dtype = dtype))                                                        \
  X(thresholded_relu, mix_thresholded_relu(.theta = 0.4, .dtype = dtype))                                    \
  X(reshape, mix_reshape_layer(.target_shape = MIX_SHAPE(-1, 2), .dtype = dtype))                            \
  X(permute, mix_permute(.dims = MIX_AXES(2, 1), .dtype = dtype))                                            \
  X(repeat_vector, mix_repeat_vector(.n = 3, .dtype = dtype))                                                \
  X(masking, mix_masking(.mask_value = 7, .dtype = dtype))                                                   \
  X(add, mix_add_layer(.dtype = dtype))                                                                      \
  X(subtract, mix_subtract_layer(.dtype = dtype))                                                            \
  X(multiply, mix_multiply_layer(.dtype = dtype))                                                            \
  X(average, mix_average(.dtype = dtype))                                                                    \
  X(maximum, mix_maximum_layer(.dtype = dtype))                                                              \
  X(minimum, mix_minimum_layer(.dtype = dtype))                                                              \
  X(concatenate, mix_concatenate(.axis = 1, .dtype = dtype))                                                 \
  X(dot, mix_dot(.axes = MIX_AXES(1, 2), .dtype = dtype))                                                    \
  X(dot_normalized, mix_dot(.axes = MIX_AXES(1), .normalize = true, .dtype = dtype))                         \
  X(rescaling, mix_rescaling(.scale = 0.5, .offset = -1, .dtype = dtype))                                    \
  X(normalization, mix_normalization(.dtype = dtype))                                                        \
  X(normalization_given,                                                                                     \
    mix_normalization(.mean = mix_scalar(0.25, MIX_FLOAT64), .variance = mix_scalar(4, MIX_FLOAT64),         \
                      .invert = true, .dtype = dtype))                                                       \
  X(normalization_of_all, mix_normalization(.axis_none = true, .dtype = dtype))                              \
  X(embedding, mix_embedding(.input_dim = 4, .output_dim = 3, .dtype = dtype))                               \
  X(reversible_embedding,                                                                                    \
    mix_reversible_embedding(.input_dim = 4, .output_dim = 3, .logit_soft_cap = 2, .dtype = dtype))          \
  X(batch_norm, mix_batch_normalization(.dtype = dtype))                                                     \
  X(batch_norm_axis_1,                                                                                       \
    mix_batch_normalization(.axis = 1, .no_scale = true, .momentum = 0.5, .dtype = dtype))                   \
  X(layer_norm, mix_layer_normalization(.dtype = dtype))                                                     \
  X(layer_norm_axes, mix_layer_normalization(.axis = MIX_AXES(1, 2), .epsilon = 1e-5, .dtype = dtype))       \
  X(layer_norm_axis_1, mix_layer_normalization(.axis = MIX_AXES(1), .no_center = true, .dtype = dtype))      \
  X(group_norm, mix_group_normalization(.groups = 2, .dtype = dtype))                                        \
  X(group_norm_axis_1, mix_group_normalization(.groups = -1, .axis = 1, .dtype = dtype))                     \
  X(rms_norm, mix_rms_normalization(.dtype = dtype))                                                         \
  X(unit_norm, mix_unit_normalization(.axis = MIX_AXES(1), .dtype = dtype))                                  \
  X(spatial_dropout1d, mix_spatial_dropout1d(.rate = 0.5, .dtype = dtype))                                   \
  X(gaussian_noise, mix_gaussian_noise(.stddev = 0.5, .dtype = dtype))                                       \
  X(gaussian_dropout, mix_gaussian_dropout(.rate = 0.5, .dtype = dtype))                                     \
  X(alpha_dropout, mix_alpha_dropout(.rate = 0.5, .dtype = dtype))                                           \
  X(activity, mix_activity_regularization(.l1 = 0.5, .l2 = 0.25, .dtype = dtype))                            \
  X(conv1d, mix_conv1d(3, 2, .padding = "causal", .dilation_rate = MIX_SHAPE(2), .dtype = dtype))            \
  X(conv2d, mix_conv2d(4, .kernel_size = MIX_SHAPE(3, 2), .strides = MIX_SHAPE(2, 1), .padding = "same",     \
                       .groups = 2, .activation = "tanh", .dtype = dtype))                                   \
  X(conv2d_first, mix_conv2d(2, 2, .data_format = "channels_first", .dtype = dtype))                         \
  X(conv3d, mix_conv3d(2, .kernel_size = MIX_SHAPE(1, 2, 2), .no_bias = true, .dtype = dtype))               \
  X(conv1d_transpose, mix_conv1d_transpose(2, 3, .strides = MIX_SHAPE(2), .dtype = dtype))                   \
  X(conv2d_transpose, mix_conv2d_transpose(2, 3, .strides = MIX_SHAPE(2), .padding = "same",                 \
                                           .output_padding = MIX_SHAPE(1), .dtype = dtype))                  \
  X(conv3d_transpose, mix_conv3d_transpose(2, .kernel_size = MIX_SHAPE(2, 1, 2),                             \
                                           .data_format = "channels_first", .dtype = dtype))                 \
  X(depthwise_conv1d, mix_depthwise_conv1d(2, .depth_multiplier = 2, .dtype = dtype))                        \
  X(depthwise_conv2d, mix_depthwise_conv2d(3, .padding = "same", .dtype = dtype))                            \
  X(separable_conv1d, mix_separable_conv1d(3, 2, .depth_multiplier = 2, .dtype = dtype))                     \
  X(separable_conv2d,                                                                                        \
    mix_separable_conv2d(3, 2, .strides = MIX_SHAPE(2), .padding = "same", .dtype = dtype))                  \
  X(locally_connected1d, mix_locally_connected1d(3, 2, .strides = MIX_SHAPE(2), .dtype = dtype))             \
  X(locally_connected2d, mix_locally_connected2d(1, 2, .strides = MIX_SHAPE(2), .padding = "same",           \
                                                 .implementation = 2, .dtype = dtype))                       \
  X(spectral, mix_spectral_normalization(mix_dense(.units = 3, .dtype = dtype), 2, .dtype = dtype))          \
  X(lambda, mix_lambda(.function = cube, .dtype = dtype))                                                    \
  SPATIAL_LAYERS(X)                                                                                          \
  X(simple_rnn, mix_simple_rnn(3, .return_sequences = true, .dtype = dtype))                                 \
  X(lstm, mix_lstm(3, .dtype = dtype))                                                                       \
  X(gru, mix_gru(3, .go_backwards = true, .return_sequences = true, .dtype = dtype))                         \
  X(gru_reset_before, mix_gru(3, .reset_before = true, .dtype = dtype))                                      \
  X(rnn, mix_rnn(mix_stacked_rnn_cells(                                                                      \
                     mix_list_of(mix_gru_cell(2, .dtype = dtype), mix_lstm_cell(2, .dtype = dtype)),         \
                     .dtype = dtype),                                                                        \
                 .dtype = dtype))                                                                            \
  X(rnn_of_simple_cell, mix_rnn(mix_simple_rnn_cell(2, .dtype = dtype), .dtype = dtype))                     \
  X(bidirectional, mix_bidirectional(mix_lstm(2, .return_sequences = true, .dtype = dtype), .dtype = dtype)) \
  X(conv_lstm1d, mix_conv_lstm1d(2, 2, .return_sequences = true, .dtype = dtype))                            \
  X(conv_lstm2d, mix_conv_lstm2d(2, .kernel_size = MIX_SHAPE(2, 1), .strides = MIX_SHAPE(1, 2),              \
                                 .padding = "same", .data_format = "channels_first", .dtype = dtype))        \
  X(conv_lstm3d, mix_conv_lstm3d(2, .kernel_size = MIX_SHAPE(1, 2, 1), .no_bias = true, .dtype = dtype))     \
  X(time_distributed, mix_time_distributed(mix_dense(3, "tanh", .dtype = dtype), .dtype = dtype))            \
  X(einsum_dense,                                                                                            \
    mix_einsum_dense(.equation = "abc,cde->abde", .output_shape = MIX_SHAPE(MIX_UNKNOWN, 2, 3),              \
                     .bias_axes = "de", .activation = "tanh", .dtype = dtype))                               \
  X(einsum_dense_open, mix_einsum_dense(.equation = "...b,bc->...c", .output_shape = MIX_SHAPE(3),           \
                                        .bias_axes = "c", .dtype = dtype))                                   \
  X(multi_head, mix_multi_head_attention(.num_heads = 2, .key_dim = 3, .value_dim = 2, .dtype = dtype))      \
  X(multi_head_axes,                                                                                         \
    mix_multi_head_attention(.num_heads = 2, .key_dim = 2, .attention_axes = MIX_AXES(1),                    \
                             .output_shape = MIX_SHAPE(3), .no_bias = true, .dtype = dtype))                 \
  X(multi_head_gate, mix_multi_head_attention(.num_heads = 1, .key_dim = 2, .use_gate = true,                \
                                              .sliding_window = 2, .no_bias = true, .dtype = dtype))         \
  X(grouped_query, mix_grouped_query_attention(.head_dim = 2, .num_query_heads = 4,                          \
                                               .num_key_value_heads = 2, .dtype = dtype))                    \
  X(attention, mix_attention(.use_scale = true, .dtype = dtype))                                             \
  X(attention_concat, mix_attention(.use_scale = true, .score_mode = "concat", .dtype = dtype))              \
  X(additive_attention, mix_additive_attention(.dtype = dtype))
#define MAKE(name, layer)                                                                                    \
  static mix_layer *make_##name(const char *dtype) { return layer; }
LAYERS(MAKE)

#define X234                                                                                                 \
  {                                                                                                          \
    .rank = 3, .dims = { 2, 3, 4 }                                                                           \
  }
#define X2334                                                                                                \
  {                                                                                                          \
    .rank = 4, .dims = { 2, 3, 3, 4 }                                                                        \
  }
#define X24                                                                                                  \
  {                                                                                                          \
    .rank = 2, .dims = { 2, 4 }                                                                              \
  }
#define LINES                                                                                                \
  {                                                                                                          \
    .rank = 3, .dims = { 2, 4, 4 }                                                                           \
  }
#define IMAGES                                                                                               \
  {                                                                                                          \
    .rank = 4, .dims = { 2, 3, 4, 3 }                                                                        \
  }
#define VOLUMES                                                                                              \
  {                                                                                                          \
    .rank = 5, .dims = { 1, 2, 1, 2, 1 }                                                                     \
  }
/* numbers() has no two close ones in these */
#define MAX_IMAGES                                                                                           \
  {                                                                                                          \
    .rank = 4, .dims = { 2, 3, 3, 2 }                                                                        \
  }
#define MAX_VOLUMES                                                                                          \
  {                                                                                                          \
    .rank = 5, .dims = { 2, 3, 2, 1, 3 }                                                                     \
  }
#define SMALL_IMAGES                                                                                         \
  {                                                                                                          \
    .rank = 4, .dims = { 1, 2, 2, 2 }                                                                        \
  }
/* keras3 does not crop outside training */
#define CROPPED                                                                                              \
  {                                                                                                          \
    .rank = 4, .dims = { 2, 2, 2, 3 }                                                                        \
  }
#define ONE(name, shape)                                                                                     \
  { make_##name, 1, {shape}, false, 0, false }
/* BatchNormalization's tolerance is that of Keras's tests, docs/spec/mixed_precision.md, 5.1. */
static const trial trials[] = {
    ONE(dense, X234),
    ONE(activation, X234),
    ONE(flatten, X234),
    ONE(dropout, X234),
    {make_spatial_dropout2d, 1, {{.rank = 4, .dims = {2, 2, 2, 3}}}, false, 0, false},
    {make_spatial_dropout3d, 1, {{.rank = 5, .dims = {2, 2, 1, 2, 3}}}, false, 0, false},
    ONE(softmax, X234),
    ONE(softmax_axes, X234),
    ONE(softmax_axis_1, X234),
    ONE(relu, X234),
    ONE(leaky_relu, X234),
    ONE(prelu, X234),
    ONE(layer_scale, X234),
    ONE(stochastic_depth, X234),
    {make_custom_scale, 2, {X234, X234}},
    ONE(prelu_shared, X234),
    ONE(elu, X234),
    ONE(thresholded_relu, X234),
    ONE(reshape, X234),
    ONE(permute, X234),
    ONE(repeat_vector, X24),
    ONE(masking, X234),
    {make_add, 3, {X234, X24, X234}, false, 0, false},
    {make_subtract, 2, {X234, X234}, false, 0, false},
    {make_multiply, 3, {X234, X24, X234}, false, 0, false},
    {make_average, 3, {X234, X234, X234}, false, 0, false},
    {make_maximum, 3, {X234, X24, X234}, false, 0, false},
    {make_minimum, 2, {X24, X24}, false, 0, false},
    {make_concatenate, 3, {X234, {.rank = 3, .dims = {2, 1, 4}}, X234}, false, 0, false},
    {make_dot, 2, {{.rank = 3, .dims = {2, 4, 3}}, X234}, false, 0, false},
    {make_dot_normalized, 2, {X24, X24}, false, 0, false},
    ONE(rescaling, X234),
    ONE(normalization, X234),
    ONE(normalization_given, X234),
    ONE(normalization_of_all, X234),
    {make_embedding, 1, {X24}, false, 0, true},
    {make_reversible_embedding, 1, {X24}, false, 0, true},
    {make_batch_norm, 1, {X234}, false, 1e-2, false},
    {make_batch_norm, 1, {X234}, true, 1e-2, false},
    {make_batch_norm_axis_1, 1, {X234}, true, 1e-2, false},
    {make_batch_norm, 1, {{.rank = 4, .dims = {2, 3, 2, 2}}}, true, 1e-2, false},
    {make_batch_norm_axis_1, 1, {{.rank = 5, .dims = {2, 2, 2, 1, 2}}}, true, 1e-2, false},
    ONE(layer_norm, X234),
    ONE(layer_norm_axes, X234),
    ONE(layer_norm_axis_1, X234),
    ONE(group_norm, X234),
    ONE(group_norm_axis_1, X234),
    ONE(rms_norm, X234),
    ONE(unit_norm, X234),
    ONE(spatial_dropout1d, X234),
    ONE(gaussian_noise, X234),
    ONE(gaussian_dropout, X234),
    ONE(alpha_dropout, X234),
    ONE(activity, X234),
    ONE(conv1d, X234),
    ONE(conv2d, X2334),
    ONE(conv2d_first, X2334),
    {make_conv3d, 1, {{.rank = 5, .dims = {2, 2, 2, 3, 2}}}, false, 0, false},
    ONE(conv1d_transpose, X234),
    {make_conv2d_transpose, 1, {{.rank = 4, .dims = {2, 2, 2, 2}}}, false, 0, false},
    {make_conv3d_transpose, 1, {{.rank = 5, .dims = {2, 2, 2, 3, 2}}}, false, 0, false},
    ONE(depthwise_conv1d, X234),
    ONE(depthwise_conv2d, X2334),
    ONE(separable_conv1d, X234),
    ONE(separable_conv2d, X2334),
    ONE(locally_connected1d, X234),
    ONE(locally_connected2d, X2334),
    ONE(lambda, X234),
    ONE(spectral, X234),
    ONE(max_pooling1d, LINES),
    ONE(max_pooling2d, MAX_IMAGES),
    ONE(max_pooling3d, MAX_VOLUMES),
    ONE(average_pooling1d, LINES),
    ONE(average_pooling2d, IMAGES),
    ONE(average_pooling3d, VOLUMES),
    ONE(global_max_pooling1d, LINES),
    ONE(global_max_pooling2d, MAX_IMAGES),
    ONE(global_max_pooling3d, MAX_VOLUMES),
    ONE(global_average_pooling1d, LINES),
    ONE(global_average_pooling2d, IMAGES),
    ONE(global_average_pooling3d, VOLUMES),
    ONE(adaptive_max_pooling1d, LINES),
    ONE(adaptive_max_pooling2d, MAX_IMAGES),
    ONE(adaptive_max_pooling3d, MAX_VOLUMES),
    ONE(adaptive_average_pooling1d, LINES),
    ONE(adaptive_average_pooling2d, IMAGES),
    ONE(adaptive_average_pooling3d, VOLUMES),
    ONE(zero_padding1d, LINES),
    ONE(zero_padding2d, IMAGES),
    ONE(zero_padding3d, VOLUMES),
    ONE(cropping1d, LINES),
    ONE(cropping2d, IMAGES),
    ONE(cropping3d, VOLUMES),
    ONE(up_sampling1d, LINES),
    ONE(up_sampling2d, SMALL_IMAGES),
    ONE(up_sampling3d, VOLUMES),
    ONE(resizing, IMAGES),
    ONE(resizing_cropped, IMAGES),
    ONE(center_crop, IMAGES),
    ONE(center_crop_larger, IMAGES),
    ONE(random_crop, CROPPED),
    ONE(random_flip, IMAGES),
    ONE(random_rotation, IMAGES),
    ONE(random_translation, IMAGES),
    ONE(random_zoom, IMAGES),
    ONE(random_contrast, IMAGES),
    ONE(random_brightness, IMAGES),
    /* SimpleRNN's tolerance is that of Keras's tests too. */
    {make_simple_rnn, 1, {X234}, false, 1e-2, false},
    ONE(lstm, X234),
    ONE(gru, X234),
    ONE(gru_reset_before, X234),
    ONE(rnn, X234),
    {make_rnn_of_simple_cell, 1, {X234}, false, 1e-2, false},
    ONE(bidirectional, X234),
    ONE(conv_lstm1d, X2334),
    {make_conv_lstm2d, 1, {{.rank = 5, .dims = {2, 2, 2, 2, 3}}}, false, 0, false},
    {make_conv_lstm3d, 1, {{.rank = 6, .dims = {2, 2, 1, 2, 2, 2}}}, false, 0, false},
    ONE(time_distributed, X234),
    ONE(einsum_dense, X234),
    ONE(einsum_dense_open, X234),
    {make_multi_head,
     3,
     {X234, {.rank = 3, .dims = {2, 2, 3}}, {.rank = 3, .dims = {2, 2, 5}}},
     .arguments = true},
    {make_multi_head_axes,
     2,
     {{.rank = 4, .dims = {2, 3, 2, 4}}, {.rank = 4, .dims = {2, 2, 2, 4}}},
     .arguments = true},
    {make_multi_head_gate, 2, {X234, X234}, .arguments = true},
    {make_grouped_query, 2, {X234, {.rank = 3, .dims = {2, 2, 3}}}, .arguments = true},
    {make_attention, 2, {X234, {.rank = 3, .dims = {2, 2, 4}}}},
    {make_attention, 3, {X234, {.rank = 3, .dims = {2, 2, 5}}, {.rank = 3, .dims = {2, 2, 4}}}},
    {make_attention_concat, 2, {X234, {.rank = 3, .dims = {2, 2, 4}}}},
    {make_additive_attention, 2, {X234, {.rank = 3, .dims = {2, 2, 4}}}}};
enum { TRIALS = sizeof trials / sizeof *trials };
/* All but those with integer results, which test_layers_preprocessing.c tests. */
static void every_layer_has_a_trial(void **state) {
  (void)state;
#define KIND(name) {#name, &mix_##name##_kind},
  static const struct {
    const char *name;
    const mix_layer_kind *kind;
  } layers[] = {MIX_BUILT_IN_LAYERS(KIND)};
#undef KIND
  const mix_layer_kind *tried[TRIALS];
  for (int i = 0; i < TRIALS; i++) tried[i] = trials[i].make("float32")->kind;
  for (size_t n = 0; n < sizeof layers / sizeof *layers; n++) {
    bool found = layers[n].kind == &mix_discretization_kind ||
                 layers[n].kind == &mix_category_encoding_kind ||
                 layers[n].kind->class.cell_states /* tried inside mix_rnn */ ||
                 layers[n].kind->call_has_form /* tests/saving/test_tf_operations.c */ ||
                 layers[n].kind == &mix_add_loss_kind || /* both: tests/saving/test_added_layers.c */
                 layers[n].kind == &mix_add_metric_kind ||
                 layers[n].kind == &mix_identity_layer_kind; /* tests/saving/test_keras_files.c */
    for (int i = 0; i < TRIALS; i++) found |= tried[i] == layers[n].kind;
    if (!found) fail_msg("%s has no trial in tests/nn/test_layers_all.c", layers[n].name);
  }
}

static const char *const generations[] = {"tf_keras", "keras3", "experimental"};

static void each(void (*check)(const trial *t)) {
  for (int g = 0; g < 3; g++) {
    mix_set_semantics(generations[g]);
    for (int i = 0; i < TRIALS; i++)
      MIX_SCOPE { check(&trials[i]); }
  }
}

static void gradients(void **state) {
  (void)state;
  each(gradients_agree);
}
static void in_float16(const trial *t) { policy_agrees(t, "mixed_float16"); }
static void in_bfloat16(const trial *t) { policy_agrees(t, "mixed_bfloat16"); }
static void M08_float16_against_float32(void **state) {
  (void)state;
  each(in_float16);
}
static void M08_bfloat16_against_float32(void **state) {
  (void)state;
  each(in_bfloat16);
}
/* Layers that draw numbers, in training: a seed draws the same in every dtype. */
#define DRAWING(X)                                                                                           \
  X(drawing_dropout, mix_dropout(.rate = 0.5, .seed = 3, .dtype = dtype))                                    \
  X(drawing_dropout1d, mix_spatial_dropout1d(.rate = 0.5, .seed = 3, .dtype = dtype))                        \
  X(drawing_dropout2d, mix_spatial_dropout2d(.rate = 0.5, .seed = 3, .dtype = dtype))                        \
  X(drawing_dropout3d, mix_spatial_dropout3d(.rate = 0.5, .seed = 3, .dtype = dtype))                        \
  X(drawing_noise, mix_gaussian_noise(.stddev = 0.5, .seed = 3, .dtype = dtype))                             \
  X(drawing_factor, mix_gaussian_dropout(.rate = 0.5, .seed = 3, .dtype = dtype))                            \
  X(drawing_alpha, mix_alpha_dropout(.rate = 0.5, .seed = 3, .dtype = dtype))                                \
  X(drawing_crop, mix_random_crop(2, 2, .seed = 3, .dtype = dtype))                                          \
  X(drawing_flip, mix_random_flip(.seed = 3, .dtype = dtype))                                                \
  X(drawing_contrast,                                                                                        \
    mix_random_contrast(.factor = MIX_FACTOR(0.3), .value_range = {-2, 2}, .seed = 3, .dtype = dtype))       \
  X(drawing_brightness,                                                                                      \
    mix_random_brightness(.factor = MIX_FACTOR(0.3), .value_range = {-2, 2}, .seed = 3, .dtype = dtype))
DRAWING(MAKE)
static void M08_in_training(void **state) {
  (void)state;
  static const mix_shape wide = {.rank = 4, .dims = {2, 2, 2, 3}},
                         deep = {.rank = 5, .dims = {2, 2, 1, 2, 3}};
  const trial drawing[] = {{make_drawing_dropout, 1, {X234}, true, 0, false},
                           {make_drawing_dropout1d, 1, {X234}, true, 0, false},
                           {make_drawing_dropout2d, 1, {wide}, true, 0, false},
                           {make_drawing_dropout3d, 1, {deep}, true, 0, false},
                           {make_drawing_noise, 1, {X234}, true, 0, false},
                           {make_drawing_factor, 1, {X234}, true, 0, false},
                           {make_drawing_alpha, 1, {X234}, true, 0, false},
                           {make_drawing_crop, 1, {IMAGES}, true, 0, false},
                           {make_drawing_flip, 1, {IMAGES}, true, 0, false},
                           {make_drawing_contrast, 1, {IMAGES}, true, 0, false},
                           {make_drawing_brightness, 1, {IMAGES}, true, 0, false}};
  for (int g = 0; g < 3; g++) {
    mix_set_semantics(generations[g]);
    for (size_t i = 0; i < sizeof drawing / sizeof *drawing; i++)
      MIX_SCOPE { in_float16(&drawing[i]), in_bfloat16(&drawing[i]); }
  }
}
static void in_pure_float16(const trial *t) { policy_agrees(t, "float16"); }
static void float16_variables_too(void **state) {
  (void)state;
  each(in_pure_float16);
}
static void shapes_with_an_unknown_batch(void **state) {
  (void)state;
  each(shapes_agree);
}
static void captures(void **state) {
  (void)state;
  each(captures_agree);
}

/* In inference every layer serves batches of any size, here three rows on the plan of four, with the bits of
 * three on the reference. Statistics of the batch are refused. */
static void any_batch_agrees(const trial *t) {
  trial three = *t;
  mix_tensor *inputs[INPUTS];
  mix_layer *layer = t->make("float32");
  for (int i = 0; i < t->inputs; i++) {
    three.shapes[i].dims[0] = 3;
    inputs[i] = numbers(three.shapes[i], i, t->ids ? MIX_INT32 : MIX_FLOAT32, NULL);
  }
  void *context[] = {layer, &three};
  mix_function *function = mix_function_new(trial_body, context, .batch = MIX_ANY);
  mix_tensor *y = call_trial(layer, &three, inputs);
  double outside[SIZE];
  const int count = (int)mix_shape_size(mix_tensor_shape(y));
  mix_tensor_read(y, MIX_FLOAT64, outside, count);
  mix_list *results = mix_function_call(function, mix_list_new(t->inputs, (void *const *)inputs));
  if (t->training) {
    expect_error(MIX_VALUE_ERROR, "mixes the rows of the batch");
    return;
  }
  if (!results) fail_msg("%s: %s", mix_layer_class_name(layer), mix_error_message());
  expect_values(mix_list_get(results, 0), count, outside, 0, 0);
}
static void batches_of_any_size(void **state) {
  (void)state;
  const char *former = mix_device();
  mix_set_device("ref");
  each(any_batch_agrees);
  mix_set_device(former);
}

static void again(const trial *t) {
  mix_layer *layer = t->make("mixed_float16");
  if (strcmp(mix_layer_class_name(layer), "Lambda")) made_again(layer);
}
static void configs_and_back(void **state) {
  (void)state;
  each(again);
  made_again(mix_softmax_layer(.axis = MIX_AXES(0), .name = "s", .not_trainable = true));
  made_again(mix_relu_layer(.max_value = MIX_ZERO));
  assert_non_null(strstr(mix_layer_config(mix_relu_layer()), "\"max_value\": null"));
  made_again(mix_leaky_relu_layer(.negative_slope = MIX_ZERO));
  made_again(mix_elu_layer(.alpha = MIX_ZERO));
  made_again(mix_thresholded_relu(.theta = MIX_ZERO));
  made_again(mix_prelu(.alpha_initializer = "ones", .alpha_regularizer = mix_regularizer_new("l2"),
                       .alpha_constraint = mix_constraint_new("non_neg"), .shared_axes = MIX_AXES(1, 2)));
  made_again(mix_concatenate(.axis = MIX_AXIS_0));
  made_again(mix_dot(.axes = MIX_AXES(-1), .normalize = true));
  made_again(mix_rescaling(.scale = MIX_ZERO, .offset = 2));
  made_again(mix_normalization(.axis = MIX_AXES(1, -1)));
  made_again(mix_normalization(.mean = VECTOR(MIX_FLOAT32, 1, 2), .variance = VECTOR(MIX_FLOAT32, 3, 4)));
  made_again(mix_discretization(.bin_boundaries = (double[]){0, 1.5}, .boundary_count = 2));
  made_again(mix_discretization(.num_bins = 4, .epsilon = 0.1, .output_mode = "count"));
  made_again(mix_category_encoding(.num_tokens = 4, .output_mode = "one_hot"));
  made_again(mix_embedding(.input_dim = 2, .output_dim = 3, .mask_zero = true,
                           .embeddings_constraint = mix_constraint_new("unit_norm"),
                           .embeddings_regularizer = mix_regularizer_new("l1"),
                           .activity_regularizer = mix_regularizer_new("l2")));
  made_again(mix_batch_normalization(.axis = 1, .momentum = MIX_ZERO, .epsilon = MIX_ZERO, .no_center = true,
                                     .not_fused = true, .moving_variance_initializer = "zeros",
                                     .gamma_regularizer = mix_regularizer_new("l1")));
  made_again(mix_layer_normalization(.axis = MIX_AXES(1, 2), .no_scale = true, .beta_initializer = "ones"));
  made_again(
      mix_group_normalization(.groups = -1, .axis = 1, .gamma_constraint = mix_constraint_new("non_neg")));
  made_again(mix_spatial_dropout2d(.rate = 0.25, .data_format = "channels_first", .seed = 3));
  made_again(mix_spatial_dropout3d(.rate = 1));
  made_again(mix_gaussian_noise(.stddev = 1, .seed = 4));
  made_again(mix_conv2d(6, .kernel_size = MIX_SHAPE(3, 2), .strides = MIX_SHAPE(2), .padding = "SAME",
                        .groups = 3, .data_format = "channels_first", .activation = "relu", .no_bias = true,
                        .kernel_initializer = "he_normal", .kernel_regularizer = mix_regularizer_new("l2"),
                        .bias_constraint = mix_constraint_new("non_neg")));
  made_again(
      mix_conv3d_transpose(2, 3, .dilation_rate = MIX_SHAPE(2), .semantics = mix_semantics_named("keras3")));
  made_again(mix_conv1d_transpose(2, 3, .strides = MIX_SHAPE(2), .output_padding = MIX_SHAPE(0)));
  made_again(mix_conv_lstm2d(
      2, .kernel_size = MIX_SHAPE(3, 2), .strides = MIX_SHAPE(2), .padding = "SAME",
      .data_format = "channels_first", .activation = "relu", .recurrent_activation = "sigmoid",
      .no_forget_bias = true, .dropout = 0.25, .recurrent_dropout = 0.5, .kernel_initializer = "he_normal",
      .bias_regularizer = mix_regularizer_new("l2"), .return_state = true, .stateful = true));
  made_again(mix_depthwise_conv2d(3, .depthwise_regularizer = mix_regularizer_new("l1")));
  made_again(mix_separable_conv1d(2, 3, .pointwise_constraint = mix_constraint_new("unit_norm")));
  made_again(mix_alpha_dropout(.rate = 0.25, .noise_shape = MIX_SHAPE(MIX_UNKNOWN, 1)));
}

/* Keras's constructor defaults (docs/spec/keras.md, sections 1, 5, 7, 8) in configs. */
static void defaults(void **state) {
  (void)state;
  const struct {
    mix_layer *layer;
    const char *name, *config;
  } rows[] = {
      {mix_softmax_layer(), "softmax", "\"axis\": -1"},
      {mix_relu_layer(), "re_lu", "\"max_value\": null, \"negative_slope\": 0.0, \"threshold\": 0.0"},
      {mix_leaky_relu_layer(), "leaky_re_lu", "\"alpha\": 0.3"},
      {mix_prelu(), "p_re_lu", "\"shared_axes\": null"},
      {mix_elu_layer(), "elu", "\"alpha\": 1.0"},
      {mix_thresholded_relu(), "thresholded_re_lu", "\"theta\": 1.0"},
      {mix_masking(), "masking", "\"mask_value\": 0.0"},
      {mix_concatenate(), "concatenate", "\"axis\": -1"},
      {mix_normalization(), "normalization",
       "\"axis\": [-1], \"invert\": false, \"mean\": null, \"variance\": null"},
      {mix_category_encoding(3), "category_encoding", "\"output_mode\": \"multi_hot\""},
      {mix_embedding(2, 3), "embedding", "\"mask_zero\": false"},
      {mix_batch_normalization(), "batch_normalization",
       "\"axis\": -1, \"momentum\": 0.99, \"epsilon\": 0.001, \"center\": true, "
       "\"scale\": true"},
      {mix_layer_normalization(), "layer_normalization",
       "\"axis\": -1, \"epsilon\": 0.001, \"center\": true, \"scale\": true"},
      {mix_group_normalization(), "group_normalization",
       "\"groups\": 32, \"axis\": -1, \"epsilon\": 0.001, \"center\": true, \"scale\": true"},
      {mix_rms_normalization(), "rms_normalization", "\"axis\": -1, \"epsilon\": 1e-06"},
      {mix_unit_normalization(), "unit_normalization", "\"axis\": -1"},
      {mix_spatial_dropout1d(0.5), "spatial_dropout1d",
       "\"rate\": 0.5, \"noise_shape\": null, "
       "\"seed\": null"},
      {mix_conv2d(2, 3), "conv2d",
       "\"kernel_size\": [3, 3], \"strides\": [1, 1], \"padding\": \"valid\", \"data_format\": "
       "\"channels_last\", \"dilation_rate\": [1, 1], \"groups\": 1"},
      {mix_conv1d_transpose(2, 3), "conv1d_transpose", "\"output_padding\": null"},
      {mix_depthwise_conv2d(3), "depthwise_conv2d", "\"depth_multiplier\": 1, \"kernel_size\": [3, 3]"},
      {mix_separable_conv2d(2, 3), "separable_conv2d",
       "\"depth_multiplier\": 1, \"filters\": 2, \"kernel_size\": [3, 3]"},
      {mix_activity_regularization(), "activity_regularization", "\"l1\": 0.0, \"l2\": 0.0"},
      {mix_discretization(.num_bins = 2), "discretization", "\"epsilon\": 0.01, \"output_mode\": \"int\""}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_string_equal(mix_layer_name(rows[i].layer), rows[i].name);
    if (!strstr(mix_layer_config(rows[i].layer), rows[i].config))
      fail_msg("%s is not in %s", rows[i].config, mix_layer_config(rows[i].layer));
  }
  assert_non_null(
      strstr(mix_layer_config(mix_embedding(2, 3)), "\"RandomUniform\", \"config\": {\"minval\": -0.05"));
}
static void options_for_cplusplus(void **state) {
  (void)state;
  mix_batch_normalization_options b = mix_batch_normalization_defaults();
  assert_int_equal(b.size, sizeof b);
  assert_non_null(mix_batch_normalization_with(&b));
  mix_merge_options m = mix_merge_defaults();
  assert_string_equal(mix_layer_class_name(mix_minimum_layer_with(&m)), "Minimum");
  m.size = sizeof m + 8;
  expect_refused(mix_add_layer_with(&m), MIX_VALUE_ERROR, "size");
}

/* Creates the layer, calls it symbolically and really, differentiates it and creates it again from its
 * config. */
static void use(const trial *t) {
  mix_layer *layer = t->make("mixed_float16");
  mix_tensor *inputs[INPUTS];
  for (int i = 0; i < t->inputs; i++) inputs[i] = mix_fill(t->shapes[i], 1, t->ids ? MIX_INT32 : MIX_FLOAT32);
  trial training = *t;
  training.training = true;
  mix_tape *tape = mix_tape_begin();
  mix_tensor *y = call_trial(layer, &training, inputs);
  mix_tape_end(tape);
  mix_tape_gradient(tape, y, mix_layer_trainable_weights(layer));
  if (y) mix_tensor_data(y);
  const char *config = mix_layer_config(layer);
  if (config && strcmp(mix_layer_class_name(layer), "Lambda"))
    mix_layer_from_config(mix_layer_class_name(layer), config, NULL);
}
static void use_learners(const trial *t) {
  (void)t;
  mix_tensor *data = mix_reshape(mix_range(0, 8, 1, MIX_FLOAT32), MIX_SHAPE(4, 2));
  mix_layer *discretization = mix_discretization(.num_bins = 2), *normalization = mix_normalization();
  mix_discretization_adapt(discretization, data);
  mix_normalization_adapt(normalization, data);
  mix_normalization_update(normalization, data);
  mix_call(mix_category_encoding(4), mix_call(discretization, data));
  mix_call(normalization, data);
}
/* Each attempt ends in MemoryError or succeeds. Only every third allocation fails, to keep the test short. */
static void may_fail(const trial *t, void (*act)(const trial *t)) {
  bool failed = true;
  int64_t count = 0;
  MIX_SCOPE { act(t); } /* caches interned names and compiled plans */
  assert_int_equal(mix_error(), MIX_OK);
  for (; failed && count < 10000; count += 3) {
    mix_inject_allocation_failure(count);
    MIX_SCOPE { act(t); }
    mix_inject_allocation_failure(-1);
    failed = mix_error() != MIX_OK;
    if (failed && mix_error() != MIX_MEMORY_ERROR)
      fail_msg("allocation %lld: %s", (long long)count, mix_error_message());
    mix_error_clear();
    assert_int_equal(mix_cast_dtype(), MIX_DTYPE_NONE);
  }
  assert_false(failed);
  assert_true(count > 30); /* some allocations failed */
}
static void allocations_may_fail(void **state) {
  (void)state;
  for (int i = 0; i < TRIALS; i++) may_fail(&trials[i], use);
  may_fail(NULL, use_learners);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(every_layer_has_a_trial),
                                     TEST(gradients),
                                     TEST(M08_float16_against_float32),
                                     TEST(M08_bfloat16_against_float32),
                                     TEST(M08_in_training),
                                     TEST(float16_variables_too),
                                     TEST(shapes_with_an_unknown_batch),
                                     TEST(captures),
                                     TEST(batches_of_any_size),
                                     TEST(configs_and_back),
                                     TEST(defaults),
                                     TEST(options_for_cplusplus),
                                     TEST(allocations_may_fail)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
