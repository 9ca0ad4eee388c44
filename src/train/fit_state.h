/* One fit while it runs: what fit.c and backup.c share. */
#ifndef MIX_TRAIN_FIT_STATE_H
#define MIX_TRAIN_FIT_STATE_H

#include "train/callback.h"
#include "saving/checkpoint.h"
#include "train/data_adapter.h"

typedef struct mix_fit_state {
  mix_model *model;
  mix_fit_options options;
  mix_data_adapter adapter;
  mix_callbacks callbacks;
  void *validation_x, *validation_y, *validation_weight; /* x NULL: no validation */
  mix_history *history;
  uint64_t seed;
  int64_t epochs;
  bool ended; /* the data ran out: no more epochs */

  /* BackupAndRestore's part */
  const mix_backup *backup; /* NULL: none, and the rest is not used */
  mix_checkpoint *checkpoint;
  mix_archive *resumed;       /* what this run goes on from; NULL: nothing */
  int64_t position;         /* batches of the first epoch to run that are done */
  int64_t batches_since;    /* the latest checkpoint */
} mix_fit_state;

static inline bool mix_fit_limit_reached(const mix_fit_state *f) { return f->options.steps && f->history->steps >= f->options.steps; }

/* backup.c. Finds the callback and the newest checkpoint, before any hook is called. */
bool mix_backup_open(mix_fit_state *f);
/* After on_train_begin: all of the state; *epoch: where to go on. */
bool mix_backup_resume(mix_fit_state *f, int64_t *epoch);
/* After on_epoch_begin of an epoch that goes on in its middle: what the hook changed takes the saved value again. */
bool mix_backup_resume_epoch(mix_fit_state *f);
/* After all hooks of a step, of an epoch, and of training. */
bool mix_backup_after_step(mix_fit_state *f, int64_t epoch);
bool mix_backup_after_epoch(mix_fit_state *f, int64_t epoch);
void mix_backup_after_training(mix_fit_state *f);

#endif
