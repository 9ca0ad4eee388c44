/* Shape and dtype rules of every operation, and their errors. Nothing is computed. */
#include "ops/support.h"
#include "graph/capture.h"

typedef mix_tensor *(*unary)(mix_tensor *);
typedef mix_tensor *(*binary)(mix_tensor *, mix_tensor *);

typedef enum dtype_class { FLOATS, INTEGERS, NUMBERS_ONLY, BOOLS, ANYTHING } dtype_class;

static bool in_class(mix_dtype dtype, dtype_class allowed) {
  bool number = mix_dtype_is_floating(dtype) || mix_dtype_is_integer(dtype);
  return allowed == FLOATS         ? mix_dtype_is_floating(dtype)
         : allowed == INTEGERS     ? mix_dtype_is_integer(dtype)
         : allowed == NUMBERS_ONLY ? number
         : allowed == BOOLS        ? dtype == MIX_BOOL
                                   : true;
}

static void unary_operations(void **state) {
  (void)state;
  static const struct {
    const char *name;
    unary op;
    dtype_class allowed;
    bool gives_bool;
  } rows[] = {
#define FLOAT_ROW(name) {#name, mix_##name, FLOATS, false},
#define NUMBER_ROW(name) {#name, mix_##name, NUMBERS_ONLY, false},
      NUMBER_ROW(negative) NUMBER_ROW(abs) NUMBER_ROW(sign) NUMBER_ROW(square) FLOAT_ROW(floor)
          FLOAT_ROW(ceil) FLOAT_ROW(round) FLOAT_ROW(sqrt) FLOAT_ROW(rsqrt) FLOAT_ROW(reciprocal)
              FLOAT_ROW(exp) FLOAT_ROW(expm1) FLOAT_ROW(log) FLOAT_ROW(log1p) FLOAT_ROW(sin) FLOAT_ROW(cos)
                  FLOAT_ROW(tanh) FLOAT_ROW(sigmoid) FLOAT_ROW(erf) FLOAT_ROW(erfc) FLOAT_ROW(relu)
                      FLOAT_ROW(relu6) FLOAT_ROW(elu) FLOAT_ROW(selu) FLOAT_ROW(softplus)
                          FLOAT_ROW(softsign){"is_finite", mix_is_finite, FLOATS, true},
      {"is_inf", mix_is_inf, FLOATS, true},
      {"is_nan", mix_is_nan, FLOATS, true},
      {"logical_not", mix_logical_not, BOOLS, true},
      {"identity", mix_identity, ANYTHING, false},
      {"stop_gradient", mix_stop_gradient, ANYTHING, false},
      {"gradient", mix_gradient_identity, ANYTHING, false}};
  for (int r = 0; r < COUNT(rows); r++)
    for (int d = 0; d < COUNT(every_dtype); d++) {
      mix_dtype dtype = every_dtype[d], result = rows[r].gives_bool ? MIX_BOOL : dtype;
      mix_tensor *y = rows[r].op(ones(dtype, MIX_SHAPE(2, 3)));
      if (!in_class(dtype, rows[r].allowed)) {
        refused(y, MIX_TYPE_ERROR, rows[r].name, mix_dtype_name(dtype));
        continue;
      }
      has_type(y, result, MIX_SHAPE(2, 3));
      has_type(rows[r].op(ones(dtype, MIX_SCALAR)), result, MIX_SCALAR);
      has_type(rows[r].op(ones(dtype, MIX_SHAPE(0, 4))), result, MIX_SHAPE(0, 4));
      mix_tensor *unknown = rows[r].op(symbolic(dtype, MIX_SHAPE(MIX_UNKNOWN, 3)));
      has_type(unknown, result, MIX_SHAPE(MIX_UNKNOWN, 3));
      assert_true(mix_tensor_is_symbolic(unknown));
    }
  has_type(mix_leaky_relu(ones(MIX_FLOAT16, MIX_SHAPE(4)), 0.2), MIX_FLOAT16, MIX_SHAPE(4));
  refused(mix_leaky_relu(ones(MIX_INT32, MIX_SHAPE(4)), 0.2), MIX_TYPE_ERROR, "leaky_relu", "int32");
}

static void binary_operations(void **state) {
  (void)state;
  static const struct {
    const char *name;
    binary op;
    dtype_class allowed;
    bool gives_bool;
  } rows[] = {{"add", mix_add, NUMBERS_ONLY, false},
              {"subtract", mix_subtract, NUMBERS_ONLY, false},
              {"multiply", mix_multiply, NUMBERS_ONLY, false},
              {"divide", mix_divide, FLOATS, false},
              {"floor_divide", mix_floor_divide, NUMBERS_ONLY, false},
              {"floor_mod", mix_floor_mod, NUMBERS_ONLY, false},
              {"power", mix_power, NUMBERS_ONLY, false},
              {"maximum", mix_maximum, NUMBERS_ONLY, false},
              {"minimum", mix_minimum, NUMBERS_ONLY, false},
              {"squared_difference", mix_squared_difference, NUMBERS_ONLY, false},
              {"equal", mix_equal, ANYTHING, true},
              {"not_equal", mix_not_equal, ANYTHING, true},
              {"less", mix_less, NUMBERS_ONLY, true},
              {"less_equal", mix_less_equal, NUMBERS_ONLY, true},
              {"greater", mix_greater, NUMBERS_ONLY, true},
              {"greater_equal", mix_greater_equal, NUMBERS_ONLY, true},
              {"logical_and", mix_logical_and, BOOLS, true},
              {"logical_or", mix_logical_or, BOOLS, true},
              {"atan2", mix_atan2, FLOATS, false},
              {"bitwise_and", mix_bitwise_and, INTEGERS, false},
              {"bitwise_or", mix_bitwise_or, INTEGERS, false},
              {"bitwise_xor", mix_bitwise_xor, INTEGERS, false},
              {"shift_left", mix_shift_left, INTEGERS, false},
              {"shift_right", mix_shift_right, INTEGERS, false}};
  for (int r = 0; r < COUNT(rows); r++) {
    for (int d = 0; d < COUNT(every_dtype); d++) {
      mix_dtype dtype = every_dtype[d], result = rows[r].gives_bool ? MIX_BOOL : dtype;
      mix_tensor *y = rows[r].op(ones(dtype, MIX_SHAPE(4, 1, 3)), ones(dtype, MIX_SHAPE(5, 1)));
      if (!in_class(dtype, rows[r].allowed)) {
        refused(y, MIX_TYPE_ERROR, rows[r].name, mix_dtype_name(dtype));
        continue;
      }
      has_type(y, result, MIX_SHAPE(4, 5, 3));
      has_type(rows[r].op(ones(dtype, MIX_SCALAR), ones(dtype, MIX_SHAPE(2))), result, MIX_SHAPE(2));
      has_type(rows[r].op(symbolic(dtype, MIX_SHAPE(MIX_UNKNOWN, 3)), ones(dtype, MIX_SHAPE(3))), result,
               MIX_SHAPE(MIX_UNKNOWN, 3));
      refused(rows[r].op(ones(dtype, MIX_SHAPE(2, 3)), ones(dtype, MIX_SHAPE(2))), MIX_VALUE_ERROR,
              rows[r].name, mix_dtype_name(dtype), "(2, 3)", "(2)", "broadcast");
    }
    mix_dtype one = rows[r].allowed == BOOLS      ? MIX_BOOL
                    : rows[r].allowed == INTEGERS ? MIX_INT32
                                                  : MIX_FLOAT32,
              other = MIX_FLOAT16;
    refused(rows[r].op(ones(one, MIX_SHAPE(2)), ones(other, MIX_SHAPE(2))), MIX_TYPE_ERROR, rows[r].name,
            "float16");
  }
  refused(mix_add(ones(MIX_FLOAT32, MIX_SHAPE(2)), ones(MIX_FLOAT16, MIX_SHAPE(2))), MIX_TYPE_ERROR, "add",
          "float32 (2)", "float16 (2)");
}

