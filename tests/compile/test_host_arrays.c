/* Arrays of a host program: copied by strides, or wrapped in another order; and what is seen after the host
 * has changed them. */
#include "compile/support.h"

#include "base/alloc.h"
#include <mixtape/dataset.h>
#include <mixtape/function.h>
#include <mixtape/model.h>

#define F32 MIX_FLOAT32

static int given_back;
static void give_back(void *data) {
  (void)data;
  given_back++;
}

/* ---- values ---- */

static void fill(float *values, int64_t count) {
  for (int64_t i = 0; i < count; i++) values[i] = (float)(i + 1);
}

/* Element by element, by the definition of a stride. */
static void assert_strided(mix_tensor *tensor, const float *data, mix_shape shape, mix_shape strides) {
  assert_non_null(tensor);
  assert_true(mix_shape_equal(mix_tensor_shape(tensor), shape));
  const float *elements = mix_tensor_data(tensor);
  assert_non_null(elements);
  for (int64_t i = 0; i < mix_shape_size(shape); i++) {
    int64_t rest = i, offset = 0;
    for (int axis = shape.rank - 1; axis >= 0; axis--) {
      offset += rest % shape.dims[axis] * strides.dims[axis];
      rest /= shape.dims[axis];
    }
    assert_true(elements[i] == data[offset]);
  }
}

typedef struct layout {
  mix_shape shape, strides;
  int64_t first; /* where the element (0, 0, ...) is */
  bool gaps;     /* not without a copy */
} layout;

static void every_order_has_its_values(void **state) {
  (void)state;
  float values[120];
  const layout layouts[] = {
      {MIX_SHAPE(4, 6), MIX_SHAPE(6, 1), 0, false},              /* C order */
      {MIX_SHAPE(4, 6), MIX_SHAPE(1, 4), 0, false},              /* column order */
      {MIX_SHAPE(2, 3, 4), MIX_SHAPE(1, 2, 6), 0, false},        /* of three axes */
      {MIX_SHAPE(2, 3, 4), MIX_SHAPE(4, 8, 1), 0, false},        /* the first two exchanged */
      {MIX_SHAPE(2, 3, 4), MIX_SHAPE(1, 8, 2), 0, false},        /* (channels, rows, columns) as it lies */
      {MIX_SHAPE(5), MIX_SHAPE(1), 0, false},                    /* a row */
      {MIX_SHAPE(1, 5), MIX_SHAPE(99, 1), 0, false},             /* an axis of one index has any stride */
      {MIX_SHAPE(5, 1, 3), MIX_SHAPE(1, -7, 5), 0, false},       /* and in between */
      {MIX_SCALAR, MIX_SCALAR, 3, false},                        /* one element */
      {MIX_SHAPE(2, 1, 2, 1), MIX_SHAPE(1, 50, 2, 9), 0, false}, /* two such axes */
      {MIX_SHAPE(4, 6), MIX_SHAPE(8, 1), 9, true},               /* inside a halo of one */
      {MIX_SHAPE(4, 6), MIX_SHAPE(1, 6), 7, true},               /* the same in column order */
      {MIX_SHAPE(5, 4), MIX_SHAPE(8, 2), 0, true},               /* every second column */
      {MIX_SHAPE(3, 4), MIX_SHAPE(0, 1), 0, true},               /* a row three times */
      {MIX_SHAPE(5, 4), MIX_SHAPE(-4, 1), 16, true},             /* the rows backwards */
      {MIX_SHAPE(6), MIX_SHAPE(-1), 5, true},
  };
  fill(values, 120);
  for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
    MIX_SCOPE {
      const layout *l = &layouts[i];
      float *data = values + l->first;
      assert_strided(mix_tensor_from_strided(data, F32, l->shape, l->strides), data, l->shape, l->strides);
      mix_tensor *wrapped = mix_tensor_wrap_strided(data, F32, l->shape, l->strides, NULL);
      if (!l->gaps) assert_strided(wrapped, data, l->shape, l->strides);
      if (l->gaps) {
        assert_null(wrapped);
        expect_error(MIX_VALUE_ERROR, "tensor_wrap_strided", "mix_tensor_from_strided");
      }
    }
  assert_int_equal(mix_error(), MIX_OK);
}

static void every_width_is_copied(void **state) {
  (void)state;
  static const mix_dtype dtypes[] = {MIX_INT8, MIX_FLOAT16, MIX_INT32, MIX_FLOAT64};
  for (size_t d = 0; d < 4; d++)
    MIX_SCOPE {
      mix_tensor *rows =
                     mix_tensor_from_doubles((const double[]){1, 2, 3, 4, 5, 6}, dtypes[d], MIX_SHAPE(2, 3)),
                 *columns = mix_tensor_from_strided(mix_tensor_data(rows), dtypes[d], MIX_SHAPE(3, 2),
                                                    MIX_SHAPE(1, 3));
      has_values(columns, 1, 4, 2, 5, 3, 6);
    }
}

