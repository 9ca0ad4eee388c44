/* Layers: calls that cast by policy, weights that cast themselves, and the classes from which custom layers are made. */
#ifndef MIXTAPE_LAYER_H
#define MIXTAPE_LAYER_H

#include <mixtape/initializer.h>
#include <mixtape/policy.h>
#include <mixtape/random.h>
#include <mixtape/regularizer.h>
#include <mixtape/variable.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Three-valued: zero inherits from the enclosing call (false where there is none). For `.training` alone: MIX_FALSE is not zero, and
 * booleans elsewhere are plain true and false. */
typedef enum mix_training { MIX_INHERIT, MIX_TRUE, MIX_FALSE } mix_training;

/* What a layer's `call` gets. Inputs are already cast. */
typedef struct mix_call_args {
  size_t size;
  mix_list *inputs;        /* the tensors of the first argument */
  bool inputs_are_list;    /* it was given as a list */
  mix_list *arguments;     /* further tensors; NULL: none */
  mix_list *masks;         /* one (or NULL) for each input; NULL: none at all */
  mix_list *initial_state; /* NULL: none */
  bool training;
  bool symbolic;           /* only dtypes and shapes: variables must not be assigned */
} mix_call_args;
/* Tensor i of the inputs (of the further arguments). */
MIX_API mix_tensor *mix_call_input(const mix_call_args *args, int index);
MIX_API mix_tensor *mix_call_argument(const mix_call_args *args, int index);

/* Collects what a layer must be told to be made again. Values are copied; a NULL text is JSON null. */
typedef struct mix_config mix_config;
/* key: "units". ValueError for what JSON cannot hold: numbers that are not finite, texts that are not UTF-8. */
MIX_API mix_status mix_config_text(mix_config *config, const char *key, const char *text);
MIX_API mix_status mix_config_number(mix_config *config, const char *key, double value);
MIX_API mix_status mix_config_integer(mix_config *config, const char *key, int64_t value);
MIX_API mix_status mix_config_boolean(mix_config *config, const char *key, bool value);
MIX_API mix_status mix_config_json(mix_config *config, const char *key, const char *json);

/* A kind of layer. Functions that are NULL have the meaning in the comment. */
typedef struct mix_layer_class {
  size_t size;           /* sizeof(mix_layer_class) */
  const char *name;      /* "SimpleDense" */
  size_t instance_size;  /* bytes of own state, zeroed: mix_layer_data */
  mix_status (*build)(mix_layer *layer, int count, const mix_shape *input_shapes); /* makes weights; NULL: has none */
  mix_list *(*call)(mix_layer *layer, const mix_call_args *args);                  /* required; a list of results */
  mix_shape (*output_shape)(mix_layer *layer, int count, const mix_shape *input_shapes); /* NULL: found by a symbolic call */
  mix_status (*get_config)(mix_layer *layer, mix_config *config); /* its own options; NULL: none */
  void (*finalize)(mix_layer *layer);                             /* gives back what the state holds; NULL: nothing */
  bool supports_masking;                                          /* passes its input's mask on */
  bool no_autocast;                                               /* inputs are never cast (Embedding, models) */
  /* Makes a mask. NULL: supports_masking decides, and masks that layers inside left on the results stay. */
  mix_tensor *(*compute_mask)(mix_layer *layer, const mix_call_args *args);
} mix_layer_class;

/* What every layer accepts. */
#define MIX_LAYER_OPTIONS                                                                                                      \
  const char *name;               /* NULL: the class in snake case, made unique ("dense", "dense_1") */                        \
  const char *dtype;              /* a policy by name: "float32", "mixed_float16"; NULL: the global policy */                  \
  mix_policy *policy;             /* a policy object instead of dtype */                                                       \
  bool not_trainable;             /* Keras: trainable=True */                                                                  \
  bool no_autocast;               /* Keras: autocast=True. Leaves inputs as they are */                                        \
  mix_regularizer *activity_regularizer; /* on the results; NULL: none */                                                      \
  const mix_semantics *semantics; /* NULL: the process's */

