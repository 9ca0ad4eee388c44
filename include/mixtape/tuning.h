/* Precision tuning: the smallest set of layers that must compute in float32 for a model to train under a
 * 16-bit policy as it does in float32. The search runs whole trainings: it calls a function of yours that
 * trains the model once and returns its validation loss.
 *
 * 1. Several seeds in float32 give the mean loss and its sample standard deviation s. A set passes if its
 *    loss is at most mean + 2 s.
 * 2. Without any layer in float32 first. While that fails, the layers that the numerics report names are
 *    added; a run that cannot recover is ended early.
 * 3. If the report names no further layer, delta debugging (Zeller and Hildebrandt 2002) begins with all
 *    layers and looks for a part that is enough.
 * 4. Each layer of the set is left out in turn, until none can be.
 * 5. The set is confirmed on seeds that were not used before: the mean of their losses must pass. If it does
 *    not, float32 runs with these seeds join those that give mean and s, for they may be hard seeds. If the
 *    mean does not pass then either, larger sets that passed are tried, on new seeds again. */
#ifndef MIXTAPE_TUNING_H
#define MIXTAPE_TUNING_H

#include <mixtape/callback.h>

MIX_BEGIN_DECLARATIONS

typedef struct mix_tuning mix_tuning; /* an object: mix_retain, mix_release; it owns what it returns */

/* One run that the search asks for. It and what it points to live until the function returns. */
typedef struct mix_tune_trial {
  size_t size;
  const char *policy; /* of the model: "float32", or the 16-bit policy that is tuned */
  uint64_t seed;      /* for mix_set_seed before the model is made, and for the shuffling */
  /* The layers that compute in float32 although the policy is another, ended by NULL. */
  const char *const *float32_layers;
  /* To be given to fit: they fill the numerics report that the search reads, and end runs that cannot
   * recover. fit takes no further mix_numerics_report beside them. */
  mix_list *callbacks;
  void *search; /* the search's own */
} mix_tune_trial;

/* Makes the model anew, trains it and returns its validation loss, of which less is better; NaN and infinity
 * fail. A pending error ends the search with it. It runs in a scope of its own. */
typedef double (*mix_tune_function)(void *context, const mix_tune_trial *trial);

/* For `.dtype` of a layer while the global policy is the trial's: "float32", or NULL, the global policy.
 * ValueError for a layer that the search does not know. */
MIX_API const char *mix_tune_dtype(const mix_tune_trial *trial, const char *layer);
/* Names a layer as a suspect, if this run fails: for loops of your own, which call no callbacks. ValueError
 * for a layer that the search does not know. */
MIX_API mix_status mix_tune_suspect(const mix_tune_trial *trial, const char *layer);

typedef struct mix_tune_options {
  size_t size;
  mix_tune_function function; /* required */
  /* Required: the names of the layers to choose from, ended by NULL. Those that a policy of their own keeps
   * in float32 do not belong here. */
  const char *const *layers;
  void *context;
  const char *policy;    /* NULL: "mixed_float16" */
  int64_t seeds;         /* float32 runs; 0: 3; less than 3 is a ValueError */
  int64_t confirmations; /* new seeds for the final set; 0: 2 */
  /* Runs under the 16-bit policy, those that confirm included; 0: 100. */
  int64_t max_trials;
  uint64_t seed; /* the first one; the others follow it; 0: 1 */
  /* Where all float32 losses are the same number, because the seeds change nothing, a set passes at
   * mean + tolerance |mean|. 0: 0.01; MIX_ZERO is accepted. */
  double tolerance;
  int64_t every; /* the numerics report watches every nth step; 0: 25 */
  /* The format that `function` simulates (mix_simulate_products) in every layer but the trial's. The runs to
   * compare with are then those of the policy without it, and the set is of layers that stay in 16 bits: this
   * changes what the texts say, and nothing else. NULL: none. */
  const char *simulate;
} mix_tune_options;
/* Searches. Each run is logged as MIX_LOG_INFO. NULL with the error recorded; RuntimeError if a float32 run
 * itself has a loss that is not finite. */
MIX_API mix_tuning *mix_tune_precision_with(const mix_tune_options *options);
#ifndef __cplusplus
/* mix_tune_precision(train, names, .context = &data) */
#define mix_tune_precision(tuned_function, ...)                                                              \
  mix_tune_precision_with(MIX_ARGUMENTS("mix_tune_precision", "layers, context", #__VA_ARGS__,               \
                                        mix_tune_options, .function = tuned_function,                        \
                                        .layers = __VA_ARGS__))
#endif

/* "found": the set passes, on new seeds too, and on the seed of the search not without any one of its layers.
 * Where smaller sets passed the search but not on new seeds, it is a larger one, of which some layers may not
 * be needed; the table says so.
 * "limit": max_trials ended the search. If there is a set it passed, but a smaller one may do.
 * "unconfirmed": sets passed on the seed of the search, and none on new ones. There is no set.
 * "none": not even with all layers in float32 is the loss that of float32. There is no set. */
MIX_API const char *mix_tuning_status(const mix_tuning *tuning);
/* The layers that stay float32, ended by NULL; NULL: there is no set. */
MIX_API const char *const *mix_tuning_layers(const mix_tuning *tuning);
/* Their number; -1: there is no set. */
MIX_API int mix_tuning_count(const mix_tuning *tuning);
/* Did the set pass on seeds that were not used before? */
MIX_API bool mix_tuning_confirmed(const mix_tuning *tuning);

/* The float32 losses' mean and standard deviation, and the largest loss that passes. */
typedef struct mix_tuning_goal {
  size_t size;
  double mean, deviation, limit;
} mix_tuning_goal;
/* Fills the first goal_size bytes of `goal`; pass sizeof(mix_tuning_goal). */
MIX_API mix_status mix_tuning_get_goal(const mix_tuning *tuning, mix_tuning_goal *goal, size_t goal_size);

typedef struct mix_tuning_run {
  size_t size;
  /* "float32", "search" (until a set passes), "reduce" (parts of a set that passes), "confirm" */
  const char *purpose;
  const char *const *float32_layers; /* of this run, ended by NULL; NULL: the policy was float32 */
  uint64_t seed;
  double loss;
  bool passed;         /* by the limit of that time; of "confirm" of this seed alone; of "float32" true */
  const char *stopped; /* why it was ended early or failed whatever its loss: "stalled", ...; NULL */
} mix_tuning_run;
/* The number of runs, and run `index` (from 0), in order. ValueError if the index is out of range. */
MIX_API int mix_tuning_run_count(const mix_tuning *tuning);
MIX_API mix_status mix_tuning_get_run(const mix_tuning *tuning, int index, mix_tuning_run *run,
                                      size_t run_size);

/* The result as text: the goal, each run, the set. It lives until the next call. */
MIX_API const char *mix_tuning_table(mix_tuning *tuning);
/* The set ready to paste: for C, for Keras and for the program's --float32-layers. NULL with a RuntimeError
 * if there is no set. */
MIX_API const char *mix_tuning_overrides(mix_tuning *tuning);
/* The set as a map of policies, Keras 3's DTypePolicyMap in JSON: the policy that was tuned, and a key for
 * each layer that is float32 with all that it holds. Under a map compile scales no loss, and outputs stay in
 * 16 bits unless their layer has a key. It lives until the next call. NULL with a RuntimeError if there is no
 * set. */
MIX_API const char *mix_tuning_policy_map(mix_tuning *tuning);
/* All of it as one JSON object. Numbers that are not finite are strings. */
MIX_API const char *mix_tuning_json(mix_tuning *tuning);

MIX_END_DECLARATIONS
#endif
