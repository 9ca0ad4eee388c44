/* Products of float32 matrices: this library's kernels beside OpenBLAS and oneDNN, interleaved in one process.
 *
 * bench_gemm [--quick] [--json] [--threads N] [--shape NN|NT|TN|TT,M,N,K] [--dtype float32|float16|bfloat16|float64]
 *
 * The peers are loaded at run time (libopenblas.so.0, libdnnl.so.2) where they are installed, and serve float32 alone; without
 * them only our own times are printed. OpenBLAS is told its core type, without which old versions take new processors for ancient
 * ones. */
#include "backend/cpu/gemm/kernels.h"
#include "base/alloc.h"
#include "ops/table.h"
#include "tensor/convert.h"
#include "tensor/shape.h"
#include <dlfcn.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct bench_shape {
  bool ta, tb;
  int64_t m, n, k;
  char set; /* l: large, s: skinny, u: one training step of the 64-unit model at batch 128 */
} bench_shape;

/* Of a step of the guide's model, 784-units-units-10: forward NN, gradients of inputs NT, of kernels TN. */
static const bench_shape all_shapes[] = {
    {0, 0, 8192, 4096, 784, 'l'}, {0, 1, 8192, 784, 4096, 'l'},  {1, 0, 784, 4096, 8192, 'l'},  {0, 0, 128, 4096, 784, 'l'},
    {0, 1, 128, 784, 4096, 'l'},  {1, 0, 784, 4096, 128, 'l'},   {0, 0, 128, 4096, 4096, 'l'},  {0, 1, 128, 4096, 4096, 'l'},
    {1, 0, 4096, 4096, 128, 'l'}, {0, 0, 2048, 4096, 4096, 'l'}, {0, 1, 2048, 4096, 4096, 'l'}, {1, 0, 4096, 4096, 2048, 'l'},
    {0, 0, 8192, 10, 4096, 's'},  {0, 1, 8192, 4096, 10, 's'},   {1, 0, 4096, 10, 8192, 's'},   {0, 0, 8192, 64, 784, 's'},
    {0, 1, 8192, 784, 64, 's'},   {1, 0, 784, 64, 8192, 's'},    {0, 0, 8192, 64, 64, 's'},     {0, 1, 8192, 64, 64, 's'},
    {1, 0, 64, 64, 8192, 's'},    {0, 0, 1, 4096, 4096, 's'},    {0, 0, 16, 4096, 4096, 's'},   {0, 0, 128, 64, 784, 'u'},
    {0, 0, 128, 64, 64, 'u'},     {0, 0, 128, 10, 64, 'u'},      {0, 1, 128, 64, 10, 'u'},      {1, 0, 64, 10, 128, 'u'},
    {0, 1, 128, 64, 64, 'u'},     {1, 0, 64, 64, 128, 'u'},      {1, 0, 784, 64, 128, 'u'},
};
enum { SHAPES = sizeof all_shapes / sizeof *all_shapes, MOST_ROUNDS = 200 };

typedef struct case_data {
  const bench_shape *shape;
  mix_kernel_args args;
  mix_kernel_value inputs[2], output;
  mix_matmul_attributes attributes;
  const void *in[2];
  void *out;
  const mix_kernel *kernel;
  int threads, repeats;
} case_data;

typedef void sgemm_function(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b,
                            int ldb, float beta, float *c, int ldc);
typedef int dnnl_function(char ta, char tb, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda,
                          const float *b, int64_t ldb, float beta, float *c, int64_t ldc);
static sgemm_function *openblas;
static dnnl_function *onednn;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void run_ours(case_data *x) {
#pragma omp parallel num_threads(x->threads)
  {
    const mix_team team = {.rank = omp_get_thread_num(), .size = x->kernel->serial && x->kernel->serial(&x->args) ? 1 : x->threads};
    for (int i = 0; i < x->repeats; i++) {
      if (team.rank < team.size) x->kernel->run(&x->args, &team);
#pragma omp barrier
    }
  }
}

static void run_openblas(case_data *x) {
  const bench_shape *s = x->shape;
  for (int i = 0; i < x->repeats; i++)
    openblas(101, s->ta ? 112 : 111, s->tb ? 112 : 111, (int)s->m, (int)s->n, (int)s->k, 1, x->in[0], (int)(s->ta ? s->m : s->k),
             x->in[1], (int)(s->tb ? s->k : s->n), 0, x->out, (int)s->n);
}

static void run_onednn(case_data *x) {
  const bench_shape *s = x->shape;
  for (int i = 0; i < x->repeats; i++)
    onednn(s->ta ? 'T' : 'N', s->tb ? 'T' : 'N', s->m, s->n, s->k, 1, x->in[0], s->ta ? s->m : s->k, x->in[1], s->tb ? s->k : s->n,
           0, x->out, s->n);
}

