/* Optimizers from names, command-line text and JSON configs, and as configs. The option rows of the class
 * serve all of them. */
#include "base/did_you_mean.h"
#include "base/error.h"
#include "base/json.h"
#include "optim/optimizer.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const mix_optimizer_class *const classes[] = {&mix_sgd_class,
                                                     &mix_rmsprop_class,
                                                     &mix_adam_class,
                                                     &mix_adamw_class,
                                                     &mix_adagrad_class,
                                                     &mix_adadelta_class,
                                                     &mix_adamax_class,
                                                     &mix_nadam_class,
                                                     &mix_lion_class,
                                                     &mix_ftrl_class,
                                                     &mix_lamb_class,
                                                     &mix_adafactor_class,
                                                     &mix_muon_class,
                                                     &mix_schedule_free_adamw_class,
                                                     NULL};

static const mix_optimizer_class *find_class(const char *name, size_t length) {
  for (const mix_optimizer_class *const *class = classes; *class; class ++)
    if (strlen((*class)->name) == length && !strncasecmp((*class)->name, name, length)) return *class;
  char word[100], known[256] = "", hint[100];
  snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), name);
  mix_did_you_mean nearest = {.word = word};
  size_t used = 0;
  for (const mix_optimizer_class *const *class = classes; *class && used < sizeof known; class ++) {
    mix_did_you_mean_try(&nearest, (*class)->lower_case_name);
    used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "",
                             (*class)->lower_case_name);
  }
  return mix_fail_value("optimizer: unknown optimizer \"%s\"%s; known: %s", word,
                        mix_did_you_mean_hint(&nearest, hint, sizeof hint), known);
}

static mix_optimizer *construct(const mix_optimizer_class *class, mix_optimizer_settings *settings,
                                const mix_semantics *semantics) {
  settings->common.size = sizeof *settings;
  settings->common.semantics = semantics;
  return mix_optimizer_new(class, settings, sizeof *settings);
}

mix_optimizer *mix_optimizer_from_name(const char *name) {
  if (mix_failed()) return NULL;
  if (!name) return mix_fail_type("optimizer_from_name: no name");
  const mix_optimizer_class *class = find_class(name, strlen(name));
  mix_optimizer_settings settings = {0};
  return class ? construct(class, &settings, NULL) : NULL;
}

mix_optimizer *mix_optimizer_from_text(const char *text, const mix_semantics *semantics) {
  if (mix_failed()) return NULL;
  if (!text) return mix_fail_type("optimizer_from_text: no text");
  size_t length = strcspn(text, ":");
  const mix_optimizer_class *class = find_class(text, length);
  if (!class) return NULL;
  mix_optimizer_settings settings = {0};
  mix_fields fields = mix_optimizer_fields(class, mix_semantics_or_current(semantics));
  json_t *config = mix_fields_parse(&fields, text + length + (text[length] == ':'));
  mix_optimizer *optimizer =
      config && mix_fields_read(&fields, config, &settings) ? construct(class, &settings, semantics) : NULL;
  json_decref(config);
  return optimizer;
}

/* ---- JSON ---- */

static json_t *config_json(mix_optimizer *optimizer) {
  if (optimizer->inner)
    return mix_loss_scale_optimizer_config_json(optimizer, mix_optimizer_to_json(optimizer->inner));
  mix_fields fields = mix_optimizer_fields(optimizer->class, optimizer->rules);
  mix_optimizer_settings options = optimizer->options;
  options.common.semantics = optimizer->semantics;
  options.common.learning_rate = options.common.schedule ? 0 : mix_optimizer_learning_rate(optimizer);
  json_t *config = mix_fields_write(&fields, &options, NULL);
  bool done = config != NULL;
  if (done && optimizer->rules->config_says_not_legacy)
    done = mix_json_set(config, "jit_compile", json_false()) &&
           mix_json_set(config, "is_legacy_optimizer", json_false());
  if (done && !mix_failed()) return config;
  json_decref(config);
  return NULL;
}

json_t *mix_optimizer_to_json(mix_optimizer *optimizer) {
  const char *module = optimizer->options.common.legacy ? "keras.optimizers.legacy" : "keras.optimizers";
  if (optimizer->inner) module = optimizer->semantics->wrapper_module;
  if (!optimizer->semantics->objects_have_module) module = NULL;
  const char *class_name = mix_optimizer_class_name(optimizer);
  json_t *object = mix_json_object(module, class_name, config_json(optimizer));
  if (object && optimizer->inner && optimizer->semantics->wrapper_registered)
    mix_json_set(object, "registered_name", json_string(class_name));
  return object;
}

/* Of a decay that the generation's configs do not have. False with the error recorded. */
static bool check_decay(const json_t *decay, const mix_fields *fields) {
  if (!fields->rules->decay_keyword_ignored)
    return mix_fail_value(
        "%s: decay is no argument of tf_keras's new optimizers; expected a config of module "
        "keras.optimizers.legacy, or an InverseTimeDecay as learning_rate",
        fields->call);
  if (!json_is_null(decay))
    mix_log_message(MIX_LOG_WARNING, "%s: decay is no argument of keras3's optimizers and is ignored",
                    fields->call);
  return true;
}

