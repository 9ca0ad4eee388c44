/* Table lora: a training step of the guide's model with LoRA beside the step that trains all, interleaved:
 * time and memory, and the same with the kernels merged in each step, as Keras computes it. */
#include "tables.h"
#include <mixtape/lora.h>

enum { UNITS = 4096, SMALL = 1024, BATCH = 128, RANK = 8 };

typedef struct step {
  int64_t rank;
  bool merged; /* W + a . b is made, and its gradient */
  mix_list *layers;
  mix_optimizer *optimizer;
  mix_function *function;
  mix_list *batch;
  mix_plan_report report;
} step;

/* What a layer computes in Keras: activation(x (W + a . b) + bias), for which a layer of this library has the
 * two smaller products in the merged one's place. */
static mix_tensor *call_merged(mix_layer *layer, mix_tensor *x, const char *activation) {
  mix_list *weights = mix_layer_weights(layer);
  mix_tensor *values[4];
  for (int i = 0; i < 4; i++) values[i] = mix_variable_value(mix_list_get(weights, i));
  mix_tensor *kernel = mix_add(values[0], mix_matmul(values[2], values[3], false, false));
  return mix_activate(activation, mix_bias_add(mix_matmul(x, kernel, false, false), values[1]));
}

static mix_tensor *forward(const step *s, mix_tensor *x) {
  for (int i = 0; i < 3; i++) {
    mix_layer *layer = mix_list_get(s->layers, i);
    x = s->merged ? call_merged(layer, x, i < 2 ? "relu" : "softmax") : mix_call(layer, x);
  }
  return x;
}

/* images, labels -> one update */
static mix_list *step_body(void *context, mix_list *batch) {
  step *s = context;
  mix_list *variables = mix_list_new(0, NULL);
  mix_tape *tape = mix_tape_begin();
  mix_tensor *y = forward(s, mix_list_get(batch, 0));
  mix_tensor *loss =
      mix_loss_call(mix_loss_new("sparse_categorical_crossentropy"), mix_list_get(batch, 1), y);
  mix_tape_end(tape);
  for (int i = 0; i < 3; i++) {
    mix_list *own = mix_layer_trainable_weights(mix_list_get(s->layers, i));
    for (int k = 0; k < mix_list_count(own); k++) mix_list_append(variables, mix_list_get(own, k));
  }
  mix_optimizer_apply_gradients(s->optimizer, mix_tape_gradient(tape, loss, variables), variables);
  return NULL;
}

static bool run_step(void *context) {
  step *s = context;
  bool good = false;
  MIX_SCOPE { good = mix_function_call(s->function, s->batch) != NULL; }
  return good && mix_error() == MIX_OK;
}

static bool prepare(step *s, const char *optimizer, int64_t units, int64_t rank, bool merged) {
  *s = (step){.rank = rank, .merged = merged, .optimizer = mix_optimizer_from_text(optimizer, NULL)};
  mix_set_semantics("keras3"); /* whose layers list a frozen kernel first */
  s->layers = mix_list_of(mix_dense(units, "relu"), mix_dense(units, "relu"), mix_dense(10, "softmax"));
  s->batch = mix_list_of(mix_fill(MIX_SHAPE(BATCH, 784), 0.5, MIX_FLOAT32),
                         mix_fill(MIX_SHAPE(BATCH), 3, MIX_INT64));
  for (int i = 0; i < 3; i++) {
    mix_layer *layer = mix_list_get(s->layers, i);
    mix_layer_build(layer, MIX_SHAPE(BATCH, i ? units : 784));
    if (rank) mix_layer_enable_lora(layer, rank);
  }
  s->function = mix_function_new(step_body, s, .name = "lora");
  return run_step(s) && mix_function_report(s->function, &s->report, sizeof s->report) == MIX_OK;
}

static bool one_optimizer(const bench_settings *settings, const char *optimizer, json_t *rows) {
  static bench_candidate runs[3];
  step all, lora, merged;
  int rounds;
  const int64_t units = settings->quick ? SMALL : UNITS;
  if (!prepare(&all, optimizer, units, 0, false) || !prepare(&lora, optimizer, units, RANK, false) ||
      !prepare(&merged, optimizer, units, RANK, true))
    return false;
  runs[0] = (bench_candidate){.run = run_step, .context = &all};
  runs[1] = (bench_candidate){.run = run_step, .context = &lora};
  runs[2] = (bench_candidate){.run = run_step, .context = &merged};
  if (!bench_interleave(runs, 3, settings->quick ? 0.5 : 3, &rounds)) return false;
  const double time = bench_ratio(&runs[1], &runs[0], rounds),
               faster = bench_ratio(&runs[2], &runs[1], rounds),
               bytes = (double)lora.report.peak_bytes / (double)all.report.peak_bytes,
               of_merged = (double)merged.report.peak_bytes / (double)all.report.peak_bytes;
  json_array_append_new(rows, json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f}", "optimizer", optimizer,
                                        "seconds_all", runs[0].median, "seconds_lora", runs[1].median,
                                        "time_ratio", time, "bytes_ratio", bytes, "merged_bytes_ratio",
                                        of_merged, "merged_time_ratio", faster));
  if (settings->text)
    printf("%-18s %10.2f %10.2f %8.2f %8.2f %12.2f %12.2f\n", optimizer, 1e3 * runs[0].median,
           1e3 * runs[1].median, time, bytes, of_merged, faster);
  return true;
}

bool bench_lora(const bench_settings *settings) {
  static const char *const optimizers[] = {"rmsprop", "adam"};
  json_t *rows = json_array();
  bool good = true;
  if (settings->text)
    printf("\nsteps of the guide's model at %d units, %d rows: LoRA of rank %d over training all, and the\n"
           "merged kernels of Keras over that\n%-18s %10s %10s %8s %8s %12s %12s\n",
           settings->quick ? SMALL : UNITS, BATCH, RANK, "optimizer", "all ms", "LoRA ms", "time", "bytes",
           "merged bytes", "merged time");
  for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers && good; i++) {
    MIX_SCOPE { good = one_optimizer(settings, optimizers[i], rows); }
    fflush(stdout);
  }
  json_object_set_new(settings->json, "lora", rows);
  return good;
}
