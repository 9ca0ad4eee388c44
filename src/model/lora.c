/* LoRA of the layers of a model. */
#include "base/error.h"
#include "model/model.h"
#include "nn/layers/lora.h"
#include <regex.h>

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

static void enable(mix_model *model, const mix_model_lora_options *o) {
  mix_list *chosen = mix_model_weights_ready(model, CALL) ? choose(model, o) : NULL;
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
