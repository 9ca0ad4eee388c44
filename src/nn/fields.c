#include "nn/fields.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "base/number.h"
#include "nn/policy/policy.h"
#include "nn/policy/quantization_config.h"
#include "nn/weights/weights.h"
#include "tensor/shape.h"
#include <math.h>
#include <string.h>

/* ---- objects ---- */

static bool resolve_initializer(const mix_field *field) {
  const char **name = field->value;
  mix_initializer **object = field->other;
  *object =
      mix_retain(mix_initializer_choose(*name || *object ? *name : field->row->text, *object, field->call));
  *name = NULL;
  return !mix_failed();
}
static void release_initializer(const mix_field *field) { mix_release(*(void **)field->other); }
static json_t *write_initializer(const mix_field *field) {
  return mix_initializer_to_json(*(mix_initializer **)field->other, field->rules);
}
static bool read_initializer(const mix_field *field, const json_t *value) {
  *(mix_initializer **)field->other = mix_initializer_from_json(value);
  return !mix_failed();
}
const mix_value_kind mix_field_initializer = {"an initializer",
                                              sizeof(char *),
                                              resolve_initializer,
                                              release_initializer,
                                              write_initializer,
                                              read_initializer,
                                              NULL};

bool mix_retain_field(const mix_field *field) {
  mix_retain(*(void **)field->value);
  return true;
}
void mix_release_field(const mix_field *field) { mix_release(*(void **)field->value); }

static json_t *write_regularizer(const mix_field *field) {
  return mix_regularizer_to_json(*(mix_regularizer **)field->value);
}
static bool read_regularizer(const mix_field *field, const json_t *value) {
  *(mix_regularizer **)field->value = mix_regularizer_from_json(value, field->rules);
  return !mix_failed();
}
const mix_value_kind mix_field_regularizer = {"a regularizer",
                                              sizeof(void *),
                                              mix_retain_field,
                                              mix_release_field,
                                              write_regularizer,
                                              read_regularizer,
                                              NULL};

static json_t *write_constraint(const mix_field *field) {
  return mix_constraint_to_json(*(mix_constraint **)field->value);
}
static bool read_constraint(const mix_field *field, const json_t *value) {
  *(mix_constraint **)field->value = mix_constraint_from_json(value);
  return !mix_failed();
}
const mix_value_kind mix_field_constraint = {"a constraint",
                                             sizeof(void *),
                                             mix_retain_field,
                                             mix_release_field,
                                             write_constraint,
                                             read_constraint,
                                             NULL};

static json_t *write_policy(const mix_field *field) {
  return mix_policy_to_json(*(mix_policy **)field->value, field->rules);
}
static bool read_policy(const mix_field *field, const json_t *value) {
  if (!json_is_null(value)) *(mix_policy **)field->value = mix_policy_from_json(value, field->rules);
  return !mix_failed();
}
const mix_value_kind mix_field_policy = {"a policy",   sizeof(void *), NULL, NULL,
                                         write_policy, read_policy,    NULL};

/* The text that the layer keeps. Where it has none, the policy of the mode float8 says it. */
static json_t *write_quantization_config(const mix_field *field) {
  const char *text = *(const char **)field->value;
  const mix_policy *policy = *(mix_policy **)field->other;
  mix_quantization_config config;
  if (text)
    return mix_quantization_config_parse(text, &config) ? mix_quantization_config_json(&config) : NULL;
  const bool float8 =
      policy && !policy->map && policy->quantization_mode && !strcmp(policy->quantization_mode, "float8");
  return float8 && mix_quantization_config_default("float8", &config) ? mix_quantization_config_json(&config)
                                                                      : json_null();
}
/* The policy decides the mode: layers made under one that quantizes have null, and Model.quantize leaves its
 * config in layers that lack the mode. */
static bool read_quantization_config(const mix_field *field, const json_t *value) {
  mix_quantization_config config;
  if (json_is_null(value)) return true;
  return mix_quantization_config_read(value, &config) &&
         (*(const char **)field->value = mix_quantization_config_text(&config));
}
static bool resolve_quantization_config(const mix_field *field) {
  const char **text = field->value;
  const mix_policy *policy = *(mix_policy **)field->other;
  const char *mode = policy && !policy->map ? policy->quantization_mode : NULL;
  mix_quantization_config config;
  if (!*text) return true;
  if (!mix_quantization_config_parse(*text, &config)) return false;
  if (mode && strncmp(config.mode, mode, strlen(config.mode)))
    return mix_fail_value(
        "%s: quantization_config has the mode %s, and the policy '%s' another; expected one "
        "mode in both",
        field->call, config.mode, policy->name);
  return (*text = mix_quantization_config_text(&config));
}
const mix_value_kind mix_field_quantization_config = {.expected = "a quantization config",
                                                      .size = sizeof(char *),
                                                      .resolve = resolve_quantization_config,
                                                      .write = write_quantization_config,
                                                      .read = read_quantization_config};

