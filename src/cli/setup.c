/* Set-up shared by the sub-commands: process-wide options, models, compilation. */
#include "cli/cli.h"
#include "cli/models/models.h"
#include "model/model.h"

#include "base/alloc.h"
#include "base/error.h"
#include "optim/optimizer.h"

#include <string.h>

int cli_verbose(const cli_options *options) {
  return options->verbose < 0 ? 0 : options->verbose == 0 ? MIX_SILENT : (int)options->verbose;
}

/* Reports a pending error as one of the option. */
static int check_option(const char *option) {
  if (mix_error() == MIX_OK) return CLI_OK;
  cli_say("", "--%s: %s: %s", option, mix_status_name(mix_error()), mix_error_message());
  const int code = cli_option_code();
  mix_error_clear();
  return code;
}

/* Checks that a metric's name does not clash with other members of the logs or with the `count` metrics
 * before it. */
static int check_name(const mix_metric *metric, const char *const *before, int count) {
  static const char *const reserved[] = {"loss", "step", "applied", "iterations", "loss_scale", "good_steps"};
  for (int i = 0; metric && i < count; i++)
    if (!strcmp(mix_metric_name(metric), before[i])) {
      cli_say("",
              "--metrics: two metrics are called '%s'; leave one out, or name it, as in "
              "auc:name=another",
              before[i]);
      return CLI_USAGE;
    }
  for (size_t i = 0; metric && i < sizeof reserved / sizeof *reserved; i++)
    if (!strcmp(mix_metric_name(metric), reserved[i])) {
      cli_say("", "--metrics: a metric cannot be called '%s', which the logs have already; give another name",
              reserved[i]);
      return CLI_USAGE;
    }
  return CLI_OK;
}

static int try_metrics(const cli_options *options) {
  mix_compile_options compile = {.size = sizeof compile};
  char *text = mix_strdup(options->metrics);
  int code = CLI_OK;
  if (!text) {
    code = check_option("metrics");
  } else if (!cli_name_metrics(text, &compile)) {
    cli_say("", "--metrics: '%s' given; expected names with commas between, at most %d", options->metrics,
            MIX_MODEL_MAX);
    code = CLI_USAGE;
  }
  const char *names[MIX_MODEL_MAX];
  for (int i = 0; i < MIX_MODEL_MAX && compile.metrics[i] && !code; i++) {
    mix_clear_names(); /* compilation does not number them either */
    mix_metric *metric = mix_metric_from_text(compile.metrics[i], NULL);
    bool missing = mix_error() == MIX_TYPE_ERROR && !strchr(compile.metrics[i], ':');
    code = check_option("metrics");
    if (code && missing)
      cli_say("", "--metrics: arguments are given as in %s:key=value,key=value", compile.metrics[i]);
    if (!code) code = check_name(metric, names, i);
    if (!code) names[i] = mix_metric_name(metric);
  }
  mix_free(text);
  return code;
}

int cli_check_names(const cli_options *options) {
  int code = CLI_OK;
  MIX_SCOPE {
    if (options->optimizer) mix_optimizer_from_text(options->optimizer, NULL);
    code = check_option("optimizer");
    if (!code) {
      if (options->loss) mix_loss_new(options->loss);
      code = check_option("loss");
    }
    if (!code && options->metrics) code = try_metrics(options);
  }
  mix_clear_names(); /* frees the names used here: metrics must be "auc", not "auc_1" */
  return code;
}

static int check_scale(const cli_options *options) {
  MIX_SCOPE {
    if (options->loss_scale) mix_loss_scale_from_text(options->loss_scale, NULL);
  }
  return check_option("loss-scale");
}

mix_status cli_simulate(const cli_options *options, const char *format, const char *const *except) {
  return mix_simulate_products(.format = format, .stochastic_rounding = options->stochastic_rounding,
                               .seed = options->seed, .except_layers = except);
}

/* False after a message on standard error. */
static bool simulation_fits(const cli_options *options) {
  const char *device = options->simulate && options->device ? options->device : mix_device();
  const bool alone = options->stochastic_rounding || options->simulate_except;
  if (!options->simulate && alone)
    fprintf(stderr, "mixtape: %s needs --simulate\n",
            options->stochastic_rounding ? "--stochastic-rounding" : "--simulate-except");
  else if (options->simulate && device && strcmp(device, "cpu"))
    fprintf(stderr, "mixtape: --simulate runs on --device cpu, and the device is %s\n", device);
  else
    return true;
  return false;
}

void cli_try_environment(void) {
  mix_device();
  mix_threads();
  mix_accumulate();
  mix_float32_precision_name();
  mix_memory_name();
  mix_deterministic();
}