static void empty_arrays_have_any_strides(void **state) {
  (void)state;
  assert_int_equal(
      mix_shape_size(mix_tensor_shape(mix_tensor_from_strided(NULL, F32, MIX_SHAPE(0, 3), MIX_SHAPE(7, 7)))),
      0);
  assert_non_null(mix_tensor_wrap_strided(NULL, F32, MIX_SHAPE(0, 3), MIX_SHAPE(7, 7), NULL));
  assert_int_equal(mix_error(), MIX_OK);
}

/* C order is the array itself, and what lies in another order is read by a product as it lies. */
static void nothing_is_copied(void **state) {
  (void)state;
  float values[12], column[12];
  fill(values, 12);
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 4; j++) column[j * 3 + i] = values[i * 4 + j];
  assert_ptr_equal(
      mix_tensor_data(mix_tensor_wrap_strided(values, F32, MIX_SHAPE(3, 4), MIX_SHAPE(4, 1), NULL)), values);
  mix_tensor *view = mix_tensor_wrap_strided(column, F32, MIX_SHAPE(3, 4), MIX_SHAPE(1, 3), NULL),
             *ones = mix_fill(MIX_SHAPE(4, 1), 1, F32), *product = mix_matmul(view, ones, false, false);
  has_values(product, 10, 26, 42);
  assert_null(view->node->outputs[view->output].memory); /* the product has not computed the view */
}

static void errors_name_shape_and_strides(void **state) {
  (void)state;
  float values[40];
  assert_null(mix_tensor_wrap_strided(values, F32, MIX_SHAPE(4, 8), MIX_SHAPE(10, 1), give_back));
  expect_error(MIX_VALUE_ERROR, "(10, 1)", "(4, 8)", "as in column order, (1, 4)");
  assert_null(mix_tensor_wrap_strided(values, F32, MIX_SHAPE(4, 8), MIX_SHAPE(-8, 1), give_back));
  expect_error(MIX_VALUE_ERROR, "(-8, 1)", "go backwards");
  assert_null(mix_tensor_wrap_strided(values, F32, MIX_SHAPE(4, 8), MIX_SHAPE(8), give_back));
  expect_error(MIX_VALUE_ERROR, "1 strides", "(4, 8)", "expected 2");
  assert_null(mix_tensor_from_strided(values, F32, MIX_SHAPE(4), MIX_SHAPE(8, 1)));
  expect_error(MIX_VALUE_ERROR, "tensor_from_strided: 2 strides", "expected 1");
  static const int64_t far[] = {INT64_MAX, INT64_MIN, INT64_C(1) << 57, -(INT64_C(1) << 57)};
  for (int i = 0; i < 4; i++) {
    assert_null(mix_tensor_from_strided(values, F32, MIX_SHAPE(3, 2), MIX_SHAPE(far[i], 1)));
    expect_error(MIX_VALUE_ERROR, "tensor_from_strided", "(3, 2)", "2^60 bytes");
  }
  assert_null(mix_tensor_from_strided(NULL, F32, MIX_SHAPE(4), MIX_SHAPE(1)));
  expect_error(MIX_TYPE_ERROR, "tensor_from_strided: data is NULL");
  assert_null(mix_tensor_wrap_strided(NULL, F32, MIX_SHAPE(4), MIX_SHAPE(1), give_back));
  expect_error(MIX_TYPE_ERROR, "tensor_wrap_strided: data is NULL");
  assert_null(mix_tensor_from_strided(values, MIX_STRING, MIX_SHAPE(4), MIX_SHAPE(1)));
  expect_error(MIX_TYPE_ERROR, "string");
  assert_null(mix_tensor_wrap_strided(values, F32, MIX_SHAPE(-1), MIX_SHAPE(1), give_back));
  expect_error(MIX_VALUE_ERROR, "tensor_wrap_strided", "shape");
  assert_int_equal(given_back, 0);
}

static void memory_that_runs_out(void **state) {
  (void)state;
  float values[12];
  fill(values, 12);
  bool failed = true;
  for (int64_t count = 0; failed && count < 100; count++) {
    given_back = 0;
    mix_scope *scope = mix_scope_begin();
    mix_inject_allocation_failure(count);
    mix_tensor *view = mix_tensor_wrap_strided(values, F32, MIX_SHAPE(3, 4), MIX_SHAPE(1, 3), give_back),
               *copy = mix_tensor_from_strided(values, F32, MIX_SHAPE(3, 4), MIX_SHAPE(1, 3));
    mix_inject_allocation_failure(-1);
    failed = !view || !copy;
    assert_int_equal(mix_error(), failed ? MIX_MEMORY_ERROR : MIX_OK);
    mix_error_clear();
    assert_int_equal(given_back, 0);
    mix_scope_end(scope);
    assert_int_equal(given_back, view ? 1 : 0);
  }
  assert_false(failed);
}

/* ---- the host changes its array ---- */