static void errors_stand(void **state) {
  (void)state;
  mix_tensor *x = ones(MIX_FLOAT32, MIX_SHAPE(2));
  mix_tensor *bad = mix_add(x, ones(MIX_FLOAT32, MIX_SHAPE(3)));
  assert_null(mix_multiply(bad, x));
  assert_null(mix_reshape(bad, MIX_SHAPE(1)));
  assert_null(mix_relu(x));
  refused(mix_fill(MIX_SHAPE(1), 0, MIX_FLOAT32), MIX_VALUE_ERROR, "add: ");
  refused(mix_cast(NULL, MIX_FLOAT32), MIX_TYPE_ERROR, "cast", "NULL");
  refused(mix_matmul(x, NULL, false, false), MIX_TYPE_ERROR, "matmul", "NULL");
  refused(mix_concat(2, (mix_tensor *[]){x, NULL}, 0), MIX_TYPE_ERROR, "concat", "NULL");
  refused(mix_multiply(x, NULL), MIX_TYPE_ERROR, "multiply", "NULL");
  mix_graph_scope_set("dense_1");
  mix_tensor *in_layer = mix_add(x, ones(MIX_FLOAT32, MIX_SHAPE(3)));
  mix_graph_scope_set(NULL);
  refused(in_layer, MIX_VALUE_ERROR, "add", "dense_1");
}

static void add_n(void **state) {
  (void)state;
  mix_tensor *x = ones(MIX_FLOAT16, MIX_SHAPE(2, 3)), *many[20];
  for (int i = 0; i < 20; i++) many[i] = x;
  has_type(mix_add_n(20, many), MIX_FLOAT16, MIX_SHAPE(2, 3));
  assert_ptr_equal(mix_add_n(1, many), x);
  has_type(mix_add_n(2, (mix_tensor *[]){symbolic(MIX_FLOAT16, MIX_SHAPE(MIX_UNKNOWN, 3)), x}), MIX_FLOAT16,
           MIX_SHAPE(2, 3));
  refused(mix_add_n(0, many), MIX_VALUE_ERROR, "add_n", "at least one");
  refused(mix_add_n(2, (mix_tensor *[]){x, ones(MIX_FLOAT16, MIX_SHAPE(3))}), MIX_VALUE_ERROR, "add_n",
          "(2, 3)", "(3)", "one shape");
  refused(mix_add_n(2, (mix_tensor *[]){x, ones(MIX_FLOAT32, MIX_SHAPE(2, 3))}), MIX_TYPE_ERROR, "add_n",
          "float16", "float32");
}

static void select_and_clip(void **state) {
  (void)state;
  for (int d = 0; d < COUNT(every_dtype); d++) {
    mix_dtype dtype = every_dtype[d];
    has_type(mix_select(ones(MIX_BOOL, MIX_SHAPE(4, 1)), ones(dtype, MIX_SHAPE(3)), ones(dtype, MIX_SCALAR)),
             dtype, MIX_SHAPE(4, 3));
    mix_tensor *clipped =
        mix_clip(ones(dtype, MIX_SHAPE(4, 3)), ones(dtype, MIX_SCALAR), ones(dtype, MIX_SCALAR));
    if (dtype == MIX_BOOL)
      refused(clipped, MIX_TYPE_ERROR, "clip", "bool");
    else
      has_type(clipped, dtype, MIX_SHAPE(4, 3));
  }
  mix_tensor *x = ones(MIX_FLOAT32, MIX_SHAPE(4)), *scalar = ones(MIX_FLOAT32, MIX_SCALAR),
             *condition = ones(MIX_BOOL, MIX_SHAPE(4));
  refused(mix_select(x, x, x), MIX_TYPE_ERROR, "select", "bool");
  refused(mix_select(condition, x, ones(MIX_FLOAT16, MIX_SHAPE(4))), MIX_TYPE_ERROR, "select", "float16");
  refused(mix_select(condition, x, ones(MIX_FLOAT32, MIX_SHAPE(3))), MIX_VALUE_ERROR, "select", "(4)", "(3)",
          "broadcast");
  refused(mix_clip(x, scalar, x), MIX_VALUE_ERROR, "clip", "scalar bounds");
  refused(mix_clip(x, scalar, ones(MIX_FLOAT64, MIX_SCALAR)), MIX_TYPE_ERROR, "clip", "float64");
}

