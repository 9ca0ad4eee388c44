/* The library's metrics by name: construction and configs (docs/spec/keras.md, section 11). The kinds are in
 * the other files of this folder. */
#include "nn/metrics/metric.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "nn/config.h"
#include "nn/layer/layer.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define ADDRESS(kind) &mix_metric_##kind##_kind,
static const mix_metric_kind *const kinds[] = {MIX_METRIC_KINDS(ADDRESS)};
#undef ADDRESS
enum { KINDS = sizeof kinds / sizeof *kinds };

const mix_metric_kind *mix_metric_kind_named(const char *name) {
  for (int i = 0; i < KINDS; i++) {
    const mix_metric_kind *kind = kinds[i];
    if (!strcmp(kind->name, name) || !strcmp(kind->class.name, name) ||
        (kind->alias && !strcmp(kind->alias, name)))
      return kind;
  }
  return NULL;
}

static bool names_accuracy(const char *name) { return !strcmp(name, "accuracy") || !strcmp(name, "acc"); }
static bool names_crossentropy(const char *name) {
  return !strcasecmp(name, "crossentropy") || !strcasecmp(name, "ce");
}

/* The arguments of a loss used as a metric. */
static const size_t loss_arguments[] = {MIX_ARGUMENT(from_logits), MIX_ARGUMENT(label_smoothing),
                                        MIX_ARGUMENT(axis), MIX_ARGUMENT(ignore_class), 0};

/* Losses whose class name or default name differs when used as a metric. */
static const struct loss_metric {
  const char *class_name, *other_name, *loss, *name, *keras3_name;
} loss_metrics[] = {{"LogCoshError", "log_cosh_error", "log_cosh", "logcosh", "logcosh"},
                    {"KLDivergence", NULL, "kl_divergence", "kullback_leibler_divergence", "kl_divergence"}};
static const struct loss_metric *loss_metric_named(const char *name) {
  for (size_t i = 0; name && i < sizeof loss_metrics / sizeof *loss_metrics; i++)
    if (!strcmp(loss_metrics[i].class_name, name) ||
        (loss_metrics[i].other_name && !strcmp(loss_metrics[i].other_name, name)))
      return &loss_metrics[i];
  return NULL;
}

static mix_loss *loss_named(const char *name, const mix_metric_options *o, const mix_semantics *semantics) {
  /* keras3 accepts fewer of these names for metrics, and fewer of tf_keras's for losses. Here both
   * generations accept all. */
  return mix_loss_new(name, .semantics = semantics, .reduction = "none", .from_logits = o->from_logits,
                      .label_smoothing = o->label_smoothing, .axis = o->axis,
                      .has_ignore_class = o->has_ignore_class, .ignore_class = o->ignore_class);
}

static bool known_here(const mix_metric_kind *kind, const mix_semantics *semantics) {
  return kind->generations & (semantics->metric_names_keras3 ? MIX_METRIC_KERAS3 : MIX_METRIC_TF_KERAS);
}

/* Records the error, with a spelling suggestion or the list of names, and returns false. */
static bool unknown(const char *name, const mix_semantics *semantics) {
  mix_did_you_mean nearest = {.word = name};
  char hint[100], list[1024];
  mix_text known = {.text = list, .size = sizeof list};
  mix_did_you_mean_try(&nearest, "accuracy");
  mix_text_put(&known, "accuracy");
  for (int i = 0; i < KINDS; i++) {
    if (!known_here(kinds[i], semantics) || kinds[i] == &mix_metric_accuracy_kind) continue;
    mix_did_you_mean_try(&nearest, kinds[i]->name);
    mix_did_you_mean_try(&nearest, kinds[i]->class.name);
    mix_text_put(&known, ", %s", kinds[i]->name);
  }
  mix_loss_names_try(&nearest, semantics);
  if (nearest.found)
    mix_fail_value("metric: '%.60s' is not known to %s%s", name, semantics->name,
                   mix_did_you_mean_hint(&nearest, hint, sizeof hint));
  else
    mix_fail_value("metric: '%.60s' is not known to %s; known: %s, and the names of losses", name,
                   semantics->name, list);
  return false;
}

