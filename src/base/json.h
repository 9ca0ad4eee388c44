/* Configs as JSON: text, and members of objects. What is left out because memory ran out must not go unseen:
 * values are stored by the functions here, or by jansson's where the caller looks at the result
 * (tools/check_rules). Those here leave errno as it was where they succeed. */
#pragma once

#include <jansson.h>
#include <mixtape/api.h>

/* Stores `value` under `key` and takes ownership of it, also where it fails. False with the error recorded:
 * out of memory, also of the caller who has no object or value; or a value that JSON does not have. */
bool mix_json_set(json_t *object, const char *key, json_t *value);
/* Appends `value` in the same way; false too after an earlier error. */
bool mix_json_append(json_t *list, json_t *value);
/* Stores all members, or appends all items, of another, which stays the caller's. False with the error
 * recorded. */
bool mix_json_update(json_t *object, json_t *members);
bool mix_json_extend(json_t *list, json_t *items);
/* A copy of all of it. NULL with the error recorded. */
json_t *mix_json_copy(const json_t *json);
/* An object with the members of another, which both share. NULL with the error recorded. */
json_t *mix_json_shallow_copy(json_t *object);
/* `json` at the end of its making. After an error it is released: NULL with the error recorded, which is
 * out of memory where `json` is NULL without a reason. */
json_t *mix_json_whole(json_t *json);
/* Text as Python's json.dumps(ensure_ascii=False) writes it: the shortest numbers that read back. Freed with
 * mix_free. */
char *mix_json_text(const json_t *json);
/* The same, only ASCII. */
char *mix_json_python_text(const json_t *json);
/* Is there room to parse text? Else the error is recorded. jansson 2.14 writes outside its memory where a
 * token that it saves does not fit. */
bool mix_json_has_room(const char *text);
/* Is it no more than a model's config may be? Else the error is recorded: a FormatError of `call`. */
bool mix_json_has_few_values(const char *text, const char *call);
/* Parses text. NULL with a ValueError that quotes `call`. */
json_t *mix_json_parse(const char *text, const char *call);
/* A string; where the text is not UTF-8, as a caller's name may be, "(not UTF-8)". NULL: out of memory. */
json_t *mix_json_name(const char *text);
/* A number; one that is not finite as the string "nan", "inf" or "-inf". NULL: out of memory. */
json_t *mix_json_real(double value);
/* {"module", "class_name", "config", "registered_name": null}, and without a module {"class_name", "config"}.
 * Takes ownership of the config; NULL gives NULL. */
json_t *mix_json_object(const char *module, const char *class_name, json_t *config);
/* Is it the object of a class of that name? */
bool mix_json_is_class(const json_t *json, const char *class_name);
/* What messages call it: "a string"; NULL: "missing". */
const char *mix_json_kind(const json_t *json);
/* The same, but an integer by its digits: where another one is expected, "an integer" says nothing. */
#define MIX_JSON_GIVEN 32
const char *mix_json_given(const json_t *json, char text[MIX_JSON_GIVEN]);
/* Members of an object, with defaults. A member of another type is a TypeError (false / NULL with the error
 * pending). */
const char *mix_json_string_or(const json_t *object, const char *key, const char *default_value);
double mix_json_number_or(const json_t *object, const char *key, double default_value);
int64_t mix_json_integer_or(const json_t *object, const char *key, int64_t default_value);
bool mix_json_boolean_or(const json_t *object, const char *key, bool default_value);
/* Is it an integer from `low` to `high`? Stores it then, unless `number` is NULL. All readers of integers
 * that have a range ask this. */
bool mix_json_integer_within(const json_t *value, int64_t low, int64_t high, int64_t *number);
/* The reader of such integers in configs. False with the error recorded: a TypeError that asks for
 * `expected` where the value is no integer, a ValueError where it is below `low` or above `high`. Messages
 * call the value `name`. */
bool mix_json_integer_read(const json_t *value, const char *name, const char *expected, int64_t low,
                           int64_t high, int64_t *number);
/* The same for what is kept as an int. */
bool mix_json_int_read(const json_t *value, const char *name, const char *expected, int low, int high,
                       int *number);

/* Stores the text of `json`, which it consumes, in *owner, whose former text it frees. NULL with the error
 * recorded, which is out of memory where `json` is NULL without a reason. */
const char *mix_json_keep_text(char **owner, json_t *json);