static void bias(void **state) {
  (void)state;
  for (int d = 0; d < COUNT(numbers); d++) {
    has_type(mix_bias_add(ones(numbers[d], MIX_SHAPE(4, 5, 3)), ones(numbers[d], MIX_SHAPE(3))), numbers[d],
             MIX_SHAPE(4, 5, 3));
    has_type(mix_bias_add_gradient(ones(numbers[d], MIX_SHAPE(4, 5, 3))), numbers[d], MIX_SHAPE(3));
  }
  has_type(mix_bias_add(symbolic(MIX_FLOAT32, MIX_SHAPE(MIX_UNKNOWN, 3)), ones(MIX_FLOAT32, MIX_SHAPE(3))),
           MIX_FLOAT32, MIX_SHAPE(MIX_UNKNOWN, 3));
  mix_tensor *x = ones(MIX_FLOAT32, MIX_SHAPE(4, 3));
  refused(mix_bias_add(x, ones(MIX_FLOAT32, MIX_SHAPE(4))), MIX_VALUE_ERROR, "bias_add", "(4, 3)", "(4)",
          "(units)");
  refused(mix_bias_add(x, ones(MIX_FLOAT32, MIX_SHAPE(1))), MIX_VALUE_ERROR, "bias_add");
  refused(mix_bias_add(x, x), MIX_VALUE_ERROR, "bias_add");
  refused(mix_bias_add(x, ones(MIX_FLOAT16, MIX_SHAPE(3))), MIX_TYPE_ERROR, "bias_add", "float32", "float16");
  refused(mix_bias_add_gradient(ones(MIX_FLOAT32, MIX_SCALAR)), MIX_VALUE_ERROR, "bias_add_grad");
}

static void casts(void **state) {
  (void)state;
  for (int a = 0; a < COUNT(every_dtype); a++)
    for (int b = 0; b < COUNT(every_dtype); b++) {
      mix_tensor *x = ones(every_dtype[a], MIX_SHAPE(2, 3)), *y = mix_cast(x, every_dtype[b]);
      has_type(y, every_dtype[b], MIX_SHAPE(2, 3));
      assert_int_equal(y == x, a == b);
    }
  refused(mix_cast(ones(MIX_FLOAT32, MIX_SHAPE(2)), MIX_STRING), MIX_TYPE_ERROR, "cast", "string");
  refused(mix_cast(ones(MIX_FLOAT32, MIX_SHAPE(2)), MIX_DTYPE_NONE), MIX_TYPE_ERROR, "cast", "none");
}

typedef mix_tensor *(*reduction)(mix_tensor *, mix_axes, bool);

static void reductions(void **state) {
  (void)state;
  static const struct {
    const char *name;
    reduction op;
    dtype_class allowed;
  } rows[] = {{"reduce_sum", mix_reduce_sum, NUMBERS_ONLY},   {"reduce_mean", mix_reduce_mean, FLOATS},
              {"reduce_prod", mix_reduce_prod, NUMBERS_ONLY}, {"reduce_max", mix_reduce_max, NUMBERS_ONLY},
              {"reduce_min", mix_reduce_min, NUMBERS_ONLY},   {"reduce_all", mix_reduce_all, BOOLS},
              {"reduce_any", mix_reduce_any, BOOLS}};
  for (int r = 0; r < COUNT(rows); r++) {
    for (int d = 0; d < COUNT(every_dtype); d++) {
      mix_dtype dtype = every_dtype[d];
      mix_tensor *x = ones(dtype, MIX_SHAPE(2, 3, 4)), *y = rows[r].op(x, MIX_AXES(1), false);
      if (!in_class(dtype, rows[r].allowed)) {
        refused(y, MIX_TYPE_ERROR, rows[r].name, mix_dtype_name(dtype));
        continue;
      }
      has_type(y, dtype, MIX_SHAPE(2, 4));
      has_type(rows[r].op(x, MIX_AXES(-1, 0), true), dtype, MIX_SHAPE(1, 3, 1));
      has_type(rows[r].op(x, MIX_ALL_AXES, false), dtype, MIX_SCALAR);
      has_type(rows[r].op(x, MIX_ALL_AXES, true), dtype, MIX_SHAPE(1, 1, 1));
      has_type(rows[r].op(ones(dtype, MIX_SCALAR), MIX_ALL_AXES, false), dtype, MIX_SCALAR);
      has_type(rows[r].op(symbolic(dtype, MIX_SHAPE(MIX_UNKNOWN, 3)), MIX_AXES(1), false), dtype,
               MIX_SHAPE(MIX_UNKNOWN));
      has_type(rows[r].op(symbolic(dtype, MIX_SHAPE(MIX_UNKNOWN, 3)), MIX_AXES(0), false), dtype,
               MIX_SHAPE(3));
    }
    mix_tensor *x = ones(rows[r].allowed == BOOLS ? MIX_BOOL : MIX_FLOAT32, MIX_SHAPE(2, 3));
    refused(rows[r].op(x, MIX_AXES(2), false), MIX_VALUE_ERROR, rows[r].name, "axis 2", "(2, 3)", "-2 to 1");
    refused(rows[r].op(x, MIX_AXES(1, -1), false), MIX_VALUE_ERROR, rows[r].name, "axis -1", "twice");
  }
  mix_tensor *sorted = mix_reduce_sum(ones(MIX_FLOAT32, MIX_SHAPE(2, 3, 4)), MIX_AXES(-1, 0), false);
  const mix_reduce_attributes *attributes = sorted->node->attributes;
  assert_int_equal(attributes->axis_count, 2);
  assert_int_equal(attributes->axes[0], 0);
  assert_int_equal(attributes->axes[1], 2);
}

static void positions_and_finite(void **state) {
  (void)state;
  for (int d = 0; d < COUNT(numbers); d++) {
    has_type(mix_argmax(ones(numbers[d], MIX_SHAPE(2, 3, 4)), 1), MIX_INT64, MIX_SHAPE(2, 4));
    has_type(mix_argmin(ones(numbers[d], MIX_SHAPE(2, 3, 4)), -3), MIX_INT64, MIX_SHAPE(3, 4));
  }
  has_type(mix_argmax(symbolic(MIX_FLOAT32, MIX_SHAPE(MIX_UNKNOWN, 3)), -1), MIX_INT64,
           MIX_SHAPE(MIX_UNKNOWN));
  refused(mix_argmax(ones(MIX_FLOAT32, MIX_SHAPE(2)), 1), MIX_VALUE_ERROR, "argmax", "axis 1", "(2)");
  refused(mix_argmin(ones(MIX_FLOAT32, MIX_SCALAR), 0), MIX_VALUE_ERROR, "argmin");
  refused(mix_argmin(ones(MIX_FLOAT32, MIX_SHAPE(2, 0)), 1), MIX_VALUE_ERROR, "argmin", "(2, 0)");
  refused(mix_argmax(ones(MIX_BOOL, MIX_SHAPE(2)), 0), MIX_TYPE_ERROR, "argmax", "bool");
  for (int d = 0; d < COUNT(floating); d++)
    has_type(mix_all_finite(ones(floating[d], MIX_SHAPE(2, 3))), MIX_BOOL, MIX_SCALAR);
  refused(mix_all_finite(ones(MIX_INT32, MIX_SHAPE(2))), MIX_TYPE_ERROR, "all_finite", "int32");
}

