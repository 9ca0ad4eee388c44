/* A set of nodes that a walk has found. */
#pragma once

#include "graph/node.h"

/* Zeroed memory is an empty set. */
typedef struct mix_node_set {
  mix_node **nodes; /* in the order in which they were found; borrowed */
  int count, capacity;
  int *table; /* open addressing: index into nodes, + 1 */
  int table_size;
} mix_node_set;

/* The index of a node; -1: it is not in the set. */
int mix_node_set_find(const mix_node_set *set, const mix_node *node);
/* Adds a node that may be there already. False: out of memory, recorded. */
bool mix_node_set_add(mix_node_set *set, mix_node *node);
/* Sorts the nodes in order of creation. */
void mix_node_set_sort(mix_node_set *set);
void mix_node_set_clear(mix_node_set *set);
