/* Schedules as JSON, in the form of keras.optimizers.schedules.serialize:
 * {"class_name": "ExponentialDecay", "config": {...}}. */
#include "base/alloc.h"
#include "base/did_you_mean.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "optim/schedule.h"
#include <math.h>
#include <string.h>

json_t *mix_schedule_to_json(const mix_schedule *schedule, const mix_semantics *semantics) {
  if (!schedule->kind)
    return mix_fail_type(
        "schedule_serialize: a schedule that is a C function has no config; save without the optimizer");
  mix_schedule_options options = schedule->options;
  if (!options.name && semantics->schedules_named) options.name = schedule->kind->default_name;
  return mix_json_object(
      semantics->objects_have_module ? "keras.optimizers.schedules" : NULL, schedule->kind->class_name,
      mix_fields_write(&(mix_fields){schedule->kind->fields, mix_schedule_name_field}, &options, NULL));
}

static mix_schedule *from_config(const mix_schedule_kind *kind, const json_t *config) {
  mix_fields fields = {kind->fields, mix_schedule_name_field, kind->class_name, .refusal = MIX_VALUE_ERROR};
  mix_schedule_options o = {0};
  if (!mix_fields_check(&fields, config) || !mix_fields_read(&fields, config, &o) ||
      !mix_fields_resolve(&fields, &o))
    return NULL;
  if (kind == &mix_schedule_piecewise && o.values.count != o.boundaries.count + 1)
    return mix_fail_value("%s: %d boundaries and %d values; expected one value more than boundaries",
                          kind->class_name, o.boundaries.count, o.values.count);
  /* Without warm-up steps, the decay starts at the target; without a target, there is no warm-up. */
  if (kind == &mix_schedule_cosine && isinf(o.parameters[3]))
    o.parameters[4] = 0;
  else if (kind == &mix_schedule_cosine && o.parameters[4] <= 0)
    o.parameters[0] = o.parameters[3], o.parameters[3] = INFINITY;
  return mix_schedule_new(kind, &o);
}

mix_schedule *mix_schedule_from_json(const json_t *json) {
  if (mix_failed()) return NULL;
  const char *class_name = json_string_value(json_object_get(json, "class_name"));
  const json_t *config = json_object_get(json, "config");
  if (!class_name || !json_is_object(config))
    return mix_fail_value("schedule: expected {\"class_name\": ..., \"config\": {...}}");
  char list[256] = "", hint[100];
  mix_text known = {.text = list, .size = sizeof list};
  mix_did_you_mean nearest = {.word = class_name};
  for (const mix_schedule_kind *const *kind = mix_schedule_kinds; *kind; kind++) {
    if (!strcmp((*kind)->class_name, class_name)) return from_config(*kind, config);
    mix_did_you_mean_try(&nearest, (*kind)->class_name);
    mix_text_put(&known, "%s%s", known.used ? ", " : "", (*kind)->class_name);
  }
  return mix_fail_value("schedule: unknown schedule \"%.100s\"%s; known: %s", class_name,
                        mix_did_you_mean_hint(&nearest, hint, sizeof hint), list);
}

const char *mix_schedule_serialize(mix_schedule *schedule, const mix_semantics *semantics) {
  if (mix_failed()) return NULL;
  if (!mix_is(schedule, &mix_schedule_class)) return mix_fail_type("schedule_serialize: expected a schedule");
  return mix_json_keep_text(&schedule->text,
                            mix_schedule_to_json(schedule, mix_semantics_or_current(semantics)));
}

mix_schedule *mix_schedule_deserialize(const char *text) {
  if (mix_failed()) return NULL;
  if (!text) return mix_fail_type("schedule_deserialize: no text");
  json_t *json = mix_json_parse(text, "schedule_deserialize");
  mix_schedule *schedule = json ? mix_schedule_from_json(json) : NULL;
  json_decref(json);
  return schedule;
}