static void products(void **state) {
  (void)state;
  static const mix_dtype allowed[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64, MIX_INT32};
  for (int d = 0; d < COUNT(allowed); d++)
    for (int t = 0; t < 4; t++) {
      bool ta = t & 1, tb = t & 2;
      mix_tensor *a = ones(allowed[d], ta ? MIX_SHAPE(3, 2) : MIX_SHAPE(2, 3)),
                 *b = ones(allowed[d], tb ? MIX_SHAPE(4, 3) : MIX_SHAPE(3, 4));
      mix_tensor *y = mix_matmul(a, b, ta, tb);
      has_type(y, allowed[d], MIX_SHAPE(2, 4));
      assert_ptr_equal(y->node->op, &mix_op_matmul);
    }
  mix_tensor *batch = mix_matmul(ones(MIX_FLOAT32, MIX_SHAPE(7, 1, 2, 3)),
                                 ones(MIX_FLOAT32, MIX_SHAPE(5, 3, 4)), false, false);
  has_type(batch, MIX_FLOAT32, MIX_SHAPE(7, 5, 2, 4));
  assert_ptr_equal(batch->node->op, &mix_op_batch_matmul);
  has_type(mix_matmul(ones(MIX_FLOAT32, MIX_SHAPE(7, 2, 3)), ones(MIX_FLOAT32, MIX_SHAPE(4, 3)), false, true),
           MIX_FLOAT32, MIX_SHAPE(7, 2, 4));
  has_type(mix_matmul(symbolic(MIX_FLOAT32, MIX_SHAPE(MIX_UNKNOWN, 3)), ones(MIX_FLOAT32, MIX_SHAPE(3, 4)),
                      false, false),
           MIX_FLOAT32, MIX_SHAPE(MIX_UNKNOWN, 4));
  has_type(mix_matmul(symbolic(MIX_FLOAT32, MIX_SHAPE(2, MIX_UNKNOWN)), ones(MIX_FLOAT32, MIX_SHAPE(3, 4)),
                      false, false),
           MIX_FLOAT32, MIX_SHAPE(2, 4));
  mix_tensor *x = ones(MIX_FLOAT32, MIX_SHAPE(2, 3));
  refused(mix_matmul(x, x, false, false), MIX_VALUE_ERROR, "matmul", "float32 (2, 3)", "inner dimensions",
          "3 and 2");
  refused(mix_matmul(x, ones(MIX_FLOAT32, MIX_SHAPE(3)), false, false), MIX_VALUE_ERROR, "matmul", "(3)",
          "two dimensions");
  refused(
      mix_matmul(ones(MIX_FLOAT32, MIX_SHAPE(5, 2, 3)), ones(MIX_FLOAT32, MIX_SHAPE(4, 3, 2)), false, false),
      MIX_VALUE_ERROR, "batch_matmul", "(5, 2, 3)", "broadcast");
  refused(mix_matmul(x, ones(MIX_FLOAT16, MIX_SHAPE(3, 4)), false, false), MIX_TYPE_ERROR, "matmul",
          "float32", "float16");
  refused(mix_matmul(ones(MIX_INT64, MIX_SHAPE(2, 2)), ones(MIX_INT64, MIX_SHAPE(2, 2)), false, false),
          MIX_TYPE_ERROR, "matmul", "int64");
}

static void softmax_and_cross_entropies(void **state) {
  (void)state;
  for (int d = 0; d < COUNT(floating); d++) {
    mix_dtype dtype = floating[d];
    mix_tensor *logits = ones(dtype, MIX_SHAPE(2, 3, 4));
    has_type(mix_softmax(logits), dtype, MIX_SHAPE(2, 3, 4));
    has_type(mix_log_softmax(logits), dtype, MIX_SHAPE(2, 3, 4));
    mix_tensor *losses = mix_softmax_cross_entropy(ones(dtype, MIX_SHAPE(2, 3, 4)), logits);
    has_type(losses, dtype, MIX_SHAPE(2, 3));
    has_type(mix_tensor_of(losses->node, 1), dtype, MIX_SHAPE(2, 3, 4));
    assert_ptr_equal(losses->node->inputs[0].node, logits->node);
    for (int i = 0; i < COUNT(integers); i++) {
      losses = mix_sparse_softmax_cross_entropy(ones(integers[i], MIX_SHAPE(2, 3)), logits);
      has_type(losses, dtype, MIX_SHAPE(2, 3));
      has_type(mix_tensor_of(losses->node, 1), dtype, MIX_SHAPE(2, 3, 4));
    }
  }
  mix_tensor *logits = ones(MIX_FLOAT32, MIX_SHAPE(2, 4)),
             *unknown = symbolic(MIX_FLOAT32, MIX_SHAPE(MIX_UNKNOWN, 4));
  has_type(mix_softmax_cross_entropy(ones(MIX_FLOAT32, MIX_SHAPE(2, 4)), unknown), MIX_FLOAT32, MIX_SHAPE(2));
  has_type(mix_sparse_softmax_cross_entropy(symbolic(MIX_INT64, MIX_SHAPE(MIX_UNKNOWN)), unknown),
           MIX_FLOAT32, MIX_SHAPE(MIX_UNKNOWN));
  refused(mix_softmax(ones(MIX_FLOAT32, MIX_SCALAR)), MIX_VALUE_ERROR, "softmax", "()");
  refused(mix_log_softmax(ones(MIX_INT32, MIX_SHAPE(2))), MIX_TYPE_ERROR, "log_softmax", "int32");
  refused(mix_softmax_cross_entropy(ones(MIX_FLOAT32, MIX_SHAPE(2, 5)), logits), MIX_VALUE_ERROR,
          "softmax_cross_entropy", "(2, 4)", "(2, 5)");
  refused(mix_softmax_cross_entropy(ones(MIX_FLOAT16, MIX_SHAPE(2, 4)), logits), MIX_TYPE_ERROR,
          "softmax_cross_entropy", "float16", "float32");
  refused(mix_sparse_softmax_cross_entropy(ones(MIX_INT32, MIX_SHAPE(3)), logits), MIX_VALUE_ERROR,
          "sparse_softmax_cross_entropy", "(2, 4)", "(3)");
  refused(mix_sparse_softmax_cross_entropy(ones(MIX_INT32, MIX_SHAPE(2, 1)), logits), MIX_VALUE_ERROR,
          "sparse_softmax_cross_entropy");
  refused(mix_sparse_softmax_cross_entropy(ones(MIX_FLOAT32, MIX_SHAPE(2)), logits), MIX_TYPE_ERROR,
          "sparse_softmax_cross_entropy", "float32");
}

