/* GaussianDropout: multiplies by normal noise of mean 1 in training (Srivastava et al.: Dropout; JMLR 15,
 * 2014, section 10). */
#include "base/error.h"
#include "nn/layers/builtin.h"
#include <math.h>
#include <mixtape/random.h>

typedef struct gaussian_dropout {
  double rate;
  uint64_t seed;
  mix_generator *generator;
} gaussian_dropout;

static mix_list *gaussian_dropout_call(mix_layer *layer, const mix_call_args *args) {
  const gaussian_dropout *g = mix_layer_data(layer);
  mix_tensor *x = mix_call_input(args, 0);
  if (!args->training || args->symbolic || g->rate == 0) return mix_list_of(x);
  mix_tensor *noise = mix_random_normal(g->generator, mix_tensor_shape(x), mix_tensor_dtype(x));
  mix_tensor *factor =
      mix_add(mix_multiply(noise, mix_scalar_like(x, sqrt(g->rate / (1 - g->rate)))), mix_scalar_like(x, 1));
  return mix_one_result(mix_multiply(x, factor));
}

static mix_status gaussian_dropout_config(mix_layer *layer, mix_config *config) {
  const gaussian_dropout *g = mix_layer_data(layer);
  mix_config_number(config, "rate", g->rate);
  return mix_json_set_seed(config->object, g->seed) ? MIX_OK : mix_error();
}

static const mix_layer_class class = {.size = sizeof(mix_layer_class),
                                      .name = "GaussianDropout",
                                      .instance_size = sizeof(gaussian_dropout),
                                      .call = gaussian_dropout_call,
                                      .output_shape = mix_layer_same_shape,
                                      .get_config = gaussian_dropout_config,
                                      .supports_masking = true};

mix_gaussian_dropout_options mix_gaussian_dropout_defaults(void) {
  return (mix_gaussian_dropout_options){.size = sizeof(mix_gaussian_dropout_options)};
}

mix_layer *mix_gaussian_dropout_with(const mix_gaussian_dropout_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_gaussian_dropout_options, o, options, "gaussian_dropout");
  if (!(o.rate >= 0 && o.rate < 1))
    return mix_fail(MIX_VALUE_ERROR, "gaussian_dropout: rate is %g; expected a number in [0, 1)", o.rate);
  mix_layer *layer = mix_layer_make(&class, MIX_LAYER_COMMON(o), "gaussian_dropout");
  if (!layer) return NULL;
  *(gaussian_dropout *)layer->data = (gaussian_dropout){o.rate, o.seed, mix_layer_generator(layer, o.seed)};
  return mix_layer_made(layer);
}

mix_layer *mix_gaussian_dropout_from(const json_t *config, const mix_semantics *semantics) {
  mix_common_config c = mix_common_config_of(config, semantics);
  return mix_gaussian_dropout(.rate = mix_json_number_or(config, "rate", 0), MIX_COMMON_CONFIG(c),
                              .seed = (uint64_t)mix_json_integer_or(config, "seed", 0));
}
