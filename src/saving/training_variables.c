/* The variables of a training run as values of a checkpoint. */
#include "saving/training_variables.h"

#include "base/alloc.h"
#include "base/error.h"
#include "distribute/distribute.h"
#include "graph/divided_variable.h"
#include "nn/config.h"
#include "optim/optimizer.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <string.h>

enum { NAME_MAX = 64 };

/* ---- JSON ---- */

bool mix_archive_put_json(mix_archive *archive, const char *name, json_t *json) {
  char *text = json ? mix_json_text(json) : NULL;
  if (!json) mix_fail_memory("a checkpoint's names");
  json_decref(json);
  bool done = text && mix_archive_put_text(archive, name, text);
  mix_free(text);
  return done;
}

json_t *mix_archive_get_json(mix_archive *archive, const char *name) {
  char *text = mix_archive_get_text(archive, name);
  json_t *json = text && mix_json_has_room(text) ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
  if (text && !json && !mix_failed()) mix_fail_format("%s: '%s' is no JSON", mix_archive_path(archive), name);
  mix_free(text);
  return json;
}

/* ---- collecting ---- */

mix_list *mix_training_generators(mix_model *model) {
  mix_list *generators = mix_layer_generators(model->layer), *states = mix_list_new(0, NULL);
  for (int i = 0; generators && states && i < mix_list_count(generators); i++)
    mix_list_append(states, mix_generator_state(mix_list_items(generators)[i]));
  return mix_failed() ? NULL : states;
}

static void append_new(mix_list *list, void *item) {
  for (int i = 0; i < mix_list_count(list); i++)
    if (mix_list_items(list)[i] == item) return;
  if (item) mix_list_append(list, item);
}

mix_list *mix_training_optimizer_variables(mix_optimizer *optimizer, mix_model *model) {
  mix_optimizer *plain = mix_optimizer_plain(optimizer);
  if (!plain->built && !model)
    return mix_fail_value("checkpoint: %s has no state yet; give the model, or call mix_optimizer_build",
                          plain->name);
  if (!plain->built && mix_optimizer_build_in_step(plain, mix_model_trainable_variables(model)) != MIX_OK)
    return NULL;
  mix_list *variables = mix_optimizer_variables(optimizer);
  if (!variables) return NULL;
  append_new(variables, mix_loss_scale_variable(mix_optimizer_loss_scale_object(optimizer)));
  append_new(variables, mix_optimizer_dynamic_counter(optimizer));
  append_new(variables, mix_loss_scale_skipped_steps(mix_optimizer_loss_scale_object(optimizer)));
  return mix_failed() ? NULL : variables;
}

/* ---- values ---- */

bool mix_training_put(mix_archive *archive, const char *group, mix_list *variables) {
  char name[NAME_MAX];
  json_t *names = json_array();
  for (int i = 0; variables && i < mix_list_count(variables) && !mix_failed(); i++)
    MIX_SCOPE {
      mix_variable *variable = mix_list_items(variables)[i];
      snprintf(name, sizeof name, "%s/%d", group, i);
      /* Rank 0 writes, to which alone the state of the optimizer was gathered. */
      if (!mix_rank() || mix_variable_is_here(variable))
        mix_archive_put(archive, name, mix_variable_true_value(variable));
      mix_json_append(names, json_string(variable->name));
    }
  snprintf(name, sizeof name, "%s/names", group);
  return mix_archive_put_json(archive, name, names) && !mix_failed();
}

static const char *described(mix_dtype dtype, mix_shape shape, char *text, size_t size) {
  snprintf(text, size, "%s %s", mix_dtype_name(dtype), MIX_SHAPE_TEXT(shape));
  return text;
}

static bool read_value(mix_archive *archive, const char *group, int i, const char *theirs,
                       mix_variable *variable, mix_list *values) {
  char name[NAME_MAX], ours[200], other[200];
  snprintf(name, sizeof name, "%s/%d", group, i);
  mix_tensor *value = mix_archive_get(archive, name);
  if (mix_failed()) return false;
  if (!value)
    mix_fail_format("%s: '%s' is missing", mix_archive_path(archive), name);
  else if (mix_tensor_dtype(value) != variable->dtype ||
           !mix_shape_equal(mix_tensor_shape(value), variable->shape))
    mix_fail_value("%s: '%s' is %s, in the checkpoint ('%s') %s; "
                   "resume with the model, policy and optimizer that it was made with",
                   mix_archive_path(archive), variable->name,
                   described(variable->dtype, variable->shape, ours, sizeof ours), theirs,
                   described(mix_tensor_dtype(value), mix_tensor_shape(value), other, sizeof other));
  return !mix_failed() && mix_list_append(values, value) == MIX_OK;
}

static const char *name_at(const json_t *names, int i) {
  const char *name = json_string_value(json_array_get(names, (size_t)i));
  return name ? name : "?";
}

