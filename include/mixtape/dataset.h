/* Data sets: pipelines of elements, pulled one by one when they are wanted, as in tf.data. An element is a list of tensors: (x), (x, y)
 * or (x, y, sample_weight). A data set is a recipe; each iterator goes through it from the start. */
#ifndef MIXTAPE_DATASET_H
#define MIXTAPE_DATASET_H

#include <mixtape/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- sources ---- */

/* One element for each index of axis 0 of the tensors (tf.data's from_tensor_slices). All must have the same, positive, length. The
 * tensors are evaluated and held, not copied. */
MIX_API mix_dataset *mix_dataset_from_list(mix_list *tensors);
#ifndef __cplusplus
/* mix_dataset_from_tensors(x, y): rows of x with rows of y. tf.data's from_tensors, one element, is mix_dataset_from_tensor. */
#define mix_dataset_from_tensors(...) mix_dataset_from_list(mix_list_of(__VA_ARGS__))
#endif
/* One element: the tensors as they are (tf.data's from_tensors). They are evaluated and held, not copied. */
MIX_API mix_dataset *mix_dataset_from_element(mix_list *tensors);
#ifndef __cplusplus
/* mix_dataset_from_tensor(x), mix_dataset_from_tensor(x, y) */
#define mix_dataset_from_tensor(...) mix_dataset_from_element(mix_list_of(__VA_ARGS__))
#endif
/* int64 scalars start, start + step, ... short of stop. A step of 0 is an error. */
MIX_API mix_dataset *mix_dataset_range(int64_t start, int64_t stop, int64_t step);

/* Makes element `index` (0, 1, ...) of a pass: a list of finished tensors, or NULL at the end of the data (with an error recorded: a
 * failure). Index 0 begins a new pass. What it makes belongs to a scope of that call. */
typedef mix_list *(*mix_dataset_generator)(void *context, int64_t index);
typedef struct mix_dataset_generator_options {
  size_t size;
  mix_dataset_generator generate; /* required */
  void *context;
  void (*release)(void *context); /* called when the data set goes; NULL: nothing to do */
  int64_t cardinality;            /* elements in a pass, if known; 0: unknown */
} mix_dataset_generator_options;
/* A data set of what the function makes, called anew in each pass. */
MIX_API mix_dataset *mix_dataset_from_generator_with(const mix_dataset_generator_options *options);
#ifndef __cplusplus
/* mix_dataset_from_generator(generate, .context = c, .cardinality = 100) */
#define mix_dataset_from_generator(...)                                                                                        \
  mix_dataset_from_generator_with(                                                                                             \
      &(const mix_dataset_generator_options){.size = sizeof(mix_dataset_generator_options), .generate = __VA_ARGS__})
#endif

/* ---- steps ---- */

typedef struct mix_dataset_shuffle_options {
  size_t size;
  mix_dataset *dataset; /* required */
  int64_t buffer_size;  /* required, >= 1: elements that wait to be drawn; as many as there are: a full shuffle; 1: none */
  int64_t seed;         /* 0: derived from the process's seed and the creation number; MIX_INT_ZERO: 0 */
  bool no_reshuffle;    /* the same order in every pass (Keras: reshuffle_each_iteration=True) */
} mix_dataset_shuffle_options;
/* Fills a buffer, then again and again gives a uniformly drawn element of it and puts the next one of the input in its place. */
MIX_API mix_dataset *mix_dataset_shuffle_with(const mix_dataset_shuffle_options *options);

typedef struct mix_dataset_batch_options {
  size_t size;
  mix_dataset *dataset; /* required */
  int64_t batch_size;   /* required, >= 1 */
  bool drop_remainder;  /* leave out a last batch that is smaller */
} mix_dataset_batch_options;
/* Stacks successive elements along a new axis 0; their dtypes and shapes must be equal. */
MIX_API mix_dataset *mix_dataset_batch_with(const mix_dataset_batch_options *options);

typedef struct mix_dataset_window_options {
  size_t size;
  mix_dataset *dataset; /* required */
  int64_t window;       /* elements in a window; required, >= 1 */
  int64_t shift;        /* from the start of a window to the start of the next; 0: `window`, so that none overlap */
  int64_t stride;       /* from an element of a window to the next; 0: 1 */
  bool drop_remainder;  /* leave out windows at the end that are smaller */
} mix_dataset_window_options;
/* Windows that slide over the input, whose length need not be known: each stacked along a new axis 0, as by batch (tf.data's
 * window(...).flat_map(batch)). Elements must be alike. */
