/* The program mixtape: one file per sub-command over shared options. Exit code 2 for errors in the options, 1
 * for errors while running. Results go to standard output, progress and messages to standard error. */
#pragma once

#include <mixtape/mixtape.h>

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
  CLI_NUMERICS = 128,
  CLI_TUNE = 256,
  CLI_COMPILE = 512
};

typedef struct cli_options {
  /* NULL beside a model from a file: what the file says. */
  const char *model, *data, *policy, *optimizer, *optimizer_state, *loss, *metrics, *semantics, *accumulate,
      *memory, *loop, *float32_precision;
  const char *device, *target, *graph_rewrite, *dtype, *distribute, *shard;
  const char *init_weights, *weight_map, *save, *step_log, *output, *only, *rows, *tensorboard, *format, *png;
  const char *checkpoint, *trace, *html;
  const char *loss_scale;            /* a text for mix_loss_scale_from_text; NULL: compile chooses */
  const char *const *float32_layers; /* ended by NULL; NULL: none */
  const char *policy_map, *save_policy_map, *onnx; /* files; NULL: none */
  const char *lora_layers, *save_lora, *load_lora;
  const char *label, *features, *words, *missing, *unknown, *columns, *delimiter,
      *validation_data; /* of --data FILE.csv; NULL: not given */
  int64_t lora_rank;    /* 0: no LoRA is added */
  double lora_alpha;    /* 0: the rank */
  const char *simulate;
  bool stochastic_rounding;
  const char *const *simulate_except; /* as float32_layers */
  const char *remat;                  /* as given; parsed into: */
  const char *remat_mode;             /* NULL: no scope */
  int64_t remat_threshold;            /* of larger_than; 0: Keras's */
  const char *const *remat_layers;    /* of list_of_layers; as float32_layers */
  const char *class_weight;           /* as given; parsed into: */
  int class_weight_count;
  int64_t class_labels[MIX_CLASS_MAX];
  double class_weights[MIX_CLASS_MAX];
  const char *callbacks[CLI_CALLBACK_MAX]; /* as given, in order */
  int callback_count;
  int64_t image_size, classes;                       /* 0: as the model or the data say */
  int64_t units, layers, heads, filter_size, length; /* 0: the model's defaults */
  int64_t batch_size, epochs, steps, threads, verbose, every, stall;
  int64_t seeds, confirmations, max_trials; /* 0: the default of precision tuning */
  double max_shard_size;                    /* GB; 0: one file */
  int64_t checkpoint_freq;                  /* 0: each epoch */
  uint64_t seed;
  bool has_seed;
  double validation_split;
  bool gathers; /* rank 0 saves the model, so that all ranks gather the optimizer's state */
  bool no_shuffle, jit_compile, deterministic, json, quick, advise, all, resume, force, retune;
} cli_options;

/* Parses the arguments after the sub-command's name into options. Returns CLI_OK to continue, CLI_USAGE after
 * an error message, -1 after printing --help. */
int cli_parse(const char *command, int commands, int argc, char **argv, cli_options *options);

/* True if argument *i is the option `name` with a value: "--output FILE" or "--output=FILE". Then *i becomes
 * its last argument, and *value its value, NULL if missing. */
bool cli_is_option(int argc, char **argv, int *i, const char *name, const char **value);

/* The library's value of --verbose; automatic if not given. */
int cli_verbose(const cli_options *options);

/* Prints a line on standard error: "mixtape COMMAND: rank 1 of 2: text", without the rank in one process.
 * command "": without its name. */
void cli_say(const char *command, const char *format, ...) MIX_PRINTF(2, 3);
/* Prints the pending error and returns the exit code. */
int cli_fail(void);
/* The exit code for a pending error in an option: CLI_USAGE, or CLI_FAILED if memory ran out. */
int cli_option_code(void);
/* Applies process-wide options (semantics, policy, device, threads, accumulation, seed) and checks names.
 * Returns CLI_OK, or the exit code after a message. */
int cli_setup(const cli_options *options);
/* Simulates `format` (NULL: nothing) but in the layers of `except`, which NULL ends. */
mix_status cli_simulate(const cli_options *options, const char *format, const char *const *except);

/* Reads the environment variables for device, threads, accumulation and precision. Options override them;
 * errors in them are recorded here. */
void cli_try_environment(void);

/* distribute.c: --distribute. */
static inline bool cli_is_distributed(const cli_options *options) {
  return options->distribute && options->distribute[0] == 'm';
}
/* Before any thread exists: goes on in a child, and says which rank it was if a signal ends it. The launcher
 * hears of that only then, and would not name the rank. Returns in the child, or where there is no launcher.
 */
