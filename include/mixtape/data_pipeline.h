/* A pipeline of data in one expression, in the order in which elements pass through it:
 *
 *   mix_dataset *train = mix_data_pipeline(mix_dataset_from_tensors(x, y),
 *                                          mix_step_shuffle(10000, .seed = 1),
 *                                          mix_step_map(normalise, .num_parallel_calls = 2),
 *                                          mix_step_batch(128, .drop_remainder = true),
 *                                          mix_step_prefetch(-1));
 *
 * Each step is the function of dataset.h of that name, with the same options and without the dataset. */
#ifndef MIXTAPE_DATA_PIPELINE_H
#define MIXTAPE_DATA_PIPELINE_H

#include <mixtape/dataset.h>

MIX_BEGIN_DECLARATIONS

/* A step: a function of a dataset and the step's options. Write your own to put other functions into a
 * pipeline; `options` needs to live until the call returns. */
typedef struct mix_data_step {
  mix_dataset *(*apply)(mix_dataset *dataset, const void *options);
  const void *options;
} mix_data_step;
/* The source after all steps. NULL with the error recorded where a step fails, also the first one because the
 * source is NULL; later steps are not called then. The contexts of steps before it have been taken over and
 * go with the scope; its own and those of later steps are still the caller's (object.h). */
MIX_API mix_dataset *mix_data_pipeline_of(mix_dataset *source, int count, const mix_data_step *steps);

/* What the macros below apply. Options are those of dataset.h, whose member `dataset` is ignored; for repeat,
 * take, skip, prefetch and enumerate an int64_t, for shard two of them (count, index). */
MIX_API mix_dataset *mix_data_apply_shuffle(mix_dataset *dataset, const void *options);
MIX_API mix_dataset *mix_data_apply_batch(mix_dataset *dataset, const void *options);
MIX_API mix_dataset *mix_data_apply_padded_batch(mix_dataset *dataset, const void *options);
MIX_API mix_dataset *mix_data_apply_window(mix_dataset *dataset, const void *options);
MIX_API mix_dataset *mix_data_apply_map(mix_dataset *dataset, const void *options);
MIX_API mix_dataset *mix_data_apply_filter(mix_dataset *dataset, const void *options);
MIX_API mix_dataset *mix_data_apply_interleave(mix_dataset *dataset, const void *options);
MIX_API mix_dataset *mix_data_apply_repeat(mix_dataset *dataset, const void *count);
MIX_API mix_dataset *mix_data_apply_take(mix_dataset *dataset, const void *count);
MIX_API mix_dataset *mix_data_apply_skip(mix_dataset *dataset, const void *count);
MIX_API mix_dataset *mix_data_apply_shard(mix_dataset *dataset, const void *count_and_index);
MIX_API mix_dataset *mix_data_apply_enumerate(mix_dataset *dataset, const void *start);
MIX_API mix_dataset *mix_data_apply_unbatch(mix_dataset *dataset, const void *unused);
MIX_API mix_dataset *mix_data_apply_cache(mix_dataset *dataset, const void *unused);
MIX_API mix_dataset *mix_data_apply_prefetch(mix_dataset *dataset, const void *count);

#ifndef __cplusplus
/* mix_data_pipeline(source, step, step, ...): at least one step. */
#define mix_data_pipeline(source, ...)                                                                       \
  mix_data_pipeline_of(source, (int)(sizeof((const mix_data_step[]){__VA_ARGS__}) / sizeof(mix_data_step)),  \
                       (const mix_data_step[]){__VA_ARGS__})

#define MIX_DATA_STEP(step, options_type, first, names, text, ...)                                           \
  { mix_data_apply_##step, MIX_ARGUMENTS("mix_step_" #step, names, text, options_type, .first = __VA_ARGS__) }
#define mix_step_shuffle(...)                                                                                \
  MIX_DATA_STEP(shuffle, mix_dataset_shuffle_options, buffer_size, "buffer_size", #__VA_ARGS__, __VA_ARGS__)
#define mix_step_batch(...)                                                                                  \
  MIX_DATA_STEP(batch, mix_dataset_batch_options, batch_size, "batch_size, drop_remainder", #__VA_ARGS__,    \
                __VA_ARGS__)
#define mix_step_padded_batch(...)                                                                           \
  MIX_DATA_STEP(padded_batch, mix_dataset_padded_batch_options, batch_size, "batch_size", #__VA_ARGS__,      \
                __VA_ARGS__)
#define mix_step_window(...)                                                                                 \
  MIX_DATA_STEP(window, mix_dataset_window_options, window, "window, !shift, !stride, drop_remainder",       \
                #__VA_ARGS__, __VA_ARGS__)
#define mix_step_map(...)                                                                                    \
  MIX_DATA_STEP(map, mix_dataset_map_options, function, "function, context", #__VA_ARGS__, __VA_ARGS__)
#define mix_step_filter(...)                                                                                 \
  MIX_DATA_STEP(filter, mix_dataset_filter_options, predicate, "predicate, context", #__VA_ARGS__,           \
                __VA_ARGS__)
#define mix_step_interleave(...)                                                                             \
  MIX_DATA_STEP(interleave, mix_dataset_interleave_options, function, "function, context", #__VA_ARGS__,     \
                __VA_ARGS__)
#define mix_step_repeat(count)                                                                               \
  {                                                                                                          \
    mix_data_apply_repeat, (const int64_t[]) { count }                                                       \
  }
#define mix_step_take(count)                                                                                 \
  {                                                                                                          \
    mix_data_apply_take, (const int64_t[]) { count }                                                         \
  }
#define mix_step_skip(count)                                                                                 \
  {                                                                                                          \
    mix_data_apply_skip, (const int64_t[]) { count }                                                         \
  }
#define mix_step_shard(count, index)                                                                         \
  {                                                                                                          \
    mix_data_apply_shard, (const int64_t[]) { count, index }                                                 \
  }
#define mix_step_enumerate(start)                                                                            \
  {                                                                                                          \
    mix_data_apply_enumerate, (const int64_t[]) { start }                                                    \
  }
#define mix_step_unbatch()                                                                                   \
  { mix_data_apply_unbatch, NULL }
#define mix_step_cache()                                                                                     \
  { mix_data_apply_cache, NULL }
#define mix_step_prefetch(count)                                                                             \
  {                                                                                                          \
    mix_data_apply_prefetch, (const int64_t[]) { count }                                                     \
  }
#endif

MIX_END_DECLARATIONS
#endif
