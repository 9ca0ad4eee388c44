/* mixtape evaluate, predict, summary, devices and version. */
#include "cli/cli.h"

#include <string.h>

static void note_random_weights(const cli_options *options) {
  if (!options->init_weights)
    fprintf(stderr, "weights: random; --init-weights names the file of trained ones\n");
}

/* Sets up data and a compiled model for evaluate and predict. CLI_OK or the exit code. */
static int prepare(const cli_options *options, int command, cli_data *data, mix_model **model) {
  int code = cli_setup(options);
  if (code) return code;
  if (!cli_load_data(options, command, data) || !(*model = cli_make_model(options, data->width)))
    return cli_fail();
  note_random_weights(options);
  return cli_compile(options, *model) == MIX_OK ? CLI_OK : cli_fail();
}

static int evaluate(const cli_options *options) {
  cli_data data;
  mix_model *model;
  int code = prepare(options, CLI_EVALUATE, &data, &model);
  if (code) return code;
  mix_tensor *x = data.x_test ? data.x_test : data.x_train, *y = data.x_test ? data.y_test : data.y_train;
  mix_logs *test =
      mix_model_evaluate(model, x, y, .batch_size = options->batch_size, .verbose = cli_verbose(options));
  return test ? cli_report(options, model, NULL, test) : cli_fail();
}

static int predict(const cli_options *options) {
  cli_data data;
  mix_model *model;
  int code = options->output ? cli_check_output("predict", "output", options->output) : CLI_OK;
  if (!code) code = prepare(options, CLI_PREDICT, &data, &model);
  if (code) return code;
  mix_list *outputs =
      mix_model_predict(model, data.x_test ? data.x_test : data.x_train, .batch_size = options->batch_size);
  if (!outputs) return cli_fail();
  if (options->output)
    return mix_npy_save(options->output, mix_list_get(outputs, 0)) == MIX_OK ? CLI_OK : cli_fail();
  mix_tensor *classes = mix_argmax(mix_list_get(outputs, 0), -1);
  const int64_t *labels = mix_tensor_data(classes);
  if (!labels) return cli_fail();
  for (int64_t i = 0; i < mix_tensor_shape(classes).dims[0]; i++) printf("%lld\n", (long long)labels[i]);
  return CLI_OK;
}

static int summary(const cli_options *options) {
  int code = cli_setup(options);
  if (code) return code;
  mix_model *model = cli_make_model(options, 784);
  const char *text = model ? mix_model_summary(model) : NULL;
  if (!text) return cli_fail();
  fputs(text, stdout);
  return CLI_OK;
}

static int devices(const cli_options *options) {
  (void)options;
  const char *text = mix_devices_text();
  if (!text) return cli_fail();
  fputs(text, stdout);
  cli_try_environment(); /* after the text, which lists the choices */
  return mix_error() == MIX_OK ? CLI_OK : cli_fail();
}

static int version(const cli_options *options) {
  (void)options;
  printf("mixtape %s\n", mix_version());
  return CLI_OK;
}

static int run(const char *name, int command, int (*body)(const cli_options *options), int argc,
               char **argv) {
  cli_options options;
  int code = cli_parse(name, command, argc, argv, &options);
  if (code) return code < 0 ? CLI_OK : code;
  mix_scope *scope = mix_scope_begin();
  code = body(&options);
  mix_scope_end(scope);
  return code;
}

int cli_evaluate(int argc, char **argv) { return run("evaluate", CLI_EVALUATE, evaluate, argc, argv); }
int cli_predict(int argc, char **argv) { return run("predict", CLI_PREDICT, predict, argc, argv); }
int cli_summary(int argc, char **argv) { return run("summary", CLI_SUMMARY, summary, argc, argv); }
int cli_devices(int argc, char **argv) { return run("devices", CLI_DEVICES, devices, argc, argv); }
int cli_version(int argc, char **argv) { return run("version", CLI_VERSION, version, argc, argv); }
