#include "cli/bench/advice.h"
#include "backend/backend.h"
#include "base/processor.h"
#include "ops/table.h"
#include <string.h>

/* Costs are counted in float32 operations at full speed. They were fitted to steps of 64 to 4096 units on two
 * cores with AVX-512, about 300 GFLOP/s. */
#define OPERATIONS_A_BYTE 6.0        /* of memory traffic */
#define OPERATIONS_A_CACHED_BYTE 4.0 /* of traffic of the second-level cache */
/* An update overlaps with its product: this part of the product's time hides it, but not below this cost. */
#define HIDDEN_BY_PRODUCT 0.75
#define MIN_OPERATIONS_A_BYTE 2.0
#define OPERATIONS_TO_START 5e5 /* a kernel: two barriers and cold caches, 2 us */
/* To pack one element: 16 bits upcast where float32 is read in place; for tiles or float16 vectors. */
#define OPERATIONS_TO_UPCAST 8.0
#define OPERATIONS_TO_TILE 16.0
enum { IN_PLACE_COLUMNS = 160, TILE = 32 };

/* Speed of a kernel's arithmetic over float32's, by a part of the kernel's name. */
static const struct {
  const char *name, *instructions;
  double float16, bfloat16;
  int unit;   /* m and n are padded to its multiples */
  bool depth; /* k is padded too */
} engines[] = {{"amx", "AMX", 3, 6, TILE, true},
               {"t4x32_avx512", "AVX512-FP16", 1.86, 1.77, TILE, false},
               {"avx512fp16", "AVX512-FP16", 1.77, 1.68, TILE, false},
               {"avx512bf16", "AVX512-BF16", 1, 2, 16, false},
               {"neonbf16", "BFMLALB, BFMLALT", 1, 1, 8, false}, /* arm64: not measured */
               {"neonfp16", "FMLA on float16", 1, 1, 8, false},
               {"", "", 1, 1, 16, false}};
enum { UPCAST = sizeof engines / sizeof *engines - 1 }; /* multiplied in float32 */

/* NVIDIA's GPUs, from their data sheets: V100 to H100 do 13 to 25 float32 operations a byte, about 20 to 60
 * a picosecond, and start a kernel in some microseconds. */
#define GPU_OPERATIONS_A_BYTE 18.0
#define GPU_OPERATIONS_TO_START 1e8
enum { GPU_TILE = 64, GPU_KERNELS_OF_REST = 20 };

/* False: the device is none. */
static bool find_gpu(mix_gpu_fact *gpu) {
  const mix_backend *backend = mix_backend_current();
  return backend->gpus && backend->gpus(gpu, 1) > 0;
}

double bench_advice_rest(void) {
  mix_gpu_fact gpu;
  return find_gpu(&gpu) ? GPU_KERNELS_OF_REST * GPU_OPERATIONS_TO_START : 4e6;
}

const char *bench_advice_source(void) {
  mix_gpu_fact gpu;
  return find_gpu(&gpu)                      ? "data sheets"
         : mix_cpu_features() & MIX_CPU_NEON ? "measurements on x86-64 (arm64 is not measured)"
                                             : "measurements";
}

int bench_advice_rule(void) {
  mix_gpu_fact gpu;
  return find_gpu(&gpu) && gpu.major >= 8 ? GPU_TILE : 8;
}

static double round_up(int64_t x, int64_t unit) { return (double)((x + unit - 1) / unit * unit); }
static double max(double a, double b) { return a > b ? a : b; }

/* Continuous at the size of the caches: a little more traffic costs a little more. */
double bench_advice_of_bytes(double bytes) {
  mix_gpu_fact gpu;
  if (find_gpu(&gpu)) return bytes * GPU_OPERATIONS_A_BYTE;
  const double caches = (double)mix_cpu_cache(2) * mix_cpu_cores();
  return bytes < caches ? bytes * OPERATIONS_A_CACHED_BYTE
                        : caches * OPERATIONS_A_CACHED_BYTE + (bytes - caches) * OPERATIONS_A_BYTE;
}

double bench_advice_of_update(double bytes, double product) {
  return max(bench_advice_of_bytes(bytes) - HIDDEN_BY_PRODUCT * product, MIN_OPERATIONS_A_BYTE * bytes);
}

const char *bench_advice_verdict(double gain) {
  return gain >= 1.1 ? "gains" : gain >= 0.95 ? "even" : "loses";
}

static mix_kernel_info kernel_info_of(const bench_shape *s, mix_dtype dtype) {
  const mix_context context = mix_context_default();
  mix_product product = mix_product_of(dtype, s->m, s->n, s->k);
  product.transpose_a = s->ta, product.transpose_b = s->tb;
  if (s->ta) product.a = MIX_SHAPE(s->k, s->m);
  if (s->tb) product.b = MIX_SHAPE(s->n, s->k);
  return mix_kernel_info_of(&context, &product);
}

/* Tensor cores over float32's rate: of the V100 and T4, and of the A100 and later ones. 1: it has none. */
static double gpu_rate(const mix_gpu_fact *gpu, mix_dtype dtype) {
  return gpu->major >= 8 ? 15 : gpu->major == 7 && dtype == MIX_FLOAT16 ? 8 : 1;
}

