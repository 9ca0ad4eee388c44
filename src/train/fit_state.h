/* Fit state: one running fit, shared by fit.c and backup.c. */
#pragma once

#include "train/callback.h"
#include "saving/checkpoint.h"
#include "train/data_adapter.h"

typedef struct mix_fit_state {
  mix_model *model;
  mix_fit_options options;
  mix_data_adapter adapter;
  mix_callbacks callbacks;
  void *validation_x, *validation_y, *validation_weight; /* x NULL: no validation */
  mix_kept_arrays kept_validation;
  mix_history *history;
  uint64_t seed;
  int64_t epochs;
  bool ended;            /* the data ran out: no more epochs */
  json_t *data_identity; /* owned: digests of the data, which take long; NULL: not taken yet */

  /* Used by BackupAndRestore. */
  int saves_on; /* the rank to which divided state is gathered for its ModelCheckpoint; MIX_NO_RANK: none */
  const mix_backup *backup; /* NULL: none, and the fields below are unused */
  mix_checkpoint *checkpoint;
  mix_archive *resumed;  /* the checkpoint this run resumes; NULL: none */
  int64_t position;      /* batches already done in the first epoch to run */
  int64_t batches_since; /* since the last checkpoint */
} mix_fit_state;

static inline bool mix_fit_limit_reached(const mix_fit_state *f) {
  return f->options.steps && f->history->steps >= f->options.steps;
}

enum { MIX_NO_RANK = -2 };
/* ranks.c: which rank has a ModelCheckpoint at the ends of epochs? False with the error recorded. */
bool mix_fit_find_saving_rank(mix_fit_state *f);

/* backup.c. Finds the callback and the newest checkpoint, before any hook is called. */
bool mix_backup_open(mix_fit_state *f);
/* After on_train_begin: restores all state. `*epoch`: the epoch to resume at. */
bool mix_backup_resume(mix_fit_state *f, int64_t *epoch);
/* After on_epoch_begin of an epoch resumed in its middle: restores the saved values that the hook changed. */
bool mix_backup_resume_epoch(mix_fit_state *f);
/* Called after all hooks of a step, an epoch, and the training. */
bool mix_backup_after_step(mix_fit_state *f, int64_t epoch);
bool mix_backup_after_epoch(mix_fit_state *f, int64_t epoch);
void mix_backup_after_training(mix_fit_state *f);

/* class_weight.c: the class weights of a fit by their labels, for the run's identity. */
json_t *mix_class_weights_json(const mix_fit_options *options);
/* data_identity.c: adds class weights and the data set or arrays to a run's identity. */
bool mix_fit_identify_data(mix_fit_state *f, json_t *identity);
