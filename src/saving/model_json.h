/* Models as JSON values, both ways: what to_json, archives and clones share. */
#pragma once

#include "base/json.h"
#include "model/model.h"
#include <mixtape/saving.h>

/* form.c: nested lists and objects in which mix_operand_form stands for tensors, by their numbers. A copy of
 * such a structure in which `item` replaces what it knows: a new reference, or NULL without an error to keep
 * a value, and to go into a list or an object. Objects are walked by sorted names, as Keras flattens them,
 * and keep their order. NULL with the error recorded. */
typedef json_t *mix_form_item(void *context, const json_t *value);
json_t *mix_form_map(const json_t *value, mix_form_item *item, void *context);
/* The form with what `leaf` makes of each tensor. */
typedef json_t *mix_form_leaf(void *context, int index);
json_t *mix_form_fill(const json_t *form, mix_form_leaf *leaf, void *context);

/* build_config.c: the shapes that a layer was built for, the member build_config of its object; NULL: it has
 * none. */
json_t *mix_build_config_json(mix_layer *layer, bool open_batch);
/* An operation of tf_keras is built for the shapes of its first argument, also of constants in it: changes
 * the build_config of its object. */
void mix_put_operand_shapes(const mix_functional *graph, const mix_layer *layer, json_t *object);

/* The object of a layer or of a model in it: module, class_name, config, registered_name, build_config.
 * open_batch: the batch size in its shapes is that of data, so null. */
json_t *mix_layer_to_json(mix_layer *layer, bool open_batch);
/* The object of a layer alone, with models in it, which says of no layer for what shapes it was built. */
json_t *mix_layer_object_with_models(mix_layer *layer);
/* What an archive has: the object of the model, with its compile config. NULL with the error recorded. */
json_t *mix_model_archive_json(mix_model *model);
/* Fails for a subclassed model, whose structure is its program. */
bool mix_model_has_structure(const mix_model *model, const char *call);
/* What files of whole models have, with the optimizer as it trains. NULL with the error
 * recorded. */
json_t *mix_model_saved_json(mix_model *model, bool compiled);
/* metadata.c: what metadata.json says. NULL with the error recorded. */
json_t *mix_metadata_json(const mix_semantics *rules);
/* saved_twin.c: a model of another generation, with the same layers and weights, and if compiled with the
 * arguments of compile and the optimizer's state; scoped. Warns of what that generation lacks, does by
 * another rule in training, or does not read from a file like `path`. NULL with the error recorded, also if
 * it cannot have the model. */
mix_model *mix_model_in_generation(mix_model *model, const mix_semantics *semantics, const char *path,
                                   bool compiled, const char *call);
/* The same where the generation's rules are asked for, whatever they change: without a check or a warning. */
mix_model *mix_model_twin(mix_model *model, const mix_semantics *semantics, bool compiled, const char *call);
/* A scoped model of `object`, which mix_model_saved_json gave of the model and in which policies were changed
 * since, with its weights. NULL with the error recorded. */
mix_model *mix_model_changed(mix_model *model, const json_t *object, const char *call);
/* model_from_json.c: the generation that wrote the object of a model; the current one where nothing tells. */
const mix_semantics *mix_json_generation(const json_t *object);
/* generation_check.c: has the generation all layers and options of the model, which compute there as here?
 * Warns of what trains, or passes masks, by another rule. False with the error recorded. */
bool mix_check_generation(mix_model *model, const mix_semantics *semantics, bool compiled, const char *call);
/* Warns if the model's Keras does not read the optimizer's state from a file like `path`, which has it. */
void mix_warn_of_lost_state(const mix_model *model, const char *path, const char *call);
/* The generation whose files are written for one; NULL: that of the model. With the error recorded for what
 * is none. */
static inline const mix_semantics *mix_file_semantics(const mix_model *model, const mix_semantics *given) {
  const mix_semantics *semantics = given ? mix_semantics_or_current(given) : model->semantics;
  return semantics->saved_as ? semantics->saved_as : semantics;
}
/* legacy_json.c: what legacy files say of an archive's object, and of its compile config. NULL with the error
 * recorded. */
json_t *mix_legacy_model_json(const json_t *object);
json_t *mix_legacy_training_json(json_t *compiled, const mix_semantics *semantics);

/* shared_policies.c: numbers what is one object in Keras: equal maps of policies, and the policies in them.
 * False with the error recorded. */
bool mix_share_policy_maps(json_t *object);

/* calls_to_json.c: the calls of a layer of a functional model (inbound_nodes), none for an input layer; and
 * the places of its inputs or outputs, of which a single one may stand alone. */
json_t *mix_functional_calls_json(const mix_functional *graph, const mix_layer *layer);
json_t *mix_functional_ends_json(const mix_functional *graph, bool outputs, bool single);
/* Is it an operation of tf_keras, whose calls have a form? */
static inline bool mix_call_has_form(const mix_layer *layer) {
  return layer->kind && layer->kind->call_has_form;
}

