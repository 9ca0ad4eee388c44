/* Batches of whole arrays, gathered by the row order of each epoch. */
#include "data/pipeline/array_batches.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/philox.h"
#include "base/processor.h"
#include "backend/backend.h"
#include "data/pipeline/background.h"
#include "data/pipeline/gather.h"
#include "distribute/distribute.h"
#include "tensor/shape.h"

/* Batches of the thread that gathers: those that wait, fewer if they are large. */
enum { AHEAD = 4, LARGE_AHEAD = 2, LARGE_BYTES = 1 << 20 };
/* A thread pays from copies of tens of microseconds on: handing one over takes a few. The first steps
 * compile, so the threads that plans use are known after them. */
enum { MIN_BYTES = 1 << 16, FIRST_STEPS = 2 };

struct mix_batches {
  mix_object object;
  mix_list *arrays;                        /* retained */
  int64_t first, rows, batch_size, length; /* length: of the arrays */
  int64_t *order;                          /* (rows): absolute row numbers; NULL: in storage order */
  mix_dtype *rounded;                      /* of each array; MIX_DTYPE_NONE: its own */
  mix_buffers buffers;                     /* the thread's while there is one */
  mix_list *current;                       /* retained */
  bool shared;                             /* among the ranks */
  int64_t count;                           /* 0: what the rows give */
  int64_t given;                           /* batches since the first pass began */
  /* The thread that gathers; NULL: none. */
  mix_background *ahead;
  bool forked;    /* it stayed in the parent: this child does without */
  int64_t next;   /* the batch that it delivers next */
  int64_t making; /* the one that it makes next; the thread's own */
};

static void batches_finalize(void *object) {
  mix_batches *batches = object;
  mix_batches_stop(batches);
  mix_release(batches->current);
  mix_buffers_clear(&batches->buffers);
  mix_free(batches->order);
  mix_free(batches->rounded);
  mix_release(batches->arrays);
}

static const mix_class batches_class = {.name = "batches", .finalize = batches_finalize};

mix_batches *mix_batches_new(int count, mix_tensor *const *arrays, int64_t first, int64_t rows,
                             int64_t batch_size, const char *call) {
  if (mix_failed()) return NULL;
  if (batch_size < 1)
    return mix_fail_value("%s: batch_size is %lld; expected 1 or more", call, (long long)batch_size);
  int64_t length = mix_rows_check(count, arrays, NULL, call);
  if (length < 0) return NULL;
  if (rows < 0) rows = length - first;
  if (first < 0 || rows < 1 || rows > length - first)
    return mix_fail_value("%s: rows %lld to %lld of %lld examples; expected at least one, inside the data",
                          call, (long long)first, (long long)(first + rows), (long long)length);
  mix_batches *batches = mix_object_new(sizeof *batches, &batches_class);
  if (!batches) return NULL;
  batches->first = first;
  batches->length = length;
  batches->rows = rows;
  batches->batch_size = batch_size < rows ? batch_size : rows;
  batches->arrays = mix_retain(mix_list_new(count, (void *const *)arrays));
  batches->rounded = mix_calloc((size_t)count + 1, sizeof *batches->rounded);
  if (batches->arrays && batches->rounded && mix_buffers_init(&batches->buffers, count))
    return mix_scoped(batches);
  mix_release(batches);
  return NULL;
}

void mix_batches_share(mix_batches *batches) { batches->shared = true; }
mix_list *mix_batches_arrays(const mix_batches *batches) { return batches->arrays; }
int64_t mix_batches_rows(const mix_batches *batches) { return batches->rows; }
int64_t mix_batches_count(const mix_batches *batches) {
  const int64_t own = (batches->rows - 1) / batches->batch_size + 1;
  return batches->count > own ? batches->count : own;
}
void mix_batches_round(mix_batches *batches, int index, mix_dtype dtype) {
  mix_batches_stop(batches);
  batches->rounded[index] = dtype;
}
void mix_batches_extend(mix_batches *batches, int64_t count) { batches->count = count; }

int64_t mix_batches_size(const mix_batches *batches, int64_t index) {
  int64_t left = batches->rows - index * batches->batch_size;
  if (left < 0) left = 0;
  return left < batches->batch_size ? left : batches->batch_size;
}

/* Fisher-Yates shuffle of `count` blocks of `size` entries. */
static void permute(int64_t *order, int64_t count, int64_t size, uint64_t seed, uint64_t epoch) {
  uint64_t position = 0;
  for (int64_t i = count - 1; i > 0; i--) {
    int64_t other = (int64_t)mix_philox_below(seed, epoch, &position, (uint64_t)i + 1);
    for (int64_t j = 0; j < size; j++) {
      int64_t swapped = order[i * size + j];
      order[i * size + j] = order[other * size + j];
      order[other * size + j] = swapped;
    }
  }
}

