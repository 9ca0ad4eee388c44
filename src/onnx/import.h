/* A model of ONNX as a functional model of Keras's layers and operations, node by node. */
#pragma once

#include "base/json.h"
#include "nn/layer/layer.h"
#include "nn/layers/operations/operation.h"
#include "onnx/file.h"
#include "onnx/load.h"
#include <mixtape/model.h>

/* A number of a vector of sizes that is known in part: `value`, or where `open` that many times the size of
 * an axis of `source` (NULL: any size), which only a call knows. */
typedef struct mix_import_size {
  int64_t value;
  bool open;
  mix_tensor *source;
  int axis;
} mix_import_size;

typedef struct mix_import_node mix_import_node;
typedef struct mix_import_nodes {
  mix_import_node **items;
  int count, room;
} mix_import_nodes;

/* A graph of a node. Its own names are no other graph's; initialisers are those of the model. */
typedef struct mix_import_body {
  mix_import_nodes nodes;
  const char **inputs, **outputs;
  int input_count, output_count;
} mix_import_body;

/* What the names of a body stand for in one step of a loop; names of no such map stand for themselves. */
typedef struct mix_import_step {
  const struct mix_import_step *outer;
  json_t *names;
} mix_import_step;

/* A node to convert, with functions of the model replaced by theirs. */
struct mix_import_node {
  mix_onnx_node node;
  mix_import_body *body, *other; /* NULL: none; `other` is the else of an If */
  const mix_import_step *step;   /* in which it is; NULL: of the graph itself */
  bool done;                     /* it was converted with one before it */
};

/* What a name of the graph stands for: one of these. */
typedef struct mix_import_value {
  mix_tensor *tensor;            /* symbolic, or a constant */
  const mix_onnx_tensor *stored; /* an initialiser that is not read yet */
  mix_import_size *sizes;        /* integers that are known in part: a vector, or a scalar */
  int size_count;
  bool size_scalar;
  mix_tensor *fill;    /* a constant scalar, repeated over a shape of `sizes` */
  mix_tensor *squared; /* what it is the square root of; NULL: not of Sqrt */
  /* A constant out of an initialiser of floats, which is to be a weight, under the name of that. */
  const char *weight;
  bool bound;              /* it has a value */
  bool uniform;            /* several nodes read it, and all its elements are equal: see import.c */
  bool shared;             /* an initialiser that nodes of several kinds read: one weight for all */
  bool inner;              /* a graph in a node reads it */
  mix_tensor *parameter;   /* that weight as a symbolic tensor; NULL: not made yet */
  int uses;                /* by nodes and outputs */
  mix_import_node *reader; /* the node that reads it last; NULL: none */
} mix_import_value;

typedef struct mix_import {
  const mix_onnx_file *file;
  const mix_semantics *semantics;
  mix_import_nodes nodes;
  const mix_onnx_tensor **initializers; /* those of graphs in nodes too */
  mix_import_value **values, *pool;     /* the pool has `pooled` values that no name has yet */
  int initializer_count, initializer_room, value_count, value_room, pooled;
  int names_made, copied; /* for names of bodies; what copies of nodes have taken of the bound */
  json_t *maps;           /* all maps of names, which it owns */
  json_t *names, *taken;  /* name -> index of a value; names of layers -> how many begin so */
  json_t *layers;         /* what nodes of one weight share: key -> index in layer_list */
  mix_list *layer_list, *inputs;
  const mix_onnx_node *node;                                                   /* that is being converted */
  bool (*convert_nodes)(struct mix_import *in, const mix_import_nodes *nodes); /* in their order */
  mix_tensor *zero;       /* symbolic int32 (1): the row of weights that no layer has; NULL: not made yet */
  int64_t folded, budget; /* elements of constants that nodes made, and how many they may be */
} mix_import;

/* Converts the node, and binds its outputs. False with the error recorded. */
typedef bool mix_import_convert(mix_import *in);
typedef struct mix_import_operator {
  const char *name;
  mix_import_convert *convert;
  const char *operation; /* the operation of Keras, where that is all */
} mix_import_operator;

/* NULL: it is not supported. */
const mix_import_operator *mix_import_operator_named(const char *name);
/* The table, ended by a row without a name, by name. */
extern const mix_import_operator mix_import_operators[];

/* As mix_onnx_load (onnx/load.h). */
mix_model *mix_import_file(const mix_onnx_file *file, const mix_semantics *semantics);

/* ---- import_inline.c and import_uses.c: nodes and their names ---- */

