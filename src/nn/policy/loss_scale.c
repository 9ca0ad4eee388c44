/* Fixed and dynamic loss scales (docs/spec/mixed_precision.md, 6.1 and 6.2). */
#include "nn/policy/loss_scale.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/fields.h"
#include "base/json.h"
#include "nn/keep.h"
#include "nn/number.h"
#include <mixtape/ops.h>
#include <stdio.h>

#define FIELD(name, member) name, offsetof(mix_loss_scale, member)
static const mix_field_row fixed_rows[] = {{FIELD("loss_scale_value", initial), &mix_field_number}, {NULL}};
static const mix_field_row dynamic_rows[] = {
    {FIELD("initial_loss_scale", initial), &mix_field_number, 32768},
    {FIELD("increment_period", increment_period), &mix_field_integer, 2000},
    {FIELD("multiplier", multiplier), &mix_field_number, 2},
    {NULL}};
static mix_fields fields_of(const mix_loss_scale *values) {
  return (mix_fields){NULL, values->dynamic ? dynamic_rows : fixed_rows, "loss_scale"};
}

static void finalize(void *object) {
  mix_loss_scale *loss_scale = object;
  mix_release(loss_scale->scale);
  mix_release(loss_scale->good_steps);
  mix_release(loss_scale->skipped_steps);
  mix_free(loss_scale->serialized);
  mix_free(loss_scale->config);
}
static const mix_class loss_scale_class = {.name = "loss_scale", .finalize = finalize};

bool mix_loss_scale_check(double scale, mix_dtype dtype, const char *call) {
  const bool wide = dtype == MIX_FLOAT64;
  const double used = wide ? scale : (double)(float)scale, reciprocal = wide ? 1 / used : 1 / (float)used;
  if (scale == 0 || (used != 0 && isfinite(used) && isfinite(wide ? reciprocal : (double)(float)reciprocal)))
    return true;
  return mix_fail_value(
      "%s: the loss scale is %g, which in %s is %s; expected a number of which it holds the "
      "reciprocal too, such as 32768",
      call, scale, wide ? "float64" : "float32",
      isnan(used)   ? "no number"
      : isinf(used) ? "infinite"
      : used == 0   ? "0"
                    : "too small");
}

mix_loss_scale *mix_loss_scale_fixed(double value) {
  mix_loss_scale *loss_scale = mix_object_new(sizeof *loss_scale, &loss_scale_class);
  if (!loss_scale) return NULL;
  loss_scale->initial = value;
  loss_scale->semantics = mix_semantics_current();
  return mix_scoped(loss_scale);
}

mix_loss_scale *mix_fixed_loss_scale(double value) {
  if (mix_failed()) return NULL;
  if (!(value >= 1))
    return mix_fail_value("fixed_loss_scale: the value is %g; expected a number of at least 1", value);
  return mix_loss_scale_check(value, MIX_FLOAT32, "fixed_loss_scale") ? mix_loss_scale_fixed(value) : NULL;
}

/* A state variable with an evaluated initial value; owned by the caller. */
static mix_variable *state(const char *name, double value, mix_dtype dtype) {
  return mix_retain(mix_variable_new(mix_scalar(value, dtype), .name = name, .not_trainable = true));
}

mix_loss_scale *mix_loss_scale_dynamic(double initial, int64_t increment_period, double multiplier,
                                       const mix_semantics *semantics) {
  if (mix_failed() || !mix_loss_scale_check(initial, MIX_FLOAT32, "dynamic_loss_scale")) return NULL;
  mix_loss_scale *loss_scale = mix_object_new(sizeof *loss_scale, &loss_scale_class);
  if (!loss_scale) return NULL;
  *loss_scale = (mix_loss_scale){.object = loss_scale->object,
                                 .dynamic = true,
                                 .initial = initial,
                                 .increment_period = increment_period,
                                 .multiplier = multiplier,
                                 .semantics = semantics};
  loss_scale->scale = state("current_loss_scale", initial, MIX_FLOAT32);
  loss_scale->good_steps = state("good_steps", 0, MIX_INT64);
  loss_scale->skipped_steps = state("skipped_steps", 0, MIX_INT64);
  if (loss_scale->scale && loss_scale->good_steps && loss_scale->skipped_steps) return mix_scoped(loss_scale);
  mix_release(loss_scale);
  return NULL;
}

