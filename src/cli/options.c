/* The command line's options: parsing, help and error messages. */
#include "cli/cli.h"

#include "base/did_you_mean.h"
#include "base/number.h"
#include "base/text.h"
#include "nn/policy/loss_scale.h"

#include <ctype.h>
#include <getopt.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

typedef enum kind {
  TEXT,
  PATH,
  CHOICE,
  DEVICE, /* a choice, or xla: with a path */
  MODEL,
  COUNT,
  LEVEL,
  SEED,
  FIRST_SEED, /* 0 is the default of precision tuning */
  THREADS,
  FREQUENCY,
  FRACTION,
  FLAG,
  RESUME,
  SCALE,
  DATA,
  CLASS_WEIGHTS,
  CALLBACK,
  LAYERS
} kind;

typedef struct row {
  const char *name;
  kind kind;
  size_t field;
  int commands;
  const char *argument; /* as shown by --help; for CHOICE the choices, separated by | */
  const char *help;
  const char *initial; /* the default of a text; CHOSEN_BY_FILE: not beside a model from a file */
  enum { ALWAYS, CHOSEN_BY_FILE } when;
} row;

enum { MAX_SIDE = 4096, MAX_CLASSES = 1 << 20 };

#define FIELD(name) offsetof(cli_options, name)
#define RUNS (CLI_TRAIN | CLI_EVALUATE | CLI_PREDICT | CLI_NUMERICS | CLI_TUNE)
#define TRAINS (CLI_TRAIN | CLI_NUMERICS | CLI_TUNE)
static const row rows[] = {
    {"model", MODEL, FIELD(model), RUNS | CLI_SUMMARY | CLI_BENCH,
     "guide|resnet50|resnet56|mobilenet_v2|transformer|FILE.keras|FILE.h5",
     "the model of the Keras guide (two hidden Dense layers and a float32 softmax); ResNet-50 v1.5 (stride "
     "in the 3x3 convolution, no biases there: 25,557,032 trainable parameters), ResNet-56 for CIFAR, "
     "MobileNetV2; the Transformer of the official models (encoder and decoder; 61,362,176 parameters); or a "
     "model that Keras saved, with its loss, optimizer, metrics, policies and generation",
     "guide"},
    {"data", DATA, FIELD(data), RUNS, "mnist|digits|cifar10|synthetic|FILE.npz",
     "MNIST, the built-in digits, CIFAR-10, random numbers of --seed in the shapes that the model takes, or "
     "arrays x_train, y_train (x_test, y_test); for a model from a file, as they are: x or x_0, x_1, ..., y "
     "or y_0, ..., sample_weight, each also with _train or _test behind (default mnist; for a model by name "
     "synthetic)"},
    {"image-size", COUNT, FIELD(image_size), RUNS | CLI_SUMMARY | CLI_BENCH, "N",
     "sides of the images of a model by name (default 224; resnet56 and with --data cifar10 32); else, with "
     "--data synthetic, where the model leaves them open (default 28 for the guide's model, else 16)"},
    {"classes", COUNT, FIELD(classes), RUNS | CLI_SUMMARY | CLI_BENCH, "N",
     "classes of a model by name (default 1000; resnet56 and with --data cifar10 10), tokens of the "
     "Transformer (default 33708; 0 fills up sequences) and classes of the guide's model (default 10); of a "
     "model from a file, the labels of --data synthetic (default: all that it has)"},
    {"policy", CHOICE, FIELD(policy), CLI_TUNE, "float16|bfloat16|mixed_float16|mixed_bfloat16",
     "the policy to tune (default mixed_float16)", "mixed_float16", CHOSEN_BY_FILE},
    {"policy", CHOICE, FIELD(policy), (RUNS & ~CLI_TUNE) | CLI_SUMMARY | CLI_BENCH,
     "float32|float64|float16|bfloat16|mixed_float16|mixed_bfloat16",
     "default float32; for a model from a file: of the layers that it has in float32", "float32",
     CHOSEN_BY_FILE},
    {"dtype", CHOICE, FIELD(dtype), RUNS | CLI_SUMMARY | CLI_BENCH, "fp32|fp16|bf16",
     "short for --policy float32, mixed_float16 and mixed_bfloat16"},
    {"float32-layers", LAYERS, FIELD(float32_layers), (RUNS & ~CLI_TUNE) | CLI_SUMMARY, "A,B,...",
     "layers that compute in float32 although --policy computes in 16 bits; `mixtape tune-precision` finds "
     "them"},
    {"units", COUNT, FIELD(units), RUNS | CLI_SUMMARY | CLI_BENCH, "N",
     "units of the guide's hidden layers (default 4096 with a GPU, else 64), or of the Transformer's layers "
     "(default 512)"},
    {"layers", COUNT, FIELD(layers), RUNS | CLI_SUMMARY | CLI_BENCH, "N",
     "layers of the Transformer's encoder, and of its decoder (default 6)"},
    {"heads", COUNT, FIELD(heads), RUNS | CLI_SUMMARY | CLI_BENCH, "N",
     "heads of the Transformer's attention, which divide its units (default 8)"},
    {"filter-size", COUNT, FIELD(filter_size), RUNS | CLI_SUMMARY | CLI_BENCH, "N",
     "hidden units of the Transformer's feed-forward networks (default 4 times its units)"},
    {"length", COUNT, FIELD(length), RUNS | CLI_BENCH, "N",
     "tokens of a sequence of --data synthetic for the Transformer (default 32)"},
    {"batch-size", COUNT, FIELD(batch_size), RUNS | CLI_BENCH, "N",
     "examples per batch (default 32; with bench --advise 128)"},
    {"epochs", COUNT, FIELD(epochs), CLI_TRAIN | CLI_TUNE, "N", "passes over the training data (default 1)"},
    {"steps", COUNT, FIELD(steps), CLI_TRAIN | CLI_TUNE, "N",
     "stop training after N steps, regardless of --epochs"},
    {"steps", COUNT, FIELD(steps), CLI_NUMERICS, "N", "training steps (default 50)"},
    {"every", COUNT, FIELD(every), CLI_NUMERICS, "N",
     "watch every Nth step (default 1), and every step after a skipped one"},
    {"every", COUNT, FIELD(every), CLI_TUNE, "N",
     "the numerics report, which names suspects, watches every Nth step (default 25)"},
    {"stall", COUNT, FIELD(stall), CLI_NUMERICS, "N", "stop after N skipped steps in a row (default 20)"},
    {"validation-split", FRACTION, FIELD(validation_split), CLI_TRAIN, "F",
     "fraction at the end of the training data to validate on"},
    {"validation-split", FRACTION, FIELD(validation_split), CLI_TUNE, "F",
     "fraction at the end of the training data whose loss is compared (default: the test data, or 0.2 where "
     "there are none)"},
    {"no-shuffle", FLAG, FIELD(no_shuffle), TRAINS, NULL, "keep the order of the examples"},
    {"seed", SEED, FIELD(seed), RUNS & ~CLI_TUNE, "N",
     "seed of initial weights, shuffling and random layers (default 0)"},
    {"seed", FIRST_SEED, FIELD(seed), CLI_TUNE, "N", "the first seed; the others follow it (default 1)"},
    {"seeds", COUNT, FIELD(seeds), CLI_TUNE, "N",
     "float32 runs that give the mean loss and its deviation (default 3, at least 3)"},
    {"confirmations", COUNT, FIELD(confirmations), CLI_TUNE, "N",
     "new seeds on which the set that was found must hold (default 2)"},
    {"max-trials", COUNT, FIELD(max_trials), CLI_TUNE, "N",
     "most runs under --policy, confirmations included (default 100)"},
    {"class-weight", CLASS_WEIGHTS, FIELD(class_weight), TRAINS, "0=3,7=0.25",
     "weights of the classes in the loss"},
    {"callback", CALLBACK, FIELD(callbacks), CLI_TRAIN, "NAME[:key=value,...]",
     "early_stopping, reduce_lr_on_plateau, model_checkpoint, csv_logger, tensorboard, "
     "backup_and_restore, terminate_on_nan or numerics_report; may be repeated"},
    {"callback", CALLBACK, FIELD(callbacks), CLI_TUNE, "NAME[:key=value,...]",
     "early_stopping, reduce_lr_on_plateau, model_checkpoint, csv_logger, tensorboard, "
     "backup_and_restore or terminate_on_nan; may be repeated"},
    {"tensorboard", TEXT, FIELD(tensorboard), CLI_TRAIN, "DIR",
     "write TensorBoard event files: loss, metrics, learning rate, loss scale, skipped steps, weights"},
    {"optimizer", TEXT, FIELD(optimizer), TRAINS, "NAME[:key=value,...]",
     "a Keras optimizer and its arguments, in lower case (default rmsprop)", "rmsprop", CHOSEN_BY_FILE},
    {"loss", TEXT, FIELD(loss), TRAINS | CLI_EVALUATE, "NAME",
     "a Keras loss (default sparse_categorical_crossentropy)", "sparse_categorical_crossentropy",
     CHOSEN_BY_FILE},
    {"metrics", TEXT, FIELD(metrics), CLI_TRAIN | CLI_EVALUATE, "A,B[:key=value,...]",
     "Keras metrics: accuracy (default), top_k_categorical_accuracy, auc, mse, ...; arguments as in "
     "mean_io_u:num_classes=10,sparse_y_pred=false, lists as in thresholds=0.3:0.7",
     "accuracy", CHOSEN_BY_FILE},
    {"loss-scale", SCALE, FIELD(loss_scale), TRAINS, "auto|none|NUMBER|dynamic[:INITIAL[:GROWTH_STEPS]]",
     "loss scaling (default auto)"},
    {"semantics", CHOICE, FIELD(semantics), RUNS | CLI_SUMMARY, "tf_keras|keras3|experimental",
     "follow this generation of Keras (default tf_keras)", "tf_keras", CHOSEN_BY_FILE},
    {"accumulate", CHOICE, FIELD(accumulate), RUNS | CLI_SUMMARY | CLI_BENCH, "auto|exact|blocked",
     "how products of 16-bit numbers are summed"},
    {"memory", CHOICE, FIELD(memory), RUNS | CLI_BENCH, "auto|fast|least",
     "whether 16-bit copies of weights and stored gradients may take memory where they save time (default "
     "auto: up to 4 MiB, and where the processor multiplies 16-bit numbers); the numbers are the same"},
    {"jit-compile", FLAG, FIELD(jit_compile), CLI_TRAIN | CLI_TUNE, NULL,
     "keep fused 16-bit values in float32 (docs/NUMERICS.md): faster, with different rounding"},
    {"graph-rewrite", CHOICE, FIELD(graph_rewrite), TRAINS & ~CLI_TUNE, "float16|bfloat16",
     "rewrite a float32 model to 16 bits instead of using a policy"},
    {"loop", CHOICE, FIELD(loop), CLI_TRAIN, "fit|custom",
     "train with fit, or with a custom loop and a gradient tape (default fit)", "fit"},
    {"device", DEVICE, FIELD(device), RUNS | CLI_SUMMARY | CLI_BENCH, "auto|cpu|cuda|ref|xla|xla:PLUGIN.so",
     "default auto; xla: programs compiled by XLA, run by the PJRT plug-in of that path, or of "
     "MIXTAPE_PJRT_PLUGIN"},
    {"distribute", CHOICE, FIELD(distribute), CLI_TRAIN, "none|mpi",
     "mpi: train in all processes that mpirun or srun started, each on its share of every batch; "
     "--batch-size counts all rows, rank 0 prints and saves (default none)",
     "none"},
    {"threads", THREADS, FIELD(threads), RUNS | CLI_BENCH, "N",
     "threads (default: the cores this process may use)"},
    {"verbose", LEVEL, FIELD(verbose), CLI_TRAIN | CLI_EVALUATE, "0|1|2",
     "0: silent, 1: progress bar, 2: one line per epoch"},
    {"init-weights", PATH, FIELD(init_weights), RUNS, "FILE", "start from these weights: .npz, or of Keras"},
    {"save", PATH, FIELD(save), CLI_TRAIN, "FILE.keras|FILE.h5|FILE.weights.h5|FILE.npz",
     "write the model after training (.keras, .h5), or its weights"},
    {"save", PATH, FIELD(save), CLI_TUNE, "FILE.keras|FILE.h5",
     "write the model, not trained, with the layers that were found in float32"},
    {"checkpoint", TEXT, FIELD(checkpoint), CLI_TRAIN, "DIR",
     "save the training state in DIR after each epoch and when --steps ends training; keeps the last two"},
    {"checkpoint-freq", FREQUENCY, FIELD(checkpoint_freq), CLI_TRAIN, "epoch|N",
     "save the training state after each epoch (default) or every N steps"},
    {"resume", RESUME, FIELD(resume), CLI_TRAIN, "[=force]",
     "continue bit for bit from the newest checkpoint in DIR, or start if there is none; without --resume a "
     "DIR with checkpoints is an error. force: also from the checkpoint of another run, which begins its "
     "epoch anew"},
    {"step-log", TEXT, FIELD(step_log), CLI_TRAIN, "FILE.jsonl", "write one line of JSON per step"},
    {"trace", TEXT, FIELD(trace), CLI_TRAIN | CLI_EVALUATE | CLI_PREDICT | CLI_BENCH, "FILE.json",
     "write when each kernel of the first 10 steps ran, and where, for https://ui.perfetto.dev or "
     "chrome://tracing"},
    {"output", PATH, FIELD(output), CLI_PREDICT, "FILE.npz|FILE.npy",
     "write the outputs: y, or y_0, y_1, ...; an .npy has the only one (default: print the classes to "
     "standard output)"},
    {"output", PATH, FIELD(output), CLI_SUMMARY, "FILE.dot|FILE.svg|FILE.png",
     "draw the model as a graph of its layers instead of printing the table"},
    {"only", CHOICE, FIELD(only), CLI_BENCH, "steps|layers|figures",
     "one table: steps of each policy, layers (and image models), or figures beside their goals"},
    {"advise", FLAG, FIELD(advise), CLI_BENCH, NULL,
     "measure nothing: say which layers gain from --policy on this machine, and why"},
    {"quick", FLAG, FIELD(quick), CLI_BENCH, NULL, "fewer rounds and smaller models"},
    {"format", CHOICE, FIELD(format), CLI_NUMERICS, "table|json",
     "format of the report on standard output (default table)"},
    {"all", FLAG, FIELD(all), CLI_NUMERICS, NULL, "show all intermediate values in the table"},
    {"png", PATH, FIELD(png), CLI_NUMERICS, "FILE.png",
     "draw the report: a strip of magnitudes for each tensor"},
    {"html", PATH, FIELD(html), CLI_NUMERICS, "FILE.html",
     "write the report as a page with strips, curves of loss and loss scale, and the advice"},
    {"json", FLAG, FIELD(json), CLI_TRAIN | CLI_EVALUATE | CLI_BENCH | CLI_NUMERICS | CLI_TUNE, NULL,
     "print one JSON object to standard output"},
};
/* getopt's code of row i is FIRST + i, above every character, so that `optopt` distinguishes them. */
enum { ROWS = sizeof rows / sizeof *rows, FIRST = 1000 };

