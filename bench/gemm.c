/* bench/gemm: products of one dtype, or a single one, beside the peers. The table products has the same for
 * three dtypes. */
#include "base/processor.h"
#include "gemm_comparison.h"
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
  bool quick = false, json = false;
  int threads = mix_cpu_cores(), count = bench_gemm_shape_count, printed = 0;
  mix_dtype dtype = MIX_FLOAT32;
  bench_gemm_shape own = {0};
  const bench_gemm_shape *shapes = bench_gemm_shapes;
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--quick"))
      quick = true;
    else if (!strcmp(argv[i], "--json"))
      json = true;
    else if (!strcmp(argv[i], "--threads") && i + 1 < argc)
      threads = atoi(argv[++i]);
    else if (!strcmp(argv[i], "--dtype") && i + 1 < argc)
      dtype = mix_dtype_from_name(argv[++i]);
    else if (!strcmp(argv[i], "--shape") && i + 1 < argc && bench_parse_shape(argv[++i], &own.shape))
      shapes = &own, count = 1;
    else {
      fprintf(stderr,
              "usage: %s [--quick] [--json] [--threads N] [--dtype NAME] [--shape NN|NT|TN|TT,M,N,K]\n",
              argv[0]);
      return 2;
    }
  }
  if (threads < 1) threads = 1;
  bench_gemm_peers.load(threads);
  bench_gemm_summary summary = {0};
  if (json)
    printf("[");
  else
    printf("%d threads, %s; microseconds (median), GFLOP/s (best), time of the peer / ours (median; best)\n",
           threads, mix_dtype_name(dtype));
  for (int i = 0; i < count; i++) {
    const bench_shape *s = &shapes[i].shape;
    bench_gemm_result r;
    if (quick && (double)s->m * (double)s->n * (double)s->k > 4e9) continue;
    if (!bench_gemm_measure(s, dtype, threads, quick ? 0.15 : 1.5, &r)) {
      fprintf(stderr, "%s\n", mix_error() ? mix_error_message() : "no kernel takes this product");
      return 1;
    }
    bench_gemm_add(&summary, &shapes[i], &r);
    if (json)
      printf("%s\n{\"op\":\"%c%c\",\"m\":%lld,\"n\":%lld,\"k\":%lld,\"kernel\":\"%s\","
             "\"threads\":%d,\"seconds\":%.9f,\"openblas\":%.9f,\"onednn\":%.9f}",
             printed++ ? "," : "", s->ta ? 'T' : 'N', s->tb ? 'T' : 'N', (long long)s->m, (long long)s->n,
             (long long)s->k, r.kernel, threads, r.median[BENCH_OURS], r.median[BENCH_OPENBLAS],
             r.median[BENCH_ONEDNN]);
    else
      bench_gemm_print(s, &r);
  }
  if (json)
    printf("\n]\n");
  else
    bench_gemm_print_summary(&summary);
  return 0;
}
