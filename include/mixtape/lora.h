/* LoRA (Hu et al., arXiv:2106.09685), as Keras 3 has it: the kernel W of a layer stays as it is, and two
 * small matrices a and b train in its place: the layer computes with W + (alpha / rank) a . b. */
#ifndef MIXTAPE_LORA_H
#define MIXTAPE_LORA_H

#include <mixtape/model.h>

MIX_BEGIN_DECLARATIONS

/* ---- a layer ---- */
typedef struct mix_layer_lora_options {
  size_t size;
  int64_t rank;              /* 0: the kernel is frozen, and nothing trains in its place; as in Keras */
  double alpha;              /* 0: rank; MIX_ZERO is 0, with a warning: nothing would train */
  const char *a_initializer; /* NULL: "he_uniform" */
  mix_initializer *a_initializer_object;
  const char *b_initializer; /* NULL: "zeros" */
  mix_initializer *b_initializer_object;
} mix_layer_lora_options;
/* Adds the weights lora_kernel_a (the kernel's shape with `rank` as its last axis) and lora_kernel_b (rank,
 * last axis), of an Embedding lora_embeddings_a and _b, in float32 under any policy. They train, and have the
 * kernel's regularizer; the kernel is not trainable any more. The layer is a built Dense, EinsumDense,
 * Embedding, ReversibleEmbedding, Conv1D, Conv2D or Conv3D. ValueError if it is none of these, not built, has
 * LoRA already or a constraint of the kernel, or the rank is negative; NotImplementedError if it computes in
 * float8. A warning if the rank is above the smaller side of the kernel. Captured functions capture the layer
 * again, those of predict too, which Keras leaves as they are. Compile a model again before training: an
 * optimizer that is built does not know the new weights. */
MIX_API mix_status mix_layer_enable_lora_with(mix_layer *layer, const mix_layer_lora_options *options);
/* The rank of a layer's LoRA; -1: it has none. */
MIX_API int64_t mix_layer_lora_rank(const mix_layer *layer);

/* ---- a model ---- */
typedef struct mix_model_lora_options {
  size_t size;
  int64_t rank;       /* as above */
  double alpha;       /* as above */
  const char *filter; /* extended regular expression: only layers in whose path ("att/query") it is found */
  const char *a_initializer, *b_initializer; /* as above */
} mix_model_lora_options;
/* The same for all layers of a model that can have it, those in layers and models in it too. Other layers
 * stay as they are, and train. Of a backbone of KerasHub without a filter, its queries and values alone get
 * it, and its other layers no longer train, as with KerasHub's enable_lora. ValueError, and no change, if
 * there is none, or one of them cannot have it (see above). Changes the model. */
MIX_API mix_status mix_model_enable_lora_with(mix_model *model, const mix_model_lora_options *options);
/* Adds (alpha / rank) a . b to the kernels, which train again, and removes a and b. Layers without LoRA stay
 * as they are. Compile again before training. Changes the model. */
MIX_API mix_status mix_model_merge_lora(mix_model *model);

/* ---- adapters ----
 * An adapter is what a model with LoRA has learned: a, b and alpha of each layer, and the other weights of
 * layers that train, such as biases. Frozen kernels, and those stored as integers, are not in it. An .npz:
 * arrays under the names of the variables, "dense/lora_kernel_a", and for each a its
 * "dense/lora_kernel_a.alpha". Layers of one name, in models of a model, are numbered: "lora_kernel_a_1". */

/* Writes the adapter. ValueError if no layer has LoRA; the errors of writing a file. Reads the model. */
MIX_API mix_status mix_model_save_lora(mix_model *model, const char *path);
/* Reads an adapter into a model that computes, bit for bit, as the one that it was saved from, if the frozen
 * kernels are the same. A model without LoRA gets it in the layers of the adapter. ValueError, and no change,
 * if the adapter is one of another model: it names the first layer that differs. Changes the model. */
MIX_API mix_status mix_model_load_lora(mix_model *model, const char *path);

#ifndef __cplusplus
/* mix_layer_enable_lora(layer, 8, .alpha = 16) */
#define mix_layer_enable_lora(layer, ...)                                                                    \
  mix_layer_enable_lora_with(layer, MIX_ARGUMENTS("mix_layer_enable_lora", "rank", #__VA_ARGS__,             \
                                                  mix_layer_lora_options, __VA_ARGS__))
/* mix_model_enable_lora(model, 8, .filter = "att/") */
#define mix_model_enable_lora(model, ...)                                                                    \
  mix_model_enable_lora_with(model, MIX_ARGUMENTS("mix_model_enable_lora", "rank", #__VA_ARGS__,             \
                                                  mix_model_lora_options, __VA_ARGS__))
#endif

MIX_END_DECLARATIONS
#endif
