/* Models in another generation: made from what the model's own would save, with the same weights and state.
 */
#include "base/error.h"
#include "nn/policy/loss_scale.h"
#include "optim/optimizer.h"
#include "saving/model_json.h"
#include "tensor/shape.h"
#include <string.h>

/* ---- which variable stands for which ---- */

typedef struct pairs {
  mix_list *from, *to;
  int at; /* behind the pair found last */
  const mix_semantics *semantics;
  const char *call;
} pairs;

static bool pair_weights(pairs *p, const mix_layer *from, const mix_layer *to) {
  const int count = mix_list_count(from->weights);
  if (count != mix_list_count(to->weights))
    mix_fail_unsupported("%s: the layer '%s' has %d weights under %s, and %d under %s", p->call, from->name,
                         count, from->semantics->name, mix_list_count(to->weights), to->semantics->name);
  for (int i = 0; i < count && !mix_failed(); i++) {
    mix_variable *a = mix_list_items(from->weights)[i], *b = mix_list_items(to->weights)[i];
    if (!mix_shape_equal(a->shape, b->shape))
      mix_fail_unsupported("%s: the weight '%s' of the layer '%s' has shape %s under %s, and %s under %s",
                           p->call, a->name, from->name, MIX_SHAPE_TEXT(a->shape), from->semantics->name,
                           MIX_SHAPE_TEXT(b->shape), to->semantics->name);
    mix_list_append(p->from, a);
    mix_list_append(p->to, b);
  }
  return !mix_failed();
}

/* The layers of a model may stand in another order, and their names are unique. */
static mix_layer *layer_named(const mix_layer *model, const char *name, int first) {
  const int count = mix_list_count(model->layers);
  for (int i = 0; i < count; i++) {
    mix_layer *layer = mix_list_items(model->layers)[(first + i) % count];
    if (!strcmp(layer->name, name)) return layer;
  }
  return NULL;
}

static bool pair_layers(pairs *p, const mix_layer *from, const mix_layer *to) {
  const bool named = mix_layer_is_structured(from);
  if (!pair_weights(p, from, to)) return false;
  for (int i = 0; i < mix_list_count(from->layers) && !mix_failed(); i++) {
    const mix_layer *inner = mix_list_items(from->layers)[i];
    if (inner->is_input) continue;
    const mix_layer *other = named                            ? layer_named(to, inner->name, i)
                             : i < mix_list_count(to->layers) ? mix_list_items(to->layers)[i]
                                                              : NULL;
    if (!other)
      return mix_fail_unsupported("%s: the layer '%s' in '%s' has no counterpart under %s", p->call,
                                  inner->name, from->name, p->semantics->name);
    pair_layers(p, inner, other);
  }
  return !mix_failed();
}

/* Borrowed; NULL: none. Callers ask in about the order of the pairs. */
static mix_variable *counterpart(pairs *p, const mix_variable *variable) {
  const int count = mix_list_count(p->from);
  for (int i = 0; i < count; i++) {
    const int at = (p->at + i) % count;
    if (mix_list_items(p->from)[at] != variable) continue;
    p->at = at + 1;
    return mix_list_items(p->to)[at];
  }
  return NULL;
}

/* ---- values ---- */

/* Where one of the two has no such variable, there is nothing to copy. */
static void copy_value(const mix_variable *from, mix_variable *to) {
  if (!from || !to || mix_failed()) return;
  MIX_SCOPE {
    mix_tensor *value = mix_variable_true_value((mix_variable *)from);
    mix_variable_assign(to, from->dtype == to->dtype ? value : mix_cast(value, to->dtype));
  }
}

static bool copy_weights(const pairs *p) {
  for (int i = 0; i < mix_list_count(p->from) && !mix_failed(); i++)
    copy_value(mix_list_items(p->from)[i], mix_list_items(p->to)[i]);
  return !mix_failed();
}

static mix_variable *item(mix_variable *const *array, int index) { return array ? array[index] : NULL; }

static void copy_slots(pairs *p, const mix_optimizer *from, mix_optimizer *to) {
  for (int i = 0; i < from->count && !mix_failed(); i++) {
    const mix_variable *variable = counterpart(p, from->trainable[i]);
    const int j = variable ? mix_optimizer_index(to, variable, i) : -1;
    if (j < 0) continue;
    copy_value(item(from->averages, i), item(to->averages, j));
    copy_value(item(from->accumulators, i), item(to->accumulators, j));
    for (int s = 0; s < MIX_MAX_SLOTS; s++) copy_value(item(from->slots[s], i), item(to->slots[s], j));
  }
}

static void copy_plain(pairs *p, const mix_optimizer *from, mix_optimizer *to, mix_model *twin) {
  copy_value(from->iterations, to->iterations);
  if (!from->built || mix_optimizer_build(to, mix_model_trainable_variables(twin))) return;
  copy_slots(p, from, to);
  copy_value(from->product, to->product);
}

