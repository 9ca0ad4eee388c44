/* What training asks about the other processes. With one process all of it is nothing. */
#pragma once

#include <mixtape/distribute.h>

/* Of the distribution in force. */
int mix_rank(void);
int mix_rank_count(void);
static inline bool mix_is_distributed(void) { return mix_rank_count() > 1; }

/* This rank's rows [*first, *first + *count) of a batch. Shares differ by one row at most; there may be
 * none. */
void mix_rank_share(int64_t rows, int64_t *first, int64_t *count);

/* The gradients summed over the ranks, NULL where they are NULL. All sums begin before the first ends, in the
 * order in which a backward pass makes them, in 16 bits where they are upcasts of 16-bit ones. The list
 * itself in one process. */
mix_list *mix_sum_gradients(mix_list *gradients);

/* Each value (NULL items are left out) becomes its sum over the ranks. All sums begin before the first ends,
 * so that they cross the network together. Nothing in one process; false with the error recorded. */
bool mix_all_reduce_together(int count, mix_tensor **values);

/* In a capture: what mix_check_numerics finds on one rank, in the tensors that were given to it since the
 * last call, becomes an error on all of them, so that none writes a variable. All ranks must have the same
 * checks. Nothing else; false with the error recorded. */
bool mix_share_checks(void);

/* The text of rank 0, on every rank; mix_free it. NULL with the error recorded. */
char *mix_text_of_first_rank(const char *call, const char *text);
/* The number of each rank, in their order, on every rank. False with the error recorded. */
bool mix_gather_numbers(const char *call, int own, int *all);
/* The same for `count` numbers of each rank. */
bool mix_gather_integers(const char *call, int count, const int64_t *own, int64_t *all);
/* Waits for all ranks. False if an error is pending here, or on another rank: a RuntimeError then names the
 * first such rank and has its message. */
bool mix_ranks_succeed(const char *call);
