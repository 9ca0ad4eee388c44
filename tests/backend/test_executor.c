/* The executor of the host backend on hand-made plans: addresses, barriers, guards, failures. Several threads
 * must give the results of one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/communicator.h"
#include "backend/executor_plans.h"

/* ---- which thread ---- */

/* Where MPI allows one thread, the one that calls the library communicates, also after a stage that another
 * thread ends. */
static void collectives_run_on_the_callers_thread(void **state) {
  (void)state;
  mix_communicator ranks = {.rank = 0, .ranks = 2, .on_caller = true};
  builder *b = builder_new();
  int x = of_kind(b, MIX_SLOT_ARGUMENT, 0, LENGTH), y = arena(b, 0, LENGTH),
      z = of_kind(b, MIX_SLOT_RESULT, 1, LENGTH);
  add_step(b, &op_late, y, x, -1, -1);
  add_step(b, &op_collective, z, y, -1, -1);
  b->plan.communicator = &ranks;
  mix_executable *executable = compiled(b, THREADS);
  for (int i = 0; i < 50; i++) {
    assert_int_equal(run(b, executable), MIX_OK);
    assert_true(pthread_equal(collective_thread, pthread_self()));
  }
  mix_host_destroy(executable);
  builder_free(b);
}

/* ---- barriers ---- */

static void serial_plans_need_no_team(void **state) {
  (void)state;
  builder *b = builder_new();
  int x = of_kind(b, MIX_SLOT_ARGUMENT, 0, LENGTH), y = arena(b, 0, LENGTH),
      z = of_kind(b, MIX_SLOT_RESULT, 1, LENGTH);
  add_step(b, &op_serial, y, x, -1, -1);
  add_step(b, &op_serial, z, y, x, -1);
  assert_int_equal(barriers(b, THREADS), 0);
  assert_threads_agree(b);
  word expected = mixed(mixed(2, mixed(1, b->arguments_data[0][5])), b->arguments_data[0][5]);
  assert_true(b->results_data[1][5] == expected);
  builder_free(b);
}

/* Two steps on the team over x -> y -> z: how many barriers are between them? */
static int between(const mix_op *first, const mix_op *second, int64_t first_grain, int64_t second_grain,
                   bool reversed) {
  builder *b = builder_new();
  int x = of_kind(b, MIX_SLOT_ARGUMENT, 0, LENGTH), y = arena(b, 0, LENGTH), z = arena(b, LENGTH, LENGTH);
  settings_of(b, add_step(b, first, y, x, -1, -1))->grain = first_grain;
  settings *s = settings_of(b, add_step(b, second, z, y, -1, -1));
  s->grain = second_grain;
  s->reversed = reversed;
  int count = barriers(b, THREADS);
  assert_int_equal(barriers(b, 1), 0);
  assert_threads_agree(b);
  builder_free(b);
  return count;
}

static void a_barrier_only_where_data_crosses(void **state) {
  (void)state;
  assert_int_equal(between(&op_team, &op_team, 4, 4, false), 0);
  assert_int_equal(between(&op_team, &op_team, 4, 2, false), 1);   /* another partition */
  assert_int_equal(between(&op_team, &op_team, 4, 4, true), 1);    /* elements of other threads */
  assert_int_equal(between(&op_team, &op_plain, 4, 4, false), 1);  /* unknown partition */
  assert_int_equal(between(&op_serial, &op_team, 4, 4, false), 1); /* from thread 0 to the team */
  assert_int_equal(between(&op_team, &op_serial, 4, 4, false), 1); /* and back */
  assert_int_equal(between(&op_serial, &op_serial, 4, 4, false), 0);
  /* One barrier inside each, one between them for data and workspace. */
  assert_int_equal(between(&op_exchange, &op_exchange, 4, 4, false), 3);
}

static void writes_wait_for_readers_and_writers(void **state) {
  (void)state;
  builder *b = builder_new();
  int x = of_kind(b, MIX_SLOT_ARGUMENT, 0, LENGTH), y = arena(b, 0, LENGTH), z = arena(b, LENGTH, LENGTH),
      w = arena(b, 12, LENGTH);
  add_step(b, &op_team, y, x, -1, -1);
  add_step(b, &op_team, z, y, -1, -1);
  add_step(b, &op_team, w, x, -1, -1); /* over parts of y and z */
  assert_int_equal(barriers(b, THREADS), 1);
  assert_threads_agree(b);
  int t = arena(b, 4 * LENGTH, LENGTH);
  add_step(b, &op_team, t, x, -1, -1); /* does not touch the others' slots */
  assert_int_equal(barriers(b, THREADS), 1);
  assert_threads_agree(b);
  builder_free(b);
}

