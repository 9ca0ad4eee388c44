#include "base/fields.h"
#include "base/alloc.h"
#include "base/did_you_mean.h"
#include "base/error.h"
#include "base/float_modes.h"
#include "base/json.h"
#include "base/number.h"
#include "base/object.h"
#include "base/text.h"
#include <math.h>
#include <string.h>
#include <strings.h>

/* ---- rows ---- */

/* Row `index`, the common ones first; NULL at the end. */
static const mix_field_row *row_at(const mix_fields *fields, int index) {
  for (const mix_field_row *row = fields->common; row && row->name; row++)
    if (!index--) return row;
  for (const mix_field_row *row = fields->rows; row && row->name; row++)
    if (!index--) return row;
  return NULL;
}

static bool is_used(const mix_fields *fields, const mix_field_row *row) {
  for (const mix_field_row *common = fields->common; common && common->name; common++)
    if (common == row) return true;
  const size_t *offset = fields->in_use;
  while (offset && *offset && *offset != row->offset) offset++;
  return !offset || *offset;
}

/* The same among the rows in use. */
static const mix_field_row *used_at(const mix_fields *fields, int index) {
  const mix_field_row *row;
  for (int i = 0; (row = row_at(fields, i)); i++)
    if (is_used(fields, row) && !index--) return row;
  return NULL;
}

static mix_field field_of(const mix_fields *fields, const mix_field_row *row, const void *options) {
  return (mix_field){.row = row,
                     .call = fields->call,
                     .name = row->name,
                     .rules = fields->rules,
                     .options = (void *)options,
                     .value = mix_field_at(row, options),
                     .other = row->other ? (char *)options + row->other : NULL};
}

bool mix_field_given(const mix_field_row *row, const void *options) {
  static const char none[128];
  if (row->kind == &mix_field_flagged) return *((const bool *)options + row->other);
  return memcmp(mix_field_at(row, options), none, row->kind->size) != 0;
}

void *mix_field_mistyped(const mix_field *field, const json_t *value) {
  return mix_fail_type("config: \"%s\" is %s; expected %s", field->name, mix_json_kind(value),
                       field->row->kind->expected);
}

bool mix_field_read_integer(const mix_field *field, const json_t *value, int64_t low, int64_t high,
                            int64_t *number) {
  return mix_json_integer_read(value, field->name, field->row->kind->expected, low, high, number);
}

bool mix_field_read_axis(const mix_field *field, const json_t *value, int *axis) {
  return mix_json_int_read(value, field->name, field->row->kind->expected, -MIX_MAX_RANK, MIX_MAX_RANK - 1,
                           axis);
}

/* Moves the value that is given as one number to where the others are. */
static bool move_one(const mix_fields *fields, const mix_field_row *row, void *options) {
  double real;
  int64_t integer;
  char *one = (char *)options + row->one;
  memcpy(&real, one, sizeof real);
  memcpy(&integer, one, sizeof integer);
  if (!row->one || !integer) return true;
  if (mix_field_given(row, options))
    return mix_fail_type("%s: %s is given twice; expected one number for all, or the others", fields->call,
                         row->name);
  if (row->one_is_real && !isfinite(real))
    return mix_fail_value("%s: %s is %g; expected a finite number", fields->call, row->name, real);
  if (!row->one_is_real && ((integer < 0 && integer != MIX_INT_ZERO) || integer > MIX_FIELD_MAX_SIZE))
    return mix_fail_value("%s: %s is %lld; expected %s", fields->call, row->name, (long long)integer,
                          integer < 0 ? "0 or more" : "a smaller number");
  json_t *value = mix_json_whole(row->one_is_real ? json_real(real == MIX_ZERO ? 0 : real)
                                                  : json_integer(integer == MIX_INT_ZERO ? 0 : integer));
  if (!value) return false;
  memset(one, 0, sizeof real);
  const mix_field field = field_of(fields, row, options);
  const bool read = row->kind->read(&field, value);
  json_decref(value);
  return read;
}

static bool resolve(const mix_fields *fields, const mix_field_row *row, void *options) {
  const mix_field field = field_of(fields, row, options);
  if (!move_one(fields, row, options)) return false;
  if (row->required && !mix_field_given(row, options))
    mix_fail(fields->refusal ? fields->refusal : MIX_TYPE_ERROR, "%s: %s is missing; expected %s%s",
             fields->call, row->name, row->kind->expected,
             row->kind == &mix_field_number ? ", MIX_ZERO for zero" : "");
  else if (!mix_failed() && row->kind->resolve)
    row->kind->resolve(&field);
  return !mix_failed();
}

