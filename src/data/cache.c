/* Elements kept in memory from the first whole pass on. */
#include "base/alloc.h"
#include "base/error.h"
#include "data/pipeline.h"
#include <pthread.h>

typedef struct kept {
  mix_element *elements; /* rows, or tensors retained */
  int count, capacity;
} kept;

typedef struct cache_dataset {
  mix_dataset base;
  pthread_mutex_t mutex; /* passes may run on several threads */
  bool complete;
  kept kept; /* does not change once complete */
} cache_dataset;

typedef struct cache_cursor {
  mix_cursor base;
  bool replays;
  int next;
  kept kept; /* of a first pass that has not come to its end */
} cache_cursor;

static int64_t cache_cardinality(const mix_dataset *dataset) { return dataset->input->class->cardinality(dataset->input); }

static void drop(kept *kept) {
  for (int i = 0; i < kept->count; i++) mix_release(kept->elements[i].values);
  mix_free(kept->elements);
}

static bool cache_open(mix_cursor *cursor) {
  cache_dataset *dataset = (cache_dataset *)cursor->dataset;
  pthread_mutex_lock(&dataset->mutex);
  ((cache_cursor *)cursor)->replays = dataset->complete;
  pthread_mutex_unlock(&dataset->mutex);
  return true;
}

/* The end of a first pass: what it kept is the data set's, unless another pass was quicker. */
static void complete(cache_cursor *cache) {
  cache_dataset *dataset = (cache_dataset *)cache->base.dataset;
  pthread_mutex_lock(&dataset->mutex);
  if (!dataset->complete) {
    dataset->kept = cache->kept;
    dataset->complete = true;
    cache->kept = (kept){0};
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
  if (!mix_reserve(&cache->kept.elements, &cache->kept.capacity, cache->kept.count + 1, sizeof *cache->kept.elements)) {
    mix_release(element->values);
    *element = (mix_element){0};
    return MIX_PULL_FAILED;
  }
  cache->kept.elements[cache->kept.count++] = (mix_element){element->row, mix_retain(element->values)};
  return MIX_PULL_ELEMENT;
}

static void cache_close(mix_cursor *cursor) { drop(&((cache_cursor *)cursor)->kept); }

static void cache_finalize(mix_dataset *dataset) {
  drop(&((cache_dataset *)dataset)->kept);
  pthread_mutex_destroy(&((cache_dataset *)dataset)->mutex);
}

/* What is kept is not in a checkpoint: it is made again by a pass over the input as it is now, at its beginning. */
static void cache_memory(mix_dataset *dataset, uint64_t memory[MIX_DATASET_MEMORY]) {
  cache_dataset *cache = (cache_dataset *)dataset;
  pthread_mutex_lock(&cache->mutex);
  memory[0] = 0;
  memory[1] = cache->complete;
  pthread_mutex_unlock(&cache->mutex);
}
static bool cache_remember(mix_dataset *dataset, const uint64_t memory[MIX_DATASET_MEMORY]) {
  uint64_t now[MIX_DATASET_MEMORY];
  cache_memory(dataset, now);
  if (now[1] || !memory[1]) return true;
  MIX_SCOPE {
    mix_iterator *pass = mix_dataset_iterate(dataset);
    while (mix_iterator_next(pass)) {}
  }
  return !mix_failed();
}

static const mix_dataset_class cache_class = {
    .name = "cache",
    .cursor_size = sizeof(cache_cursor),
    .cardinality = cache_cardinality,
    .open = cache_open,
    .next = cache_next,
    .close = cache_close,
    .finalize = cache_finalize,
    .memory = cache_memory,
    .remember = cache_remember,
};

mix_dataset *mix_dataset_cache(mix_dataset *input) {
  if (!mix_dataset_given(input, "dataset_cache")) return NULL;
  cache_dataset *dataset = mix_dataset_new(sizeof *dataset, &cache_class, input, true);
  if (!dataset) return NULL;
  pthread_mutex_init(&dataset->mutex, NULL);
  return mix_scoped(dataset);
}
