/* An optimizer's update of one variable as a candidate. */
#ifndef BENCH_UPDATE_CANDIDATE_H
#define BENCH_UPDATE_CANDIDATE_H

#include <mixtape/mixtape.h>

typedef struct bench_update_step {
  mix_optimizer *optimizer;
  mix_variable *variable;
  mix_function *function;
  mix_list *arguments;
  bool writes_float16; /* the step reads the weight in float16, so that the update writes that copy too */
} bench_update_step;

/* The variable is float32 and has the gradient's shape. False with the error recorded; `gradient` may be
 * NULL, after an error. */
bool bench_update_prepare(bench_update_step *update, mix_optimizer *optimizer, mix_tensor *gradient,
                          bool writes_float16);
/* bench_candidate.run; the context is a bench_update_step. */
bool bench_update_run(void *update);

#endif
