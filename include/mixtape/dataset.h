/* Datasets: pipelines of elements that are pulled one by one, as in tf.data. An element is a list of
 * tensors: (x), (x, y) or (x, y, sample_weight). A dataset is a description; each iterator runs it from
 * the start.
 *
 * Elements may be nested, as in tf.data: mix_list_of(mix_list_of(x1, x2), y) is ((x1, x2), y), and
 * mix_dict_of("a", x1, "b", x2) is {"a": x1, "b": x2}. Every source, function and step takes and gives
 * elements nested alike; dicts come back sorted by name. A list of tensors alone is flat. All elements of a
 * batch must be nested alike. Messages name a tensor as tf.nest does: "component (0, 'a')". */
#ifndef MIXTAPE_DATASET_H
#define MIXTAPE_DATASET_H

#include <mixtape/tensor.h>

MIX_BEGIN_DECLARATIONS

/* ---- sources ---- */

/* One element for each index of axis 0 of the tensors (tf.data's from_tensor_slices). All must have the
 * same positive length. The tensors are evaluated and retained, not copied. */
MIX_API mix_dataset *mix_dataset_from_list(mix_list *tensors);
#ifndef __cplusplus
/* mix_dataset_from_tensors(x, y): rows of x with rows of y. For tf.data's from_tensors, a single element,
 * see mix_dataset_from_tensor. */
#define mix_dataset_from_tensors(...) mix_dataset_from_list(mix_list_of(__VA_ARGS__))
#endif
/* A single element: the tensors as they are (tf.data's from_tensors). They are evaluated and retained, not
 * copied. */
MIX_API mix_dataset *mix_dataset_from_element(mix_list *tensors);
#ifndef __cplusplus
/* mix_dataset_from_tensor(x), mix_dataset_from_tensor(x, y) */
#define mix_dataset_from_tensor(...) mix_dataset_from_element(mix_list_of(__VA_ARGS__))
#endif
/* int64 scalars start, start + step, ... up to but excluding stop. A step of 0 is an error. */
MIX_API mix_dataset *mix_dataset_range(int64_t start, int64_t stop, int64_t step);

/* Returns element `index` (0, 1, ...) of a pass: a list of finished tensors, or NULL at the end of the
 * data (with an error recorded: a failure). Index 0 begins a new pass. Objects that it creates belong to a
 * scope of that call. */
typedef mix_list *(*mix_dataset_generator)(void *context, int64_t index);
typedef struct mix_dataset_generator_options {
  size_t size;
  mix_dataset_generator generate; /* required */
  void *context;
  void (*release)(void *context); /* called when the dataset is released; NULL: nothing; object.h */
  int64_t cardinality;            /* elements in a pass, if known; 0: unknown */
} mix_dataset_generator_options;
/* A dataset of the elements that the function returns; it is called again in each pass. */
MIX_API mix_dataset *mix_dataset_from_generator_with(const mix_dataset_generator_options *options);
#ifndef __cplusplus
/* mix_dataset_from_generator(generate, .context = c, .cardinality = 100) */
#define mix_dataset_from_generator(...)                                                                      \
  mix_dataset_from_generator_with(MIX_ARGUMENTS("mix_dataset_from_generator", "generate, context",           \
                                                #__VA_ARGS__, mix_dataset_generator_options,                 \
                                                .generate = __VA_ARGS__))
#endif

/* ---- steps ---- */

typedef struct mix_dataset_shuffle_options {
  size_t size;
  mix_dataset *dataset; /* required */
  /* Required, >= 1: the number of buffered elements. The number of all elements: a full shuffle; 1: no
   * shuffle. */
  int64_t buffer_size;
  int64_t seed;      /* 0: derived from the global seed and the creation number; MIX_INT_ZERO: 0 */
  bool no_reshuffle; /* the same order in every pass (Keras: reshuffle_each_iteration=True) */
} mix_dataset_shuffle_options;
/* Shuffles with a buffer: returns a uniformly drawn element of the buffer, and replaces it by the next
 * element of the input. */
MIX_API mix_dataset *mix_dataset_shuffle_with(const mix_dataset_shuffle_options *options);

typedef struct mix_dataset_batch_options {
  size_t size;
  mix_dataset *dataset; /* required */
  int64_t batch_size;   /* required, >= 1 */
  bool drop_remainder;  /* drop a smaller last batch */
} mix_dataset_batch_options;
/* Stacks successive elements along a new axis 0. Their dtypes and shapes must be equal. */
MIX_API mix_dataset *mix_dataset_batch_with(const mix_dataset_batch_options *options);

