/* Schedules as JSON, in the form of keras.optimizers.schedules.serialize:
 * {"class_name": "ExponentialDecay", "config": {...}}. */
#include "base/alloc.h"
#include "base/error.h"
#include "nn/config.h"
#include "nn/policy/semantics.h"
#include "optim/schedule.h"
#include <stdio.h>
#include <string.h>

static json_t *number_json(double value, bool steps) {
  return steps && value == (double)(json_int_t)value ? json_integer((json_int_t)value) : json_real(value);
}

static json_t *array_json(int count, const double *values, bool steps) {
  json_t *array = json_array();
  for (int i = 0; array && i < count; i++)
    if (json_array_append_new(array, number_json(values[i], steps)) != 0) {
      json_decref(array);
      return NULL;
    }
  return array;
}

static bool set_numbers(json_t *config, const mix_schedule *schedule) {
  if (schedule->kind == &mix_schedule_piecewise)
    return mix_json_set(config, "boundaries", array_json(schedule->count, schedule->boundaries, true)) &&
           mix_json_set(config, "values", array_json(schedule->count + 1, schedule->values, false));
  bool warms = schedule->kind != &mix_schedule_cosine || schedule->parameters[4] > 0;
  for (int i = 0; i < MIX_SCHEDULE_PARAMETERS && schedule->kind->parameters[i].name; i++) {
    const mix_schedule_parameter *row = &schedule->kind->parameters[i];
    bool none = !warms && !strcmp(row->name, "warmup_target");
    if (!mix_json_set(config, row->name,
                      none ? json_null() : number_json(schedule->parameters[i], row->steps)))
      return false;
  }
  return !schedule->kind->flag || mix_json_set(config, schedule->kind->flag, json_boolean(schedule->flag));
}

json_t *mix_schedule_to_json(const mix_schedule *schedule, const mix_semantics *semantics) {
  if (!schedule->kind)
    return mix_fail(
        MIX_TYPE_ERROR,
        "schedule_serialize: a schedule that is a C function has no config; save without the optimizer");
  const char *name = schedule->name;
  if (!name && semantics->schedules_named) name = schedule->kind->default_name;
  json_t *config = json_object();
  if (!config || !set_numbers(config, schedule) ||
      !mix_json_set(config, "name", name ? json_string(name) : json_null())) {
    json_decref(config);
    return NULL;
  }
  const char *class_name = schedule->kind->class_name;
  if (!semantics->objects_have_module)
    return json_pack("{s:s,s:o}", "class_name", class_name, "config", config);
  return json_pack("{s:s,s:s,s:o,s:n}", "module", "keras.optimizers.schedules", "class_name", class_name,
                   "config", config, "registered_name");
}

/* The numbers of an array, in new memory. */
static double *numbers_of(const json_t *array, const char *key, int *count) {
  *count = (int)json_array_size(array);
  double *numbers = json_is_array(array) ? mix_alloc(((size_t)*count + 1) * sizeof *numbers) : NULL;
  if (!json_is_array(array))
    return mix_fail(MIX_TYPE_ERROR, "PiecewiseConstantDecay: %s is not a list; expected a list of numbers",
                    key);
  for (int i = 0; numbers && i < *count; i++) {
    const json_t *item = json_array_get(array, (size_t)i);
    if (!json_is_number(item)) {
      mix_free(numbers);
      return mix_fail(MIX_TYPE_ERROR, "PiecewiseConstantDecay: item %d of %s is not a number", i, key);
    }
    numbers[i] = json_number_value(item);
  }
  return numbers;
}

static mix_schedule *piecewise_from(const json_t *config) {
  int boundary_count, value_count;
  double *boundaries = numbers_of(json_object_get(config, "boundaries"), "boundaries", &boundary_count);
  double *values = boundaries ? numbers_of(json_object_get(config, "values"), "values", &value_count) : NULL;
  mix_schedule *schedule = NULL;
  if (values && value_count != boundary_count + 1)
    mix_fail(MIX_VALUE_ERROR,
             "PiecewiseConstantDecay: %d boundaries and %d values; expected one value more than boundaries",
             boundary_count, value_count);
  else if (values)
    schedule = mix_piecewise_constant_decay(boundary_count, boundaries, values);
  mix_free(boundaries);
  mix_free(values);
  return schedule;
}

