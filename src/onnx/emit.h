/* Inside the export: what the families of operations share. */
#pragma once

#include "formats/protobuf.h"
#include "ir/ir.h"
#include "onnx/onnx.h"
#include <mixtape/export.h>

/* A size as a function of the batch: factor * batch + rest. */
typedef struct mix_onnx_size {
  int64_t factor, rest;
} mix_onnx_size;

/* The graph is captured for several batches, of which no dimension of a model is a multiple, and a size that
 * differs is a function of the batch. */
enum { MIX_ONNX_BATCHES = 3 };

/* A tensor of the file: its elements are those of a variable, of a constant of the graph, of a tensor that
 * lives as long as the emitter, or `data`. */
typedef struct mix_onnx_initializer {
  const char *name;
  MIX_TYPE_MEMBERS; /* as written */
  mix_dtype from;   /* as it is */
  mix_variable *variable;
  const mix_ir_node *constant;
  mix_tensor *value;
  const void *data;
} mix_onnx_initializer;

typedef struct mix_onnx_emitter {
  mix_ir *root;                               /* whose memory names are in */
  const mix_ir *ir;                           /* being written: the root or the body of a loop ... */
  const mix_ir *others[MIX_ONNX_BATCHES - 1]; /* ... and the same of other batches */
  int64_t batches[MIX_ONNX_BATCHES];          /* of these graphs */
  const mix_ir_node *node;                    /* being written */
  const char **values;                        /* names by value of `ir`; NULL: not yet */
  mix_message *nodes;                         /* of the graph being written */
  mix_message prologue;                       /* nodes of the root that come before all others */
  mix_message attributes;                     /* of the next node */
  mix_onnx_initializer *tensors;
  int tensor_count, tensor_capacity;
  const char *batch; /* name of the batch as int64 (1), or NULL */
  const char *first; /* name of the input whose axis 0 is the batch */
  const char *call;  /* for errors */
  int number;        /* of names so far */
  int opset;
  bool widens;        /* 16 bits become float32 */
  bool folds;         /* normalisation into convolutions */
  bool keeps_weights; /* in float32, with casts behind them */
  mix_export_attention attention;
  bool failed; /* with the error recorded */
  /* Writes the nodes of a graph, whose arguments have their names: that of a loop's body. */
  bool (*graph)(struct mix_onnx_emitter *e);
} mix_onnx_emitter;

/* Writes the nodes of a node of the graph, and names its results. */
typedef void mix_onnx_form(mix_onnx_emitter *e, const mix_ir_node *node);

static inline const char *mix_onnx_operand(const mix_onnx_emitter *e, const mix_ir_node *node, int i) {
  return e->values[node->inputs[i]];
}
static inline mix_type mix_onnx_type(const mix_onnx_emitter *e, const mix_ir_node *node, int output) {
  return e->ir->values[node->first_output + output].type;
}
static inline mix_type mix_onnx_operand_type(const mix_onnx_emitter *e, const mix_ir_node *node, int i) {
  return e->ir->values[node->inputs[i]].type;
}
static inline void mix_onnx_result(mix_onnx_emitter *e, const mix_ir_node *node, int output,
                                   const char *name) {
  e->values[node->first_output + output] = name;
}
/* The dtype as it is written. */
mix_dtype mix_onnx_written(const mix_onnx_emitter *e, mix_dtype dtype);
/* Records why a node has no form, and marks the emitter. Returns NULL. */
void *mix_onnx_refuse(mix_onnx_emitter *e, const mix_ir_node *node, const char *format, ...) MIX_PRINTF(3, 4);

/* ---- versions (export_opset.c) ---- */

typedef struct mix_onnx_need {
  int opset;
  const char *what; /* that needs it */
} mix_onnx_need;
mix_onnx_need mix_onnx_opset_of(const mix_onnx_emitter *e, const mix_ir *ir, const mix_ir_node *node);
/* The oldest opset that has all of a graph; with bfloat16 anywhere the one that has all of it. */
int mix_onnx_default_opset(const mix_onnx_emitter *e, const mix_ir *ir);
/* emit_attention.c: is it the operator Attention, where that is wanted? */
bool mix_onnx_is_attention_operator(const mix_ir *ir, const mix_ir_node *node);

/* ---- folded normalisation (emit_fold.c) ---- */

/* By node: the convolution after which all up to that node, which is its only reader, multiplies and adds
 * numbers by channel that follow from weights; -1: none. In the root's memory; NULL with the error recorded.
 */
int *mix_onnx_find_folds(mix_onnx_emitter *e);
/* Writes the convolution with these numbers in its kernel and bias, as the result of `end`. */
void mix_onnx_emit_folded(mix_onnx_emitter *e, const mix_ir_node *conv, const mix_ir_node *end);

/* ---- sizes (emit_sizes.c) ---- */

/* The size at `place` of the attributes of the node being written, an int64_t. */
mix_onnx_size mix_onnx_attribute(mix_onnx_emitter *e, const mix_ir_node *node, const void *place);
/* An axis of a value. */
mix_onnx_size mix_onnx_axis(mix_onnx_emitter *e, int value, int axis);
static inline mix_onnx_size mix_onnx_known(int64_t size) { return (mix_onnx_size){0, size}; }
/* The sizes as a tensor int64 (count). */
const char *mix_onnx_sizes(mix_onnx_emitter *e, int count, const mix_onnx_size *sizes);
/* One of them as a scalar. */
const char *mix_onnx_size_scalar(mix_onnx_emitter *e, mix_onnx_size size);
/* ---- nodes (emit_nodes.c) ---- */

