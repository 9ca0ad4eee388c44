/* What all data sets share: making them, opening passes, iterators. */
#include "base/alloc.h"
#include "base/error.h"
#include "data/stream.h"

static void dataset_finalize(void *object) {
  mix_dataset *dataset = object;
  if (dataset->class->finalize) dataset->class->finalize(dataset);
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

bool mix_is_dataset(const void *object) { return mix_is(object, &dataset_class); }

bool mix_dataset_given(const mix_dataset *dataset, const char *call) {
  if (mix_failed()) return false;
  if (mix_is(dataset, &dataset_class)) return true;
  mix_fail(MIX_TYPE_ERROR, "%s: %s; expected a data set", call,
           dataset ? "the first argument is no data set" : "the data set is NULL");
  return false;
}

int64_t mix_dataset_cardinality(const mix_dataset *dataset) {
  return mix_dataset_given(dataset, "dataset_cardinality") ? dataset->class->cardinality(dataset) : INT64_MIN;
}

/* ---- buffers ---- */

bool mix_buffers_init(mix_buffers *buffers, int count) {
  buffers->items = mix_calloc((size_t)count, sizeof *buffers->items);
  buffers->count = buffers->items ? count : 0;
  return buffers->items != NULL;
}

void mix_buffers_clear(mix_buffers *buffers) {
  for (int i = 0; i < buffers->count; i++) mix_release(buffers->items[i]);
  mix_free(buffers->items);
  *buffers = (mix_buffers){0};
}

/* ---- cursors ---- */

void mix_cursor_close(mix_cursor *cursor) {
  while (cursor) {
    mix_cursor *input = cursor->input;
    if (cursor->dataset->class->close) cursor->dataset->class->close(cursor);
    mix_free(cursor);
    cursor = input;
  }
}

/* A cursor for each step down to the source, then opened from the source up, so that an input is ready before what pulls from it. */
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
  mix_pull pull = cursor->dataset->class->next(cursor, element);
  cursor->ended = pull == MIX_PULL_END;
  return pull;
}

/* ---- iterators ---- */

struct mix_iterator {
  mix_object object;
  mix_dataset *dataset; /* retained */
  mix_cursor *cursor;   /* NULL once the pass has ended */
  mix_list *current;    /* what the last call returned; retained */
  mix_buffers buffers;  /* for single rows */
  uint64_t *opened;     /* the data set's memory as the pass began */
  int64_t drawn;        /* elements given so far */
};

static void iterator_finalize(void *object) {
  mix_iterator *iterator = object;
  mix_release(iterator->current);
  mix_cursor_close(iterator->cursor);
  mix_buffers_clear(&iterator->buffers);
  mix_free(iterator->opened);
  mix_release(iterator->dataset);
}

static const mix_class iterator_class = {.name = "iterator", .finalize = iterator_finalize};

mix_iterator *mix_dataset_iterate(mix_dataset *dataset) {
  if (!mix_dataset_given(dataset, "dataset_iterate")) return NULL;
  mix_iterator *iterator = mix_object_new(sizeof *iterator, &iterator_class);
  if (!iterator) return NULL;
  iterator->dataset = mix_retain(dataset);
  if (!(iterator->opened = mix_dataset_memory_now(dataset)) || !(iterator->cursor = mix_cursor_open(dataset))) {
    mix_release(iterator);
    return NULL;
  }
  return mix_scoped(iterator);
}

mix_list *mix_iterator_next(mix_iterator *iterator) {
  if (mix_failed()) return NULL;
  if (!mix_is(iterator, &iterator_class))
    return mix_fail(MIX_TYPE_ERROR, "iterator_next: %s; expected an iterator", iterator ? "another object" : "NULL");
  mix_release(iterator->current);
  iterator->current = NULL;
  if (!iterator->cursor) return NULL;
  mix_scope *scope = mix_scope_begin(); /* the element belongs to the iterator, not to the caller's scope */
  if (!scope) return NULL;
  mix_element element = {0};
  if (mix_cursor_next(iterator->cursor, &element) == MIX_PULL_ELEMENT &&
      mix_element_own(iterator->dataset, &element, &iterator->buffers))
    iterator->current = element.values;
  if (!iterator->current) {
    mix_cursor_close(iterator->cursor);
    iterator->cursor = NULL;
  }
  if (iterator->current) iterator->drawn++;
  mix_scope_end(scope);
  return iterator->current;
}

mix_dataset *mix_iterator_dataset(const mix_iterator *iterator) { return iterator->dataset; }
const uint64_t *mix_iterator_opened(const mix_iterator *iterator) { return iterator->opened; }
int64_t mix_iterator_drawn(const mix_iterator *iterator) { return iterator->drawn; }

bool mix_iterator_pass_over(mix_iterator *iterator, int64_t drawn) {
  while (iterator->drawn < drawn && mix_iterator_next(iterator)) {}
  return !mix_failed();
}

bool mix_iterator_begin_anew(mix_iterator *iterator) {
  mix_release(iterator->current);
  iterator->current = NULL;
  mix_cursor_close(iterator->cursor);
  mix_free(iterator->opened);
  iterator->drawn = 0;
  iterator->cursor = NULL;
  iterator->opened = mix_dataset_memory_now(iterator->dataset);
  return iterator->opened && (iterator->cursor = mix_cursor_open(iterator->dataset)) != NULL;
}
