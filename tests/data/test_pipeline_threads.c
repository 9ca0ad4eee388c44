/* Pipeline steps with threads: prefetch and the parallel map. Same values, errors at the right call, and
 * iterators that may be dropped at any time. Also runs under ThreadSanitizer. */
#include "support/skip.h"
#include "data/pipeline_support.h"

#include "base/processor.h"
#include "graph/tape.h"
#include "graph/variable.h"
#include <mixtape/ops.h>
#include <mixtape/tape.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

static void pause_microseconds(long microseconds) {
  nanosleep(&(struct timespec){0, microseconds * 1000}, NULL);
}

/* Waits for a condition that another thread sets. A minute exceeds any machine's delay. */
#define EVENTUALLY(condition)                                                                                \
  for (int tries_ = 0; !(condition); tries_++) {                                                             \
    assert_true(tries_ < 60000);                                                                             \
    pause_microseconds(1000);                                                                                \
  }

static mix_list *square(void *context, mix_list *element) {
  if (context) atomic_fetch_add((atomic_int *)context, 1);
  return mix_list_of(integer(value_of(element, 0) * value_of(element, 0)));
}
/* Later elements are ready earlier. */
static mix_list *slowly(void *context, mix_list *element) {
  (void)context;
  pause_microseconds(100 * (7 - value_of(element, 0) % 8));
  return element;
}
static mix_list *fails_from_five(void *context, mix_list *element) {
  (void)context;
  int64_t value = value_of(element, 0);
  if (value == 5) pause_microseconds(2000); /* the ones after it fail first */
  int64_t two[2] = {value, value};
  if (value < 5) return element;
  mix_list_get(element, (int)value); /* "index is 5" */
  return mix_list_of(mix_tensor_from(two, MIX_INT64, MIX_SHAPE(2)));
}

static void prefetch_changes_no_value(void **state) {
  (void)state;
  static const int64_t counts[] = {-1, 0, 1, 2, 5, 100, INT64_MAX};
  FOR_EACH_SOURCE(from)
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    assert_string_equal(elements(mix_dataset_prefetch(from(9), counts[i]), 99), "0 1 2 3 4 5 6 7 8");
    assert_string_equal(elements(mix_dataset_prefetch(from(0), counts[i]), 99), "");
    mix_dataset *batches = mix_dataset_prefetch(mix_dataset_batch(from(7), 2), counts[i]);
    assert_string_equal(elements(batches, 99), "[0 1] [2 3] [4 5] [6]");
    assert_string_equal(elements(batches, 99), "[0 1] [2 3] [4 5] [6]"); /* the next pass */
    assert_int_equal(mix_dataset_cardinality(batches), 4);
    assert_string_equal(
        elements(mix_dataset_batch(mix_dataset_prefetch(mix_dataset_prefetch(from(5), counts[i]), 2), 3), 99),
        "[0 1 2] [3 4]");
  }
}

static mix_list *count_up(void *context, int64_t index) {
  atomic_fetch_add((atomic_int *)context, 1);
  return mix_list_of(integer(index));
}

/* After one element is requested, five more are made in advance and no more. */
static void prefetch_makes_buffer_size_elements_in_advance(void **state) {
  (void)state;
  atomic_int made = 0;
  mix_iterator *iterator =
      mix_dataset_iterate(mix_dataset_prefetch(mix_dataset_from_generator(count_up, .context = &made), 5));
  assert_int_equal(made, 0); /* threads start with the first call */
  assert_int_equal(value_of(mix_iterator_next(iterator), 0), 0);
  EVENTUALLY(atomic_load(&made) == 6);
  pause_microseconds(2000);
  assert_int_equal(atomic_load(&made), 6);
  assert_string_equal(elements_of(iterator, 5), "1 2 3 4 5");
}

/* -1 and no free core: the consumer's thread makes the element if that is computation, not waiting. */
static void automatic_prefetch_leaves_busy_cores(void **state) {
  (void)state;
  atomic_int made = 0;
  mix_set_threads(mix_cpu_cores());
  mix_iterator *iterator =
      mix_dataset_iterate(mix_dataset_prefetch(mix_dataset_from_generator(count_up, .context = &made), -1));
  for (int i = 0; i < 100; i++) {
    assert_int_equal(value_of(mix_iterator_next(iterator), 0), i);
    assert_int_equal(atomic_load(&made), i + 1);
  }
}