static void release(const mix_fields *fields, int count, void *options) {
  for (int i = 0; i < count; i++) {
    const mix_field field = field_of(fields, row_at(fields, i), options);
    if (field.row->kind->release) field.row->kind->release(&field);
  }
}

static int count_of(const mix_fields *fields) {
  int count = 0;
  while (row_at(fields, count)) count++;
  return count;
}

bool mix_fields_resolve(const mix_fields *fields, void *options) {
  const mix_field_row *row;
  for (int i = 0; (row = row_at(fields, i)); i++)
    if (!resolve(fields, row, options)) return release(fields, i, options), false;
  return true;
}

void mix_fields_release(const mix_fields *fields, void *options) {
  release(fields, count_of(fields), options);
}

/* ---- JSON ---- */

static bool has_rule(const mix_fields *fields, size_t rule) {
  return rule == MIX_ALWAYS || (rule && fields->rules && *((const bool *)fields->rules + rule));
}

/* Do configs of the generation have the field? */
static bool is_known(const mix_fields *fields, const mix_field_row *row) {
  return (!row->only || has_rule(fields, row->only)) && !has_rule(fields, row->except);
}

static void *unexpected(const mix_fields *fields, const char *name, bool known) {
  const mix_field_row *row;
  char list[512] = "none", hint[100];
  mix_text names = {.text = list, .size = sizeof list};
  mix_did_you_mean nearest = {.word = name};
  for (int i = 0; (row = used_at(fields, i)); i++) {
    if (known && !is_known(fields, row)) continue;
    mix_did_you_mean_try(&nearest, row->name);
    if (row->alias) mix_did_you_mean_try(&nearest, row->alias);
    mix_text_put(&names, "%s%s", names.used ? ", " : "", row->name);
  }
  return mix_fail(fields->refusal ? fields->refusal : MIX_VALUE_ERROR,
                  "%s: unexpected argument '%.60s'%s; known: %s", fields->call, name,
                  mix_did_you_mean_hint(&nearest, hint, sizeof hint), list);
}

/* The row of that name that is in use; NULL with an error that lists the names. `known`: only those that
 * configs of the generation have. */
static const mix_field_row *find(const mix_fields *fields, const char *name, bool known) {
  const mix_field_row *row;
  for (int i = 0; (row = used_at(fields, i)); i++) {
    if (known && !is_known(fields, row)) continue;
    if (!strcmp(row->name, name) || (row->alias && !strcmp(row->alias, name))) return row;
  }
  return unexpected(fields, name, known);
}

bool mix_fields_check(const mix_fields *fields, const json_t *config) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)config, key, value) if (!find(fields, key, true)) return false;
  return true;
}

static bool write(const mix_fields *fields, const mix_field_row *row, const void *options, json_t *config) {
  if (!row->kind->write || !is_known(fields, row)) return true;
  const mix_field field = field_of(fields, row, options);
  json_t *value = row->kind->write(&field);
  const char *name = has_rule(fields, row->renamed) ? row->alias : row->name;
  if (!json_is_null(value) || !has_rule(fields, row->omit_none)) return mix_json_set(config, name, value);
  json_decref(value);
  return true;
}

json_t *mix_fields_write(const mix_fields *fields, const void *options, json_t *config) {
  const mix_field_row *row;
  bool good = config || (config = json_object());
  if (!good) mix_fail_memory("a config");
  for (int i = 0; good && (row = used_at(fields, i)); i++) good = write(fields, row, options, config);
  if (good) return config;
  json_decref(config);
  return NULL;
}

/* ---- what another generation lacks ---- */

static bool has_name(const mix_fields *fields, const char *name) {
  const mix_field_row *row;
  for (int i = 0; (row = used_at(fields, i)); i++)
    if (is_known(fields, row) && !strcmp(row->name, name)) return true;
  return false;
}