static void copy_loss_scale(const mix_loss_scale *from, const mix_loss_scale *to) {
  if (!from || !to) return;
  copy_value(from->scale, to->scale);
  copy_value(from->good_steps, to->good_steps);
  copy_value(from->skipped_steps, to->skipped_steps);
}

static bool copy_optimizer(pairs *p, const mix_model *model, mix_model *twin) {
  mix_optimizer *from = model->state ? model->state->optimizer : NULL;
  mix_optimizer *to = twin->state ? twin->state->optimizer : NULL;
  if (!from || !to) return true;
  copy_plain(p, mix_optimizer_plain(from), mix_optimizer_plain(to), twin);
  copy_loss_scale(from->loss_scale, to->loss_scale);
  return !mix_failed();
}

/* ---- the model ---- */

/* One generation has two families of optimizers. The others have one each: that of the experimental one is
 * the legacy family, also inside a loss-scale optimizer. */
static void choose_family(json_t *optimizer, const mix_model *model, const mix_semantics *semantics) {
  json_t *config = json_object_get(optimizer, "config"), *inner = json_object_get(config, "optimizer");
  if (!json_is_object(optimizer) || !model->state) return;
  const mix_semantics *rules = mix_optimizer_plain(model->state->optimizer)->rules;
  const bool legacy = semantics->config_says_not_legacy && rules->saved_as;
  if (!inner) inner = json_object_get(config, "inner_optimizer");
  mix_json_set(inner ? inner : optimizer, "module",
               json_string(legacy ? "keras.optimizers.legacy" : "keras.optimizers"));
}

/* The classes of the user's own layers, which the caller of the model's loading may alone have known. */
static int collect_classes(const mix_layer *layer, const mix_layer_class **classes, int count) {
  if (!layer->kind && !layer->is_input && !mix_layer_is_structured(layer)) {
    int i = 0;
    while (i < count && strcmp(classes[i]->name, layer->class.name)) i++;
    if (i == count) classes[count++] = &layer->class;
  }
  for (int i = 0; i < mix_list_count(layer->layers); i++)
    count = collect_classes(mix_list_items(layer->layers)[i], classes, count);
  return count;
}

static int count_layers(const mix_layer *layer) {
  int count = 1;
  for (int i = 0; i < mix_list_count(layer->layers); i++)
    count += count_layers(mix_list_items(layer->layers)[i]);
  return count;
}

static mix_model *make_twin(const mix_model *model, const json_t *object, const mix_semantics *semantics,
                            bool compiled) {
  const mix_layer_class **classes =
      mix_scoped_memory(((size_t)count_layers(model->layer) + 1) * sizeof *classes);
  if (!classes) return NULL;
  collect_classes(model->layer, classes, 0);
  const mix_from_json_options options = {
      .size = sizeof options, .semantics = semantics, .custom_layers = classes, .no_compile = !compiled};
  const bool former = mix_zero_weights_set(true); /* each is copied */
  mix_model *twin = mix_model_from_object(object, &options, true);
  mix_zero_weights_set(former);
  return twin;
}

static bool copy_state(mix_model *model, mix_model *twin, const char *call) {
  pairs p = {.from = mix_list_new(0, NULL), .to = mix_list_new(0, NULL), .call = call};
  p.semantics = twin->semantics;
  return !mix_failed() && pair_layers(&p, model->layer, twin->layer) && copy_weights(&p) &&
         copy_optimizer(&p, model, twin);
}

mix_model *mix_model_twin(mix_model *model, const mix_semantics *semantics, bool compiled, const char *call) {
  json_t *object = mix_model_saved_json(model, compiled);
  if (!object) return NULL;
  choose_family(json_object_get(json_object_get(object, "compile_config"), "optimizer"), model, semantics);
  mix_model *twin = NULL;
  if (mix_json_set(object, "keras_version", json_string(model->semantics->keras_version)))
    twin = make_twin(model, object, semantics, compiled);
  json_decref(object);
  return twin && copy_state(model, twin, call) ? twin : NULL;
}

mix_model *mix_model_changed(mix_model *model, const json_t *object, const char *call) {
  mix_model *changed = make_twin(model, object, model->semantics, model->state);
  return changed && copy_state(model, changed, call) ? changed : NULL;
}

mix_model *mix_model_in_generation(mix_model *model, const mix_semantics *semantics, const char *path,
                                   bool compiled, const char *call) {
  if (!mix_check_generation(model, semantics, compiled, call)) return NULL;
  mix_model *twin = mix_model_twin(model, semantics, compiled, call);
  if (twin) mix_warn_of_lost_state(twin, path, call);
  return twin;
}
