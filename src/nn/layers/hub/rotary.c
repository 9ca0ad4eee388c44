/* Rotary positions: features i and i + half of a head turn by place * frequency[i]. */
#include "base/alloc.h"
#include "base/error.h"
#include "nn/layers/hub/decoder.h"
#include "ops/with_number.h"
#include <math.h>

static double frequency(const mix_rotary *rotary, int64_t i) {
  const double pi = 3.14159265358979323846;
  const double plain = pow(rotary->wavelength, -2.0 * (double)i / (double)rotary->dimensions);
  if (!rotary->stretch) return plain / rotary->scaling;
  const double waves = rotary->trained_length * plain / (2 * pi), stretched = plain / rotary->stretch;
  if (waves < rotary->low) return stretched;
  if (waves > rotary->high) return plain;
  const double share = (waves - rotary->low) / (rotary->high - rotary->low);
  return (1 - share) * stretched + share * plain;
}

/* float32 (half). No factors: as they are. */
static mix_tensor *divided(const mix_rotary *rotary, const mix_numbers *factors) {
  const int64_t half = rotary->dimensions / 2;
  float *values = mix_calloc((size_t)half, sizeof *values);
  if (!values) return NULL;
  for (int64_t i = 0; i < half; i++)
    values[i] = (float)(frequency(rotary, i) / (i < factors->count ? factors->values[i] : 1));
  mix_tensor *tensor = mix_tensor_from(values, MIX_FLOAT32, MIX_SHAPE(half));
  mix_free(values);
  return tensor;
}

static mix_tensor *frequencies(const mix_rotary *rotary, mix_tensor *places) {
  mix_tensor *plain = divided(rotary, &rotary->short_factors);
  if (!rotary->long_factors.count) return plain;
  mix_tensor *last = mix_cast(mix_reduce_max(places, MIX_ALL_AXES, false), MIX_FLOAT32);
  mix_tensor *is_long = last ? mix_greater_equal(last, mix_scalar_like(last, rotary->trained_length)) : NULL;
  return is_long ? mix_select(is_long, divided(rotary, &rotary->long_factors), plain) : NULL;
}

static mix_tensor *scaled(const mix_rotary *rotary, mix_tensor *x, mix_dtype dtype) {
  return mix_cast(rotary->magnitude ? mix_times(x, rotary->magnitude) : x, dtype);
}

mix_tensor *mix_rotate(mix_tensor *x, const mix_rotary *rotary, mix_tensor *places) {
  const int64_t dimensions = rotary->dimensions, half = dimensions / 2;
  if (!dimensions || !x || mix_tensor_is_symbolic(x)) return x; /* of the same shape */
  const int64_t all = mix_tensor_shape(x).dims[3];
  const mix_dtype dtype = mix_tensor_dtype(x);
  mix_tensor *place = mix_expand_dims(mix_cast(places, MIX_FLOAT32), -1);
  mix_tensor *angle = place ? mix_expand_dims(mix_multiply(place, frequencies(rotary, places)), 1) : NULL;
  if (!angle) return NULL;
  mix_tensor *cosine = scaled(rotary, mix_cos(angle), dtype), *sine = scaled(rotary, mix_sin(angle), dtype);
  mix_tensor *first = mix_layer_range(x, 3, 0, half, 1), *second = mix_layer_range(x, 3, half, half, 1);
  mix_tensor *parts[3] = {mix_subtract(mix_multiply(first, cosine), mix_multiply(second, sine)),
                          mix_add(mix_multiply(second, cosine), mix_multiply(first, sine)),
                          all > dimensions ? mix_layer_range(x, 3, dimensions, all - dimensions, 1) : NULL};
  return mix_failed() ? NULL : mix_concat(2 + (parts[2] != NULL), parts, -1);
}
