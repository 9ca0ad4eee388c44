/* The arguments of compile as JSON, both ways (docs/spec/keras.md, 17.1). */
#include "saving/model_json.h"

#include "base/alloc.h"
#include "base/error.h"
#include "nn/layers/operands.h"
#include "optim/optimizer.h"
#include <string.h>

/* ---- writing ---- */

/* The mean of a loss's values is a metric of the loss's name and options. */
static json_t *loss_metric_json(const mix_metric *metric, json_t *config) {
  json_t *loss = mix_loss_to_json(metric->loss), *options = json_object_get(loss, "config"),
         *own = json_object();
  const char *name = metric->loss->kind->class_name;
  if (!strcmp(name, "LogCosh")) name = "LogCoshError";
  static const char *const kept[] = {"name", "dtype"};
  for (int i = 0; i < 2; i++)
    if (json_object_get(config, kept[i]))
      mix_json_set(own, kept[i], json_incref(json_object_get(config, kept[i])));
  json_object_del(options, "name");
  json_object_del(options, "reduction");
  if (loss) mix_json_update(own, options);
  const char *module = metric->semantics->objects_have_module ? "keras.metrics" : NULL;
  json_t *object = mix_json_object(module, name, own);
  json_decref(loss);
  json_decref(config);
  return object;
}

static json_t *metric_json(mix_metric *metric) {
  const char *config = mix_metric_get_config(metric);
  json_t *object = config ? mix_json_parse(config, "metric") : NULL;
  const bool of_loss = metric->loss && metric->loss->kind && !metric->kind && !metric->chooses;
  if (object && of_loss) return loss_metric_json(metric, object);
  const char *module = metric->semantics->objects_have_module ? "keras.metrics" : NULL;
  return mix_json_object(module, metric->class.name, object);
}

static json_t *object_json(void *object) {
  json_t *list;
  if (!object) return json_null();
  if (mix_is(object, &mix_loss_class)) return mix_loss_to_json(object);
  if (mix_is(object, &mix_metric_object_class)) return metric_json(object);
  list = json_array();
  for (int i = 0; i < mix_list_count(object); i++)
    mix_json_append(list, object_json(mix_list_get(object, i)));
  return list;
}

static json_t *texts_json(const char *const *texts) {
  json_t *list = json_array();
  for (int i = 0; i < MIX_MODEL_MAX && texts[i]; i++) mix_json_append(list, json_string(texts[i]));
  return list;
}

static bool has_weights(const mix_compile_options *given, int outputs) {
  bool any = false;
  for (int i = 0; i < outputs; i++) any |= given->loss_weights[i] != 0;
  return any;
}

static json_t *loss_json(const mix_compile_options *given) {
  if (given->loss) return json_string(given->loss);
  if (given->losses[0]) return texts_json(given->losses);
  return object_json(given->loss_object ? (void *)given->loss_object : (void *)given->loss_objects);
}

/* Keras 3 takes as many losses as weights. */
static json_t *losses_json(const mix_compile_options *given, int outputs) {
  json_t *loss = loss_json(given);
  if (!loss || outputs < 2 || json_is_array(loss) || json_is_null(loss) || !has_weights(given, outputs))
    return loss;
  json_t *list = json_array();
  for (int i = 0; i < outputs; i++) mix_json_append(list, mix_json_copy(loss));
  json_decref(loss);
  return list;
}

static json_t *loss_weights_json(const mix_compile_options *given, int outputs) {
  if (!has_weights(given, outputs)) return json_null();
  json_t *list = json_array();
  for (int i = 0; i < outputs; i++)
    mix_json_append(list, json_real(mix_option_number(given->loss_weights[i], 1)));
  return list;
}

/* Names are for every output, as Keras has them for the only one. */
static json_t *metrics_json(const char *const *names, mix_list *objects, int outputs) {
  if (!names[0]) return object_json(objects);
  if (outputs == 1) {
    json_t *list = texts_json(names), *more = objects ? object_json(objects) : NULL;
    if (json_is_array(more)) mix_json_extend(list, more);
    json_decref(more);
    return list;
  }
  json_t *list = json_array();
  for (int i = 0; i < outputs; i++) {
    json_t *own = texts_json(names), *more = objects ? object_json(mix_list_get(objects, i)) : NULL;
    if (json_is_array(more)) mix_json_extend(own, more);
    if (json_is_object(more)) mix_json_append(own, json_incref(more));
    json_decref(more);
    mix_json_append(list, own);
  }
  return list;
}