static void updates_in_place_of_one_share_need_none(void **state) {
  (void)state;
  builder *b = builder_new();
  int v = of_kind(b, MIX_SLOT_VARIABLE, 2, LENGTH), x = of_kind(b, MIX_SLOT_ARGUMENT, 0, LENGTH);
  for (int i = 0; i < 4; i++) add_step(b, &op_team, v, v, x, -1);
  assert_int_equal(barriers(b, THREADS), 0);
  assert_threads_agree(b);
  builder_free(b);
}

static void slots_of_one_variable_alias(void **state) {
  (void)state;
  builder *b = builder_new();
  int v = of_kind(b, MIX_SLOT_VARIABLE, 2, LENGTH), same = of_kind(b, MIX_SLOT_VARIABLE, 2, LENGTH),
      y = arena(b, 0, LENGTH);
  add_step(b, &op_team, v, -1, -1, -1);
  settings_of(b, add_step(b, &op_team, y, same, -1, -1))->reversed = true;
  assert_int_equal(barriers(b, THREADS), 1);
  assert_threads_agree(b);
  builder_free(b);
}

/* Random plans of all kinds of steps over overlapping slots: three threads must give the bytes of one. */
static void random_plans(void **state) {
  (void)state;
  uint64_t seed = 20240521;
#define RANDOM(n) ((int)((seed = seed * 6364136223846793005 + 1442695040888963407) >> 33) % (n))
  for (int round = 0; round < 150; round++) {
    builder *b = builder_new();
    int values[24], count = 0;
    size_t from[24];
    for (int i = 0; i < 12; i++) { /* half overlapping */
      from[count] = (size_t)RANDOM(16) * (LENGTH / 2);
      values[count] = arena(b, from[count], LENGTH);
      count++;
    }
    int flag = arena_bool(b, 15 * LENGTH), variable = of_kind(b, MIX_SLOT_VARIABLE, 1, LENGTH),
        argument = of_kind(b, MIX_SLOT_ARGUMENT, 3, LENGTH);
    add_step(b, &op_even, flag, argument, -1, -1);
    for (int i = 0; i < 30; i++) {
      static const mix_op *const ops[] = {&op_team, &op_team, &op_plain, &op_serial, &op_exchange};
      const mix_op *op = ops[RANDOM(5)];
      int out = RANDOM(count), first = RANDOM(count), second = RANDOM(count);
      int operands[2] = {values[first], values[second]}, places[2] = {first, second};
      for (int k = 0; k < 2;
           k++) { /* an operand may be the result itself, but must not overlap it partially */
        size_t gap = from[places[k]] > from[out] ? from[places[k]] - from[out] : from[out] - from[places[k]];
        if (gap && gap < LENGTH) operands[k] = argument;
      }
      bool written = RANDOM(6) == 0;
      mix_step *step = add_step(b, op, written ? variable : values[out], operands[0], operands[1],
                                RANDOM(4) ? -1 : variable);
      if (written && RANDOM(2)) step->writes_variable = true;
      settings *s = settings_of(b, step);
      s->grain = RANDOM(3) ? 4 : 3;
      bool in_place = written ? step->input_count == 3
                              : operands[0] == values[out] || operands[1] == values[out] ||
                                    (operands[0] != argument && from[first] == from[out]) ||
                                    (operands[1] != argument && from[second] == from[out]);
      s->reversed = !in_place && RANDOM(3) == 0;
      if (RANDOM(5) == 0) step->guard = flag;
      if (RANDOM(12) == 0) add_step(b, &op_even, flag, values[RANDOM(count)], -1, -1);
      if (RANDOM(40) == 0) s->failure = "told to";
    }
    b->plan.step_count = b->plan.step_count > STEPS ? STEPS : b->plan.step_count;
    assert_threads_agree(b);
    builder_free(b);
  }
#undef RANDOM
}

