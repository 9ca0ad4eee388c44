#include "cli/bench/layer_pass.h"
#include "base/json.h"

#include "cli/bench/comparison.h"
#include <string.h>

static bool run(void *context) {
  const bench_layer_call *call = context;
  bool good = false;
  MIX_SCOPE { good = mix_function_call(call->function, call->arguments) != NULL; }
  return good;
}

bool bench_layer_argument(bench_layer_call *call, mix_generator *generator, mix_shape shape,
                          mix_dtype dtype) {
  mix_tensor *numbers = mix_random_uniform(generator, shape, MIX_FLOAT32);
  numbers = mix_cast(mix_subtract(numbers, mix_scalar_like(numbers, 0.5)), dtype);
  return mix_evaluate(1, &numbers) == MIX_OK && mix_list_append(call->arguments, numbers) == MIX_OK;
}

bool bench_layer_time(const bench_settings *settings, const bench_layer_pass *pass, json_t *results) {
  static const char *const policies[BENCH_LAYER_POLICIES] = {"float32", "mixed_float16", "mixed_bfloat16"};
  static const mix_dtype dtypes[BENCH_LAYER_POLICIES] = {MIX_FLOAT32, MIX_FLOAT16, MIX_BFLOAT16};
  static bench_candidate runs[BENCH_LAYER_POLICIES];
  bench_layer_call calls[BENCH_LAYER_POLICIES];
  int rounds;
  if (!bench_is_asked(settings, pass->layer)) return true;
  for (int i = 0; i < BENCH_LAYER_POLICIES; i++) {
    if (!pass->prepare(pass, policies[i], dtypes[i], &calls[i])) return false;
    runs[i] = (bench_candidate){.run = run, .context = &calls[i]};
  }
  if (!bench_interleave(runs, BENCH_LAYER_POLICIES, settings->quick ? 0.5 : 3, &rounds)) return false;
  if (settings->text) printf("%-34s %5lld %-8s", pass->layer, (long long)pass->batch, pass->pass);
  for (int i = 0; i < BENCH_LAYER_POLICIES; i++) {
    const double speed = bench_ratio(&runs[0], &runs[i], rounds);
    mix_json_append(results,
                    json_pack("{s:s, s:I, s:s, s:s, s:f, s:f, s:f}", "layer", pass->layer, "batch_size",
                              (json_int_t)pass->batch, "pass", pass->pass, "policy", policies[i], "seconds",
                              runs[i].median, "best_seconds", runs[i].best, "speed_to_float32", speed));
    if (settings->text) printf("  %9.3f %9.3f %6.2fx", 1e3 * runs[i].median, 1e3 * runs[i].best, speed);
  }
  if (settings->text) printf("\n");
  fflush(stdout);
  return true;
}

static mix_tensor *call_layer(mix_layer *layer, mix_tensor *x, mix_training training) {
  const bool attends = !strcmp(mix_layer_class_name(layer), "MultiHeadAttention");
  return mix_call(layer, x, .arguments = attends ? mix_list_of(x) : NULL, .training = training);
}

mix_list *bench_layer_forward(void *layer, mix_list *arguments) {
  mix_tensor *y = call_layer(layer, mix_list_get(arguments, 0), MIX_FALSE);
  return y ? mix_list_of(y) : NULL;
}

mix_list *bench_layer_both(void *layer, mix_list *arguments) {
  mix_tensor *x = mix_list_get(arguments, 0);
  mix_tape *tape = mix_tape_begin();
  mix_tape_watch(tape, x);
  mix_tensor *y = call_layer(layer, x, MIX_TRUE);
  mix_tape_end(tape);
  mix_list *weights = mix_layer_trainable_weights(layer), *sources = mix_list_of(x);
  for (int i = 0; i < mix_list_count(weights); i++) mix_list_append(sources, mix_list_get(weights, i));
  mix_list *results =
      y ? mix_tape_gradient_from(tape, mix_list_of(y), mix_list_of(mix_list_get(arguments, 1)), sources)
        : NULL;
  if (results) mix_list_append(results, y);
  return results;
}
