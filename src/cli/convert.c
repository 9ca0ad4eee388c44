/* mixtape convert: a file of a model or of weights in another form. */
#include "cli/cli.h"
#include "base/error.h"
#include "base/number.h"
#include "saving/model_json.h"

#include <math.h>
#include <mixtape/export.h>
#include <mixtape/lora.h>
#include <string.h>

static void usage(FILE *out) {
  fprintf(out,
          "usage: mixtape convert IN OUT [--model FILE] [--loss NAME] [--optimizer NAME]\n"
          "                       [--metrics NAMES] [--no-compile]\n"
          "                       [--semantics tf_keras|keras3] [--policy-map FILE.json]\n"
          "                       [--max-shard-size GB] [--load-lora FILE] [--merge-lora]\n"
          "                       [--weight-map FILE.json|NAME] [--out-weight-map FILE.json|NAME]\n"
          "                       [--opset N] [--weights compute|float32] [--widen]\n"
          "                       [--batch N] [--fold] [--attention products|operator]\n"
          "                       [--verify DATA]\n"
          "\n"
          "Writes what IN holds as OUT, in the form that the end of OUT's name says, as the Keras\n"
          "generation of the file writes it. What IN is, its content says.\n"
          "\n"
          "  .keras       the whole model: structure, weights, compile settings, optimizer state\n"
          "  .h5          the same in the legacy HDF5 form\n"
          "  .weights.h5  the weights, and the optimizer state of a compiled model\n"
          "  .weights.json  the same in shards, an index of them and .weights.h5 files beside it\n"
          "  .npz         the weights alone, in get_weights() order\n"
          "  .safetensors  the weights alone, in their own dtypes\n"
          "  .onnx        what the model predicts, for other runtimes\n"
          "  FOLDER/      a folder of KerasHub, of a model of its classes\n"
          "\n"
          "  --model FILE      the model (.keras or .h5) of IN, where IN has weights alone\n"
          "  --loss NAME       this loss instead of the file's, as one whose code is Python's;\n"
          "                    the weights of the outputs' losses stay\n"
          "  --optimizer NAME  this optimizer instead of the file's\n"
          "  --metrics NAMES   these metrics instead of the file's\n"
          "  --semantics NAME  the generation that OUT is for: keras3 for Keras 3, tf_keras for\n"
          "                    TensorFlow's Keras 2 (default the generation of IN)\n"
          "  --policy-map FILE.json  a policy for each layer by its path, as Keras 3 writes\n"
          "                    a DTypePolicyMap\n"
          "  --max-shard-size GB  values of a shard at most, in units of 2^30 bytes: with .weights.json\n"
          "  --weight-map FILE.json|NAME  of IN in safetensors: which tensor becomes which weight;\n"
          "                    NAME: gpt2, llama, bert, for files of transformers\n"
          "  --out-weight-map FILE.json|NAME  of OUT in safetensors: such a map, of which the tensors\n"
          "                    are written\n"
          "  --load-lora FILE  with what an adapter of mixtape train --save-lora says\n"
          "  --merge-lora      kernels merged with LoRA's a and b, which OUT then has not\n"
          "  --opset N         of OUT in ONNX: the version of its operators, 17 to 23 (default 17, or\n"
          "                    18 for operations on bits, 19 for float8, 22 for bfloat16, and 23\n"
          "                    for --attention operator)\n"
          "  --weights WHAT    of OUT in ONNX: compute, what layers round to 16 bits in these (the\n"
          "                    default), or float32, with casts behind them\n"
          "  --widen           of OUT in ONNX: float16 and bfloat16 become float32\n"
          "  --batch N         of OUT in ONNX: for so many examples at a time (default: any number)\n"
          "  --fold            of OUT in ONNX: BatchNormalization behind a convolution in float32 becomes\n"
          "                    part of its kernel and bias\n"
          "  --attention HOW   of OUT in ONNX: products (the default), or operator, ONNX's Attention\n"
          "  --verify DATA     of OUT in ONNX: runs it on DATA (as mixtape predict takes it) by\n"
          "                    onnxruntime, if its library is found (MIXTAPE_ONNXRUNTIME names it),\n"
          "                    else by mixtape, and fails where an output differs from the model's\n"
          "  --no-compile      without compile settings and optimizer state\n"
          "  -h, --help        this text\n");
}

typedef struct conversion {
  const char *in, *out, *model, *loss, *optimizer, *metrics, *semantics, *policy_map, *shard_size, *load_lora,
      *weight_map, *opset, *weights, *verify, *batch, *attention, *out_weight_map;
  double max_shard_size;
  int opset_number, batch_size;
  bool no_compile, merge_lora, widen, fold;
} conversion;

static int wrong(const char *message, const char *value) {
  fprintf(stderr, "mixtape convert: %s%s; `mixtape convert --help` explains\n", value ? value : "", message);
  return CLI_USAGE;
}

