/* AlphaDropout: dropped elements become SELU's minimum, and an affine map restores mean and variance
 * (Klambauer et al.: Self-normalizing neural networks; arXiv:1706.02515). */
#include "nn/layer/decoding.h"
#include "nn/layers/builtin.h"
#include <math.h>

static mix_list *alpha_dropout_call(mix_layer *layer, const mix_call_args *args) {
  const mix_alpha_dropout_options *d = mix_layer_data(layer);
  const double lowest = -1.7580993408473766; /* SELU: -scale * alpha */
  mix_tensor *x = mix_call_input(args, 0);
  mix_shape noise_shape;
  if (!mix_noise_shape(layer, d->noise_shape, mix_tensor_shape(x), &noise_shape)) return NULL;
  if (!args->training || args->symbolic || d->rate == 0) return mix_list_of(x);
  double a = 1 / sqrt((1 - d->rate) * (1 + d->rate * lowest * lowest)), b = -a * lowest * d->rate;
  mix_tensor *uniform = mix_random_uniform(mix_generator_of(layer), noise_shape, mix_tensor_dtype(x));
  mix_tensor *keep = mix_greater_equal(uniform, mix_scalar_like(x, d->rate));
  mix_tensor *kept = mix_select(keep, x, mix_scalar_like(x, lowest));
  return mix_one_result(mix_add(mix_multiply(kept, mix_scalar_like(x, a)), mix_scalar_like(x, b)));
}

/* One draw for all samples, or for so many. */
static bool mixes_samples(const mix_layer *layer) {
  const mix_shape noise = ((const mix_alpha_dropout_options *)layer->data)->noise_shape;
  return noise.rank && noise.dims[0] != MIX_UNKNOWN;
}

static const mix_field_row fields[] = {
    {MIX_FIELD(mix_alpha_dropout_options, rate), &mix_field_number, .range = MIX_BELOW_ONE},
    {MIX_FIELD(mix_alpha_dropout_options, seed), &mix_field_seed},
    {MIX_FIELD(mix_alpha_dropout_options, noise_shape), &mix_field_shape, .optional = true},
    {0}};
MIX_LAYER_KIND(alpha_dropout, mix_alpha_dropout_options, .fields = fields, .built_from_start = true,
               .call_training = MIX_FALSE, .seed = offsetof(mix_alpha_dropout_options, seed),
               .mixes_samples = mixes_samples, .decodes = mix_decodes,
               MIX_LAYER_CLASS(.name = "AlphaDropout", .call = alpha_dropout_call,
                               .output_shape = mix_layer_same_shape, .supports_masking = true))