/* ---- guards and failures ---- */

/* Holds docs/NUMERICS.md: Loss scaling. */
static void guards(void **state) {
  (void)state;
  for (int even = 0; even < 2; even++) {
    builder *b = builder_new();
    b->arguments_data[0][0] = even ? 8 : 9;
    int x = of_kind(b, MIX_SLOT_ARGUMENT, 0, LENGTH), flag = arena_bool(b, 0),
        v = of_kind(b, MIX_SLOT_VARIABLE, 0, LENGTH);
    add_step(b, &op_even, flag, x, -1, -1);
    mix_step *update = add_step(b, &op_team, v, v, x, -1);
    update->guard = flag;
    update->writes_variable = true;
    add_step(b, &op_even, flag, v, -1, -1); /* writes the guard: must wait for all readers */
    assert_int_equal(barriers(b, THREADS), 2);
    assert_threads_agree(b);
    for (int i = 0; i < LENGTH; i++)
      assert_true(b->variable_data[0][i] == (even ? mixed(mixed(2, i), b->arguments_data[0][i]) : i));
    builder_free(b);
  }
}

/* A barrier inside a kernel orders the steps around it only if the kernel runs. */
static void a_skipped_kernel_orders_nothing(void **state) {
  (void)state;
  builder *b = builder_new();
  b->arguments_data[1][0] = 0;
  int x = of_kind(b, MIX_SLOT_ARGUMENT, 0, LENGTH), y = arena(b, 0, LENGTH), z = arena(b, LENGTH, LENGTH),
      w = arena(b, 2 * LENGTH, LENGTH);
  int no =
      add_slot(b, (mix_slot){.kind = MIX_SLOT_ARGUMENT, .index = 1, .dtype = MIX_BOOL, .shape = MIX_SCALAR});
  add_step(b, &op_team, y, x, -1, -1);
  mix_step *middle = add_step(b, &op_exchange, z, x, -1, -1);
  settings_of(b, add_step(b, &op_team, w, y, -1, -1))->reversed = true;
  assert_int_equal(barriers(b, THREADS), 1); /* unguarded: its own barrier is enough */
  assert_threads_agree(b);
  middle->guard = no;
  assert_int_equal(barriers(b, THREADS), 2);
  assert_threads_agree(b);
  builder_free(b);
}

/* Holds docs/NUMERICS.md: NaN, infinity and the error word. */
static void a_failed_run_changes_no_variable(void **state) {
  (void)state;
  for (int threads = 1; threads <= THREADS; threads += 2) {
    builder *b = builder_new();
    int x = of_kind(b, MIX_SLOT_ARGUMENT, 0, LENGTH), y = arena(b, 0, LENGTH),
        v = of_kind(b, MIX_SLOT_VARIABLE, 0, LENGTH);
    int w = of_kind(b, MIX_SLOT_VARIABLE, 1, LENGTH), r = of_kind(b, MIX_SLOT_RESULT, 0, LENGTH);
    settings *s = settings_of(b, add_step(b, &op_team, y, x, -1, -1));
    add_step(b, &op_team, v, v, x, -1)->writes_variable = true;
    add_step(b, &op_serial, w, w, -1, -1)->writes_variable = true;
    add_step(b, &op_team, r, x, -1, -1); /* results are computed anyway */
    mix_executable *executable = compiled(b, threads);
    word before[2][LENGTH];
    memcpy(before, b->variable_data, sizeof before);
    for (int repeat = 0; repeat < 20; repeat++) {
      s->failure = "label outside the classes";
      s->only_slow_fails = threads > 1; /* the others must wait until the failure is visible */
      assert_int_equal(run(b, executable), MIX_VALUE_ERROR);
      assert_string_equal(mix_error_message(),
                          "team in model/dense_1: label outside the classes; the operands are int64 (24)");
      assert_memory_equal(before, b->variable_data, sizeof before);
      assert_int_equal(run(b, executable), MIX_VALUE_ERROR); /* error pending: nothing runs */
      mix_error_clear();
    }
    s->failure = NULL; /* the next run starts without it */
    assert_int_equal(run(b, executable), MIX_OK);
    assert_true(b->variable_data[0][3] != before[0][3] && b->variable_data[1][3] != before[1][3]);
    mix_host_destroy(executable);
    builder_free(b);
  }
}

