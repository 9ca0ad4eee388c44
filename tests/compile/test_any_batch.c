/* Functions with .batch = MIX_ANY: plans of a few sizes, rows padded and results cut, and what they refuse.
 */
/* Holds docs/NUMERICS.md: Padded batches. */
#include "compile/support.h"

#include "tensor/convert.h"
#include "tensor/shape.h"
#include <mixtape/random.h>

enum { INPUTS = 96, UNITS = 40 };

/* Numbers that no kernel sums exactly. */
static mix_tensor *numbers(mix_dtype dtype, mix_shape shape, int seed) {
  const int64_t count = mix_shape_size(shape);
  double *values = malloc(sizeof *values * (size_t)(count + 1));
  for (int64_t i = 0; i < count; i++) values[i] = sin((double)(seed * 1000 + i));
  mix_tensor *tensor = mix_tensor_from_doubles(values, dtype, shape);
  free(values);
  return tensor;
}

typedef struct network {
  mix_variable *kernel, *bias;
  mix_dtype dtype;
  int traces;
} network;

static network new_network(mix_dtype dtype) {
  return (network){.kernel = variable("kernel", numbers(MIX_FLOAT32, MIX_SHAPE(INPUTS, UNITS), 1)),
                   .bias = variable("bias", numbers(MIX_FLOAT32, MIX_SHAPE(UNITS), 2)),
                   .dtype = dtype};
}

static mix_list *forward(void *context, mix_list *arguments) {
  network *n = context;
  n->traces++;
  mix_tensor *x = mix_cast(mix_list_get(arguments, 0), n->dtype);
  mix_tensor *h = mix_bias_add(mix_matmul(x, mix_cast(mix_variable_value(n->kernel), n->dtype), false, false),
                               mix_cast(mix_variable_value(n->bias), n->dtype));
  mix_tensor *y = mix_softmax(mix_cast(mix_tanh(h), MIX_FLOAT32));
  return mix_list_of(y, mix_argmax(y, 1));
}

static mix_list *call(mix_function *function, mix_tensor *x) {
  mix_list *results = mix_function_call(function, mix_list_of(x));
  no_error();
  return results;
}

static const char *bytes_of(mix_tensor *tensor, size_t *bytes) {
  *bytes = mix_value_bytes(mix_tensor_dtype(tensor), mix_tensor_shape(tensor));
  const char *data = mix_tensor_data(tensor);
  no_error();
  return data;
}

/* Rows [first, first + count) of `all` have the bytes of the rows of `part`. */
static void has_rows(mix_tensor *part, mix_tensor *all, int64_t first, int64_t count) {
  size_t part_bytes, all_bytes;
  const char *p = bytes_of(part, &part_bytes), *a = bytes_of(all, &all_bytes);
  assert_int_equal(mix_tensor_shape(part).dims[0], count);
  const size_t row = part_bytes / (size_t)count;
  assert_memory_equal(p, a + (size_t)first * row, part_bytes);
}

/* The rows, then copies of the last one. */
static mix_tensor *padded(mix_tensor *x, int64_t rows) {
  const int64_t count = mix_tensor_shape(x).dims[0];
  mix_tensor *last = mix_slice(x, MIX_SHAPE(count - 1, 0), MIX_SHAPE(1, INPUTS));
  mix_tensor *parts[64] = {x};
  for (int64_t i = count; i < rows; i++) parts[i - count + 1] = last;
  return mix_concat((int)(rows - count + 1), parts, 0);
}

static int64_t power_of_two(int64_t rows) {
  int64_t power = 1;
  while (power < rows) power *= 2;
  return power;
}

/* ---- plans and results ---- */

static void a_plan_for_each_power_of_two(void **state) {
  (void)state;
  network n = new_network(MIX_FLOAT32);
  mix_function *function = mix_function_new(forward, &n, .batch = MIX_ANY, .max_batch = 24);
  static const int traces[] = {1, 2, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6};
  for (int rows = 1; rows <= COUNT(traces); rows++) {
    mix_list *results = call(function, numbers(MIX_FLOAT32, MIX_SHAPE(rows, INPUTS), rows));
    assert_int_equal(n.traces, traces[rows - 1]);
    assert_true(mix_shape_equal(mix_tensor_shape(mix_list_get(results, 0)), MIX_SHAPE(rows, UNITS)));
    assert_true(mix_shape_equal(mix_tensor_shape(mix_list_get(results, 1)), MIX_SHAPE(rows)));
  }
}