/* Prints an option with its text next to it, or below it if the option is long. Lines end within WIDTH
 * columns. */
static void print_option(const char *option, const char *text) {
  enum { COLUMN = 34, WIDTH = 110 };
  int used = printf("  %s", option);
  if (used >= COLUMN) {
    putchar('\n');
    used = 0;
  }
  for (bool first = true; *text; first = false) {
    size_t length = strlen(text), max = WIDTH - COLUMN;
    if (length > max) {
      for (length = max; length > 0 && text[length] != ' ';) length--;
      if (!length) length = max;
    }
    printf("%*s%.*s\n", first ? COLUMN - used : COLUMN, "", (int)length, text);
    text += length + (text[length] == ' ');
  }
}

static void print_help(const char *command, int commands) {
  printf("usage: mixtape %s [OPTION...]\n\n", command);
  for (int i = 0; i < ROWS; i++) {
    if (!(rows[i].commands & commands)) continue;
    char option[128];
    snprintf(option, sizeof option, "--%s%s%s", rows[i].name,
             rows[i].argument && rows[i].kind != RESUME ? " " : "", rows[i].argument ? rows[i].argument : "");
    print_option(option, rows[i].help);
  }
  print_option("-h, --help", "this text");
}

/* Reports what getopt rejected: an option without its argument, with an unexpected one, ambiguous or
 * unknown. */
