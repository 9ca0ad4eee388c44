/* Input: the symbolic tensor that a functional model starts from, and its InputLayer. */
#include "base/alloc.h"
#include "base/error.h"
#include "nn/config.h"
#include "nn/fields.h"
#include "nn/layer/layer.h"
#include "tensor/shape.h"
#include <string.h>

static mix_list *input_call(mix_layer *layer, const mix_call_args *args) {
  return mix_list_of(mix_call_input(args, 0));
}

static mix_status input_config(mix_layer *layer, mix_config *config) {
  const mix_input_layer_data *data = mix_layer_data(layer);
  json_t *shape = mix_json_whole(mix_shape_json(data->batch_shape, false));
  /* An InputLayer has a dtype instead of a policy, and no `trainable`. */
  json_object_clear(config->object);
  const char *key = layer->semantics->input_batch_input_shape ? "batch_input_shape" : "batch_shape";
  if (!mix_json_set(config->object, key, shape)) return mix_error();
  mix_config_text(config, "dtype", mix_dtype_name(data->dtype));
  mix_config_boolean(config, "sparse", false);
  mix_config_boolean(config, "ragged", false);
  mix_config_text(config, "name", layer->name);
  return mix_config_boolean(config, "optional", false);
}

static const mix_layer_class input_layer_class = {.size = sizeof(mix_layer_class),
                                                  .name = "InputLayer",
                                                  .instance_size = sizeof(mix_input_layer_data),
                                                  .call = input_call,
                                                  .get_config = input_config,
                                                  .supports_masking = true,
                                                  .no_autocast = true};

mix_input_options mix_input_defaults(void) { return (mix_input_options){.size = sizeof(mix_input_options)}; }

static const char *input_name(const mix_input_options *o, const mix_semantics *semantics) {
  if (o->name && o->name[0]) return o->name;
  return semantics->input_layer_name ? mix_unique_name(semantics->input_layer_name, false)
                                     : mix_unique_name("input", true);
}

/* Records the input layer as the layer that made the tensor. */
static bool record_input(mix_tensor *tensor, mix_layer *layer) {
  mix_layer_call *call = mix_object_new(sizeof *call, &mix_layer_call_class);
  if (!call) return false;
  call->layer = mix_retain(layer);
  const bool good = mix_layer_call_add_results(call, mix_list_of(tensor));
  mix_release(call);
  return good;
}

mix_tensor *mix_input_with(const mix_input_options *options) {
  MIX_OPTIONS(mix_input_options, o, options, "input");
  const mix_semantics *semantics = mix_semantics_or_current(o.semantics);
  mix_dtype dtype = o.dtype ? mix_dtype_from_name(o.dtype) : mix_floatx();
  if (!mix_dtype_size(dtype)) return mix_fail_value("input: no tensor has dtype '%.60s'", o.dtype);
  if (o.shape.rank < 0 || o.shape.rank >= MIX_MAX_RANK)
    return mix_fail_value("input: the shape has rank %d; expected at most %d", o.shape.rank,
                          MIX_MAX_RANK - 1);
  for (int i = 0; i < o.shape.rank; i++)
    if (o.shape.dims[i] < MIX_UNKNOWN)
      return mix_fail_value("input: dimension %d is %lld; expected a size, or MIX_UNKNOWN", i,
                            (long long)o.shape.dims[i]);
  if (o.batch_size < 0)
    return mix_fail_value("input: batch_size is %lld; expected a size, or 0 (unknown)",
                          (long long)o.batch_size);
  mix_shape shape = {.rank = o.shape.rank + 1, .dims = {o.batch_size > 0 ? o.batch_size : MIX_UNKNOWN}};
  memcpy(shape.dims + 1, o.shape.dims, (size_t)o.shape.rank * sizeof *shape.dims);
  mix_shape example = shape;
  for (int i = 0; i < example.rank; i++)
    if (example.dims[i] == MIX_UNKNOWN) example.dims[i] = 1;
  if (mix_shape_checked_size(example) < 0)
    return mix_fail_value("input: the shape has more elements than a tensor can have");
  const char *name = input_name(&o, semantics);
  /* The policy by hand: the name of a layer's dtype may be that of a quantization, "int8". */
  mix_layer_common common = {.name = name,
                             .policy = mix_policy_new(mix_dtype_name(dtype), .semantics = semantics),
                             .semantics = semantics};
  if (!common.policy) return NULL;
  mix_layer *layer = mix_layer_make(&input_layer_class, &common, NULL, "input");
  if (!layer) return NULL;
  *(mix_input_layer_data *)layer->data = (mix_input_layer_data){shape, dtype};
  layer->built = layer->is_input = true;
  mix_node *node = mix_node_placeholder(dtype, shape, true);
  mix_tensor *tensor = node ? mix_tensor_of(node, 0) : NULL;
  bool good = tensor && record_input(tensor, layer);
  mix_release(node);
  mix_release(layer);
  return good ? tensor : NULL;
}
