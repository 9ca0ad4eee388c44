/* Which nodes fuse (fuse.c) makes one program of: fusion_groups.c. */
#pragma once

#include "passes/passes.h"

enum { MIX_FUSION_MEMBERS = 40 };

/* Groups are kept in topological order, each at its own position: a group stands after what it reads. Joining
 * two groups moves only those between them (Pearce and Kelly: A dynamic topological sort algorithm for
 * directed acyclic graphs, ACM JEA 11, 2006, with one edge contracted). */
typedef struct mix_fusion_groups {
  mix_ir *ir;
  int *root;               /* by node: union-find parent */
  int *next, *last;        /* members of a group, as a list from its root */
  int *size;               /* by root: number of members */
  bool *summed;            /* by node: a sum reads it */
  bool *reduces;           /* by root: contains a finite check or a sum */
  int *position, *root_at; /* position by root; root by position, -1: none */
  int *seen;               /* by root: the latest search that visited it */
  int search;
  int *stack, *moved;
  int *uses;              /* by value */
  int *used_inside;       /* by value: scratch, zero between calls */
  int *collective_before; /* by node: it stands after this one, as if it read it; -1: none */
} mix_fusion_groups;

/* Joins what may join; without "fuse" each node stays alone. False with the error recorded. */
bool mix_fusion_make_groups(mix_ir *ir, mix_fusion_groups *g);
/* The root of a node's group. */
int mix_fusion_root(mix_fusion_groups *g, int n);
/* A sum that may end a program, which must add in the order of the sum's own kernel. */
bool mix_fusion_is_sum(const mix_ir *ir, const mix_ir_node *node);
/* A finite check, or such a sum. */
bool mix_fusion_reduces(const mix_ir *ir, const mix_ir_node *node);
/* Can the node be in a program? */
bool mix_fusion_takes(const mix_ir *ir, const mix_ir_node *node);
/* The iteration space of a node that can join a group. */
mix_shape mix_fusion_space(const mix_ir *ir, int n);
