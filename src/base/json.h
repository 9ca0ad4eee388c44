/* Configs as JSON: text, and members of objects. */
#ifndef MIX_BASE_JSON_H
#define MIX_BASE_JSON_H

#include <jansson.h>
#include <mixtape/api.h>

/* Stores `value` under `key` and takes ownership of it. False with the error recorded: out of memory, or
 * value NULL. */
bool mix_json_set(json_t *object, const char *key, json_t *value);
/* Appends `value` and takes ownership of it, also where it fails. False with the error recorded: out of
 * memory; false too after an earlier error. */
bool mix_json_append(json_t *list, json_t *value);
/* Text as Python's json.dumps(ensure_ascii=False) writes it: the shortest numbers that read back. Freed with
 * mix_free. */
char *mix_json_text(const json_t *json);
/* The same, only ASCII. */
char *mix_json_python_text(const json_t *json);
/* Parses text. NULL with a ValueError that quotes `call`. */
json_t *mix_json_parse(const char *text, const char *call);
/* {"module", "class_name", "config", "registered_name": null}, and without a module {"class_name", "config"}.
 * Takes ownership of the config; NULL gives NULL. */
json_t *mix_json_object(const char *module, const char *class_name, json_t *config);
/* What messages call it: "a string"; NULL: "missing". */
const char *mix_json_kind(const json_t *json);
/* Members of an object, with defaults. A member of another type is a TypeError (false / NULL with the error
 * pending). */
const char *mix_json_string_or(const json_t *object, const char *key, const char *default_value);
double mix_json_number_or(const json_t *object, const char *key, double default_value);
int64_t mix_json_integer_or(const json_t *object, const char *key, int64_t default_value);
bool mix_json_boolean_or(const json_t *object, const char *key, bool default_value);

/* Stores the text of `json`, which it consumes, in *owner, whose former text it frees. NULL with the error
 * recorded. */
const char *mix_json_keep_text(char **owner, json_t *json);

#endif
