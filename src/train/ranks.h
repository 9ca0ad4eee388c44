/* Training on several ranks. */
#pragma once

#include "train/fit_state.h"

/* Is the run of this rank, which `identity` describes (taken; NULL: it could not be prepared, and an error
 * may be pending), that of rank 0? False with an error on every rank, which names the rank and what differs
 * or has failed. */
bool mix_ranks_run_the_same(const char *call, json_t *identity);
/* After the state of a checkpoint was restored, if there is one: do all ranks go on from the same epoch and
 * step? Then weights and state of the optimizer become those of rank 0. */
bool mix_ranks_share_values(const char *call, mix_model *model, mix_optimizer *optimizer, int64_t epoch,
                            int64_t steps);

/* The first for a fit after its preparation, which `prepared` says has succeeded. */
bool mix_fit_join_ranks(mix_fit_state *f, bool prepared);
/* The second for a fit. */
bool mix_fit_share_values(mix_fit_state *f, int64_t epoch);
