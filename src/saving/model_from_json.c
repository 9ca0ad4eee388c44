/* Models from JSON of any generation. */
#include "saving/model_json.h"

#include "base/error.h"
#include "base/float_modes.h"
#include "nn/layer/registry.h"
#include "nn/policy/quantization.h"
#include <stdio.h>
#include <string.h>

enum { MAX_DEPTH = 100 }; /* of models in models */

/* ---- which generation wrote it ---- */

static bool is_version(const json_t *object, const char *wanted) {
  const char *text = json_string_value(json_object_get(object, "keras_version"));
  return text && !strcmp(text, wanted);
}

static bool begins(const json_t *object, const char *key, const char *prefix) {
  const char *text = json_string_value(json_object_get(object, key));
  return text && !strncmp(text, prefix, strlen(prefix));
}

static const mix_semantics *generation_of(const json_t *object);

static const mix_semantics *generation_of_layers(const json_t *config) {
  const json_t *layers = mix_json_layers(config);
  const mix_semantics *found = NULL;
  for (size_t i = 0; i < json_array_size(layers) && !found; i++)
    found = generation_of(json_array_get(layers, i));
  return found;
}

/* The semantics of the generation that wrote the object of a model; NULL: nothing tells. */
static const mix_semantics *generation_of(const json_t *object) {
  const json_t *config = json_object_get(object, "config");
  if (begins(object, "keras_version", "3") || begins(object, "module", "keras.src.models") ||
      begins(object, "registered_name", "keras_hub>"))
    return &mix_semantics_keras3;
  if (is_version(object, "2.2.4-tf") || is_version(object, "2.3.0-tf") || is_version(object, "2.4.0"))
    return &mix_semantics_experimental; /* of TensorFlow 2.1, 2.2 and 2.3; 2.4 has that of 2.3 */
  if (begins(object, "keras_version", "2") || begins(object, "module", "tf_keras") ||
      begins(object, "module", "keras.src.engine"))
    return &mix_semantics_tf_keras;
  if (json_object_get(config, "batch_input_shape") ||
      mix_json_is_class(json_object_get(config, "dtype"), "Policy"))
    return &mix_semantics_tf_keras;
  if (json_object_get(config, "batch_shape") ||
      mix_json_is_class(json_object_get(config, "dtype"), "DTypePolicy"))
    return &mix_semantics_keras3;
  return generation_of_layers(config);
}

const mix_semantics *mix_json_generation(const json_t *object) {
  return mix_semantics_or_current(generation_of(object));
}

/* ---- layers ---- */

static mix_model *read_sequential(mix_json_reader *reader, const json_t *config);

static mix_model *read_model(mix_json_reader *reader, const json_t *object, bool *is_model) {
  const json_t *config = json_object_get(object, "config");
  *is_model = true;
  if (mix_json_is_class(object, "Sequential")) return read_sequential(reader, config);
  if (mix_json_is_class(object, "Functional") || mix_json_is_class(object, "Model"))
    return mix_reader_functional(reader, config);
  return mix_reader_class(reader, object, is_model);
}

/* A layer that was written before under the same id, in another model; NULL: none. */
static mix_layer *shared_layer(mix_json_reader *reader, const char *id) {
  const json_t *index = json_object_get(reader->shared, id);
  return index ? mix_list_get(reader->shared_layers, (int)json_integer_value(index)) : NULL;
}

static void share_layer(mix_json_reader *reader, const char *id, mix_layer *layer) {
  mix_json_set(reader->shared, id, json_integer(mix_list_count(reader->shared_layers)));
  mix_list_append(reader->shared_layers, layer);
}

/* ---- layers whose first object has no id ---- */

/* Python notes a layer that it meets again in an object of which it has written a copy before, so that an id
 * without an earlier object means the layer of the same config that stands earlier. */
static bool same_json(const json_t *a, const json_t *b);

static bool is_noted_later(const char *key) {
  return !strcmp(key, "shared_object_id") || !strcmp(key, "build_config");
}

static size_t count_keys(const json_t *object) {
  return json_object_size(object) - (json_object_get(object, "shared_object_id") != NULL) -
         (json_object_get(object, "build_config") != NULL);
}

static bool same_object(const json_t *a, const json_t *b) {
  const char *key;
  json_t *value;
  if (count_keys(a) != count_keys(b)) return false;
  json_object_foreach((json_t *)a, key, value) {
    if (!is_noted_later(key) && !same_json(value, json_object_get(b, key))) return false;
  }
  return true;
}