static void other_bits(void **state) {
  (void)state;
  mix_tensor *x = ones(MIX_FLOAT32, MIX_SHAPE(2, 3)), *open = symbolic(MIX_INT64, MIX_SHAPE(3, MIX_UNKNOWN));
  has_type(mix_bitcast(ones(MIX_FLOAT32, MIX_SHAPE(3, 4)), MIX_FLOAT64), MIX_FLOAT64, MIX_SHAPE(3, 2));
  has_type(mix_bitcast(ones(MIX_INT64, MIX_SHAPE(3, 4)), MIX_FLOAT16), MIX_FLOAT16, MIX_SHAPE(3, 16));
  has_type(mix_bitcast(open, MIX_UINT8), MIX_UINT8, MIX_SHAPE(3, MIX_UNKNOWN));
  has_type(mix_bitcast(ones(MIX_FLOAT32, MIX_SCALAR), MIX_INT32), MIX_INT32, MIX_SCALAR);
  refused(mix_bitcast(x, MIX_INT64), MIX_VALUE_ERROR, "bitcast", "(2, 3)", "int64, of 8 bytes");
  refused(mix_bitcast(ones(MIX_FLOAT32, MIX_SCALAR), MIX_INT8), MIX_VALUE_ERROR, "bitcast", "a scalar");
  refused(mix_bitcast(x, MIX_BOOL), MIX_TYPE_ERROR, "bitcast", "bool");
  refused(mix_bitcast(ones(MIX_BOOL, MIX_SHAPE(4)), MIX_INT32), MIX_TYPE_ERROR, "bitcast", "bool");
  refused(mix_bitcast(NULL, MIX_INT32), MIX_TYPE_ERROR, "bitcast");
}

static void indices(void **state) {
  (void)state;
  for (int d = 0; d < COUNT(every_dtype); d++)
    for (int i = 0; i < COUNT(integers); i++) {
      mix_tensor *params = ones(every_dtype[d], MIX_SHAPE(5, 6, 7)),
                 *index = ones(integers[i], MIX_SHAPE(2, 3));
      has_type(mix_gather(params, index, 0), every_dtype[d], MIX_SHAPE(2, 3, 6, 7));
      has_type(mix_gather(params, index, -2), every_dtype[d], MIX_SHAPE(5, 2, 3, 7));
      has_type(mix_gather(params, ones(integers[i], MIX_SCALAR), 2), every_dtype[d], MIX_SHAPE(5, 6));
      has_type(mix_one_hot(index, 4, every_dtype[d]), every_dtype[d], MIX_SHAPE(2, 3, 4));
      if (every_dtype[d] == MIX_BOOL) continue;
      has_type(mix_segment_sum(ones(every_dtype[d], MIX_SHAPE(2, 3, 7)), index, 9), every_dtype[d],
               MIX_SHAPE(9, 7));
      has_type(mix_segment_sum(ones(every_dtype[d], MIX_SHAPE(7)), ones(integers[i], MIX_SCALAR), 9),
               every_dtype[d], MIX_SHAPE(9, 7));
    }
  has_type(mix_gather(ones(MIX_FLOAT32, MIX_SHAPE(5, 6)), symbolic(MIX_INT32, MIX_SHAPE(MIX_UNKNOWN, 3)), 0),
           MIX_FLOAT32, MIX_SHAPE(MIX_UNKNOWN, 3, 6));
  has_type(mix_one_hot(symbolic(MIX_INT32, MIX_SHAPE(MIX_UNKNOWN)), 4, MIX_FLOAT16), MIX_FLOAT16,
           MIX_SHAPE(MIX_UNKNOWN, 4));
  mix_tensor *x = ones(MIX_FLOAT32, MIX_SHAPE(5, 6)), *index = ones(MIX_INT32, MIX_SHAPE(2));
  refused(mix_gather(x, index, 2), MIX_VALUE_ERROR, "gather", "axis 2", "(5, 6)");
  refused(mix_gather(x, x, 0), MIX_TYPE_ERROR, "gather", "float32");
  refused(mix_gather(x, ones(MIX_INT32, MIX_SHAPE(1, 1, 1, 1, 1, 1, 1, 1)), 0), MIX_VALUE_ERROR, "gather",
          "9 dimensions");
  refused(mix_segment_sum(x, index, 3), MIX_VALUE_ERROR, "segment_sum", "(5, 6)", "(2)");
  refused(mix_segment_sum(x, ones(MIX_INT32, MIX_SHAPE(5)), -1), MIX_VALUE_ERROR, "segment_sum", "-1 rows");
  refused(mix_one_hot(index, -1, MIX_FLOAT32), MIX_VALUE_ERROR, "one_hot", "depth -1");
  refused(mix_one_hot(index, 3, MIX_UINT32), MIX_TYPE_ERROR, "one_hot", "uint32");
  refused(mix_one_hot(x, 3, MIX_FLOAT32), MIX_TYPE_ERROR, "one_hot", "float32");
}

