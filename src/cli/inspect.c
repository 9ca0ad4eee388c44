/* mixtape evaluate, predict, summary, devices and version. */
#include "cli/cli.h"

#include "base/format.h"
#include "model/model.h"

#include <string.h>

/* Sets up data and a compiled model for evaluate and predict. CLI_OK or the exit code. */
static int prepare(cli_options *options, int command, cli_data *data, mix_model **model) {
  int code = cli_setup(options);
  if (!code) code = cli_prepare(options, command, data, model);
  if (!code && !cli_is_model_file(options) && !options->init_weights)
    fprintf(stderr, "weights: random; --init-weights names the file of trained ones\n");
  return code;
}

static int evaluate(cli_options *options) {
  cli_data data;
  mix_model *model;
  int code = prepare(options, CLI_EVALUATE, &data, &model);
  if (code) return code;
  const cli_part *part = cli_part_to_test(&data);
  mix_logs *test = mix_model_evaluate(model, part->x, part->y, .batch_size = options->batch_size,
                                      .verbose = cli_verbose(options), .sample_weight = part->weights);
  return test ? cli_report(options, model, NULL, test) : cli_fail();
}

static bool ends_in_npy(const char *path) { return !strcmp(strrchr(path, '.'), ".npy"); }

/* y, or y_0, y_1, ... */
static int write_outputs(const char *path, mix_list *outputs) {
  const int count = mix_list_count(outputs);
  char names[MIX_MODEL_MAX][16];
  const char *list[MIX_MODEL_MAX];
  mix_tensor *tensors[MIX_MODEL_MAX];
  for (int i = 0; i < count; i++) {
    if (count == 1)
      snprintf(names[i], sizeof names[i], "y");
    else
      snprintf(names[i], sizeof names[i], "y_%d", i);
    list[i] = names[i];
    tensors[i] = mix_list_get(outputs, i);
  }
  const mix_status status =
      ends_in_npy(path) ? mix_npy_save(path, tensors[0]) : mix_npz_save(path, count, list, tensors);
  return status == MIX_OK ? CLI_OK : cli_fail();
}

/* Numbers, or the words of a table's label. */
static int print_classes(const cli_data *data, mix_tensor *output) {
  mix_tensor *classes = mix_argmax(output, -1);
  const int64_t *labels = mix_tensor_data(classes);
  if (!labels) return cli_fail();
  for (int64_t i = 0; i < mix_tensor_shape(classes).dims[0]; i++) {
    const char *word = cli_label_word(data, labels[i]);
    if (word)
      printf("%s\n", MIX_PRINTABLE(word));
    else
      printf("%lld\n", (long long)labels[i]);
  }
  return CLI_OK;
}

/* Checked before the work. */
static int check_outputs(const cli_options *options, const mix_model *model) {
  const int count = mix_model_output_count(model);
  const mix_shape shape = mix_model_output_shape(model, 0);
  const bool classes = count == 1 && (shape.rank < 0 || (shape.rank == 2 && shape.dims[1] != 1));
  if (options->output && ends_in_npy(options->output) && count > 1)
    fprintf(stderr, "mixtape predict: --output: the model has %d outputs, and %s holds one; name an .npz\n",
            count, options->output);
  else if (!options->output && count == 1 && shape.rank == 3)
    fprintf(
        stderr,
        "mixtape predict: the model's outputs are no classes of examples but scores of classes at each "
        "position, given all inputs; --output FILE.npz writes them, and examples/12_transformer.c decodes "
        "sequences token by token\n");
  else if (!options->output && !classes)
    fprintf(stderr, "mixtape predict: the model's outputs are no classes; --output FILE.npz writes them\n");
  else
    return CLI_OK;
  return CLI_USAGE;
}

static int predict(cli_options *options) {
  cli_data data;
  mix_model *model;
  int code = options->output ? cli_check_output("predict", "output", options->output) : CLI_OK;
  if (!code) code = prepare(options, CLI_PREDICT, &data, &model);
  if (!code) code = check_outputs(options, model);
  if (code) return code;
  mix_list *outputs = mix_model_predict(model, cli_part_to_test(&data)->x, .batch_size = options->batch_size);
  if (!outputs) return cli_fail();
  return options->output ? write_outputs(options->output, outputs)
                         : print_classes(&data, mix_list_get(outputs, 0));
}

static int summary(cli_options *options) {
  int code = options->output ? cli_check_output("summary", "output", options->output) : CLI_OK;
  if (!code) code = cli_setup(options);
  if (code) return code;
  mix_model *model = cli_make_model(options, CLI_OPTIMIZER_ALONE, 0);
  if (model && options->output) return cli_draw_model(options->output, model) ? CLI_OK : cli_fail();
  const char *text = model ? mix_model_summary(model) : NULL;
  if (!text) return cli_fail();
  /* Of a model of Keras the results are Keras's alone. */
  const size_t table = cli_is_model_file(options) ? model->summary_table : strlen(text);
  fwrite(text, 1, table, stdout);
  fflush(stdout);
  fputs(text + table, stderr);
  return CLI_OK;
}

static int devices(cli_options *options) {
  const char *text = mix_devices_text();
  if (!text) return cli_fail();
  fputs(text, stdout);
  cli_try_environment(); /* after the text, which lists the choices */
  return mix_error() == MIX_OK ? CLI_OK : cli_fail();
}

static int version(cli_options *options) {
  printf("mixtape %s\nparts: %s\n", mix_version(), mix_parts());
  if (*mix_parts_left_out()) printf("left out: %s\n", mix_parts_left_out());
  return CLI_OK;
}

static int run(const char *name, int command, int (*body)(cli_options *options), int argc, char **argv) {
  cli_options options;
  int code = cli_parse(name, command, argc, argv, &options);
  if (code) return code < 0 ? CLI_OK : code;
  mix_scope *scope = mix_scope_begin();
  code = cli_trace_begin(&options);
  if (!code) code = cli_trace_end(&options, body(&options));
  mix_scope_end(scope);
  return code;
}

int cli_evaluate(int argc, char **argv) { return run("evaluate", CLI_EVALUATE, evaluate, argc, argv); }
int cli_predict(int argc, char **argv) { return run("predict", CLI_PREDICT, predict, argc, argv); }
int cli_summary(int argc, char **argv) { return run("summary", CLI_SUMMARY, summary, argc, argv); }
int cli_devices(int argc, char **argv) { return run("devices", CLI_DEVICES, devices, argc, argv); }
int cli_version(int argc, char **argv) { return run("version", CLI_VERSION, version, argc, argv); }