MIX_API mix_dataset *mix_dataset_window_with(const mix_dataset_window_options *options);
#ifndef __cplusplus
/* mix_dataset_shuffle(dataset, 10000, .seed = 1), mix_dataset_batch(dataset, 32, .drop_remainder = true),
 * mix_dataset_window(dataset, 5, .shift = 1) */
#define mix_dataset_shuffle(...)                                                                                               \
  mix_dataset_shuffle_with(&(const mix_dataset_shuffle_options){.size = sizeof(mix_dataset_shuffle_options), .dataset = __VA_ARGS__})
#define mix_dataset_batch(...)                                                                                                 \
  mix_dataset_batch_with(&(const mix_dataset_batch_options){.size = sizeof(mix_dataset_batch_options), .dataset = __VA_ARGS__})
#define mix_dataset_window(...)                                                                                                \
  mix_dataset_window_with(&(const mix_dataset_window_options){.size = sizeof(mix_dataset_window_options), .dataset = __VA_ARGS__})
#endif

/* The input `count` times over; -1: for ever. After a shuffle each round has an order of its own; before it rounds mix. */
MIX_API mix_dataset *mix_dataset_repeat(mix_dataset *dataset, int64_t count);
/* The first `count` elements; -1: all. */
MIX_API mix_dataset *mix_dataset_take(mix_dataset *dataset, int64_t count);
/* All but the first `count` elements; -1: none. */
MIX_API mix_dataset *mix_dataset_skip(mix_dataset *dataset, int64_t count);

/* Elements index, index + count, index + 2 count, ... of the input: what worker `index` of `count` reads. */
MIX_API mix_dataset *mix_dataset_shard(mix_dataset *dataset, int64_t count, int64_t index);
/* Puts an int64 scalar before the tensors of each element: start, start + 1, ... */
MIX_API mix_dataset *mix_dataset_enumerate(mix_dataset *dataset, int64_t start);
/* Takes elements apart along axis 0, which all tensors of an element have in common; an element of length 0 gives nothing. */
MIX_API mix_dataset *mix_dataset_unbatch(mix_dataset *dataset);
/* The elements of `first`, then those of `second`; the numbers of tensors and their dtypes must agree. */
MIX_API mix_dataset *mix_dataset_concatenate(mix_dataset *first, mix_dataset *second);
/* Elements side by side: the tensors of one element of each data set in turn. Ends with the shortest. */
MIX_API mix_dataset *mix_dataset_zip_list(mix_list *datasets);
#ifndef __cplusplus
/* mix_dataset_zip(images, labels) */
#define mix_dataset_zip(...) mix_dataset_zip_list(mix_list_of(__VA_ARGS__))
#endif
/* Keeps the elements of the first pass that reaches the end, in memory; later passes replay them. A pass that is left before the
 * end keeps nothing. Shuffle after it, not before: the order is kept too. */
MIX_API mix_dataset *mix_dataset_cache(mix_dataset *dataset);
/* Makes up to `count` elements ahead on a thread of its own, where the functions of the steps before it run too; -1: as many as turn out
 * to help; 0: none. The values are the same. At most 65,536 elements wait, however large `count` is. (-1 begins without a thread where
 * mix_threads() takes all cores, on which one more would only hold up the others, and takes one once elements turn out to be waited for, or
 * to take one thread longer than what they are for.) */
MIX_API mix_dataset *mix_dataset_prefetch(mix_dataset *dataset, int64_t count);

/* ---- steps that call a function ----
 * Each call has a scope of its own. On a thread of the pipeline (num_parallel_calls, or a prefetch further on; with -1 anywhere) nothing
 * that belongs to the caller's thread is there: open tapes, scopes, cast dtype. An error that the function leaves is that of the
 * mix_iterator_next that asked for the element. `release(context)` is called when the data set goes (NULL: nothing to do). */

/* Makes a list of tensors, evaluated after the call, from one. NULL is an error. Operations cost microseconds a call, whatever they work
 * on: a map of whole batches, after mix_dataset_batch, is much cheaper than one of single rows. */
typedef mix_list *(*mix_dataset_function)(void *context, mix_list *element);
/* Does the element stay? */
typedef bool (*mix_dataset_predicate)(void *context, mix_list *element);
/* Makes a data set from an element. NULL is an error. */
typedef mix_dataset *(*mix_dataset_expansion)(void *context, mix_list *element);

