/* Models as JSON, as Keras writes them (docs/spec/keras.md, 17.1). */
#include "saving/model_json.h"

#include "base/error.h"
#include "base/float_modes.h"
#include "optim/optimizer.h"
#include <stdio.h>
#include <string.h>

/* ---- layers that stand at several places ---- */

/* The layers of the text so far, with their objects. */
typedef struct json_writer {
  mix_list *layers;   /* retained, so that no other gets the address of one */
  mix_key_map places; /* of the layers among them */
  json_t *objects;
  int shared;
  bool models_only; /* of layers in layers that are no models nothing is added */
} json_writer;

static json_writer new_writer(bool models_only) {
  return (json_writer){.layers = mix_list_new(0, NULL), .objects = json_array(), .models_only = models_only};
}

static void end_writer(json_writer *writer) {
  json_decref(writer->objects);
  mix_key_map_clear(&writer->places);
}

/* One number for all objects of a layer, as Keras reads it. It writes the number only where it has seen the
 * layer before, and makes two layers of it. */
static void note_object(json_writer *writer, const mix_layer *layer, json_t *object) {
  const int before = mix_key_map_get(&writer->places, mix_address_key(layer));
  if (before < 0) {
    mix_key_map_set(&writer->places, mix_address_key(layer), mix_list_count(writer->layers));
    mix_list_append(writer->layers, (void *)layer);
    mix_json_append(writer->objects, json_incref(object));
    return;
  }
  json_t *first = json_array_get(writer->objects, (size_t)before);
  if (!json_object_get(first, "shared_object_id"))
    mix_json_set(first, "shared_object_id", json_integer(++writer->shared));
  mix_json_set(object, "shared_object_id", json_incref(json_object_get(first, "shared_object_id")));
}

static json_t *new_json(json_writer *writer, mix_layer *layer, bool open_batch);
static void put_model(json_writer *writer, mix_layer *model, json_t *place, bool open_batch);
static json_t *layer_json(json_writer *writer, mix_layer *layer, bool open_batch);

/* ---- functional models ---- */

static bool inputs_are_layers(const mix_layer *model, const mix_functional *graph) {
  for (int i = 0; i < graph->input_count; i++)
    if (mix_tensor_history(graph->inputs[i], NULL)->inputs)
      return mix_fail_unsupported(
          "model_to_json: input %d of '%s' is the result of a layer; expected models that begin with "
          "mix_input",
          i, model->name);
  return true;
}

/* Names tell the calls apart. */
static bool names_are_unique(const mix_layer *model) {
  mix_key_map names = {0};
  for (int i = 0; i < mix_list_count(model->layers) && !mix_failed(); i++) {
    const char *name = ((const mix_layer *)mix_list_items(model->layers)[i])->name;
    if (mix_key_map_get(&names, mix_address_key(name)) >= 0)
      mix_fail_value("model_to_json: two layers of '%s' are named '%s'; expected unique names", model->name,
                     name);
    else
      mix_key_map_set(&names, mix_address_key(name), i);
  }
  mix_key_map_clear(&names);
  return !mix_failed();
}

static json_t *functional_config(json_writer *writer, mix_layer *model) {
  const mix_functional *graph = mix_layer_data(model);
  const bool single = model->semantics->node_objects;
  if (!inputs_are_layers(model, graph) || !names_are_unique(model)) return NULL;
  json_t *layers = json_array();
  for (int i = 0; i < mix_list_count(model->layers) && !mix_failed(); i++) {
    mix_layer *layer = mix_list_get(model->layers, i);
    json_t *object = layer_json(writer, layer, false);
    if (!object) break;
    mix_put_operand_shapes(graph, layer, object);
    mix_json_set(object, "name", json_string(layer->name));
    mix_json_set(object, "inbound_nodes", mix_functional_calls_json(graph, layer));
    mix_json_append(layers, object);
  }
  return json_pack("{s:s,s:b,s:o,s:o,s:o}", "name", model->name, "trainable", model->trainable, "layers",
                   layers, "input_layers", mix_functional_ends_json(graph, false, single), "output_layers",
                   mix_functional_ends_json(graph, true, single));
}

/* ---- sequential models ---- */