static void joining_and_cutting(void **state) {
  (void)state;
  for (int d = 0; d < COUNT(every_dtype); d++) {
    mix_dtype dtype = every_dtype[d];
    mix_tensor *a = ones(dtype, MIX_SHAPE(2, 3)), *b = ones(dtype, MIX_SHAPE(2, 4));
    has_type(mix_concat(3, (mix_tensor *[]){a, b, a}, -1), dtype, MIX_SHAPE(2, 10));
    has_type(mix_slice(b, MIX_SHAPE(0, 1), MIX_SHAPE(2, -1)), dtype, MIX_SHAPE(2, 3));
    has_type(mix_pad(a, MIX_SHAPE(1, 0), MIX_SHAPE(0, 2), 0), dtype, MIX_SHAPE(3, 5));
  }
  mix_tensor *a = ones(MIX_FLOAT32, MIX_SHAPE(2, 3)),
             *unknown = symbolic(MIX_FLOAT32, MIX_SHAPE(MIX_UNKNOWN, 3));
  assert_ptr_equal(mix_concat(1, &a, 0), a);
  has_type(mix_concat(2, (mix_tensor *[]){a, unknown}, 0), MIX_FLOAT32, MIX_SHAPE(MIX_UNKNOWN, 3));
  has_type(mix_concat(2, (mix_tensor *[]){unknown, a}, 1), MIX_FLOAT32, MIX_SHAPE(2, 6));
  has_type(mix_slice(unknown, MIX_SHAPE(0, 1), MIX_SHAPE(-1, 2)), MIX_FLOAT32, MIX_SHAPE(MIX_UNKNOWN, 2));
  has_type(mix_slice(a, MIX_SHAPE(2, 0), MIX_SHAPE(-1, 0)), MIX_FLOAT32, MIX_SHAPE(0, 0));
  has_type(mix_pad(unknown, MIX_SHAPE(1, 1), MIX_SHAPE(1, 1), 0), MIX_FLOAT32, MIX_SHAPE(MIX_UNKNOWN, 5));
  refused(mix_concat(0, &a, 0), MIX_VALUE_ERROR, "concat", "at least one");
  refused(mix_concat(2, (mix_tensor *[]){a, a}, 2), MIX_VALUE_ERROR, "concat", "axis 2");
  refused(mix_concat(2, (mix_tensor *[]){a, ones(MIX_FLOAT32, MIX_SHAPE(3, 3))}, 1), MIX_VALUE_ERROR,
          "concat", "operand 1", "(2, 3)", "(3, 3)");
  refused(mix_concat(2, (mix_tensor *[]){a, ones(MIX_FLOAT32, MIX_SHAPE(3))}, 0), MIX_VALUE_ERROR, "concat",
          "operand 1");
  refused(mix_concat(2, (mix_tensor *[]){a, ones(MIX_FLOAT16, MIX_SHAPE(2, 3))}, 0), MIX_TYPE_ERROR, "concat",
          "float32", "float16");
  refused(mix_concat(2, (mix_tensor *[]){ones(MIX_FLOAT32, MIX_SCALAR), ones(MIX_FLOAT32, MIX_SCALAR)}, 0),
          MIX_VALUE_ERROR, "concat", "axis 0");
  refused(mix_slice(a, MIX_SHAPE(0, 2), MIX_SHAPE(2, 2)), MIX_VALUE_ERROR, "slice", "(2, 3)", "axis 1",
          "2 to 4");
  refused(mix_slice(a, MIX_SHAPE(-1, 0), MIX_SHAPE(1, 1)), MIX_VALUE_ERROR, "slice", "axis 0");
  refused(mix_slice(a, MIX_SHAPE(0), MIX_SHAPE(1)), MIX_VALUE_ERROR, "slice", "begin has 1");
  refused(mix_pad(a, MIX_SHAPE(0), MIX_SHAPE(0, 0), 0), MIX_VALUE_ERROR, "pad", "before has 1");
  refused(mix_pad(a, MIX_SHAPE(0, -1), MIX_SHAPE(0, 0), 0), MIX_VALUE_ERROR, "pad", "axis 1", "-1");
}

static void reshaping(void **state) {
  (void)state;
  for (int d = 0; d < COUNT(every_dtype); d++) {
    mix_tensor *x = ones(every_dtype[d], MIX_SHAPE(2, 3, 4));
    has_type(mix_reshape(x, MIX_SHAPE(6, -1)), every_dtype[d], MIX_SHAPE(6, 4));
    has_type(mix_transpose(x, MIX_AXES(2, 0, 1)), every_dtype[d], MIX_SHAPE(4, 2, 3));
    has_type(mix_broadcast_to(x, MIX_SHAPE(5, 2, 3, 4)), every_dtype[d], MIX_SHAPE(5, 2, 3, 4));
  }
  mix_tensor *x = ones(MIX_FLOAT32, MIX_SHAPE(2, 1, 3)),
             *unknown = symbolic(MIX_FLOAT32, MIX_SHAPE(MIX_UNKNOWN, 4, 3));
  assert_ptr_equal(mix_reshape(x, MIX_SHAPE(2, 1, 3)), x);
  assert_ptr_equal(mix_reshape(x, MIX_SHAPE(-1, 1, 3)), x);
  assert_ptr_equal(mix_broadcast_to(x, MIX_SHAPE(2, 1, 3)), x);
  assert_ptr_equal(mix_transpose(x, MIX_AXES(0, 1, -1)), x);
  has_type(mix_reshape(unknown, MIX_SHAPE(-1, 12)), MIX_FLOAT32, MIX_SHAPE(MIX_UNKNOWN, 12));
  has_type(mix_reshape(ones(MIX_FLOAT32, MIX_SHAPE(1)), MIX_SCALAR), MIX_FLOAT32, MIX_SCALAR);
  has_type(mix_reshape(ones(MIX_FLOAT32, MIX_SHAPE(0, 3)), MIX_SHAPE(3, 0)), MIX_FLOAT32, MIX_SHAPE(3, 0));
  refused(mix_reshape(x, MIX_SHAPE(4, -1)), MIX_VALUE_ERROR, "reshape", "(2, 1, 3)", "6 elements");
  refused(mix_reshape(x, MIX_SHAPE(7)), MIX_VALUE_ERROR, "reshape", "(2, 1, 3)", "(7)");
  refused(mix_reshape(x, MIX_SHAPE(-1, -1)), MIX_VALUE_ERROR, "reshape", "at most one");
  refused(mix_reshape(x, MIX_SHAPE(-2)), MIX_VALUE_ERROR, "reshape");
  has_type(mix_expand_dims(x, 0), MIX_FLOAT32, MIX_SHAPE(1, 2, 1, 3));
  has_type(mix_expand_dims(x, -1), MIX_FLOAT32, MIX_SHAPE(2, 1, 3, 1));
  has_type(mix_expand_dims(symbolic(MIX_FLOAT32, MIX_SHAPE(MIX_UNKNOWN, MIX_UNKNOWN)), 1), MIX_FLOAT32,
           MIX_SHAPE(MIX_UNKNOWN, 1, MIX_UNKNOWN));
  refused(mix_expand_dims(x, 4), MIX_VALUE_ERROR, "expand_dims", "axis 4", "-4 to 3");
  has_type(mix_squeeze(x, MIX_ALL_AXES), MIX_FLOAT32, MIX_SHAPE(2, 3));
  has_type(mix_squeeze(ones(MIX_FLOAT32, MIX_SHAPE(1, 2, 1)), MIX_AXES(-1)), MIX_FLOAT32, MIX_SHAPE(1, 2));
  has_type(mix_squeeze(symbolic(MIX_FLOAT32, MIX_SHAPE(MIX_UNKNOWN, 1)), MIX_ALL_AXES), MIX_FLOAT32,
           MIX_SHAPE(MIX_UNKNOWN));
  refused(mix_squeeze(x, MIX_AXES(0)), MIX_VALUE_ERROR, "squeeze", "axis 0", "2 elements");
  has_type(mix_transpose(unknown, MIX_ALL_AXES), MIX_FLOAT32, MIX_SHAPE(3, 4, MIX_UNKNOWN));
  refused(mix_transpose(x, MIX_AXES(0, 1)), MIX_VALUE_ERROR, "transpose", "2 axes", "3");
  refused(mix_transpose(x, MIX_AXES(0, 1, 1)), MIX_VALUE_ERROR, "transpose", "twice");
  has_type(mix_broadcast_to(x, MIX_SHAPE(2, 5, 3)), MIX_FLOAT32, MIX_SHAPE(2, 5, 3));
  has_type(mix_broadcast_to(symbolic(MIX_FLOAT32, MIX_SHAPE(1, 3)), MIX_SHAPE(MIX_UNKNOWN, 3)), MIX_FLOAT32,
           MIX_SHAPE(MIX_UNKNOWN, 3));
  refused(mix_broadcast_to(x, MIX_SHAPE(3, 1, 3)), MIX_VALUE_ERROR, "broadcast_to", "(2, 1, 3)", "(3, 1, 3)");
  refused(mix_broadcast_to(x, MIX_SHAPE(MIX_UNKNOWN, 1, 3)), MIX_VALUE_ERROR, "broadcast_to", "unknown");
}

