/* Products whose A is patches of images, on every engine: the bits are those of the plain matrix in which the
 * patches are written out, with every number of threads. */
/* Holds docs/NUMERICS.md: Products. */
#include "backend/cpu/gemm/amx/amx.h"
#include "backend/cpu/gemm/lines/cells.h"
#include "backend/cpu/gemm/lines/lines.h"
#include "backend/gemm_products.h"

enum { AXES = MIX_GEMM_PATCH_AXES, EXAMPLES = 2 };

typedef struct engine_test {
  const char *name;
  const mix_gemm_engine *engine;
  mix_dtype dtype;
  uint32_t needs;
} engine_test;

#define OF_SET(set, features, ...)                                                                           \
  {"f32_" #set, &mix_gemm_f32_##set, MIX_FLOAT32, features},                                                 \
      {"f16_" #set, &mix_gemm_f32_##set, MIX_FLOAT16, features},                                             \
      {"bf16_" #set, &mix_gemm_f32_##set, MIX_BFLOAT16, features},                                           \
      {"f64_" #set, &mix_gemm_f64_##set, MIX_FLOAT64, features},
#define OF_PRODUCT(id, dtype, engine, kernel, features, ...) {#id, &engine, dtype, features},
#define OF_TILES(name, dtype)                                                                                \
  { #name "_amx_emulated", &mix_gemm_emulated_tiles, dtype, EMULATED_TILES_NEED }
static const engine_test engines[] = {MIX_SPECIAL_PRODUCTS(OF_PRODUCT) MIX_VECTOR_SETS(OF_SET)
                                          OF_TILES(f16, MIX_FLOAT16),
                                      OF_TILES(bf16, MIX_BFLOAT16), OF_TILES(f32, MIX_FLOAT32)};
enum { ENGINES = sizeof engines / sizeof *engines };

static const struct {
  mix_gemm_patches patches;
  int64_t n;
} cases[] = {
    {{{1, 9, 8}, {1, 3, 3}, {1, 9, 8}, {1, 1, 1}, {1, 1, 1}, {0, -1, -1}, 16, 16}, 72},
    {{{1, 10, 11}, {1, 3, 2}, {1, 21, 20}, {1, 2, 2}, {1, 2, 3}, {0, -2, -1}, 13, 13}, 70},
    {{{1, 6, 7}, {1, 3, 3}, {1, 6, 7}, {1, 1, 1}, {1, 1, 1}, {0, -1, -1}, 20, 60}, 130}, /* a group */
    {{{3, 4, 5}, {2, 3, 3}, {4, 5, 6}, {1, 1, 1}, {1, 1, 1}, {-1, -1, -1}, 7, 7}, 67},
    {{{1, 1, 90}, {1, 1, 130}, {1, 1, 160}, {1, 1, 2}, {1, 1, 1}, {0, 0, -70}, 3, 3}, 90},
    /* Several blocks of rows and of k; transposed, k in two halves. */
    {{{1, 25, 26}, {1, 3, 3}, {1, 25, 26}, {1, 1, 1}, {1, 1, 1}, {0, -1, -1}, 32, 32}, 96},
    {{{1, 19, 18}, {1, 3, 3}, {1, 19, 18}, {1, 1, 1}, {1, 1, 1}, {0, -1, -1}, 70, 70}, 530},
    /* Lines: an odd number of terms in each, windows backwards, pixels that share sets of a cache. */
    {{{1, 30, 31}, {1, 7, 7}, {1, 61, 62}, {1, 2, 2}, {1, 1, 1}, {0, -3, -2}, 3, 3}, 96},
    {{{1, 12, 30}, {1, 3, 3}, {1, 12, 30}, {1, 1, 1}, {1, -1, -1}, {0, 1, 1}, 24, 24}, 40},
    {{{1, 5, 6}, {1, 1, 2}, {1, 5, 7}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, 512, 512}, 33},
    /* Windows so far apart that the numbers which a line of cells spans cannot be counted. */
    {{{1, 30, 20},
      {1, 2, 2},
      {1, 30, 20},
      {1, 1, 1},
      {1, (INT64_C(1) << 40) - 1, (INT64_C(1) << 40) - 20},
      {0, -(INT64_C(1) << 39), 0},
      24,
      24},
     70},
    /* A block of k in parts, whose sums go on; most caches have no space for all its lines. */
    {{{1, 8, 29}, {1, 3, 3}, {1, 8, 29}, {1, 1, 1}, {1, 1, 1}, {0, -1, -1}, 256, 256}, 66},
    /* Lines of which a cache has space for few. */
    {{{1, 2, 30}, {1, 1, 3}, {1, 2, 30}, {1, 1, 1}, {1, 1, 1}, {0, 0, -1}, 1400, 1400}, 66},
};
/* Of tiles more: whether steps of k lie side by side depends on channels, windows and groups. */
enum { CASES = sizeof cases / sizeof *cases, RANDOM = 12, RANDOM_OF_TILES = 24 };

static int64_t random_between(int64_t least, int64_t most) {
  return least + (int64_t)(next_random() % (uint32_t)(most - least + 1));
}

/* Any window over two axes, forwards or backwards, with padding and cells that see nothing else. The matrix
 * that is written out has too many rows and columns for the other orders of sums. */
static mix_gemm_patches random_patches(void) {
  mix_gemm_patches p = {.cells = {1, 1, 1},
                        .window = {1, 1, 1},
                        .image = {1, 1, 1},
                        .step = {1, 1, 1},
                        .window_step = {1, 1, 1}};
  for (int i = 1; i < AXES; i++) {
    p.cells[i] = random_between(3, 20), p.window[i] = random_between(1, 5);
    p.image[i] = random_between(1, 24), p.step[i] = random_between(1, 3);
    p.window_step[i] = random_between(1, 2) * (random_between(0, 1) ? 1 : -1);
    p.origin[i] = random_between(-6, 6);
  }
  p.channels = random_between(1, 40), p.pixel = p.channels * random_between(1, 2);
  return p;
}

static int64_t product_of(const int64_t *numbers) { return numbers[0] * numbers[1] * numbers[2]; }

/* Column `column` of patch `row`, in elements of the images; -1: outside. */
static int64_t place_of_element(const mix_gemm_patches *p, int64_t row, int64_t column) {
  const int64_t channel = column % p->channels;
  int64_t cell = row, window = column / p->channels, at[AXES];
  for (int i = AXES - 1; i >= 0; i--) {
    at[i] = cell % p->cells[i] * p->step[i] + window % p->window[i] * p->window_step[i] + p->origin[i];
    cell /= p->cells[i], window /= p->window[i];
    if (at[i] < 0 || at[i] >= p->image[i]) return -1;
  }
  return (((cell * p->image[0] + at[0]) * p->image[1] + at[1]) * p->image[2] + at[2]) * p->pixel + channel;
}

static char *written_out(const mix_gemm_patches *p, const char *images, size_t size, int64_t rows,
                         int64_t columns, mix_dtype dtype) {
  char *to = matrix(dtype, rows * columns);
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < columns; c++) {
      const int64_t place = place_of_element(p, r, c);
      if (place >= 0) memcpy(to + (size_t)(r * columns + c) * size, images + (size_t)place * size, size);
    }
  return to;
}

static char *numbers(mix_dtype dtype, int64_t count) {
  char *to = matrix(dtype, count);
  for (int64_t i = 0; i < count; i++) mix_store_double(to, dtype, i, uniform());
  return to;
}

/* A run of a plan, as a kernel does it. */
typedef struct plan_run {
  mix_gemm_plan plan;
  mix_gemm_operands operands;
  char *workspace;
} plan_run;

static void run_plan(const mix_kernel_args *args, const mix_team *team) {
  const plan_run *x = args->prepared;
  const mix_gemm_workspace *w = &x->plan.workspace;
  mix_gemm_run(&x->plan, &x->operands, team, x->workspace,
               x->workspace + w->shared + w->thread * (size_t)team->rank);
}
static const mix_kernel runner = {.name = "a plan", .run = run_plan};

/* The sums, as float32 or float64. The workspace starts as NaNs, and the bytes behind it must not change. */
static char *run_problem(const engine_test *e, const mix_gemm_problem *problem, mix_gemm_view a,
                         mix_gemm_view b, int threads, mix_gemm_plan *plan) {
  plan_run x = {.operands = {.a = a, .b = b}};
  mix_gemm_make_plan(e->engine, mix_gemm_storage_of(e->engine, e->dtype), problem, threads, &x.plan);
  assert_false(x.plan.compute_transposed);
  *plan = x.plan;
  const size_t bytes = x.plan.workspace.shared + x.plan.workspace.thread * (size_t)threads;
  x.workspace = mix_alloc_buffer(bytes + 64);
  assert_non_null(x.workspace);
  const size_t kept_bytes = x.plan.algorithm->kept_bytes ? x.plan.algorithm->kept_bytes(&x.plan) : 0;
  char *kept = kept_bytes ? matrix(MIX_INT8, (int64_t)kept_bytes) : NULL;
  for (int i = 0; kept && i < threads; i++) x.plan.algorithm->keep(&x.plan, &b, i, threads, kept);
  x.operands.kept = kept;
  memset(x.workspace, 0xff, bytes + 64);
  const int64_t results = problem->m * problem->n;
  x.operands.c = matrix(x.plan.result, results);
  memset(x.operands.c, 0x7f, (size_t)results * mix_dtype_size(x.plan.result));
  run_team(&runner, &(mix_kernel_args){.prepared = &x}, threads);
  for (int i = 0; i < 64; i++) assert_int_equal((unsigned char)x.workspace[bytes + (size_t)i], 0xff);
  mix_free_buffer(x.workspace, bytes + 64);
  free(kept);
  return x.operands.c;
}

/* What plans of tiles are there to be tried. */
typedef struct seen {
  bool halves, shared, kept, parts, lines, cells, kept_b;
} seen;

static bool has_tiles(const engine_test *e) { return strstr(e->name, "_amx"); }
static bool is_tile_lines(const mix_gemm_plan *plan) { return !strcmp(plan->algorithm->name, "tile_lines"); }

static void note(const engine_test *e, const mix_gemm_plan *plan, seen *all) {
  if (!has_tiles(e) || is_tile_lines(plan)) return;
  const mix_amx_plan *own = mix_amx_plan_of(plan);
  all->halves |= own->split_k, all->shared |= own->shared_blocks > 0, all->kept |= own->keep_outer;
  all->parts |= own->gathered_rows < plan->mc;
}

static void compare(const engine_test *e, const mix_gemm_patches *p, int64_t n, int number, bool transpose_a,
                    bool transpose_b, bool finite, seen *all) {
  const int64_t rows = EXAMPLES * product_of(p->cells), columns = product_of(p->window) * p->channels,
                count = EXAMPLES * product_of(p->image) * p->pixel, skipped = p->pixel - p->channels,
                k = transpose_a ? rows : columns;
  const int64_t size = (int64_t)mix_dtype_size(e->dtype);
  char *images = numbers(e->dtype, count), *kernel = numbers(e->dtype, k * n);
  if (!finite) {
    mix_store_double(images, e->dtype, count / 2, INFINITY);
    mix_store_double(images, e->dtype, count - 1, NAN);
  }
  char *plain = written_out(p, images + skipped * size, (size_t)size, rows, columns, e->dtype);
  mix_gemm_problem problem = {.m = transpose_a ? columns : rows,
                              .n = n,
                              .k = k,
                              .transpose_a = transpose_a,
                              .transpose_b = transpose_b,
                              .lda = columns,
                              .ldb = transpose_b ? k : n,
                              .ldc = n,
                              .rounded = e->dtype == MIX_FLOAT64 ? MIX_DTYPE_NONE : MIX_FLOAT32};
  if (has_tiles(e)) problem.precision.float32 = MIX_FLOAT32_HIGH;
  const mix_gemm_view a = {plain, size, columns, transpose_a, NULL},
                      b = {kernel, size, problem.ldb, transpose_b, NULL},
                      view = {images + skipped * size, size, p->pixel, transpose_a, p};
  mix_gemm_plan written, gathered;
  char *expected = run_problem(e, &problem, a, b, 1, &written);
  problem.patches = p, problem.lda = p->pixel, problem.fixed_b = number % 2;
  for (int threads = 1; threads <= MAX_THREADS; threads++) {
    char *got = run_problem(e, &problem, view, b, threads, &gathered);
    const bool lines = gathered.algorithm == &mix_gemm_lines || is_tile_lines(&gathered);
    if (!lines && gathered.algorithm != &mix_gemm_cells) /* these have the order of blocks */
      assert_ptr_equal(written.algorithm, gathered.algorithm);
    all->lines |= lines, all->cells |= gathered.algorithm == &mix_gemm_cells;
    all->kept_b |= lines && problem.fixed_b;
    note(e, &gathered, all);
    const int64_t width = (int64_t)mix_dtype_size(gathered.result);
    for (int64_t i = 0; i < problem.m * n; i++)
      if (memcmp(got + i * width, expected + i * width, (size_t)width))
        fail_msg("%s, case %d, transposed %d %d, %d threads: element %lld is %g, not %g", e->name, number,
                 transpose_a, transpose_b, threads, (long long)i, mix_load_double(got, gathered.result, i),
                 mix_load_double(expected, gathered.result, i));
    free(got);
  }
  free(expected), free(plain), free(images), free(kernel);
}

static bool is_split(const engine_test *e) { return has_tiles(e) && e->dtype != MIX_BFLOAT16; }
/* Packed in another way than float16, and else treated as that. */
static bool packs_alone(const engine_test *e) { return strstr(e->name, "f32_amx_emulated"); }

/* Float16 sums of NEON have run under an emulator alone, where they take a hundred times as long: of the
 * largest case one way. */
static bool is_tried(const engine_test *e, int number, int way) {
  return !packs_alone(e) && (!(e->needs & MIX_CPU_NEON_FP16) || number < CASES - 1 || !way);
}

static void each_engine(void **state) {
  const engine_test *e = *state;
  mix_cpu_override(UINT32_MAX);
  if (e->needs & ~(mix_cpu_features() | MIX_CPU_BF16_PAIRS)) /* whether they gain or not */
    SKIP("%s is not for this processor", e->name);
  random_state = 1;
  seen all = {0};
  for (int number = 0; number < CASES; number++)
    for (int way = 0; way < 4; way++)
      if (is_tried(e, number, way))
        compare(e, &cases[number].patches, cases[number].n, number, way & 1, way & 2, way != number % 4,
                &all);
  for (int number = CASES; number < CASES + RANDOM && !packs_alone(e); number++) {
    const mix_gemm_patches p = random_patches();
    compare(e, &p, random_between(65, 100), number, number & 1, number & 2, true, &all);
  }
  const bool tiles = has_tiles(e);
  for (int number = 0; tiles && number < RANDOM_OF_TILES; number++) {
    mix_gemm_patches p = random_patches();
    const int64_t n = random_between(7, 100), channels = 32 * random_between(1, 3);
    if (number % 3 == 0)
      p.channels = channels, p.pixel = channels * random_between(1, 2);
    else if (is_split(e)) /* gathered */
      continue;
    compare(e, &p, n, CASES + RANDOM + number, false, number & 2, number & 4, &all);
  }
  const bool segments = e->engine->lines_micro[MIX_GEMM_ALONG_K], lines = segments || tiles;
  assert_true(all.lines == lines && all.kept_b == lines && all.cells == segments);
  if (!packs_alone(e))
    assert_true(all.halves == tiles && all.shared == tiles && all.kept == tiles && all.parts == tiles);
}

int main(void) {
  static struct CMUnitTest tests[ENGINES];
  for (int i = 0; i < ENGINES; i++)
    tests[i] = (struct CMUnitTest){engines[i].name, each_engine, NULL, NULL, (void *)&engines[i]};
  return _cmocka_run_group_tests("patches", tests, ENGINES, NULL, NULL);
}
