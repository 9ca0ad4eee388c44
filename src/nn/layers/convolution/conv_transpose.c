/* Conv1DTranspose, Conv2DTranspose, Conv3DTranspose. */
#include "base/error.h"
#include "nn/layers/convolution/convolution.h"

typedef struct conv_transpose {
  mix_conv_transpose_layer_options options;
  mix_variable *kernel, *bias; /* owned by the layer's list */
} conv_transpose;

static bool conv_transpose_check(mix_conv_transpose_layer_options *o, const char *call, int axes) {
  return mix_check_window(call, axes, MIX_WINDOW_OF(o, .output_padding = &o->output_padding));
}

static mix_status conv_transpose_build(mix_layer *layer, int axes, int count, const mix_shape *input_shapes) {
  conv_transpose *c = mix_layer_data(layer);
  const mix_conv_transpose_layer_options *o = &c->options;
  const int64_t channels = mix_conv_channels(layer, axes, o->data_format, count, input_shapes);
  if (channels < 0) return mix_error();
  c->kernel = mix_layer_add_weight(
      layer, "kernel", .shape = mix_kernel_shape(o->kernel_size, o->filters, channels),
      .initializer_object = o->kernel_initializer_object, .regularizer_object = o->kernel_regularizer,
      .constraint_object = o->kernel_constraint);
  c->bias = MIX_ADD_BIAS(layer, o, o->filters);
  return mix_error();
}

static mix_list *conv_transpose_call(mix_layer *layer, const mix_call_args *args) {
  const conv_transpose *c = mix_layer_data(layer);
  const mix_conv_transpose_layer_options *o = &c->options;
  mix_tensor *x = mix_conv_input(layer, args, o->data_format);
  mix_tensor *y = mix_conv_transpose(x, mix_variable_value(c->kernel), .strides = o->strides,
                                     .dilation = o->dilation_rate, .padding = o->padding,
                                     .output_padding = o->output_padding);
  return mix_conv_result(layer, y, c->bias, o->data_format, o->activation);
}

#define TYPE mix_conv_transpose_layer_options
/* Of Conv3DTranspose, Keras 2 leaves the dilation rate out of configs. */
#define FIELDS(rule)                                                                                         \
  {                                                                                                          \
    {MIX_FIELD(TYPE, filters), &mix_field_integer, .range = MIX_POSITIVE}, MIX_WINDOW_FIELDS(TYPE),          \
        {MIX_PER_AXIS_FIELD(TYPE, output_padding), .optional = true},                                        \
        {MIX_PER_AXIS_FIELD(TYPE, dilation_rate), .text = "[1, 1, 1]", .except = rule},                      \
        MIX_INHERITED_FIELD("groups", "1"), MIX_KERNEL_FIELDS(TYPE, kernel), MIX_BIAS_FIELDS(TYPE), {        \
      0                                                                                                      \
    }                                                                                                        \
  }
static const mix_field_row fields[] = FIELDS(0), fields_3d[] = FIELDS(MIX_RULE(config_conv_inherited));
MIX_CONV_KIND(conv_transpose, conv1d_transpose, 1, "Conv1DTranspose", TYPE, NULL, .fields = fields)
MIX_CONV_KIND(conv_transpose, conv2d_transpose, 2, "Conv2DTranspose", TYPE, NULL, .fields = fields)
MIX_CONV_KIND(conv_transpose, conv3d_transpose, 3, "Conv3DTranspose", TYPE, NULL, .fields = fields_3d)
mix_conv_transpose_layer_options mix_conv_transpose_layer_defaults(void) {
  return (TYPE){.size = sizeof(TYPE)};
}
