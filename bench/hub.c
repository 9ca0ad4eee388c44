/* Table hub: a training step of KerasHub's GPT-2 small and BERT base with new weights, by AdamW, on batches
 * of 2 x 128 tokens. Each row builds its model and lets it go, so that a process for one row has its memory.
 */
#include "cli/bench/comparison.h"
#include "cli/bench/layer_pass.h"
#include "tables.h"
#include "base/alloc.h"

enum { BATCH = 2, LENGTH = 128, INPUTS = 3 };

typedef struct hub_row {
  const char *name;
  bool is_classifier;
} hub_row;

static const hub_row rows[] = {{"GPT-2 small", false}, {"BERT base", true}};

typedef struct hub_step {
  mix_model *model;
  mix_list *x;
  mix_tensor *y;
} hub_step;

static mix_tensor *whole_numbers(mix_generator *generator, mix_shape shape, int64_t below) {
  mix_tensor *x = mix_random_uniform(generator, shape, MIX_FLOAT32);
  x = mix_cast(mix_multiply(x, mix_scalar((double)below, MIX_FLOAT32)), MIX_INT32);
  return x && mix_evaluate(1, &x) == MIX_OK ? x : NULL;
}

static bool prepare(const bench_settings *settings, const hub_row *r, const char *policy, hub_step *step) {
  const int64_t batch = settings->batch ? settings->batch : BATCH;
  const mix_shape shape = MIX_SHAPE(batch, LENGTH);
  mix_generator *generator = mix_generator_new(1);
  mix_tensor *ids = whole_numbers(generator, shape, bench_hub_words(settings, r->is_classifier)),
             *ones = mix_fill(shape, 1, MIX_INT32), *zeros = mix_fill(shape, 0, MIX_INT32);
  mix_list *x = r->is_classifier ? mix_dict_of("token_ids", ids, "padding_mask", ones, "segment_ids", zeros)
                                 : mix_dict_of("token_ids", ids, "padding_mask", ones);
  *step = (hub_step){.model = bench_hub_model(settings, r->is_classifier, policy),
                     .x = x,
                     .y = r->is_classifier ? whole_numbers(generator, MIX_SHAPE(batch), 2) : ids};
  return step->model &&
         mix_model_compile(step->model, .optimizer = mix_adamw(.learning_rate = 1e-4, .weight_decay = 0.01),
                           .loss_object = mix_sparse_categorical_crossentropy(.from_logits = true)) == MIX_OK;
}

static bool run_step(void *context) {
  const hub_step *step = context;
  bool good = false;
  MIX_SCOPE { good = mix_model_train_on_batch(step->model, step->x, step->y) != NULL; }
  return good;
}

static bool measure(const bench_settings *settings, const void *row, const char *policy, json_t *results) {
  const hub_row *r = row;
  hub_step step;
  const size_t before = mix_buffer_bytes();
  mix_buffer_peak_reset();
  if (!prepare(settings, r, policy, &step) || !run_step(&step)) return false;
  mix_plan_report report;
  if (mix_function_report(mix_model_train_function(step.model), &report, sizeof report)) return false;
  static bench_candidate timed[1];
  timed[0] = (bench_candidate){.run = run_step, .context = &step};
  int rounds;
  if (!bench_interleave(timed, 1, settings->quick ? 0.2 : 6, &rounds)) return false;
  const size_t peak = mix_buffer_peak() - before;
  int64_t weights = 0;
  const mix_list *variables = mix_model_weights(step.model);
  for (int i = 0; i < mix_list_count(variables); i++)
    weights += mix_shape_size(mix_variable_shape(mix_list_get(variables, i)));
  json_array_append_new(results,
                        json_pack("{s:s, s:s, s:I, s:f, s:f, s:i, s:I, s:I}", "model", r->name, "policy",
                                  policy, "parameters", (json_int_t)weights, "step_seconds", timed[0].median,
                                  "best_seconds", timed[0].best, "rounds", rounds, "plan_bytes",
                                  (json_int_t)report.peak_bytes, "buffer_peak_bytes", (json_int_t)peak));
  if (settings->text)
    printf("%-12s %-15s %12lld %11.2f %11.2f %9.1f %9.1f\n", r->name, policy, (long long)weights,
           1e3 * timed[0].median, 1e3 * timed[0].best, (double)report.peak_bytes / (1 << 20),
           (double)peak / (1 << 20));
  return true;
}

bool bench_hub(const bench_settings *settings) {
  json_t *results = json_array();
  if (settings->text)
    printf("\nmodels of KerasHub, %d tokens, AdamW\n%-12s %-15s %12s %11s %11s %9s %9s\n", LENGTH, "model",
           "policy", "parameters", "median ms", "best ms", "plan MiB", "peak MiB");
  const bool good =
      bench_time_by_policy(settings, rows, sizeof *rows, sizeof rows / sizeof *rows, measure, results);
  json_object_set_new(settings->json, "hub", results);
  return good;
}
