/* Constraints: projections of weights after an update (docs/spec/keras.md, section 9). */
#include "base/alloc.h"
#include "base/error.h"
#include "nn/config.h"
#include "nn/unknown.h"
#include "nn/weights/weights.h"
#include <mixtape/ops.h>
#include <string.h>

typedef enum projection { MAX_NORM, UNIT_NORM, NON_NEG, MIN_MAX_NORM } projection;

struct mix_constraint {
  mix_object object;
  projection kind;
  double min_value, max_value, rate;
  int axis;
  mix_tensor *(*function)(void *context, mix_tensor *weight); /* a user's function, instead of a kind */
  void *context;
};
const mix_class mix_constraint_class = {.name = "constraint"};

static const double epsilon = 1e-7;
static const struct {
  const char *name, *class_name;
  projection kind;
  double max_value;
} kinds[] = {{"max_norm", "MaxNorm", MAX_NORM, 2},
             {"unit_norm", "UnitNorm", UNIT_NORM, 1},
             {"non_neg", "NonNeg", NON_NEG, 0},
             {"min_max_norm", "MinMaxNorm", MIN_MAX_NORM, 1}};

mix_constraint *mix_constraint_with(const mix_constraint_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_constraint_options, o, options, "constraint");
  size_t row = 0, count = sizeof kinds / sizeof *kinds;
  if (o.constraint && o.function)
    return mix_fail(MIX_VALUE_ERROR, "constraint: both a name and a function were given; give one");
  while (!o.function && row < count &&
         !(o.constraint &&
           (!strcmp(kinds[row].name, o.constraint) || !strcmp(kinds[row].class_name, o.constraint))))
    row++;
  if (row == count) return mix_unknown_name("constraint", o.constraint, kinds);
  mix_constraint *constraint = mix_object_new(sizeof *constraint, &mix_constraint_class);
  if (!constraint) return NULL;
  *constraint = (mix_constraint){.object = constraint->object,
                                 .kind = kinds[row].kind,
                                 .min_value = mix_option_number(o.min_value, 0),
                                 .max_value = mix_option_number(o.max_value, kinds[row].max_value),
                                 .rate = mix_option_number(o.rate, 1),
                                 .axis = o.axis,
                                 .function = o.function,
                                 .context = o.context};
  return mix_scoped(constraint);
}

const char *mix_constraint_name(const mix_constraint *constraint) {
  return constraint && !constraint->function ? kinds[constraint->kind].name : NULL;
}

mix_tensor *mix_constraint_call(mix_constraint *constraint, mix_tensor *weight) {
  if (!mix_given(constraint, "constraint_call", "a constraint") ||
      !mix_given(weight, "constraint_call", "a weight"))
    return NULL;
  if (constraint->function)
    return mix_returned(constraint->function(constraint->context, weight), "constraint");
  if (constraint->kind == NON_NEG) return mix_maximum(weight, mix_scalar_like(weight, 0));
  mix_tensor *norm = mix_sqrt(mix_reduce_sum(mix_square(weight), MIX_AXES(constraint->axis), true));
  mix_tensor *divisor = mix_add(mix_scalar_like(norm, epsilon), norm);
  if (constraint->kind == UNIT_NORM) return mix_divide(weight, divisor);
  double low = constraint->kind == MIN_MAX_NORM ? constraint->min_value : 0;
  mix_tensor *wanted =
      mix_clip(norm, mix_scalar_like(norm, low), mix_scalar_like(norm, constraint->max_value));
  if (constraint->kind == MIN_MAX_NORM)
    wanted = mix_add(mix_multiply(mix_scalar_like(norm, constraint->rate), wanted),
                     mix_multiply(mix_scalar_like(norm, 1 - constraint->rate), norm));
  return mix_multiply(weight, mix_divide(wanted, divisor));
}

mix_constraint *mix_constraint_choose(const char *name, mix_constraint *object, const char *call) {
  if (mix_failed()) return NULL;
  if (name && object)
    return mix_fail(MIX_VALUE_ERROR, "%s: both the constraint '%.60s' and an object were given; give one",
                    call, name);
  return object ? object : name ? mix_constraint_new(name) : NULL;
}

json_t *mix_constraint_to_json(const mix_constraint *constraint) {
  if (!constraint || constraint->function) return json_null();
  json_t *config = json_object();
  bool good = config != NULL;
  if (constraint->kind == MIN_MAX_NORM)
    good = mix_json_set(config, "min_value", json_real(constraint->min_value)) &&
           mix_json_set(config, "rate", json_real(constraint->rate));
  if (good && (constraint->kind == MAX_NORM || constraint->kind == MIN_MAX_NORM))
    good = mix_json_set(config, "max_value", json_real(constraint->max_value));
  if (good && constraint->kind != NON_NEG)
    good = mix_json_set(config, "axis", json_integer(constraint->axis));
  if (!good) {
    json_decref(config);
    return NULL;
  }
  return json_pack("{s:s,s:s,s:o,s:n}", "module", "keras.constraints", "class_name",
                   kinds[constraint->kind].class_name, "config", config, "registered_name");
}

mix_constraint *mix_constraint_from_json(const json_t *json) {
  if (mix_failed() || !json || json_is_null(json)) return NULL;
  if (json_is_string(json)) return mix_constraint_new(json_string_value(json));
  const json_t *config = json_object_get(json, "config");
  mix_constraint_options o = {.size = sizeof o, .constraint = mix_json_string_or(json, "class_name", "")};
  o.min_value = mix_json_number_or(config, "min_value", 0);
  o.max_value = mix_json_number_or(config, "max_value", 0);
  o.rate = mix_json_number_or(config, "rate", 1);
  o.axis = (int)mix_json_integer_or(config, "axis", 0);
  if (json_object_get(config, "max_value") && o.max_value == 0) o.max_value = MIX_ZERO;
  if (o.rate == 0) o.rate = MIX_ZERO;
  return mix_failed() ? NULL : mix_constraint_with(&o);
}
