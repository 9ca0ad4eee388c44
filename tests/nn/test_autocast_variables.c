/* Autocast variables: rows V01 to V27 of docs/spec/mixed_precision.md, 9.4. Operators are the operations on a
 * read value. V15 (wrapping a tensor) is impossible in C; a variable without an initial value replaces it.
 * V22 is get_weights/set_weights here; files: saving/test_checkpoint.c. V23 with SGD: optim/test_rules.c. */
/* Holds docs/NUMERICS.md: Terms. */
#include "nn/custom.h"
#include <pthread.h>

static const double eps16 = 0x1p-10; /* the gap above 1 in float16 */

static mix_variable *variable_of(double value) {
  return mix_variable_new(mix_scalar(value, MIX_FLOAT32), .name = "x", .autocast = true);
}
static mix_dtype begin(mix_dtype dtype) {
  mix_dtype former = MIX_DTYPE_NONE;
  assert_int_equal(mix_autocast_begin(dtype, &former), MIX_OK);
  return former;
}
#define IN_SCOPE(dtype)                                                                                      \
  for (mix_dtype former_ = begin(dtype), once_ = MIX_FLOAT16; once_;                                         \
       once_ = MIX_DTYPE_NONE, mix_autocast_end(former_))

static void expect_item(mix_tensor *tensor, mix_dtype dtype, double value) {
  expect_dtype(tensor, dtype);
  assert_true(mix_tensor_item(tensor) == value);
}

