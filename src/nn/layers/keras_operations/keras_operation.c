/* Operations: their configs and calls, the values of a call, and the dtypes of operands. */
#include "nn/layers/keras_operations/keras_operation.h"

#include "base/error.h"
#include "base/json.h"
#include "nn/config.h"
#include "nn/layers/operands.h"
#include "tensor/shape.h"
#include <string.h>

/* ---- rows ---- */

const mix_keras_operation *mix_keras_operation_of(const mix_layer *layer) {
  const bool is = layer->kind && layer->kind->class.call == mix_keras_operation_call;
  return is ? (const mix_keras_operation *)layer->kind : NULL;
}

/* The place of a name in "x1|x2"; -1: it is not there. */
static int place_in(const char *names, const char *name) {
  const size_t length = strlen(name);
  for (int place = 0; *names; place++) {
    const size_t here = strcspn(names, "|");
    if (here == length && !strncmp(names, name, length)) return place;
    names += here + (names[here] == '|');
  }
  return -1;
}

static int count_of(const char *names) {
  int count = *names != 0;
  for (; *names; names++) count += *names == '|';
  return count;
}

/* ---- configs ---- */

mix_layer *mix_keras_operation_from_config(const mix_layer_kind *kind, const json_t *config, void *options) {
  const mix_keras_operation *operation = (const mix_keras_operation *)kind;
  const char *key;
  json_t *value, *own = json_object();
  json_object_foreach((json_t *)config, key, value) {
    if (!strcmp(key, "name")) continue;
    if (place_in(operation->options, key) < 0)
      mix_fail(MIX_VALUE_ERROR, "%s: the Keras operation has no option '%.60s'; expected %s", kind->call, key,
               operation->options[0] ? operation->options : "none");
    mix_json_set(own, key, mix_json_copy(value));
  }
  mix_layer *layer = mix_failed() ? NULL : mix_layer_of_kind(kind, options);
  if (!layer) return json_decref(own), NULL;
  ((mix_keras_operation_options *)layer->data)->config = own;
  return layer;
}

mix_status mix_keras_operation_config(mix_layer *layer, mix_config *config) {
  json_t *own = ((const mix_keras_operation_options *)layer->data)->config;
  return !own || mix_json_update(config->object, own) ? MIX_OK : mix_error();
}

void mix_keras_operation_finalize(mix_layer *layer) {
  json_decref(((mix_keras_operation_options *)layer->data)->config);
}

/* ---- values ---- */

const json_t *mix_operand_json(const mix_operands *o, const char *name) {
  const json_t *value = json_object_get(o->config, name);
  if (!value) value = json_object_get(json_object_get(o->form, "kwargs"), name);
  const int place = value ? -1 : place_in(o->operation->operands, name);
  if (place >= 0) value = json_array_get(json_object_get(o->form, "args"), (size_t)place);
  return json_is_null(value) ? NULL : value;
}

void *mix_operand_refused(const mix_operands *o, const char *name, const json_t *value,
                          const char *expected) {
  char given[MIX_JSON_GIVEN];
  return mix_fail(MIX_TYPE_ERROR, "%s: %s of the Keras operation %s is %s; expected %s", o->layer->name, name,
                  o->operation->kind.call, mix_json_given(value, given), expected);
}

bool mix_operand_integer(const mix_operands *o, const char *name, int64_t absent, int64_t low, int64_t high,
                         int64_t *value) {
  const json_t *json = mix_operand_json(o, name);
  *value = absent;
  if (!json || mix_json_integer_within(json, low, high, value)) return true;
  if (!json_is_integer(json)) return mix_operand_refused(o, name, json, "an integer");
  return mix_fail(MIX_VALUE_ERROR, "%s: %s is %lld; expected an integer from %lld to %lld", o->layer->name,
                  name, (long long)json_integer_value(json), (long long)low, (long long)high);
}

bool mix_operand_number(const mix_operands *o, const char *name, double absent, double *value) {
  const json_t *json = mix_operand_json(o, name);
  *value = absent;
  return !json || mix_json_number_read(json, value) ||
         mix_operand_refused(o, name, json, MIX_NUMBER_EXPECTED);
}

bool mix_operand_flag(const mix_operands *o, const char *name, bool absent, bool *value) {
  const json_t *json = mix_operand_json(o, name);
  *value = json ? json_is_true(json) : absent;
  return !json || json_is_boolean(json) || mix_operand_refused(o, name, json, "true or false");
}

