/* Checkpoints: the whole state of a training, in files from which another process goes on with the same bits. fit takes and uses them by
 * mix_backup_and_restore (callback.h); this is for loops of one's own.
 *
 *   mix_checkpoint *checkpoint = mix_checkpoint_new("folder", .model = model, .optimizer = optimizer);
 *   mix_iterator *batches = mix_dataset_iterate(train);
 *   int64_t step = mix_checkpoint_restore(checkpoint, batches);           // -1: there is none yet
 *   for (step = step < 0 ? 0 : step; (batch = mix_iterator_next(batches));) {
 *     mix_function_call(train_step, batch);
 *     if (++step % 100 == 0) mix_checkpoint_save(checkpoint, step, batches);
 *   }
 *
 * In a checkpoint are all weights of the model (statistics and counters too), the state of the generators that its layers keep, all state of
 * the optimizer, the loss scale with its counter, the further variables named, what mix_checkpoint_put gave, the process's seed, and the
 * place in the data. What lies elsewhere (in the context of a function of one's own, say) is not.
 *
 * A checkpoint is one file, FOLDER/checkpoint-STEP.npz, which numpy.load reads. It is written beside, flushed to the disk and renamed, and
 * ends in a SHA-256 of all of it. The one before stays: where the newest is damaged, a warning names it and the one before is used. */
#ifndef MIXTAPE_CHECKPOINT_H
#define MIXTAPE_CHECKPOINT_H

#include <mixtape/dataset.h>
#include <mixtape/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mix_checkpoint mix_checkpoint; /* an object: mix_retain, mix_release */

typedef struct mix_checkpoint_options {
  size_t size;
  const char *folder;       /* required; made by the first save */
  mix_model *model;         /* NULL: none. It must have its weights (ValueError) */
  mix_optimizer *optimizer; /* NULL: the one that the model was compiled with, if it was */
  mix_list *variables;      /* more variables: those of metrics (mix_metric_variables), some of one's own */
  bool only_newest;         /* do not keep the checkpoint before the newest */
} mix_checkpoint_options;
/* Reads and writes nothing yet. Retains model, optimizer and variables. */
MIX_API mix_checkpoint *mix_checkpoint_with(const mix_checkpoint_options *options);
#ifndef __cplusplus
/* mix_checkpoint_new("folder", .model = model) */
#define mix_checkpoint_new(...)                                                                                                \
  mix_checkpoint_with(&(const mix_checkpoint_options){.size = sizeof(mix_checkpoint_options), .folder = __VA_ARGS__})
#endif

/* A value that goes with each save from now on, under a name of its own; a later one of the same name takes its place. */
MIX_API mix_status mix_checkpoint_put(mix_checkpoint *checkpoint, const char *name, mix_tensor *value);
/* The value of that name which was put or restored last; NULL, without an error, where there is none. Borrowed. */
MIX_API mix_tensor *mix_checkpoint_get(mix_checkpoint *checkpoint, const char *name);

/* Writes a checkpoint; `step` (0 or more) numbers it. `iterator`: the running pass over the data, at its end too; NULL: no place in data.
 * In a folder with checkpoints that this object neither wrote nor restored it refuses (ValueError): nothing is overwritten unasked. What
 * goes wrong leaves the former checkpoint as it was. */
MIX_API mix_status mix_checkpoint_save(mix_checkpoint *checkpoint, int64_t step, mix_iterator *iterator);

/* Takes over the newest whole checkpoint and returns its step; -1 where the folder holds none, and on failure. What does not fit (another
 * model, optimizer, policy, shape, data set) is a ValueError that names it; no variable is changed unless all fit.
 *
 * `iterator`, a new pass over a data set of the same steps, goes on where the saved one was: shuffles take the seeds and numbers of passes
 * that they had, and the elements drawn in the running pass are drawn again and passed over. That gives the same elements for every pipeline
 * that gives the same elements in every run: a generator's must follow from their index (and what its context holds at the begin of a
 * pass), a mapped function's from its element; map with .not_deterministic promises nothing. A cache is filled anew, by a pass in the order of
 * the one that filled it. Shuffles inside the data sets of an interleave need seeds of their own. */
MIX_API int64_t mix_checkpoint_restore(mix_checkpoint *checkpoint, mix_iterator *iterator);

/* The step of the newest checkpoint in a folder, whole or not; -1: none. */
MIX_API int64_t mix_checkpoint_latest(const char *folder);
/* Removes the checkpoints, and the folder where it is empty then. */
MIX_API mix_status mix_checkpoint_delete(mix_checkpoint *checkpoint);

#ifdef __cplusplus
}
#endif
#endif
