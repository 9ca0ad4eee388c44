/* Collective ops, which exchange values with the other processes of a distribution. */
#pragma once

#include "graph/op.h"
#include "graph/division.h"
#include "ops/list.h"
#include <mixtape/ops.h>

typedef struct mix_broadcast_attributes {
  int root;
} mix_broadcast_attributes;
typedef struct mix_all_gather_attributes {
  int ranks;
} mix_all_gather_attributes;

/* Of a value of this shape, which is divided among the ranks (graph/division.h). */
typedef struct mix_share_attributes {
  int owner, rank, ranks;
  mix_shape shape;
} mix_share_attributes;

/* all_reduce_start begins to sum x over the ranks: its result is memory that belongs to the exchange until
 * all_reduce_done, whose result is the sum. Elements are added in the order of the ranks, 16-bit ones in
 * float32, and rounded once. broadcast: the operand of rank `root`, on every rank. all_gather: the operands
 * of all ranks, which have one shape, one after the other along axis 0. reduce_scatter_start and
 * reduce_scatter_done: as all_reduce, but each rank gets the sum of its own rows alone, and a scalar of 0
 * where it has none. collect_shares: from the own rows of all ranks (a rank without rows gives a scalar) the
 * whole, on every rank. */
#define MIX_DECLARE_OP(name) extern const mix_op mix_op_##name;
MIX_COLLECTIVE_OPS(MIX_DECLARE_OP)
#undef MIX_DECLARE_OP

mix_tensor *mix_all_reduce_start(mix_tensor *x);
mix_tensor *mix_all_reduce_done(mix_tensor *pending);
mix_tensor *mix_broadcast_from(mix_tensor *x, int root);
mix_tensor *mix_all_gather_of(mix_tensor *x, int ranks);
mix_tensor *mix_reduce_scatter_start(mix_tensor *x, mix_division division, int rank, int ranks);
mix_tensor *mix_reduce_scatter_done(mix_tensor *pending);
/* Does a collective op only hand on what the ranks have computed? It fails if one is gone, whose shares of
 * variables are gone then too, so that variables may be written before it. */
bool mix_op_hands_on(const mix_op *op);
mix_tensor *mix_collect_shares(mix_tensor *own, mix_shape shape, mix_division division, int rank, int ranks);
/* The shape of a rank's share; of rank 0 if it has none. */
mix_shape mix_share_shape(mix_shape shape, const mix_division *division, int rank, int ranks);
/* How a value of this shape is divided. */
mix_division mix_division_of(mix_shape shape, int owner);
/* The 16-bit tensor that x is only an upcast of, or x: what crosses the network in half the bytes. */
mix_tensor *mix_before_upcast(mix_tensor *x);
