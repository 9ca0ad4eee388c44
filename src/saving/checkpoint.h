/* Internals of checkpoints: the state of a model and an optimizer, and the files in their folder. */
#pragma once

#include "formats/archive.h"
#include "model/model.h"
#include "saving/folder_lock.h"
#include <mixtape/checkpoint.h>

/* A model and its optimizer, both retained, either NULL. */
typedef struct mix_checkpoint_part {
  mix_model *model;
  mix_optimizer *optimizer;
  json_t *identity; /* run_identity.h; seed and data are in that of the first part */
} mix_checkpoint_part;

struct mix_checkpoint {
  mix_object object;
  const char *folder;         /* interned; NULL: in memory alone */
  mix_checkpoint_part *parts; /* at least one */
  int part_count;
  bool several;          /* .models was given: the archive has a prefix for each part */
  mix_list *variables;   /* retained; NULL */
  mix_dataset *data;     /* retained: the data set in the identity; NULL */
  mix_folder_lock *lock; /* NULL: not locked yet */
  bool only_newest, force;
  bool another;             /* forced: the checkpoint is another run's */
  int64_t newest, previous; /* numbers of the last two files written or restored; -1: none */
  int value_count, name_capacity, value_capacity;
  const char **value_names; /* interned */
  mix_tensor **values;      /* retained */
};

/* checkpoint_state.c */

/* Collects everything that mix_checkpoint_options names and the process's seed; scoped. The caller may add
 * values. */
mix_archive *mix_checkpoint_collect(mix_checkpoint *checkpoint);
/* ValueError that names what differs between the run of the archive and this one. */
bool mix_checkpoint_check_run(mix_checkpoint *checkpoint, mix_archive *archive);
/* With `force` turns a pending ValueError into a warning, the first one, and returns true. */
bool mix_checkpoint_forced(mix_checkpoint *checkpoint);
/* Checks the whole archive against model, optimizer and variables, then assigns. */
bool mix_checkpoint_apply(mix_checkpoint *checkpoint, mix_archive *archive);

/* checkpoint.c: the files */

/* Locks the folder, once; `make`: creates it if it is missing. */
bool mix_checkpoint_lock(mix_checkpoint *checkpoint, bool make, const char *call);
/* Removes all files of checkpoints, and the folder if it is then empty. */
void mix_checkpoint_remove(mix_checkpoint *checkpoint);
/* Writes the file of that number and removes all but it and the previous one (only_newest: all others). */
bool mix_checkpoint_write(mix_checkpoint *checkpoint, mix_archive *archive, int64_t number);
/* Reads the newest valid file and its number; scoped. NULL without an error if there is none. */
mix_archive *mix_checkpoint_read(mix_checkpoint *checkpoint, int64_t *number);
