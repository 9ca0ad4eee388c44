/* Arrays of a fit that stay in the memory of a device: they are copied once, and a captured function gathers
 * the rows of each batch there, in the host's order. */
#include "train/resident.h"

#include "backend/backend.h"
#include "base/alloc.h"
#include "base/error.h"
#include "data/pipeline/device_copy.h"
#include "distribute/distribute.h"
#include "graph/unfilled_tensor.h"
#include "ops/table.h"
#include "tensor/shape.h"
#include <mixtape/function.h>

enum { PART = 4 }; /* of the free memory, in all */

struct mix_resident {
  mix_list *arrays; /* on the device: retained */
  mix_function *gather;
  mix_memory *rows; /* of the batch: of the host */
};

static mix_list *gather(void *context, mix_list *arguments) {
  (void)context;
  mix_list *batch = mix_list_new(0, NULL);
  for (int i = 1; i < mix_list_count(arguments); i++)
    mix_list_append(batch, mix_gather_rows(mix_list_get(arguments, i), mix_list_get(arguments, 0)));
  return mix_failed() ? NULL : batch;
}

static size_t bytes_of(mix_tensor *array) {
  return mix_value_bytes(mix_tensor_dtype(array), mix_tensor_shape(array));
}

/* The place of the same array before `i`, such as inputs that stand for labels; -1: none. */
static int earlier(mix_list *arrays, int i) {
  for (int k = 0; k < i; k++)
    if (mix_list_get(arrays, k) == mix_list_get(arrays, i)) return k;
  return -1;
}

static bool has_room(mix_list *arrays) {
  const mix_backend *backend = mix_backend_current();
  size_t bytes = 0, free = backend->free_bytes ? backend->free_bytes() : 0;
  for (int i = 0; i < mix_list_count(arrays); i++)
    if (earlier(arrays, i) < 0) bytes += bytes_of(mix_list_get(arrays, i));
  return bytes && bytes <= free / PART;
}

/* Several ranks compute on processors, whose memory is the host's. */
mix_resident *mix_resident_new(mix_list *arrays) {
  if (mix_failed() || mix_is_distributed() || !has_room(arrays)) return NULL;
  mix_resident *resident = mix_calloc(1, sizeof *resident);
  if (!resident) return NULL;
  mix_function_options options = {.size = sizeof options, .body = gather, .name = "batch"};
  MIX_SCOPE {
    resident->arrays = mix_retain(mix_device_copy(arrays));
    resident->gather = resident->arrays ? mix_retain(mix_function_with(&options)) : NULL;
  }
  if (resident->gather) return resident;
  mix_resident_free(resident);
  if (mix_error() == MIX_MEMORY_ERROR) mix_error_clear();
  return NULL;
}

mix_resident *mix_resident_keep(mix_kept_arrays *kept, mix_list *arrays) {
  if (!kept->asked) kept->resident = mix_resident_new(arrays);
  kept->asked = true;
  return kept->resident;
}

void mix_resident_free(mix_resident *resident) {
  if (!resident) return;
  mix_release(resident->gather);
  mix_release(resident->arrays);
  mix_memory_end_reuse(&resident->rows);
  mix_free(resident);
}

static mix_tensor *rows_of(mix_resident *resident, const mix_batches *batches, int64_t index) {
  const int64_t count = mix_batches_size(batches, index);
  int64_t *rows = NULL;
  if (mix_memory_reuse(&resident->rows, sizeof *rows * (size_t)count))
    rows = mix_memory_map(resident->rows, MIX_MAP_WRITE);
  for (int64_t i = 0; rows && i < count; i++) rows[i] = mix_batches_row(batches, index, i);
  if (rows) mix_memory_unmap(resident->rows);
  return rows ? mix_tensor_of_memory(resident->rows, MIX_INT64, MIX_SHAPE(count)) : NULL;
}

mix_list *mix_resident_batch(mix_resident *resident, const mix_batches *batches, int64_t index) {
  mix_tensor *rows = rows_of(resident, batches, index);
  mix_list *arguments = rows ? mix_list_of(rows) : NULL;
  for (int i = 0; arguments && i < mix_list_count(resident->arrays); i++)
    mix_list_append(arguments, mix_list_get(resident->arrays, i));
  return mix_failed() ? NULL : mix_function_call(resident->gather, arguments);
}