static bool is_default(const mix_fields *fields, const mix_field_row *row, const void *options, size_t size) {
  MIX_OWN_FLOAT_MODES;
  void *defaults = mix_scoped_memory(size);
  const mix_field given = field_of(fields, row, options), none = field_of(fields, row, defaults);
  if (!defaults || (row->kind->resolve && !row->kind->resolve(&none))) return false;
  json_t *a = row->kind->write(&given), *b = row->kind->write(&none);
  json_t *stated = row->text ? json_loads(row->text, JSON_DECODE_ANY, NULL) : NULL;
  const bool same = json_equal(a, b) || (stated && json_equal(a, stated));
  json_decref(a);
  json_decref(b);
  json_decref(stated);
  if (row->kind->release) row->kind->release(&none);
  return same;
}

const char *mix_fields_lost(const mix_fields *fields, const mix_semantics *other, const void *options,
                            size_t options_size) {
  mix_fields theirs = *fields;
  const mix_field_row *row;
  theirs.rules = other;
  for (int i = 0; (row = used_at(fields, i)) && !mix_failed(); i++) {
    if (!row->kind->write || !row->kind->size || row->kind == &mix_field_seed || !is_known(fields, row))
      continue;
    if (!has_name(&theirs, row->name) && !is_default(fields, row, options, options_size))
      return mix_failed() ? NULL : row->name;
  }
  return NULL;
}

bool mix_fields_read(const mix_fields *fields, const json_t *config, void *options) {
  const mix_field_row *row;
  for (int i = 0; (row = used_at(fields, i)) && !mix_failed(); i++) {
    mix_field field = field_of(fields, row, options);
    if (row->alias && !json_object_get(config, row->name)) field.name = row->alias;
    const json_t *value = json_object_get(config, field.name);
    if (value && row->kind->read) row->kind->read(&field, value);
  }
  return !mix_failed();
}

/* ---- text ---- */

/* "key=value" becomes a member of the config. */
static bool parse_item(const mix_fields *fields, char *item, json_t *config) {
  char *equals = strchr(item, '=');
  if (!equals || equals == item)
    return mix_fail_value("%s: \"%.60s\" is not of the form key=value", fields->call, item);
  *equals = 0;
  const char *text = equals + 1;
  const mix_field_row *row = find(fields, item, false);
  if (!row) return false;
  bool none =
      (row->optional || !isfinite(row->number)) && (!strcasecmp(text, "none") || !strcasecmp(text, "null"));
  json_t *value = none ? json_null() : row->kind->parse ? row->kind->parse(text) : NULL;
  if (value) return mix_json_set(config, row->name, value);
  return mix_fail_value("%s: %s is '%.60s'; expected %s", fields->call, item, text,
                        row->kind->text_expected ? row->kind->text_expected : row->kind->expected);
}

json_t *mix_fields_parse(const mix_fields *fields, const char *text) {
  char *copy = mix_strdup(text);
  json_t *config = copy ? json_object() : NULL;
  bool good = config || (mix_fail_memory("a config"), false);
  for (char *at = copy, *end; good && *at; at = end) {
    end = at + strcspn(at, ",");
    if (*end) *end++ = 0;
    good = parse_item(fields, at, config);
  }
  mix_free(copy);
  if (good) return config;
  json_decref(config);
  return NULL;
}

/* ---- numbers ---- */

static const struct {
  const char *expected;
  double low, high;
  bool low_open, high_open;
} ranges[] = {[MIX_UNBOUNDED] = {"a number", -INFINITY, INFINITY, false, false},
              [MIX_POSITIVE] = {"a positive number", 0, INFINITY, true, false},
              [MIX_NOT_NEGATIVE] = {"a number that is not negative", 0, INFINITY, false, false},
              [MIX_UNIT_INTERVAL] = {"a number in [0, 1]", 0, 1, false, false},
              [MIX_BELOW_ONE] = {"a number in [0, 1)", 0, 1, false, true},
              [MIX_BETWEEN_0_AND_1] = {"a number between 0 and 1", 0, 1, true, true}};

static bool in_range(const mix_field *field, double x) {
  if (isnan(x) && isnan(field->row->number)) return true;
  double low = ranges[field->row->range].low, high = ranges[field->row->range].high;
  if ((ranges[field->row->range].low_open ? x > low : x >= low) &&
      (ranges[field->row->range].high_open ? x < high : x <= high))
    return true;
  char text[32];
  mix_number_write(text, sizeof text, 'g', x == floor(x) && fabs(x) < 1e15 ? 15 : 6, x);
  return mix_fail_value("%s: %s is %s; expected %s", field->call, field->name, text,
                        ranges[field->row->range].expected);
}

