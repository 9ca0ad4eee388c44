/* Metrics of a compiled model: loss trackers, metrics and weighted metrics of each output, and their names in
 * logs (docs/spec/keras.md, section 11). */
#include "model/model.h"

#include "base/alloc.h"
#include "base/error.h"
#include <stdio.h>
#include <string.h>

static mix_metric *mean_metric(const mix_model *model, const char *name) {
  mix_metric_options options = {
      .size = sizeof options, .metric = "mean", .name = name, .semantics = model->semantics};
  return mix_metric_with(&options);
}

/* With several outputs: "<output>_<metric>", weighted "<output>_weighted_<metric>". */
static void log_name(const mix_model *model, int output, bool weighted, const char *name, char *text,
                     size_t size) {
  bool several = mix_model_output_count(model) > 1;
  snprintf(text, size, "%s%s%s%s", several ? mix_model_output_name(model, output) : "", several ? "_" : "",
           weighted ? "weighted_" : "", name);
}

static bool taken(const mix_compiled_state *state, const char *name) {
  for (int i = 0; i < state->metric_count; i++)
    if (!strcmp(state->metrics[i].name, name)) return true;
  return false;
}

/* If the name is in use, a weighted metric gets "weighted_". If that is in use too, keras3 appends a number
 * and tf_keras fails. */
static const char *free_name(const mix_model *model, int output, bool weighted, const char *name) {
  char text[256], numbered[272];
  log_name(model, output, false, name, text, sizeof text);
  if (!taken(model->compiling, text)) return mix_intern(text);
  if (weighted) log_name(model, output, true, name, text, sizeof text);
  if (!taken(model->compiling, text)) return mix_intern(text);
  if (!model->semantics->metric_names_numbered)
    return mix_fail_value(
        "model_compile: two metrics are called '%s'; all metrics of a model need names of their own", text);
  for (int i = 1;; i++) {
    snprintf(numbered, sizeof numbered, "%s_%d", text, i);
    if (!taken(model->compiling, numbered)) return mix_intern(numbered);
  }
}

/* A metric object in two places would count everything twice. */
static bool used(const mix_compiled_state *state, const mix_metric *metric) {
  for (int i = 0; i < state->metric_count; i++)
    if (state->metrics[i].metric == metric) return true;
  return false;
}

static bool add(mix_model *model, mix_metric *metric, const char *name, int output, bool weighted) {
  mix_compiled_state *state = model->compiling;
  if (metric && used(state, metric))
    return mix_fail_value("model_compile: the metric object '%s' is given twice; make one for each place",
                          mix_metric_name(metric));
  const char *shown = metric ? free_name(model, output, weighted, name) : NULL;
  if (!shown ||
      !mix_reserve(&state->metrics, &state->metric_capacity, state->metric_count + 1, sizeof *state->metrics))
    return false;
  state->metrics[state->metric_count++] =
      (mix_model_metric){.metric = mix_retain(metric), .name = shown, .output = output, .weighted = weighted};
  return true;
}

/* keras3 logs a metric under the name by which it was requested; tf_keras logs one requested by class name
 * under the object's name. A request with arguments corresponds to an object in Keras: both log it under the
 * object's name. */
static bool add_named(mix_model *model, const char *const *names, int output, bool weighted) {
  for (int m = 0; m < MIX_MODEL_MAX && names[m]; m++) {
    mix_metric *metric = mix_metric_from_text(names[m], model->semantics);
    bool asked = model->semantics->metric_named_as_requested && !strchr(names[m], ':');
    const char *shown = asked ? names[m] : mix_metric_name(metric);
    if (!add(model, metric, shown, output, weighted)) return false;
  }
  return true;
}

static bool add_object(mix_model *model, void *object, const char *field, int output, bool weighted) {
  if (mix_is(object, &mix_metric_object_class))
    return add(model, object, mix_metric_name(object), output, weighted);
  return mix_fail_type("model_compile: an item of %s is not a metric", field);
}

/* One output: a list of metrics. Several: an item for each, a metric, a list of metrics, or NULL. */
static bool add_objects(mix_model *model, mix_list *objects, const char *field, int output, bool weighted) {
  int outputs = mix_model_output_count(model);
  if (!objects) return true;
  if (outputs > 1 && mix_list_count(objects) != outputs)
    return mix_fail_value(
        "model_compile: %d items of %s; the model has %d outputs: give each a metric, a list of metrics, or "
        "NULL",
        mix_list_count(objects), field, outputs);
  void *item = outputs > 1 ? mix_list_get(objects, output) : objects;
  if (!item) return true;
  if (!mix_is(item, &mix_list_class)) return add_object(model, item, field, output, weighted);
  for (int m = 0; m < mix_list_count(item); m++)
    if (!add_object(model, mix_list_get(item, m), field, output, weighted)) return false;
  return true;
}