/* An integer that does not have the number would wrap to another one. */
static void ranges_that_integers_lack(void) {
  static const struct {
    double start, stop, step;
    mix_dtype dtype;
    const char *said; /* NULL: the dtype has them */
  } rows[] = {{0, 128, 127, MIX_INT8, NULL},
              {0, 129, 128, MIX_INT8, "0 to 128; int8"},
              {-128, -130, -2, MIX_INT8, NULL},
              {-129, 0, 129, MIX_INT8, "-129 to -129; int8"},
              {0, 256, 255, MIX_UINT8, NULL},
              {0, 257, 256, MIX_UINT8, "0 to 256; uint8"},
              {1, -2, -1, MIX_UINT8, "1 to -1; uint8"},
              {0, 32769, 32768, MIX_INT16, "0 to 32768; int16"},
              {0x1p31 - 1, 0x1p31, 1, MIX_INT32, NULL},
              {0x1p31 - 1, 0x1p31 + 1, 1, MIX_INT32, "2147483647 to 2147483648; int32"},
              {0, 0x1p33, 1, MIX_INT32, "0 to 8589934591; int32"},
              {0x1p31, 0, 1, MIX_INT32, NULL}, /* empty */
              {-0x1p31, 0, 0x1p31, MIX_INT32, NULL},
              {-0x1p31 - 1, 0, 0x1p32, MIX_INT32, "-2147483649 to -2147483649; int32"},
              {-0x1p63, 0, 0x1p63, MIX_INT64, NULL},
              {0, 0x1p64, 0x1p63, MIX_INT64, "0 to 9.2233720368547758e+18; int64"},
              {-0.5, 1, 1, MIX_UINT8, NULL}, /* cut to 0 */
              {0, 0x1p33, 0x1p32, MIX_FLOAT32, NULL},
              {-1e308, 1e308, 1e-308, MIX_FLOAT64, "countable"},
              {0, 0x1p54, 1, MIX_FLOAT64, "countable"},
              {0, 0x1p54, 1, MIX_INT32, "countable"},
              {0, 1, 1e-300, MIX_INT64, "countable"},
              {NAN, 1, 1, MIX_INT64, "finite"}};
  for (int i = 0; i < COUNT(rows); i++) {
    mix_tensor *range = mix_range(rows[i].start, rows[i].stop, rows[i].step, rows[i].dtype);
    if (rows[i].said)
      refused(range, MIX_VALUE_ERROR, "range", rows[i].said);
    else
      assert_int_equal(mix_tensor_dtype(range), rows[i].dtype);
  }
}

static void sources(void **state) {
  (void)state;
  mix_tensor *key = tensor(MIX_INT64, MIX_SHAPE(2), NUMBERS(1, 0));
  for (int d = 0; d < COUNT(every_dtype); d++) {
    mix_tensor *x = ones(every_dtype[d], MIX_SHAPE(2, 3)),
               *unknown = symbolic(every_dtype[d], MIX_SHAPE(MIX_UNKNOWN, 3));
    has_type(x, every_dtype[d], MIX_SHAPE(2, 3));
    has_type(mix_scalar_like(x, 1), every_dtype[d], MIX_SCALAR);
    has_type(mix_zeros_like(x), every_dtype[d], MIX_SHAPE(2, 3));
    has_type(mix_ones_like(unknown), every_dtype[d], MIX_SHAPE(MIX_UNKNOWN, 3));
    assert_true(mix_tensor_is_symbolic(mix_zeros_like(unknown)));
    mix_tensor *drawn = mix_stateless_normal(key, MIX_SHAPE(4, 5), every_dtype[d]);
    if (mix_dtype_is_floating(every_dtype[d]))
      has_type(drawn, every_dtype[d], MIX_SHAPE(4, 5));
    else
      refused(drawn, MIX_TYPE_ERROR, "random_normal", mix_dtype_name(every_dtype[d]));
  }
  has_type(mix_range(0, 5, 2, MIX_INT32), MIX_INT32, MIX_SHAPE(3));
  has_type(mix_range(5, 0, -1, MIX_FLOAT16), MIX_FLOAT16, MIX_SHAPE(5));
  has_type(mix_range(5, 0, 1, MIX_FLOAT32), MIX_FLOAT32, MIX_SHAPE(0));
  refused(mix_range(0, 5, 0, MIX_FLOAT32), MIX_VALUE_ERROR, "range", "step 0");
  refused(mix_range(0, INFINITY, 1, MIX_FLOAT32), MIX_VALUE_ERROR, "range");
  refused(mix_range(0, 5, 1, MIX_COMPLEX64), MIX_TYPE_ERROR, "range", "complex64");
  ranges_that_integers_lack();
  refused(mix_fill(MIX_SHAPE(2, MIX_UNKNOWN), 0, MIX_FLOAT32), MIX_VALUE_ERROR, "fill", "(2, None)");
  refused(mix_fill(MIX_SHAPE(INT64_C(1) << 40, INT64_C(1) << 40), 0, MIX_FLOAT32), MIX_VALUE_ERROR, "fill",
          "too many");
  refused(mix_fill(MIX_SHAPE(2), 0, MIX_STRING), MIX_TYPE_ERROR, "fill", "string");
  refused(mix_stateless_uniform(tensor(MIX_INT64, MIX_SHAPE(3), NUMBERS(1, 0, 0)), MIX_SHAPE(2), MIX_FLOAT32),
          MIX_VALUE_ERROR, "random_uniform", "int64 (3)");
  refused(mix_stateless_uniform(tensor(MIX_INT32, MIX_SHAPE(2), NUMBERS(1, 0)), MIX_SHAPE(2), MIX_FLOAT32),
          MIX_TYPE_ERROR, "random_uniform", "int32");
  refused(mix_stateless_truncated_normal(key, MIX_SHAPE(-1), MIX_FLOAT32), MIX_VALUE_ERROR,
          "random_truncated_normal", "None");
}

