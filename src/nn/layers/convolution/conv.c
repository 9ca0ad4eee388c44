/* Conv1D, Conv2D, Conv3D. */
#include "base/error.h"
#include "nn/layers/convolution/convolution.h"
#include "nn/layers/lora.h"

typedef struct conv {
  mix_conv_layer_options options;
  mix_variable *kernel, *bias; /* owned by the layer's list */
} conv;

static bool conv_check(mix_conv_layer_options *o, const char *call, int axes) {
  if (!mix_check_positive(call, "groups", o->groups) ||
      !mix_check_window(call, axes, MIX_WINDOW_OF(o, .causal = axes == 1)))
    return false;
  return o->filters % o->groups == 0 || (mix_fail_value("%s: %lld groups do not divide %lld filters", call,
                                                        (long long)o->groups, (long long)o->filters),
                                         false);
}

static mix_status conv_build(mix_layer *layer, int axes, int count, const mix_shape *input_shapes) {
  conv *c = mix_layer_data(layer);
  const mix_conv_layer_options *o = &c->options;
  const int64_t channels = mix_conv_channels(layer, axes, o->data_format, count, input_shapes);
  if (channels < 0) return mix_error();
  if (channels % o->groups)
    return mix_fail_status(MIX_VALUE_ERROR, "%s: %lld groups do not divide the channels of the input %s",
                           layer->name, (long long)o->groups, MIX_SHAPE_TEXT(input_shapes[0]));
  c->kernel = mix_layer_add_weight(
      layer, "kernel", .shape = mix_kernel_shape(o->kernel_size, channels / o->groups, o->filters),
      .initializer_object = o->kernel_initializer_object, .regularizer_object = o->kernel_regularizer,
      .constraint_object = o->kernel_constraint);
  c->bias = MIX_ADD_BIAS(layer, o, o->filters);
  return mix_lora_build(layer);
}

static mix_tensor *convolve(const mix_conv_layer_options *o, mix_tensor *x, mix_tensor *kernel) {
  return mix_conv(x, kernel, .strides = o->strides, .dilation = o->dilation_rate, .padding = o->padding,
                  .groups = o->groups);
}

static mix_list *conv_call(mix_layer *layer, const mix_call_args *args) {
  const conv *c = mix_layer_data(layer);
  const mix_conv_layer_options *o = &c->options;
  mix_tensor *x = mix_conv_input(layer, args, o->data_format);
  const bool apart = o->groups == 1 && mix_lora_is_apart(layer); /* all groups share a */
  mix_tensor *kernel = apart ? mix_variable_value(c->kernel) : mix_lora_kernel(layer, c->kernel);
  mix_tensor *y = convolve(o, x, kernel);
  if (apart) y = mix_lora_add(layer, y, convolve(o, x, mix_lora_a(layer, layer->compute)));
  return mix_conv_result(layer, y, c->bias, o->data_format, o->activation);
}

#define TYPE mix_conv_layer_options
static const mix_field_row fields[] = {{MIX_FIELD(TYPE, filters), &mix_field_integer, .range = MIX_POSITIVE},
                                       MIX_WINDOW_FIELDS(TYPE),
                                       {MIX_PER_AXIS_FIELD(TYPE, dilation_rate)},
                                       {MIX_FIELD(TYPE, groups), &mix_field_integer, .number = 1},
                                       MIX_KERNEL_FIELDS(TYPE, kernel),
                                       MIX_BIAS_FIELDS(TYPE),
                                       MIX_LORA_FIELDS(TYPE),
                                       {0}};
MIX_CONV_KIND(conv, conv1d, 1, "Conv1D", TYPE, NULL, .fields = fields, MIX_LORA_OF(TYPE, kernel))
MIX_CONV_KIND(conv, conv2d, 2, "Conv2D", TYPE, NULL, .fields = fields, MIX_LORA_OF(TYPE, kernel))
MIX_CONV_KIND(conv, conv3d, 3, "Conv3D", TYPE, NULL, .fields = fields, MIX_LORA_OF(TYPE, kernel))
mix_conv_layer_options mix_conv_layer_defaults(void) { return (TYPE){.size = sizeof(TYPE)}; }
