/* Flatten: merges all axes except the batch into one. */
#include "base/error.h"
#include "nn/layers/builtin.h"
#include "nn/layer/layer.h"
#include <mixtape/ops.h>
#include <string.h>

typedef struct flatten {
  bool channels_first;
} flatten;

static mix_shape flatten_output_shape(mix_layer *layer, int count, const mix_shape *input_shapes) {
  (void)layer, (void)count;
  mix_shape in = input_shapes[0], out = {.rank = 2, .dims = {in.rank ? in.dims[0] : 1, 1}};
  for (int i = 1; i < in.rank; i++)
    out.dims[1] = in.dims[i] < 0 || out.dims[1] < 0 ? MIX_UNKNOWN : out.dims[1] * in.dims[i];
  return out;
}

static mix_list *flatten_call(mix_layer *layer, const mix_call_args *args) {
  mix_tensor *x = mix_call_input(args, 0);
  mix_shape in = mix_tensor_shape(x), out = flatten_output_shape(layer, 1, &in);
  if (!in.rank) return mix_fail(MIX_VALUE_ERROR, "%s: the input is a scalar; expected a batch", layer->name);
  if (out.dims[0] < 0 && out.dims[1] < 0)
    return mix_fail(
        MIX_VALUE_ERROR,
        "%s: the batch and another dimension of the input are unknown; give the input a full shape",
        layer->name);
  if (((const flatten *)mix_layer_data(layer))->channels_first && in.rank > 2) {
    mix_axes order = {.count = in.rank}; /* (batch, channels, ...) -> (batch, ..., channels) */
    for (int i = 2; i < in.rank; i++) order.axis[i - 1] = i;
    order.axis[in.rank - 1] = 1;
    x = mix_transpose(x, order);
  }
  mix_tensor *y = mix_reshape(x, out);
  return y ? mix_list_of(y) : NULL;
}

static mix_status flatten_config(mix_layer *layer, mix_config *config) {
  return mix_config_text(config, "data_format",
                         ((const flatten *)mix_layer_data(layer))->channels_first ? "channels_first"
                                                                                  : "channels_last");
}

const mix_layer_class mix_class_flatten = {.size = sizeof(mix_layer_class),
                                           .name = "Flatten",
                                           .instance_size = sizeof(flatten),
                                           .call = flatten_call,
                                           .compute_mask = mix_no_mask,
                                           .output_shape = flatten_output_shape,
                                           .get_config = flatten_config};

mix_flatten_options mix_flatten_defaults(void) {
  return (mix_flatten_options){.size = sizeof(mix_flatten_options)};
}

mix_layer *mix_flatten_with(const mix_flatten_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_flatten_options, o, options, "flatten");
  bool first = o.data_format && !strcmp(o.data_format, "channels_first");
  if (o.data_format && !first && strcmp(o.data_format, "channels_last"))
    return mix_fail(MIX_VALUE_ERROR,
                    "flatten: data_format '%.60s' is not known; expected channels_last or channels_first",
                    o.data_format);
  mix_layer *layer = mix_layer_make(&mix_class_flatten, MIX_LAYER_COMMON(o), "flatten");
  if (layer) ((flatten *)layer->data)->channels_first = first;
  return mix_scoped(layer);
}
