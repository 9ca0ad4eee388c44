/* Evaluation: a read computes what it needs, once. An op that cannot be computed is an error that names
 * it. */
#include "compile/support.h"

#include "compile/evaluate.h"
#include "tensor/memory.h"
#include "graph/capture.h"

static mix_tensor *symbolic(mix_shape shape) {
  mix_node *node = mix_node_placeholder(MIX_FLOAT32, shape, true);
  mix_tensor *tensor = mix_tensor_of(node, 0);
  mix_release(node);
  return tensor;
}

static void reading_computes_once(void **state) {
  (void)state;
  mix_tensor *x = vec(MIX_FLOAT32, 1, 2), *y = mix_square(x);
  assert_null(y->node->outputs[0].memory);
  const void *data = mix_tensor_data(y);
  assert_non_null(data);
  assert_ptr_equal(mix_tensor_data(y), data);
  has_values(y, 1, 4);
}

static void several_tensors_in_one_plan(void **state) {
  (void)state;
  mix_tensor *x = vec(MIX_FLOAT32, 1, 2), *shared = mix_square(x);
  mix_tensor *tensors[40];
  for (int i = 0; i < 40; i++) tensors[i] = i % 4 == 3 ? tensors[i - 1] : mix_multiply(shared, scalar(i));
  assert_int_equal(mix_evaluate(40, tensors), MIX_OK);
  for (int i = 0; i < 40; i++) {
    assert_true(mix_node_finished(tensors[i]->node));
    int factor = i % 4 == 3 ? i - 1 : i;
    has_values(tensors[i], factor, 4 * factor);
  }
  assert_null(shared->node->outputs[0].memory);
  assert_int_equal(mix_evaluate(0, NULL), MIX_OK);
}

static void all_results_of_a_node(void **state) {
  (void)state;
  mix_tensor *logits = mix_fill(MIX_SHAPE(2, 4), 0, MIX_FLOAT64), *labels = vec(MIX_INT32, 1, 3);
  mix_tensor *losses = mix_sparse_softmax_cross_entropy(labels, logits),
             *gradient = mix_tensor_of(losses->node, 1);
  has_values(gradient, 0.25, -0.75, 0.25, 0.25, 0.25, 0.25, 0.25, -0.75);
  assert_true(fabs(((const double *)mix_tensor_data(losses))[0] - log(4)) <
              1e-15); /* one rounding of a number below 2 is 1.1e-16 */
  assert_true(mix_node_finished(losses->node));
}

static void views_sources_and_empty_tensors(void **state) {
  (void)state;
  mix_tensor *x = vec(MIX_FLOAT32, 1, 2, 3, 4);
  mix_tensor *view = mix_reshape(x, MIX_SHAPE(2, 2)),
             *both[] = {view, mix_reshape(mix_square(x), MIX_SHAPE(4, 1)), mix_identity(x)};
  assert_int_equal(mix_evaluate(3, both), MIX_OK);
  has_values(view, 1, 2, 3, 4);
  has_values(both[1], 1, 4, 9, 16);
  has_values(both[2], 1, 2, 3, 4);
  mix_tensor *empty = mix_exp(mix_fill(MIX_SHAPE(0, 3), 1, MIX_FLOAT32));
  assert_non_null(mix_tensor_data(empty));
  assert_int_equal(mix_tensor_read(empty, MIX_FLOAT32, NULL, 0), MIX_OK);
  mix_tensor *sum = mix_reduce_sum(empty, MIX_AXES(0), false);
  has_values(sum, 0, 0, 0);
  mix_tensor *wrapped = mix_tensor_wrap(NULL, MIX_FLOAT32, MIX_SHAPE(0), NULL);
  assert_non_null(mix_variable_new(wrapped, .name = "empty"));
  has_values(mix_all_finite(wrapped), true);
}

static int released;
static void note_release(void *data) {
  (void)data;
  released++;
}

static void wrapped_memory_is_read_in_place_and_given_back(void **state) {
  (void)state;
  static const float numbers[3] = {1, 2, 3};
  released = 0;
  mix_tensor *kept = NULL;
  MIX_SCOPE {
    mix_tensor *x = mix_tensor_wrap((void *)numbers, MIX_FLOAT32, MIX_SHAPE(3), note_release);
    assert_ptr_equal(mix_tensor_data(x), numbers);
    kept = mix_retain(mix_square(x));
  }
  assert_int_equal(released, 0);
  has_values(kept, 1, 4, 9);
  assert_int_equal(released, 1); /* evaluated: no longer needed */
  mix_release(kept);
}

