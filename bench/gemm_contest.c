#include "gemm_contest.h"
#include "backend/host/barrier.h"
#include "backend/cpu/gemm/kernels.h"
#include "base/alloc.h"
#include "bench.h"
#include "onednn_bf16.h"
#include "ops/table.h"
#include "tensor/convert.h"
#include "tensor/shape.h"
#include <dlfcn.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Of a step of the guide's model, 784-units-units-10: forward NN, gradients of inputs NT, of kernels TN. */
const bench_shape bench_gemm_shapes[] = {
    {0, 0, 8192, 4096, 784, 'l'},  {0, 1, 8192, 784, 4096, 'l'},  {1, 0, 784, 4096, 8192, 'l'},
    {0, 0, 128, 4096, 784, 'l'},   {0, 1, 128, 784, 4096, 'l'},   {1, 0, 784, 4096, 128, 'l'},
    {0, 0, 128, 4096, 4096, 'l'},  {0, 1, 128, 4096, 4096, 'l'},  {1, 0, 4096, 4096, 128, 'l'},
    {0, 0, 2048, 4096, 4096, 'l'}, {0, 1, 2048, 4096, 4096, 'l'}, {1, 0, 4096, 4096, 2048, 'l'},
    {0, 0, 8192, 10, 4096, 's'},   {0, 1, 8192, 4096, 10, 's'},   {1, 0, 4096, 10, 8192, 's'},
    {0, 0, 8192, 64, 784, 's'},    {0, 1, 8192, 784, 64, 's'},    {1, 0, 784, 64, 8192, 's'},
    {0, 0, 8192, 64, 64, 's'},     {0, 1, 8192, 64, 64, 's'},     {1, 0, 64, 64, 8192, 's'},
    {0, 0, 1, 4096, 4096, 's'},    {0, 0, 16, 4096, 4096, 's'},   {0, 0, 128, 64, 784, 'u'},
    {0, 0, 128, 64, 64, 'u'},      {0, 0, 128, 10, 64, 'u'},      {0, 1, 128, 64, 10, 'u'},
    {1, 0, 64, 10, 128, 'u'},      {0, 1, 128, 64, 64, 'u'},      {1, 0, 64, 64, 128, 'u'},
    {1, 0, 784, 64, 128, 'u'},
};
const int bench_gemm_shape_count = sizeof bench_gemm_shapes / sizeof *bench_gemm_shapes;

bool bench_parse_shape(const char *text, bench_shape *shape) {
  char ta, tb;
  long long m, n, k;
  if (sscanf(text, "%c%c,%lld,%lld,%lld", &ta, &tb, &m, &n, &k) != 5) return false;
  *shape = (bench_shape){ta == 'T', tb == 'T', m, n, k, 'l'};
  return m > 0 && n > 0 && k > 0;
}

enum { MAX_ROUNDS = 200 };

struct bench_product {
  bench_shape shape;
  mix_dtype dtype;
  mix_kernel_args args;
  mix_type inputs[2], output;
  mix_matmul_attributes attributes;
  const void *in[2];
  void *out;
  size_t workspace;
  const mix_kernel *kernel;
  int threads, repeats;
  bench_onednn *onednn;
};

typedef void sgemm_function(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                            int lda, const float *b, int ldb, float beta, float *c, int ldc);
typedef int dnnl_function(char ta, char tb, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
                          int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);
static sgemm_function *openblas;
static dnnl_function *onednn;

/* As in a plan: one parallel region, and the executor's own barrier. */
static void run_ours(bench_product *x) {
  static mix_barrier barrier = {.spins = 300};
#pragma omp parallel num_threads(x->threads)
  {
    const bool serial = x->kernel->serial && x->kernel->serial(&x->args);
    const mix_team team = {
        .rank = omp_get_thread_num(), .size = serial ? 1 : x->threads, .barrier = &barrier};
    for (int i = 0; i < x->repeats; i++) {
      if (team.rank < team.size) x->kernel->run(&x->args, &team);
      mix_barrier_wait(&barrier, x->threads);
    }
  }
}

static void run_openblas(bench_product *x) {
  const bench_shape *s = &x->shape;
  for (int i = 0; i < x->repeats; i++)
    openblas(101, s->ta ? 112 : 111, s->tb ? 112 : 111, (int)s->m, (int)s->n, (int)s->k, 1, x->in[0],
             (int)(s->ta ? s->m : s->k), x->in[1], (int)(s->tb ? s->k : s->n), 0, x->out, (int)s->n);
}

