/* Flatten: merges all axes except the batch into one. */
#include "base/error.h"
#include "nn/layers/builtin.h"
#include <string.h>

static mix_shape flatten_output_shape(mix_layer *layer, int count, const mix_shape *input_shapes) {
  mix_shape in = input_shapes[0], out = {.rank = 2, .dims = {in.rank ? in.dims[0] : 1, 1}};
  for (int i = 1; i < in.rank; i++)
    out.dims[1] = in.dims[i] < 0 || out.dims[1] < 0 ? MIX_UNKNOWN : out.dims[1] * in.dims[i];
  return out;
}

static mix_list *flatten_call(mix_layer *layer, const mix_call_args *args) {
  mix_tensor *x = mix_call_input(args, 0);
  mix_shape in = mix_tensor_shape(x), out = flatten_output_shape(layer, 1, &in);
  if (!in.rank) return mix_fail_value("%s: the input is a scalar; expected a batch", layer->name);
  if (out.dims[0] < 0 && out.dims[1] < 0)
    return mix_fail_value(
        "%s: the batch and another dimension of the input are unknown; give the input a full shape",
        layer->name);
  const mix_flatten_options *o = mix_layer_data(layer);
  if (in.rank > 2 && !strcmp(o->data_format, "channels_first")) {
    mix_axes order = {.count = in.rank}; /* (batch, channels, ...) -> (batch, ..., channels) */
    for (int i = 2; i < in.rank; i++) order.axis[i - 1] = i;
    order.axis[in.rank - 1] = 1;
    x = mix_transpose(x, order);
  }
  mix_tensor *y = mix_reshape(x, out);
  return y ? mix_list_of(y) : NULL;
}

static const mix_field_row fields[] = {{MIX_FIELD(mix_flatten_options, data_format), &mix_field_text,
                                        .text = "channels_last", .choices = "channels_last|channels_first"},
                                       {0}};
MIX_LAYER_KIND(flatten, mix_flatten_options, .fields = fields,
               MIX_LAYER_CLASS(.name = "Flatten", .call = flatten_call, .compute_mask = mix_no_mask,
                               .output_shape = flatten_output_shape))
