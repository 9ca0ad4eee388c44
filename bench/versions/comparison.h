/* What the module bench/comparison.so of a build exports: its step and its products as candidates. The module
 * holds a whole library with symbols of its own, so that several versions run in one process. */
#ifndef BENCH_VERSIONS_COMPARISON_H
#define BENCH_VERSIONS_COMPARISON_H

#include <stdbool.h>
#include <stdint.h>

#define BENCH_COMPARISON __attribute__((visibility("default")))

/* The guide's training step under a policy. NULL after a message. */
typedef void *bench_comparison_step(const char *policy, int64_t units, int64_t batch, int threads);
/* A product, "NN,128,4096,784", of matrices of a dtype. NULL after a message. */
typedef void *bench_comparison_product(const char *dtype, const char *shape, int threads);
/* The training step of a model by name or from a file (`mixtape train --model`), on made-up data. NULL after
 * a message. Modules of 2026-11-29 and before do not have it. */
typedef void *bench_comparison_model(const char *model, const char *policy, int64_t batch, int threads);
/* bench_candidate.run of all. */
typedef bool bench_comparison_run(void *candidate);

/* Exported names. They and the types above stay as they are, so that versions can load modules of old builds
 * (contest.so) and old builds can load this one. */
#define BENCH_COMPARISON_STEP bench_contest_make_step
#define BENCH_COMPARISON_PRODUCT bench_contest_make_product
#define BENCH_COMPARISON_MODEL bench_comparison_make_model
#define BENCH_COMPARISON_RUN bench_contest_run_once
#define BENCH_COMPARISON_NAME(symbol) BENCH_COMPARISON_TEXT(symbol)
#define BENCH_COMPARISON_TEXT(symbol) #symbol

#endif