/* From values of which 0 is the default. */
static mix_loss_scale *make_scale(mix_loss_scale values) {
  mix_fields fields = fields_of(&values);
  if (mix_failed() || !mix_fields_resolve(&fields, &values)) return NULL;
  return values.dynamic ? mix_loss_scale_dynamic(values.initial, values.increment_period, values.multiplier,
                                                 values.semantics)
                        : mix_fixed_loss_scale(values.initial);
}

mix_loss_scale *mix_dynamic_loss_scale_with(const mix_dynamic_loss_scale_options *options) {
  MIX_OPTIONS(mix_dynamic_loss_scale_options, o, options, "dynamic_loss_scale");
  return make_scale((mix_loss_scale){.dynamic = true,
                                     .initial = o.initial_loss_scale,
                                     .increment_period = o.increment_period,
                                     .multiplier = o.multiplier,
                                     .semantics = mix_semantics_or_current(o.semantics)});
}

mix_loss_scale *mix_loss_scale_get(const char *identifier) {
  if (mix_failed() || !identifier) return NULL;
  if (!strcmp(identifier, "dynamic")) return mix_dynamic_loss_scale();
  return mix_fail_value(
      "loss_scale: could not interpret \"%.100s\"; expected \"dynamic\", a number or a loss scale",
      identifier);
}

/* A fixed scale as the generation's compile takes it: an object, a wrapper's number or an optimizer's factor.
 */
static mix_loss_scale *make_fixed(double value, const mix_semantics *semantics) {
  if (semantics->wrapper_takes_object) return mix_fixed_loss_scale(value);
  const mix_dtype dtype = semantics->optimizer_loss_scale_factor ? MIX_FLOAT64 : MIX_FLOAT32;
  return mix_loss_scale_check(value, dtype, "loss_scale_from_text") ? mix_loss_scale_fixed(value) : NULL;
}

mix_loss_scale *mix_loss_scale_from_text(const char *text, const mix_semantics *semantics) {
  if (mix_failed()) return NULL;
  if (!text) return mix_fail_type("loss_scale_from_text: no text");
  if (!strcmp(text, "none")) return NULL;
  const bool dynamic = !strncmp(text, "dynamic", 7);
  mix_loss_scale values = {.dynamic = dynamic, .semantics = mix_semantics_or_current(semantics)};
  char *end = (char *)text + (dynamic ? 7 : 0);
  bool good = true;
  if (!dynamic || *end == ':') {
    values.initial = mix_number_read(end + dynamic, &end);
    good = isfinite(values.initial) && values.initial > 0;
  }
  if (dynamic && *end == ':')
    good &= mix_integer_read(end + 1, &values.increment_period) && values.increment_period > 0;
  else
    good &= !*end;
  if (!good)
    return mix_fail_value("loss_scale_from_text: '%.100s' given; expected none, a number above 0 or "
                          "dynamic[:INITIAL[:GROWTH_STEPS]]",
                          text);
  return dynamic ? make_scale(values) : make_fixed(values.initial, values.semantics);
}

/* ---- state ---- */

bool mix_loss_scale_is_dynamic(const mix_loss_scale *loss_scale) {
  return mix_is(loss_scale, &loss_scale_class) && loss_scale->dynamic;
}
double mix_loss_scale_initial(const mix_loss_scale *loss_scale) {
  return mix_is(loss_scale, &loss_scale_class) ? loss_scale->initial : 0;
}
int64_t mix_loss_scale_increment_period(const mix_loss_scale *loss_scale) {
  return mix_is(loss_scale, &loss_scale_class) ? loss_scale->increment_period : 0;
}
double mix_loss_scale_multiplier(const mix_loss_scale *loss_scale) {
  return mix_is(loss_scale, &loss_scale_class) ? loss_scale->multiplier : 0;
}
mix_variable *mix_loss_scale_variable(const mix_loss_scale *loss_scale) {
  return mix_is(loss_scale, &loss_scale_class) ? loss_scale->scale : NULL;
}
mix_variable *mix_loss_scale_good_steps(const mix_loss_scale *loss_scale) {
  return mix_is(loss_scale, &loss_scale_class) ? loss_scale->good_steps : NULL;
}
mix_variable *mix_loss_scale_skipped_steps(const mix_loss_scale *loss_scale) {
  return mix_is(loss_scale, &loss_scale_class) ? loss_scale->skipped_steps : NULL;
}