bool mix_resolve_number(const mix_field *field) {
  double *x = field->value;
  *x = *x == MIX_ZERO ? 0 : *x == 0 ? field->row->number : *x;
  return (field->row->optional && *x == 0) || in_range(field, *x);
}
static json_t *write_number(const mix_field *field) {
  double x = *(double *)field->value;
  bool none = isfinite(field->row->number) ? field->row->optional && x == 0 : !isfinite(x);
  return none ? json_null() : json_real(x);
}
bool mix_read_number(const mix_field *field, const json_t *value) {
  double x = json_number_value(value);
  if (json_is_null(value) && !field->row->optional) return true;
  if (!json_is_null(value) && !json_is_number(value)) return mix_field_mistyped(field, value);
  *(double *)field->value = x == 0 ? MIX_ZERO : x;
  return !field->row->optional || json_is_null(value) || in_range(field, x); /* 0 is no None */
}
json_t *mix_parse_number(const char *text) {
  char *end;
  double x = mix_number_read(text, &end);
  return *text && !*end && isfinite(x) ? json_real(x) : NULL;
}
const mix_value_kind mix_field_number = {"a number",   sizeof(double),  mix_resolve_number, NULL,
                                         write_number, mix_read_number, mix_parse_number};

static bool resolve_integer(const mix_field *field) {
  int64_t *n = field->value;
  *n = *n == MIX_INT_ZERO ? 0 : *n == 0 ? (int64_t)field->row->number : *n;
  if (*n > MIX_FIELD_MAX_SIZE)
    return mix_fail_value("%s: %s is %lld; expected a smaller number", field->call, field->name,
                          (long long)*n);
  return (field->row->optional && *n == 0) || in_range(field, (double)*n);
}
static json_t *write_integer(const mix_field *field) {
  int64_t n = *(int64_t *)field->value;
  return field->row->optional && n == 0 ? json_null() : json_integer(n);
}
static bool read_integer(const mix_field *field, const json_t *value) {
  int64_t n = 0;
  if (json_is_null(value) && !field->row->optional) return true;
  if (!json_is_null(value) &&
      !mix_field_read_integer(field, value, -MIX_FIELD_MAX_SIZE, MIX_FIELD_MAX_SIZE, &n))
    return false;
  *(int64_t *)field->value = n == 0 ? MIX_INT_ZERO : n;
  return json_is_null(value) || in_range(field, (double)n); /* 0 is no None */
}
static json_t *parse_integer(const char *text) {
  int64_t n;
  return mix_integer_read(text, &n) ? json_integer(n) : NULL;
}
const mix_value_kind mix_field_integer = {"an integer",  sizeof(int64_t), resolve_integer, NULL,
                                          write_integer, read_integer,    parse_integer};

/* "epoch", "batch" or a number of batches; 0 is each epoch, and the default. */
static json_t *parse_frequency(const char *text) {
  if (!strcmp(text, "epoch")) return json_integer(0);
  return strcmp(text, "batch") ? parse_integer(text) : json_integer(1);
}
const mix_value_kind mix_field_frequency = {"epoch, batch or a number of batches",
                                            sizeof(int64_t),
                                            resolve_integer,
                                            NULL,
                                            write_integer,
                                            read_integer,
                                            parse_frequency};

static json_t *write_seed(const mix_field *field) {
  uint64_t seed = *(uint64_t *)field->value;
  return seed ? json_integer((json_int_t)seed) : json_null();
}
static bool read_raw_integer(const mix_field *field, const json_t *value) {
  /* Flagged numbers are compared as doubles, which have all integers of that size. */
  const int64_t most = field->row->kind == &mix_field_flagged ? INT64_C(1) << 53 : INT64_MAX;
  if (json_is_null(value)) return true;
  if (!mix_field_read_integer(field, value, most == INT64_MAX ? INT64_MIN : -most, most, field->value))
    return false;
  if (field->other) *(bool *)field->other = true;
  return true;
}
const mix_value_kind mix_field_seed = {"an integer", sizeof(uint64_t), NULL,         NULL,
                                       write_seed,   read_raw_integer, parse_integer};

