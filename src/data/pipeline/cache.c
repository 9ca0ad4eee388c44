/* Elements kept in memory from the first whole pass on. */
#include "base/alloc.h"
#include "base/error.h"
#include "data/pipeline/pipeline.h"
#include <pthread.h>
#include <string.h>

typedef struct kept {
  mix_element *elements; /* rows, or tensors retained */
  int count, capacity;
} kept;

typedef struct cache_dataset {
  mix_dataset base;
  pthread_mutex_t mutex; /* passes may run on several threads */
  bool complete;
  kept kept;      /* does not change once complete, nor does ... */
  uint64_t *from; /* the input's memory as the pass that filled it began */
} cache_dataset;

typedef struct cache_cursor {
  mix_cursor base;
  bool replays;
  int next;
  kept kept;      /* of a first pass that has not come to its end */
  uint64_t *from; /* and where it began */
} cache_cursor;

static int64_t cache_cardinality(const mix_dataset *dataset) {
  return dataset->input->class->cardinality(dataset->input);
}

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

/* The end of a first pass: what it kept is the data set's, unless another pass was quicker. */
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
  if (pull == MIX_PULL_END) complete(cache);
  if (pull != MIX_PULL_ELEMENT) return pull;
  if (!mix_reserve(&cache->kept.elements, &cache->kept.capacity, cache->kept.count + 1,
                   sizeof *cache->kept.elements)) {
    mix_release(element->values);
    *element = (mix_element){0};
    return MIX_PULL_FAILED;
  }
  cache->kept.elements[cache->kept.count++] = (mix_element){element->row, mix_retain(element->values)};
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

/* What is kept is not in a checkpoint, but where the pass began that filled it, in place of where the input
 * is now: nothing more is asked of it. 0, is it complete?, the input's memory. */
enum { OWN_MEMORY = 2 };
static int cache_save(mix_dataset *dataset, uint64_t *memory) {
  cache_dataset *cache = (cache_dataset *)dataset;
  uint64_t *below = memory ? memory + OWN_MEMORY : NULL;
  int count = mix_dataset_save_state(dataset->input, below);
  if (memory) {
    memory[0] = 0;
    memory[1] = is_complete(cache);
    if (memory[1]) memcpy(below, cache->from, (size_t)count * sizeof *below);
  }
  return OWN_MEMORY + count;
}

/* Filled by a pass that begins where that one began. What else draws from the input (a branch of a zip) finds
 * it where it was. */
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

static bool cache_restore(mix_dataset *dataset, const uint64_t *memory) {
  if (is_complete((cache_dataset *)dataset)) return true;
  return memory[1] ? fill_from(dataset, memory + OWN_MEMORY)
                   : mix_dataset_restore_state(dataset->input, memory + OWN_MEMORY);
}

static const mix_dataset_class cache_class = {
    .name = "cache",
    .cursor_size = sizeof(cache_cursor),
    .cardinality = cache_cardinality,
    .open = cache_open,
    .opens_input = true,
    .next = cache_next,
    .close = cache_close,
    .finalize = cache_finalize,
    .save = cache_save,
    .restore = cache_restore,
};

mix_dataset *mix_dataset_cache(mix_dataset *input) {
  if (!mix_dataset_given(input, "dataset_cache")) return NULL;
  cache_dataset *dataset = mix_dataset_new(sizeof *dataset, &cache_class, input, true);
  if (!dataset) return NULL;
  pthread_mutex_init(&dataset->mutex, NULL);
  return mix_scoped(dataset);
}
