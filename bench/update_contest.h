/* What an optimizer's update is measured against: a plain copy by the same threads. */
#ifndef MIX_BENCH_UPDATE_CONTEST_H
#define MIX_BENCH_UPDATE_CONTEST_H

#include "cli/cli.h"

/* An update of one variable, captured. */
typedef struct bench_updated {
  mix_optimizer *optimizer;
  mix_variable *variable;
  mix_function *function;
  mix_list *arguments;
  bool copies; /* something of the step reads the weight in float16 */
} bench_updated;

/* Of float32, of the gradient's shape. False with the error recorded; NULL in `gradient`: false. */
bool bench_updated_make(bench_updated *x, mix_optimizer *optimizer, mix_tensor *gradient, bool copies);
/* A contestant; the context is a bench_updated. */
bool bench_updated_run(void *context);

typedef struct bench_copied {
  char *from, *to;
  size_t bytes;
  int threads;
} bench_copied;

bool bench_copied_make(bench_copied *x, size_t bytes, int threads);
void bench_copied_free(bench_copied *x);
/* A contestant; the context is a bench_copied. */
bool bench_copied_run(void *context);

#endif
