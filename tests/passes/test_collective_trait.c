/* Collective and random ops, which no pass names: test ops whose records say what they are. */
#include "compile/support.h"

#include "compile/compile.h"
#include "compile/pass_pipeline.h"
#include "compile/plan_steps.h"
#include "ops/rules.h"
#include "passes/passes.h"
#include "passes/rematerialize.h"
#include "support/captured_graph.h"
#include <mixtape/random.h>
#include <stdio.h>

/* all_sum is what an op of tensors across processes will be. The others have traits by which a pass would
 * fold, clone or fuse them if they were not collective or random. */
static const mix_op op_all_sum = {.name = "all_sum",
                                  .signature = "T->T",
                                  .types = "number",
                                  .flags = MIX_OP_COLLECTIVE,
                                  .infer = mix_rule_same};
static const mix_op op_all_negative = {.name = "all_negative",
                                       .signature = "T->T",
                                       .types = "float",
                                       .flags = MIX_OP_COLLECTIVE | MIX_OP_ELEMENTWISE,
                                       .opcode = MIX_OPCODE_NEGATIVE,
                                       .infer = mix_rule_same};
static bool scalar_infer(mix_node *node) { return mix_rule_output(node, 0, (mix_shape){.rank = 0}); }
static const mix_op op_all_finite_anywhere = {.name = "all_finite_anywhere",
                                              .signature = "T->b",
                                              .types = "float",
                                              .flags = MIX_OP_COLLECTIVE,
                                              .infer = scalar_infer,
                                              .reduction = MIX_REDUCE_ALL_FINITE};
static const mix_op op_entropy = {
    .name = "entropy", .signature = "->f", .flags = MIX_OP_RANDOM, .infer = scalar_infer};

static mix_tensor *all_sum(mix_tensor *x) { return mix_apply1(&op_all_sum, x); }

/* The number of nodes with this op. */
static int count_of(const mix_ir *ir, const mix_op *op) {
  int count = 0;
  for (int n = 0; n < ir->node_count; n++) count += !ir->nodes[n].dead && ir->nodes[n].op == op;
  return count;
}
static int producer(const mix_ir *ir, int result) { return mix_ir_producer(ir, ir->results[result]); }

static void run(mix_ir *ir, const char *passes) {
  char list[256], *rest = list;
  snprintf(list, sizeof list, "%s", passes);
  for (char *name; (name = strtok_r(rest, " ", &rest));) assert_true(mix_pass_run(ir, name));
  no_error();
}

static void unused_ones_stay(void **state) {
  (void)state;
  graph g;
  begin_graph(&g);
  mix_tensor *x = argument(&g, MIX_FLOAT32, MIX_SHAPE(2));
  all_sum(mix_exp(x));
  mix_ir *ir = end_graph(&g, mix_list_of(x, mix_sqrt(x)));
  ir->result_count = 1;
  run(ir, "dce");
  assert_string_equal(mix_ir_text(ir), "%0:float32(2) = argument 0\n"
                                       "%1:float32(2) = exp(%0)\n"
                                       "%2:float32(2) = all_sum(%1)\n"
                                       "return %0\n");
  mix_ir_free(ir);
}

static void equal_ones_are_not_merged(void **state) {
  (void)state;
  graph g;
  begin_graph(&g);
  mix_tensor *x = argument(&g, MIX_FLOAT32, MIX_SHAPE(2));
  mix_ir *ir = end_graph(&g, mix_list_of(all_sum(x), all_sum(x), mix_exp(x), mix_exp(x)));
  run(ir, "cse");
  assert_int_equal(count_of(ir, &op_all_sum), 2);
  assert_int_equal(count_of(ir, &mix_op_exp), 1);
  assert_int_not_equal(ir->results[0], ir->results[1]);
  mix_ir_free(ir);
}

