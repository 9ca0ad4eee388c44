/* mixtape graph: reads compiled graphs as text, from a file or a log of MIXTAPE_VERBOSE=compile, and runs
 * single passes on them. */
#include "base/alloc.h"
#include "base/did_you_mean.h"
#include "base/error.h"
#include "base/number.h"
#include "cli/cli.h"
#include "amp/setting.h"
#include "backend/xla/emit.h"
#include "compile/compile.h"
#include "compile/pass_pipeline.h"

#include <string.h>

enum { MAX_PASSES = 64, MAX_NUMBER = 1 << 30 };

static void usage(FILE *out) {
  fprintf(
      out,
      "usage: mixtape graph FILE [--graph N] [--pass NAME,...] [--rewrite float16|bfloat16] [--quiet]\n"
      "                          [--stablehlo]\n"
      "\n"
      "Reads the text of a captured function (from mix_function_dump, or from MIXTAPE_VERBOSE=compile,\n"
      "which writes it before the passes and after each), checks it, runs the given passes and prints\n"
      "the result. FILE - is standard input.\n"
      "\n"
      "  --graph N    the N-th graph of the file, from 1; without it, a file with several graphs is listed\n"
      "  --pass       run these passes, in this order; \"all\": the enabled passes of a compilation\n"
      "  --rewrite    the dtype of the pass amp\n"
      "  --quiet      check only, print no graph\n"
      "  --stablehlo  print the program that the device xla would compile; without --pass, after its passes\n"
      "\n"
      "passes:");
  for (int i = 0; mix_pass_name(i); i++) fprintf(out, " %s", mix_pass_name(i));
  fputc('\n', out);
}

typedef struct graph_options {
  const char *file, *passes;
  int64_t graph;
  bool quiet, stablehlo;
} graph_options;

static bool is_pass(const char *name) {
  int i = 0;
  while (mix_pass_name(i) && strcmp(mix_pass_name(i), name)) i++;
  return mix_pass_name(i) != NULL;
}

/* False after a message. */
static bool known_passes(const char *option, const char *list) {
  if (!strcmp(list, "all")) return true;
  for (size_t length; *list; list += length + (list[length] == ',')) {
    char name[64], hint[100];
    length = strcspn(list, ",");
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), list);
    if (is_pass(name)) continue;
    mix_did_you_mean nearest = {.word = name};
    for (int i = 0; mix_pass_name(i); i++) mix_did_you_mean_try(&nearest, mix_pass_name(i));
    fprintf(stderr, "mixtape graph: %s %s: no such pass%s%s `mixtape graph --help` lists them\n", option,
            name, mix_did_you_mean_hint(&nearest, hint, sizeof hint), nearest.found ? "" : ";");
    return false;
  }
  return true;
}

static int missing_value(const char *option) {
  fprintf(stderr, "mixtape graph: %s: its value is missing; `mixtape graph --help` explains\n", option);
  return CLI_USAGE;
}

/* CLI_OK to continue, CLI_USAGE after a message, -1 after printing --help. */
static int parse(int argc, char **argv, graph_options *options) {
  for (int i = 1; i < argc; i++) {
    const char *value;
    if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
      usage(stdout);
      return -1;
    }
    if (argv[i][0] != '-' || !argv[i][1]) {
      if (options->file) {
        fprintf(stderr, "mixtape graph: one file at a time, not '%s' too\n", argv[i]);
        return CLI_USAGE;
      }
      options->file = argv[i];
    } else if (!strcmp(argv[i], "--quiet"))
      options->quiet = true;
    else if (!strcmp(argv[i], "--stablehlo"))
      options->stablehlo = true;
    else if (cli_is_option(argc, argv, &i, "--pass", &value)) {
      if (!value) return missing_value("--pass");
      if (!known_passes("--pass", value)) return CLI_USAGE;
      options->passes = value;
    } else if (cli_is_option(argc, argv, &i, "--graph", &value)) {
      if (!value) return missing_value("--graph");
      if (!mix_integer_read(value, &options->graph) || options->graph < 1) {
        fprintf(stderr, "mixtape graph: --graph %s; expected a number from 1\n", value);
        return CLI_USAGE;
      }
    } else if (cli_is_option(argc, argv, &i, "--rewrite", &value)) {
      if (!value) return missing_value("--rewrite");
      mix_dtype target = mix_dtype_from_name(value);
      if (!mix_dtype_is_16_bit(target)) {
        fprintf(stderr, "mixtape graph: --rewrite %s; expected float16 or bfloat16\n", value);
        return CLI_USAGE;
      }
      mix_amp_set_target(target);
    } else {
      fprintf(stderr, "mixtape graph: unknown option '%s'; `mixtape graph --help` lists them\n", argv[i]);
      return CLI_USAGE;
    }
  }
  if (options->file) return CLI_OK;
  fprintf(stderr, "mixtape graph: no file was named; `mixtape graph --help` explains\n");
  return CLI_USAGE;
}

