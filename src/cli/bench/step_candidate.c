#include "cli/bench/step_candidate.h"
#include "base/alloc.h"
#include "cli/bench/comparison.h"
#include "cli/cli.h"

mix_list *bench_step_data(mix_generator *generator, int64_t batch) {
  int64_t *labels = malloc(sizeof *labels * (size_t)batch);
  if (!labels) return NULL;
  for (int64_t i = 0; i < batch; i++) labels[i] = i * 7 % BENCH_CLASSES;
  mix_tensor *x = mix_random_uniform(generator, MIX_SHAPE(batch, BENCH_WIDTH), MIX_FLOAT32);
  mix_tensor *y = mix_tensor_from(labels, MIX_INT64, MIX_SHAPE(batch));
  free(labels);
  return mix_evaluate(1, &x) == MIX_OK ? mix_list_of(x, y) : NULL;
}

bool bench_step_prepare(bench_step *step, int64_t units, mix_list *data) {
  cli_options options;
  char *arguments[] = {"bench", NULL};
  if (cli_parse("bench", CLI_BENCH, 1, arguments, &options)) return false;
  options.units = units;
  options.policy = step->policy;
  options.jit_compile = step->jit_compile;
  if (step->unscaled) options.loss_scale = "none";
  if (mix_set_global_policy(step->policy) != MIX_OK) return false;
  const size_t before = mix_buffer_bytes();
  mix_buffer_peak_reset();
  mix_model *model = cli_build_named_model(&options, BENCH_WIDTH);
  if (!model || cli_compile(&options, model) != MIX_OK) return false;
  const double begin = bench_now();
  if (!mix_model_train_on_batch(model, mix_list_get(data, 0), mix_list_get(data, 1))) return false;
  step->first_seconds = bench_now() - begin;
  step->peak = mix_buffer_peak() - before;
  step->model = model;
  step->function = mix_model_train_function(model);
  step->arguments = data;
  return step->function && mix_function_report(step->function, &step->report, sizeof step->report) == MIX_OK;
}

bool bench_step_run(void *context) {
  const bench_step *step = context;
  bool good = false;
  MIX_SCOPE { good = mix_function_call(step->function, step->arguments) != NULL; }
  return good;
}
