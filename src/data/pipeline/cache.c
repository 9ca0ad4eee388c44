/* mix_dataset_cache: elements kept in memory after the first complete pass. */
#include "base/alloc.h"
#include "base/error.h"
#include "data/pipeline/background.h"
#include "data/pipeline/device_copy.h"
#include <pthread.h>
#include <string.h>

typedef struct kept {
  mix_element *elements; /* row numbers, or retained tensors */
  int count, capacity;
} kept;

typedef struct cache_dataset {
  mix_dataset base;
  pthread_mutex_t mutex; /* passes may run on several threads */
  bool complete, device;
  kept kept; /* constant once complete */
  /* constant once complete: the input's state at the start of the pass that filled the cache */
  uint64_t *from;
} cache_dataset;

typedef struct cache_cursor {
  mix_cursor base;
  bool replays;
  int next;
  kept kept;      /* of a first pass that has not ended */
  uint64_t *from; /* and the input's state at its start */
} cache_cursor;

static void drop(kept *kept) {
  for (int i = 0; i < kept->count; i++) mix_release(kept->elements[i].values);
  mix_free(kept->elements);
}

static bool is_complete(cache_dataset *dataset) {
  pthread_mutex_lock(&dataset->mutex);
  bool complete = dataset->complete;
  pthread_mutex_unlock(&dataset->mutex);
  return complete;
}

static bool cache_open(mix_cursor *cursor) {
  cache_cursor *cache = (cache_cursor *)cursor;
  mix_dataset *input = cursor->dataset->input;
  cache->replays = is_complete((cache_dataset *)cursor->dataset);
  return cache->replays ||
         ((cache->from = mix_dataset_state_now(input)) && (cursor->input = mix_cursor_open(input)));
}

/* Ends a first pass: its elements become the data set's, unless another pass ended earlier. */
static void complete(cache_cursor *cache) {
  cache_dataset *dataset = (cache_dataset *)cache->base.dataset;
  pthread_mutex_lock(&dataset->mutex);
  if (!dataset->complete) {
    dataset->kept = cache->kept;
    dataset->from = cache->from;
    dataset->complete = true;
    cache->kept = (kept){0};
    cache->from = NULL;
  }
  cache->replays = true;
  cache->next = dataset->kept.count;
  pthread_mutex_unlock(&dataset->mutex);
}

/* Elements that are row numbers have no values to copy. */
static bool move_to_device(mix_element *element) {
  mix_list *copies = NULL;
  if (!element->values) return true;
  MIX_SCOPE { copies = mix_retain(mix_device_copy(element->values)); }
  if (!copies) return false;
  mix_release(element->values);
  element->values = copies;
  return true;
}

static bool keep(cache_cursor *cache, mix_element *element) {
  kept *kept = &cache->kept;
  const bool device = ((const cache_dataset *)cache->base.dataset)->device && mix_device_copies();
  if ((device && !move_to_device(element)) ||
      !mix_reserve(&kept->elements, &kept->capacity, kept->count + 1, sizeof *kept->elements))
    return false;
  kept->elements[kept->count++] = (mix_element){element->row, mix_retain(element->values)};
  return true;
}

static mix_pull cache_next(mix_cursor *cursor, mix_element *element) {
  cache_cursor *cache = (cache_cursor *)cursor;
  const kept *from = &((const cache_dataset *)cursor->dataset)->kept;
  if (cache->replays) {
    if (cache->next == from->count) return MIX_PULL_END;
    *element = from->elements[cache->next++];
    mix_retain(element->values);
    return MIX_PULL_ELEMENT;
  }
  mix_pull pull = mix_cursor_next(cursor->input, element);
  if (pull == MIX_PULL_END && !mix_background_await_receiver()) return MIX_PULL_FAILED;
  if (pull == MIX_PULL_END) complete(cache);
  if (pull != MIX_PULL_ELEMENT) return pull;
  if (!keep(cache, element)) return mix_element_drop(element), MIX_PULL_FAILED;
  return MIX_PULL_ELEMENT;
}

static void cache_close(mix_cursor *cursor) {
  cache_cursor *cache = (cache_cursor *)cursor;
  drop(&cache->kept);
  mix_free(cache->from);
}

static void cache_finalize(mix_dataset *dataset) {
  cache_dataset *cache = (cache_dataset *)dataset;
  drop(&cache->kept);
  mix_free(cache->from);
  pthread_mutex_destroy(&cache->mutex);
}

/* A checkpoint does not hold the cached elements. It holds the input's state at the start of the pass that
 * filled the cache, in place of the current state, because a complete cache does not read its input again.
 * Layout: 0, whether it is complete, the input's state. */
enum { OWN_STATE = 2 };
static int cache_save(mix_dataset *dataset, uint64_t *state) {
  cache_dataset *cache = (cache_dataset *)dataset;
  uint64_t *input_state = state ? state + OWN_STATE : NULL;
  int count = mix_dataset_save_state(dataset->input, input_state);
  if (count < 0) return count;
  if (state) {
    state[0] = 0;
    state[1] = is_complete(cache);
    if (state[1]) memcpy(input_state, cache->from, (size_t)count * sizeof *input_state);
  }
  return OWN_STATE + count;
}

/* Fills the cache with a pass from the recorded state. The input's state is restored afterwards, because
 * other consumers of the input (a branch of a zip) depend on it. */
static bool fill_from(mix_dataset *dataset, const uint64_t *from) {
  uint64_t *now = mix_dataset_state_now(dataset->input);
  if (now && mix_dataset_restore_state(dataset->input, from)) {
    MIX_SCOPE {
      mix_iterator *pass = mix_dataset_iterate(dataset);
      while (mix_iterator_next(pass)) {}
    }
    if (!mix_failed()) mix_dataset_restore_state(dataset->input, now);
  }
  mix_free(now);
  return !mix_failed();
}

static bool cache_restore(mix_dataset *dataset, const uint64_t *state) {
  if (is_complete((cache_dataset *)dataset)) return true;
  return state[1] ? fill_from(dataset, state + OWN_STATE)
                  : mix_dataset_restore_state(dataset->input, state + OWN_STATE);
}

static const mix_dataset_class cache_class = {
    .name = "cache",
    .cursor_size = sizeof(cache_cursor),
    .open = cache_open,
    .opens_input = true,
    .next = cache_next,
    .close = cache_close,
    .finalize = cache_finalize,
    .save = cache_save,
    .restore = cache_restore,
};

mix_dataset *(mix_dataset_cache)(mix_dataset *input) {
  return mix_dataset_cache_with(
      &(mix_dataset_cache_options){.size = sizeof(mix_dataset_cache_options), .dataset = input});
}

mix_dataset *mix_dataset_cache_with(const mix_dataset_cache_options *given) {
  MIX_OPTIONS(mix_dataset_cache_options, options, given, "dataset_cache");
  if (!mix_dataset_given(options.dataset, "dataset_cache")) return NULL;
  cache_dataset *dataset = mix_dataset_new(sizeof *dataset, &cache_class, options.dataset, true);
  if (!dataset) return NULL;
  dataset->device = options.device;
  pthread_mutex_init(&dataset->mutex, NULL);
  return mix_scoped(dataset);
}
