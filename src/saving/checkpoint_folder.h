/* A folder of numbered checkpoints, "checkpoint-37.npz": a new one never replaces the one before it, which goes only once there is another
 * to fall back on. */
#ifndef MIX_SAVING_CHECKPOINT_FOLDER_H
#define MIX_SAVING_CHECKPOINT_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

/* The largest number below `limit` that a checkpoint in the folder has; -1: none (or no such folder), or an error recorded. */
int64_t mix_checkpoint_folder_newest(const char *folder, int64_t limit, const char *call);
/* "FOLDER/checkpoint-37.npz"; mix_free it. */
char *mix_checkpoint_folder_path(const char *folder, int64_t number);
/* Removes all checkpoints but two (-1: none), and what writers that were killed left behind. A file that cannot be removed stays. */
void mix_checkpoint_folder_prune(const char *folder, int64_t keep, int64_t keep_too);
/* Removes all checkpoints, and the folder where nothing else is in it. */
void mix_checkpoint_folder_remove(const char *folder);

#endif
