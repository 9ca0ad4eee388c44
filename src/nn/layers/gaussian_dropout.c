/* GaussianDropout: multiplies by normal noise of mean 1 in training (Srivastava et al.: Dropout; JMLR 15,
 * 2014, section 10). */
#include "nn/layer/decoding.h"
#include "nn/layers/builtin.h"
#include <math.h>

static mix_list *gaussian_dropout_call(mix_layer *layer, const mix_call_args *args) {
  const mix_gaussian_dropout_options *g = mix_layer_data(layer);
  mix_tensor *x = mix_call_input(args, 0);
  if (!args->training || args->symbolic || g->rate == 0) return mix_list_of(x);
  mix_tensor *noise = mix_random_normal(mix_generator_of(layer), mix_tensor_shape(x), mix_tensor_dtype(x));
  mix_tensor *factor =
      mix_add(mix_multiply(noise, mix_scalar_like(x, sqrt(g->rate / (1 - g->rate)))), mix_scalar_like(x, 1));
  return mix_one_result(mix_multiply(x, factor));
}

static const mix_field_row fields[] = {
    {MIX_FIELD(mix_gaussian_dropout_options, rate), &mix_field_number, .range = MIX_BELOW_ONE},
    {MIX_FIELD(mix_gaussian_dropout_options, seed), &mix_field_seed},
    {0}};
MIX_LAYER_KIND(gaussian_dropout, mix_gaussian_dropout_options, .fields = fields, .built_from_start = true,
               .call_training = MIX_FALSE, .seed = offsetof(mix_gaussian_dropout_options, seed),
               .decodes = mix_decodes,
               MIX_LAYER_CLASS(.name = "GaussianDropout", .call = gaussian_dropout_call,
                               .output_shape = mix_layer_same_shape, .supports_masking = true))
