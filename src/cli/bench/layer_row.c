/* A row of the table layers. */
#include "cli/bench/bench.h"
#include <stdio.h>

const char *const bench_layer_policies[BENCH_LAYER_POLICIES] = {"float32", "mixed_float16", "mixed_bfloat16"};

bool bench_layer_row(const bench_settings *settings, const bench_layer_pass *pass, bench_candidate *runs,
                     json_t *results) {
  int rounds;
  const char *direction = pass->backward ? "backward" : "forward";
  if (!bench_interleave(runs, BENCH_LAYER_POLICIES, settings->quick ? 0.5 : 3, &rounds)) return false;
  if (settings->text) printf("%-34s %-9s", pass->layer, direction);
  for (int i = 0; i < BENCH_LAYER_POLICIES; i++) {
    const double speed = bench_ratio(&runs[0], &runs[i], rounds);
    json_array_append_new(results, json_pack("{s:s, s:I, s:s, s:s, s:f, s:f, s:f}", "layer", pass->layer,
                                             "batch_size", (json_int_t)pass->batch, "pass", direction,
                                             "policy", bench_layer_policies[i], "seconds", runs[i].median,
                                             "best_seconds", runs[i].best, "speed_to_float32", speed));
    if (settings->text) printf("  %9.3f %9.3f %6.2fx", 1e3 * runs[i].median, 1e3 * runs[i].best, speed);
  }
  if (settings->text) printf("\n");
  fflush(stdout);
  return true;
}