const char *mix_operand_text(const mix_operands *o, const char *name, const char *absent) {
  const json_t *json = mix_operand_json(o, name);
  if (!json || json_is_string(json)) return json ? json_string_value(json) : absent;
  return mix_operand_refused(o, name, json, "a string");
}

bool mix_operand_dtype_named(const mix_operands *o, const char *name, mix_dtype absent, mix_dtype *value) {
  const json_t *json = mix_operand_json(o, name);
  *value = json ? MIX_DTYPE_NONE : absent;
  if (json_is_string(json)) *value = mix_dtype_from_name(json_string_value(json));
  if (*value != MIX_DTYPE_NONE && mix_dtype_size(*value)) return true;
  if (!json_is_string(json)) return mix_operand_refused(o, name, json, "the name of a dtype");
  return mix_fail(MIX_VALUE_ERROR, "%s: %s is '%.60s'; expected a dtype that tensors have", o->layer->name,
                  name, json_string_value(json));
}

bool mix_operand_integers(const mix_operands *o, const char *name, int most, int64_t *values, int *count) {
  const json_t *json = mix_operand_json(o, name);
  const bool list = json_is_array(json);
  const size_t given = list ? json_array_size(json) : json != NULL;
  if (given > (size_t)most)
    return mix_fail(MIX_VALUE_ERROR, "%s: %s has %zu items; expected at most %d", o->layer->name, name, given,
                    most);
  *count = (int)given;
  for (size_t i = 0; i < given; i++) {
    const json_t *item = list ? json_array_get(json, i) : json;
    if (!mix_json_integer_within(item, INT64_MIN, INT64_MAX, &values[i]))
      return mix_operand_refused(o, name, item, "an integer or a list of them");
  }
  return true;
}

/* -1 with the error recorded. */
static int normal_axis(const mix_operands *o, const char *name, int64_t axis, int rank) {
  if (axis >= -rank && axis < rank) return (int)(axis < 0 ? axis + rank : axis);
  mix_fail(MIX_VALUE_ERROR, "%s: %s %lld is outside a tensor of rank %d", o->layer->name, name,
           (long long)axis, rank);
  return -1;
}

bool mix_operand_axes(const mix_operands *o, const char *name, int rank, mix_axes *axes) {
  int64_t given[MIX_MAX_RANK];
  bool chosen[MIX_MAX_RANK] = {false};
  *axes = (mix_axes){.count = 0};
  if (!mix_operand_integers(o, name, MIX_MAX_RANK, given, &axes->count)) return false;
  for (int i = 0; i < axes->count; i++) {
    const int axis = normal_axis(o, name, given[i], rank);
    if (axis >= 0 && chosen[axis])
      mix_fail(MIX_VALUE_ERROR, "%s: %s names axis %d twice", o->layer->name, name, axis);
    if (mix_failed()) return false;
    chosen[axis] = true;
    axes->axis[i] = axis;
  }
  return true;
}

int mix_operand_axis(const mix_operands *o, const char *name, int rank, int absent) {
  int64_t axis;
  return mix_operand_integer(o, name, absent, INT64_MIN, INT64_MAX, &axis) ? normal_axis(o, name, axis, rank)
                                                                           : -1;
}

/* ---- arrays ---- */

/* Of the dtype that TensorFlow gives them, which takes no booleans among numbers. */
static mix_tensor *array_of(const mix_operands *o, const char *name, const json_t *value) {
  mix_json_numbers n;
  const bool good = mix_json_numbers_read(value, &n) && (!n.boolean || (!n.integer && !n.real));
  const mix_dtype dtype = n.boolean ? MIX_BOOL : n.integer && !n.real ? MIX_INT32 : MIX_FLOAT32;
  return good ? mix_json_numbers_tensor(&n, dtype)
              : mix_operand_refused(o, name, value, "lists of numbers of one length and kind");
}

/* ---- operands ---- */

static mix_tensor *placed_tensor(const mix_operands *o, int place) {
  if (place >= mix_list_count(o->tensors))
    return mix_fail(MIX_VALUE_ERROR, "%s: tensor %d of its call is asked for; it has %d", o->layer->name,
                    place, mix_list_count(o->tensors));
  return mix_list_get(o->tensors, place);
}

