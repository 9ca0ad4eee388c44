/* mix_model_export: which nodes a model becomes, dtypes, weights and their place, and what is refused. That
 * onnxruntime computes the same is tests/oracle/onnx_export.py's. */
#include "onnx/onnx_text.h"

#include "base/alloc.h"
#include <math.h>

static void assert_good(void) {
  if (mix_error() != MIX_OK) fail_msg("%s: %s", mix_status_name(mix_error()), mix_error_message());
}

static void assert_error(mix_status status, const char *part) {
  char message[2048];
  const mix_status got = mix_error_take(message, sizeof message);
  if (got != status || !strstr(message, part))
    fail_msg("got %s (%s), expected %s (%s)", mix_status_name(got), message, mix_status_name(status), part);
}

static void assert_contains(const char *text, const char *part) {
  if (!strstr(text, part)) fail_msg("no\n%s\nin\n%s", part, text);
}
static void assert_lacks(const char *text, const char *part) {
  if (strstr(text, part)) fail_msg("a\n%s\nin\n%s", part, text);
}

/* The model between an input of a shape and one layer or two. */
static mix_model *model_of(mix_shape shape, mix_layer *first, mix_layer *second) {
  mix_tensor *x = mix_input(.shape = shape, .name = "in"), *y = mix_call(first, x);
  if (second) y = mix_call(second, y);
  return mix_model_new(x, y);
}

static const char *exported(mix_model *model) {
  mix_model_export(model, in_folder("model.onnx"));
  assert_good();
  return onnx_text_of(in_folder("model.onnx"));
}

static void a_perceptron(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_model *model =
        model_of(MIX_SHAPE(4), mix_dense(3, .activation = "relu", .name = "a"), mix_dense(2, .name = "b"));
    assert_string_equal(exported(model), "ir 8\n"
                                         "opset 17\n"
                                         "input in type 1 (batch, 4)\n"
                                         "MatMul(in, a/kernel) -> functional/a/MatMul_0\n"
                                         "Add(functional/a/MatMul_0, a/bias) -> functional/a/Add_1\n"
                                         "Relu(functional/a/Add_1) -> functional/a/Relu_2\n"
                                         "MatMul(functional/a/Relu_2, b/kernel) -> functional/b/MatMul_3\n"
                                         "Add(functional/b/MatMul_3, b/bias) -> functional/b/Add_4\n"
                                         "Identity(functional/b/Add_4) -> Identity:0\n"
                                         "output Identity:0 type 1 (batch, 2)\n"
                                         "tensor (4, 3) type 1 a/kernel: 48 bytes\n"
                                         "tensor (3) type 1 a/bias: 12 bytes\n"
                                         "tensor (3, 2) type 1 b/kernel: 24 bytes\n"
                                         "tensor (2) type 1 b/bias: 8 bytes\n");
    const onnx_bytes kernel = onnx_elements(in_folder("model.onnx"), "a/kernel");
    mix_tensor *value = mix_list_get(mix_model_get_weights(model), 0);
    assert_memory_equal(kernel.at, mix_tensor_data(value), 48);
  }
}

static void several_inputs_and_outputs(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_tensor *a = mix_input(.shape = MIX_SHAPE(2), .name = "left"),
               *b = mix_input(.shape = MIX_SHAPE(2), .name = "right", .dtype = "int32");
    mix_model *model = mix_model_new(mix_list_of(a, b), mix_list_of(mix_call(mix_dense(1), a), b));
    const char *text = exported(model);
    assert_contains(text, "input left type 1 (batch, 2)\ninput right type 6 (batch, 2)\n");
    assert_contains(text, "output Identity:0 type 1 (batch, 1)\noutput Identity_1:0 type 6 (batch, 2)\n");
  }
}

/* NUMERICS.md: a weight is rounded once, from its variable. */
static void weights_in_16_bits(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_model *model =
        model_of(MIX_SHAPE(2),
                 mix_dense(1, .name = "a", .no_bias = true, .policy = mix_policy_new("mixed_float16")), NULL);
    mix_variable *kernel = mix_list_get(mix_model_weights(model), 0);
    mix_variable_assign(kernel, mix_tensor_from((const float[]){0.1f, -3}, MIX_FLOAT32, MIX_SHAPE(2, 1)));
    const char *text = exported(model);
    assert_contains(text, "opset 17\n");
    assert_contains(text, "Cast(in) -> functional/Cast_0 to=10\n");
    assert_contains(text, "output Identity:0 type 10 (batch, 1)\n");
    assert_contains(text, "tensor (2, 1) type 10 a/kernel: 4 bytes\n");
    static const unsigned char halves[] = {0x66, 0x2e, 0x00, 0xc2}; /* 0.1 to the nearest, -3 */
    assert_memory_equal(onnx_elements(in_folder("model.onnx"), "a/kernel").at, halves, 4);
    mix_model_export(model, in_folder("model.onnx"), .weights = MIX_EXPORT_FLOAT32);
    assert_good();
    text = onnx_text_of(in_folder("model.onnx"));
    assert_contains(text, "tensor (2, 1) type 1 a/kernel: 8 bytes\n");
    assert_contains(text, "Cast(a/kernel) -> ");
    mix_model_export(model, in_folder("model.onnx"), .widen = true);
    assert_good();
    text = onnx_text_of(in_folder("model.onnx"));
    assert_lacks(text, "type 10");
    assert_lacks(text, "Cast");
  }
}

