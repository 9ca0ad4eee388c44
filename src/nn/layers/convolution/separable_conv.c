/* SeparableConv1D, SeparableConv2D: a depthwise convolution, then one of a single cell. */
#include "base/error.h"
#include "nn/layers/convolution/convolution.h"
#include "nn/weights/weights.h"

typedef struct separable_conv {
  mix_separable_conv_layer_options options;
  mix_variable *depthwise, *pointwise, *bias; /* owned by the layer's list */
} separable_conv;

static bool separable_conv_check(mix_separable_conv_layer_options *o, const char *call, int axes) {
  return mix_check_positive(call, "depth_multiplier", o->depth_multiplier) &&
         mix_check_window(call, axes, MIX_WINDOW_OF(o, .causal = false));
}

static mix_status separable_conv_build(mix_layer *layer, int axes, int count, const mix_shape *input_shapes) {
  separable_conv *c = mix_layer_data(layer);
  const mix_separable_conv_layer_options *o = &c->options;
  const int64_t channels = mix_conv_channels(layer, axes, o->data_format, count, input_shapes);
  if (channels < 0) return mix_error();
  c->depthwise = mix_layer_add_weight(
      layer, "depthwise_kernel", .shape = mix_kernel_shape(o->kernel_size, channels, o->depth_multiplier),
      .initializer_object = o->depthwise_initializer_object, .regularizer_object = o->depthwise_regularizer,
      .constraint_object = o->depthwise_constraint);
  if (mix_failed()) return mix_error();
  const mix_shape cell = {.rank = axes, .dims = {1, 1}};
  c->pointwise = mix_layer_add_weight(
      layer, "pointwise_kernel", .shape = mix_kernel_shape(cell, channels * o->depth_multiplier, o->filters),
      .initializer_object = o->pointwise_initializer_object, .regularizer_object = o->pointwise_regularizer,
      .constraint_object = o->pointwise_constraint);
  c->bias = MIX_ADD_BIAS(layer, o, o->filters);
  return mix_error();
}

static mix_list *separable_conv_call(mix_layer *layer, const mix_call_args *args) {
  const separable_conv *c = mix_layer_data(layer);
  const mix_separable_conv_layer_options *o = &c->options;
  mix_tensor *x = mix_conv_input(layer, args, o->data_format);
  x = mix_depthwise_conv(x, mix_variable_value(c->depthwise), .strides = o->strides,
                         .dilation = o->dilation_rate, .padding = o->padding);
  return mix_conv_result(layer, mix_conv(x, mix_variable_value(c->pointwise)), c->bias, o->data_format,
                         o->activation);
}

/* Keras 2 also saves what the class inherits and does not use. */
static mix_status separable_conv_config(mix_layer *layer, mix_config *config) {
  if (!layer->semantics->config_conv_inherited) return MIX_OK;
  MIX_SCOPE {
    mix_initializer *initializer = mix_initializer_choose("glorot_uniform", NULL, layer->kind->call);
    if (initializer)
      mix_json_set(config->object, "kernel_initializer",
                   mix_initializer_to_json(initializer, layer->semantics));
    mix_json_set(config->object, "kernel_regularizer", json_null());
    mix_json_set(config->object, "kernel_constraint", json_null());
  }
  return mix_error();
}

#define TYPE mix_separable_conv_layer_options
static const mix_field_row fields[] = {{MIX_FIELD(TYPE, depth_multiplier), &mix_field_integer, .number = 1},
                                       {MIX_FIELD(TYPE, filters), &mix_field_integer, .range = MIX_POSITIVE},
                                       MIX_WINDOW_FIELDS(TYPE),
                                       {MIX_PER_AXIS_FIELD(TYPE, dilation_rate)},
                                       MIX_KERNEL_FIELDS(TYPE, depthwise),
                                       MIX_KERNEL_FIELDS(TYPE, pointwise),
                                       MIX_INHERITED_FIELD("groups", "1"),
                                       MIX_BIAS_FIELDS(TYPE),
                                       {0}};
MIX_CONV_KIND(separable_conv, separable_conv1d, 1, "SeparableConv1D", TYPE, separable_conv_config,
              .fields = fields)
MIX_CONV_KIND(separable_conv, separable_conv2d, 2, "SeparableConv2D", TYPE, separable_conv_config,
              .fields = fields)
mix_separable_conv_layer_options mix_separable_conv_layer_defaults(void) {
  return (TYPE){.size = sizeof(TYPE)};
}
