/* A backend that takes the graph instead of a plan, as a compiler that fuses and plans by itself does, and
 * gives each variable that a run writes new memory. Here it makes a plan of its own and runs it on the host.
 */
#include "compile/trainer.h"

#include "backend/host/host.h"
#include "compile/plan_steps.h"
#include "passes/passes.h"

static const mix_kernel_row *const tables[] = {mix_ref_kernels, NULL};
/* Fusion is its own business. */
static const char *const passes[] = {"amp", "remove_identities", "cse", "dce", "select_to_predicate", NULL};

struct mix_executable {
  mix_compiled planned;
  mix_executable *host;
};

static int compiled_graphs;

static mix_executable *compile_graph(mix_ir *ir, const mix_context *context) {
  mix_executable *e = mix_calloc(1, sizeof *e);
  if (!e) return NULL;
  compiled_graphs++;
  e->planned = (mix_compiled){.ir = ir, .context = *context};
  if (mix_pass_run(ir, "fuse") && mix_make_plan(&e->planned))
    e->host = mix_host_compile(&e->planned.plan, 1, context->precision, tables, false);
  if (e->host) return e;
  mix_free(e);
  return NULL;
}
static void destroy(mix_executable *e) {
  mix_host_destroy(e->host);
  mix_free(e);
}

static mix_ticket enqueue(mix_executable *e, const mix_bindings *bindings) {
  const mix_plan *plan = &e->planned.plan;
  mix_memory *former[8], *arena = mix_memory_new(&mix_host_memory, plan->arena_bytes);
  assert_non_null(arena);
  assert_true(plan->variable_count <= 8);
  for (int i = 0; i < plan->variable_count; i++) {
    former[i] = bindings->variables[i];
    bindings->variables[i] = mix_memory_new(&mix_host_memory, mix_memory_bytes(former[i]));
    assert_true(bindings->variables[i] && mix_memory_copy(bindings->variables[i], former[i]));
  }
  const mix_bindings own = {.arguments = bindings->arguments,
                            .variables = bindings->variables,
                            .results = bindings->results,
                            .arena = arena};
  const mix_ticket ticket = mix_host_enqueue(e->host, &own);
  mix_release(arena);
  for (int i = 0; i < plan->variable_count && !ticket; i++) {
    mix_release(bindings->variables[i]);
    bindings->variables[i] = former[i];
  }
  return ticket;
}

static void facts(const mix_executable *e, mix_executable_facts *out) { mix_host_facts(e->host, out); }
static void describe(const mix_context *context, mix_text *text) {
  (void)context;
  mix_text_put(text, "grapher: takes graphs\n");
}

static const mix_backend grapher = {.name = "grapher",
                                    .memory = &mix_host_memory,
                                    .replaces_variables = true,
                                    .host = &mix_backend_ref,
                                    .own = tables,
                                    .passes = passes,
                                    MIX_HOST_ANSWERS,
                                    .compile_graph = compile_graph,
                                    .destroy = destroy,
                                    .enqueue = enqueue,
                                    .facts = facts,
                                    .describe = describe};

static void a_training_step_is_that_of_a_plan(void **state) {
  (void)state;
  trainer t = new_trainer(), planned = new_trainer();
  mix_function *step = mix_function_new(train_step, &t), *other = mix_function_new(train_step, &planned);
  const double numbers[] = {0, 0, INFINITY, 0};
  for (int i = 0; i < 4; i++) {
    mix_list *arguments = mix_list_of(batch(5, numbers[i]), labels(5, i % 3));
    mix_set_device("grapher");
    const mix_memory *former = t.kernel->memory;
    mix_list *results = mix_function_call(step, arguments);
    no_error();
    assert_ptr_not_equal(former, t.kernel->memory);
    mix_set_device("ref");
    mix_list *expected = mix_function_call(other, arguments);
    double loss = mix_tensor_item(mix_list_get(results, 0)),
           wanted = mix_tensor_item(mix_list_get(expected, 0));
    assert_true(loss == wanted || (isnan(loss) && isnan(wanted)));
    bytes a = bytes_of(&t), b = bytes_of(&planned);
    assert_memory_equal(&a, &b, sizeof a);
  }
  assert_true(compiled_graphs > 0);
  mix_set_device("grapher");
  mix_plan_report report;
  mix_function_call(step, mix_list_of(batch(5, 0), labels(5, 0)));
  assert_int_equal(mix_function_report(step, &report, sizeof report), MIX_OK);
  assert_true(report.variable_bytes > 0 && report.argument_bytes > 0);
  assert_non_null(strstr(mix_function_dump(step, "plan"), "plans by itself"));
  assert_non_null(strstr(mix_devices_text(), "grapher: takes graphs\n"));
}

