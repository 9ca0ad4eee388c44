/* Tiles and work stealing: tiles cover the result once whoever takes them, and products have the same bits
 * whoever computes what. */
#include "support/skip.h"
#include "backend/gemm_plans.h"

static const struct {
  const char *name;
  mix_dtype dtype;
} engines[] = {
    {"f32_generic", MIX_FLOAT32},    {"f32_avx512", MIX_FLOAT32},        {"f32_avx512", MIX_BFLOAT16},
    {"f64_avx2", MIX_FLOAT64},       {"t4x32_avx512fp16", MIX_BFLOAT16}, {"t4x16_avx512fp16", MIX_FLOAT16},
    {"t4x16_neonfp16", MIX_FLOAT16}, {"f32_neon", MIX_FLOAT32},          {"f64_neon", MIX_FLOAT64}};
enum { ENGINES = sizeof engines / sizeof *engines, TEAM = 5, MAX_TILES = 5000 };

/* Products with work stealing for two threads. `once`: what float16 sums pack once for all tiles, with a
 * second-level cache of 2 MiB: A; B, of which both threads use the same columns or each its own, of one block
 * of k or several; nothing. */
static const struct {
  int64_t m, n, k;
  int transposes;
  char once;
} cases[] = {{130, 2050, 1030, 0, 'A'}, {3000, 2050, 70, 1, 'B'}, {130, 2050, 1030, 2, 'A'},
             {2000, 500, 1000, 0, 'B'}, {900, 3000, 300, 3, 'B'}, {900, 520, 1600, 0, '-'},
             {130, 2050, 3400, 0, '-'}};
enum { CASES = sizeof cases / sizeof *cases };

static bool disjoint(const mix_gemm_tile *x, const mix_gemm_tile *y) {
  return x->row_end <= y->row || y->row_end <= x->row || x->column_end <= y->column ||
         y->column_end <= x->column;
}

/* Threads take tiles in random order; every unit of the result is taken once, and no tile is larger than the
 * workspace was made for. One thread may be absent until all is done. */
static void take_all(const mix_gemm_plan *plan, mix_gemm_stealing *stealing, int absent) {
  const mix_gemm_tiles *x = &plan->tiles;
  static mix_gemm_tile taken[MAX_TILES];
  int64_t count = 0, area = 0;
  mix_gemm_work work[TEAM];
  for (int rank = 0; rank < plan->threads; rank++) mix_gemm_begin(&work[rank], plan, stealing, rank);
  for (int left = plan->threads, done[TEAM] = {0}; left > 0;) {
    const int rank = (int)(next_random() % (unsigned)plan->threads);
    mix_gemm_tile tile;
    if (done[rank] || (rank == absent && left > 1)) continue;
    if (!mix_gemm_next_tile(&work[rank], &tile)) {
      done[rank] = 1, left--;
      continue;
    }
    assert_true(rank != absent);
    assert_in_range(tile.row_end - tile.row, 1, x->rows.max);
    assert_in_range(tile.column_end - tile.column, 1, x->columns.max);
    assert_true(tile.row >= 0 && tile.row_end <= x->rows.count && tile.column >= 0 &&
                tile.column_end <= x->columns.count);
    for (int64_t i = 0; i < count; i++) assert_true(disjoint(&tile, &taken[i]));
    assert_true(count < MAX_TILES);
    area += (tile.row_end - tile.row) * (tile.column_end - tile.column), taken[count++] = tile;
  }
  assert_int_equal(area, x->rows.count * x->columns.count);
}

static void tiles_cover_the_result_once(void **unused) {
  (void)unused;
  static const int64_t shapes[][3] = {
      {128, 4096, 4096}, {4096, 4096, 128}, {784, 4096, 1280}, {8192, 1000, 784}, {1000, 1003, 3000},
      {4100, 33, 9000},  {16, 70000, 3000}, {513, 2049, 1500}, {3, 5, 7},         {129, 65, 0}};
  int stealing_plans[2] = {0};
  for (int e = 0; e < ENGINES; e++)
    for (size_t s = 0; engine_here(engines[e].name) && s < sizeof shapes / sizeof *shapes; s++)
      for (int transposes = 0; transposes < 4; transposes++)
        for (int threads = 1; threads <= TEAM; threads++) {
          const mix_gemm_plan plan =
              plan_of_shape(engine_here(engines[e].name), engines[e].dtype, shapes[s][0], shapes[s][1],
                            shapes[s][2], transposes, threads);
          if (plan.algorithm == &mix_gemm_small_n || plan.algorithm == &mix_gemm_small_m)
            continue; /* have shares, not tiles */
          take_all(&plan, NULL, -1);
          if (!plan.tiles.steal) continue;
          stealing_plans[plan.tiles.by_columns]++;
          mix_gemm_stealing *stealing = mix_gemm_new_stealing(&plan);
          assert_non_null(stealing);
          for (int absent = -1; absent < threads; absent++) /* with all threads, and without one of them */
            for (int fine = 0; fine < 2; fine++) {
              stealing->fine = fine;
              take_all(&plan, stealing, absent);
              mix_gemm_reset_stealing(&plan, stealing);
            }
          mix_free(stealing);
        }
  assert_true(stealing_plans[0] > 0 && stealing_plans[1] > 0);
}

