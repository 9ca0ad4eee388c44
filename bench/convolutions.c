/* Table convolutions: products with patches of images that are read in lines (gemm/lines, gemm/amx/lines.h),
 * beside those whose patches are gathered, on one thread. Both have the same bits. */
#include "backend/cpu/gemm/block_arithmetic.h"
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/product_list.h"
#include "base/alloc.h"
#include "base/json.h"
#include "base/processor.h"
#include "cli/bench/comparison.h"
#include "tables.h"
#include "tensor/convert.h"
#include <string.h>

enum { BATCH = 8 };

typedef struct shape {
  const char *name;
  int64_t size, channels, filters, cells, stride; /* of square images and kernels */
} shape;

static const shape shapes[] = {
    {"3x3, 64 to 64, 56x56", 56, 64, 64, 3, 1},
    {"3x3, 256 to 256, 14x14", 14, 256, 256, 3, 1},
    {"3x3, 512 to 512, 7x7", 7, 512, 512, 3, 1},
    {"3x3, 256 to 256, 3x3", 3, 256, 256, 3, 1},
    {"3x3, 256 to 32, 56x56", 56, 256, 32, 3, 1},
    {"3x3, 16 to 16, 32x32", 32, 16, 16, 3, 1},
    {"5x5, 32 to 64, 14x14", 14, 32, 64, 5, 1},
    {"3x3 stride 2, 128 to 256, 56x56", 56, 128, 256, 3, 2},
    {"1x1 stride 2, 256 to 512, 56x56", 56, 256, 512, 1, 2},
    {"1x1 stride 2, 512 to 1024, 28x28", 28, 512, 1024, 1, 2},
    {"7x7 stride 2, 3 to 64, 224x224", 224, 3, 64, 7, 2},
    {"3x3, 1 to 32, 28x28", 28, 1, 32, 3, 1},
};

typedef struct row {
  mix_dtype dtype;
  const mix_gemm_engine *engine;
  uint32_t needs;
} row;
#define ROW_OF_PRODUCT(id, dtype, engine, name, features, ...) {dtype, &engine, features},
static const row rows[] = {MIX_PRODUCTS(ROW_OF_PRODUCT)};

/* Tiles have an algorithm of their own for lines, which an engine's list has first. */
static bool has_tile_lines(const mix_gemm_engine *engine) {
  return !strcmp(engine->algorithms[0]->name, "tile_lines");
}

/* The best engine for a dtype here that reads lines; NULL: none. */
static const mix_gemm_engine *engine_of(mix_dtype dtype) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].dtype == dtype && (rows[i].needs & mix_cpu_features()) == rows[i].needs &&
        (rows[i].engine->lines_micro[MIX_GEMM_ALONG_K] || has_tile_lines(rows[i].engine)))
      return rows[i].engine;
  return NULL;
}

typedef struct run_state {
  mix_gemm_plan plan;
  mix_gemm_operands operands;
  char *workspace;
} run_state;

static bool run(void *context) {
  run_state *x = context;
  mix_gemm_run(&x->plan, &x->operands, &mix_team_alone, x->workspace,
               x->workspace + x->plan.workspace.shared);
  return true;
}

static void *numbers(mix_dtype dtype, int64_t count) {
  char *to = mix_alloc(((size_t)count + 64) * mix_dtype_size(dtype));
  for (int64_t i = 0; to && i < count; i++) mix_store_double(to, dtype, i, (double)(i * 7 % 13) / 16 - 0.375);
  return to;
}

static mix_gemm_patches patches_of(const shape *s) {
  const int64_t out = divide_up(s->size, s->stride), padding = (out - 1) * s->stride + s->cells - s->size,
                before = padding > 0 ? padding / 2 : 0;
  return (mix_gemm_patches){.cells = {1, out, out},
                            .window = {1, s->cells, s->cells},
                            .image = {1, s->size, s->size},
                            .step = {1, s->stride, s->stride},
                            .window_step = {1, 1, 1},
                            .origin = {0, -before, -before},
                            .channels = s->channels,
                            .pixel = s->channels};
}