/* Makes `nodes` and `initializers` of the file's graph. */
bool mix_import_inline(mix_import *in);
bool mix_import_append(mix_import_nodes *nodes, mix_import_node *node);
/* A name that no other value has, made of that one, in the scope. */
const char *mix_import_new_name(mix_import *in, const char *name);
/* A map of names that lives as long as the import. NULL with the error recorded. */
json_t *mix_import_new_map(mix_import *in);
/* Counts a copy of a node and its names. False with the error recorded: there are too many. */
bool mix_import_spend(mix_import *in, const mix_onnx_node *node);
/* The same for names that no node's copy counts. */
bool mix_import_spend_names(mix_import *in, int64_t count);
/* Could so many copies of the nodes be counted? False with the error recorded. */
bool mix_import_can_spend(mix_import *in, int64_t times, int count, mix_import_node *const *nodes);
/* Counts who reads what, of the whole graph. */
bool mix_import_count_uses(mix_import *in);
/* Notes that a node reads a value there. */
void mix_import_note_use(mix_import_value *value, mix_import_node *node, int place);
/* The value of a name that the step makes or is given; of the graph, without a step. NULL: none. */
mix_import_value *mix_import_own_value(const mix_import *in, const mix_import_step *step, const char *name);
/* Notes what graphs in the node read of such values. */
void mix_import_count_bodies(mix_import *in, const mix_import_step *step, mix_import_node *node);

/* ---- import_names.c and import_values.c: inputs and outputs of the node ---- */

/* Records an error of the node. Returns NULL. */
void *mix_import_fail(const mix_import *in, mix_status status, const char *format, ...) MIX_PRINTF(3, 4);
/* A new value of that name. NULL with the error recorded: there is one. */
mix_import_value *mix_import_add_name(mix_import *in, const char *name);
/* The value of an input; NULL: the node has none there. */
mix_import_value *mix_import_input(const mix_import *in, int index);
/* The value of a name; NULL: there is none. */
mix_import_value *mix_import_value_named(const mix_import *in, const char *name);
/* Is it known before any call? */
bool mix_import_is_constant(const mix_import_value *value);
/* The constant, of stored ones too. NULL with the error recorded: it is none. */
mix_tensor *mix_import_constant(mix_import *in, mix_import_value *value);
/* The tensor, symbolic or constant, with what is known in part made of the sizes of others. */
mix_tensor *mix_import_tensor_of(mix_import *in, mix_import_value *value);
/* That of an input as an operation reads it: a weight of its own where it is to be one, and another input is
 * symbolic. NULL with the error recorded, also where the node lacks the input. */
mix_tensor *mix_import_operand(mix_import *in, int index);
bool mix_import_has_symbolic(mix_import *in);
/* Integers of an input that is constant. -1 with the error recorded: it is not, or has more than `most`. */
int mix_import_integers(mix_import *in, int index, int most, int64_t *numbers);
/* The same from the attribute of that name, in older operator sets, or from the input. 0: neither. */
int mix_import_integers_of(mix_import *in, const char *name, int index, int most, int64_t *numbers);
/* The same of integers that may be known in part. */
int mix_import_sizes(mix_import *in, mix_import_value *value, int most, mix_import_size *sizes);
/* One number of a constant input. NaN: absent, or an error. */
double mix_import_scalar(mix_import *in, int index);
/* Binds an output, unless the graph does not name it. False with the error recorded, also for NULL. */
bool mix_import_bind(mix_import *in, int index, mix_tensor *tensor);
bool mix_import_bind_value(mix_import *in, int index, mix_import_value value);
/* Is the output read by anybody? */
bool mix_import_is_used(const mix_import *in, int index);
/* The axis of an attribute, counted from the front. -1 with the error recorded. */
int mix_import_axis(const mix_import *in, int64_t axis, int rank);

/* ---- import_calls.c: layers and operations ---- */

/* A name for a layer that no other has, made of `text` or, where that is empty, of the node. In the scope. */
const char *mix_import_layer_name(mix_import *in, const char *text);
/* The results of an operation of Keras on tensors, its first operands, which come in a list where it takes
 * one, and `further` operands, a list. `config` and `further`, which may be NULL, become the call's. Of
 * constants the results are constants, else symbolic. NULL with the error recorded. */
mix_list *mix_import_run(mix_import *in, const char *class_name, int count, mix_tensor *const *tensors,
                         json_t *config, json_t *further);
mix_tensor *mix_import_run_one(mix_import *in, const char *class_name, int count, mix_tensor *const *tensors,
                               json_t *config);
