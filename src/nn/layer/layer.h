/* Inside a layer, and the record of a symbolic call for functional models. */
#pragma once

#include "base/fields.h"
#include "graph/variable.h"
#include "nn/policy/policy_map.h"
#include "nn/policy/quantization_config.h"
#include <mixtape/layers.h>

/* What a layer is quantized to, with all defaults filled in. */
typedef struct mix_quantization {
  const char *mode; /* of the policy: "float8", "int8", "int4/128" */
  int64_t amax_history_length;
  mix_quantization_config config;
  char text[24]; /* where `mode` may stand */
} mix_quantization;

/* A layer of the library: its class, and the rows of the options that its instance begins with. */
typedef struct mix_layer_kind mix_layer_kind;
struct mix_layer_kind {
  mix_layer_class class; /* instance_size 0: that of the options */
  const char *call;      /* the constructor in messages: "dense" */
  size_t options_size;
  const mix_field_row *fields; /* NULL: only those of every layer */
  /* NULL: nothing to do. `check` sees the options with their defaults, before the layer is made; `ready` ends
   * the constructor. */
  bool (*check)(void *options, const mix_layer_kind *kind);
  bool (*ready)(mix_layer *layer);
  size_t seed; /* where the options have that of the layer's generator; 0: it has none */
  /* Makes the layer from options that were read. NULL: the constructor. */
  mix_layer *(*from_config)(const mix_layer_kind *kind, const json_t *config, void *options);
  const char *keras_name; /* of Keras's class, where its public name is another; NULL: it is not */
  /* What configs of Keras 3 models say of the class: its call has an argument `mask`; the default of its
   * argument `training`, unless None; it is built when it is made, so that there is no build_config. */
  const char *module; /* NULL: "keras.layers"; one that begins with a dot is of the generation's sources */
  bool registered; /* that one is registered in the package of the generation's optimizers, if it has one */
  bool call_has_mask;
  /* The first tensors of its call by name, ended by NULL: "query", "value", "key". Its build gets the shapes
   * of those that are given, and each may have a mask. NULL: "inputs" alone. */
  const char *const *call_tensors;
  bool call_ignores_mask; /* under attention_masks_carried: a given mask of its first tensor */
  bool call_is_attention; /* its call has use_causal_mask and return_attention_scores */
  bool call_has_reverse;
  mix_training call_training;
  bool built_from_start;
  bool named_only; /* of the options of every layer, configs have the name alone: operations */
  /* True where a call that trains is not the same on two batches as on one of both: the layer computes over
   * the samples of a batch, or counts its calls. NULL: it is the same. */
  bool (*mixes_samples)(const mix_layer *layer);
  bool call_has_form;              /* an operation of tf_keras: its calls have a form (mix_call_keywords) */
  bool keras3_only, tf_keras_only; /* the other generation has no class of that name (layer_names_keras3) */
  /* Makes a built layer one of the mode, in which layers of the class compute; mix_layer_quantize gives it
   * its policy. NULL: the class has no mode. */
  mix_status (*quantize)(mix_layer *layer, const mix_quantization *quantization);
  /* Can it? Else the error is recorded. NULL: always. */
  bool (*check_quantization)(const mix_layer *layer, const mix_quantization *quantization);
  /* Where the options have lora_rank, and lora_alpha after it (nn/layers/lora.h); 0: the class cannot have
   * LoRA. Then where they have regularizer and constraint of the kernel. Does Keras's class forget an alpha
   * that its constructor is given? */
  size_t lora, lora_regularizer, lora_constraint;
  bool lora_alpha_lost;
  /* Of a class that can store its kernel as integers: that weight, and the kernel's shape. NULL: the layer
   * has a float kernel. */
  const struct mix_stored_weight *(*stored)(const mix_layer *layer, mix_shape *shape);
  /* Can this call be one of a few new positions of a sequence (decoding.h)? False without an error: it mixes
   * positions. NULL: none of the class can. */
  bool (*decodes)(const mix_layer *layer, const mix_call_args *args);
};

