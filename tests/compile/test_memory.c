/* Static memory: values alive at the same step never share a byte; others do share. */
#include "compile/support.h"
#include "support/captured_graph.h"

#include "base/philox.h"
#include "compile/compile.h"
#include "tensor/memory_inside.h"

static int64_t below(uint64_t *position, uint64_t n) {
  return (int64_t)mix_philox_below(20240607, 0, position, n);
}

static size_t rounded(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

static void check(const mix_lifetime *lives, int count, size_t arena) {
  for (int i = 0; i < count; i++) {
    assert_int_equal(lives[i].offset % 64, 0);
    assert_true(lives[i].offset + rounded(lives[i].bytes) <= arena);
    for (int j = 0; j < i; j++) {
      bool meet = lives[i].first <= lives[j].last && lives[j].first <= lives[i].last;
      bool disjoint = lives[i].offset + rounded(lives[i].bytes) <= lives[j].offset ||
                      lives[j].offset + rounded(lives[j].bytes) <= lives[i].offset;
      if (meet && !disjoint && lives[i].bytes && lives[j].bytes)
        fail_msg("values %d and %d of %d overlap", j, i, count);
    }
  }
}

/* A graph that is compiled for a device with this memory. */
static mix_ir *ir_for(const mix_memory_device *memory) {
  static mix_backend backend;
  static const mix_context context = {.backend = &backend};
  mix_ir *ir = mix_ir_new();
  backend.memory = memory;
  assert_non_null(ir);
  ir->context = &context;
  return ir;
}

static size_t most_alive(const mix_lifetime *lives, int count, int steps) {
  size_t peak = 0;
  for (int t = 0; t < steps; t++) {
    size_t alive = 0;
    for (int i = 0; i < count; i++)
      if (lives[i].first <= t && t <= lives[i].last) alive += rounded(lives[i].bytes);
    if (alive > peak) peak = alive;
  }
  return peak;
}

static void random_lifetimes_never_overlap(void **state) {
  (void)state;
  uint64_t position = 0;
  size_t placed = 0, alive = 0;
  for (int round = 0; round < 400; round++) {
    mix_lifetime lives[80];
    int count = (int)below(&position, 80), steps = 1 + (int)below(&position, 100);
    size_t sum = 0, arena = 0;
    for (int i = 0; i < count; i++) {
      int first = (int)below(&position, (uint64_t)steps),
          length = (int)below(&position, round % 2 ? 8 : (uint64_t)steps);
      size_t bytes = (size_t)below(&position, round % 3 ? 5000 : 200);
      lives[i] = (mix_lifetime){.slot = i,
                                .first = first,
                                .last = first + length < steps ? first + length : steps - 1,
                                .bytes = bytes};
      sum += rounded(bytes);
    }
    mix_ir *ir = ir_for(&mix_host_memory);
    assert_true(mix_plan_memory(ir, lives, count, &arena));
    mix_ir_free(ir);
    check(lives, count, arena);
    assert_true(arena <= sum);
    assert_true(arena >= most_alive(lives, count, steps));
    placed += arena;
    alive += most_alive(lives, count, steps);
  }
  assert_true(placed <= alive + alive / 100); /* by size alone it is 1.026 of what is alive */
}

/* More values than are placed by size: the small ones come in order of time. */
static void many_lifetimes_never_overlap(void **state) {
  (void)state;
  enum { COUNT = 5000, STEPS = 3000 };
  static mix_lifetime lives[COUNT];
  uint64_t position = 0;
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < COUNT; i++) {
      int first = (int)below(&position, STEPS), last = first + (int)below(&position, round ? 20 : STEPS);
      lives[i] = (mix_lifetime){.slot = i,
                                .first = first,
                                .last = last < STEPS ? last : STEPS - 1,
                                .bytes = (size_t)below(&position, round == 2 ? 64 : 5000)};
    }
    size_t arena = 0;
    mix_ir *ir = ir_for(&mix_host_memory);
    assert_true(mix_plan_memory(ir, lives, COUNT, &arena));
    mix_ir_free(ir);
    check(lives, COUNT, arena);
    size_t sum = 0;
    for (int i = 0; i < COUNT; i++) sum += rounded(lives[i].bytes);
    assert_true(arena <= 2 * sum);
    if (round && arena >= sum / 10) /* about 17 of 5000 are alive at once */
      fail_msg("round %d: %zu bytes for %zu", round, arena, sum);
  }
}

/* The gradient of a chain of sines, of an argument, for constants are folded: what compilation looks at grows
 * as the chain. */
