/* Dropout with inverted scaling (Srivastava et al.: Dropout: a simple way to prevent neural networks from
 * overfitting; JMLR 15, 2014). */
#include "base/error.h"
#include "nn/layers/builtin.h"
#include "tensor/shape.h"

typedef struct dropout {
  double rate;
  mix_shape noise_shape;
  uint64_t seed; /* as given; 0 means none */
  mix_generator *generator;
} dropout;

static mix_list *dropout_call(mix_layer *layer, const mix_call_args *args) {
  const dropout *d = mix_layer_data(layer);
  mix_tensor *x = mix_call_input(args, 0);
  mix_shape noise_shape;
  if (!mix_noise_shape(layer, d->noise_shape, mix_tensor_shape(x), &noise_shape)) return NULL;
  if (!args->training || args->symbolic) return mix_list_of(x);
  return mix_one_result(mix_dropped(x, d->rate, noise_shape, d->generator));
}

static mix_status dropout_config(mix_layer *layer, mix_config *config) {
  const dropout *d = mix_layer_data(layer);
  mix_config_number(config, "rate", d->rate);
  if (mix_failed()) return mix_error();
  bool good = mix_json_set_seed(config->object, d->seed) &&
              mix_json_set(config->object, "noise_shape",
                           d->noise_shape.rank ? mix_shape_to_json(d->noise_shape) : json_null());
  return good ? MIX_OK : mix_error();
}

const mix_layer_class mix_class_dropout = {.size = sizeof(mix_layer_class),
                                           .name = "Dropout",
                                           .instance_size = sizeof(dropout),
                                           .call = dropout_call,
                                           .output_shape = mix_layer_same_shape,
                                           .get_config = dropout_config,
                                           .supports_masking = true};

mix_dropout_options mix_dropout_defaults(void) {
  return (mix_dropout_options){.size = sizeof(mix_dropout_options)};
}

mix_layer *mix_dropout_with(const mix_dropout_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_dropout_options, o, options, "dropout");
  if (!mix_shape_option(o.noise_shape, "dropout", "noise_shape")) return NULL;
  if (!(o.rate >= 0 && o.rate <= 1))
    return mix_fail(MIX_VALUE_ERROR, "dropout: rate is %g; expected a number in [0, 1]", o.rate);
  mix_layer *layer = mix_layer_make(&mix_class_dropout, MIX_LAYER_COMMON(o), "dropout");
  if (!layer) return NULL;
  *(dropout *)layer->data = (dropout){o.rate, o.noise_shape, o.seed, mix_layer_generator(layer, o.seed)};
  return mix_layer_made(layer);
}
