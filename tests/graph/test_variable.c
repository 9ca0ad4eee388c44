/* Variables: one fixed address, tensors that share it until the next write, reads and writes of a capture in
 * program order. */
#include "../compile/support.h"

#include "tensor/memory.h"
#include "support/memory.h"

static void a_read_shares_the_storage_until_the_next_write(void **state) {
  (void)state;
  mix_variable *v = variable("v", vec(MIX_FLOAT32, 1, 2));
  void *address = bytes_of_memory(v->memory);
  mix_tensor *first = mix_variable_value(v), *again = mix_variable_value(v);
  assert_ptr_equal(mix_tensor_data(first), address);
  assert_ptr_equal(first->node, again->node);
  mix_variable_assign(v, vec(MIX_FLOAT32, 3, 4));
  assert_ptr_equal(bytes_of_memory(v->memory), address);
  has_values(first, 1, 2);
  has_values(again, 1, 2);
  variable_has(v, 3, 4);
  assert_ptr_equal(mix_tensor_data(mix_variable_value(v)), address);
}

static void a_write_without_readers_copies_nothing(void **state) {
  (void)state;
  mix_variable *v = variable("v", mix_fill(MIX_SHAPE(1000), 1, MIX_FLOAT32));
  MIX_SCOPE { mix_variable_value(v); }
  mix_tensor *value = mix_fill(MIX_SHAPE(1000), 2, MIX_FLOAT32);
  mix_tensor_data(value);
  size_t bytes = mix_buffer_bytes();
  uint64_t before = mix_inject_allocation_failure(-1);
  mix_variable_assign(v, value);
  assert_int_equal(mix_inject_allocation_failure(-1), before);
  assert_int_equal(mix_buffer_bytes(), bytes);
}

/* A lazy value uses the variable's value at the time of the read, not at the time of evaluation. */
static void lazy_values_see_the_old_value(void **state) {
  (void)state;
  mix_variable *v = variable("v", vec(MIX_FLOAT32, 1, 2));
  mix_tensor *twice = mix_add(mix_variable_value(v), mix_variable_value(v));
  mix_variable_assign(v, vec(MIX_FLOAT32, 10, 20));
  mix_tensor *later = mix_add(mix_variable_value(v), mix_variable_value(v));
  mix_variable_assign_add(v, vec(MIX_FLOAT32, 1, 1));
  has_values(twice, 2, 4);
  has_values(later, 20, 40);
  variable_has(v, 11, 21);
}

static void assignment_evaluates_at_once(void **state) {
  (void)state;
  mix_variable *v = variable("v", scalar(1)), *w = variable("w", scalar(2));
  mix_variable_assign(v, mix_add(mix_variable_value(v), mix_variable_value(w)));
  mix_variable_assign(w, mix_multiply(mix_variable_value(v), scalar(10)));
  variable_has(v, 3);
  variable_has(w, 30);
  mix_variable_assign(v, mix_variable_value(v));
  variable_has(v, 3);
  mix_variable_assign_sub(v, mix_variable_value(w));
  variable_has(v, -27);
  no_error();
}

static void the_initial_value_is_copied(void **state) {
  (void)state;
  mix_tensor *initial = vec(MIX_FLOAT16, 1, 2);
  mix_variable *v = mix_variable_new(initial),
               *w = mix_variable_new(initial, .name = "w", .not_trainable = true);
  mix_variable_assign(v, vec(MIX_FLOAT16, 3, 4));
  has_values(initial, 1, 2);
  variable_has(w, 1, 2);
  assert_string_equal(mix_variable_name(v), "variable");
  assert_string_equal(mix_variable_name(w), "w");
  assert_true(mix_variable_trainable(v));
  assert_false(mix_variable_trainable(w));
  assert_int_equal(mix_variable_dtype(v), MIX_FLOAT16);
  assert_int_equal(mix_variable_shape(v).dims[0], 2);
}

