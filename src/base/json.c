/* Configs as JSON. */
#include "base/json.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/float_modes.h"
#include "base/json_special.h"
#include "base/number.h"
#include "base/text.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* jansson gives no reason; malloc gives ENOMEM. What succeeds leaves errno as it was: it may be the reason
 * why the value that comes next is NULL. */
static bool stored(int errno_before) { return errno = errno_before, true; }
static bool not_stored(const void *container, const char *what) {
  if (!container || errno == ENOMEM)
    mix_fail_memory("a config");
  else
    mix_fail_value(
        "config: '%.60s' or its value cannot be JSON: a number that is not finite, or a text that is not "
        "UTF-8",
        what);
  return false;
}

bool mix_json_set(json_t *object, const char *key, json_t *value) {
  const bool whole = value && object;
  const int before = errno;
  if (whole) errno = 0;
  if (whole && !json_object_set_new(object, key, value)) return stored(before);
  if (!object && value) json_decref(value);
  return not_stored(object, key);
}

bool mix_json_append(json_t *list, json_t *value) {
  if (mix_failed()) return json_decref(value), false;
  const int before = errno;
  if (value && list) errno = 0;
  return json_array_append_new(list, value) == 0 ? stored(before) : not_stored(list, "an item");
}

bool mix_json_update(json_t *object, json_t *members) {
  const int before = errno;
  errno = 0;
  return json_object_update(object, members) == 0 ? stored(before)
                                                  : not_stored(members ? object : NULL, "a member");
}

bool mix_json_extend(json_t *list, json_t *items) {
  const int before = errno;
  errno = 0;
  return json_array_extend(list, items) == 0 ? stored(before) : not_stored(items ? list : NULL, "an item");
}

/* jansson's own copies go on where an item is lost. */
json_t *mix_json_copy(const json_t *json) {
  json_t *copy = json_deep_copy((json_t *)json);
  if (copy && json_equal(copy, (json_t *)json)) return mix_json_whole(copy);
  json_decref(copy);
  return mix_json_whole(NULL);
}

json_t *mix_json_shallow_copy(json_t *object) {
  json_t *copy = json_object();
  mix_json_update(copy, object);
  return mix_json_whole(copy);
}

json_t *mix_json_whole(json_t *json) {
  if (json && !mix_failed()) return json;
  json_decref(json);
  if (!mix_failed()) mix_fail_memory("a config");
  return NULL;
}

json_t *mix_json_name(const char *text) {
  const int before = errno;
  errno = 0;
  json_t *string = json_string(text);
  if (!string && errno != ENOMEM) string = json_string("(not UTF-8)");
  if (string) errno = before;
  return string;
}

json_t *mix_json_real(double value) {
  if (isnan(value)) return json_string("nan");
  return isinf(value) ? json_string(value > 0 ? "inf" : "-inf") : json_real(value);
}

/* Python's repr: an exponent of two digits from 1e16 and below 1e-4, else a point. */
static void put_real(mix_text *text, double value) {
  char digits[40];
  int precision = 0;
  do mix_number_write(digits, sizeof digits, 'e', precision, value);
  while (mix_number_read(digits, NULL) != value && ++precision < 17);
  int exponent = atoi(strchr(digits, 'e') + 1), places = precision - exponent;
  if (exponent >= -4 && exponent < 16)
    mix_number_write(digits, sizeof digits, 'f', places > 1 ? places : 1, value);
  mix_text_put(text, "%s", digits);
}

static void put_json(mix_text *text, const json_t *json, size_t flags);

static void put_dumped(mix_text *text, const json_t *json, size_t flags) {
  MIX_OWN_FLOAT_MODES;
  char *dumped = json ? json_dumps(json, JSON_ENCODE_ANY | flags) : NULL;
  if (!dumped) mix_fail_memory("a config's text");
  text->failed |= !dumped;
  mix_text_put(text, "%s", dumped ? dumped : "");
  free(dumped); /* jansson's own allocation */
}

static void put_object(mix_text *text, const json_t *object, size_t flags) {
  const char *key, *between = "";
  json_t *value;
  mix_text_put(text, "{");
  json_object_foreach((json_t *)object, key, value) {
    json_t *name = json_string(key);
    mix_text_put(text, "%s", between);
    put_dumped(text, name, flags);
    mix_text_put(text, ": ");
    put_json(text, value, flags);
    json_decref(name);
    between = ", ";
  }
  mix_text_put(text, "}");
}

