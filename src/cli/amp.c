/* mixtape amp rewrite and amp explain: the automatic mixed precision rewrite of recorded graphs and of a
 * model's training step. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/format.h"
#include "cli/cli.h"
#include "cli/models/models.h"
#include "cli/amp/graph_json.h"
#include "compile/explain_rewrite.h"
#include "model/model.h"

#include <string.h>

static const char *const usage =
    "usage: mixtape amp rewrite [--set NAME=VALUE]... GRAPH.json...\n"
    "       mixtape amp explain [--json] [--output FILE [--whole-step]] [--set NAME=VALUE]...\n"
    "                           GRAPH.json|GRAPH.txt...\n"
    "       mixtape amp explain FILE.keras|FILE.h5 [TRAIN-OPTION...]\n"
    "       mixtape amp explain --model guide|NAME|FILE.keras|FILE.h5 [--json] [--output FILE]\n"
    "                           [--set NAME=VALUE]... [TRAIN-OPTION...]\n"
    "\n"
    "Applies the automatic mixed precision rewrite of TensorFlow 2.21 to graphs in the recorded format,\n"
    "to the text of a captured function (mix_function_dump, stage captured; --graph-rewrite bfloat16 there\n"
    "too), or to the training step of a model, by name or from a file. The model takes options of\n"
    "`mixtape train`: --units, --optimizer, ..., and --graph-rewrite float16|bfloat16 (default float16).\n"
    "\n"
    "  rewrite   one line of JSON per file: name, status, nodes_added, dtypes, casts, and ops and\n"
    "            attrs_added of renamed ops\n"
    "  explain   a table of every op: its layer and name, its list, dtype before and after, and why;\n"
    "            the inserted casts, the casts that later passes remove, and the bytes saved\n"
    "            of a model under a mixed policy instead a table of its layers: policy, dtypes, casts\n"
    "  --json    explain: one line of JSON per graph instead of the table\n"
    "  --output  explain: a picture of the graph (of several, the largest), coloured by list, with its\n"
    "            casts: FILE.dot; or FILE.svg or FILE.png, which need the program dot of graphviz\n"
    "            The forward pass is drawn, each layer in a frame of its own; dot draws up to 800 nodes,\n"
    "            a .dot has them all\n"
    "  --whole-step  explain: the picture has the backward pass and the optimizer too\n"
    "  --set     sets the environment variable TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_NAME: LEVEL,\n"
    "            ALLOWLIST_ADD, DENYLIST_REMOVE, ...\n"
    "\n"
    "A file's \"env\" overrides these variables.\n";

typedef struct amp_command {
  bool explain, json, model, edited, whole; /* edited: --set was given; whole: --whole-step */
  mix_dtype target;                         /* of graphs as text */
  const char *output;
  char *picture; /* of the largest graph so far; owned */
  int picture_nodes, graph_nodes;
  int graphs;
} amp_command;

/* Keeps the picture of the largest graph. False with the error recorded. */
static bool keep_picture(amp_command *command, const mix_amp_result *result) {
  if (!command->output || result->graph->node_count <= command->graph_nodes) return true;
  int nodes = 0;
  char *picture = mix_amp_picture(result, command->whole, &nodes);
  if (!picture) return false;
  mix_free(command->picture);
  command->picture = picture;
  command->picture_nodes = nodes;
  command->graph_nodes = result->graph->node_count;
  return true;
}

/* What is to be explained must be rewritten, and as --set says: another status of the rewrite, and an edit of
 * an op that there is not, are errors. False with the error recorded. */
static bool is_explained(const amp_command *command, const cli_rewrite_case *item,
                         const mix_amp_result *result) {
  if (!command->explain) return true;
  if (result->status != MIX_AMP_OK)
    return mix_fail_value("%s: %s: %s", item->name, mix_amp_status_name(result->status), result->message);
  if (!command->edited || !*result->unknown) return true;
  return mix_fail_value("%s: --set names the op '%s', which is in no list and in no node of it", item->name,
                        result->unknown);
}

/* Prints one graph to standard output. A graph that cannot be explained has no table, but its status is in
 * the JSON. False with the error recorded. */
static bool show(amp_command *command, const cli_rewrite_case *item, const mix_amp_result *result,
                 bool heading) {
  if (!command->json && !is_explained(command, item, result)) return false;
  char *text = !command->explain ? cli_rewrite_text(item, result)
               : command->json   ? cli_explain_text(item, result)
                                 : mix_amp_report(result);
  bool table = command->explain && !command->json;
  if (text && table && heading) printf("%s%s\n", command->graphs ? "\n" : "", MIX_PRINTABLE(item->name));
  if (text) printf("%s%s", text, table ? "" : "\n");
  command->graphs++;
  bool good = text && is_explained(command, item, result) && keep_picture(command, result);
  mix_free(text);
  return good;
}

enum { MAX_NUMBER = 1 << 30 };

static void observe(void *context, const mix_amp_result *result) {
  amp_command *command = context;
  show(command, &(const cli_rewrite_case){.name = result->graph->label}, result, true);
}

