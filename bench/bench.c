/* `mixtape bench`: what ran on what, then every table. */
#include "bench.h"
#include "base/processor.h"
#include "cli/cli.h"
#include <stdlib.h>
#include <string.h>

/* The load that others put on the machine spoils times; ratios of interleaved rounds and best times suffer
 * less. */
static void describe(const bench_settings *settings) {
  char found[160], in_force[160];
  mix_cpu_features_text(mix_cpu_found(), found, sizeof found);
  mix_cpu_features_text(mix_cpu_features(), in_force, sizeof in_force);
  double load = -1;
  if (getloadavg(&load, 1) < 1) load = -1;
  const bool loaded = load > 0.3 * mix_cpu_cores();
  json_object_set_new(settings->json, "machine",
                      json_pack("{s:s, s:i, s:s, s:s, s:s, s:s, s:i, s:f, s:b}", "processor", mix_cpu_name(),
                                "cores", mix_cpu_cores(), "instruction_sets_found", found, "instruction_sets",
                                in_force, "compiler", __VERSION__, "device", mix_device(), "threads",
                                settings->threads, "load_average", load, "loaded", loaded));
  if (!settings->text) return;
  printf("processor      %s, %d cores\n", mix_cpu_name(), mix_cpu_cores());
  printf("instructions   %s; in force: %s\n", found, in_force);
  printf("compiler       %s\n", __VERSION__);
  printf("device         %s, %d threads, accumulation %s\n", mix_device(), settings->threads,
         mix_accumulate());
  printf("load average   %.2f%s\n", load,
         loaded && !settings->advise
             ? "  LOADED: times below are spoilt; ratios of interleaved runs and best times suffer less"
             : "");
}

static int run(const cli_options *options) {
  const int code = cli_setup(options);
  if (code) return code;
  bench_settings settings = {.threads = mix_threads(),
                             .quick = options->quick,
                             .text = !options->json,
                             .units = options->units,
                             .batch = options->batch_size,
                             .advise = options->advise,
                             .json = json_object()};
  if (!settings.json) return cli_fail();
  describe(&settings);
  static const struct {
    const char *name;
    bool (*run)(const bench_settings *settings);
  } subjects[] = {{"start", bench_start},           {"steps", bench_steps},
                  {"dispatch", bench_dispatch},     {"update", bench_update},
                  {"optimizers", bench_optimizers}, {"passes", bench_memory_passes},
                  {"compile", bench_compile},       {"pipeline", bench_pipeline},
                  {"products", bench_products},     {"figures", bench_figures}};
  bool good = true;
  if (options->advise) good = bench_advise(&settings, options->policy) && mix_error() == MIX_OK;
  for (size_t i = 0; i < sizeof subjects / sizeof *subjects && good && !options->advise; i++) {
    if (options->only && strcmp(options->only, subjects[i].name)) continue;
    MIX_SCOPE { good = subjects[i].run(&settings) && mix_error() == MIX_OK; }
    fflush(stdout);
  }
  if (good && options->json)
    good = json_dumpf(settings.json, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(7)) == 0 &&
           putchar('\n') != EOF;
  json_decref(settings.json);
  return good ? CLI_OK : cli_fail();
}

int cli_bench(int argc, char **argv) {
  cli_options options;
  const int code = cli_parse("bench", CLI_BENCH, argc, argv, &options);
  if (code) return code < 0 ? CLI_OK : code;
  if (!options.advise && strcmp(options.policy, "float32")) {
    fprintf(stderr, "mixtape bench: --policy belongs to --advise: the tables run every policy\n");
    return CLI_USAGE;
  }
  mix_scope *scope = mix_scope_begin();
  const int result = run(&options);
  mix_scope_end(scope);
  return result;
}
