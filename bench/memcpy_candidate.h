/* memcpy by the threads of a table, as the candidate beside optimizers' updates. */
#ifndef BENCH_MEMCPY_CANDIDATE_H
#define BENCH_MEMCPY_CANDIDATE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct bench_memcpy {
  char *from, *to;
  size_t bytes;
  int threads;
} bench_memcpy;

bool bench_memcpy_prepare(bench_memcpy *x, size_t bytes, int threads);
void bench_memcpy_free(bench_memcpy *x);
/* bench_candidate.run; the context is a bench_memcpy. */
bool bench_memcpy_run(void *context);

#endif
