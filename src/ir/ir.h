/* The compiler's form of a graph: arrays of nodes and values that passes edit. Values are numbers; the
 * results of a node are consecutive values. Nodes are ordered so that operands precede their uses. */
#pragma once

#include "graph/variable.h"
#include "ir/program.h"
#include "ops/table.h"

typedef enum mix_ir_source {
  MIX_IR_COMPUTED,
  MIX_IR_ARGUMENT,
  MIX_IR_VARIABLE,
  MIX_IR_CONSTANT
} mix_ir_source;

typedef struct mix_ir_value {
  MIX_TYPE_MEMBERS;
  int node, output;
} mix_ir_value;

typedef struct mix_ir_node {
  const mix_op *op;
  const void *attributes;
  int input_count, output_count;
  int *inputs;      /* values */
  int first_output; /* value */
  const char *scope;
  bool keep, dead, backward; /* backward: made by the gradient of an op */
  bool repeated;             /* a clone that computes again what was not kept (passes/repeat_nodes.h) */
  mix_ir_source source;
  /* Of the argument or variable. Of a constant read from text: the seed of its elements, or 0. */
  int index;
  mix_memory *memory;   /* of a constant: where its bytes are (retained by the ir or outliving it) ... */
  size_t offset;        /* ... and where they begin */
  mix_program *program; /* fused steps, and products with an epilogue */
  struct mix_ir *body;  /* of a loop: arguments and results are those of one step; owned by the ir */
  int guard;            /* value: a bool scalar; -1: none */
  int guard_key;        /* pass fuse: the guard that all uses of this node have in common; -1: none */
  int mark;             /* scratch of a pass */
} mix_ir_node;

typedef struct mix_ir_variable {
  mix_variable *variable; /* retained */
  int entry;              /* value on entry */
  int exit;               /* value on exit; `entry` if nothing was assigned */
  int guard;              /* value: store only if true; -1: always */
} mix_ir_variable;

typedef struct mix_ir {
  const char *name; /* of the function, for the log; may be NULL */
  mix_ir_node *nodes;
  int node_count, node_capacity;
  mix_ir_value *values;
  int value_count, value_capacity;
  mix_ir_variable *variables;
  int variable_count, variable_capacity;
  int *results; /* values */
  int result_count;
  int argument_count;
  bool eager; /* one evaluation: precomputing values does not pay */
  /* jit_compile: values inside a program may keep more precision than their dtype. */
  bool excess_precision;
  /* A second compilation for inspection: passes do not repeat their reports. */
  bool replay;
  mix_object **held; /* retained: buffers of constants */
  int held_count, held_capacity;
  struct mix_ir **bodies; /* of its loops, also of dead ones */
  int body_count, body_capacity;
  /* Computes a graph of constants on the host; result r is written to results[r]. Constant folding calls
   * it. Consumes `part`. */
  bool (*evaluate)(struct mix_ir *part, mix_memory *const *results);
  const struct mix_context *context; /* that it is compiled for (backend/context.h) */
  struct mix_cast_watch *watch;      /* what the rewrite did, until it is reported (amp/cast_watch.c) */
  struct mix_ir_chunk *memory;       /* memory of the passes, freed with the ir */
  uint64_t visits; /* what the searches of fusion and memory planning have looked at: tests hold its growth */
} mix_ir;

mix_ir *mix_ir_new(void);
void mix_ir_free(mix_ir *ir);
/* Copies a graph without programs, as captured. Attributes and the elements of constants are shared with
 * the original, which must outlive the copy. */
mix_ir *mix_ir_copy(const mix_ir *ir);
/* Zeroed memory that is freed with the ir. */
void *mix_ir_alloc(mix_ir *ir, size_t size);
/* Arrays of it. */
static inline void *mix_ir_array(mix_ir *ir, int count, size_t element) {
  return mix_ir_alloc(ir, element * (size_t)count);
}
static inline int *mix_ir_ints(mix_ir *ir, int count) { return mix_ir_array(ir, count, sizeof(int)); }
static inline bool *mix_ir_flags(mix_ir *ir, int count) { return mix_ir_array(ir, count, sizeof(bool)); }
/* Appends a node with result values of the given types. Returns its index, or -1 with the error recorded. */
int mix_ir_add(mix_ir *ir, const mix_op *op, const void *attributes, int input_count, const int *inputs,
               int output_count, const mix_type *types);
