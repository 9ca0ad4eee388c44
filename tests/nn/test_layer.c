/* Layers: names, building, weights, trainable, input specification, training flag, records of symbolic calls,
 * configs. */
#include "nn/custom.h"
#include "nn/config.h"
#include "graph/capture.h"

static void names(void **state) {
  (void)state;
  static const char *const pairs[][2] = {{"Dense", "dense"},
                                         {"Conv2D", "conv2d"},
                                         {"Conv2DTranspose", "conv2d_transpose"},
                                         {"MaxPooling2D", "max_pooling2d"},
                                         {"GlobalAveragePooling1D", "global_average_pooling1d"},
                                         {"SimpleRNN", "simple_rnn"},
                                         {"ReLU", "re_lu"},
                                         {"LeakyReLU", "leaky_re_lu"},
                                         {"PReLU", "p_re_lu"},
                                         {"ELU", "elu"},
                                         {"GRUCell", "gru_cell"},
                                         {"LSTM", "lstm"},
                                         {"BatchNormalization", "batch_normalization"},
                                         {"MultiHeadAttention", "multi_head_attention"},
                                         {"My-Layer", "my_layer"}};
  char text[160];
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
    assert_string_equal(mix_snake_case(pairs[i][0], false, text, sizeof text), pairs[i][1]);
  assert_string_equal(mix_snake_case("_Secret", true, text, sizeof text), "private__secret");
  assert_string_equal(mix_layer_name(mix_dense(.units = 1)), "dense");
  assert_string_equal(mix_layer_name(mix_dense(.units = 1)), "dense_1");
  assert_string_equal(mix_layer_name(mix_dense(.units = 1, .name = "head")), "head");
  assert_string_equal(mix_layer_name(mix_dense(.units = 1)), "dense_2");
  mix_clear_names();
  assert_string_equal(mix_layer_name(mix_dense(.units = 1)), "dense");
}
static void input_names(void **state) {
  (void)state;
  int output;
  mix_input(.shape = MIX_SHAPE(1));
  mix_layer_call *call = mix_tensor_history(mix_input(.shape = MIX_SHAPE(1)), &output);
  assert_string_equal(mix_layer_name(call->layer), "input_2");
  assert_null(call->inputs);
  mix_set_semantics("keras3");
  call = mix_tensor_history(mix_input(.shape = MIX_SHAPE(1), .batch_size = 5), &output);
  assert_string_equal(mix_layer_name(call->layer), "input_layer");
  assert_string_equal(
      mix_layer_config(call->layer),
      "{\"batch_shape\": [5, 1], \"dtype\": \"float32\", \"sparse\": false, \"ragged\": false, \"name\": "
      "\"input_layer\", \"optional\": false}");
}

/* ---- Dense ---- */

