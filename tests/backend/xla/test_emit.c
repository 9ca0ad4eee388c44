/* The emitter without a plug-in: graphs and their programs as text, signatures, errors. A case of
 * graphs/programs.txt is
 *
 *   == title
 *   a graph
 *   --
 *   its program */
#include "compile/support.h"
#include "support/skip.h"

#include "backend/xla/emit.h"
#include "ops/debug_ops.h"
#include "ops/decompositions.h"
#include <stdio.h>

enum { MAX_TEXT = 1 << 16 };

static mix_ir *read_graph(const char *text) {
  mix_ir *ir = mix_ir_read("test", text, strlen(text), 1 << 20);
  no_error();
  return ir;
}

static void graphs_and_programs(void **state) {
  (void)state;
  static char text[MAX_TEXT];
  char path[1024];
  if (!getenv("MIXTAPE_TESTS_DIR")) SKIP("MIXTAPE_TESTS_DIR is not set");
  snprintf(path, sizeof path, "%s/backend/xla/graphs/programs.txt", getenv("MIXTAPE_TESTS_DIR"));
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  fclose(file);
  int cases = 0;
  for (char *at = strstr(text, "== "); at;) {
    char *title = at, *graph = strchr(at, '\n') + 1, *program = strstr(graph, "\n--\n") + 4;
    at = strstr(program, "\n== ");
    if (at) *++at = 0;
    program[-3] = 0;
    mix_ir *ir = read_graph(graph);
    mix_xla_signature signature;
    for (int again = 0; again < 2; again++) {
      char *is = mix_xla_emit(ir, &signature);
      no_error();
      if (strcmp(is, program) != 0) fail_msg("%.60s: is\n%s\nexpected\n%s", title, is, program);
      mix_free(is);
    }
    mix_ir_free(ir);
    if (at) *at = '=';
    cases++;
  }
  assert_true(cases >= 4);
}

/* What float32 products ask for, which is never XLA's default. */
/* Holds docs/NUMERICS.md: NVIDIA's GPUs. */
static void products_have_the_precision_of_the_context(void **state) {
  (void)state;
  static const char product[] = "%0:float32(2, 3) = argument 0\n"
                                "%1:float32(2, 2) = matmul(%0, %0) {transpose_b}\n"
                                "return %1\n";
  mix_ir *ir = read_graph(product);
  mix_xla_signature signature;
  mix_context context = mix_context_default();
  for (int high = 0; high < 2; high++) {
    context.precision.float32 = high ? MIX_FLOAT32_HIGH : MIX_FLOAT32_HIGHEST;
    ir->context = &context;
    char *text = mix_xla_emit(ir, &signature);
    no_error();
    assert_non_null(strstr(text, high ? "precision = [HIGH, HIGH]" : "precision = [HIGHEST, HIGHEST]"));
    mix_free(text);
  }
  mix_ir_free(ir);
}

static const char step[] = "%0:float32(2, 3) = argument 0\n"
                           "%1:int32(2) = argument 1\n"
                           "%2:float32(3) = variable 'read'\n"
                           "%3:float32(3) = variable 'written'\n"
                           "%4:float32(2), %5:float32(2, 3) = sparse_softmax_cross_entropy(%0, %1) @loss\n"
                           "%6:int32(2) = floor_divide(%1, %1) @quotient\n"
                           "%7:float32(3) = add(%2, %3)\n"
                           "store %3 'written' = %7\n"
                           "return %4, %6\n";

static void a_signature_names_parameters_and_results(void **state) {
  (void)state;
  mix_ir *ir = read_graph(step);
  mix_xla_signature s;
  char *text = mix_xla_emit(ir, &s);
  no_error();
  const mix_xla_parameter_kind kinds[] = {MIX_XLA_ARGUMENT, MIX_XLA_ARGUMENT, MIX_XLA_VARIABLE,
                                          MIX_XLA_VARIABLE, MIX_XLA_ERROR};
  const int results[] = {-1, -1, -1, 2, 3};
  assert_int_equal(s.parameter_count, COUNT(kinds));
  for (int i = 0; i < COUNT(kinds); i++) {
    assert_int_equal(s.parameters[i].kind, kinds[i]);
    assert_int_equal(s.parameters[i].result, results[i]);
  }
  assert_int_equal(s.result_count, 4);
  assert_int_equal(s.results[2].shape.dims[0], 3);
  assert_int_equal(s.error_parameter, 4);
  assert_int_equal(s.error_result, 3);
  assert_non_null(strstr(text, "tf.aliasing_output = 2"));
  mix_free(text);
  mix_ir_free(ir);
}

/* As the host's devices say it. */
static void an_error_word_has_a_message(void **state) {
  (void)state;
  mix_ir *ir = read_graph(step);
  mix_xla_signature s;
  mix_free(mix_xla_emit(ir, &s));
  char text[512];
  assert_int_equal(s.check_count, 2);
  mix_xla_error_text(&s, (const int64_t[]){1, 1, 9}, text, sizeof text);
  assert_string_equal(text,
                      "sparse_softmax_cross_entropy in loss: label 9 (element 1) is outside the classes, "
                      "[0, 3): labels are indices into the last dimension of the predictions, from 0 on; "
                      "the operands are float32 (2, 3), int32 (2)");
  mix_xla_error_text(&s, (const int64_t[]){2, 0, 0}, text, sizeof text);
  assert_string_equal(text, "floor_divide in quotient: integer division by zero; the operands are int32 (2), "
                            "int32 (2)");
  mix_xla_error_text(&s, (const int64_t[]){3, 0, 0}, text, sizeof text);
  assert_non_null(strstr(text, "another function"));
  mix_ir_free(ir);
}

