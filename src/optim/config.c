/* Optimizers from names, command-line text and JSON configs, and as configs. The option rows of the class
 * serve all of them. */
#include "nn/config.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/number.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const mix_optimizer_class *find_class(const char *name, size_t length) {
  for (const mix_optimizer_class *const *class = mix_optimizer_classes; *class; class ++)
    if (strlen((*class)->name) == length && !strncasecmp((*class)->name, name, length)) return *class;
  char known[256] = "";
  size_t used = 0;
  for (const mix_optimizer_class *const *class = mix_optimizer_classes; *class && used < sizeof known;
       class ++)
    used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "",
                             (*class)->lower_case_name);
  return mix_fail(MIX_VALUE_ERROR, "optimizer: unknown optimizer \"%.*s\"; known: %s",
                  (int)(length > 100 ? 100 : length), name, known);
}

/* Row `index` of a class's options, the common ones first; NULL at the end. */
static const mix_option_row *row_at(const mix_optimizer_class *class, int index) {
  int common = 0;
  while (mix_common_options[common].name) common++;
  if (index < common) return &mix_common_options[index];
  index -= common;
  return index < MIX_MAX_OPTIONS && class->options[index].name ? &class->options[index] : NULL;
}

/* `rules`: of the generation whose arguments are known; NULL: all are, and an error is a ValueError. */
static const mix_option_row *find_row(const mix_optimizer_class *class, const char *name, size_t length,
                                      const mix_semantics *rules) {
  const mix_option_row *row;
  char known[512] = "";
  size_t used = 0;
  for (int i = 0; (row = row_at(class, i)); i++) {
    if (rules && row->known && !row->known(rules)) continue;
    if (strlen(row->name) == length && !strncmp(row->name, name, length)) return row;
    if (used < sizeof known)
      used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", row->name);
  }
  return mix_fail(rules ? rules->unknown_keyword_error : MIX_VALUE_ERROR,
                  "%s: unknown argument \"%.*s\"; known: %s", class->lower_case_name,
                  (int)(length > 100 ? 100 : length), name, known);
}

/* A zero is stored as MIX_ZERO or MIX_INT_ZERO: 0 in a field means the default. */
static void set_option(mix_optimizer_settings *settings, const mix_option_row *row, double value) {
  void *field = (char *)settings + row->offset;
  if (row->kind == MIX_OPTION_NUMBER)
    *(double *)field = value == 0 ? MIX_ZERO : value;
  else if (row->kind == MIX_OPTION_INTEGER)
    *(int64_t *)field = value == 0 ? MIX_INT_ZERO : (int64_t)value;
  else
    *(bool *)field = (value != 0) != (row->kind == MIX_OPTION_NEGATED);
}

static mix_optimizer *construct(const mix_optimizer_class *class, mix_optimizer_settings *settings,
                                const mix_semantics *semantics) {
  settings->common.size = sizeof *settings;
  settings->common.semantics = semantics;
  return mix_optimizer_new(class, settings, sizeof *settings);
}

mix_optimizer *mix_optimizer_from_name(const char *name) {
  if (mix_failed()) return NULL;
  if (!name) return mix_fail(MIX_TYPE_ERROR, "optimizer_from_name: no name");
  const mix_optimizer_class *class = find_class(name, strlen(name));
  mix_optimizer_settings settings = {0};
  return class ? construct(class, &settings, NULL) : NULL;
}

/* "0.1", "true", "none"; false with the error recorded. */
static bool parse_value(const mix_optimizer_class *class, const mix_option_row *row, const char *text,
                        size_t length, double *value) {
  static const struct {
    const char *word;
    double value;
  } words[] = {{"true", 1}, {"false", 0}, {"none", 0}, {"null", 0}};
  char buffer[64], *end;
  if (length > 0 && length < sizeof buffer) {
    memcpy(buffer, text, length);
    buffer[length] = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
      if (!strcasecmp(words[i].word, buffer) && (i < 2 ? row->kind >= MIX_OPTION_BOOLEAN : row->optional))
        return *value = words[i].value, true;
    *value = mix_number_read(buffer, &end);
    bool whole = *value == floor(*value) && fabs(*value) < 9e18; /* the range of int64_t */
    if (!*end && (row->kind == MIX_OPTION_NUMBER || whole) &&
        (row->kind < MIX_OPTION_BOOLEAN || *value == 0 || *value == 1))
      return true;
  }
  static const char *const kinds[] = {"a number", "an integer", "true or false", "true or false"};
  mix_fail(MIX_VALUE_ERROR, "%s: %s is \"%.*s\"; expected %s", class->lower_case_name, row->name,
           (int)(length > 60 ? 60 : length), text, kinds[row->kind]);
  return false;
}