typedef struct mix_dataset_map_options {
  size_t size;
  mix_dataset *dataset;          /* required */
  mix_dataset_function function; /* required; with num_parallel_calls above 1, or -1, called by several threads at once */
  void *context;
  void (*release)(void *context);
  int64_t num_parallel_calls; /* 0: on the thread that asks; -1: there or, where it turns out to help, on mix_threads() threads of its own;
                               * else so many, at most 1,024 */
  bool not_deterministic;     /* elements in the order in which they get ready (tf.data: deterministic=False) */
} mix_dataset_map_options;
/* What the function makes of each element. */
MIX_API mix_dataset *mix_dataset_map_with(const mix_dataset_map_options *options);

typedef struct mix_dataset_filter_options {
  size_t size;
  mix_dataset *dataset;            /* required */
  mix_dataset_predicate predicate; /* required */
  void *context;
  void (*release)(void *context);
} mix_dataset_filter_options;
/* The elements for which the predicate says true. */
MIX_API mix_dataset *mix_dataset_filter_with(const mix_dataset_filter_options *options);

typedef struct mix_dataset_interleave_options {
  size_t size;
  mix_dataset *dataset;           /* required */
  mix_dataset_expansion function; /* required */
  void *context;
  void (*release)(void *context);
  int64_t cycle_length; /* data sets open at a time; 0: mix_threads(), as tf.data takes it from the CPU; 1: tf.data's flat_map */
  int64_t block_length; /* elements from one before it is the next one's turn; 0: 1 */
} mix_dataset_interleave_options;
/* Makes a data set of each element of the input and takes elements of `cycle_length` of them in turn; the place of one that ends goes
 * to the next element of the input. */
MIX_API mix_dataset *mix_dataset_interleave_with(const mix_dataset_interleave_options *options);

#define MIX_PADDED_COMPONENTS 16
typedef struct mix_dataset_padded_batch_options {
  size_t size;
  mix_dataset *dataset; /* required */
  int64_t batch_size;   /* required, >= 1 */
  bool drop_remainder;  /* leave out a last batch that is smaller */
  mix_shape padded_shapes[MIX_PADDED_COMPONENTS]; /* of each tensor; MIX_UNKNOWN, or a shape left out: the largest of the batch */
  double padding_values[MIX_PADDED_COMPONENTS];   /* of each tensor */
} mix_dataset_padded_batch_options;
/* As batch, for elements that differ in shape, not in rank: each is padded at the ends of its axes. */
MIX_API mix_dataset *mix_dataset_padded_batch_with(const mix_dataset_padded_batch_options *options);
#ifndef __cplusplus
/* mix_dataset_map(dataset, function, .context = c, .num_parallel_calls = 4), mix_dataset_filter(dataset, predicate),
 * mix_dataset_interleave(dataset, function, .cycle_length = 2), mix_dataset_padded_batch(dataset, 32, .padding_values = {-1}) */
#define mix_dataset_map(...)                                                                                                   \
  mix_dataset_map_with(&(const mix_dataset_map_options){.size = sizeof(mix_dataset_map_options), .dataset = __VA_ARGS__})
#define mix_dataset_filter(...)                                                                                                \
  mix_dataset_filter_with(&(const mix_dataset_filter_options){.size = sizeof(mix_dataset_filter_options), .dataset = __VA_ARGS__})
#define mix_dataset_interleave(...)                                                                                            \
  mix_dataset_interleave_with(                                                                                                 \
      &(const mix_dataset_interleave_options){.size = sizeof(mix_dataset_interleave_options), .dataset = __VA_ARGS__})
#define mix_dataset_padded_batch(...)                                                                                          \
  mix_dataset_padded_batch_with(                                                                                               \
      &(const mix_dataset_padded_batch_options){.size = sizeof(mix_dataset_padded_batch_options), .dataset = __VA_ARGS__})
#endif

/* Elements in a pass; MIX_INFINITE or MIX_UNKNOWN_CARDINALITY. INT64_MIN with an error recorded for NULL. */
#define MIX_INFINITE (-1)
#define MIX_UNKNOWN_CARDINALITY (-2)
MIX_API int64_t mix_dataset_cardinality(const mix_dataset *dataset);

/* ---- passes ---- */

/* A pass from the start. Where threads (prefetch, num_parallel_calls) work behind a repeat of a shuffle and a pass is left before its end,
 * the order of the next one depends on how many rounds they had begun. Data sets with threads are not to be used in a forked child: a pass
 * that was under way in the parent has none there, and waits for ever, also when it is released. */
MIX_API mix_iterator *mix_dataset_iterate(mix_dataset *dataset);
/* The next element, or NULL: at the end without an error, on failure with one. The element belongs to the iterator, which releases it at
 * the next call (mix_retain keeps it); appending to it changes nothing in the data set. */
MIX_API mix_list *mix_iterator_next(mix_iterator *iterator);

#ifdef __cplusplus
}
#endif
#endif