typedef struct mix_layer_options {
  size_t size;
  const mix_layer_class *layer_class; /* required; copied */
  MIX_LAYER_OPTIONS
} mix_layer_options;
/* A layer of a class of one's own. */
MIX_API mix_layer *mix_layer_with(const mix_layer_options *options);
#ifndef __cplusplus
#define mix_layer_new(...) mix_layer_with(&(const mix_layer_options){.size = sizeof(mix_layer_options), __VA_ARGS__})
#endif
/* The state of instance_size bytes. */
MIX_API void *mix_layer_data(const mix_layer *layer);
/* "dense_1"; "Dense". Live as long as the process. */
MIX_API const char *mix_layer_name(const mix_layer *layer);
MIX_API const char *mix_layer_class_name(const mix_layer *layer);
/* The generation that it was made with. */
MIX_API const mix_semantics *mix_layer_semantics(const mix_layer *layer);
/* ValueError where the object is no layer. */
MIX_API mix_policy *mix_layer_policy(const mix_layer *layer);
/* The policy's dtypes; of "_infer", those of the first input once there was one. */
MIX_API mix_dtype mix_layer_compute_dtype(const mix_layer *layer);
MIX_API mix_dtype mix_layer_variable_dtype(const mix_layer *layer);
/* Has it made its weights? */
MIX_API bool mix_layer_built(const mix_layer *layer);
MIX_API bool mix_layer_trainable(const mix_layer *layer);
/* Of the layer and the layers inside it. */
MIX_API void mix_layer_set_trainable(mix_layer *layer, bool trainable);

/* ---- calling ---- */
typedef struct mix_call_options {
  size_t size;
  void *inputs;            /* required: a mix_tensor or a mix_list of them, Keras's first argument */
  mix_list *arguments;     /* further tensors; tf_keras does not cast them, keras3 does */
  mix_tensor *mask;        /* of a single input; NULL: the mask that the input carries */
  mix_list *masks;         /* of listed inputs */
  mix_training training;
  mix_list *initial_state;
} mix_call_options;
/* Builds the layer on its first call, casts, computes. Returns the (first) result. Errors: the input specification (ValueError), and
 * whatever the layer's operations refuse. */
MIX_API mix_tensor *mix_call_with(mix_layer *layer, const mix_call_options *options);
/* The same, returning all results. */
MIX_API mix_list *mix_call_outputs_with(mix_layer *layer, const mix_call_options *options);
#ifndef __cplusplus
/* mix_call(layer, inputs, .training = MIX_TRUE) */
#define mix_call(layer, ...) mix_call_with(layer, &(const mix_call_options){.size = sizeof(mix_call_options), __VA_ARGS__})
#define mix_call_outputs(layer, ...)                                                                                           \
  mix_call_outputs_with(layer, &(const mix_call_options){.size = sizeof(mix_call_options), __VA_ARGS__})
#endif
/* Makes the weights without a call, for inputs of that shape, the batch included (it may be MIX_UNKNOWN). Nothing where they are made. */
MIX_API mix_status mix_layer_build(mix_layer *layer, mix_shape input_shape);
/* The shape of the (first) result for an input of that shape; a layer that is not built is built for it. Rank 0 with the error recorded
 * where there is none. */
MIX_API mix_shape mix_layer_output_shape(mix_layer *layer, mix_shape input_shape);

/* ---- weights ---- */
typedef struct mix_weight_options {
  size_t size;
  const char *name;                    /* "kernel"; NULL: "variable" */
  mix_shape shape;
  const char *dtype;                   /* NULL: the policy's variable dtype */
  const char *initializer;             /* NULL: glorot_uniform for floating dtypes, zeros for others */
  mix_initializer *initializer_object; /* instead of the name */
  bool not_trainable;                  /* Keras: trainable=True */
  bool no_autocast;                    /* Keras: experimental_autocast=True */
  const char *regularizer;
  mix_regularizer *regularizer_object;
  const char *constraint;
  mix_constraint *constraint_object;
} mix_weight_options;
/* Called in build. The layer owns the variable; it is named "dense_1/kernel". */
MIX_API mix_variable *mix_layer_add_weight_with(mix_layer *layer, const mix_weight_options *options);
#ifndef __cplusplus
/* mix_layer_add_weight(layer, "kernel", .shape = MIX_SHAPE(inputs, units), .initializer = "glorot_uniform") */
#define mix_layer_add_weight(layer, ...)                                                                                       \
  mix_layer_add_weight_with(layer, &(const mix_weight_options){.size = sizeof(mix_weight_options), __VA_ARGS__})