static void automatic_prefetch_uses_a_free_core(void **state) {
  (void)state;
  atomic_int made = 0;
  if (mix_cpu_cores() < 2) SKIP("there is one core");
  mix_set_threads(1);
  mix_iterator *iterator =
      mix_dataset_iterate(mix_dataset_prefetch(mix_dataset_from_generator(count_up, .context = &made), -1));
  assert_int_equal(value_of(mix_iterator_next(iterator), 0), 0);
  EVENTUALLY(atomic_load(&made) > 1);
  assert_string_equal(elements_of(iterator, 5), "1 2 3 4 5");
}

static mix_list *count_slowly(void *context, int64_t index) {
  pause_microseconds(3000);
  return count_up(context, index);
}

static void prefetch_by_itself_waits_on_a_thread_of_its_own(void **state) {
  (void)state;
  atomic_int made = 0;
  mix_set_threads(mix_cpu_cores());
  mix_iterator *iterator = mix_dataset_iterate(
      mix_dataset_prefetch(mix_dataset_from_generator(count_slowly, .context = &made), -1));
  assert_string_equal(elements_of(iterator, 10), "0 1 2 3 4 5 6 7 8 9");
  EVENTUALLY(atomic_load(&made) > 10);
  assert_string_equal(elements_of(iterator, 3), "10 11 12");
}

static void compute_microseconds(double microseconds) {
  struct timespec t;
  double end = 0, now;
  do {
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    now = 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
    if (end == 0) end = now + microseconds;
  } while (now < end);
}

enum work { NONE, WAIT, COMPUTE };
typedef struct callers {
  pthread_t caller;
  enum work work;
  int64_t failing; /* the element that fails */
  atomic_int here, elsewhere;
} callers;

static mix_list *note_caller(void *context, mix_list *element) {
  callers *c = context;
  if (c->work == WAIT) pause_microseconds(2000);
  if (c->work == COMPUTE) compute_microseconds(2000);
  atomic_fetch_add(pthread_equal(c->caller, pthread_self()) ? &c->here : &c->elsewhere, 1);
  return value_of(element, 0) == c->failing ? mix_list_of(mix_list_get(element, 5)) : element;
}

static void automatic_map_uses_threads_for_slow_functions(void **state) {
  (void)state;
  mix_set_threads(mix_cpu_cores());
  for (enum work work = NONE; work <= COMPUTE; work++) {
    callers c = {.caller = pthread_self(), .work = work, .failing = -1};
    mix_dataset *mapped = mix_dataset_map(range(12), note_caller, .context = &c, .num_parallel_calls = -1);
    assert_string_equal(elements(mapped, 99), "0 1 2 3 4 5 6 7 8 9 10 11");
    assert_int_equal(c.here + c.elsewhere, 12);
    assert_true(c.here > 0);
    assert_true(work == NONE ? c.elsewhere == 0 : c.elsewhere > 0);
  }
}

/* Elements are made by the caller first, and by threads later. */
static void automatic_threads_report_errors_and_can_be_dropped(void **state) {
  (void)state;
  mix_set_threads(mix_cpu_cores());
  for (int64_t at = 0; at < 12; at++) {
    callers c = {.caller = pthread_self(), .work = WAIT, .failing = at};
    mix_dataset *mapped = mix_dataset_prefetch(
        mix_dataset_map(range(12), note_caller, .context = &c, .num_parallel_calls = -1), -1);
    mix_iterator *iterator = mix_dataset_iterate(mapped);
    for (int64_t i = 0; i < at; i++) assert_int_equal(value_of(mix_iterator_next(iterator), 0), i);
    FAILS(mix_iterator_next(iterator), MIX_VALUE_ERROR, "index is 5");
    assert_null(mix_iterator_next(iterator));
    c.failing = -1;
    MIX_SCOPE {
      iterator = mix_dataset_iterate(mapped);
      for (int64_t i = 0; i < at; i++) assert_int_equal(value_of(mix_iterator_next(iterator), 0), i);
    }
    assert_int_equal(mix_error(), MIX_OK);
  }
}

static mix_list *sees_nothing_of_the_caller(void *context, mix_list *element) {
  (void)context;
  return mix_tapes_open() || mix_cast_dtype() != MIX_DTYPE_NONE ? NULL : element;
}

