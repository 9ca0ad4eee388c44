/* GaussianNoise: adds normal noise in training, drawn in the compute dtype. */
#include "nn/layer/decoding.h"
#include "nn/layers/builtin.h"

static mix_list *gaussian_noise_call(mix_layer *layer, const mix_call_args *args) {
  const mix_gaussian_noise_options *g = mix_layer_data(layer);
  mix_tensor *x = mix_call_input(args, 0);
  if (!args->training || args->symbolic || g->stddev == 0) return mix_list_of(x);
  mix_tensor *noise = mix_random_normal(mix_generator_of(layer), mix_tensor_shape(x), mix_tensor_dtype(x));
  return mix_one_result(mix_add(x, mix_multiply(noise, mix_scalar_like(x, g->stddev))));
}

static const mix_field_row fields[] = {
    {MIX_FIELD(mix_gaussian_noise_options, stddev), &mix_field_number, .range = MIX_NOT_NEGATIVE},
    {MIX_FIELD(mix_gaussian_noise_options, seed), &mix_field_seed},
    {0}};
MIX_LAYER_KIND(gaussian_noise, mix_gaussian_noise_options, .fields = fields, .built_from_start = true,
               .call_training = MIX_FALSE, .seed = offsetof(mix_gaussian_noise_options, seed),
               .decodes = mix_decodes,
               MIX_LAYER_CLASS(.name = "GaussianNoise", .call = gaussian_noise_call,
                               .output_shape = mix_layer_same_shape, .supports_masking = true))
