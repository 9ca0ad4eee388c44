/* The arguments of metrics: one row of the table gives checks, copies, text, and configs both ways. */
#include "nn/metrics/metric.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/number.h"
#include "nn/layers/builtin.h"
#include "nn/config.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef enum argument_kind {
  NUMBER,
  INTEGER,
  BOOLEAN,
  NEGATED,
  TEXT,
  NUMBERS,
  AXIS,
  SHAPE,
  OBJECT
} argument_kind;

typedef struct argument {
  const char *name; /* the option's name */
  argument_kind kind;
  size_t offset;
  size_t present;       /* offset of the has_... flag; 0: present if not zero */
  double default_value; /* in configs if the option is 0 and not None */
  bool optional;        /* 0 means None */
  bool required;        /* 0 means missing; MIX_ZERO means 0 */
  bool counts;          /* at least 1: 0 means not given, and is an error in a config */
  const char *text;     /* in configs if the text is NULL */
  const char *key;      /* the key in configs; NULL: the name */
} argument;

#define AT(field) #field, .offset = offsetof(mix_metric_options, field)
static const argument arguments[] = {
    {AT(threshold), .kind = NUMBER, .default_value = 0.5},
    {AT(k), .kind = INTEGER, .default_value = 5, .counts = true},
    {AT(from_logits), .kind = BOOLEAN},
    {AT(label_smoothing), .kind = NUMBER},
    {AT(thresholds), .kind = NUMBERS},
    {AT(top_k), .kind = INTEGER, .optional = true, .counts = true},
    {AT(class_id), .kind = INTEGER, .present = offsetof(mix_metric_options, has_class_id)},
    {AT(num_thresholds), .kind = INTEGER, .default_value = 200, .counts = true},
    {AT(curve), .kind = TEXT, .text = "ROC"},
    {AT(summation_method), .kind = TEXT, .text = "interpolation"},
    {AT(multi_label), .kind = BOOLEAN},
    {AT(num_labels), .kind = INTEGER, .optional = true, .counts = true},
    {AT(label_weights), .kind = NUMBERS},
    {AT(specificity), .kind = NUMBER, .required = true},
    {AT(sensitivity), .kind = NUMBER, .required = true},
    {AT(recall), .kind = NUMBER, .required = true},
    {AT(precision), .kind = NUMBER, .required = true},
    {AT(average), .kind = TEXT},
    {AT(beta), .kind = NUMBER, .default_value = 1},
    {AT(class_aggregation), .kind = TEXT, .text = "uniform_average"},
    {AT(num_regressors), .kind = INTEGER},
    {AT(num_classes), .kind = INTEGER, .counts = true},
    {AT(target_class_ids), .kind = NUMBERS},
    {AT(ignore_class), .kind = INTEGER, .present = offsetof(mix_metric_options, has_ignore_class)},
    {AT(axis), .kind = AXIS},
    {AT(not_sparse_y_true), .kind = NEGATED, .key = "sparse_y_true"},
    {AT(not_sparse_y_pred), .kind = NEGATED, .key = "sparse_y_pred"},
    {AT(sparse_y_pred), .kind = BOOLEAN},
    {AT(shape), .kind = SHAPE},
    {AT(normalizer), .kind = OBJECT},
};
#undef AT
enum { COUNT = sizeof arguments / sizeof *arguments };

static bool takes(const char *const *known, const char *name) {
  for (; known && *known; known++)
    if (!strcmp(*known, name)) return true;
  return false;
}

static bool present(const argument *a, const mix_metric_options *o) {
  const char *at = (const char *)o + a->offset;
  if (a->present) return *((const bool *)((const char *)o + a->present));
  switch (a->kind) {
  case NUMBER: return *(const double *)at != 0;
  case INTEGER: return *(const int64_t *)at != 0;
  case BOOLEAN:
  case NEGATED: return *(const bool *)at;
  case TEXT:
  case OBJECT: return *(void *const *)at != NULL;
  case NUMBERS: return ((const mix_numbers *)at)->count != 0;
  case AXIS: return *(const int *)at != 0;
  case SHAPE: return ((const mix_shape *)at)->rank != 0;
  }
  return false;
}

static bool copy_numbers(mix_numbers *numbers, const char *metric, const char *name) {
  const double *given = numbers->values;
  numbers->values = NULL;
  if (numbers->count < 0 || (numbers->count > 0 && !given)) {
    mix_fail(MIX_TYPE_ERROR, "metric %s: %s has %d numbers and no values", metric, name, numbers->count);
    return false;
  }
  if (!numbers->count) return true;
  double *copy = mix_alloc(sizeof *copy * (size_t)numbers->count);
  if (!copy) return false;
  memcpy(copy, given, sizeof *copy * (size_t)numbers->count);
  numbers->values = copy;
  return true;
}