static void automatic_threads_have_no_scope_of_the_caller(void **state) {
  (void)state;
  mix_set_threads(mix_cpu_cores());
  mix_dataset *mapped = mix_dataset_map(range(3), sees_nothing_of_the_caller, .num_parallel_calls = -1);
  mix_dataset *prefetched = mix_dataset_prefetch(mix_dataset_map(range(3), sees_nothing_of_the_caller), -1);
  mix_tape *tape = mix_tape_begin(.persistent = false);
  mix_cast_dtype_set(MIX_FLOAT16);
  assert_string_equal(elements(mapped, 9), "0 1 2");
  assert_string_equal(elements(prefetched, 9), "0 1 2");
  assert_true(mix_tapes_open());
  assert_int_equal(mix_cast_dtype_set(MIX_DTYPE_NONE), MIX_FLOAT16);
  mix_tape_end(tape);
}

static void parallel_map_keeps_the_order(void **state) {
  (void)state;
  FOR_EACH_SOURCE(from)
  for (int threads = 1; threads <= 5; threads++) {
    assert_string_equal(elements(mix_dataset_map(from(9), square, .num_parallel_calls = threads), 99),
                        "0 1 4 9 16 25 36 49 64");
    mix_dataset *slow = mix_dataset_map(from(16), slowly, .num_parallel_calls = threads);
    for (int pass = 0; pass < 3; pass++)
      assert_string_equal(elements(slow, 99), "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15");
    assert_int_equal(mix_dataset_cardinality(slow), 16);
    assert_string_equal(elements(mix_dataset_map(from(0), square, .num_parallel_calls = threads), 99), "");
  }
  assert_string_equal(elements(mix_dataset_map(range(4), square, .num_parallel_calls = -1), 99), "0 1 4 9");
}

static void a_map_without_order_gives_the_same_elements(void **state) {
  (void)state;
  for (int threads = 1; threads <= 4; threads++) {
    mix_dataset *mapped =
        mix_dataset_map(range(200), square, .num_parallel_calls = threads, .not_deterministic = true);
    bool seen[200] = {false};
    int count = 0;
    mix_iterator *iterator = mix_dataset_iterate(mapped);
    for (mix_list *element; (element = mix_iterator_next(iterator)); count++) {
      int64_t root = 0, value = value_of(element, 0);
      while (root * root < value) root++;
      assert_true(root < 200 && root * root == value && !seen[root]);
      seen[root] = true;
    }
    assert_int_equal(mix_error(), MIX_OK);
    assert_int_equal(count, 200);
  }
}

/* Two calls that wait for each other end only if they run at the same time. Without order the first one ready
 * is delivered first. */
static mix_list *meet(void *context, mix_list *element) {
  atomic_int *there = context;
  atomic_fetch_add(there, 1);
  for (int tries = 0; tries < 60000 && atomic_load(there) < 2; tries++) pause_microseconds(1000);
  return atomic_load(there) < 2 ? NULL : element;
}
static mix_list *zero_waits_for_the_others(void *context, mix_list *element) {
  atomic_int *others = context;
  if (value_of(element, 0) != 0) return element;
  for (int tries = 0; tries < 60000 && !atomic_load(others); tries++) pause_microseconds(1000);
  return element;
}
static void calls_run_at_once(void **state) {
  (void)state;
  atomic_int there = 0, others = 0;
  assert_string_equal(
      elements(mix_dataset_map(range(2), meet, .context = &there, .num_parallel_calls = 2), 9), "0 1");
  mix_iterator *iterator =
      mix_dataset_iterate(mix_dataset_map(range(3), zero_waits_for_the_others, .context = &others,
                                          .num_parallel_calls = 2, .not_deterministic = true));
  assert_string_equal(elements_of(iterator, 2), "1 2");
  atomic_store(&others, 1);
  assert_string_equal(elements_of(iterator, 2), "0");
}

/* Elements before the failed one come first, then its own error, whichever thread failed first, then
 * nothing. */