/* Holds docs/NUMERICS.md: NaN, infinity and the error word. */
/* The error names the first failing step. A failure of a later step must not tear a write of an earlier
 * one. */
static void the_first_failure_counts(void **state) {
  (void)state;
  builder *b = builder_new();
  int x = of_kind(b, MIX_SLOT_ARGUMENT, 0, LENGTH), y = arena(b, 0, LENGTH), z = arena(b, LENGTH, LENGTH),
      v = of_kind(b, MIX_SLOT_VARIABLE, 0, LENGTH);
  add_step(b, &op_team, v, v, x, -1)->writes_variable = true;
  settings *first = settings_of(b, add_step(b, &op_plain, y, x, -1, -1));
  first->failure = "first";
  first->only_slow_fails = true; /* when the others are long past the second */
  settings_of(b, add_step(b, &op_team, z, x, -1, -1))->failure = "second";
  mix_executable *executable = compiled(b, THREADS);
  for (int repeat = 1; repeat <= 50; repeat++) {
    word before = b->variable_data[0][0], last = b->variable_data[0][LENGTH - 1];
    assert_int_equal(run(b, executable), MIX_VALUE_ERROR);
    assert_string_equal(mix_error_message(),
                        "plain_team in model/dense_1: first; the operands are int64 (24)");
    mix_error_clear();
    assert_true(b->variable_data[0][0] == mixed(mixed(1, before), b->arguments_data[0][0]));
    assert_true(b->variable_data[0][LENGTH - 1] == mixed(mixed(1, last), b->arguments_data[0][LENGTH - 1]));
  }
  mix_host_destroy(executable);
  builder_free(b);
}

/* ---- bindings and floating-point environment ---- */

static void addresses_follow_the_bindings(void **state) {
  (void)state;
  builder *b = builder_new();
  static word constant[LENGTH] = {5, 6, 7};
  mix_memory *constant_memory = mix_memory_wrap(constant, sizeof constant, NULL);
  int x = of_kind(b, MIX_SLOT_ARGUMENT, 2, LENGTH), y = arena(b, 3, LENGTH),
      r = of_kind(b, MIX_SLOT_RESULT, 3, LENGTH);
  int c = add_slot(b, (mix_slot){.kind = MIX_SLOT_CONSTANT,
                                 .memory = constant_memory,
                                 .dtype = MIX_INT64,
                                 .shape = MIX_SHAPE(LENGTH)});
  add_step(b, &op_team, y, x, c, -1);
  add_step(b, &op_team, r, y, x, -1);
  mix_executable *executable = compiled(b, 1);
  word other_arena[4 * LENGTH], other_result[LENGTH], other_argument[LENGTH];
  for (int i = 0; i < LENGTH; i++) other_argument[i] = -i;
  for (int variant = 0; variant < 16;
       variant++) { /* each binding old or new, in all combinations and orders */
    b->arguments[2] = variant & 1 ? other_argument : b->arguments_data[2];
    b->results[3] = variant & 2 ? other_result : b->results_data[3];
    memset(b->results[3], 0, sizeof other_result);
    word *memory = variant & 4 ? other_arena : b->arena;
    assert_int_equal(run_on(b, executable, memory), MIX_OK);
    for (int i = 0; i < LENGTH; i++) {
      word a = ((word *)b->arguments[2])[i], inner = mixed(mixed(1, a), constant[i]);
      assert_true(memory[3 + i] == inner);
      assert_true(((word *)b->results[3])[i] == mixed(mixed(2, inner), a));
    }
  }
  mix_host_destroy(executable);
  mix_release(constant_memory);
  builder_free(b);
}

