/* mixtape compile: the programs of training, evaluation and prediction, for a GPU that is not here. */
#include "backend/backend.h"
#include "base/alloc.h"
#include "base/error.h"
#include "cli/cli.h"

#include <string.h>

static bool train(const cli_options *options, mix_model *model, const cli_data *data) {
  mix_fit_options fit = cli_fit_options(options, model, &data->train);
  cli_step_log log = {0};
  cli_history history = {0};
  if (strcmp(options->loop, "custom")) return mix_model_fit_with(model, &fit) != NULL;
  const bool good = cli_train_custom(options, model, data, &history, &log);
  cli_history_free(&history);
  return good;
}

/* Every batch is run as by `train`, so that the last one, which may be smaller, has its program too. */
static bool compile_programs(const cli_options *options, mix_model *model, const cli_data *data) {
  const cli_part *test = cli_part_to_test(data);
  return train(options, model, data) &&
         mix_model_evaluate(model, test->x, test->y, .batch_size = options->batch_size, .verbose = MIX_SILENT,
                            .sample_weight = test->weights) &&
         mix_model_predict(model, test->x, .batch_size = options->batch_size, .verbose = MIX_SILENT);
}

/* CLI_OK, or the exit code after a message. */
static int set_target(cli_options *options) {
  if (!options->target) {
    cli_say("compile", "--target is missing; expected the GPU's name, such as h100, or a file of its facts");
    return CLI_USAGE;
  }
  if (options->device && strcmp(options->device, "cuda")) {
    cli_say("compile", "--device %s: programs are compiled for cuda alone; leave --device out",
            options->device);
    return CLI_USAGE;
  }
  options->device = "cuda";
  if (mix_cuda_set_target(options->target)) return CLI_OK;
  cli_say("compile", "--target: %s: %s", mix_status_name(mix_error()), mix_error_message());
  const int code = cli_option_code();
  mix_error_clear();
  return code;
}

static int run(cli_options *options) {
  cli_data data;
  mix_model *model;
  mix_text text = {.grows = true};
  options->verbose = 0; /* losses are zeros */
  int code = set_target(options);
  if (!code) code = cli_setup(options);
  if (!code) code = cli_prepare(options, CLI_TRAIN, &data, &model);
  if (!code && !compile_programs(options, model, &data)) code = cli_fail();
  if (!code) mix_cuda_describe_target(&text);
  if (!code && text.failed) code = cli_fail();
  if (!code) printf("%s", text.text);
  mix_free(text.text);
  return code;
}

int cli_compile_for_target(int argc, char **argv) {
  cli_options options;
  int code = cli_parse("compile", CLI_COMPILE, argc, argv, &options);
  mix_scope *scope = mix_scope_begin();
  if (!code) code = run(&options);
  mix_scope_end(scope);
  return code < 0 ? CLI_OK : code;
}
