/* Gathers rows of arrays into tensors. */
#include "data/pipeline/gather.h"

#include "backend/backend.h"
#include "backend/cpu/simd/round_floats.h"
#include "base/crew.h"
#include "base/error.h"
#include "compile/evaluate.h"
#include "graph/unfilled_tensor.h"
#include "graph/lock.h"
#include "tensor/shape.h"
#include <mixtape/device.h>
#include <stdio.h>
#include <string.h>

/* The length of axis 0; -1 with the error recorded. */
static int64_t length_of(mix_tensor *array, const char *what, int64_t length, const char *call) {
  char text[160];
  if (mix_tensor_is_symbolic(array)) {
    mix_fail_type("%s: %s descends from mix_input and has no value", call, what);
    return -1;
  }
  mix_shape shape = mix_tensor_shape(array);
  mix_shape_text(shape, text, sizeof text);
  if (shape.rank < 1)
    mix_fail_value("%s: %s is a scalar; expected a tensor whose axis 0 counts the examples", call, what);
  else if (shape.dims[0] < 1)
    mix_fail_value("%s: %s has shape %s: the data set is empty", call, what, text);
  else if (length >= 0 && shape.dims[0] != length)
    mix_fail_value(
        "%s: %s has shape %s, but those before it have %lld examples; all must have the same number", call,
        what, text, (long long)length);
  return mix_failed() ? -1 : shape.dims[0];
}

int64_t mix_rows_check(int count, mix_tensor *const *arrays, const mix_structure *structure,
                       const char *call) {
  int64_t length = -1;
  char what[256];
  for (int i = 0; i < count; i++) {
    if (!arrays[i]) continue;
    if (!mix_is(arrays[i], &mix_tensor_class)) {
      if (structure)
        mix_leaf_text(structure, i, what, sizeof what);
      else
        snprintf(what, sizeof what, "item %d", i);
      mix_fail_type("%s: %s is another object; expected a tensor", call, what);
      return -1;
    }
    length = length_of(arrays[i], mix_leaf_text(structure, i, what, sizeof what), length, call);
    if (length < 0 || !mix_tensor_data(arrays[i])) return -1;
  }
  if (length < 0) mix_fail_value("%s: no tensors; expected at least one", call);
  return length;
}

/* One core cannot use the full memory bandwidth. Copies from SHARED_BYTES on use threads that are awake
 * (about a microsecond to start); from PARALLEL_BYTES on also sleeping threads, which take tens of
 * microseconds to wake. */
enum { SHARED_BYTES = 1 << 16, PARALLEL_BYTES = 1 << 20 };

typedef struct copying {
  char *to;
  const char *source;
  const int64_t *rows;
  int64_t first, count;
  size_t row;
  mix_dtype rounded; /* MIX_DTYPE_NONE: the rows are copied as they are */
  int shares;
} copying;

static void copy_row(const copying *x, int64_t i) {
  const char *from = x->source + (size_t)(x->rows ? x->rows[i] : x->first + i) * x->row;
  if (x->rounded == MIX_DTYPE_NONE)
    memcpy(x->to + (size_t)i * x->row, from, x->row);
  else
    mix_round_floats((uint16_t *)(x->to + (size_t)i * x->row / 2), (const float *)from, x->rounded,
                     (int64_t)(x->row / sizeof(float)));
}

static void copy_share(void *context, int stage, int share) {
  const copying *x = context;
  const int64_t begin = x->count * share / x->shares, end = x->count * (share + 1) / x->shares;
  for (int64_t i = begin; i < end; i++) copy_row(x, i);
}

static void copy_rows(copying x) {
  const size_t bytes = (size_t)x.count * x.row;
  int threads = bytes >= SHARED_BYTES ? mix_threads() : 1;
  if (bytes < PARALLEL_BYTES && threads > mix_threads_awake()) threads = mix_threads_awake();
  if (threads > x.count) threads = (int)x.count;
  x.shares = threads;
  const mix_crew_stage stage = {.shares = threads};
  const mix_crew_work work = {&stage, 1, copy_share, &x};
  if (threads > 1 && mix_crew_run(&work, threads) != MIX_CREW_TOO_FEW) return;
  x.shares = 1;
  copy_share(&x, 0, 0);
}

/* A view of consecutive rows in the array's memory. NULL without an error if they must be copied: the memory
 * belongs to a variable, which may move its old value before it is written, or the rows are not aligned as
 * kernels require. */
static mix_memory *part_of(const mix_tensor *array, size_t offset, size_t bytes) {
  mix_memory *whole = mix_tensor_value(array)->memory;
  mix_graph_lock();
  const bool moves = mix_memory_is_storage(whole), aligned = mix_memory_is_aligned(whole, offset);
  mix_graph_unlock();
  return moves || !aligned ? NULL : mix_memory_part(whole, offset, bytes);
}

/* Gathers the rows of one array as a tensor of the current scope. */
static mix_tensor *gather_one(mix_tensor *array, const int64_t *rows, int64_t first, int64_t count,
                              bool stacked, mix_dtype rounded, mix_memory **buffer) {
  if (!mix_tensor_data(array)) return NULL;
  const mix_dtype own = mix_tensor_dtype(array), dtype = rounded == MIX_DTYPE_NONE ? own : rounded;
  mix_shape shape = mix_tensor_shape(array);
  shape.dims[0] = 1;
  const size_t row = mix_value_bytes(own, shape), bytes = mix_value_bytes(dtype, shape) * (size_t)count;
  shape.dims[0] = count;
  if (!stacked) {
    shape.rank--;
    memmove(shape.dims, shape.dims + 1, (size_t)shape.rank * sizeof *shape.dims);
  }
  mix_memory *part =
      !rows && stacked && count && dtype == own ? part_of(array, (size_t)first * row, bytes) : NULL;
  if (part) {
    mix_tensor *tensor = mix_tensor_of_memory(part, dtype, shape);
    mix_release(part);
    return tensor;
  }
  mix_pinned pinned;
  if (mix_failed() || !mix_memory_reuse(buffer, bytes) || !mix_tensor_pin(array, &pinned)) return NULL;
  void *to = mix_memory_map(*buffer, MIX_MAP_WRITE);
  if (to)
    copy_rows((copying){.to = to,
                        .source = pinned.data,
                        .rows = rows,
                        .first = first,
                        .count = count,
                        .row = row,
                        .rounded = rounded});
  if (to) mix_memory_unmap(*buffer);
  mix_tensor_unpin(&pinned);
  if (!to || mix_failed()) return NULL;
  return mix_tensor_of_memory(*buffer, dtype, shape);
}

mix_list *mix_rows_gather(int array_count, mix_tensor *const *arrays, const int64_t *rows, int64_t first,
                          int64_t count, bool stacked, const mix_dtype *rounded, mix_buffers *buffers) {
  if (mix_failed()) return NULL;
  mix_scope *scope = mix_scope_begin();
  mix_list *list = scope ? mix_list_new(0, NULL) : NULL;
  for (int i = 0; list && i < array_count; i++) {
    mix_tensor *tensor = arrays[i] ? gather_one(arrays[i], rows, first, count, stacked,
                                                rounded ? rounded[i] : MIX_DTYPE_NONE, &buffers->items[i])
                                   : NULL;
    if ((arrays[i] && !tensor) || mix_list_append(list, tensor) != MIX_OK) list = NULL;
  }
  mix_retain(list);
  mix_scope_end(scope);
  return list;
}
