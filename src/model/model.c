/* Model objects: construction around a layer, queries, and calls. */
#include "model/model.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/float_modes.h"
#include <string.h>

void mix_compiled_state_free(mix_compiled_state *state) {
  if (!state) return;
  mix_release(state->optimizer);
  mix_release(state->given_optimizer);
  mix_compile_options_release(&state->given);
  json_decref(state->config);
  for (int i = 0; i < MIX_MODEL_MAX; i++) mix_release(state->losses[i]);
  mix_release(state->loss_tracker);
  for (int i = 0; i < state->tracker_count; i++) mix_release(state->trackers[i].metric);
  for (int i = 0; i < state->metric_count; i++) mix_release(state->metrics[i].metric);
  mix_free(state->metrics);
  mix_release(state->class_weights);
  mix_release(state->train);
  mix_release(state->watched);
  mix_release(state->recorder);
  mix_release(state->record);
  mix_release(state->finished);
  mix_release(state->agreement);
  mix_release(state->test);
  mix_free(state);
}

static void model_finalize(void *object) {
  mix_model *model = object;
  mix_compiled_state_free(model->state);
  mix_predictors_drop(model);
  mix_release(model->layer);
  mix_free(model->summary);
  mix_free(model->json);
  mix_release(model->history);
}

static const char *name_of(const void *object) { return mix_layer_name(((const mix_model *)object)->layer); }
const mix_class mix_model_object_class = {.name = "model", .finalize = model_finalize, .name_of = name_of};

mix_model *mix_model_wrap(mix_layer *layer, mix_model_kind kind) {
  mix_model *model = mix_object_new(sizeof *model, &mix_model_object_class);
  if (!model) return NULL;
  model->layer = mix_retain(layer);
  layer->is_model = true;
  model->semantics = mix_layer_semantics(layer);
  model->kind = kind;
  return mix_scoped(model);
}

bool mix_model_given(const mix_model *model, const char *call) {
  if (mix_failed()) return false;
  if (!mix_is(model, &mix_model_object_class)) mix_fail_type("%s: expected a model", call);
  return !mix_failed();
}

bool mix_model_weights_ready(const mix_model *model, const char *call) {
  if (!mix_model_given(model, call)) return false;
  if (model->kind != MIX_FUNCTIONAL && !model->layer->built)
    mix_fail_value(
        "%s: '%s' has no weights yet; call mix_model_build with an input shape, or the model on data", call,
        mix_model_name(model));
  return !mix_failed();
}

mix_list *mix_tensors_given(void *given, const char *call, const char *what) {
  if (mix_failed()) return NULL;
  if (mix_is(given, &mix_tensor_class)) return mix_list_of(given);
  if (!mix_is(given, &mix_list_class))
    return mix_fail_type("%s: %s is neither a tensor nor a list of tensors", call, what);
  for (int i = 0; i < mix_list_count(given); i++)
    if (!mix_is(mix_list_get(given, i), &mix_tensor_class))
      return mix_fail_type("%s: item %d of %s is not a tensor", call, i, what);
  return given;
}

const char *mix_model_name(const mix_model *model) {
  return mix_is(model, &mix_model_object_class) ? mix_layer_name(model->layer) : "";
}
mix_layer *mix_model_layer(mix_model *model) {
  return mix_model_given(model, "model_layer") ? model->layer : NULL;
}
mix_policy *mix_model_policy(const mix_model *model) {
  return mix_is(model, &mix_model_object_class) ? mix_layer_policy(model->layer) : NULL;
}
mix_list *mix_model_layers(mix_model *model) {
  return mix_model_given(model, "model_layers") ? mix_layer_layers(model->layer) : NULL;
}

