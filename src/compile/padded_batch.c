#include "compile/padded_batch.h"

#include "base/error.h"
#include "base/structure.h"
#include "compile/evaluate.h"
#include "graph/lock.h"
#include "graph/unfilled_tensor.h"
#include "tensor/shape.h"
#include <string.h>

int64_t mix_batch_rows(mix_list *arguments, const char *function) {
  int64_t rows = -1;
  int first = -1;
  for (int i = 0; i < mix_list_count(arguments); i++) {
    const mix_shape shape = mix_tensor_shape(mix_list_get(arguments, i));
    if (!shape.rank || shape.dims[0] == rows) continue;
    if (first >= 0) {
      mix_fail_value(
          "function_call: argument %d of %s has %lld rows, argument %d has %lld; with .batch = MIX_ANY all "
          "arguments but scalars have the rows of one batch",
          i, function, (long long)shape.dims[0], first, (long long)rows);
      return -1;
    }
    first = i;
    rows = shape.dims[0];
  }
  if (first < 0)
    mix_fail_value(
        "function_call: no argument of %s has rows; with .batch = MIX_ANY axis 0 of the arguments is the "
        "batch",
        function);
  return rows;
}

static mix_shape with_rows(mix_shape shape, int64_t rows) {
  shape.dims[0] = rows;
  return shape;
}

static size_t row_bytes(const mix_value *value) {
  return mix_value_bytes(value->dtype, with_rows(value->shape, 1));
}

/* ---- arguments ---- */

/* The memory of these rows. NULL without an error if they must be copied: they are not aligned as kernels
 * require, or belong to a variable, which may move its old value. */
static mix_memory *rows_in_place(const mix_value *value, int64_t first, int64_t count) {
  const size_t row = row_bytes(value), offset = (size_t)first * row;
  mix_graph_lock();
  const bool in_place = !mix_memory_is_storage(value->memory) && mix_memory_is_aligned(value->memory, offset);
  mix_graph_unlock();
  return in_place ? mix_memory_part(value->memory, offset, (size_t)count * row) : NULL;
}

static mix_tensor *copy_rows(mix_tensor *argument, int64_t first, int64_t count, int64_t padded) {
  const mix_value *value = mix_tensor_value(argument);
  const size_t row = row_bytes(value);
  void *data;
  mix_pinned pinned;
  mix_tensor *copy = mix_tensor_unfilled(value->dtype, with_rows(value->shape, padded), &data);
  if (!copy || !mix_tensor_pin(argument, &pinned)) return NULL;
  if (row) {
    memcpy(data, (const char *)pinned.data + (size_t)first * row, (size_t)count * row);
    const char *last = (char *)data + (size_t)(count - 1) * row;
    for (int64_t i = count; i < padded; i++) memcpy((char *)data + (size_t)i * row, last, row);
  }
  mix_tensor_unpin(&pinned);
  return copy;
}

static mix_tensor *part_of(mix_tensor *argument, int64_t first, int64_t count, int64_t padded) {
  const mix_value *value = mix_tensor_value(argument);
  if (!value->shape.rank || (count == padded && count == value->shape.dims[0])) return argument;
  mix_memory *memory = count == padded ? rows_in_place(value, first, count) : NULL;
  if (mix_failed()) return NULL;
  if (!memory) return copy_rows(argument, first, count, padded);
  mix_tensor *part = mix_tensor_of_memory(memory, value->dtype, with_rows(value->shape, count));
  mix_release(memory);
  return part;
}

mix_list *mix_batch_part(mix_list *arguments, int64_t first, int64_t count, int64_t padded) {
  mix_list *part = mix_list_new(0, NULL);
  for (int i = 0; i < mix_list_count(arguments) && !mix_failed(); i++)
    mix_list_append(part, part_of(mix_list_get(arguments, i), first, count, padded));
  mix_list_set_structure(part, mix_list_structure(arguments));
  return mix_failed() ? NULL : part;
}

/* ---- results ---- */

mix_list *mix_batch_cut(mix_list *results, int64_t rows) {
  mix_list *cut = mix_list_new(0, NULL);
  for (int i = 0; i < mix_list_count(results) && !mix_failed(); i++) {
    mix_tensor *result = mix_list_get(results, i);
    const mix_value *value = mix_tensor_value(result);
    if (value->shape.dims[0] != rows)
      result = mix_tensor_of_memory(value->memory, value->dtype, with_rows(value->shape, rows));
    mix_list_append(cut, result);
  }
  return mix_failed() ? NULL : cut;
}

/* A list of tensors like the results, of `rows` rows. The caller has the reference. */
static mix_list *unfilled_like(mix_list *results, int64_t rows) {
  mix_list *all = mix_list_new(0, NULL);
  void *data;
  for (int i = 0; i < mix_list_count(results) && !mix_failed(); i++) {
    const mix_value *value = mix_tensor_value(mix_list_get(results, i));
    mix_list_append(all, mix_tensor_unfilled(value->dtype, with_rows(value->shape, rows), &data));
  }
  return mix_failed() ? NULL : mix_retain(all);
}

static bool copy_result(mix_tensor *all, mix_tensor *result, int64_t first, int64_t count) {
  const size_t row = row_bytes(mix_tensor_value(all));
  mix_pinned pinned;
  if (!mix_tensor_pin(result, &pinned)) return false;
  const bool good = mix_memory_copy_in(mix_tensor_value(all)->memory, (size_t)first * row, pinned.data,
                                       (size_t)count * row);
  mix_tensor_unpin(&pinned);
  return good;
}

bool mix_batch_collect(mix_list **all, mix_list *results, int64_t first, int64_t count, int64_t rows) {
  if (!*all && !(*all = unfilled_like(results, rows))) return false;
  for (int i = 0; i < mix_list_count(results); i++)
    if (!copy_result(mix_list_get(*all, i), mix_list_get(results, i), first, count)) return false;
  return true;
}
