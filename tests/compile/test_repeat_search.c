/* The search for steps to run again, against all sets of small graphs, on deep graphs, and its growth. */
#include "compile/support.h"

#include "base/clock.h"
#include "base/philox.h"
#include "compile/repeat_search.h"

static uint64_t position;
static int below(int n) { return (int)mix_philox_below(54, 1, &position, (uint64_t)n); }

/* Steps with one result each. */
static mix_repeat_problem new_problem(mix_ir *ir, int steps) {
  mix_repeat_problem p = {.ir = ir, .step_count = steps, .value_count = steps, .visits_left = 1500000};
  p.steps = mix_ir_array(ir, steps, sizeof *p.steps);
  p.bytes = mix_ir_array(ir, steps, sizeof *p.bytes);
  p.maker = mix_ir_ints(ir, steps);
  for (int t = 0; t < steps; t++) {
    p.maker[t] = t;
    p.steps[t] =
        (mix_repeat_step){.reads = mix_ir_ints(ir, 8), .writes = mix_ir_ints(ir, 1), .write_count = 1};
    p.steps[t].lends = mix_ir_array(ir, 1, sizeof *p.steps[t].lends);
    p.steps[t].writes[0] = t;
    p.steps[t].may_repeat = true;
    p.steps[t].seconds = 1;
    p.bytes[t] = 1;
  }
  return p;
}

static void add_read(mix_repeat_problem *p, int step, int value) {
  mix_repeat_step *s = &p->steps[step];
  for (int i = 0; i < s->read_count; i++)
    if (s->reads[i] == value) return;
  s->reads[s->read_count++] = value;
}

static mix_repeat_outcome simulate(mix_repeat_problem *p, int boundary, const bool *dropped) {
  mix_repeat_outcome outcome;
  assert_true(mix_repeat_simulate(p, boundary, dropped, NULL, &outcome));
  return outcome;
}

static mix_repeat_outcome plain(mix_repeat_problem *p) {
  bool *none = mix_ir_flags(p->ir, p->step_count);
  return simulate(p, p->step_count, none);
}

/* A chain forward, and back: step n + i reads the gradient before it and value n - 1 - i. */
static mix_repeat_problem chain(mix_ir *ir, int n) {
  mix_repeat_problem p = new_problem(ir, 2 * n);
  for (int t = 1; t < 2 * n; t++) add_read(&p, t, t - 1);
  for (int i = 0; i < n; i++) add_read(&p, n + i, n - 1 - i);
  return p;
}

static void a_set_by_hand(void **state) {
  (void)state;
  mix_ir *ir = mix_ir_new();
  mix_repeat_problem p = chain(ir, 6);
  const mix_repeat_outcome all = plain(&p);
  assert_int_equal(all.peak, 7); /* six values and the first gradient */
  assert_int_equal(all.peak_step, 6);
  assert_true(all.seconds == 0);
  /* 1 and 2 run again before the gradient that reads 2 */
  bool dropped[12] = {[1] = true, [2] = true}, repeated[12];
  mix_repeat_outcome outcome;
  assert_true(mix_repeat_simulate(&p, 6, dropped, repeated, &outcome));
  assert_int_equal(outcome.peak, 5);
  assert_true(outcome.seconds == 2);
  for (int t = 0; t < 12; t++) assert_int_equal(repeated[t], t == 1 || t == 2);
  /* what no late step needs does not run again */
  bool first[12] = {[5] = true};
  assert_true(mix_repeat_simulate(&p, 6, first, repeated, &outcome));
  assert_true(outcome.seconds == 0);
  mix_ir_free(ir);
}

/* A result that takes the memory of its operand needs none. */
static void lent_memory_counts_once(void **state) {
  (void)state;
  mix_ir *ir = mix_ir_new();
  mix_repeat_problem p = new_problem(ir, 4);
  for (int t = 1; t < 4; t++) add_read(&p, t, t - 1);
  assert_int_equal(plain(&p).peak, 2);
  for (int t = 1; t < 4; t++) p.steps[t].lends[0] = 1;
  assert_int_equal(plain(&p).peak, 1);
  add_read(&p, 3, 1); /* which is read later */
  assert_int_equal(plain(&p).peak, 2);
  mix_ir_free(ir);
}

/* Deep chains need segments: with all values dropped the second half would be as large as the first. */
static void deep_chains_fit_in_roots(void **state) {
  (void)state;
  static const struct {
    int n;
    size_t least;
    double seconds; /* at most, for half the memory */
  } cases[] = {{100, 24, 60}, {400, 46, 240}, {1000, 80, 600}};
  for (int i = 0; i < COUNT(cases); i++) {
    mix_ir *ir = mix_ir_new();
    mix_repeat_problem p = chain(ir, cases[i].n);
    const mix_repeat_outcome all = plain(&p);
    bool *dropped = mix_ir_flags(ir, p.step_count);
    mix_repeat_outcome least, half;
    assert_true(mix_repeat_search(&p, all.peak_step, 0, dropped, &least));
    if (least.peak > cases[i].least) fail_msg("%d: least %zu", cases[i].n, least.peak);
    assert_true(least.seconds <= cases[i].n);
    p.visits_left = 1500000;
    memset(dropped, 0, (size_t)p.step_count);
    assert_true(mix_repeat_search(&p, all.peak_step, all.peak / 2, dropped, &half));
    if (half.peak > all.peak / 2 || half.seconds > cases[i].seconds)
      fail_msg("%d: half %zu in %g seconds", cases[i].n, half.peak, half.seconds);
    mix_ir_free(ir);
  }
}