static void symbolic_tensors_have_no_value(void **state) {
  (void)state;
  mix_tensor *x = symbolic(MIX_SHAPE(MIX_UNKNOWN, 3)), *y = mix_exp(mix_add(x, scalar(1)));
  assert_null(mix_tensor_data(y));
  expect_error(MIX_RUNTIME_ERROR, "symbolic", "mix_input");
  assert_true(isnan(mix_tensor_item(symbolic(MIX_SHAPE(1)))));
  expect_error(MIX_RUNTIME_ERROR, "symbolic");
}

static mix_list *reads_on_the_host(void *context, mix_list *arguments) {
  mix_tensor *finished = context, *x = mix_list_get(arguments, 0);
  assert_non_null(mix_tensor_data(finished));
  const char *former = mix_graph_scope_set(mix_intern("model/dense"));
  mix_tensor *y = mix_tanh(x);
  mix_graph_scope_set(former);
  assert_null(mix_tensor_data(y));
  return NULL;
}

static void a_read_during_a_capture_names_the_op(void **state) {
  (void)state;
  mix_function *function = mix_function_new(reads_on_the_host, scalar(1));
  assert_null(mix_function_call(function, mix_list_of(scalar(2))));
  expect_error(MIX_RUNTIME_ERROR, "tanh", "model/dense", "captured");
  assert_null(mix_capture_current());
  has_values(mix_tanh(scalar(0)), 0);
}

static mix_tensor *leaked;
static mix_list *leaks(void *context, mix_list *arguments) {
  (void)context;
  leaked = mix_retain(mix_exp(mix_list_get(arguments, 0)));
  return NULL;
}

static mix_list *uses_the_leak(void *context, mix_list *arguments) {
  (void)context, (void)arguments;
  return mix_list_of(mix_add(leaked, scalar(1)));
}

static void a_captures_tensor_means_nothing_outside(void **state) {
  (void)state;
  mix_function_call(mix_function_new(leaks, NULL), mix_list_of(scalar(2)));
  no_error();
  assert_null(mix_tensor_data(leaked));
  expect_error(MIX_RUNTIME_ERROR, "captured function");
  assert_null(mix_function_call(mix_function_new(uses_the_leak, NULL), mix_list_of(scalar(2))));
  expect_error(MIX_RUNTIME_ERROR, "captured function");
  mix_release(leaked);
}

static void errors_that_only_values_show(void **state) {
  (void)state;
  mix_tensor *losses =
      mix_sparse_softmax_cross_entropy(vec(MIX_INT32, 1, 7), mix_fill(MIX_SHAPE(2, 4), 0, MIX_FLOAT32));
  no_error();
  assert_null(mix_tensor_data(losses));
  expect_error(MIX_VALUE_ERROR, "sparse_softmax_cross_entropy");
  assert_null(mix_tensor_data(losses)); /* still not computed */
  expect_error(MIX_VALUE_ERROR, "sparse_softmax_cross_entropy");
  assert_null(mix_tensor_data(mix_floor_divide(mix_scalar(1, MIX_INT32), mix_scalar(0, MIX_INT32))));
  expect_error(MIX_VALUE_ERROR, "division by zero");
}

static void finished_values_can_be_read_while_an_error_is_pending(void **state) {
  (void)state;
  mix_tensor *x = vec(MIX_FLOAT32, 5, 6), *one = scalar(3), *lazy = mix_square(x);
  mix_fail(MIX_IO_ERROR, "pending");
  double got[2] = {0};
  assert_non_null(mix_tensor_data(x));
  assert_int_equal(mix_tensor_read(x, MIX_FLOAT64, got, 2), MIX_OK);
  assert_true(got[0] == 5 && got[1] == 6 && mix_tensor_item(one) == 3);
  assert_null(mix_tensor_data(lazy));
  assert_int_equal(mix_evaluate(1, &x), MIX_IO_ERROR);
  expect_error(MIX_IO_ERROR, "pending");
}