static void constants_do_not_fold_them(void **state) {
  (void)state;
  graph g;
  begin_graph(&g);
  mix_tensor *x = scalar(2);
  mix_ir *ir = end_graph(&g, mix_list_of(mix_apply1(&op_all_negative, x), mix_negative(x)));
  run(ir, "constant_fold");
  assert_ptr_equal(ir->nodes[producer(ir, 0)].op, &op_all_negative);
  assert_int_equal(ir->nodes[producer(ir, 1)].source, MIX_IR_CONSTANT);
  mix_ir_free(ir);
}

/* Used with and without a guard, a negation is computed twice; a collective is not. */
static mix_ir *two_guards(const mix_op *negative) {
  graph g;
  mix_variable *v = variable("v", vec(MIX_FLOAT32, 1, 2));
  begin_graph(&g);
  mix_tensor *x = argument(&g, MIX_FLOAT32, MIX_SHAPE(2)), *apply = argument(&g, MIX_BOOL, MIX_SCALAR);
  mix_tensor *y = mix_apply1(negative, x);
  mix_variable_assign(v, mix_select(mix_logical_not(apply), mix_sqrt(y), mix_variable_value(v)));
  mix_ir *ir = end_graph(&g, mix_list_of(mix_exp(y)));
  run(ir, "select_to_predicate");
  assert_true(mix_ir_guard_keys(ir));
  return ir;
}

static void they_are_not_cloned(void **state) {
  (void)state;
  mix_ir *ir = two_guards(&mix_op_negative);
  assert_int_equal(count_of(ir, &mix_op_negative), 2);
  mix_ir_free(ir);
  ir = two_guards(&op_all_negative);
  assert_int_equal(count_of(ir, &op_all_negative), 1);
  mix_ir_free(ir);
}

static void they_join_no_program(void **state) {
  (void)state;
  graph g;
  begin_graph(&g);
  mix_tensor *x = argument(&g, MIX_FLOAT32, MIX_SHAPE(2)), *y = mix_apply1(&op_all_negative, mix_exp(x));
  mix_ir *ir = end_graph(&g, mix_list_of(mix_sqrt(y), mix_apply1(&op_all_finite_anywhere, mix_exp(x))));
  run(ir, "fuse fuse_epilogues");
  assert_int_equal(count_of(ir, &op_all_negative), 1);
  assert_int_equal(count_of(ir, &op_all_finite_anywhere), 1);
  mix_ir_free(ir);
}

/* A node that comes first is made to read the second of two collectives. */
static void sorting_keeps_their_order(void **state) {
  (void)state;
  graph g;
  begin_graph(&g);
  mix_tensor *x = argument(&g, MIX_FLOAT32, MIX_SHAPE(2)), *early = mix_exp(x), *first = all_sum(x);
  mix_ir *ir = end_graph(&g, mix_list_of(early, first, all_sum(mix_sqrt(x))));
  ir->nodes[producer(ir, 0)].inputs[0] = ir->results[2];
  assert_true(mix_ir_sort(ir));
  assert_true(producer(ir, 1) < producer(ir, 2));
  assert_true(producer(ir, 2) < producer(ir, 0));
  mix_ir_free(ir);
}

/* first = all_sum(e), second = all_sum(sqrt(x)), result = e * second with e = exp(x) or a b. If e and the
 * multiplication became one step, `first` would wait for `second`. */
static mix_ir *two_in_order(mix_tensor *(*reduced)(mix_tensor *), bool product) {
  graph g;
  begin_graph(&g);
  mix_tensor *x = argument(&g, MIX_FLOAT32, MIX_SHAPE(2, 2));
  mix_tensor *e = product ? mix_matmul(x, x, false, false) : mix_exp(x), *first = reduced(e);
  mix_tensor *second = reduced(mix_sqrt(x));
  mix_ir *ir = end_graph(&g, mix_list_of(first, second, mix_multiply(e, second)));
  run(ir, "fuse fuse_epilogues");
  return ir;
}

