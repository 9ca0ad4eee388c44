/* Configs of loss-scale optimizers: each generation's form, and the older forms that it reads. */
#include "base/error.h"
#include "base/json.h"
#include "nn/policy/loss_scale.h"
#include "optim/optimizer.h"
#include <stdio.h>
#include <string.h>

json_t *mix_loss_scale_optimizer_config_json(mix_optimizer *optimizer, json_t *inner) {
  const mix_semantics *semantics = optimizer->semantics;
  mix_loss_scale *scale = optimizer->loss_scale;
  json_t *config = json_object();
  bool object_form = semantics->wrapper_takes_object, dynamic = mix_loss_scale_is_dynamic(scale);
  bool done = config && inner && mix_json_set(config, object_form ? "optimizer" : "inner_optimizer", inner);
  if (done && object_form) done = mix_json_set(config, "loss_scale", mix_loss_scale_to_json(scale));
  if (done && !object_form) {
    done = mix_json_set(config, "initial_scale", json_real(mix_loss_scale_initial(scale))) &&
           mix_json_set(config, "dynamic_growth_steps",
                        dynamic ? json_integer(mix_loss_scale_increment_period(scale)) : json_null());
    if (done && semantics->wrapper_dynamic_argument)
      done = mix_json_set(config, "dynamic", json_boolean(dynamic));
    if (done && semantics->wrapper_named) done = mix_json_set(config, "name", json_string(optimizer->name));
  }
  if (done) return config;
  json_decref(config);
  return NULL;
}

/* Reads {optimizer, loss_scale}: the experimental form, which tf_keras accepts too. */
static mix_optimizer *from_object_form(const json_t *config, const mix_semantics *semantics,
                                       mix_optimizer_reader *read_inner) {
  mix_optimizer *inner = read_inner(json_object_get(config, "optimizer"), semantics);
  mix_loss_scale *scale =
      inner ? mix_loss_scale_from_json(json_object_get(config, "loss_scale"), semantics) : NULL;
  if (mix_failed()) return NULL;
  if (!scale)
    return mix_fail_value(
        "loss_scale_optimizer: the config's loss_scale is null; expected FixedLossScale or DynamicLossScale");
  return mix_loss_scale_optimizer(inner, .loss_scale = scale, .semantics = semantics);
}

/* keras3: old configs hold the common optimizer keywords, which are accepted at their defaults. */
static bool check_keywords(const json_t *config) {
  static const char *const own[] = {"inner_optimizer", "initial_scale", "dynamic_growth_steps", "name",
                                    "dynamic"};
  static const struct {
    const char *name;
    double default_value;
  } base[] = {{"weight_decay", 0},
              {"clipnorm", 0},
              {"global_clipnorm", 0},
              {"clipvalue", 0},
              {"use_ema", 0},
              {"ema_momentum", 0.99},
              {"ema_overwrite_frequency", 0},
              {"loss_scale_factor", 0},
              {"gradient_accumulation_steps", 0}};
  char unknown[256] = "";
  size_t used = 0;
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)config, key, value) {
    bool known = false;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) known = known || !strcmp(key, own[i]);
    for (size_t i = 0; i < sizeof base / sizeof *base; i++) {
      if (strcmp(key, base[i].name)) continue;
      known = true;
      double given = json_is_boolean(value) ? json_is_true(value) : json_number_value(value);
      /* If the default is None, only null is the default: a weight_decay of 0 is a value. */
      bool is_default = base[i].default_value == 0 && strcmp(key, "use_ema")
                            ? json_is_null(value)
                            : given == base[i].default_value && !json_is_null(value);
      if (!is_default)
        return mix_fail_value("loss_scale_optimizer: %s is not supported here; set it on the inner optimizer",
                              key);
    }
    if (!known && used < sizeof unknown)
      used += (size_t)snprintf(unknown + used, sizeof unknown - used, "%s%s", used ? ", " : "", key);
  }
  if (used) return mix_fail_value("loss_scale_optimizer: unknown arguments: %s", unknown);
  return true;
}

mix_optimizer *mix_loss_scale_optimizer_from_json(const json_t *config, const mix_semantics *semantics,
                                                  mix_optimizer_reader *read_inner) {
  semantics = mix_semantics_or_current(semantics);
  if (json_object_get(config, "optimizer") && semantics->wrapper_reads_object_form)
    return from_object_form(config, semantics, read_inner);
  if (semantics->wrapper_keywords_checked && !check_keywords(config)) return NULL;
  const json_t *dynamic = json_object_get(config, "dynamic"),
               *initial = json_object_get(config, "initial_scale"),
               *steps = json_object_get(config, "dynamic_growth_steps");
  if (dynamic && !json_is_boolean(dynamic))
    return mix_fail_type("loss_scale_optimizer: dynamic must be a boolean");
  if ((initial && !json_is_number(initial) && !json_is_null(initial)) ||
      (steps && !json_is_integer(steps) && !json_is_null(steps)))
    return mix_fail_type(
        "loss_scale_optimizer: initial_scale must be a number and dynamic_growth_steps an integer");
  mix_loss_scale_optimizer_options options = {
      .size = sizeof options, .semantics = semantics, .fixed = json_is_false(dynamic)};
  if (json_is_number(initial))
    options.initial_scale = json_number_value(initial) == 0 ? MIX_ZERO : json_number_value(initial);
  if (json_is_integer(steps) && !mix_json_integer_read(steps, "dynamic_growth_steps", "an integer", 0,
                                                       INT64_MAX, &options.dynamic_growth_steps))
    return NULL;
  if (json_is_integer(steps) && !options.dynamic_growth_steps) options.dynamic_growth_steps = MIX_INT_ZERO;
  options.name = json_string_value(json_object_get(config, "name"));
  options.inner = read_inner(json_object_get(config, "inner_optimizer"), semantics);
  return options.inner ? mix_loss_scale_optimizer_with(&options) : NULL;
}
