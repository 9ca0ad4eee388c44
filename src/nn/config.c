/* What a class of the user writes into its config. */
#include "nn/config.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/fields.h"
#include <string.h>

static mix_status put(mix_config *config, const char *key, json_t *value) {
  if (mix_failed() || !config || !key) {
    json_decref(value);
    return mix_failed() ? mix_error() : mix_fail_status(MIX_TYPE_ERROR, "config: needs a config and a key");
  }
  return mix_json_set(config->object, key, value) ? MIX_OK : mix_error();
}

mix_status mix_config_text(mix_config *config, const char *key, const char *text) {
  return put(config, key, text ? json_string(text) : json_null());
}
mix_status mix_config_number(mix_config *config, const char *key, double value) {
  return put(config, key, json_real(value));
}
mix_status mix_config_integer(mix_config *config, const char *key, int64_t value) {
  return put(config, key, json_integer(value));
}
mix_status mix_config_boolean(mix_config *config, const char *key, bool value) {
  return put(config, key, json_boolean(value));
}

/* The object of a config that is asked for an entry; NULL with the error recorded. */
static json_t *asked(mix_config *config, const char *key) {
  if (mix_failed()) return NULL;
  if (!config || !key) return mix_fail_type("config: needs a config and a key");
  return config->object;
}

const char *mix_config_get_text(mix_config *config, const char *key, const char *default_value) {
  json_t *object = asked(config, key);
  return object ? mix_json_string_or(object, key, default_value) : default_value;
}
double mix_config_get_number(mix_config *config, const char *key, double default_value) {
  json_t *object = asked(config, key);
  return object ? mix_json_number_or(object, key, default_value) : default_value;
}
int64_t mix_config_get_integer(mix_config *config, const char *key, int64_t default_value) {
  json_t *object = asked(config, key);
  return object ? mix_json_integer_or(object, key, default_value) : default_value;
}
bool mix_config_get_boolean(mix_config *config, const char *key, bool default_value) {
  json_t *object = asked(config, key);
  return object ? mix_json_boolean_or(object, key, default_value) : default_value;
}

const char *mix_config_get_json(mix_config *config, const char *key) {
  json_t *object = asked(config, key), *value = object ? json_object_get(object, key) : NULL;
  char *text = value && !json_is_null(value) ? mix_json_text(value) : NULL;
  char *scoped = text ? mix_scoped_memory(strlen(text) + 1) : NULL;
  if (scoped) strcpy(scoped, text);
  mix_free(text);
  return scoped;
}

mix_status mix_config_json(mix_config *config, const char *key, const char *json) {
  if (mix_failed()) return mix_error();
  json_t *value = mix_json_parse(json, "config");
  return value ? put(config, key, value) : mix_error();
}