static void large_constants_are_parameters(void **state) {
  (void)state;
  mix_ir *ir = read_graph("%0:float32(16384) = constant seed 3\n%1:float32(16385) = constant seed 4\n"
                          "%2:float32(16384) = negative(%0)\n%3:float32(16385) = negative(%1)\n"
                          "return %2, %3\n");
  mix_xla_signature s;
  char *text = mix_xla_emit(ir, &s);
  no_error();
  assert_int_equal(s.parameter_count, 1);
  assert_int_equal(s.parameters[0].kind, MIX_XLA_CONSTANT);
  assert_int_equal(s.parameters[0].shape.dims[0], 16385);
  const float *data = mix_ir_map_constant(s.parameters[0].constant);
  assert_true(data && data[0] != data[1]);
  mix_ir_unmap_constant(s.parameters[0].constant);
  assert_true(strlen(text) < 4 * 2 * 16384 + 1000);
  assert_int_equal(s.error_parameter, -1);
  mix_free(text);
  mix_ir_free(ir);
}

static size_t length_of_range(int count) {
  char graph[200];
  snprintf(graph, sizeof graph,
           "%%0:float32(%d) = range() {start=0.5 step=3 count=%d dtype=float32}\nreturn %%0\n", count, count);
  mix_ir *ir = read_graph(graph);
  mix_xla_signature s;
  char *text = mix_xla_emit(ir, &s);
  no_error();
  const size_t length = strlen(text);
  mix_free(text);
  mix_ir_free(ir);
  return length;
}
static void a_range_is_not_written_out(void **state) {
  (void)state;
  assert_true(length_of_range(100000) < length_of_range(10) + 200);
}

#define SAME(op_name, ...) || op == &mix_op_##op_name
static bool is_of_the_host(const mix_op *op) {
  return mix_op_is_collective(op) || op == &mix_op_print MIX_DECOMPOSITION_OPS(SAME);
}

/* Every op of the table has a form; what only plans contain has none. Collectives, decompositions of
 * matrices, and print, which runs for its effect, name themselves. */
static void ops_without_a_form_name_themselves(void **state) {
  (void)state;
  for (int i = 0; mix_all_ops[i]; i++)
    if (!(mix_all_ops[i]->flags & MIX_OP_SOURCE) &&
        mix_xla_supports(mix_all_ops[i], MIX_FLOAT32) == is_of_the_host(mix_all_ops[i]))
      fail_msg("%s has no form, or is of the host with one", mix_all_ops[i]->name);
  assert_false(mix_xla_supports(&mix_op_matmul_finite_bound, MIX_FLOAT32));
  mix_ir *ir = read_graph("%0:float32(2, 3) = argument 0\n"
                          "%1:float32(2, 3) = fused(%0) @'a layer'\n"
                          "    over (6)\n"
                          "      r0 = float32 load 0 strides (1)\n"
                          "      r1 = float32 square r0\n"
                          "      store r1 -> 0\n"
                          "return %1\n");
  mix_xla_signature s;
  assert_null(mix_xla_emit(ir, &s));
  expect_error(MIX_UNSUPPORTED, "fused of float32 in a layer", "no form in StableHLO", "before the pass fuse",
               "mix_set_device(\"cpu\")");
  mix_ir_free(ir);
  ir = read_graph("%0:float32(3, 3) = argument 0\n"
                  "%1:float32(3), %2:float32(3, 3) = eigh(%0)\n"
                  "return %1\n");
  assert_null(mix_xla_emit(ir, &s));
  expect_error(MIX_UNSUPPORTED, "eigh of float32", "no form in StableHLO", "mix_set_device(\"cpu\")");
  mix_ir_free(ir);
  ir = read_graph("%0:float32(2) = argument 0\n"
                  "%1:int64() = constant 0\n"
                  "%2:int64() = print(%0, %1) @'a layer'\n"
                  "return %0\n");
  assert_null(mix_xla_emit(ir, &s));
  expect_error(MIX_UNSUPPORTED, "print of float32 in a layer", "no form in StableHLO",
               "mix_set_device(\"cpu\")");
  mix_ir_free(ir);
}

static void memory_may_run_out(void **state) {
  (void)state;
  mix_ir *ir = read_graph(step);
  mix_xla_signature s;
  char *text = NULL;
  int failures = 0;
  for (; !text && failures < 1000; failures++) {
    mix_inject_allocation_failure(failures);
    text = mix_xla_emit(ir, &s);
    mix_inject_allocation_failure(-1);
    if (!text) expect_error(MIX_MEMORY_ERROR, "");
  }
  no_error();
  assert_true(text && failures > 3);
  mix_free(text);
  mix_ir_free(ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(graphs_and_programs),         TEST(a_signature_names_parameters_and_results),
      TEST(an_error_word_has_a_message), TEST(large_constants_are_parameters),
      TEST(a_range_is_not_written_out),  TEST(ops_without_a_form_name_themselves),
      TEST(memory_may_run_out),          TEST(products_have_the_precision_of_the_context),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
