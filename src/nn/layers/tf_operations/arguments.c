/* The arguments of an operation's call, bound to the parameters of its function. */
#include "nn/layers/tf_operations/operation.h"

#include "base/error.h"
#include "base/json.h"
#include "tensor/shape.h"
#include <string.h>

enum { NAME_SIZE = 24 };

/* ---- binding ---- */

static int parameter_named(const mix_tf_operation_call *call, const char *name) {
  for (int i = 0; i < call->count; i++)
    if (!strcmp(call->names[i], name)) return i;
  return -1;
}

/* "axis=null": one of the row's parameters, with its default where it has one. */
static bool add_parameter(mix_tf_operation_call *call, const char *text, size_t length) {
  char *name = mix_scoped_memory(length + 1);
  if (!name) return false;
  memcpy(name, text, length);
  char *value = strchr(name, '=');
  json_t *json = json_null();
  if (value) {
    *value++ = 0;
    json = json_loads(value, JSON_DECODE_ANY, NULL);
    call->given |= 1U << call->count;
  }
  call->names[call->count++] = name;
  return mix_json_append(call->values, json);
}

static bool read_parameters(mix_tf_operation_call *call) {
  const char *text = call->operation->parameters;
  while (*text) {
    const size_t length = strcspn(text, " ");
    if (!add_parameter(call, text, length)) return false;
    text += length + (text[length] == ' ');
  }
  return true;
}

static bool give(mix_tf_operation_call *call, int place, const json_t *value) {
  call->given |= 1U << place;
  if (!json_array_set(call->values, (size_t)place, (json_t *)value)) return true;
  return mix_fail_memory("a call's arguments"), false;
}

static bool read_keyword(mix_tf_operation_call *call, const char *name, const json_t *value) {
  const int place = parameter_named(call, name);
  if (place > 0) return give(call, place, value);
  if (place < 0 && (!strcmp(name, "name") || json_is_null(value))) return true;
  mix_fail(MIX_TYPE_ERROR, "tf.%s in layer '%s': its argument '%.60s' is %s", call->operation->function,
           call->layer->name, name, place ? "not supported" : "given twice");
  return false;
}

bool mix_tf_operation_read(mix_tf_operation_call *call, const json_t *form) {
  const char *name;
  json_t *value, *keywords = json_object_get(form, "kwargs");
  call->values = json_array();
  if (!read_parameters(call) || !give(call, 0, json_object_get(form, "args"))) return false;
  json_object_foreach(keywords, name, value) if (!read_keyword(call, name, value)) return false;
  return !mix_failed();
}

void mix_tf_operation_release(mix_tf_operation_call *call) { json_decref(call->values); }

/* ---- errors ---- */

static void *fail_argument(const mix_tf_operation_call *call, mix_status status, const char *name,
                           const char *expected) {
  char given[MIX_JSON_GIVEN];
  const int place = parameter_named(call, name);
  const json_t *value = place >= 0 ? json_array_get(call->values, (size_t)place) : NULL;
  if (place >= 0 && !(call->given >> place & 1U))
    return mix_fail(MIX_TYPE_ERROR, "tf.%s in layer '%s': %s is missing; expected %s",
                    call->operation->function, call->layer->name, name, expected);
  if (json_object_get(value, MIX_OPERAND_VALUE)) value = json_object_get(value, MIX_OPERAND_VALUE);
  return mix_fail(status, "tf.%s in layer '%s': %s is %s; %s %s", call->operation->function,
                  call->layer->name, name,
                  mix_operand_form_number(value) >= 0 ? "a tensor" : mix_json_given(value, given),
                  status == MIX_UNSUPPORTED ? "supported is" : "expected", expected);
}

void *mix_tf_operation_mistyped(const mix_tf_operation_call *call, const char *name, const char *expected) {
  return fail_argument(call, MIX_TYPE_ERROR, name, expected);
}
void *mix_tf_operation_refused(const mix_tf_operation_call *call, const char *name, const char *expected) {
  return fail_argument(call, MIX_UNSUPPORTED, name, expected);
}

