/* The program mixtape: its sub-commands and start-up. */
#include "cli/cli.h"

#include "base/did_you_mean.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

typedef struct command {
  const char *name;
  cli_command *run;
  const char *help;
} command;

static const command commands[] = {
    {"train", cli_train, "train a model"},
    {"evaluate", cli_evaluate, "loss and metrics of saved weights on data"},
    {"predict", cli_predict, "outputs of saved weights on data"},
    {"compile", cli_compile_for_target,
     "compile what train, evaluate and predict run, for a GPU that is not here"},
    {"summary", cli_summary, "layers, shapes, parameters and dtypes of a model"},
    {"convert", cli_convert, "write a model or weights in another form, or as ONNX"},
    {"quantize", cli_quantize, "write a model with layers of int8, int4 or float8"},
    {"devices", cli_devices, "devices, instruction sets and kernels of this machine"},
    {"amp", cli_amp, "show what the automatic mixed precision rewrite does to a graph, and why"},
    {"graph", cli_graph, "check compiled graphs in text form and run single passes on them"},
    {"numerics", cli_numerics,
     "report overflow and underflow of each layer over some training steps, with remedies"},
    {"tune-precision", cli_tune_precision,
     "the smallest set of layers that must stay float32 to train in 16 bits like float32"},
    {"bench", cli_bench, "speed and memory of training steps on this machine, as ratios within one run"},
    {"new", cli_new, "a folder with a program, a test and their build, to begin with"},
    {"version", cli_version, "the version"},
};

static void help(FILE *out) {
  fprintf(out, "usage: mixtape COMMAND [OPTION...]\n\nMixed precision neural network training in C.\n\n");
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    fprintf(out, "  %-14s %s\n", commands[i].name, commands[i].help);
  fprintf(out, "\n`mixtape COMMAND --help` explains a command's options.\n");
}

/* NULL after a message. */
static const command *find(const char *name) {
  mix_did_you_mean suggestion = {.word = name};
  char hint[100];
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    if (!strcmp(name, commands[i].name)) return &commands[i];
    mix_did_you_mean_try(&suggestion, commands[i].name);
  }
  mix_did_you_mean_try(&suggestion, "help");
  fprintf(stderr, "mixtape: unknown command '%s'%s%s `mixtape --help` lists them\n", name,
          mix_did_you_mean_hint(&suggestion, hint, sizeof hint), suggestion.found ? "" : ";");
  return NULL;
}

/* A failed write to standard output is an error too. */
static int finish(int code) {
  mix_shutdown();
  const bool flushed = fflush(stdout) == 0;
  if (flushed && !ferror(stdout)) return code;
  fprintf(stderr, "mixtape: cannot write to standard output: %s\n",
          flushed ? "an earlier write failed, and that part is missing" : strerror(errno));
  return code ? code : CLI_FAILED;
}

/* If the caller closed a standard file, a file opened later could take its number and receive printed output.
 * /dev/null is opened in its place, in a mode in which using it still fails. */
static void protect_standard_files(void) {
  for (int file = 0; file <= 2; file++)
    if (fcntl(file, F_GETFD) == -1 && errno == EBADF && open("/dev/null", file ? O_RDONLY : O_WRONLY) != file)
      _exit(CLI_FAILED);
}

int main(int argc, char **argv) {
  protect_standard_files();
  signal(SIGXFSZ, SIG_IGN); /* a file beyond the size limit is a write error, like a full disk */
  cli_begin();
  mix_set_log_callback(mix_log_to_stderr, NULL);
  const char *name = argc > 1 ? argv[1] : NULL;
  if (!name) {
    help(stderr);
    return CLI_USAGE;
  }
  if (!strcmp(name, "--help") || !strcmp(name, "-h") || (!strcmp(name, "help") && argc == 2)) {
    help(stdout);
    return finish(CLI_OK);
  }
  if (!strcmp(name, "--version")) return finish(cli_version(argc - 1, argv + 1));
  if (!strcmp(name, "help")) { /* help COMMAND */
    static char help_option[] = "--help";
    name = argv[1] = argv[2];
    argv[2] = help_option;
    argc = 3;
  }
  const command *found = find(name);
  return found ? finish(found->run(argc - 1, argv + 1)) : CLI_USAGE;
}