/* A tensor, or an array; NULL without an error: it is a number, which has no dtype of its own. */
static mix_tensor *tensor_of(const mix_operands *o, const char *name, const json_t *value) {
  if (json_is_integer(value) || json_is_real(value)) return NULL;
  if (json_is_boolean(value)) return mix_scalar(json_is_true(value), MIX_BOOL);
  const int place = mix_operand_form_number(value);
  if (place >= 0) return placed_tensor(o, place);
  if (mix_is_array_form(value)) return mix_array_form_read(value, o->layer->name, name);
  if (json_is_array(value)) return array_of(o, name, value);
  if (!value)
    return mix_fail(MIX_TYPE_ERROR, "%s: the Keras operation %s lacks its operand %s", o->layer->name,
                    o->operation->kind.call, name);
  return mix_operand_refused(o, name, value, "a tensor or a number");
}

static mix_tensor *number_of(const json_t *value, mix_dtype dtype) {
  mix_json_numbers n;
  return mix_json_numbers_read(value, &n) ? mix_json_numbers_tensor(&n, dtype) : NULL;
}

mix_tensor *mix_operand(const mix_operands *o, const char *name) {
  const json_t *value = mix_operand_json(o, name);
  mix_tensor *tensor = tensor_of(o, name, value);
  if (tensor || mix_failed()) return tensor;
  return number_of(value, json_is_integer(value) ? MIX_INT32 : mix_floatx());
}

/* ---- dtypes ---- */

/* As Keras's result_type without weak types: a lattice in which float16 and bfloat16 meet in float32. */
static mix_dtype promoted(mix_dtype a, mix_dtype b) {
  if (a == b || b == MIX_DTYPE_NONE) return a;
  if (a == MIX_DTYPE_NONE || a == MIX_BOOL) return b;
  if (b == MIX_BOOL) return a;
  const bool float_a = mix_dtype_is_floating(a), float_b = mix_dtype_is_floating(b);
  if (float_a != float_b) return float_a ? a : b;
  const size_t size_a = mix_dtype_size(a), size_b = mix_dtype_size(b);
  if (size_a != size_b) return size_a > size_b ? a : b;
  return float_a ? MIX_FLOAT32 : MIX_INT16; /* uint8 with int8 */
}

/* Numbers are weak: they have the kind of what is beside them, except that a float makes integers float. */
static mix_dtype dtype_of_all(int count, mix_tensor *const *tensors, bool floats, bool integers) {
  mix_dtype dtype = MIX_DTYPE_NONE;
  for (int i = 0; i < count; i++)
    if (tensors[i]) dtype = promoted(dtype, mix_tensor_dtype(tensors[i]));
  if (floats && !mix_dtype_is_floating(dtype)) return mix_floatx();
  if (dtype == MIX_DTYPE_NONE) return MIX_INT32; /* integers alone */
  return dtype == MIX_BOOL && integers ? MIX_INT32 : dtype;
}

bool mix_operands_promoted(const mix_operands *o, int count, const char *const *names, mix_operand_dtype rule,
                           mix_tensor **tensors) {
  bool floats = rule == MIX_OPERANDS_FLOATING, integers = false;
  for (int i = 0; i < count; i++) {
    const json_t *value = mix_operand_json(o, names[i]);
    tensors[i] = rule == MIX_OPERANDS_TYPED ? mix_operand(o, names[i]) : tensor_of(o, names[i], value);
    if (mix_failed()) return false;
    if (tensors[i]) continue;
    floats |= json_is_real(value);
    integers |= json_is_integer(value);
  }
  mix_dtype dtype = dtype_of_all(count, tensors, floats, integers);
  if (rule == MIX_OPERANDS_TYPED && dtype == MIX_BOOL) dtype = MIX_INT32;
  if (rule == MIX_OPERANDS_BOOLEAN) dtype = MIX_BOOL;
  for (int i = 0; i < count && !mix_failed(); i++)
    tensors[i] = tensors[i] ? mix_cast(tensors[i], dtype) : number_of(mix_operand_json(o, names[i]), dtype);
  return !mix_failed();
}

bool mix_operand_pair(const mix_operands *o, mix_operand_dtype rule, mix_tensor **pair) {
  static const char *const names[] = {"x1", "x2"};
  return mix_operands_promoted(o, 2, names, rule, pair);
}