static void dense_computes(void **state) {
  (void)state;
  mix_layer *layer = mix_dense(2, .name = "d"); /* units may come first without a name */
  mix_tensor *x = MATRIX(MIX_FLOAT32, 2, 3, 1, 2, 3, -1, 0, 1);
  mix_call(layer, x);
  assert_true(mix_layer_built(layer));
  mix_layer_set_weights(
      layer, mix_list_of(MATRIX(MIX_FLOAT64, 3, 2, 1, 2, 3, 4, 5, 6), VECTOR(MIX_FLOAT32, 10, -20)));
  EXPECT_EXACT(mix_call(layer, x), 32, 8, 14, -16); /* integers: exact */
  mix_layer *relu =
      mix_dense(.units = 2, .activation = "relu", .no_bias = true, .kernel_initializer = "ones");
  EXPECT_EXACT(mix_call(relu, x), 6, 6, 0, 0);
  assert_int_equal(mix_list_count(mix_layer_weights(relu)), 1);
}
static void dense_of_higher_rank(void **state) {
  (void)state;
  mix_layer *layer = mix_dense(.units = 2, .kernel_initializer = "ones");
  mix_tensor *y = mix_call(layer, mix_reshape(mix_range(0, 12, 1, MIX_FLOAT32), MIX_SHAPE(2, 2, 3)));
  expect_shape(y, MIX_SHAPE(2, 2, 2));
  EXPECT_EXACT(y, 3, 3, 12, 12, 21, 21, 30, 30);
  expect_shape(mix_call(layer, mix_input(.shape = MIX_SHAPE(MIX_UNKNOWN, 3))),
               MIX_SHAPE(MIX_UNKNOWN, MIX_UNKNOWN, 2));
  expect_shape(mix_call(layer, mix_input(.shape = MIX_SHAPE(7, 3))), MIX_SHAPE(MIX_UNKNOWN, 7, 2));
}
/* Nothing to sum: the result is the bias. */
static void dense_of_no_features(void **state) {
  (void)state;
  mix_tensor *y = mix_call(mix_dense(.units = 2, .bias_initializer = "ones"),
                           mix_fill(MIX_SHAPE(2, 3, 0), 0, MIX_FLOAT32));
  expect_shape(y, MIX_SHAPE(2, 3, 2));
  EXPECT_EXACT(y, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);
}
static void shapes_of_glu(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  char text[40];
  mix_layer *layers[] = {mix_activation("glu"), mix_dense(.units = 4, .activation = "glu")};
  for (int i = 0; i < 2; i++)
    assert_string_equal(mix_shape_text(mix_layer_output_shape(layers[i], MIX_SHAPE(2, 4)), text, sizeof text),
                        "(2, 2)");
}
static void L23_dense_weights(void **state) {
  (void)state;
  mix_layer *layer = mix_dense(.units = 64);
  mix_layer_build(layer, MIX_SHAPE(MIX_UNKNOWN, 784));
  mix_list *weights = mix_layer_weights(layer);
  assert_string_equal(mix_variable_name(mix_list_get(weights, 0)), "dense/kernel");
  assert_string_equal(mix_variable_name(mix_list_get(weights, 1)), "dense/bias");
  mix_tensor *kernel = mix_variable_value(mix_list_get(weights, 0));
  expect_shape(kernel, MIX_SHAPE(784, 64));
  double limit = sqrt(6.0 / 848), low = mix_tensor_item(mix_reduce_min(kernel, MIX_ALL_AXES, false)),
         high = mix_tensor_item(mix_reduce_max(kernel, MIX_ALL_AXES, false));
  assert_true(fabs(limit - 0.0841158) < 5e-8);
  assert_true(low >= -limit - 1e-8 && high <= limit + 1e-8); /* float32 rounding of the limit */
  assert_true(low < -0.999 * limit &&
              high >
                  0.999 * limit); /* of 50176 numbers: missed with probability (1 - 0.0005)^50176 = 1e-11 */
}
static void dense_errors(void **state) {
  (void)state;
  expect_refused(mix_dense(.units = 0), MIX_VALUE_ERROR, "units is 0");
  expect_refused(mix_dense(.units = 1, .activation = "loud"), MIX_VALUE_ERROR, "loud");
  expect_refused(mix_dense(.units = 1, .dtype = "abc"), MIX_VALUE_ERROR, "abc");
  expect_refused(mix_dense(.units = 1, .dtype = "float32", .policy = mix_policy_new("float32")),
                 MIX_VALUE_ERROR, "both");
  expect_refused(mix_dense(.units = 1, .kernel_initializer = "bogus"), MIX_VALUE_ERROR, "bogus");
  mix_layer *layer = mix_dense(.units = 1);
  expect_refused(mix_call(layer, VECTOR(MIX_FLOAT32, 1, 2)), MIX_VALUE_ERROR, "rank 2");
  mix_call(layer, mix_fill(MIX_SHAPE(1, 3), 1, MIX_FLOAT32));
  expect_refused(mix_call(layer, mix_fill(MIX_SHAPE(1, 4), 1, MIX_FLOAT32)), MIX_VALUE_ERROR, "size 3");
}

/* ---- other layers ---- */

