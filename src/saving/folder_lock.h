/* The lock of a checkpoint folder: one process at a time uses it. */
#pragma once

#include <stdbool.h>

typedef struct mix_folder_lock mix_folder_lock;

/* Locks an existing folder for this process until the last of its locks is released or the process ends,
 * however it ends. A file system without locks gives a warning and a lock that keeps nobody out. NULL with
 * the error recorded: RuntimeError if another process uses the folder. */
mix_folder_lock *mix_folder_lock_take(const char *folder, const char *call);
/* True if it is the lock of what the folder's name means now. */
bool mix_folder_lock_fits(const mix_folder_lock *lock, const char *folder);
/* True if no other process can hold the lock. */
bool mix_folder_lock_excludes(const mix_folder_lock *lock);
void mix_folder_lock_release(mix_folder_lock *lock); /* NULL: nothing to do */