/* The input layer that Keras puts in front of a model that was built without one. */
static json_t *implied_input_json(const mix_layer *model, mix_shape shape) {
  const mix_semantics *rules = model->semantics;
  const mix_layer *first = mix_sequential_first(model);
  char name[256] = "input_layer";
  if (rules->input_named_by_layer) snprintf(name, sizeof name, "%.240s_input", first->name);
  mix_dtype dtype = ((const mix_sequential_data *)model->data)->dtype;
  if (!rules->input_named_by_layer) dtype = first->compute;
  mix_input_options options = {
      .size = sizeof options, .name = name, .dtype = mix_dtype_name(dtype), .semantics = rules};
  options.shape.rank = shape.rank - 1;
  memcpy(options.shape.dims, shape.dims + 1, (size_t)options.shape.rank * sizeof *shape.dims);
  mix_tensor *input = mix_input_with(&options);
  return input ? mix_layer_to_json(mix_tensor_history(input, NULL)->layer, false) : NULL;
}

static json_t *sequential_layers(json_writer *writer, mix_layer *model, mix_shape shape) {
  json_t *layers = json_array();
  bool implied = shape.rank > 0 && !mix_sequential_input_layer(model);
  if (implied) mix_json_append(layers, implied_input_json(model, shape));
  for (int i = 0; i < mix_list_count(model->layers) && !mix_failed(); i++)
    mix_json_append(layers, layer_json(writer, mix_list_get(model->layers, i), implied));
  return layers;
}

static json_t *sequential_config(json_writer *writer, mix_layer *model) {
  mix_shape shape = mix_sequential_shape(model);
  json_t *config = json_pack("{s:s}", "name", model->name);
  if (model->semantics->sequential_saves_policy) {
    mix_json_set(config, "trainable", json_boolean(model->trainable));
    mix_json_set(config, "dtype", mix_policy_to_json(model->policy, model->semantics));
  }
  mix_json_set(config, "layers", sequential_layers(writer, model, shape));
  if (model->semantics->sequential_saves_policy && shape.rank > 0)
    mix_json_set(config, "build_input_shape", mix_shape_json(shape, false));
  return config;
}

/* ---- layers ---- */

/* Models in the config are written as they now are. */
static json_t *class_object(json_writer *writer, const mix_layer *model) {
  json_t *object = mix_class_object_json(model), *value;
  const char *key;
  json_object_foreach(json_object_get(object, "config"), key, value) {
    mix_layer *inner = mix_class_inner_model(model, value);
    if (inner) put_model(writer, inner, value, false);
  }
  return object;
}

static json_t *object_of(json_writer *writer, mix_layer *layer) {
  if (layer->origin) return class_object(writer, layer);
  if (!mix_layer_is_structured(layer)) return mix_layer_object_json(layer, mix_layer_config_json(layer));
  const mix_semantics *rules = layer->semantics;
  const bool functional = mix_layer_is_functional(layer);
  const char *module = functional ? rules->functional_module : "keras";
  json_t *config = functional ? functional_config(writer, layer) : sequential_config(writer, layer);
  json_t *object = mix_json_object(rules->objects_have_module ? module : NULL, layer->class.name, config);
  if (object && functional && rules->objects_have_module)
    mix_json_set(object, "registered_name", json_string("Functional"));
  return object;
}

/* Where the config of a layer has the object of an inner one, by its attribute; NULL: nowhere. `item`: of the
 * inner layers in a list. */
static json_t *inner_object(const mix_layer *layer, const json_t *config, const char *attribute, int *item) {
  const bool keeps = layer->semantics->bidirectional_keeps_layer; /* and does not build it */
  if (!strcmp(attribute, "cells/"))
    return json_array_get(json_object_get(config, "cells"), (size_t)(*item)++);
  if (!strcmp(attribute, "forward_layer")) return keeps ? NULL : json_object_get(config, "layer");
  if (!strcmp(attribute, "backward_layer") && keeps) return NULL;
  return json_object_get(config, attribute);
}

/* The configs of layers know nothing of models. */
static void put_model(json_writer *writer, mix_layer *model, json_t *place, bool open_batch) {
  json_t *object = new_json(writer, model, open_batch);
  if (object) json_object_clear(place);
  if (object) mix_json_update(place, object);
  json_decref(object);
}

