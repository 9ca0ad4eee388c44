/* Table embedding: a training step of an Embedding of a million rows beside one of ten thousand, interleaved.
 * Optimizers that leave rows without a gradient as they are touch the same bytes in both; the others also
 * move every row of their slots. */
#include "tables.h"

enum { FEW = 10000, MANY = 1000000, DEPTH = 32, TOKENS = 4096 };

typedef struct step {
  mix_layer *embedding;
  mix_optimizer *optimizer;
  mix_function *function;
  mix_list *batch;
  mix_plan_report report;
} step;

/* tokens, gradient of their vectors -> one update */
static mix_list *step_body(void *context, mix_list *batch) {
  step *s = context;
  mix_tape *tape = mix_tape_begin();
  mix_tensor *vectors = mix_call(s->embedding, mix_list_get(batch, 0));
  mix_tape_end(tape);
  mix_list *variables = mix_layer_trainable_weights(s->embedding);
  mix_list *gradients =
      mix_tape_gradient_from(tape, mix_list_of(vectors), mix_list_of(mix_list_get(batch, 1)), variables);
  mix_optimizer_apply_gradients(s->optimizer, gradients, variables);
  return NULL;
}

static bool run_step(void *context) {
  step *s = context;
  bool good = false;
  MIX_SCOPE { good = mix_function_call(s->function, s->batch) != NULL; }
  return good && mix_error() == MIX_OK;
}

static mix_tensor *tokens(int64_t rows) {
  int32_t list[TOKENS];
  for (int64_t i = 0; i < TOKENS; i++) list[i] = (int32_t)(i * i * 2654435761 % rows);
  return mix_tensor_from(list, MIX_INT32, MIX_SHAPE(TOKENS));
}

static bool prepare(step *s, const char *optimizer, int64_t rows) {
  mix_generator *generator = mix_generator_new(3);
  mix_tensor *gradient = mix_random_normal(generator, MIX_SHAPE(TOKENS, DEPTH), MIX_FLOAT32);
  if (mix_evaluate(1, &gradient) != MIX_OK) return false;
  s->embedding = mix_embedding(.input_dim = rows, .output_dim = DEPTH);
  s->optimizer = mix_optimizer_from_text(optimizer, NULL);
  s->function = mix_function_new(step_body, s, .name = "embedding");
  s->batch = mix_list_of(tokens(rows), gradient);
  return run_step(s) && mix_function_report(s->function, &s->report, sizeof s->report) == MIX_OK;
}

static bool one_optimizer(const bench_settings *settings, const char *optimizer, json_t *rows) {
  static bench_candidate runs[2];
  step few, many;
  int rounds;
  if (!prepare(&few, optimizer, FEW) || !prepare(&many, optimizer, MANY)) return false;
  runs[0] = (bench_candidate){.run = run_step, .context = &many};
  runs[1] = (bench_candidate){.run = run_step, .context = &few};
  if (!bench_interleave(runs, 2, settings->quick ? 0.5 : 3, &rounds)) return false;
  const double ratio = bench_ratio(&runs[0], &runs[1], rounds),
               moved = (double)many.report.moved_bytes / (double)few.report.moved_bytes;
  json_array_append_new(rows,
                        json_pack("{s:s, s:f, s:f, s:f, s:f, s:f}", "optimizer", optimizer, "seconds_few",
                                  runs[1].median, "seconds_many", runs[0].median, "ratio", ratio,
                                  "moved_ratio", moved, "arena_bytes", (double)many.report.arena_bytes));
  if (settings->text)
    printf("%-18s %10.3f %10.3f %8.2f %10.2f\n", optimizer, 1e3 * runs[1].median, 1e3 * runs[0].median, ratio,
           moved);
  return true;
}

bool bench_embedding(const bench_settings *settings) {
  static const char *const optimizers[] = {"sgd", "adagrad", "sgd:momentum=0.9", "rmsprop", "adam"};
  json_t *rows = json_array();
  bool good = true;
  if (settings->text)
    printf("\nsteps of an Embedding with vectors of %d, %d tokens: %d and %d rows, interleaved\n"
           "%-18s %10s %10s %8s %10s\n",
           DEPTH, TOKENS, FEW, MANY, "optimizer", "few ms", "many ms", "ratio", "bytes");
  for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers && good; i++) {
    MIX_SCOPE { good = one_optimizer(settings, optimizers[i], rows); }
    fflush(stdout);
  }
  json_object_set_new(settings->json, "embedding", rows);
  return good;
}
