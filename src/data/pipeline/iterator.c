/* Iterators: one pass over a data set. */
#include "base/alloc.h"
#include "base/error.h"
#include "data/pipeline/read_ahead.h"
#include "data/pipeline/row_stream.h"

struct mix_iterator {
  mix_object object;
  mix_dataset *dataset; /* retained */
  mix_cursor *cursor;   /* NULL once the pass has ended */
  mix_read_ahead ahead;
  mix_list *current;   /* the last returned element; retained */
  mix_buffers buffers; /* for single rows */
  uint64_t *opened;    /* the data set's state when the pass began */
  int64_t drawn;       /* elements returned so far */
};

static void close_cursor(mix_iterator *iterator) {
  mix_read_ahead_stop(&iterator->ahead);
  mix_cursor_close(iterator->cursor);
  iterator->cursor = NULL;
}

static void iterator_finalize(void *object) {
  mix_iterator *iterator = object;
  mix_release(iterator->current);
  close_cursor(iterator);
  mix_buffers_clear(&iterator->buffers);
  mix_free(iterator->opened);
  mix_release(iterator->dataset);
}

const mix_class mix_iterator_class = {.name = "iterator", .finalize = iterator_finalize};

mix_iterator *mix_dataset_iterate(mix_dataset *dataset) {
  if (!mix_dataset_given(dataset, "dataset_iterate")) return NULL;
  mix_iterator *iterator = mix_object_new(sizeof *iterator, &mix_iterator_class);
  if (!iterator) return NULL;
  iterator->dataset = mix_retain(dataset);
  if (!(iterator->opened = mix_dataset_state_now(dataset)) ||
      !(iterator->cursor = mix_cursor_open(dataset))) {
    mix_release(iterator);
    return NULL;
  }
  return mix_scoped(iterator);
}

mix_iterator *mix_dataset_iterate_ahead(mix_dataset *dataset) {
  mix_iterator *iterator = mix_dataset_iterate(dataset);
  return iterator && mix_read_ahead_allow(&iterator->ahead, dataset) ? iterator : NULL;
}

typedef bool (*values_of)(const mix_dataset *dataset, mix_element *element, mix_buffers *buffers);

static mix_list *next(mix_iterator *iterator, values_of values) {
  if (mix_failed()) return NULL;
  if (!mix_is(iterator, &mix_iterator_class))
    return mix_fail_type("iterator_next: %s; expected an iterator", iterator ? "another object" : "NULL");
  mix_release(iterator->current);
  iterator->current = NULL;
  if (!iterator->cursor) return NULL;
  mix_scope *scope = mix_scope_begin(); /* the element belongs to the iterator, not to the caller's scope */
  if (!scope) return NULL;
  mix_element element = {0};
  if (mix_read_ahead_next(&iterator->ahead, iterator->cursor, &element) == MIX_PULL_ELEMENT &&
      values(iterator->dataset, &element, &iterator->buffers))
    iterator->current = element.values;
  if (!iterator->current) close_cursor(iterator);
  if (iterator->current) iterator->drawn++;
  mix_scope_end(scope);
  return iterator->current;
}

mix_list *mix_iterator_next(mix_iterator *iterator) { return next(iterator, mix_element_own); }
mix_list *mix_iterator_next_leaves(mix_iterator *iterator) { return next(iterator, mix_element_values); }

mix_dataset *mix_iterator_dataset(const mix_iterator *iterator) { return iterator->dataset; }
const uint64_t *mix_iterator_opened(const mix_iterator *iterator) { return iterator->opened; }
int64_t mix_iterator_drawn(const mix_iterator *iterator) { return iterator->drawn; }

bool mix_iterator_pass_over(mix_iterator *iterator, int64_t drawn) {
  while (iterator->drawn < drawn && mix_iterator_next_leaves(iterator)) {}
  return !mix_failed();
}

bool mix_iterator_begin_anew(mix_iterator *iterator) {
  mix_release(iterator->current);
  iterator->current = NULL;
  close_cursor(iterator);
  mix_free(iterator->opened);
  iterator->drawn = 0;
  iterator->opened = mix_dataset_state_now(iterator->dataset);
  return iterator->opened && (iterator->cursor = mix_cursor_open(iterator->dataset)) != NULL;
}
