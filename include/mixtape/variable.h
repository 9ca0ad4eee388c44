/* Variables: named storage at a fixed address. Inside a captured function, reads and assignments follow
 * program order. An autocast variable is read in the cast dtype of the thread inside a layer call.
 * Several threads may use a variable at once, also the functions of a parallel map: a value that was read
 * does not change when another thread assigns. Only a running captured function works on the storage
 * itself. Until it returns, no other thread may assign to a variable that it reads (or was given the value
 * of), or use a variable that it assigns to. */
#ifndef MIXTAPE_VARIABLE_H
#define MIXTAPE_VARIABLE_H

#include <mixtape/tensor.h>

MIX_BEGIN_DECLARATIONS

typedef struct mix_variable_options {
  size_t size;
  mix_tensor *initial_value; /* required; copied */
  const char *name;          /* NULL: "variable" */
  bool not_trainable;        /* Keras: trainable=True */
  bool autocast; /* read in the cast dtype inside a layer call; floating dtypes only (ValueError) */
} mix_variable_options;
/* A variable with a copy of the initial value, and its dtype and shape. TypeError if that is not a tensor. */
MIX_API mix_variable *mix_variable_with(const mix_variable_options *options);
#ifndef __cplusplus
#define mix_variable_new(...)                                                                                \
  mix_variable_with(MIX_ARGUMENTS("mix_variable_new", "initial_value", #__VA_ARGS__, mix_variable_options,   \
                                  .initial_value = __VA_ARGS__))
#endif

/* The name as given; a layer prepends its path: "dense_1/kernel". The string lives as long as the process. */
MIX_API const char *mix_variable_name(const mix_variable *variable);
/* The shape; rank 0 for NULL. */
MIX_API mix_shape mix_variable_shape(const mix_variable *variable);
/* The dtype of a read now: the cast dtype for an autocast variable inside a layer call, else the stored
 * dtype. */
MIX_API mix_dtype mix_variable_dtype(const mix_variable *variable);
/* The dtype of the storage. */
MIX_API mix_dtype mix_variable_true_dtype(const mix_variable *variable);
/* True if tapes watch the variable automatically. A change makes captured functions capture again. */
MIX_API bool mix_variable_trainable(const mix_variable *variable);
MIX_API void mix_variable_set_trainable(mix_variable *variable, bool trainable);
/* True if the variable was created with `autocast`. */
MIX_API bool mix_variable_is_autocast(const mix_variable *variable);

/* The value, cast if the variable is autocast. Outside a capture the tensor shares the storage until the
 * next assignment. */
MIX_API mix_tensor *mix_variable_value(mix_variable *variable);
/* The value in the stored dtype, never cast. */
MIX_API mix_tensor *mix_variable_true_value(mix_variable *variable);

/* Assigns a value of the variable's shape and stored dtype; inside a cast scope an autocast variable
 * converts it first. assign_add and assign_sub compute in the stored dtype (keras3: inside a cast scope
 * from the cast value), and no update is lost if several threads add. Outside a capture the value is
 * evaluated at once. */
MIX_API mix_status mix_variable_assign(mix_variable *variable, mix_tensor *value);
MIX_API mix_status mix_variable_assign_add(mix_variable *variable, mix_tensor *value);
MIX_API mix_status mix_variable_assign_sub(mix_variable *variable, mix_tensor *value);
/* Writes a readable form with kind, name, shape, stored dtype and cast dtype into `text` and returns it. */
MIX_API const char *mix_variable_text(const mix_variable *variable, char *text, size_t size);

MIX_END_DECLARATIONS
#endif