static const char *next_line(const char *at) {
  const char *end = strchr(at, '\n');
  return end ? end + 1 : at + strlen(at);
}

static bool begins(const char *line, const char *word) { return !strncmp(line, word, strlen(word)); }

/* True for a line of a log that can belong to a graph. */
static bool graph_line(const char *line) {
  return *line == '%' || *line == '|' || begins(line, "    ") || begins(line, "store ") ||
         begins(line, "return") || begins(line, "eager\n") || begins(line, "excess_precision\n");
}

typedef struct section {
  const char *title; /* "# compile: after constant_fold", or NULL */
  const char *begin, *end;
} section;

/* The next graph after `at`, from its first line to its "return". Comments just before it are its title.
 * False if there is none. */
static bool next_section(const char *at, section *s) {
  *s = (section){0};
  for (; *at; at = next_line(at)) {
    if (*at == '#') s->title = at;
    if (!graph_line(at)) {
      /* Not a line of a graph: the reader gets the line too and reports it. */
      if (s->begin && *at != '#' && *at != '\n' && *at != '\r') break;
      continue;
    }
    if (!s->begin) s->begin = at;
    s->end = next_line(at);
    if (begins(at, "return")) return true;
  }
  if (s->begin && *at) s->end = next_line(at);
  return s->begin != NULL;
}

static void list_sections(const char *text) {
  section s;
  int number = 0;
  for (const char *at = text; next_section(at, &s); at = s.end) {
    int lines = 0;
    for (const char *line = s.begin; line < s.end; line = next_line(line)) lines++;
    printf("%3d  %5d lines  %.*s\n", ++number, lines, s.title ? (int)strcspn(s.title, "\n") : 0,
           s.title ? s.title : "");
  }
}

static bool run_passes(mix_ir *ir, const char *list) {
  if (list && !strcmp(list, "all")) return mix_passes_run(ir);
  while (list && *list) {
    char name[40];
    size_t length = strcspn(list, ",");
    snprintf(name, sizeof name, "%.*s", (int)length, list);
    if (!mix_pass_run(ir, name)) return false;
    list += length + (list[length] == ',');
  }
  return true;
}

/* The text before the graph is passed to the reader as blank lines, so that line numbers in messages are
 * those of the file. */
static mix_ir *read_section(const graph_options *options, const char *text, const section *s) {
  mix_text graph = {.grows = true};
  for (const char *line = text; line < s->begin; line = next_line(line)) mix_text_put(&graph, "\n");
  mix_text_put(&graph, "%.*s", (int)(s->end - s->begin), s->begin);
  mix_ir *ir = graph.failed ? NULL : mix_ir_read(options->file, graph.text, graph.used, MAX_NUMBER);
  mix_free(graph.text);
  return ir;
}

/* The graph after the passes, or the program of the device xla: false with the error recorded. */
static bool print_graph(const graph_options *options, mix_ir *ir) {
  mix_context context = mix_context_default();
  if (options->stablehlo) {
    context = mix_context_on(&mix_backend_xla, &context);
    ir->context = &context;
  }
  if (!run_passes(ir, options->stablehlo && !options->passes ? "all" : options->passes)) return false;
  mix_xla_signature signature;
  char *program = options->stablehlo ? mix_xla_emit(ir, &signature) : NULL;
  const char *out = options->stablehlo ? program : mix_ir_text(ir);
  if (out && !options->quiet) fputs(out, stdout);
  mix_free(program);
  return out != NULL;
}

int cli_graph(int argc, char **argv) {
  graph_options options = {0};
  int code = parse(argc, argv, &options);
  if (code) return code < 0 ? CLI_OK : code;
  size_t size;
  char *text = cli_read_text(options.file, &size);
  if (!text) return cli_fail();
  section s = {0}, other;
  const char *at = text;
  long number = 0;
  bool found = false;
  while (number < (options.graph ? options.graph : 1) && (found = next_section(at, &s))) at = s.end, number++;
  if (!found) {
    mix_fail_value(options.graph > 1 ? "graph: %s has %ld graphs, not %ld" : "graph: %s has no graph",
                   options.file, number, options.graph);
    code = cli_fail();
  } else if (!options.graph && next_section(at, &other)) {
    list_sections(text);
  } else {
    mix_ir *ir = read_section(&options, text, &s);
    code = ir && print_graph(&options, ir) ? CLI_OK : cli_fail();
    mix_ir_free(ir);
  }
  mix_free(text);
  return code;
}