/* Holds docs/NUMERICS.md: Subnormal numbers. */
static void subnormals_are_flushed_during_a_run_only(void **state) {
  (void)state;
  builder *b = builder_new();
  add_step(b, &op_control, of_kind(b, MIX_SLOT_RESULT, 0, LENGTH), -1, -1, -1);
  mix_float_control before = mix_float_control_get();
  for (int flush = 0; flush < 2; flush++)
    for (int threads = 1; threads < 3; threads++) {
      memset(b->results_data, 0xff, sizeof b->results_data);
      mix_executable *executable =
          mix_host_compile(&b->plan, threads, mix_matmul_precision_default(), tables, flush);
      assert_int_equal(run(b, executable), MIX_OK);
      for (int t = 0; t < threads; t++)
        assert_int_equal(b->results_data[0][t] & MIX_FLUSH_SUBNORMALS, flush ? MIX_FLUSH_SUBNORMALS : 0);
      assert_int_equal(mix_float_control_get(), before);
      mix_host_destroy(executable);
    }
  builder_free(b);
}

static void inside_a_parallel_region_one_thread_does_it_all(void **state) {
  (void)state;
  builder *b = builder_new();
  int x = of_kind(b, MIX_SLOT_ARGUMENT, 0, LENGTH), y = arena(b, 0, LENGTH);
  settings *s = settings_of(b, add_step(b, &op_exchange, y, x, -1, -1));
  int r = of_kind(b, MIX_SLOT_RESULT, 0, LENGTH);
  settings_of(b, add_step(b, &op_team, r, y, -1, -1))->reversed = true;
  mix_executable *executable = compiled(b, THREADS);
  assert_int_equal(run(b, executable), MIX_OK);
  word expected[LENGTH];
  memcpy(expected, b->results_data[0], sizeof expected);
  mix_status inside[2] = {MIX_OK, MIX_OK};
  char message[128] = "";
  int levels = omp_get_max_active_levels();
  omp_set_max_active_levels(1);
#pragma omp parallel num_threads(2)
  {
#pragma omp single
    {
      memset(b->results_data, 0, sizeof b->results_data);
      inside[0] = run(b, executable);
      inside[0] = inside[0] ? inside[0] : run(b, executable);
      s->failure = "told to";
      b->steps[0].op = &op_exchange;
      b->settings[1].failure = "told to";
      inside[1] = run(b, executable);
      mix_error_take(message, sizeof message);
    }
  }
  omp_set_max_active_levels(levels);
  assert_int_equal(inside[0], MIX_OK);
  assert_memory_equal(expected, b->results_data[0], sizeof expected);
  assert_int_equal(inside[1], MIX_VALUE_ERROR);
  assert_non_null(strstr(message, "told to"));
  mix_host_destroy(executable);
  builder_free(b);
}

static void a_run_allocates_nothing(void **state) {
  (void)state;
  builder *b = builder_new();
  int x = of_kind(b, MIX_SLOT_ARGUMENT, 0, LENGTH), y = arena(b, 0, LENGTH);
  add_step(b, &op_exchange, y, x, -1, -1);
  mix_executable *executable = compiled(b, THREADS);
  uint64_t before = mix_inject_allocation_failure(-1);
  size_t bytes = mix_buffer_bytes();
  for (int i = 0; i < 5; i++) assert_int_equal(run(b, executable), MIX_OK);
  assert_int_equal(mix_inject_allocation_failure(-1), before);
  assert_int_equal(mix_buffer_bytes(), bytes);
  mix_host_destroy(executable);
  builder_free(b);
}

static void every_allocation_of_compile_may_fail(void **state) {
  (void)state;
  builder *b = builder_new();
  int x = of_kind(b, MIX_SLOT_ARGUMENT, 0, LENGTH), y = arena(b, 0, LENGTH);
  add_step(b, &op_exchange, y, x, -1, -1);
  size_t bytes = mix_buffer_bytes();
  int failures = 0;
  for (;; failures++) {
    mix_inject_allocation_failure(failures);
    mix_executable *executable =
        mix_host_compile(&b->plan, THREADS, mix_matmul_precision_default(), tables, true);
    mix_inject_allocation_failure(-1);
    if (executable) {
      mix_host_destroy(executable);
      break;
    }
    assert_int_equal(mix_error(), MIX_MEMORY_ERROR);
    mix_error_clear();
    assert_int_equal(mix_buffer_bytes(), bytes);
  }
  assert_true(failures >= 5);
  builder_free(b);
}

/* ---- choice of kernels ---- */

typedef struct log_text {
  char text[4096];
} log_text;
static void keep_log(void *context, mix_log_level level, const char *message) {
  (void)level;
  log_text *log = context;
  size_t used = strlen(log->text);
  snprintf(log->text + used, sizeof log->text - used, "%s\n", message);
}

