/* Operations: arguments bound to the parameters of their rows, and the values of a call. */
#include "nn/layers/operations/operation.h"

#include "base/error.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- parameters ---- */

typedef struct parameter {
  char name[MIX_PARAMETER_BYTES], absent[MIX_PARAMETER_BYTES]; /* absent: its default, "" without one */
  bool fixed;                                                  /* no other value is supported */
  bool may_be_null;                                            /* null is not its default */
} parameter;

static bool read_parameter(const char *text, int place, parameter *p) {
  for (; place && *text; place--) text += strcspn(text, " ") + (text[strcspn(text, " ")] == ' ');
  p->fixed = *text == '!';
  p->may_be_null = *text == '?';
  text += p->fixed || p->may_be_null;
  const int length = (int)strcspn(text, " ="), all = (int)strcspn(text, " ");
  snprintf(p->name, sizeof p->name, "%.*s", length, text);
  snprintf(p->absent, sizeof p->absent, "%.*s", all > length ? all - length - 1 : 0, text + length + 1);
  return length;
}

static int find_parameter(const char *parameters, const char *name, parameter *p) {
  for (int place = 0; read_parameter(parameters, place, p); place++)
    if (!strcmp(p->name, name)) return place;
  return -1;
}

int mix_parameter_place(const char *parameters, const char *name) {
  parameter p;
  return find_parameter(parameters, name, &p);
}

/* ---- errors ---- */

void *mix_operation_fail(const mix_operands *o, mix_status status, const char *format, ...) {
  char text[MIX_ERROR_BYTES];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (!mix_operands_of_tf(o)) return mix_fail(status, "%s: %s", o->layer->name, text);
  return mix_fail(status, "tf.%s in layer '%s': %s", o->operation->name, o->layer->name, text);
}

void *mix_operand_refused(const mix_operands *o, mix_status status, const char *name, const char *expected) {
  char given[MIX_JSON_GIVEN];
  const json_t *value = json_object_get(o->values, name);
  const bool tf = mix_operands_of_tf(o);
  const char *wanted = status == MIX_UNSUPPORTED ? "supported is" : "expected", *owner = o->operation->name;
  if (tf && status == MIX_VALUE_ERROR) status = MIX_TYPE_ERROR;
  if (!mix_operand_json(o, name) && tf)
    return mix_operation_fail(o, status, "%s is missing; %s %s", name, wanted, expected);
  if (!mix_operand_json(o, name))
    return mix_operation_fail(o, status, "the Keras operation %s lacks its operand %s; %s %s", owner, name,
                              wanted, expected);
  return mix_operation_fail(
      o, status, "%s%s%s is %s; %s %s", name, tf ? "" : " of the Keras operation ", tf ? "" : owner,
      mix_operand_form_number(value) >= 0 ? "a tensor" : mix_json_given(value, given), wanted, expected);
}

/* ---- binding ---- */

static bool give(mix_operands *o, const parameter *p, const json_t *value) {
  const json_t *fixed = json_object_get(value, MIX_OPERAND_VALUE),
               *absent = json_object_get(o->values, p->name);
  if (json_is_null(value) && absent && !p->may_be_null) return true; /* None is the default */
  const bool other = p->fixed && !json_is_null(value) && !json_equal(value, absent);
  return mix_json_set(o->values, p->name, json_incref((json_t *)(fixed ? fixed : value))) &&
         (!other || mix_operand_refused(o, MIX_UNSUPPORTED, p->name, absent ? p->absent : "null"));
}

static bool give_defaults(mix_operands *o, const char *parameters) {
  parameter p;
  for (int i = 0; read_parameter(parameters, i, &p); i++)
    if (*p.absent && !mix_json_set(o->values, p.name, mix_json_parse(p.absent, p.name))) return false;
  return true;
}

/* Those in front of `given` have their values. */
static bool give_named(mix_operands *o, const char *parameters, const json_t *named, int given) {
  const bool tf = mix_operands_of_tf(o);
  const char *name;
  json_t *value;
  parameter p;
  json_object_foreach((json_t *)named, name, value) {
    const int place = find_parameter(parameters, name, &p);
    const bool twice = place >= 0 || !strcmp(name, o->first);
    if (place >= given) {
      if (!give(o, &p, value)) return false;
    } else if (tf && (twice || (strcmp(name, "name") && !json_is_null(value)))) {
      return mix_operation_fail(o, MIX_TYPE_ERROR, "its argument '%.60s' is %s", name,
                                twice ? "given twice" : "not supported");
    } else if (!tf && place < 0 && o->operation->any_names) {
      if (!mix_json_set(o->values, name, json_incref(value))) return false;
    } else if (!tf) {
      return mix_operation_fail(o, MIX_TYPE_ERROR,
                                "the call of the Keras operation %s has %s operand '%.60s'",
                                o->operation->name, twice ? "twice the" : "an unknown", name);
    }
  }
  return true;
}

static bool give_operands(mix_operands *o, const json_t *args) {
  const mix_operation *operation = o->operation;
  parameter p;
  const int count = (int)json_array_size(args);
  for (int i = 0; i < count; i++) {
    const bool known = read_parameter(operation->operands, i, &p);
    if (operation->takes_several) return give(o, &p, args);
    if (!known)
      return mix_operation_fail(o, MIX_TYPE_ERROR,
                                "the Keras operation %s is called with %d operands; it has %d (%s)",
                                operation->name, count, i, operation->operands);
    if (!give(o, &p, json_array_get(args, (size_t)i))) return false;
  }
  return true;
}

