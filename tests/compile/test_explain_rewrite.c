/* What the rewrite makes of a captured function: the table, whatever the process's setting. */
#include "model/support.h"
#include <mixtape/graph_rewrite.h>

static mix_list *body(void *context, mix_list *arguments) {
  (void)context;
  mix_tensor *a = mix_list_get(arguments, 0), *b = mix_list_get(arguments, 1);
  return mix_list_of(mix_exp(mix_relu(mix_matmul(a, b, false, false))));
}

static mix_function *called(void) {
  mix_function *function = mix_function_new(body, NULL, .name = "forward");
  mix_tensor *x = mix_fill(MIX_SHAPE(4, 4), 1, F32);
  mix_function_call(function, mix_list_of(x, x));
  assert_no_error();
  return function;
}

/* The line of the table whose text has that part; it lives until the next call. */
static const char *line_with(const char *table, const char *part) {
  static char line[512];
  const char *found = strstr(table, part);
  if (!found) fail_msg("no '%s' in:\n%s", part, table);
  while (found > table && found[-1] != '\n') found--;
  snprintf(line, sizeof line, "%.*s", (int)strcspn(found, "\n"), found);
  return line;
}

/* matmul is on the allow list, relu on the clear list behind it, exp on the deny list of products. */
static void each_op_with_its_reason(void **state) {
  (void)state;
  mix_function *function = called();
  const char *table = mix_function_explain_rewrite(function, NULL);
  assert_no_error();
  assert_non_null(strstr(line_with(table, "MatMul"), "its op is in the allow list"));
  assert_non_null(strstr(line_with(table, "MatMul"), "float16"));
  assert_non_null(strstr(line_with(table, "Relu"), "float16"));
  assert_non_null(strstr(line_with(table, "Exp"), "its op is in the deny list"));
  table = mix_function_explain_rewrite(function, "bfloat16");
  assert_no_error();
  assert_non_null(strstr(line_with(table, "MatMul"), "bfloat16"));
}

/* Neither the setting of the process nor the compiled function is changed. */
static void nothing_is_changed(void **state) {
  (void)state;
  mix_function *function = called();
  char *before = strdup(mix_function_dump(function, "passes"));
  assert_non_null(mix_function_explain_rewrite(function, "float16"));
  assert_int_equal(mix_graph_rewrite_dtype(), MIX_DTYPE_NONE);
  assert_string_equal(mix_function_dump(function, "passes"), before);
  assert_null(strstr(before, "float16"));
  free(before);
  assert_int_equal(mix_set_graph_rewrite("bfloat16"), MIX_OK); /* nor does it matter */
  mix_function *rewritten = called();
  const char *table = mix_function_explain_rewrite(rewritten, "float16");
  assert_no_error();
  assert_null(strstr(table, "bfloat16"));
  assert_int_equal(mix_set_graph_rewrite(NULL), MIX_OK);
}

static void errors(void **state) {
  (void)state;
  assert_null(mix_function_explain_rewrite(mix_function_new(body, NULL), NULL));
  assert_error(MIX_RUNTIME_ERROR, "has not been called yet");
  assert_null(mix_function_explain_rewrite(NULL, NULL));
  assert_error(MIX_RUNTIME_ERROR, "function_explain_rewrite");
  assert_null(mix_function_explain_rewrite(called(), "float32"));
  assert_error(MIX_VALUE_ERROR, "'float32'; expected float16 or bfloat16");
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(each_op_with_its_reason), TEST(nothing_is_changed), TEST(errors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