static void the_opset_has_what_the_model_needs(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_model *model =
        model_of(MIX_SHAPE(6, 1), mix_conv1d(2, 3, .policy = mix_policy_new("mixed_bfloat16")), NULL);
    assert_contains(exported(model), "ir 10\nopset 22\n");
    assert_int_equal(mix_model_export(model, in_folder("model.onnx"), .opset = 17), MIX_VALUE_ERROR);
    assert_error(MIX_VALUE_ERROR, "opset is 17; Conv of bfloat16");
    mix_model_export(model, in_folder("model.onnx"), .opset = 17, .widen = true);
    assert_good();
    assert_contains(onnx_text_of(in_folder("model.onnx")), "opset 17\n");
    mix_model *mean = model_of(MIX_SHAPE(6, 1), mix_global_average_pooling1d(), NULL);
    assert_contains(exported(mean), " axes=1"); /* an attribute until opset 17 */
    mix_model_export(mean, in_folder("model.onnx"), .opset = 18);
    assert_good();
    assert_lacks(onnx_text_of(in_folder("model.onnx")), "axes");
  }
}

/* Sizes that depend on the batch are computed from the input; where one does, Reshape takes -1. */
static void any_batch(void **state) {
  (void)state;
  MIX_SCOPE {
    const char *text = exported(model_of(MIX_SHAPE(2, 3), mix_flatten(), NULL));
    assert_contains(text, "Reshape(in, constant_0)");
    const onnx_bytes shape = onnx_elements(in_folder("model.onnx"), "constant_0");
    static const int64_t expected[] = {-1, 6};
    assert_memory_equal(shape.at, expected, sizeof expected);
    text = exported(model_of(MIX_SHAPE(3, 2), mix_rnn(mix_lstm_cell(2)), mix_dense(1)));
    assert_contains(text, "output Identity:0 type 1 (batch, 1)\n");
  }
}

static void recurrent_layers(void **state) {
  (void)state;
  MIX_SCOPE {
    const mix_shape shape = MIX_SHAPE(5, 3);
    const char *text = exported(model_of(shape, mix_lstm(2, .name = "r"), NULL));
    assert_contains(text, "LSTM(functional/r/Transpose_0, ");
    assert_contains(text, " hidden_size=2 direction=forward activations=Sigmoid,Tanh,Tanh\n");
    assert_contains(text, "tensor (1, 8, 3) type 1 ");
    assert_contains(text, "tensor (1, 16) type 1 ");
    assert_lacks(text, "Loop");
    assert_lacks(text, "Expand"); /* the first state is zeros */
    text = exported(model_of(shape, mix_gru(2, .go_backwards = true), NULL));
    assert_contains(text, " direction=reverse activations=Sigmoid,Tanh linear_before_reset=1\n");
    text = exported(model_of(shape, mix_gru(2, .reset_before = true, .no_bias = true), NULL));
    assert_contains(text, " linear_before_reset=0\n");
    text = exported(model_of(shape, mix_simple_rnn(2, .activation = "relu", .return_sequences = true), NULL));
    assert_contains(text, "RNN(");
    assert_contains(text, " activations=Relu\n");
    text = exported(model_of(shape, mix_lstm(2, .recurrent_activation = "hard_sigmoid"), NULL));
    assert_contains(text, "Loop(");
    text = exported(model_of(shape, mix_masking(), mix_lstm(2)));
    assert_contains(text, "Loop(");
    assert_contains(text, "\n  Gather("); /* in the body, a row of the step */
  }
}

