/* One fit while it runs: what fit.c and backup.c share. */
#ifndef MIX_MODEL_FITTING_H
#define MIX_MODEL_FITTING_H

#include "model/callback.h"
#include "model/checkpoint.h"
#include "model/feed.h"

typedef struct mix_fitting {
  mix_model *model;
  mix_fit_options options;
  mix_feed feed;
  mix_callbacks callbacks;
  void *validation_x, *validation_y, *validation_weight; /* x NULL: no validation */
  mix_history *history;
  uint64_t seed;
  int64_t epochs;
  bool ended; /* the data ran out: no more epochs */

  /* BackupAndRestore's part */
  const mix_backup *backup; /* NULL: none, and the rest is not used */
  mix_checkpoint *checkpoint;
  mix_state *resumed;       /* what this run goes on from; NULL: nothing */
  int64_t position;         /* batches of the first epoch to run that are done */
  int64_t batches_since;    /* the latest checkpoint */
} mix_fitting;

static inline bool mix_fit_limit_reached(const mix_fitting *f) { return f->options.steps && f->history->steps >= f->options.steps; }

/* backup.c. Finds the callback and the newest checkpoint, before any hook is called. */
bool mix_backup_open(mix_fitting *f);
/* After on_train_begin: all of the state; *epoch: where to go on. */
bool mix_backup_resume(mix_fitting *f, int64_t *epoch);
/* After on_epoch_begin of an epoch that goes on in its middle: what the hook changed takes the saved value again. */
bool mix_backup_resume_epoch(mix_fitting *f);
/* After all hooks of a step, of an epoch, and of training. */
bool mix_backup_after_step(mix_fitting *f, int64_t epoch);
bool mix_backup_after_epoch(mix_fitting *f, int64_t epoch);
void mix_backup_after_training(mix_fitting *f);

#endif