static void activation_and_W07(void **state) {
  (void)state;
  mix_tensor *x = VECTOR(MIX_FLOAT16, 1, -2);
  mix_tensor *y = mix_call(mix_activation("linear", .dtype = "float32"), x);
  expect_dtype(y, MIX_FLOAT32); /* W07: a pure cast */
  EXPECT_EXACT(y, 1, -2);
  mix_tensor *z = VECTOR(MIX_FLOAT32, 1, -2);
  EXPECT_EXACT(mix_call(mix_activation("linear", .dtype = "float32"), z), 1, -2);
  EXPECT_EXACT(mix_call(mix_activation("relu"), z), 1, 0);
  expect_refused(mix_activation(NULL), MIX_TYPE_ERROR, "name");
  expect_refused(mix_activation("softmaxx"), MIX_VALUE_ERROR, "softmaxx");
}
static void flatten(void **state) {
  (void)state;
  mix_tensor *x = mix_reshape(mix_range(0, 24, 1, MIX_FLOAT32), MIX_SHAPE(1, 2, 3, 4));
  expect_shape(mix_call(mix_flatten(0), x), MIX_SHAPE(1, 24));
  /* L28: (batch, 2, 3, 4) channels first becomes (batch, 3, 4, 2) */
  mix_tensor *y = mix_call(mix_flatten(.data_format = "channels_first"), x);
  expect_shape(y, MIX_SHAPE(1, 24));
  double values[24];
  mix_tensor_read(y, MIX_FLOAT64, values, 24);
  for (int i = 0; i < 24; i++) assert_true(values[i] == (i % 2) * 12 + i / 2);
  expect_shape(mix_call(mix_flatten(0), VECTOR(MIX_FLOAT32, 1, 2, 3)), MIX_SHAPE(3, 1));
  expect_shape(mix_call(mix_flatten(0), mix_input(.shape = MIX_SHAPE(28, 28))), MIX_SHAPE(MIX_UNKNOWN, 784));
  expect_refused(mix_flatten(.data_format = "sideways"), MIX_VALUE_ERROR, "sideways");
}
static void L29_dropout(void **state) {
  (void)state;
  enum { N = 4096 };
  double values[N];
  mix_layer *layer = mix_dropout(.rate = 0.25, .seed = 3);
  mix_tensor *x = mix_fill(MIX_SHAPE(1, N), 3, MIX_FLOAT32);
  for (int round = 0; round < 2; round++) {
    mix_tensor *y = mix_call(layer, x, .training = MIX_TRUE);
    mix_tensor_read(y, MIX_FLOAT64, values, N);
    int kept = 0;
    for (int i = 0; i < N; i++) {
      assert_true(values[i] == 0 || fabs(values[i] - 4) < 1e-6); /* 3 * 4/3 in float32 */
      kept += values[i] != 0;
    }
    assert_true(abs(kept - 3072) < 170); /* 6 deviations of a binomial: sqrt(4096 * 3/16) = 27.7 */
  }
  double again[N];
  mix_tensor_read(mix_call(layer, x, .training = MIX_TRUE), MIX_FLOAT64, again, N);
  assert_memory_not_equal(values, again, sizeof again); /* the generator advances */
  mix_tensor_read(mix_call(layer, x), MIX_FLOAT64, values, N);
  for (int i = 0; i < N; i++) assert_true(values[i] == 3);
  EXPECT_EXACT(mix_call(mix_dropout(.rate = 1), VECTOR(MIX_FLOAT32, 1, 2), .training = MIX_TRUE), 0, 0);
  EXPECT_EXACT(mix_call(mix_dropout(.rate = 0), VECTOR(MIX_FLOAT32, 1, 2), .training = MIX_TRUE), 1, 2);
  expect_refused(mix_dropout(.rate = 1.5), MIX_VALUE_ERROR, "[0, 1]");
  expect_dtype(mix_call(mix_dropout(.rate = 0.5, .dtype = "mixed_float16"), x, .training = MIX_TRUE),
               MIX_FLOAT16);
}
static void dropout_noise_shape(void **state) {
  (void)state;
  double values[40];
  mix_layer *layer = mix_dropout(.rate = 0.5, .noise_shape = MIX_SHAPE(MIX_UNKNOWN, 1), .seed = 11);
  mix_tensor_read(mix_call(layer, mix_fill(MIX_SHAPE(10, 4), 1, MIX_FLOAT32), .training = MIX_TRUE),
                  MIX_FLOAT64, values, 40);
  for (int i = 0; i < 40; i++) assert_true(values[i] == values[i / 4 * 4]);
}

/* ---- weights ---- */

static mix_list *pass(mix_layer *layer, const mix_call_args *args) {
  for (int i = 0; i < mix_list_count(layer->layers); i++)
    mix_call(mix_list_get(layer->layers, i), mix_call_input(args, 0));
  return mix_list_of(mix_call_input(args, 0));
}
static mix_status two_weights(mix_layer *layer, int count, const mix_shape *shapes) {
  (void)count, (void)shapes;
  mix_layer_add_weight(layer, "frozen", .initializer = "zeros", .not_trainable = true);
  mix_layer_add_weight(layer, "free", .initializer = "ones");
  return mix_error();
}
static const mix_layer_class parent_class = {
    .size = sizeof(mix_layer_class), .name = "Parent", .build = two_weights, .call = pass};

