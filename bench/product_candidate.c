#include "product_candidate.h"
#include "backend/cpu/gemm/kernels.h"
#include "backend/host/barrier.h"
#include "base/alloc.h"
#include "base/crew.h"
#include "tensor/convert.h"
#include "tensor/shape.h"
#include <stdio.h>

bool bench_parse_shape(const char *text, bench_shape *shape) {
  char ta, tb;
  long long m, n, k;
  if (sscanf(text, "%c%c,%lld,%lld,%lld", &ta, &tb, &m, &n, &k) != 5) return false;
  *shape = (bench_shape){ta == 'T', tb == 'T', m, n, k};
  return m > 0 && n > 0 && k > 0;
}

enum { MAX_STAGES = 64 };

typedef struct running {
  const bench_product *product;
  mix_team team; /* but for the rank */
} running;

static void run_share(void *context, int stage, int share) {
  const running *x = context;
  x->product->kernel->run(&x->product->args, &(const mix_team){share, x->team.size, x->team.barrier});
}

/* As in a plan. */
bool bench_product_run(void *context) {
  const bench_product *x = context;
  static mix_barrier barrier = {.patience = MIX_PATIENCE};
  const bool serial = x->threads == 1 || (x->kernel->serial && x->kernel->serial(&x->args));
  running running = {x, {.size = serial ? 1 : x->threads, .barrier = &barrier}};
  const mix_crew_stage product = {.shares = running.team.size,
                                  .together = !serial && x->kernel->barriers(&x->args, x->threads) > 0};
  mix_crew_stage stages[MAX_STAGES];
  for (int i = 0; i < MAX_STAGES; i++) stages[i] = product;
  for (int done = 0; done < x->repeats; done += MAX_STAGES) {
    const int count = x->repeats - done < MAX_STAGES ? x->repeats - done : MAX_STAGES;
    const mix_crew_work work = {stages, count, run_share, &running};
    for (int i = 0; i < count && serial; i++) run_share(&running, i, 0);
    if (!serial && mix_crew_run(&work, x->threads) != MIX_CREW_DONE) return false;
  }
  return true;
}

static void *random_matrix(int64_t count, mix_dtype dtype, uint64_t seed) {
  void *data = mix_alloc_buffer((size_t)count * mix_dtype_size(dtype));
  for (int64_t i = 0; data && i < count; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    mix_store_double(data, dtype, i, (double)(int64_t)(seed >> 40) / (1 << 23) - 1);
  }
  return data;
}

/* `name` NULL: the kernel that a plan would take. */
static const mix_kernel *kernel_of(const mix_kernel_args *args, const char *name) {
  for (const mix_kernel *const *k = mix_cpu_matmul_kernels; *k; k++) {
    const bool wanted =
        name ? strcmp((*k)->name, name) == 0 : ((*k)->needs & mix_cpu_features()) == (*k)->needs;
    if (wanted && !(*k)->unsupported_reason(args)) return *k;
  }
  return NULL;
}

bench_product *bench_product_new(const bench_shape *shape, mix_dtype dtype, int threads) {
  return bench_product_by(shape, dtype, threads, NULL);
}

bench_product *bench_product_by(const bench_shape *shape, mix_dtype dtype, int threads, const char *name) {
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
  const mix_kernel *kernel = kernel_of(&x->args, name);
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
  if (x->release_peer) x->release_peer(x->peer);
  if (x->kernel) x->kernel->release(x->args.prepared);
  mix_free_buffer(x->args.workspace, x->workspace);
  for (int i = 0; i < 2; i++)
    mix_free_buffer((void *)(uintptr_t)x->in[i], mix_value_bytes(x->dtype, x->inputs[i].shape));
  mix_free_buffer(x->out, mix_value_bytes(x->dtype, x->output.shape));
  mix_free(x);
}