mix_layer *mix_model_get_layer(mix_model *model, const char *name) {
  mix_list *layers = mix_model_layers(model);
  if (!layers) return NULL;
  if (!name) return mix_fail_type("model_get_layer: name is NULL");
  mix_did_you_mean nearest = {.word = name};
  char hint[100];
  const int count = mix_list_count(layers);
  for (int i = 0; i < count; i++)
    if (!strcmp(mix_layer_name(mix_list_get(layers, i)), name)) return mix_list_get(layers, i);
  for (int i = 0; i < count; i++) mix_did_you_mean_try(&nearest, mix_layer_name(mix_list_get(layers, i)));
  return mix_fail_value("model_get_layer: no layer of '%s' is named '%s'%s", mix_model_name(model), name,
                        mix_did_you_mean_hint(&nearest, hint, sizeof hint));
}

mix_list *mix_model_weights(mix_model *model) {
  return mix_model_given(model, "model_weights") ? mix_layer_weights(model->layer) : NULL;
}
mix_list *mix_model_trainable_variables(mix_model *model) {
  return mix_model_given(model, "model_trainable_variables") ? mix_layer_trainable_weights(model->layer)
                                                             : NULL;
}
mix_list *mix_model_non_trainable_variables(mix_model *model) {
  return mix_model_given(model, "model_non_trainable_variables")
             ? mix_layer_non_trainable_weights(model->layer)
             : NULL;
}
mix_list *mix_model_get_weights(mix_model *model) {
  mix_list *weights = NULL;
  MIX_MODEL_USE(model, MIX_READS_MODEL, "model_get_weights") {
    if (mix_model_weights_ready(model, "model_get_weights")) weights = mix_layer_get_weights(model->layer);
  }
  return weights;
}
mix_status mix_model_set_weights(mix_model *model, mix_list *values) {
  if (!mix_failed() && !values)
    return mix_fail_status(MIX_TYPE_ERROR, "model_set_weights: values is NULL; expected a list of tensors");
  MIX_MODEL_USE(model, MIX_CHANGES_MODEL, "model_set_weights") {
    if (mix_model_weights_ready(model, "model_set_weights")) mix_layer_set_weights(model->layer, values);
  }
  return mix_error();
}

mix_list *mix_model_call_outputs_with(mix_model *model, const mix_model_call_options *given) {
  MIX_OWN_FLOAT_MODES;
  if (!mix_model_given(model, "model_call")) return NULL;
  MIX_OPTIONS(mix_model_call_options, options, given, "model_call");
  if (!options.inputs)
    return mix_fail_type("model_call: inputs is NULL; expected a tensor or a list of tensors");
  if (mix_list_is_dict(options.inputs) && model->kind != MIX_SUBCLASSED)
    options.inputs = mix_model_inputs_by_name(model, options.inputs, "model_call");
  if (!options.inputs) return NULL;
  mix_call_options call = {.size = sizeof call, .inputs = options.inputs, .training = options.training};
  mix_list *outputs = NULL;
  MIX_MODEL_USE(model, MIX_READS_MODEL, "model_call") {
    mix_model_trace_lock();
    outputs = mix_call_outputs_with(model->layer, &call);
    mix_model_trace_unlock();
  }
  return mix_failed() ? NULL : outputs;
}

mix_tensor *mix_model_call_with(mix_model *model, const mix_model_call_options *options) {
  mix_list *outputs = mix_model_call_outputs_with(model, options);
  return outputs && !mix_failed() ? mix_list_get(outputs, 0) : NULL;
}

mix_history *mix_model_history(const mix_model *model) {
  return mix_is(model, &mix_model_object_class) ? model->history : NULL;
}
mix_status mix_model_set_stop_training(mix_model *model, bool stop) {
  if (mix_model_given(model, "model_set_stop_training")) model->stop_training = stop;
  return mix_error();
}
bool mix_model_stop_training(const mix_model *model) {
  return mix_is(model, &mix_model_object_class) && model->stop_training;
}

mix_compiled_state *mix_model_compiled(mix_model *model, const char *call) {
  if (!mix_model_given(model, call)) return NULL;
  if (!model->state)
    return mix_fail_runtime("%s: '%s' has not been compiled; call mix_model_compile first", call,
                            mix_model_name(model));
  return model->state;
}