static void an_error_comes_at_the_element_that_failed(void **state) {
  (void)state;
  FOR_EACH_SOURCE(from) {
    mix_dataset *mapped = mix_dataset_map(from(20), fails_from_five, .num_parallel_calls = 4);
    mix_dataset *serial = mix_dataset_prefetch(mix_dataset_map(from(20), fails_from_five), 3);
    mix_dataset *failing[] = {mapped, serial, mix_dataset_prefetch(mapped, 2),
                              mix_dataset_map(serial, square, .num_parallel_calls = 2)};
    static const char *const before[] = {"0 1 2 3 4", "0 1 2 3 4", "0 1 2 3 4", "0 1 4 9 16"};
    for (int i = 0; i < 4; i++) {
      mix_iterator *iterator = mix_dataset_iterate(failing[i]);
      assert_string_equal(elements_of(iterator, 5), before[i]);
      assert_int_equal(mix_error(), MIX_OK);
      FAILS(mix_iterator_next(iterator), MIX_VALUE_ERROR, "(element 5 of dataset_map)");
      assert_null(mix_iterator_next(iterator));
      assert_int_equal(mix_error(), MIX_OK);
    }
    mix_iterator *iterator = mix_dataset_iterate(
        mix_dataset_map(from(20), fails_from_five, .num_parallel_calls = 4, .not_deterministic = true));
    while (mix_iterator_next(iterator)) continue;
    assert_failed(MIX_VALUE_ERROR, "index is");
  }
}

/* Lazy results of functions are computed on their threads, several at a time. */
static mix_list *tripled(void *context, mix_list *element) {
  (void)context;
  mix_tensor *x = mix_list_get(element, 0);
  return mix_list_of(mix_add(mix_add(x, x), x));
}
static void functions_may_leave_values_to_be_computed(void **state) {
  (void)state;
  FOR_EACH_SOURCE(from)
  for (int threads = 1; threads <= 4; threads++) {
    mix_iterator *iterator =
        mix_dataset_iterate(mix_dataset_map(from(60), tripled, .num_parallel_calls = threads));
    for (int64_t i = 0; i < 60; i++) assert_int_equal(value_of(mix_iterator_next(iterator), 0), 3 * i);
    assert_null(mix_iterator_next(iterator));
    assert_int_equal(mix_error(), MIX_OK);
  }
}

/* The function's thread has none of the caller's scopes; objects made there are released there. */
static mix_list *makes_much(void *context, mix_list *element) {
  pthread_t *caller = context;
  if (pthread_equal(*caller, pthread_self())) return NULL;
  mix_scope_begin(); /* left open: the call's own scope ends it */
  for (int i = 0; i < 100; i++) mix_list_of(integer(i));
  return element;
}
static void functions_run_on_threads_of_the_pipeline(void **state) {
  (void)state;
  pthread_t caller = pthread_self();
  assert_string_equal(
      elements(mix_dataset_map(range(3), makes_much, .context = &caller, .num_parallel_calls = 2), 9),
      "0 1 2");
  assert_string_equal(
      elements(mix_dataset_prefetch(mix_dataset_map(range(3), makes_much, .context = &caller), 2), 9),
      "0 1 2");
}

static mix_dataset *everything(source from, atomic_int *calls) {
  mix_dataset *mapped = mix_dataset_map(mix_dataset_repeat(mix_dataset_shuffle(from(10), 4, .seed = 1), -1),
                                        square, .context = calls, .num_parallel_calls = 3);
  mix_dataset *cached = mix_dataset_cache(mix_dataset_prefetch(mix_dataset_take(mapped, 40), -1));
  return mix_dataset_prefetch(
      mix_dataset_batch(mix_dataset_zip(cached, mix_dataset_prefetch(range(40), 2)), 3), 2);
}

/* Dropped before the first element, after it, in the middle, at the end: no thread remains (the counter
 * stops), nothing leaks (under the address sanitizer) and nothing deadlocks. */
static void iterators_can_be_dropped_at_any_moment(void **state) {
  (void)state;
  mix_set_threads(1); /* with a spare core, -1 prefetches elements */
  FOR_EACH_SOURCE(from)
  for (int taken = 0; taken < 16; taken++) {
    atomic_int calls = 0;
    MIX_SCOPE {
      mix_iterator *iterator = mix_dataset_iterate(everything(from, &calls));
      for (int i = 0; i < taken; i++) assert_int_equal(mix_iterator_next(iterator) != NULL, i < 14);
    }
    assert_int_equal(mix_error(), MIX_OK);
    int after = atomic_load(&calls);
    pause_microseconds(200);
    assert_int_equal(atomic_load(&calls), after);
    assert_true(taken > 0 || after == 0);
  }
}

