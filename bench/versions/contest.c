#include "contest.h"
#include "../gemm_contest.h"
#include "../step_contest.h"
#include "cli/cli.h"
#include <stdlib.h>

typedef struct contestant {
  bench_step step;
  bench_product *product; /* NULL: the step */
} contestant;

BENCH_CONTEST bench_contest_step bench_contest_make_step;
BENCH_CONTEST bench_contest_product bench_contest_make_product;
BENCH_CONTEST bench_contest_run bench_contest_run_once;

void *bench_contest_make_step(const char *policy, int64_t units, int64_t batch, int threads) {
  contestant *x = calloc(1, sizeof *x);
  if (!x) return NULL;
  x->step.policy = policy;
  mix_generator *generator = mix_set_threads(threads) == MIX_OK ? mix_generator_new(1) : NULL;
  mix_list *data = generator ? bench_step_data(generator, batch) : NULL;
  if (data && bench_step_prepare(&x->step, units, data)) return x;
  cli_fail();
  free(x);
  return NULL;
}

void *bench_contest_make_product(const char *dtype, const char *text, int threads) {
  contestant *x = calloc(1, sizeof *x);
  bench_shape shape;
  if (x && bench_parse_shape(text, &shape))
    x->product = bench_product_new(&shape, mix_dtype_from_name(dtype), threads);
  if (x && x->product) return x;
  cli_fail();
  free(x);
  return NULL;
}

bool bench_contest_run_once(void *context) {
  contestant *x = context;
  return x->product ? bench_product_ours(x->product) : bench_step_run(&x->step);
}