/* On every device: the rows of the padded batch. */
static void bits_are_those_of_the_padded_batch(void **state) {
  (void)state;
  static const mix_dtype dtypes[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64};
  for (int d = 0; d < COUNT(dtypes); d++) {
    network n = new_network(dtypes[d]);
    mix_function *any = mix_function_new(forward, &n, .batch = MIX_ANY),
                 *exact = mix_function_new(forward, &n);
    for (int64_t rows = 1; rows <= 40; rows += 1 + rows / 8) {
      mix_tensor *x = numbers(MIX_FLOAT32, MIX_SHAPE(rows, INPUTS), (int)rows);
      mix_list *got = call(any, x), *wanted = call(exact, padded(x, power_of_two(rows)));
      for (int r = 0; r < 2; r++) has_rows(mix_list_get(got, r), mix_list_get(wanted, r), 0, rows);
    }
  }
}

/* What the other rows hold changes no bit of a row, but under blocked sums. */
static void other_rows_do_not_matter(void **state) {
  (void)state;
  const char *former = mix_accumulate();
  mix_set_accumulate("exact");
  static const mix_dtype dtypes[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64};
  for (int d = 0; d < COUNT(dtypes); d++) {
    network n = new_network(dtypes[d]);
    mix_function *any = mix_function_new(forward, &n, .batch = MIX_ANY);
    mix_tensor *x = numbers(MIX_FLOAT32, MIX_SHAPE(33, INPUTS), 5);
    mix_tensor *all = mix_list_get(call(any, mix_concat(2, (mix_tensor *[]){x, x}, 0)), 0); /* 66 in 128 */
    for (int64_t rows = 65; rows <= 66; rows++) {
      mix_tensor *less =
          mix_slice(mix_concat(2, (mix_tensor *[]){x, x}, 0), MIX_SHAPE(0, 0), MIX_SHAPE(rows, INPUTS));
      has_rows(mix_list_get(call(any, less), 0), all, 0, rows);
    }
  }
  mix_set_accumulate(former);
}

/* The reference sums each element alone: there the bits do not depend on the number of rows. */
static void on_the_reference_bits_are_those_of_the_batch(void **state) {
  (void)state;
  mix_set_device("ref");
  network n = new_network(MIX_FLOAT16);
  mix_function *any = mix_function_new(forward, &n, .batch = MIX_ANY, .max_batch = 6),
               *exact = mix_function_new(forward, &n);
  for (int64_t rows = 1; rows <= 20; rows++) {
    mix_tensor *x = numbers(MIX_FLOAT32, MIX_SHAPE(rows, INPUTS), (int)rows);
    mix_list *got = call(any, x), *wanted = call(exact, x);
    for (int r = 0; r < 2; r++) has_rows(mix_list_get(got, r), mix_list_get(wanted, r), 0, rows);
  }
}

/* The bound of every product (docs/NUMERICS.md): k + 2 roundings of a sum of magnitudes, twice. */
static mix_list *product(void *context, mix_list *arguments) {
  return mix_list_of(mix_matmul(mix_list_get(arguments, 0), mix_variable_value(context), false, false));
}
static mix_list *product_of_magnitudes(void *context, mix_list *arguments) {
  return mix_list_of(
      mix_matmul(mix_abs(mix_list_get(arguments, 0)), mix_abs(mix_variable_value(context)), false, false));
}
static void a_padded_product_keeps_the_bound(void **state) {
  (void)state;
  enum { DEPTH = 1500 };
  mix_variable *w = variable("w", numbers(MIX_FLOAT32, MIX_SHAPE(DEPTH, 3), 1));
  mix_function *any = mix_function_new(product, w, .batch = MIX_ANY), *exact = mix_function_new(product, w),
               *magnitudes = mix_function_new(product_of_magnitudes, w);
  for (int64_t rows = 1; rows <= 24; rows++) {
    mix_tensor *x = numbers(MIX_FLOAT32, MIX_SHAPE(rows, DEPTH), (int)rows);
    float got[72], wanted[72], sums[72];
    mix_tensor_read(mix_list_get(call(any, x), 0), MIX_FLOAT32, got, 3 * rows);
    mix_tensor_read(mix_list_get(call(exact, x), 0), MIX_FLOAT32, wanted, 3 * rows);
    mix_tensor_read(mix_list_get(call(magnitudes, x), 0), MIX_FLOAT32, sums, 3 * rows);
    for (int64_t i = 0; i < 3 * rows; i++)
      assert_true(fabs((double)got[i] - wanted[i]) <= 2 * (DEPTH + 3) * 0x1p-24 * sums[i] * 1.001);
  }
}

