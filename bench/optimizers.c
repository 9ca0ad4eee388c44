/* Table optimizers: the rate of bytes of each optimizer's update beside that of memcpy, and its passes over
 * the variable. Memory bounds both. */
#include "memcpy_candidate.h"
#include "tables.h"
#include "update_candidate.h"
#include <stdlib.h>
#include <string.h>

/* `min_passes`: a program can end in one reduction, so that a rule takes one pass, and one more for each norm
 * that it needs first. Adafactor's column means are a kernel of their own. */
static const struct {
  const char *name, *rule;
  int min_passes;
} rules[] = {{"SGD", "sgd", 1},
             {"SGD, momentum", "sgd:momentum=0.9", 1},
             {"RMSprop", "rmsprop", 1},
             {"RMSprop, bf16", "rmsprop:state=bfloat16", 1},
             {"RMSprop, chance", "rmsprop:state=bfloat16-stochastic", 1},
             {"Adam", "adam", 1},
             {"Adam, AMSGrad", "adam:amsgrad=true", 1},
             {"Adam, chance", "adam:state=bfloat16-stochastic", 1},
             {"AdamW", "adamw", 1},
             {"Adamax", "adamax", 1},
             {"Nadam", "nadam", 1},
             {"Adagrad", "adagrad", 1},
             {"Adadelta", "adadelta", 1},
             {"Ftrl", "ftrl", 1},
             {"Lion", "lion", 1},
             {"Lamb", "lamb", 3},
             {"Adafactor", "adafactor", 5}};

int bench_passes_over(mix_function *function, const char *shape) {
  const char *plan = mix_function_dump(function, "plan");
  int count = 0;
  while (plan && strncmp(plan, "memory:", 7)) {
    const char *end = strchr(plan, '\n'), *found = strstr(plan, shape);
    count += found && end && found < end;
    plan = end ? end + 1 : NULL;
  }
  return count;
}

/* One rule beside memcpy: its row of the table and of the JSON. */
static bool one_rule(const bench_settings *settings, int rule, mix_tensor *gradient, bench_memcpy *y,
                     json_t *rows) {
  static bench_candidate runs[2];
  char shape[64];
  int rounds;
  mix_shape space = mix_tensor_shape(gradient);
  bench_update_step x;
  if (!bench_update_prepare(&x, mix_optimizer_from_text(rules[rule].rule, NULL), gradient, false))
    return false;
  runs[0] = (bench_candidate){.run = bench_update_run, .context = &x};
  runs[1] = (bench_candidate){.run = bench_memcpy_run, .context = y};
  mix_plan_report report;
  if (!bench_interleave(runs, 2, settings->quick ? 0.25 : 1.5, &rounds) ||
      mix_function_report(x.function, &report, sizeof report) != MIX_OK)
    return false;
  snprintf(shape, sizeof shape, "(%lld, %lld)", (long long)space.dims[0], (long long)space.dims[1]);
  const int passes = bench_passes_over(x.function, shape);
  const double moved = (double)report.moved_bytes, copied = 2.0 * (double)y->bytes,
               parameters = (double)y->bytes / sizeof(float);
  const double share = moved / copied / bench_ratio(&runs[0], &runs[1], rounds);
  json_array_append_new(
      rows, json_pack("{s:s, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f}", "optimizer", rules[rule].name,
                      "passes", passes, "min_passes", rules[rule].min_passes, "bytes_per_parameter",
                      moved / parameters, "seconds", runs[0].median, "bytes_per_second",
                      moved / runs[0].median, "best_bytes_per_second", moved / runs[0].best,
                      "memcpy_bytes_per_second", copied / runs[1].median, "share_of_memcpy", share));
  if (settings->text)
    printf("%-15s %6d %6d %12.1f %10.3f %9.1f %9.1f %9.1f %8.2f\n", rules[rule].name, passes,
           rules[rule].min_passes, moved / parameters, 1e3 * runs[0].median, 1e-9 * moved / runs[0].median,
           1e-9 * moved / runs[0].best, 1e-9 * copied / runs[1].median, share);
  return true;
}

bool bench_optimizers(const bench_settings *settings) {
  const int64_t side = settings->quick ? 1024 : 4096;
  const size_t bytes = 4096 * (size_t)side * sizeof(float);
  mix_generator *generator = mix_generator_new(3);
  mix_tensor *gradient = mix_random_uniform(generator, MIX_SHAPE(side, 4096), MIX_FLOAT32);
  bench_memcpy y;
  bool good = bench_memcpy_prepare(&y, bytes, settings->threads) && mix_evaluate(1, &gradient) == MIX_OK;
  json_t *rows = json_array();
  if (good && settings->text)
    printf("\nupdates of %.1f million parameters, each interleaved with memcpy\n"
           "%-15s %6s %6s %12s %10s %9s %9s %9s %8s\n",
           (double)side * 4096e-6, "optimizer", "passes", "least", "bytes/param", "median ms", "GB/s", "best",
           "memcpy", "share");
  for (size_t i = 0; i < sizeof rules / sizeof *rules && good; i++) {
    MIX_SCOPE { good = one_rule(settings, (int)i, gradient, &y, rows); }
    fflush(stdout);
  }
  bench_memcpy_free(&y);
  json_object_set_new(settings->json, "optimizers",
                      json_pack("{s:I, s:o}", "parameters", (json_int_t)side * 4096, "rows", rows));
  return good;
}
