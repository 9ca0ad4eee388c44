/* mixtape tune-precision: which layers must stay float32, by training runs of `mixtape train`. */
#include "cli/cli.h"
#include "base/alloc.h"
#include "base/error.h"
#include "formats/file.h"
#include "model/model.h"

#include <math.h>
#include <string.h>

static const double SPLIT = 0.2; /* without test data */

typedef struct tuned {
  const cli_options *options;
  cli_data data;
  int64_t width;             /* of the guide's inputs */
  const char *const *layers; /* to choose from, ended by NULL */
  bool keeps;                /* the file's policies, its own float32 layers among them */
} tuned;

/* ---- a run ---- */

static void choose(const tuned *t, const char *policy, uint64_t seed, const char *const *float32_layers,
                   cli_options *options) {
  *options = *t->options;
  options->policy = t->keeps && strcmp(policy, "float32") ? NULL : policy;
  options->seed = seed;
  options->float32_layers = float32_layers;
  mix_clear_names(); /* layers get the same names in every run */
  mix_set_seed(seed);
  if (!cli_is_model_file(options)) mix_set_global_policy(policy);
}

/* The runs to compare with are in 16 bits; the layers that the search would keep in float32 stay in them. */
static void choose_simulation(const tuned *t, const mix_tune_trial *trial, cli_options *options) {
  const bool compared = !strcmp(trial->policy, "float32");
  choose(t, t->options->policy, trial->seed, NULL, options);
  cli_simulate(options, compared ? NULL : t->options->simulate, trial->float32_layers);
}

static double validation_loss(const tuned *t, const cli_options *options, mix_model *model,
                              mix_history *history) {
  const int64_t epochs = mix_history_epochs(history);
  if (options->validation_split > 0) return mix_logs_get(mix_history_epoch(history, epochs - 1), "val_loss");
  const cli_part *test = &t->data.test;
  const mix_logs *logs = mix_model_evaluate(model, test->x, test->y, .batch_size = options->batch_size,
                                            .verbose = MIX_SILENT, .sample_weight = test->weights);
  return logs ? mix_logs_get(logs, "loss") : NAN;
}

static double train(void *context, const mix_tune_trial *trial) {
  const tuned *t = context;
  cli_options options;
  if (t->options->simulate)
    choose_simulation(t, trial, &options);
  else
    choose(t, trial->policy, trial->seed, trial->float32_layers, &options);
  /* the policy alone leaves layers in 16 bits that the file has in 16 bits */
  if (!strcmp(trial->policy, "float32") && !options.simulate && cli_is_model_file(&options))
    options.float32_layers = t->layers;
  mix_model *model = cli_compiled_model(&options, t->width);
  if (!model) return NAN;
  mix_fit_options fit = cli_fit_options(&options, model, &t->data.train);
  fit.callbacks = trial->callbacks;
  for (int i = 0; i < options.callback_count; i++)
    mix_list_append(fit.callbacks, mix_callback_from_text(options.callbacks[i]));
  mix_history *history = mix_model_fit_with(model, &fit);
  return history ? validation_loss(t, &options, model, history) : NAN;
}

/* ---- the layers to choose from ---- */

typedef struct names {
  const char **items; /* interned, ended by NULL */
  int count, capacity;
} names;

static bool computes_in_16_bits(const mix_layer *layer) {
  return mix_dtype_is_16_bit(mix_policy_compute_dtype(mix_layer_own_policy(layer)));
}

static void add_name(names *list, const char *prefix, const char *name) {
  char path[512];
  snprintf(path, sizeof path, "%s%s", prefix, name);
  if (!mix_reserve(&list->items, &list->capacity, list->count + 2, sizeof *list->items)) return;
  list->items[list->count++] = mix_intern(path);
  list->items[list->count] = NULL;
}

