/* The benchmark program: every table, beside other libraries where they are installed. `make bench` builds
 * and runs it; docs/PERFORMANCE.md explains the tables. */
#include "gemm_comparison.h"
#include "tables.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const bench_table tables[] = {{"start", bench_start},
                                     {"steps", bench_steps},
                                     {"dispatch", bench_dispatch},
                                     {"layers", bench_layers},
                                     {"update", bench_update},
                                     {"optimizers", bench_optimizers},
                                     {"passes", bench_memory_passes},
                                     {"compile", bench_compile},
                                     {"pipeline", bench_pipeline},
                                     {"products", bench_products},
                                     {"convolutions", bench_convolutions},
                                     {"embedding", bench_embedding},
                                     {"threads", bench_threads},
                                     {"loading", bench_loading},
                                     {"simulated", bench_simulated},
                                     {"stored", bench_stored},
                                     {"lora", bench_lora},
                                     {"frozen", bench_frozen},
                                     {"memory", bench_memory},
                                     {"decoding", bench_decoding},
                                     {"latency", bench_latency},
                                     {"hub", bench_hub},
                                     {"figures", bench_figures}};
enum { TABLES = sizeof tables / sizeof *tables };

static void print_tables(FILE *out) {
  for (int i = 0; i < TABLES; i++) fprintf(out, i ? "|%s" : "%s", tables[i].name);
}

static void help(void) {
  printf("usage: bench [OPTION...]\n\n  --only ");
  print_tables(stdout);
  printf("\n                     one table\n"
         "  --rows TEXT        of layers, latency, decoding, hub, frozen: rows in whose name this is found\n"
         "  --export FOLDER    of latency: writes the models as FOLDER/NAME.onnx, for peers\n"
         "  --quick            fewer rounds and smaller models\n"
         "  --units N          units of the hidden layers of the guide's model\n"
         "  --batch-size N     examples in a batch\n"
         "  --threads N        default: the cores this process may use\n"
         "  --device, --accumulate\n"
         "                     as of `mixtape bench`\n"
         "  --json             one JSON object on standard output\n"
         "  -h, --help         this text\n");
}

/* False after a message. */
static bool is_table(const char *name) {
  for (int i = 0; i < TABLES; i++)
    if (name && !strcmp(name, tables[i].name)) return true;
  fprintf(stderr, "bench: --only: '%s' given; expected ", name ? name : "");
  print_tables(stderr);
  fprintf(stderr, "\n");
  return false;
}

/* --only, --export and --help are this program's own; `mixtape bench` parses the rest. CLI_OK to go on, -1
 * after --help, else the exit code. */
static int parse(int argc, char **argv, cli_options *options, const char **only) {
  const char *folder = NULL;
  static char command[] = "bench";
  char **rest = calloc((size_t)argc + 1, sizeof *rest);
  if (!rest) return CLI_FAILED;
  int count = 1, code = CLI_OK;
  rest[0] = command;
  for (int i = 1; i < argc && !code; i++) {
    if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
      help();
      code = -1;
    } else if (cli_is_option(argc, argv, &i, "--only", only)) {
      if (!is_table(*only)) code = CLI_USAGE;
    } else if (cli_is_option(argc, argv, &i, "--export", &folder)) {
      if (!folder) code = CLI_USAGE;
    } else {
      rest[count++] = argv[i];
    }
  }
  if (!code) code = cli_parse(command, CLI_BENCH, count, rest, options);
  free(rest);
  options->output = folder;
  if (!code && (options->advise || cli_is_model_file(options) || strcmp(options->policy, "float32"))) {
    fprintf(stderr, "bench: --advise and --policy belong to `mixtape bench`\n");
    code = CLI_USAGE;
  }
  return code;
}

/* The threads of other libraries: GNU's OpenMP reads its environment before main, and its threads otherwise
 * spin for milliseconds. */
static void spin_briefly(char **argv) {
  if (getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY")) return;
  if (setenv("GOMP_SPINCOUNT", "1000", 1) == 0) execv("/proc/self/exe", argv);
}

int main(int argc, char **argv) {
  spin_briefly(argv);
  cli_begin();
  mix_set_log_callback(mix_log_to_stderr, NULL);
  cli_options options;
  const char *only = NULL;
  int code = parse(argc, argv, &options, &only);
  if (code) return code < 0 ? CLI_OK : code;
  mix_scope *scope = mix_scope_begin();
  code = bench_run(&options, tables, TABLES, only);
  mix_scope_end(scope);
  mix_shutdown();
  if (fflush(stdout) == 0 && !ferror(stdout)) return code;
  fprintf(stderr, "bench: cannot write to standard output\n");
  return code ? code : CLI_FAILED;
}
