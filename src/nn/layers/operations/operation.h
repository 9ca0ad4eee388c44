/* Operations as layers of functional models: keras.ops of Keras 3, such as `x + residual`, and TensorFlow's
 * functions in models of tf_keras (TFOpLambda). Tables of rows describe them; a file holds a family. */
#pragma once

#include "nn/layers/builtin.h"
#include "nn/layers/operands.h"

typedef struct mix_operands mix_operands;

/* The dtype in which operands meet. */
typedef enum mix_operand_rule {
  MIX_OPERANDS_PROMOTED, /* that of Keras's result_type */
  MIX_OPERANDS_FLOATING, /* the same with float; a single operand that is not floating-point is cast too */
  MIX_OPERANDS_TYPED,    /* the same; a number has its own dtype, int32 or the default, and bool is int32 */
  MIX_OPERANDS_BOOLEAN,
  MIX_OPERANDS_ALIKE /* of TensorFlow: constants take the dtype of the tensor beside them; nothing is cast */
} mix_operand_rule;

/* Parameters are named in texts such as "x axis=-1 !shift": the default stands behind "="; with "!" no other
 * value is supported, without a default none; with "?" null is not the default but a value of its own. */
typedef struct mix_operation {
  const char *name;     /* Add; of TensorFlow math.add */
  const char *operands; /* of the call, in order; of TensorFlow the first argument */
  const char *options;  /* of the config; of TensorFlow all other arguments */
  bool takes_list;      /* the first operand is a list of tensors */
  bool bare;            /* `build` reads the first operand by itself, and has NULL for x */
  bool any_names;       /* named operands of any name, beside those of `operands` */
  bool draws;           /* it has a generator where its option `seed` is null */
  bool takes_several;   /* the operands are any number of tensors, which `join` takes too */
  mix_operand_rule rule;
  /* One of these. x is the first operand, in the rule's dtype where that is one for single operands. */
  mix_tensor *(*unary)(mix_tensor *x);
  mix_tensor *(*binary)(mix_tensor *a, mix_tensor *b);
  mix_tensor *(*reduce)(mix_tensor *x, mix_axes axes, bool keep_dims);
  mix_tensor *(*build)(const mix_operands *o, mix_tensor *x);
  mix_tensor *(*join)(const mix_operands *o, mix_list *list);
  mix_list *(*results)(const mix_operands *o, mix_tensor *x);
  const char *refusal;    /* why a file's call is an error; NULL: it is none */
  const char *activation; /* of Keras 3; without `build`, applied to x */
  bool is_spread;         /* `reduce` along no axes gives 0 */
  bool elementwise;
} mix_operation;

/* A call of an operation. Functions that both kinds of rows share read by the names that are the same in
 * Keras and TensorFlow, and by `first` and `second`. */
enum { MIX_PARAMETER_BYTES = 32 };
struct mix_operands {
  const mix_layer *layer;
  const mix_operation *operation;
  mix_list *tensors;
  bool symbolic;
  json_t *values;                   /* by parameter; tensors are those of mix_operand_form */
  char first[MIX_PARAMETER_BYTES];  /* the first operand */
  char second[MIX_PARAMETER_BYTES]; /* the first option, or else the second operand */
};

/* ---- arguments.c: binding ---- */

/* The place of a name among parameters; -1: it is not there. */
int mix_parameter_place(const char *parameters, const char *name);
/* Binds `args` and `named` to operands and `options` to options; of TensorFlow `named` to options. False with
 * the error recorded; the values are the caller's in any case. */
bool mix_operands_bind(mix_operands *o, const json_t *args, const json_t *named, const json_t *options);
/* run.c: results of an operation whose operands are bound. NULL: the error is recorded. */
mix_list *mix_operation_run(const mix_operands *o);

static inline bool mix_operands_of_tf(const mix_operands *o) {
  return o->operation->rule == MIX_OPERANDS_ALIKE;
}

/* ---- arguments.c: values. Those that are absent or wrong are recorded errors where nothing else is said;
 * what is returned then is 0, NULL or empty, and axes are -1 ---- */

