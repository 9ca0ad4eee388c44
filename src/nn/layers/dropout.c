/* Dropout with inverted scaling (Srivastava et al.: Dropout: a simple way to prevent neural networks from
 * overfitting; JMLR 15, 2014). */
#include "nn/layer/decoding.h"
#include "nn/layers/builtin.h"

static mix_list *dropout_call(mix_layer *layer, const mix_call_args *args) {
  const mix_dropout_options *d = mix_layer_data(layer);
  mix_tensor *x = mix_call_input(args, 0);
  mix_shape noise_shape;
  if (!mix_noise_shape(layer, d->noise_shape, mix_tensor_shape(x), &noise_shape)) return NULL;
  if (!args->training || args->symbolic) return mix_list_of(x);
  return mix_one_result(mix_dropped(x, d->rate, noise_shape, mix_generator_of(layer)));
}

/* One draw for all samples, or for so many. */
static bool mixes_samples(const mix_layer *layer) {
  const mix_shape noise = ((const mix_dropout_options *)layer->data)->noise_shape;
  return noise.rank && noise.dims[0] != MIX_UNKNOWN;
}

static const mix_field_row fields[] = {
    {MIX_FIELD(mix_dropout_options, rate), &mix_field_number, .range = MIX_UNIT_INTERVAL},
    {MIX_FIELD(mix_dropout_options, seed), &mix_field_seed},
    {MIX_FIELD(mix_dropout_options, noise_shape), &mix_field_shape, .optional = true},
    {0}};
MIX_LAYER_KIND(dropout, mix_dropout_options, .fields = fields, .built_from_start = true,
               .call_training = MIX_FALSE, .seed = offsetof(mix_dropout_options, seed),
               .mixes_samples = mixes_samples, .decodes = mix_decodes,
               MIX_LAYER_CLASS(.name = "Dropout", .call = dropout_call, .output_shape = mix_layer_same_shape,
                               .supports_masking = true))