static json_t *write_flagged(const mix_field *field) {
  bool given = *(bool *)field->other;
  return given ? json_integer(*(int64_t *)field->value) : json_null();
}
const mix_value_kind mix_field_flagged = {"an integer",  sizeof(int64_t),  NULL,         NULL,
                                          write_flagged, read_raw_integer, parse_integer};

/* ---- booleans ---- */

extern const mix_value_kind mix_field_negated;
static json_t *write_boolean(const mix_field *field) {
  if (field->row->optional && !*(bool *)field->value) return json_null();
  return json_boolean(*(bool *)field->value != (field->row->kind == &mix_field_negated));
}
static bool read_boolean(const mix_field *field, const json_t *value) {
  if (json_is_null(value)) return true;
  if (!json_is_boolean(value)) return mix_field_mistyped(field, value);
  *(bool *)field->value = json_is_true(value) != (field->row->kind == &mix_field_negated);
  return true;
}
static json_t *parse_boolean(const char *text) {
  if (!strcasecmp(text, "true")) return json_true();
  return !strcasecmp(text, "false") ? json_false() : NULL;
}
const mix_value_kind mix_field_boolean = {"true or false", sizeof(bool), NULL,         NULL,
                                          write_boolean,   read_boolean, parse_boolean};
const mix_value_kind mix_field_negated = {"true or false", sizeof(bool), NULL,         NULL,
                                          write_boolean,   read_boolean, parse_boolean};

/* ---- texts ---- */

/* "int|one_hot|count" as "int, one_hot or count" */
static void put_choices(mix_text *list, const char *choices) {
  for (const char *at = choices; *at;) {
    size_t word = strcspn(at, "|");
    bool last = !at[word], before_last = !last && !strchr(at + word + 1, '|');
    mix_text_put(list, "%.*s%s", (int)word, at, last ? "" : before_last ? " or " : ", ");
    at += word + !last;
  }
}

bool mix_resolve_text(const mix_field *field) {
  const char **text = field->value;
  const char *value = *text ? *text : field->row->text;
  if (value && field->row->choices && !mix_is_choice(field->row->choices, value)) {
    char known[256], hint[100];
    mix_text list = {.text = known, .size = sizeof known};
    put_choices(&list, field->row->choices);
    return mix_fail_value("%s: %s '%.60s' is not known%s; expected %s", field->call, field->name, value,
                          mix_did_you_mean_choice(value, field->row->choices, hint, sizeof hint), known);
  }
  *text = mix_intern(value);
  return !mix_failed();
}
json_t *mix_write_text(const mix_field *field) {
  const char *text = *(const char **)field->value;
  return !text || (field->row->optional && !strcmp(text, "none")) ? json_null() : json_string(text);
}
bool mix_read_text(const mix_field *field, const json_t *value) {
  const char *none = field->row->optional && field->row->text ? "none" : NULL;
  if (!json_is_null(value) && !json_is_string(value)) return mix_field_mistyped(field, value);
  *(const char **)field->value = json_is_null(value) ? none : json_string_value(value);
  return true;
}
json_t *mix_parse_text(const char *text) { return json_string(text); }
const mix_value_kind mix_field_text = {"a string",     sizeof(char *), mix_resolve_text, NULL,
                                       mix_write_text, mix_read_text,  mix_parse_text,   "a word in UTF-8"};

/* ---- memory of a scope ---- */

void *mix_scoped_memory(size_t size) {
  static const mix_class class = {.name = "memory"};
  mix_object *object = mix_scoped(mix_object_new(sizeof *object + size, &class));
  return object ? object + 1 : NULL;
}

/* ---- fixed values ---- */

static json_t *write_fixed(const mix_field *field) {
  return json_loads(field->row->text, JSON_DECODE_ANY, NULL);
}
static bool read_fixed(const mix_field *field, const json_t *value) {
  json_t *only = write_fixed(field);
  bool same = field->row->optional || json_equal(only, value);
  json_decref(only);
  if (same) return true;
  return mix_fail_unsupported("config: only %s is supported for \"%s\"", field->row->text, field->name);
}
const mix_value_kind mix_field_fixed = {
    .expected = "its only value", .write = write_fixed, .read = read_fixed};
const mix_value_kind mix_field_refused = {.expected = "its only value", .read = read_fixed};