/* ---- axes ---- */

static json_t *list_of(const mix_axes *axes) {
  json_t *list = json_array();
  for (int i = 0; i < axes->count; i++) mix_json_append(list, json_integer(axes->axis[i]));
  return list;
}

static bool read_axes(const mix_field *field, const json_t *value) {
  mix_axes *axes = field->value;
  size_t count = json_is_array(value) ? json_array_size(value) : 1;
  if (json_is_null(value)) return true;
  if (count > MIX_MAX_RANK)
    return mix_fail_value("config: \"%s\" is a list of %zu axes; expected at most %d", field->name, count,
                          MIX_MAX_RANK);
  axes->count = (int)count;
  for (size_t i = 0; i < count; i++) {
    const json_t *axis = json_is_array(value) ? json_array_get(value, i) : value;
    if (!mix_field_read_axis(field, axis, &axes->axis[i])) return false;
  }
  return true;
}

static bool resolve_axes(const mix_field *field) {
  const mix_axes *axes = field->value;
  if (axes->count < 0) /* `.axis = -1` sets the first member of the list */
    return mix_fail_value("%s: %s is a list of axes, and is the number %s%d; expected MIX_AXES(%d)",
                          field->call, field->name, axes->count == MIX_AXIS_0 ? "MIX_AXIS_0, " : "",
                          axes->count, mix_axis_number(axes->count));
  if (axes->count > MIX_MAX_RANK)
    return mix_fail_value("%s: %s names %d axes; expected 0 to %d", field->call, field->name, axes->count,
                          MIX_MAX_RANK);
  for (int i = 0; i < axes->count; i++)
    if (axes->axis[i] == MIX_AXIS_0)
      return mix_fail_value("%s: %s has MIX_AXIS_0 in a list of axes, where 0 is axis 0 itself", field->call,
                            field->name);
  return true;
}
static json_t *write_axes(const mix_field *field) {
  const mix_axes *axes = field->value;
  return axes->count > 1 ? list_of(axes) : json_integer(axes->count ? axes->axis[0] : -1);
}
const mix_value_kind mix_field_axes = {
    "an axis or a list of axes", sizeof(mix_axes), resolve_axes, NULL, write_axes, read_axes, NULL};

static json_t *write_axis_list(const mix_field *field) {
  const mix_axes *axes = field->value;
  return axes->count || !field->row->optional ? list_of(axes) : json_null();
}
const mix_value_kind mix_field_axis_list = {
    "an axis or a list of axes", sizeof(mix_axes), resolve_axes, NULL, write_axis_list, read_axes, NULL};

static bool resolve_axis(const mix_field *field) {
  int *axis = field->value;
  if (!field->row->optional) *axis = mix_axis_number(*axis);
  return true;
}
/* An optional axis keeps the form of options: 0 is None. */
static json_t *write_axis(const mix_field *field) {
  int axis = *(int *)field->value;
  if (field->row->optional && !axis) return json_null();
  return json_integer(field->row->optional ? mix_axis_number(axis) : axis);
}
/* tf_keras saves the axis of a built layer as a list of one. */
static bool read_axis(const mix_field *field, const json_t *value) {
  if (json_array_size(value) == 1) value = json_array_get(value, 0);
  if (json_is_null(value)) return true;
  int axis;
  if (!mix_field_read_axis(field, value, &axis)) return false;
  *(int *)field->value = mix_axis_option(axis);
  return true;
}
static json_t *parse_axis(const char *text) { return mix_field_integer.parse(text); }
const mix_value_kind mix_field_axis = {"an integer", sizeof(int), resolve_axis, NULL,
                                       write_axis,   read_axis,   parse_axis};

/* ---- shapes ---- */

bool mix_field_read_size(const mix_field *field, const json_t *value, int64_t *size) {
  return mix_field_read_integer(field, value, MIX_UNKNOWN, MIX_FIELD_MAX_SIZE, size);
}

