/* A fit on several ranks. */
#ifndef MIX_TRAIN_RANKS_H
#define MIX_TRAIN_RANKS_H

#include "train/fit_state.h"

/* After the preparation, which `prepared` says has succeeded: do all ranks run the same thing? False with an
 * error on every rank, which names the rank and what differs or has failed. */
bool mix_fit_join_ranks(mix_fit_state *f, bool prepared);
/* After the state of a checkpoint was restored, if there is one: do all ranks go on from the same epoch and
 * step? Then weights and state of the optimizer become those of rank 0. */
bool mix_fit_share_values(mix_fit_state *f, int64_t epoch);

#endif