mix_optimizer *mix_optimizer_from_text(const char *text, const mix_semantics *semantics) {
  if (mix_failed()) return NULL;
  if (!text) return mix_fail(MIX_TYPE_ERROR, "optimizer_from_text: no text");
  size_t length = strcspn(text, ":");
  const mix_optimizer_class *class = find_class(text, length);
  if (!class) return NULL;
  mix_optimizer_settings settings = {0};
  for (const char *at = text + length; *at;) {
    at++; /* ':' or ',' */
    size_t item = strcspn(at, ","), key = strcspn(at, "=");
    if (item == 0 && !at[item]) break;
    if (key >= item)
      return mix_fail(MIX_VALUE_ERROR, "%s: \"%.*s\" is not of the form key=value", class->lower_case_name,
                      (int)(item > 60 ? 60 : item), at);
    const mix_option_row *row = find_row(class, at, key, NULL);
    double value;
    if (!row || !parse_value(class, row, at + key + 1, item - key - 1, &value)) return NULL;
    set_option(&settings, row, value);
    at += item;
  }
  return construct(class, &settings, semantics);
}

/* ---- JSON ---- */

static json_t *option_json(const mix_optimizer_settings *settings, const mix_option_row *row) {
  const void *field = (const char *)settings + row->offset;
  double number = row->kind == MIX_OPTION_NUMBER    ? *(const double *)field
                  : row->kind == MIX_OPTION_INTEGER ? (double)*(const int64_t *)field
                                                    : 0;
  if (row->optional && number == 0) return json_null();
  if (row->kind == MIX_OPTION_NUMBER) return json_real(number);
  if (row->kind == MIX_OPTION_INTEGER) return json_integer(*(const int64_t *)field);
  return json_boolean(*(const bool *)field != (row->kind == MIX_OPTION_NEGATED));
}

static json_t *rate_json(mix_optimizer *optimizer) {
  const mix_schedule *schedule = optimizer->options.common.schedule;
  return schedule ? mix_schedule_to_json(schedule, optimizer->semantics)
                  : json_real(mix_optimizer_learning_rate(optimizer));
}

json_t *mix_optimizer_config_json(mix_optimizer *optimizer) {
  if (optimizer->inner)
    return mix_loss_scale_optimizer_config_json(optimizer, mix_optimizer_to_json(optimizer->inner));
  json_t *config = json_object();
  bool done = config && mix_json_set(config, "name", json_string(optimizer->name));
  const mix_option_row *row;
  for (int i = 0; done && (row = row_at(optimizer->class, i)); i++) {
    if (row->known && !row->known(optimizer->rules)) continue;
    json_t *value =
        !strcmp(row->name, "learning_rate") ? rate_json(optimizer) : option_json(&optimizer->options, row);
    if (json_is_null(value) && row->saved_as_null && !row->saved_as_null(optimizer->rules))
      json_decref(value);
    else
      done = mix_json_set(config, row->name, value);
  }
  if (done && optimizer->rules->config_says_not_legacy)
    done = mix_json_set(config, "jit_compile", json_false()) &&
           mix_json_set(config, "is_legacy_optimizer", json_false());
  if (done && !mix_failed()) return config;
  json_decref(config);
  return NULL;
}

json_t *mix_optimizer_to_json(mix_optimizer *optimizer) {
  json_t *config = mix_optimizer_config_json(optimizer);
  if (!config) return NULL;
  const char *name = mix_optimizer_class_name(optimizer);
  if (!optimizer->semantics->objects_have_module)
    return json_pack("{s:s,s:o}", "class_name", name, "config", config);
  const char *module = optimizer->options.common.legacy ? "keras.optimizers.legacy" : "keras.optimizers";
  if (optimizer->inner) module = optimizer->semantics->wrapper_module;
  return json_pack("{s:s,s:s,s:o,s:n}", "module", module, "class_name", name, "config", config,
                   "registered_name");
}

static mix_optimizer *plain_from_json(const mix_optimizer_class *class, const json_t *config,
                                      const mix_semantics *semantics, bool legacy) {
  static const char *const ignored[] = {"jit_compile", "is_legacy_optimizer"};
  const mix_semantics *rules = mix_semantics_or_current(semantics),
                      *keywords = legacy ? &mix_semantics_experimental : rules;
  mix_optimizer_settings settings = {.common.legacy = legacy};
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)config, key, value) {
    if (!strcmp(key, "name")) {
      settings.common.name = json_string_value(value);
      continue;
    }
    bool skip = false;
    if (!strcmp(key, "decay") && !keywords->learning_rate_decay) {
      if (!rules->decay_keyword_ignored)
        return mix_fail(MIX_VALUE_ERROR,
                        "%s: decay is no argument of tf_keras's new optimizers; expected a config of module "
                        "keras.optimizers.legacy, or an InverseTimeDecay as learning_rate",
                        class->lower_case_name);
      if (!json_is_null(value))
        mix_log_message(MIX_LOG_WARNING, "%s: decay is no argument of keras3's optimizers and is ignored",
                        class->lower_case_name);
      skip = true;
    }
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
      skip = skip || (!strcmp(key, ignored[i]) && rules->config_legacy_keys_ignored);
    if (skip) continue;
    const mix_option_row *row = find_row(class, key, strlen(key), keywords);
    if (!row) return NULL;
    if (!strcmp(key, "learning_rate") && json_is_integer(value) && rules->integer_learning_rate_refused)
      return mix_fail(MIX_VALUE_ERROR,
                      "%s: learning_rate is the integer %lld; expected a floating number, such as %lld.0",
                      class->lower_case_name, (long long)json_integer_value(value),
                      (long long)json_integer_value(value));
    if (!strcmp(key, "learning_rate") && json_is_object(value)) {
      if (!(settings.common.schedule = mix_schedule_from_json(value))) return NULL;
    } else if (json_is_boolean(value))
      set_option(&settings, row, json_is_true(value));
    else if (json_is_number(value))
      set_option(&settings, row, json_number_value(value));
    else if (json_is_null(value))
      set_option(&settings, row, 0);
    else
      return mix_fail(MIX_TYPE_ERROR, "%s: %s is neither a number nor a boolean", class->lower_case_name,
                      key);
  }
  return construct(class, &settings, semantics);
}