void cli_watch_rank(const cli_options *options);
/* Before the options are parsed: on a rank that a launcher started to train with others, what is printed to
 * standard error waits until the ranks have joined. */
void cli_hold_messages(int argc, char **argv);
/* Starts the distribution, also on a rank whose options are wrong or that printed the help: `code` is the
 * exit code so far, -1 after --help. On ranks other than 0 `options` lose what prints, logs and saves. CLI_OK
 * to go on; else `code` of this rank or of another, after a message that names it. */
/* Is the state of optimizers divided among the ranks? */
static inline bool cli_shards(const cli_options *options) {
  return options->shard && options->shard[0] == 'o';
}
int cli_join_ranks(cli_options *options, int code);
/* The exit code of the process, after `code` on this rank: a failed rank ends the others. */
int cli_leave_ranks(int code);
/* Does the callback write files or print? Only rank 0 has those. */
bool cli_callback_is_local(const char *text);

/* Data as the model takes it: tensors, or lists of them for several inputs and outputs; labels; images as
 * bytes if they are bytes. NULL if absent and not required by the sub-command. */
typedef struct cli_part {
  void *x, *y, *weights;
} cli_part;
typedef struct cli_data {
  cli_part train, test;
  cli_part validation; /* of its own, beside --data */
  const char *source;
  int64_t width;            /* the guide's model: elements per example */
  mix_csv_columns *columns; /* of a table; else NULL */
} cli_data;
/* The data for evaluation and prediction: test data, or training data if there is none. */
const cli_part *cli_part_to_test(const cli_data *data);
/* The number of examples. */
int64_t cli_part_rows(const cli_part *part);

/* Loads data and makes the compiled model for a command (CLI_TRAIN, CLI_EVALUATE, CLI_PREDICT). For a model
 * from a file, `options` gets the generation and the policy that it has; for prediction it is not compiled.
 * CLI_OK, or the exit code after a message. */
int cli_prepare(cli_options *options, int command, cli_data *data, mix_model **model);

/* data.c: sets of images, as bytes. */
bool cli_is_image_set(const char *name);
mix_images cli_load_image_set(const char *name);
/* Data for the guide's model. False with the error recorded. */
bool cli_load_data(const cli_options *options, int command, cli_data *data);
/* model_data.c: data for the inputs and outputs of a model from a file. */
bool cli_load_model_data(const cli_options *options, int command, mix_model *model, cli_data *data);

/* table_data.c: --data FILE.csv. */
bool cli_is_table(const char *data);
bool cli_table_options_agree(const char *command, const cli_options *options);
/* The table by its own columns, or by those that the model learned from. False with the error recorded. */
bool cli_load_table(const cli_options *options, int command, cli_data *data);
/* The words of the label, 0 if it has none, and that of a class; NULL: it is none of them. */
int64_t cli_label_words(const cli_data *data);
const char *cli_label_word(const cli_data *data, int64_t label);
/* Writes the columns of a table beside the model's file. Of other data, removes those of the model that was
 * there before. */
mix_status cli_save_columns(const cli_data *data, const char *path);
/* The columns beside one file for another, which is made of it, or of `model` (NULL: none) if it has none. */
mix_status cli_copy_columns(const char *from, const char *model, const char *to);

/* invented_data.c: made-up data, in the shapes and dtypes that the model takes; labels as its losses take
 * them, if it is compiled. False with the error recorded. */
typedef struct cli_invention {
  int64_t rows;
  int64_t side;    /* of dimensions that the model leaves open; 0: 16 */
  int64_t classes; /* of labels; 0: as many as the model has */
  int64_t tokens;  /* inputs of whole numbers: 0: zeros and ones; else random from 1 on, and the last are the
                      labels */
  uint64_t seed;
} cli_invention;
/* What the options say of them. */
cli_invention cli_invention_of(const cli_options *options, int64_t rows, uint64_t seed);
bool cli_invent_data(mix_model *model, const cli_invention *invention, cli_part *part);
/* --data synthetic: four batches to train on, one to test. */
bool cli_synthesize_data(const cli_options *options, int command, mix_model *model, cli_data *data);

mix_status cli_compile(const cli_options *options, mix_model *model);

/* verify_onnx.c: runs a file in ONNX on data and compares with the model's predictions; prints the largest
 * difference of each output. `batch`: of the file; 0: any. CLI_OK: all are within their bounds. */
