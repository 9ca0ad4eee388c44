/* The guide's training step as a contestant: in a policy, with or without loss scaling. */
#ifndef MIX_BENCH_STEP_CONTEST_H
#define MIX_BENCH_STEP_CONTEST_H

#include <mixtape/mixtape.h>

enum { BENCH_WIDTH = 784, BENCH_CLASSES = 10 };

typedef struct bench_step {
  const char *policy;
  bool unscaled; /* no loss scaling, whatever the policy */
  mix_function *function;
  mix_list *arguments;
  double first_seconds;
  size_t peak; /* bytes of the buffers of this model, its plan included */
  mix_plan_report report;
} bench_step;

/* Images (batch, 784) float32 and labels (batch) int64, the same for every policy. */
mix_list *bench_step_data(mix_generator *generator, int64_t batch);
/* Makes and compiles the model under its policy, which stays the global one, and runs the first step. */
bool bench_step_prepare(bench_step *step, int64_t units, mix_list *data);
bool bench_step_run(void *step);

#endif