/* An option with a value that stands at `i`; false: there is none. */
static bool take_option(int argc, char **argv, int *i, conversion *p, const char **missing) {
  const struct {
    const char *name, **value;
  } options[] = {{"--model", &p->model},
                 {"--loss", &p->loss},
                 {"--optimizer", &p->optimizer},
                 {"--metrics", &p->metrics},
                 {"--semantics", &p->semantics},
                 {"--policy-map", &p->policy_map},
                 {"--max-shard-size", &p->shard_size},
                 {"--load-lora", &p->load_lora},
                 {"--weight-map", &p->weight_map},
                 {"--opset", &p->opset},
                 {"--weights", &p->weights},
                 {"--verify", &p->verify},
                 {"--batch", &p->batch},
                 {"--attention", &p->attention},
                 {"--out-weight-map", &p->out_weight_map}};
  for (size_t o = 0; o < sizeof options / sizeof *options; o++)
    if (cli_is_option(argc, argv, i, options[o].name, options[o].value)) {
      if (!*options[o].value) *missing = options[o].name;
      return true;
    }
  return false;
}

static bool ends_in(const char *path, const char *end) {
  return strlen(path) > strlen(end) && !strcmp(path + strlen(path) - strlen(end), end);
}

static bool read_shard_size(conversion *p) {
  char *end = NULL;
  if (p->shard_size) p->max_shard_size = mix_number_read(p->shard_size, &end);
  return !p->shard_size || (*p->shard_size && !*end && p->max_shard_size > 0 && isfinite(p->max_shard_size));
}

/* A positive whole number; false: it is none. */
static bool read_count(const char *text, int *count) {
  char *end = NULL;
  const double number = text ? mix_number_read(text, &end) : 0;
  *count = number >= 1 && number <= 1e9 ? (int)number : 0;
  return !text || (*text && !*end && *count == number && number > 0);
}

static bool is_onnx(const char *path) { return ends_in(path, ".onnx"); }

/* Options of files in ONNX alone, or NULL if they agree with OUT. */
static const char *onnx_problem(const conversion *p) {
  const bool given = p->opset || p->weights || p->widen || p->verify || p->batch || p->fold || p->attention;
  if (given && !(p->out && is_onnx(p->out)))
    return "--opset, --weights, --widen, --batch, --fold, --attention and --verify are for an OUT in ONNX";
  if (p->weights && strcmp(p->weights, "compute") && strcmp(p->weights, "float32"))
    return "--weights is compute or float32";
  if (p->attention && strcmp(p->attention, "products") && strcmp(p->attention, "operator"))
    return "--attention is products or operator";
  return NULL;
}

static bool has_weights_alone(const char *path) {
  return ends_in(path, ".npz") || ends_in(path, ".safetensors");
}

/* CLI_OK to continue, CLI_USAGE after a message, -1 after printing --help. */
static int parse(int argc, char **argv, conversion *p) {
  for (int i = 1; i < argc; i++) {
    const char *missing = NULL;
    if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
      usage(stdout);
      return -1;
    }
    if (take_option(argc, argv, &i, p, &missing)) {
      if (missing) return wrong(": its value is missing", missing);
    } else if (!strcmp(argv[i], "--no-compile")) {
      p->no_compile = true;
    } else if (!strcmp(argv[i], "--merge-lora")) {
      p->merge_lora = true;
    } else if (!strcmp(argv[i], "--widen")) {
      p->widen = true;
    } else if (!strcmp(argv[i], "--fold")) {
      p->fold = true;
    } else if (argv[i][0] == '-' && argv[i][1]) {
      return wrong(": no such option", argv[i]);
    } else if (!p->in) {
      p->in = argv[i];
    } else if (!p->out) {
      p->out = argv[i];
    } else {
      return wrong(": two files are converted, IN and OUT", argv[i]);
    }
  }
  if (!read_shard_size(p)) return wrong(": --max-shard-size is a positive number of GB", p->shard_size);
  if (!read_count(p->opset, &p->opset_number)) return wrong(": --opset is a whole number", p->opset);
  if (!read_count(p->batch, &p->batch_size)) return wrong(": --batch is a number of examples", p->batch);
  if (onnx_problem(p)) return wrong(onnx_problem(p), NULL);
  if (p->no_compile && (p->loss || p->optimizer || p->metrics))
    return wrong("--no-compile leaves out what --loss, --optimizer and --metrics say; give one or the other",
                 NULL);
  if (p->weight_map && !p->model)
    return wrong("--weight-map is for weights in safetensors; --model FILE names their model", NULL);
  if (p->out_weight_map && !(p->out && ends_in(p->out, ".safetensors")))
    return wrong("--out-weight-map is for an OUT in safetensors", NULL);
  if (p->out && has_weights_alone(p->out) && (p->loss || p->optimizer || p->metrics))
    return wrong(" has weights alone; leave out --loss, --optimizer and --metrics", p->out);
  return p->out ? CLI_OK : wrong("expected two files, IN and OUT", NULL);
}