static void order_of_weights(void **state) {
  (void)state;
  static const char *const tf_keras[] = {"parent/free", "parent/child/free", "parent/frozen",
                                         "parent/child/frozen"};
  static const char *const keras3[] = {"parent/free", "parent/frozen", "parent/child/free",
                                       "parent/child/frozen"};
  for (int generation = 0; generation < 2; generation++) {
    mix_clear_names();
    mix_set_semantics(generation ? "keras3" : "tf_keras");
    mix_layer *parent = mix_layer_new(&parent_class), *child = mix_layer_new(&parent_class, .name = "child");
    mix_layer_add_layer(parent, child);
    mix_call(parent, mix_fill(MIX_SHAPE(1, 1), 0, MIX_FLOAT32));
    mix_list *weights = mix_layer_weights(parent);
    assert_int_equal(mix_list_count(weights), 4);
    for (int i = 0; i < 4; i++)
      assert_string_equal(mix_variable_name(mix_list_get(weights, i)), (generation ? keras3 : tf_keras)[i]);
    assert_int_equal(mix_list_count(mix_layer_trainable_weights(parent)), 2);
    mix_layer_set_trainable(child, false);
    assert_int_equal(mix_list_count(mix_layer_trainable_weights(parent)), 1);
    assert_int_equal(mix_list_count(mix_layer_non_trainable_weights(parent)), 3);
    mix_layer_set_trainable(parent, false);
    assert_int_equal(mix_list_count(mix_layer_trainable_weights(parent)), 0);
    mix_layer_set_trainable(parent, true);
    assert_true(mix_layer_trainable(child));
    assert_int_equal(mix_list_count(mix_layer_trainable_weights(parent)), 2);
  }
}
static void set_weights_errors(void **state) {
  (void)state;
  mix_layer *layer = mix_dense(.units = 2, .kernel_initializer = "ones");
  mix_layer_build(layer, MIX_SHAPE(1, 2));
  expect_status(mix_layer_set_weights(layer, mix_list_of(VECTOR(MIX_FLOAT32, 1, 2))), MIX_VALUE_ERROR,
                "expected 2");
  expect_status(mix_layer_set_weights(layer, mix_list_of(mix_fill(MIX_SHAPE(2, 2), 5, MIX_FLOAT32),
                                                         VECTOR(MIX_FLOAT32, 1, 2, 3))),
                MIX_VALUE_ERROR, "dense/bias");
  EXPECT_EXACT(mix_list_get(mix_layer_get_weights(layer), 0), 1, 1, 1, 1); /* nothing changed */
}
static void get_weights_are_copies(void **state) {
  (void)state;
  mix_layer *layer = mix_dense(.units = 1, .kernel_initializer = "ones");
  mix_layer_build(layer, MIX_SHAPE(1, 2));
  mix_list *before = mix_layer_get_weights(layer);
  mix_layer_set_weights(layer,
                        mix_list_of(mix_fill(MIX_SHAPE(2, 1), 9, MIX_FLOAT32), VECTOR(MIX_FLOAT32, 3)));
  EXPECT_EXACT(mix_list_get(before, 0), 1, 1);
  EXPECT_EXACT(mix_list_get(mix_layer_get_weights(layer), 0), 9, 9);
}
static void weights_do_not_depend_on_the_callers_scope(void **state) {
  (void)state;
  mix_dtype former;
  mix_autocast_begin(MIX_FLOAT16, &former);
  mix_layer *layer = mix_dense(.units = 1, .dtype = "float32");
  mix_call(layer, mix_fill(MIX_SHAPE(1, 2), 1, MIX_FLOAT32));
  mix_autocast_end(former);
  assert_int_equal(mix_variable_true_dtype(mix_list_get(mix_layer_weights(layer), 0)), MIX_FLOAT32);
}
static void infer_takes_the_first_inputs_dtype(void **state) {
  (void)state;
  mix_layer *layer = mix_dense(.units = 1, .dtype = "_infer");
  expect_dtype(mix_call(layer, mix_fill(MIX_SHAPE(1, 2), 1, MIX_FLOAT64)), MIX_FLOAT64);
  assert_int_equal(mix_layer_variable_dtype(layer), MIX_FLOAT64);
  expect_dtype(mix_call(layer, mix_fill(MIX_SHAPE(1, 2), 1, MIX_FLOAT16)), MIX_FLOAT64);
}

/* ---- calls ---- */