/* In the order of the generation. */
static json_t *given_json(const mix_model *model) {
  const mix_compile_options *given = &model->state->given;
  const mix_semantics *rules = model->semantics;
  const int outputs = model->state->output_count;
  const bool saved = rules->compile_defaults_saved;
  json_t *config = json_object();
  mix_json_set(config, "loss", losses_json(given, outputs));
  if (!rules->compile_metrics_before_weights)
    mix_json_set(config, "loss_weights", loss_weights_json(given, outputs));
  mix_json_set(config, "metrics", metrics_json(given->metrics, given->metric_objects, outputs));
  if (rules->compile_metrics_before_weights)
    mix_json_set(config, "loss_weights", loss_weights_json(given, outputs));
  mix_json_set(config, "weighted_metrics",
               metrics_json(given->weighted_metrics, given->weighted_metric_objects, outputs));
  mix_json_set(config, "run_eagerly", saved ? json_false() : json_null());
  mix_json_set(config, "steps_per_execution", saved ? json_integer(1) : json_null());
  mix_json_set(config, "jit_compile", given->jit_compile ? json_true() : saved ? json_false() : json_null());
  return config;
}

json_t *mix_compile_config_json(mix_model *model) {
  json_t *config = json_object(), *rest = model->state->config;
  mix_json_set(config, "optimizer", mix_optimizer_to_json(model->state->given_optimizer));
  rest = rest ? json_incref(rest) : given_json(model);
  mix_json_update(config, rest);
  json_decref(rest);
  return mix_json_whole(config);
}

/* ---- reading ---- */

/* A name, or an object of a class or a function. */
static const char *name_in(const json_t *value) {
  const char *class_name = json_string_value(json_object_get(value, "class_name"));
  if (json_is_string(value)) return json_string_value(value);
  bool function = class_name && !strcmp(class_name, "function");
  return function ? json_string_value(json_object_get(value, "config")) : NULL;
}

static void *read_loss(const mix_model *model, const json_t *value, int output) {
  const char *name = name_in(value);
  if (json_is_null(value)) return NULL;
  if (name) return mix_loss_new(name, .semantics = model->semantics);
  return mix_loss_from_json(value, model->semantics);
}

/* In these files the names of metrics have that of their output before them, as in logs. */
static const char *without_output(const mix_model *model, const char *name, int output) {
  if (!name || mix_model_output_count(model) < 2) return name;
  const char *prefix = mix_model_output_name(model, output);
  const size_t length = strlen(prefix);
  return !strncmp(name, prefix, length) && name[length] == '_' ? name + length + 1 : name;
}

/* How tf_keras saves the mean of a function's values in HDF5 files. */
static void *read_wrapper(const mix_model *model, const json_t *value, int output) {
  const json_t *config = json_object_get(value, "config");
  const char *function = name_in(json_object_get(config, "fn"));
  if (!function)
    return mix_fail_value("model_from_json: the function of a MeanMetricWrapper is %s; expected its "
                          "name",
                          mix_json_kind(json_object_get(config, "fn")));
  mix_metric_options options = {.size = sizeof options, .metric = function, .semantics = model->semantics};
  options.name = without_output(model, mix_json_string_or(config, "name", NULL), output);
  options.dtype = mix_json_string_or(config, "dtype", NULL);
  return mix_failed() ? NULL : mix_metric_with(&options);
}

/* keras3 logs a metric under the name by which it was requested. */
static void *read_metric(const mix_model *model, const json_t *value, int output) {
  const char *name = name_in(value), *class_name = json_string_value(json_object_get(value, "class_name"));
  if (name) {
    mix_metric_options options = {.size = sizeof options, .metric = name, .semantics = model->semantics};
    if (model->semantics->metric_named_as_requested) options.name = name;
    return mix_metric_with(&options);
  }
  if (class_name && !strcmp(class_name, "MeanMetricWrapper")) return read_wrapper(model, value, output);
  if (!class_name)
    return mix_fail_type("model_from_json: a metric is %s; expected a name or an object",
                         mix_json_kind(value));
  char *config = mix_json_text(json_object_get(value, "config"));
  mix_metric *metric = mix_metric_from_config(class_name, config, model->semantics);
  mix_free(config);
  return metric;
}