static uint64_t visits_of_sines(int count) {
  uint64_t visits = 0;
  MIX_SCOPE {
    graph g;
    begin_graph(&g);
    mix_tensor *x = argument(&g, MIX_FLOAT32, MIX_SHAPE(3)), *y = x;
    mix_tape *tape = mix_tape_begin();
    mix_tape_watch(tape, x);
    for (int i = 0; i < count; i++) y = mix_sin(y);
    mix_tape_end(tape);
    mix_context context = mix_context_default();
    context.backend = context.backend->host;
    mix_compiled *compiled =
        mix_compile(end_graph(&g, mix_tape_gradient(tape, y, mix_list_of(x))), &context, false);
    no_error();
    assert_non_null(compiled);
    visits = compiled->ir->visits;
    mix_compiled_free(compiled);
  }
  assert_true(visits > (uint64_t)count);
  return visits;
}
static void chains_of_gradients_are_linear(void **state) {
  (void)state;
  const uint64_t once = visits_of_sines(12000), twice = visits_of_sines(24000);
  if (twice > 5 * once / 2)
    fail_msg("%llu visits for a chain, %llu for one of twice its length", (unsigned long long)once,
             (unsigned long long)twice);
}

/* Largest first needs at most the memory of the two largest neighbours of a chain. */
static void a_chain_needs_two_values(void **state) {
  (void)state;
  mix_lifetime lives[50];
  for (int i = 0; i < 50; i++) lives[i] = (mix_lifetime){.slot = i, .first = i, .last = i + 1, .bytes = 1000};
  size_t arena;
  mix_ir *ir = ir_for(&mix_host_memory);
  assert_true(mix_plan_memory(ir, lives, 50, &arena));
  mix_ir_free(ir);
  check(lives, 50, arena);
  assert_int_equal(arena, 2 * 1024);
}

/* The device says where a value may begin. */
static void values_begin_where_the_device_wants_them(void **state) {
  (void)state;
  enum { COUNT = 3000 }; /* some come in order of time */
  static mix_lifetime lives[COUNT];
  mix_memory_device pages = mix_host_memory;
  pages.alignment = 4096;
  for (int i = 0; i < COUNT; i++)
    lives[i] = (mix_lifetime){.slot = i, .first = i, .last = i + 2, .bytes = (size_t)(1 + 3 * i)};
  size_t arena = 0;
  mix_ir *ir = ir_for(&pages);
  assert_true(mix_plan_memory(ir, lives, COUNT, &arena));
  mix_ir_free(ir);
  check(lives, COUNT, arena);
  for (int i = 0; i < COUNT; i++) assert_int_equal(lives[i].offset % 4096, 0);
  assert_int_equal(arena % 4096, 0);
}

static mix_list *alternating(void *context, mix_list *arguments) {
  mix_tensor *x = mix_list_get(arguments, 0);
  (void)context;
  for (int i = 0; i < 12; i++) x = mix_tanh(mix_matmul(x, mix_list_get(arguments, 1), false, false));
  return mix_list_of(mix_reduce_sum(x, MIX_ALL_AXES, false));
}

static void a_deep_network_shares(void **state) {
  (void)state;
  mix_function *function = mix_function_new(alternating, NULL);
  mix_list *arguments = mix_list_of(mix_fill(MIX_SHAPE(32, 32), 0.1, MIX_FLOAT32),
                                    mix_fill(MIX_SHAPE(32, 32), 0.01, MIX_FLOAT32));
  mix_function_call(function, arguments);
  no_error();
  mix_plan_report report;
  assert_int_equal(mix_function_report(function, &report, sizeof report), MIX_OK);
  assert_true(report.unshared_bytes >= 12 * 32 * 32 * 4);
  assert_true(report.arena_bytes <= 2 * 32 * 32 * 4 + 64);
  assert_int_equal(report.argument_bytes, 2 * 32 * 32 * 4);
  assert_int_equal(report.result_bytes, 4);
  assert_true(report.peak_bytes >= report.arena_bytes + report.argument_bytes + report.result_bytes);
}

static mix_list *keeps_everything(void *context, mix_list *arguments) {
  (void)context;
  mix_tensor *x = mix_list_get(arguments, 0), *sums[8];
  for (int i = 0; i < 8; i++) sums[i] = mix_matmul(x, mix_add(x, scalar(i)), false, false);
  mix_tensor *total = mix_transpose(sums[0], MIX_AXES(1, 0));
  for (int i = 1; i < 8; i++) total = mix_matmul(total, sums[i], i % 2, false);
  return mix_list_of(total, sums[3]);
}

/* Values of real plans do not overlap either: results equal those of each op alone. */
static void plans_give_what_single_steps_give(void **state) {
  (void)state;
  double numbers[64], together[2][64], alone[2][64];
  for (int i = 0; i < 64; i++) numbers[i] = (i * 7 % 5 - 2) / 8.0;
  mix_tensor *x = mix_tensor_from_doubles(numbers, MIX_FLOAT64, MIX_SHAPE(8, 8));
  mix_list *arguments = mix_list_of(mix_cast(x, MIX_FLOAT32));
  mix_list *results = mix_function_call(mix_function_new(keeps_everything, NULL), arguments);
  no_error();
  mix_list *lazy = keeps_everything(NULL, arguments);
  for (int i = 0; i < 2; i++) {
    mix_tensor_read(mix_list_get(results, i), MIX_FLOAT64, together[i], 64);
    mix_tensor_read(mix_list_get(lazy, i), MIX_FLOAT64, alone[i], 64);
  }
  no_error();
  assert_memory_equal(together, alone, sizeof alone);
}

