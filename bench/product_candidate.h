/* One product of random matrices as a candidate, by the kernel that a plan would take. */
#ifndef BENCH_PRODUCT_CANDIDATE_H
#define BENCH_PRODUCT_CANDIDATE_H

#include "backend/host/kernel.h"
#include "cli/bench/advice.h"
#include "ops/table.h"

/* "NN,128,4096,784". */
bool bench_parse_shape(const char *text, bench_shape *shape);

typedef struct bench_product {
  bench_shape shape;
  mix_dtype dtype;
  int threads;
  int repeats; /* products in one run */
  const mix_kernel *kernel;
  mix_kernel_args args;
  mix_type inputs[2], output;
  mix_matmul_attributes attributes;
  const void *in[2];
  void *out;
  size_t workspace;
  /* Another library's state for the same operands, released with the product. */
  void *peer;
  void (*release_peer)(void *peer);
} bench_product;

/* NULL: no kernel, or out of memory (recorded). */
bench_product *bench_product_new(const bench_shape *shape, mix_dtype dtype, int threads);
/* The same by the kernel of that name, which the processor must be able to run. */
bench_product *bench_product_by(const bench_shape *shape, mix_dtype dtype, int threads, const char *kernel);
void bench_product_free(bench_product *product);
/* bench_candidate.run; the context is a bench_product. */
bool bench_product_run(void *product);

#endif