int cli_verify_onnx(mix_model *model, const char *path, const char *data, int opset, int batch);

/* models/named.c: models by name. */
bool cli_is_named_model(const char *name);
/* The guide's, whose data are flat. */
bool cli_is_guide(const cli_options *options);
/* Is it a model of sequences of tokens, that a decoder continues? */
bool cli_is_token_model(const char *name);
/* --length and --classes, or the defaults of the model; 0: it has none. */
int64_t cli_default_length(const cli_options *options);
int64_t cli_class_count(const cli_options *options);
/* Checks the sizes among the options; false after a message. */
bool cli_named_model_fits(const cli_options *options, const char *command);
/* Builds the model under the global policy and loads --init-weights; `width`: of the guide's inputs, 0: of
 * images of --image-size. NULL with the error recorded. */
mix_model *cli_build_named_model(const cli_options *options, int64_t width);

/* float32_layers.c */
/* "a,b,c", of the option. False if a name is empty, or with the error recorded. */
typedef enum cli_layer_list { CLI_FLOAT32_LAYERS, CLI_SIMULATE_EXCEPT, CLI_REMAT_LAYERS } cli_layer_list;
bool cli_parse_layers(const char *text, cli_layer_list list, cli_options *options);
/* The model with those layers in float32, not compiled. NULL with the error recorded. */
mix_model *cli_keep_float32(const cli_options *options, mix_model *model);

/* lora.c */
/* Does the command line add LoRA to a model? */
static inline bool cli_adds_lora(const cli_options *options) {
  return options->lora_rank || options->load_lora;
}
bool cli_lora_options_agree(const char *command, const cli_options *options);
/* Loads --init-weights by --weight-map. */
mix_status cli_load_weights(const cli_options *options, mix_model *model);
/* The model with what --lora-rank, --init-weights and --load-lora say. NULL with the error recorded. */
mix_model *cli_begin_weights(const cli_options *options, mix_model *model);
/* Before a model with LoRA trains: prints what trains, and the bytes. False with the error recorded. */
bool cli_describe_lora(const cli_options *options, mix_model *model, const cli_part *part);

/* policy_map.c */
/* A scoped map from the file; NULL with the error recorded. */
mix_policy *cli_read_policy_map(const char *path);
/* Does --policy-map go with --policy and --semantics? Chooses its generation; false after a message. */
bool cli_take_policy_map(const char *command, cli_options *options);

/* compile_options.c */
/* Does an option say how losses are scaled, instead of compile? */
bool cli_scales(const cli_options *options);
/* Gives the optimizer the state of --optimizer-state. False with the error recorded. */
bool cli_keep_state(const cli_options *options, mix_optimizer *optimizer);
/* The optimizer `base` with --loss-scale or --graph-rewrite. */
mix_optimizer *cli_scaled(const cli_options *options, const mix_model *model, mix_optimizer *base);
/* Compiles; an optimizer that an option scales, or does not, is left as it is. */
mix_status cli_compile_scaled(const cli_options *options, mix_model *model,
                              const mix_compile_options *compile);
/* The settings that the model has, with an optimizer without state, which would lack new weights. */
mix_status cli_compile_again(mix_model *model);
/* Splits --metrics into names; cuts `text`, which the names point into. False if a name is empty or there
 * are too many. */
bool cli_name_metrics(char *text, mix_compile_options *compile);

/* model_file.c: models that Keras saved. */
bool cli_is_model_file(const cli_options *options);
typedef enum cli_compilation { CLI_NOT_COMPILED, CLI_OPTIMIZER_ALONE, CLI_COMPILED } cli_compilation;
/* Loads the model of the file, and --init-weights. `options` gets what the file chooses: generation and
 * policy. What --loss, --optimizer and --metrics stand for is not read. NULL with the error recorded. */
mix_model *cli_load_model(cli_options *options, cli_compilation compilation);
/* remat.c: builds or loads the model of --model, with layers as --remat says; `width` as above. NULL with the
 * error recorded. */
mix_model *cli_make_model(cli_options *options, cli_compilation compilation, int64_t width);
/* Reads --remat's value. False if it is none, or with the error recorded. */
bool cli_parse_remat(const char *text, cli_options *options);
/* The same, compiled as the options say. */
mix_model *cli_compiled_model(cli_options *options, int64_t width);
/* What --loss, --optimizer, --metrics, --loss-scale, ... say instead of the file. */
mix_status cli_compile_file(const cli_options *options, mix_model *model);
/* Validates names that only the library knows: of --optimizer, --loss and --metrics. CLI_OK, or the exit code
 * after a message. */
