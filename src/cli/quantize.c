/* mixtape quantize: a model file whose layers compute in another mode. */
#include "cli/cli.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "base/number.h"
#include "model/model.h"

#include <string.h>

static void usage(FILE *out) {
  fprintf(
      out,
      "usage: mixtape quantize IN OUT --mode int8|int4|float8 [OPTION]...\n"
      "\n"
      "Writes the model of IN as OUT, with the layers that can compute in the mode quantized: Dense,\n"
      "EinsumDense, and those in other layers, such as attention. OUT trains from its beginning:\n"
      "it has IN's compile settings, and no optimizer state.\n"
      "\n"
      "  IN                a model of Keras 3: .keras or .h5\n"
      "  OUT               a name that ends in .keras, .h5, .weights.h5, .npz or\n"
      "                    .safetensors\n"
      "  --mode MODE       int8, int4: kernels stored as integers of 8 or 4 bits, which no longer train;\n"
      "                    float8: training with products of float8 numbers\n"
      "  --block-size N    int4: so many rows of a kernel share a scale and a zero; -1: all rows of a\n"
      "                    column share one scale (default 128)\n"
      "  --weights-only    int8: inputs stay floating; by default each row is quantized, too\n"
      "  --inputs          int4 with --block-size -1: inputs are quantized, too\n"
      "  --weight-range LOW,HIGH, --input-range LOW,HIGH\n"
      "                    int8: the integers in use (default -127,127)\n"
      "  --input-epsilon X what is added to the largest magnitude of the inputs (default 1e-7)\n"
      "  --filter REGEX    only layers in whose name the expression is found; may be repeated,\n"
      "                    and one of them is enough (default all layers)\n"
      "  --amax-history N  float8: steps whose largest magnitudes give a scale (default 1024)\n"
      "  -h, --help        this text\n");
}

enum { MAX_FILTERS = 64 };

typedef struct request {
  const char *in, *out;
  const char *filters[MAX_FILTERS];
  mix_quantize_options options;
} request;

static int wrong(const char *message, const char *value) {
  fprintf(stderr, "mixtape quantize: %s%s; `mixtape quantize --help` explains\n", value ? value : "",
          message);
  return CLI_USAGE;
}

/* ---- arguments ---- */

/* "-127,127". 0,0 is no range, and to the library the default one. */
static int take_range(const char *option, const char *value, int *low, int *high) {
  int end = 0;
  if (value && sscanf(value, "%9d,%9d%n", low, high, &end) == 2 && !value[end] && (*low || *high))
    return CLI_OK;
  return wrong(": expected two integers with a comma between, the smaller one first, such as -127,127",
               option);
}

static bool read_epsilon(const char *value, double *epsilon) {
  char *end = NULL;
  const double read = value ? mix_number_read(value, &end) : -1;
  *epsilon = read == 0 ? MIX_ZERO : read;
  return read >= 0 && read < 1e30 && end != value && !*end;
}

/* Takes the option of int8 or int4 at argument *i. -1: there is none of that name. */
static int take_integer_option(int argc, char **argv, int *i, mix_quantize_options *o) {
  const char *value = NULL;
  if (cli_is_option(argc, argv, i, "--block-size", &value)) {
    const bool good = value && mix_integer_read(value, &o->block_size) && o->block_size;
    return good ? CLI_OK : wrong(": expected -1, or a number of 1 or more", "--block-size");
  }
  if (cli_is_option(argc, argv, i, "--weight-range", &value))
    return take_range("--weight-range", value, &o->weight_low, &o->weight_high);
  if (cli_is_option(argc, argv, i, "--input-range", &value))
    return take_range("--input-range", value, &o->input_low, &o->input_high);
  if (cli_is_option(argc, argv, i, "--input-epsilon", &value))
    return read_epsilon(value, &o->input_epsilon)
               ? CLI_OK
               : wrong(": expected a number of 0 or more", "--input-epsilon");
  const bool weights_only = !strcmp(argv[*i], "--weights-only");
  if (!weights_only && strcmp(argv[*i], "--inputs")) return -1;
  *(weights_only ? &o->weights_only : &o->quantize_inputs) = true;
  return CLI_OK;
}

