/* Configs as JSON: the builder behind mix_config, and readers for the other direction. */
#ifndef MIX_NN_CONFIG_H
#define MIX_NN_CONFIG_H

#include <jansson.h>
#include <mixtape/layer.h>

struct mix_config {
  json_t *object;
};
/* Puts `value` under `key` and takes the reference over; false with the error recorded (out of memory, or value NULL). */
bool mix_json_set(json_t *object, const char *key, json_t *value);
/* Compact text, to be freed with mix_free. Numbers keep 17 digits. */
char *mix_json_text(const json_t *json);
/* Parses; NULL with a ValueError that quotes `call`. */
json_t *mix_json_parse(const char *text, const char *call);
/* Members of an object with defaults; a member of another kind is a TypeError (false / NULL with the error pending). */
const char *mix_json_string_or(const json_t *object, const char *key, const char *standard);
double mix_json_number_or(const json_t *object, const char *key, double standard);
int64_t mix_json_integer_or(const json_t *object, const char *key, int64_t standard);
bool mix_json_boolean_or(const json_t *object, const char *key, bool standard);

#endif
