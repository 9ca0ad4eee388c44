/* A run's identity, and its comparison with that of a checkpoint. */
#include "saving/run_identity.h"

#include "amp/setting.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "base/sha256.h"
#include "compile/evaluate.h"
#include "data/pipeline/steps.h"
#include "optim/optimizer.h"
#include "saving/training_variables.h"
#include "tensor/shape.h"
#include <mixtape/device.h>
#include <mixtape/graph_rewrite.h>
#include <string.h>

#define ENTRY "run"
enum { ENTRY_MAX = 64 }; /* with a prefix */

/* ---- configs ---- */

/* A config that cannot be written, such as one with a function of the user, is none. Out of memory stays an
 * error. */
static json_t *config_or_null(json_t *config) {
  if (config) return config;
  if (mix_failed() && mix_error() != MIX_MEMORY_ERROR) mix_error_take(NULL, 0);
  return json_null();
}

static bool append_layers(json_t *list, mix_layer *layer) {
  json_t *entry = json_pack("{s:s,s:o}", "class", layer->class.name, "config",
                            config_or_null(mix_layer_config_json(layer)));
  if (!mix_json_append(list, entry)) return false;
  for (int i = 0; i < mix_list_count(layer->layers); i++)
    if (!append_layers(list, mix_list_items(layer->layers)[i])) return false;
  return true;
}

/* As the user made it: callbacks change the learning rate while a run lasts. */
static json_t *optimizer_config(mix_optimizer *optimizer) {
  const mix_optimizer *plain = mix_optimizer_plain(optimizer);
  mix_fields fields = mix_optimizer_fields(plain->class, plain->rules);
  mix_optimizer_settings options = plain->options;
  options.common.semantics = plain->semantics;
  json_t *config = mix_fields_write(&fields, &options, NULL);
  if (config && plain->rounding != MIX_STATE_UNROUNDED) /* Keras's configs lack it */
    mix_json_set(config, "state", json_string(options.common.state));
  return config_or_null(config);
}

static json_t *loss_scale_config(mix_optimizer *optimizer) {
  mix_loss_scale *scale = mix_optimizer_loss_scale_object(optimizer);
  if (!scale) return json_null();
  return json_pack("{s:b,s:f,s:I}", "dynamic", mix_loss_scale_is_dynamic(scale), "initial",
                   mix_loss_scale_initial(scale), "growth_steps",
                   (json_int_t)mix_loss_scale_increment_period(scale));
}

static json_t *losses_of(const mix_compiled_state *state) {
  json_t *losses = json_array();
  for (int i = 0; i < state->output_count; i++) {
    json_t *loss = state->losses[i] ? config_or_null(mix_loss_to_json(state->losses[i])) : json_null();
    if (!mix_json_append(losses, loss) || !mix_json_append(losses, json_real(state->loss_weights[i]))) break;
  }
  return losses;
}

bool mix_run_identity_set(json_t *identity, const char *name, json_t *value) {
  if (mix_failed() || !value) {
    json_decref(value);
    if (!mix_failed()) mix_fail_memory("a checkpoint's identity");
    return false;
  }
  return mix_json_set(identity, name, value);
}

/* ---- settings ---- */

static const char *graph_rewrite_name(void) {
  const mix_dtype dtype = mix_graph_rewrite_dtype();
  return dtype == MIX_DTYPE_NONE ? "off" : mix_dtype_name(dtype);
}

static bool put_edit(json_t *variables, int list, const char *action, const char *ops) {
  char key[24];
  snprintf(key, sizeof key, "%s_%s", mix_amp_edit_names[list], action);
  return !ops || !*ops || mix_json_set(variables, key, mix_json_name(ops));
}

/* The level and the edits of the lists, as the environment variables give them. NULL: the error is
 * recorded. */
static json_t *graph_rewrite_variables(void) {
  mix_amp_options options;
  if (!mix_amp_setting_options(mix_graph_rewrite_dtype(), &options)) return NULL;
  json_t *variables = json_object();
  const char *level = mix_amp_level_name(options.level);
  bool good = !level || mix_json_set(variables, "LEVEL", json_string(level));
  for (int i = 0; good && i < MIX_AMP_EDITS; i++)
    good = put_edit(variables, i, "ADD", options.edits[i].add) &&
           put_edit(variables, i, "REMOVE", options.edits[i].remove);
  if (good) return variables;
  json_decref(variables);
  return NULL;
}

static bool add_graph_rewrite(json_t *identity) {
  if (!mix_run_identity_set(identity, "graph rewrite", json_string(graph_rewrite_name()))) return false;
  return mix_graph_rewrite_dtype() == MIX_DTYPE_NONE ||
         mix_run_identity_set(identity, "environment of the graph rewrite", graph_rewrite_variables());
}

