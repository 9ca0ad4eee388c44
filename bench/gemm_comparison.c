#include "gemm_comparison.h"
#include "base/processor.h"
#include "cli/bench/comparison.h"
#include "onednn_bf16.h"
#include <dlfcn.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <unistd.h>

/* Products of steps of the guide's model, 784-units-units-10: forward NN, gradients of inputs NT, of kernels
 * TN. */
const bench_gemm_shape bench_gemm_shapes[] = {
    /* large */
    {{0, 0, 8192, 4096, 784}, 0},
    {{0, 1, 8192, 784, 4096}, 0},
    {{1, 0, 784, 4096, 8192}, 0},
    {{0, 0, 128, 4096, 784}, 0},
    {{0, 1, 128, 784, 4096}, 0},
    {{1, 0, 784, 4096, 128}, 0},
    {{0, 0, 128, 4096, 4096}, 0},
    {{0, 1, 128, 4096, 4096}, 0},
    {{1, 0, 4096, 4096, 128}, 0},
    {{0, 0, 2048, 4096, 4096}, 0},
    {{0, 1, 2048, 4096, 4096}, 0},
    {{1, 0, 4096, 4096, 2048}, 0},
    /* few rows or columns */
    {{0, 0, 8192, 10, 4096}, 0},
    {{0, 1, 8192, 4096, 10}, 0},
    {{1, 0, 4096, 10, 8192}, 0},
    {{0, 0, 8192, 64, 784}, 0},
    {{0, 1, 8192, 784, 64}, 0},
    {{1, 0, 784, 64, 8192}, 0},
    {{0, 0, 8192, 64, 64}, 0},
    {{0, 1, 8192, 64, 64}, 0},
    {{1, 0, 64, 64, 8192}, 0},
    {{0, 0, 1, 4096, 4096}, 0},
    {{0, 0, 16, 4096, 4096}, 0},
    /* the 64-unit step at batch 128 */
    {{0, 0, 128, 64, 784}, 1},
    {{0, 0, 128, 64, 64}, 1},
    {{0, 0, 128, 10, 64}, 1},
    {{0, 1, 128, 64, 10}, 1},
    {{1, 0, 64, 10, 128}, 1},
    {{0, 1, 128, 64, 64}, 1},
    {{1, 0, 64, 64, 128}, 1},
    {{1, 0, 784, 64, 128}, 1},
};
const int bench_gemm_shape_count = sizeof bench_gemm_shapes / sizeof *bench_gemm_shapes;

/* ---- peers ---- */

typedef void sgemm_function(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                            int lda, const float *b, int ldb, float beta, float *c, int ldc);
typedef int dnnl_function(char ta, char tb, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
                          int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);
static sgemm_function *openblas;
static dnnl_function *onednn;

static void load(int threads) {
  char count[16];
  snprintf(count, sizeof count, "%d", threads);
  /* MIXTAPE_MAX_ISA caps the peers too. Old versions of OpenBLAS do not know new processors: they are told
   * the core type. */
  const uint32_t features = mix_cpu_features();
  if (mix_cpu_found() & MIX_CPU_AVX512)
    setenv("OPENBLAS_CORETYPE", features & MIX_CPU_AVX512 ? "SkylakeX" : "Haswell", 0);
  if (!(features & MIX_CPU_AVX512))
    setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 0);
  else if (!(features & MIX_CPU_AMX_BF16))
    setenv("ONEDNN_MAX_CPU_ISA", features & MIX_CPU_AVX512_BF16 ? "AVX512_CORE_BF16" : "AVX512_CORE", 0);
  setenv("OPENBLAS_NUM_THREADS", count, 1);
  setenv("OPENBLAS_THREAD_TIMEOUT", "4", 0);
  omp_set_num_threads(threads);
  void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (library) openblas = (sgemm_function *)dlsym(library, "cblas_sgemm");
  library = dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (!library) library = dlopen("libdnnl.so.3", RTLD_NOW | RTLD_LOCAL);
  if (library) onednn = (dnnl_function *)dlsym(library, "dnnl_sgemm");
}

static bool has_openblas(bench_product *x) { return x->dtype == MIX_FLOAT32 && openblas; }

static bool run_openblas(void *context) {
  const bench_product *x = context;
  const bench_shape *s = &x->shape;
  for (int i = 0; i < x->repeats; i++)
    openblas(101, s->ta ? 112 : 111, s->tb ? 112 : 111, (int)s->m, (int)s->n, (int)s->k, 1, x->in[0],
             (int)(s->ta ? s->m : s->k), x->in[1], (int)(s->tb ? s->k : s->n), 0, x->out, (int)s->n);
  return true;
}

static void release_onednn(void *product) { bench_onednn_free(product); }

static bool has_onednn(bench_product *x) {
  if (x->dtype == MIX_FLOAT32) return onednn != NULL;
  if (x->dtype == MIX_BFLOAT16 && !x->peer) {
    x->peer = bench_onednn_new(&x->shape, x->in[0], x->in[1], x->out);
    x->release_peer = release_onednn;
  }
  return x->peer != NULL;
}

