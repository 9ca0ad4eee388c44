/* The walk over the objects of a model that hold variables, as saving_lib.py of both Kerases makes it. */
#include "saving/weight_tree.h"

#include "base/error.h"
#include "base/json.h"
#include "nn/layers/lora.h"
#include "optim/optimizer.h"
#include <stdio.h>
#include <string.h>

typedef struct walk {
  mix_weight_visit *visit; /* NULL: `visit_layer` */
  mix_weight_layer_visit *visit_layer;
  void *context;
  const mix_semantics *rules;
  mix_key_map seen;
  bool places, repeats;
} walk;

static bool is_seen(const walk *w, const mix_layer *layer) {
  return mix_key_map_get(&w->seen, mix_address_key(layer)) >= 0;
}

/* PATH/NAME, or with a number PATH/NAME_2, in the scope. */
static const char *join(const char *path, const char *name, int number) {
  const size_t size = strlen(path) + strlen(name) + 16;
  char *text = mix_scoped_memory(size);
  if (!text) return NULL;
  const int length = snprintf(text, size, "%s%s%s", path, *path ? "/" : "", name);
  if (number) snprintf(text + length, size - (size_t)length, "_%d", number);
  return text;
}

/* ---- layers ---- */

/* Kernels that no longer train, those that are trainable by their own flag, those that their gradient
 * replaces, then the others. Scales of layers made under a float8 policy come before the kernel in the layer,
 * and not in files. */
static int file_order(const mix_variable *variable) {
  return variable->saved_first ? 0 : !variable->trainable ? 3 : 1 + variable->overwrite_with_gradient;
}

/* a and b of LoRA, which Keras's files do not have: their kernel is merged with them. */
static bool is_merged(const mix_layer *layer, const mix_variable *variable) {
  return layer->lora && (variable == layer->lora->a || variable == layer->lora->b);
}

static mix_list *own_variables(const mix_layer *layer) {
  mix_list *own = mix_list_new(0, NULL);
  for (int part = 0; part < 4; part++)
    for (int i = 0; layer->weights && i < mix_list_count(layer->weights); i++) {
      mix_variable *variable = mix_list_items(layer->weights)[i];
      if (file_order(variable) == part && !is_merged(layer, variable)) mix_list_append(own, variable);
    }
  return mix_failed() ? NULL : own;
}

static bool visit_layer(walk *w, mix_layer *layer, const char *path);

/* How often the name was used before. */
static int uses(json_t *used, const char *name) {
  const json_t *last = json_object_get(used, name);
  const int number = last ? (int)json_integer_value(last) + 1 : 0;
  mix_json_set(used, name, json_integer(number));
  return number;
}

static bool visit_child(walk *w, mix_layer *layer, const char *path, const char *name, json_t *used) {
  if (w->rules->saved_names_skip_seen && !w->places && is_seen(w, layer)) {
    w->repeats = true;
    return true;
  }
  path = join(path, name, uses(used, name));
  return path && visit_layer(w, layer, path);
}

/* The layers of a model by their classes. A sequential model has no input layer in Keras. */
static bool visit_model_layers(walk *w, mix_layer *model, const char *path, json_t *used) {
  const bool sequential = mix_layer_is_sequential(model);
  char name[256];
  path = join(path, "layers", 0);
  for (int i = 0; path && i < mix_list_count(model->layers); i++) {
    mix_layer *layer = mix_list_items(model->layers)[i];
    if (sequential && layer->is_input) continue;
    mix_snake_case(mix_layer_keras_name(layer), w->rules->private_name_prefix, name, sizeof name);
    if (!visit_child(w, layer, path, name, used)) return false;
  }
  return path;
}

static const char *attribute_of(const mix_layer *layer) {
  return layer->attribute ? layer->attribute : layer->name;
}

/* Of the attributes, private ones come last. */
static int compare_attributes(const mix_layer *a, const mix_layer *b) {
  const char *x = attribute_of(a), *y = attribute_of(b);
  return (*x == '_') != (*y == '_') ? (*x == '_') - (*y == '_') : strcmp(x, y);
}

/* Items of one list keep their order. */
static void sort_by_attribute(mix_layer **layers, int count) {
  for (int i = 1; i < count; i++)
    for (int j = i; j > 0 && compare_attributes(layers[j - 1], layers[j]) > 0; j--) {
      mix_layer *later = layers[j - 1];
      layers[j - 1] = layers[j];
      layers[j] = later;
    }
}

static bool visit_inner_layers(walk *w, const mix_layer *layer, const char *path, json_t *used) {
  const int count = mix_list_count(layer->layers);
  mix_layer **inner = mix_scoped_memory(((size_t)count + 1) * sizeof *inner);
  if (!inner) return false;
  for (int i = 0; i < count; i++) inner[i] = mix_list_items(layer->layers)[i];
  sort_by_attribute(inner, count);
  for (int i = 0; i < count; i++) {
    char text[256];
    const char *attribute = attribute_of(inner[i]), *list_end = strchr(attribute, '/');
    if (list_end && !list_end[1]) { /* items of a list by their classes */
      const int length = snprintf(text, sizeof text, "%s", attribute);
      mix_snake_case(inner[i]->class.name, w->rules->private_name_prefix, text + length,
                     sizeof text - (size_t)length);
      attribute = text;
    }
    if (!visit_child(w, inner[i], path, attribute, used)) return false;
  }
  return true;
}