static void dispatch_reports_the_kernels_it_tried(void **state) {
  (void)state;
  log_text log = {""};
  builder *b = builder_new();
  int x = of_kind(b, MIX_SLOT_ARGUMENT, 0, LENGTH), y = arena(b, 0, LENGTH);
  add_step(b, &op_picky, y, x, -1, -1);
  setenv("MIXTAPE_VERBOSE", "dispatch", 1);
  mix_set_log_callback(keep_log, &log);
  mix_executable *executable = compiled(b, 1);
  mix_set_log_callback(NULL, NULL);
  unsetenv("MIXTAPE_VERBOSE");
  assert_string_equal(mix_host_kernel_name(executable, 0), "k_plain");
  assert_null(mix_host_kernel_name(executable, 1));
  assert_non_null(strstr(log.text, "picky(int64 (24)) in model/dense_1"));
  assert_non_null(strstr(log.text, "k_fast: needs"));
  assert_non_null(strstr(log.text, "k_refusing: does not like it; k_plain: serves"));
  mix_host_destroy(executable);
  add_step(b, &op_nobody, y, x, -1, -1);
  assert_null(mix_host_compile(&b->plan, 1, mix_matmul_precision_default(), tables, true));
  assert_int_equal(mix_error(), MIX_UNSUPPORTED);
  assert_non_null(strstr(mix_error_message(), "nobody(int64 (24)) in model/dense_1: no kernel serves it"));
  assert_non_null(strstr(mix_error_message(), "does not like it"));
  mix_error_clear();
  builder_free(b);
}

/* ---- the barrier itself ---- */

static void no_thread_passes_before_the_last_arrives(void **state) {
  (void)state;
  enum { ROUNDS = 2000 };
  mix_barrier barrier = {.patience = 300};
  int counts[THREADS] = {0}, wrong = 0;
#pragma omp parallel num_threads(THREADS) reduction(+ : wrong)
  {
    int rank = omp_get_thread_num(), size = omp_get_num_threads();
    for (int round = 1; round <= ROUNDS; round++) {
      counts[rank] = round;
      mix_barrier_wait(&barrier, size);
      for (int t = 0; t < size; t++) wrong += counts[t] != round;
      mix_barrier_wait(&barrier, size);
    }
  }
  assert_int_equal(wrong, 0);
}

static void shares_cover_everything_once(void **state) {
  (void)state;
  for (int64_t count = 0; count < 40; count++)
    for (int64_t grain = 1; grain < 9; grain++)
      for (int size = 1; size < 6; size++) {
        int64_t expected = 0;
        for (int rank = 0; rank < size; rank++) {
          int64_t begin, end;
          mix_team_share(&(mix_team){.rank = rank, .size = size}, count, grain, &begin, &end);
          assert_true(begin == expected && end >= begin && (begin % grain == 0 || begin == count));
          expected = end;
        }
        assert_true(expected == count);
      }
}

int main(void) {
  mix_host_take_all_threads(true);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(collectives_run_on_the_callers_thread),
      cmocka_unit_test(serial_plans_need_no_team),
      cmocka_unit_test(a_barrier_only_where_data_crosses),
      cmocka_unit_test(writes_wait_for_readers_and_writers),
      cmocka_unit_test(updates_in_place_of_one_share_need_none),
      cmocka_unit_test(slots_of_one_variable_alias),
      cmocka_unit_test(random_plans),
      cmocka_unit_test(guards),
      cmocka_unit_test(a_skipped_kernel_orders_nothing),
      cmocka_unit_test(a_failed_run_changes_no_variable),
      cmocka_unit_test(the_first_failure_counts),
      cmocka_unit_test(addresses_follow_the_bindings),
      cmocka_unit_test(subnormals_are_flushed_during_a_run_only),
      cmocka_unit_test(inside_a_parallel_region_one_thread_does_it_all),
      cmocka_unit_test(a_run_allocates_nothing),
      cmocka_unit_test(every_allocation_of_compile_may_fail),
      cmocka_unit_test(dispatch_reports_the_kernels_it_tried),
      cmocka_unit_test(no_thread_passes_before_the_last_arrives),
      cmocka_unit_test(shares_cover_everything_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