static int reject_option(const char *command, int commands, int code, const char *word) {
  char letter[] = {'-', (char)optopt, 0};
  /* One of several letters: word is the whole argument, or the one before. */
  if (optopt > 0 && optopt < FIRST) word = letter;
  const char *name = word + strspn(word, "-");
  mix_did_you_mean suggestion = {.word = name};
  int begins = 0;
  bool suggested = false;
  for (int i = 0; i < ROWS; i++) {
    if (!(rows[i].commands & commands)) continue;
    begins += *name && !strncmp(rows[i].name, name, strlen(name));
    mix_did_you_mean_try(&suggestion, rows[i].name);
  }
  if (code == ':')
    fprintf(stderr, "mixtape %s: an argument is missing for '%s'", command, word);
  else if (optopt >= FIRST)
    fprintf(stderr, "mixtape %s: '%s': --%s takes no argument", command, word,
            optopt == FIRST + ROWS ? "help" : rows[optopt - FIRST].name);
  else if (word != letter && begins > 1) {
    fprintf(stderr, "mixtape %s: '%s' may mean", command, word);
    for (int i = 0; i < ROWS; i++)
      if (rows[i].commands & commands && !strncmp(rows[i].name, name, strlen(name)))
        fprintf(stderr, " --%s", rows[i].name);
  } else {
    fprintf(stderr, "mixtape %s: unknown option '%s'", command, word);
    suggested = word != letter && suggestion.found;
    if (suggested) fprintf(stderr, "; did you mean '--%s'?", suggestion.found);
  }
  fprintf(stderr, "%s `mixtape %s --help` lists the options\n", suggested ? "" : ";", command);
  return CLI_USAGE;
}