/* Recorded graphs are JSON objects; graphs as text never begin with a brace. */
static bool is_json(const char *text, size_t size) {
  size_t i = 0;
  while (i < size && strchr(" \t\r\n", text[i])) i++;
  return i == size || text[i] == '{';
}

/* The text of a captured function. False with the error recorded. */
static bool show_text(amp_command *command, const char *path, const char *text, size_t size) {
  mix_ir *ir = mix_ir_read(path, text, size, MAX_NUMBER);
  const mix_amp_explaining explaining = {command->target, observe, command};
  const bool good = ir && mix_explain_rewrite(ir, command->target, &explaining, path);
  mix_ir_free(ir);
  return good;
}

/* A recorded graph. Files to explain may hold the text of a captured function instead. */
static bool show_file(amp_command *command, const char *path, bool heading, const mix_amp_options *base) {
  size_t size = 0;
  char *text = cli_read_text(path, &size);
  const bool captured = command->explain && text && !is_json(text, size);
  const bool good = captured && show_text(command, path, text, size);
  cli_rewrite_case *item = text && !captured ? cli_rewrite_read(path, text, size, base) : NULL;
  mix_free(text);
  if (captured) return good;
  mix_amp_result *result = item ? mix_amp_rewrite(item->graph, &item->options) : NULL;
  if (result && command->explain) cli_find_redundant_casts(result);
  return result && show(command, item, result, heading);
}

static int show_files(amp_command *command, int files, char **paths) {
  mix_amp_options base = {0};
  if (!mix_amp_options_from_environment(&base)) return cli_fail();
  int code = CLI_OK;
  for (int i = 0; i < files; i++) {
    bool good = false;
    MIX_SCOPE { good = show_file(command, paths[i], files > 1, &base); }
    if (!good) code = cli_fail();
  }
  return code;
}

static int usage_error(const char *message, const char *detail) {
  fprintf(stderr, "mixtape amp: %s%s; `mixtape amp --help` explains\n", message, detail);
  return CLI_USAGE;
}

/* ---- the step of a model ---- */

/* With images of the built-in digits. */
static mix_model *guide_model(cli_options *options, int64_t batch, cli_part *part) {
  mix_images digits = mix_digits_load(.train = batch, .test = 1, .bytes = true);
  mix_model *model = cli_compiled_model(options, 784);
  *part = (cli_part){mix_reshape(digits.x_train, MIX_SHAPE(batch, 784)), digits.y_train, NULL};
  return model;
}

/* With made-up data. */
static mix_model *other_model(cli_options *options, int64_t batch, cli_part *part) {
  mix_model *model = cli_compiled_model(options, 0);
  const cli_invention invention = cli_invention_of(options, batch, 1);
  return model && cli_invent_data(model, &invention, part) ? model : NULL;
}

/* Whether the policy, of the option or of a file, is one of 16 bits. Errors come with the step. */
static bool is_mixed(cli_options *options) {
  if (options->policy) return strstr(options->policy, "float16") != NULL;
  bool mixed = false;
  cli_options first = *options;
  if (!cli_is_model_file(options)) return false;
  cli_register_transformer_layers();
  MIX_SCOPE {
    mix_model *model = cli_load_model(&first, CLI_NOT_COMPILED);
    mixed = model && cli_is_mixed(model);
  }
  mix_error_clear();
  mix_clear_names();
  return mixed;
}

static int show_policies(const amp_command *command, cli_options *options) {
  if (command->output || command->json || command->edited)
    return usage_error(command->output ? "--output"
                       : command->json ? "--json"
                                       : "--set",
                       " belongs to the rewrite of float32 models; `mixtape summary --output FILE` draws the "
                       "layers of this one, coloured by dtype");
  int code = cli_setup(options);
  if (code != CLI_OK) return code;
  MIX_SCOPE {
    mix_model *model = cli_make_model(options, CLI_NOT_COMPILED, 0);
    if (!model || !cli_print_policies(model)) code = CLI_FAILED;
  }
  return code == CLI_OK ? CLI_OK : cli_fail();
}

/* Trains for one step and shows what is compiled for it. */
static int show_model(amp_command *command, int argc, char **argv) {
  cli_options options;
  int code = cli_parse("amp explain", CLI_TRAIN, argc, argv, &options);
  if (code) return code < 0 ? CLI_OK : code;
  const char *kept = options.save                   ? "--save"
                     : options.step_log             ? "--step-log"
                     : options.checkpoint           ? "--checkpoint"
                     : options.tensorboard          ? "--tensorboard"
                     : options.trace                ? "--trace"
                     : options.callback_count       ? "--callback"
                     : options.resume               ? "--resume"
                     : cli_is_distributed(&options) ? "--distribute"
                                                    : NULL;
  if (kept) return usage_error(kept, " belongs to train: explain runs one step and saves nothing");
  if (!options.graph_rewrite && is_mixed(&options)) return show_policies(command, &options);
  if (!options.graph_rewrite) options.graph_rewrite = "float16";
  int64_t batch = options.batch_size ? options.batch_size : MIX_DEFAULT_BATCH;
  if ((code = cli_setup(&options)) != CLI_OK) return code;
  cli_part part;
  MIX_SCOPE {
    mix_model *model = (cli_is_guide(&options) ? guide_model : other_model)(&options, batch, &part);
    if (model) {
      mix_amp_observe(observe, command);
      mix_model_fit(model, part.x, part.y, .batch_size = batch, .epochs = 1, .verbose = MIX_SILENT);
      mix_amp_observe(NULL, NULL);
    }
  }
  return mix_error() ? cli_fail() : CLI_OK;
}