static void V01_dtype_inside_and_outside(void **state) {
  (void)state;
  mix_variable *x = variable_of(7);
  assert_int_equal(mix_variable_dtype(x), MIX_FLOAT32);
  IN_SCOPE(MIX_FLOAT16) assert_int_equal(mix_variable_dtype(x), MIX_FLOAT16);
  assert_int_equal(mix_variable_dtype(x), MIX_FLOAT32);
}
static void V02_true_dtype(void **state) {
  (void)state;
  mix_variable *x = variable_of(7);
  IN_SCOPE(MIX_FLOAT16) {
    assert_int_equal(mix_variable_true_dtype(x), MIX_FLOAT32);
    expect_item(mix_variable_true_value(x), MIX_FLOAT32, 7);
  }
}
static void V03_reads(void **state) {
  (void)state;
  mix_variable *x = variable_of(7);
  IN_SCOPE(MIX_FLOAT16) expect_item(mix_variable_value(x), MIX_FLOAT16, 7);
  expect_item(mix_variable_value(x), MIX_FLOAT32, 7);
}
static void V04_V05_V06_arithmetic(void **state) {
  (void)state;
  mix_variable *variable = variable_of(7);
  IN_SCOPE(MIX_FLOAT16) {
    mix_tensor *x = mix_variable_value(variable), *one = mix_scalar(1, MIX_FLOAT16),
               *two = mix_scalar(2, MIX_FLOAT16), *three = mix_scalar(3, MIX_FLOAT16);
    expect_item(mix_add(x, one), MIX_FLOAT16, 8);
    expect_item(mix_add(one, x), MIX_FLOAT16, 8);
    expect_item(mix_subtract(x, one), MIX_FLOAT16, 6);
    expect_item(mix_multiply(x, two), MIX_FLOAT16, 14);
    expect_item(mix_add(three, x), MIX_FLOAT16, 10);
    expect_item(mix_power(x, three), MIX_FLOAT16, 343);
    expect_item(mix_divide(x, two), MIX_FLOAT16, 3.5);
    expect_item(mix_floor_divide(x, two), MIX_FLOAT16, 3);
    expect_item(mix_floor_mod(x, two), MIX_FLOAT16, 1);
    expect_item(mix_negative(x), MIX_FLOAT16, -7);
    expect_item(mix_abs(mix_negative(x)), MIX_FLOAT16, 7);
  }
}
static void V07_comparisons(void **state) {
  (void)state;
  mix_variable *variable = variable_of(7);
  IN_SCOPE(MIX_FLOAT16) {
    mix_tensor *x = mix_variable_value(variable), *eight = mix_scalar(8, MIX_FLOAT16);
    expect_item(mix_less(x, eight), MIX_BOOL, 1);
    expect_item(mix_less_equal(x, eight), MIX_BOOL, 1);
    expect_item(mix_greater(x, eight), MIX_BOOL, 0);
    expect_item(mix_greater_equal(x, eight), MIX_BOOL, 0);
  }
}
static void V08_assign_float16_inside(void **state) {
  (void)state;
  mix_variable *x = variable_of(7);
  IN_SCOPE(MIX_FLOAT16) assert_int_equal(mix_variable_assign(x, mix_scalar(3.14, MIX_FLOAT16)), MIX_OK);
  expect_item(mix_variable_value(x), MIX_FLOAT32, 3.140625); /* 3.14 rounded to 11 bits */
}
static void V09_assign_float16_outside(void **state) {
  (void)state;
  mix_variable *x = variable_of(7);
  expect_status(mix_variable_assign(x, mix_scalar(3, MIX_FLOAT16)), MIX_TYPE_ERROR, "float16");
  expect_item(mix_variable_value(x), MIX_FLOAT32, 7);
}
static void V10_assign_add_keeps_precision(void **state) {
  (void)state;
  mix_variable *x = variable_of(1);
  IN_SCOPE(MIX_FLOAT16) {
    assert_int_equal(mix_variable_assign_add(x, mix_scalar(eps16 / 2, MIX_FLOAT16)), MIX_OK);
    expect_item(mix_variable_value(x), MIX_FLOAT16, 1);
  }
  expect_item(mix_variable_value(x), MIX_FLOAT32, 1 + eps16 / 2);
  IN_SCOPE(MIX_FLOAT16)
  assert_int_equal(mix_variable_assign_sub(x, mix_scalar(eps16 / 2, MIX_FLOAT16)), MIX_OK);
  expect_item(mix_variable_value(x), MIX_FLOAT32, 1);
}
static void V11_nested_scopes(void **state) {
  (void)state;
  mix_variable *x = variable_of(7);
  IN_SCOPE(MIX_FLOAT16) {
    assert_int_equal(mix_variable_dtype(x), MIX_FLOAT16);
    IN_SCOPE(MIX_FLOAT32) assert_int_equal(mix_variable_dtype(x), MIX_FLOAT32);
    assert_int_equal(mix_variable_dtype(x), MIX_FLOAT16);
  }
}
static void V12_integer_scope(void **state) {
  (void)state;
  mix_variable *x = variable_of(7);
  IN_SCOPE(MIX_INT32) expect_item(mix_variable_value(x), MIX_FLOAT32, 7);
}
static void *dtype_in_thread(void *variable) {
  static mix_dtype dtype;
  dtype = mix_variable_dtype(variable);
  return &dtype;
}
static void V13_another_thread(void **state) {
  (void)state;
  mix_variable *x = variable_of(7);
  IN_SCOPE(MIX_FLOAT16) {
    pthread_t thread;
    void *seen;
    assert_int_equal(pthread_create(&thread, NULL, dtype_in_thread, x), 0);
    pthread_join(thread, &seen);
    assert_int_equal(*(mix_dtype *)seen, MIX_FLOAT32);
  }
}
static void V14_integer_variable(void **state) {
  (void)state;
  expect_refused(mix_variable_new(mix_scalar(1, MIX_INT32), .autocast = true), MIX_VALUE_ERROR, "int32");
}
static void V15_no_value(void **state) {
  (void)state;
  assert_null(mix_variable_new(NULL, .autocast = true));
  assert_int_not_equal(mix_error(), MIX_OK);
  mix_error_clear();
}
static void V16_sparse_read(void **state) {
  (void)state;
  mix_variable *x = mix_variable_new(MATRIX(MIX_FLOAT32, 3, 2, 1, 2, 3, 4, 5, 6), .autocast = true);
  IN_SCOPE(MIX_FLOAT16) {
    mix_tensor *rows = mix_gather(mix_variable_value(x), VECTOR(MIX_INT32, 2, 0), 0);
    expect_dtype(rows, MIX_FLOAT16);
    EXPECT_EXACT(rows, 5, 6, 1, 2);
  }
}