/* Appends a cast of a value, of the layer `scope`. Returns the result, or -1 with the error recorded. */
int mix_ir_add_cast(mix_ir *ir, int value, mix_dtype dtype, const char *scope);
/* A constant at `offset` of a memory, which the ir retains. */
int mix_ir_add_constant(mix_ir *ir, mix_memory *memory, size_t offset, mix_type type);
/* The bytes of a constant, to be read until mix_ir_unmap_constant. NULL with the error recorded. */
const void *mix_ir_map_constant(const mix_ir_node *node);
void mix_ir_unmap_constant(const mix_ir_node *node);
/* Gives a node its body, which the ir frees, also on failure. */
bool mix_ir_set_body(mix_ir *ir, int node, mix_ir *body);
/* Retains an object for as long as the ir lives. */
bool mix_ir_hold(mix_ir *ir, void *object);
/* Adds a variable (retained) that the plan reads. Returns its index. */
int mix_ir_add_variable(mix_ir *ir, mix_variable *variable);
static inline int mix_ir_producer(const mix_ir *ir, int value) { return ir->values[value].node; }
/* Replaces every use of `from` by `to`. */
void mix_ir_replace(mix_ir *ir, int from, int to);
/* Counts the uses of each value by live nodes, results and variable exits. The array of value_count counts
 * is in the ir's memory. */
int *mix_ir_uses(mix_ir *ir);
/* By node: the last collective node before it if it is collective too, else -1. These pairs keep their order
 * as if one read the other. In the ir's memory; NULL with the error recorded. */
int *mix_ir_collective_before(mix_ir *ir);
/* Node i of the input_count + 2 that must come before node n: the producers of its operands and of its guard,
 * and the collective node before it. -1: there is none. */
int mix_ir_predecessor(const mix_ir *ir, const int *collective_before, int n, int i);
/* Sorts live nodes so that operands come first and collective ones keep their order, keeping the present
 * order where possible, and drops dead nodes. Returns false on a cycle, which is an internal error. */
bool mix_ir_sort(mix_ir *ir);

/* ---- text form (ir_text.c, ir_read.c; described in docs/GRAPH_TEXT.md) ---- */

/* One node a line, operands first. The text is in the ir's memory. */
const char *mix_ir_text(mix_ir *ir);
/* Reads text of `size` bytes back; writing the result gives the same text. Elements that the text omits (of
 * variables and large constants) come from mix_ir_fill, and both may take at most `max_bytes` in total. NULL
 * with the error recorded, which names `name`, line and node. */
mix_ir *mix_ir_read(const char *name, const char *text, size_t size, size_t max_bytes);
/* Floating elements are uniform in [-1, 1) by Philox; others are 0 or 1. */
void mix_ir_fill(void *data, mix_dtype dtype, int64_t count, uint64_t seed);
/* Checks a node against its op: number and dtypes of operands, attributes, shape rule, program. Returns
 * false with the reason in `problem`, or with the error recorded if memory ran out. */
bool mix_ir_check(mix_ir *ir, const mix_ir_node *node, char *problem, size_t size);

/* Imports everything that `results`, the bindings of the capture and its stateful nodes need. Arguments
 * become placeholders, in order. `capture` may be NULL. Unfinished nodes from outside the capture must have
 * been evaluated before. */
mix_ir *mix_ir_from_graph(int result_count, const mix_edge *results, int argument_count,
                          mix_node *const *arguments, const mix_capture *capture);
/* The unfinished nodes outside the capture that the captured graph needs. The caller frees the array
 * (mix_free). NULL with the error recorded. */
mix_node **mix_nodes_outside(int result_count, const mix_edge *results, const mix_capture *capture,
                             int *count);