bool mix_operands_bind(mix_operands *o, const json_t *args, const json_t *named, const json_t *options) {
  const mix_operation *operation = o->operation;
  const bool tf = mix_operands_of_tf(o);
  parameter p;
  read_parameter(operation->operands, 0, &p);
  memcpy(o->first, p.name, sizeof p.name);
  if (!read_parameter(operation->options, 0, &p)) read_parameter(operation->operands, 1, &p);
  memcpy(o->second, p.name, sizeof p.name);
  o->values = json_object();
  return give_defaults(o, operation->operands) && give_defaults(o, operation->options) &&
         give_operands(o, args) &&
         give_named(o, tf ? operation->options : operation->operands, named,
                    tf ? 0 : (int)json_array_size(args)) &&
         give_named(o, operation->options, options, 0);
}

/* ---- values ---- */

const json_t *mix_operand_json(const mix_operands *o, const char *name) {
  const json_t *value = json_object_get(o->values, name);
  return json_is_null(value) ? NULL : value;
}

int mix_operand_integers(const mix_operands *o, const char *name, int most, int64_t *values) {
  char expected[64];
  const json_t *json = mix_operand_json(o, name);
  const bool list = json_is_array(json);
  const int64_t high = mix_operand_limit(o);
  const int count = list ? (int)json_array_size(json) : json != NULL;
  bool good = count <= most;
  for (int i = 0; good && i < count; i++)
    good =
        mix_json_integer_within(list ? json_array_get(json, (size_t)i) : json, -high - 1, high, &values[i]);
  if (good) return count;
  snprintf(expected, sizeof expected,
           most == 1 ? "an integer" : "an integer or a list of at most %d integers", most);
  mix_operand_refused(o, MIX_TYPE_ERROR, name, expected);
  return 0;
}

int64_t mix_operand_integer(const mix_operands *o, const char *name) {
  int64_t value = 0;
  if (json_is_array(mix_operand_json(o, name)) || !mix_operand_integers(o, name, 1, &value))
    mix_operand_refused(o, MIX_TYPE_ERROR, name, "an integer");
  return value;
}

double mix_operand_number(const mix_operands *o, const char *name) {
  double value = 0;
  if (!mix_json_number_read(mix_operand_json(o, name), &value))
    mix_operand_refused(o, MIX_TYPE_ERROR, name, MIX_NUMBER_EXPECTED);
  return value;
}

bool mix_operand_flag(const mix_operands *o, const char *name) {
  const json_t *json = mix_operand_json(o, name);
  if (json && !json_is_boolean(json)) mix_operand_refused(o, MIX_TYPE_ERROR, name, "true or false");
  return json_is_true(json);
}

const char *mix_operand_text(const mix_operands *o, const char *name) {
  const char *text = json_string_value(mix_operand_json(o, name));
  return text ? text : mix_operand_refused(o, MIX_TYPE_ERROR, name, "a string");
}

mix_dtype mix_operand_dtype(const mix_operands *o, const char *name, mix_dtype absent) {
  const json_t *json = mix_operand_json(o, name);
  const char *text = json_string_value(json);
  const mix_dtype dtype = text ? mix_dtype_from_name(text) : MIX_DTYPE_NONE;
  if (!json || (dtype != MIX_DTYPE_NONE && mix_dtype_size(dtype))) return json ? dtype : absent;
  mix_operation_fail(o, text && !mix_operands_of_tf(o) ? MIX_VALUE_ERROR : MIX_TYPE_ERROR,
                     "%s is %.60s; expected the name of a dtype that tensors have", name,
                     text ? text : mix_json_kind(json));
  return MIX_DTYPE_NONE;
}

mix_shape mix_operand_shape(const mix_operands *o, const char *name) {
  mix_shape shape = {.rank = 0};
  shape.rank = mix_operand_integers(o, name, MIX_MAX_RANK, shape.dims);
  return shape;
}

/* -1 with the error recorded. */
static int normal_axis(const mix_operands *o, const char *name, int64_t axis, int rank) {
  if (axis >= -rank && axis < rank) return (int)(axis < 0 ? axis + rank : axis);
  mix_operation_fail(o, MIX_VALUE_ERROR, "%s %lld is outside a tensor of rank %d", name, (long long)axis,
                     rank);
  return -1;
}

int mix_operand_axis(const mix_operands *o, const char *name, int rank) {
  const int axis = normal_axis(o, name, mix_operand_integer(o, name), rank);
  return mix_failed() ? -1 : axis;
}

mix_axes mix_operand_axes(const mix_operands *o, const char *name, int rank) {
  int64_t given[MIX_MAX_RANK];
  mix_axes axes = {.count = mix_operand_integers(o, name, MIX_MAX_RANK, given)};
  unsigned chosen = 0;
  for (int i = 0; i < axes.count; i++) {
    const int axis = axes.axis[i] = normal_axis(o, name, given[i], rank);
    if (axis >= 0 && chosen >> axis & 1U)
      mix_operation_fail(o, MIX_VALUE_ERROR, "%s names axis %d twice", name, axis);
    if (mix_failed()) return MIX_ALL_AXES;
    chosen |= 1U << axis;
  }
  return axes;
}