static bool training_seen[3];
static mix_list *see_training(mix_layer *layer, const mix_call_args *args) {
  int depth = (int)(intptr_t)((probe *)mix_layer_data(layer))->context;
  training_seen[depth] = args->training;
  if (mix_list_count(layer->layers))
    mix_call(mix_list_get(layer->layers, 0), mix_call_input(args, 0),
             .training = depth == 1 ? MIX_FALSE : MIX_INHERIT);
  return mix_list_of(mix_call_input(args, 0));
}
static void training_flag(void **state) {
  (void)state;
  mix_layer *layers[3];
  for (int i = 0; i < 3; i++) layers[i] = probe_new(NULL, see_training, (void *)(intptr_t)i);
  mix_layer_add_layer(layers[0], layers[1]);
  mix_layer_add_layer(layers[1], layers[2]);
  mix_tensor *x = mix_fill(MIX_SHAPE(1, 1), 0, MIX_FLOAT32);
  mix_call(layers[0], x);
  assert_false(training_seen[0] || training_seen[1] || training_seen[2]);
  mix_call(layers[0], x, .training = MIX_TRUE);
  assert_true(training_seen[0] && training_seen[1]); /* inherited */
  assert_false(training_seen[2]);                    /* explicit wins over inherited */
  mix_call(layers[0], x);
  assert_false(training_seen[0]); /* the call before has ended */
}
static void symbolic_calls_are_recorded(void **state) {
  (void)state;
  int output = -1;
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(3), .name = "x");
  mix_layer *dense = mix_dense(.units = 2), *linear = mix_activation("linear");
  mix_tensor *h = mix_call(dense, x, .training = MIX_TRUE), *y = mix_call(linear, h);
  mix_layer_call *first = mix_tensor_history(h, &output), *second = mix_tensor_history(y, &output);
  assert_ptr_equal(first->layer, dense);
  assert_int_equal(first->training, MIX_TRUE);
  assert_ptr_equal(mix_list_get(first->inputs, 0), x);
  assert_ptr_equal(second->layer, linear); /* although linear returns its input */
  assert_ptr_not_equal(y, h);
  assert_true(first->sequence < second->sequence);
  assert_true(mix_tensor_is_symbolic(y));
  /* Calls on real tensors are not recorded. */
  assert_null(mix_tensor_history(mix_call(dense, mix_fill(MIX_SHAPE(1, 3), 1, MIX_FLOAT32)), &output));
  mix_list *two = mix_call_outputs(mix_layer_new(&my_layer_class), mix_list_of(x, h));
  mix_layer_call *call = mix_tensor_history(mix_list_get(two, 1), &output);
  assert_int_equal(output, 1);
  assert_true(call->inputs_are_list);
  /* inner calls are not recorded themselves */
  mix_layer *parent = mix_layer_new(&parent_class);
  mix_layer_add_layer(parent, mix_activation("relu"));
  assert_ptr_equal(mix_tensor_history(mix_call(parent, x), &output)->layer, parent);
}
static void node_scopes(void **state) {
  (void)state;
  mix_tensor *y = mix_call(mix_dense(.units = 2, .name = "head"), mix_input(.shape = MIX_SHAPE(3)));
  assert_string_equal(y->node->scope, "head");
  assert_true(!mix_graph_scope() || !mix_graph_scope()[0]);
}
static void masks_are_passed_on(void **state) {
  (void)state;
  mix_tensor *x = mix_fill(MIX_SHAPE(2, 3), 1, MIX_FLOAT32), *mask = mix_fill(MIX_SHAPE(2), 1, MIX_BOOL);
  assert_ptr_equal(mix_call(mix_dense(.units = 2), x, .mask = mask)->mask, mask);
  mix_tensor *y = mix_call(mix_activation("linear"), x, .mask = mask);
  assert_ptr_equal(y->mask, mask);
  assert_null(x->mask);                           /* although y is x */
  assert_null(mix_call(mix_flatten(0), y)->mask); /* does not support masks */
  assert_ptr_equal(mix_call(mix_dense(.units = 2), y)->mask, mask);
}
static void input_specification(void **state) {
  (void)state;
  mix_layer *layer = mix_layer_new(&my_layer_class, .name = "checked");
  mix_input_spec spec = {
      .size = sizeof spec, .min_rank = 2, .max_rank = 3, .axis_count = 1, .axes = {-1}, .axis_sizes = {4}};
  mix_layer_set_input_spec(layer, &spec);
  expect_refused(mix_call(layer, VECTOR(MIX_FLOAT32, 1, 2, 3, 4)), MIX_VALUE_ERROR, "at least rank 2");
  expect_refused(mix_call(layer, mix_fill(MIX_SHAPE(1, 1, 1, 4), 1, MIX_FLOAT32)), MIX_VALUE_ERROR,
                 "at most rank 3");
  expect_refused(mix_call(layer, mix_fill(MIX_SHAPE(2, 3), 1, MIX_FLOAT32)), MIX_VALUE_ERROR,
                 "checked: input 0 has shape (2, 3)");
  assert_non_null(mix_call(layer, mix_fill(MIX_SHAPE(2, 4), 1, MIX_FLOAT32)));
  spec = (mix_input_spec){.size = sizeof spec, .rank = 3};
  mix_layer_set_input_spec(layer, &spec);
  expect_refused(mix_call(layer, mix_fill(MIX_SHAPE(2, 4), 1, MIX_FLOAT32)), MIX_VALUE_ERROR,
                 "expected rank 3");
}
static mix_list *fails(mix_layer *layer, const mix_call_args *args) {
  (void)layer, (void)args;
  return mix_list_of(mix_add(mix_scalar(1, MIX_FLOAT16), mix_scalar(1, MIX_FLOAT32)));
}
static const mix_layer_class failing_class = {
    .size = sizeof(mix_layer_class), .name = "Failing", .call = fails};
static void a_failing_call_restores_the_scopes(void **state) {
  (void)state;
  mix_layer *layer = mix_layer_new(&failing_class, .dtype = "mixed_float16");
  expect_refused(mix_call(layer, VECTOR(MIX_FLOAT32, 1)), MIX_TYPE_ERROR, "float16");
  assert_int_equal(mix_cast_dtype(), MIX_DTYPE_NONE);
  int output; /* only a call that no other layer makes has a history */
  assert_non_null(mix_tensor_history(mix_call(mix_flatten(0), mix_input(.shape = MIX_SHAPE(2))), &output));
  assert_true(!mix_graph_scope() || !mix_graph_scope()[0]);
}

/* ---- losses ---- */

