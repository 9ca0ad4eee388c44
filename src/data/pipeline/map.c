/* mix_dataset_map: a function of each element, called on the receiver's thread or on worker threads. */
#include "base/alloc.h"
#include "base/error.h"
#include "data/pipeline/prefetch_policy.h"
#include "data/pipeline/background.h"
#include "data/pipeline/row_stream.h"
#include <mixtape/device.h>

enum { MAX_THREADS = 1024 };

typedef struct map_dataset {
  mix_dataset base;
  mix_dataset_map_options options;
} map_dataset;

typedef struct map_cursor {
  mix_cursor base;
  mix_buffers *buffers; /* one per thread: the rows passed to the function */
  int threads;          /* 0: the function runs on the receiver's thread */
  /* for num_parallel_calls = -1: runs on the receiver's thread until threads are known to help */
  mix_prefetch_policy policy;
  mix_background *background; /* NULL until it is needed */
  int64_t made;               /* elements made before that */
} map_cursor;

static bool map_open(mix_cursor *cursor) {
  map_cursor *map = (map_cursor *)cursor;
  int64_t requested = ((const map_dataset *)cursor->dataset)->options.num_parallel_calls;
  map->threads = requested < 0 ? mix_threads() : (int)requested;
  mix_prefetch_policy_open(&map->policy, requested < 0);
  map->buffers = mix_calloc(map->threads ? (size_t)map->threads : 1, sizeof *map->buffers);
  return map->buffers != NULL;
}

/* Replaces the element by the result of the function. `turn` counts from map->made. */
static bool apply(void *context, int thread, int64_t turn, mix_element *element) {
  map_cursor *map = context;
  const map_dataset *dataset = (const map_dataset *)map->base.dataset;
  mix_scope *scope = mix_scope_begin();
  mix_list *made = NULL;
  if (scope && mix_element_own(dataset->base.input, element, &map->buffers[thread])) {
    made = dataset->options.function(dataset->options.context, element->values);
    if (!made) mix_fail_value("dataset_map: the function returned NULL; expected a list of tensors");
    if (made && !mix_failed()) made = mix_element_evaluate(made, "dataset_map");
  }
  mix_element_explain("dataset_map", map->made + turn);
  made = mix_failed() ? NULL : mix_retain(made);
  mix_release(element->values);
  *element = (mix_element){.values = made};
  mix_scope_end(scope);
  return made != NULL;
}

static mix_pull map_inline(map_cursor *map, mix_element *element) {
  mix_pull pull = mix_cursor_next(map->base.input, element);
  if (pull != MIX_PULL_ELEMENT) return pull;
  const bool good = apply(map, 0, 0, element);
  map->made++;
  return good ? pull : MIX_PULL_FAILED;
}

/* Keeps twice as many elements in flight as threads, so that a slow element does not stall the other
 * threads. */
static mix_pull map_next(mix_cursor *cursor, mix_element *element) {
  map_cursor *map = (map_cursor *)cursor;
  const map_dataset *dataset = (const map_dataset *)cursor->dataset;
  if (map->threads == 0) return map_inline(map, element);
  if (!map->background && !mix_prefetch_policy_helps(&map->policy)) {
    mix_prefetch_policy_begin(&map->policy);
    mix_pull pull = map_inline(map, element);
    mix_prefetch_policy_end(&map->policy);
    return pull;
  }
  if (!map->background)
    map->background = mix_background_start(&(mix_background_options){
        .input = cursor->input,
        .threads = map->threads,
        .capacity = 2 * map->threads,
        .any_order = dataset->options.not_deterministic,
        .work = apply,
        .name = "map",
        .context = map,
    });
  return map->background ? mix_background_next(map->background, element) : MIX_PULL_FAILED;
}

static void map_close(mix_cursor *cursor) {
  map_cursor *map = (map_cursor *)cursor;
  mix_background_stop(map->background);
  for (int i = 0; map->buffers && i < (map->threads ? map->threads : 1); i++)
    mix_buffers_clear(&map->buffers[i]);
  mix_free(map->buffers);
}

static mix_made map_place(const mix_dataset *dataset) {
  return ((const map_dataset *)dataset)->options.num_parallel_calls ? MIX_MADE_ON_THREADS
                                                                    : MIX_MADE_BY_RECEIVER;
}

static const mix_dataset_class map_class = {
    .name = "map",
    .place = map_place,
    .cursor_size = sizeof(map_cursor),
    .open = map_open,
    .next = map_next,
    .close = map_close,
};

mix_dataset *mix_dataset_map_with(const mix_dataset_map_options *given) {
  MIX_OPTIONS(mix_dataset_map_options, options, given, "dataset_map");
  if (!mix_dataset_given(options.dataset, "dataset_map")) return NULL;
  if (!options.function) return mix_fail_type("dataset_map: the function is NULL");
  if (options.num_parallel_calls < -1 || options.num_parallel_calls > MAX_THREADS)
    return mix_fail_value("dataset_map: num_parallel_calls is %lld; expected 0 to %d, or -1 (what helps)",
                          (long long)options.num_parallel_calls, MAX_THREADS);
  map_dataset *dataset = mix_dataset_new(sizeof *dataset, &map_class, options.dataset, false);
  if (!dataset) return NULL;
  dataset->options = options;
  return mix_dataset_calling(dataset, (const void *)options.function, options.context, options.release);
}
