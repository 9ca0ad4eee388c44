/* The training step of the guide's model as a candidate, under a policy, with or without loss scaling. */
#pragma once

#include <mixtape/mixtape.h>

enum { BENCH_WIDTH = 784, BENCH_CLASSES = 10 };

typedef struct bench_step {
  const char *policy;
  bool unscaled; /* no loss scaling, whatever the policy */
  bool jit_compile;
  mix_model *model;
  mix_function *function; /* the training step */
  mix_list *arguments;
  double first_seconds;
  size_t peak; /* bytes of this model's buffers, its plan included */
  mix_plan_report report;
} bench_step;

/* Images (batch, 784) float32 and labels (batch) int64, the same for every policy. */
mix_list *bench_step_data(mix_generator *generator, int64_t batch);
/* Makes and compiles the model under step->policy, which stays the global policy, and runs the first step. */
bool bench_step_prepare(bench_step *step, int64_t units, mix_list *data);
/* bench_candidate.run; the context is a bench_step. */
bool bench_step_run(void *step);
