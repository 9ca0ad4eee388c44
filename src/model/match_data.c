/* Which leaf of nested data is which input or output of a model: lists by their order, dicts by name. */
#include "model/model.h"

#include "base/error.h"
#include <stdio.h>
#include <string.h>

typedef const char *(*name_of)(const mix_model *model, int index);

/* The leaf of that name; -1: none. */
static int leaf_named(const mix_component *given, const char *name, const char *call) {
  int leaf = given->first;
  for (int i = 0; i < given->structure->count; i++) {
    const mix_structure *item = given->structure->items[i];
    if (!strcmp(given->structure->names[i], name)) {
      if (item) mix_fail_value("%s: '%s' is a list; expected a tensor", call, name);
      return leaf;
    }
    leaf += item ? item->leaves : 1;
  }
  return -1;
}

static bool has_name(const mix_model *model, name_of name, int count, const char *given) {
  for (int i = 0; i < count; i++)
    if (!strcmp(name(model, i), given)) return true;
  return false;
}

/* "['a', 'b']" */
static const char *list_names(const char *const *names, int count, char *text, size_t size) {
  size_t used = (size_t)snprintf(text, size, "[");
  for (int i = 0; i < count && used < size; i++)
    used += (size_t)snprintf(text + used, size - used, "%s'%s'", i ? ", " : "", names[i]);
  if (used < size) snprintf(text + used, size - used, "]");
  return text;
}

static const char *names_of(const mix_model *model, name_of name, int count, char *text, size_t size) {
  const char *names[MIX_MODEL_MAX];
  int listed = count < MIX_MODEL_MAX ? count : MIX_MODEL_MAX;
  for (int i = 0; i < listed; i++) names[i] = name(model, i);
  return list_names(names, listed, text, size);
}

/* ---- inputs ---- */

static bool input_count_holds(const mix_model *model, int given) {
  int inputs = mix_model_input_count(model);
  if (given != inputs)
    mix_fail_value("%s: %d inputs given; the model has %d%s", mix_layer_name(model->layer), given, inputs,
                   model->kind == MIX_SUBCLASSED ? ", as .inputs of mix_subclassed says" : "");
  return given == inputs;
}

static bool match_in_order(const mix_model *model, const mix_component *x, int *places) {
  if (!input_count_holds(model, x->leaves)) return false;
  for (int i = 0; i < x->leaves; i++) places[i] = x->first + i;
  return true;
}

static void warn_unused(const mix_model *model, const mix_component *x, const char *call) {
  for (int i = 0; i < x->structure->count && model->semantics->unused_inputs_warned; i++)
    if (!has_name(model, mix_model_input_name, mix_model_input_count(model), x->structure->names[i]))
      mix_log_message(MIX_LOG_WARNING, "%s: '%s' is no input of the model; its data are ignored", call,
                      x->structure->names[i]);
}

bool mix_match_inputs(const mix_model *model, const mix_component *x, int *places, const char *call) {
  if (!x->structure || !x->structure->names || model->kind == MIX_SUBCLASSED)
    return match_in_order(model, x, places);
  int inputs = mix_model_input_count(model);
  char text[512], other[512];
  for (int i = 0; i < inputs; i++) {
    const char *name = mix_model_input_name(model, i);
    if (!name)
      return mix_fail_value("%s: the input of '%s' has no name; begin the model with an input layer", call,
                            mix_layer_name(model->layer));
    places[i] = leaf_named(x, name, call);
    if (places[i] < 0)
      mix_fail_value("%s: missing data for input '%s'; the names given are %s, expected %s", call, name,
                     list_names(x->structure->names, x->structure->count, text, sizeof text),
                     names_of(model, mix_model_input_name, inputs, other, sizeof other));
    if (mix_failed()) return false;
  }
  warn_unused(model, x, call);
  return true;
}

mix_list *mix_model_inputs_by_name(const mix_model *model, mix_list *dict, const char *call) {
  int places[MIX_MODEL_MAX];
  mix_list *leaves = mix_list_flatten(dict, call), *inputs = mix_list_new(0, NULL);
  mix_component x = {mix_list_structure(leaves), 0, mix_list_count(leaves)};
  int count = mix_model_input_count(model);
  if (!inputs || !leaves || !mix_match_inputs(model, &x, places, call)) return NULL;
  for (int i = 0; i < count; i++) mix_list_append(inputs, mix_list_get(leaves, places[i]));
  return mix_failed() ? NULL : inputs;
}

/* ---- outputs ---- */

/* A dict of labels or weights. Outputs that it lacks get the place -1. */
bool mix_match_outputs(const mix_model *model, const mix_component *given, const char *what, int *places,
                       const char *call) {
  int outputs = mix_model_output_count(model);
  const mix_structure *dict = given->structure;
  char text[512];
  for (int i = 0; i < dict->count; i++)
    if (!has_name(model, mix_model_output_name, outputs, dict->names[i]))
      return mix_fail_value("%s: %s has '%s', which is no output of the model; its outputs are %s", call,
                            what, dict->names[i],
                            names_of(model, mix_model_output_name, outputs, text, sizeof text));
  for (int i = 0; i < outputs && !mix_failed(); i++) {
    const char *name = mix_model_output_name(model, i);
    places[i] = leaf_named(given, name, call);
    if (places[i] < 0 && !model->semantics->output_dicts_partial)
      mix_fail_value("%s: %s lacks the output '%s'; the names given are %s", call, what, name,
                     list_names(dict->names, dict->count, text, sizeof text));
  }
  return !mix_failed();
}
