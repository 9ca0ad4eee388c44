/* DepthwiseConv1D, DepthwiseConv2D. */
#include "base/error.h"
#include "nn/layers/convolution/convolution.h"

typedef struct depthwise_conv {
  mix_depthwise_conv_layer_options options;
  mix_variable *kernel, *bias; /* owned by the layer's list */
} depthwise_conv;

static bool depthwise_conv_check(mix_depthwise_conv_layer_options *o, const char *call, int axes) {
  return mix_check_positive(call, "depth_multiplier", o->depth_multiplier) &&
         mix_check_window(call, axes, MIX_WINDOW_OF(o, .causal = false));
}

static mix_status depthwise_conv_build(mix_layer *layer, int axes, int count, const mix_shape *input_shapes) {
  depthwise_conv *c = mix_layer_data(layer);
  const mix_depthwise_conv_layer_options *o = &c->options;
  const int64_t channels = mix_conv_channels(layer, axes, o->data_format, count, input_shapes);
  if (channels < 0) return mix_error();
  c->kernel = mix_layer_add_weight(
      layer, layer->semantics->depthwise_kernel_named ? "depthwise_kernel" : "kernel",
      .shape = mix_kernel_shape(o->kernel_size, channels, o->depth_multiplier),
      .initializer_object = o->depthwise_initializer_object, .regularizer_object = o->depthwise_regularizer,
      .constraint_object = o->depthwise_constraint);
  if (!mix_failed()) c->bias = MIX_ADD_BIAS(layer, o, channels * o->depth_multiplier);
  return mix_error();
}

static mix_list *depthwise_conv_call(mix_layer *layer, const mix_call_args *args) {
  const depthwise_conv *c = mix_layer_data(layer);
  const mix_depthwise_conv_layer_options *o = &c->options;
  mix_tensor *x = mix_conv_input(layer, args, o->data_format);
  mix_tensor *y = mix_depthwise_conv(x, mix_variable_value(c->kernel), .strides = o->strides,
                                     .dilation = o->dilation_rate, .padding = o->padding);
  return mix_conv_result(layer, y, c->bias, o->data_format, o->activation);
}

#define TYPE mix_depthwise_conv_layer_options
static const mix_field_row fields[] = {{MIX_FIELD(TYPE, depth_multiplier), &mix_field_integer, .number = 1},
                                       MIX_WINDOW_FIELDS(TYPE),
                                       {MIX_PER_AXIS_FIELD(TYPE, dilation_rate)},
                                       MIX_INHERITED_FIELD("groups", "1"),
                                       MIX_KERNEL_FIELDS(TYPE, depthwise),
                                       MIX_BIAS_FIELDS(TYPE),
                                       {0}};
MIX_CONV_KIND(depthwise_conv, depthwise_conv1d, 1, "DepthwiseConv1D", TYPE, NULL, .fields = fields)
MIX_CONV_KIND(depthwise_conv, depthwise_conv2d, 2, "DepthwiseConv2D", TYPE, NULL, .fields = fields)
mix_depthwise_conv_layer_options mix_depthwise_conv_layer_defaults(void) {
  return (TYPE){.size = sizeof(TYPE)};
}
