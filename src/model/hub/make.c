/* From the config of a class of KerasHub to its model. */
#include "base/error.h"
#include "model/hub/hub.h"
#include <stdio.h>
#include <string.h>

static const char package[] = "keras_hub>";

#define ADDRESS(name) &mix_hub_##name,
static const mix_hub_family *const families[] = {MIX_HUB_FAMILIES(ADDRESS)};
#undef ADDRESS

const mix_hub_family *mix_hub_family_of(const char *class_name, const char *registered_name) {
  mix_did_you_mean nearest = {.word = class_name};
  char hint[100];
  if (!class_name || !registered_name || strncmp(registered_name, package, sizeof package - 1)) return NULL;
  for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
    if (!strcmp(families[i]->name, class_name)) return families[i];
    mix_did_you_mean_try(&nearest, families[i]->name);
  }
  return mix_fail_unsupported(
      "model_from_json: '%.60s' of KerasHub is not supported%s; docs/manual/kerashub.md "
      "lists the classes that are, and mix_register_model takes one of your own",
      class_name, mix_did_you_mean_hint(&nearest, hint, sizeof hint));
}

/* Those of every model. */
static const mix_field_row common_fields[] = {
    {MIX_FIELD(mix_layer_common, name), &mix_field_text},
    {"trainable", offsetof(mix_layer_common, not_trainable), &mix_field_negated},
    {"dtype", offsetof(mix_layer_common, policy), &mix_field_policy},
    {0}};

mix_model *mix_hub_make(const mix_hub_family *family, const json_t *config, const mix_semantics *semantics) {
  const mix_fields fields = {
      .common = common_fields, .rows = family->fields, .call = family->name, .rules = semantics};
  mix_layer_common *options = mix_scoped_memory(family->options_size);
  if (!options) return NULL;
  options->size = family->options_size;
  options->semantics = semantics;
  if (!mix_fields_check(&fields, config) || !mix_fields_read(&fields, config, options) ||
      !mix_fields_resolve(&fields, options))
    return NULL;
  mix_model *model = family->build(options);
  if (model &&
      options->policy) { /* the object that its layers have: keys of a map are sought in all of them */
    mix_release(model->layer->policy);
    model->layer->policy = mix_retain(options->policy);
  }
  mix_fields_release(&fields, options);
  return mix_failed() ? NULL : model;
}