static void assignments_must_fit(void **state) {
  (void)state;
  mix_variable *v = variable("kernel", vec(MIX_FLOAT32, 1, 2));
  assert_int_equal(mix_variable_assign(v, vec(MIX_FLOAT16, 1, 2)), MIX_TYPE_ERROR);
  expect_error(MIX_TYPE_ERROR, "variable_assign", "'kernel'", "float32", "float16", "mix_cast");
  assert_int_equal(mix_variable_assign(v, vec(MIX_FLOAT32, 1, 2, 3)), MIX_VALUE_ERROR);
  expect_error(MIX_VALUE_ERROR, "variable_assign", "'kernel'", "(2)", "(3)");
  assert_int_equal(mix_variable_assign_add(v, vec(MIX_FLOAT64, 1, 2)), MIX_TYPE_ERROR);
  expect_error(MIX_TYPE_ERROR, "float32 (2)", "float64 (2)");
  assert_int_equal(mix_variable_assign_sub(v, mix_fill(MIX_SHAPE(3, 2), 1, MIX_FLOAT32)), MIX_VALUE_ERROR);
  /* Broadcasting must not change the variable's shape. */
  expect_error(MIX_VALUE_ERROR, "variable_assign_sub", "(2)", "(3, 2)");
  mix_variable_assign(v, NULL);
  expect_error(MIX_TYPE_ERROR, "variable_assign", "'kernel'");
  mix_variable_assign(NULL, scalar(1));
  expect_error(MIX_TYPE_ERROR, "variable_assign", "expected a variable");
  mix_variable_assign((mix_variable *)scalar(1), scalar(1));
  expect_error(MIX_TYPE_ERROR, "variable_assign", "expected a variable");
  assert_null(mix_variable_value((mix_variable *)mix_list_new(0, NULL)));
  expect_error(MIX_TYPE_ERROR, "expected a variable");
  assert_null(mix_variable_new(NULL));
  expect_error(MIX_TYPE_ERROR, "variable_new", "initial_value");
  mix_node *input = mix_node_placeholder(MIX_FLOAT32, MIX_SHAPE(2), true);
  mix_tensor *symbolic = mix_tensor_of(input, 0);
  mix_release(input);
  mix_variable_assign(v, symbolic);
  expect_error(MIX_RUNTIME_ERROR, "variable_assign", "'kernel'", "symbolic");
  assert_null(mix_variable_new(symbolic));
  expect_error(MIX_RUNTIME_ERROR, "symbolic");
  variable_has(v, 1, 2);
}

static void readers_outlive_the_variable(void **state) {
  (void)state;
  mix_tensor *value = NULL, *old = NULL, *lazy = NULL;
  MIX_SCOPE {
    mix_variable *v = variable("v", vec(MIX_FLOAT32, 1, 2));
    old = mix_retain(mix_variable_value(v));
    mix_variable_assign(v, vec(MIX_FLOAT32, 3, 4));
    value = mix_retain(mix_variable_value(v));
    lazy = mix_retain(mix_square(value));
  }
  has_values(old, 1, 2);
  has_values(value, 3, 4);
  has_values(lazy, 9, 16);
  mix_release(old), mix_release(value), mix_release(lazy);
}

/* Also if no memory is left. */
static void a_dying_variable_needs_no_memory(void **state) {
  (void)state;
  mix_tensor *value = NULL;
  size_t bytes = mix_buffer_bytes();
  MIX_SCOPE {
    mix_variable *v = variable("v", vec(MIX_FLOAT32, 1, 2));
    value = mix_retain(mix_variable_value(v));
    mix_inject_allocation_failure(0);
  }
  mix_inject_allocation_failure(-1);
  has_values(value, 1, 2);
  mix_release(value);
  assert_int_equal(mix_buffer_bytes(), bytes);
}

