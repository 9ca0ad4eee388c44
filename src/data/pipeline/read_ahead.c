/* Passes that read ahead by themselves. */
#include "data/pipeline/read_ahead.h"

#include "backend/backend.h"
#include "base/error.h"
#include "base/processor.h"
#include "data/pipeline/steps.h"
#include "distribute/distribute.h"
#include "tensor/shape.h"

/* Elements that wait, fewer if they are large. */
enum { AHEAD = 4, LARGE_AHEAD = 2, LARGE_BYTES = 1 << 20 };
/* The first elements fill the buffers of shuffles, and the first steps compile. */
enum { FIRST_ELEMENTS = 3 };
enum { MIN_BYTES = 1 << 16 };
/* Seconds that an element takes at least, for handing one over takes a few microseconds, 25 where its
 * receiver waits: large ones, which may be read where they lie, and small ones. */
#define MIN_MADE 1e-5
#define MIN_SMALL 2e-4

bool mix_read_ahead_allow(mix_read_ahead *ahead, mix_dataset *dataset) {
  mix_steps steps = {0};
  bool good = mix_steps_collect(&steps, dataset, MIX_STEPS_OF_RECEIVER);
  /* Of several ranks each has its part of the cores. */
  bool allowed = good && !mix_is_distributed() && mix_cpu_cores() > 1;
  for (int i = 0; i < steps.count && allowed; i++) {
    const mix_made made =
        steps.items[i]->class->place ? steps.items[i]->class->place(steps.items[i]) : MIX_MADE_ANYWHERE;
    allowed = made != MIX_MADE_BY_RECEIVER && (i > 0 || made != MIX_MADE_ON_THREADS);
  }
  mix_steps_clear(&steps);
  ahead->allowed = allowed;
  mix_prefetch_policy_open(&ahead->policy, true);
  ahead->policy.core_free = false; /* the plans' threads are known after the first steps */
  return good;
}

static bool pays(const mix_read_ahead *ahead) {
  if (ahead->made < FIRST_ELEMENTS) return false;
  const bool takes_long = ahead->least >= (ahead->bytes < MIN_BYTES ? MIN_SMALL : MIN_MADE);
  return (takes_long && mix_threads_awake() < mix_cpu_cores()) || mix_prefetch_policy_helps(&ahead->policy);
}

static size_t bytes_of(const mix_element *element) {
  size_t bytes = 0;
  for (int i = 0; element->values && i < mix_list_count(element->values); i++) {
    const mix_tensor *tensor = mix_list_items(element->values)[i];
    bytes += mix_value_bytes(mix_tensor_dtype(tensor), mix_tensor_shape(tensor));
  }
  return bytes;
}

static mix_pull make_here(mix_read_ahead *ahead, mix_cursor *cursor, mix_element *element) {
  mix_prefetch_policy_begin(&ahead->policy);
  const mix_pull pull = mix_cursor_next(cursor, element);
  mix_prefetch_policy_end(&ahead->policy);
  if (pull != MIX_PULL_ELEMENT) return pull;
  const double passed = ahead->policy.ended - ahead->policy.began;
  if (!ahead->made || passed < ahead->least) ahead->least = passed;
  ahead->made++;
  ahead->bytes = bytes_of(element);
  return pull;
}

/* Where no thread can be created all goes on as before. False with the error recorded: out of memory. */
static bool start(mix_read_ahead *ahead, mix_cursor *cursor) {
  ahead->background = mix_background_start(
      &(mix_background_options){.input = cursor,
                                .threads = 1,
                                .capacity = ahead->bytes < LARGE_BYTES ? AHEAD : LARGE_AHEAD,
                                .lazy = true,
                                .in_step = true});
  if (ahead->background) return true;
  if (mix_error() == MIX_MEMORY_ERROR) return false;
  mix_error_clear();
  ahead->allowed = false;
  return true;
}

mix_pull mix_read_ahead_next(mix_read_ahead *ahead, mix_cursor *cursor, mix_element *element) {
  if (!ahead->allowed) return mix_cursor_next(cursor, element);
  if (!ahead->background && pays(ahead) && !start(ahead, cursor)) return MIX_PULL_FAILED;
  return ahead->background ? mix_background_next(ahead->background, element)
                           : make_here(ahead, cursor, element);
}

void mix_read_ahead_stop(mix_read_ahead *ahead) {
  mix_background_stop(ahead->background);
  ahead->background = NULL;
}

bool mix_read_ahead_may_begin(mix_dataset *input) {
  const int state = mix_dataset_save_state(input, NULL);
  return state >= 0 && (state == 0 || mix_background_await_receiver());
}
