/* BackupAndRestore: a callback without hooks. fit saves the checkpoints (train/backup.c) after all other
 * callbacks have run. */
#include "base/alloc.h"
#include "base/error.h"
#include "train/callback.h"

#define OFFSET(member) offsetof(mix_backup_and_restore_options, member)
static const mix_field_row fields[] = {
    {"backup_dir", OFFSET(backup_dir), &mix_field_text},
    {"save_freq", OFFSET(save_freq), &mix_field_frequency, .range = MIX_NOT_NEGATIVE},
    {"delete_checkpoint", OFFSET(keep_checkpoint), &mix_field_negated},
    {"double_checkpoint", OFFSET(only_newest), &mix_field_negated},
    {"force", OFFSET(force), &mix_field_boolean},
    {0}};
MIX_CALLBACK_KIND(backup_and_restore, fields)

mix_callback *mix_backup_and_restore_with(const mix_backup_and_restore_options *given) {
  mix_backup_and_restore_options options;
  if (!mix_callback_resolve(&mix_backup_and_restore_kind, given, &options)) return NULL;
  if (!options.backup_dir || !*options.backup_dir)
    return mix_fail_value("backup_and_restore: backup_dir is missing");
  mix_backup *backup = mix_alloc(sizeof *backup);
  if (!backup) return NULL;
  *backup = (mix_backup){.options = options,
                         .folder = options.backup_dir,
                         .save_freq = options.save_freq,
                         .keep = options.keep_checkpoint,
                         .only_newest = options.only_newest,
                         .force = options.force};
  static const size_t steers[] = {OFFSET(save_freq), OFFSET(force), 0};
  mix_callback *callback =
      MIX_CALLBACK_OWN(.name = "BackupAndRestore", .context = backup, .release = mix_free);
  if (callback) callback->backup = backup;
  return mix_callback_steers(callback,
                             (mix_callback_steering){&mix_backup_and_restore_kind, &backup->options, steers});
}
