/* mixtape numerics: a numerics report over some training steps. */
#include "cli/cli.h"

#include "base/format.h"

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

/* The counts begin where a number of an operand is rounded. */
static void say_nothing_simulated(const cli_options *options) {
  fprintf(
      stderr,
      "warning: --simulate %s rounded nothing: no product of the model has operands in 16 bits%s; expected "
      "a policy such as --policy mixed_bfloat16\n",
      options->simulate, options->simulate_except ? " outside the layers of --simulate-except" : "");
}

/* The shares of numbers that are not 0. */
static void print_simulated(const cli_options *options) {
  printf("\nSimulated %s, by operand of products, forward and backward\n", options->simulate);
  printf("  %-28s %-10s %12s %10s %10s\n", "layer", "operand", "numbers", "saturated", "flushed");
  for (int i = 0; i < mix_simulated_count(); i++) {
    mix_simulated_row row;
    if (mix_simulated_get(i, &row, sizeof row) != MIX_OK) return;
    const double numbers = (double)row.numbers / 100;
    printf("  %-28s %-10s %12lld %9.3f%% %9.3f%%\n", MIX_PRINTABLE(row.layer), row.operand,
           (long long)row.numbers, (double)row.saturated / numbers, (double)row.flushed / numbers);
  }
  printf(
      "saturated: beyond the format's largest number; flushed: rounded to 0; of the numbers other than 0.\n");
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
  if (!mix_model_fit_with(model, &fit)) return cli_fail();
  code = print_report(options, report);
  const bool json = options->json || (options->format && !strcmp(options->format, "json"));
  if (options->simulate && !code && !mix_simulated_count())
    say_nothing_simulated(options);
  else if (options->simulate && !code && !json)
    print_simulated(options);
  return code;
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