static void a_failed_copy_leaves_the_variable_alone(void **state) {
  (void)state;
  mix_variable *v = variable("v", vec(MIX_FLOAT32, 1, 2));
  mix_tensor *reader = mix_variable_value(v), *value = vec(MIX_FLOAT32, 3, 4);
  mix_inject_allocation_failure(0);
  assert_int_equal(mix_variable_assign(v, value), MIX_MEMORY_ERROR);
  mix_inject_allocation_failure(-1);
  mix_error_clear();
  variable_has(v, 1, 2);
  has_values(reader, 1, 2);
  assert_int_equal(mix_variable_assign(v, value), MIX_OK);
  variable_has(v, 3, 4);
  has_values(reader, 1, 2);
}

/* ---- captures ---- */

typedef struct pair {
  mix_variable *v, *w;
} pair;

static mix_list *read_write_read(void *context, mix_list *arguments) {
  pair *p = context;
  mix_tensor *before = mix_variable_value(p->v);
  mix_variable_assign_add(p->v, mix_list_get(arguments, 0));
  mix_tensor *between = mix_variable_value(p->v);
  mix_variable_assign(p->v, mix_multiply(between, between));
  return mix_list_of(before, between, mix_variable_value(p->v), mix_variable_value(p->v));
}

static void reads_and_writes_follow_program_order(void **state) {
  (void)state;
  pair p = {variable("v", vec(MIX_FLOAT32, 1, 2)), NULL};
  mix_function *function = mix_function_new(read_write_read, &p);
  mix_list *results = mix_function_call(function, mix_list_of(vec(MIX_FLOAT32, 1, 1)));
  has_values(mix_list_get(results, 0), 1, 2);
  has_values(mix_list_get(results, 1), 2, 3);
  has_values(mix_list_get(results, 2), 4, 9);
  has_values(mix_list_get(results, 3), 4, 9);
  variable_has(p.v, 4, 9);
  mix_function_call(function, mix_list_of(vec(MIX_FLOAT32, -4, -8)));
  variable_has(p.v, 0, 1);
  has_values(mix_list_get(results, 2), 4, 9); /* results are not shared */
}

static void a_tensor_read_before_a_call_keeps_the_old_value(void **state) {
  (void)state;
  pair p = {variable("v", vec(MIX_FLOAT32, 1, 2)), NULL};
  mix_function *function = mix_function_new(read_write_read, &p);
  mix_tensor *before = mix_variable_value(p.v), *lazy = mix_negative(mix_variable_value(p.v));
  /* The argument is the variable's own storage. */
  mix_list *results = mix_function_call(function, mix_list_of(before));
  has_values(mix_list_get(results, 1), 2, 4);
  variable_has(p.v, 4, 16);
  has_values(before, 1, 2);
  has_values(lazy, -1, -2);
  mix_function_call(function, mix_list_of(mix_variable_value(p.v))); /* (v + v)^2 */
  variable_has(p.v, 64, 1024);
  mix_function_call(function, mix_list_of(mix_variable_value(p.v)));
  variable_has(p.v, 128 * 128, 2048 * 2048);
}

static mix_list *swap(void *context, mix_list *arguments) {
  pair *p = context;
  (void)arguments;
  mix_tensor *v = mix_variable_value(p->v), *w = mix_variable_value(p->w);
  mix_variable_assign(p->v, w);
  mix_variable_assign(p->w, v);
  return NULL;
}

static void two_variables_swap(void **state) {
  (void)state;
  pair p = {variable("v", vec(MIX_FLOAT32, 1, 2)), variable("w", vec(MIX_FLOAT32, 3, 4))};
  mix_function *function = mix_function_new(swap, &p);
  assert_int_equal(mix_list_count(mix_function_call(function, NULL)), 0);
  variable_has(p.v, 3, 4);
  variable_has(p.w, 1, 2);
  mix_function_call(function, NULL);
  variable_has(p.v, 1, 2);
  variable_has(p.w, 3, 4);
}

