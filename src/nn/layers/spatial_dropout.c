/* SpatialDropout1D, 2D and 3D: drop whole channels (Tompson et al.: Efficient object localization using
 * convolutional networks; arXiv:1411.4280). */
#include "base/error.h"
#include "nn/layer/decoding.h"
#include "nn/layers/builtin.h"
#include <string.h>

static mix_list *spatial_dropout_call(mix_layer *layer, const mix_call_args *args) {
  const mix_spatial_dropout_options *d = mix_layer_data(layer);
  mix_tensor *x = mix_call_input(args, 0);
  if (!args->training || args->symbolic) return mix_list_of(x);
  bool first = d->data_format && !strcmp(d->data_format, "channels_first");
  mix_shape noise_shape = mix_tensor_shape(x); /* becomes (batch, 1, ..., channels) */
  for (int i = 1; i < noise_shape.rank; i++)
    if (i != (first ? 1 : noise_shape.rank - 1)) noise_shape.dims[i] = 1;
  return mix_one_result(mix_dropped(x, d->rate, noise_shape, mix_generator_of(layer)));
}

static mix_status spatial_dropout_config(mix_layer *layer, mix_config *config) {
  return mix_config_without_trainable(layer, config) ? MIX_OK : mix_error();
}

#define RATE                                                                                                 \
  { MIX_FIELD(mix_spatial_dropout_options, rate), &mix_field_number, .range = MIX_UNIT_INTERVAL }
#define SEED                                                                                                 \
  { MIX_FIELD(mix_spatial_dropout_options, seed), &mix_field_seed }
#define NOISE_SHAPE                                                                                          \
  {                                                                                                          \
    "noise_shape", 0, &mix_field_fixed, .text = "null", .optional = true,                                    \
                                        .only = MIX_RULE(config_spatial_noise_shape)                         \
  }
static const mix_field_row fields_1d[] = {RATE, NOISE_SHAPE, SEED, {0}};
static const mix_field_row fields[] = {RATE,
                                       NOISE_SHAPE,
                                       {MIX_FIELD(mix_spatial_dropout_options, data_format), &mix_field_text,
                                        .text = "channels_last", .choices = "channels_last|channels_first"},
                                       SEED,
                                       {0}};

static bool spatial_dropout_check(void *options, const mix_layer_kind *kind) {
  const char *format = ((const mix_spatial_dropout_options *)options)->data_format;
  if (!format || kind->fields == fields) return true;
  return mix_fail_value("%s: data_format '%.60s' is not known; expected none", kind->call, format);
}

static bool spatial_dropout_ready(mix_layer *layer, int dimensions) {
  mix_input_spec spec = {.size = sizeof spec, .rank = dimensions + 2};
  return mix_layer_set_input_spec(layer, &spec) == MIX_OK;
}
static bool ready_1d(mix_layer *layer) { return spatial_dropout_ready(layer, 1); }
static bool ready_2d(mix_layer *layer) { return spatial_dropout_ready(layer, 2); }
static bool ready_3d(mix_layer *layer) { return spatial_dropout_ready(layer, 3); }

#define SPATIAL_DROPOUT(dimensions, rows)                                                                    \
  MIX_LAYER_KIND_ONLY(spatial_dropout##dimensions##d, mix_spatial_dropout_options, .fields = rows,           \
                      .built_from_start = true, .call_training = MIX_FALSE, .check = spatial_dropout_check,  \
                      .ready = ready_##dimensions##d, .seed = offsetof(mix_spatial_dropout_options, seed),   \
                      .decodes = mix_decodes,                                                                \
                      MIX_LAYER_CLASS(.name = "SpatialDropout" #dimensions "D",                              \
                                      .call = spatial_dropout_call, .output_shape = mix_layer_same_shape,    \
                                      .get_config = spatial_dropout_config, .supports_masking = true))
SPATIAL_DROPOUT(1, fields_1d)
SPATIAL_DROPOUT(2, fields)
SPATIAL_DROPOUT(3, fields)

mix_spatial_dropout_options mix_spatial_dropout_defaults(void) {
  return (mix_spatial_dropout_options){.size = sizeof(mix_spatial_dropout_options)};
}