typedef void *item_reader(const mix_model *model, const json_t *value, int output);

/* A metric or a list of metrics becomes a list. */
static void *read_metrics(const mix_model *model, const json_t *value, int output) {
  if (json_is_null(value)) return NULL;
  mix_list *list = mix_list_new(0, NULL);
  if (!json_is_array(value)) mix_list_append(list, read_metric(model, value, output));
  for (size_t i = 0; i < json_array_size(value) && !mix_failed(); i++)
    mix_list_append(list, read_metric(model, json_array_get(value, i), output));
  return list;
}

/* What the dictionary says of an output: under its key in the model's structure, or the name of its layer. */
static const json_t *of_output(const mix_model *model, const json_t *object, int output) {
  const char *key;
  json_t *index;
  if (model->kind == MIX_FUNCTIONAL) {
    const mix_functional *graph = mix_layer_data(model->layer);
    json_object_foreach(graph->output_form, key,
                        index) if (mix_operand_form_number(index) == output &&
                                   json_object_get(object, key)) return json_object_get(object, key);
  }
  return json_object_get(object, mix_model_output_name(model, output));
}

/* An item for each output. */
static mix_list *read_for_outputs(const mix_model *model, const json_t *value, item_reader *read,
                                  const char *what) {
  const int outputs = mix_model_output_count(model);
  mix_list *list = mix_list_new(0, NULL);
  if (json_is_array(value) && json_array_size(value) != (size_t)outputs)
    return mix_fail_value("model_from_json: %zu items of %s for %d outputs", json_array_size(value), what,
                          outputs);
  for (int i = 0; i < outputs && !mix_failed(); i++) {
    const json_t *item = json_is_array(value) ? json_array_get(value, (size_t)i) : of_output(model, value, i);
    mix_list_append(list, item && !json_is_null(item) ? read(model, item, i) : NULL);
  }
  return mix_failed() ? NULL : list;
}

static bool is_object_of_class(const json_t *value) { return json_object_get(value, "class_name"); }

static void read_losses(const mix_model *model, const json_t *value, mix_compile_options *options) {
  if (!value || json_is_null(value)) return;
  if (json_is_string(value)) {
    options->loss = json_string_value(value);
    read_loss(model, value, 0); /* so that an error has its place */
  } else if (is_object_of_class(value))
    options->loss_object = read_loss(model, value, 0);
  else
    options->loss_objects = read_for_outputs(model, value, read_loss, "loss");
}

/* Without losses (mix_load_options) those that do not fit are left out. */
static void read_loss_weights(const mix_model *model, const json_t *value, bool no_loss,
                              mix_compile_options *options) {
  const int outputs = mix_model_output_count(model);
  if (!value || json_is_null(value)) return;
  if (json_is_array(value) && json_array_size(value) != (size_t)outputs) {
    if (!no_loss)
      mix_fail_value("model_from_json: %zu items of loss_weights for %d outputs", json_array_size(value),
                     outputs);
    return;
  }
  for (int i = 0; i < outputs; i++) {
    const json_t *item = json_is_array(value)    ? json_array_get(value, (size_t)i)
                         : json_is_object(value) ? of_output(model, value, i)
                                                 : value;
    if (item && !json_is_number(item))
      mix_fail_type("model_from_json: a loss weight is %s; expected a number", mix_json_kind(item));
    double weight = item ? json_number_value(item) : 1;
    options->loss_weights[i] = weight == 0 ? MIX_ZERO : weight;
  }
}

static bool are_names(const json_t *value) {
  for (size_t i = 0; i < json_array_size(value); i++)
    if (!json_is_string(json_array_get(value, i))) return false;
  return json_array_size(value) > 0 && json_array_size(value) <= MIX_MODEL_MAX;
}