bool mix_metric_take_arguments(mix_metric *metric, const mix_metric_options *given,
                               const char *const *known) {
  mix_metric_options *o = &metric->options;
  *o = *given;
  const char *name = o->metric ? o->metric : metric->class.name;
  mix_numbers *lists[] = {&o->thresholds, &o->label_weights, &o->target_class_ids};
  static const char *const list_names[] = {"thresholds", "label_weights", "target_class_ids"};
  for (int i = 0; i < 3; i++)
    if (mix_failed() || !copy_numbers(lists[i], name, list_names[i])) *lists[i] = (mix_numbers){0};
  for (int i = 0; i < COUNT; i++)
    if (present(&arguments[i], given) && !takes(known, arguments[i].name))
      mix_fail(MIX_TYPE_ERROR, "metric %.60s: got an unexpected argument '%s'", name, arguments[i].name);
  o->metric = mix_intern(o->metric); /* the caller's strings may go out of scope */
  o->curve = mix_intern(o->curve);
  o->summation_method = mix_intern(o->summation_method);
  o->average = mix_intern(o->average);
  o->class_aggregation = mix_intern(o->class_aggregation);
  o->name = o->dtype = NULL;
  mix_retain(o->normalizer);
  return !mix_failed();
}

void mix_metric_release_arguments(mix_metric *metric) {
  mix_metric_options *o = &metric->options;
  const mix_numbers *lists[] = {&o->thresholds, &o->label_weights, &o->target_class_ids};
  for (int i = 0; i < 3; i++) mix_free((void *)lists[i]->values);
  mix_release(o->normalizer);
}

/* ---- configs ---- */

static json_t *number_json(double value) {
  return value == floor(value) && fabs(value) < 1e15 ? json_integer((json_int_t)value) : json_real(value);
}

static json_t *to_json(const argument *a, const mix_metric_options *o, bool none_known) {
  const char *at = (const char *)o + a->offset;
  bool there = present(a, o);
  if (!there && (a->optional || a->present || none_known)) return json_null();
  switch (a->kind) {
  case NUMBER: {
    double value = *(const double *)at;
    return json_real(value == MIX_ZERO ? 0 : there ? value : a->default_value);
  }
  case INTEGER: return json_integer(there ? *(const int64_t *)at : (json_int_t)a->default_value);
  case BOOLEAN: return json_boolean(there);
  case NEGATED: return json_boolean(!there);
  case AXIS: return json_integer(mix_axis_number(*(const int *)at));
  case TEXT: {
    const char *text = there ? *(const char *const *)at : a->text;
    return text && strcmp(text, "none") ? json_string(text) : json_null();
  }
  case NUMBERS: {
    const mix_numbers *numbers = (const mix_numbers *)at;
    if (!there) return json_null();
    json_t *list = json_array();
    for (int i = 0; i < numbers->count; i++) json_array_append_new(list, number_json(numbers->values[i]));
    return list;
  }
  case SHAPE: {
    const mix_shape *shape = (const mix_shape *)at;
    if (!there) return json_null();
    json_t *list = json_array();
    for (int i = 0; i < shape->rank; i++) json_array_append_new(list, json_integer(shape->dims[i]));
    return list;
  }
  case OBJECT: return json_null(); /* as in Keras, whose configs hold no tensors */
  }
  return NULL;
}

bool mix_metric_arguments_to_json(const mix_metric *metric, const char *const *known, json_t *config) {
  /* The threshold of F-scores is None if it is not given. */
  bool scores = takes(known, "average");
  for (int i = 0; i < COUNT; i++) {
    const argument *a = &arguments[i];
    if (!takes(known, a->name)) continue;
    bool none = scores && !strcmp(a->name, "threshold");
    if (!mix_json_set(config, a->key ? a->key : a->name, to_json(a, &metric->options, none))) return false;
  }
  return true;
}

/* ---- arguments as text ---- */

/* "0:1:2" */
static json_t *numbers_json(const char *text) {
  json_t *list = json_array();
  for (const char *at = text;; at++) {
    char *end;
    double value = mix_number_read(at, &end);
    if (end == at || (*end && *end != ':') || !isfinite(value)) break;
    json_array_append_new(list, number_json(value));
    if (!*end) return list;
    at = end;
  }
  json_decref(list);
  return NULL;
}

static json_t *value_json(const argument *a, const char *text) {
  char *end;
  double number = mix_number_read(text, &end);
  bool numeric = *text && !*end && isfinite(number);
  if (!strcasecmp(text, "none")) return json_null();
  switch (a->kind) {
  case NUMBER: return numeric ? json_real(number) : NULL;
  case INTEGER:
  case AXIS:
    return numeric && number == floor(number) && fabs(number) < 1e15 ? json_integer((json_int_t)number)
                                                                     : NULL;
  case BOOLEAN:
  case NEGATED:
    return !strcasecmp(text, "true") ? json_true() : !strcasecmp(text, "false") ? json_false() : NULL;
  case TEXT: return json_string(text);
  case NUMBERS:
  case SHAPE: return numbers_json(text);
  case OBJECT: return NULL;
  }
  return NULL;
}