static void programs_do_not_cross_their_order(void **state) {
  (void)state;
  for (int product = 0; product < 2; product++) {
    mix_ir *ir = two_in_order(all_sum, product);
    assert_true(producer(ir, 0) < producer(ir, 1));
    assert_true(producer(ir, 1) < producer(ir, 2));
    assert_int_equal(ir->nodes[producer(ir, 2)].output_count, 1);
    mix_ir_free(ir);
    ir = two_in_order(mix_softmax, product); /* of ops without an order the step has both results */
    assert_int_equal(ir->nodes[producer(ir, 2)].output_count, 2);
    mix_ir_free(ir);
  }
}

static mix_tensor *all_sum_in(const char *layer, mix_tensor *x) {
  const char *former = mix_graph_scope_set(layer);
  mix_tensor *sum = all_sum(x);
  mix_graph_scope_set(former);
  return sum;
}

/* With all passes, planned: the steps are in the order of the program, that which nobody reads included. */
static void plans_keep_their_order(void **state) {
  (void)state;
  graph g;
  mix_variable *v = variable("v", vec(MIX_FLOAT32, 1, 2));
  begin_graph(&g);
  mix_tensor *x = argument(&g, MIX_FLOAT32, MIX_SHAPE(2));
  all_sum_in("first", mix_sqrt(x));
  mix_variable_assign(v, mix_add(mix_variable_value(v), all_sum_in("second", mix_exp(x))));
  mix_tensor *last = all_sum_in("third", x);
  mix_ir *ir = end_graph(&g, mix_list_of(mix_negative(last)));
  assert_true(mix_passes_run(ir));
  mix_compiled compiled = {.ir = ir};
  assert_true(mix_make_plan(&compiled));
  char order[64] = "";
  for (int s = 0; s < compiled.plan.step_count; s++)
    if (compiled.plan.steps[s].op == &op_all_sum)
      snprintf(order + strlen(order), sizeof order - strlen(order), "%s ", compiled.plan.steps[s].scope);
  assert_string_equal(order, "first second third ");
  mix_ir_free(ir);
}

static void random_values_merge_by_their_state(void **state) {
  (void)state;
  graph g;
  begin_graph(&g);
  mix_tensor *s = argument(&g, MIX_INT64, MIX_SHAPE(2)), *other = argument(&g, MIX_INT64, MIX_SHAPE(2));
  mix_tensor *a = mix_stateless_uniform(s, MIX_SHAPE(2), MIX_FLOAT32),
             *b = mix_stateless_uniform(s, MIX_SHAPE(2), MIX_FLOAT32),
             *c = mix_stateless_uniform(other, MIX_SHAPE(2), MIX_FLOAT32);
  mix_ir *ir = end_graph(&g, mix_list_of(a, b, c, mix_stateless_uniform(s, MIX_SHAPE(3), MIX_FLOAT32)));
  run(ir, "cse");
  assert_int_equal(count_of(ir, &mix_op_random_uniform), 3);
  assert_int_equal(ir->results[0], ir->results[1]);
  mix_ir_free(ir);
}

static void random_values_are_not_folded(void **state) {
  (void)state;
  graph g;
  begin_graph(&g);
  mix_ir *ir = end_graph(
      &g, mix_list_of(mix_apply(&op_entropy, NULL, 0, NULL), mix_fill(MIX_SHAPE(2), 3, MIX_FLOAT32)));
  run(ir, "constant_fold");
  assert_int_equal(count_of(ir, &op_entropy), 1);
  assert_int_equal(ir->nodes[producer(ir, 1)].source, MIX_IR_CONSTANT);
  mix_ir_free(ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(unused_ones_stay),
                                     TEST(equal_ones_are_not_merged),
                                     TEST(constants_do_not_fold_them),
                                     TEST(they_are_not_cloned),
                                     TEST(they_join_no_program),
                                     TEST(sorting_keeps_their_order),
                                     TEST(programs_do_not_cross_their_order),
                                     TEST(plans_keep_their_order),
                                     TEST(random_values_merge_by_their_state),
                                     TEST(random_values_are_not_folded)};
  return cmocka_run_group_tests_name("passes.collective_trait", tests, NULL, NULL);
}