struct mix_layer {
  mix_object object;
  mix_layer_class class;      /* a copy */
  const mix_layer_kind *kind; /* NULL: a class of the user, a model */
  const char *name;           /* interned */
  /* The attribute of the layer around it, in paths of weights; NULL: the name. "cells/" before a class: an
   * item of the list of that name. */
  const char *attribute;
  const mix_layer *maker; /* in whose `build` it was made without a name; only compared */
  const char *path;       /* interned; set by the first call or build: "outer/dense_1" */
  mix_policy *policy;     /* retained */
  /* Where that is a map: the policy of its path, retained, and that path, interned. NULL until the first call
   * or build; the path stays NULL in layers that never get one. */
  mix_policy *matched;
  const char *map_path;
  const mix_semantics *semantics;
  /* the policy's; under "_infer" those of the first input */
  mix_dtype compute, variable;
  bool trainable, autocast, built;
  bool is_input;                         /* an InputLayer */
  bool is_model;                         /* its weights are listed layer by layer in every generation */
  mix_list *weights;                     /* own variables, in creation order */
  mix_list *layers;                      /* inner layers */
  int nest;                              /* of a file: its layers and theirs; 0: not counted */
  mix_list *losses;                      /* tensors added by the latest call */
  mix_list *metrics;                     /* of mix_added_metric, by the latest call; NULL: none */
  mix_list *generators;                  /* random state; NULL: none */
  mix_list *states;                      /* variables that calls leave to the next; NULL: none */
  mix_regularizer *activity_regularizer; /* retained */
  struct mix_lora *lora;                 /* nn/layers/lora.h; retained, NULL: none */
  struct mix_remat_mode *remat;          /* of the scope in which it was made (remat.h); retained, or NULL */
  mix_input_spec spec;
  /* Of a model of a class (mixtape/model_class.h): the object from which it came; else NULL. */
  json_t *origin;
  char *config, *serialized; /* results of mix_layer_config and mix_layer_serialize */
  mix_shape *build_shapes;   /* build_count shapes of the inputs that it was built for; NULL: none */
  int build_count;
  bool built_for_list;
  void *data; /* class.instance_size bytes */
};
extern const mix_class mix_layer_object_class;

/* A value of mix_layer_add_metric. */
typedef struct mix_added_metric {
  mix_object object;
  const char *name;  /* interned */
  mix_tensor *value; /* retained */
} mix_added_metric;
/* Those of the layer, then those of its inner layers, in a new list. */
mix_list *mix_layer_added_metrics(mix_layer *layer);
/* Is it what a call of the layer or of an inner layer added to the losses? Else it is a weight's penalty. */
bool mix_layer_added_loss(const mix_layer *layer, const mix_tensor *loss);
/* Forgets what calls of the layer and its inner layers added. */
void mix_layer_clear_added(mix_layer *layer);

/* What a call may have besides tensors, masks and the training flag (mix_call_options). */
typedef struct mix_call_keywords {
  mix_list *argument_masks;
  mix_tensor *attention_mask;
  bool use_causal_mask, return_attention_scores, reverse;
  int by_name; /* of a text: so many of the last tensors were given by name, which orders layers in Keras 3 */
  json_t *form; /* all that an operation was given, with the places of its tensors; NULL: the tensors alone */
  /* Of layers around the called one: its results add no activity loss; the outputs of all steps of a
   * recurrent layer are in the reverse of the order in which they are computed. */
  bool no_activity_loss, steps_reversed;
} mix_call_keywords;

/* A symbolic call of a layer that no other layer made; the `history` of its results points to it. It retains
 * layer, inputs, arguments and masks. `outputs` are borrowed and only identify results. */
typedef struct mix_layer_call {
  mix_object object;
  uint64_t sequence; /* order of calls, process-wide */
  mix_layer *layer;
  mix_list *inputs; /* NULL for an input layer */
  bool inputs_are_list;
  /* each may be NULL; masks only if given explicitly */
  mix_list *arguments, *masks, *initial_state;
  mix_call_keywords keywords;
  mix_training training; /* as given */
  int output_count;
  mix_tensor **outputs; /* borrowed, never read through */
  mix_shape *shapes;    /* of the outputs */
} mix_layer_call;
extern const mix_class mix_layer_call_class;
/* Notes the tensors as the results of the call, which is their history from then on. */
bool mix_layer_call_add_results(mix_layer_call *call, mix_list *outputs);
/* The call that produced a symbolic tensor, or NULL. *output: which result it is. */
mix_layer_call *mix_tensor_history(const mix_tensor *tensor, int *output);