/* Retained elements keep their values while the pass continues on another thread. */
static void kept_elements_stay_what_they_were(void **state) {
  (void)state;
  mix_list *kept = mix_list_new(0, NULL);
  mix_iterator *iterator = mix_dataset_iterate(mix_dataset_prefetch(mix_dataset_batch(range(100), 2), 3));
  for (mix_list *batch; (batch = mix_iterator_next(iterator));) mix_list_append(kept, batch);
  assert_int_equal(mix_list_count(kept), 50);
  for (int64_t i = 0; i < 50; i++) {
    const int64_t *values = mix_tensor_data(mix_list_get(mix_list_get(kept, (int)i), 0));
    assert_int_equal(values[0], 2 * i);
    assert_int_equal(values[1], 2 * i + 1);
  }
}

/* Two concurrent passes of one data set, each with its threads, share rounds of the shuffle and the cache. */
static void passes_run_side_by_side(void **state) {
  (void)state;
  mix_dataset *shuffled =
      mix_dataset_prefetch(mix_dataset_repeat(mix_dataset_shuffle(range(6), 6, .seed = 2), 20), 4);
  mix_dataset *cached =
      mix_dataset_prefetch(mix_dataset_cache(mix_dataset_map(shuffled, square, .num_parallel_calls = 2)), 4);
  mix_iterator *a = mix_dataset_iterate(cached), *b = mix_dataset_iterate(cached);
  int64_t sums[2] = {0};
  for (int i = 0; i < 120; i++) {
    sums[0] += value_of(mix_iterator_next(a), 0);
    sums[1] += value_of(mix_iterator_next(b), 0);
  }
  assert_null(mix_iterator_next(a));
  assert_null(mix_iterator_next(b));
  assert_int_equal(mix_error(), MIX_OK);
  for (int i = 0; i < 2; i++) assert_int_equal(sums[i], 20 * (0 + 1 + 4 + 9 + 16 + 25));
}

static void allocation_failures_are_errors(void **state) {
  (void)state;
  FOR_EACH_SOURCE(from)
  for (int64_t count = 0;; count++) {
    bool good = false;
    mix_inject_allocation_failure(count);
    MIX_SCOPE {
      mix_dataset *mapped = mix_dataset_map(from(6), square, .num_parallel_calls = 2);
      mix_iterator *iterator = mix_dataset_iterate(mix_dataset_prefetch(mix_dataset_batch(mapped, 2), 2));
      int seen = 0;
      while (mix_iterator_next(iterator)) seen++;
      good = seen == 3 && mix_error() == MIX_OK;
    }
    /* Which thread meets the failure differs from run to run, but the pass fails unless the injection was not
     * reached. */
    bool left = mix_allocation_failure_injected();
    mix_inject_allocation_failure(-1);
    if (good && left) break;
    if (!good) assert_int_equal(mix_error(), MIX_MEMORY_ERROR);
    mix_error_clear();
    assert_true(count < 2000);
  }
}

int main(void) {
#define TEST(test) cmocka_unit_test_teardown(test, end)
  const struct CMUnitTest tests[] = {
      TEST(prefetch_changes_no_value),
      TEST(prefetch_makes_buffer_size_elements_in_advance),
      TEST(automatic_prefetch_leaves_busy_cores),
      TEST(automatic_prefetch_uses_a_free_core),
      TEST(prefetch_by_itself_waits_on_a_thread_of_its_own),
      TEST(automatic_map_uses_threads_for_slow_functions),
      TEST(automatic_threads_report_errors_and_can_be_dropped),
      TEST(automatic_threads_have_no_scope_of_the_caller),
      TEST(parallel_map_keeps_the_order),
      TEST(a_map_without_order_gives_the_same_elements),
      TEST(calls_run_at_once),
      TEST(an_error_comes_at_the_element_that_failed),
      TEST(functions_may_leave_values_to_be_computed),
      TEST(functions_run_on_threads_of_the_pipeline),
      TEST(iterators_can_be_dropped_at_any_moment),
      TEST(kept_elements_stay_what_they_were),
      TEST(passes_run_side_by_side),
      TEST(allocation_failures_are_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
