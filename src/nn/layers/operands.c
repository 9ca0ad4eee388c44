/* What calls of operations are given: tensors, constants and slices. */
#include "nn/layers/operands.h"

#include "base/error.h"
#include "base/fields.h"
#include "base/json.h"
#include "base/object.h"
#include "tensor/shape.h"
#include <math.h>

/* ---- tensors ---- */

bool mix_operand_form_reserved(const json_t *json) {
  const char *key;
  json_t *item;
  size_t i;
  bool reserved = json_object_get(json, MIX_OPERAND_TENSOR) || json_object_get(json, MIX_OPERAND_VALUE);
  json_object_foreach((json_t *)json, key, item) reserved = reserved || mix_operand_form_reserved(item);
  json_array_foreach(json, i, item) reserved = reserved || mix_operand_form_reserved(item);
  return reserved;
}

json_t *mix_operand_form(int number) {
  return mix_json_whole(json_pack("{s:i}", MIX_OPERAND_TENSOR, number));
}

int mix_operand_form_number(const json_t *form) {
  int64_t number;
  const json_t *value = json_object_get(form, MIX_OPERAND_TENSOR);
  return mix_json_integer_within(value, 0, INT32_MAX - 1, &number) ? (int)number : -1;
}

mix_list *mix_operand_tensors(mix_list *inputs, mix_list *arguments) {
  mix_list *all = mix_list_new(mix_list_count(inputs), mix_list_items(inputs));
  for (int i = 0; arguments && i < mix_list_count(arguments); i++)
    mix_list_append(all, mix_list_get(arguments, i));
  return mix_failed() ? NULL : all;
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
  slice->step = 1;
  return (!step || mix_json_integer_within(step, -MAX_STEP, MAX_STEP, &slice->step)) && slice->step;
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