typedef struct mix_dataset_window_options {
  size_t size;
  mix_dataset *dataset; /* required */
  int64_t window;       /* elements in a window; required, >= 1 */
  int64_t shift;  /* from the start of a window to the start of the next; 0: `window`, so that none overlap */
  int64_t stride; /* from an element of a window to the next; 0: 1 */
  bool drop_remainder; /* drop smaller windows at the end */
} mix_dataset_window_options;
/* Sliding windows over the input, whose length may be unknown. Each is stacked along a new axis 0, as by
 * batch (tf.data's window(...).flat_map(batch)). Elements must have equal dtypes and shapes. */
MIX_API mix_dataset *mix_dataset_window_with(const mix_dataset_window_options *options);
#ifndef __cplusplus
/* mix_dataset_shuffle(dataset, 10000, .seed = 1), mix_dataset_batch(dataset, 32, .drop_remainder = true),
 * mix_dataset_window(dataset, 5, .shift = 1) */
#define mix_dataset_shuffle(...)                                                                             \
  mix_dataset_shuffle_with(MIX_ARGUMENTS("mix_dataset_shuffle", "dataset, buffer_size", #__VA_ARGS__,        \
                                         mix_dataset_shuffle_options, .dataset = __VA_ARGS__))
#define mix_dataset_batch(...)                                                                               \
  mix_dataset_batch_with(MIX_ARGUMENTS("mix_dataset_batch", "dataset, batch_size, drop_remainder",           \
                                       #__VA_ARGS__, mix_dataset_batch_options, .dataset = __VA_ARGS__))
#define mix_dataset_window(...)                                                                              \
  mix_dataset_window_with(MIX_ARGUMENTS("mix_dataset_window",                                                \
                                        "dataset, window, !shift, !stride, drop_remainder", #__VA_ARGS__,    \
                                        mix_dataset_window_options, .dataset = __VA_ARGS__))
#endif

/* Repeats the input `count` times; -1: forever. After a shuffle each round has its own order. A shuffle
 * after the repeat mixes the rounds. */
MIX_API mix_dataset *mix_dataset_repeat(mix_dataset *dataset, int64_t count);
/* The first `count` elements; -1: all. */
MIX_API mix_dataset *mix_dataset_take(mix_dataset *dataset, int64_t count);
/* All but the first `count` elements; -1: none. */
MIX_API mix_dataset *mix_dataset_skip(mix_dataset *dataset, int64_t count);

/* Elements index, index + count, index + 2 count, ... of the input: the share of worker `index` of
 * `count`. */
MIX_API mix_dataset *mix_dataset_shard(mix_dataset *dataset, int64_t count, int64_t index);
/* Prepends an int64 scalar to the tensors of each element: start, start + 1, ... With nested elements:
 * (start, element), ... */
MIX_API mix_dataset *mix_dataset_enumerate(mix_dataset *dataset, int64_t start);
/* Splits elements along axis 0, whose length all tensors of an element share. An element of length 0 gives
 * nothing. */
MIX_API mix_dataset *mix_dataset_unbatch(mix_dataset *dataset);
/* The elements of `first`, then those of `second`. The numbers of tensors and their dtypes must be equal. */
MIX_API mix_dataset *mix_dataset_concatenate(mix_dataset *first, mix_dataset *second);
/* Combines one element of each dataset into one: the tensors of the first, of the second, and so on. Ends
 * with the shortest. Lists and dicts of datasets give lists and dicts: zip(mix_list_of(a, b), c) has the
 * elements ((a, b), c). A nested element becomes one component, as in tf.data; the tensors of a flat one
 * join the list around it. */
MIX_API mix_dataset *mix_dataset_zip_list(mix_list *datasets);
#ifndef __cplusplus
/* mix_dataset_zip(images, labels) */
#define mix_dataset_zip(...) mix_dataset_zip_list(mix_list_of(__VA_ARGS__))
#endif
/* Stores the elements of the first complete pass in memory; later passes read them from there. An
 * incomplete pass stores nothing. Shuffle after the cache, because the order is stored too. */
MIX_API mix_dataset *mix_dataset_cache(mix_dataset *dataset);
typedef struct mix_dataset_cache_options {
  size_t size;
  mix_dataset *dataset; /* required */
  /* In the memory of the device in force during the first pass, so that steps of later passes copy nothing to
   * it. For batches, as the last step before fit: another step would copy them back. On a device whose memory
   * is the host's it changes nothing. */
  bool device;
} mix_dataset_cache_options;
MIX_API mix_dataset *mix_dataset_cache_with(const mix_dataset_cache_options *options);
#ifndef __cplusplus
/* mix_dataset_cache(dataset), mix_dataset_cache(dataset, .device = true) */
#define mix_dataset_cache(...)                                                                               \
  mix_dataset_cache_with(MIX_ARGUMENTS("mix_dataset_cache", "dataset, device", #__VA_ARGS__,                 \
                                       mix_dataset_cache_options, .dataset = __VA_ARGS__))
#endif
/* Prefetches up to `count` elements (at most 65,536) on a separate thread, which then also runs the
 * functions of the steps before. 0: none, nor by fit (see mix_dataset_iterate). The values do not change.
 * -1: chosen automatically. If mix_threads() takes all cores, it begins without a thread, because another
 * one would only slow down the others. It starts one when consumers wait for elements, or when producing
 * an element takes a thread longer than consuming it. */
MIX_API mix_dataset *mix_dataset_prefetch(mix_dataset *dataset, int64_t count);

/* ---- steps that call a function ----
 * Each call has its own scope. On a thread of the pipeline (num_parallel_calls, or a later prefetch; with
 * -1 any call) the state of the caller's thread is missing: open tapes, scopes, cast dtype. An error that
 * the function records is reported by the mix_iterator_next that needs the element; that of a map or a
 * generator ends with the element's number, "(element 17 of dataset_map)". `release(context)` is called when
 * the dataset is released (NULL: nothing). A plug-in (dlopen) whose function is given here, or to a
 * generator, stays in the process after dlclose, so that threads of the pipeline may still be in it. */

/* Returns a list of tensors, evaluated after the call, for an element. NULL is an error. An operation
 * costs microseconds per call, whatever its size, so mapping whole batches, after mix_dataset_batch, is
 * much cheaper than mapping rows. */
typedef mix_list *(*mix_dataset_function)(void *context, mix_list *element);
/* Returns true to keep the element. */
typedef bool (*mix_dataset_predicate)(void *context, mix_list *element);
/* Returns a dataset for an element. NULL is an error. */
typedef mix_dataset *(*mix_dataset_expansion)(void *context, mix_list *element);

typedef struct mix_dataset_map_options {
  size_t size;
  mix_dataset *dataset; /* required */
  /* Required. With num_parallel_calls above 1, or -1, several threads call it at once. */
  mix_dataset_function function;
  void *context;
  void (*release)(void *context);
  /* 0: calls on the consuming thread. n: n threads, at most 1,024. -1: the consuming thread or, if that
   * helps, mix_threads() separate threads. */
  int64_t num_parallel_calls;
  /* Elements come in the order of completion (tf.data: deterministic=False). */
  bool not_deterministic;
} mix_dataset_map_options;
/* The results of the function for each element. */
MIX_API mix_dataset *mix_dataset_map_with(const mix_dataset_map_options *options);

typedef struct mix_dataset_filter_options {
  size_t size;
  mix_dataset *dataset;            /* required */
  mix_dataset_predicate predicate; /* required */
  void *context;
  void (*release)(void *context);
} mix_dataset_filter_options;
/* The elements for which the predicate returns true. */
MIX_API mix_dataset *mix_dataset_filter_with(const mix_dataset_filter_options *options);

typedef struct mix_dataset_interleave_options {
  size_t size;
  mix_dataset *dataset;           /* required */
  mix_dataset_expansion function; /* required */
  void *context;
  void (*release)(void *context);
  /* Datasets open at a time; 0: mix_threads(), as tf.data uses the number of CPUs; 1: tf.data's flat_map. */
  int64_t cycle_length;
  int64_t block_length; /* consecutive elements from each dataset; 0: 1 */
} mix_dataset_interleave_options;
/* Creates a dataset from each element of the input and takes elements from `cycle_length` of them in turn.
 * A dataset that ends is replaced by that of the next element of the input. */
MIX_API mix_dataset *mix_dataset_interleave_with(const mix_dataset_interleave_options *options);

#define MIX_PADDED_COMPONENTS 16
typedef struct mix_dataset_padded_batch_options {
  size_t size;
  mix_dataset *dataset; /* required */
  int64_t batch_size;   /* required, >= 1 */
  bool drop_remainder;  /* drop a smaller last batch */
  /* For each tensor, of nested elements in order, dicts sorted by name. MIX_UNKNOWN, or a shape left out: the
   * largest of the batch. */
  mix_shape padded_shapes[MIX_PADDED_COMPONENTS];
  double padding_values[MIX_PADDED_COMPONENTS]; /* one for each tensor */
} mix_dataset_padded_batch_options;
/* Like batch, for elements of equal rank but different shapes: each is padded at the ends of its axes. */
MIX_API mix_dataset *mix_dataset_padded_batch_with(const mix_dataset_padded_batch_options *options);
#ifndef __cplusplus
/* mix_dataset_map(dataset, function, .context = c, .num_parallel_calls = 4), mix_dataset_filter(dataset,
 * predicate), mix_dataset_interleave(dataset, function, .cycle_length = 2),
 * mix_dataset_padded_batch(dataset, 32, .padding_values = {-1}) */
#define mix_dataset_map(...)                                                                                 \
  mix_dataset_map_with(MIX_ARGUMENTS("mix_dataset_map", "dataset, function, context", #__VA_ARGS__,          \
                                     mix_dataset_map_options, .dataset = __VA_ARGS__))
#define mix_dataset_filter(...)                                                                              \
  mix_dataset_filter_with(MIX_ARGUMENTS("mix_dataset_filter", "dataset, predicate, context", #__VA_ARGS__,   \
                                        mix_dataset_filter_options, .dataset = __VA_ARGS__))
#define mix_dataset_interleave(...)                                                                          \
  mix_dataset_interleave_with(MIX_ARGUMENTS("mix_dataset_interleave", "dataset, function, context",          \
                                            #__VA_ARGS__, mix_dataset_interleave_options,                    \
                                            .dataset = __VA_ARGS__))
#define mix_dataset_padded_batch(...)                                                                        \
  mix_dataset_padded_batch_with(MIX_ARGUMENTS("mix_dataset_padded_batch", "dataset, batch_size",             \
                                              #__VA_ARGS__, mix_dataset_padded_batch_options,                \
                                              .dataset = __VA_ARGS__))
#endif

/* Special values of a cardinality. */
#define MIX_INFINITE (-1)
#define MIX_UNKNOWN_CARDINALITY (-2)
/* The number of elements in a pass, MIX_INFINITE or MIX_UNKNOWN_CARDINALITY. INT64_MIN with an error
 * recorded for NULL. */
MIX_API int64_t mix_dataset_cardinality(const mix_dataset *dataset);
/* tf.data's element_spec, of the first element, which is drawn for it:
 * "((float32 (32, 4), float32 (32, 2)), {'a': int64 (32)})". The string lives as long as the process. NULL
 * with the error recorded; ValueError if there is no element. */
MIX_API const char *mix_dataset_element_spec(mix_dataset *dataset);

/* ---- passes ---- */

/* Starts a pass.
 *
 * fit, evaluate and predict read up to 4 elements ahead beside their steps where these leave a core free, or
 * elements are mostly waited for. Elements, order and errors are the same; elements of a pass that goes on in
 * the next epoch wait for it; and a further round (repeat, concatenate) begins, a cache is complete, when the
 * step asks for the element. Functions of the steps and generators are then called on the caller's thread as
 * ever: what has one without num_parallel_calls, or a later prefetch, is not read ahead, nor what ends with a
 * step that has threads, or with a prefetch of 0. So mix_dataset_prefetch(dataset, -1) allows it.
 *
 * If threads (prefetch, num_parallel_calls) work after a repeat of a shuffle, and a pass is
 * left before its end, the order of the next pass depends on how many rounds they had begun. In a forked
 * child a pass that had threads in the parent fails with a RuntimeError, and may be released; a new pass has
 * threads of its own. */
MIX_API mix_iterator *mix_dataset_iterate(mix_dataset *dataset);
/* The next element. NULL at the end without an error, on failure with one. The element belongs to the
 * iterator, which releases it at the next call (mix_retain keeps it). Appending to it does not change the
 * dataset. */
MIX_API mix_list *mix_iterator_next(mix_iterator *iterator);

MIX_END_DECLARATIONS
#endif