/* Parts of max_batch rows, then a padded one. With a maximum of 5 parts do not begin where kernels can read
 * them, with one of 16 they do. */
static void larger_batches_run_in_parts(void **state) {
  (void)state;
  static const int64_t sizes[] = {16, 17, 32, 45, 5, 4, 6, 10, 64};
  for (int64_t max = 5; max <= 16; max += 11) {
    network n = new_network(MIX_FLOAT32);
    mix_function *any = mix_function_new(forward, &n, .batch = MIX_ANY, .max_batch = max);
    for (int i = 0; i < COUNT(sizes); i++) {
      mix_tensor *x = numbers(MIX_FLOAT32, MIX_SHAPE(sizes[i], INPUTS), i);
      mix_list *all = call(any, x);
      assert_int_equal(mix_tensor_shape(mix_list_get(all, 1)).dims[0], sizes[i]);
      for (int64_t first = 0; first < sizes[i]; first += max) {
        const int64_t count = sizes[i] - first < max ? sizes[i] - first : max;
        mix_list *part = call(any, mix_slice(x, MIX_SHAPE(first, 0), MIX_SHAPE(count, INPUTS)));
        for (int r = 0; r < 2; r++) has_rows(mix_list_get(part, r), mix_list_get(all, r), first, count);
      }
    }
    assert_int_equal(n.traces, 4);
  }
}

/* Where nothing is padded the plan reads the arguments where they are, and results have the plan's memory. */
static void results_are_cut_in_place(void **state) {
  (void)state;
  network n = new_network(MIX_FLOAT32);
  mix_function *any = mix_function_new(forward, &n, .batch = MIX_ANY);
  mix_tensor *cut = mix_list_get(call(any, numbers(MIX_FLOAT32, MIX_SHAPE(5, INPUTS), 1)), 0);
  assert_int_equal(mix_memory_bytes(mix_tensor_value(cut)->memory), 8 * UNITS * sizeof(float));
  /* The memory is larger than the value: an assignment and an argument take the value. */
  mix_variable *v = variable("v", mix_fill(MIX_SHAPE(5, UNITS), 0, MIX_FLOAT32));
  assert_int_equal(mix_variable_assign(v, cut), MIX_OK);
  has_rows(mix_variable_true_value(v), cut, 0, 5);
  mix_variable *w = variable("w", cut);
  has_rows(mix_variable_true_value(w), cut, 0, 5);
  mix_tensor *sum = mix_reduce_sum(mix_subtract(cut, mix_variable_value(w)), MIX_ALL_AXES, false);
  has_values(sum, 0);
}

static void an_empty_batch_has_empty_results(void **state) {
  (void)state;
  network n = new_network(MIX_FLOAT32);
  mix_function *any = mix_function_new(forward, &n, .batch = MIX_ANY);
  mix_list *results = call(any, mix_fill(MIX_SHAPE(0, INPUTS), 0, MIX_FLOAT32));
  assert_true(mix_shape_equal(mix_tensor_shape(mix_list_get(results, 0)), MIX_SHAPE(0, UNITS)));
}

/* ---- arguments ---- */

static mix_list *scaled_difference(void *context, mix_list *arguments) {
  (void)context;
  mix_list *pair = mix_list_get(arguments, 0);
  return mix_list_of(mix_multiply(mix_subtract(mix_dict_get(pair, "a"), mix_dict_get(pair, "b")),
                                  mix_list_get(arguments, 1)));
}
static mix_list *pair_and_scale(mix_tensor *a, mix_tensor *b, mix_tensor *scale) {
  return mix_list_of(mix_dict_new(2, (const char *[]){"b", "a"}, (void *[]){b, a}), scale);
}