/* Resolves the options to a user's class, a function, a kind, a loss's values, or a choice by the first
 * update. */
static bool resolve(mix_metric *metric, const mix_metric_options *o) {
  const mix_metric_class *class = &mix_mean_metric_class;
  const size_t *known = NULL;
  if (o->metric_class) {
    class = o->metric_class;
  } else if (o->metric) {
    bool crossentropy = names_crossentropy(o->metric);
    if (crossentropy && !metric->semantics->metric_crossentropy_chosen)
      return mix_fail_value(
          "metric: '%.60s' is not known to %s; give binary_, categorical_ or sparse_categorical_crossentropy",
          o->metric, metric->semantics->name);
    metric->chooses = crossentropy                ? MIX_CHOOSES_CROSSENTROPY
                      : names_accuracy(o->metric) ? MIX_CHOOSES_ACCURACY
                                                  : MIX_CHOOSES_NOTHING;
    metric->kind = metric->chooses ? NULL : mix_metric_kind_named(o->metric);
    if (metric->kind) {
      class = &metric->kind->class;
      known = metric->kind->arguments;
      if (!known_here(metric->kind, metric->semantics)) return unknown(o->metric, metric->semantics);
    } else if (!metric->chooses) {
      const struct loss_metric *other = loss_metric_named(o->metric);
      const char *loss = other ? other->loss : o->metric;
      known = loss_arguments;
      if (!mix_loss_kind_named(loss, metric->semantics)) return unknown(o->metric, metric->semantics);
      metric->loss = mix_retain(loss_named(loss, o, metric->semantics));
    }
  }
  if (mix_failed() || !mix_options_copy(&metric->class, sizeof metric->class, class, "metric")) return false;
  if (!metric->class.name || !metric->class.name[0] || !metric->class.update || !metric->class.result)
    return mix_fail_value("metric: a metric class needs a name, an update and a result function");
  return mix_metric_take_arguments(metric, o, known);
}

/* Keras's default name for a class name, else the given name. */
static const char *default_name(const mix_metric *metric, const char *given) {
  char text[160];
  if (metric->options.metric_class)
    return mix_unique_name(mix_snake_case(metric->class.name, false, text, sizeof text), false);
  if (!given) return "metric";
  const mix_metric_kind *kind = metric->kind;
  if (kind && !strcmp(kind->class.name, given))
    return kind == &mix_metric_accuracy_kind ? "accuracy"
           : kind->numbered                  ? mix_unique_name(kind->name, false)
                                             : kind->name;
  const struct loss_metric *other = loss_metric_named(given);
  if (other) return metric->semantics->metric_names_keras3 ? other->keras3_name : other->name;
  if (metric->loss && !strcmp(metric->loss->kind->class_name, given)) return metric->loss->kind->name;
  return given;
}

/* Under a 16-bit policy the state stays floatx; tf_keras would count samples in 16 bits. */
static mix_dtype dtype_of(const mix_metric_options *o) {
  bool wide = mix_semantics_or_current(o->semantics)->metrics_in_float64 &&
              mix_policy_variable_dtype(mix_global_policy()) == MIX_FLOAT64;
  mix_dtype dtype = o->dtype ? mix_dtype_from_name(o->dtype) : wide ? MIX_FLOAT64 : mix_floatx();
  if (!mix_dtype_is_floating(dtype) && !mix_dtype_is_integer(dtype))
    mix_fail_value("metric: the dtype is '%.60s'; expected a floating-point or integer dtype", o->dtype);
  return dtype;
}