/* The policy that the layer computes by: of a map, the matched one, and its default before there is one. */
static inline mix_policy *mix_layer_own_policy(const mix_layer *layer) {
  if (layer->matched || !layer->policy->map) return layer->matched ? layer->matched : layer->policy;
  return mix_policy_map_default(layer->policy);
}
/* Looks the policy of a layer up that was given a map; `path` NULL: it has none, and the default applies.
 * False with the error recorded. */
bool mix_layer_match_policy(mix_layer *layer, const char *path);

/* map_keys.c: warns of keys of the layers' maps that no path matches, unless a layer has no path yet. */
void mix_warn_of_unmatched_keys(const mix_layer *top, const char *call);

/* input_spec.c: requires inputs of that rank with so many elements along the axis. */
mix_status mix_layer_require_size(mix_layer *layer, int rank, int axis, int64_t size);
/* Do the inputs of a call fit its specification? False with a ValueError. */
bool mix_layer_spec_holds(const mix_layer *layer, mix_list *inputs);

/* The full form of a call, for models that replay records; keywords may be NULL. Returns a list of results.
 */
mix_list *mix_layer_call_outputs(mix_layer *layer, mix_list *inputs, bool inputs_are_list,
                                 mix_list *arguments, mix_list *masks, mix_list *initial_state,
                                 mix_training training, const mix_call_keywords *keywords);

/* The inputs of a call as handles with their masks, for layers that pass them to inner layers. */
mix_list *mix_call_masked_inputs(const mix_call_args *args);

/* Observer of the layer calls of a thread. One function may be NULL. */
typedef struct mix_layer_observer {
  /* After each call that is not symbolic, with the cast inputs; inner layers come first. */
  void (*called)(void *context, const mix_layer *layer, const char *path, mix_list *inputs,
                 mix_list *results);
  void *context;
  /* Before each call with masks, given or of its tensors; NULL: its further arguments alone have them. With
   * this function calls leave the losses of the layers as they are. */
  void (*masked)(void *context, const mix_layer *layer, const mix_list *masks);
} mix_layer_observer;
/* Sets the thread's observer (NULL: none), which the caller owns. Returns the previous one, to be
 * restored. */
const mix_layer_observer *mix_layer_observer_set(const mix_layer_observer *observer);

/* A new generator, added to the layer (mix_layer_add_generator). Seed 0: a fresh seed. Borrowed. */
mix_generator *mix_layer_generator(mix_layer *layer, uint64_t seed);
/* The one of a layer whose kind names a seed. */
static inline mix_generator *mix_generator_of(const mix_layer *layer) {
  return mix_list_get(layer->generators, 0);
}
/* The generators of a layer and its inner layers, each once, in a new list. */
mix_list *mix_layer_generators(mix_layer *layer);

/* The states of a layer and its inner layers, in a new list. */
mix_list *mix_layer_states(mix_layer *layer);

/* The form of the call that runs, of an operation; NULL: it has none. Borrowed. */
const json_t *mix_call_form(void);
/* The mode of the layer's policy, "float8"; NULL: none. */
const char *mix_layer_quantization_mode(const mix_layer *layer);
/* The length of a float8 layer's histories. */
int64_t mix_layer_amax_history_length(const mix_layer *layer);
/* Quantizes a built layer whose kind can, and sets its policy. */
mix_status mix_layer_quantize(mix_layer *layer, const mix_quantization *quantization);

/* What the call that runs was given as steps_reversed. */
bool mix_call_steps_reversed(void);
/* True: weights start at zero on this thread, for a model whose weights are read
 * next. Returns the former value. */
bool mix_zero_weights_set(bool zero);