static mix_list *read_rows(void *context, mix_list *arguments) {
  mix_variable *table = mix_list_get(context, 0);
  mix_tensor *rows = NULL, *loss = NULL;
  mix_tape *tape = mix_tape_begin();
  IN_SCOPE(MIX_FLOAT16) {
    rows = mix_gather(mix_variable_value(table), mix_list_get(arguments, 0), 0);
    loss = mix_reduce_sum(mix_cast(rows, MIX_FLOAT32), MIX_ALL_AXES, false);
  }
  mix_tape_end(tape);
  mix_tensor *gradient = mix_list_get(mix_tape_gradient(tape, loss, mix_list_of(table)), 0);
  return mix_list_of(rows, mix_rows_values(gradient));
}
/* Rows are cast, not the table: no 16-bit copy of it is made. Gradients have the table's dtype. */
static void V16_the_table_is_not_cast(void **state) {
  (void)state;
  enum { ROWS = 1000 };
  mix_variable *table = mix_variable_new(mix_fill(MIX_SHAPE(ROWS, 2), 3, MIX_FLOAT32), .autocast = true);
  mix_function *function = mix_function_new(read_rows, mix_list_of(table), .name = "read");
  mix_list *results = mix_function_call(function, mix_list_of(VECTOR(MIX_INT32, 2, 0, 2)));
  expect_dtype(mix_list_get(results, 0), MIX_FLOAT16);
  EXPECT_EXACT(mix_list_get(results, 0), 3, 3, 3, 3, 3, 3);
  expect_dtype(mix_list_get(results, 1), MIX_FLOAT32);
  EXPECT_EXACT(mix_list_get(results, 1), 1, 1, 1, 1, 1, 1);
  mix_plan_report report;
  assert_int_equal(mix_function_report(function, &report, sizeof report), MIX_OK);
  assert_int_equal(report.variable_bytes, ROWS * 2 * sizeof(float));
  assert_true(report.moved_bytes < 1000);
}

/* ---- weights of layers ---- */

static mix_layer *probed(const char *weight_dtype, bool no_autocast, bool not_trainable) {
  probe_weight_dtype = weight_dtype;
  probe_no_autocast = no_autocast;
  probe_not_trainable = not_trainable;
  probe_regularizer = NULL;
  mix_layer *layer = probe_new("mixed_float16", NULL, NULL);
  mix_layer_build(layer, MIX_SHAPE(1, 1));
  return layer;
}
static mix_variable *weight_of(mix_layer *layer) { return ((probe *)mix_layer_data(layer))->weight; }

static void V17_integer_weight(void **state) {
  (void)state;
  mix_layer *layer = probed("int32", false, false);
  assert_false(mix_variable_is_autocast(weight_of(layer)));
  expect_dtype(mix_call(layer, mix_fill(MIX_SHAPE(1, 1), 0, MIX_FLOAT32)), MIX_INT32);
}
static void V18_no_autocast(void **state) {
  (void)state;
  expect_dtype(mix_call(probed(NULL, true, false), mix_fill(MIX_SHAPE(1, 1), 0, MIX_FLOAT32)), MIX_FLOAT32);
}
static void V19_not_trainable(void **state) {
  (void)state;
  mix_layer *layer = probed(NULL, false, true);
  assert_true(mix_variable_is_autocast(weight_of(layer)));
  assert_false(mix_variable_trainable(weight_of(layer)));
  expect_dtype(mix_call(layer, mix_fill(MIX_SHAPE(1, 1), 0, MIX_FLOAT32)), MIX_FLOAT16);
}
/* An explicit float dtype is still wrapped. */
static void V19_explicit_float64(void **state) {
  (void)state;
  mix_layer *layer = probed("float64", false, false);
  assert_int_equal(mix_variable_true_dtype(weight_of(layer)), MIX_FLOAT64);
  expect_dtype(mix_call(layer, mix_fill(MIX_SHAPE(1, 1), 0, MIX_FLOAT32)), MIX_FLOAT16);
}
static mix_list *read_parents_weight(mix_layer *layer, const mix_call_args *args) {
  (void)args;
  mix_layer *parent = ((probe *)mix_layer_data(layer))->context;
  return mix_list_of(mix_variable_value(weight_of(parent)));
}
static mix_list *call_child(mix_layer *layer, const mix_call_args *args) {
  mix_layer *child = ((probe *)mix_layer_data(layer))->context;
  mix_tensor *before = mix_variable_value(weight_of(layer));
  return mix_list_of(mix_call(child, mix_call_input(args, 0)), before, mix_variable_value(weight_of(layer)));
}
static void V20_the_innermost_call_decides(void **state) {
  (void)state;
  mix_layer *child = probe_new("float32", read_parents_weight, NULL),
            *parent = probe_new("mixed_float16", call_child, child);
  ((probe *)mix_layer_data(child))->context = parent;
  mix_list *results = mix_call_outputs(parent, mix_fill(MIX_SHAPE(1, 1), 0, MIX_FLOAT32));
  expect_dtype(mix_list_get(results, 0), MIX_FLOAT32);
  expect_dtype(mix_list_get(results, 1), MIX_FLOAT16);
  expect_dtype(mix_list_get(results, 2), MIX_FLOAT16);
}
static mix_dtype regularizer_saw;
static mix_tensor *spy(void *context, mix_tensor *weight) {
  (void)context;
  regularizer_saw = mix_tensor_dtype(weight);
  return mix_reduce_sum(weight, MIX_ALL_AXES, false);
}
static void V21_regularizers_see_the_true_value(void **state) {
  (void)state;
  mix_layer *layer = mix_dense(.units = 1, .dtype = "mixed_float16", .kernel_initializer = "ones",
                               .kernel_regularizer = mix_regularizer_new(.function = spy));
  mix_call(layer, mix_fill(MIX_SHAPE(1, 4), 1, MIX_FLOAT32));
  IN_SCOPE(MIX_FLOAT16) {
    mix_list *losses = mix_layer_losses(layer);
    assert_int_equal(mix_list_count(losses), 1);
    expect_item(mix_list_get(losses, 0), MIX_FLOAT32, 4);
  }
  assert_int_equal(regularizer_saw, MIX_FLOAT32);
}
static void V22_mixed_and_float32_weights_interchange(void **state) {
  (void)state;
  mix_layer *mixed = mix_dense(.units = 3, .dtype = "mixed_float16"),
            *plain = mix_dense(.units = 3, .dtype = "float32");
  mix_layer_build(mixed, MIX_SHAPE(1, 2));
  mix_layer_build(plain, MIX_SHAPE(1, 2));
  float a[6], b[6];
  mix_list *weights = mix_layer_get_weights(mixed);
  assert_int_equal(mix_layer_set_weights(plain, weights), MIX_OK);
  mix_tensor_read(mix_list_get(weights, 0), MIX_FLOAT32, a, 6);
  mix_tensor_read(mix_list_get(mix_layer_get_weights(plain), 0), MIX_FLOAT32, b, 6);
  assert_memory_equal(a, b, sizeof a);
  expect_dtype(mix_list_get(weights, 0), MIX_FLOAT32);
}
/* SGD, learning rate 2^-14, gradient 1 on weight 1: the update w -= lr * g in the true dtype would be lost in
 * float16. */
