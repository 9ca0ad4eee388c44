/* Nodes of the lazy graph, and the tensors that refer to their results. */
#pragma once

#include "graph/op.h"
#include "graph/segment.h"
#include "tensor/memory.h"
#include "tensor/type.h"

typedef struct mix_value {
  MIX_TYPE_MEMBERS;
  mix_memory *memory; /* NULL until computed; set once, with the graph locked (graph/lock.h) */
} mix_value;

typedef struct mix_edge {
  mix_node *node; /* retained */
  int output;
} mix_edge;

struct mix_node {
  mix_object object;
  const mix_op *op;
  uint64_t sequence; /* creation order, process-wide */
  int input_count, output_count;
  mix_edge *inputs; /* dropped (count 0) once the value is known, unless a tape recorded the node */
  mix_value *outputs;
  void *attributes;       /* op->attributes_size bytes, inline */
  const char *scope;      /* interned path of the layer that was being called, or NULL */
  atomic_int recorded;    /* number of tapes that hold it */
  struct mix_body *body;  /* of a loop (graph/body.h); retained, or NULL */
  mix_segment *segment;   /* that was open (graph/segment.h); retained, or NULL */
  bool symbolic;          /* descends from mix_input */
  bool keep;              /* the rewrite leaves it unchanged */
  bool backward;          /* made by the gradient of an op */
  mix_variable *variable; /* of a read: the variable; NULL once it is gone */
  bool holds_variable;    /* the node retains the variable: all reads except the variable's own read node */
  void *capture;          /* the capture it was made in, for comparison only; NULL outside */
};

struct mix_tensor {
  mix_object object;
  mix_node *node; /* retained */
  int output;
  void *history; /* the layer call that made it (an object of nn), retained, or NULL */
  /* the operand of the softmax or sigmoid that made it, for stable cross-entropies; retained, or NULL */
  mix_tensor *logits;
  mix_tensor *mask; /* Keras's _keras_mask, retained, or NULL */
};

extern const mix_class mix_tensor_class;

/* Creates every node: checks operand dtypes against the signature, infers shapes and records on the open
 * tapes. `attributes` is copied. Returns the node with one reference for the caller, or NULL with the
 * error recorded. */
mix_node *mix_node_new(const mix_op *op, const void *attributes, int input_count, const mix_edge *inputs);
/* mix_node_new for an op with a body (graph/body.h), whose results have these types. */
mix_node *mix_node_new_with_body(const mix_op *op, const void *attributes, struct mix_body *body,
                                 int input_count, const mix_edge *inputs, int output_count,
                                 const mix_type *types);
/* mix_node_new from tensors. Returns result 0 as a scoped tensor; the last statement of every public
 * operation. Returns NULL at once while an error is pending; a NULL operand is an error. */
mix_tensor *mix_apply(const mix_op *op, const void *attributes, int input_count, mix_tensor *const *inputs);
/* A scoped tensor that refers to a result of a node. */
mix_tensor *mix_tensor_of(mix_node *node, int output);
/* Operand i of a node as a scoped tensor. */
mix_tensor *mix_node_input(mix_node *node, int index);
static inline const mix_value *mix_input_value(const mix_node *node, int index) {
  return &node->inputs[index].node->outputs[node->inputs[index].output];
}
static inline const mix_value *mix_tensor_value(const mix_tensor *tensor) {
  return &tensor->node->outputs[tensor->output];
}
/* Checks the caller's array: data, unless it is empty, a dtype that tensors have, and a known shape. */
bool mix_tensor_check_array(const char *call, const void *data, mix_dtype dtype, mix_shape shape);
/* A finished node of op "constant" around a buffer (retained). */
mix_node *mix_node_constant(mix_memory *memory, mix_dtype dtype, mix_shape shape);
/* A node of op "placeholder": an argument of a capture or, if symbolic, the result of mix_input. */
mix_node *mix_node_placeholder(mix_dtype dtype, mix_shape shape, bool symbolic);
/* A read of a variable. Inside a capture it has the current value as its operand and retains the variable.
 * Outside it is finished, around the storage (retained). */
mix_node *mix_node_read(mix_variable *variable, const mix_edge *current, mix_memory *storage);
/* Drops the operands if every output is finished and no tape holds the node. */
void mix_node_detach(mix_node *node);
/* The index of a node among those in order of creation; -1: it is none of them. */
int mix_node_index(mix_node *const *nodes, int count, const mix_node *node);
/* Every later node has this sequence number or a higher one. */
uint64_t mix_node_next_sequence(void);

/* Requires the graph lock if other threads may refer to the node. */
static inline bool mix_node_finished(const mix_node *node) {
  for (int i = 0; i < node->output_count; i++)
    if (!node->outputs[i].memory) return false;
  return true;
}

/* The operands of a call as text for error messages: "float32 (2, 3) and float16 (3)". */
const char *mix_operands_text(int count, mix_tensor *const *tensors, char *text, size_t size);

extern const mix_op mix_op_constant, mix_op_placeholder, mix_op_read;
