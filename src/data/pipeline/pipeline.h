/* Internals of data sets. A data set is a recipe with a class. A pass is a chain of cursors, one per step,
 * pulled from the end.
 *
 * Steps that only choose and order elements (shuffle, repeat, take, skip) pass on row numbers when the source
 * is arrays. Nothing is copied until a batch gathers its rows into its own memory or an iterator returns a
 * single row. */
#pragma once

#include "tensor/memory.h"
#include <mixtape/dataset.h>

/* Buffers kept between elements, one per component. A buffer is reused once nothing else references its
 * contents. */
typedef struct mix_buffers {
  mix_memory **items;
  int count;
} mix_buffers;
bool mix_buffers_init(mix_buffers *buffers, int count);
void mix_buffers_clear(mix_buffers *buffers);

/* An element in the pipeline: a row of the data set's source, or, if `values` is not NULL, tensors. The
 * receiver owns the reference to `values`. */
typedef struct mix_element {
  int64_t row;
  mix_list *values;
} mix_element;

static inline void mix_element_drop(mix_element *element) {
  mix_release(element->values);
  *element = (mix_element){0};
}

typedef enum mix_pull { MIX_PULL_FAILED, MIX_PULL_ELEMENT, MIX_PULL_END } mix_pull;

/* The state of one step in one pass. Classes embed it as their first member. */
typedef struct mix_cursor {
  mix_dataset *dataset; /* borrowed: the iterator retains the last data set, and each data set its input */
  struct mix_cursor *input;
  mix_buffers buffers; /* of the input's rows, or of what the step makes */
  bool ended;          /* next is not called again: a generator that rewinds at its end would start over */
} mix_cursor;

enum { MIX_STEP_NUMBERS = 4 }; /* at most, of a recipe */

/* Where a step's elements are made. */
typedef enum mix_made {
  MIX_MADE_ANYWHERE,
  MIX_MADE_BY_RECEIVER, /* on its thread, for which the step calls a function of the user */
  MIX_MADE_ON_THREADS   /* of the step's own; also those of its input */
} mix_made;

typedef struct mix_dataset_class {
  const char *name;
  size_t cursor_size;
  int64_t (*cardinality)(const mix_dataset *dataset); /* NULL: the input's */
  /* Begins a pass; the input's cursor is already open. NULL: nothing to do. On false an error is recorded,
   * and close is still called. */
  bool (*open)(mix_cursor *cursor);
  /* `open` opens the input's cursor itself if it needs one; `save` and `restore` then cover the input too. */
  bool opens_input;
  mix_pull (*next)(mix_cursor *cursor, mix_element *element);
  void (*close)(mix_cursor *cursor);      /* NULL: nothing to do */
  void (*finalize)(mix_dataset *dataset); /* releases what the recipe owns besides its input; NULL: nothing */
  /* Inputs other than `input`, by index; NULL after the last. A NULL function: there are none. */
  mix_dataset *(*beside)(const mix_dataset *dataset, int index);
  /* State that outlives a pass and affects later ones (a shuffle's seed and pass count). `save` writes its
   * numbers unless `state` is NULL and returns their count, which is constant for a recipe, or -1 with the
   * error recorded. `restore` reads them; false: error recorded. NULL: no state. */
  int (*save)(mix_dataset *dataset, uint64_t *state);
  bool (*restore)(mix_dataset *dataset, const uint64_t *state);
  /* What a run's identity says of the recipe. `numbers` writes its numbers (sizes, counts; not seeds) and
   * returns how many; `arrays` gives those of a source, borrowed. NULL: none. */
  int (*numbers)(const mix_dataset *dataset, int64_t numbers[MIX_STEP_NUMBERS]);
  mix_list *(*arrays)(const mix_dataset *dataset);
  bool calls_user;                               /* a source whose elements a function of the user makes */
  mix_made (*place)(const mix_dataset *dataset); /* NULL: anywhere */
  /* For sources whose elements are rows: stacks `count` rows into a list of tensors (one rank higher than an
   * element if `stacked`, else count is 1), using `buffers`. Returns a reference for the caller. NULL for
   * every other class. */
  mix_list *(*gather)(const mix_dataset *dataset, const int64_t *rows, int64_t count, bool stacked,
                      mix_buffers *buffers);
} mix_dataset_class;

/* Classes embed it as their first member. */
struct mix_dataset {
  mix_object object;
  const mix_dataset_class *class;
  mix_dataset *input; /* retained; NULL for sources */
  /* borrowed: this data set or one below, whose rows the elements refer to; NULL: elements are tensors */
  mix_dataset *source;
  int components;         /* tensors per element of a source with rows */
  _Atomic int64_t length; /* the cardinality, once known */
  atomic_bool length_known;
  /* of the user's function */
  void *context;
  void (*release)(void *context); /* NULL: nothing to do */
};

/* A zeroed data set of `size` bytes that retains `input` and, if `passes_rows`, takes over its source. One
 * reference, the caller's. */
void *mix_dataset_new(size_t size, const mix_dataset_class *class, mix_dataset *input, bool passes_rows);
/* Scopes a new data set that calls a function of the user's, whose context it then owns: until nothing can
 * fail, the context is the caller's. NULL with the error recorded. */
mix_dataset *mix_dataset_calling(void *dataset, const void *function, void *context,
                                 void (*release)(void *context));
extern const mix_class mix_iterator_class;
/* False if an error is pending, or if the data set is NULL or another object, which records an error of
 * `call`. */
bool mix_dataset_given(const mix_dataset *dataset, const char *call);
/* For calls that take arrays or a data set. Records no error. */
bool mix_is_dataset(const void *object);

/* The cardinality, computed once. INT64_MIN with the error recorded. */
int64_t mix_dataset_length(const mix_dataset *dataset);

/* Opens the cursors of a data set and of all its inputs. NULL with the error recorded. */
mix_cursor *mix_cursor_open(mix_dataset *dataset);
mix_pull mix_cursor_next(mix_cursor *cursor, mix_element *element);
void mix_cursor_close(mix_cursor *cursor);

/* ---- dataset_state.c: the state of a data set ----
 * The numbers of all steps, each once, in the order of mix_steps. As class->save and class->restore. */
int mix_dataset_save_state(mix_dataset *dataset, uint64_t *state);
bool mix_dataset_restore_state(mix_dataset *dataset, const uint64_t *state);
/* A copy of the current state; mix_free it. NULL with the error recorded. */
uint64_t *mix_dataset_state_now(mix_dataset *dataset);

/* mix_dataset_iterate, of a pass that may read ahead by itself (read_ahead.h). */
mix_iterator *mix_dataset_iterate_ahead(mix_dataset *dataset);
/* The iterator's data set, its state when the pass began, and the number of elements drawn since. */
mix_dataset *mix_iterator_dataset(const mix_iterator *iterator);
const uint64_t *mix_iterator_opened(const mix_iterator *iterator);
int64_t mix_iterator_drawn(const mix_iterator *iterator);
/* The next element as one list of tensors with its structure, shared with the pipeline. */
mix_list *mix_iterator_next_leaves(mix_iterator *iterator);
/* Draws and discards elements until `drawn` have been drawn. */
bool mix_iterator_pass_over(mix_iterator *iterator, int64_t drawn);
/* Ends the current pass and begins a new one. */
bool mix_iterator_begin_anew(mix_iterator *iterator);
