/* Plans of one weight that pack it alike: they share what they pack, which stays while a run reads it, though
 * another run finds the weight changed. */
/* Holds docs/NUMERICS.md: The same bits again. */
#include "backend/host/executor.h"
#include "backend/host/panels.h"
#include "base/alloc.h"
#include "ops/table.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 40, TERMS = 300, COLUMNS = 200 };

static float x[ROWS * TERMS], weight[TERMS * COLUMNS], result[ROWS * COLUMNS], expected[ROWS * COLUMNS];
static const mix_kernel_row *const tables[] = {mix_cpu_kernels, mix_ref_kernels, NULL};
static const mix_matmul_attributes attributes;
static const int inputs[] = {0, 1}, outputs[] = {2};
static mix_slot slots[3];
static mix_step product = {
    .op = &mix_op_matmul, .attributes = &attributes, .input_count = 2, .output_count = 1, .guard = -1};
static const void *const names[] = {&weight};

static mix_slot slot_of(mix_slot_kind kind, int64_t rows, int64_t columns) {
  return (mix_slot){.kind = kind,
                    .dtype = MIX_FLOAT32,
                    .shape = MIX_SHAPE(rows, columns),
                    .bytes = sizeof(float) * (size_t)(rows * columns)};
}

static mix_plan plan_of(bool keeps_packed) {
  slots[0] = slot_of(MIX_SLOT_ARGUMENT, ROWS, TERMS);
  slots[1] = slot_of(MIX_SLOT_VARIABLE, TERMS, COLUMNS);
  slots[2] = slot_of(MIX_SLOT_RESULT, ROWS, COLUMNS);
  product.inputs = inputs, product.outputs = outputs;
  return (mix_plan){.slot_count = 3,
                    .slots = slots,
                    .step_count = 1,
                    .steps = &product,
                    .argument_count = 1,
                    .variable_count = 1,
                    .result_count = 1,
                    .keeps_packed = keeps_packed,
                    .variable_names = names};
}

static mix_executable *compiled(const mix_plan *plan) {
  mix_executable *executable = mix_host_compile(plan, 1, mix_matmul_precision_default(), tables, true);
  assert_non_null(executable);
  return executable;
}

static void set_weight(float value) {
  for (int i = 0; i < TERMS * COLUMNS; i++) weight[i] = value * (float)(i % 13 - 6);
}

static void run(mix_executable *executable, const uint64_t *stamps) {
  mix_memory *memories[] = {mix_memory_wrap(x, sizeof x, NULL), mix_memory_wrap(weight, sizeof weight, NULL),
                            mix_memory_wrap(result, sizeof result, NULL)};
  memset(result, 0, sizeof result);
  assert_true(mix_host_enqueue(executable, &(mix_bindings){.arguments = memories,
                                                           .variables = memories + 1,
                                                           .results = memories + 2,
                                                           .stamps = stamps}));
  for (int i = 0; i < 3; i++) mix_release(memories[i]);
}

/* Integers of small magnitude: exact sums, in whatever order. */
static void check(mix_executable *executable, const uint64_t *stamps) {
  memset(expected, 0, sizeof expected);
  for (int i = 0; i < ROWS; i++)
    for (int k = 0; k < TERMS; k++)
      for (int j = 0; j < COLUMNS; j++)
        expected[i * COLUMNS + j] += x[i * TERMS + k] * weight[k * COLUMNS + j];
  run(executable, stamps);
  assert_memory_equal(result, expected, sizeof result);
}

static int prepare(void **state) {
  (void)state;
  for (int i = 0; i < ROWS * TERMS; i++) x[i] = (float)(i % 7 - 3);
  set_weight(1);
  return 0;
}

static void plans_share_what_they_pack(void **state) {
  (void)state;
  const mix_plan plan = plan_of(true), other = plan_of(true);
  mix_plan unnamed = plan_of(true);
  unnamed.variable_names = NULL;
  size_t before = mix_buffer_bytes();
  mix_executable *first = compiled(&plan);
  assert_true(mix_buffer_bytes() - before >= sizeof weight);
  before = mix_buffer_bytes();
  mix_executable *second = compiled(&other);
  assert_true(mix_buffer_bytes() - before < sizeof weight);
  before = mix_buffer_bytes();
  mix_executable *third = compiled(&unnamed);
  assert_true(mix_buffer_bytes() - before >= sizeof weight);
  const uint64_t stamp = 1;
  check(first, &stamp);
  check(second, &stamp);
  mix_host_destroy(first);
  check(second, &stamp); /* whose they are now */
  check(third, &stamp);
  mix_host_destroy(second);
  mix_host_destroy(third);
}

