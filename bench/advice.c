#include "advice.h"
#include "backend/cpu/gemm/kernels.h"
#include "base/cpu.h"
#include "ops/table.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <string.h>

/* In float32 operations at full speed; measured on two cores with AVX-512 (some 260 GFLOP/s and 16 GB/s). */
#define OPERATIONS_A_BYTE 16.0       /* that memory takes for a byte, */
#define OPERATIONS_A_CACHED_BYTE 4.0 /* and the second-level cache */
#define OPERATIONS_TO_START 5e5      /* a kernel: two barriers and cold caches, 2 us */
#define OPERATIONS_TO_WIDEN 8.0      /* an element, where float32 is read in place and 16 bits are packed */
#define OPERATIONS_TO_TILE 16.0      /* an element, packed for tiles or for float16 vectors */
enum { IN_PLACE_COLUMNS = 160, TILE = 32 };

/* How much faster than float32's a kernel multiplies once its operands are at hand, by what its name contains. */
static const struct {
  const char *name;
  double float16, bfloat16;
  int unit;   /* dimensions are padded to it */
  bool depth; /* k too */
} engines[] = {{"amx", 3, 6, TILE, true}, {"fp16", 1.77, 1.68, TILE, false}, {"", 1, 1, 16, false}};
enum { WIDENING = 2 };

static double round_up(int64_t x, int64_t unit) { return (double)((x + unit - 1) / unit * unit); }
static double most(double a, double b) { return a > b ? a : b; }

double bench_advice_of_bytes(double bytes) {
  return bytes * (bytes < (double)mix_cpu_cache(2) * mix_cpu_cores() ? OPERATIONS_A_CACHED_BYTE : OPERATIONS_A_BYTE);
}

const char *bench_advice_verdict(double gain) { return gain >= 1.1 ? "gains" : gain >= 0.95 ? "even" : "loses"; }

/* The kernel of a plan, and the reason of the best one that this processor has for the dtype but that leaves the product to another. */
static const char *kernel_of(const bench_shape *s, mix_dtype dtype, const char **refusal) {
  mix_matmul_attributes attributes = {.transpose_a = s->ta, .transpose_b = s->tb};
  const mix_kernel_value inputs[] = {{dtype, s->ta ? MIX_SHAPE(s->k, s->m) : MIX_SHAPE(s->m, s->k)},
                                     {dtype, s->tb ? MIX_SHAPE(s->n, s->k) : MIX_SHAPE(s->k, s->n)}};
  const mix_kernel_value output = {dtype, MIX_SHAPE(s->m, s->n)};
  const mix_kernel_args args = {.op = &mix_op_matmul,
                                .attributes = &attributes,
                                .input_count = 2,
                                .output_count = 1,
                                .input_types = inputs,
                                .output_types = &output};
  const char *dtype_text = dtype == MIX_FLOAT16 ? "_f16_" : "_bf16_";
  *refusal = NULL;
  for (const mix_kernel *const *k = mix_cpu_matmul_kernels; *k; k++) {
    if (((*k)->needs & mix_cpu_features()) != (*k)->needs) continue;
    const char *reason = (*k)->refuses(&args);
    if (!reason) return (*k)->name;
    if (!*refusal && strstr((*k)->name, dtype_text)) *refusal = reason;
  }
  return NULL;
}

void bench_advise_product(const bench_shape *s, mix_dtype dtype, bench_advice *advice) {
  const double m = (double)s->m, n = (double)s->n, k = (double)s->k, work = 2 * m * n * k, elements = m * k + k * n + m * n;
  const char *refusal, *name = mix_dtype_name(dtype);
  *advice = (bench_advice){.kernel = kernel_of(s, dtype, &refusal)};
  int e = 0;
  while (e < WIDENING && !(advice->kernel && strstr(advice->kernel, engines[e].name))) e++;
  const double rate = dtype == MIX_FLOAT16 ? engines[e].float16 : engines[e].bfloat16;
  const int unit = engines[e].unit;
  const double filled =
      work / 2 / (round_up(s->m, e == WIDENING ? 1 : unit) * round_up(s->n, unit) * (engines[e].depth ? round_up(s->k, unit) : k));
  /* float32 has vectors to fill as well */
  const double filled_wide = n / round_up(s->n, 16);
  const double packing = e < WIDENING ? OPERATIONS_TO_TILE : s->n <= IN_PLACE_COLUMNS ? OPERATIONS_TO_WIDEN : 0;
  const double arithmetic = work / (rate * filled) + packing * (m * k + k * n), memory = bench_advice_of_bytes(2 * elements);
  advice->wide = most(work / filled_wide, bench_advice_of_bytes(4 * elements)) + OPERATIONS_TO_START;
  advice->narrow = most(arithmetic, memory) + OPERATIONS_TO_START;
  if (work < 2 * OPERATIONS_TO_START)
    snprintf(advice->why, sizeof advice->why, "dispatch-bound: %.0f operations take no longer than starting a kernel", work);
  else if (e == WIDENING && refusal)
    snprintf(advice->why, sizeof advice->why, "left to kernels that widen: %s", refusal);
  else if (e == WIDENING)
    snprintf(advice->why, sizeof advice->why, "no instruction for %s products: widened and multiplied in float32", name);
  else if (memory >= arithmetic)
    snprintf(advice->why, sizeof advice->why, "memory-bound: %.0f operations a byte; half the bytes is all that 16 bits bring",
             work / (2 * elements));
  else if (filled < 0.8)
    snprintf(advice->why, sizeof advice->why,
             "(%lld, %lld, %lld) fills %.0f %% of the tiles: dimensions should be multiples of %d, at least of 8", (long long)s->m,
             (long long)s->n, (long long)s->k, 100 * filled, unit);
  else if (packing * (m * k + k * n) > work / (rate * filled) / 2)
    snprintf(advice->why, sizeof advice->why, "packing of operands counts: they are used by few rows or columns");
  else
    snprintf(advice->why, sizeof advice->why, "%s multiplies %.1f times as fast", e == 0 ? "AMX" : "AVX512-FP16", rate);
}