static void V23_updates_in_the_true_dtype(void **state) {
  (void)state;
  mix_variable *x = variable_of(1);
  mix_tape *tape = mix_tape_begin(0);
  mix_tensor *loss;
  IN_SCOPE(MIX_FLOAT16) loss = mix_cast(mix_identity(mix_variable_value(x)), MIX_FLOAT32);
  mix_tape_end(tape);
  mix_tensor *gradient = mix_list_get(mix_tape_gradient(tape, loss, mix_list_of(x)), 0);
  expect_item(gradient, MIX_FLOAT32, 1);
  mix_variable_assign_sub(x, mix_multiply(mix_scalar(0x1p-14, MIX_FLOAT32), gradient));
  expect_item(mix_variable_value(x), MIX_FLOAT32, 1 - 0x1p-14);
}
static void V24_float64_scope(void **state) {
  (void)state;
  mix_variable *x = variable_of(7);
  IN_SCOPE(MIX_FLOAT64) expect_item(mix_variable_value(x), MIX_FLOAT64, 7);
}
static void V25_keras3_assign_add(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_variable *x = variable_of(1);
  IN_SCOPE(MIX_FLOAT16)
  assert_int_equal(mix_variable_assign_add(x, mix_scalar(eps16 / 2, MIX_FLOAT16)), MIX_OK);
  expect_item(mix_variable_value(x), MIX_FLOAT32, 1);
  mix_variable_assign_add(x, mix_scalar(eps16 / 2, MIX_FLOAT32)); /* in no scope nothing is lost */
  expect_item(mix_variable_value(x), MIX_FLOAT32, 1 + eps16 / 2);
}
/* Keras 3.15: x + value promotes float16 with another dtype to a wider one, and only the read is rounded. */
static void V25_keras3_assign_sub_of_a_wider_value(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  static const mix_dtype dtypes[] = {MIX_FLOAT32, MIX_BFLOAT16, MIX_FLOAT64};
  for (int i = 0; i < 3; i++) {
    mix_variable *x = variable_of(1 + eps16 / 2);
    IN_SCOPE(MIX_FLOAT16)
    assert_int_equal(mix_variable_assign_sub(x, mix_scalar(eps16 / 2, dtypes[i])), MIX_OK);
    expect_item(mix_variable_value(x), MIX_FLOAT32, 1 - eps16 / 2);
  }
}
static mix_list *add_to_weight(mix_layer *layer, const mix_call_args *args) {
  (void)args;
  mix_variable_assign_add(weight_of(layer), mix_scalar(eps16 / 2, MIX_FLOAT16));
  return mix_list_of(mix_variable_value(weight_of(layer)));
}
/* The rule is that of the running layer. */
static void V25_in_a_layer(void **state) {
  (void)state;
  static const char *const generations[] = {"keras3", "tf_keras"};
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    probe_weight_dtype = probe_regularizer = NULL;
    probe_no_autocast = probe_not_trainable = false;
    mix_layer *layer = mix_layer_new(&probe_class, .dtype = "mixed_float16");
    ((probe *)mix_layer_data(layer))->call = add_to_weight;
    mix_layer_build(layer, MIX_SHAPE(1, 1));
    mix_set_semantics(generations[1 - g]);
    mix_call(layer, mix_fill(MIX_SHAPE(1, 1), 0, MIX_FLOAT32));
    expect_item(mix_variable_value(weight_of(layer)), MIX_FLOAT32, g ? 1 + eps16 / 2 : 1);
  }
}
static void V26_keras3_integer_scope(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  expect_status(mix_autocast_begin(MIX_INT32, NULL), MIX_VALUE_ERROR, "int32");
}
static mix_list *read_weight(mix_layer *layer, const mix_call_args *args) {
  (void)args;
  return mix_list_of(mix_variable_value(weight_of(layer)));
}
static void V27_keras3_weights_cast_without_autocast_of_inputs(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  probe_weight_dtype = probe_regularizer = NULL;
  probe_no_autocast = probe_not_trainable = false;
  mix_layer *layer = mix_layer_new(&probe_class, .dtype = "mixed_float16", .no_autocast = true);
  ((probe *)mix_layer_data(layer))->call = read_weight;
  expect_dtype(mix_call(layer, mix_fill(MIX_SHAPE(1, 1), 0, MIX_FLOAT32)), MIX_FLOAT16);
}
/* Inside another layer's scope it keeps that scope. */
static void V27_keras3_inside_a_scope(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_layer *layer = mix_layer_new(&probe_class, .dtype = "mixed_float16", .no_autocast = true);
  ((probe *)mix_layer_data(layer))->call = read_weight;
  IN_SCOPE(MIX_FLOAT16) expect_dtype(mix_call(layer, mix_fill(MIX_SHAPE(1, 1), 0, MIX_FLOAT32)), MIX_FLOAT32);
}
static void printed_form(void **state) {
  (void)state;
  char text[200];
  IN_SCOPE(MIX_FLOAT16) mix_variable_text(variable_of(7), text, sizeof text);
  assert_non_null(strstr(text, "AutoCastVariable"));
  assert_non_null(strstr(text, "dtype=float32"));
  assert_non_null(strstr(text, "dtype_to_cast_to=float16"));
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(V01_dtype_inside_and_outside),
                                     TEST(V02_true_dtype),
                                     TEST(V03_reads),
                                     TEST(V04_V05_V06_arithmetic),
                                     TEST(V07_comparisons),
                                     TEST(V08_assign_float16_inside),
                                     TEST(V09_assign_float16_outside),
                                     TEST(V10_assign_add_keeps_precision),
                                     TEST(V11_nested_scopes),
                                     TEST(V12_integer_scope),
                                     TEST(V13_another_thread),
                                     TEST(V14_integer_variable),
                                     TEST(V15_no_value),
                                     TEST(V16_sparse_read),
                                     TEST(V16_the_table_is_not_cast),
                                     TEST(V17_integer_weight),
                                     TEST(V18_no_autocast),
                                     TEST(V19_not_trainable),
                                     TEST(V19_explicit_float64),
                                     TEST(V20_the_innermost_call_decides),
                                     TEST(V21_regularizers_see_the_true_value),
                                     TEST(V22_mixed_and_float32_weights_interchange),
                                     TEST(V23_updates_in_the_true_dtype),
                                     TEST(V24_float64_scope),
                                     TEST(V25_keras3_assign_add),
                                     TEST(V25_keras3_assign_sub_of_a_wider_value),
                                     TEST(V25_in_a_layer),
                                     TEST(V26_keras3_integer_scope),
                                     TEST(V27_keras3_weights_cast_without_autocast_of_inputs),
                                     TEST(V27_keras3_inside_a_scope),
                                     TEST(printed_form)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