/* What can be known before any work is done. */
static int check(const conversion *p) {
  if (!cli_is_saved_name(p->out) && !is_onnx(p->out))
    return wrong(": expected a name that ends in .keras, .weights.h5, .weights.json, .h5, .npz, "
                 ".safetensors or .onnx, or in / for a folder of KerasHub",
                 p->out);
  if (!cli_shards_agree("convert", p->out, p->max_shard_size)) return CLI_USAGE;
  if (p->semantics && strcmp(p->semantics, "keras3") && strcmp(p->semantics, "tf_keras"))
    return wrong(": --semantics is keras3 or tf_keras", p->semantics);
  if (!p->model &&
      (has_weights_alone(p->in) || ends_in(p->in, ".weights.h5") || ends_in(p->in, ".weights.json")))
    return wrong(": a file of weights alone; --model FILE names the model that they are of", p->in);
  const char *reason = cli_unwritable_reason(p->out);
  if (!reason) return CLI_OK;
  cli_say("convert", "cannot write '%s': %s", p->out, reason);
  return CLI_FAILED;
}

static mix_model *load(const conversion *p) {
  cli_options options = {.model = p->model ? p->model : p->in,
                         .loss = p->loss,
                         .optimizer = p->optimizer,
                         .metrics = p->metrics,
                         .policy_map = p->policy_map,
                         .load_lora = p->load_lora};
  const bool bare = p->no_compile || has_weights_alone(p->out) || is_onnx(p->out);
  mix_model *model = cli_load_model(&options, bare ? CLI_NOT_COMPILED : CLI_COMPILED);
  if (model && !bare && (p->loss || p->optimizer || p->metrics)) cli_compile_file(&options, model);
  return mix_failed() ? NULL : model;
}

/* The model as OUT has it: of the generation that it is for. */
static mix_model *in_generation(const conversion *p, mix_model *model) {
  const mix_semantics *wanted = p->semantics ? mix_semantics_named(p->semantics) : model->semantics;
  if (mix_failed() || wanted == mix_file_semantics(model, NULL)) return model;
  return mix_model_in_generation(model, wanted, p->out, model->state, "convert");
}

static int export_onnx(const conversion *p, mix_model *model) {
  const bool kept = p->weights && !strcmp(p->weights, "float32"),
             is_operator = p->attention && !strcmp(p->attention, "operator");
  mix_model_export(model, p->out, .opset = p->opset_number, .widen = p->widen, .batch = p->batch_size,
                   .fold_normalization = p->fold, .weights = kept ? MIX_EXPORT_FLOAT32 : MIX_EXPORT_COMPUTE,
                   .attention = is_operator ? MIX_EXPORT_OPERATOR : MIX_EXPORT_PRODUCTS);
  if (mix_failed()) return cli_fail();
  return p->verify ? cli_verify_onnx(model, p->out, p->verify, p->opset_number, p->batch_size) : CLI_OK;
}

static mix_status save(const conversion *p, mix_model *model) {
  if (!p->out_weight_map) return cli_save(model, p->out, p->max_shard_size);
  return mix_model_save_weights_with(
      model, &(const mix_save_weights_options){
                 .size = sizeof(mix_save_weights_options), .path = p->out, .weight_map = p->out_weight_map});
}

static int convert(const conversion *p) {
  mix_model *model = load(p);
  if (mix_error() == MIX_FORMAT_ERROR && !p->model)
    fprintf(stderr, "mixtape convert: if %s has weights alone, --model FILE names their model\n", p->in);
  if (model && p->model)
    cli_load_weights(&(const cli_options){.init_weights = p->in, .weight_map = p->weight_map}, model);
  if (model && p->merge_lora && !mix_failed() && !mix_list_count(mix_model_lora_layers(model)))
    fprintf(stderr, "warning: --merge-lora: no layer of %s has LoRA; --load-lora FILE names an adapter\n",
            p->in);
  if (model && p->merge_lora && mix_model_merge_lora(model) == MIX_OK && model->state)
    cli_compile_again(model);
  if (model && !mix_failed()) model = in_generation(p, model);
  if (mix_error() == MIX_OK && is_onnx(p->out)) return export_onnx(p, model) == MIX_OK ? CLI_OK : cli_fail();
  return mix_error() == MIX_OK && save(p, model) == MIX_OK &&
                 cli_copy_columns(p->in, p->model, p->out) == MIX_OK
             ? CLI_OK
             : cli_fail();
}

int cli_convert(int argc, char **argv) {
  conversion p = {NULL};
  int code = parse(argc, argv, &p);
  if (code) return code < 0 ? CLI_OK : code;
  code = check(&p);
  if (code) return code;
  mix_scope *scope = mix_scope_begin();
  code = convert(&p);
  mix_scope_end(scope);
  return code;
}
