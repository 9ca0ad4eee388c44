/* Layers: calls that cast by policy, autocast weights, and classes for custom layers. */
#ifndef MIXTAPE_LAYER_H
#define MIXTAPE_LAYER_H

#include <mixtape/initializer.h>
#include <mixtape/policy.h>
#include <mixtape/random.h>
#include <mixtape/regularizer.h>

MIX_BEGIN_DECLARATIONS

/* Three-valued: zero means the value of the enclosing call (false if there is none). Only for `.training`.
 * MIX_FALSE is not zero; all other booleans are plain true and false. */
typedef enum mix_training { MIX_INHERIT, MIX_TRUE, MIX_FALSE } mix_training;

/* The arguments of a layer's `call`. Inputs are already cast. */
typedef struct mix_call_args {
  size_t size;
  mix_list *inputs;        /* the tensors of the first argument; a dict if a dict was given */
  bool inputs_are_list;    /* it was given as a list */
  mix_list *arguments;     /* further tensors; NULL: none */
  mix_list *masks;         /* one (or NULL) for each input; NULL: none at all */
  mix_list *initial_state; /* NULL: none */
  bool training;
  bool symbolic;              /* only dtypes and shapes: variables must not be assigned */
  mix_list *argument_masks;   /* one (or NULL) for each argument; NULL: none at all */
  mix_tensor *attention_mask; /* NULL: none */
  bool use_causal_mask, return_attention_scores;
  bool reverse;
} mix_call_args;
/* Tensor i of the inputs, or of the further arguments. */
MIX_API mix_tensor *mix_call_input(const mix_call_args *args, int index);
MIX_API mix_tensor *mix_call_argument(const mix_call_args *args, int index);
/* The places of the positions, axis 1 of the first input, in their sequence: int32 (positions), 0, 1, 2, ...
 * When a model is decoded (mixtape/generate.h), a call has the next few positions, and this says which. A
 * layer that computes by them sets .decodes. Symbolic where their number is not known. ValueError for an
 * input of rank below 2. */
MIX_API mix_tensor *mix_call_positions(const mix_call_args *args);

/* Collects the config of a layer as JSON. Values are copied; a NULL text is JSON null. */
typedef struct mix_config mix_config;
/* Adds an entry; key: "units". ValueError for values that JSON cannot hold: numbers that are not finite,
 * text that is not UTF-8. */
MIX_API mix_status mix_config_text(mix_config *config, const char *key, const char *text);
MIX_API mix_status mix_config_number(mix_config *config, const char *key, double value);
MIX_API mix_status mix_config_integer(mix_config *config, const char *key, int64_t value);
MIX_API mix_status mix_config_boolean(mix_config *config, const char *key, bool value);
MIX_API mix_status mix_config_json(mix_config *config, const char *key, const char *json);
/* An entry back, in from_config; default_value where it is absent or null. TypeError for an entry of another
 * kind. Texts live as long as the config. mix_config_get_json: any entry as JSON text, which belongs to the
 * scope of the config; NULL where it is absent or null. */
MIX_API const char *mix_config_get_text(mix_config *config, const char *key, const char *default_value);
MIX_API double mix_config_get_number(mix_config *config, const char *key, double default_value);
MIX_API int64_t mix_config_get_integer(mix_config *config, const char *key, int64_t default_value);
MIX_API bool mix_config_get_boolean(mix_config *config, const char *key, bool default_value);
MIX_API const char *mix_config_get_json(mix_config *config, const char *key);

/* The states of a recurrent cell, for mix_rnn: shapes without the batch. */
#define MIX_CELL_STATES 32
typedef struct mix_cell_states {
  int count;
  mix_shape states[MIX_CELL_STATES];
  mix_shape output;
} mix_cell_states;

