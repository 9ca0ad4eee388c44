/* Clones of a node for groups of its users: each user has a key, and those of one key share a clone. */
#pragma once

#include "ir/ir.h"

/* Users of each node, as linked lists that grow with the clones. */
typedef struct mix_use {
  int consumer, next;
} mix_use;

typedef struct mix_uses {
  mix_ir *ir;
  int *first; /* by node; -1: none */
  int *key;   /* by node; of a clone, that of its users */
  mix_use *uses;
  int count, node_capacity, use_capacity; /* the capacity bounds the number of clones */
} mix_uses;

/* Every key is -1. */
bool mix_uses_build(mix_uses *x, mix_ir *ir);
/* Users of node n whose key is not `own` get a clone for each key, while there is room. Clones are added at
 * the end: the ir is no longer sorted. */
bool mix_uses_clone_for_others(mix_uses *x, int n, int own);
