/* libFuzzer target: lines of text as a sub-command and its arguments. What parses is set up, and a small
 * model is compiled with it. */
#include "cli/cli.h"
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ARGUMENTS = 64 };

static const struct {
  const char *name;
  int bit;
} commands[] = {{"train", CLI_TRAIN},     {"evaluate", CLI_EVALUATE}, {"predict", CLI_PREDICT},
                {"summary", CLI_SUMMARY}, {"devices", CLI_DEVICES},   {"bench", CLI_BENCH},
                {"version", CLI_VERSION}, {"numerics", CLI_NUMERICS}, {"compile", CLI_COMPILE}};

static int command_of(const char *name) {
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    if (!strcmp(name, commands[i].name)) return commands[i].bit;
  return CLI_TRAIN;
}

/* Sizes of four digits could ask for more memory than the machine has, which is no defect. */
static int asks_for_much(const char *text) {
  for (int digits = 0; *text; text++) {
    digits = isdigit((unsigned char)*text) ? digits + 1 : 0;
    if (digits > 3) return 1;
  }
  return 0;
}

static bool compile(cli_options *options) {
  options->units = 2;
  options->init_weights = NULL;
  options->model = "guide";
  mix_model *model = cli_build_named_model(options, 3);
  return model && cli_compile(options, model) == MIX_OK;
}

/* Every error has been reported. */
static void read_options(const char *command, int count, char **arguments) {
  cli_options options;
  const int code = cli_parse(command, command_of(command), count, arguments, &options);
  if (mix_error() != MIX_OK || code < -1 || code > CLI_USAGE) abort();
  if (code != CLI_OK || asks_for_much(options.optimizer) || asks_for_much(options.metrics)) return;
  options.threads = 0;
  if (cli_setup(&options) == CLI_OK && !compile(&options)) mix_error_clear();
  if (mix_error() != MIX_OK) abort();
}

static void restore_defaults(void) {
  mix_disable_mixed_precision_graph_rewrite();
  mix_set_semantics("tf_keras");
  mix_set_global_policy("float32");
  mix_set_accumulate("auto");
  mix_set_device("cpu");
  mix_clear_names();
}

static void drop(void *context, mix_log_level level, const char *message) {
  (void)context, (void)level, (void)message;
}

/* Messages go nowhere; what the sanitizers print goes to the descriptor. */
static void silently(const char *command, int count, char **arguments) {
  static FILE *nowhere;
  FILE *out = stdout, *err = stderr;
  if (!nowhere && !(nowhere = fopen("/dev/null", "w"))) return;
  stdout = stderr = nowhere;
  mix_set_log_callback(drop, NULL);
  MIX_SCOPE { read_options(command, count, arguments); }
  restore_defaults();
  stdout = out, stderr = err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text = malloc(size + 1), *arguments[MAX_ARGUMENTS + 1] = {0};
  int count = 0;
  memcpy(text, data, size);
  text[size] = 0;
  for (char *at = text; at && count < MAX_ARGUMENTS;) {
    arguments[count++] = at;
    if ((at = strchr(at, '\n'))) *at++ = 0;
  }
  silently(arguments[0], count, arguments);
  free(text);
  return 0;
}