/* Settings of the process that decide about numbers. */
static bool add_settings(json_t *identity) {
  return mix_run_identity_set(identity, "accumulate", json_string(mix_accumulate())) &&
         add_graph_rewrite(identity) &&
         mix_run_identity_set(identity, "float32 precision", json_string(mix_float32_precision_name())) &&
         mix_run_identity_set(identity, "deterministic", json_boolean(mix_deterministic()));
}

json_t *mix_run_identity_new(mix_model *model, mix_optimizer *optimizer) {
  json_t *identity = json_object(), *layers = model ? json_array() : NULL;
  bool good = identity || (mix_fail_memory("a checkpoint's identity"), false);
  if (good && model) {
    append_layers(layers, model->layer);
    good = mix_run_identity_set(identity, "model", layers);
  } else {
    json_decref(layers);
  }
  if (good && optimizer)
    good = mix_run_identity_set(identity, "optimizer", optimizer_config(optimizer)) &&
           mix_run_identity_set(identity, "loss scale", loss_scale_config(optimizer));
  if (good && model && model->state)
    good = mix_run_identity_set(identity, "loss", losses_of(model->state)) &&
           mix_run_identity_set(identity, "jit_compile", json_boolean(model->state->given.jit_compile));
  good = good && add_settings(identity);
  if (good) return identity;
  json_decref(identity);
  return NULL;
}

bool mix_run_identity_metrics(json_t *identity, const mix_model *model) {
  const mix_compiled_state *state = model->state;
  json_t *list = json_array();
  for (int i = 0; i < state->metric_count; i++) {
    mix_metric *metric = state->metrics[i].metric;
    if (state->metrics[i].added) break; /* those that layers add come with the first step */
    const char *text = mix_metric_get_config(metric);
    json_t *config = config_or_null(text ? mix_json_parse(text, "a metric") : NULL);
    if (!mix_json_append(list, json_pack("{s:s,s:o}", "class", metric->class.name, "config", config))) break;
  }
  return mix_run_identity_set(identity, "metrics", list);
}

bool mix_run_identity_number(json_t *identity, const char *name, int64_t number) {
  return mix_run_identity_set(identity, name, json_integer(number));
}

/* ---- data ---- */

static bool digest_tensor(mix_tensor *tensor, char digits[MIX_SHA256_DIGITS + 1]) {
  unsigned char digest[MIX_SHA256_BYTES];
  mix_pinned pinned;
  if (mix_evaluate(1, &tensor) != MIX_OK || !mix_tensor_pin(tensor, &pinned)) return false;
  mix_sha256_of(pinned.data, mix_value_bytes(mix_tensor_dtype(tensor), mix_tensor_shape(tensor)), digest);
  mix_tensor_unpin(&pinned);
  mix_sha256_text(digest, digits);
  return true;
}

/* {"array": "float32 (60000, 784)", "sha256": "..."} */
static bool append_array(json_t *list, mix_tensor *array) {
  char text[200], digits[MIX_SHA256_DIGITS + 1];
  if (!digest_tensor(array, digits)) return false;
  snprintf(text, sizeof text, "%s %s", mix_dtype_name(mix_tensor_dtype(array)),
           MIX_SHAPE_TEXT(mix_tensor_shape(array)));
  return mix_json_append(list, json_pack("{s:s,s:s}", "array", text, "sha256", digits));
}

static bool append_arrays(json_t *list, mix_list *arrays) {
  for (int i = 0; arrays && i < mix_list_count(arrays); i++)
    if (mix_list_items(arrays)[i] && !append_array(list, mix_list_items(arrays)[i])) return false;
  return true;
}

bool mix_run_identity_arrays(json_t *identity, const char *name, mix_list *arrays) {
  json_t *list = json_array();
  MIX_SCOPE { append_arrays(list, arrays); }
  return mix_run_identity_set(identity, name, list);
}

/* "batch 20", and the arrays of a source. */
static bool append_step(json_t *list, const mix_dataset *step) {
  int64_t numbers[MIX_STEP_NUMBERS];
  const int count = step->class->numbers ? step->class->numbers(step, numbers) : 0;
  mix_text text = {.grows = true};
  mix_text_put(&text, "%s", step->class->name);
  for (int i = 0; i < count; i++) mix_text_put(&text, " %lld", (long long)numbers[i]);
  json_t *entry = text.failed ? NULL : json_string(text.text);
  mix_free(text.text);
  if (!mix_json_append(list, entry)) return false;
  return !step->class->arrays || append_arrays(list, step->class->arrays(step));
}