mix_list *mix_operand_list(const mix_operands *o, const char *name) {
  /* operands without names are all of the call */
  const json_t *value =
      o->operation->takes_several ? json_object_get(o->form, "args") : mix_operand_json(o, name);
  if (!json_is_array(value) || !json_array_size(value))
    return mix_operand_refused(o, name, value, "a list of tensors");
  mix_list *list = mix_list_new(0, NULL), *cast = mix_list_new(0, NULL);
  mix_dtype dtype = MIX_DTYPE_NONE;
  for (size_t i = 0; i < json_array_size(value) && !mix_failed(); i++) {
    const json_t *item = json_array_get(value, i);
    mix_tensor *tensor = json_is_object(item) ? tensor_of(o, name, item) : NULL;
    if (!tensor) return mix_failed() ? NULL : mix_operand_refused(o, name, item, "tensors in its list");
    dtype = promoted(dtype, mix_tensor_dtype(tensor));
    mix_list_append(list, tensor);
  }
  for (int i = 0; i < mix_list_count(list) && !mix_failed(); i++)
    mix_list_append(cast, mix_cast(mix_list_get(list, i), dtype));
  return mix_failed() ? NULL : cast;
}

mix_tensor *mix_operand_floating(mix_tensor *x) {
  return !x || mix_dtype_is_floating(mix_tensor_dtype(x)) ? x : mix_cast(x, mix_floatx());
}

/* ---- the call ---- */

json_t *mix_keras_operation_form(const mix_keras_operation *operation, int count) {
  json_t *args = json_array();
  for (int i = 0; i < count; i++) mix_json_append(args, mix_operand_form(i));
  if (operation->takes_list) args = json_pack("[o]", args);
  return mix_json_whole(json_pack("{s:o,s:{}}", "args", args, "kwargs"));
}

static bool check_names(const mix_operands *o) {
  const json_t *args = json_object_get(o->form, "args"), *keywords = json_object_get(o->form, "kwargs");
  const int most = count_of(o->operation->operands), given = (int)json_array_size(args);
  const char *key;
  json_t *value;
  if (given > most && !o->operation->takes_several)
    return mix_fail(MIX_TYPE_ERROR, "%s: the Keras operation %s is called with %d operands; it has %d (%s)",
                    o->layer->name, o->operation->kind.call, given, most, o->operation->operands);
  json_object_foreach((json_t *)keywords, key, value) {
    const int place = place_in(o->operation->operands, key);
    if (place >= given) continue;
    return mix_fail(MIX_TYPE_ERROR, "%s: the call of the Keras operation %s has %s operand '%.60s'",
                    o->layer->name, o->operation->kind.call, place < 0 ? "an unknown" : "twice the", key);
  }
  return true;
}

static mix_tensor *reduced(const mix_operands *o, mix_tensor *x) {
  mix_axes axes;
  bool keep;
  if (!x || !mix_operand_axes(o, "axis", mix_tensor_shape(x).rank, &axes) ||
      !mix_operand_flag(o, "keepdims", false, &keep))
    return NULL;
  const json_t *axis = mix_operand_json(o, "axis");
  return json_is_array(axis) && !axes.count ? x : o->operation->reduce(x, axes, keep);
}

static mix_list *compute(const mix_operands *o) {
  const mix_keras_operation *operation = o->operation;
  mix_tensor *pair[2];
  if (operation->call) return operation->call(o);
  if (operation->binary)
    return mix_operand_pair(o, operation->dtype, pair) ? mix_one_result(operation->binary(pair[0], pair[1]))
                                                       : NULL;
  mix_tensor *x = mix_operand(o, "x");
  if (x && operation->dtype == MIX_OPERANDS_FLOATING) x = mix_operand_floating(x);
  if (x && operation->dtype == MIX_OPERANDS_BOOLEAN) x = mix_cast(x, MIX_BOOL);
  if (!x) return NULL;
  if (operation->activation)
    return mix_one_result(mix_activate(operation->activation, x, .semantics = &mix_semantics_keras3));
  return mix_one_result(operation->reduce ? reduced(o, x) : operation->unary(x));
}

mix_list *mix_keras_operation_call(mix_layer *layer, const mix_call_args *args) {
  mix_operands o = {.layer = layer,
                    .operation = mix_keras_operation_of(layer),
                    .config = ((const mix_keras_operation_options *)layer->data)->config,
                    .form = mix_call_form(),
                    .tensors = mix_operand_tensors(args->inputs, args->arguments),
                    .symbolic = args->symbolic};
  json_t *form = o.form ? NULL : mix_keras_operation_form(o.operation, mix_list_count(o.tensors));
  if (form) o.form = form;
  mix_list *results = !mix_failed() && check_names(&o) ? compute(&o) : NULL;
  json_decref(form);
  if (!results && !mix_failed())
    mix_fail(MIX_INTERNAL_ERROR, "%s: the operation gave no result", layer->name);
  return results;
}
