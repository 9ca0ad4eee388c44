#include "nn/layers/spatial/random_images.h"
#include "base/error.h"
#include "ops/with_number.h"
#include <math.h>

static json_t *numbers_of(double a, double b) {
  json_t *pair = json_array();
  mix_json_append(pair, mix_number_json(a));
  mix_json_append(pair, mix_number_json(b));
  return pair;
}

/* The two numbers of a list; false with the error recorded. */
static bool read_pair(const mix_field *field, const json_t *value, double *pair) {
  if (json_array_size(value) != 2) return mix_field_mistyped(field, value);
  for (size_t i = 0; i < 2; i++) {
    const json_t *number = json_array_get(value, i);
    if (!json_is_number(number)) return mix_field_mistyped(field, number);
    pair[i] = json_number_value(number);
  }
  return true;
}

/* ---- factors ---- */

bool mix_factor_resolve(mix_factor *factor, const char *call, const char *name, double least, double most) {
  const double low = factor->is_pair ? factor->low : factor->high, high = factor->high;
  if (!factor->given || !(low >= least && low <= most && high >= least && high <= most))
    return mix_fail_value("%s: %s is %g to %g; expected numbers of %g to %g", call, name, low, high, least,
                          most);
  return true;
}

static json_t *write_factor(const mix_field *field) {
  const mix_factor *f = field->value;
  const bool pair =
      f->is_pair || field->row->number == MIX_FACTOR_PAIR ||
      (field->row->number == MIX_FACTOR_PAIR_IF_RESOLVED && field->rules->random_factors_resolved);
  if (!f->given) return json_null();
  return pair ? numbers_of(f->low, f->high) : mix_number_json(f->high);
}
static bool read_factor(const mix_field *field, const json_t *value) {
  mix_factor *f = field->value;
  double pair[2];
  if (json_is_null(value)) return true;
  if (json_is_number(value)) return *f = (mix_factor){.given = true, .high = json_number_value(value)}, true;
  if (!read_pair(field, value, pair)) return false;
  *f = (mix_factor){.given = true, .is_pair = true, .low = pair[0], .high = pair[1]};
  return true;
}
const mix_value_kind mix_field_factor = {.expected = "a number or a list of two",
                                         .size = sizeof(mix_factor),
                                         .write = write_factor,
                                         .read = read_factor};

/* ---- value ranges ---- */

static bool resolve_range(const mix_field *field) {
  double *range = field->value;
  if (range[0] == 0 && range[1] == 0) range[1] = 255;
  if (!isfinite(range[0]) || !isfinite(range[1]))
    return mix_fail_value("%s: %s is %g to %g; expected finite numbers", field->call, field->name, range[0],
                          range[1]);
  if (range[0] > range[1]) {
    const double low = range[1];
    range[1] = range[0];
    range[0] = low;
  }
  return true;
}
static json_t *write_range(const mix_field *field) {
  const double *range = field->value;
  return numbers_of(range[0], range[1]);
}
static bool read_range(const mix_field *field, const json_t *value) {
  return json_is_null(value) || read_pair(field, value, field->value);
}
const mix_value_kind mix_field_value_range = {.expected = "a list of two numbers",
                                              .size = 2 * sizeof(double),
                                              .resolve = resolve_range,
                                              .write = write_range,
                                              .read = read_range};

mix_tensor *mix_drawn_between(mix_generator *generator, mix_shape shape, double low, double high) {
  mix_tensor *uniform = mix_random_uniform(generator, shape, MIX_FLOAT32);
  if (!uniform) return NULL;
  return mix_add(mix_times(uniform, high - low), mix_scalar_like(uniform, low));
}