bool mix_batches_begin(mix_batches *batches, mix_batch_order order, uint64_t seed, uint64_t epoch) {
  if (mix_failed()) return false;
  mix_batches_stop(batches);
  if (order == MIX_ORDER_KEPT) {
    mix_free(batches->order);
    batches->order = NULL;
    return true;
  }
  if (!batches->order && !(batches->order = mix_calloc((size_t)batches->rows, sizeof *batches->order)))
    return false;
  for (int64_t i = 0; i < batches->rows; i++) batches->order[i] = batches->first + i;
  bool rows = order == MIX_ORDER_ROWS;
  permute(batches->order, rows ? batches->rows : batches->rows / batches->batch_size,
          rows ? 1 : batches->batch_size, seed, epoch);
  return true;
}

int64_t mix_batches_row(const mix_batches *batches, int64_t index, int64_t row) {
  int64_t first = 0, rows = mix_batches_size(batches, index);
  if (batches->shared) mix_rank_share(rows, &first, &rows);
  const int64_t at = index * batches->batch_size + first + row;
  return batches->order ? batches->order[at] : batches->first + at;
}

/* One reference, the caller's. */
static mix_list *gather(mix_batches *batches, int64_t index) {
  int64_t start = index * batches->batch_size, first = 0, rows = mix_batches_size(batches, index);
  const bool whole = rows == batches->batch_size;
  if (batches->shared) mix_rank_share(rows, &first, &rows);
  start = rows ? start + first : 0;
  return mix_rows_gather(mix_list_count(batches->arrays),
                         (mix_tensor *const *)mix_list_items(batches->arrays),
                         batches->order ? batches->order + start : NULL, batches->first + start, rows, true,
                         batches->order && whole ? batches->rounded : NULL, &batches->buffers);
}

/* ---- the thread that gathers ---- */

static mix_pull make_next(void *context, mix_element *element) {
  mix_batches *batches = context;
  if (batches->making == mix_batches_count(batches)) return MIX_PULL_END;
  const int64_t index = batches->making++;
  *element = (mix_element){.values = gather(batches, index)};
  return element->values ? MIX_PULL_ELEMENT : MIX_PULL_FAILED;
}

static size_t batch_bytes(const mix_batches *batches) {
  size_t bytes = 0;
  for (int i = 0; i < mix_list_count(batches->arrays); i++) {
    const mix_tensor *array = mix_list_get(batches->arrays, i);
    if (array)
      bytes += mix_value_bytes(mix_tensor_dtype(array), mix_tensor_shape(array)) / (size_t)batches->length *
               (size_t)batches->batch_size;
  }
  return bytes;
}

/* Rows in their order are not copied. Of several ranks each has its part of the cores. */
static bool pays(const mix_batches *batches, int64_t left) {
  return batches->order && !batches->forked && batches->given >= FIRST_STEPS && left > AHEAD &&
         !mix_is_distributed() && mix_threads_awake() < mix_cpu_cores() && batch_bytes(batches) >= MIN_BYTES;
}

/* Without a thread all goes on as before. */
static void start(mix_batches *batches, int64_t index) {
  batches->next = batches->making = index;
  batches->ahead = mix_background_start(
      &(mix_background_options){.make = make_next,
                                .context = batches,
                                .name = "batch",
                                .threads = 1,
                                .capacity = batch_bytes(batches) < LARGE_BYTES ? AHEAD : LARGE_AHEAD,
                                .lazy = true});
  if (!batches->ahead) mix_error_clear();
}

void mix_batches_stop(mix_batches *batches) {
  mix_background_stop(batches->ahead);
  batches->ahead = NULL;
}

static mix_list *next_of_thread(mix_batches *batches) {
  mix_element element = {0};
  batches->next++;
  return mix_background_next(batches->ahead, &element) == MIX_PULL_ELEMENT ? element.values : NULL;
}

mix_list *mix_batches_get(mix_batches *batches, int64_t index) {
  if (mix_failed()) return NULL;
  if (index < 0 || index >= mix_batches_count(batches))
    return mix_fail_value("batch %lld of an epoch of %lld", (long long)index,
                          (long long)mix_batches_count(batches));
  mix_release(batches->current);
  batches->current = NULL;
  if (batches->ahead && !mix_background_is_here(batches->ahead)) batches->forked = true;
  if (batches->ahead && (index != batches->next || batches->forked)) mix_batches_stop(batches);
  if (batches->ahead) return batches->current = next_of_thread(batches);
  batches->current = gather(batches, index);
  if (batches->current && pays(batches, mix_batches_count(batches) - index)) start(batches, index + 1);
  batches->given++;
  return batches->current;
}
