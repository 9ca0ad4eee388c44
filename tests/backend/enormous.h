/* Operands and results of more than 2^31 elements in little memory. Inputs are untouched pages, which all map
 * one page of zeros, with a few numbers at the far end, where a 32-bit index would not find them. Outputs
 * have their own memory only at both ends, which the tests check; all addresses between share one window of
 * memory.
 *
 * An operand takes about 64 MB for any address range (resident sizes count a shared page once for each
 * mapping). Include <cmocka.h> first. */
#ifndef TESTS_BACKEND_ENORMOUS_H
#define TESTS_BACKEND_ENORMOUS_H

#include "support/skip.h"
#include "backend/run_op.h"
#include "base/processor.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WINDOW = 32 << 20, UNTOUCHED = 0x3f };

static const mix_dtype dtypes[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32};
#define FOR_EACH_DTYPE(name) for (size_t name = 0; name < sizeof dtypes / sizeof *dtypes; name++)

static inline size_t bytes_of(operand x) { return (size_t)mix_shape_size(x.shape) * mix_dtype_size(x.dtype); }
static inline void forget(operand x) { munmap(x.data, bytes_of(x)); }

/* Zeros. Skips the test if the address range is not available, and on plain x86-64, where it would take
 * minutes and runs the same loops as the other instruction sets. */
static inline operand vast(mix_dtype dtype, mix_shape shape) {
  if (!(mix_cpu_features() & MIX_CPU_AVX2)) {
    SKIP("too slow without AVX2");
  }
  operand x = {dtype, shape, NULL};
  x.data =
      mmap(NULL, bytes_of(x), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (x.data == MAP_FAILED) {
    SKIP("no address range of %zu bytes", bytes_of(x));
  }
  madvise(x.data, bytes_of(x), MADV_HUGEPAGE); /* fewer page faults, if the kernel supports it */
  return x;
}

/* An output: bytes UNTOUCHED in the first and the last window. All addresses between share one window of
 * memory. */
static inline operand written(mix_dtype dtype, mix_shape shape) {
  operand x = vast(dtype, shape);
  const size_t bytes = bytes_of(x), last = bytes - WINDOW;
  const int shared = memfd_create("between", 0), how = MAP_SHARED | MAP_FIXED | MAP_POPULATE;
  bool good = bytes > 2 * (size_t)WINDOW && shared >= 0 && ftruncate(shared, WINDOW) == 0;
  for (size_t at = WINDOW; good && at < last / WINDOW * WINDOW; at += WINDOW)
    good = mmap((char *)x.data + at, WINDOW, PROT_READ | PROT_WRITE, how, shared, 0) != MAP_FAILED;
  if (shared >= 0) close(shared);
  if (!good) {
    forget(x);
    SKIP("no shared memory mapping");
  }
  memset(x.data, UNTOUCHED, WINDOW);
  memset((char *)x.data + last, UNTOUCHED, WINDOW);
  return x;
}

/* Loops over the elements of both windows of an output. */
#define FOR_WRITTEN(x, i)                                                                                    \
  for (int64_t i = 0, all_ = mix_shape_size((x).shape), some_ = WINDOW / (int64_t)mix_dtype_size((x).dtype); \
       i < all_; i += i == some_ - 1 ? all_ - 2 * some_ + 1 : 1)

static inline void run_on(int threads, const mix_op *op, const void *attributes, const mix_program *program,
                          int input_count, const operand *inputs, int output_count, const operand *outputs) {
  mix_status status = run_step(&mix_backend_cpu, threads, op, attributes, program, input_count, inputs,
                               output_count, outputs);
  if (status != MIX_OK) print_message("%s\n", mix_error_message());
  assert_int_equal(status, MIX_OK);
}

/* Two threads, one output. */
static inline void run(const mix_op *op, const void *attributes, int count, const operand *inputs,
                       const operand *output) {
  run_on(2, op, attributes, NULL, count, inputs, 1, output);
}

#endif
