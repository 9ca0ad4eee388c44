/* Reading ahead: the passes of fit, evaluate and predict have a thread that makes the next elements beside
 * the step, without a prefetch in the data set. */
#pragma once

#include "data/pipeline/background.h"
#include "data/pipeline/prefetch_policy.h"

/* Elements, their order and their errors are those of a pass without it, and so is what a pass that is left
 * before its end changes in the data set: a further round (repeat, concatenate) begins, and a cache becomes
 * complete, when its element is asked for. Functions of the user stay on the receiver's thread unless their
 * step, or one after it, has threads; so does a data set that ends with a step that has threads. */
typedef struct mix_read_ahead {
  bool allowed;
  mix_prefetch_policy policy;
  double least;               /* seconds of the element that was made fastest */
  int64_t made;               /* elements made by the receiver's thread */
  size_t bytes;               /* of the latest one */
  mix_background *background; /* NULL until it is needed */
} mix_read_ahead;

/* Of a pass over this data set. False with the error recorded. */
bool mix_read_ahead_allow(mix_read_ahead *ahead, mix_dataset *dataset);
mix_pull mix_read_ahead_next(mix_read_ahead *ahead, mix_cursor *cursor, mix_element *element);
/* Before the cursor is closed. */
void mix_read_ahead_stop(mix_read_ahead *ahead);

/* For steps that begin a pass over `input` within theirs: if that changes its state, they wait here until the
 * element is asked for. False: the pass is over. */
bool mix_read_ahead_may_begin(mix_dataset *input);