#endif
/* Tracks a layer that this one calls, in the order of these calls: its weights, losses and `trainable` follow. Returns it. */
MIX_API mix_layer *mix_layer_add_layer(mix_layer *layer, mix_layer *inner);
/* Keeps a generator with the layer, so that checkpoints hold its state (Keras 3: a SeedGenerator that the layer tracks). What a layer
 * keeps elsewhere than in weights and generators is in no checkpoint. */
MIX_API mix_status mix_layer_add_generator(mix_layer *layer, mix_generator *generator);
/* New lists: own weights, then those of inner layers. tf_keras: all trainable ones first. */
MIX_API mix_list *mix_layer_weights(mix_layer *layer);
MIX_API mix_list *mix_layer_trainable_weights(mix_layer *layer);
MIX_API mix_list *mix_layer_non_trainable_weights(mix_layer *layer);
MIX_API mix_list *mix_layer_layers(mix_layer *layer);
/* Copies of the values, in the order of mix_layer_weights; and back: the count and each shape must agree (ValueError), values are
 * converted to the variable's dtype. */
MIX_API mix_list *mix_layer_get_weights(mix_layer *layer);
MIX_API mix_status mix_layer_set_weights(mix_layer *layer, mix_list *values);

/* Penalties of the weights' regularisers and what the latest call added: a new list of scalars. Weight penalties are computed on the
 * true values, outside any cast. */
MIX_API mix_list *mix_layer_losses(mix_layer *layer);
/* Within a call: adds a scalar to the loss of the model (the next outermost call of the layer forgets it). */
MIX_API mix_status mix_layer_add_loss(mix_layer *layer, mix_tensor *loss);

/* What the first argument must look like; checked before it is cast (keras3: after). Unset fields are not checked. */
typedef struct mix_input_spec {
  size_t size;
  const char *dtype;
  int rank;       /* 0: any */
  int min_rank;   /* 0: any */
  int max_rank;   /* 0: any */
  int axis_count; /* sizes demanded of some axes */
  int axes[MIX_MAX_RANK]; /* negative ones count from the end */
  int64_t axis_sizes[MIX_MAX_RANK];
} mix_input_spec;
MIX_API mix_status mix_layer_set_input_spec(mix_layer *layer, const mix_input_spec *spec);

/* {"name": ..., "trainable": ..., "dtype": ..., ...}; the text lives until the next call of this on that layer. */
MIX_API const char *mix_layer_config(mix_layer *layer);
/* {"module": "keras.layers", "class_name": "Dense", "config": {...}, "registered_name": null}, in experimental semantics class_name and config
 * alone; the text lives until the next call of this on that layer. */
MIX_API const char *mix_layer_serialize(mix_layer *layer);
/* A layer of a built-in class (ValueError) from what mix_layer_serialize wrote, here or in Keras, of any generation; its weights are not part
 * of it. semantics NULL: the process's. */
MIX_API mix_layer *mix_layer_deserialize(const char *json, const mix_semantics *semantics);
/* From a config alone, of the class that is named. */
MIX_API mix_layer *mix_layer_from_config(const char *class_name, const char *json, const mix_semantics *semantics);

/* The thread's cast dtype by hand: what autocast variables read as until the end. tf_keras: a dtype that is not floating means no cast;
 * keras3: ValueError. `former` receives what mix_autocast_end must restore. */
MIX_API mix_status mix_autocast_begin(mix_dtype dtype, mix_dtype *former);
MIX_API void mix_autocast_end(mix_dtype former);

/* Starts the counters of unique names anew (Keras: clear_session). */
MIX_API void mix_clear_names(void);

#ifdef __cplusplus
}
#endif
#endif