json_t *mix_metric_argument_json(const char *metric, const char *const *known, const char *key,
                                 const char *text) {
  static const char *const kinds[] = {[NUMBER] = "a number",
                                      [INTEGER] = "a whole number",
                                      [BOOLEAN] = "true or false",
                                      [NEGATED] = "true or false",
                                      [TEXT] = "a word",
                                      [NUMBERS] = "numbers with colons between, such as 0:1",
                                      [AXIS] = "a whole number",
                                      [SHAPE] = "sizes with colons between, such as 2:3",
                                      [OBJECT] = "a tensor, which no text can say"};
  char list[256] = "name, dtype";
  size_t used = strlen(list);
  for (int i = 0; i < COUNT; i++) {
    const argument *a = &arguments[i];
    if (!takes(known, a->name)) continue;
    const char *name = a->key ? a->key : a->name;
    json_t *value = strcmp(name, key) ? NULL : value_json(a, text);
    if (value) return value;
    if (!strcmp(name, key))
      return mix_fail(MIX_VALUE_ERROR, "metric %.60s: %s is '%.60s'; expected %s", metric, key, text,
                      kinds[a->kind]);
    if (used < sizeof list) used += (size_t)snprintf(list + used, sizeof list - used, ", %s", name);
  }
  return mix_fail(MIX_TYPE_ERROR, "metric %.60s: got an unexpected argument '%.60s'; it takes %s", metric,
                  key, list);
}

static bool numbers_from_json(const json_t *list, mix_numbers *numbers, double **buffer, int *left) {
  int count = json_is_array(list) ? (int)json_array_size(list) : 1;
  if (count > *left) {
    mix_fail(MIX_VALUE_ERROR, "metric_from_config: more than %d numbers", *left);
    return false;
  }
  for (int i = 0; i < count; i++) {
    const json_t *item = json_is_array(list) ? json_array_get(list, (size_t)i) : list;
    if (!json_is_number(item)) {
      mix_fail(MIX_TYPE_ERROR, "metric_from_config: a list holds what is no number");
      return false;
    }
    (*buffer)[i] = json_number_value(item);
  }
  *numbers = (mix_numbers){.count = count, .values = *buffer};
  *buffer += count;
  *left -= count;
  return true;
}

static bool shape_from_json(const json_t *list, mix_shape *shape) {
  if (!json_is_array(list) || json_array_size(list) > MIX_MAX_RANK) {
    mix_fail(MIX_TYPE_ERROR, "metric_from_config: the shape is no list of at most %d sizes", MIX_MAX_RANK);
    return false;
  }
  for (shape->rank = 0; shape->rank < (int)json_array_size(list); shape->rank++)
    shape->dims[shape->rank] = json_integer_value(json_array_get(list, (size_t)shape->rank));
  return true;
}

bool mix_metric_arguments_from_json(const json_t *config, const char *const *known,
                                    mix_metric_options *options, double *numbers, int capacity) {
  for (int i = 0; i < COUNT && !mix_failed(); i++) {
    const argument *a = &arguments[i];
    const char *key = a->key ? a->key : a->name;
    const json_t *value = takes(known, a->name) ? json_object_get(config, key) : NULL;
    char *at = (char *)options + a->offset;
    bool none = json_is_null(value);
    if (!value || (none && a->kind != TEXT)) continue;
    if (a->present) *(bool *)((char *)options + a->present) = true;
    switch (a->kind) {
    case NUMBER: {
      double number = mix_json_number_or(config, key, 0);
      *(double *)at = number == 0 && (a->default_value != 0 || a->required) ? MIX_ZERO : number;
      break;
    }
    case INTEGER:
      *(int64_t *)at = mix_json_integer_or(config, key, 0);
      if (a->counts && *(int64_t *)at == 0)
        mix_fail(MIX_VALUE_ERROR, "metric_from_config: %s is 0; expected a number from 1 on", key);
      break;
    case BOOLEAN: *(bool *)at = mix_json_boolean_or(config, key, false); break;
    case NEGATED: *(bool *)at = !mix_json_boolean_or(config, key, true); break;
    case AXIS: *(int *)at = mix_axis_option(mix_json_integer_or(config, key, -1)); break;
    case TEXT:
      *(const char **)at = none ? (a->text ? "none" : NULL) : mix_json_string_or(config, key, NULL);
      break;
    case NUMBERS: numbers_from_json(value, (mix_numbers *)at, &numbers, &capacity); break;
    case SHAPE: shape_from_json(value, (mix_shape *)at); break;
    case OBJECT: break;
    }
  }
  return !mix_failed();
}
