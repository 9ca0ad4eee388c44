/* What convolution layers share: sizes for each spatial axis, the order of channels, checks. */
#pragma once

#include "nn/layers/activation_functions.h"
#include "nn/layers/builtin.h"
#include <mixtape/convolution.h>

/* mix_shape: an integer, or a list with one for each spatial axis. */
extern const mix_value_kind mix_field_window_sizes;

/* Where an options struct has its sizes. */
typedef struct mix_window_options {
  mix_shape *kernel_size, *strides, *dilation_rate, *output_padding; /* the last may be NULL */
  const char **padding;
  bool causal; /* is a padding, too */
} mix_window_options;
/* Gives each size one number for each axis, and the padding its name in lower case. False with the error
 * recorded. */
bool mix_check_window(const char *call, int axes, const mix_window_options *window);
#define MIX_WINDOW_OF(options, ...)                                                                          \
  (&(const mix_window_options){.kernel_size = &(options)->kernel_size,                                       \
                               .strides = &(options)->strides,                                               \
                               .dilation_rate = &(options)->dilation_rate,                                   \
                               .padding = &(options)->padding,                                               \
                               __VA_ARGS__})
bool mix_check_positive(const char *call, const char *name, int64_t number);

/* The channels of the only input of a layer, which has so many spatial axes; the layer's input spec asks for
 * them from now on. -1 with the error recorded. */
int64_t mix_conv_channels(mix_layer *layer, int axes, const char *data_format, int count,
                          const mix_shape *input_shapes);
/* x (batch, ...) with its channels last, and back. NULL for NULL. */
mix_tensor *mix_channels_to_last(mix_tensor *x, const char *data_format);
mix_tensor *mix_channels_from_last(mix_tensor *x, const char *data_format);
/* The input with its channels last, in the compute dtype. */
mix_tensor *mix_conv_input(const mix_layer *layer, const mix_call_args *args, const char *data_format);
/* activation(y + bias) in the layer's order of channels; bias may be NULL. */
mix_list *mix_conv_result(const mix_layer *layer, mix_tensor *y, mix_variable *bias, const char *data_format,
                          const char *activation);
/* The shape of a kernel: its cells, then two numbers. */
mix_shape mix_kernel_shape(mix_shape cells, int64_t in, int64_t out);

/* ---- rows ---- */

#define MIX_PER_AXIS_FIELD(type, member) MIX_FIELD(type, member), &mix_field_window_sizes
/* What configs of convolutions begin with, and end with. */
#define MIX_WINDOW_FIELDS(type)                                                                              \
  {MIX_PER_AXIS_FIELD(type, kernel_size), .required = true, .one = offsetof(type, kernel)},                  \
      {MIX_PER_AXIS_FIELD(type, strides)}, {MIX_FIELD(type, padding), &mix_field_text, .text = "valid"},     \
      MIX_DATA_FORMAT_FIELD(type)
#define MIX_BIAS_FIELDS(type)                                                                                \
  {MIX_FIELD(type, activation), &mix_field_activation},                                                      \
      {"use_bias", offsetof(type, no_bias), &mix_field_negated},                                             \
      MIX_INITIALIZER_FIELD(type, bias_initializer, "zeros"),                                                \
      {MIX_FIELD(type, bias_regularizer), &mix_field_regularizer},                                           \
      {MIX_FIELD(type, activity_regularizer), &mix_field_regularizer}, {                                     \
    MIX_FIELD(type, bias_constraint), &mix_field_constraint                                                  \
  }
#define MIX_KERNEL_FIELDS(type, kernel)                                                                      \
  MIX_INITIALIZER_FIELD(type, kernel##_initializer, "glorot_uniform"),                                       \
      {MIX_FIELD(type, kernel##_regularizer), &mix_field_regularizer}, {                                     \
    MIX_FIELD(type, kernel##_constraint), &mix_field_constraint                                              \
  }
/* Configs of Keras 2 have what the class inherits from Conv, which says nothing here. */
#define MIX_INHERITED_FIELD(name, json)                                                                      \
  { name, 0, &mix_field_fixed, .text = json, .only = MIX_RULE(config_conv_inherited) }

/* Adds the bias of the options, unless there is none. */
#define MIX_ADD_BIAS(layer, o, filters)                                                                      \
  ((o)->no_bias ? NULL                                                                                       \
                : mix_layer_add_weight(layer, "bias", .shape = MIX_SHAPE(filters),                           \
                                       .initializer_object = (o)->bias_initializer_object,                   \
                                       .regularizer_object = (o)->bias_regularizer,                          \
                                       .constraint_object = (o)->bias_constraint))

/* The kinds NAME1d, ... of a family: their checks and builds differ by the number of axes alone. */
#define MIX_CONV_KIND(family, suffix, axes, title, type, config, ...)                                        \
  static bool check_##axes(void *options, const mix_layer_kind *kind) {                                      \
    return family##_check(options, kind->call, axes);                                                        \
  }                                                                                                          \
  static mix_status build_##axes(mix_layer *layer, int count, const mix_shape *input_shapes) {               \
    return family##_build(layer, axes, count, input_shapes);                                                 \
  }                                                                                                          \
  MIX_LAYER_KIND_ONLY(suffix, type, .check = check_##axes,                                                   \
                      MIX_LAYER_CLASS(.name = title, .instance_size = sizeof(family), .build = build_##axes, \
                                      .call = family##_call, .get_config = config),                          \
                      __VA_ARGS__)