/* ---- tensors ---- */

/* Also null. A list of one tensor is that tensor, as older files have it. */
static const json_t *value_of(const mix_tf_operation_call *call, const char *name) {
  const int place = parameter_named(call, name);
  const json_t *value = place >= 0 ? json_array_get(call->values, (size_t)place) : NULL;
  return json_object_get(value, MIX_OPERAND_VALUE) ? json_object_get(value, MIX_OPERAND_VALUE) : value;
}

const json_t *mix_tf_operation_value(const mix_tf_operation_call *call, const char *name) {
  const json_t *value = value_of(call, name);
  return json_is_null(value) ? NULL : value;
}

/* NULL without an error: the value is no tensor. */
static mix_tensor *tensor_in(const mix_tf_operation_call *call, const json_t *value) {
  const int number = mix_operand_form_number(value);
  if (number < 0) return NULL;
  if (number < mix_list_count(call->tensors)) return mix_list_get(call->tensors, number);
  return mix_fail(MIX_VALUE_ERROR, "tf.%s in layer '%s': it was called on %d tensors; expected one more",
                  call->operation->function, call->layer->name, mix_list_count(call->tensors));
}

/* NULL without an error: it is a constant. */
static mix_tensor *given_tensor(const mix_tf_operation_call *call, const char *name) {
  const json_t *value = value_of(call, name);
  if (json_array_size(value) == 1 && mix_operand_form_number(json_array_get(value, 0)) >= 0)
    value = json_array_get(value, 0);
  return tensor_in(call, value);
}

/* Numbers of another kind than the dtype's are TensorFlow's error. */
static bool suits(const mix_json_numbers *n, mix_dtype dtype) {
  if (dtype == MIX_BOOL) return !n->integer && !n->real;
  return !n->boolean && (mix_dtype_is_floating(dtype) || !n->real);
}

static mix_tensor *constant(const mix_tf_operation_call *call, const char *name, const json_t *value,
                            const mix_tensor *like) {
  mix_json_numbers n;
  if (!mix_json_numbers_read(value, &n)) return mix_tf_operation_mistyped(call, name, "a tensor or numbers");
  const mix_dtype dtype = like                   ? mix_tensor_dtype(like)
                          : n.boolean            ? MIX_BOOL
                          : n.integer && !n.real ? MIX_INT32
                                                 : MIX_FLOAT32;
  if (suits(&n, dtype)) return mix_json_numbers_tensor(&n, dtype);
  return mix_fail(MIX_TYPE_ERROR, "tf.%s in layer '%s': %s holds %s; the other operand is %s",
                  call->operation->function, call->layer->name, name,
                  n.boolean ? "booleans"
                  : n.real  ? "real numbers"
                            : "integers",
                  mix_dtype_name(dtype));
}

mix_tensor *mix_tf_operation_tensor(const mix_tf_operation_call *call, const char *name,
                                    const mix_tensor *like) {
  mix_tensor *tensor = given_tensor(call, name);
  if (tensor || mix_failed()) return tensor;
  const json_t *value = mix_tf_operation_value(call, name);
  return value ? constant(call, name, value, like)
               : mix_tf_operation_mistyped(call, name, "a tensor or numbers");
}

bool mix_tf_operation_pair(const mix_tf_operation_call *call, const char *first, const char *second,
                           mix_tensor **a, mix_tensor **b) {
  const mix_tensor *like = given_tensor(call, first);
  if (!like && !mix_failed()) like = given_tensor(call, second);
  *a = mix_failed() ? NULL : mix_tf_operation_tensor(call, first, like);
  *b = *a ? mix_tf_operation_tensor(call, second, like ? like : *a) : NULL;
  return *b;
}

