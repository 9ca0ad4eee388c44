/* Repeating nodes: which are found, and the graph after it, as text. */
#include "compile/support.h"

#include "ir/ir.h"
#include "passes/repeat_nodes.h"

static mix_ir *read_graph(const char *text) {
  mix_ir *ir = mix_ir_read("test", text, strlen(text), 1 << 20);
  no_error();
  assert_non_null(ir);
  return ir;
}

/* Forward %1 to %4, backward %5 to %8, which reads each value once more. */
static const char chain[] = "%0:float32(2) = argument 0\n"
                            "%1:float32(2) = exp(%0)\n"
                            "%2:float32(2) = sin(%1)\n"
                            "%3:float32(2) = tanh(%2)\n"
                            "%4:float32(2) = sqrt(%3)\n"
                            "%5:float32(2) = multiply(%4, %3)\n"
                            "%6:float32(2) = multiply(%5, %2)\n"
                            "%7:float32(2) = multiply(%6, %1)\n"
                            "return %7\n";

static void becomes(const char *graph, int late_from, int dropped_from, int dropped_to,
                    const char *expected) {
  mix_ir *ir = read_graph(graph);
  bool late[64] = {false}, dropped[64] = {false};
  mix_repeat repeats[64];
  for (int n = late_from; n < ir->node_count; n++) late[n] = true;
  for (int n = dropped_from; n <= dropped_to; n++) dropped[n] = true;
  const int count = mix_ir_find_repeats(ir, dropped, late, repeats);
  assert_true(count >= 0);
  assert_true(mix_ir_repeat_nodes(ir, count, repeats));
  assert_string_equal(mix_ir_text(ir), expected);
  int marked = 0;
  for (int n = 0; n < ir->node_count; n++) marked += ir->nodes[n].repeated && ir->nodes[n].backward;
  assert_int_equal(marked, count);
  mix_ir_free(ir);
}

static void a_segment_runs_again_before_its_first_late_reader(void **state) {
  (void)state;
  becomes(chain, 5, 2, 3,
          "%0:float32(2) = argument 0\n"
          "%1:float32(2) = exp(%0)\n"
          "%2:float32(2) = sin(%1)\n"
          "%3:float32(2) = tanh(%2)\n"
          "%4:float32(2) = sqrt(%3)\n"
          "%8:float32(2) = sin(%1)\n"
          "%9:float32(2) = tanh(%8)\n"
          "%5:float32(2) = multiply(%4, %9)\n"
          "%6:float32(2) = multiply(%5, %8)\n"
          "%7:float32(2) = multiply(%6, %1)\n"
          "return %7\n");
}

static void separate_segments_run_when_each_is_needed(void **state) {
  (void)state;
  mix_ir *ir = read_graph(chain);
  const mix_repeat repeats[] = {{3, 5}, {1, 6}, {2, 6}, {1, 7}};
  assert_true(mix_ir_repeat_nodes(ir, COUNT(repeats), repeats));
  assert_string_equal(mix_ir_text(ir), "%0:float32(2) = argument 0\n"
                                       "%1:float32(2) = exp(%0)\n"
                                       "%2:float32(2) = sin(%1)\n"
                                       "%3:float32(2) = tanh(%2)\n"
                                       "%4:float32(2) = sqrt(%3)\n"
                                       "%8:float32(2) = tanh(%2)\n"
                                       "%5:float32(2) = multiply(%4, %8)\n"
                                       "%9:float32(2) = exp(%0)\n"
                                       "%10:float32(2) = sin(%9)\n"
                                       "%6:float32(2) = multiply(%5, %10)\n"
                                       "%11:float32(2) = exp(%0)\n"
                                       "%7:float32(2) = multiply(%6, %11)\n"
                                       "return %7\n");
  mix_ir_free(ir);
}

static void nothing_dropped_changes_nothing(void **state) {
  (void)state;
  becomes(chain, 5, 1, 0, chain);
  becomes(chain, 5, 4, 3, chain);
}

/* What a barrier waits for is there by then, or need not be. */
static void what_a_barrier_waits_for_does_not_run_again(void **state) {
  (void)state;
  becomes("%0:float32(2) = argument 0\n"
          "%1:float32(2) = sin(%0)\n"
          "%2:float32(2) = tanh(%1)\n"
          "%3:float32(2) = optimization_barrier(%1, %2)\n"
          "%4:float32(2) = exp(%3)\n"
          "return %4\n",
          4, 1, 3,
          "%0:float32(2) = argument 0\n"
          "%1:float32(2) = sin(%0)\n"
          "%2:float32(2) = tanh(%1)\n"
          "%3:float32(2) = optimization_barrier(%1, %2)\n"
          "%5:float32(2) = sin(%0)\n"
          "%6:float32(2) = optimization_barrier(%5, %2)\n"
          "%4:float32(2) = exp(%6)\n"
          "return %4\n");
}

static const char program[] = "%0:float32(2, 2) = argument 0\n"
                              "%1:float32(2, 2), %2:float32(2, 2), %3:bool() = fused(%0)\n"
                              "    over (4)\n"
                              "      r0 = float32 load 0 strides (1)\n"
                              "      r1 = float32 exp r0\n"
                              "      r2 = float32 negative r1\n"
                              "      store r1 -> 0\n"
                              "      store r2 -> 1\n"
                              "      all_finite of r1 -> 2\n"
                              "%4:float32(4) = reshape(%2) {shape=(4)}\n"
                              "%5:float32(2, 2) = matmul(%1, %0)\n"
                              "return %4, %5, %3\n";

/* A result of the graph stays where it is; a clone stores only what somebody reads. */
static void a_clone_computes_what_is_read(void **state) {
  (void)state;
  mix_ir *ir = read_graph(program);
  const mix_repeat repeats[] = {{1, 3}};
  assert_true(mix_ir_repeat_nodes(ir, 1, repeats));
  const char *text = mix_ir_text(ir);
  if (!strstr(text, "%6:float32(2, 2), %7:bool() = fused(%0)") || !strstr(text, "= matmul(%6, %0)") ||
      !strstr(text, "return %4, %5, %3"))
    fail_msg("%s", text);
  const mix_program *trimmed = ir->nodes[3].program;
  assert_true(ir->nodes[3].repeated);
  assert_int_equal(trimmed->store_count, 1);
  assert_int_equal(trimmed->stores[0].reg, 1);
  assert_int_equal(trimmed->reduction_output, 1);
  assert_int_equal(ir->nodes[1].program->store_count, 2);
  mix_ir *again = read_graph(text); /* the clone's program fits its results */
  mix_ir_free(again);
  mix_ir_free(ir);
}

static void bad_lists_are_errors(void **state) {
  (void)state;
  const mix_repeat wrong[][2] = {{{5, 5}, {1, 6}}, {{1, 6}, {1, 5}}, {{0, 5}, {1, 6}}, {{1, 5}, {1, 99}}};
  for (int i = 0; i < COUNT(wrong); i++) {
    mix_ir *ir = read_graph(chain);
    assert_false(mix_ir_repeat_nodes(ir, 2, wrong[i]));
    expect_error(MIX_INTERNAL_ERROR, "repeat_nodes");
    mix_ir_free(ir);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(a_segment_runs_again_before_its_first_late_reader),
                                     TEST(separate_segments_run_when_each_is_needed),
                                     TEST(nothing_dropped_changes_nothing),
                                     TEST(what_a_barrier_waits_for_does_not_run_again),
                                     TEST(a_clone_computes_what_is_read),
                                     TEST(bad_lists_are_errors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