static bool bad_value(const char *command, const row *row, const char *value, const char *expected) {
  fprintf(stderr, "mixtape %s: --%s: '%s' given; expected %s\n", command, row->name, value, expected);
  return false;
}

static bool parse_number(const char *text, double *number) {
  char *end;
  *number = mix_number_read(text, &end);
  return *text && !*end && isfinite(*number);
}

/* auto, none, NUMBER, dynamic, dynamic:INITIAL, dynamic:INITIAL:GROWTH_STEPS */
static bool parse_scale(const char *text, cli_loss_scale *scale) {
  *scale = (cli_loss_scale){.kind = CLI_SCALE_AUTO};
  if (!strcmp(text, "auto")) return true;
  if (!strcmp(text, "none")) return scale->kind = CLI_SCALE_NONE, true;
  if (strncmp(text, "dynamic", 7)) {
    scale->kind = CLI_SCALE_FIXED;
    return parse_number(text, &scale->scale) && scale->scale > 0;
  }
  scale->kind = CLI_SCALE_DYNAMIC;
  if (!text[7]) return true;
  if (text[7] != ':') return false;
  char initial[64];
  const char *growth = strchr(text + 8, ':');
  size_t length = growth ? (size_t)(growth - text - 8) : strlen(text + 8);
  if (length >= sizeof initial) return false;
  snprintf(initial, sizeof initial, "%.*s", (int)length, text + 8);
  return parse_number(initial, &scale->scale) && scale->scale > 0 &&
         (!growth || (mix_integer_read(growth + 1, &scale->growth_steps) && scale->growth_steps > 0));
}

