/* The program: one file a sub-command over shared options. What goes wrong in the options ends with 2, what goes wrong while running
 * with 1. Results go to standard output, progress and messages to standard error. */
#ifndef MIX_CLI_CLI_H
#define MIX_CLI_CLI_H

#include <mixtape/mixtape.h>
#include <stdio.h>

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

/* Sub-commands that an option belongs to. */
enum { CLI_TRAIN = 1, CLI_EVALUATE = 2, CLI_PREDICT = 4, CLI_SUMMARY = 8, CLI_DEVICES = 16, CLI_BENCH = 32 };

typedef struct cli_loss_scale {
  enum { CLI_SCALE_AUTO, CLI_SCALE_NONE, CLI_SCALE_FIXED, CLI_SCALE_DYNAMIC } kind;
  double scale;         /* fixed, or initial; 0: the default */
  int64_t growth_steps; /* 0: the default */
} cli_loss_scale;

typedef struct cli_options {
  const char *model, *data, *policy, *optimizer, *loss, *metrics, *semantics, *accumulate, *loop, *device;
  const char *init_weights, *save, *step_log, *output;
  const char *class_weight;
  cli_loss_scale loss_scale;
  int64_t units, batch_size, epochs, steps, threads, verbose;
  uint64_t seed;
  bool has_seed;
  double validation_split;
  bool no_shuffle, json, quick;
} cli_options;

/* Fills the options from the arguments after the sub-command's name; CLI_OK to go on, CLI_USAGE after an error message, -1 when --help
 * was printed. */
int cli_parse(const char *command, int commands, int argc, char **argv, cli_options *options);

/* Prints the pending error and returns the exit code. */
int cli_fail(void);
/* Takes process-wide choices (semantics, policy, device, threads, accumulation, seed) from the options. */
bool cli_setup(const cli_options *options);

/* Data as the model takes it: labels, and images of bytes as bytes. */
typedef struct cli_data {
  mix_tensor *x_train, *y_train, *x_test, *y_test; /* the last two NULL where there are none */
  const char *source;
  int64_t width; /* elements of one example */
} cli_data;
bool cli_load_data(const cli_options *options, cli_data *data);

/* The model of --model for inputs of that width, with --init-weights loaded. NULL with the error recorded. */
mix_model *cli_make_model(const cli_options *options, int64_t width);
/* The optimizer of --optimizer under --loss-scale; *wrapped: --loss-scale has been dealt with (compile must not wrap). */
mix_optimizer *cli_make_optimizer(const cli_options *options, const mix_model *model, bool *wrapped);
mix_status cli_compile(const cli_options *options, mix_model *model);

/* What a training run leaves for the report: rows of history by name. */
typedef struct cli_history {
  int count;            /* columns */
  const char *names[40];
  double *values[40];   /* one for each epoch */
  int64_t epochs, steps;
  double start_seconds, train_seconds;
} cli_history;
void cli_history_add(cli_history *history, int64_t epoch, const char *name, double value);
void cli_history_free(cli_history *history);

/* The log of steps. */
typedef struct cli_step_log {
  FILE *file;
  bool failed;
  double first_step; /* when the first step had finished */
} cli_step_log;
bool cli_step_log_open(cli_step_log *log, const char *path);
void cli_step_log_write(cli_step_log *log, const mix_step_record *record);
bool cli_step_log_close(cli_step_log *log, const char *path);

/* Seconds since the process began. */
double cli_seconds(void);
/* `test` NULL: none. */
int cli_report(const cli_options *options, const cli_history *history, const mix_logs *test);

bool cli_train_custom(const cli_options *options, mix_model *model, const cli_data *data, cli_history *history, cli_step_log *log);

int cli_train(int argc, char **argv);
int cli_evaluate(int argc, char **argv);
int cli_predict(int argc, char **argv);
int cli_summary(int argc, char **argv);
int cli_devices(int argc, char **argv);
int cli_version(int argc, char **argv);
int cli_bench(int argc, char **argv);

#endif
