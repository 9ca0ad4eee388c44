/* The progress bar and the line for each epoch, through the log callback. */
#pragma once

#include "train/logs.h"

/* A number in the logs of batches that is not the model's. */
typedef struct mix_progress_value {
  const char *name; /* interned */
  double sum;
  int64_t count;
} mix_progress_value;

typedef struct mix_progress {
  /* Of the callback. */
  bool samples; /* tf_keras's count_mode "samples", which sees none */
  bool has_arguments;
  const char *stateful_metrics[MIX_MODEL_MAX];
  bool in_fit; /* a fit has used it: evaluate shows nothing */
  /* Of a run. */
  int verbose; /* 0 nothing, 1 bar, 2 a line an epoch */
  const mix_semantics *rules;
  int64_t target, epochs; /* target -1: unknown */
  /* Of a pass over the data. */
  int64_t seen; /* steps */
  bool due;
  double started, last_drawn, first_step_done;
  double input; /* share of the pass for which steps waited for input; 0: not told */
  int width;                  /* of the line on the terminal */
  int own;                    /* numbers of the model in the logs of batches */
  mix_progress_value *values; /* owned: other numbers */
  int value_count, value_capacity;
} mix_progress;

/* Makes `verbose` silent where the caller's options say quiet. False with the error recorded if they say
 * both. */
bool mix_progress_take_quiet(int *verbose, bool quiet, const char *call);
/* `verbose` as given by the user: 0 is auto, MIX_SILENT is silent. */
void mix_progress_set(mix_progress *progress, int verbose, const mix_semantics *rules, int64_t target,
                      int64_t epochs);
/* Begins a pass. */
void mix_progress_begin(mix_progress *progress);
/* After each step: is a redraw due? Asked before the numbers are fetched. */
bool mix_progress_due(mix_progress *progress, int64_t current);
/* Counts a step, and keeps the numbers that are not the model's. Redraws if that is due. */
void mix_progress_step(mix_progress *progress, const mix_model *model, int64_t current, const mix_logs *logs);
void mix_progress_end(mix_progress *progress, const mix_logs *logs);