static void penalties(void **state) {
  (void)state;
  mix_layer *layer = mix_dense(.units = 2, .kernel_initializer = "ones",
                               .kernel_regularizer = mix_regularizer_new("l2", .l2 = 0.5),
                               .activity_regularizer = mix_regularizer_new("l1", .l1 = 1));
  mix_tensor *x = mix_fill(MIX_SHAPE(4, 3), 1, MIX_FLOAT32);
  for (int round = 0; round < 2; round++) { /* the second call replaces the losses of the first */
    mix_call(layer, x);
    mix_list *losses = mix_layer_losses(layer);
    assert_int_equal(mix_list_count(losses), 2);
    EXPECT_EXACT(mix_list_get(losses, 0), 4 * 2 * 3 / 4.0); /* divided by the batch of 4 */
    EXPECT_EXACT(mix_list_get(losses, 1), 0.5 * 6);
  }
  mix_set_semantics("keras3");
  layer = mix_dense(.units = 2, .kernel_initializer = "ones",
                    .activity_regularizer = mix_regularizer_new("l1", .l1 = 1));
  mix_call(layer, x);
  EXPECT_EXACT(mix_list_get(mix_layer_losses(layer), 0), 6); /* Keras 3.15 divides too */
}
/* Keras 3 penalises trainable weights only, tf_keras all weights. */
static void penalties_of_frozen_weights(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    mix_set_semantics(i ? "keras3" : "tf_keras");
    mix_layer *layer = mix_dense(.units = 2, .not_trainable = true,
                                 .kernel_regularizer = mix_regularizer_new("l2", .l2 = 0.5));
    mix_call(layer, mix_fill(MIX_SHAPE(4, 3), 1, MIX_FLOAT32));
    assert_int_equal(mix_list_count(mix_layer_losses(layer)), i ? 0 : 1);
  }
}

/* A layer inside another: weights, losses and generators are joined. A loss added in a call stays until the
 * next call. */
static mix_list *around_call(mix_layer *layer, const mix_call_args *args) {
  mix_layer **inner = mix_layer_data(layer);
  mix_tensor *y = mix_call(*inner, mix_call_input(args, 0));
  mix_layer_add_loss(layer, mix_reduce_sum(y, MIX_ALL_AXES, false));
  return mix_list_of(y);
}
static void a_layer_inside_another(void **state) {
  (void)state;
  static const mix_layer_class around_class = {.size = sizeof(mix_layer_class),
                                               .name = "Around",
                                               .instance_size = sizeof(mix_layer *),
                                               .call = around_call};
  mix_layer *layer = mix_layer_new(&around_class),
            *inner = mix_dense(.units = 2, .kernel_initializer = "ones");
  *(mix_layer **)mix_layer_data(layer) = inner;
  assert_int_equal(mix_list_count(mix_layer_layers(layer)), 0);
  assert_ptr_equal(mix_layer_add_layer(layer, inner), inner);
  assert_int_equal(mix_list_count(mix_layer_layers(layer)), 1);
  assert_ptr_equal(mix_list_get(mix_layer_layers(layer), 0), inner);
  assert_int_equal(mix_layer_add_generator(layer, mix_generator_new(5)), MIX_OK);
  assert_int_equal(mix_list_count(mix_layer_generators(layer)), 1);
  for (int round = 0; round < 2; round++) {
    mix_call(layer, mix_fill(MIX_SHAPE(4, 3), 1, MIX_FLOAT32));
    assert_int_equal(mix_list_count(mix_layer_losses(layer)), 1);
    EXPECT_EXACT(mix_list_get(mix_layer_losses(layer), 0), 4 * 2 * 3);
  }
  assert_int_equal(mix_list_count(mix_layer_weights(layer)), 2);
}

/* ---- configs ---- */

static void config_of_dense(void **state) {
  (void)state;
  mix_layer *layer = mix_dense(.units = 3, .activation = "relu", .dtype = "mixed_float16", .name = "d",
                               .kernel_regularizer = mix_regularizer_new("l2", .l2 = 0.25),
                               .bias_constraint = mix_constraint_new("non_neg"),
                               .kernel_initializer_object = mix_initializer_new("orthogonal", .gain = 2),
                               .not_trainable = true);
  const char *text = mix_layer_config(layer);
  mix_layer *again = mix_layer_from_config("Dense", text, NULL);
  assert_non_null(again);
  assert_string_equal(mix_layer_config(again), text);
  assert_string_equal(mix_layer_name(again), "d");
  assert_string_equal(mix_policy_name(mix_layer_policy(again)), "mixed_float16");
  assert_false(mix_layer_trainable(again));
  assert_non_null(strstr(text, "\"units\": 3"));
  assert_non_null(strstr(text, "\"activation\": \"relu\""));
  assert_non_null(
      strstr(text, "\"class_name\": \"Orthogonal\", \"config\": {\"gain\": 2.0, \"seed\": null}"));
}
static void configs_of_the_others(void **state) {
  (void)state;
  struct {
    mix_layer *layer;
    const char *own;
  } rows[] = {{mix_activation("relu"), "\"activation\": \"relu\""},
              {mix_flatten(0), "\"data_format\": \"channels_last\""},
              {mix_dropout(.rate = 0.5, .noise_shape = MIX_SHAPE(MIX_UNKNOWN, 1), .seed = 9),
               "\"rate\": 0.5, \"seed\": 9, \"noise_shape\": [null, 1]"}};
  for (int i = 0; i < 3; i++) {
    const char *text = mix_layer_config(rows[i].layer);
    assert_non_null(strstr(text, rows[i].own));
    assert_string_equal(
        mix_layer_config(mix_layer_from_config(mix_layer_class_name(rows[i].layer), text, NULL)), text);
  }
  expect_refused(mix_layer_from_config("Telepathy", "{}", NULL), MIX_VALUE_ERROR, "Telepathy");
}
/* Configs as Keras 3.15 and tf_keras 2.21 write them, for classes that differ from the others: read, and
 * written the same. */
