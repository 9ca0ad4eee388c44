/* What a class of the user writes into its config. */
#include "nn/config.h"
#include "base/error.h"

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

mix_status mix_config_json(mix_config *config, const char *key, const char *json) {
  if (mix_failed()) return mix_error();
  json_t *value = mix_json_parse(json, "config");
  return value ? put(config, key, value) : mix_error();
}