/* ONNX's gates are in the order input, output, forget, cell; ours input, forget, cell, output. */
static void gates_are_in_the_order_of_onnx(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_model *model = model_of(MIX_SHAPE(2, 1), mix_lstm(1, .name = "r"), NULL);
    mix_list *weights = mix_model_weights(model);
    static const float kernel[] = {1, 2, 3, 4}, recurrent[] = {5, 6, 7, 8}, bias[] = {9, 10, 11, 12};
    mix_variable_assign(mix_list_get(weights, 0), mix_tensor_from(kernel, MIX_FLOAT32, MIX_SHAPE(1, 4)));
    mix_variable_assign(mix_list_get(weights, 1), mix_tensor_from(recurrent, MIX_FLOAT32, MIX_SHAPE(1, 4)));
    mix_variable_assign(mix_list_get(weights, 2), mix_tensor_from(bias, MIX_FLOAT32, MIX_SHAPE(4)));
    const char *text = exported(model);
    static const float w[] = {1, 4, 2, 3}, r[] = {5, 8, 6, 7}, b[] = {0, 0, 0, 0, 9, 12, 10, 11};
    assert_contains(text,
                    "LSTM(functional/r/Transpose_0, functional/r/W_1, functional/r/R_2, functional/r/B_3)");
    const char *path = in_folder("model.onnx");
    assert_memory_equal(onnx_elements(path, "functional/r/W_1").at, w, sizeof w);
    assert_memory_equal(onnx_elements(path, "functional/r/R_2").at, r, sizeof r);
    assert_memory_equal(onnx_elements(path, "functional/r/B_3").at, b, sizeof b);
  }
}

/* Within what the last bits of rsqrt, and of two products after it, can move. */
static void assert_close(const char *tensor, const float *expected) {
  float got[2];
  memcpy(got, onnx_elements(in_folder("model.onnx"), tensor).at, sizeof got);
  for (int i = 0; i < 2; i++)
    if (!(fabsf(got[i] - expected[i]) <= 1e-6f * fabsf(expected[i])))
      fail_msg("%s[%d] is %.9g, expected %.9g", tensor, i, got[i], expected[i]);
}

/* y = (x k - mean) gamma / sqrt(variance + epsilon) + beta, by channel: of numbers that float32 has. */
static mix_model *attention_model(bool masks) {
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(3, 4), .name = "in"), *from = x;
  if (masks) from = mix_call(mix_masking(), x);
  mix_layer *layer = mix_multi_head_attention(2, 2, .name = "a");
  return mix_model_new(x, mix_call(layer, from, .arguments = mix_list_of(from), .use_causal_mask = true));
}

/* A mask of the order alone is an attribute; another is added, with both its axes whole. */
static void attention_is_products_or_the_operator(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_model *model = attention_model(false);
    assert_lacks(exported(model), "Attention(");
    assert_contains(onnx_text, "opset 17\n");
    mix_model_export(model, in_folder("model.onnx"), .attention = MIX_EXPORT_OPERATOR);
    assert_good();
    const char *text = onnx_text_of(in_folder("model.onnx"));
    assert_contains(text, "opset 23\n");
    assert_contains(text, " is_causal=1 scale=0.707107\n");
    assert_lacks(text, "Softmax");
    assert_lacks(text, "Where");
    mix_model_export(model, in_folder("model.onnx"), .attention = MIX_EXPORT_OPERATOR, .opset = 22);
    assert_error(MIX_VALUE_ERROR, "opset is 22; Attention of layer");
    mix_model_export(model, in_folder("model.onnx"), .attention = 2);
    assert_error(MIX_VALUE_ERROR, "attention is 2; expected MIX_EXPORT_PRODUCTS");
    mix_model_export(attention_model(true), in_folder("model.onnx"), .attention = MIX_EXPORT_OPERATOR);
    assert_good();
    text = onnx_text_of(in_folder("model.onnx"));
    assert_contains(text, "/Where_");
    assert_contains(text, "Attention(");
    assert_lacks(text, "is_causal");
  }
}

static void normalisation_becomes_part_of_a_convolution(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_layer *norm = mix_batch_normalization(.epsilon = 0.75, .name = "n");
    mix_model *model = model_of(MIX_SHAPE(2, 1), mix_conv1d(2, 1, .name = "c"), norm);
    static const float values[][2] = {{2, 3}, {1, 5}, {4, 8}, {1, -1}, {3, 1}, {0.25f, 3.25f}};
    mix_list *weights = mix_model_weights(model); /* kernel, bias, gamma, beta, mean, variance */
    for (int i = 0; i < 6; i++) {
      mix_variable *variable = mix_list_get(weights, i);
      mix_variable_assign(variable, mix_tensor_from(values[i], MIX_FLOAT32, mix_variable_shape(variable)));
    }
    assert_good();
    assert_contains(exported(model), "Sub(");
    mix_model_export(model, in_folder("model.onnx"), .fold_normalization = true);
    assert_good();
    const char *text = onnx_text_of(in_folder("model.onnx"));
    assert_contains(text, "Transpose(functional/n/kernel_0)");
    assert_contains(text, ", functional/n/bias_1) -> ");
    assert_lacks(text, "Sub(");
    assert_lacks(text, "Mul(");
    assert_lacks(text, "Add(");
    static const float kernel[] = {8, 12}, bias[] = {-7, 15};
    assert_close("functional/n/kernel_0", kernel);
    assert_close("functional/n/bias_1", bias);
  }
}

