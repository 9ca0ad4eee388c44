#include "memcpy_candidate.h"
#include "base/alloc.h"
#include <omp.h>
#include <string.h>

bool bench_memcpy_prepare(bench_memcpy *x, size_t bytes, int threads) {
  *x = (bench_memcpy){
      .from = mix_alloc_buffer(bytes), .to = mix_alloc_buffer(bytes), .bytes = bytes, .threads = threads};
  if (!x->from || !x->to) return false;
  memset(x->from, 1, bytes);
  return true;
}

void bench_memcpy_free(bench_memcpy *x) {
  mix_free_buffer(x->from, x->bytes);
  mix_free_buffer(x->to, x->bytes);
}

bool bench_memcpy_run(void *context) {
  const bench_memcpy *x = context;
#pragma omp parallel num_threads(x->threads)
  {
    const size_t share = x->bytes / (size_t)x->threads / 64 * 64,
                 begin = share * (size_t)omp_get_thread_num();
    const size_t end = omp_get_thread_num() + 1 == omp_get_num_threads() ? x->bytes : begin + share;
    memcpy(x->to + begin, x->from + begin, end - begin);
  }
  return true;
}
