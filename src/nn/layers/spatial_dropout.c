/* SpatialDropout1D, 2D and 3D: drop whole channels (Tompson et al.: Efficient object localization using
 * convolutional networks; arXiv:1411.4280). */
#include "base/error.h"
#include "nn/layers/builtin.h"
#include <string.h>

typedef struct spatial_dropout {
  int dimensions; /* 1, 2, 3 */
  double rate;
  bool channels_first;
  uint64_t seed;
  mix_generator *generator;
} spatial_dropout;

static mix_list *spatial_dropout_call(mix_layer *layer, const mix_call_args *args) {
  const spatial_dropout *d = mix_layer_data(layer);
  mix_tensor *x = mix_call_input(args, 0);
  if (!args->training || args->symbolic) return mix_list_of(x);
  mix_shape noise_shape = mix_tensor_shape(x); /* becomes (batch, 1, ..., channels) */
  for (int i = 1; i < noise_shape.rank; i++)
    if (i != (d->channels_first ? 1 : noise_shape.rank - 1)) noise_shape.dims[i] = 1;
  return mix_one_result(mix_dropped(x, d->rate, noise_shape, d->generator));
}

static mix_status spatial_dropout_config(mix_layer *layer, mix_config *config) {
  const spatial_dropout *d = mix_layer_data(layer);
  mix_config_number(config, "rate", d->rate);
  if (d->dimensions > 1)
    mix_config_text(config, "data_format", d->channels_first ? "channels_first" : "channels_last");
  return mix_config_without_trainable(layer, config) && mix_json_set_seed(config->object, d->seed)
             ? MIX_OK
             : mix_error();
}

static mix_layer *spatial_dropout_with(int dimensions, const mix_spatial_dropout_options *options) {
  static const struct {
    const char *call, *name;
  } rows[] = {{"spatial_dropout1d", "SpatialDropout1D"},
              {"spatial_dropout2d", "SpatialDropout2D"},
              {"spatial_dropout3d", "SpatialDropout3D"}};
  const char *call = rows[dimensions - 1].call;
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_spatial_dropout_options, o, options, call);
  bool first = o.data_format && !strcmp(o.data_format, "channels_first");
  if (!(o.rate >= 0 && o.rate <= 1))
    return mix_fail(MIX_VALUE_ERROR, "%s: rate is %g; expected a number in [0, 1]", call, o.rate);
  if (o.data_format && ((!first && strcmp(o.data_format, "channels_last")) || dimensions == 1))
    return mix_fail(MIX_VALUE_ERROR, "%s: data_format '%.60s' is not known; expected %s", call, o.data_format,
                    dimensions == 1 ? "none" : "channels_last or channels_first");
  const mix_layer_class class = {.size = sizeof(mix_layer_class),
                                 .name = rows[dimensions - 1].name,
                                 .instance_size = sizeof(spatial_dropout),
                                 .call = spatial_dropout_call,
                                 .output_shape = mix_layer_same_shape,
                                 .get_config = spatial_dropout_config,
                                 .supports_masking = true};
  mix_layer *layer = mix_layer_make(&class, MIX_LAYER_COMMON(o), call);
  if (!layer) return NULL;
  *(spatial_dropout *)layer->data =
      (spatial_dropout){dimensions, o.rate, first, o.seed, mix_layer_generator(layer, o.seed)};
  mix_input_spec spec = {.size = sizeof spec, .rank = dimensions + 2};
  mix_layer_set_input_spec(layer, &spec);
  return mix_layer_made(layer);
}

mix_spatial_dropout_options mix_spatial_dropout_defaults(void) {
  return (mix_spatial_dropout_options){.size = sizeof(mix_spatial_dropout_options)};
}

static mix_layer *spatial_dropout_from(int dimensions, const json_t *config, const mix_semantics *semantics) {
  mix_common_config c = mix_common_config_of(config, semantics);
  mix_spatial_dropout_options o = {.size = sizeof o,
                                   .rate = mix_json_number_or(config, "rate", 0),
                                   MIX_COMMON_CONFIG(c),
                                   .data_format = mix_json_string_or(config, "data_format", NULL),
                                   .seed = (uint64_t)mix_json_integer_or(config, "seed", 0)};
  return spatial_dropout_with(dimensions, &o);
}

#define SPATIAL_DROPOUT(dimensions)                                                                          \
  mix_layer *mix_spatial_dropout##dimensions##d_with(const mix_spatial_dropout_options *options) {           \
    return spatial_dropout_with(dimensions, options);                                                        \
  }                                                                                                          \
  mix_layer *mix_spatial_dropout##dimensions##d_from(const json_t *config, const mix_semantics *semantics) { \
    return spatial_dropout_from(dimensions, config, semantics);                                              \
  }
SPATIAL_DROPOUT(1)
SPATIAL_DROPOUT(2)
SPATIAL_DROPOUT(3)