mix_list *mix_tf_operation_tensors(const mix_tf_operation_call *call, const char *name) {
  const json_t *value = mix_tf_operation_value(call, name);
  const mix_tensor *like = NULL;
  mix_list *list = mix_list_new(0, NULL);
  if (!json_array_size(value)) return mix_tf_operation_mistyped(call, name, "a list of tensors");
  for (size_t i = 0; i < json_array_size(value) && !like && !mix_failed(); i++)
    like = tensor_in(call, json_array_get(value, i));
  for (size_t i = 0; i < json_array_size(value) && !mix_failed(); i++) {
    const json_t *item = json_array_get(value, i);
    const json_t *fixed = json_object_get(item, MIX_OPERAND_VALUE);
    mix_tensor *tensor = tensor_in(call, item);
    if (!tensor && !mix_failed()) tensor = constant(call, name, fixed ? fixed : item, like);
    mix_list_append(list, tensor);
  }
  return mix_failed() ? NULL : list;
}

/* ---- numbers ---- */

static bool small_integer(const json_t *value, int64_t *integer) {
  enum { LIMIT = 1000000000 };
  return mix_json_integer_within(value, -LIMIT, LIMIT, integer);
}

bool mix_tf_operation_integers(const mix_tf_operation_call *call, const char *name, mix_shape *list) {
  const json_t *value = mix_tf_operation_value(call, name);
  const bool one = json_is_integer(value);
  list->rank = one ? 1 : (int)json_array_size(value);
  bool good = (one || json_is_array(value)) && json_array_size(value) <= MIX_MAX_RANK;
  for (int i = 0; good && i < list->rank; i++)
    good = small_integer(one ? value : json_array_get(value, (size_t)i), &list->dims[i]);
  return good || mix_tf_operation_mistyped(call, name, "an integer or a list of at most 8 integers");
}

bool mix_tf_operation_axes(const mix_tf_operation_call *call, const char *name, mix_axes *axes) {
  mix_shape list;
  *axes = MIX_ALL_AXES;
  if (!mix_tf_operation_value(call, name)) return true;
  if (!mix_tf_operation_integers(call, name, &list)) return false;
  axes->count = list.rank;
  for (int i = 0; i < list.rank; i++) axes->axis[i] = (int)list.dims[i];
  return true;
}

bool mix_tf_operation_axis(const mix_tf_operation_call *call, const char *name, int rank, int *axis) {
  int64_t given;
  if (!small_integer(mix_tf_operation_value(call, name), &given))
    return mix_tf_operation_mistyped(call, name, "an integer");
  *axis = mix_axis_normal((int)given, rank);
  if (*axis >= 0) return true;
  mix_fail(MIX_VALUE_ERROR, "tf.%s in layer '%s': %s %lld is outside a tensor of rank %d",
           call->operation->function, call->layer->name, name, (long long)given, rank);
  return false;
}

bool mix_tf_operation_number(const mix_tf_operation_call *call, const char *name, double *number) {
  return mix_json_number_read(mix_tf_operation_value(call, name), number) ||
         mix_tf_operation_mistyped(call, name, MIX_NUMBER_EXPECTED);
}

bool mix_tf_operation_flag(const mix_tf_operation_call *call, const char *name, bool *flag) {
  const json_t *value = mix_tf_operation_value(call, name);
  *flag = json_is_true(value);
  return !value || json_is_boolean(value) || mix_tf_operation_mistyped(call, name, "true or false");
}

bool mix_tf_operation_dtype(const mix_tf_operation_call *call, const char *name, mix_dtype absent,
                            mix_dtype *dtype) {
  const json_t *value = mix_tf_operation_value(call, name);
  *dtype = absent;
  if (!value) return true;
  *dtype = json_is_string(value) ? mix_dtype_from_name(json_string_value(value)) : MIX_DTYPE_NONE;
  return *dtype != MIX_DTYPE_NONE || mix_tf_operation_mistyped(call, name, "the name of a dtype");
}