static mix_optimizer *from_config_json(const char *class_name, const json_t *config,
                                       const mix_semantics *semantics, bool legacy) {
  if (!json_is_object(config))
    return mix_fail(MIX_VALUE_ERROR, "optimizer: the config of \"%.100s\" is not an object", class_name);
  if (!strcasecmp(class_name, "LossScaleOptimizer") || !strcasecmp(class_name, "LossScaleOptimizerV1") ||
      !strcasecmp(class_name, "LossScaleOptimizerV3"))
    return mix_loss_scale_optimizer_from_json(config, semantics, mix_optimizer_from_json);
  const mix_optimizer_class *class = find_class(class_name, strlen(class_name));
  return class ? plain_from_json(class, config, semantics, legacy) : NULL;
}

mix_optimizer *mix_optimizer_from_json(const json_t *json, const mix_semantics *semantics) {
  if (mix_failed()) return NULL;
  if (json_is_string(json)) {
    const mix_optimizer_class *class = find_class(json_string_value(json), strlen(json_string_value(json)));
    mix_optimizer_settings settings = {0};
    return class ? construct(class, &settings, semantics) : NULL;
  }
  const char *class_name = json_string_value(json_object_get(json, "class_name"));
  const char *module = json_string_value(json_object_get(json, "module"));
  if (!class_name)
    return mix_fail(MIX_VALUE_ERROR, "optimizer: expected {\"class_name\": ..., \"config\": {...}}");
  const json_t *config = json_object_get(json, "config");
  bool legacy = module && strstr(module, "legacy");
  /* tf_keras writes is_legacy_optimizer into each config of its new family. A config without it is legacy,
   * here only if it also has a decay. */
  if (mix_semantics_or_current(semantics)->config_says_not_legacy && json_object_get(config, "decay"))
    legacy = legacy || !json_object_get(config, "is_legacy_optimizer");
  return from_config_json(class_name, config, semantics, legacy);
}

mix_optimizer *mix_optimizer_from_config(const char *class_name, const char *text,
                                         const mix_semantics *semantics) {
  if (mix_failed()) return NULL;
  if (!class_name || !text)
    return mix_fail(MIX_TYPE_ERROR, "optimizer_from_config: expected a class name and a config");
  json_t *config = mix_json_parse(text, "optimizer_from_config");
  mix_optimizer *optimizer = config ? from_config_json(class_name, config, semantics, false) : NULL;
  json_decref(config);
  return optimizer;
}

mix_optimizer *mix_optimizer_deserialize(const char *text, const mix_semantics *semantics) {
  if (mix_failed()) return NULL;
  if (!text) return mix_fail(MIX_TYPE_ERROR, "optimizer_deserialize: no text");
  json_t *json = mix_json_parse(text, "optimizer_deserialize");
  mix_optimizer *optimizer = json ? mix_optimizer_from_json(json, semantics) : NULL;
  json_decref(json);
  return optimizer;
}

/* Stores the JSON as text in the optimizer. Takes the reference to `json`. */
static const char *keep_text(mix_optimizer *optimizer, json_t *json) {
  char *text = json ? mix_json_text(json) : NULL;
  json_decref(json);
  if (!text) return NULL;
  mix_free(optimizer->text);
  return optimizer->text = text;
}

const char *mix_optimizer_get_config(mix_optimizer *optimizer) {
  return mix_given(optimizer, "optimizer_get_config", "an optimizer")
             ? keep_text(optimizer, mix_optimizer_config_json(optimizer))
             : NULL;
}
const char *mix_optimizer_serialize(mix_optimizer *optimizer) {
  return mix_given(optimizer, "optimizer_serialize", "an optimizer")
             ? keep_text(optimizer, mix_optimizer_to_json(optimizer))
             : NULL;
}