/* Records an error of the call. Returns NULL. */
void *mix_operation_fail(const mix_operands *o, mix_status status, const char *format, ...) MIX_PRINTF(3, 4);
/* Records that the value is another than `expected`, or than what is supported. Returns NULL. */
void *mix_operand_refused(const mix_operands *o, mix_status status, const char *name, const char *expected);
/* The JSON of a value; NULL, without an error: absent or null. */
const json_t *mix_operand_json(const mix_operands *o, const char *name);
/* No integer of a call is larger. */
static inline int64_t mix_operand_limit(const mix_operands *o) {
  return mix_operands_of_tf(o) ? 1000000000 : INT64_MAX;
}
int64_t mix_operand_integer(const mix_operands *o, const char *name);
double mix_operand_number(const mix_operands *o, const char *name);
/* Absent: false. */
bool mix_operand_flag(const mix_operands *o, const char *name);
const char *mix_operand_text(const mix_operands *o, const char *name);
mix_dtype mix_operand_dtype(const mix_operands *o, const char *name, mix_dtype absent);
/* The count of the integers of a list, or of one; of which `most` are stored. Absent: 0. */
int mix_operand_integers(const mix_operands *o, const char *name, int most, int64_t *values);
mix_shape mix_operand_shape(const mix_operands *o, const char *name);
/* The axis counted from 0. */
int mix_operand_axis(const mix_operands *o, const char *name, int rank);
/* Several, each once. Absent: count 0. */
mix_axes mix_operand_axes(const mix_operands *o, const char *name, int rank);

/* ---- tensors.c ---- */

/* A tensor, or a number or an array as one of its own dtype. */
mix_tensor *mix_operand(const mix_operands *o, const char *name);
/* The same in the dtype of `like` if it is no tensor. */
mix_tensor *mix_operand_like(const mix_operands *o, const char *name, const mix_tensor *like);
/* Several in one dtype, by the operation's rule. */
bool mix_operands_promoted(const mix_operands *o, int count, const char *const *names, mix_tensor **tensors);
/* The same for the first and the second. */
bool mix_operand_pair(const mix_operands *o, mix_tensor **pair);
/* The dtype of Keras's result_type: a lattice in which float16 and bfloat16 meet in float32. */
mix_dtype mix_promoted_dtype(mix_dtype a, mix_dtype b);
/* A list of tensors, in one dtype by the operation's rule; and that of the first operand. */
mix_list *mix_operand_listed(const mix_operands *o, const char *name);
mix_list *mix_operand_list(const mix_operands *o);
/* Casts what is not floating-point to the default dtype. */
mix_tensor *mix_operand_floating(mix_tensor *x);
static inline int mix_operand_rank(const mix_tensor *x) { return mix_tensor_shape(x).rank; }
static inline int64_t mix_operand_size(const mix_tensor *x, int axis) {
  return mix_tensor_shape(x).dims[axis];
}
static inline mix_tensor *mix_flattened(mix_tensor *x) { return mix_reshape(x, MIX_SHAPE(MIX_UNKNOWN)); }

/* shapes.c: x reversed along an axis. */
mix_tensor *mix_flipped(mix_tensor *x, int axis);
/* x with an axis, counted from the front, at another place. */
mix_tensor *mix_axis_moved(mix_tensor *x, int from, int to);

/* neural.c: patches of images with a known width, from the top left corner on. */
typedef struct mix_patches {
  int64_t rows, columns, height, width; /* how many, and their size */
  int64_t image_width, stride[2], dilation[2];
} mix_patches;
/* The place of each element among the pixels of an image, int64 (rows, columns, height, width). */
mix_tensor *mix_patch_places(const mix_patches *patches);
/* (batch, image height, image width, channels) -> (batch, rows, columns, height, width, channels). */
mix_tensor *mix_image_patches(mix_tensor *x, const mix_patches *patches);

/* ---- the tables, each ended by a row without a name ---- */