/* What the reading of one text shares. */
typedef struct mix_json_reader {
  const mix_semantics *semantics; /* of what is made */
  const mix_semantics *written;   /* of the generation that wrote the text */
  json_t *shared;                 /* shared_object_id -> index in shared_layers */
  json_t *unmarked;               /* "Dense dense" -> the object without an id, and its index there too */
  mix_list *shared_layers;
  bool mixed_float16; /* a layer with that policy was read */
  bool of_file;       /* that policy is then the model's, whatever its own config says */
  bool placed;        /* the error's message says where */
  const char *call;   /* for messages */
  int depth;          /* models around the present layer */
  char path[256];     /* of the present layer, for messages: "config.layers[3]" */
  /* A layer, or a model as a layer: item `index` of the present model's layers; borrowed from the scope. */
  mix_layer *(*read_layer)(struct mix_json_reader *reader, const json_t *object, int index);
} mix_json_reader;
/* The layers of a model's config: in it, or itself where that is their list, as in old sequential models.
 * NULL: none. */
static inline json_t *mix_json_layers(const json_t *config) {
  return json_is_array(config) ? (json_t *)config : json_object_get(config, "layers");
}
/* input_from_json.c: the symbolic tensor of an InputLayer's object. */
mix_tensor *mix_reader_input(mix_json_reader *reader, const json_t *object);
mix_model *mix_reader_functional(mix_json_reader *reader, const json_t *config);
/* model_class_json.c: a model of a registered class, or of one of KerasHub. *is_model: is it of such a class,
 * or has an error been recorded? */
mix_model *mix_reader_class(mix_json_reader *reader, const json_t *object, bool *is_model);
/* The object of such a model as it now is, without models in it; a new reference. */
json_t *mix_class_object_json(const mix_layer *model);
/* The model in it whose object stands there in its config; NULL: none. */
mix_layer *mix_class_inner_model(const mix_layer *model, const json_t *object);

/* tf_operation_node.c: the calls of TensorFlow's functions (nn/layers/operations/tf_operation.c). What a node
 * of the text says of one; the form is the caller's. */
typedef struct mix_tf_operation_node {
  mix_tensor *(*find)(void *context, const json_t *reference); /* NULL without an error: not made yet */
  void *context;
  json_t *form;
  mix_list *inputs, *arguments; /* arguments: NULL for none */
  bool inputs_are_list;
  bool waits;
} mix_tf_operation_node;
/* False with the error recorded, or where a tensor is not made yet. */
bool mix_read_operation_node(const json_t *node, const char *layer, mix_tf_operation_node *read);
/* The node back; `reference` makes [layer, call, result] of a tensor's number. */
json_t *mix_tf_operation_node_json(const json_t *form, mix_form_leaf *reference, void *context);
/* The shapes of the first argument; `shape` makes that of a tensor's number. */
json_t *mix_tf_operation_shapes_json(const json_t *form, mix_form_leaf *shape, void *context);

/* A model of an object with config, keras_version and compile_config (mix_model_from_json_with); scoped.
 * of_file: loss scaling as if the policy of the layers were the global one. */
mix_model *mix_model_from_object(const json_t *object, const mix_from_json_options *options, bool of_file);

/* A layer of an object that mix_layer_to_json wrote, also a model and one with models in it; scoped. `call`
 * is named in messages. */
mix_layer *mix_layer_from_saved(const json_t *object, const mix_semantics *semantics, const char *call);

/* override_policy.c: changes the object of a model so that its float32 layers have another policy, also those
 * in models and wrappers. Where that computes in 16 bits, a float32 Activation follows each output. */
bool mix_override_policy(json_t *object, const char *policy, const mix_semantics *semantics);
/* The same by a map of policies, of all layers with a floating policy, and without Activations. */
bool mix_override_policies(json_t *object, mix_policy *map, const mix_semantics *semantics);
/* quantized_map.c: does a key of the map, or its default, quantize? */
bool mix_map_quantizes(const mix_policy *map);
/* A scoped map of the policies from which those of the map are made. */
mix_policy *mix_map_of_sources(const mix_policy *map);
/* A scoped model of the same structure and weights under the map, whose optimizer begins anew. */
mix_model *mix_model_under_map(mix_model *model, mix_policy *map, const mix_layer_class *const *classes);
/* Changes it so that layers with a policy of 16 bits have float32 (mix_from_json_options). */
bool mix_keep_float32(json_t *object, const char *const *layers, const char *call);
/* False with an error: the model that was made has no such layer. Before, classes of KerasHub have none. */
bool mix_check_kept(const mix_layer *model, const char *const *layers, const char *call);

/* compile_config.c */
/* The entries of a compile config, the optimizer included, and back: compiles the model. `written`: by which
 * generation. */
json_t *mix_compile_config_json(mix_model *model);
bool mix_model_compile_json(mix_model *model, const json_t *config, const mix_semantics *written);
