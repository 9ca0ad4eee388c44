/* The training step of a model from a file: as it was saved, and with mixed policies for its float32 layers;
 * or of a model by name under those policies. */
#include "base/alloc.h"
#include "base/json.h"
#include "cli/bench/bench.h"
#include "cli/bench/comparison.h"

#include <string.h>

enum { MAX_POLICIES = 3, BATCH = 32 };

typedef struct model_step {
  const char *policy;
  mix_model *model;
  cli_part data;
  double first_seconds;
  size_t peak;
  mix_plan_report report;
} model_step;

static bool prepare(model_step *step, const bench_settings *settings, const char *policy, int64_t batch) {
  cli_options options = *settings->options;
  cli_part part;
  if (policy || cli_is_model_file(&options)) options.policy = policy;
  if (!cli_is_model_file(&options) && mix_set_global_policy(options.policy) != MIX_OK) return false;
  const size_t before = mix_buffer_bytes();
  mix_model *model = cli_compiled_model(&options, 0);
  *step = (model_step){.policy = options.policy, .model = model};
  const cli_invention invention = cli_invention_of(&options, batch, 1);
  if (!model || !cli_invent_data(model, &invention, &part)) return false;
  mix_buffer_peak_reset();
  const double begin = bench_now();
  if (!mix_model_train_on_batch(model, part.x, part.y)) return false;
  step->first_seconds = bench_now() - begin;
  step->peak = mix_buffer_peak() - before;
  step->data = part;
  return mix_function_report(mix_model_train_function(model), &step->report, sizeof step->report) == MIX_OK;
}

/* The library's own way to a step, because it knows how inputs and labels become arguments. */
static bool run_step(void *context) {
  const model_step *step = context;
  bool good = false;
  MIX_SCOPE { good = mix_model_train_on_batch(step->model, step->data.x, step->data.y) != NULL; }
  return good;
}

static json_t *row(const model_step *step, const bench_candidate *timed, double ratio) {
  return json_pack("{s:s, s:f, s:f, s:f, s:f, s:I, s:I, s:i}", "policy", step->policy, "step_seconds",
                   timed->median, "best_seconds", timed->best, "speed", ratio, "first_step_seconds",
                   step->first_seconds, "plan_bytes", (json_int_t)step->report.peak_bytes,
                   "process_peak_bytes", (json_int_t)step->peak, "nodes", step->report.nodes);
}

bool bench_model_steps(const bench_settings *settings) {
  static const char *const policies[MAX_POLICIES] = {NULL, "mixed_float16", "mixed_bfloat16"};
  static model_step steps[MAX_POLICIES];
  static bench_candidate runs[MAX_POLICIES];
  const int64_t batch = settings->batch ? settings->batch : BATCH;
  int count = 0, rounds;
  for (; count < MAX_POLICIES; count++) {
    if (!prepare(&steps[count], settings, policies[count], batch)) return false;
    runs[count] = (bench_candidate){.run = run_step, .context = &steps[count]};
    if (!count && strcmp(steps[0].policy, "float32")) break; /* there is nothing that a policy would change */
  }
  if (count < MAX_POLICIES) count++;
  if (!bench_interleave(runs, count, settings->quick ? 2 : 10, &rounds)) return false;
  if (settings->text)
    printf(
        "\nstep of %s, batch %lld, made-up data; %d interleaved rounds\n%-15s %11s %11s %9s %10s %11s %11s\n",
        settings->options->model, (long long)batch, rounds, "policy", "median ms", "best ms", "speed",
        "first ms", "plan MiB", "peak MiB");
  json_t *rows = json_array();
  for (int i = 0; i < count; i++) {
    const double ratio = bench_ratio(&runs[0], &runs[i], rounds);
    mix_json_append(rows, row(&steps[i], &runs[i], ratio));
    if (settings->text)
      printf("%-15s %11.4f %11.4f %8.2fx %10.2f %11.2f %11.2f\n", steps[i].policy, 1e3 * runs[i].median,
             1e3 * runs[i].best, ratio, 1e3 * steps[i].first_seconds,
             (double)steps[i].report.peak_bytes / (1 << 20), (double)steps[i].peak / (1 << 20));
  }
  if (settings->text) printf("speed: the first row's time over this one's, median of the rounds\n");
  json_t *result = json_pack("{s:s, s:I, s:i, s:o}", "model", settings->options->model, "batch_size",
                             (json_int_t)batch, "rounds", rounds, "policies", rows);
  return mix_json_set(settings->json, "model_steps", result);
}