typedef struct mix_keras_operation {
  mix_layer_kind kind; /* first: layers point to it */
  mix_operation operation;
} mix_keras_operation;

typedef struct mix_keras_operation_options {
  size_t size;
  MIX_LAYER_OPTIONS
  json_t *config; /* owned; NULL: of no options */
} mix_keras_operation_options;

mix_layer *mix_keras_operation_from_config(const mix_layer_kind *kind, const json_t *config, void *options);
mix_list *mix_keras_operation_call(mix_layer *layer, const mix_call_args *args);
mix_status mix_keras_operation_config(mix_layer *layer, mix_config *config);
void mix_keras_operation_finalize(mix_layer *layer);

/* A row of Keras: names of class, module below keras.src.ops, operands and options. */
#define MIX_KERAS_OPERATION(class_name, module_name, operand_names, option_names, ...)                       \
  {                                                                                                          \
    .kind = {.call = class_name,                                                                             \
             .options_size = sizeof(mix_keras_operation_options),                                            \
             .module = "keras.src.ops." module_name,                                                         \
             .built_from_start = true,                                                                       \
             .named_only = true,                                                                             \
             .keras3_only = true,                                                                            \
             .from_config = mix_keras_operation_from_config,                                                 \
             .decodes = mix_operation_decodes,                                                               \
             MIX_LAYER_CLASS(.name = class_name, .call = mix_keras_operation_call,                           \
                             .get_config = mix_keras_operation_config,                                       \
                             .finalize = mix_keras_operation_finalize, .no_autocast = true)},                \
    .operation = {                                                                                           \
      .name = class_name,                                                                                    \
      .operands = operand_names,                                                                             \
      .options = option_names,                                                                               \
      __VA_ARGS__                                                                                            \
    }                                                                                                        \
  }
/* A row of TensorFlow: the function without "tf.", its first parameter and the others; each has `name`. */
#define MIX_TF_OPERATION(function, operand, option_names, ...)                                               \
  { .name = function, .operands = operand, .options = option_names, .rule = MIX_OPERANDS_ALIKE, __VA_ARGS__ }

/* X(family): one of the tables mix_keras_FAMILY_operations, and mix_tf_FAMILY_operations. */
#define MIX_KERAS_FAMILIES(X)                                                                                \
  X(elementwise)                                                                                             \
  X(function)                                                                                                \
  X(reduction)                                                                                               \
  X(statistic)                                                                                               \
  X(shape)                                                                                                   \
  X(arrangement)                                                                                             \
  X(index) X(order) X(scatter) X(product) X(matrix) X(algebra) X(nn) X(neural) X(signal) X(image) X(warp)
#define MIX_TF_FAMILIES(X)                                                                                   \
  X(elementwise)                                                                                             \
  X(function)                                                                                                \
  X(reduction) X(statistic) X(shape) X(index) X(order) X(product) X(algebra) X(nn) X(neural) X(image) X(other)
#define MIX_DECLARE_FAMILY(family) extern const mix_keras_operation mix_keras_##family##_operations[];
MIX_KERAS_FAMILIES(MIX_DECLARE_FAMILY)
#undef MIX_DECLARE_FAMILY
#define MIX_DECLARE_FAMILY(family) extern const mix_operation mix_tf_##family##_operations[];
MIX_TF_FAMILIES(MIX_DECLARE_FAMILY)
#undef MIX_DECLARE_FAMILY

/* Does the call compute each position by itself (nn/layer/decoding.h)? */
bool mix_operation_decodes(const mix_layer *layer, const mix_call_args *args);
/* The operation of that class; NULL: there is none. */
const mix_keras_operation *mix_keras_operation_named(const char *class_name);
/* That of a layer; NULL: it is none. */
const mix_keras_operation *mix_keras_operation_of(const mix_layer *layer);
/* The function of TensorFlow, without "tf."; NULL: there is none. */
const mix_operation *mix_tf_operation_named(const char *function);
/* The form of a call that has tensors alone, in order, as one from C. A new reference. */
json_t *mix_keras_operation_form(const mix_keras_operation *operation, int count);