/* When the counts differ, reports the first name that differs. */
static void fail_count_mismatch(mix_archive *archive, const char *group, mix_list *variables,
                                const json_t *names) {
  int ours = mix_list_count(variables), theirs = (int)json_array_size(names), i = 0;
  while (i < ours && i < theirs &&
         !strcmp(mix_variable_name(mix_list_items(variables)[i]), name_at(names, i)))
    i++;
  mix_fail_value("%s: %s: %d variables here, %d in the checkpoint; they differ from '%s' on (there '%s')",
                 mix_archive_path(archive), group, ours, theirs,
                 i < ours ? mix_variable_name(mix_list_items(variables)[i]) : "none",
                 i < theirs ? name_at(names, i) : "none");
}

bool mix_training_get(mix_archive *archive, const char *group, mix_list *variables, mix_list *values) {
  char name[NAME_MAX];
  snprintf(name, sizeof name, "%s/names", group);
  json_t *names = variables && values ? mix_archive_get_json(archive, name) : NULL;
  if (!names) return false;
  if (json_array_size(names) != (size_t)mix_list_count(variables))
    fail_count_mismatch(archive, group, variables, names);
  for (int i = 0; i < mix_list_count(variables) && !mix_failed(); i++)
    read_value(archive, group, i, name_at(names, i), mix_list_items(variables)[i], values);
  json_decref(names);
  return !mix_failed();
}

/* ---- kind: layers, policies and optimizer ---- */

static void append_layers(json_t *lines, mix_layer *layer, int depth) {
  char line[256];
  const char *policy = mix_policy_name(mix_layer_own_policy(layer));
  snprintf(line, sizeof line, "%*s%s, policy %s", depth, "", layer->class.name, policy ? policy : "none");
  mix_json_append(lines, json_string(line));
  for (int i = 0; i < mix_list_count(layer->layers); i++)
    append_layers(lines, mix_list_items(layer->layers)[i], depth + 1);
}

static json_t *kind_of(mix_model *model, mix_optimizer *optimizer) {
  char line[256] = "none", scale[128] = "";
  json_t *lines = json_array();
  const mix_semantics *semantics = model ? model->semantics : optimizer ? optimizer->semantics : NULL;
  mix_json_append(lines, json_string(semantics ? semantics->name : "none"));
  if (optimizer) {
    mix_loss_scale *loss_scale = mix_optimizer_loss_scale_object(optimizer);
    if (loss_scale && mix_loss_scale_is_dynamic(loss_scale))
      snprintf(scale, sizeof scale, " in %s with a dynamic loss scale", mix_optimizer_class_name(optimizer));
    else if (loss_scale)
      snprintf(scale, sizeof scale, " in %s with the loss scale %.17g", mix_optimizer_class_name(optimizer),
               mix_loss_scale_initial(loss_scale));
    snprintf(line, sizeof line, "%s%s", mix_optimizer_class_name(mix_optimizer_plain(optimizer)), scale);
  }
  mix_json_append(lines, json_string(line));
  if (model) append_layers(lines, model->layer, 0);
  return lines;
}

bool mix_training_put_kind(mix_archive *archive, const char *prefix, mix_model *model,
                           mix_optimizer *optimizer) {
  char name[NAME_MAX];
  snprintf(name, sizeof name, "%skind", prefix);
  return mix_archive_put_json(archive, name, kind_of(model, optimizer));
}

/* The name of layer `index` in the order of the walk; decrements `*index` per layer. */
static const char *layer_name_at(mix_layer *layer, int *index) {
  if ((*index)-- == 0) return layer->name;
  for (int i = 0; i < mix_list_count(layer->layers); i++) {
    const char *name = layer_name_at(mix_list_items(layer->layers)[i], index);
    if (name) return name;
  }
  return NULL;
}

bool mix_training_check_kind(mix_archive *archive, const char *prefix, mix_model *model,
                             mix_optimizer *optimizer) {
  char name_of_kind[NAME_MAX];
  snprintf(name_of_kind, sizeof name_of_kind, "%skind", prefix);
  json_t *theirs = mix_archive_get_json(archive, name_of_kind),
         *ours = theirs ? kind_of(model, optimizer) : NULL;
  for (size_t i = 0; ours && !mix_failed() && (i < json_array_size(ours) || i < json_array_size(theirs));
       i++) {
    const char *a = json_string_value(json_array_get(ours, i)),
               *b = json_string_value(json_array_get(theirs, i));
    if (a && b && !strcmp(a, b)) continue;
    int index = (int)i - 2;
    const char *name = i >= 2 && model ? layer_name_at(model->layer, &index) : NULL;
    mix_fail_value("%s: %s%s%s is %s here, %s in the checkpoint; " MIX_RESUME_REMEDY,
                   mix_archive_path(archive),
                   i == 0   ? "the generation"
                   : i == 1 ? "the optimizer"
                            : "layer '",
                   i < 2  ? ""
                   : name ? name
                          : "none",
                   i < 2 ? "" : "'", a ? a : "missing", b ? b : "missing");
  }
  json_decref(ours);
  json_decref(theirs);
  return !mix_failed();
}
