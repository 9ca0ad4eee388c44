/* GaussianNoise: adds normal noise in training, drawn in the compute dtype. */
#include "base/error.h"
#include "nn/layers/builtin.h"
#include <mixtape/random.h>

typedef struct gaussian_noise {
  double stddev;
  uint64_t seed;
  mix_generator *generator;
} gaussian_noise;

static mix_list *gaussian_noise_call(mix_layer *layer, const mix_call_args *args) {
  const gaussian_noise *g = mix_layer_data(layer);
  mix_tensor *x = mix_call_input(args, 0);
  if (!args->training || args->symbolic || g->stddev == 0) return mix_list_of(x);
  mix_tensor *noise = mix_random_normal(g->generator, mix_tensor_shape(x), mix_tensor_dtype(x));
  return mix_one_result(mix_add(x, mix_multiply(noise, mix_scalar_like(x, g->stddev))));
}

static mix_status gaussian_noise_config(mix_layer *layer, mix_config *config) {
  const gaussian_noise *g = mix_layer_data(layer);
  mix_config_number(config, "stddev", g->stddev);
  return mix_json_set_seed(config->object, g->seed) ? MIX_OK : mix_error();
}

static const mix_layer_class class = {.size = sizeof(mix_layer_class),
                                      .name = "GaussianNoise",
                                      .instance_size = sizeof(gaussian_noise),
                                      .call = gaussian_noise_call,
                                      .output_shape = mix_layer_same_shape,
                                      .get_config = gaussian_noise_config,
                                      .supports_masking = true};

mix_gaussian_noise_options mix_gaussian_noise_defaults(void) {
  return (mix_gaussian_noise_options){.size = sizeof(mix_gaussian_noise_options)};
}

mix_layer *mix_gaussian_noise_with(const mix_gaussian_noise_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_gaussian_noise_options, o, options, "gaussian_noise");
  if (!(o.stddev >= 0))
    return mix_fail(MIX_VALUE_ERROR, "gaussian_noise: stddev is %g; expected a number that is not negative",
                    o.stddev);
  mix_layer *layer = mix_layer_make(&class, MIX_LAYER_COMMON(o), "gaussian_noise");
  if (!layer) return NULL;
  *(gaussian_noise *)layer->data = (gaussian_noise){o.stddev, o.seed, mix_layer_generator(layer, o.seed)};
  return mix_layer_made(layer);
}

mix_layer *mix_gaussian_noise_from(const json_t *config, const mix_semantics *semantics) {
  mix_common_config c = mix_common_config_of(config, semantics);
  return mix_gaussian_noise(.stddev = mix_json_number_or(config, "stddev", 0), MIX_COMMON_CONFIG(c),
                            .seed = (uint64_t)mix_json_integer_or(config, "seed", 0));
}
