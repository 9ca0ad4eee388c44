/* Rematerialization (gradient checkpointing): values that the backward pass computes again instead of keeping
 * them. Less memory, more time, the same bits. */
#ifndef MIXTAPE_REMAT_H
#define MIXTAPE_REMAT_H

#include <mixtape/tensor.h>

MIX_BEGIN_DECLARATIONS

/* Keras's RematScope. A layer takes the mode of the innermost scope of its thread when it is made, wherever
 * it is called then; a layer that is read from a file or copied is made at that time. Files and configs hold
 * no mode. Scopes are no objects: each is ended once, the last one first, on its thread. */
typedef struct mix_remat_scope mix_remat_scope;

typedef struct mix_remat_scope_options {
  size_t size;
  /* What a layer's call computes again:
   * "full": everything (NULL: Keras's default, the same). Layers inside layers and models too, each by
   * itself. "activations": its option `activation` alone. Keras refuses this for LSTM, GRU and SimpleRNN,
   * where it is that of their cell here. "larger_than": everything, if its results together have more
   * elements, batch included, than the threshold. "list_of_layers": everything, if its name is in the list.
   * "none": nothing, which is Keras's None, inside a scope that says otherwise. */
  const char *mode;
  int64_t output_size_threshold;  /* of "larger_than"; 0: 1024; negative: all layers with results */
  const char *const *layer_names; /* of "list_of_layers"; ended by NULL; copied. NULL: none */
} mix_remat_scope_options;
/* Begins a scope. NULL with the error recorded: a ValueError for a mode that does not exist. */
MIX_API mix_remat_scope *mix_remat_scope_begin_with(const mix_remat_scope_options *options);
#ifndef __cplusplus
/* mix_remat_scope_begin("larger_than", .output_size_threshold = 4096) */
#define mix_remat_scope_begin(...)                                                                           \
  mix_remat_scope_begin_with(                                                                                \
      MIX_ARGUMENTS("mix_remat_scope_begin", "mode", #__VA_ARGS__, mix_remat_scope_options, __VA_ARGS__))
#endif
/* Ends it, even while an error is pending. NULL: nothing happens. */
MIX_API void mix_remat_scope_end(mix_remat_scope *scope);

/* Computes results, a list of tensors, from inputs, such a list or NULL, and from what it likes to read.
 * Items may be NULL. */
typedef mix_list *(*mix_remat_function)(void *context, mix_list *inputs);
/* Keras's remat(f)(inputs), as jax.checkpoint: calls the function once, now, and returns its list. Gradients
 * read nothing that it computed but its results: they repeat, from the inputs and from what else it reads of
 * outside, just before they need it. Random numbers come out the same; what writes a variable, draws from a
 * generator's state or communicates happens once. Calls may be nested, also with layers and loops. Weights
 * and what is computed from them alone are not repeated. NULL with the error recorded: a
 * TypeError for what is no function and no list of tensors. */
MIX_API mix_list *mix_remat(mix_remat_function function, void *context, mix_list *inputs);

MIX_END_DECLARATIONS
#endif