static mix_list *rotate(void *context, mix_list *arguments) {
  mix_variable **v = context;
  (void)arguments;
  mix_tensor *first = mix_variable_value(v[0]), *sum = mix_add(first, mix_variable_value(v[3]));
  for (int i = 0; i < 3; i++) mix_variable_assign(v[i], mix_negative(mix_variable_value(v[i + 1])));
  mix_variable_assign(v[3], sum);
  return mix_list_of(first);
}

/* Programs that read each other's variables: (a, b, c, d) becomes (-b, -c, -d, a + d). */
static void a_ring_of_variables(void **state) {
  (void)state;
  mix_variable *v[4];
  for (int i = 0; i < 4; i++) v[i] = variable("ring", vec(MIX_FLOAT32, i + 1, 10 * (i + 1)));
  mix_function *function = mix_function_new(rotate, v);
  mix_list *results = mix_function_call(function, NULL);
  has_values(mix_list_get(results, 0), 1, 10);
  variable_has(v[0], -2, -20);
  variable_has(v[1], -3, -30);
  variable_has(v[2], -4, -40);
  variable_has(v[3], 5, 50);
}

static mix_list *assign_one_value_to_both(void *context, mix_list *arguments) {
  pair *p = context;
  mix_tensor *value = mix_exp(mix_list_get(arguments, 0));
  mix_variable_assign(p->v, value);
  mix_variable_assign(p->w, value);
  return mix_list_of(value, mix_list_get(arguments, 0));
}

static void one_value_for_two_variables_and_a_result(void **state) {
  (void)state;
  pair p = {variable("v", vec(MIX_FLOAT32, 1, 2)), variable("w", vec(MIX_FLOAT32, 3, 4))};
  mix_function *function = mix_function_new(assign_one_value_to_both, &p);
  mix_list *results = mix_function_call(function, mix_list_of(vec(MIX_FLOAT32, 0, 0)));
  variable_has(p.v, 1, 1);
  variable_has(p.w, 1, 1);
  has_values(mix_list_get(results, 0), 1, 1);
  has_values(mix_list_get(results, 1), 0, 0);
}

static mix_list *assign_constants(void *context, mix_list *arguments) {
  pair *p = context;
  mix_variable_assign(p->v, mix_zeros_like(mix_variable_value(p->v)));
  mix_variable_assign(p->w, mix_list_get(arguments, 0));
  mix_variable_assign(
      p->w,
      mix_reshape(mix_transpose(mix_reshape(mix_list_get(arguments, 0), MIX_SHAPE(2, 2)), MIX_AXES(1, 0)),
                  MIX_SHAPE(4)));
  return NULL;
}

static void constants_arguments_and_views_can_be_assigned(void **state) {
  (void)state;
  pair p = {variable("v", vec(MIX_FLOAT32, 1, 2)), variable("w", vec(MIX_FLOAT32, 0, 0, 0, 0))};
  mix_function *function = mix_function_new(assign_constants, &p);
  mix_function_call(function, mix_list_of(vec(MIX_FLOAT32, 1, 2, 3, 4)));
  variable_has(p.v, 0, 0);
  variable_has(p.w, 1, 3, 2, 4);
}

static mix_list *own_transpose(void *context, mix_list *arguments) {
  pair *p = context;
  (void)arguments;
  mix_tensor *v = mix_variable_value(p->v);
  mix_variable_assign(p->v, mix_add(mix_transpose(v, MIX_AXES(1, 0)), v));
  /* with an epilogue that could store directly to w */
  mix_variable_assign(p->w,
                      mix_relu(mix_matmul(mix_variable_value(p->w), mix_variable_value(p->w), false, false)));
  return NULL;
}

