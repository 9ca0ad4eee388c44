/* The compiler's own form of a graph: arrays of nodes and values that passes edit. Values are numbers; a node's results are
 * consecutive values. Nodes stand in an order in which operands come before uses. */
#ifndef MIX_IR_IR_H
#define MIX_IR_IR_H

#include "graph/node.h"
#include "graph/variable.h"
#include "ir/program.h"
#include "ops/table.h"

typedef enum mix_ir_source { MIX_IR_COMPUTED, MIX_IR_ARGUMENT, MIX_IR_VARIABLE, MIX_IR_CONSTANT } mix_ir_source;

typedef struct mix_ir_value {
  MIX_TYPE_MEMBERS;
  int node, output;
} mix_ir_value;

typedef struct mix_ir_node {
  const mix_op *op;
  const void *attributes;
  int input_count, output_count;
  int *inputs;            /* values */
  int first_output;       /* value */
  const char *scope;
  bool keep, dead;
  mix_ir_source source;
  int index;              /* of the argument or variable; of a constant read from text: the seed of its numbers, or 0 */
  const void *data;       /* of the constant */
  mix_program *program;   /* fused steps, and products with an epilogue */
  int guard;              /* value: a bool scalar; -1: none */
  int guard_key;          /* fuse: the guard under which all uses of this node stand; -1: none */
  int mark;               /* scratch of a pass */
} mix_ir_node;

typedef struct mix_ir_variable {
  mix_variable *variable; /* retained */
  int entry;              /* value on entry */
  int exit;               /* value on exit; entry where nothing was assigned */
  int guard;              /* value: store only if true; -1: always */
} mix_ir_variable;

typedef struct mix_ir {
  const char *name;       /* of the function, for the log; may be NULL */
  mix_ir_node *nodes;
  int node_count, node_capacity;
  mix_ir_value *values;
  int value_count, value_capacity;
  mix_ir_variable *variables;
  int variable_count, variable_capacity;
  int *results;           /* values */
  int result_count;
  int argument_count;
  bool eager;         /* evaluation: nothing is worth computing ahead */
  bool excess_precision;            /* jit_compile: values inside a program may keep more digits than their dtype */
  bool replay;             /* a copy, compiled once more to be looked at: who was told of the passes' doings is not told twice */
  mix_object **held;      /* retained: buffers of constants */
  int held_count, held_capacity;
  /* Computes a graph of constants on the host, result r at addresses[r]: what constant folding calls. Consumes `part`. */
  bool (*evaluate)(struct mix_ir *part, void *const *addresses);
  struct mix_cast_watch *watch; /* what the rewrite did, until that is told (amp/cast_watch.c) */
  struct mix_ir_chunk *memory; /* everything the passes allocate lives as long as the ir */
} mix_ir;

mix_ir *mix_ir_new(void);
void mix_ir_free(mix_ir *ir);
/* Of a graph without programs (as captured). Attributes and constants' numbers are those of the original, which must outlive it. */
mix_ir *mix_ir_copy(const mix_ir *ir);
/* Memory that goes with the ir; zeroed. */
void *mix_ir_alloc(mix_ir *ir, size_t size);
/* A new node at the end, with result values of the given types; -1 with the error recorded. */
int mix_ir_add(mix_ir *ir, const mix_op *op, const void *attributes, int input_count, const int *inputs, int output_count,
               const mix_type *types);
/* A constant whose bytes live as long as the ir. */
int mix_ir_add_constant(mix_ir *ir, const void *data, mix_dtype dtype, mix_shape shape);
/* One more variable (retained) that the plan binds, so far only read; its number. */
int mix_ir_add_variable(mix_ir *ir, mix_variable *variable);
static inline int mix_ir_producer(const mix_ir *ir, int value) { return ir->values[value].node; }
/* Every use of `from` becomes one of `to`. */
void mix_ir_replace(mix_ir *ir, int from, int to);
/* Counts of uses of each value by live nodes, results and variable exits; an array of value_count in the ir's memory. */
int *mix_ir_uses(mix_ir *ir);
/* Puts the live nodes into an order where operands come first, keeping the present order where possible; drops dead ones from the
 * array. False on a cycle (an internal error). */
bool mix_ir_sort(mix_ir *ir);

/* ---- as text (ir_text.c, ir_read.c; the form is described in docs/ARCHITECTURE.md) ---- */

/* One node a line, operands first. Returns memory of the ir. */
const char *mix_ir_text(mix_ir *ir);
/* The other way, for text of `size` bytes: the same text comes out again. Numbers that the text leaves out (values of variables,
 * large constants) are drawn as mix_ir_fill says, variables and constants of at most `max_bytes` together. `name` stands in
 * messages, which name line and node. NULL with the error recorded. */
mix_ir *mix_ir_read(const char *name, const char *text, size_t size, size_t max_bytes);
/* Floating numbers uniform in [-1, 1) by Philox; others 0 or 1. */
void mix_ir_fill(void *data, mix_dtype dtype, int64_t count, uint64_t seed);
/* Does a node fit its op: number and dtypes of operands, attributes, shape rule, program? False with what is wrong in `problem`, or
 * the error recorded where there was no memory. */
bool mix_ir_check(mix_ir *ir, const mix_ir_node *node, char *problem, size_t size);

/* From the graph: everything that `results` and the capture's bindings need. Arguments are placeholders in order; bindings may be
 * NULL. Unfinished nodes of outside the capture must have been evaluated before. */
mix_ir *mix_ir_from_graph(int result_count, const mix_edge *results, int argument_count, mix_node *const *arguments,
                          const mix_capture *capture);
/* The nodes that a captured graph needs from outside and that are not finished; mix_free the array. NULL with the
 * error recorded. */
mix_node **mix_nodes_outside(int result_count, const mix_edge *results, const mix_capture *capture, int *count);

#endif