static void configs_of_keras_round_trip(void **state) {
  (void)state;
  static const struct {
    const char *semantics, *class_name, *config;
  } rows[] = {
      {"keras3", "SpatialDropout2D",
       "{\"name\": \"s\", \"dtype\": \"float32\", \"rate\": 0.25, \"data_format\": \"channels_first\", "
       "\"seed\": 3}"},
      {"keras3", "LeakyReLU",
       "{\"name\": \"l\", \"trainable\": true, \"dtype\": {\"module\": \"keras\", "
       "\"class_name\": \"DTypePolicy\", \"config\": {\"name\": \"float32\"}, \"registered_name\": null}, "
       "\"negative_slope\": 0.5}"},
      {"tf_keras", "LeakyReLU",
       "{\"name\": \"l\", \"trainable\": true, \"dtype\": \"float32\", \"alpha\": 0.5}"},
      {"experimental", "LeakyReLU",
       "{\"name\": \"l\", \"trainable\": true, \"dtype\": \"float32\", \"alpha\": 0.5}"},
      {"tf_keras", "ActivityRegularization",
       "{\"name\": \"a\", \"trainable\": true, \"dtype\": \"float32\", \"l1\": 0.5, \"l2\": 0.25}"},
      {"tf_keras", "Normalization",
       "{\"name\": \"n\", \"trainable\": true, \"dtype\": \"float32\", \"axis\": [], \"invert\": false, "
       "\"mean\": 1.0, \"variance\": 4.0}"},
      {"tf_keras", "Normalization",
       "{\"name\": \"n\", \"trainable\": true, \"dtype\": \"float32\", \"axis\": [-1], \"invert\": false, "
       "\"mean\": null, \"variance\": null}"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    mix_set_semantics(rows[i].semantics);
    mix_layer *layer = mix_layer_from_config(rows[i].class_name, rows[i].config, NULL);
    if (!layer) fail_msg("%s: %s", rows[i].config, mix_error_message());
    assert_string_equal(mix_layer_config(layer), rows[i].config);
  }
  /* Keras 3 writes floatx for a layer whose results are indices; they stay integers. */
  mix_set_semantics("keras3");
  mix_layer *bins =
      mix_layer_from_config("Discretization",
                            "{\"bin_boundaries\": [0.0, 1.0], \"num_bins\": null, \"output_mode\": \"int\", "
                            "\"name\": \"b\", \"dtype\": \"float32\"}",
                            NULL);
  assert_non_null(bins);
  assert_null(strstr(mix_layer_config(bins), "trainable"));
  /* A given seed is kept. */
  mix_layer *dense =
      mix_dense(.units = 2, .kernel_initializer_object = mix_initializer_new("random_normal", .seed = 7));
  assert_non_null(strstr(mix_layer_config(dense), "\"seed\": 7"));
  mix_set_semantics("tf_keras");
}
static void layers_are_serialised_and_created_again(void **state) {
  (void)state;
  static const char *const generations[] = {"tf_keras", "keras3", "experimental"};
  for (int g = 0; g < 3; g++) {
    mix_set_semantics(generations[g]);
    mix_layer *layer = mix_dense(.units = 3, .activation = "relu", .name = "d", .dtype = "mixed_bfloat16");
    const char *text = mix_layer_serialize(layer);
    assert_non_null(text);
    assert_int_equal(!strncmp(text, "{\"module\": \"keras.layers\", \"class_name\": \"Dense\"", 48), g < 2);
    assert_int_equal(!strncmp(text, "{\"class_name\": \"Dense\", \"config\": {", 35), g == 2);
    mix_layer *again = mix_layer_deserialize(text, NULL);
    assert_non_null(again);
    assert_string_equal(mix_layer_serialize(again), text);
    assert_string_equal(mix_policy_name(mix_layer_policy(again)), "mixed_bfloat16");
  }
  mix_set_semantics("tf_keras");
  expect_refused(mix_layer_deserialize("{\"class_name\": \"Telepathy\", \"config\": {}}", NULL),
                 MIX_VALUE_ERROR, "Telepathy");
  expect_refused(mix_layer_deserialize("{\"class_name\": \"Dense\"}", NULL), MIX_VALUE_ERROR,
                 "class_name and config");
  expect_refused(mix_layer_deserialize("[1]", NULL), MIX_VALUE_ERROR, "class_name and config");
  expect_refused(mix_layer_deserialize("{", NULL), MIX_VALUE_ERROR, "layer_deserialize");
  expect_refused(mix_layer_deserialize(NULL, NULL), MIX_TYPE_ERROR, "layer_deserialize");
  expect_refused(mix_layer_from_config("Dense", "3", NULL), MIX_TYPE_ERROR, "no object");
}
static mix_status my_config(mix_layer *layer, mix_config *config) {
  (void)layer;
  mix_config_integer(config, "n", 3);
  mix_config_number(config, "x", 0.5);
  mix_config_boolean(config, "b", true);
  mix_config_text(config, "t", NULL);
  return mix_config_json(config, "j", "[1, 2]");
}
static void config_of_a_custom_layer(void **state) {
  (void)state;
  mix_layer_class class = my_layer_class;
  class.get_config = my_config;
  assert_string_equal(
      mix_layer_config(mix_layer_new(&class)),
      "{\"name\": \"my_layer\", \"trainable\": true, \"dtype\": \"float32\", \"n\": 3, \"x\": 0.5, "
      "\"b\": true, \"t\": null, \"j\": [1, 2]}");
}
static int finalized;
static void count_finalize(mix_layer *layer) {
  (void)layer;
  finalized++;
}
static void finalize_runs_once(void **state) {
  (void)state;
  mix_layer_class class = my_layer_class;
  class.finalize = count_finalize;
  finalized = 0;
  MIX_SCOPE { mix_layer_new(&class); }
  assert_int_equal(finalized, 1);
  expect_refused(mix_layer_new(NULL), MIX_TYPE_ERROR, "class");
  class.call = NULL;
  expect_refused(mix_layer_new(&class), MIX_VALUE_ERROR, "call");
}

/* ---- inside a capture ---- */

static mix_list *body(void *layer, mix_list *arguments) {
  return mix_list_of(mix_call(layer, mix_list_get(arguments, 0)));
}
static void built_inside_a_capture(void **state) {
  (void)state;
  mix_layer *layer = mix_dense(.units = 2, .kernel_initializer = "ones", .bias_initializer = "ones",
                               .dtype = "mixed_float16");
  mix_function *function = mix_function_new(body, layer);
  for (int i = 0; i < 2; i++) {
    mix_tensor *y =
        mix_list_get(mix_function_call(function, mix_list_of(MATRIX(MIX_FLOAT32, 1, 3, 1, 2, 3))), 0);
    expect_dtype(y, MIX_FLOAT16);
    EXPECT_EXACT(y, 7, 7);
  }
  mix_layer *random = mix_dense(.units = 4);
  assert_non_null(
      mix_function_call(mix_function_new(body, random), mix_list_of(MATRIX(MIX_FLOAT32, 1, 3, 1, 2, 3))));
  assert_true(mix_tensor_item(mix_reduce_max(mix_abs(mix_list_get(mix_layer_get_weights(random), 0)),
                                             MIX_ALL_AXES, false)) > 0);
}
static mix_list *train_body(void *layer, mix_list *arguments) {
  return mix_list_of(mix_call(layer, mix_list_get(arguments, 0), .training = MIX_TRUE));
}
static void captured_dropout_advances(void **state) {
  (void)state;
  double a[64], b[64];
  mix_function *function = mix_function_new(train_body, mix_dropout(.rate = 0.5, .seed = 4));
  mix_list *arguments = mix_list_of(mix_fill(MIX_SHAPE(1, 64), 1, MIX_FLOAT32));
  mix_tensor_read(mix_list_get(mix_function_call(function, arguments), 0), MIX_FLOAT64, a, 64);
  mix_tensor_read(mix_list_get(mix_function_call(function, arguments), 0), MIX_FLOAT64, b, 64);
  assert_memory_not_equal(a, b, sizeof a);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(names),
                                     TEST(input_names),
                                     TEST(dense_computes),
                                     TEST(dense_of_higher_rank),
                                     TEST(dense_of_no_features),
                                     TEST(shapes_of_glu),
                                     TEST(L23_dense_weights),
                                     TEST(dense_errors),
                                     TEST(activation_and_W07),
                                     TEST(flatten),
                                     TEST(L29_dropout),
                                     TEST(dropout_noise_shape),
                                     TEST(order_of_weights),
                                     TEST(set_weights_errors),
                                     TEST(get_weights_are_copies),
                                     TEST(weights_do_not_depend_on_the_callers_scope),
                                     TEST(infer_takes_the_first_inputs_dtype),
                                     TEST(training_flag),
                                     TEST(symbolic_calls_are_recorded),
                                     TEST(node_scopes),
                                     TEST(masks_are_passed_on),
                                     TEST(input_specification),
                                     TEST(a_failing_call_restores_the_scopes),
                                     TEST(penalties),
                                     TEST(penalties_of_frozen_weights),
                                     TEST(config_of_dense),
                                     TEST(configs_of_the_others),
                                     TEST(configs_of_keras_round_trip),
                                     TEST(layers_are_serialised_and_created_again),
                                     TEST(a_layer_inside_another),
                                     TEST(config_of_a_custom_layer),
                                     TEST(finalize_runs_once),
                                     TEST(built_inside_a_capture),
                                     TEST(captured_dropout_advances)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