static bool same_json(const json_t *a, const json_t *b) {
  if (json_is_object(a) && json_is_object(b)) return same_object(a, b);
  if (!json_is_array(a) || !json_is_array(b)) return json_equal(a, b);
  bool same = json_array_size(a) == json_array_size(b);
  for (size_t i = 0; same && i < json_array_size(a); i++)
    same = same_json(json_array_get(a, i), json_array_get(b, i));
  return same;
}

/* "Dense dense", in the scope; NULL: it has no name. */
static const char *title_of(const json_t *object) {
  const char *class_name = json_string_value(json_object_get(object, "class_name"));
  const char *name = json_string_value(json_object_get(json_object_get(object, "config"), "name"));
  if (!class_name || !name) return NULL;
  const size_t size = strlen(class_name) + strlen(name) + 2;
  char *title = mix_scoped_memory(size);
  if (title) snprintf(title, size, "%s %s", class_name, name);
  return title;
}

/* A second one of that title is told from the first by nothing, so that neither is found. */
static void note_unmarked(mix_json_reader *reader, const json_t *object, mix_layer *layer) {
  const char *title = title_of(object);
  if (!title) return;
  json_t *entry = json_object_get(reader->unmarked, title);
  if (entry) {
    json_object_clear(entry);
    return;
  }
  mix_json_set(
      reader->unmarked, title,
      json_pack("{s:O,s:i}", "object", (json_t *)object, "index", mix_list_count(reader->shared_layers)));
  mix_list_append(reader->shared_layers, layer);
}

static mix_layer *unmarked_layer(const mix_json_reader *reader, const json_t *object) {
  const char *title = title_of(object);
  const json_t *entry = title ? json_object_get(reader->unmarked, title) : NULL;
  const json_t *config = json_object_get(json_object_get(entry, "object"), "config");
  if (!config || !same_json(config, json_object_get(object, "config"))) return NULL;
  return mix_list_get(reader->shared_layers, (int)json_integer_value(json_object_get(entry, "index")));
}

/* ---- a layer ---- */

/* Python in a file is not run. */
static bool has_no_code(const json_t *object) {
  mix_layer_class custom;
  const json_t *function = json_object_get(json_object_get(object, "config"), "function");
  if (!mix_json_is_class(object, "Lambda") || !function || json_is_string(function)) return true;
  if (mix_custom_layer_find("Lambda", NULL, &custom)) return true;
  return mix_fail_unsupported(
      "model_from_json: the function of a Lambda layer is Python code, which is not run; write the layer "
      "in C, and register its class as Lambda with mix_register_layer");
}

/* Keras builds a layer with a build_config by itself, before a model holds it: its path in maps is its name.
 */
static bool match_own_name(const json_t *object, mix_layer *layer) {
  const bool builds = json_is_object(json_object_get(object, "build_config"));
  return !layer->policy->map || !builds || mix_layer_match_policy(layer, layer->name);
}

static mix_layer *new_layer(mix_json_reader *reader, const json_t *object) {
  bool is_model;
  mix_model *model = read_model(reader, object, &is_model);
  if (is_model) return model ? model->layer : NULL;
  if (!has_no_code(object)) return NULL;
  mix_layer *layer = mix_layer_from_object(object, reader->semantics, reader->call);
  if (layer && !strcmp(mix_policy_name(layer->policy), "mixed_float16")) reader->mixed_float16 = true;
  return layer && match_own_name(object, layer) ? layer : NULL;
}

/* Models that share models of models would take time without end to go through. */
static mix_layer *count_nest(mix_layer *layer) {
  enum { MAX_NEST = 100000 };
  int nest = 1;
  for (int i = 0; layer && i < mix_list_count(layer->layers); i++) {
    const mix_layer *inner = mix_list_get(layer->layers, i);
    nest += inner->nest ? inner->nest : 1;
    if (nest > MAX_NEST)
      return mix_fail_value("model_from_json: a model has more than %d layers, counted with those "
                            "of the models in it",
                            MAX_NEST);
  }
  if (layer) layer->nest = nest;
  return layer;
}

static mix_layer *read_layer(mix_json_reader *reader, const json_t *object) {
  char id[32];
  const json_t *shared = json_object_get(object, "shared_object_id");
  if (mix_failed()) return NULL;
  mix_layer *layer;
  if (!json_is_integer(shared)) {
    if ((layer = count_nest(new_layer(reader, object)))) note_unmarked(reader, object, layer);
    return layer;
  }
  snprintf(id, sizeof id, "%lld", (long long)json_integer_value(shared));
  layer = shared_layer(reader, id);
  if (layer && mix_json_is_class(object, layer->class.name)) return layer;
  if (!layer) layer = unmarked_layer(reader, object);
  if (!layer) layer = count_nest(new_layer(reader, object));
  if (layer) share_layer(reader, id, layer);
  return layer;
}