static void run_onednn(bench_product *x) {
  const bench_shape *s = &x->shape;
  for (int i = 0; i < x->repeats; i++)
    onednn(s->ta ? 'T' : 'N', s->tb ? 'T' : 'N', s->m, s->n, s->k, 1, x->in[0], s->ta ? s->m : s->k, x->in[1],
           s->tb ? s->k : s->n, 0, x->out, s->n);
}

static void *random_matrix(int64_t count, mix_dtype dtype, uint64_t seed) {
  void *data = mix_alloc_buffer((size_t)count * mix_dtype_size(dtype));
  for (int64_t i = 0; data && i < count; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    mix_store_double(data, dtype, i, (double)(int64_t)(seed >> 40) / (1 << 23) - 1);
  }
  return data;
}

const mix_kernel *bench_gemm_kernel(const mix_kernel_args *args) {
  for (const mix_kernel *const *k = mix_cpu_matmul_kernels; *k; k++)
    if (((*k)->needs & mix_cpu_features()) == (*k)->needs && !(*k)->unsupported_reason(args)) return *k;
  return NULL;
}

bench_product *bench_product_new(const bench_shape *shape, mix_dtype dtype, int threads) {
  bench_product *x = mix_calloc(1, sizeof *x);
  if (!x) return NULL;
  *x = (bench_product){.shape = *shape, .dtype = dtype, .threads = threads, .repeats = 1};
  x->attributes = (mix_matmul_attributes){.transpose_a = shape->ta, .transpose_b = shape->tb};
  x->inputs[0] = (mix_type){dtype, shape->ta ? MIX_SHAPE(shape->k, shape->m) : MIX_SHAPE(shape->m, shape->k)};
  x->inputs[1] = (mix_type){dtype, shape->tb ? MIX_SHAPE(shape->n, shape->k) : MIX_SHAPE(shape->k, shape->n)};
  x->output = (mix_type){dtype, MIX_SHAPE(shape->m, shape->n)};
  x->in[0] = random_matrix(shape->m * shape->k, dtype, 1),
  x->in[1] = random_matrix(shape->k * shape->n, dtype, 2);
  x->out = random_matrix(shape->m * shape->n, dtype, 3);
  x->args = (mix_kernel_args){.op = &mix_op_matmul,
                              .attributes = &x->attributes,
                              .input_count = 2,
                              .output_count = 1,
                              .input_types = x->inputs,
                              .output_types = &x->output,
                              .inputs = x->in,
                              .outputs = &x->out};
  const mix_kernel *kernel = bench_gemm_kernel(&x->args);
  bool good = x->in[0] && x->in[1] && x->out && kernel;
  if (good) {
    x->workspace = kernel->workspace(&x->args, threads);
    x->args.workspace = mix_alloc_buffer(x->workspace);
    good = x->args.workspace && kernel->prepare(&x->args, threads);
  }
  if (good) {
    x->kernel = kernel;
    return x;
  }
  bench_product_free(x);
  return NULL;
}

void bench_product_free(bench_product *x) {
  if (!x) return;
  bench_onednn_free(x->onednn);
  if (x->kernel) x->kernel->release(x->args.prepared);
  mix_free_buffer(x->args.workspace, x->workspace);
  for (int i = 0; i < 2; i++)
    mix_free_buffer((void *)(uintptr_t)x->in[i], mix_value_bytes(x->dtype, x->inputs[i].shape));
  mix_free_buffer(x->out, mix_value_bytes(x->dtype, x->output.shape));
  mix_free(x);
}

bool bench_product_keep_packed(bench_product *x) {
  const size_t bytes = mix_gemm_keep_packed(&x->args, x->threads, false);
  if (bytes == 0) return false;
  mix_free_buffer(x->args.workspace, x->workspace);
  x->workspace = 0;
  x->args.workspace = mix_alloc_buffer(bytes);
  if (!x->args.workspace) return false;
  x->workspace = bytes;
  run_ours(x);
  return mix_gemm_keep_packed(&x->args, x->threads, true) > 0;
}