static mix_repeat_problem random_problem(mix_ir *ir, int steps) {
  mix_repeat_problem p = new_problem(ir, steps);
  for (int t = 0; t < steps; t++) {
    if (t) add_read(&p, t, below(3) ? t - 1 : below(t));
    for (int reads = below(3); t && reads > 0; reads--) add_read(&p, t, below(t));
    p.bytes[t] = (size_t)(1 + below(9));
    p.steps[t].seconds = 1 + below(9);
    p.steps[t].may_repeat = below(8) != 0;
    for (int i = 0; i < p.steps[t].read_count; i++)
      if (p.bytes[p.steps[t].reads[i]] == p.bytes[t] && below(2)) p.steps[t].lends[0] |= 1u << i;
  }
  return p;
}

/* Graphs of at most 12 steps: the least peak, and for budgets between it and the plain one the time of all
 * steps, are at most 1.2 of the best of all sets. */
static void small_graphs_come_close_to_the_best(void **state) {
  (void)state;
  position = 0;
  double worst_peak = 1, worst_time = 1;
  for (int round = 0; round < 300; round++) {
    mix_ir *ir = mix_ir_new();
    const int steps = 4 + below(9);
    mix_repeat_problem p = random_problem(ir, steps);
    const mix_repeat_outcome all = plain(&p);
    const int boundary = all.peak_step, sets = 1 << (boundary + 1);
    double total = 0;
    for (int t = 0; t < steps; t++) total += p.steps[t].seconds;
    mix_repeat_outcome *outcomes = calloc((size_t)sets, sizeof *outcomes), least = all, found;
    for (int set = 0; set < sets; set++) {
      bool dropped[12] = {false}, may = true;
      for (int t = 0; t <= boundary; t++) {
        dropped[t] = set >> t & 1;
        may = may && (!dropped[t] || p.steps[t].may_repeat);
      }
      outcomes[set] = may ? simulate(&p, boundary, dropped) : all;
      if (outcomes[set].peak < least.peak) least = outcomes[set];
    }
    for (size_t target = 0; target <= all.peak; target++) {
      bool dropped[12] = {false};
      p.visits_left = 1500000;
      assert_true(mix_repeat_search(&p, boundary, target, dropped, &found));
      const mix_repeat_outcome check = simulate(&p, boundary, dropped);
      assert_int_equal(check.peak, found.peak);
      assert_true(check.seconds == found.seconds);
      if (target < least.peak) {
        worst_peak = fmax(worst_peak, (double)found.peak / (double)least.peak);
        continue;
      }
      double best = INFINITY;
      for (int set = 0; set < sets; set++)
        if (outcomes[set].peak <= target && outcomes[set].seconds < best) best = outcomes[set].seconds;
      const bool fits = found.peak <= target;
      if (!fits)
        worst_peak = fmax(worst_peak, (double)found.peak / (double)target);
      else
        worst_time = fmax(worst_time, (total + found.seconds) / (total + best));
    }
    free(outcomes);
    mix_ir_free(ir);
  }
  if (worst_peak > 1.2 || worst_time > 1.2) fail_msg("peak %g, time %g of the best", worst_peak, worst_time);
}

/* Visits are bounded, whatever the graph: 10,000 steps take less than 0.2 seconds where nothing else runs. */
static void large_graphs_take_bounded_work(void **state) {
  (void)state;
  mix_ir *ir = mix_ir_new();
  mix_repeat_problem p = chain(ir, 5000);
  const mix_repeat_outcome all = plain(&p);
  bool *dropped = mix_ir_flags(ir, p.step_count);
  mix_repeat_outcome found;
  p.visits_left = 1500000;
  const double begin = mix_clock(CLOCK_THREAD_CPUTIME_ID);
  assert_true(mix_repeat_search(&p, all.peak_step, all.peak / 4, dropped, &found));
  print_message("10,000 steps: %.3f seconds\n", mix_clock(CLOCK_THREAD_CPUTIME_ID) - begin);
  assert_true(found.peak <= all.peak / 4);
  assert_int_equal(p.visits_left, 0);
  mix_ir_free(ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_set_by_hand), TEST(lent_memory_counts_once), TEST(deep_chains_fit_in_roots),
      TEST(small_graphs_come_close_to_the_best), TEST(large_graphs_take_bounded_work)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
