/* Collective ops, which exchange values with the other processes of a distribution. */
#pragma once

#include "graph/op.h"
#include "ops/list.h"
#include <mixtape/ops.h>

typedef struct mix_broadcast_attributes {
  int root;
} mix_broadcast_attributes;
typedef struct mix_all_gather_attributes {
  int ranks;
} mix_all_gather_attributes;

/* all_reduce_start begins to sum x over the ranks: its result is memory that belongs to the exchange until
 * all_reduce_done, whose result is the sum. Elements are added in the order of the ranks, 16-bit ones in
 * float32, and rounded once. broadcast: the operand of rank `root`, on every rank. all_gather: the operands
 * of all ranks, which have one shape, one after the other along axis 0. */
#define MIX_DECLARE_OP(name) extern const mix_op mix_op_##name;
MIX_COLLECTIVE_OPS(MIX_DECLARE_OP)
#undef MIX_DECLARE_OP

mix_tensor *mix_all_reduce_start(mix_tensor *x);
mix_tensor *mix_all_reduce_done(mix_tensor *pending);
mix_tensor *mix_broadcast_from(mix_tensor *x, int root);
mix_tensor *mix_all_gather_of(mix_tensor *x, int ranks);
/* The 16-bit tensor that x is only an upcast of, or x: what crosses the network in half the bytes. */
mix_tensor *mix_before_upcast(mix_tensor *x);