/* "0=3,7=0.25" */
static bool parse_class_weights(const char *text, cli_options *options) {
  options->class_weight = text;
  options->class_weight_count = 0;
  for (;;) {
    int i = options->class_weight_count;
    size_t length = strcspn(text, ",");
    char item[64], *equals;
    if (i == MIX_CLASS_MAX || length >= sizeof item) return false;
    snprintf(item, sizeof item, "%.*s", (int)length, text);
    if (!(equals = strchr(item, '='))) return false;
    *equals = 0;
    if (!mix_integer_read(item, &options->class_labels[i]) ||
        !parse_number(equals + 1, &options->class_weights[i]))
      return false;
    if (options->class_labels[i] < 0 || options->class_weights[i] < 0) return false;
    for (int before = 0; before < i; before++)
      if (options->class_labels[before] == options->class_labels[i]) return false;
    options->class_weight_count++;
    if (!text[length]) return true;
    text += length + 1;
  }
}

/* As mix_callback_from_text reads names: without case and underscores. */
static bool is_numerics_report(const char *text) {
  const char *name = "numericsreport";
  for (; *text && *text != ':'; text++)
    if (*text != '_' && tolower((unsigned char)*text) != *name++) return false;
  return !*name;
}

/* Validates the text at once, so that an error is reported as one of the option. */
static bool parse_callback(const char *command, const row *row, const char *text, cli_options *options) {
  if (options->callback_count == CLI_CALLBACK_MAX)
    return bad_value(command, row, text, "at most 16 callbacks");
  if (row->commands == CLI_TUNE && is_numerics_report(text))
    return bad_value(
        command, row, text,
        "another callback, for each run has the search's own report; `mixtape numerics` writes one");
  bool good = false;
  MIX_SCOPE { good = mix_callback_from_text(text) != NULL; }
  if (!good || mix_error() != MIX_OK) {
    fprintf(stderr, "mixtape %s: --%s: %s: %s\n", command, row->name, mix_status_name(mix_error()),
            mix_error_message());
    return false;
  }
  options->callbacks[options->callback_count++] = text;
  return true;
}