static void *random_matrix(int64_t count, mix_dtype dtype, uint64_t seed) {
  void *data = mix_alloc_buffer((size_t)count * mix_dtype_size(dtype));
  for (int64_t i = 0; data && i < count; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    mix_store_double(data, dtype, i, (double)(int64_t)(seed >> 40) / (1 << 23) - 1);
  }
  return data;
}

/* Medians (and best) seconds of each contender: ours, OpenBLAS, oneDNN; 0 where absent. */
static bool measure(const bench_shape *shape, mix_dtype dtype, int threads, double budget, double medians[3], double best[3],
                    const char **name) {
  case_data x = {.shape = shape, .threads = threads, .attributes = {.transpose_a = shape->ta, .transpose_b = shape->tb}};
  x.inputs[0] = (mix_kernel_value){dtype, shape->ta ? MIX_SHAPE(shape->k, shape->m) : MIX_SHAPE(shape->m, shape->k)};
  x.inputs[1] = (mix_kernel_value){dtype, shape->tb ? MIX_SHAPE(shape->n, shape->k) : MIX_SHAPE(shape->k, shape->n)};
  x.output = (mix_kernel_value){dtype, MIX_SHAPE(shape->m, shape->n)};
  void *a = random_matrix(shape->m * shape->k, dtype, 1), *b = random_matrix(shape->k * shape->n, dtype, 2);
  void *c = random_matrix(shape->m * shape->n, dtype, 3);
  x.in[0] = a, x.in[1] = b, x.out = c;
  x.args = (mix_kernel_args){.op = &mix_op_matmul,
                             .attributes = &x.attributes,
                             .input_count = 2,
                             .output_count = 1,
                             .input_types = x.inputs,
                             .output_types = &x.output,
                             .inputs = x.in,
                             .outputs = &x.out};
  for (const mix_kernel *const *k = mix_cpu_matmul_kernels; *k && !x.kernel; k++)
    if (((*k)->needs & mix_cpu_features()) == (*k)->needs && !(*k)->refuses(&x.args)) x.kernel = *k;
  if (!a || !b || !c || !x.kernel) return false;
  *name = x.kernel->name;
  const size_t workspace = x.kernel->workspace(&x.args, threads);
  x.args.workspace = mix_alloc_buffer(workspace);
  if (!x.args.workspace || !x.kernel->prepare(&x.args, threads)) return false;

  void (*const contenders[3])(case_data *) = {run_ours, dtype == MIX_FLOAT32 && openblas ? run_openblas : NULL,
                                              dtype == MIX_FLOAT32 && onednn ? run_onednn : NULL};
  const double operations = 2.0 * (double)shape->m * (double)shape->n * (double)shape->k;
  x.repeats = operations < 1e8 ? (int)(1e8 / operations) + 1 : 1;
  if (x.repeats > 200) x.repeats = 200;
  static double times[3][MOST_ROUNDS];
  int rounds = 0;
  const double start = now();
  while (rounds < MOST_ROUNDS && (rounds < 5 || now() - start < budget)) {
    for (int i = 0; i < 3; i++) {
      const int which = (i + rounds) % 3;
      if (!contenders[which]) continue;
      usleep(1000); /* lets the threads of the one before go to sleep */
      const int repeats = x.repeats;
      x.repeats = 1;
      contenders[which](&x);
      x.repeats = repeats;
      const double begin = now();
      contenders[which](&x);
      times[which][rounds] = (now() - begin) / x.repeats;
    }
    rounds++;
  }
  for (int i = 0; i < 3; i++) {
    medians[i] = best[i] = 0;
    if (!contenders[i]) continue;
    qsort(times[i], (size_t)rounds, sizeof(double), by_value);
    medians[i] = times[i][rounds / 2], best[i] = times[i][0];
  }
  x.kernel->unprepare(x.args.prepared);
  mix_free_buffer(x.args.workspace, workspace);
  mix_free_buffer(a, mix_value_bytes(dtype, x.inputs[0].shape));
  mix_free_buffer(b, mix_value_bytes(dtype, x.inputs[1].shape));
  mix_free_buffer(c, mix_value_bytes(dtype, x.output.shape));
  return true;
}

