/* What calls of operations are given: tensors, constants and slices. */
#include "nn/layers/operands.h"

#include "base/error.h"
#include "base/fields.h"
#include "base/json.h"
#include "base/object.h"

/* ---- tensors ---- */

json_t *mix_operand_form(int number) { return json_pack("{s:i}", MIX_OPERAND_TENSOR, number); }

int mix_operand_form_number(const json_t *form) {
  const json_t *number = json_object_get(form, MIX_OPERAND_TENSOR);
  const json_int_t value = json_is_integer(number) ? json_integer_value(number) : -1;
  return value >= 0 && value < INT32_MAX ? (int)value : -1;
}

mix_list *mix_operand_tensors(mix_list *inputs, mix_list *arguments) {
  mix_list *all = mix_list_new(mix_list_count(inputs), mix_list_items(inputs));
  for (int i = 0; arguments && i < mix_list_count(arguments); i++)
    mix_list_append(all, mix_list_get(arguments, i));
  return mix_failed() ? NULL : all;
}

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
    n->real |= json_is_real(value);
    return json_is_boolean(value) || json_is_number(value);
  }
  bool good = json_is_array(value) && (int64_t)json_array_size(value) == n->shape.dims[depth];
  for (size_t i = 0; good && i < json_array_size(value); i++)
    good = check_numbers(json_array_get(value, i), depth + 1, n);
  return good;
}

static double *store_numbers(const json_t *value, double *next) {
  if (!json_is_array(value)) {
    *next = json_is_boolean(value) ? json_is_true(value) : json_number_value(value);
    return next + 1;
  }
  for (size_t i = 0; i < json_array_size(value); i++) next = store_numbers(json_array_get(value, i), next);
  return next;
}

bool mix_json_numbers_read(const json_t *value, mix_json_numbers *numbers) {
  *numbers = (mix_json_numbers){.shape = shape_of(value)};
  /* before memory is taken: lists of unlike lengths may hold fewer numbers than their first ones say */
  if (!check_numbers(value, 0, numbers)) return false;
  numbers->items = mix_scoped_memory(((size_t)mix_shape_size(numbers->shape) + 1) * sizeof(double));
  if (numbers->items) store_numbers(value, numbers->items);
  return numbers->items;
}

/* ---- slices ---- */

static bool read_bound(const json_t *slice, const char *key, const json_t **bound) {
  const json_t *value = json_object_get(slice, key);
  *bound = json_is_null(value) ? NULL : value;
  return !*bound || json_is_integer(*bound);
}

bool mix_json_slice_read(const json_t *value, mix_json_slice *slice) {
  enum { MAX_STEP = 1 << 24 };
  const json_t *step;
  if (!read_bound(value, "start", &slice->start) || !read_bound(value, "stop", &slice->stop) ||
      !read_bound(value, "step", &step))
    return false;
  slice->step = step ? json_integer_value(step) : 1;
  return slice->step && slice->step <= MAX_STEP && slice->step >= -MAX_STEP;
}

static int64_t place_of(const json_t *bound, int64_t absent, int64_t size, int64_t low, int64_t high) {
  if (!bound) return absent;
  int64_t place = json_integer_value(bound);
  if (place < 0) place = place < -size ? low : place + size;
  return place < low ? low : place > high ? high : place;
}

int64_t mix_json_slice_range(const mix_json_slice *slice, int64_t size, int64_t *begin) {
  const bool back = slice->step < 0;
  const int64_t low = back ? -1 : 0, high = back ? size - 1 : size, pace = back ? -slice->step : slice->step;
  *begin = place_of(slice->start, back ? high : low, size, low, high);
  const int64_t end = place_of(slice->stop, back ? low : high, size, low, high);
  const int64_t distance = back ? *begin - end : end - *begin;
  return distance > 0 ? (distance + pace - 1) / pace : 0;
}