/* Layers of models in the model by their paths. Inputs compute nothing. */
static void add_layers(names *list, const char *prefix, mix_list *layers) {
  for (int i = 0; i < mix_list_count(layers) && !mix_failed(); i++) {
    mix_layer *layer = mix_list_get(layers, i);
    if (layer->is_model) {
      char inner[512];
      snprintf(inner, sizeof inner, "%s%s/", prefix, layer->name);
      add_layers(list, inner, mix_layer_layers(layer));
    } else if (computes_in_16_bits(layer) && !layer->is_input) {
      add_name(list, prefix, layer->name);
    }
  }
}

/* ---- the command ---- */

/* --policy would be given to the float32 layers of the file too. */
static void print_paste(const tuned *t, const char *paste) {
  char option[64];
  snprintf(option, sizeof option, "--policy %s ", t->options->policy);
  const char *found = t->keeps ? strstr(paste, option) : NULL;
  if (found)
    printf("%.*s%s", (int)(found - paste), paste, found + strlen(option));
  else
    printf("%s", paste);
}

static int print_result(const tuned *t, mix_tuning *tuning) {
  const cli_options *options = t->options;
  const char *text = options->json ? mix_tuning_json(tuning) : mix_tuning_table(tuning);
  const bool set = mix_tuning_layers(tuning);
  const char *paste = set && !options->json ? mix_tuning_overrides(tuning) : "";
  if (!text || !paste) return cli_fail();
  printf("%s%s", text, *paste ? "\n" : options->json ? "\n" : "");
  print_paste(t, paste);
  return CLI_OK;
}

/* The tuned model as --save and --onnx have it. */
static int save(const tuned *t, const mix_tuning *tuning) {
  cli_options options;
  choose(t, t->options->policy, t->options->seed, mix_tuning_layers(tuning), &options);
  mix_model *model = cli_compiled_model(&options, t->width);
  if (model && options.save && cli_save(model, options.save, 0) == MIX_OK)
    cli_save_columns(&t->data, options.save);
  if (!mix_failed() && options.onnx) mix_model_export(model, options.onnx);
  return mix_failed() ? cli_fail() : CLI_OK;
}

static int save_map(const tuned *t, mix_tuning *tuning) {
  const char *text = mix_tuning_policy_map(tuning);
  const mix_bytes pieces[2] = {{text, text ? strlen(text) : 0}, {"\n", 1}};
  const bool good = text && mix_file_replace(t->options->save_policy_map, pieces, 2, "tune-precision");
  return good ? CLI_OK : cli_fail();
}

static int report(const tuned *t, mix_tuning *tuning) {
  int code = print_result(t, tuning);
  if (!code && t->options->save_policy_map && mix_tuning_layers(tuning)) code = save_map(t, tuning);
  if (!code && (t->options->save || t->options->onnx) && mix_tuning_layers(tuning)) code = save(t, tuning);
  if (!strcmp(mix_tuning_status(tuning), "found")) return code;
  fprintf(stderr, "mixtape tune-precision: the search ended with '%s'%s\n", mix_tuning_status(tuning),
          !strcmp(mix_tuning_status(tuning), "limit") ? "; --max-trials allows more" : "");
  return CLI_FAILED;
}

static int search(tuned *t, mix_model *model) {
  const cli_options *options = t->options;
  names list = {0};
  add_layers(&list, "", mix_model_layers(model));
  if (!list.count && !mix_failed())
    mix_fail_value(
        "%s: no layer computes in 16 bits under %s; a file's layers get it where the file has float32",
        options->model, options->policy);
  mix_tuning *tuning = NULL;
  t->layers = list.items;
  if (!mix_failed())
    tuning = mix_tune_precision(train, list.items, .context = t, .policy = options->policy,
                                .seeds = options->seeds, .confirmations = options->confirmations,
                                .max_trials = options->max_trials, .seed = options->seed,
                                .every = options->every, .simulate = options->simulate);
  mix_free(list.items);
  t->layers = NULL;
  return tuning ? report(t, tuning) : cli_fail();
}

/* The policy of the first layer in 16 bits; NULL: all compute in float32. */
static const char *policy_of_16_bits(mix_list *layers) {
  const char *found = NULL;
  for (int i = 0; i < mix_list_count(layers) && !found; i++) {
    mix_layer *layer = mix_list_get(layers, i);
    if (layer->is_model)
      found = policy_of_16_bits(mix_layer_layers(layer));
    else if (computes_in_16_bits(layer) && !layer->is_input)
      found = mix_policy_name(mix_layer_own_policy(layer));
  }
  return found;
}

