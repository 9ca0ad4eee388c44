/* BackupAndRestore: a callback without hooks. fit saves the checkpoints (train/backup.c) after all other
 * callbacks have run. */
#include "base/alloc.h"
#include "base/error.h"
#include "train/callback.h"

mix_callback *mix_backup_and_restore_with(const mix_backup_and_restore_options *given) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_backup_and_restore_options, options, given, "backup_and_restore");
  if (!options.backup_dir || !*options.backup_dir)
    return mix_fail(MIX_VALUE_ERROR, "backup_and_restore: backup_dir is missing");
  if (options.save_freq < 0)
    return mix_fail(MIX_VALUE_ERROR,
                    "backup_and_restore: save_freq is %lld; expected 0 (each epoch) or a number of batches",
                    (long long)options.save_freq);
  mix_backup *backup = mix_alloc(sizeof *backup);
  if (!backup) return NULL;
  *backup = (mix_backup){.folder = mix_intern(options.backup_dir),
                         .save_freq = options.save_freq,
                         .keep = options.keep_checkpoint,
                         .only_newest = options.only_newest};
  mix_callback *callback = mix_callback_own(&(mix_callback_options){.size = sizeof(mix_callback_options),
                                                                    .name = "BackupAndRestore",
                                                                    .context = backup,
                                                                    .release = mix_free});
  if (callback) callback->backup = backup;
  return callback;
}