static void complete_inner_objects(json_writer *writer, mix_layer *layer, json_t *object, bool open_batch) {
  int item = 0;
  for (int i = 0; layer->kind && i < mix_list_count(layer->layers); i++) {
    mix_layer *inner = mix_list_items(layer->layers)[i];
    json_t *place = inner->attribute
                        ? inner_object(layer, json_object_get(object, "config"), inner->attribute, &item)
                        : NULL;
    if (!json_is_object(place)) continue;
    if (mix_layer_is_structured(inner)) {
      put_model(writer, inner, place, open_batch);
    } else {
      complete_inner_objects(writer, inner, place, open_batch);
      json_t *config = writer->models_only ? NULL : mix_build_config_json(inner, open_batch);
      if (config) mix_json_set(place, "build_config", config);
    }
    if (!writer->models_only) note_object(writer, inner, place);
  }
}

static json_t *new_json(json_writer *writer, mix_layer *layer, bool open_batch) {
  json_t *object = object_of(writer, layer),
         *config = object && !mix_failed() ? mix_build_config_json(layer, open_batch) : NULL;
  if (config) mix_json_set(object, "build_config", config);
  if (object) complete_inner_objects(writer, layer, object, open_batch);
  if (object && mix_layer_is_structured(layer) && layer->semantics->compile_config_always)
    mix_json_set(object, "compile_config", json_object());
  return mix_json_whole(object);
}

static json_t *layer_json(json_writer *writer, mix_layer *layer, bool open_batch) {
  json_t *object = new_json(writer, layer, open_batch);
  if (object) note_object(writer, layer, object);
  return object;
}

json_t *mix_layer_to_json(mix_layer *layer, bool open_batch) {
  json_writer writer = new_writer(false);
  json_t *object = layer_json(&writer, layer, open_batch);
  end_writer(&writer);
  mix_share_policy_maps(object);
  return mix_json_whole(object);
}

json_t *mix_layer_object_with_models(mix_layer *layer) {
  if (mix_layer_is_structured(layer)) return mix_layer_to_json(layer, false);
  json_writer writer = new_writer(true);
  json_t *object = object_of(&writer, layer);
  if (object) complete_inner_objects(&writer, layer, object, false);
  end_writer(&writer);
  return mix_json_whole(object);
}

/* ---- models ---- */

json_t *mix_model_archive_json(mix_model *model) {
  json_t *object = mix_layer_to_json(model->layer, false);
  json_t *compiled = object && model->state ? mix_compile_config_json(model) : NULL;
  if (compiled) mix_json_set(object, "compile_config", compiled);
  return mix_json_whole(object);
}

/* What to_json gives. */
static json_t *text_json(mix_model *model) {
  const mix_semantics *rules = model->semantics;
  if (!rules->json_has_version) return mix_model_archive_json(model);
  json_t *object = mix_layer_to_json(model->layer, false);
  if (!object) return NULL;
  json_t *text = json_pack("{s:s,s:O,s:s,s:s}", "class_name", model->layer->class.name, "config",
                           json_object_get(object, "config"), "keras_version", rules->keras_version,
                           "backend", "tensorflow");
  json_decref(object);
  return mix_json_whole(text);
}

bool mix_model_has_structure(const mix_model *model, const char *call) {
  if (model->kind != MIX_SUBCLASSED) return true;
  return mix_fail_unsupported(
      "%s: '%s' is a subclassed model, whose structure is its program; save its weights, or make the "
      "model of mix_model_new or mix_sequential",
      call, model->layer->name);
}

const char *mix_model_to_json(mix_model *model) {
  MIX_OWN_FLOAT_MODES;
  if (!mix_model_given(model, "model_to_json") || !mix_model_has_structure(model, "model_to_json"))
    return NULL;
  char *text = NULL;
  MIX_MODEL_USE(model, MIX_READS_MODEL, "model_to_json")
  MIX_SCOPE {
    json_t *json = text_json(model);
    text = mix_json_python_text(json);
    json_decref(json);
  }
  return text ? mix_model_keep_text(&model->json, text) : NULL;
}

/* ---- of files ---- */

/* With the optimizer as it trains: Keras reads its state into no other. What compile wrapped because of the
 * policy would be missing where another policy is the global one. */
json_t *mix_model_saved_json(mix_model *model, bool compiled) {
  json_t *object = compiled ? mix_model_archive_json(model) : mix_layer_to_json(model->layer, false);
  const mix_compiled_state *state = model->state;
  if (!object || !compiled || state->optimizer == state->given_optimizer) return object;
  if (mix_json_set(json_object_get(object, "compile_config"), "optimizer",
                   mix_optimizer_to_json(state->optimizer)))
    return object;
  json_decref(object);
  return NULL;
}
