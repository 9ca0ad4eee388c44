/* Dropout (Srivastava et al.: Dropout: a simple way to prevent neural networks from overfitting; JMLR 15, 2014), inverted scaling. */
#include "base/error.h"
#include "base/philox.h"
#include "nn/config.h"
#include "nn/layer.h"
#include <mixtape/random.h>

typedef struct dropout {
  double rate;
  mix_shape noise_shape;
  uint64_t seed; /* as given; 0: none */
  mix_generator *generator;
} dropout;

/* x's shape, but for the dimensions that the noise shape fixes. */
static mix_shape noise_shape_of(const dropout *d, mix_shape shape) {
  if (!d->noise_shape.rank) return shape;
  for (int i = 0; i < shape.rank; i++)
    if (d->noise_shape.dims[i] != MIX_UNKNOWN) shape.dims[i] = d->noise_shape.dims[i];
  return shape;
}

static mix_list *dropout_call(mix_layer *layer, const mix_call_args *args) {
  const dropout *d = mix_layer_data(layer);
  mix_tensor *x = mix_call_input(args, 0);
  mix_shape shape = mix_tensor_shape(x);
  if (d->noise_shape.rank && d->noise_shape.rank != shape.rank)
    return mix_fail(MIX_VALUE_ERROR, "%s: noise_shape has rank %d, the input rank %d", layer->name, d->noise_shape.rank, shape.rank);
  if (!args->training || args->symbolic || d->rate == 0) return mix_list_of(x);
  mix_tensor *zero = mix_scalar_like(x, 0);
  if (d->rate == 1) return mix_list_of(mix_zeros_like(x));
  mix_tensor *uniform = mix_random_uniform(d->generator, noise_shape_of(d, shape), mix_tensor_dtype(x));
  mix_tensor *keep = mix_greater_equal(uniform, mix_scalar_like(x, d->rate));
  mix_tensor *y = mix_select(keep, mix_multiply(x, mix_scalar_like(x, 1 / (1 - d->rate))), zero);
  return y ? mix_list_of(y) : NULL;
}

static mix_shape dropout_output_shape(mix_layer *layer, int count, const mix_shape *input_shapes) {
  (void)layer, (void)count;
  return input_shapes[0];
}

static mix_status dropout_config(mix_layer *layer, mix_config *config) {
  const dropout *d = mix_layer_data(layer);
  mix_config_number(config, "rate", d->rate);
  if (mix_failed()) return mix_error();
  if (!mix_json_set(config->object, "seed", d->seed ? json_integer((json_int_t)d->seed) : json_null())) return mix_error();
  json_t *noise = d->noise_shape.rank ? json_array() : json_null();
  for (int i = 0; i < d->noise_shape.rank; i++)
    json_array_append_new(noise, d->noise_shape.dims[i] == MIX_UNKNOWN ? json_null() : json_integer(d->noise_shape.dims[i]));
  return mix_json_set(config->object, "noise_shape", noise) ? MIX_OK : mix_error();
}

static void dropout_finalize(mix_layer *layer) { mix_release(((dropout *)mix_layer_data(layer))->generator); }

const mix_layer_class mix_class_dropout = {.size = sizeof(mix_layer_class),
                                           .name = "Dropout",
                                           .instance_size = sizeof(dropout),
                                           .call = dropout_call,
                                           .output_shape = dropout_output_shape,
                                           .get_config = dropout_config,
                                           .finalize = dropout_finalize,
                                           .supports_masking = true};

mix_dropout_options mix_dropout_defaults(void) { return (mix_dropout_options){.size = sizeof(mix_dropout_options)}; }

mix_layer *mix_dropout_with(const mix_dropout_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_dropout_options, o, options, "dropout");
  if (!(o.rate >= 0 && o.rate <= 1)) return mix_fail(MIX_VALUE_ERROR, "dropout: rate is %g; expected a number in [0, 1]", o.rate);
  mix_generator *generator = mix_generator_new(o.seed ? o.seed : mix_next_seed());
  mix_layer *layer = mix_layer_make(&mix_class_dropout, MIX_LAYER_COMMON(o), "dropout");
  if (!layer) return NULL;
  *(dropout *)layer->data = (dropout){o.rate, o.noise_shape, o.seed, mix_retain(generator)};
  return mix_scoped(layer);
}
