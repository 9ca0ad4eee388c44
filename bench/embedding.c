/* Table embedding: a training step of an Embedding of a million rows beside one of ten thousand, interleaved.
 * Optimizers that leave rows without a gradient as they are touch the same bytes in both; the others also
 * move every row of their slots.
 *
 * Rows of a table of integers, beside those of a floating one and beside making the whole table floating
 * first. */
#include "tables.h"

enum { FEW = 10000, MANY = 1000000, DEPTH = 32, TOKENS = 4096, STORED = 20000, WIDTH = 256 };

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

/* ---- tables of integers ---- */

typedef struct lookup {
  mix_layer *layer;
  mix_function *function;
  mix_list *batch;
} lookup;

static bool run_lookup(void *context) {
  lookup *l = context;
  bool good = false;
  MIX_SCOPE { good = mix_function_call(l->function, l->batch) != NULL; }
  return good && mix_error() == MIX_OK;
}

static mix_list *rows_body(void *context, mix_list *batch) {
  const lookup *l = context;
  return mix_list_of(mix_call(l->layer, mix_list_get(batch, 0)));
}

/* All of the table becomes floating before its rows are taken. */
static mix_list *whole_body(void *context, mix_list *batch) {
  const lookup *l = context;
  mix_list *weights = mix_layer_weights(l->layer);
  mix_tensor *values[4] = {NULL};
  const int count = mix_list_count(weights);
  for (int i = 0; i < count; i++) values[i] = mix_variable_value(mix_list_get(weights, i));
  const mix_stored_options int4 = {
      .size = sizeof int4, .bits = 4, .columns = WIDTH, .block = 128, .transposed = true};
  const mix_stored_options int8 = {.size = sizeof int8, .transposed = true};
  mix_tensor *table = count > 2 ? mix_dequantize_stored(values[0], values[1], values[2], &int4)
                                : mix_dequantize_stored(values[0], values[1], NULL, &int8);
  return mix_list_of(mix_gather(table, mix_list_get(batch, 0), 0));
}

static bool prepare_lookup(lookup *l, const char *policy, bool whole) {
  l->layer = mix_embedding(.input_dim = STORED, .output_dim = WIDTH, .dtype = policy,
                           .semantics = mix_semantics_named("keras3"));
  mix_layer_build(l->layer, MIX_SHAPE(TOKENS));
  l->function = mix_function_new(whole ? whole_body : rows_body, l, .name = "rows");
  l->batch = mix_list_of(tokens(STORED));
  return mix_error() == MIX_OK && run_lookup(l);
}

static bool stored_rows(const bench_settings *settings) {
  static const struct {
    const char *name, *policy;
    bool whole;
  } kinds[] = {{"float32", "float32", false},
               {"int8", "int8_from_float32", false},
               {"int8_whole", "int8_from_float32", true},
               {"int4", "int4/128_from_float32", false},
               {"int4_whole", "int4/128_from_float32", true}};
  enum { KINDS = sizeof kinds / sizeof *kinds };
  static bench_candidate runs[KINDS];
  lookup lookups[KINDS];
  int rounds;
  for (int i = 0; i < KINDS; i++) {
    if (!prepare_lookup(&lookups[i], kinds[i].policy, kinds[i].whole)) return false;
    runs[i] = (bench_candidate){.run = run_lookup, .context = &lookups[i]};
  }
  if (!bench_interleave(runs, KINDS, settings->quick ? 0.5 : 3, &rounds)) return false;
  if (settings->text)
    printf("\n%d rows of %d by %d, interleaved\n%-18s %10s %8s\n", TOKENS, STORED, WIDTH, "table", "ms",
           "ratio");
  json_t *rows = json_array();
  for (int i = 0; i < KINDS; i++) {
    const double ratio = bench_ratio(&runs[i], &runs[0], rounds);
    json_array_append_new(rows, json_pack("{s:s, s:f, s:f}", "table", kinds[i].name, "seconds",
                                          runs[i].median, "ratio", ratio));
    if (settings->text) printf("%-18s %10.3f %8.2f\n", kinds[i].name, 1e3 * runs[i].median, ratio);
  }
  json_object_set_new(settings->json, "embedding_stored", rows);
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
  MIX_SCOPE { good = good && stored_rows(settings); }
  return good;
}
