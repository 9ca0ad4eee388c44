/* Models from files of Keras; models as JSON, as Keras's to_json and model_from_json; clones of models. */
#ifndef MIXTAPE_SAVING_H
#define MIXTAPE_SAVING_H

#include <mixtape/model.h>
#include <mixtape/policy_map.h>

MIX_BEGIN_DECLARATIONS

/* The structure of the model, with its layers' options and policies but without weights, as Keras's
 * model.to_json() of the model's generation writes it (keras3: with the arguments of compile). The string
 * lives until the next call with the same model. NotImplementedError for a subclassed model: its structure is
 * the program. */
MIX_API const char *mix_model_to_json(mix_model *model);

typedef struct mix_from_json_options {
  size_t size;
  const char *json; /* required */
  /* Of model and layers; NULL: the generation that wrote the text. TensorFlow 2.4 wrote the same version as
   * 2.3 ("2.4.0"), which counts as experimental. */
  const mix_semantics *semantics;
  /* Keras's custom_objects: classes, ended by NULL, that come before those of mix_register_layer. They need
   * to live until the call returns; their functions as long as the model. NULL: none */
  const mix_layer_class *const *custom_layers;
  bool no_compile; /* do not compile the model, even if the text has the arguments */
  /* Layers that compute in float32 though the text has them in 16 bits, with all that is in them: names, of
   * layers in models in the model paths ("outer/inner"), ended by NULL. ValueError for a name that no layer
   * has. NULL: none */
  const char *const *float32_layers;
} mix_from_json_options;
/* A model with new weights from text of mix_model_to_json or of Keras, of any generation, or from the
 * config.json of a .keras archive. It is compiled if the text has a compile config. A functional model's own
 * policy, which decides on loss scaling, is mixed_float16 if that of any layer is, and else the global one.
 * ValueError, which names the layer, for classes that are neither built in nor known (mix_register_layer),
 * for calls that form a circle, and for other text that does not describe a model. */
MIX_API mix_model *mix_model_from_json_with(const mix_from_json_options *options);
#ifndef __cplusplus
/* mix_model_from_json(text, .no_compile = true) */
#define mix_model_from_json(...)                                                                             \
  mix_model_from_json_with(MIX_ARGUMENTS("mix_model_from_json", "json", #__VA_ARGS__, mix_from_json_options, \
                                         .json = __VA_ARGS__))
#endif

typedef struct mix_load_options {
  size_t size;
  const char *path;               /* required */
  const mix_semantics *semantics; /* NULL: those of the generation that wrote the file */
  /* As in mix_from_json_options. */
  const mix_layer_class *const *custom_layers;
  bool no_compile; /* do not compile the model, even if the file has the arguments */
  /* For the layers that the file has in float32, also those in models and wrappers; NULL: they stay. If it
   * computes in 16 bits, float32 Activations follow the outputs, named after the layers before them with
   * "_float32" behind. */
  const char *policy;
  /* As in mix_from_json_options; also of layers that get `policy`. */
  const char *const *float32_layers;
  /* Parts of the arguments of compile that are left out, because others follow by mix_model_compile: the file
   * may then have objects there that nobody knows. The weights of losses stay, if they are numbers and as
   * many as the outputs. Without its optimizer, whose state is not read either, the model has an rmsprop. */
  bool no_loss, no_optimizer, no_metrics;
  /* A map of mix_policy_map_new for all layers whose policy is of floating dtypes, also those in models and
   * wrappers, instead of their policies and of `policy` (give one); outputs stay as the layers compute them.
   * Layers of a file have their own name as path (policy_map.h), those that a layer makes its name before
   * theirs. Keys that no layer has are a warning. NULL: none */
  mix_policy *policy_map;
  /* Every weight is copied, so that the file may be written over, as in mix_load_weights_options. */
  bool copy_weights;
} mix_load_options;
/* Keras's load_model: a model with its weights, and if it was compiled, with its loss, metrics and optimizer
 * and the optimizer's state. Reads what Keras 3 and tf_keras saved as .keras, and whole models in HDF5 (.h5),
 * also those of TensorFlow 2.1 to 2.10; the content of the file tells which. A model with a layer under
 * mixed_float16 has that policy as its own, so that compile scales the loss; layers keep their own policies.
 * Whatever the file says, no other file is opened, no code of it runs, and memory stays in proportion to its
 * size. A model in ONNX (docs/manual/onnx.md) is read as layers and operations of Keras 3, not compiled; its
 * weights may lie in other files of its folder. FormatError for damaged files; ValueError for classes that
 * are not known (mix_register_layer) and weights that do not fit, NotImplementedError for Lambda layers,
 * whose code is Python, and operators that nothing here stands for; a state of another optimizer is a
 * warning. */