/* Not with one thread, nor in products that are empty or small. */
static void only_large_products_of_several_threads_steal(void **unused) {
  (void)unused;
  for (int e = 0; e < ENGINES; e++) {
    if (!engine_here(engines[e].name)) continue;
    for (int c = 0; c < CASES; c++) {
      const int transposes = cases[c].transposes;
      assert_true(plan_of_shape(engine_here(engines[e].name), engines[e].dtype, cases[c].m, cases[c].n,
                                cases[c].k, transposes, 2)
                      .tiles.steal);
    }
    assert_false(
        plan_of_shape(engine_here(engines[e].name), engines[e].dtype, 128, 4096, 4096, 0, 1).tiles.steal);
    assert_false(
        plan_of_shape(engine_here(engines[e].name), engines[e].dtype, 128, 64, 784, 0, 2).tiles.steal);
    assert_false(
        plan_of_shape(engine_here(engines[e].name), engines[e].dtype, 128, 256, 784, 0, 2).tiles.steal);
    assert_false(
        plan_of_shape(engine_here(engines[e].name), engines[e].dtype, 1 << 20, 4096, 0, 0, 2).tiles.steal);
  }
}

/* Threads of these speeds take tiles; do they get small tiles in the next run? */
static bool takes_small_tiles_after(const mix_gemm_plan *plan, const double *speeds) {
  mix_gemm_stealing *stealing = mix_gemm_new_stealing(plan);
  mix_gemm_work work[2];
  bool done[2] = {false, false};
  assert_non_null(stealing);
  stealing->fine = false;
  for (int rank = 0; rank < 2; rank++) mix_gemm_begin(&work[rank], plan, stealing, rank);
  while (!done[0] || !done[1]) {
    const bool second =
        done[0] || (!done[1] && (double)work[1].done / speeds[1] < (double)work[0].done / speeds[0]);
    mix_gemm_tile tile;
    done[second] = !mix_gemm_next_tile(&work[second], &tile);
  }
  for (int rank = 0; rank < 2; rank++) {
    mix_gemm_end(&work[rank]);
    stealing->each[rank].ticks = (uint64_t)((double)work[rank].done / speeds[rank]);
  }
  mix_gemm_reset_stealing(plan, stealing);
  const bool fine = stealing->fine;
  mix_free(stealing);
  return fine;
}

/* Also with shares that are uneven, in panels and chunks. */
static void small_tiles_are_for_threads_of_different_speeds(void **unused) {
  (void)unused;
  static const int64_t shapes[][3] = {
      {128, 4096, 4096}, {128, 784, 4096}, {128, 576, 4096}, {128, 3150, 4096}, {4096, 4096, 128}};
  for (int e = 0; e < ENGINES; e++)
    for (size_t s = 0; engine_here(engines[e].name) && s < sizeof shapes / sizeof *shapes; s++) {
      const mix_gemm_plan plan = plan_of_shape(engine_here(engines[e].name), engines[e].dtype, shapes[s][0],
                                               shapes[s][1], shapes[s][2], shapes[s][2] == 128, 2);
      if (!plan.tiles.steal) continue;
      assert_false(takes_small_tiles_after(&plan, (const double[]){1, 1}));
      assert_false(takes_small_tiles_after(&plan, (const double[]){1, 1.05}));
      assert_true(takes_small_tiles_after(&plan, (const double[]){1, 1.3}));
      assert_true(takes_small_tiles_after(&plan, (const double[]){1.3, 1}));
    }
}