/* A failed run replaces nothing. */
static void a_value_error_leaves_the_variables(void **state) {
  (void)state;
  mix_set_device("grapher");
  trainer t = new_trainer();
  mix_function *step = mix_function_new(train_step, &t);
  mix_function_call(step, mix_list_of(batch(5, 0), labels(5, 0)));
  bytes before = bytes_of(&t);
  assert_null(mix_function_call(step, mix_list_of(batch(5, 0), labels(5, 9))));
  expect_error(MIX_VALUE_ERROR, "sparse_softmax_cross_entropy");
  bytes after = bytes_of(&t);
  assert_memory_equal(&after, &before, sizeof after);
}

/* ---- what a backend lacks ---- */

static bool supports_no_product(const mix_context *context, const mix_op *op, mix_dtype dtype) {
  return op != &mix_op_matmul && mix_host_supports(context, op, dtype);
}

static void an_op_without_a_kernel_is_an_error_that_names_it(void **state) {
  (void)state;
  static mix_backend poor;
  poor = grapher;
  poor.name = "poor";
  poor.supports = supports_no_product;
  assert_true(mix_backend_add(&poor));
  mix_set_device("poor");
  trainer t = new_trainer();
  assert_null(mix_function_call(mix_function_new(train_step, &t), mix_list_of(batch(5, 0), labels(5, 0))));
  expect_error(MIX_UNSUPPORTED, "matmul of float32 in model/logits", "\"poor\"", "mix_set_device(\"ref\")");
}

/* Questions that may be NULL mean no: nothing is fused with products and sums, overwritten or computed twice,
 * and the bits are the same. */
static void a_backend_that_answers_nothing_gives_the_same_bits(void **state) {
  (void)state;
  static mix_backend bare;
  bare = (mix_backend){.name = "bare",
                       .memory = &mix_host_memory,
                       .host = &mix_backend_ref,
                       .own = tables,
                       .max_loads = 3, /* no sums, either */
                       .max_stores = 2,
                       .supports = mix_host_supports,
                       .compile = mix_backend_ref.compile,
                       .kernel_name = mix_backend_ref.kernel_name,
                       .destroy = mix_host_destroy,
                       .enqueue = mix_host_enqueue,
                       .describe = describe};
  assert_true(mix_backend_add(&bare));
  trainer t = new_trainer(), other = new_trainer();
  mix_function *step = mix_function_new(train_step, &t), *planned = mix_function_new(train_step, &other);
  for (int i = 0; i < 3; i++) {
    mix_list *arguments = mix_list_of(batch(5, i == 1 ? INFINITY : 0), labels(5, i));
    mix_set_device("bare");
    mix_function_call(step, arguments);
    no_error();
    const char *plan = mix_function_dump(step, "plan");
    assert_non_null(strstr(plan, " matmul ["));
    mix_set_device("ref");
    mix_function_call(planned, arguments);
    bytes a = bytes_of(&t), b = bytes_of(&other);
    assert_memory_equal(&a, &b, sizeof a);
    assert_true(strcmp(plan, mix_function_dump(planned, "plan")));
  }
}

int main(void) {
  if (!mix_backend_add(&grapher)) return 1;
  const struct CMUnitTest tests[] = {
      TEST(a_training_step_is_that_of_a_plan),
      TEST(a_value_error_leaves_the_variables),
      TEST(an_op_without_a_kernel_is_an_error_that_names_it),
      TEST(a_backend_that_answers_nothing_gives_the_same_bits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