/* A layer that another one wraps. */
static mix_layer *read_inner_layer(void *context, const json_t *object) {
  mix_json_reader *reader = context;
  const size_t length = strlen(reader->path);
  snprintf(reader->path + length, sizeof reader->path - length, ".config.layer");
  mix_layer *layer = read_layer(reader, object);
  reader->path[length] = 0;
  return layer;
}

/* Ends the message of an error with the layer's name and place. */
static void place_error(mix_json_reader *reader, const json_t *object) {
  char message[1024];
  const char *name = json_string_value(json_object_get(json_object_get(object, "config"), "name"));
  if (!mix_failed() || reader->placed || mix_error() == MIX_MEMORY_ERROR) return;
  const mix_status status = mix_error_take(message, sizeof message);
  reader->placed = true;
  mix_fail(status, "%s (layer '%.60s', %s)", message, name ? name : "without a name", reader->path);
}

static mix_layer *read_layer_at(mix_json_reader *reader, const json_t *object, int index) {
  const size_t length = strlen(reader->path);
  if (reader->depth == MAX_DEPTH)
    return mix_fail_value("model_from_json: models stand in each other more than %d deep", MAX_DEPTH);
  reader->depth++;
  snprintf(reader->path + length, sizeof reader->path - length, "%sconfig.layers[%d]", length ? "." : "",
           index);
  mix_layer *layer = read_layer(reader, object);
  place_error(reader, object);
  reader->path[length] = 0;
  reader->depth--;
  return layer;
}

/* ---- sequential models ---- */

static bool add_layers(mix_json_reader *reader, mix_model *model, const json_t *layers, mix_tensor **input) {
  for (size_t i = 0; i < json_array_size(layers) && !mix_failed(); i++) {
    const json_t *object = json_array_get(layers, i);
    mix_layer *layer;
    if (!mix_json_is_class(object, "InputLayer"))
      layer = reader->read_layer(reader, object, (int)i);
    else if (i)
      return mix_fail_value("model_from_json: an InputLayer is item %zu of a sequential model", i);
    else
      layer = (*input = mix_reader_input(reader, object)) ? mix_tensor_history(*input, NULL)->layer : NULL;
    if (layer) mix_sequential_add(model, layer);
  }
  return !mix_failed();
}

/* An input of the shape that the model was built for, or that its first layer was given; NULL: neither. */
static mix_tensor *stated_input(mix_json_reader *reader, const json_t *config, const json_t *layers) {
  const json_t *first = json_object_get(json_array_get(layers, 0), "config");
  const json_t *shape = json_object_get(config, "build_input_shape");
  const json_t *dtype = json_object_get(first, "dtype");
  if (!json_is_array(shape)) shape = json_object_get(first, "batch_input_shape");
  if (!json_is_array(shape) || json_is_array(json_array_get(shape, 0))) return NULL;
  json_t *object = json_pack("{s:{s:O}}", "config", "batch_shape", (json_t *)shape);
  if (json_is_string(dtype) && shape != json_object_get(config, "build_input_shape"))
    mix_json_set(json_object_get(object, "config"), "dtype", json_incref((json_t *)dtype));
  mix_tensor *input = mix_reader_input(reader, object);
  json_decref(object);
  return input;
}

static bool set_policy(mix_layer *layer, mix_policy *policy) {
  if (!policy) return false;
  if (!policy->map && !mix_policy_check_layer(policy, layer->class.name, layer->name, "model_from_json"))
    return false;
  mix_release(layer->policy);
  layer->policy = mix_retain(policy);
  layer->compute = policy->compute;
  layer->variable = policy->variable;
  return true;
}

/* The policy that the config has, which is null where it is the global one. */
static bool read_policy(mix_json_reader *reader, const json_t *config, mix_layer *layer) {
  const json_t *value = json_object_get(config, "dtype");
  if (!value || json_is_null(value)) return !mix_failed();
  mix_policy *policy = mix_policy_from_json(value, reader->semantics);
  return set_policy(layer, policy);
}

