/* A folder of numbered checkpoints, "checkpoint-37.npz". A new file never overwrites the previous one, which
 * is removed only when a newer one exists. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The largest checkpoint number below `limit` in the folder; -1: none (or no such folder), or an error
 * recorded. */
int64_t mix_checkpoint_folder_newest(const char *folder, int64_t limit, const char *call);
/* "FOLDER/checkpoint-37.npz"; mix_free it. */
char *mix_checkpoint_folder_path(const char *folder, int64_t number);
/* Removes all checkpoints but two (-1: none), and part files of killed processes; with `alone`, which says
 * that no other process uses the folder, of all other processes. A file that cannot be removed stays. */
void mix_checkpoint_folder_prune(const char *folder, int64_t keep, int64_t keep_too, bool alone);
/* Removes all checkpoints, and the folder if it is then empty. */
void mix_checkpoint_folder_remove(const char *folder, bool alone);