static bool compare(const bench_settings *settings, const shape *s, mix_dtype dtype, bool of_kernel,
                    json_t *results) {
  const mix_gemm_engine *engine = engine_of(dtype);
  if (!engine) return true;
  mix_gemm_engine gathers = *engine;
  gathers.lines_micro[0] = gathers.lines_micro[1] = NULL;
  if (has_tile_lines(engine)) gathers.algorithms++;
  const mix_gemm_patches p = patches_of(s);
  const int64_t cells = BATCH * p.cells[1] * p.cells[2], depth = s->cells * s->cells * s->channels,
                size = (int64_t)mix_dtype_size(dtype);
  const mix_gemm_problem problem = {.m = of_kernel ? depth : cells,
                                    .n = s->filters,
                                    .k = of_kernel ? cells : depth,
                                    .transpose_a = of_kernel,
                                    .lda = s->channels,
                                    .ldb = s->filters,
                                    .ldc = s->filters,
                                    .patches = &p,
                                    .rounded = MIX_DTYPE_NONE};
  void *x = numbers(dtype, BATCH * s->size * s->size * s->channels),
       *b = numbers(dtype, problem.k * problem.n), *c = numbers(dtype, problem.m * problem.n);
  run_state states[2];
  bench_candidate candidates[2];
  bool good = x && b && c;
  for (int i = 0; i < 2; i++) {
    const mix_gemm_engine *with = i ? engine : &gathers;
    states[i] = (run_state){.operands = {.a = {x, size, s->channels, of_kernel, &p},
                                         .b = {b, size, s->filters, false, NULL},
                                         .c = c}};
    mix_gemm_make_plan(with, mix_gemm_storage_of(with, dtype), &problem, 1, &states[i].plan);
    const mix_gemm_workspace *w = &states[i].plan.workspace;
    states[i].workspace = mix_alloc_buffer(w->shared + w->thread + 64);
    good = good && states[i].workspace;
    candidates[i] = (bench_candidate){.run = run, .context = &states[i], .processor_time = true};
  }
  int rounds;
  good = good && bench_interleave(candidates, 2, settings->quick ? 0.2 : 1, &rounds);
  if (good) {
    const double ratio = bench_ratio(&candidates[0], &candidates[1], rounds);
    if (settings->text)
      printf("%-34s %-16s %-9s %-8s %9.3f %9.3f %6.2fx\n", s->name, of_kernel ? "kernel" : "forward",
             mix_dtype_name(dtype), states[1].plan.algorithm->name, 1e3 * candidates[0].median,
             1e3 * candidates[1].median, ratio);
    mix_json_append(results,
                    json_pack("{s:s, s:s, s:s, s:s, s:f, s:f, s:f}", "shape", s->name, "pass",
                              of_kernel ? "kernel" : "forward", "dtype", mix_dtype_name(dtype), "algorithm",
                              states[1].plan.algorithm->name, "gathered_seconds", candidates[0].median,
                              "seconds", candidates[1].median, "speed", ratio));
    fflush(stdout);
  }
  for (int i = 0; i < 2; i++) {
    const mix_gemm_workspace *w = &states[i].plan.workspace;
    mix_free_buffer(states[i].workspace, w->shared + w->thread + 64);
  }
  mix_free(x), mix_free(b), mix_free(c);
  return good;
}

bool bench_convolutions(const bench_settings *settings) {
  static const mix_dtype dtypes[] = {MIX_FLOAT32, MIX_FLOAT16, MIX_BFLOAT16};
  json_t *results = json_array();
  mix_json_set(settings->json, "convolutions", results);
  if (settings->text)
    printf("\nconvolutions, batch %d, one thread; ms of processor time: gathered, in lines, speed\n", BATCH);
  bool good = true;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int of_kernel = 0; of_kernel < 2; of_kernel++)
      for (size_t d = 0;
           d < sizeof dtypes / sizeof *dtypes && good && bench_is_asked(settings, shapes[i].name); d++)
        good = compare(settings, &shapes[i], dtypes[d], of_kernel, results);
  return good;
}