/* A value read in another order than it is written must not be overwritten during the read. */
static void a_variable_becomes_a_function_of_its_own_transpose_and_product(void **state) {
  (void)state;
  for (int device = 0; device < 2; device++) {
    mix_set_device(device ? "ref" : default_device()); /* the reference stores element by element */
    pair p = {variable("v", mix_reshape(vec(MIX_FLOAT32, 1, 2, 3, 4), MIX_SHAPE(2, 2))),
              variable("w", mix_reshape(vec(MIX_FLOAT32, 1, 2, 3, 4), MIX_SHAPE(2, 2)))};
    mix_function *function = mix_function_new(own_transpose, &p);
    mix_function_call(function, NULL);
    variable_has(p.v, 2, 5, 5, 8);
    variable_has(p.w, 7, 10, 15, 22);
    const char *product = strstr(mix_function_dump(function, "plan"), " matmul ");
    assert_non_null(product);
    /* The result must not go to w, an operand of the product. */
    assert_int_equal(strncmp(strstr(product, " -> "), " -> arena", 9), 0);
  }
}

static mix_list *row_of_itself(void *context, mix_list *arguments) {
  pair *p = context;
  (void)arguments;
  mix_tensor *v = mix_variable_value(p->v), *first = mix_slice(v, MIX_SHAPE(0, 0), MIX_SHAPE(1, -1));
  mix_variable_assign(p->v, mix_subtract(v, first)); /* (2, 2) - (1, 2) */
  return NULL;
}

static void a_variable_minus_its_own_first_row(void **state) {
  (void)state;
  pair p = {variable("v", mix_reshape(vec(MIX_FLOAT32, 1, 2, 3, 4), MIX_SHAPE(2, 2))), NULL};
  mix_function_call(mix_function_new(row_of_itself, &p), NULL);
  variable_has(p.v, 0, 0, 2, 2);
}

static mix_list *symbolic_assignment(void *context, mix_list *arguments) {
  (void)arguments;
  mix_node *input = mix_node_placeholder(MIX_FLOAT32, MIX_SHAPE(2), true);
  mix_variable_assign(context, mix_tensor_of(input, 0));
  mix_release(input);
  return NULL;
}

static void a_symbolic_value_is_refused_at_the_line_that_assigns_it(void **state) {
  (void)state;
  mix_variable *v = variable("v", vec(MIX_FLOAT32, 1, 2));
  assert_null(mix_function_call(mix_function_new(symbolic_assignment, v), NULL));
  expect_error(MIX_RUNTIME_ERROR, "variable_assign", "'v'", "symbolic");
  variable_has(v, 1, 2);
}

static void text(void **state) {
  (void)state;
  char text[200];
  assert_string_equal(
      mix_variable_text(variable("kernel", mix_fill(MIX_SHAPE(2, 3), 0, MIX_FLOAT32)), text, sizeof text),
      "<Variable 'kernel' shape=(2, 3) dtype=float32>");
  assert_string_equal(mix_variable_text(NULL, text, sizeof text), "<no variable>");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_read_shares_the_storage_until_the_next_write),
      TEST(a_write_without_readers_copies_nothing),
      TEST(lazy_values_see_the_old_value),
      TEST(assignment_evaluates_at_once),
      TEST(the_initial_value_is_copied),
      TEST(assignments_must_fit),
      TEST(readers_outlive_the_variable),
      TEST(a_dying_variable_needs_no_memory),
      TEST(a_failed_copy_leaves_the_variable_alone),
      TEST(reads_and_writes_follow_program_order),
      TEST(a_tensor_read_before_a_call_keeps_the_old_value),
      TEST(two_variables_swap),
      TEST(a_ring_of_variables),
      TEST(one_value_for_two_variables_and_a_result),
      TEST(constants_arguments_and_views_can_be_assigned),
      TEST(a_variable_becomes_a_function_of_its_own_transpose_and_product),
      TEST(a_variable_minus_its_own_first_row),
      TEST(a_symbolic_value_is_refused_at_the_line_that_assigns_it),
      TEST(text),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
