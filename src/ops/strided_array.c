/* Tensors of arrays whose elements lie in another order than C's. */
#include "base/error.h"
#include "graph/node.h"
#include "tensor/shape.h"
#include "tensor/type.h"
#include <mixtape/ops.h>
#include <stdio.h>
#include <string.h>

#define FROM "tensor_from_strided"
#define WRAP "tensor_wrap_strided"
enum { TEXT_MAX = 200 };

/* Strides may be negative, which mix_shape_text takes for unknown. */
static const char *strides_text(mix_shape strides, char text[TEXT_MAX]) {
  size_t used = 0;
  for (int i = 0; i < strides.rank && i < MIX_MAX_RANK; i++)
    used +=
        (size_t)snprintf(text + used, TEXT_MAX - used, "%s%lld", i ? ", " : "(", (long long)strides.dims[i]);
  snprintf(text + used, TEXT_MAX - used, used ? ")" : "()");
  return text;
}

static bool check(const char *call, const void *data, mix_dtype dtype, mix_shape shape, mix_shape strides) {
  if (!mix_tensor_check_array(call, data, dtype, shape)) return false;
  if (strides.rank == shape.rank) return true;
  return mix_fail_value("%s: %d strides for the shape %s; expected %d, one for each axis, in elements", call,
                        strides.rank, MIX_SHAPE_TEXT(shape), shape.rank);
}

/* ---- copying ---- */

/* Do the offsets of all elements fit into 60 bits, in bytes? */
static bool check_reach(mix_shape shape, mix_shape strides, size_t size) {
  const int64_t limit = (INT64_C(1) << 60) / (int64_t)size;
  int64_t reach = 0, all;
  for (int i = 0; i < shape.rank; i++) {
    char text[TEXT_MAX];
    bool fits = strides.dims[i] > -limit && strides.dims[i] < limit &&
                !__builtin_mul_overflow(shape.dims[i] - 1,
                                        strides.dims[i] < 0 ? -strides.dims[i] : strides.dims[i], &all) &&
                !__builtin_add_overflow(reach, all, &reach) && reach < limit;
    if (!fits)
      return mix_fail_value(FROM ": the strides %s of the shape %s lead 2^60 bytes away or more; they count "
                                 "elements, one for each axis",
                            strides_text(strides, text), MIX_SHAPE_TEXT(shape));
  }
  return true;
}

static void copy_run(char *to, const char *from, int64_t count, int64_t stride, size_t size) {
  if (stride == 1)
    memcpy(to, from, (size_t)count * size);
  else
    for (int64_t i = 0; i < count; i++, to += size, from += stride * (int64_t)size) memcpy(to, from, size);
}

/* Moves to the next index of the axes before the last one. False at the end. */
static bool next_run(int64_t *index, int64_t *offset, mix_shape shape, mix_shape strides) {
  for (int axis = shape.rank - 2; axis >= 0; axis--) {
    *offset += strides.dims[axis];
    if (++index[axis] < shape.dims[axis]) return true;
    *offset -= strides.dims[axis] * shape.dims[axis];
    index[axis] = 0;
  }
  return false;
}

static void copy_strided(char *to, const char *from, mix_shape shape, mix_shape strides, size_t size) {
  const int last = shape.rank - 1;
  const int64_t count = last < 0 ? 1 : shape.dims[last], stride = last < 0 ? 1 : strides.dims[last];
  int64_t index[MIX_MAX_RANK] = {0}, offset = 0;
  do {
    copy_run(to, from + offset * (int64_t)size, count, stride, size);
    to += count * (int64_t)size;
  } while (next_run(index, &offset, shape, strides));
}