mix_tensor *mix_loss_scale_value(mix_loss_scale *loss_scale) {
  if (!mix_given(loss_scale, &loss_scale_class, "loss_scale_value", "a loss scale")) return NULL;
  return loss_scale->dynamic ? mix_variable_true_value(loss_scale->scale)
                             : mix_scalar(loss_scale->initial, MIX_FLOAT32);
}

/* The scale after a finite step with a full counter. */
static mix_tensor *grown(const mix_loss_scale *loss_scale, mix_tensor *scale) {
  mix_tensor *larger = mix_kept(mix_multiply(scale, mix_scalar(loss_scale->multiplier, MIX_FLOAT32)));
  if (!loss_scale->semantics->scale_capped) return larger;
  return mix_kept(mix_select(mix_kept(mix_is_finite(larger)), larger, scale));
}

/* The scale after a step that is not finite. */
static mix_tensor *reduced(const mix_loss_scale *loss_scale, mix_tensor *scale) {
  mix_tensor *smaller = mix_kept(mix_divide(scale, mix_scalar(loss_scale->multiplier, MIX_FLOAT32)));
  double floor = loss_scale->semantics->scale_floor;
  return floor > 0 ? mix_kept(mix_maximum(smaller, mix_scalar(floor, MIX_FLOAT32))) : smaller;
}

mix_tensor *mix_loss_scale_update(mix_loss_scale *loss_scale, mix_tensor *all_finite) {
  if (!mix_given(loss_scale, &loss_scale_class, "loss_scale_update", "a loss scale") ||
      !mix_given(all_finite, &mix_tensor_class, "loss_scale_update", "a bool scalar"))
    return NULL;
  if (!loss_scale->dynamic) return mix_scalar(1, MIX_BOOL);
  mix_tensor *scale = mix_variable_true_value(loss_scale->scale),
             *steps = mix_variable_true_value(loss_scale->good_steps);
  mix_tensor *zero = mix_scalar(0, MIX_INT64), *one = mix_scalar(1, MIX_INT64);
  mix_tensor *period = mix_scalar((double)loss_scale->increment_period, MIX_INT64);
  mix_tensor *next = mix_kept(mix_add(steps, one));
  mix_tensor *full = mix_kept(loss_scale->semantics->growth_at_equality ? mix_equal(next, period)
                                                                        : mix_greater_equal(next, period));
  mix_tensor *good_scale = mix_kept(mix_select(full, grown(loss_scale, scale), scale));
  mix_tensor *good_steps = mix_kept(mix_select(full, zero, next));
  mix_tensor *new_scale = mix_kept(mix_select(all_finite, good_scale, reduced(loss_scale, scale)));
  mix_tensor *new_steps = mix_kept(mix_select(all_finite, good_steps, zero));
  mix_tensor *skipped = mix_variable_true_value(loss_scale->skipped_steps);
  mix_tensor *new_skipped = mix_kept(mix_select(all_finite, skipped, mix_kept(mix_add(skipped, one))));
  if (mix_variable_assign(loss_scale->scale, new_scale) ||
      mix_variable_assign(loss_scale->good_steps, new_steps) ||
      mix_variable_assign(loss_scale->skipped_steps, new_skipped))
    return NULL;
  return all_finite;
}