static void advise_gpu_product(const bench_shape *s, mix_dtype dtype, const mix_gpu_fact *gpu,
                               bench_advice *advice) {
  const double m = (double)s->m, n = (double)s->n, k = (double)s->k, work = 2 * m * n * k,
               elements = m * k + k * n + m * n, rate = gpu_rate(gpu, dtype);
  const double filled =
      m * n * k / (round_up(s->m, GPU_TILE) * round_up(s->n, GPU_TILE) * round_up(s->k, GPU_TILE));
  const double arithmetic = rate > 1 ? work / (rate * filled) : work,
               memory = bench_advice_of_bytes(2 * elements);
  *advice = (bench_advice){.kernel = "dot_general",
                           .wide = max(work, 2 * memory) + GPU_OPERATIONS_TO_START,
                           .narrow = max(arithmetic, memory) + GPU_OPERATIONS_TO_START};
  char *why = advice->why;
  const size_t size = sizeof advice->why;
  if (max(work, 2 * memory) < GPU_OPERATIONS_TO_START)
    snprintf(why, size, "dispatch-bound: %.0f operations take no longer than starting a kernel", work);
  else if (rate <= 1)
    snprintf(why, size, "no tensor cores for %s: compute capability %d.%d, and %s is needed",
             mix_dtype_name(dtype), gpu->major, gpu->minor, dtype == MIX_FLOAT16 ? "7.0" : "8.0");
  else if (memory >= arithmetic)
    snprintf(why, size, "memory-bound: %.0f operations a byte; half the bytes is all that 16 bits bring",
             work / (2 * elements));
  else if (filled < 0.8)
    snprintf(why, size,
             "(%lld, %lld, %lld) fills %.0f %% of the tiles: dimensions should be multiples of %d, at least "
             "of 8",
             (long long)s->m, (long long)s->n, (long long)s->k, 100 * filled, GPU_TILE);
  else
    snprintf(why, size, "tensor cores multiply %.0f times as fast", rate);
}

void bench_advise_product(const bench_shape *s, mix_dtype dtype, bench_advice *advice) {
  mix_gpu_fact gpu;
  if (find_gpu(&gpu)) {
    advise_gpu_product(s, dtype, &gpu, advice);
    return;
  }
  const double m = (double)s->m, n = (double)s->n, k = (double)s->k, work = 2 * m * n * k,
               elements = m * k + k * n + m * n;
  const mix_kernel_info info = kernel_info_of(s, dtype);
  *advice = (bench_advice){.kernel = info.kernel};
  int e = 0;
  while (e < UPCAST && !strstr(info.kernel, engines[e].name)) e++;
  const double rate = dtype == MIX_FLOAT16 ? engines[e].float16 : engines[e].bfloat16;
  const int unit = engines[e].unit;
  const double filled = work / 2 /
                        (round_up(s->m, e == UPCAST ? 1 : unit) * round_up(s->n, unit) *
                         (engines[e].depth ? round_up(s->k, unit) : k));
  /* float32 pads n to its vectors */
  const double filled_float32 = n / round_up(s->n, 16);
  const double packing = e < UPCAST                 ? OPERATIONS_TO_TILE
                         : s->n <= IN_PLACE_COLUMNS ? OPERATIONS_TO_UPCAST
                                                    : 0;
  const double arithmetic = work / (rate * filled) + packing * (m * k + k * n),
               memory = bench_advice_of_bytes(2 * elements);
  advice->wide = max(work / filled_float32, bench_advice_of_bytes(4 * elements)) + OPERATIONS_TO_START;
  advice->narrow = max(arithmetic, memory) + OPERATIONS_TO_START;
  if (work < 2 * OPERATIONS_TO_START)
    snprintf(advice->why, sizeof advice->why,
             "dispatch-bound: %.0f operations take no longer than starting a kernel", work);
  else if (e == UPCAST && info.reason)
    snprintf(advice->why, sizeof advice->why, "left to kernels that widen: %s", info.reason);
  else if (e == UPCAST)
    snprintf(advice->why, sizeof advice->why,
             "no instruction in force for %s products with %s sums: widened and multiplied in float32",
             mix_dtype_name(dtype), info.accumulation);
  else if (memory >= arithmetic)
    snprintf(advice->why, sizeof advice->why,
             "memory-bound: %.0f operations a byte; half the bytes is all that 16 bits bring",
             work / (2 * elements));
  else if (filled < 0.8)
    snprintf(
        advice->why, sizeof advice->why,
        "(%lld, %lld, %lld) fills %.0f %% of the tiles: dimensions should be multiples of %d, at least of 8",
        (long long)s->m, (long long)s->n, (long long)s->k, 100 * filled, unit);
  else if (packing * (m * k + k * n) > work / (rate * filled) / 2)
    snprintf(advice->why, sizeof advice->why,
             "packing of operands counts: they are used by few rows or columns");
  else if (rate <= 1)
    snprintf(advice->why, sizeof advice->why, "%s: not measured, counted as fast as float32",
             engines[e].instructions);
  else
    snprintf(advice->why, sizeof advice->why, "%s multiplies %.1f times as fast", engines[e].instructions,
             rate);
}