/* ---- options ---- */

static int set_option(const char *value) {
  const char *equals = value ? strchr(value, '=') : NULL;
  char name[128];
  if (!equals || equals == value ||
      snprintf(name, sizeof name, "%s%.*s", MIX_AMP_ENVIRONMENT, (int)(equals - value), value) >=
          (int)sizeof name) {
    fprintf(stderr, "mixtape amp: --set %s; expected NAME=VALUE, such as ALLOWLIST_ADD=Sin,Cos\n",
            value ? value : "");
    return CLI_USAGE;
  }
  setenv(name, equals + 1, 1);
  return CLI_OK;
}

/* Is the argument an option whose value follows? */
static bool is_awaiting(const char *argument) {
  return argument[0] == '-' && argument[1] && !strchr(argument, '=') && strcmp(argument, "--json") &&
         strcmp(argument, "--whole-step");
}

/* "--model=PATH" for the path of a model that stands alone; NULL: another argument. The text is kept. */
static char *model_option(const char *argument, const char *before) {
  static char option[4096];
  const size_t length = strlen(argument);
  const bool keras = length > 6 && !strcmp(argument + length - 6, ".keras"),
             h5 = length > 3 && !strcmp(argument + length - 3, ".h5");
  if (*argument == '-' || (!keras && !h5) || is_awaiting(before)) return NULL;
  return snprintf(option, sizeof option, "--model=%s", argument) < (int)sizeof option ? option : NULL;
}

int cli_amp(int argc, char **argv) {
  amp_command command = {.target = MIX_FLOAT16};
  bool options_end = false;
  const char *what = NULL;
  int files = 0;
  for (int i = 1; i < argc; i++)
    if (!strcmp(argv[i], "--model") || !strncmp(argv[i], "--model=", 8)) command.model = true;
  for (int i = 2; i < argc && !command.model; i++) {
    char *option = model_option(argv[i], argv[i - 1]);
    if (option) argv[i] = option, command.model = true;
  }
  /* Arguments not consumed here move to the front. */
  for (int i = 1; i < argc; i++) {
    bool option = !options_end && argv[i][0] == '-' && argv[i][1];
    const char *value;
    if (option && (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))) {
      fputs(usage, stdout);
      return CLI_OK;
    }
    if (option && !strcmp(argv[i], "--") && !command.model)
      options_end = true;
    else if (option && !strcmp(argv[i], "--json"))
      command.json = true;
    else if (option && !strcmp(argv[i], "--whole-step"))
      command.whole = true;
    else if (option && cli_is_option(argc, argv, &i, "--output", &value)) {
      if (!value) return usage_error("an argument is missing for --output", "");
      command.output = value;
    } else if (option && cli_is_option(argc, argv, &i, "--set", &value)) {
      int code = set_option(value);
      if (code) return code;
      command.edited = true;
    } else if (option && !command.model && cli_is_option(argc, argv, &i, "--graph-rewrite", &value)) {
      command.target = mix_dtype_from_name(value ? value : "");
      if (!mix_dtype_is_16_bit(command.target))
        return usage_error("--graph-rewrite: expected float16 or bfloat16", "");
    } else if (option && !command.model) {
      fprintf(stderr, "mixtape amp: unknown option '%s'; `mixtape amp --help` lists them\n", argv[i]);
      return CLI_USAGE;
    } else if (!what && !option)
      what = argv[i];
    else
      argv[1 + files++] = argv[i];
  }
  command.explain = what && !strcmp(what, "explain");
  if (!what) return fputs(usage, stderr), CLI_USAGE;
  if (!command.explain && strcmp(what, "rewrite") != 0) {
    fprintf(stderr, "mixtape amp: unknown command '%s'; expected rewrite or explain\n", what);
    return CLI_USAGE;
  }
  if (!command.explain && (command.json || command.output || command.model || command.whole))
    return usage_error(
        "rewrite: its output is JSON; --json, --output, --whole-step and --model belong to explain", "");
  if (command.whole && !command.output) return usage_error("--whole-step", " belongs to --output FILE");
  if (files == 0 && !command.model) return usage_error(what, ": no graph was named");
  if (command.output && !cli_picture_path(command.output))
    return usage_error(command.output, ": a picture's name ends in .dot, .svg or .png");
  int code = command.model ? show_model(&command, files + 1, argv) : show_files(&command, files, argv + 1);
  if (command.picture && !cli_draw("amp explain", command.output, command.picture, command.picture_nodes))
    code = cli_fail();
  mix_free(command.picture);
  return code;
}