static void scalars_are_shared_and_arguments_may_be_nested(void **state) {
  (void)state;
  mix_function *any = mix_function_new(scaled_difference, NULL, .batch = MIX_ANY);
  mix_tensor *a = vec(MIX_FLOAT32, 5, 7, 9), *b = vec(MIX_FLOAT32, 1, 2, 3);
  has_values(mix_list_get(mix_function_call(any, pair_and_scale(a, b, scalar(2))), 0), 8, 10, 12);
  has_values(mix_list_get(mix_function_call(any, pair_and_scale(b, a, scalar(1))), 0), -4, -5, -6);
  assert_null(mix_function_call(any, pair_and_scale(a, vec(MIX_FLOAT32, 1, 2), scalar(2))));
  expect_error(MIX_VALUE_ERROR, "argument 1 of function has 2 rows", "argument 0 has 3");
  assert_null(mix_function_call(any, pair_and_scale(scalar(1), scalar(2), scalar(2))));
  expect_error(MIX_VALUE_ERROR, "no argument of function has rows");
  has_values(mix_list_get(mix_function_call(any, pair_and_scale(a, b, scalar(2))), 0), 8, 10, 12);
}

/* Arguments in the storage of a variable are copied before it changes. */
static void a_variable_as_argument(void **state) {
  (void)state;
  network n = new_network(MIX_FLOAT32);
  mix_function *any = mix_function_new(forward, &n, .batch = MIX_ANY, .max_batch = 16);
  mix_variable *x = variable("x", numbers(MIX_FLOAT32, MIX_SHAPE(37, INPUTS), 3));
  mix_list *before = call(any, mix_variable_value(x)),
           *other = call(any, numbers(MIX_FLOAT32, MIX_SHAPE(37, INPUTS), 3));
  for (int r = 0; r < 2; r++) has_rows(mix_list_get(before, r), mix_list_get(other, r), 0, 37);
}

/* Zeros in the rows that are added would divide by zero. A row of the caller's that does is an error. */
static mix_list *quotient(void *context, mix_list *arguments) {
  (void)context;
  return mix_list_of(mix_floor_divide(mix_list_get(arguments, 0), mix_list_get(arguments, 1)));
}
static void rows_that_are_added_are_valid(void **state) {
  (void)state;
  mix_function *any = mix_function_new(quotient, NULL, .batch = MIX_ANY);
  mix_tensor *a = vec(MIX_INT32, 8, 9, 10), *b = vec(MIX_INT32, 2, 3, 5);
  has_values(mix_list_get(mix_function_call(any, mix_list_of(a, b)), 0), 4, 3, 2);
  expect_no_results(mix_function_call(any, mix_list_of(a, vec(MIX_INT32, 2, 0, 5))));
  expect_error(MIX_VALUE_ERROR, "integer division by zero");
  has_values(mix_list_get(mix_function_call(any, mix_list_of(a, b)), 0), 4, 3, 2);
}

/* Inside a capture the batch is the caller's. */
static mix_list *calls_inside(void *function, mix_list *arguments) {
  return mix_function_call(function, arguments);
}
static mix_list *minus_mean(void *traced, mix_list *arguments) {
  mix_tensor *x = mix_list_get(arguments, 0);
  *(int64_t *)traced = mix_tensor_shape(x).dims[0];
  return mix_list_of(mix_subtract(x, mix_reduce_mean(x, MIX_AXES(0), true)));
}
static void inline_nothing_is_padded(void **state) {
  (void)state;
  int64_t rows = 0;
  mix_function *any = mix_function_new(minus_mean, &rows, .batch = MIX_ANY),
               *outer = mix_function_new(calls_inside, any);
  has_values(mix_list_get(mix_function_call(outer, mix_list_of(vec(MIX_FLOAT32, 1, 2, 6))), 0), -2, -1, 3);
  assert_int_equal(rows, 3);
}

/* ---- what is refused ---- */

typedef struct refusal {
  mix_tensor *(*body)(mix_tensor *x, mix_variable *w);
  const char *parts[3];
} refusal;

#define BODY(name, value)                                                                                    \
  static mix_tensor *name(mix_tensor *x, mix_variable *w) {                                                  \
    (void)x, (void)w;                                                                                        \
    return value;                                                                                            \
  }
#define ROWS_OF(x) mix_tensor_shape(x).dims[0]
BODY(centered, mix_subtract(x, mix_reduce_mean(x, MIX_AXES(0), true)))
BODY(total, mix_reduce_sum(x, MIX_ALL_AXES, false))
BODY(best, mix_argmax(x, 0))
BODY(turned, mix_transpose(x, MIX_AXES(1, 0)))
BODY(mixed, mix_reshape(mix_reshape(x, MIX_SHAPE(2, -1)), mix_tensor_shape(x)))
BODY(joined, mix_square(mix_reshape(x, MIX_SHAPE(-1))))
BODY(numbered_elements,
     mix_reshape(mix_add(mix_reshape(x, MIX_SHAPE(-1)),
                         mix_range(0, (double)mix_shape_size(mix_tensor_shape(x)), 1, MIX_FLOAT32)),
                 mix_tensor_shape(x)))
