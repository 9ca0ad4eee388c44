/* Common to all data sets: creation, buffers and cursors. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/loaded.h"
#include "data/pipeline/row_stream.h"
#include "data/pipeline/steps.h"

static void dataset_finalize(void *object) {
  mix_dataset *dataset = object;
  if (dataset->class->finalize) dataset->class->finalize(dataset);
  if (dataset->release) dataset->release(dataset->context);
  mix_release(dataset->input);
}

static const mix_class dataset_class = {.name = "dataset", .finalize = dataset_finalize};

void *mix_dataset_new(size_t size, const mix_dataset_class *class, mix_dataset *input, bool passes_rows) {
  mix_dataset *dataset = mix_object_new(size, &dataset_class);
  if (!dataset) return NULL;
  dataset->class = class;
  dataset->input = mix_retain(input);
  if (input && passes_rows) dataset->source = input->source;
  return dataset;
}

mix_dataset *mix_dataset_calling(void *dataset, const void *function, void *context,
                                 void (*release)(void *context)) {
  mix_dataset *self = mix_scoped(dataset);
  mix_keep_loaded(function);
  if (self) self->context = context, self->release = release;
  return self;
}

bool mix_is_dataset(const void *object) { return mix_is(object, &dataset_class); }

bool mix_dataset_given(const mix_dataset *dataset, const char *call) {
  if (mix_failed()) return false;
  if (mix_is(dataset, &dataset_class)) return true;
  return mix_fail_type("%s: %s; expected a data set", call,
                       dataset ? "the first argument is no data set" : "the data set is NULL");
}

/* The inputs come first, so that no class goes down more than one step. */
static void keep_lengths(mix_dataset *dataset) {
  mix_steps steps = {0};
  if (mix_steps_collect(&steps, dataset, MIX_STEPS_ALL))
    for (int i = steps.count - 1; i >= 0; i--) {
      mix_dataset *step = steps.items[i];
      if (atomic_load_explicit(&step->length_known, memory_order_acquire)) continue;
      int64_t (*cardinality)(const mix_dataset *) = step->class->cardinality;
      const int64_t length = cardinality ? cardinality(step) : mix_dataset_length(step->input);
      atomic_store_explicit(&step->length, length, memory_order_relaxed);
      atomic_store_explicit(&step->length_known, true, memory_order_release);
    }
  mix_steps_clear(&steps);
}

int64_t mix_dataset_length(const mix_dataset *dataset) {
  if (!atomic_load_explicit(&dataset->length_known, memory_order_acquire)) {
    keep_lengths((mix_dataset *)dataset);
    if (!atomic_load_explicit(&dataset->length_known, memory_order_acquire)) return INT64_MIN;
  }
  return atomic_load_explicit(&dataset->length, memory_order_relaxed);
}

int64_t mix_dataset_cardinality(const mix_dataset *dataset) {
  return mix_dataset_given(dataset, "dataset_cardinality") ? mix_dataset_length(dataset) : INT64_MIN;
}

/* ---- buffers ---- */

bool mix_buffers_init(mix_buffers *buffers, int count) {
  buffers->items = mix_calloc((size_t)count, sizeof *buffers->items);
  buffers->count = buffers->items ? count : 0;
  return buffers->items != NULL;
}

void mix_buffers_clear(mix_buffers *buffers) {
  for (int i = 0; i < buffers->count; i++) mix_memory_end_reuse(&buffers->items[i]);
  mix_free(buffers->items);
  *buffers = (mix_buffers){0};
}

/* ---- cursors ---- */

/* A step pulls from its input by a call. So many calls fit on the smallest usual stack. */
enum { PULL_DEPTH_MAX = 10000 };
static _Thread_local int pull_depth;

void mix_cursor_close(mix_cursor *cursor) {
  while (cursor) {
    mix_cursor *input = cursor->input;
    if (cursor->dataset->class->close) cursor->dataset->class->close(cursor);
    mix_buffers_clear(&cursor->buffers);
    mix_free(cursor);
    cursor = input;
  }
}

/* Allocates one cursor per step down to the source, then opens them from the source up, so that an input is
 * open before the step that pulls from it. */
mix_cursor *mix_cursor_open(mix_dataset *dataset) {
  int depth = 0, capacity = 0;
  mix_dataset **steps = NULL;
  mix_cursor *top = NULL;
  for (mix_dataset *at = dataset; at; at = at->class->opens_input ? NULL : at->input) {
    if (!mix_reserve(&steps, &capacity, depth + 1, sizeof *steps)) break;
    steps[depth++] = at;
  }
  while (depth > 0 && !mix_failed()) {
    mix_dataset *step = steps[--depth];
    mix_cursor *cursor = mix_calloc(1, step->class->cursor_size);
    if (!cursor) break;
    *cursor = (mix_cursor){.dataset = step, .input = top};
    top = cursor;
    if (step->class->open && !step->class->open(cursor)) break;
  }
  mix_free(steps);
  if (!mix_failed()) return top;
  mix_cursor_close(top);
  return NULL;
}

mix_pull mix_cursor_next(mix_cursor *cursor, mix_element *element) {
  if (cursor->ended) return MIX_PULL_END;
  if (pull_depth == PULL_DEPTH_MAX) {
    mix_fail_unsupported(
        "dataset: more than %d steps one inside the other; use fewer, such as one concatenation of a "
        "few long data sets in place of many short ones",
        PULL_DEPTH_MAX);
    return MIX_PULL_FAILED;
  }
  pull_depth++;
  mix_pull pull = cursor->dataset->class->next(cursor, element);
  pull_depth--;
  cursor->ended = pull == MIX_PULL_END;
  return pull;
}