static bool ends_in(const char *value, const char *ending) {
  size_t length = strlen(value), end = strlen(ending);
  return length > end && !strcmp(value + length - end, ending);
}

static bool is_keras(const char *value) { return ends_in(value, ".keras") || ends_in(value, ".h5"); }

/* Is it the name of a file that the option takes? */
static bool is_file(const row *row, const char *value) {
  if (row->field == FIELD(init_weights)) return *value;
  if (row->field == FIELD(save))
    return row->commands == CLI_TUNE ? is_keras(value) && !ends_in(value, ".weights.h5")
                                     : cli_is_saved_name(value);
  if (row->field == FIELD(png)) return ends_in(value, ".png");
  if (row->field == FIELD(html)) return ends_in(value, ".html");
  return row->commands == CLI_PREDICT ? ends_in(value, ".npz") || ends_in(value, ".npy")
                                      : cli_picture_path(value);
}

/* "FILE.npz|FILE.npy": "a name that ends in .npz or .npy" */
static bool parse_file(const char *command, const row *row, const char *value) {
  if (is_file(row, value)) return true;
  char expected[128] = "a name that ends in ";
  size_t used = strlen(expected);
  for (const char *end = strchr(row->argument, '.'); end; end = strchr(end + strcspn(end, "|"), '.'))
    used += (size_t)snprintf(expected + used, sizeof expected - used, "%s%.*s",
                             expected[used - 1] == ' ' ? "" : " or ", (int)strcspn(end, "|"), end);
  return bad_value(command, row, value, strchr(row->argument, '.') ? expected : row->argument);
}

static const struct {
  int64_t low, high;
  const char *expected; /* NULL: as shown by --help */
} ranges[] = {[COUNT] = {1, INT64_MAX, "a positive whole number"},
              [LEVEL] = {0, 2, NULL},
              [SEED] = {0, INT64_MAX, "a whole number from 0 on"},
              [FIRST_SEED] = {1, INT64_MAX, "a whole number from 1 on"},
              [THREADS] = {1, 1024, "a whole number from 1 to 1024"},
              [FREQUENCY] = {1, INT64_MAX, "epoch or a positive whole number of steps"}};

static bool set_integer(const char *command, const row *row, const char *value, int64_t *field) {
  if (row->kind == FREQUENCY && !strcmp(value, "epoch")) return *field = 0, true;
  if (mix_integer_read(value, field) && *field >= ranges[row->kind].low && *field <= ranges[row->kind].high)
    return true;
  const char *expected = ranges[row->kind].expected;
  return bad_value(command, row, value, expected ? expected : row->argument);
}

