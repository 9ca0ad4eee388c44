/* Numbers, lists of numbers, and arrays of Keras 3 in JSON. */
#include "nn/json_arrays.h"

#include "base/error.h"
#include "base/fields.h"
#include "base/json.h"
#include "base/json_special.h"
#include "base/object.h"
#include "tensor/shape.h"
#include <math.h>

/* ---- numbers ---- */

static mix_shape shape_of(const json_t *value) {
  mix_shape shape = {.rank = 0};
  for (; json_is_array(value) && shape.rank < MIX_MAX_RANK; value = json_array_get(value, 0))
    shape.dims[shape.rank++] = (int64_t)json_array_size(value);
  return shape;
}

/* Do lists have that shape, and numbers in it? Notes the kinds of the numbers. */
static bool check_numbers(const json_t *value, int depth, mix_json_numbers *n) {
  if (depth == n->shape.rank) {
    n->boolean |= json_is_boolean(value);
    n->integer |= json_is_integer(value);
    const bool special = mix_json_special(value, &(double){0});
    n->real |= json_is_real(value) || special;
    return json_is_boolean(value) || json_is_number(value) || special;
  }
  bool good = json_is_array(value) && (int64_t)json_array_size(value) == n->shape.dims[depth];
  for (size_t i = 0; good && i < json_array_size(value); i++)
    good = check_numbers(json_array_get(value, i), depth + 1, n);
  return good;
}

bool mix_json_number_read(const json_t *value, double *number) {
  if (mix_json_special(value, number)) return true;
  if (!json_is_number(value)) return false;
  *number = json_number_value(value);
  if (json_is_real(value)) return true;
  return (*number < 0x1p63 ? (int64_t)*number : INT64_MAX) == json_integer_value(value);
}

bool mix_json_numbers_read(const json_t *value, mix_json_numbers *numbers) {
  *numbers = (mix_json_numbers){.json = value, .shape = shape_of(value)};
  return check_numbers(value, 0, numbers);
}

/* Large integers have more digits than a double. */
typedef union element {
  int64_t integer;
  double real;
} element;

static element *store_numbers(const json_t *value, bool integers, element *next) {
  if (json_is_array(value)) {
    for (size_t i = 0; i < json_array_size(value); i++)
      next = store_numbers(json_array_get(value, i), integers, next);
    return next;
  }
  if (integers)
    next->integer = json_is_true(value) ? 1 : json_integer_value(value);
  else
    next->real = json_is_true(value) ? 1 : json_number_value(value);
  if (!integers) mix_json_special(value, &next->real);
  return next + 1;
}

mix_tensor *mix_json_numbers_tensor(const mix_json_numbers *n, mix_dtype dtype) {
  const bool integers = dtype == MIX_INT64 && !n->real;
  element *numbers = mix_scoped_memory(((size_t)mix_shape_size(n->shape) + 1) * sizeof *numbers);
  if (!numbers) return NULL;
  store_numbers(n->json, integers, numbers);
  return integers ? mix_tensor_from(numbers, MIX_INT64, n->shape)
                  : mix_tensor_from_doubles(&numbers->real, dtype, n->shape);
}

/* ---- arrays ---- */

bool mix_is_array_form(const json_t *value) {
  return mix_json_is_class(value, "__tensor__") || mix_json_is_class(value, "__numpy__");
}

mix_tensor *mix_array_form_read(const json_t *form, const char *owner, const char *name) {
  const json_t *config = json_object_get(form, "config"), *value = json_object_get(config, "value");
  const char *dtype_name = json_string_value(json_object_get(config, "dtype"));
  const mix_dtype dtype = mix_dtype_from_name(dtype_name ? dtype_name : "none");
  mix_json_numbers n;
  if (dtype == MIX_DTYPE_NONE || !mix_dtype_size(dtype))
    return mix_fail_value("%s: %s is an array of dtype '%.60s', which tensors have not", owner, name,
                          dtype_name ? dtype_name : "none");
  if (mix_json_numbers_read(value, &n)) return mix_json_numbers_tensor(&n, dtype);
  return mix_fail_type("%s: %s is an array of %s; expected lists of numbers of one length", owner, name,
                       mix_json_kind(value));
}

static json_t *number_form(element number, mix_dtype dtype) {
  if (dtype == MIX_BOOL) return json_boolean(number.integer != 0);
  return mix_dtype_is_floating(dtype) ? json_real(number.real) : json_integer(number.integer);
}

/* Takes the numbers of the axes from `axis` on, row by row. */
static json_t *lists_of(const element **numbers, mix_dtype dtype, mix_shape shape, int axis) {
  if (axis == shape.rank) return number_form(*(*numbers)++, dtype);
  json_t *list = json_array();
  for (int64_t i = 0; i < shape.dims[axis] && !mix_failed(); i++)
    mix_json_append(list, lists_of(numbers, dtype, shape, axis + 1));
  return list;
}

json_t *mix_array_form(mix_tensor *tensor, const char *name) {
  const mix_dtype dtype = mix_tensor_dtype(tensor);
  const mix_shape shape = mix_tensor_shape(tensor);
  const int64_t count = mix_shape_size(shape);
  const bool floating = mix_dtype_is_floating(dtype);
  element *numbers = mix_scoped_memory(((size_t)count + 1) * sizeof *numbers);
  if (!numbers || mix_tensor_read(tensor, floating ? MIX_FLOAT64 : MIX_INT64, numbers, count)) return NULL;
  for (int64_t i = 0; i < count && floating; i++)
    if (!isfinite(numbers[i].real))
      return mix_fail_unsupported("%s: a constant has a number that is not finite, which JSON has not", name);
  const element *next = numbers;
  return mix_json_whole(json_pack("{s:s,s:{s:o,s:s}}", "class_name", "__tensor__", "config", "value",
                                  lists_of(&next, dtype, shape, 0), "dtype", mix_dtype_name(dtype)));
}