/* "batch", "2*batch+1" */
const char *mix_onnx_size_text(mix_onnx_emitter *e, mix_onnx_size size);
/* Attributes of the next node. */
void mix_onnx_int(mix_onnx_emitter *e, const char *name, int64_t value);
void mix_onnx_ints(mix_onnx_emitter *e, const char *name, int count, const int64_t *values);
void mix_onnx_float(mix_onnx_emitter *e, const char *name, double value);
void mix_onnx_text(mix_onnx_emitter *e, const char *name, const char *value);
void mix_onnx_texts(mix_onnx_emitter *e, const char *name, int count, const char *const *values);
/* A graph, which is freed. */
void mix_onnx_graph(mix_onnx_emitter *e, const char *name, mix_message *graph);
/* A node of several results, whose new names go to `outputs`. NULL operands are left out. */
void mix_onnx_nodes(mix_onnx_emitter *e, const char *op, int input_count, const char *const *inputs,
                    int output_count, const char **outputs);
/* One of one result: its new name. */
const char *mix_onnx_node(mix_onnx_emitter *e, const char *op, int input_count, const char *const *inputs);
static inline const char *mix_onnx_node1(mix_onnx_emitter *e, const char *op, const char *x) {
  return mix_onnx_node(e, op, 1, &x);
}
static inline const char *mix_onnx_node2(mix_onnx_emitter *e, const char *op, const char *a, const char *b) {
  return mix_onnx_node(e, op, 2, (const char *[]){a, b});
}
static inline const char *mix_onnx_node3(mix_onnx_emitter *e, const char *op, const char *a, const char *b,
                                         const char *c) {
  return mix_onnx_node(e, op, 3, (const char *[]){a, b, c});
}
/* A name that nothing else has: of the layer of the node being written, with `what` behind. */
const char *mix_onnx_new_name(mix_onnx_emitter *e, const char *what);
/* A node with given names of operands and results. */
void mix_onnx_put_node(mix_onnx_emitter *e, mix_message *graph, const char *op, int input_count,
                       const char *const *inputs, int output_count, const char *const *outputs);
/* A value's declaration: with its sizes, or with its rank alone unknown. */
void mix_onnx_put_value(mix_onnx_emitter *e, mix_message *graph, int field, const char *name, mix_dtype dtype,
                        int rank, const mix_onnx_size *sizes);

/* Constants, as tensors of the file; equal ones are one. */
const char *mix_onnx_constant(mix_onnx_emitter *e, mix_dtype dtype, mix_shape shape, const void *data);
/* A scalar of the dtype as written. */
const char *mix_onnx_scalar(mix_onnx_emitter *e, mix_dtype dtype, double value);
const char *mix_onnx_int64s(mix_onnx_emitter *e, int count, const int64_t *values);
/* A tensor of the file without a name yet (it gets `name`, or one like it). */
const char *mix_onnx_add_tensor(mix_onnx_emitter *e, const char *name, mix_onnx_initializer tensor);

/* ---- shared forms (emit_shared.c) ---- */

/* Dtypes of ours, mapped to those written; nothing where they are equal. */
const char *mix_onnx_cast(mix_onnx_emitter *e, const char *x, mix_dtype from, mix_dtype to);
const char *mix_onnx_transpose(mix_onnx_emitter *e, const char *x, int rank, const int *permutation);
const char *mix_onnx_reshape(mix_onnx_emitter *e, const char *x, int rank, const mix_onnx_size *sizes);
/* Reductions over axes of x. */
const char *mix_onnx_reduce(mix_onnx_emitter *e, const char *op, const char *x, int count, const int *axes,
                            bool keep_dims);

/* The forms, by family. */
mix_onnx_form mix_onnx_elementwise;
mix_onnx_form mix_onnx_emit_reshape, mix_onnx_emit_broadcast, mix_onnx_emit_transpose, mix_onnx_emit_concat,
    mix_onnx_emit_slice, mix_onnx_emit_pad, mix_onnx_emit_gather, mix_onnx_emit_one_hot, mix_onnx_emit_fill,
    mix_onnx_emit_range, mix_onnx_emit_argsort, mix_onnx_emit_segment_sum;
mix_onnx_form mix_onnx_emit_sum, mix_onnx_emit_mean, mix_onnx_emit_prod, mix_onnx_emit_max, mix_onnx_emit_min,
    mix_onnx_emit_argmax, mix_onnx_emit_argmin, mix_onnx_emit_softmax, mix_onnx_emit_log_softmax,
    mix_onnx_emit_add_n;
mix_onnx_form mix_onnx_emit_matmul, mix_onnx_emit_einsum, mix_onnx_emit_attention, mix_onnx_emit_fourier;
mix_onnx_form mix_onnx_emit_unpack, mix_onnx_emit_dequantize, mix_onnx_emit_matmul_stored;
mix_onnx_form mix_onnx_emit_conv, mix_onnx_emit_conv_transpose, mix_onnx_emit_max_pool,
    mix_onnx_emit_avg_pool, mix_onnx_emit_resize;
/* The convolution of a node with another kernel and a bias, which may be NULL. */
const char *mix_onnx_conv(mix_onnx_emitter *e, const mix_ir_node *node, const char *kernel, const char *bias);
mix_onnx_form mix_onnx_emit_scan;
/* A loop as LSTM, GRU or RNN. False, and nothing is written: it is another. */
bool mix_onnx_emit_recurrent(mix_onnx_emitter *e, const mix_ir_node *node);
/* The values that such a node reads, weights aside; 0: the loop is another. */
enum { MIX_ONNX_RECURRENT_NEEDS = 3 };
int mix_onnx_recurrent_needs(mix_onnx_emitter *e, const mix_ir_node *node,
                             int needs[MIX_ONNX_RECURRENT_NEEDS]);
