/* The program: one file a sub-command over shared options. What goes wrong in the options ends with 2, what goes wrong while running
 * with 1. Results go to standard output, progress and messages to standard error. */
#ifndef MIX_CLI_CLI_H
#define MIX_CLI_CLI_H

#include <mixtape/callback.h>
#include <mixtape/mixtape.h>
#include <stdio.h>

#define CLI_CALLBACK_MAX 16

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

/* Sub-commands that an option belongs to. */
enum {
  CLI_TRAIN = 1,
  CLI_EVALUATE = 2,
  CLI_PREDICT = 4,
  CLI_SUMMARY = 8,
  CLI_DEVICES = 16,
  CLI_BENCH = 32,
  CLI_VERSION = 64,
  CLI_NUMERICS = 128
};

typedef struct cli_loss_scale {
  enum { CLI_SCALE_AUTO, CLI_SCALE_NONE, CLI_SCALE_FIXED, CLI_SCALE_DYNAMIC } kind;
  double scale;         /* fixed, or initial; 0: the default */
  int64_t growth_steps; /* 0: the default */
} cli_loss_scale;

typedef struct cli_options {
  const char *model, *data, *policy, *optimizer, *loss, *metrics, *semantics, *accumulate, *loop, *device, *graph_rewrite;
  const char *init_weights, *save, *step_log, *output, *only, *tensorboard, *format, *png, *checkpoint;
  const char *class_weight; /* as given; what it says: */
  int class_weight_count;
  int64_t class_labels[MIX_CLASS_MAX];
  double class_weights[MIX_CLASS_MAX];
  const char *callbacks[CLI_CALLBACK_MAX]; /* as given, in order */
  int callback_count;
  cli_loss_scale loss_scale;
  int64_t units, batch_size, epochs, steps, threads, verbose, every, stall;
  int64_t checkpoint_freq; /* 0: each epoch */
  uint64_t seed;
  bool has_seed;
  double validation_split;
  bool no_shuffle, jit_compile, json, quick, advise, all, resume;
} cli_options;

/* Fills the options from the arguments after the sub-command's name; CLI_OK to go on, CLI_USAGE after an error message, -1 when --help
 * was printed. */
int cli_parse(const char *command, int commands, int argc, char **argv, cli_options *options);

/* Is argument *i the option `name` ("--output") with a value, "--output FILE" or "--output=FILE"? Then *i is its last argument, and *value is
 * NULL where it is missing. */
bool cli_is_option(int argc, char **argv, int *i, const char *name, const char **value);

/* --verbose as the library takes it; not given: automatic. */
int cli_verbose(const cli_options *options);

/* Prints the pending error and returns the exit code. */
int cli_fail(void);
/* Takes process-wide choices (semantics, policy, device, threads, accumulation, seed) from the options, and tries the names that only the
 * library knows (optimizer, loss, metrics). CLI_OK, or the exit code after a message. */
int cli_setup(const cli_options *options);

/* Reads what the environment says of device, threads, accumulation and precision, which counts where an option does not: errors of it are
 * recorded here. */
void cli_try_environment(void);

/* Data as the model takes it: labels, and images of bytes as bytes. */
typedef struct cli_data {
  mix_tensor *x_train, *y_train, *x_test, *y_test; /* NULL where there are none and the sub-command can do without */
  const char *source;
  int64_t width; /* elements of one example */
} cli_data;
/* What `command` (CLI_TRAIN, CLI_EVALUATE, CLI_PREDICT) needs must be there. False with the error recorded. */
bool cli_load_data(const cli_options *options, int command, cli_data *data);

/* The model of --model for inputs of that width, with --init-weights loaded. NULL with the error recorded. */
mix_model *cli_make_model(const cli_options *options, int64_t width);
mix_status cli_compile(const cli_options *options, mix_model *model);

/* The weights of --class-weight. */
void cli_weigh_classes(const cli_options *options, mix_fit_options *fit);

/* May --checkpoint be used as --resume says? CLI_OK, or the exit code after a message. */
int cli_check_checkpoint(const cli_options *options);
/* Can the file that an option names be written? CLI_OK, or the exit code after a message: asked before the work, not after it. */
int cli_check_output(const char *command, const char *option, const char *path);

/* What a training run leaves for the report: rows of history by name. */
typedef struct cli_history {
  int count; /* columns */
  struct cli_column {
    char *name;
    double *values; /* one for each epoch, NaN where none was added */
    int64_t epochs;
  } columns[4 * MIX_MODEL_MAX];
  int64_t epochs, steps;
  double start_seconds, train_seconds;
} cli_history;
/* False where memory is short or there are too many columns. */
bool cli_history_add(cli_history *history, int64_t epoch, const char *name, double value);
void cli_history_free(cli_history *history);

/* The log of steps. */
typedef struct cli_step_log {
  FILE *file;
  const char *path;
  bool failed;
  bool resumes; /* the file may hold steps already: those before the first one written stay */
  bool fresh;   /* nothing was written: what the file holds is still there */
} cli_step_log;
bool cli_step_log_open(cli_step_log *log, const char *path, bool resumes);
void cli_step_log_write(cli_step_log *log, const mix_step_record *record);
bool cli_step_log_close(cli_step_log *log);

/* Seconds since cli_begin, which main calls first. */
void cli_begin(void);
double cli_seconds(void);
/* The shortest decimal that reads back as the same double, as Python prints it: "0.8579999804496765", "1.0", "nan". */
const char *cli_number_text(double value, char *text, size_t size);
/* Results to standard output. `history` NULL: nothing was trained; `test` NULL: nothing was tested. */
int cli_report(const cli_options *options, mix_model *model, const cli_history *history, const mix_logs *test);

bool cli_train_custom(const cli_options *options, mix_model *model, const cli_data *data, cli_history *history, cli_step_log *log);

int cli_train(int argc, char **argv);
int cli_evaluate(int argc, char **argv);
int cli_predict(int argc, char **argv);
int cli_summary(int argc, char **argv);
int cli_devices(int argc, char **argv);
int cli_version(int argc, char **argv);
int cli_bench(int argc, char **argv);
int cli_numerics(int argc, char **argv);
/* Pictures of graphs (draw.c): does the name end in .dot, .svg or .png; and writing graphviz's text as such. False with the error recorded. */
bool cli_picture_path(const char *path);
bool cli_draw(const char *path, const char *text);

int cli_amp(int argc, char **argv);
int cli_graph(int argc, char **argv);

#endif