static bool resolve_shape(const mix_field *field) {
  return mix_shape_option(*(mix_shape *)field->value, field->call, field->name);
}
json_t *mix_shape_json(mix_shape shape, bool open_batch) {
  json_t *list = json_array();
  for (int i = 0; i < shape.rank; i++) {
    const bool open = shape.dims[i] == MIX_UNKNOWN || (open_batch && !i);
    mix_json_append(list, open ? json_null() : json_integer(shape.dims[i]));
  }
  return list;
}
static json_t *write_shape(const mix_field *field) {
  const mix_shape *shape = field->value;
  return !shape->rank && field->row->optional ? json_null() : mix_shape_json(*shape, false);
}
static bool read_shape(const mix_field *field, const json_t *value) {
  mix_shape *shape = field->value;
  size_t rank = json_array_size(value);
  if (json_is_null(value)) return true;
  if (!json_is_array(value)) return mix_field_mistyped(field, value);
  if (rank > MIX_MAX_RANK)
    return mix_fail_value("config: \"%s\" has %zu dimensions; expected at most %d", field->name, rank,
                          MIX_MAX_RANK);
  shape->rank = (int)rank;
  for (size_t i = 0; i < rank; i++) {
    const json_t *dim = json_array_get(value, i);
    shape->dims[i] = MIX_UNKNOWN;
    if (!json_is_null(dim) && !mix_field_read_size(field, dim, &shape->dims[i])) return false;
  }
  return true;
}
const mix_value_kind mix_field_shape = {"a list of sizes", sizeof(mix_shape), resolve_shape, NULL,
                                        write_shape,       read_shape,        NULL};
static bool read_size_or_shape(const mix_field *field, const json_t *value) {
  if (!json_is_integer(value)) return read_shape(field, value);
  mix_shape *shape = field->value;
  shape->rank = 1;
  return mix_field_read_size(field, value, &shape->dims[0]);
}
const mix_value_kind mix_field_size_or_shape = {"a size or a list of sizes",
                                                sizeof(mix_shape),
                                                resolve_shape,
                                                NULL,
                                                write_shape,
                                                read_size_or_shape,
                                                NULL};

/* ---- lists of numbers ---- */

static bool copy_numbers(const mix_field *field) {
  mix_numbers *numbers = field->value;
  const double *given = numbers->values;
  numbers->values = NULL;
  if (numbers->count < 0 || (numbers->count > 0 && !given))
    return mix_fail_type("%s: %s has %d numbers and no values", field->call, field->name, numbers->count);
  if (!numbers->count) return true;
  for (int i = 0; i < numbers->count; i++)
    if (isnan(given[i]))
      return mix_fail_value("%s: number %d of %s is nan; expected a number", field->call, i, field->name);
  double *copy = mix_alloc(sizeof *copy * (size_t)numbers->count);
  if (copy) memcpy(copy, given, sizeof *copy * (size_t)numbers->count);
  numbers->values = copy;
  return copy != NULL;
}
static void free_numbers(const mix_field *field) { mix_free((void *)((mix_numbers *)field->value)->values); }
json_t *mix_number_json(double value) {
  return value == floor(value) && fabs(value) < 1e15 ? json_integer((json_int_t)value) : json_real(value);
}
static json_t *write_numbers(const mix_field *field) {
  const mix_numbers *numbers = field->value;
  if (!numbers->count) return json_null();
  json_t *list = json_array();
  for (int i = 0; i < numbers->count; i++) mix_json_append(list, mix_number_json(numbers->values[i]));
  return list;
}
/* A single number is a list of one. */
static bool read_numbers(const mix_field *field, const json_t *value) {
  size_t count = json_is_array(value) ? json_array_size(value) : 1;
  if (json_is_null(value)) return true;
  double *numbers = mix_scoped_memory((count + 1) * sizeof *numbers);
  for (size_t i = 0; numbers && i < count; i++) {
    const json_t *item = json_is_array(value) ? json_array_get(value, i) : value;
    if (!json_is_number(item))
      return mix_fail_type("config: \"%s\" holds %s; expected %s", field->name, mix_json_kind(item),
                           field->row->kind->expected);
    numbers[i] = json_number_value(item);
  }
  *(mix_numbers *)field->value = (mix_numbers){.count = (int)count, .values = numbers};
  return numbers != NULL;
}
/* "0:1:2" */
static json_t *parse_numbers(const char *text) {
  json_t *list = json_array();
  for (const char *at = text;; at++) {
    char *end;
    double value = mix_number_read(at, &end);
    if (end == at || (*end && *end != ':') || !isfinite(value)) break;
    mix_json_append(list, mix_number_json(value));
    if (!*end) return list;
    at = end;
  }
  json_decref(list);
  return NULL;
}
static json_t *write_sizes(const mix_field *field) {
  const mix_shape *sizes = field->value;
  if (!sizes->rank && field->row->optional) return json_null();
  json_t *list = json_array();
  for (int i = 0; i < sizes->rank; i++) mix_json_append(list, json_integer(sizes->dims[i]));
  return list;
}
/* "2:3" */
const mix_value_kind mix_field_sizes = {
    "a list of sizes", sizeof(mix_shape), NULL,          NULL,
    write_sizes,       read_shape,        parse_numbers, "sizes with colons between, such as 2:3"};
const mix_value_kind mix_field_numbers = {
    "a list of numbers", sizeof(mix_numbers), copy_numbers,  free_numbers,
    write_numbers,       read_numbers,        parse_numbers, "numbers with colons between, such as 0:1"};