static void put_json(mix_text *text, const json_t *json, size_t flags) {
  double special;
  if (json_is_object(json)) {
    put_object(text, json, flags);
  } else if (json_is_array(json)) {
    mix_text_put(text, "[");
    for (size_t i = 0; i < json_array_size(json); i++) {
      if (i) mix_text_put(text, ", ");
      put_json(text, json_array_get(json, i), flags);
    }
    mix_text_put(text, "]");
  } else if (json_is_real(json)) {
    put_real(text, json_real_value(json));
  } else if (mix_json_special(json, &special)) {
    mix_text_put(text, "%s", json_string_value(json) + 1);
  } else {
    put_dumped(text, json, flags);
  }
}

static char *text_of(const json_t *json, size_t flags) {
  mix_text text = {.grows = true};
  if (!json) return NULL;
  put_json(&text, json, flags);
  if (!text.failed) return text.text;
  mix_free(text.text);
  return NULL;
}

char *mix_json_text(const json_t *json) { return text_of(json, 0); }
char *mix_json_python_text(const json_t *json) { return text_of(json, JSON_ENSURE_ASCII); }

bool mix_json_has_room(const char *text) { return mix_has_room(2 * strlen(text) + 1); }

/* A short text of empty objects becomes a hundred times as much memory, so that lists and objects count eight
 * times: at most half a GiB. A model of three thousand layers stays below two fifths of that. */
bool mix_json_has_few_values(const char *text, const char *call) {
  enum { MAX_VALUES = 1 << 22 };
  int64_t count = 0;
  for (; *text; text++) count += *text == '{' || *text == '[' ? 8 : *text == ',' || *text == ':';
  if (count <= MAX_VALUES) return true;
  return mix_fail_format("%s has too many values to be one", call);
}

/* ---- numbers that are not finite: strings that begin with MARK, since jansson has no such numbers ---- */

#define MARK "\x1f"
static const struct {
  const char *token, *value;
  double number;
} specials[] = {{"Infinity", MARK "Infinity", INFINITY},
                {"-Infinity", MARK "-Infinity", -INFINITY},
                {"NaN", MARK "NaN", NAN}};
enum { SPECIALS = sizeof specials / sizeof *specials };

bool mix_json_special(const json_t *value, double *number) {
  const char *text = json_string_value(value);
  if (!text || *text != *MARK) return false;
  for (int i = 0; i < SPECIALS; i++)
    if (!strcmp(text, specials[i].value)) return *number = specials[i].number, true;
  return false;
}

/* The text with such tokens outside its strings as those strings; NULL: it has none, or no memory. */
static char *with_strings(const char *text) {
  if (!strstr(text, "Infinity") && !strstr(text, "NaN")) return NULL;
  mix_text out = {.grows = true};
  bool inside = false;
  for (const char *p = text; *p && !out.failed;) {
    int found = -1;
    for (int i = 0; i < SPECIALS && !inside; i++)
      if (!strncmp(p, specials[i].token, strlen(specials[i].token))) found = i;
    if (found >= 0) {
      mix_text_put(&out, "\"\\u001f%s\"", specials[found].token);
      p += strlen(specials[found].token);
      continue;
    }
    const int length = inside && *p == '\\' && p[1] ? 2 : 1;
    if (*p == '"') inside = !inside;
    mix_text_put(&out, "%.*s", length, p);
    p += length;
  }
  if (!out.failed) return out.text;
  mix_free(out.text);
  return NULL;
}

static json_t *parse(const char *text, const char *call) {
  MIX_OWN_FLOAT_MODES;
  json_error_t error;
  errno = 0;
  json_t *json = json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
  /* jansson calls a token invalid, or says nothing, where it has no memory. */
  if (!json && errno == ENOMEM) return mix_fail_memory("JSON");
  if (!json) return mix_fail_value("%s: not valid JSON, line %d: %s", call, error.line, error.text);
  return json;
}

