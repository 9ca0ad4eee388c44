/* The state of an optimizer, divided among the ranks: each variable has an owner, or each rank some of its
 * rows, where its slots and its float32 weight live and its gradients go. Every rank has the whole weight in
 * float32, or, where training reads only its 16-bit form, that form. */
#pragma once

#include "graph/division.h"
#include "optim/optimizer.h"

typedef struct mix_shards {
  unsigned communicator; /* its number */
  int rank, ranks;
  mix_division *divisions; /* by index of the variable */
  mix_variable *clock;     /* an update of any rank writes it, and nothing else; retained */
  mix_dtype *summed;       /* by index: of its gradient in the update under way; NONE: it has none */
} mix_shards;

static inline bool mix_shards_clip_by_norm(const mix_optimizer *optimizer) {
  return optimizer->options.common.clipnorm > 0 || optimizer->options.common.global_clipnorm > 0;
}
/* Do optimizers divide their state in the distribution in force? */
bool mix_shards_wanted(void);
/* Before the state is made: chooses owners. False with the error recorded. */
bool mix_shards_plan(mix_optimizer *optimizer);
void mix_shards_free(mix_shards *shards);
/* This rank keeps its share of a state variable of trainable variable `index`. */
bool mix_shards_divide(const mix_optimizer *optimizer, mix_variable *state, int index);
/* Brings the state of a built optimizer into the form that the distribution in force wants. The whole state
 * must be here if it has another one. False with the error recorded. */
bool mix_shards_match(mix_optimizer *optimizer);

/* Does this rank update the variable, or some of its rows? True without shards. */
bool mix_shards_holds(const mix_optimizer *optimizer, int index);
/* May the update of this call set the variable on any rank? */
bool mix_shards_sets(const mix_optimizer *optimizer, int index);
/* The rows of a whole value that this rank updates; the value itself if these are all. */
mix_tensor *mix_shards_rows(const mix_optimizer *optimizer, int index, mix_tensor *whole);
/* The whole value on every rank, from the rows that each has updated. NULL: this rank has none. */
mix_tensor *mix_shards_whole(const mix_optimizer *optimizer, int index, mix_tensor *own);
/* The gradients summed over the ranks, where this one updates the variable; NULL elsewhere. */
mix_list *mix_shards_sum(mix_optimizer *optimizer, mix_list *gradients, mix_list *variables);
/* Are the gradients finite on all ranks? */
mix_tensor *mix_shards_all_finite(const mix_optimizer *optimizer, mix_list *gradients);
/* Item i, a scalar on the one rank that has it and NULL elsewhere, becomes known on all ranks. */
bool mix_shards_share_scalars(int count, mix_tensor **scalars, mix_dtype dtype);
/* Does this rank give the scalar of a gradient to the others? */
bool mix_shards_gives(const mix_optimizer *optimizer, int index);

/* Before a fit: state that rank 0 has been given goes to all, as their shares. */
bool mix_shards_share_state(mix_optimizer *optimizer);
/* The value of a divided variable, on every rank, which all take part in. */
mix_tensor *mix_shards_value(mix_variable *variable);
/* After a fit: every rank gets the whole float32 weights. False with the error recorded. */
bool mix_shards_gather_weights(mix_optimizer *optimizer);
/* Is the whole state here? False with an error that names the remedy. */
bool mix_shards_check_here(mix_optimizer *optimizer);
/* State that was gathered is forgotten; weights are once copies were made of them. False with the error
 * recorded. */
bool mix_shards_drop_gathered(mix_optimizer *optimizer);