/* A kind of layer. The comments say what a NULL function means. */
typedef struct mix_layer_class {
  size_t size;          /* sizeof(mix_layer_class) */
  const char *name;     /* "SimpleDense" */
  size_t instance_size; /* bytes of the instance's own state, zeroed: mix_layer_data */
  /* Creates the weights; NULL: the layer has none. */
  mix_status (*build)(mix_layer *layer, int count, const mix_shape *input_shapes);
  /* Required; returns a list of results. */
  mix_list *(*call)(mix_layer *layer, const mix_call_args *args);
  /* NULL: found by a symbolic call. */
  mix_shape (*output_shape)(mix_layer *layer, int count, const mix_shape *input_shapes);
  /* Adds the layer's own options; NULL: none. */
  mix_status (*get_config)(mix_layer *layer, mix_config *config);
  /* Releases what the state holds; NULL: nothing. */
  void (*finalize)(mix_layer *layer);
  bool supports_masking; /* passes on the mask of its input */
  bool no_autocast;      /* inputs are never cast (Embedding, models) */
  /* Computes a mask. NULL: supports_masking decides, and masks that inner layers set on the results stay. */
  mix_tensor *(*compute_mask)(mix_layer *layer, const mix_call_args *args);
  /* Sets the own options of a new layer from the config that get_config wrote; NULL: there are none. Inner
   * layers: mix_config_get_json, mix_layer_deserialize, mix_layer_add_layer. */
  mix_status (*from_config)(mix_layer *layer, mix_config *config);
  /* Of a recurrent cell, which gets its states in .arguments and returns its output and the next states:
   * their shapes for inputs of that shape. The layer is built. NULL: it is no cell. */
  mix_status (*cell_states)(mix_layer *layer, mix_shape input_shape, mix_cell_states *states);
  /* The layer can be decoded (mixtape/generate.h): it computes each position, axis 1, from the same position
   * of its inputs, in the same way at all places, but for what mix_call_positions tells. */
  bool decodes;
} mix_layer_class;

/* Options of every layer, the first in each options struct. */
#define MIX_LAYER_OPTIONS                                                                                    \
  const char *name;   /* NULL: the class in snake case, made unique ("dense", "dense_1") */                  \
  const char *dtype;  /* a policy by name: "mixed_float16"; NULL: the global policy */                       \
  mix_policy *policy; /* a policy object instead of dtype */                                                 \
  bool not_trainable; /* Keras: trainable=True */                                                            \
  bool no_autocast;   /* Keras: autocast=True; inputs are not cast */                                        \
  mix_regularizer *activity_regularizer; /* of the results; NULL: none */                                    \
  const mix_semantics *semantics;        /* NULL: the default of the process */                              \
  int64_t reserved;                      /* 0 */

/* Of layers that can have LoRA (mixtape/lora.h). */
#define MIX_LORA_OPTIONS                                                                                     \
  int64_t lora_rank; /* 0: none */                                                                           \
  double lora_alpha; /* 0: lora_rank; MIX_ZERO is accepted. Keras's Dense and Embedding always take 0 */

typedef struct mix_layer_options {
  size_t size;
  MIX_LAYER_OPTIONS
  const mix_layer_class *layer_class; /* required; copied */
} mix_layer_options;
/* A layer of a custom class. TypeError if layer_class is missing. */
MIX_API mix_layer *mix_layer_with(const mix_layer_options *options);
#ifndef __cplusplus
#define MIX_LAYER_OF(call, names, text, type, ...)                                                           \
  call##_with(MIX_ARGUMENTS(#call, names, text, type, .reserved = 0, __VA_ARGS__))
#define mix_layer_new(...)                                                                                   \
  mix_layer_with(MIX_ARGUMENTS("mix_layer_new", "layer_class", #__VA_ARGS__, mix_layer_options,              \
                               .reserved = 0, __VA_ARGS__))
#endif
/* The state of instance_size bytes, which lives as long as the layer. */
MIX_API void *mix_layer_data(const mix_layer *layer);
/* The name, "dense_1", and the class name, "Dense". The strings live as long as the process. */
MIX_API const char *mix_layer_name(const mix_layer *layer);
MIX_API const char *mix_layer_class_name(const mix_layer *layer);
/* The generation that the layer was created with. */
MIX_API const mix_semantics *mix_layer_semantics(const mix_layer *layer);
/* The policy, borrowed. ValueError if the object is not a layer. */
MIX_API mix_policy *mix_layer_policy(const mix_layer *layer);
/* The same, but of a map the policy by which the layer computes: that of its path, and before it has one, and
 * for layers that never get one, the default. */
MIX_API mix_policy *mix_layer_matched_policy(const mix_layer *layer);
/* The policy's dtypes. With "_infer": those of the first input, after the first call. */
MIX_API mix_dtype mix_layer_compute_dtype(const mix_layer *layer);
MIX_API mix_dtype mix_layer_variable_dtype(const mix_layer *layer);
/* True if the layer has created its weights. */
MIX_API bool mix_layer_built(const mix_layer *layer);
/* The value of `trainable`. */
MIX_API bool mix_layer_trainable(const mix_layer *layer);
/* Sets `trainable` of the layer and of the layers inside it. */
MIX_API void mix_layer_set_trainable(mix_layer *layer, bool trainable);