/* Results whose size does not fit 64 bits are errors in every rule. */
static void too_large(void **state) {
  (void)state;
  int64_t huge = INT64_C(1) << 40;
  mix_tensor *column = ones(MIX_FLOAT32, MIX_SHAPE(huge, 1)), *row = ones(MIX_FLOAT32, MIX_SHAPE(1, huge));
  refused(mix_add(column, row), MIX_VALUE_ERROR, "add", "(1099511627776, 1099511627776)", "more elements",
          "work on parts");
  refused(mix_matmul(column, row, false, false), MIX_VALUE_ERROR, "matmul", "more elements");
  refused(mix_broadcast_to(column, MIX_SHAPE(huge, huge)), MIX_VALUE_ERROR, "broadcast_to");
  refused(mix_pad(column, MIX_SHAPE(0, huge), MIX_SHAPE(0, 0), 0), MIX_VALUE_ERROR, "pad");
  refused(mix_one_hot(ones(MIX_INT32, MIX_SHAPE(huge)), huge, MIX_FLOAT32), MIX_VALUE_ERROR, "one_hot");
  refused(mix_gather(row, ones(MIX_INT32, MIX_SHAPE(huge)), 0), MIX_VALUE_ERROR, "gather",
          "(1099511627776, 1099511627776)");
  mix_tensor *most = mix_broadcast_to(ones(MIX_FLOAT32, MIX_SHAPE(1)), MIX_SHAPE((INT64_C(1) << 60) - 1)),
             *nine[9];
  for (int i = 0; i < 9; i++) nine[i] = most;
  refused(mix_concat(2, nine, 0), MIX_VALUE_ERROR, "concat", "(2305843009213693950)", "more elements");
  refused(mix_concat(9, nine, 0), MIX_VALUE_ERROR, "concat",
          "more elements"); /* the dimension itself would overflow */
  refused(mix_pad(column, MIX_SHAPE(INT64_MAX, 0), MIX_SHAPE(0, 0), 0), MIX_VALUE_ERROR, "pad", "axis 0");
  refused(mix_slice(column, MIX_SHAPE(INT64_MAX, 0), MIX_SHAPE(5, 1)), MIX_VALUE_ERROR, "slice",
          "9223372036854775807 to 9223372036854775807");
  refused(mix_reshape(column, MIX_SHAPE(huge, huge)), MIX_VALUE_ERROR, "reshape",
          "(1099511627776, 1099511627776)");
  refused(mix_stateless_uniform(ones(MIX_INT64, MIX_SHAPE(2)), MIX_SHAPE(huge, huge), MIX_FLOAT32),
          MIX_VALUE_ERROR, "random_uniform", "(1099511627776, 1099511627776)");
  refused(mix_tensor_from(&huge, MIX_FLOAT32, MIX_SHAPE(huge, huge)), MIX_VALUE_ERROR, "tensor_from",
          "(1099511627776, 1099511627776)", "fewer than 2^60");
  refused(mix_tensor_wrap(&huge, MIX_FLOAT32, MIX_SHAPE(huge, huge), NULL), MIX_VALUE_ERROR, "tensor_wrap",
          "too large");
}

/* The sum that undoes broadcasting creates no node if nothing was broadcast. */
static void reduce_to_shape(void **state) {
  (void)state;
  mix_tensor *x = ones(MIX_FLOAT32, MIX_SHAPE(4, 2, 3));
  assert_ptr_equal(mix_reduce_to_shape(x, MIX_SHAPE(4, 2, 3)), x);
  has_type(mix_reduce_to_shape(x, MIX_SHAPE(2, 1)), MIX_FLOAT32, MIX_SHAPE(2, 1));
  has_type(mix_reduce_to_shape(x, MIX_SCALAR), MIX_FLOAT32, MIX_SCALAR);
  mix_tensor *bias = mix_reduce_to_shape(x, MIX_SHAPE(3));
  has_type(bias, MIX_FLOAT32, MIX_SHAPE(3));
  assert_ptr_equal(bias->node->op, &mix_op_reduce_sum);
  mix_tensor *view = mix_reduce_to_shape(ones(MIX_FLOAT32, MIX_SHAPE(1, 3)), MIX_SHAPE(3));
  has_type(view, MIX_FLOAT32, MIX_SHAPE(3));
  assert_ptr_equal(view->node->op, &mix_op_reshape);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(unary_operations),
      TEST(binary_operations),
      TEST(errors_stand),
      TEST(add_n),
      TEST(select_and_clip),
      TEST(bias),
      TEST(casts),
      TEST(reductions),
      TEST(products),
      TEST(positions_and_finite),
      TEST(other_bits),
      TEST(indices),
      TEST(softmax_and_cross_entropies),
      TEST(reshaping),
      TEST(joining_and_cutting),
      TEST(sources),
      TEST(too_large),
      TEST(reduce_to_shape),
  };
  return cmocka_run_group_tests_name("ops/shapes", tests, NULL, NULL);
}