static bool run_onednn(void *context) {
  const bench_product *x = context;
  const bench_shape *s = &x->shape;
  for (int i = 0; i < x->repeats; i++) {
    if (x->dtype == MIX_FLOAT32)
      onednn(s->ta ? 'T' : 'N', s->tb ? 'T' : 'N', s->m, s->n, s->k, 1, x->in[0], s->ta ? s->m : s->k,
             x->in[1], s->tb ? s->k : s->n, 0, x->out, s->n);
    else
      bench_onednn_run(x->peer);
  }
  return true;
}

static const bench_peer peers[] = {
    {"products, geometric mean: float32 / OpenBLAS's", "OpenBLAS", MIX_FLOAT32, 1, has_openblas,
     run_openblas},
    {"products, geometric mean: float32 / oneDNN's", "oneDNN", MIX_FLOAT32, 1, has_onednn, run_onednn},
    {"products, geometric mean: bfloat16 / oneDNN's", "its bf16", MIX_BFLOAT16, 1.7, has_onednn, run_onednn}};
const bench_peers bench_gemm_peers = {.load = load, .count = sizeof peers / sizeof *peers, .list = peers};

/* ---- one shape ---- */

enum { MAX_ROUNDS = 200 };

bool bench_gemm_measure(const bench_shape *shape, mix_dtype dtype, int threads, double budget,
                        bench_gemm_result *result) {
  static bool (*const run[BENCH_LIBRARIES])(void *) = {bench_product_run, run_openblas, run_onednn};
  static double times[BENCH_LIBRARIES][MAX_ROUNDS];
  *result = (bench_gemm_result){0};
  bench_product *x = bench_product_new(shape, dtype, threads);
  if (!x) return false;
  result->kernel = x->kernel->name;
  const bool present[BENCH_LIBRARIES] = {true, has_openblas(x), has_onednn(x)};
  const double operations = 2.0 * (double)shape->m * (double)shape->n * (double)shape->k;
  int repeats = operations < 1e8 ? (int)(1e8 / operations) + 1 : 1;
  if (repeats > 200) repeats = 200;
  int rounds = 0;
  const double start = bench_now();
  while (rounds < MAX_ROUNDS && (rounds < 5 || bench_now() - start < budget)) {
    for (int i = 0; i < BENCH_LIBRARIES; i++) {
      const int which = (i + rounds) % BENCH_LIBRARIES;
      if (!present[which]) continue;
      usleep(1000); /* lets the threads of the previous library go to sleep */
      x->repeats = 1;
      run[which](x);
      x->repeats = repeats;
      const double begin = bench_now();
      run[which](x);
      times[which][rounds] = (bench_now() - begin) / repeats;
    }
    rounds++;
  }
  for (int i = 0; i < BENCH_LIBRARIES; i++) {
    if (!present[i]) continue;
    result->median[i] = bench_median(times[i], rounds);
    result->best[i] = times[i][0];
  }
  bench_product_free(x);
  return true;
}

void bench_gemm_print(const bench_shape *s, const bench_gemm_result *r) {
  static const char *const names[BENCH_LIBRARIES] = {NULL, "OpenBLAS", "oneDNN"};
  const double rate = 2e-9 * (double)s->m * (double)s->n * (double)s->k / r->best[BENCH_OURS];
  printf("%c%c %5lld %5lld %5lld %10.1f us %6.0f", s->ta ? 'T' : 'N', s->tb ? 'T' : 'N', (long long)s->m,
         (long long)s->n, (long long)s->k, 1e6 * r->median[BENCH_OURS], rate);
  for (int p = BENCH_OPENBLAS; p < BENCH_LIBRARIES; p++)
    if (r->median[p] > 0)
      printf("   %s %5.2f (%5.2f)", names[p], r->median[p] / r->median[BENCH_OURS],
             r->best[p] / r->best[BENCH_OURS]);
  printf("   %s\n", r->kernel);
  fflush(stdout);
}

/* ---- all shapes ---- */

void bench_gemm_add(bench_gemm_summary *summary, const bench_gemm_shape *shape,
                    const bench_gemm_result *result) {
  for (int p = 0; p < BENCH_LIBRARIES; p++) {
    if (result->median[p] > 0)
      summary->logs[p] += log(result->median[p] / result->median[BENCH_OURS]), summary->compared[p]++;
    if (shape->in_small_step) summary->step[p] += result->median[p];
  }
}

void bench_gemm_print_summary(const bench_gemm_summary *summary) {
  if (summary->compared[BENCH_OPENBLAS])
    printf("geo-mean against OpenBLAS: %.2f\n",
           exp(summary->logs[BENCH_OPENBLAS] / summary->compared[BENCH_OPENBLAS]));
  if (summary->compared[BENCH_ONEDNN])
    printf("geo-mean against oneDNN: %.2f\n",
           exp(summary->logs[BENCH_ONEDNN] / summary->compared[BENCH_ONEDNN]));
  if (summary->step[BENCH_OURS] > 0)
    printf("products of one 64-unit step: %.1f us (OpenBLAS %.1f, oneDNN %.1f)\n",
           1e6 * summary->step[BENCH_OURS], 1e6 * summary->step[BENCH_OPENBLAS],
           1e6 * summary->step[BENCH_ONEDNN]);
}