mix_metric *mix_metric_with(const mix_metric_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_metric_options, o, options, "metric");
  if ((o.metric != NULL) + (o.function != NULL) + (o.metric_class != NULL) != 1)
    return mix_fail_value("metric: give a name or a function or a class, one of the three");
  mix_dtype dtype = dtype_of(&o);
  mix_metric *metric = mix_failed() ? NULL : mix_object_new(sizeof *metric, &mix_metric_object_class);
  if (!metric) return NULL;
  metric->semantics = mix_semantics_or_current(o.semantics);
  metric->dtype = dtype;
  metric->dtype_given = o.dtype != NULL;
  bool made = resolve(metric, &o) && (metric->data = mix_calloc(1, metric->class.instance_size)) != NULL;
  if (made) {
    metric->name = mix_intern(o.name ? o.name : default_name(metric, o.metric));
    metric->options.name = metric->name;
    metric->built = !metric->class.build;
    if (metric->kind && metric->kind->make)
      made = metric->kind->make(metric);
    else if (metric->class.update == mix_mean_metric_class.update)
      made = mix_mean_make(metric);
  }
  metric->options.dtype = mix_dtype_name(metric->dtype);
  if (made && !mix_failed()) return mix_scoped(metric);
  if (!metric->kind && (!made || !metric->name))
    metric->class.finalize = NULL; /* the instance of a user's class is not set up; ours may be zero */
  mix_release(metric);
  return NULL;
}

bool mix_metric_takes_class_numbers(const mix_metric *metric, mix_shape y_true, mix_shape y_pred) {
  bool sparse = metric->kind == &mix_metric_sparse_categorical_accuracy_kind ||
                metric->kind == &mix_metric_sparse_top_k_kind;
  if (metric->chooses) return mix_label_kind_of(y_true, y_pred) == MIX_LABELS_SPARSE;
  return sparse || (metric->loss && mix_loss_takes_class_numbers(metric->loss));
}

/* ---- configs ---- */

static const size_t *arguments_of(const mix_metric *metric) {
  return metric->kind ? metric->kind->arguments : metric->loss && !metric->chooses ? loss_arguments : NULL;
}

const char *mix_metric_get_config(mix_metric *metric) {
  if (!mix_given(metric, &mix_metric_object_class, "metric_get_config", "a metric")) return NULL;
  mix_fields fields = mix_metric_fields(metric->name, arguments_of(metric), metric->semantics);
  mix_config config = {mix_fields_write(&fields, &metric->options, NULL)};
  bool custom = config.object && metric->class.get_config;
  if (!custom || metric->class.get_config(metric, &config) == MIX_OK)
    return mix_json_keep_text(&metric->config, config.object);
  json_decref(config.object);
  return NULL;
}

/* The rows of the metric of that name, which messages quote in `call`. */
static mix_fields fields_named(const char *name, const mix_semantics *semantics, char call[80]) {
  const mix_metric_kind *kind = mix_metric_kind_named(name);
  snprintf(call, 80, "metric %.60s", name);
  return mix_metric_fields(call, kind ? kind->arguments : loss_arguments,
                           mix_semantics_or_current(semantics));
}

static mix_metric *from_json(const char *name, const json_t *config, const mix_semantics *semantics) {
  char call[80];
  mix_fields fields = fields_named(name, semantics, call);
  mix_metric_options o = {.size = sizeof o, .metric = name, .semantics = semantics};
  return config && mix_fields_read(&fields, config, &o) ? mix_metric_with(&o) : NULL;
}

mix_metric *mix_metric_from_config(const char *class_name, const char *json, const mix_semantics *semantics) {
  if (mix_failed()) return NULL;
  if (!class_name || !json) return mix_fail_type("metric_from_config: expected a class name and a config");
  json_t *config = mix_json_parse(json, "metric_from_config");
  mix_metric *metric = from_json(class_name, config, semantics);
  json_decref(config);
  return metric;
}

mix_metric *mix_metric_from_text(const char *text, const mix_semantics *semantics) {
  if (mix_failed()) return NULL;
  if (!text) return mix_fail_type("metric_from_text: no text");
  char call[80], *name = mix_strdup(text), *arguments = name ? strchr(name, ':') : NULL;
  if (!name) return NULL;
  if (arguments) *arguments++ = 0;
  mix_fields fields = fields_named(name, semantics, call);
  if (arguments && !*arguments) mix_fail_value("%s: '' is not of the form key=value", call);
  json_t *config = mix_failed() ? NULL : mix_fields_parse(&fields, arguments ? arguments : "");
  mix_metric *metric = from_json(name, config, semantics);
  mix_free(name);
  json_decref(config);
  return metric;
}