static void what_a_run_reads_stays(void **state) {
  (void)state;
  const mix_plan plan = plan_of(true), other = plan_of(true);
  mix_executable *first = compiled(&plan), *second = compiled(&other);
  const uint64_t old = 1, new = 2;
  check(first, &old);
  assert_true(mix_host_hold_kept(first, &old)); /* as in a run that has begun */
  set_weight(2);
  check(second, &new);
  assert_non_null(second->packing); /* it packed for itself */
  assert_true(mix_host_hold_kept(first, &old));
  mix_host_let_kept_go(first);
  check(second, &new);
  mix_host_let_kept_go(first);
  check(second, &new); /* packs anew for both */
  assert_true(mix_host_hold_kept(second, &new) && mix_host_hold_kept(first, &new));
  mix_host_let_kept_go(first);
  mix_host_let_kept_go(second);
  set_weight(3);
  check(first, NULL); /* nothing is known of the weight */
  mix_host_destroy(first);
  mix_host_destroy(second);
}

/* What is being made belongs to one run, and is nobody's where it could not be made. */
static void one_run_makes_them(void **state) {
  (void)state;
  const mix_panels_key key = {.variable = &weight};
  mix_panels *panels = mix_panels_share(&key, 64, true);
  assert_ptr_equal(mix_panels_share(&key, 64, true), panels);
  int run = 0, another = 0;
  assert_false(mix_panels_hold(panels, 1));
  assert_int_equal(mix_panels_claim_for(panels, 1, &run), MIX_PANELS_CLAIMED);
  assert_int_equal(mix_panels_claim_for(panels, 1, &run), MIX_PANELS_HELD); /* another step of the run */
  assert_int_equal(mix_panels_claim_for(panels, 1, &another), MIX_PANELS_BUSY);
  assert_false(mix_panels_hold(panels, 1));
  mix_panels_finish(panels, 1, false);
  assert_false(mix_panels_hold(panels, 1));
  for (int i = 0; i < 2; i++) mix_panels_let_go(panels);
  assert_int_equal(mix_panels_claim_for(panels, 1, &another), MIX_PANELS_CLAIMED);
  mix_panels_finish(panels, 1, true);
  assert_true(mix_panels_hold(panels, 1));
  assert_false(mix_panels_hold(panels, 2));
  assert_int_equal(mix_panels_claim_for(panels, 2, &run), MIX_PANELS_BUSY);
  assert_int_equal(mix_panels_claim_for(panels, 1, &run), MIX_PANELS_HELD);
  for (int i = 0; i < 3; i++) mix_panels_let_go(panels);
  assert_int_equal(mix_panels_claim_for(panels, 2, &run), MIX_PANELS_CLAIMED);
  mix_panels_let_go(panels);
  for (int i = 0; i < 2; i++) mix_panels_release(panels);
}

/* More than all plans may keep is left out, and does not count once it is gone. */
static void there_is_an_end(void **state) {
  (void)state;
  const size_t half = (size_t)128 << 20;
  mix_panels *all[2];
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < 2; i++) assert_non_null(all[i] = mix_panels_share(&(mix_panels_key){0}, half, true));
    assert_null(mix_panels_share(&(mix_panels_key){0}, 64, true));
    mix_panels *loop = mix_panels_share(&(mix_panels_key){0}, 64, false); /* that of a loop */
    assert_non_null(loop);
    mix_panels_release(loop);
    for (int i = 0; i < 2; i++) mix_panels_release(all[i]);
    assert_int_equal(mix_error(), MIX_OK);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(plans_share_what_they_pack, prepare),
      cmocka_unit_test_setup(what_a_run_reads_stays, prepare),
      cmocka_unit_test(one_run_makes_them),
      cmocka_unit_test(there_is_an_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