static void computed_values_stay(void **state) {
  (void)state;
  float values[4] = {1, 2, 3, 4};
  mix_tensor *x = mix_tensor_wrap(values, F32, MIX_SHAPE(4), NULL), *table = mix_reshape(x, MIX_SHAPE(2, 2));
  mix_tensor *computed[] = {mix_square(x), mix_add(x, scalar(1)), mix_cast(x, MIX_FLOAT64),
                            mix_transpose(table, MIX_ALL_AXES), mix_reduce_sum(x, MIX_AXES(0), false)},
             *later = mix_square(x);
  assert_int_equal(mix_evaluate(5, computed), MIX_OK);
  for (int i = 0; i < 4; i++) values[i] = 10;
  has_values(computed[0], 1, 4, 9, 16);
  has_values(computed[1], 2, 3, 4, 5);
  has_values(computed[2], 1, 2, 3, 4);
  has_values(computed[3], 1, 3, 2, 4);
  has_values(computed[4], 10);
  has_values(later, 100, 100, 100, 100);
  has_values(x, 10, 10, 10, 10); /* the array itself */
}

static void a_view_keeps_what_was_read(void **state) {
  (void)state;
  float values[4] = {1, 2, 3, 4};
  mix_tensor *read = mix_tensor_wrap_strided(values, F32, MIX_SHAPE(2, 2), MIX_SHAPE(1, 2), NULL),
             *unread = mix_tensor_wrap_strided(values, F32, MIX_SHAPE(2, 2), MIX_SHAPE(1, 2), NULL);
  has_values(read, 1, 3, 2, 4);
  values[0] = 10;
  has_values(read, 1, 3, 2, 4);
  has_values(unread, 10, 3, 2, 4);
}

static mix_list *same_and_double(void *context, mix_list *arguments) {
  (void)context;
  mix_tensor *x = mix_list_get(arguments, 0);
  return mix_list_of(x, mix_add(x, x));
}

/* Each call sees the array as it is; results of former calls keep theirs. */
static void a_function_sees_the_array_of_its_call(void **state) {
  (void)state;
  float values[2];
  mix_function *function = mix_function_new(same_and_double, NULL);
  mix_tensor *x = mix_tensor_wrap(values, F32, MIX_SHAPE(2), NULL);
  mix_list *results[3];
  for (int i = 0; i < 3; i++) {
    values[0] = values[1] = (float)i;
    results[i] = mix_function_call(function, mix_list_of(x));
    assert_non_null(results[i]);
  }
  values[0] = values[1] = 50;
  for (int i = 0; i < 3; i++) {
    has_values(mix_list_get(results[i], 0), i, i);
    has_values(mix_list_get(results[i], 1), 2 * i, 2 * i);
  }
}

/* Between time steps: the losses are those of copies, and the array is given back with the scope. */
static void training_between_changes(void **state) {
  (void)state;
  double losses[2][6];
  float x[8], y[4], outputs[2][6][4];
  for (int copies = 0; copies < 2; copies++) {
    mix_set_seed(3);
    mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(2));
    mix_model *model = mix_model_new(inputs, mix_call(mix_dense(1), mix_call(mix_dense(5, "tanh"), inputs)));
    mix_model_compile(model, .loss = "mse", .optimizer_name = "adam");
    given_back = 0;
    for (int step = 0; step < 6; step++) {
      for (int i = 0; i < 8; i++) x[i] = (float)((i * 7 + step * 3) % 11) / 8;
      for (int i = 0; i < 4; i++) y[i] = x[i] + x[i + 4]; /* x is in column order */
      MIX_SCOPE {
        mix_tensor *rows = copies
                               ? mix_tensor_from_strided(x, F32, MIX_SHAPE(4, 2), MIX_SHAPE(1, 4))
                               : mix_tensor_wrap_strided(x, F32, MIX_SHAPE(4, 2), MIX_SHAPE(1, 4), give_back),
                   *targets = copies ? mix_tensor_from(y, F32, MIX_SHAPE(4, 1))
                                     : mix_tensor_wrap(y, F32, MIX_SHAPE(4, 1), give_back);
        losses[copies][step] = mix_logs_get(mix_model_train_on_batch(model, rows, targets), "loss");
        mix_tensor_read(mix_list_get(mix_model_predict(model, rows), 0), F32, outputs[copies][step], 4);
        assert_int_equal(mix_error(), MIX_OK);
      }
      if (!copies) assert_int_equal(given_back, 2 * (step + 1));
    }
  }
  assert_memory_equal(losses[0], losses[1], sizeof losses[0]);
  assert_memory_equal(outputs[0], outputs[1], sizeof outputs[0]);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(every_order_has_its_values),
                                     TEST(every_width_is_copied),
                                     TEST(empty_arrays_have_any_strides),
                                     TEST(nothing_is_copied),
                                     TEST(errors_name_shape_and_strides),
                                     TEST(memory_that_runs_out),
                                     TEST(computed_values_stay),
                                     TEST(a_view_keeps_what_was_read),
                                     TEST(a_function_sees_the_array_of_its_call),
                                     TEST(training_between_changes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
