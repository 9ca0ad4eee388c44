/* `mixtape bench --advise`: which layers of a model gain from mixed precision on this machine, which do not,
 * and why. */
#include "cli/bench/advice.h"
#include "base/json.h"
#include "base/processor.h"
#include "cli/bench/bench.h"
#include "cli/bench/step_candidate.h"
#include "compile/compile.h"
#include <stdio.h>
#include <string.h>

typedef struct totals {
  double wide, narrow;
} totals;

/* A pass that float32 does not have is "extra" and has no gain. */
static void print(const bench_settings *settings, json_t *rows, const char *layer, const char *what,
                  const bench_shape *s, const bench_advice *a) {
  const bool extra = a->wide == 0;
  const double gain = extra ? 0 : a->wide / a->narrow;
  const char *verdict = extra ? "extra" : bench_advice_verdict(gain);
  json_t *row = json_pack("{s:s, s:s, s:o, s:s, s:s}", "layer", layer, "part", what, "gain",
                          extra ? json_null() : json_real(gain), "verdict", verdict, "why", a->why);
  if (a->kernel) mix_json_set(row, "kernel", json_string(a->kernel));
  if (s)
    mix_json_set(row, "shape", json_pack("[I, I, I]", (json_int_t)s->m, (json_int_t)s->n, (json_int_t)s->k));
  mix_json_append(rows, row);
  if (!settings->text) return;
  char shape[64] = "", ratio[16] = "";
  if (s)
    snprintf(shape, sizeof shape, "(%lld, %lld, %lld)", (long long)s->m, (long long)s->n, (long long)s->k);
  if (!extra) snprintf(ratio, sizeof ratio, "%.2fx", gain);
  printf("  %-14s %-20s %-20s %6s  %-6s %s\n", layer, what, shape, ratio, verdict, a->why);
}

/* The products of a layer with a kernel (inputs, units), and the update of its weights. */
static void advise_dense(const bench_settings *settings, json_t *rows, const char *name, mix_shape kernel,
                         mix_dtype dtype, bool first, totals *all) {
  const int64_t inputs = kernel.dims[0], units = kernel.dims[1], batch = settings->batch;
  const struct {
    const char *what;
    bench_shape shape;
  } products[] = {{"forward", {0, 0, batch, units, inputs}},
                  {"gradient of kernel", {1, 0, inputs, units, batch}},
                  {"gradient of input", {0, 1, batch, inputs, units}}};
  totals layer = {0, 0};
  if (first) {
    bench_advice cast = {.narrow = bench_advice_of_bytes(6.0 * (double)(batch * inputs)),
                         .why = "the batch comes in float32: a pass that float32 does without"};
    print(settings, rows, name, "cast of the batch", NULL, &cast);
    layer.narrow += cast.narrow;
  }
  enum { GRADIENT = 1 };
  bench_advice a[3];
  for (int i = 0; i < (first ? 2 : 3); i++) {
    bench_advise_product(&products[i].shape, dtype, &a[i]);
    print(settings, rows, name, products[i].what, &products[i].shape, &a[i]);
    layer.wide += a[i].wide, layer.narrow += a[i].narrow;
  }
  /* Bytes a weight. RMSprop reads and writes slot and weight: 16. The 16-bit copy: 2. Under loss scaling a
   * gradient that waits for the finite test is written and read again: 2 + 2. */
  const double weights = (double)(inputs * units);
  const mix_context context = mix_context_default();
  const bool waits =
      dtype == MIX_FLOAT16 && !context.backend->prefers_speculation(&context, (size_t)weights * 2,
                                                                    (size_t)(2 * batch * (inputs + units)));
  bench_advice update = {.wide = bench_advice_of_update(16 * weights, a[GRADIENT].wide),
                         .narrow = bench_advice_of_update((waits ? 22 : 18) * weights, a[GRADIENT].narrow)};
  snprintf(update.why, sizeof update.why,
           "memory-bound: weights and slots stay float32, a 16-bit copy is written%s",
           waits ? ", the finite test comes between" : "");
  print(settings, rows, name, "update", NULL, &update);
  layer.wide += update.wide, layer.narrow += update.narrow;
  bench_advice whole = {.wide = layer.wide, .narrow = layer.narrow, .why = "the layer, all of the above"};
  print(settings, rows, name, "all", NULL, &whole);
  all->wide += layer.wide, all->narrow += layer.narrow;
}