bool bench_product_has(bench_product *x, int peer) {
  if (peer == BENCH_OPENBLAS) return x->dtype == MIX_FLOAT32 && openblas;
  if (peer == BENCH_ONEDNN && x->dtype == MIX_BFLOAT16 && !x->onednn)
    x->onednn = bench_onednn_new(&x->shape, x->in[0], x->in[1], x->out);
  if (peer == BENCH_ONEDNN) return x->dtype == MIX_FLOAT32 ? onednn != NULL : x->onednn != NULL;
  return true;
}

static void run_peer(bench_product *x, int peer) {
  if (peer == BENCH_OURS)
    run_ours(x);
  else if (peer == BENCH_OPENBLAS)
    run_openblas(x);
  else if (x->dtype == MIX_FLOAT32)
    run_onednn(x);
  else
    for (int i = 0; i < x->repeats; i++) bench_onednn_run(x->onednn);
}
bool bench_product_ours(void *x) { return run_peer(x, BENCH_OURS), true; }
bool bench_product_openblas(void *x) { return run_peer(x, BENCH_OPENBLAS), true; }
bool bench_product_onednn(void *x) { return run_peer(x, BENCH_ONEDNN), true; }

bool bench_gemm_measure(const bench_shape *shape, mix_dtype dtype, int threads, double budget,
                        bench_gemm_result *result) {
  *result = (bench_gemm_result){0};
  bench_product *x = bench_product_new(shape, dtype, threads);
  if (!x) return false;
  result->kernel = x->kernel->name;
  bool present[BENCH_PEERS];
  for (int i = 0; i < BENCH_PEERS; i++) present[i] = bench_product_has(x, i);
  const double operations = 2.0 * (double)shape->m * (double)shape->n * (double)shape->k;
  int repeats = operations < 1e8 ? (int)(1e8 / operations) + 1 : 1;
  if (repeats > 200) repeats = 200;
  static double times[BENCH_PEERS][MAX_ROUNDS];
  int rounds = 0;
  const double start = bench_now();
  while (rounds < MAX_ROUNDS && (rounds < 5 || bench_now() - start < budget)) {
    for (int i = 0; i < BENCH_PEERS; i++) {
      const int which = (i + rounds) % BENCH_PEERS;
      if (!present[which]) continue;
      usleep(1000); /* lets the threads of the one before go to sleep */
      x->repeats = 1;
      run_peer(x, which);
      x->repeats = repeats;
      const double begin = bench_now();
      run_peer(x, which);
      times[which][rounds] = (bench_now() - begin) / repeats;
    }
    rounds++;
  }
  for (int i = 0; i < BENCH_PEERS; i++) {
    if (!present[i]) continue;
    result->median[i] = bench_median(times[i], rounds);
    result->best[i] = times[i][0];
  }
  bench_product_free(x);
  return true;
}

void bench_gemm_load_peers(int threads) {
  char count[16];
  snprintf(count, sizeof count, "%d", threads);
  /* Where MIXTAPE_MAX_ISA holds us back, it holds them back too. */
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

void bench_gemm_print(const bench_shape *s, const bench_gemm_result *r) {
  const double rate = 2e-9 * (double)s->m * (double)s->n * (double)s->k / r->best[BENCH_OURS];
  printf("%c%c %5lld %5lld %5lld %10.1f us %6.0f", s->ta ? 'T' : 'N', s->tb ? 'T' : 'N', (long long)s->m,
         (long long)s->n, (long long)s->k, 1e6 * r->median[BENCH_OURS], rate);
  static const char *const names[BENCH_PEERS] = {NULL, "OpenBLAS", "oneDNN"};
  for (int p = BENCH_OPENBLAS; p < BENCH_PEERS; p++)
    if (r->median[p] > 0)
      printf("   %s %5.2f (%5.2f)", names[p], r->median[p] / r->median[BENCH_OURS],
             r->best[p] / r->best[BENCH_OURS]);
  printf("   %s\n", r->kernel);
  fflush(stdout);
}

void bench_gemm_add(bench_gemm_summary *summary, const bench_shape *shape, const bench_gemm_result *result) {
  for (int p = 0; p < BENCH_PEERS; p++) {
    if (result->median[p] > 0)
      summary->logs[p] += log(result->median[p] / result->median[BENCH_OURS]), summary->compared[p]++;
    if (shape->set == 'u') summary->step[p] += result->median[p];
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