static bool set_option(const char *command, const row *row, const char *value, cli_options *options) {
  void *field = (char *)options + row->field;
  switch (row->kind) {
  case TEXT: *(const char **)field = value; return *value || bad_value(command, row, value, row->argument);
  case PATH: *(const char **)field = value; return parse_file(command, row, value);
  case MODEL:
    *(const char **)field = value;
    return !strcmp(value, "guide") || cli_is_named_model(value) || is_keras(value) ||
           bad_value(command, row, value, row->argument);
  case CHOICE:
    *(const char **)field = value;
    return mix_is_choice(row->argument, value) || bad_value(command, row, value, row->argument);
  case DEVICE:
    *(const char **)field = value;
    return mix_is_choice("auto|cpu|cuda|ref|xla", value) || (!strncmp(value, "xla:", 4) && value[4]) ||
           bad_value(command, row, value, row->argument);
  case SEED:
  case FIRST_SEED: options->has_seed = true; /* fall through */
  case COUNT:
  case LEVEL:
  case THREADS:
  case FREQUENCY: return set_integer(command, row, value, field);
  case FRACTION:
    return (parse_number(value, (double *)field) && *(double *)field >= 0 && *(double *)field < 1) ||
           bad_value(command, row, value, "a number in [0, 1)");
  case FLAG: *(bool *)field = true; return true;
  case RESUME:
    options->resume = true;
    options->force = !strcmp(value, "force");
    return !*value || options->force || bad_value(command, row, value, "--resume or --resume=force");
  case DATA:
    *(const char **)field = value;
    return cli_is_image_set(value) || !strcmp(value, "synthetic") || ends_in(value, ".npz") ||
           bad_value(command, row, value, row->argument);
  case CLASS_WEIGHTS:
    return parse_class_weights(value, options) ||
           bad_value(command, row, value, "LABEL=WEIGHT,LABEL=WEIGHT,..., each label once (at most 64)");
  case LAYERS:
    return cli_parse_float32_layers(value, options) ||
           bad_value(command, row, value, "names of layers with commas between");
  case CALLBACK: return parse_callback(command, row, value, options);
  case SCALE: return parse_scale(value, field) || bad_value(command, row, value, row->argument);
  }
  return false;
}

/* A loss scale is float32, except Keras 3's fixed one of a float64 loss. */
static bool scale_fits(const char *command, const cli_options *options) {
  const cli_loss_scale *scale = &options->loss_scale;
  const bool wide = scale->kind == CLI_SCALE_FIXED && options->semantics &&
                    !strcmp(options->semantics, "keras3") && options->policy &&
                    !strcmp(options->policy, "float64");
  if (scale->scale == 0 || mix_loss_scale_check(scale->scale, wide ? MIX_FLOAT64 : MIX_FLOAT32, "loss-scale"))
    return true;
  fprintf(stderr, "mixtape %s: --%s\n", command, mix_error_message());
  mix_error_clear();
  return false;
}

/* --dtype is short for a policy. */
static bool take_dtype(const char *command, cli_options *options) {
  static const char *const policies[][2] = {
      {"fp32", "float32"}, {"fp16", "mixed_float16"}, {"bf16", "mixed_bfloat16"}};
  if (!options->dtype) return true;
  for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
    if (strcmp(policies[i][0], options->dtype)) continue;
    if (options->policy && strcmp(options->policy, policies[i][1])) {
      fprintf(stderr, "mixtape %s: --dtype %s is short for --policy %s, and --policy is %s; give one\n",
              command, options->dtype, policies[i][1], options->policy);
      return false;
    }
    options->policy = policies[i][1];
  }
  return true;
}

/* Options of the guide's model or of the Transformer beside another. */
static bool belongs(const char *command, const cli_options *options) {
  const bool guide = !strcmp(options->model, "guide"), tokens = cli_is_token_model(options->model);
  const char *of_guide = !strcmp(options->loop, "custom") ? "--loop custom"
                         : options->units && !tokens      ? "--units"
                                                          : NULL;
  const char *of_tokens = options->layers        ? "--layers"
                          : options->heads       ? "--heads"
                          : options->filter_size ? "--filter-size"
                          : options->length      ? "--length"
                                                 : NULL;
  const char *extra = of_guide && !guide ? of_guide : of_tokens && !tokens ? of_tokens : NULL;
  if (extra)
    fprintf(stderr, "mixtape %s: %s belongs to --model %s, and the model is %s\n", command, extra,
            extra == of_guide ? "guide" : "transformer", options->model);
  return !extra;
}

/* Sizes that a model or its data have already. */
static bool sizes_fit(const char *command, const cli_options *options) {
  const bool named = cli_is_named_model(options->model),
             synthetic = options->data && !strcmp(options->data, "synthetic");
  if (named && !cli_named_model_fits(options, command)) return false;
  if (!named && !options->data && (options->image_size || options->classes))
    fprintf(stderr, "mixtape %s: --%s belongs to a model by name, and the model is %s\n", command,
            options->image_size ? "image-size" : "classes", options->model);
  else if (!named && options->image_size && !synthetic)
    fprintf(stderr, "mixtape %s: --image-size belongs to --data synthetic, and the data are %s\n", command,
            options->data);
  else if (options->classes && !synthetic && cli_is_model_file(options))
    fprintf(stderr, "mixtape %s: --classes belongs to --data synthetic, and %s has its own\n", command,
            options->model);
  else if (options->image_size > MAX_SIDE)
    fprintf(stderr, "mixtape %s: --image-size: '%lld' given; expected a side of at most %d\n", command,
            (long long)options->image_size, MAX_SIDE);
  else if (options->classes > MAX_CLASSES)
    fprintf(stderr, "mixtape %s: --classes: '%lld' given; expected at most %d\n", command,
            (long long)options->classes, MAX_CLASSES);
  else
    return true;
  return false;
}