/* ---- calling ---- */
typedef struct mix_call_options {
  size_t size;
  void *inputs;        /* required: a mix_tensor or a mix_list of tensors, Keras's first argument */
  mix_list *arguments; /* further tensors; tf_keras does not cast them, keras3 does */
  /* Masks of the inputs; NULL: those that they carry. MultiHeadAttention of Keras 3 takes the latter in any
   * case, and ignores one that is given. */
  mix_tensor *mask; /* of a single input */
  mix_list *masks;  /* of a list of inputs */
  mix_training training;
  mix_list *initial_state;
  /* Of attention layers, with Keras's names. */
  mix_list *argument_masks;   /* for the further tensors; NULL: the masks that they carry */
  mix_tensor *attention_mask; /* true where a query attends to a key; NULL: everywhere */
  bool use_causal_mask;       /* queries do not attend to keys after them */
  bool return_attention_scores;
  bool reverse; /* of ReversibleEmbedding: from output_dim back to input_dim */
} mix_call_options;
/* Builds the layer on its first call, casts the inputs and computes. Returns the (first) result.
 * ValueError if the inputs do not match the input specification; errors of the layer's operations. */
MIX_API mix_tensor *mix_call_with(mix_layer *layer, const mix_call_options *options);
/* The same, returning all results. */
MIX_API mix_list *mix_call_outputs_with(mix_layer *layer, const mix_call_options *options);
#ifndef __cplusplus
/* mix_call(layer, inputs, .training = MIX_TRUE) */
#define mix_call(layer, ...)                                                                                 \
  mix_call_with(layer, MIX_ARGUMENTS("mix_call", "inputs", #__VA_ARGS__, mix_call_options, __VA_ARGS__))
#define mix_call_outputs(layer, ...)                                                                         \
  mix_call_outputs_with(                                                                                     \
      layer, MIX_ARGUMENTS("mix_call_outputs", "inputs", #__VA_ARGS__, mix_call_options, __VA_ARGS__))
#endif
/* Creates the weights without a call, for inputs of that shape, including the batch dimension (which may
 * be MIX_UNKNOWN). Does nothing if they exist. */
MIX_API mix_status mix_layer_build(mix_layer *layer, mix_shape input_shape);
/* The shape of the (first) result for an input of that shape; builds the layer if necessary. Rank 0 with
 * the error recorded on failure. */
MIX_API mix_shape mix_layer_output_shape(mix_layer *layer, mix_shape input_shape);

/* ---- weights ---- */
typedef struct mix_weight_options {
  size_t size;
  const char *name; /* "kernel"; NULL: "variable" */
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
  double fan_in, fan_out; /* inputs and outputs of the weight, for initializers; 0: those of the shape */
  /* The optimizer replaces the weight by its "gradient", as mix_optimizer_overwrite_with_gradient does. */
  bool overwrite_with_gradient;
} mix_weight_options;
/* Creates a weight; call it in `build`. The layer owns the variable, which is named "dense_1/kernel".
 * Borrowed. */
MIX_API mix_variable *mix_layer_add_weight_with(mix_layer *layer, const mix_weight_options *options);
#ifndef __cplusplus
/* mix_layer_add_weight(layer, "kernel", .shape = MIX_SHAPE(inputs, units), .initializer =
 * "glorot_uniform") */
#define mix_layer_add_weight(layer, ...)                                                                     \
  mix_layer_add_weight_with(layer, MIX_ARGUMENTS("mix_layer_add_weight", "name; MIX_SHAPE(shape)",           \
                                                 #__VA_ARGS__, mix_weight_options, __VA_ARGS__))
#endif
/* Tracks a layer that this one calls, in the order of these calls: its weights, losses and `trainable`
 * belong to this layer. Returns the inner layer. */
MIX_API mix_layer *mix_layer_add_layer(mix_layer *layer, mix_layer *inner);
/* Tracks a generator, so that checkpoints contain its state (Keras 3: a SeedGenerator of the layer). Other
 * state of a layer outside weights, generators and the states of stateful layers is in no checkpoint. */
MIX_API mix_status mix_layer_add_generator(mix_layer *layer, mix_generator *generator);
/* New lists of borrowed items: own weights, trainable ones first, then those of inner layers. tf_keras: for
 * a layer that is no model, all trainable ones of its nest first. */
MIX_API mix_list *mix_layer_weights(mix_layer *layer);
MIX_API mix_list *mix_layer_trainable_weights(mix_layer *layer);
MIX_API mix_list *mix_layer_non_trainable_weights(mix_layer *layer);
MIX_API mix_list *mix_layer_layers(mix_layer *layer);
/* Copies of the values, in the order of mix_layer_weights, and back. When setting, count and shapes must
 * match (ValueError); values are converted to the variables' dtypes. */
MIX_API mix_list *mix_layer_get_weights(mix_layer *layer);
MIX_API mix_status mix_layer_set_weights(mix_layer *layer, mix_list *values);

/* A new list of scalars: the penalties of the weights' regularizers, and what the latest call added.
 * Weight penalties use the stored values, outside any cast. */
MIX_API mix_list *mix_layer_losses(mix_layer *layer);
/* Within a call: adds a scalar (else ValueError) to the model's loss. The next outermost call discards it. */
MIX_API mix_status mix_layer_add_loss(mix_layer *layer, mix_tensor *loss);
/* Within a call: tf_keras's add_metric(value, name), in Keras 3 a Mean that the layer updates. The logs of
 * fit, evaluate and single batches have under this name the mean of the value's elements over all batches,
 * after the metrics of compile. Several values of one name, as of a layer that is called twice, share a mean.
 * The name is copied. The next outermost call of the layer discards the values. */
MIX_API mix_status mix_layer_add_metric(mix_layer *layer, mix_tensor *value, const char *name);

/* Requirements on the first argument, checked before it is cast (keras3: after). Unset fields are not
 * checked. */
typedef struct mix_input_spec {
  size_t size;
  const char *dtype;
  int rank;               /* 0: any */
  int min_rank;           /* 0: any */
  int max_rank;           /* 0: any */
  int axis_count;         /* the number of axes of required size */
  int axes[MIX_MAX_RANK]; /* negative axes count from the end */
  int64_t axis_sizes[MIX_MAX_RANK];
} mix_input_spec;
/* Sets the requirements; they are copied. */
MIX_API mix_status mix_layer_set_input_spec(mix_layer *layer, const mix_input_spec *spec);

/* The config as JSON: {"name": ..., "trainable": ..., "dtype": ..., ...}. The string lives until the next
 * call with the same layer. */
MIX_API const char *mix_layer_config(mix_layer *layer);
/* The layer as JSON: {"module": "keras.layers", "class_name": "Dense", "config": {...}, "registered_name":
 * null}; experimental semantics: only class_name and config. A class of the user has module null and its
 * registered name. The string lives until the next call with the same layer. */
MIX_API const char *mix_layer_serialize(mix_layer *layer);
/* Keras's register_keras_serializable(package, name): layers of the class come back from JSON (here, in
 * mix_model_from_json) under the name "package>name". package NULL: "Custom"; name NULL: that of the class.
 * The class is copied; its functions must outlive their use. A second class of one name replaces the first.
 * Any thread may register; mix_shutdown forgets all. ValueError without a name or a call function, and for
 * names with '>'. */
MIX_API mix_status mix_register_layer(const char *package, const char *name,
                                      const mix_layer_class *layer_class);
/* A layer from JSON of mix_layer_serialize or Keras, of any generation: of a class that is registered, or
 * built in (else ValueError). Weights are not included. semantics NULL: the default of the process. */
MIX_API mix_layer *mix_layer_deserialize(const char *json, const mix_semantics *semantics);
/* The same from a config alone, with the class name given. */
MIX_API mix_layer *mix_layer_from_config(const char *class_name, const char *json,
                                         const mix_semantics *semantics);

/* Sets the cast dtype of the thread, in which autocast variables are read until the end. A dtype that is
 * not floating means no cast in tf_keras and is a ValueError in keras3. `former` receives what
 * mix_autocast_end must restore. */
MIX_API mix_status mix_autocast_begin(mix_dtype dtype, mix_dtype *former);
MIX_API void mix_autocast_end(mix_dtype former);

/* Resets the counters of unique names (Keras: clear_session). */
MIX_API void mix_clear_names(void);

MIX_END_DECLARATIONS
#endif