static void set_policy(const cli_options *options) {
  if (options->policy_map)
    mix_set_global_policy_object(cli_read_policy_map(options->policy_map));
  else
    mix_set_global_policy(options->policy);
}

int cli_setup(const cli_options *options) {
  if (!simulation_fits(options)) return CLI_USAGE; /* before a device is looked for */
  if (options->semantics) mix_set_semantics(options->semantics);
  if (options->accumulate) mix_set_accumulate(options->accumulate);
  if (options->memory) mix_set_memory(options->memory);
  if (options->float32_precision) mix_set_float32_precision(options->float32_precision);
  if (options->deterministic) mix_set_deterministic(true);
  if (options->device) mix_set_device(options->device);
  if (options->threads) mix_set_threads((int)options->threads);
  cli_try_environment();
  if (options->has_seed) mix_set_seed(options->seed);
  cli_register_transformer_layers(); /* files may have them */
  const bool file = cli_is_model_file(options);
  if (!file) set_policy(options);
  if (options->graph_rewrite && !strcmp(options->graph_rewrite, "bfloat16") && options->loss_scale &&
      strcmp(options->loss_scale, "none")) {
    fprintf(stderr,
            "mixtape: --graph-rewrite bfloat16 scales no loss, for its numbers reach as far as float32's; "
            "leave --loss-scale out\n");
    return CLI_USAGE;
  }
  if (options->graph_rewrite && options->policy && !strncmp(options->policy, "mixed_", 6)) {
    fprintf(stderr, "mixtape: --graph-rewrite and the mixed policy %s exclude each other; leave one out\n",
            options->policy);
    return CLI_USAGE;
  }
  if (mix_error() != MIX_OK) return cli_fail();
  if (cli_simulate(options, options->simulate, options->simulate_except) != MIX_OK) return cli_fail();
  const int code = check_scale(options);
  return code || file ? code : cli_check_names(options); /* a file chooses the generation of its names */
}

mix_status cli_compile(const cli_options *options, mix_model *model) {
  mix_optimizer *optimizer = mix_optimizer_from_text(options->optimizer, NULL);
  if (!cli_keep_state(options, optimizer)) return mix_error();
  optimizer = cli_scaled(options, model, optimizer);
  mix_compile_options compile = {.size = sizeof compile,
                                 .loss = options->loss,
                                 .optimizer = optimizer,
                                 .preprocess = mix_preprocess_images,
                                 .preprocess_context = model,
                                 .jit_compile = options->jit_compile};
  char *metrics = mix_strdup(options->metrics);
  if (metrics && cli_name_metrics(metrics, &compile)) cli_compile_scaled(options, model, &compile);
  mix_free(metrics);
  return mix_error();
}

/* ---- all of it ---- */

mix_model *cli_compiled_model(cli_options *options, int64_t width) {
  mix_model *model = cli_make_model(options, CLI_COMPILED, width);
  const bool file = cli_is_model_file(options);
  return model && (file ? cli_compile_file(options, model) : cli_compile(options, model)) == MIX_OK ? model
                                                                                                    : NULL;
}

static int prepare_named(cli_options *options, int command, cli_data *data, mix_model **model) {
  const bool flat = cli_is_guide(options) && strcmp(options->data, "synthetic");
  if (flat && !cli_load_data(options, command, data)) return cli_fail();
  if (flat && !options->classes) options->classes = cli_label_words(data);
  *model = cli_make_model(options, CLI_COMPILED, flat ? data->width : 0);
  return *model && cli_compile(options, *model) == MIX_OK &&
                 (flat || cli_load_model_data(options, command, *model, data))
             ? CLI_OK
             : cli_fail();
}

static int prepare_file(cli_options *options, int command, cli_data *data, mix_model **model) {
  const bool compiles = command != CLI_PREDICT;
  if (!(*model = cli_make_model(options, compiles ? CLI_COMPILED : CLI_NOT_COMPILED, 0))) return cli_fail();
  const int code = cli_check_names(options);
  if (code) return code;
  const bool synthetic = !strcmp(options->data, "synthetic"); /* made up for the model and its losses */
  if (!synthetic && !cli_load_model_data(options, command, *model, data)) return cli_fail();
  if (compiles && cli_compile_file(options, *model) != MIX_OK) return cli_fail();
  return !synthetic || cli_load_model_data(options, command, *model, data) ? CLI_OK : cli_fail();
}

int cli_prepare(cli_options *options, int command, cli_data *data, mix_model **model) {
  return (cli_is_model_file(options) ? prepare_file : prepare_named)(options, command, data, model);
}