static void misuse_is_an_error(void **state) {
  (void)state;
  float out[3];
  mix_tensor *x = vec(MIX_FLOAT32, 1, 2);
  assert_int_equal(mix_tensor_read(x, MIX_FLOAT32, out, 3), MIX_VALUE_ERROR);
  expect_error(MIX_VALUE_ERROR, "tensor_read", "3", "2");
  assert_int_equal(mix_tensor_read(x, MIX_STRING, out, 2), MIX_TYPE_ERROR);
  expect_error(MIX_TYPE_ERROR, "string");
  assert_int_equal(mix_tensor_read(x, MIX_FLOAT32, NULL, 2), MIX_VALUE_ERROR);
  expect_error(MIX_VALUE_ERROR, "NULL");
  assert_true(isnan(mix_tensor_item(NULL)));
  expect_error(MIX_TYPE_ERROR, "tensor_item", "NULL");
  assert_true(isnan(mix_tensor_item((mix_tensor *)mix_list_new(0, NULL))));
  expect_error(MIX_TYPE_ERROR, "tensor_item", "not a tensor");
  assert_true(isnan(mix_tensor_item(x)));
  expect_error(MIX_VALUE_ERROR, "tensor_item", "(2)");
  assert_null(mix_tensor_data(NULL));
  expect_error(MIX_TYPE_ERROR, "NULL");
  assert_null(mix_tensor_data((mix_tensor *)mix_list_new(0, NULL)));
  expect_error(MIX_TYPE_ERROR, "another object");
  assert_null(mix_tensor_from(NULL, MIX_FLOAT32, MIX_SHAPE(2)));
  expect_error(MIX_TYPE_ERROR, "tensor_from", "NULL");
  assert_null(mix_tensor_from(out, MIX_STRING, MIX_SHAPE(2)));
  expect_error(MIX_TYPE_ERROR, "string");
  assert_null(mix_tensor_from(out, MIX_FLOAT32, MIX_SHAPE(MIX_UNKNOWN)));
  expect_error(MIX_VALUE_ERROR, "tensor_from");
}

/* Values that a loop creates and reads are released as it runs. */
static void a_loop_that_evaluates_keeps_nothing(void **state) {
  (void)state;
  mix_variable *total = variable("total", vec(MIX_FLOAT32, 0, 0));
  size_t bytes = 0;
  for (int i = 0; i < 20; i++) {
    MIX_SCOPE {
      mix_tensor *x = mix_multiply(vec(MIX_FLOAT32, 1, 2), scalar(i));
      mix_variable_assign_add(total, x);
    }
    if (i == 0) bytes = mix_buffer_bytes();
    assert_int_equal(mix_buffer_bytes(), bytes);
  }
  variable_has(total, 190, 380);
}

/* Every allocation of an evaluation can fail: an error, no leak, and the next call succeeds. */
static void failed_allocations(void **state) {
  (void)state;
  mix_tensor *x = vec(MIX_FLOAT32, 1, 2, 3, 4);
  bool complete = false;
  for (int k = 0; !complete; k++) {
    assert_in_range(k, 0, 2000);
    MIX_SCOPE {
      mix_tensor *y = mix_matmul(mix_reshape(mix_square(x), MIX_SHAPE(2, 2)),
                                 mix_fill(MIX_SHAPE(2, 2), 2, MIX_FLOAT32), false, false);
      mix_tensor *z = mix_reduce_sum(mix_relu(y), MIX_ALL_AXES, false);
      size_t bytes = mix_buffer_bytes();
      mix_inject_allocation_failure(k);
      const void *data = mix_tensor_data(z);
      mix_inject_allocation_failure(-1);
      complete = data != NULL;
      if (!complete) {
        assert_int_equal(mix_error(), MIX_MEMORY_ERROR);
        mix_error_clear();
        assert_int_equal(mix_buffer_bytes(), bytes);
      }
      has_values(z, 2 * 2 * (1 + 4 + 9 + 16));
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(reading_computes_once),
      TEST(several_tensors_in_one_plan),
      TEST(all_results_of_a_node),
      TEST(views_sources_and_empty_tensors),
      TEST(wrapped_memory_is_read_in_place_and_given_back),
      TEST(symbolic_tensors_have_no_value),
      TEST(a_read_during_a_capture_names_the_op),
      TEST(a_captures_tensor_means_nothing_outside),
      TEST(errors_that_only_values_show),
      TEST(finished_values_can_be_read_while_an_error_is_pending),
      TEST(misuse_is_an_error),
      TEST(a_loop_that_evaluates_keeps_nothing),
      TEST(failed_allocations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
