#include "cli/cli.h"

#include <string.h>
#include <time.h>

typedef struct command {
  const char *name;
  int (*run)(int argc, char **argv);
  const char *help;
} command;

static const command commands[] = {
    {"train", cli_train, "train a model: the guide's, unless --model says otherwise"},
    {"evaluate", cli_evaluate, "loss and metrics of saved weights on data"},
    {"predict", cli_predict, "outputs of saved weights on data"},
    {"summary", cli_summary, "layers, shapes, parameters and dtypes of a model"},
    {"devices", cli_devices, "devices, instruction sets and the kernels that serve this machine"},
    {"bench", cli_bench, "step times, memory and dispatch cost, as ratios within one run"},
    {"version", cli_version, "the version"},
};

static double began;

static double clock_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double cli_seconds(void) { return clock_now() - began; }

int cli_fail(void) {
  fprintf(stderr, "mixtape: %s: %s\n", mix_status_name(mix_error()), mix_error_message());
  mix_error_clear();
  return CLI_FAILED;
}

static void help(FILE *out) {
  fprintf(out, "usage: mixtape COMMAND [OPTION...]\n\nMixed precision neural network training in C.\n\n");
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
  fprintf(out, "\n`mixtape COMMAND --help` explains a command's options.\n");
}

int main(int argc, char **argv) {
  began = clock_now();
  mix_set_log_callback(mix_log_to_stderr, NULL);
  if (argc < 2) {
    help(stderr);
    return CLI_USAGE;
  }
  if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help")) {
    help(stdout);
    return CLI_OK;
  }
  if (!strcmp(argv[1], "--version")) return cli_version(argc, argv);
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    if (!strcmp(argv[1], commands[i].name)) {
      int code = commands[i].run(argc - 1, argv + 1);
      mix_shutdown();
      if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "mixtape: cannot write to standard output\n");
        return CLI_FAILED;
      }
      return code;
    }
  fprintf(stderr, "mixtape: unknown command '%s'; `mixtape --help` lists them\n", argv[1]);
  return CLI_USAGE;
}
