/* Checkpoints: the whole state of a training run in files or in memory. Another process that restores them
 * continues with the same bits. mix_model_fit uses checkpoints through mix_backup_and_restore (callback.h);
 * this interface is for custom loops.
 *
 *   mix_checkpoint *checkpoint = mix_checkpoint_new("folder", .model = model, .optimizer = optimizer);
 *   mix_iterator *batches = mix_dataset_iterate(train);
 *   int64_t step = mix_checkpoint_restore(checkpoint, batches);           // -1: there is none yet
 *   for (step = step < 0 ? 0 : step; (batch = mix_iterator_next(batches));) {
 *     mix_function_call(train_step, batch);
 *     if (++step % 100 == 0) mix_checkpoint_save(checkpoint, step, batches);
 *   }
 *
 * A checkpoint contains all weights of the model (statistics and counters too), the state of the
 * generators that its layers keep, the states of stateful recurrent layers (which files of Keras lack), all
 * state of the optimizer, the loss scale with its counters, the additional variables, the values of
 * mix_checkpoint_put, the global seed, and the position in the data.
 * It does not contain state kept elsewhere, such as in the context of a user's function.
 *
 * Several models go into one checkpoint: .models = mix_list_of(generator, critic), each with its optimizer.
 * They are restored in the same order. Automatic names ("model_1") depend on what a process has made
 * before, so that layers are compared and not names; but models in another order are refused by their names.
 *
 * A checkpoint is one file, FOLDER/checkpoint-STEP.npz, which numpy.load reads. It is written to a
 * temporary file, flushed to the disk and renamed, and ends with a SHA-256 of its content. The previous
 * checkpoint is kept: if the newest is damaged, a warning names it and the previous one is used. A file that
 * cannot be read (EACCES, EMFILE, EIO) is not damaged: that is an error.
 *
 * The first save or restore locks the folder for the process, until the object is released: a folder that
 * another process uses is a RuntimeError.
 *
 * A checkpoint carries the identity of its run: generation, layers with their options and policies, losses,
 * optimizer as it was made, seed, steps of the data set with their numbers (batch size), and dtypes, shapes
 * and SHA-256 of its arrays; not names, epochs, steps, threads, device, paths. The elements of a generator
 * have no digest, which gives a warning. Restoring into another run is a ValueError that names the
 * difference, and the model where there are several. With .force it is a warning; the position in the data is
 * then not restored, an optimizer whose state does not fit begins anew, and the learning rate stays as given.
 */
#ifndef MIXTAPE_CHECKPOINT_H
#define MIXTAPE_CHECKPOINT_H

#include <mixtape/dataset.h>
#include <mixtape/model.h>

MIX_BEGIN_DECLARATIONS

typedef struct mix_checkpoint mix_checkpoint; /* an object: mix_retain, mix_release */

typedef struct mix_checkpoint_options {
  size_t size;
  const char *folder;       /* created by the first save; NULL: for memory alone */
  mix_model *model;         /* NULL: none. The model must have its weights (ValueError) */
  mix_optimizer *optimizer; /* NULL: the optimizer that the model was compiled with, if any */
  mix_list *variables;      /* more variables, such as those of metrics (mix_metric_variables) */
  bool only_newest;         /* do not keep the previous checkpoint */
  uint64_t seed;            /* of the run, as part of its identity; 0: none */
  bool force;               /* restore the checkpoint of another run too (see above) */
  mix_list *models;         /* several, in place of .model; as it */
  mix_list *optimizers;     /* one for each of .models, or NULL; NULL: those that they were compiled with */
} mix_checkpoint_options;
/* Creates a checkpoint object; reads and writes nothing yet. Retains model, optimizer and variables. */
MIX_API mix_checkpoint *mix_checkpoint_with(const mix_checkpoint_options *options);
#ifndef __cplusplus
/* mix_checkpoint_new("folder", .model = model) */
#define mix_checkpoint_new(...)                                                                              \
  mix_checkpoint_with(MIX_ARGUMENTS("mix_checkpoint_new", "folder, model, optimizer", #__VA_ARGS__,          \
                                    mix_checkpoint_options, .folder = __VA_ARGS__))
