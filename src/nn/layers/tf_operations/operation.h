/* TensorFlow's functions as layers of functional models of tf_keras, TFOpLambda and SlicingOpLambda: the
 * table of the functions, and the arguments of a call of one. */
#ifndef MIX_NN_LAYERS_TF_OPERATIONS_OPERATION_H
#define MIX_NN_LAYERS_TF_OPERATIONS_OPERATION_H

#include "nn/layers/builtin.h"
#include "nn/layers/operands.h"

/* The form of a call (mix_call_keywords): {"args": first argument, "kwargs": {name: value}}. Values are those
 * of the text, but for tensors (mix_operand_form); in the first argument a value is
 * {MIX_OPERAND_VALUE: value}. */

typedef struct mix_tf_operation mix_tf_operation;

/* A call of a function with its arguments in the order of its parameters. */
typedef struct mix_tf_operation_call {
  const mix_tf_operation *operation;
  const mix_layer *layer;
  mix_list *tensors;
  json_t *values; /* one for each parameter, null where it is neither given nor has a default */
  const char *names[16];
  int count;
  unsigned given; /* bit i: parameter i is given, or has a default */
} mix_tf_operation_call;

/* What a row does with its function; NULL with the error recorded. */
typedef mix_list *mix_tf_operation_build(const mix_tf_operation_call *call);

struct mix_tf_operation {
  const char *function;   /* "math.add", without "tf." */
  const char *parameters; /* in TensorFlow's order, each with its default if it has one: "x axis=null name" */
  mix_tf_operation_build *build;
  mix_tensor *(*unary)(mix_tensor *x);
  mix_tensor *(*binary)(mix_tensor *a, mix_tensor *b);
  mix_tensor *(*reduce)(mix_tensor *x, mix_axes axes, bool keep_dims);
};

/* table.c: NULL without an error: the library lacks it. */
const mix_tf_operation *mix_tf_operation_named(const char *function);

/* ---- arguments.c: what a call was given; each has the error recorded where it gives nothing ---- */

/* Reads the form of a call. False with the error recorded; mix_tf_operation_release in any case. */
bool mix_tf_operation_read(mix_tf_operation_call *call, const json_t *form);
void mix_tf_operation_release(mix_tf_operation_call *call);
/* Records "tf.math.add in layer 'a': y is a string; expected a number". Returns NULL. */
void *mix_tf_operation_mistyped(const mix_tf_operation_call *call, const char *name, const char *expected);
/* The same of a value that is not supported. Returns NULL. */
void *mix_tf_operation_refused(const mix_tf_operation_call *call, const char *name, const char *expected);
/* The value in the text; NULL where it is not given or null, and without an error. */
const json_t *mix_tf_operation_value(const mix_tf_operation_call *call, const char *name);
/* A tensor, or a constant, which takes the dtype of `like`; like NULL: float32, or int32 if it is integer. */
mix_tensor *mix_tf_operation_tensor(const mix_tf_operation_call *call, const char *name,
                                    const mix_tensor *like);
/* Two operands, of which a constant takes the dtype of the other. */
bool mix_tf_operation_pair(const mix_tf_operation_call *call, const char *first, const char *second,
                           mix_tensor **a, mix_tensor **b);
/* A list of tensors and constants. */
mix_list *mix_tf_operation_tensors(const mix_tf_operation_call *call, const char *name);
/* Integers of a list, or of one number: at most MIX_MAX_RANK, between -10^9 and 10^9. */
bool mix_tf_operation_integers(const mix_tf_operation_call *call, const char *name, mix_shape *list);
/* An empty list where nothing is given. */
bool mix_tf_operation_axes(const mix_tf_operation_call *call, const char *name, mix_axes *axes);
/* An axis of a tensor of that rank, counted from 0. */
bool mix_tf_operation_axis(const mix_tf_operation_call *call, const char *name, int rank, int *axis);
bool mix_tf_operation_number(const mix_tf_operation_call *call, const char *name, double *number);
bool mix_tf_operation_flag(const mix_tf_operation_call *call, const char *name, bool *flag);
/* The dtype of that name; `absent` where it is not given. */
bool mix_tf_operation_dtype(const mix_tf_operation_call *call, const char *name, mix_dtype absent,
                            mix_dtype *dtype);

/* ---- the rows ---- */
mix_tf_operation_build mix_tf_operation_unary, mix_tf_operation_binary, mix_tf_operation_reduce,
    mix_tf_operation_truediv, mix_tf_operation_moments, mix_tf_operation_norm,
    mix_tf_operation_clip, mix_tf_operation_where, mix_tf_operation_matmul, mix_tf_operation_add_n,
    mix_tf_operation_bias_add, mix_tf_operation_logsumexp, mix_tf_operation_variance, mix_tf_operation_std,
    mix_tf_operation_l2_normalize, mix_tf_operation_argmax, mix_tf_operation_argmin, mix_tf_operation_softmax,
    mix_tf_operation_log_softmax, mix_tf_operation_sigmoid, mix_tf_operation_gelu, mix_tf_operation_silu,
    mix_tf_operation_leaky_relu, mix_tf_operation_reshape, mix_tf_operation_transpose,
    mix_tf_operation_expand_dims, mix_tf_operation_squeeze, mix_tf_operation_concat, mix_tf_operation_stack,
    mix_tf_operation_split, mix_tf_operation_unstack, mix_tf_operation_tile, mix_tf_operation_repeat,
    mix_tf_operation_gather, mix_tf_operation_one_hot, mix_tf_operation_pad, mix_tf_operation_reverse,
    mix_tf_operation_broadcast_to, mix_tf_operation_cast, mix_tf_operation_zeros_like,
    mix_tf_operation_ones_like, mix_tf_operation_getitem;

#endif