static void float16_sums_pack_once_what_tiles_share(void **unused) {
  (void)unused;
  const mix_gemm_engine *avx512 = engine_here("t4x16_avx512fp16"),
                        *engine = avx512 ? avx512 : engine_here("t4x16_neonfp16");
  if (!engine) SKIP("this processor lacks float16 arithmetic");
  if (mix_cpu_cache(2) != 2 << 20) SKIP("the second cache is not of 2 MiB");
  for (int c = 0; c < CASES; c++) {
    const mix_gemm_plan plan =
        plan_of_shape(engine, MIX_FLOAT16, cases[c].m, cases[c].n, cases[c].k, cases[c].transposes, 2);
    assert_int_equal(mix_fp16_plan_of(&plan)->packed_once ? plan.tiles.by_columns ? 'A' : 'B' : '-',
                     cases[c].once);
  }
}

/* ---- products ---- */

/* One thread after the other, in this order: the first does the work of all. In a second run what was taken
 * is there again. */
static void run_in_order(const mix_kernel *kernel, product *x, const int *order, int threads, int runs) {
  const void *inputs[2] = {x->in[0], x->in[1]};
  mix_kernel_args args = args_of(x);
  args.inputs = inputs, args.outputs = &x->out;
  const size_t bytes = kernel->workspace(&args, threads);
  args.workspace = mix_alloc_buffer(bytes);
  assert_non_null(args.workspace);
  assert_true(kernel->prepare(&args, threads));
  for (int run = 0; run < runs; run++) {
    free(x->out);
    x->out = new_result(x);
    for (int i = 0; i < threads; i++)
      run_as_in_a_plan(kernel, &args, &(mix_team){.rank = order[i], .size = threads});
  }
  kernel->release(args.prepared);
  mix_free_buffer(args.workspace, bytes);
}

static void same_bits_whoever_computes_what(const mix_kernel *kernel) {
  static const int orders[][2] = {{0, 1}, {1, 0}};
  ask_for_sums_of(kernel);
  /* Float16 sums alone pack once. Those of NEON have run under an emulator alone, where all take minutes. */
  const int count = strstr(kernel->name, "_t4x16_avx512fp16") ? CASES : 2;
  for (int c = 0; c < count; c++) {
    product x = make_product(kernel->operands, cases[c].m, cases[c].n, cases[c].k, cases[c].transposes);
    const size_t bytes = mix_value_bytes(x.output.dtype, x.output.shape);
    fill(&x, 0, 0), fill(&x, 1, 0);
    const mix_kernel_args args = args_of(&x);
    assert_null(shapes_of(kernel)->unsupported_reason(&args));
    run_with(kernel, &x, 1);
    void *alone = x.out;
    for (int o = 0; o < 2; o++) {
      x.out = new_result(&x);
      run_in_order(kernel, &x, orders[o], 2, o == 0 ? 2 : 1);
      assert_memory_equal(alone, x.out, bytes);
      free(x.out);
    }
    x.out = new_result(&x);
    run_with(kernel, &x, 2);
    assert_memory_equal(alone, x.out, bytes);
    free(alone);
    free_product(&x);
  }
}

/* Products of a batch that all threads share have tiles too. Each is a run of its own, without stealing. */
static void batches_of_large_products(const mix_kernel *kernel) {
  enum { COUNT = 3, M = 520, N = 530, K = 500 };
  product x = make_product(kernel->operands, COUNT * M, N, K, 0);
  x.op = &mix_op_batch_matmul;
  x.inputs[0].shape = MIX_SHAPE(COUNT, M, K), x.output.shape = MIX_SHAPE(COUNT, M, N);
  ask_for_sums_of(kernel);
  fill(&x, 0, 0), fill(&x, 1, 0);
  check_same_bits(kernel, &x);
  free_product(&x);
}

/* Not portable C: it is slow, and has the same driver as AVX2. */
static bool steals_tiles(const mix_kernel *kernel) { return kernel->needs && !strstr(kernel->name, "amx"); }
static bool stands_for_its_driver(const mix_kernel *kernel) {
  return strstr(kernel->name, "_t4x16_") || strstr(kernel->name, "_f32_acc32_avx") ||
         strstr(kernel->name, "_f32_acc32_neon");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tiles_cover_the_result_once),
      cmocka_unit_test(only_large_products_of_several_threads_steal),
      cmocka_unit_test(small_tiles_are_for_threads_of_different_speeds),
      cmocka_unit_test(float16_sums_pack_once_what_tiles_share),
  };
  static const kernel_test kernel_tests[] = {
      {"same_bits_whoever_computes_what", same_bits_whoever_computes_what, steals_tiles},
      {"batches_of_large_products", batches_of_large_products, stands_for_its_driver}};
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return failed + WITH_EACH_KERNEL(kernel_tests);
}
