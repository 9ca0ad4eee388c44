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
/* mix_dataset_from_tensors(x, y): rows of x with rows of y. tf.data's from_tensors, one element of whole tensors, is a generator. */
#define mix_dataset_from_tensors(...) mix_dataset_from_list(mix_list_of(__VA_ARGS__))
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
#ifndef __cplusplus
/* mix_dataset_shuffle(dataset, 10000, .seed = 1), mix_dataset_batch(dataset, 32, .drop_remainder = true) */
#define mix_dataset_shuffle(...)                                                                                               \
  mix_dataset_shuffle_with(&(const mix_dataset_shuffle_options){.size = sizeof(mix_dataset_shuffle_options), .dataset = __VA_ARGS__})
#define mix_dataset_batch(...)                                                                                                 \
  mix_dataset_batch_with(&(const mix_dataset_batch_options){.size = sizeof(mix_dataset_batch_options), .dataset = __VA_ARGS__})
#endif

/* The input `count` times over; -1: for ever. After a shuffle each round has an order of its own; before it rounds mix. */
MIX_API mix_dataset *mix_dataset_repeat(mix_dataset *dataset, int64_t count);
/* The first `count` elements; -1: all. */
MIX_API mix_dataset *mix_dataset_take(mix_dataset *dataset, int64_t count);
/* All but the first `count` elements; -1: none. */
MIX_API mix_dataset *mix_dataset_skip(mix_dataset *dataset, int64_t count);

/* Elements in a pass; MIX_INFINITE or MIX_UNKNOWN_CARDINALITY. INT64_MIN with an error recorded for NULL. */
#define MIX_INFINITE (-1)
#define MIX_UNKNOWN_CARDINALITY (-2)
MIX_API int64_t mix_dataset_cardinality(const mix_dataset *dataset);

/* ---- passes ---- */

/* A pass from the start. */
MIX_API mix_iterator *mix_dataset_iterate(mix_dataset *dataset);
/* The next element, or NULL: at the end without an error, on failure with one. The element belongs to the iterator, which releases it at
 * the next call (mix_retain keeps it). */
MIX_API mix_list *mix_iterator_next(mix_iterator *iterator);

#ifdef __cplusplus
}
#endif
#endif
