/* Variables: named storage at one fixed address. Inside a captured function reads and assignments follow program order. A
 * variable that casts itself (autocast) reads as the thread's cast dtype inside a layer call.
 * Several threads may use a variable at once, also the functions of a parallel map: a value that was read stays that of one moment,
 * whoever assigns meanwhile. Only a captured function that runs works on the storage itself: until it returns, no other thread may
 * assign to a variable that it uses or was given the value of, nor use one that it assigns to. */
#ifndef MIXTAPE_VARIABLE_H
#define MIXTAPE_VARIABLE_H

#include <mixtape/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mix_variable_options {
  size_t size;
  mix_tensor *initial_value; /* required; copied */
  const char *name;          /* NULL: "variable" */
  bool not_trainable;        /* Keras: trainable=True */
  bool autocast;             /* read as the cast dtype inside a layer call; floating dtypes only (ValueError) */
} mix_variable_options;
/* A variable of the dtype and shape of its initial value, which a copy of it holds. TypeError where that is no tensor. */
MIX_API mix_variable *mix_variable_with(const mix_variable_options *options);
#ifndef __cplusplus
#define mix_variable_new(...) mix_variable_with(&(const mix_variable_options){.size = sizeof(mix_variable_options), .initial_value = __VA_ARGS__})
#endif

/* As given, within a layer behind its path: "dense_1/kernel". Lives as long as the process. */
MIX_API const char *mix_variable_name(const mix_variable *variable);
MIX_API mix_shape mix_variable_shape(const mix_variable *variable);
/* The dtype that a read gives here and now: the cast dtype inside a layer call for an autocast variable, else the true dtype. */
MIX_API mix_dtype mix_variable_dtype(const mix_variable *variable);
/* The dtype of its storage. */
MIX_API mix_dtype mix_variable_true_dtype(const mix_variable *variable);
/* Do tapes watch it by themselves? A change makes captured functions capture anew. */
MIX_API bool mix_variable_trainable(const mix_variable *variable);
MIX_API void mix_variable_set_trainable(mix_variable *variable, bool trainable);
MIX_API bool mix_variable_is_autocast(const mix_variable *variable);

/* The value, cast where the variable casts itself. Outside a capture the tensor shares the storage until the next assignment. */
MIX_API mix_tensor *mix_variable_value(mix_variable *variable);
/* The value in the true dtype, never cast. */
MIX_API mix_tensor *mix_variable_true_value(mix_variable *variable);

/* value must have the variable's shape, and its true dtype (inside a cast scope an autocast variable converts it first).
 * assign_add and assign_sub compute in the true dtype; of several threads' additions none is lost. Outside a capture the value is
 * evaluated at once. */
MIX_API mix_status mix_variable_assign(mix_variable *variable, mix_tensor *value);
MIX_API mix_status mix_variable_assign_add(mix_variable *variable, mix_tensor *value);
MIX_API mix_status mix_variable_assign_sub(mix_variable *variable, mix_tensor *value);
/* Writes a readable form that names kind, name, shape, true dtype and the dtype it casts to. */
MIX_API const char *mix_variable_text(const mix_variable *variable, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
