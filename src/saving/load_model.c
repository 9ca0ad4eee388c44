/* Models from files of Keras. */
#include "base/error.h"
#include "base/float_modes.h"
#include "onnx/load.h"
#include "optim/optimizer.h"
#include "saving/model_json.h"
#include "saving/preset.h"
#include "saving/read_weights.h"

/* Keras makes the optimizer's state before it reads it, and of a legacy file the metrics. */
static bool build_optimizer(mix_model *model, bool legacy) {
  mix_optimizer *optimizer = model->state ? model->state->optimizer : NULL;
  if (!optimizer || !model->layer->built) return true;
  if (legacy) mix_optimizer_note_metrics(optimizer, model->state->loss_tracker, false);
  optimizer = mix_optimizer_plain(optimizer);
  return mix_optimizer_build_for_training(optimizer, mix_model_trainable_variables(model)) == MIX_OK;
}

/* A number, or some of them in a list or an object. */
static bool are_numbers(const json_t *value) {
  const char *key;
  json_t *item;
  bool good = json_is_number(value) || json_is_array(value) || json_is_object(value);
  for (size_t i = 0; i < json_array_size(value); i++) good &= json_is_number(json_array_get(value, i));
  json_object_foreach((json_t *)value, key, item) good &= json_is_number(item);
  return good;
}

/* The weights of losses stay: they are those of the losses that follow, where the outputs are the same. */
static void leave_out(json_t *object, const mix_load_options *options) {
  json_t *compiled = json_object_get(object, "compile_config");
  if (!json_is_object(compiled)) return;
  if (options->no_loss) json_object_del(compiled, "loss");
  if (options->no_loss && !are_numbers(json_object_get(compiled, "loss_weights")))
    json_object_del(compiled, "loss_weights");
  if (options->no_metrics) json_object_del(compiled, "metrics");
  if (options->no_metrics) json_object_del(compiled, "weighted_metrics");
  if (options->no_optimizer && json_object_get(compiled, "optimizer"))
    mix_json_set(compiled, "optimizer", json_string("rmsprop"));
}

/* Weights stand at paths, or in the order, of the generation that wrote them, so that it reads them first. */
static mix_model *through_writer(mix_keras_file *file, const mix_load_options *options) {
  mix_load_options own = *options;
  own.semantics = NULL;
  mix_model *model = mix_model_of_file(file, &own);
  return model ? mix_model_twin(model, options->semantics, model->state, "model_load") : NULL;
}

static bool has_other_places(const mix_keras_file *file, const mix_semantics *semantics) {
  const mix_semantics *written = mix_json_generation(file->model);
  return semantics && (semantics->attention_properties_saved != written->attention_properties_saved ||
                       semantics->weights_trainable_first != written->weights_trainable_first);
}

static bool override_policies(json_t *object, const mix_load_options *options) {
  if (options->policy && options->policy_map)
    return mix_fail_value("model_load: both policy '%.60s' and a policy_map were given; give one",
                          options->policy);
  if (options->policy) return mix_override_policy(object, options->policy, options->semantics);
  const mix_semantics *semantics = options->semantics ? options->semantics : mix_json_generation(object);
  return !options->policy_map || mix_override_policies(object, options->policy_map, semantics);
}

mix_model *mix_model_of_file(mix_keras_file *file, const mix_load_options *options) {
  if (has_other_places(file, options->semantics)) return through_writer(file, options);
  const mix_from_json_options structure = {.size = sizeof structure,
                                           .semantics = options->semantics,
                                           .custom_layers = options->custom_layers,
                                           .no_compile = options->no_compile};
  if (!override_policies(file->model, options)) return NULL;
  if (!mix_keep_float32(file->model, options->float32_layers, "model_load")) return NULL;
  leave_out(file->model, options);
  const bool former = mix_zero_weights_set(!file->preset || mix_preset_has_all(file)); /* each is read */
  mix_model *model = mix_model_from_object(file->model, &structure, true);
  mix_zero_weights_set(former);
  if (model && !mix_check_kept(model->layer, options->float32_layers, "model_load")) return NULL;
  if (model && model->state && !file->by_path) { /* legacy files say it in another form */
    json_decref(model->state->config);
    model->state->config = NULL;
  }
  mix_weights_reader reader = {.file = file,
                               .model = model,
                               .call = "model_load",
                               .no_optimizer = options->no_optimizer,
                               .begins_scales = options->policy_map};
  if (model && file->preset) return mix_preset_read(file->name, &reader) ? model : NULL;
  /* before the optimizer makes its state, of whatever shapes the file says */
  if (!model || !mix_quantize_as_file(&reader) || !mix_check_weights(&reader)) return NULL;
  if (!model->state) mix_warn_of_unmatched_keys(model->layer, "model_load"); /* else compile did */
  return build_optimizer(model, !file->by_path) && mix_read_weights(&reader) ? model : NULL;
}

static mix_model *load(mix_keras_file *file, const mix_load_options *options) {
  if (!mix_map_quantizes(options->policy_map)) return mix_model_of_file(file, options);
  mix_load_options plain = *options;
  plain.policy_map = mix_map_of_sources(options->policy_map);
  mix_model *model = plain.policy_map ? mix_model_of_file(file, &plain) : NULL;
  return model ? mix_model_under_map(model, options->policy_map, options->custom_layers) : NULL;
}

/* ---- ONNX ---- */

/* A model of a graph has the dtypes of that; policies change it as they change a file's. */
static mix_model *load_onnx(const mix_load_options *options) {
  mix_model *model = mix_onnx_load(options->path, options->semantics, options->copy_weights);
  if (!model || !(options->policy || options->policy_map || options->float32_layers)) return model;
  json_t *object = mix_model_saved_json(model, false);
  const bool changed = object && override_policies(object, options) &&
                       mix_keep_float32(object, options->float32_layers, "model_load");
  mix_model *other = changed ? mix_model_changed(model, object, "model_load") : NULL;
  json_decref(object);
  return other;
}

mix_model *mix_model_load_with(const mix_load_options *given) {
  MIX_OWN_FLOAT_MODES;
  mix_keras_file file;
  mix_model *model = NULL;
  MIX_OPTIONS(mix_load_options, options, given, "model_load");
  if (!options.path) return mix_fail_type("model_load: path is NULL");
  if (options.semantics && !mix_semantics_or_current(options.semantics)) return NULL;
  MIX_SCOPE {
    const bool copies = options.copy_weights;
    if (mix_is_onnx(options.path))
      model = mix_retain(load_onnx(&options));
    else if ((copies ? mix_keras_file_read : mix_keras_file_open)(&file, options.path, true)) {
      model = mix_retain(load(&file, &options));
      mix_keras_file_close(&file);
    }
  }
  return mix_scoped(model);
}