/* Of one operand, or of two. */
mix_tensor *mix_import_apply(mix_import *in, const char *class_name, mix_tensor *x, json_t *config);
mix_tensor *mix_import_apply_two(mix_import *in, const char *class_name, mix_tensor *a, mix_tensor *b);
/* A constant with the value of every element of the shape. */
mix_tensor *mix_import_number_like(const mix_tensor *like, double value);
/* A layer of a class with `config`, which becomes the call's, called on x with initial states or NULL. Its
 * weights, in the order of the layer, get the values; names come from `weight`, the first of them. Nodes with
 * an equal key share the layer; NULL: it is not shared. NULL with the error recorded. */
mix_list *mix_import_call_layer(mix_import *in, const char *class_name, json_t *config, mix_tensor *x,
                                mix_list *states, const char *weight, const char *key, int count,
                                mix_tensor *const *weights);
/* A symbolic tensor that is a weight of the model, with that value; `trains` says whether it is trained. */
mix_tensor *mix_import_parameter(mix_import *in, mix_tensor *value, const char *name, bool trains);
/* A constant as a symbolic tensor, computed from the first input, so that what reads it is none. */
mix_tensor *mix_import_symbolic(mix_import *in, mix_tensor *constant);
/* Does it hold numbers that no weight has, as masks do? */
bool mix_import_is_mask(mix_import *in, mix_tensor *x);
/* A copy of a constant in another order of axes, or another shape, evaluated. */
mix_tensor *mix_import_transposed(mix_import *in, mix_tensor *x, mix_axes axes);
mix_tensor *mix_import_evaluated(mix_import *in, mix_tensor *x);
/* Is an input a constant of floats that a layer may take as a weight? */
bool mix_import_is_weight(const mix_import *in, int index);
/* Key of a layer that nodes share that read this weight with equal attributes. In the scope; NULL: it is read
 * once. */
const char *mix_import_share_key(const mix_import *in, int index);
/* A list of integers, a new reference. NULL with the error recorded. */
static inline json_t *mix_import_list(int count, const int64_t *numbers) {
  json_t *list = json_array();
  for (int i = 0; i < count; i++) mix_json_append(list, json_integer(numbers[i]));
  return mix_json_whole(list);
}
/* json_pack, whose failure must not go unseen: no options are others. */
#define MIX_PACK(...) mix_json_whole(json_pack(__VA_ARGS__))

/* ---- import_sizes.c ---- */

/* Converts a node on integers that are known in part. False: it is none of those, or an error is recorded. */
bool mix_import_convert_sizes(mix_import *in);
/* import_open.c. A symbolic vector of ones, with as many elements as an open size says. */
mix_tensor *mix_import_ones(mix_import *in, const mix_import_size *size, mix_dtype dtype);
/* x over a shape of sizes, as Expand does. */
mix_tensor *mix_import_expanded(mix_import *in, mix_tensor *x, int count, const mix_import_size *sizes);

/* ---- the families of operators ---- */
/* clang-format off */
#define MIX_IMPORT_CONVERTERS(X)                                                                             \
  X(cast)                                                                                                    \
  X(cast_like)                                                                                               \
  X(clip)                                                                                                    \
  X(divide)                                                                                                  \
  X(power)                                                                                                   \
  X(square_root)                                                                                             \
  X(reciprocal)                                                                                              \
  X(extreme) X(modulo) X(prelu) X(leaky) X(elu) X(selu) X(hard_sigmoid) X(gelu) X(softmax)                   \
      X(identity) X(dropout) X(reduce) X(arg) X(running_sum) X(einsum) X(constant_op) X(trilu) X(reshape)    \
          X(flatten) X(squeeze) X(unsqueeze) X(transpose) X(concat) X(split) X(slice) X(gather)              \
              X(gather_elements) X(expand) X(tile) X(pad) X(shape_of) X(size_of) X(filled) X(range)          \
                  X(blocks) X(where) X(celu) X(threshold) X(shrink) X(resize) X(one_hot) X(matmul) X(gemm)   \
                      X(conv) X(conv_transpose) X(pool) X(global_pool) X(batch_normalization)                \
                          X(layer_normalization) X(instance_normalization) X(recurrent) X(is_inf)            \
                              X(attention) X(loop) X(scan) X(branch)
/* clang-format on */
#define MIX_IMPORT_DECLARE(name) bool mix_import_##name(mix_import *in);
MIX_IMPORT_CONVERTERS(MIX_IMPORT_DECLARE)
#undef MIX_IMPORT_DECLARE