/* h + A B where h is not needed again, a row sum that is broadcast, a value that is read again later, and a
 * change of width: cases for and against overwriting an operand. */
static mix_list *residuals(void *context, mix_list *arguments) {
  (void)context;
  mix_tensor *x = mix_list_get(arguments, 0), *w = mix_list_get(arguments, 1);
  mix_tensor *h = mix_matmul(x, w, false, false);
  for (int i = 0; i < 4; i++) h = mix_tanh(mix_add(mix_matmul(h, w, false, false), h));
  mix_tensor *kept = mix_matmul(h, w, false, false), *row = mix_reduce_sum(kept, MIX_AXES(0), true);
  mix_tensor *spread = mix_multiply(mix_add(kept, mix_matmul(row, w, false, false)), kept);
  mix_tensor *half = mix_cast(mix_matmul(spread, w, false, false), MIX_FLOAT16);
  mix_tensor *wide =
      mix_add(mix_cast(mix_matmul(half, mix_cast(w, MIX_FLOAT16), false, false), MIX_FLOAT32), spread);
  return mix_list_of(mix_reduce_sum(mix_matmul(wide, spread, false, true), MIX_AXES(1), false),
                     mix_reduce_sum(kept, MIX_AXES(0), false));
}

/* A sum of products of the arguments: the sum is written over one of them. */
static mix_list *sums_of_products(void *context, mix_list *arguments) {
  (void)context;
  mix_tensor *x = mix_list_get(arguments, 0), *w = mix_list_get(arguments, 1),
             *h = mix_matmul(x, w, false, false);
  for (int i = 0; i < 4; i++) h = mix_tanh(mix_add(mix_matmul(w, x, i & 1, i & 2), h));
  return mix_list_of(mix_reduce_sum(h, MIX_AXES(1), false), mix_reduce_sum(h, MIX_AXES(0), false));
}

static size_t arena_of(mix_function_body body, const char *device, const char *disabled, double *numbers) {
  enum { N = 48 };
  setenv("MIXTAPE_DISABLE_PASSES", disabled, 1);
  mix_set_device(device);
  mix_set_threads(2);
  double data[2 * N * N];
  for (int i = 0; i < 2 * N * N; i++) data[i] = (i * 37 % 101 - 50) / 300.0;
  mix_list *arguments =
      mix_list_of(mix_cast(mix_tensor_from_doubles(data, MIX_FLOAT64, MIX_SHAPE(N, N)), MIX_FLOAT32),
                  mix_cast(mix_tensor_from_doubles(data + N * N, MIX_FLOAT64, MIX_SHAPE(N, N)), MIX_FLOAT32));
  mix_function *function = mix_function_new(body, NULL);
  mix_list *results = mix_function_call(function, arguments);
  no_error();
  for (int i = 0; i < 2; i++) mix_tensor_read(mix_list_get(results, i), MIX_FLOAT64, numbers + i * N, N);
  mix_plan_report report;
  assert_int_equal(mix_function_report(function, &report, sizeof report), MIX_OK);
  return report.arena_bytes;
}

static void results_reuse_the_memory_of_dead_operands(void **state) {
  (void)state;
  static const char *const devices[] = {"cpu", "ref"}, *const without[] = {"inplace", "memory_plan,inplace",
                                                                           "inplace,fuse_epilogues,fuse",
                                                                           "fuse_epilogues"};
  double numbers[96], others[96];
  for (int d = 0; d < 2; d++)
    for (int b = 0; b < 2; b++) {
      mix_function_body body = b ? sums_of_products : residuals;
      size_t bytes[4], shared = arena_of(body, devices[d], "", numbers);
      for (int w = 0; w < 4; w++) {
        bytes[w] = arena_of(body, devices[d], without[w], others);
        assert_memory_equal(numbers, others, sizeof numbers);
      }
      assert_true(shared <= bytes[0] && bytes[0] <= bytes[1]);
      if (b) assert_int_equal(bytes[0] - shared, 48 * 48 * 4); /* one value fewer */
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(random_lifetimes_never_overlap),           TEST(many_lifetimes_never_overlap),
      TEST(chains_of_gradients_are_linear),           TEST(a_chain_needs_two_values),
      TEST(values_begin_where_the_device_wants_them), TEST(a_deep_network_shares),
      TEST(plans_give_what_single_steps_give),        TEST(results_reuse_the_memory_of_dead_operands),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
