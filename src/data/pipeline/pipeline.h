/* The inside of data sets. A data set is a recipe with a class; a pass is a chain of cursors, one for each step, pulled from the end.
 *
 * Steps that only choose and order elements (shuffle, repeat, take, skip) hand on row numbers where the data lie in arrays: nothing is
 * copied until a batch gathers its rows straight into its own memory, or an iterator hands out a single row. */
#ifndef MIX_DATA_PIPELINE_PIPELINE_H
#define MIX_DATA_PIPELINE_PIPELINE_H

#include "base/object.h"
#include "tensor/buffer.h"
#include <mixtape/dataset.h>

/* Buffers kept from one element to the next, one for each component: reused once nobody else holds what lies in them. */
typedef struct mix_buffers {
  mix_buffer **items;
  int count;
} mix_buffers;
bool mix_buffers_init(mix_buffers *buffers, int count);
void mix_buffers_clear(mix_buffers *buffers);

/* One element on its way: a row of the data set's source, or (values not NULL) tensors, a reference that the receiver owns. */
typedef struct mix_element {
  int64_t row;
  mix_list *values;
} mix_element;

typedef enum mix_pull { MIX_PULL_FAILED, MIX_PULL_ELEMENT, MIX_PULL_END } mix_pull;

/* The state of one step in one pass; classes embed it as their first member. */
typedef struct mix_cursor {
  mix_dataset *dataset; /* borrowed: the iterator holds the last data set, and each holds its input */
  struct mix_cursor *input;
  bool ended; /* it is not asked again: a generator that winds itself back at its end would begin anew */
} mix_cursor;

typedef struct mix_dataset_class {
  const char *name;
  size_t cursor_size;
  int64_t (*cardinality)(const mix_dataset *dataset);
  /* Begins a pass; the input's cursor is open already. NULL: nothing to do. False: error recorded (close is called all the same). */
  bool (*open)(mix_cursor *cursor);
  bool opens_input; /* `open` opens the input's cursor itself, where it wants one; `memory` and `remember` are for the input too */
  mix_pull (*next)(mix_cursor *cursor, mix_element *element);
  void (*close)(mix_cursor *cursor);          /* NULL: nothing to do */
  void (*finalize)(mix_dataset *dataset);     /* what the recipe holds beside its input; NULL: nothing */
  /* Inputs beside `input`: NULL behind the last. NULL: there are none. */
  mix_dataset *(*beside)(const mix_dataset *dataset, int index);
  /* What outlives a pass and shapes the next ones (a shuffle's seed and its passes): writes its numbers, unless `memory` is NULL, and
   * returns how many they are, always the same for a recipe. And back; false: error recorded. NULL: nothing. */
  int (*save)(mix_dataset *dataset, uint64_t *memory);
  bool (*restore)(mix_dataset *dataset, const uint64_t *memory);
  /* Sources whose elements are rows: stacks `count` rows into a list of tensors (rank 1 higher than an element where `stacked`, else
   * count is 1), using `buffers`. A reference for the caller. NULL for every other class. */
  mix_list *(*gather)(const mix_dataset *dataset, const int64_t *rows, int64_t count, bool stacked, mix_buffers *buffers);
} mix_dataset_class;

/* Classes embed it as their first member. */
struct mix_dataset {
  mix_object object;
  const mix_dataset_class *class;
  mix_dataset *input;  /* retained; NULL for sources */
  mix_dataset *source; /* borrowed, itself or below: its rows are what elements refer to; NULL: elements are tensors */
  int components;      /* tensors in an element of a source with rows */
};

/* A zeroed data set of `size` bytes that retains `input` and, where `passes_rows`, takes over its source. One reference, the caller's. */
void *mix_dataset_new(size_t size, const mix_dataset_class *class, mix_dataset *input, bool passes_rows);
/* Fails at once while an error is pending; else records that the data set of this call is NULL, if it is. */
bool mix_dataset_given(const mix_dataset *dataset, const char *call);
/* For calls that take arrays or a data set. Records nothing. */
bool mix_is_dataset(const void *object);

/* Opens the cursors of a data set and all below it. NULL with the error recorded. */
mix_cursor *mix_cursor_open(mix_dataset *dataset);
mix_pull mix_cursor_next(mix_cursor *cursor, mix_element *element);
void mix_cursor_close(mix_cursor *cursor);

/* ---- dataset_memory.c: what a data set remembers ----
 * The numbers of all steps, in the order of a walk from the end. As class->save and class->restore. */
int mix_dataset_save_state(mix_dataset *dataset, uint64_t *memory);
/* Inputs beside the first one; NULL behind the last. */
mix_dataset *mix_dataset_beside(const mix_dataset *dataset, int index);
bool mix_dataset_restore_state(mix_dataset *dataset, const uint64_t *memory);
/* The memory as it is now, a copy; mix_free it. NULL with the error recorded. */
uint64_t *mix_dataset_state_now(mix_dataset *dataset);

/* Of an iterator: the data set, its memory as the pass began, and the elements drawn since. */
mix_dataset *mix_iterator_dataset(const mix_iterator *iterator);
const uint64_t *mix_iterator_opened(const mix_iterator *iterator);
int64_t mix_iterator_drawn(const mix_iterator *iterator);
/* Draws elements until there are that many. */
bool mix_iterator_pass_over(mix_iterator *iterator, int64_t drawn);
/* Leaves its pass for a new one. */
bool mix_iterator_begin_anew(mix_iterator *iterator);

#endif