static void advise_layers(const bench_settings *settings, mix_list *layers, bool *first, json_t *rows,
                          totals *all) {
  for (int i = 0; i < mix_list_count(layers); i++) {
    mix_layer *layer = mix_list_get(layers, i);
    const char *name = mix_layer_name(layer);
    const mix_dtype dtype = mix_layer_compute_dtype(layer);
    mix_list *inner = mix_layer_layers(layer), *weights = mix_layer_weights(layer);
    const bool narrow = dtype == MIX_FLOAT16 || dtype == MIX_BFLOAT16;
    const bool dense = !strcmp(mix_layer_class_name(layer), "Dense") && mix_list_count(weights);
    if (mix_list_count(inner)) {
      advise_layers(settings, inner, first, rows, all);
      continue;
    }
    if (dense && narrow) {
      advise_dense(settings, rows, name, mix_variable_shape(mix_list_get(weights, 0)), dtype, *first, all);
    } else {
      bench_advice a = {.wide = 1, .narrow = 1};
      snprintf(a.why, sizeof a.why,
               !narrow                   ? "computes in %s, as its policy says"
               : mix_list_count(weights) ? "not estimated: only Dense layers are"
                                         : "element-wise: fused with its neighbours",
               mix_dtype_name(dtype));
      print(settings, rows, name, mix_layer_class_name(layer), NULL, &a);
    }
    *first = *first && !dense;
  }
}

static bool advise_policy(const bench_settings *settings, const char *policy, json_t *advice) {
  cli_options options;
  char *arguments[] = {"bench", NULL};
  if (cli_parse("bench", CLI_BENCH, 1, arguments, &options)) return false;
  options.units = settings->units, options.policy = policy;
  const bool named = settings->model && cli_is_named_model(settings->model), file = settings->model && !named;
  if (settings->model) options.model = settings->model;
  if (file) options.semantics = NULL;
  if (named) cli_copy_sizes(&options, settings->options);
  if (!file && mix_set_global_policy(policy) != MIX_OK) return false;
  mix_model *model = file    ? cli_load_model(&options, CLI_NOT_COMPILED)
                     : named ? cli_build_named_model(&options)
                             : cli_make_model(&options, BENCH_WIDTH);
  if (!model) return false;
  json_t *rows = json_array();
  totals all = {BENCH_ADVICE_REST, BENCH_ADVICE_REST};
  if (settings->text)
    printf("\nadvice for %s under %s, batch %lld: float32's time over the policy's, by rules drawn from "
           "measurements\n",
           settings->model ? settings->model : "the guide's model", policy, (long long)settings->batch);
  bool first = true;
  advise_layers(settings, mix_model_layers(model), &first, rows, &all);
  const bool good = mix_error() == MIX_OK;
  const double gain = all.narrow > 0 ? all.wide / all.narrow : 1;
  mix_json_append(advice, json_pack("{s:s, s:I, s:o, s:f, s:s}", "policy", policy, "batch_size",
                                    (json_int_t)settings->batch, "rows", rows, "step_gain", gain, "verdict",
                                    bench_advice_verdict(gain)));
  if (settings->text) printf("  the whole step: %.2fx, %s\n", gain, bench_advice_verdict(gain));
  return good;
}

/* --policy float32, the default, asks about both mixed policies. */
bool bench_advise(const bench_settings *given) {
  static const char *const mixed[] = {"mixed_float16", "mixed_bfloat16"};
  bench_settings settings = *given;
  if (!settings.batch) settings.batch = 128;
  json_t *advice = json_array();
  mix_json_set(settings.json, "advice", advice);
  bool good = true;
  if (settings.policy && strcmp(settings.policy, "float32"))
    good = advise_policy(&settings, settings.policy, advice);
  else
    for (int i = 0; i < 2 && good; i++) good = advise_policy(&settings, mixed[i], advice);
  if (settings.text)
    printf("`mixtape bench%s measures what is estimated here.\n",
           settings.model ? " --model FILE`" : " --only figures`");
  return good;
}
