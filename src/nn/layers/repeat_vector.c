/* RepeatVector: (batch, features) -> (batch, n, features). */
#include "base/error.h"
#include "nn/layers/builtin.h"

typedef struct repeat_vector {
  int64_t n;
} repeat_vector;

static mix_shape repeat_vector_output_shape(mix_layer *layer, int count, const mix_shape *input_shapes) {
  (void)count;
  mix_shape in = input_shapes[0];
  return (mix_shape){.rank = 3,
                     .dims = {in.dims[0], ((const repeat_vector *)mix_layer_data(layer))->n, in.dims[1]}};
}

static mix_list *repeat_vector_call(mix_layer *layer, const mix_call_args *args) {
  mix_tensor *x = mix_call_input(args, 0);
  mix_shape in = mix_tensor_shape(x);
  return mix_one_result(mix_broadcast_to(mix_layer_reshape(x, MIX_SHAPE(in.dims[0], 1, in.dims[1])),
                                         repeat_vector_output_shape(layer, 1, &in)));
}

static mix_status repeat_vector_config(mix_layer *layer, mix_config *config) {
  return mix_config_integer(config, "n", ((const repeat_vector *)mix_layer_data(layer))->n);
}

static const mix_layer_class class = {.size = sizeof(mix_layer_class),
                                      .name = "RepeatVector",
                                      .instance_size = sizeof(repeat_vector),
                                      .call = repeat_vector_call,
                                      .output_shape = repeat_vector_output_shape,
                                      .get_config = repeat_vector_config};

mix_repeat_vector_options mix_repeat_vector_defaults(void) {
  return (mix_repeat_vector_options){.size = sizeof(mix_repeat_vector_options)};
}

mix_layer *mix_repeat_vector_with(const mix_repeat_vector_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_repeat_vector_options, o, options, "repeat_vector");
  if (o.n <= 0)
    return mix_fail(MIX_VALUE_ERROR, "repeat_vector: n is %lld; expected a positive number", (long long)o.n);
  mix_layer *layer = mix_layer_make(&class, MIX_LAYER_COMMON(o), "repeat_vector");
  if (!layer) return NULL;
  ((repeat_vector *)layer->data)->n = o.n;
  mix_input_spec spec = {.size = sizeof spec, .rank = 2};
  mix_layer_set_input_spec(layer, &spec);
  return mix_scoped(layer);
}

mix_layer *mix_repeat_vector_from(const json_t *config, const mix_semantics *semantics) {
  mix_common_config c = mix_common_config_of(config, semantics);
  return mix_repeat_vector(.n = mix_json_integer_or(config, "n", 0), MIX_COMMON_CONFIG(c));
}
