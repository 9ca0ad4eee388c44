/* Inside checkpoints: what of a model and an optimizer is in them, and the files in their folder. */
#ifndef MIX_SAVING_CHECKPOINT_H
#define MIX_SAVING_CHECKPOINT_H

#include "formats/archive.h"
#include "model/model.h"
#include <mixtape/checkpoint.h>

struct mix_checkpoint {
  mix_object object;
  const char *folder;       /* interned */
  mix_model *model;         /* borrowed where it is a fit's own, else retained; NULL */
  mix_optimizer *optimizer; /* retained; NULL */
  mix_list *variables;      /* retained; NULL */
  bool only_newest;
  int64_t newest, former;   /* numbers of the files written or restored last; -1: none */
  int value_count, name_room, value_room;
  const char **value_names; /* interned */
  mix_tensor **values;      /* retained */
};

/* All that mix_checkpoint_options names, and the process's seed; scoped. The caller adds to it. */
mix_archive *mix_checkpoint_collect(mix_checkpoint *checkpoint);
/* To the file of that number; the one before the former goes. */
bool mix_checkpoint_write(mix_checkpoint *checkpoint, mix_archive *archive, int64_t number);
/* The newest whole file, and its number; scoped. NULL without an error where there is none. */
mix_archive *mix_checkpoint_read(mix_checkpoint *checkpoint, int64_t *number);
/* Checks all of it against model, optimizer and variables, then assigns. */
bool mix_checkpoint_apply(mix_checkpoint *checkpoint, mix_archive *archive);

#endif
