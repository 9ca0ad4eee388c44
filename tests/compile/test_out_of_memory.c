/* Plans too large for any machine: an error that names the largest value, no leak, and the next call works.
 * (test_evaluate.c and test_training_step.c make single allocations fail.) */
#include "compile/support.h"

#include "base/alloc.h"

enum {
  LARGE = 1 << 23,
  WIDE = 1 << 25
}; /* (LARGE, WIDE) float32 is 2^50 bytes, beyond the processor's address space */

static void expect_out_of_memory(const char *who, const char *value, const char *maker) {
  assert_int_equal(mix_error(), MIX_MEMORY_ERROR);
  const char *message = mix_error_message();
  if (!strstr(message, who) || !strstr(message, value) || !strstr(message, maker) ||
      !strstr(message, "smaller batch"))
    fail_msg("\"%s\" does not name %s, %s and %s", message, who, value, maker);
  mix_error_clear();
}

static mix_tensor *column(int64_t n) { return mix_broadcast_to(mix_scalar(1, MIX_FLOAT32), MIX_SHAPE(n, 1)); }

static void a_result(void **state) {
  (void)state;
  size_t bytes = mix_buffer_bytes();
  MIX_SCOPE {
    mix_tensor *product =
        mix_matmul(column(LARGE), mix_reshape(column(WIDE), MIX_SHAPE(1, WIDE)), false, false);
    no_error();
    assert_null(mix_tensor_data(product));
    expect_out_of_memory("evaluation", "float32 (8388608, 33554432)", "matmul");
  }
  assert_int_equal(mix_buffer_bytes(), bytes);
}

static void an_intermediate_value(void **state) {
  (void)state;
  size_t bytes = mix_buffer_bytes();
  MIX_SCOPE {
    mix_tensor *product =
        mix_matmul(column(LARGE), mix_reshape(column(WIDE), MIX_SHAPE(1, WIDE)), false, false);
    mix_tensor *positions = mix_argmax(product, 1);
    assert_null(mix_tensor_data(positions));
    expect_out_of_memory("evaluation", "float32 (8388608, 33554432)", "matmul");
  }
  assert_int_equal(mix_buffer_bytes(), bytes);
}

/* total += positions of the largest elements of x x^T, which is in the arena. */
static mix_list *outer(void *context, mix_list *arguments) {
  mix_tensor *x = mix_list_get(arguments, 0);
  mix_tensor *largest = mix_argmax(mix_matmul(x, x, false, true), 1);
  mix_variable_assign_add(context, mix_reduce_sum(mix_cast(largest, MIX_FLOAT32), MIX_ALL_AXES, false));
  return mix_list_of(mix_reduce_sum(x, MIX_ALL_AXES, false));
}

static void a_function_stays_usable(void **state) {
  (void)state;
  mix_variable *total = mix_variable_new(mix_scalar(0, MIX_FLOAT32));
  mix_function *function = mix_function_new(outer, total, .name = "outer");
  mix_tensor *few = vec(MIX_FLOAT32, 1, 3, 2),
             *many = mix_broadcast_to(mix_scalar(1, MIX_FLOAT32), MIX_SHAPE(LARGE, 1));
  few = mix_reshape(few, MIX_SHAPE(3, 1));
  assert_non_null(mix_function_call(function, mix_list_of(few)));
  variable_has(total, 3); /* three times position 1 */
  assert_int_equal(mix_evaluate(1, &many), MIX_OK);
  for (int i = 0; i < 2; i++) {
    size_t bytes = mix_buffer_bytes();
    assert_null(mix_function_call(function, mix_list_of(many)));
    expect_out_of_memory("outer", "float32 (8388608, 8388608)", "matmul");
    assert_int_equal(mix_buffer_bytes(), bytes);
    assert_non_null(mix_function_call(function, mix_list_of(few)));
    variable_has(total, 6 + 3 * i);
  }
}

static mix_list *spread(void *context, mix_list *arguments) {
  (void)context;
  mix_tensor *x = mix_list_get(arguments, 0);
  return mix_list_of(mix_broadcast_to(x, MIX_SHAPE(WIDE, mix_tensor_shape(x).dims[0])));
}

static void a_functions_result(void **state) {
  (void)state;
  mix_function *function = mix_function_new(spread, NULL, .name = "spread");
  mix_tensor *x = mix_fill(MIX_SHAPE(LARGE), 1, MIX_FLOAT32);
  assert_int_equal(mix_evaluate(1, &x), MIX_OK);
  size_t bytes = 0;
  for (int i = 0; i < 3; i++) {
    assert_null(mix_function_call(function, mix_list_of(x)));
    expect_out_of_memory("spread", "float32 (33554432, 8388608)", "made by");
    if (i > 0) assert_int_equal(mix_buffer_bytes(), bytes); /* the plan itself is kept */
    bytes = mix_buffer_bytes();
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_result),
      TEST(an_intermediate_value),
      TEST(a_function_stays_usable),
      TEST(a_functions_result),
  };
  return cmocka_run_group_tests_name("compile/out_of_memory", tests, NULL, NULL);
}