/* Checks that every key is a parameter, the flag or the name. */
static bool keys_known(const mix_schedule_kind *kind, const json_t *config) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)config, key, value) {
    bool known = !strcmp(key, "name") || (kind->flag && !strcmp(key, kind->flag));
    if (kind == &mix_schedule_piecewise)
      known = known || !strcmp(key, "boundaries") || !strcmp(key, "values");
    for (int i = 0; i < MIX_SCHEDULE_PARAMETERS && kind->parameters[i].name; i++)
      known = known || !strcmp(key, kind->parameters[i].name);
    if (!known)
      return mix_fail(MIX_VALUE_ERROR, "%s: unknown argument \"%.100s\"", kind->class_name, key), false;
  }
  return true;
}

static mix_schedule *from_config(const mix_schedule_kind *kind, const json_t *config) {
  if (!keys_known(kind, config)) return NULL;
  if (kind == &mix_schedule_piecewise) return piecewise_from(config);
  double parameters[MIX_SCHEDULE_PARAMETERS] = {0};
  for (int i = 0; i < MIX_SCHEDULE_PARAMETERS && kind->parameters[i].name; i++) {
    const mix_schedule_parameter *row = &kind->parameters[i];
    const json_t *value = json_object_get(config, row->name);
    parameters[i] = row->default_value;
    if (json_is_number(value))
      parameters[i] = json_number_value(value);
    else if (!row->optional || (value && !json_is_null(value)))
      return mix_fail(MIX_VALUE_ERROR, "%s: %s is missing or no number", kind->class_name, row->name);
  }
  if (kind == &mix_schedule_cosine && json_is_number(json_object_get(config, "warmup_target"))) {
    if (parameters[4] <= 0)
      parameters[0] = parameters[3]; /* without warm-up steps, the decay starts at the target */
  } else if (kind == &mix_schedule_cosine) {
    parameters[4] = 0; /* without a target there is no warm-up */
  }
  bool flag = kind->flag && mix_json_boolean_or(config, kind->flag, false);
  return mix_schedule_new(kind, parameters, flag);
}

mix_schedule *mix_schedule_from_json(const json_t *json) {
  if (mix_failed()) return NULL;
  const char *class_name = json_string_value(json_object_get(json, "class_name"));
  const json_t *config = json_object_get(json, "config");
  if (!class_name || !json_is_object(config))
    return mix_fail(MIX_VALUE_ERROR, "schedule: expected {\"class_name\": ..., \"config\": {...}}");
  char known[256] = "";
  size_t used = 0;
  for (const mix_schedule_kind *const *kind = mix_schedule_kinds; *kind; kind++) {
    if (!strcmp((*kind)->class_name, class_name)) {
      mix_schedule *schedule = from_config(*kind, config);
      const char *name = json_string_value(json_object_get(config, "name"));
      if (schedule && name) schedule->name = mix_intern(name);
      return schedule;
    }
    if (used < sizeof known)
      used +=
          (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", (*kind)->class_name);
  }
  return mix_fail(MIX_VALUE_ERROR, "schedule: unknown schedule \"%.100s\"; known: %s", class_name, known);
}

const char *mix_schedule_serialize(mix_schedule *schedule, const mix_semantics *semantics) {
  if (mix_failed()) return NULL;
  if (!mix_is(schedule, &mix_schedule_class))
    return mix_fail(MIX_TYPE_ERROR, "schedule_serialize: expected a schedule");
  json_t *json = mix_schedule_to_json(schedule, mix_semantics_or_current(semantics));
  char *text = json ? mix_json_text(json) : NULL;
  json_decref(json);
  if (!text) return NULL;
  mix_free(schedule->text);
  return schedule->text = text;
}

mix_schedule *mix_schedule_deserialize(const char *text) {
  if (mix_failed()) return NULL;
  if (!text) return mix_fail(MIX_TYPE_ERROR, "schedule_deserialize: no text");
  json_t *json = mix_json_parse(text, "schedule_deserialize");
  mix_schedule *schedule = json ? mix_schedule_from_json(json) : NULL;
  json_decref(json);
  return schedule;
}
