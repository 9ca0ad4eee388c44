/* RandomContrast and RandomBrightness. */
#include "base/error.h"
#include "nn/layers/spatial/random_images.h"
#include <math.h>

static mix_tensor *clipped(mix_tensor *x, const double range[2]) {
  return x ? mix_clip(x, mix_scalar_like(x, range[0]), mix_scalar_like(x, range[1])) : NULL;
}

/* A number for each image, in x's dtype, that broadcasts against x. */
static mix_tensor *drawn_for(mix_tensor *x, mix_generator *generator, double low, double high) {
  const mix_shape shape = mix_tensor_shape(x);
  const mix_shape each = shape.rank == 4 ? MIX_SHAPE(shape.dims[0], 1, 1, 1) : MIX_SHAPE(1, 1, 1);
  return mix_cast(mix_drawn_between(generator, each, low, high), mix_tensor_dtype(x));
}

/* Images of rank 3 or 4. NULL with a ValueError for others. */
static mix_tensor *images_of(mix_layer *layer, const mix_call_args *args) {
  mix_tensor *x = mix_layer_floating(layer, mix_call_input(args, 0));
  return mix_image_batch(layer, x, NULL) ? x : NULL;
}

/* ---- RandomContrast ---- */

static mix_list *random_contrast_call(mix_layer *layer, const mix_call_args *args) {
  const mix_random_contrast_options *r = mix_layer_data(layer);
  const mix_factor *f = &r->factor;
  mix_tensor *x = images_of(layer, args);
  if (!x || !args->training || args->symbolic) return mix_one_result(x);
  const bool first = mix_is_channels_first(r->data_format);
  mix_tensor *mean = mix_reduce_mean(x, first ? MIX_AXES(-2, -1) : MIX_AXES(-3, -2), true);
  mix_tensor *contrast =
      layer->semantics->random_contrast_for_each
          ? drawn_for(x, mix_generator_of(layer), 1 - f->low, 1 + f->high)
          : mix_cast(mix_drawn_between(mix_generator_of(layer), MIX_SCALAR, 1 - f->low, 1 + f->high),
                     mix_tensor_dtype(x));
  mix_tensor *y = mix_add(mix_multiply(mix_subtract(x, mean), contrast), mean);
  return mix_one_result(clipped(y, r->value_range));
}

static bool random_contrast_ready(mix_layer *layer) {
  mix_random_contrast_options *r = layer->data;
  mix_factor *f = &r->factor;
  if (!mix_factor_resolve(f, layer->kind->call, "factor", 0, 1)) return false;
  /* keras3: max(-number, 0), which leaves a range above 1 alone */
  if (!f->is_pair) f->low = layer->semantics->random_factors_resolved ? 0 : f->high;
  if (f->is_pair && f->low > f->high && layer->semantics->random_factors_resolved) {
    const double low = f->high;
    f->high = f->low;
    f->low = low;
  }
  return true;
}

static const mix_field_row contrast_fields[] = {
    {MIX_FIELD(mix_random_contrast_options, factor), &mix_field_factor, .number = MIX_FACTOR_PAIR_IF_RESOLVED,
     .required = true, MIX_ONE_FACTOR(mix_random_contrast_options, number)},
    {MIX_FIELD(mix_random_contrast_options, value_range), &mix_field_value_range,
     .only = MIX_RULE(config_image_data_format)},
    {MIX_FIELD(mix_random_contrast_options, seed), &mix_field_seed},
    MIX_IMAGE_DATA_FORMAT_FIELD(mix_random_contrast_options),
    MIX_RANDOM_TYPE_FIELD,
    {0}};
MIX_LAYER_KIND(random_contrast, mix_random_contrast_options, .fields = contrast_fields,
               .call_training = MIX_TRUE, .ready = random_contrast_ready,
               .seed = offsetof(mix_random_contrast_options, seed),
               MIX_LAYER_CLASS(.name = "RandomContrast", .call = random_contrast_call,
                               .output_shape = mix_layer_same_shape))

/* ---- RandomBrightness ---- */

static mix_list *random_brightness_call(mix_layer *layer, const mix_call_args *args) {
  const mix_random_brightness_options *r = mix_layer_data(layer);
  const mix_factor *f = &r->factor;
  const double *range = r->value_range, width = range[1] - range[0];
  mix_tensor *x = images_of(layer, args);
  if (!x || !args->training || args->symbolic) return mix_one_result(x);
  mix_tensor *y = mix_add(x, drawn_for(x, mix_generator_of(layer), f->low * width, f->high * width));
  return mix_one_result(clipped(y, range));
}

/* The factor becomes a sorted pair. */
static bool random_brightness_ready(mix_layer *layer) {
  mix_random_brightness_options *r = layer->data;
  mix_factor *f = &r->factor;
  if (!mix_factor_resolve(f, layer->kind->call, "factor", -1, 1)) return false;
  const double a = f->is_pair ? f->low : -f->high, b = f->high;
  *f = (mix_factor){true, true, fmin(a, b), fmax(a, b)};
  return true;
}

static const mix_field_row brightness_fields[] = {
    {MIX_FIELD(mix_random_brightness_options, factor), &mix_field_factor, .number = MIX_FACTOR_PAIR,
     .required = true, MIX_ONE_FACTOR(mix_random_brightness_options, number)},
    {MIX_FIELD(mix_random_brightness_options, value_range), &mix_field_value_range},
    {MIX_FIELD(mix_random_brightness_options, seed), &mix_field_seed},
    MIX_IMAGE_DATA_FORMAT_FIELD(mix_random_brightness_options),
    MIX_RANDOM_TYPE_FIELD,
    {0}};
MIX_LAYER_KIND(random_brightness, mix_random_brightness_options, .fields = brightness_fields,
               .call_training = MIX_TRUE, .ready = random_brightness_ready,
               .seed = offsetof(mix_random_brightness_options, seed),
               MIX_LAYER_CLASS(.name = "RandomBrightness", .call = random_brightness_call,
                               .output_shape = mix_layer_same_shape))