BODY(doubled, mix_concat(2, ((mix_tensor *[]){x, x}), 0))
BODY(first_row, mix_add(x, mix_slice(x, MIX_SHAPE(0, 0), MIX_SHAPE(1, 4))))
BODY(similarity, mix_matmul(x, x, false, true))
BODY(covariance, mix_matmul(x, x, true, false))
BODY(numbered, mix_add(x, mix_reshape(mix_range(0, (double)ROWS_OF(x), 1, MIX_FLOAT32), MIX_SHAPE(-1, 1))))
BODY(noisy, mix_add(x, mix_stateless_normal(vec(MIX_INT64, 1, 2), mix_tensor_shape(x), MIX_FLOAT32)))
BODY(softmax_of_rows, mix_expand_dims(mix_softmax(mix_reduce_sum(x, MIX_AXES(1), false)), 1))
BODY(counts, mix_magnitudes(x))
BODY(constant, mix_fill(mix_tensor_shape(x), 1, MIX_FLOAT32))
BODY(weight, mix_variable_value(w))
static mix_tensor *updating(mix_tensor *x, mix_variable *w) {
  mix_variable_assign_add(w, scalar(1));
  return x;
}

static mix_list *refused_body(void *context, mix_list *arguments) {
  void **both = context;
  const refusal *r = both[0];
  const char *former = mix_graph_scope_set(mix_intern("block/norm"));
  mix_tensor *y = r->body(mix_list_get(arguments, 0), both[1]);
  mix_graph_scope_set(former);
  return mix_list_of(y);
}

static void what_mixes_rows_is_named(void **state) {
  (void)state;
  static const refusal refusals[] = {
      {centered, {"serve", "reduce_mean in layer 'block/norm' mixes the rows", "MIX_ANY"}},
      {total, {"reduce_sum"}},
      {best, {"argmax"}},
      {turned, {"result 0 of serve has no row for each of the batch"}},
      {mixed, {"reshape in layer"}},
      {doubled, {"concat in layer"}},
      {first_row, {"slice in layer"}},
      {similarity, {"matmul in layer"}},
      {covariance, {"matmul in layer"}},
      {numbered, {"operand 1 of add", "reshape in layer", "a row of its own for each of the 4 rows"}},
      {numbered_elements, {"operand 1 of add", "range in layer"}},
      {noisy, {"operand 1 of add", "random_normal in layer 'block/norm'"}},
      {softmax_of_rows, {"softmax in layer"}},
      {counts, {"magnitudes in layer"}},
      {joined, {"result 0 of serve has no row for each of the batch"}},
      {constant, {"result 0 of serve has no row for each of the batch"}},
      {weight, {"result 0 of serve"}},
      {updating, {"serve changes the variable 'w'"}}};
  for (int i = 0; i < COUNT(refusals); i++) {
    void *both[] = {(void *)&refusals[i], variable("w", scalar(1))};
    mix_function *any = mix_function_new(refused_body, both, .batch = MIX_ANY, .name = "serve");
    for (int again = 0; again < 2; again++) {
      assert_null(mix_function_call(any, mix_list_of(numbers(MIX_FLOAT32, MIX_SHAPE(3, 4), 1))));
      int parts = 0;
      while (parts < 3 && refusals[i].parts[parts]) parts++;
      expect_error_with(MIX_VALUE_ERROR, parts, refusals[i].parts);
    }
    variable_has(both[1], 1);
    mix_function *exact = mix_function_new(refused_body, both, .name = "serve");
    assert_non_null(mix_function_call(exact, mix_list_of(numbers(MIX_FLOAT32, MIX_SHAPE(4, 4), 1))));
    no_error();
  }
}