/* The config without the members that the generation ignores: a new reference. NULL with the error recorded.
 * A legacy config has the keywords of the experimental generation. */
static json_t *own_members(const json_t *config, const mix_fields *fields, bool legacy) {
  const json_t *decay = json_object_get(config, "decay");
  mix_fields keywords = *fields;
  if (legacy) keywords.rules = &mix_semantics_experimental;
  keywords.refusal = fields->rules->unknown_keyword_error;
  const bool ignores_decay = decay && !keywords.rules->learning_rate_decay;
  if (ignores_decay && !check_decay(decay, fields)) return NULL;
  json_t *own = mix_json_copy(config);
  if (ignores_decay) json_object_del(own, "decay");
  if (fields->rules->config_legacy_keys_ignored) {
    json_object_del(own, "jit_compile");
    json_object_del(own, "is_legacy_optimizer");
  }
  if (mix_fields_check(&keywords, own)) return own;
  json_decref(own);
  return NULL;
}

static mix_optimizer *plain_from_json(const mix_optimizer_class *class, const json_t *config,
                                      const mix_semantics *semantics, bool legacy) {
  mix_fields fields = mix_optimizer_fields(class, mix_semantics_or_current(semantics));
  mix_optimizer_settings settings = {.common.legacy = legacy};
  json_t *own = own_members(config, &fields, legacy);
  if (!own && !mix_failed()) mix_fail_memory("an optimizer's config");
  bool read = own && mix_fields_read(&fields, own, &settings);
  mix_optimizer *optimizer = read ? construct(class, &settings, semantics) : NULL;
  json_decref(own);
  return optimizer;
}

static mix_optimizer *from_config_json(const char *class_name, const json_t *config,
                                       const mix_semantics *semantics, bool legacy) {
  if (!json_is_object(config))
    return mix_fail_value("optimizer: the config of \"%.100s\" is not an object", class_name);
  if (!strcasecmp(class_name, "LossScaleOptimizer") || !strcasecmp(class_name, "LossScaleOptimizerV1") ||
      !strcasecmp(class_name, "LossScaleOptimizerV3"))
    return mix_loss_scale_optimizer_from_json(config, semantics, mix_optimizer_from_json);
  const mix_optimizer_class *class = find_class(class_name, strlen(class_name));
  return class ? plain_from_json(class, config, semantics, legacy) : NULL;
}

mix_optimizer *mix_optimizer_from_json(const json_t *json, const mix_semantics *semantics) {
  if (mix_failed()) return NULL;
  if (json_is_string(json)) {
    const mix_optimizer_class *class = find_class(json_string_value(json), strlen(json_string_value(json)));
    mix_optimizer_settings settings = {0};
    return class ? construct(class, &settings, semantics) : NULL;
  }
  const char *class_name = json_string_value(json_object_get(json, "class_name"));
  const char *module = json_string_value(json_object_get(json, "module"));
  if (!class_name) return mix_fail_value("optimizer: expected {\"class_name\": ..., \"config\": {...}}");
  if (!strncmp(class_name, "Custom>", 7)) class_name += 7; /* the new family in HDF5 files of tf_keras */
  const json_t *config = json_object_get(json, "config");
  bool legacy = module && strstr(module, "legacy");
  /* tf_keras writes is_legacy_optimizer into each config of its new family. A config without it is legacy,
   * here only if it also has a decay. */
  if (mix_semantics_or_current(semantics)->config_says_not_legacy && json_object_get(config, "decay"))
    legacy = legacy || !json_object_get(config, "is_legacy_optimizer");
  return from_config_json(class_name, config, semantics, legacy);
}

mix_optimizer *mix_optimizer_from_config(const char *class_name, const char *text,
                                         const mix_semantics *semantics) {
  if (mix_failed()) return NULL;
  if (!class_name || !text) return mix_fail_type("optimizer_from_config: expected a class name and a config");
  json_t *config = mix_json_parse(text, "optimizer_from_config");
  mix_optimizer *optimizer = config ? from_config_json(class_name, config, semantics, false) : NULL;
  json_decref(config);
  return optimizer;
}

mix_optimizer *mix_optimizer_deserialize(const char *text, const mix_semantics *semantics) {
  if (mix_failed()) return NULL;
  if (!text) return mix_fail_type("optimizer_deserialize: no text");
  json_t *json = mix_json_parse(text, "optimizer_deserialize");
  mix_optimizer *optimizer = json ? mix_optimizer_from_json(json, semantics) : NULL;
  json_decref(json);
  return optimizer;
}

const char *mix_optimizer_get_config(mix_optimizer *optimizer) {
  return mix_given(optimizer, &mix_optimizer_object_class, "optimizer_get_config", "an optimizer")
             ? mix_json_keep_text(&optimizer->text, config_json(optimizer))
             : NULL;
}
const char *mix_optimizer_serialize(mix_optimizer *optimizer) {
  return mix_given(optimizer, &mix_optimizer_object_class, "optimizer_serialize", "an optimizer")
             ? mix_json_keep_text(&optimizer->text, mix_optimizer_to_json(optimizer))
             : NULL;
}