static void load_peers(int threads) {
  char count[16];
  snprintf(count, sizeof count, "%d", threads);
  if (mix_cpu_found() & MIX_CPU_AVX512) setenv("OPENBLAS_CORETYPE", "SkylakeX", 0);
  setenv("OPENBLAS_NUM_THREADS", count, 1);
  setenv("OPENBLAS_THREAD_TIMEOUT", "4", 0);
  omp_set_num_threads(threads);
  void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (library) openblas = (sgemm_function *)dlsym(library, "cblas_sgemm");
  library = dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (!library) library = dlopen("libdnnl.so.3", RTLD_NOW | RTLD_LOCAL);
  if (library) onednn = (dnnl_function *)dlsym(library, "dnnl_sgemm");
}

static bool parse_shape(const char *text, bench_shape *shape) {
  char ta, tb;
  long long m, n, k;
  if (sscanf(text, "%c%c,%lld,%lld,%lld", &ta, &tb, &m, &n, &k) != 5) return false;
  *shape = (bench_shape){ta == 'T', tb == 'T', m, n, k, 'l'};
  return m > 0 && n > 0 && k > 0;
}

int main(int argc, char **argv) {
  bool quick = false, json = false;
  int threads = mix_cpu_cores(), count = SHAPES;
  mix_dtype dtype = MIX_FLOAT32;
  bench_shape own;
  const bench_shape *shapes = all_shapes;
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--quick"))
      quick = true;
    else if (!strcmp(argv[i], "--json"))
      json = true;
    else if (!strcmp(argv[i], "--threads") && i + 1 < argc)
      threads = atoi(argv[++i]);
    else if (!strcmp(argv[i], "--dtype") && i + 1 < argc)
      dtype = mix_dtype_from_name(argv[++i]);
    else if (!strcmp(argv[i], "--shape") && i + 1 < argc && parse_shape(argv[++i], &own))
      shapes = &own, count = 1;
    else {
      fprintf(stderr, "usage: %s [--quick] [--json] [--threads N] [--dtype NAME] [--shape NN|NT|TN|TT,M,N,K]\n", argv[0]);
      return 2;
    }
  }
  if (threads < 1) threads = 1;
  load_peers(threads);
  double logs[2] = {0}, step[3] = {0};
  int compared[2] = {0};
  if (json)
    printf("[");
  else
    printf("%d threads, %s; microseconds (median), GFLOP/s (best), time of the peer / ours (median; best)\n", threads,
           mix_dtype_name(dtype));
  for (int i = 0; i < count; i++) {
    const bench_shape *s = shapes + i;
    double t[3], best[3];
    const char *name;
    if (quick && (double)s->m * (double)s->n * (double)s->k > 4e9) continue;
    if (!measure(s, dtype, threads, quick ? 0.15 : 1.5, t, best, &name)) {
      fprintf(stderr, "%s\n", mix_error() ? mix_error_message() : "no kernel takes this product");
      return 1;
    }
    for (int p = 0; p < 2; p++)
      if (t[p + 1] > 0) logs[p] += log(t[p + 1] / t[0]), compared[p]++;
    for (int p = 0; p < 3 && s->set == 'u'; p++) step[p] += t[p];
    const double rate = 2e-9 * (double)s->m * (double)s->n * (double)s->k / best[0];
    if (json) {
      printf("%s\n{\"op\":\"%c%c\",\"m\":%lld,\"n\":%lld,\"k\":%lld,\"kernel\":\"%s\","
             "\"threads\":%d,\"seconds\":%.9f,\"openblas\":%.9f,\"onednn\":%.9f}",
             i ? "," : "", s->ta ? 'T' : 'N', s->tb ? 'T' : 'N', (long long)s->m, (long long)s->n, (long long)s->k, name, threads,
             t[0], t[1], t[2]);
    } else {
      printf("%c%c %5lld %5lld %5lld %10.1f us %6.0f", s->ta ? 'T' : 'N', s->tb ? 'T' : 'N', (long long)s->m, (long long)s->n,
             (long long)s->k, 1e6 * t[0], rate);
      if (t[1] > 0) printf("   OpenBLAS %5.2f (%5.2f)", t[1] / t[0], best[1] / best[0]);
      if (t[2] > 0) printf("   oneDNN %5.2f (%5.2f)", t[2] / t[0], best[2] / best[0]);
      printf("   %s\n", name);
    }
    fflush(stdout);
  }
  if (json) printf("\n]\n");
  for (int p = 0; p < 2 && !json; p++)
    if (compared[p]) printf("geo-mean against %s: %.2f\n", p ? "oneDNN" : "OpenBLAS", exp(logs[p] / compared[p]));
  if (!json && step[0] > 0)
    printf("products of one 64-unit step: %.1f us (OpenBLAS %.1f, oneDNN %.1f)\n", 1e6 * step[0], 1e6 * step[1], 1e6 * step[2]);
  return 0;
}