static bool visit_layer(walk *w, mix_layer *layer, const char *path) {
  if (!w->places && is_seen(w, layer)) {
    w->repeats = true;
    return true;
  }
  mix_list *own = own_variables(layer);
  if (!own || (w->visit && !w->visit(w->context, path, layer->name, own)) ||
      (w->visit_layer && !w->visit_layer(w->context, path, layer)) ||
      !mix_key_map_set(&w->seen, mix_address_key(layer), 0))
    return false;
  json_t *used = json_object();
  const bool good = mix_layer_is_structured(layer) ? visit_model_layers(w, layer, path, used)
                                                   : visit_inner_layers(w, layer, path, used);
  json_decref(used);
  return good && !mix_failed();
}

/* ---- optimizers ---- */

/* Nadam's product, and the numbers that stand in for slots that a variable has not. */
static bool is_untracked(const mix_optimizer *optimizer, const mix_variable *variable) {
  return variable == optimizer->product || (optimizer->class->slot_shape && variable->dtype == MIX_INT32);
}

/* Appends what files hold of the state of a plain optimizer. */
static void append_state(const mix_optimizer *optimizer, bool wrapped, mix_list *variables) {
  const mix_semantics *rules = optimizer->rules;
  /* Keras has no place for what comes behind its own. */
  for (int i = 0; i < mix_list_count(optimizer->variables) - optimizer->own_variables; i++) {
    mix_variable *variable = mix_list_items(optimizer->variables)[i];
    if (variable == optimizer->learning_rate && !rules->learning_rate_saved) continue;
    if (variable == optimizer->product && !rules->nadam_product_saved) continue;
    if (wrapped && rules->wrapped_state_untracked && is_untracked(optimizer, variable)) continue;
    mix_list_append(variables, variable);
  }
}

mix_list *mix_optimizer_saved_variables(mix_optimizer *optimizer) {
  const mix_optimizer *plain = mix_optimizer_plain(optimizer);
  return mix_optimizer_variables_of_file(optimizer, plain->wrapped);
}

mix_list *mix_optimizer_variables_of_file(mix_optimizer *optimizer, bool wrapped) {
  mix_list *all = mix_optimizer_variables(optimizer), *saved = mix_list_new(0, NULL);
  const mix_optimizer *plain = all ? mix_optimizer_plain(optimizer) : NULL;
  const int own = plain ? mix_list_count(all) - mix_list_count(plain->variables) : 0;
  for (int i = 0; i < own; i++) mix_list_append(saved, mix_list_items(all)[i]);
  if (plain) append_state(plain, wrapped, saved);
  return mix_failed() ? NULL : saved;
}

static bool visit_optimizer(const walk *w, mix_optimizer *optimizer, const char *path) {
  mix_list *saved = mix_optimizer_saved_variables(optimizer);
  if (!saved || !w->visit(w->context, path, optimizer->name, saved)) return false;
  return !optimizer->inner || visit_optimizer(w, optimizer->inner, "optimizer/inner_optimizer");
}

bool mix_is_optimizer_path(const char *path) {
  return !strcmp(path, "optimizer") || !strcmp(path, "optimizer/inner_optimizer");
}

/* ---- the walk ---- */

/* Keras does not find the optimizers of TensorFlow 2.10 and before. */
static bool visit_own_optimizer(const walk *w, const mix_model *model) {
  mix_optimizer *optimizer = model->state ? model->state->optimizer : NULL;
  if (!optimizer || !w->visit || !mix_optimizer_plain(optimizer)->rules->optimizer_in_weights_file)
    return true;
  return visit_optimizer(w, optimizer, "optimizer");
}

static bool visit_all(walk *w, mix_model *model) {
  w->rules = model->semantics;
  const bool good = visit_layer(w, model->layer, "") && visit_own_optimizer(w, model) && !mix_failed();
  mix_key_map_clear(&w->seen);
  return good;
}

bool mix_visit_weight_tree(mix_model *model, mix_weight_visit *visit, void *context) {
  return visit_all(&(walk){.visit = visit, .context = context}, model);
}

static bool skip(walk *w, mix_layer *layer) {
  if (is_seen(w, layer)) return true;
  if (!mix_key_map_set(&w->seen, mix_address_key(layer), 0)) return false;
  for (int i = 0; i < mix_list_count(layer->layers); i++)
    if (!skip(w, mix_list_items(layer->layers)[i])) return false;
  return true;
}

bool mix_visit_weight_tree_without(mix_model *model, mix_layer *skipped, mix_weight_visit *visit,
                                   void *context) {
  walk w = {.visit = visit, .context = context};
  if (!skip(&w, skipped)) return mix_key_map_clear(&w.seen), false;
  return visit_all(&w, model);
}

bool mix_visit_weight_layers_without(mix_model *model, mix_layer *skipped, mix_weight_layer_visit *visit,
                                     void *context) {
  walk w = {.visit_layer = visit, .context = context};
  if (skipped && !skip(&w, skipped)) return mix_key_map_clear(&w.seen), false;
  return visit_all(&w, model);
}

bool mix_visit_weight_layers(mix_model *model, mix_weight_layer_visit *visit, void *context) {
  return visit_all(&(walk){.visit_layer = visit, .context = context}, model);
}

bool mix_visit_weight_places(mix_model *model, mix_weight_visit *visit, void *context) {
  return visit_all(&(walk){.visit = visit, .context = context, .places = true}, model);
}

static bool pass(void *context, const char *path, const char *name, mix_list *variables) { return true; }

bool mix_weight_tree_repeats(mix_model *model) {
  walk w = {.visit = pass};
  return visit_all(&w, model) && w.repeats;
}