int cli_check_names(const cli_options *options);

/* save.c: what --save writes, by the name's end. */
bool cli_is_saved_name(const char *path);
/* Do --max-shard-size (0: not given) and the name belong together? False after a message. */
bool cli_shards_agree(const char *command, const char *path, double max_shard_size);
mix_status cli_save(mix_model *model, const char *path, double max_shard_size);

/* --epochs, or as many epochs as --steps needs. */
int64_t cli_epoch_count(const cli_options *options, int64_t rows);
/* What a command's fit on those data has in common with others, --class-weight included. It is silent. */
mix_fit_options cli_fit_options(const cli_options *options, const mix_model *model, const cli_part *part);

/* Checks that --checkpoint can be used with or without --resume. CLI_OK, or the exit code after a message. */
int cli_check_checkpoint(const cli_options *options);
/* Checks before the work that an option's file can be written. CLI_OK, or the exit code after a message. */
int cli_check_output(const char *command, const char *option, const char *path);

/* Why that name, as in cli_is_saved_name, cannot be written; NULL: it can. */
const char *cli_unwritable_reason(const char *path);

/* Checks before the work that --save, where it is a folder, can hold the model. CLI_OK, or the exit code. */
int cli_check_folder(const char *command, const char *path, const mix_model *model);

/* The results of a training run for the report: columns of history by name. */
typedef struct cli_history {
  int count; /* columns */
  struct cli_column {
    char *name;
    double *values; /* one per epoch; NaN if none was added */
    int64_t epochs;
  } columns[4 * MIX_MODEL_MAX];
  int64_t epochs, steps;
  double start_seconds, train_seconds;
} cli_history;
/* False if out of memory or out of columns. */
bool cli_history_add(cli_history *history, int64_t epoch, const char *name, double value);
void cli_history_free(cli_history *history);

/* trace.c: --trace. CLI_OK, or the exit code after a message; the end gives `code` if that is another one. */
int cli_trace_begin(const cli_options *options);
int cli_trace_end(const cli_options *options, int code);

/* The step log (--step-log). */
typedef struct cli_step_log {
  FILE *file;
  const char *path;
  bool failed;
  bool resumes; /* the file may already have steps; those before the first one written are kept */
  bool fresh;   /* nothing was written yet: the old contents are still there */
} cli_step_log;
bool cli_step_log_open(cli_step_log *log, const char *path, bool resumes);
void cli_step_log_write(cli_step_log *log, const mix_step_record *record);
bool cli_step_log_close(cli_step_log *log);

/* Seconds since cli_begin, which main calls first. */
void cli_begin(void);
double cli_seconds(void);
/* The shortest decimal that reads back as the same double, as Python prints it: "0.8579999804496765", "1.0",
 * "nan". */
const char *cli_number_text(double value, char *text, size_t size);
/* Prints the results to standard output. `history` NULL: nothing was trained; `test` NULL: nothing was
 * tested. */
int cli_report(const cli_options *options, mix_model *model, const cli_history *history,
               const mix_logs *test);

bool cli_train_custom(const cli_options *options, mix_model *model, const cli_data *data,
                      cli_history *history, cli_step_log *log);

/* A command with its arguments. Returns the exit status. */
typedef int cli_command(int argc, char **argv);
cli_command cli_train, cli_evaluate, cli_predict, cli_compile_for_target, cli_summary, cli_convert,
    cli_quantize, cli_devices, cli_version, cli_bench, cli_numerics, cli_tune_precision, cli_amp, cli_graph,
    cli_new;

/* amp_policy.c: does a layer compute in 16 bits? Prints each layer's policy, dtypes and casts; false with the
 * error recorded. */
bool cli_is_mixed(mix_model *model);
bool cli_print_policies(mix_model *model);

/* draw.c: pictures of graphs. cli_picture_path checks for a name in .dot, .svg or .png; cli_draw writes
 * graphviz text of so many nodes in that format; too many for dot are a ValueError. False with the error
 * recorded. */
bool cli_picture_path(const char *path);
bool cli_draw(const char *command, const char *path, const char *text, int nodes);

/* draw_model.c: draws the model in the format of the name's end. False with the error recorded. */
bool cli_draw_model(const char *path, mix_model *model);

/* text_file.c: all of a file, which may be a pipe, or "-", standard input; ended by a zero, and zeros in it
 * become \1, which is no text either and which the readers report. mix_free it. NULL with the error
 * recorded. */
char *cli_read_text(const char *path, size_t *size);
