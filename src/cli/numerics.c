/* mixtape numerics: a numerics report over some training steps. */
#include "cli/cli.h"

#include <string.h>

enum { STEPS = 50 };

static int print_report(const cli_options *options, mix_numerics *report) {
  bool json = options->json || (options->format && !strcmp(options->format, "json"));
  const char *text = json ? mix_numerics_json(report) : mix_numerics_table(report, options->all);
  if (!text) return cli_fail();
  fputs(text, stdout);
  if (json) putchar('\n');
  return CLI_OK;
}

static int run(cli_options *options) {
  cli_data data;
  int code = cli_setup(options);
  if (!code && options->png) code = cli_check_output("numerics", "png", options->png);
  if (!code && options->html) code = cli_check_output("numerics", "html", options->html);
  mix_model *model;
  if (!code) code = cli_prepare(options, CLI_TRAIN, &data, &model);
  if (code) return code;
  mix_numerics *report = mix_numerics_new();
  mix_callback *watching =
      mix_numerics_report(.report = report, .every = options->every, .stall = options->stall,
                          .stop_at_stall = true, .png = options->png, .html = options->html);
  mix_fit_options fit = cli_fit_options(options, model, &data.train);
  fit.steps = fit.epochs = options->steps ? options->steps : STEPS;
  fit.callbacks = mix_list_of(watching);
  return mix_model_fit_with(model, &fit) ? print_report(options, report) : cli_fail();
}

int cli_numerics(int argc, char **argv) {
  cli_options options;
  int code = cli_parse("numerics", CLI_NUMERICS, argc, argv, &options);
  if (code) return code < 0 ? CLI_OK : code;
  mix_scope *scope = mix_scope_begin();
  code = run(&options);
  mix_scope_end(scope);
  return code;
}