#endif

/* Adds a named value to all later saves. It replaces an earlier value of the same name. */
MIX_API mix_status mix_checkpoint_put(mix_checkpoint *checkpoint, const char *name, mix_tensor *value);
/* The value of that name that was last put or restored, borrowed; NULL without an error if there is none. */
MIX_API mix_tensor *mix_checkpoint_get(mix_checkpoint *checkpoint, const char *name);

/* Writes a checkpoint with the number `step` (0 or more). `iterator` is the running pass over the data,
 * which may be at its end; NULL: no position is saved. If the folder has checkpoints that this object
 * neither wrote nor restored, the call refuses (ValueError), so nothing is overwritten by accident. On
 * failure the previous checkpoint is unchanged. */
MIX_API mix_status mix_checkpoint_save(mix_checkpoint *checkpoint, int64_t step, mix_iterator *iterator);

/* Restores the newest intact checkpoint and returns its step; -1 if the folder has none, and on failure. A
 * state that does not fit (another model, optimizer, policy, shape, dataset) is a ValueError that names
 * it; no variable is changed unless all fit.
 *
 * `iterator`, a new pass over a dataset with the same steps, continues at the saved position. Shuffles get
 * their former seeds and pass numbers, and the elements already drawn in the saved pass are drawn again
 * and skipped. This gives the same elements if the pipeline itself is reproducible: a generator's elements
 * must follow from their index (and from its context at the start of a pass), a mapped function's from its
 * element; map with .not_deterministic guarantees nothing. A cache is filled again, by a pass in the
 * original order. Shuffles inside the datasets of an interleave need seeds of their own. */
MIX_API int64_t mix_checkpoint_restore(mix_checkpoint *checkpoint, mix_iterator *iterator);

/* ---- in memory: a host program keeps the checkpoint in its own restart file ----
 *
 *   mix_tensor *bytes = mix_checkpoint_to_memory(checkpoint, step, NULL);
 *   size_t size = (size_t)mix_shape_size(mix_tensor_shape(bytes));
 *   fwrite(mix_tensor_data(bytes), 1, size, restart);
 *   ...
 *   int64_t step = mix_checkpoint_from_memory(checkpoint, data, size, NULL);
 *
 * Neither needs a folder, and in several processes each is a rank's own call: weights and state of the
 * optimizer are the same on all ranks, so that the bytes of one serve for all. State that is divided among
 * the ranks is gathered before, by mix_optimizer_gather_state; else it is an error that says so. */

/* The bytes that mix_checkpoint_save would write, as a tensor of uint8 (size). The memory is the tensor's,
 * and changes no more: it lives as long as the tensor. Takes twice as many bytes while it runs. Scoped; NULL
 * with the error recorded. */
MIX_API mix_tensor *mix_checkpoint_to_memory(mix_checkpoint *checkpoint, int64_t step,
                                             mix_iterator *iterator);
/* mix_checkpoint_restore from such bytes, or those of a file that mix_checkpoint_save wrote; returns the
 * step, or -1 on failure. Copies what it keeps: `data` is the caller's again when the call returns.
 * FormatError if the bytes are truncated, damaged or something else. */
MIX_API int64_t mix_checkpoint_from_memory(mix_checkpoint *checkpoint, const void *data, size_t size,
                                           mix_iterator *iterator);

/* The step of the newest checkpoint in a folder, intact or not; -1: none. */
MIX_API int64_t mix_checkpoint_latest(const char *folder);
/* Deletes the checkpoints, and the folder if it is empty then. */
MIX_API mix_status mix_checkpoint_delete(mix_checkpoint *checkpoint);

MIX_END_DECLARATIONS
#endif
