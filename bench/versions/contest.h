/* What a version of the library shows to bench/versions: steps and products as contestants. The module build/.../bench/contest.so holds a
 * whole library, whose symbols are its own, so that several versions run side by side in one process. */
#ifndef MIX_BENCH_CONTEST_H
#define MIX_BENCH_CONTEST_H

#include <stdbool.h>
#include <stdint.h>

#define BENCH_CONTEST __attribute__((visibility("default")))

/* The guide's training step under a policy. NULL: it cannot be made; the reason is printed. */
typedef void *bench_contest_step(const char *policy, int64_t units, int64_t batch, int threads);
/* A product, "NN,128,4096,784", of matrices of a dtype. */
typedef void *bench_contest_product(const char *dtype, const char *shape, int threads);
/* bench_contestant.run of either. */
typedef bool bench_contest_run(void *contestant);

#define BENCH_CONTEST_STEP "bench_contest_make_step"
#define BENCH_CONTEST_PRODUCT "bench_contest_make_product"
#define BENCH_CONTEST_RUN "bench_contest_run_once"

#endif
