/* AlphaDropout: dropped elements become SELU's minimum, and an affine map restores mean and variance
 * (Klambauer et al.: Self-normalizing neural networks; arXiv:1706.02515). */
#include "base/error.h"
#include "nn/layers/builtin.h"
#include "tensor/shape.h"
#include <math.h>
#include <mixtape/random.h>

typedef struct alpha_dropout {
  double rate;
  mix_shape noise_shape;
  uint64_t seed;
  mix_generator *generator;
} alpha_dropout;

static mix_list *alpha_dropout_call(mix_layer *layer, const mix_call_args *args) {
  const alpha_dropout *d = mix_layer_data(layer);
  const double lowest = -1.7580993408473766; /* SELU: -scale * alpha */
  mix_tensor *x = mix_call_input(args, 0);
  mix_shape noise_shape;
  if (!mix_noise_shape(layer, d->noise_shape, mix_tensor_shape(x), &noise_shape)) return NULL;
  if (!args->training || args->symbolic || d->rate == 0) return mix_list_of(x);
  double a = 1 / sqrt((1 - d->rate) * (1 + d->rate * lowest * lowest)), b = -a * lowest * d->rate;
  mix_tensor *uniform = mix_random_uniform(d->generator, noise_shape, mix_tensor_dtype(x));
  mix_tensor *keep = mix_greater_equal(uniform, mix_scalar_like(x, d->rate));
  mix_tensor *kept = mix_select(keep, x, mix_scalar_like(x, lowest));
  return mix_one_result(mix_add(mix_multiply(kept, mix_scalar_like(x, a)), mix_scalar_like(x, b)));
}

static mix_status alpha_dropout_config(mix_layer *layer, mix_config *config) {
  const alpha_dropout *d = mix_layer_data(layer);
  mix_config_number(config, "rate", d->rate);
  bool good = mix_json_set_seed(config->object, d->seed) &&
              mix_json_set(config->object, "noise_shape",
                           d->noise_shape.rank ? mix_shape_to_json(d->noise_shape) : json_null());
  return good ? MIX_OK : mix_error();
}

static const mix_layer_class class = {.size = sizeof(mix_layer_class),
                                      .name = "AlphaDropout",
                                      .instance_size = sizeof(alpha_dropout),
                                      .call = alpha_dropout_call,
                                      .output_shape = mix_layer_same_shape,
                                      .get_config = alpha_dropout_config,
                                      .supports_masking = true};

mix_alpha_dropout_options mix_alpha_dropout_defaults(void) {
  return (mix_alpha_dropout_options){.size = sizeof(mix_alpha_dropout_options)};
}

mix_layer *mix_alpha_dropout_with(const mix_alpha_dropout_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_alpha_dropout_options, o, options, "alpha_dropout");
  if (!mix_shape_option(o.noise_shape, "alpha_dropout", "noise_shape")) return NULL;
  if (!(o.rate >= 0 && o.rate < 1))
    return mix_fail(MIX_VALUE_ERROR, "alpha_dropout: rate is %g; expected a number in [0, 1)", o.rate);
  mix_layer *layer = mix_layer_make(&class, MIX_LAYER_COMMON(o), "alpha_dropout");
  if (!layer) return NULL;
  *(alpha_dropout *)layer->data =
      (alpha_dropout){o.rate, o.noise_shape, o.seed, mix_layer_generator(layer, o.seed)};
  return mix_layer_made(layer);
}

mix_layer *mix_alpha_dropout_from(const json_t *config, const mix_semantics *semantics) {
  mix_common_config c = mix_common_config_of(config, semantics);
  return mix_alpha_dropout(.rate = mix_json_number_or(config, "rate", 0), MIX_COMMON_CONFIG(c),
                           .noise_shape = mix_json_shape(json_object_get(config, "noise_shape")),
                           .seed = (uint64_t)mix_json_integer_or(config, "seed", 0));
}
