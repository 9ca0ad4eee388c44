/* mix_dataset_prefetch: produces elements in advance on a background thread. */
#include "base/error.h"
#include "data/pipeline/prefetch_policy.h"
#include "data/pipeline/background.h"

/* More elements do not help. Memory is allocated only as elements are made. */
enum { MAX_PREFETCH = 65536, MAX_AUTOMATIC = 64 };

typedef struct prefetch_dataset {
  mix_dataset base;
  int64_t count; /* -1: chosen by the prefetch policy */
} prefetch_dataset;

typedef struct prefetch_cursor {
  mix_cursor base;
  mix_prefetch_policy policy;
  mix_background *background; /* NULL until it is needed */
} prefetch_cursor;

static bool prefetch_open(mix_cursor *cursor) {
  mix_prefetch_policy_open(&((prefetch_cursor *)cursor)->policy,
                           ((const prefetch_dataset *)cursor->dataset)->count < 0);
  return true;
}

static mix_pull prefetch_next(mix_cursor *cursor, mix_element *element) {
  prefetch_cursor *prefetch = (prefetch_cursor *)cursor;
  int64_t count = ((const prefetch_dataset *)cursor->dataset)->count;
  if (count == 0) return mix_cursor_next(cursor->input, element);
  if (!prefetch->background && !mix_prefetch_policy_helps(&prefetch->policy)) {
    mix_prefetch_policy_begin(&prefetch->policy);
    mix_pull pull = mix_cursor_next(cursor->input, element);
    mix_prefetch_policy_end(&prefetch->policy);
    return pull;
  }
  if (!prefetch->background) {
    mix_background_options options = {.input = cursor->input, .threads = 1, .grows = count < 0};
    options.capacity = count < 0 ? MAX_AUTOMATIC : count < MAX_PREFETCH ? (int)count : MAX_PREFETCH;
    prefetch->background = mix_background_start(&options);
  }
  return prefetch->background ? mix_background_next(prefetch->background, element) : MIX_PULL_FAILED;
}

static void prefetch_close(mix_cursor *cursor) {
  mix_background_stop(((prefetch_cursor *)cursor)->background);
}

/* A count of 0 says that nothing is made in advance. */
static mix_made prefetch_place(const mix_dataset *dataset) {
  return ((const prefetch_dataset *)dataset)->count ? MIX_MADE_ON_THREADS : MIX_MADE_BY_RECEIVER;
}

static const mix_dataset_class prefetch_class = {
    .name = "prefetch",
    .place = prefetch_place,
    .cursor_size = sizeof(prefetch_cursor),
    .open = prefetch_open,
    .next = prefetch_next,
    .close = prefetch_close,
};

mix_dataset *mix_dataset_prefetch(mix_dataset *input, int64_t count) {
  if (!mix_dataset_given(input, "dataset_prefetch")) return NULL;
  if (count < -1)
    return mix_fail_value("dataset_prefetch: count is %lld; expected 0 or more, or -1 (what helps)",
                          (long long)count);
  prefetch_dataset *dataset = mix_dataset_new(sizeof *dataset, &prefetch_class, input, true);
  if (!dataset) return NULL;
  dataset->count = count;
  return mix_scoped(dataset);
}
