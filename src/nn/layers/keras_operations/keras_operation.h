/* Operations of Keras 3 as layers of a functional model: `x + residual`, keras.ops.mean(x). Tables of rows
 * describe them; a file holds a group. */
#ifndef MIX_NN_LAYERS_KERAS_OPERATIONS_KERAS_OPERATION_H
#define MIX_NN_LAYERS_KERAS_OPERATIONS_KERAS_OPERATION_H

#include "nn/layers/builtin.h"
#include "nn/layers/operands.h"

typedef struct mix_keras_operation mix_keras_operation;

/* A call of an operation. Its values stand in the call or in the config; mix_operand_... find both by name.
 */
typedef struct mix_operands {
  const mix_layer *layer;
  const mix_keras_operation *operation;
  const json_t *config; /* its own options */
  const json_t *form;   /* {"args", "kwargs"}, whose tensors are those of mix_operand_form */
  mix_list *tensors;
  bool symbolic;
} mix_operands;

/* The dtype in which an element-wise operation computes. */
typedef enum mix_operand_dtype {
  MIX_OPERANDS_PROMOTED, /* that of Keras's result_type */
  MIX_OPERANDS_FLOATING, /* the same with float */
  MIX_OPERANDS_TYPED,    /* the same; a number has its own dtype, int32 or the default, and bool is int32 */
  MIX_OPERANDS_BOOLEAN
} mix_operand_dtype;

struct mix_keras_operation {
  mix_layer_kind kind;  /* first: layers point to it */
  const char *operands; /* of the call, in order: "x1|x2" */
  const char *options;  /* of the config: "axis|keepdims" */
  bool takes_list;      /* the first operand is a list of tensors */
  bool takes_several;   /* the operands are any number of tensors: "operands" */
  mix_operand_dtype dtype;
  mix_list *(*call)(const mix_operands *o);
  /* in place of `call` */
  mix_tensor *(*unary)(mix_tensor *x);
  mix_tensor *(*binary)(mix_tensor *a, mix_tensor *b);
  mix_tensor *(*reduce)(mix_tensor *x, mix_axes axes, bool keep_dims);
  const char *activation; /* of Keras 3 */
};

typedef struct mix_keras_operation_options {
  size_t size;
  MIX_LAYER_OPTIONS
  json_t *config; /* owned; NULL: of no options */
} mix_keras_operation_options;

mix_layer *mix_keras_operation_from_config(const mix_layer_kind *kind, const json_t *config, void *options);
mix_list *mix_keras_operation_call(mix_layer *layer, const mix_call_args *args);
mix_status mix_keras_operation_config(mix_layer *layer, mix_config *config);
void mix_keras_operation_finalize(mix_layer *layer);

/* A row: names of class, module below keras.src.ops, operands and options. */
#define MIX_KERAS_OPERATION(class_name, module_name, operand_names, option_names, ...)                       \
  {                                                                                                          \
    .kind = {.call = class_name,                                                                             \
             .options_size = sizeof(mix_keras_operation_options),                                            \
             .module = "keras.src.ops." module_name,                                                         \
             .built_from_start = true,                                                                       \
             .named_only = true,                                                                             \
             .keras3_only = true,                                                                            \
             .from_config = mix_keras_operation_from_config,                                                 \
             MIX_LAYER_CLASS(.name = class_name, .call = mix_keras_operation_call,                           \
                             .get_config = mix_keras_operation_config,                                       \
                             .finalize = mix_keras_operation_finalize, .no_autocast = true)},                \
    .operands = operand_names, .options = option_names, __VA_ARGS__                                          \
  }

/* The tables, each ended by a row without a class. */
extern const mix_keras_operation mix_keras_elementwise_operations[], mix_keras_reduction_operations[],
    mix_keras_shape_operations[], mix_keras_index_operations[], mix_keras_product_operations[],
    mix_keras_nn_operations[];

/* The operation of that class; NULL: there is none. */
const mix_keras_operation *mix_keras_operation_named(const char *class_name);
/* That of a layer; NULL: it is none. */
const mix_keras_operation *mix_keras_operation_of(const mix_layer *layer);

/* The form of a call that has tensors alone, in order, as one from C. A new reference. */
json_t *mix_keras_operation_form(const mix_keras_operation *operation, int count);

/* ---- values of a call ---- */

/* The JSON of a value; NULL: absent or null. */
const json_t *mix_operand_json(const mix_operands *o, const char *name);
/* Records that the value is another than `expected`. Returns NULL. */
void *mix_operand_refused(const mix_operands *o, const char *name, const json_t *value, const char *expected);
/* Each may be absent, and has a default then. False or NULL: the error is recorded. */
bool mix_operand_integer(const mix_operands *o, const char *name, int64_t absent, int64_t low, int64_t high,
                         int64_t *value);
bool mix_operand_number(const mix_operands *o, const char *name, double absent, double *value);
bool mix_operand_flag(const mix_operands *o, const char *name, bool absent, bool *value);
const char *mix_operand_text(const mix_operands *o, const char *name, const char *absent);
bool mix_operand_dtype_named(const mix_operands *o, const char *name, mix_dtype absent, mix_dtype *value);
/* An integer, or a list of them, of which `most` are stored. */
bool mix_operand_integers(const mix_operands *o, const char *name, int most, int64_t *values, int *count);
/* The same as axes of a tensor of that rank, counted from 0, each once. None is given: count 0. */
bool mix_operand_axes(const mix_operands *o, const char *name, int rank, mix_axes *axes);
/* One axis, counted from 0; -1 with the error recorded. */
int mix_operand_axis(const mix_operands *o, const char *name, int rank, int absent);

/* A tensor, or a number or an array as one of its own dtype. */
mix_tensor *mix_operand(const mix_operands *o, const char *name);
/* The same for several in one dtype, by Keras's promotion. */
bool mix_operands_promoted(const mix_operands *o, int count, const char *const *names, mix_operand_dtype rule,
                           mix_tensor **tensors);
/* The same for x1 and x2. */
bool mix_operand_pair(const mix_operands *o, mix_operand_dtype rule, mix_tensor **pair);
/* The tensors of a list, or of a call with any number of them, in one dtype. */
mix_list *mix_operand_list(const mix_operands *o, const char *name);
/* Casts what is not floating-point to the default dtype. */
mix_tensor *mix_operand_floating(mix_tensor *x);

#endif