static void weights_beside_the_file(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_model *model = model_of(MIX_SHAPE(4), mix_dense(3, .name = "a"), NULL);
    mix_model_export(model, in_folder("big.onnx"), .external_bytes = -1);
    assert_good();
    const char *text = onnx_text_of(in_folder("big.onnx"));
    assert_contains(text, "tensor (4, 3) type 1 a/kernel location=big.onnx.data offset=0 length=48\n");
    assert_contains(text, "tensor (3) type 1 a/bias location=big.onnx.data offset=64 length=12\n");
    assert_int_equal(onnx_read(in_folder("big.onnx.data")), 76);
    mix_tensor *value = mix_list_get(mix_model_get_weights(model), 0);
    assert_memory_equal(onnx_file, mix_tensor_data(value), 48);
    mix_model_export(model, in_folder("small.onnx"), .external_bytes = 1 << 10);
    assert_good();
    assert_contains(onnx_text_of(in_folder("small.onnx")), "a/kernel: 48 bytes\n");
  }
}

static void what_is_refused(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_model *model = model_of(MIX_SHAPE(4), mix_dense(3), NULL);
    mix_model_export(model, in_folder("model.keras"));
    assert_error(MIX_VALUE_ERROR, "expected a name that ends in .onnx");
    mix_model_export(model, in_folder("model.onnx"), .opset = 16);
    assert_error(MIX_VALUE_ERROR, "opset is 16; expected 17 to 23");
    mix_model_export(model, in_folder("model.onnx"), .opset = 24);
    assert_error(MIX_VALUE_ERROR, "opset is 24; expected 17 to 23");
    mix_model_export(model, in_folder("model.onnx"), .weights = 7);
    assert_error(MIX_VALUE_ERROR, "weights is 7");
    mix_model_export(model, in_folder("nowhere/model.onnx"));
    assert_error(MIX_IO_ERROR, "nowhere/model.onnx cannot be written");
    mix_model_export(model_of(MIX_SHAPE(MIX_UNKNOWN, 4), mix_dense(3), NULL), in_folder("model.onnx"));
    assert_error(MIX_VALUE_ERROR, "input 'in' of 'functional");
    mix_model_export(model_of(MIX_SHAPE(4, 4, 1), mix_random_rotation(0.5), NULL), in_folder("random.onnx"));
    if (mix_error() != MIX_OK) assert_error(MIX_UNSUPPORTED, "projective_transform");
    mix_model_export(mix_sequential(mix_list_of(mix_dense(1))), in_folder("model.onnx"));
    assert_error(MIX_VALUE_ERROR, "has no known shape; build the model first");
    mix_tensor *x = mix_input(.shape = MIX_SHAPE(3, 1), .batch_size = 2);
    mix_model_export(mix_model_new(x, mix_call(mix_lstm(2, .stateful = true), x)), in_folder("model.onnx"));
    assert_error(MIX_UNSUPPORTED, "graphs of ONNX keep no state");
  }
}

/* A failed export leaves the former file. */
static void memory_may_end_at_any_allocation(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_model *model = model_of(MIX_SHAPE(3, 2), mix_lstm(2, .name = "r"), mix_dense(2, .name = "a"));
    char before[sizeof onnx_text];
    strcpy(before, exported(model));
    int failures = 0;
    for (int64_t count = 0;; count++) {
      mix_inject_allocation_failure(count);
      mix_model_export(model, in_folder("model.onnx"));
      const bool failed = mix_error() != MIX_OK;
      mix_inject_allocation_failure(-1);
      if (failed) assert_int_equal(mix_error(), MIX_MEMORY_ERROR);
      mix_error_clear();
      if (!failed) break;
      failures++;
    }
    assert_true(failures > 100);
    assert_string_equal(onnx_text_of(in_folder("model.onnx")), before);
  }
}

static int begin_test(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_clear_names();
  mix_set_seed(1);
  return 0;
}

#define TEST(name) cmocka_unit_test_setup(name, begin_test)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_perceptron),
      TEST(several_inputs_and_outputs),
      TEST(weights_in_16_bits),
      TEST(the_opset_has_what_the_model_needs),
      TEST(any_batch),
      TEST(recurrent_layers),
      TEST(gates_are_in_the_order_of_onnx),
      TEST(attention_is_products_or_the_operator),
      TEST(normalisation_becomes_part_of_a_convolution),
      TEST(weights_beside_the_file),
      TEST(what_is_refused),
      TEST(memory_may_end_at_any_allocation),
  };
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