/* Rows that are all equal may stand beside the batch. */
static mix_list *beside_equal_rows(void *context, mix_list *arguments) {
  (void)context;
  mix_tensor *x = mix_list_get(arguments, 0);
  mix_tensor *ones = mix_exp(mix_zeros_like(x));
  mix_tensor *row = mix_broadcast_to(vec(MIX_FLOAT32, 1, 2), mix_tensor_shape(x));
  mix_tensor *table = mix_fill(MIX_SHAPE(2, 2), 2, MIX_FLOAT32); /* of as many rows as a batch of two */
  mix_tensor *y = mix_add(mix_multiply(x, mix_add(ones, row)), mix_matmul(x, table, false, false));
  mix_tensor *elements = mix_add(mix_reshape(y, MIX_SHAPE(-1)), mix_reshape(row, MIX_SHAPE(-1)));
  y = mix_subtract(mix_reshape(elements, mix_tensor_shape(x)), row);
  return mix_list_of(mix_concat(2, (mix_tensor *[]){y, mix_add(ones, row)}, 1));
}
static void equal_rows_may_stand_beside_the_batch(void **state) {
  (void)state;
  mix_function *any = mix_function_new(beside_equal_rows, NULL, .batch = MIX_ANY, .max_batch = 2);
  mix_tensor *x = mix_reshape(vec(MIX_FLOAT32, 1, 2, 3, 4, 5, 6), MIX_SHAPE(3, 2));
  has_values(mix_list_get(call(any, x), 0), 8, 12, 2, 3, 20, 26, 2, 3, 32, 40, 2, 3);
}

static void wrong_options(void **state) {
  (void)state;
  network n = new_network(MIX_FLOAT32);
  assert_null(mix_function_new(forward, &n, .batch = 8));
  expect_error(MIX_VALUE_ERROR, "batch is 8", "MIX_ANY");
  assert_null(mix_function_new(forward, &n, .max_batch = 8));
  expect_error(MIX_VALUE_ERROR, "max_batch is 8", ".batch = MIX_ANY");
  assert_null(mix_function_new(forward, &n, .batch = MIX_ANY, .max_batch = -2));
  expect_error(MIX_VALUE_ERROR, "max_batch is -2");
}

/* ---- memory ---- */

static void memory_is_that_of_a_few_plans(void **state) {
  (void)state;
  network n = new_network(MIX_FLOAT32);
  mix_function *any = mix_function_new(forward, &n, .batch = MIX_ANY, .max_batch = 256);
  size_t most = 0;
  for (int rows = 1; rows <= 4000; rows += rows < 300 ? 1 : 37) {
    MIX_SCOPE { mix_function_call(any, mix_list_of(mix_fill(MIX_SHAPE(rows, INPUTS), 1, MIX_FLOAT32))); }
    mix_synchronize();
    if (rows == 257) most = mix_buffer_bytes();
  }
  no_error();
  assert_int_equal(n.traces, 9);
  assert_true(most > 0 && mix_buffer_bytes() <= most);
}

static void an_allocation_that_fails_is_an_error(void **state) {
  (void)state;
  network n = new_network(MIX_FLOAT32);
  mix_tensor *x = numbers(MIX_FLOAT32, MIX_SHAPE(11, INPUTS), 1);
  mix_function *good = mix_function_new(forward, &n, .batch = MIX_ANY, .max_batch = 4);
  mix_tensor *wanted = mix_list_get(call(good, x), 0);
  for (int64_t count = 0;; count++) {
    assert_true(count < 100000);
    bool unused = false;
    MIX_SCOPE {
      mix_function *any = mix_function_new(forward, &n, .batch = MIX_ANY, .max_batch = 4);
      mix_inject_allocation_failure(count);
      mix_list *results = mix_function_call(any, mix_list_of(x));
      unused = mix_allocation_failure_injected();
      mix_inject_allocation_failure(-1);
      if (mix_error() != MIX_OK) {
        assert_null(results);
        expect_error(MIX_MEMORY_ERROR, "memory");
      }
      results = call(any, x);
      has_rows(mix_list_get(results, 0), wanted, 0, 11);
    }
    if (unused) break;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_plan_for_each_power_of_two),
      TEST(bits_are_those_of_the_padded_batch),
      TEST(other_rows_do_not_matter),
      TEST(on_the_reference_bits_are_those_of_the_batch),
      TEST(a_padded_product_keeps_the_bound),
      TEST(larger_batches_run_in_parts),
      TEST(results_are_cut_in_place),
      TEST(an_empty_batch_has_empty_results),
      TEST(scalars_are_shared_and_arguments_may_be_nested),
      TEST(a_variable_as_argument),
      TEST(rows_that_are_added_are_valid),
      TEST(inline_nothing_is_padded),
      TEST(what_mixes_rows_is_named),
      TEST(equal_rows_may_stand_beside_the_batch),
      TEST(wrong_options),
      TEST(memory_is_that_of_a_few_plans),
      TEST(an_allocation_that_fails_is_an_error),
  };
  return cmocka_run_group_tests_name("compile/any_batch", tests, NULL, NULL);
}