bool mix_run_identity_dataset(json_t *identity, const char *name, mix_dataset *dataset) {
  mix_steps steps = {0};
  json_t *list = json_array();
  bool unknown = false, good = mix_steps_collect(&steps, dataset, MIX_STEPS_ALL);
  MIX_SCOPE {
    for (int i = 0; good && i < steps.count; i++) {
      good = append_step(list, steps.items[i]);
      unknown = unknown || steps.items[i]->class->calls_user;
    }
  }
  mix_steps_clear(&steps);
  if (good && unknown)
    mix_log_message(MIX_LOG_WARNING,
                    "checkpoint: the elements of a generator have no digest: whether a resumed run gets the "
                    "same ones is not checked");
  return mix_run_identity_set(identity, name, list);
}

/* ---- comparison ---- */

bool mix_run_identity_put(json_t *identity, mix_archive *archive, const char *prefix) {
  char name[ENTRY_MAX];
  snprintf(name, sizeof name, "%s" ENTRY, prefix);
  return mix_archive_put_json(archive, name, json_incref(identity));
}

static void append_value(mix_text *text, const json_t *value) {
  char *dumped = value ? mix_json_python_text(value) : NULL;
  mix_text_put(text, "%.200s", dumped ? dumped : "nothing");
  mix_free(dumped);
}

/* Appends the path to the first difference below two values that differ: "config.units is 9 here, 7 in the
 * checkpoint". */
static void append_difference(mix_text *text, const char *separator, const json_t *ours, const json_t *theirs,
                              const char *where) {
  const char *key;
  json_t *value;
  const bool objects = json_is_object(ours) && json_is_object(theirs);
  for (int side = 0; objects && side < 2; side++)
    json_object_foreach((json_t *)(side ? theirs : ours), key, value) {
      const json_t *a = json_object_get(ours, key), *b = json_object_get(theirs, key);
      if (json_equal(a, b)) continue;
      mix_text_put(text, "%s%s", separator, key);
      append_difference(text, ".", a, b, where);
      return;
    }
  for (size_t i = 0; json_is_array(ours) && json_is_array(theirs) &&
                     (i < json_array_size(ours) || i < json_array_size(theirs));
       i++) {
    const json_t *a = json_array_get(ours, i), *b = json_array_get(theirs, i);
    if (json_equal(a, b)) continue;
    mix_text_put(text, "[%zu]", i);
    append_difference(text, ".", a, b, where);
    return;
  }
  mix_text_put(text, " is ");
  append_value(text, ours);
  mix_text_put(text, " here, ");
  append_value(text, theirs);
  mix_text_put(text, " %s", where);
}

/* The names of layers, losses and variables say nothing: a second model has others. Those of policies do. */
static void drop_names(json_t *value) {
  const char *key;
  json_t *member;
  size_t i;
  json_object_del(value, "name");
  json_object_foreach(value, key, member) if (strcmp(key, "dtype")) drop_names(member);
  json_array_foreach(value, i, member) drop_names(member);
}

static bool is_of_data(const char *name) {
  return !strcmp(name, "rows") || !strncmp(name, "data", 4) || !strncmp(name, "validation data", 15);
}

/* Calls mix_fail with the path, what is before and after it, and the first difference of the two objects.
 * `of_data`: what is after a difference of the data. */
static bool compare(json_t *identity, json_t *theirs, const char *where, const char *before,
                    const char *after, const char *of_data) {
  json_t *own = mix_json_copy(identity), *ours;
  const char *name;
  drop_names(own);
  drop_names(theirs);
  json_object_foreach(own, name, ours) {
    const json_t *other = json_object_get(theirs, name);
    if (!other || json_equal(ours, other)) continue;
    mix_text text = {.grows = true};
    append_difference(&text, ": ", ours, other, where);
    if (!text.failed)
      mix_fail_value("%s: %s%s; %s", before, name, text.text, is_of_data(name) ? of_data : after);
    mix_free(text.text);
    break;
  }
  json_decref(own);
  return !mix_failed();
}

bool mix_run_identity_check(json_t *identity, mix_archive *archive, const char *prefix) {
  const char *path = mix_archive_path(archive);
  char name[ENTRY_MAX];
  snprintf(name, sizeof name, "%s" ENTRY, prefix);
  char *text = mix_archive_has(archive, name) ? mix_archive_get_text(archive, name) : NULL;
  json_t *theirs = text ? mix_json_parse(text, path) : NULL;
  mix_free(text);
  compare(identity, theirs, "in the checkpoint", path, MIX_RESUME_REMEDY, MIX_RESUME_REMEDY);
  json_decref(theirs);
  return !mix_failed();
}

bool mix_run_identity_compare(json_t *identity, const char *first) {
  json_t *theirs = mix_json_parse(first, "the run of rank 0");
  compare(identity, theirs, "on rank 0", "another run than that of rank 0",
          "start all ranks with the same program, options and data",
          "give all ranks the same data, or all of them .rows = MIX_LOCAL if each has rows of its own");
  json_decref(theirs);
  return !mix_failed();
}
