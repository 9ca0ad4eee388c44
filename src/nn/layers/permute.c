/* Permute: reorders all axes except the batch. */
#include "base/error.h"
#include "nn/layers/builtin.h"

typedef struct permute {
  mix_axes dims; /* counted from 1 */
} permute;

static mix_shape permute_output_shape(mix_layer *layer, int count, const mix_shape *input_shapes) {
  (void)count;
  const permute *p = mix_layer_data(layer);
  mix_shape out = input_shapes[0];
  for (int i = 1; i < out.rank && i <= p->dims.count; i++)
    if (p->dims.axis[i - 1] < out.rank) out.dims[i] = input_shapes[0].dims[p->dims.axis[i - 1]];
  return out;
}

static mix_list *permute_call(mix_layer *layer, const mix_call_args *args) {
  const permute *p = mix_layer_data(layer);
  mix_axes order = {.count = p->dims.count + 1};
  for (int i = 0; i < p->dims.count; i++) order.axis[i + 1] = p->dims.axis[i];
  return mix_one_result(mix_transpose(mix_call_input(args, 0), order));
}

static mix_status permute_config(mix_layer *layer, mix_config *config) {
  const permute *p = mix_layer_data(layer);
  json_t *list = json_array();
  for (int i = 0; i < p->dims.count; i++) json_array_append_new(list, json_integer(p->dims.axis[i]));
  mix_json_set(config->object, "dims", list);
  return mix_error();
}

static const mix_layer_class class = {.size = sizeof(mix_layer_class),
                                      .name = "Permute",
                                      .instance_size = sizeof(permute),
                                      .call = permute_call,
                                      .compute_mask = mix_no_mask,
                                      .output_shape = permute_output_shape,
                                      .get_config = permute_config};

mix_permute_options mix_permute_defaults(void) {
  return (mix_permute_options){.size = sizeof(mix_permute_options)};
}

mix_layer *mix_permute_with(const mix_permute_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_permute_options, o, options, "permute");
  bool seen[MIX_MAX_RANK] = {false}, good = o.dims.count > 0 && o.dims.count < MIX_MAX_RANK;
  for (int i = 0; good && i < o.dims.count; i++) {
    int axis = o.dims.axis[i];
    good = axis >= 1 && axis <= o.dims.count && !seen[axis];
    if (good) seen[axis] = true;
  }
  if (!good)
    return mix_fail(MIX_VALUE_ERROR,
                    "permute: dims must be the numbers from 1 to the number of axes, in any order");
  mix_layer *layer = mix_layer_make(&class, MIX_LAYER_COMMON(o), "permute");
  if (!layer) return NULL;
  ((permute *)layer->data)->dims = o.dims;
  mix_input_spec spec = {.size = sizeof spec, .rank = o.dims.count + 1};
  mix_layer_set_input_spec(layer, &spec);
  return mix_scoped(layer);
}

mix_layer *mix_permute_from(const json_t *config, const mix_semantics *semantics) {
  mix_common_config c = mix_common_config_of(config, semantics);
  return mix_permute(.dims = mix_json_axes(json_object_get(config, "dims")), MIX_COMMON_CONFIG(c));
}