MIX_API mix_model *mix_model_load_with(const mix_load_options *options);
#ifndef __cplusplus
/* mix_model_load("model.keras", .no_compile = true) */
#define mix_model_load(...)                                                                                  \
  mix_model_load_with(                                                                                       \
      MIX_ARGUMENTS("mix_model_load", "path", #__VA_ARGS__, mix_load_options, .path = __VA_ARGS__))
#endif

typedef struct mix_save_options {
  size_t size;
  const char *path;  /* required: ends in .keras, in .h5 or .hdf5, or in /, a folder of KerasHub */
  bool no_optimizer; /* leave out the arguments of compile and the optimizer's state */
  bool no_overwrite; /* IOError if the file exists */
  /* The generation that the file is for; NULL: the model's. experimental: as tf_keras */
  const mix_semantics *semantics;
} mix_save_options;
/* Keras's model.save: structure, weights, and of a compiled model the arguments of compile and the
 * optimizer's state, as the model's generation writes them (experimental: as tf_keras), so that Keras of that
 * generation loads the file, under its default policy too. A loss scale is kept where that generation keeps
 * it (keras3). .h5 is the legacy form: Keras 3 itself loads such a file but cannot go on with its optimizer.
 * `.semantics` writes the file for another generation: the same layers, weights, compile arguments and
 * optimizer state, in its form. NotImplementedError, which names the layer, for a layer or an option that it
 * lacks, and for an activation or a mask that it treats otherwise; a warning for optimizer state that its
 * files do not keep, and for what trains there by another rule.
 * The file is replaced whole or not at all, and keeps its mode. A folder (docs/manual/kerashub.md) gets its
 * files one by one, weights first and no arguments of compile; of a backbone, a task that it had goes.
 * ValueError for another name, NotImplementedError for a subclassed model, IOError if the file cannot be
 * written. Reads the model. */
MIX_API mix_status mix_model_save_with(mix_model *model, const mix_save_options *options);
#ifndef __cplusplus
/* mix_model_save(model, "model.keras", .semantics = mix_semantics_named("keras3")) */
#define mix_model_save(model, ...)                                                                           \
  mix_model_save_with(                                                                                       \
      model, MIX_ARGUMENTS("mix_model_save", "path", #__VA_ARGS__, mix_save_options, .path = __VA_ARGS__))
#endif

typedef struct mix_clone_options {
  size_t size;
  mix_model *model; /* required */
  /* Makes the layer that stands for `layer` in the clone, or fails; a layer may be returned as it is, so that
   * both models share it. Not called for input layers. NULL: mix_layer_clone makes each. */
  mix_layer *(*clone_function)(void *context, mix_layer *layer);
  void *context;
  /* Functional models: a symbolic tensor, or a list of them, instead of new inputs. */
  void *inputs;
} mix_clone_options;
/* Keras's clone_model: a model of the same structure, from layers that are made from the configs of the old
 * ones, with weights newly initialised. Names stay. It is not compiled. NotImplementedError for a subclassed
 * model. */
MIX_API mix_model *mix_model_clone_with(const mix_clone_options *options);
#ifndef __cplusplus
#define mix_model_clone(...)                                                                                 \
  mix_model_clone_with(                                                                                      \
      MIX_ARGUMENTS("mix_model_clone", "model", #__VA_ARGS__, mix_clone_options, .model = __VA_ARGS__))
#endif
/* A layer of the class and config of another, also of a model, with new weights. What clone_function returns
 * for the layers that it does not replace. */
MIX_API mix_layer *mix_layer_clone(mix_layer *layer);

MIX_END_DECLARATIONS
#endif
