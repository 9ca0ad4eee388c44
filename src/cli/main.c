#include "cli/cli.h"

#include "base/did_you_mean.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    {"amp", cli_amp, "what the automatic mixed precision rewrite does to recorded graphs, and why"},
    {"graph", cli_graph, "compiled graphs as text: check them, run single passes over them"},
    {"numerics", cli_numerics,
     "what happens to the numbers of each layer in some steps of training, and what would help"},
    {"bench", cli_bench, "step times, memory and dispatch cost, as ratios within one run"},
    {"version", cli_version, "the version"},
};

static void help(FILE *out) {
  fprintf(out, "usage: mixtape COMMAND [OPTION...]\n\nMixed precision neural network training in C.\n\n");
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
  fprintf(out, "\n`mixtape COMMAND --help` explains a command's options.\n");
}

/* NULL after a message. */
static const command *find(const char *name) {
  mix_did_you_mean nearest = {.word = name};
  char hint[100];
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    if (!strcmp(name, commands[i].name)) return &commands[i];
    mix_did_you_mean_try(&nearest, commands[i].name);
  }
  mix_did_you_mean_try(&nearest, "help");
  fprintf(stderr, "mixtape: unknown command '%s'%s%s `mixtape --help` lists them\n", name,
          mix_did_you_mean_hint(&nearest, hint, sizeof hint), nearest.found ? "" : ";");
  return NULL;
}

/* What could not be written to standard output is a failure too. */
static int finish(int code) {
  mix_shutdown();
  if (fflush(stdout) == 0 && !ferror(stdout)) return code;
  fprintf(stderr, "mixtape: cannot write to standard output: %s\n", strerror(errno));
  return code ? code : CLI_FAILED;
}

/* A file that is opened must not become the standard output or error that the caller closed, and get what is
 * printed there. What stands in their place cannot be written (and in that of the input not be read), so that
 * it is as much an error as before. */
static void keep_standard_files(void) {
  for (int file = 0; file <= 2; file++)
    if (fcntl(file, F_GETFD) == -1 && errno == EBADF && open("/dev/null", file ? O_RDONLY : O_WRONLY) != file)
      _exit(CLI_FAILED);
}

/* GNU's OpenMP reads its environment before main, so that the program starts itself anew. Left alone its
 * threads spin for milliseconds wherever they wait, and on a shared machine that may be on the very processor
 * which the thread they wait for needs: a step of 0.2 ms then lasts two time slices, 8 ms. A thousand turns
 * are some tens of microseconds. */
static void spin_briefly(char **argv) {
  if (getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY")) return;
  if (setenv("GOMP_SPINCOUNT", "1000", 1) == 0)
    execv("/proc/self/exe", argv); /* where it fails we go on as we are */
}

int main(int argc, char **argv) {
  keep_standard_files();
  signal(SIGXFSZ,
         SIG_IGN); /* a file beyond the limit of its size is an error of writing, as a full disk is */
  spin_briefly(argv);
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
    static char asks[] = "--help";
    name = argv[1] = argv[2];
    argv[2] = asks;
    argc = 3;
  }
  const command *found = find(name);
  return found ? finish(found->run(argc - 1, argv + 1)) : CLI_USAGE;
}
