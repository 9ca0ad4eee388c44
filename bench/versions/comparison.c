/* The module that a version of the library shows to bench/versions. */
#include "versions/comparison.h"
#include "product_candidate.h"
#include "cli/bench/step_candidate.h"
#include "cli/cli.h"
#include <stdlib.h>

typedef struct candidate {
  bench_step step;
  bench_product *product; /* NULL: the candidate is the step, or a model's */
  mix_model *model;
  cli_part data;
} candidate;

BENCH_COMPARISON bench_comparison_step BENCH_COMPARISON_STEP;
BENCH_COMPARISON bench_comparison_product BENCH_COMPARISON_PRODUCT;
BENCH_COMPARISON bench_comparison_model BENCH_COMPARISON_MODEL;
BENCH_COMPARISON bench_comparison_run BENCH_COMPARISON_RUN;

void *BENCH_COMPARISON_STEP(const char *policy, int64_t units, int64_t batch, int threads) {
  candidate *x = calloc(1, sizeof *x);
  if (!x) return NULL;
  x->step.policy = policy;
  mix_generator *generator = mix_set_threads(threads) == MIX_OK ? mix_generator_new(1) : NULL;
  mix_list *data = generator ? bench_step_data(generator, batch) : NULL;
  if (data && bench_step_prepare(&x->step, units, data)) return x;
  cli_fail();
  free(x);
  return NULL;
}

void *BENCH_COMPARISON_PRODUCT(const char *dtype, const char *text, int threads) {
  candidate *x = calloc(1, sizeof *x);
  bench_shape shape;
  if (x && bench_parse_shape(text, &shape))
    x->product = bench_product_new(&shape, mix_dtype_from_name(dtype), threads);
  if (x && x->product) return x;
  cli_fail();
  free(x);
  return NULL;
}

static bool prepare_model(candidate *x, cli_options *options, int64_t batch) {
  x->model = mix_set_global_policy(options->policy) == MIX_OK ? cli_compiled_model(options, 0) : NULL;
  const cli_invention invention = cli_invention_of(options, batch, 1);
  return x->model && cli_invent_data(x->model, &invention, &x->data);
}

void *BENCH_COMPARISON_MODEL(const char *model, const char *policy, int64_t batch, int threads) {
  candidate *x = calloc(1, sizeof *x);
  cli_options options = {.model = model, .policy = policy, .batch_size = batch, .seed = 1};
  if (!cli_is_model_file(&options)) {
    options.layers = 2, options.units = 256, options.classes = 1000;
    options.optimizer = "adam", options.loss = "sparse_categorical_crossentropy",
    options.metrics = "accuracy";
  }
  if (x && mix_set_threads(threads) == MIX_OK && prepare_model(x, &options, batch)) return x;
  cli_fail();
  free(x);
  return NULL;
}

static bool train_model(candidate *x) {
  bool good = false;
  MIX_SCOPE { good = mix_model_train_on_batch(x->model, x->data.x, x->data.y) != NULL; }
  return good;
}

bool BENCH_COMPARISON_RUN(void *context) {
  candidate *x = context;
  if (x->model) return train_model(x);
  return x->product ? bench_product_run(x->product) : bench_step_run(&x->step);
}