/* A file with layers in 16 bits says itself which of its layers are float32. */
static int keep_policies(tuned *t, cli_options *options) {
  if (!cli_is_model_file(options) || options->retune) return CLI_OK;
  cli_options as_it_is = *options;
  as_it_is.policy = NULL;
  mix_model *model = cli_load_model(&as_it_is, CLI_NOT_COMPILED);
  if (!model) return cli_fail();
  const char *policy = policy_of_16_bits(mix_model_layers(model));
  mix_clear_names();
  if (!policy) return CLI_OK;
  if (options->policy && strcmp(options->policy, policy)) {
    cli_say(
        "tune-precision",
        "--policy: '%s' given; %s has layers under %s; leave --policy out, or give --retune, which changes "
        "its float32 layers",
        options->policy, options->model, policy);
    return CLI_USAGE;
  }
  t->keeps = true;
  options->policy = mix_intern(policy);
  return CLI_OK;
}

static int check_onnx(const char *path) {
  const size_t length = strlen(path);
  if (length > 5 && !strcmp(path + length - 5, ".onnx"))
    return cli_check_output("tune-precision", "onnx", path);
  cli_say("tune-precision", "--onnx: '%s'; expected a name that ends in .onnx", path);
  return CLI_USAGE;
}

static int run(cli_options *options) {
  tuned t = {.options = options};
  if (!options->has_seed) options->seed = 1;
  const bool file = cli_is_model_file(options);
  if (!options->policy && !file) options->policy = "mixed_float16";
  int code = cli_setup(options);
  if (!code) code = keep_policies(&t, options);
  if (!options->policy) options->policy = "mixed_float16";
  if (!code && options->save) code = cli_check_output("tune-precision", "save", options->save);
  if (!code && options->onnx) code = check_onnx(options->onnx);
  if (!code && options->save_policy_map)
    code = cli_check_output("tune-precision", "save-policy-map", options->save_policy_map);
  cli_options first = *options; /* of a file it gets what the file says */
  if (t.keeps) first.policy = NULL;
  mix_model *model;
  if (!code) code = cli_prepare(&first, CLI_TRAIN, &t.data, &model);
  if (!code) code = cli_check_folder("tune-precision", options->save, model);
  if (code) return code;
  options->classes = first.classes; /* of a table's label */
  if (!t.data.test.x && options->validation_split == 0) options->validation_split = SPLIT;
  t.width = cli_is_guide(options) ? mix_model_input_shape(model, 0).dims[1] : 0;
  return search(&t, model);
}

/* ---- the log ---- */

typedef struct warnings {
  const char **seen; /* interned */
  int count, capacity;
} warnings;

static bool is_repeated(warnings *w, const char *message) {
  const char *text = mix_intern(message);
  for (int i = 0; i < w->count; i++)
    if (w->seen[i] == text) return true;
  if (text && mix_reserve(&w->seen, &w->capacity, w->count + 1, sizeof *w->seen)) w->seen[w->count++] = text;
  return false;
}

/* Each run loads and compiles the model anew, with the same warnings. The log calls from one thread at a
 * time. */
static void log_once(void *context, mix_log_level level, const char *message) {
  if (level != MIX_LOG_WARNING || !is_repeated(context, message)) mix_log_to_stderr(NULL, level, message);
}

int cli_tune_precision(int argc, char **argv) {
  cli_options options;
  int code = cli_parse("tune-precision", CLI_TUNE, argc, argv, &options);
  if (code) return code < 0 ? CLI_OK : code;
  warnings seen = {0};
  mix_set_log_callback(log_once, &seen);
  mix_scope *scope = mix_scope_begin();
  code = run(&options);
  mix_scope_end(scope);
  mix_set_log_callback(mix_log_to_stderr, NULL);
  mix_free(seen.seen);
  return code;
}
