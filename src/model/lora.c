/* LoRA of the layers of a model. */
#include "base/error.h"
#include "model/model.h"
#include "nn/layers/lora.h"
#include <regex.h>
#include <string.h>

#define CALL "model_enable_lora"

/* Where messages and filters find it. */
static const char *path_of(const mix_layer *layer) { return layer->path ? layer->path : layer->name; }

/* Appends each layer that passes, once. The expression NULL: all. */
static void collect(mix_layer *layer, bool (*passes)(const mix_layer *layer, const regex_t *filter),
                    const regex_t *filter, mix_list *found) {
  for (int i = 0; i < mix_list_count(found); i++)
    if (mix_list_items(found)[i] == layer) return;
  if (passes(layer, filter)) mix_list_append(found, layer);
  for (int i = 0; i < mix_list_count(layer->layers); i++)
    collect(mix_list_items(layer->layers)[i], passes, filter, found);
}

static bool can_have(const mix_layer *layer, const regex_t *filter) {
  return layer->kind && layer->kind->lora && (!filter || !regexec(filter, path_of(layer), 0, NULL, 0));
}

static bool has(const mix_layer *layer, const regex_t *filter) { return layer->lora; }

mix_list *mix_model_lora_layers(mix_model *model) {
  mix_list *found = mix_list_new(0, NULL);
  if (found) collect(model->layer, has, NULL, found);
  return mix_failed() ? NULL : found;
}

/* All are checked before the first changes. */
static mix_list *choose(mix_model *model, const mix_model_lora_options *o) {
  regex_t filter;
  char reason[128];
  const int problem = o->filter ? regcomp(&filter, o->filter, REG_EXTENDED | REG_NOSUB) : 0;
  if (problem) {
    regerror(problem, &filter, reason, sizeof reason);
    return mix_fail_value(CALL ": the filter \"%.100s\" is no regular expression: %s", o->filter, reason);
  }
  mix_list *chosen = mix_list_new(0, NULL);
  if (chosen) collect(model->layer, can_have, o->filter ? &filter : NULL, chosen);
  if (o->filter) regfree(&filter);
  if (!mix_failed() && !mix_list_count(chosen))
    mix_fail_value(CALL ": '%s' has no layer that can have LoRA%s%.100s%s; expected a Dense, EinsumDense, "
                        "Embedding or Conv layer",
                   model->layer->name, o->filter ? " and in whose path \"" : "", o->filter ? o->filter : "",
                   o->filter ? "\" is found" : "");
  for (int i = 0; !mix_failed() && i < mix_list_count(chosen); i++)
    mix_lora_check(mix_list_items(chosen)[i], o->rank, CALL);
  return mix_failed() ? NULL : chosen;
}

/* ---- as KerasHub chooses ---- */

static bool is_backbone(const mix_layer *layer) {
  static const char end[] = "Backbone", package[] = "keras_hub>";
  const char *name = json_string_value(json_object_get(layer->origin, "registered_name"));
  const size_t length = name ? strlen(name) : 0;
  return length > sizeof end && !strncmp(name, package, sizeof package - 1) &&
         !strcmp(name + length - (sizeof end - 1), end);
}

static bool is_target(const mix_layer *layer) {
  static const char *const names[] = {"query_dense", "value_dense", "query", "value"};
  for (size_t i = 0; layer->kind && layer->kind->lora && i < sizeof names / sizeof *names; i++)
    if (!strcmp(layer->name, names[i])) return true;
  return false;
}

/* Appends the targets in the layer, once each. Is there one? */
static bool collect_targets(mix_layer *layer, mix_list *found) {
  bool any = is_target(layer);
  for (int i = 0; any && i < mix_list_count(found); i++)
    if (mix_list_items(found)[i] == layer) return true;
  if (any) mix_list_append(found, layer);
  for (int i = 0; i < mix_list_count(layer->layers); i++)
    any |= collect_targets(mix_list_items(layer->layers)[i], found);
  return any;
}

/* Freezes each layer without a target in it. */
static bool freeze_others(mix_layer *layer) {
  bool any = is_target(layer);
  for (int i = 0; i < mix_list_count(layer->layers); i++)
    any |= freeze_others(mix_list_items(layer->layers)[i]);
  if (!any) mix_layer_set_trainable(layer, false);
  return any;
}

/* The backbones of KerasHub in the layer, in the list. */
static void collect_backbones(mix_layer *layer, mix_list *found) {
  if (is_backbone(layer)) mix_list_append(found, layer);
  for (int i = 0; i < mix_list_count(layer->layers); i++)
    if (((mix_layer *)mix_list_items(layer->layers)[i])->is_model)
      collect_backbones(mix_list_items(layer->layers)[i], found);
}

/* Queries and values of the backbones, whose other layers no longer train; those around them do. NULL without
 * an error: the model has no backbone, or one without such layers. */
static mix_list *choose_as_keras_hub(mix_model *model, const mix_model_lora_options *o) {
  mix_list *backbones = mix_list_new(0, NULL), *chosen = mix_list_new(0, NULL);
  if (o->filter || mix_failed()) return NULL;
  collect_backbones(model->layer, backbones);
  for (int i = 0; i < mix_list_count(backbones); i++) collect_targets(mix_list_items(backbones)[i], chosen);
  for (int i = 0; !mix_failed() && i < mix_list_count(chosen); i++)
    mix_lora_check(mix_list_items(chosen)[i], o->rank, CALL);
  if (mix_failed() || !mix_list_count(chosen)) return NULL;
  for (int i = 0; i < mix_list_count(backbones); i++) freeze_others(mix_list_items(backbones)[i]);
  return chosen;
}

static void enable(mix_model *model, const mix_model_lora_options *o) {
  mix_list *chosen = mix_model_weights_ready(model, CALL) ? choose_as_keras_hub(model, o) : NULL;
  if (!chosen && !mix_failed()) chosen = choose(model, o);
  for (int i = 0; chosen && i < mix_list_count(chosen) && !mix_failed(); i++)
    mix_layer_enable_lora(mix_list_items(chosen)[i], o->rank, .alpha = o->alpha,
                          .a_initializer = o->a_initializer, .b_initializer = o->b_initializer);
  if (chosen) mix_predictors_drop(model);
}

mix_status mix_model_enable_lora_with(mix_model *model, const mix_model_lora_options *given) {
  mix_model_lora_options o = {0};
  if (!mix_model_given(model, CALL) || !mix_options_copy(&o, sizeof o, given, CALL)) return mix_error();
  MIX_MODEL_USE(model, MIX_CHANGES_MODEL, CALL) {
    MIX_SCOPE { enable(model, &o); }
  }
  return mix_error();
}

mix_status mix_model_merge_lora(mix_model *model) {
  if (!mix_model_given(model, "model_merge_lora")) return mix_error();
  MIX_MODEL_USE(model, MIX_CHANGES_MODEL, "model_merge_lora") {
    MIX_SCOPE {
      mix_list *layers = mix_model_lora_layers(model);
      for (int i = 0; layers && i < mix_list_count(layers) && !mix_failed(); i++)
        mix_lora_merge(mix_list_items(layers)[i]);
      if (layers) mix_predictors_drop(model);
    }
  }
  return mix_error();
}
