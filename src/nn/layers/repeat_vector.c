/* RepeatVector: (batch, features) -> (batch, n, features). */
#include "nn/layers/builtin.h"

static mix_shape repeat_vector_output_shape(mix_layer *layer, int count, const mix_shape *input_shapes) {
  const mix_repeat_vector_options *o = mix_layer_data(layer);
  mix_shape in = input_shapes[0];
  return MIX_SHAPE(in.dims[0], o->n, in.dims[1]);
}

static mix_list *repeat_vector_call(mix_layer *layer, const mix_call_args *args) {
  mix_tensor *x = mix_call_input(args, 0);
  mix_shape in = mix_tensor_shape(x);
  return mix_one_result(mix_broadcast_to(mix_layer_reshape(x, MIX_SHAPE(in.dims[0], 1, in.dims[1])),
                                         repeat_vector_output_shape(layer, 1, &in)));
}

static bool repeat_vector_ready(mix_layer *layer) {
  mix_input_spec spec = {.size = sizeof spec, .rank = 2};
  return mix_layer_set_input_spec(layer, &spec) == MIX_OK;
}

static const mix_field_row fields[] = {
    {MIX_FIELD(mix_repeat_vector_options, n), &mix_field_integer, .range = MIX_POSITIVE}, {0}};
MIX_LAYER_KIND(repeat_vector, mix_repeat_vector_options, .fields = fields, .ready = repeat_vector_ready,
               MIX_LAYER_CLASS(.name = "RepeatVector", .call = repeat_vector_call,
                               .output_shape = repeat_vector_output_shape))