static bool add_of_output(mix_model *model, const mix_compile_options *options, int output, bool weighted) {
  if (weighted)
    return add_named(model, options->weighted_metrics, output, true) &&
           add_objects(model, options->weighted_metric_objects, "weighted_metric_objects", output, true);
  return add_named(model, options->metrics, output, false) &&
         add_objects(model, options->metric_objects, "metric_objects", output, false);
}

static bool add_trackers(mix_model *model) {
  char text[256];
  mix_compiled_state *state = model->compiling;
  state->loss_tracker = mix_retain(mean_metric(model, "loss"));
  if (!state->loss_tracker) return false;
  int losses = 0;
  for (int i = 0; i < state->output_count; i++) losses += state->losses[i] != NULL;
  /* Only outputs with a loss have a tracker. If only one output has a loss, keras3 shows only the total. */
  const bool shown = state->output_count > 1 && (losses > 1 || !model->semantics->single_loss_as_total);
  for (int i = 0; i < state->output_count && shown; i++) {
    if (!state->losses[i]) continue;
    mix_metric *metric = mean_metric(model, "loss");
    if (!metric) return false;
    log_name(model, i, false, "loss", text, sizeof text);
    state->trackers[state->tracker_count++] =
        (mix_model_metric){.metric = mix_retain(metric), .name = mix_intern(text), .output = i};
  }
  return !mix_failed();
}

/* tf_keras: metrics of an output, then its weighted metrics, then the next output. keras3: all weighted
 * metrics after all others. */
bool mix_model_compile_metrics(mix_model *model, mix_compiled_state *state,
                               const mix_compile_options *options) {
  model->compiling = state;
  bool good = add_trackers(model), weighted_last = model->semantics->weighted_metrics_last;
  int outputs = state->output_count;
  for (int i = 0; i < outputs && good; i++)
    good =
        add_of_output(model, options, i, false) && (weighted_last || add_of_output(model, options, i, true));
  for (int i = 0; i < outputs && weighted_last && good; i++) good = add_of_output(model, options, i, true);
  model->compiling = NULL;
  return good && !mix_failed();
}

mix_metric *mix_model_added_metric(mix_model *model, const char *name) {
  mix_compiled_state *state = model->state;
  for (int i = 0; i < state->metric_count; i++)
    if (state->metrics[i].added && !strcmp(state->metrics[i].name, name)) return state->metrics[i].metric;
  bool is_taken = taken(state, name) || !strcmp(name, "loss");
  for (int i = 0; i < state->tracker_count; i++) is_taken |= !strcmp(state->trackers[i].name, name);
  if (is_taken)
    return mix_fail_value("layer_add_metric: '%s' is in the logs already; choose another name", name);
  mix_metric *metric = mean_metric(model, name);
  if (!metric || mix_metric_build(metric, (mix_shape){0}, (mix_shape){0}) != MIX_OK ||
      !mix_reserve(&state->metrics, &state->metric_capacity, state->metric_count + 1, sizeof *state->metrics))
    return NULL;
  state->metrics[state->metric_count++] =
      (mix_model_metric){.metric = mix_retain(metric), .name = mix_metric_name(metric), .added = true};
  return metric;
}

/* ---- queries ---- */

mix_list *mix_model_metrics(mix_model *model) {
  if (!mix_model_compiled(model, "model_metrics")) return NULL;
  const mix_compiled_state *state = model->state;
  mix_list *list = mix_list_of(state->loss_tracker);
  for (int i = 0; i < state->tracker_count; i++) mix_list_append(list, state->trackers[i].metric);
  for (int i = 0; i < state->metric_count; i++) mix_list_append(list, state->metrics[i].metric);
  return mix_failed() ? NULL : list;
}

/* In most metrics only the width of the outputs shapes the state. The rest is built with the first batch. */
static void build_metrics(mix_model *model) {
  for (int i = 0; i < model->state->metric_count; i++) {
    if (model->state->metrics[i].added) continue;
    mix_shape shape = mix_model_output_shape(model, model->state->metrics[i].output);
    if (shape.rank > 0 && shape.dims[shape.rank - 1] > 0)
      mix_metric_build(model->state->metrics[i].metric, shape, shape);
  }
}

mix_list *mix_model_metrics_variables(mix_model *model) {
  mix_list *metrics = mix_model_metrics(model), *list = metrics ? mix_list_new(0, NULL) : NULL;
  if (!list) return NULL;
  MIX_MODEL_USE(model, MIX_CHANGES_METRICS, "model_metrics_variables") { build_metrics(model); }
  for (int i = 0; i < mix_list_count(metrics) && !mix_failed(); i++) {
    mix_list *state = mix_metric_variables(mix_list_get(metrics, i));
    for (int k = 0; state && k < mix_list_count(state); k++) mix_list_append(list, mix_list_get(state, k));
  }
  return mix_failed() ? NULL : list;
}
