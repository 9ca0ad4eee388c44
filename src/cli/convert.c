/* mixtape convert: a file of a model or of weights in another form. */
#include "cli/cli.h"
#include "formats/file.h"

#include <string.h>

static void usage(FILE *out) {
  fprintf(out, "usage: mixtape convert IN OUT [--model FILE]\n"
               "\n"
               "Writes what IN holds as OUT, in the form that the end of OUT's name says, as the Keras\n"
               "generation of the file writes it. What IN is, its content says.\n"
               "\n"
               "  .keras       the whole model: structure, weights, compile settings, optimizer state\n"
               "  .h5          the same in the legacy HDF5 form\n"
               "  .weights.h5  the weights, and the optimizer state of a compiled model\n"
               "  .npz         the weights alone, in get_weights() order\n"
               "\n"
               "  --model FILE  the model (.keras or .h5) whose weights IN has, where IN has weights alone\n"
               "  -h, --help    this text\n");
}

typedef struct paths {
  const char *in, *out, *model;
} paths;

static int wrong(const char *message, const char *value) {
  fprintf(stderr, "mixtape convert: %s%s; `mixtape convert --help` explains\n", value ? value : "", message);
  return CLI_USAGE;
}

/* CLI_OK to continue, CLI_USAGE after a message, -1 after printing --help. */
static int parse(int argc, char **argv, paths *p) {
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
      usage(stdout);
      return -1;
    }
    if (cli_is_option(argc, argv, &i, "--model", &p->model)) {
      if (!p->model) return wrong("--model: its value is missing", NULL);
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
  return p->out ? CLI_OK : wrong("expected two files, IN and OUT", NULL);
}

static bool ends_in(const char *path, const char *end) {
  return strlen(path) > strlen(end) && !strcmp(path + strlen(path) - strlen(end), end);
}

/* What can be known before any work is done. */
static int check(const paths *p) {
  if (!cli_is_saved_name(p->out))
    return wrong(": expected a name that ends in .keras, .weights.h5, .h5 or .npz", p->out);
  if (!p->model && (ends_in(p->in, ".npz") || ends_in(p->in, ".weights.h5")))
    return wrong(": a file of weights alone; --model FILE names the model that they are of", p->in);
  const char *reason = mix_file_unwritable_reason(p->out);
  if (!reason) return CLI_OK;
  fprintf(stderr, "mixtape convert: cannot write '%s': %s\n", p->out, reason);
  return CLI_FAILED;
}

static int convert(const paths *p) {
  mix_model *model = mix_model_load(p->model ? p->model : p->in, .no_compile = ends_in(p->out, ".npz"));
  if (mix_error() == MIX_FORMAT_ERROR && !p->model)
    fprintf(stderr, "mixtape convert: if %s has weights alone, --model FILE names their model\n", p->in);
  if (model && p->model) mix_model_load_weights(model, p->in);
  return mix_error() == MIX_OK && cli_save(model, p->out) == MIX_OK ? CLI_OK : cli_fail();
}

int cli_convert(int argc, char **argv) {
  paths p = {NULL};
  int code = parse(argc, argv, &p);
  if (code) return code < 0 ? CLI_OK : code;
  code = check(&p);
  if (code) return code;
  mix_scope *scope = mix_scope_begin();
  code = convert(&p);
  mix_scope_end(scope);
  return code;
}