mix_tensor *mix_all_finite_of(mix_list *gradients) {
  if (!mix_given(gradients, &mix_list_class, "all_finite_of", "a list of gradients")) return NULL;
  mix_tensor *all = NULL;
  for (int i = 0; i < mix_list_count(gradients); i++) {
    mix_tensor *gradient = mix_list_get(gradients, i);
    if (!gradient) continue;
    mix_tensor *finite = mix_kept(mix_all_finite(mix_rows_values(gradient)));
    all = all ? mix_kept(mix_logical_and(all, finite)) : finite;
    if (!all) return NULL;
  }
  return all ? all : mix_scalar(1, MIX_BOOL);
}

/* ---- texts ---- */

const char *mix_loss_scale_text(const mix_loss_scale *loss_scale, char *text, size_t size) {
  char numbers[4][32];
  if (!text || !size) return "";
  if (!mix_is(loss_scale, &loss_scale_class)) {
    snprintf(text, size, "None");
  } else if (!loss_scale->dynamic) {
    snprintf(text, size, "FixedLossScale(%s)", mix_python_float(loss_scale->initial, numbers[0]));
  } else {
    double scale = mix_tensor_item(mix_variable_true_value(loss_scale->scale));
    double steps = mix_tensor_item(mix_variable_true_value(loss_scale->good_steps));
    snprintf(text, size,
             "DynamicLossScale(current_loss_scale=%s, num_good_steps=%.0f, initial_loss_scale=%s, "
             "increment_period=%lld, multiplier=%s)",
             mix_python_float(scale, numbers[0]), steps, mix_python_float(loss_scale->initial, numbers[1]),
             (long long)loss_scale->increment_period, mix_python_float(loss_scale->multiplier, numbers[2]));
  }
  return text;
}

static json_t *config_json(mix_loss_scale *loss_scale) {
  if (!loss_scale) return json_null();
  mix_fields fields = fields_of(loss_scale);
  return mix_fields_write(&fields, loss_scale, NULL);
}

json_t *mix_loss_scale_to_json(mix_loss_scale *loss_scale) {
  if (!loss_scale) return json_null();
  return mix_json_object(NULL, loss_scale->dynamic ? "DynamicLossScale" : "FixedLossScale",
                         config_json(loss_scale));
}

const char *mix_loss_scale_serialize(mix_loss_scale *loss_scale) {
  return mix_given(loss_scale, &loss_scale_class, "loss_scale_serialize", "a loss scale")
             ? mix_json_keep_text(&loss_scale->serialized, mix_loss_scale_to_json(loss_scale))
             : NULL;
}
const char *mix_loss_scale_config(mix_loss_scale *loss_scale) {
  return mix_given(loss_scale, &loss_scale_class, "loss_scale_config", "a loss scale")
             ? mix_json_keep_text(&loss_scale->config, config_json(loss_scale))
             : NULL;
}

mix_loss_scale *mix_loss_scale_from_json(const json_t *json, const mix_semantics *semantics) {
  if (mix_failed() || !json || json_is_null(json)) return NULL;
  if (json_is_number(json)) return mix_fixed_loss_scale(json_number_value(json));
  mix_loss_scale values = {.dynamic = true, .semantics = semantics};
  if (json_is_string(json) && !strcmp(json_string_value(json), "dynamic")) return make_scale(values);
  if (json_is_string(json)) return mix_loss_scale_get(json_string_value(json));
  const char *class_name = mix_json_string_or(json, "class_name", "");
  if (!class_name) return NULL;
  values.dynamic = !strcmp(class_name, "DynamicLossScale");
  if (!values.dynamic && strcmp(class_name, "FixedLossScale"))
    return mix_fail_value(
        "loss_scale: class \"%.100s\" is not known; expected FixedLossScale or DynamicLossScale", class_name);
  mix_fields fields = fields_of(&values);
  return mix_fields_read(&fields, json_object_get(json, "config"), &values) ? make_scale(values) : NULL;
}

mix_loss_scale *mix_loss_scale_deserialize(const char *text) {
  if (mix_failed()) return NULL;
  json_t *json = mix_json_parse(text, "loss_scale_deserialize");
  mix_loss_scale *loss_scale = mix_loss_scale_from_json(json, mix_semantics_current());
  json_decref(json);
  return loss_scale;
}