/* Names stay names where they are for every output: of the only one, and in tf_keras's flat lists. */
static void read_metric_lists(const mix_model *model, const json_t *value, const char *what,
                              const char **names, mix_list **objects) {
  const int outputs = mix_model_output_count(model);
  if (!value || json_is_null(value) || (json_is_array(value) && !json_array_size(value))) return;
  if (are_names(value) && (outputs == 1 || model->semantics->compile_metrics_before_weights))
    for (size_t i = 0; i < json_array_size(value); i++)
      names[i] = json_string_value(json_array_get(value, i));
  else if (outputs > 1)
    *objects = read_for_outputs(model, value, read_metrics, what);
  else
    *objects = read_metrics(model,
                            json_is_object(value) && !is_object_of_class(value) ? of_output(model, value, 0)
                            : json_is_array(json_array_get(value, 0))           ? json_array_get(value, 0)
                                                                                : value,
                            0);
}

/* The config of an optimizer for another generation: None is the default of what only one of them has. */
static json_t *translated(const json_t *object) {
  json_t *copy = mix_json_copy(object), *config = json_object_get(copy, "config"), *value;
  json_t *inner = json_object_get(config, "inner_optimizer");
  const char *key;
  void *next;
  json_object_foreach_safe(config, next, key, value) if (json_is_null(value)) json_object_del(config, key);
  if (!inner) return copy;
  mix_json_set(config, "inner_optimizer", translated(inner));
  json_object_del(config, "name");
  if (json_is_true(json_object_get(config, "dynamic"))) json_object_del(config, "dynamic");
  return copy;
}

static mix_optimizer *read_translated(const mix_model *model, const json_t *value) {
  json_t *object = translated(value);
  mix_optimizer *optimizer = mix_optimizer_from_json(object, model->semantics);
  json_decref(object);
  return optimizer;
}

static mix_optimizer *read_optimizer(const mix_model *model, const json_t *value,
                                     const mix_semantics *written) {
  if (json_is_string(value)) return mix_optimizer_from_text(json_string_value(value), model->semantics);
  if (json_is_object(value) && written != model->semantics) return read_translated(model, value);
  if (json_is_object(value)) return mix_optimizer_from_json(value, model->semantics);
  return mix_fail_type("model_from_json: the optimizer is %s; expected a name or an object",
                       value ? mix_json_kind(value) : "missing");
}

/* Begins the message of an error with its place, and how to do without: lists of names may follow. True if
 * there is none. */
static bool succeeded(const char *key, const char *option) {
  mix_error_aside error;
  if (!mix_failed()) return true;
  if (mix_error() == MIX_MEMORY_ERROR) return false;
  mix_error_set_aside(&error);
  return mix_fail(
      error.status,
      "compile_config.%s (not read with .no_%s of mix_model_load, or --%s NAME where the command has it): %s",
      key, option, option, error.message);
}

bool mix_model_compile_json(mix_model *model, const json_t *config, const mix_semantics *written) {
  mix_compile_options options = {.size = sizeof options};
  options.optimizer = read_optimizer(model, json_object_get(config, "optimizer"), written);
  if (!succeeded("optimizer", "optimizer")) return false;
  read_losses(model, json_object_get(config, "loss"), &options);
  if (!succeeded("loss", "loss")) return false;
  read_loss_weights(model, json_object_get(config, "loss_weights"), !json_object_get(config, "loss"),
                    &options);
  if (!succeeded("loss_weights", "loss")) return false;
  read_metric_lists(model, json_object_get(config, "metrics"), "metrics", options.metrics,
                    &options.metric_objects);
  if (!succeeded("metrics", "metrics")) return false;
  read_metric_lists(model, json_object_get(config, "weighted_metrics"), "weighted_metrics",
                    options.weighted_metrics, &options.weighted_metric_objects);
  if (!succeeded("weighted_metrics", "metrics")) return false;
  options.jit_compile = json_is_true(json_object_get(config, "jit_compile"));
  if (mix_failed() || mix_model_compile_with(model, &options)) return false;
  if (written != model->semantics) return true;
  if (!(model->state->config = mix_json_copy(config))) return false;
  json_object_del(model->state->config, "optimizer");
  return true;
}