json_t *mix_json_parse(const char *text, const char *call) {
  if (!text) return mix_fail_type("%s: got no text; expected JSON", call);
  if (!mix_json_has_room(text)) return NULL;
  char *own = with_strings(text);
  json_t *json = mix_failed() ? NULL : parse(own ? own : text, call);
  mix_free(own);
  return json;
}

json_t *mix_json_object(const char *module, const char *class_name, json_t *config) {
  if (!config) return NULL;
  if (!module) return json_pack("{s:s,s:o}", "class_name", class_name, "config", config);
  return json_pack("{s:s,s:s,s:o,s:n}", "module", module, "class_name", class_name, "config", config,
                   "registered_name");
}

bool mix_json_is_class(const json_t *json, const char *class_name) {
  const char *name = json_string_value(json_object_get(json, "class_name"));
  return name && !strcmp(name, class_name);
}

const char *mix_json_kind(const json_t *json) {
  static const char *const kinds[] = {"an object",     "an array", "a string", "an integer",
                                      "a real number", "true",     "false",    "null"};
  double special;
  if (mix_json_special(json, &special)) return "a number that is not finite";
  return json ? kinds[json_typeof(json)] : "missing";
}

const char *mix_json_given(const json_t *json, char text[MIX_JSON_GIVEN]) {
  if (!json_is_integer(json)) return mix_json_kind(json);
  snprintf(text, MIX_JSON_GIVEN, "%lld", (long long)json_integer_value(json));
  return text;
}

/* The member, or NULL where it is absent or null. */
static json_t *member(const json_t *object, const char *key) {
  json_t *value = json_object_get(object, key);
  return json_is_null(value) ? NULL : value;
}

const char *mix_json_string_or(const json_t *object, const char *key, const char *default_value) {
  json_t *value = member(object, key);
  double special;
  if (!value) return default_value;
  if (json_is_string(value) && !mix_json_special(value, &special)) return json_string_value(value);
  return mix_fail_type("config: \"%s\" is %s; expected a string", key, mix_json_kind(value));
}

double mix_json_number_or(const json_t *object, const char *key, double default_value) {
  json_t *value = member(object, key);
  if (!value) return default_value;
  if (json_is_number(value)) return json_number_value(value);
  mix_fail_type("config: \"%s\" is %s; expected a number", key, mix_json_kind(value));
  return default_value;
}

int64_t mix_json_integer_or(const json_t *object, const char *key, int64_t default_value) {
  json_t *value = member(object, key);
  if (!value) return default_value;
  if (json_is_integer(value)) return json_integer_value(value);
  mix_fail_type("config: \"%s\" is %s; expected an integer", key, mix_json_kind(value));
  return default_value;
}

bool mix_json_boolean_or(const json_t *object, const char *key, bool default_value) {
  json_t *value = member(object, key);
  if (!value) return default_value;
  if (json_is_boolean(value)) return json_is_true(value);
  mix_fail_type("config: \"%s\" is %s; expected true or false", key, mix_json_kind(value));
  return default_value;
}

bool mix_json_integer_within(const json_t *value, int64_t low, int64_t high, int64_t *number) {
  const json_int_t given = json_integer_value(value);
  if (!json_is_integer(value) || given < low || given > high) return false;
  if (number) *number = given;
  return true;
}

bool mix_json_integer_read(const json_t *value, const char *name, const char *expected, int64_t low,
                           int64_t high, int64_t *number) {
  if (mix_json_integer_within(value, low, high, number)) return true;
  if (!json_is_integer(value))
    mix_fail_type("config: \"%s\" is %s; expected %s", name, mix_json_kind(value), expected);
  else
    mix_fail_value("config: \"%s\" is %lld; expected an integer from %lld to %lld", name,
                   (long long)json_integer_value(value), (long long)low, (long long)high);
  return false;
}

bool mix_json_int_read(const json_t *value, const char *name, const char *expected, int low, int high,
                       int *number) {
  int64_t wide;
  const bool good = mix_json_integer_read(value, name, expected, low, high, &wide);
  if (good) *number = (int)wide;
  return good;
}

const char *mix_json_keep_text(char **owner, json_t *json) {
  char *text = mix_json_text(json = mix_json_whole(json));
  json_decref(json);
  if (!text) return NULL;
  mix_free(*owner);
  return *owner = text;
}