/* Checks options that exclude or require each other. */
static bool consistent(const char *command, const cli_options *options) {
  if (!belongs(command, options) || !sizes_fit(command, options)) return false;
  if (!options->checkpoint && (options->resume || options->checkpoint_freq)) {
    fprintf(stderr, "mixtape %s: %s needs --checkpoint DIR, the folder of the checkpoints\n", command,
            options->resume ? "--resume" : "--checkpoint-freq");
    return false;
  }
  if (!scale_fits(command, options)) return false;
  if (strcmp(options->loop, "custom")) return true;
  const char *extra = options->class_weight                  ? "--class-weight"
                      : options->callback_count              ? "--callback"
                      : options->tensorboard                 ? "--tensorboard"
                      : strcmp(options->metrics, "accuracy") ? "--metrics"
                      : cli_is_distributed(options)          ? "--distribute"
                                                             : NULL;
  if (extra)
    fprintf(stderr,
            "mixtape %s: %s belongs to --loop fit; the custom loop weighs no classes, measures accuracy, "
            "calls no callbacks and runs in one process\n",
            command, extra);
  return !extra;
}

bool cli_is_option(int argc, char **argv, int *i, const char *name, const char **value) {
  const size_t length = strlen(name);
  if (strncmp(argv[*i], name, length) != 0 || (argv[*i][length] && argv[*i][length] != '=')) return false;
  if (argv[*i][length])
    *value = argv[*i] + length + 1;
  else
    *value = *i + 1 < argc ? argv[++*i] : NULL;
  return true;
}

/* Those of the command's own rows come before those of others for the same field. */
static void set_defaults(cli_options *options, int commands, bool file) {
  for (int own = 1; own >= 0; own--)
    for (int i = 0; i < ROWS; i++) {
      const char **field = (const char **)((char *)options + rows[i].field);
      const bool applies = rows[i].initial && (!file || rows[i].when == ALWAYS);
      if (applies && ((rows[i].commands & commands) != 0) == own && !*field) *field = rows[i].initial;
    }
}

int cli_parse(const char *command, int commands, int argc, char **argv, cli_options *options) {
  *options = (cli_options){.verbose = -1};
  struct option list[ROWS + 2];
  int count = 0;
  set_defaults(options, commands, true); /* those of the model's kind follow when it is known */
  for (int i = 0; i < ROWS; i++)
    if (rows[i].commands & commands)
      list[count++] = (struct option){rows[i].name,
                                      rows[i].kind == FLAG     ? no_argument
                                      : rows[i].kind == RESUME ? optional_argument
                                                               : required_argument,
                                      NULL, FIRST + i};
  list[count++] = (struct option){"help", no_argument, NULL, FIRST + ROWS};
  list[count] = (struct option){0};
  opterr = 0;
  optind = 0; /* also forgets the letters that an earlier command line left */
  for (int code; (code = getopt_long(argc, argv, ":h", list, NULL)) != -1;) {
    if (code == FIRST + ROWS || code == 'h') {
      print_help(command, commands);
      return -1;
    }
    if (code == '?' || code == ':') return reject_option(command, commands, code, argv[optind - 1]);
    if (!set_option(command, &rows[code - FIRST], optarg ? optarg : "", options)) {
      const int failure = cli_option_code();
      mix_error_clear();
      return failure;
    }
  }
  if (optind < argc) {
    fprintf(stderr, "mixtape %s: '%s' is no option; `mixtape %s --help` lists them\n", command, argv[optind],
            command);
    return CLI_USAGE;
  }
  if (!take_dtype(command, options)) return CLI_USAGE;
  if (!options->data && commands & RUNS)
    options->data = cli_is_named_model(options->model) ? "synthetic" : "mnist";
  set_defaults(options, commands, cli_is_model_file(options));
  return consistent(command, options) ? CLI_OK : CLI_USAGE;
}