/* Takes the option at argument *i. -1: there is none of that name. */
static int take_option(int argc, char **argv, int *i, request *r) {
  const char *value = NULL;
  mix_quantize_options *o = &r->options;
  if (cli_is_option(argc, argv, i, "--mode", &value)) {
    o->mode = value;
    return value ? CLI_OK : wrong(": its value is missing", "--mode");
  }
  if (cli_is_option(argc, argv, i, "--filter", &value)) {
    if (!value) return wrong(": its value is missing", "--filter");
    if (o->filter_count == MAX_FILTERS) return wrong(": more than 64 of them", "--filter");
    r->filters[o->filter_count++] = value;
    return CLI_OK;
  }
  if (cli_is_option(argc, argv, i, "--amax-history", &value)) {
    const bool good = value && mix_integer_read(value, &o->amax_history_length) && o->amax_history_length > 0;
    return good ? CLI_OK : wrong(": expected a number of 1 or more", "--amax-history");
  }
  return take_integer_option(argc, argv, i, o);
}

/* CLI_OK to continue, CLI_USAGE after a message, -1 after printing --help. */
static int parse(int argc, char **argv, request *r) {
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
      usage(stdout);
      return -1;
    }
    const int taken = take_option(argc, argv, &i, r);
    if (taken > 0) return taken;
    if (taken == CLI_OK) continue;
    if (argv[i][0] == '-' && argv[i][1]) return wrong(": no such option", argv[i]);
    if (r->out) return wrong(": expected two files, IN and OUT", argv[i]);
    *(r->in ? &r->out : &r->in) = argv[i];
  }
  if (!r->out) return wrong("expected two files, IN and OUT", NULL);
  return r->options.mode ? CLI_OK : wrong("expected a mode: --mode int8, int4 or float8", NULL);
}

/* What can be known before any work is done. */
static int check(const request *r) {
  if (!cli_is_saved_name(r->out))
    return wrong(
        ": expected a name that ends in .keras, .weights.h5, .h5, .npz or .safetensors, or in / for a "
        "folder of KerasHub",
        r->out);
  const char *reason = cli_unwritable_reason(r->out);
  if (!reason) return CLI_OK;
  cli_say("quantize", "cannot write '%s': %s", r->out, reason);
  return CLI_FAILED;
}

/* ---- the work ---- */

static int count_quantized(const mix_layer *layer) {
  int count = mix_layer_quantization_mode(layer) != NULL;
  for (int i = 0; i < mix_list_count(layer->layers); i++)
    count += count_quantized(mix_list_items(layer->layers)[i]);
  return count;
}

/* A copy of IN would pass for a quantized model. */
static int refuse_copy(const request *r) {
  const bool filtered = r->options.filter_count > 0;
  cli_say("quantize",
          "no layer was quantized, and '%s' is not written: %s%.100s%s; `mixtape summary --model %s` lists "
          "layers",
          r->out, filtered ? "--filter \"" : "no layer of the model has the mode ",
          filtered ? r->filters[0] : r->options.mode,
          filtered ? "\" is found in the name of no layer that has the mode" : "", r->in);
  return CLI_FAILED;
}

static int quantize(const request *r) {
  cli_options options = {.model = r->in};
  mix_model *model = cli_load_model(&options, CLI_COMPILED);
  mix_quantize_options own = r->options;
  own.size = sizeof own;
  own.filters = r->filters;
  const int before = model ? count_quantized(model->layer) : 0;
  if (model) mix_model_quantize_with(model, &own);
  if (model && !mix_failed() && count_quantized(model->layer) == before) return refuse_copy(r);
  if (model && model->state && !mix_failed()) cli_compile_again(model);
  return !mix_failed() && cli_save(model, r->out, 0) == MIX_OK &&
                 cli_copy_columns(r->in, NULL, r->out) == MIX_OK
             ? CLI_OK
             : cli_fail();
}

int cli_quantize(int argc, char **argv) {
  request r = {NULL};
  int code = parse(argc, argv, &r);
  if (code) return code < 0 ? CLI_OK : code;
  code = check(&r);
  if (code) return code;
  mix_scope *scope = mix_scope_begin();
  code = quantize(&r);
  mix_scope_end(scope);
  return code;
}