static mix_model *read_sequential(mix_json_reader *reader, const json_t *config) {
  const json_t *layers = mix_json_layers(config);
  if (!json_is_array(layers))
    return mix_fail_value("model_from_json: a sequential model has no list of layers");
  mix_sequential_options options = {.size = sizeof options, .semantics = reader->semantics};
  if (json_is_object(config)) options.name = mix_json_string_or(config, "name", NULL);
  mix_model *model = mix_failed() ? NULL : mix_sequential_with(&options);
  mix_tensor *input = NULL;
  if (!model || !add_layers(reader, model, layers, &input)) return NULL;
  if (!input) input = stated_input(reader, config, layers);
  if (!mix_failed() && input && mix_list_count(model->layer->layers)) mix_sequential_build_on(model, input);
  if (mix_failed() || !read_policy(reader, config, model->layer)) return NULL;
  if (json_is_object(config) && !mix_json_boolean_or(config, "trainable", true))
    mix_layer_set_trainable(model->layer, false);
  return mix_failed() ? NULL : model;
}

/* ---- the call ---- */

/* Where the text does not say, the model's own policy scales losses if that of a layer does. */
static bool choose_policy(const mix_json_reader *reader, const json_t *object, mix_model *model) {
  mix_layer *layer = model->layer;
  const bool own = !reader->of_file && json_object_get(json_object_get(object, "config"), "dtype");
  if (!reader->mixed_float16 || own) return true;
  mix_policy *policy = mix_policy_new("mixed_float16", .semantics = reader->semantics);
  return set_policy(layer, policy);
}

static mix_json_reader new_reader(const mix_semantics *semantics, const mix_semantics *written,
                                  const char *call) {
  return (mix_json_reader){.read_layer = read_layer_at,
                           .semantics = semantics,
                           .written = written,
                           .call = call,
                           .shared = json_object(),
                           .unmarked = json_object(),
                           .shared_layers = mix_list_new(0, NULL)};
}

static mix_model *read_object(const json_t *object, const mix_from_json_options *options, bool of_file) {
  bool is_model;
  const mix_semantics *written = mix_json_generation(object);
  mix_json_reader reader =
      new_reader(options->semantics ? mix_semantics_or_current(options->semantics) : written, written,
                 "model_from_json");
  reader.of_file = of_file;
  const mix_inner_layer_reader inner = {read_inner_layer, &reader};
  const mix_inner_layer_reader *former = mix_inner_layer_reader_set(&inner);
  mix_model *model = read_model(&reader, object, &is_model);
  mix_inner_layer_reader_set(former);
  json_decref(reader.shared);
  json_decref(reader.unmarked);
  if (!is_model)
    mix_fail_value(
        "model_from_json: class_name is '%.60s'; expected Functional or Sequential, or a class of "
        "mix_register_model (a model whose call is Python code is not in its file; make it in C, and give it "
        "the weights)",
        json_is_string(json_object_get(object, "class_name"))
            ? json_string_value(json_object_get(object, "class_name"))
            : "missing");
  const json_t *compiled = json_object_get(object, "compile_config");
  bool good = model && choose_policy(&reader, object, model);
  if (good && !options->no_compile && json_object_size(compiled))
    good = mix_model_compile_json(model, compiled, written);
  return good && !mix_failed() ? model : NULL;
}

mix_layer *mix_layer_from_saved(const json_t *object, const mix_semantics *semantics, const char *call) {
  semantics = mix_semantics_or_current(semantics);
  const mix_semantics *written = generation_of(object);
  mix_json_reader reader = new_reader(semantics, written ? written : semantics, call);
  const mix_inner_layer_reader inner = {read_inner_layer, &reader};
  const mix_inner_layer_reader *former = mix_inner_layer_reader_set(&inner);
  mix_layer *layer = read_layer(&reader, object);
  mix_inner_layer_reader_set(former);
  json_decref(reader.shared);
  json_decref(reader.unmarked);
  return layer;
}

mix_model *mix_model_from_object(const json_t *object, const mix_from_json_options *options, bool of_file) {
  const mix_layer_class *const *former = mix_custom_layers_set(options->custom_layers);
  mix_scope *scope = mix_scope_begin();
  mix_model *model = mix_retain(read_object(object, options, of_file));
  mix_scope_end(scope);
  mix_custom_layers_set(former);
  return mix_scoped(model);
}

mix_model *mix_model_from_json_with(const mix_from_json_options *given) {
  MIX_OWN_FLOAT_MODES;
  MIX_OPTIONS(mix_from_json_options, options, given, "model_from_json");
  json_t *object = mix_json_parse(options.json, "model_from_json");
  const bool good = object && mix_keep_float32(object, options.float32_layers, "model_from_json");
  mix_model *model = good ? mix_model_from_object(object, &options, false) : NULL;
  json_decref(object);
  return model && mix_check_kept(model->layer, options.float32_layers, "model_from_json") ? model : NULL;
}
