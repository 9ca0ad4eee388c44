/* The sub-command `mixtape bench`: measures the user's own machine, without other libraries. */
#include "base/json.h"
#include "base/processor.h"
#include "cli/bench/bench.h"
#include <string.h>

/* Other work on the machine spoils times. Ratios of interleaved rounds and best times suffer less. */
static void describe(const bench_settings *settings, bool timed) {
  char found[160], in_force[160];
  mix_cpu_features_text(mix_cpu_found(), found, sizeof found);
  mix_cpu_features_text(mix_cpu_features(), in_force, sizeof in_force);
  double load = -1;
  if (getloadavg(&load, 1) < 1) load = -1;
  const bool loaded = load > 0.3 * mix_cpu_cores();
  mix_json_set(settings->json, "machine",
               json_pack("{s:s, s:i, s:s, s:s, s:s, s:s, s:i, s:f, s:b}", "processor", mix_cpu_name(),
                         "cores", mix_cpu_cores(), "instruction_sets_found", found, "instruction_sets",
                         in_force, "compiler", __VERSION__, "device", mix_device(), "threads",
                         settings->threads, "load_average", load, "loaded", loaded));
  if (!settings->text) return;
  printf("processor      %s, %d cores\n", mix_cpu_name(), mix_cpu_cores());
  printf("instructions   %s; in force: %s\n", found, in_force);
  printf("compiler       %s\n", __VERSION__);
  printf("device         %s, %d threads, accumulation %s, memory %s\n", mix_device(), settings->threads,
         mix_accumulate(), mix_memory_name());
  printf("load average   %.2f%s\n", load,
         loaded && timed
             ? "  LOADED: times below are spoilt; ratios of interleaved runs and best times suffer less"
             : "");
}

int bench_run(const cli_options *options, const bench_table *tables, int count, const char *only) {
  const int code = cli_setup(options);
  if (code) return code;
  bool row_found = !options->rows;
  bench_settings settings = {.row_found = &row_found,
                             .threads = mix_threads(),
                             .quick = options->quick,
                             .text = !options->json,
                             .policy = options->policy,
                             .options = options,
                             .units = options->units,
                             .batch = options->batch_size,
                             .json = json_object()};
  if (!settings.json) return cli_fail();
  describe(&settings, !options->advise);
  bool good = true;
  for (int i = 0; i < count && good; i++) {
    if (only && strcmp(only, tables[i].name)) continue;
    MIX_SCOPE { good = tables[i].run(&settings) && mix_error() == MIX_OK; }
    fflush(stdout);
  }
  if (good && !row_found) {
    json_decref(settings.json);
    fprintf(stderr, "bench: --rows: '%s' is in the name of no row of %s\n", options->rows,
            only ? only : "any table that has rows by name");
    return CLI_USAGE;
  }
  if (good && options->json)
    good = json_dumpf(settings.json, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(7)) == 0 &&
           putchar('\n') != EOF;
  json_decref(settings.json);
  return good ? CLI_OK : cli_fail();
}

int cli_bench(int argc, char **argv) {
  static const bench_table tables[] = {{"steps", bench_steps},
                                       {"layers", bench_layers},
                                       {"pipeline", bench_pipeline}},
                           advise = {"advise", bench_advise}, other = {"steps", bench_model_steps};
  cli_options options;
  const int code = cli_parse("bench", CLI_BENCH, argc, argv, &options);
  if (code) return code < 0 ? CLI_OK : code;
  const bool of_other = !cli_is_guide(&options);
  if (!options.advise && options.policy && strcmp(options.policy, "float32")) {
    fprintf(stderr, "mixtape bench: --policy belongs to --advise: the tables run every policy\n");
    return CLI_USAGE;
  }
  if (of_other && options.only && strcmp(options.only, "steps")) {
    fprintf(stderr, "mixtape bench: --only %s belongs to --model guide, and the model is %s\n", options.only,
            options.model);
    return CLI_USAGE;
  }
  const int begun = cli_trace_begin(&options);
  if (begun) return begun;
  mix_scope *scope = mix_scope_begin();
  const int result = options.advise ? bench_run(&options, &advise, 1, NULL)
                     : of_other     ? bench_run(&options, &other, 1, NULL)
                                : bench_run(&options, tables, sizeof tables / sizeof *tables, options.only);
  mix_scope_end(scope);
  return cli_trace_end(&options, result);
}