mix_tensor *mix_tensor_from_strided(const void *data, mix_dtype dtype, mix_shape shape, mix_shape strides) {
  if (!check(FROM, data, dtype, shape, strides)) return NULL;
  if (mix_shape_size(shape) == 0) return mix_tensor_from(NULL, dtype, shape);
  if (!check_reach(shape, strides, mix_dtype_size(dtype))) return NULL;
  mix_memory *memory = mix_memory_new(&mix_host_memory, mix_value_bytes(dtype, shape));
  void *bytes = memory ? mix_memory_map(memory, MIX_MAP_WRITE) : NULL;
  if (bytes) copy_strided(bytes, data, shape, strides, mix_dtype_size(dtype));
  if (bytes) mix_memory_unmap(memory);
  mix_node *node = bytes ? mix_node_constant(memory, dtype, shape) : NULL;
  mix_tensor *tensor = mix_tensor_of(node, 0);
  mix_release(node);
  mix_release(memory);
  return tensor;
}

/* ---- views ---- */

/* The stride of an axis of one index says nothing. */
static bool lies_without_gaps(mix_shape shape, mix_shape strides, const int *order) {
  int64_t expected = 1;
  for (int k = shape.rank - 1; k >= 0; k--) {
    if (shape.dims[order[k]] != 1 && strides.dims[order[k]] != expected) return false;
    expected *= shape.dims[order[k]];
  }
  return true;
}

static bool lies_behind(mix_shape shape, mix_shape strides, int axis, int other) {
  return shape.dims[axis] != 1 && (shape.dims[other] == 1 || strides.dims[axis] < strides.dims[other]);
}

/* The axes as they lie in memory, the one with the largest stride first. False if no order has no gaps. */
static bool find_order(mix_shape shape, mix_shape strides, int order[MIX_MAX_RANK]) {
  for (int i = 0; i < shape.rank; i++) order[i] = i;
  if (lies_without_gaps(shape, strides, order)) return true;
  for (int i = 1; i < shape.rank; i++)
    for (int k = i; k > 0 && lies_behind(shape, strides, order[k - 1], order[k]); k--) {
      const int axis = order[k];
      order[k] = order[k - 1];
      order[k - 1] = axis;
    }
  return lies_without_gaps(shape, strides, order);
}

static mix_shape column_strides(mix_shape shape) {
  mix_shape strides = {.rank = shape.rank};
  int64_t stride = 1;
  for (int i = 0; i < shape.rank; stride *= shape.dims[i++]) strides.dims[i] = stride;
  return strides;
}

static mix_tensor *refuse(mix_shape shape, mix_shape strides) {
  char given[TEXT_MAX], column[TEXT_MAX];
  return mix_fail_value(
      WRAP
      ": the strides %s of the shape %s leave gaps, overlap or go backwards; without a copy the axes may "
      "only lie in another order, as in column order, %s; mix_tensor_from_strided copies by any strides",
      strides_text(strides, given), MIX_SHAPE_TEXT(shape), strides_text(column_strides(shape), column));
}

/* The array as it lies, transposed to the caller's axes. */
static mix_tensor *wrap_in_order(void *data, mix_dtype dtype, mix_shape shape, const int *order,
                                 mix_tensor **whole) {
  mix_shape lying = {.rank = shape.rank};
  mix_axes permutation = {.count = shape.rank};
  bool same = true;
  for (int k = 0; k < shape.rank; k++) {
    lying.dims[k] = shape.dims[order[k]];
    permutation.axis[order[k]] = k;
    same = same && order[k] == k;
  }
  *whole = mix_tensor_wrap(data, dtype, lying, NULL);
  return same ? *whole : mix_transpose(*whole, permutation);
}

mix_tensor *mix_tensor_wrap_strided(void *data, mix_dtype dtype, mix_shape shape, mix_shape strides,
                                    void (*release)(void *data)) {
  int order[MIX_MAX_RANK];
  mix_tensor *whole;
  if (!check(WRAP, data, dtype, shape, strides)) return NULL;
  if (mix_shape_size(shape) == 0) return mix_tensor_wrap(data, dtype, shape, release);
  if (!find_order(shape, strides, order)) return refuse(shape, strides);
  mix_tensor *tensor = wrap_in_order(data, dtype, shape, order, &whole);
  /* Set last: if the call fails, the caller still owns the memory. */
  if (tensor && release) mix_memory_own_wrapped(mix_tensor_value(whole)->memory, release);
  return tensor;
}
