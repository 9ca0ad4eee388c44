/* Table products: products of 31 shapes in three dtypes, beside OpenBLAS and oneDNN. */
#include "gemm_comparison.h"
#include "tables.h"

/* --quick leaves out what takes longer than some tenths of a second. */
bool bench_products(const bench_settings *settings) {
  static const mix_dtype dtypes[] = {MIX_FLOAT32, MIX_FLOAT16, MIX_BFLOAT16};
  const double max_operations = settings->quick ? 4e9 : 1e12;
  json_t *rows = json_array();
  json_object_set_new(settings->json, "products", rows);
  bench_gemm_peers.load(settings->threads);
  for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
    bench_gemm_summary summary = {0};
    if (settings->text)
      printf("\nproducts in %s, %d threads: microseconds (median), GFLOP/s (best), time of the peer / ours "
             "(median; best)\n",
             mix_dtype_name(dtypes[d]), settings->threads);
    for (int i = 0; i < bench_gemm_shape_count; i++) {
      const bench_shape *s = &bench_gemm_shapes[i].shape;
      bench_gemm_result r;
      if ((double)s->m * (double)s->n * (double)s->k > max_operations) continue;
      if (!bench_gemm_measure(s, dtypes[d], settings->threads, settings->quick ? 0.05 : 1, &r)) return false;
      bench_gemm_add(&summary, &bench_gemm_shapes[i], &r);
      if (settings->text) bench_gemm_print(s, &r);
      const char op[] = {s->ta ? 'T' : 'N', s->tb ? 'T' : 'N', 0};
      json_array_append_new(rows, json_pack("{s:s, s:s, s:I, s:I, s:I, s:s, s:f, s:f, s:f, s:f}", "dtype",
                                            mix_dtype_name(dtypes[d]), "op", op, "m", (json_int_t)s->m, "n",
                                            (json_int_t)s->n, "k", (json_int_t)s->k, "kernel", r.kernel,
                                            "seconds", r.median[BENCH_OURS], "best_seconds",
                                            r.best[BENCH_OURS], "openblas_seconds", r.median[BENCH_OPENBLAS],
                                            "onednn_seconds", r.median[BENCH_ONEDNN]));
    }
    if (settings->text) bench_gemm_print_summary(&summary);
  }
  return true;
}