/* A name made unique in the process: "dense", "dense_1". Interned. */
const char *mix_unique_name(const char *prefix, bool from_one);
/* The snake case of a class name, in the three steps of Keras; written to `text`. */
const char *mix_snake_case(const char *name, bool private_prefix, char *text, size_t size);

/* The begin of every layer's options. */
typedef struct mix_layer_common {
  size_t size;
  MIX_LAYER_OPTIONS
} mix_layer_common;
/* A layer of a built-in class, not scoped, which takes `data`, its instance; NULL: zeroes. NULL with the
 * error recorded. */
mix_layer *mix_layer_make(const mix_layer_class *class, const mix_layer_common *common, void *data,
                          const char *call);
/* A layer of the library, scoped. */
mix_layer *mix_layer_of_kind(const mix_layer_kind *kind, const void *options);
/* The same from a config. */
mix_layer *mix_layer_read(const mix_layer_kind *kind, const json_t *config, const mix_semantics *semantics);
/* Defines mix_NAME_kind, mix_NAME_with and mix_NAME_defaults. */
#define MIX_LAYER_KIND(name, type, ...)                                                                      \
  MIX_LAYER_KIND_ONLY(name, type, __VA_ARGS__)                                                               \
  type mix_##name##_defaults(void) { return (type){.size = sizeof(type)}; }
#define MIX_LAYER_KIND_ONLY(name, type, ...)                                                                 \
  const mix_layer_kind mix_##name##_kind = {.call = #name, .options_size = sizeof(type), __VA_ARGS__};       \
  mix_layer *mix_##name##_with(const type *options) { return mix_layer_of_kind(&mix_##name##_kind, options); }
#define MIX_LAYER_CLASS(...) .class = {.size = sizeof(mix_layer_class), __VA_ARGS__}

/* {"name", "trainable", "dtype", own keys}; a new jansson reference. */
json_t *mix_layer_config_json(mix_layer *layer);
/* The name of an option that configs of another generation lack, with a value that is not its default; NULL:
 * there is none, or an error. Seeds do not count. */
const char *mix_layer_lost_option(const mix_layer *layer, const mix_semantics *other);
/* Is it the object of an operation of Keras 3, known or not? By its module, which legacy files lack: there
 * by the call and the config, which has no `trainable`. */
bool mix_object_is_operation(const json_t *object);
/* The library's class of that name, which is no operation; NULL: there is none. */
const mix_layer_kind *mix_layer_kind_named(const char *class_name);
/* The name of its class inside Keras: in summaries, legacy files and paths of weights. */
const char *mix_layer_keras_name(const mix_layer *layer);
/* A layer from {"class_name", "config", "registered_name"}, scoped: of a custom class (registry.h) or a
 * built-in one, else ValueError. `call` is named in messages. */
mix_layer *mix_layer_from_object(const json_t *object, const mix_semantics *semantics, const char *call);
/* Reads the layers that options of layers hold, such as that of a TimeDistributed, which may be a model. */
typedef struct mix_inner_layer_reader {
  mix_layer *(*read)(void *context, const json_t *object);
  void *context;
} mix_inner_layer_reader;
/* The thread's reader until it is set back, borrowed; NULL: mix_layer_from_object. Returns the former. */
const mix_inner_layer_reader *mix_inner_layer_reader_set(const mix_inner_layer_reader *reader);
/* A layer by that reader, scoped. */
mix_layer *mix_inner_layer_read(const json_t *object, const char *call);
/* A layer of a class of the user from a config, scoped. */
mix_layer *mix_layer_read_custom(const mix_layer_class *class, const json_t *config,
                                 const mix_semantics *semantics);
/* A new layer of the class and config of another, with new weights; scoped. Not of models. */
mix_layer *mix_layer_copy(mix_layer *layer);
/* {"module", "class_name", "config", "registered_name"}, which takes the config; NULL gives NULL. */
json_t *mix_layer_object_json(const mix_layer *layer, json_t *config);

/* InputLayer: batch shape and dtype. */
typedef struct mix_input_layer_data {
  mix_shape batch_shape;
  mix_dtype dtype;
} mix_input_layer_data;
