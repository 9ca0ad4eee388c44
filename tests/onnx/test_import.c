/* Models of ONNX as they are read: structure, values, training, refusals, files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "onnx/read_bytes.h"
#include "support/folder.h"
#include <math.h>
#include <mixtape/mixtape.h>
#include <stdio.h>

static mix_tensor *ramp(mix_dtype dtype, mix_shape shape, int modulus) {
  double numbers[1024];
  for (int i = 0; i < mix_shape_size(shape); i++) numbers[i] = i % modulus;
  return mix_tensor_from_doubles(numbers, dtype, shape);
}

static void read_all(mix_tensor *x, float *values) {
  assert_non_null(x);
  assert_int_equal(mix_tensor_read(x, MIX_FLOAT32, values, mix_shape_size(mix_tensor_shape(x))), MIX_OK);
}

static float weight_at(int i) { return (float)(i % 7 - 3) / 8; }

/* ---- values ---- */

/* Against loops over the same numbers: products of eighths are exact, softmax is not (1e-6). */
static void products_become_dense(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_model *model = read_bytes(graph_mlp());
    assert_non_null(model);
    assert_int_equal(mix_list_count(mix_model_weights(model)), 4);
    assert_non_null(mix_model_get_layer(model, "fc1"));
    assert_non_null(mix_model_get_layer(model, "fc2"));
    float x[8], y[6], hidden[5], out[3];
    mix_tensor *input = ramp(MIX_FLOAT32, MIX_SHAPE(2, 4), 5);
    read_all(input, x);
    read_all(mix_model_call(model, input), y);
    for (int n = 0; n < 2; n++) {
      float sum = 0;
      for (int j = 0; j < 5; j++) {
        hidden[j] = weight_at(j);
        for (int i = 0; i < 4; i++) hidden[j] += 2 * x[4 * n + i] * weight_at(4 * j + i);
        if (hidden[j] < 0) hidden[j] = 0;
      }
      for (int k = 0; k < 3; k++) {
        out[k] = weight_at(k);
        for (int j = 0; j < 5; j++) out[k] += hidden[j] * weight_at(3 * j + k);
        out[k] = expf(out[k]);
        sum += out[k];
      }
      for (int k = 0; k < 3; k++) assert_float_equal(y[3 * n + k], out[k] / sum, 1e-6);
    }
  }
  assert_int_equal(mix_error(), MIX_OK);
}

/* x at row r and column c of 6 with a border of 0. */
static float pixel(const float *x, int r, int c) {
  return r < 0 || c < 0 || r > 5 || c > 5 ? 0 : x[6 * r + c];
}

static float convolved(const float *x, int f, int r, int c) {
  float sum = weight_at(f);
  for (int i = 0; i < 2; i++)
    for (int u = 0; u < 3; u++)
      for (int v = 0; v < 3; v++)
        sum += pixel(x + 36 * i, 2 * r + u - 1, 2 * c + v - 1) * weight_at(((f * 2 + i) * 3 + u) * 3 + v);
  return sum;
}

/* The same for a convolution with steps of 2, one of each channel, statistics and a maximum; 1e-5: the root.
 */
static void convolutions_have_channels_first(void **state) {
  static const float scale[] = {1, 2, 0.5F, 1};
  (void)state;
  MIX_SCOPE {
    mix_model *model = read_bytes(graph_cnn());
    assert_non_null(model);
    float x[72], y[16], made[4][2][2];
    mix_tensor *input = ramp(MIX_FLOAT32, MIX_SHAPE(1, 2, 6, 6), 11);
    read_all(input, x);
    mix_tensor *output = mix_model_call(model, input);
    assert_true(mix_shape_equal(mix_tensor_shape(output), MIX_SHAPE(1, 16)));
    read_all(output, y);
    for (int f = 0; f < 4; f++)
      for (int r = 0; r < 2; r++)
        for (int c = 0; c < 2; c++) {
          float sum = 0;
          for (int u = 0; u < 2; u++)
            for (int v = 0; v < 2; v++) sum += convolved(x, f, r + u, c + v) * weight_at((f * 2 + u) * 2 + v);
          made[f][r][c] = (sum - weight_at(f)) / sqrtf(scale[f] + 0.5F) * scale[f] + weight_at(f);
        }
    for (int f = 0; f < 4; f++)
      for (int r = 0; r < 2; r++)
        for (int c = 0; c < 2; c++) {
          float most = -INFINITY;
          for (int u = r - 1; u <= r; u++)
            for (int v = c - 1; v <= c; v++)
              if (u >= 0 && v >= 0 && made[f][u][v] > most) most = made[f][u][v];
          assert_float_equal(y[(f * 2 + r) * 2 + c], most, 1e-5 * (1 + fabsf(most)));
        }
  }
  assert_int_equal(mix_error(), MIX_OK);
}

static mix_variable *variable_of_size(mix_model *model, int64_t size) {
  mix_list *weights = mix_model_trainable_variables(model);
  for (int i = 0; i < mix_list_count(weights); i++)
    if (mix_shape_size(mix_variable_shape(mix_list_get(weights, i))) == size) return mix_list_get(weights, i);
  return NULL;
}

/* A table that two kinds of nodes read is one weight: both uses move it. */
static void a_table_read_twice_is_one_weight(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_model *model = read_bytes(graph_words());
    assert_non_null(model);
    int tables = 0;
    mix_list *weights = mix_model_trainable_variables(model);
    for (int i = 0; i < mix_list_count(weights); i++)
      tables += mix_shape_size(mix_variable_shape(mix_list_get(weights, i))) == 24;
    assert_int_equal(tables, 1);
    /* words, positions, scale and shift, three of the LSTM */
    assert_int_equal(mix_list_count(weights), 7);
    float before[24], after[24];
    mix_tensor *ids = ramp(MIX_INT64, MIX_SHAPE(2, 3), 3), *target = ramp(MIX_FLOAT32, MIX_SHAPE(2, 3, 6), 5);
    assert_true(mix_shape_equal(mix_tensor_shape(mix_model_call(model, ids)), MIX_SHAPE(2, 3, 6)));
    mix_variable *table = variable_of_size(model, 24);
    read_all(mix_variable_value(table), before);
    mix_model_compile(model, .loss = "mean_squared_error", .optimizer_name = "sgd");
    assert_non_null(mix_model_train_on_batch(model, ids, target));
    read_all(mix_variable_value(table), after);
    /* rows 3 to 5 are no word of the data, and move by the product alone */
    for (int i = 12; i < 24; i++) assert_true(before[i] != after[i]);
  }
  assert_int_equal(mix_error(), MIX_OK);
}

/* ---- one node ---- */

static mix_model *one_node(const char *op, const char *inputs, int64_t opset) {
  graph g = {{0}};
  add_input(&g, "x", MIX_FLOAT32, DIMS(-1, 4));
  add_floats(&g, "w", DIMS(4, 4));
  add_floats(&g, "wide", DIMS(8, 4));
  ADD_INTS(&g, "shape", 2, 2);
  ADD_INTS(&g, "n", 3);
  add_node(&g, op, inputs, "y");
  add_output(&g, "y");
  return read_bytes(model_of(&g, opset));
}

static void refused(mix_model *model, mix_status status, const char *part) {
  assert_null(model);
  assert_int_equal(mix_error(), status);
  if (!strstr(mix_error_message(), part)) print_message("%s\n", mix_error_message());
  assert_non_null(strstr(mix_error_message(), part));
  mix_error_clear();
}

static void what_is_not_read_is_named(void **state) {
  (void)state;
  MIX_SCOPE {
    refused(one_node("Det", "x", 17), MIX_UNSUPPORTED,
            "node 'y' (Det, operator set 17): the operator Det is not supported");
    refused(one_node("Relu", "z", 17), MIX_FORMAT_ERROR, "input 'z' is made by no node before it");
    refused(one_node("Relu", "x", 8), MIX_UNSUPPORTED, "operator set 8 of ONNX; expected 9 to 23");
    refused(one_node("Relu", "x", 99), MIX_UNSUPPORTED, "operator set 99");
    set_string("auto_pad", "SAME_LOWER");
    refused(one_node("MaxPool", "x", 17), MIX_UNSUPPORTED, "an input of rank 2");
    set_int("axis", 7);
    refused(one_node("Softmax", "x", 17), MIX_FORMAT_ERROR, "axis 7 of a tensor of rank 2");
    set_int("to", 8);
    refused(one_node("Cast", "x", 17), MIX_UNSUPPORTED, "element type 8");
    refused(one_node("Reshape", "w shape", 17), MIX_VALUE_ERROR, "node 'y' (Reshape");
    refused(one_node("Identity", "w", 17), MIX_UNSUPPORTED, "output 'y' does not depend on the inputs");
  }
}

/* A damaged file had an input of sizes alone. */
static void a_node_without_its_first_input_is_refused(void **state) {
  (void)state;
  graph g = {{0}};
  add_input(&g, "x", MIX_FLOAT32, DIMS(-1, 4));
  add_node(&g, "Shape", "x", "s");
  add_node(&g, "Reshape", "_ s", "y");
  add_output(&g, "y");
  MIX_SCOPE { refused(read_bytes(model_of(&g, 17)), MIX_FORMAT_ERROR, "it lacks an input"); }
}

static mix_model *image_node(const char *op, const char *inputs) {
  graph g = {{0}};
  add_input(&g, "x", MIX_FLOAT32, DIMS(-1, 2, 6, 6));
  add_floats(&g, "v", DIMS(2));
  add_floats(&g, "twice", DIMS(4));
  add_node(&g, op, inputs, "y");
  add_output(&g, "y");
  return read_bytes(model_of(&g, 17));
}

/* What a layer would compute differently, or a call would read where nothing is. */
static void options_that_no_layer_has_are_refused(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_message floats = {0};
    mix_message_float(&floats, MIX_ONNX_ATTRIBUTE_FLOATS, 1);
    mix_message_float(&floats, MIX_ONNX_ATTRIBUTE_FLOATS, 0);
    attribute("perm", MIX_ONNX_IS_FLOATS, &floats);
    refused(one_node("Transpose", "x", 17), MIX_FORMAT_ERROR, "perm has 0 axes of 2");
    refused(one_node("Range", "_ shape shape", 17), MIX_UNSUPPORTED,
            "input 2 has shape (2); expected one number");
    refused(one_node("Range", "_ n n", 17), MIX_FORMAT_ERROR, "it lacks an input");
    set_int("axis", 1);
    SET_INTS("split", 3, 3);
    refused(one_node("Split", "x", 12), MIX_FORMAT_ERROR, "parts of 6 in all, of an axis of size 4");
    set_int("axis", 1);
    SET_INTS("split", INT64_MAX, 1);
    refused(one_node("Split", "x", 12), MIX_FORMAT_ERROR, "part 1 has size 1");
    refused(one_node("MatMul", "x wide", 17), MIX_FORMAT_ERROR,
            "data of shape (None, 4), and a kernel of shape (8, 4)");
    set_string("auto_pad", "SAME_UPPER");
    SET_INTS("kernel_shape", 3, 3);
    set_int("count_include_pad", 1);
    refused(image_node("AveragePool", "x"), MIX_UNSUPPORTED, "auto_pad and count_include_pad together");
    set_int("training_mode", 1);
    refused(image_node("BatchNormalization", "x v v v v"), MIX_UNSUPPORTED, "expected a graph for inference");
    set_float("softcap", 2);
    refused(image_node("Attention", "x x x"), MIX_UNSUPPORTED, "softcap is 2; expected 0");
    refused(one_node("Attention", "x x x", 23), MIX_FORMAT_ERROR, "expected rank 3 or 4 of floats");
    set_string("nearest_mode", "floor");
    refused(image_node("Resize", "x _ twice"), MIX_UNSUPPORTED, "");
  }
}

/* Rows of classes by the sign of the index: -1 is the last, and what is further away is none. */
static void negative_indices_count_from_the_end(void **state) {
  (void)state;
  graph g = {{0}};
  const float values[] = {0, 1};
  const int64_t indices[] = {0, -1, 3, -4}, depth = 3;
  add_input(&g, "x", MIX_INT64, DIMS(-1, 4));
  add_tensor(&g, "depth", MIX_INT64, 0, NULL, &depth);
  add_tensor(&g, "values", MIX_FLOAT32, DIMS(2), values);
  add_node(&g, "OneHot", "x depth values", "y");
  add_output(&g, "y");
  MIX_SCOPE {
    static const float rows[12] = {1, 0, 0, 0, 0, 1};
    float y[12];
    mix_model *model = read_bytes(model_of(&g, 17));
    assert_non_null(model);
    read_all(mix_model_call(model, mix_tensor_from(indices, MIX_INT64, MIX_SHAPE(1, 4))), y);
    assert_memory_equal(y, rows, sizeof rows);
    set_int("detect_negative", 0);
    refused(one_node("IsInf", "x", 17), MIX_UNSUPPORTED, "it tells one infinity from the other");
  }
  assert_int_equal(mix_error(), MIX_OK);
}

/* Two products by one kernel with a bias each: the same kernel trains, and each bias is added where it was.
 */
static void products_that_share_a_kernel_keep_their_biases(void **state) {
  (void)state;
  graph g = {{0}};
  const float first[] = {1, 2, 3, 4}, second[] = {5, 6, 7, 8};
  add_input(&g, "x", MIX_FLOAT32, DIMS(-1, 4));
  add_floats(&g, "w", DIMS(4, 4));
  add_tensor(&g, "b", MIX_FLOAT32, DIMS(4), first);
  add_tensor(&g, "c", MIX_FLOAT32, DIMS(4), second);
  add_node(&g, "MatMul", "x w", "p");
  add_node(&g, "Add", "p b", "q");
  add_node(&g, "MatMul", "x w", "r");
  add_node(&g, "Add", "r c", "s");
  add_node(&g, "Sub", "s q", "y");
  add_output(&g, "y");
  MIX_SCOPE {
    float y[4];
    mix_model *model = read_bytes(model_of(&g, 17));
    assert_non_null(model);
    assert_int_equal(mix_list_count(mix_model_trainable_variables(model)), 3);
    read_all(mix_model_call(model, mix_fill(MIX_SHAPE(1, 4), 1, MIX_FLOAT32)), y);
    for (int i = 0; i < 4; i++) assert_float_equal(y[i], 4, 1e-6); /* eighths: exact */
  }
  assert_int_equal(mix_error(), MIX_OK);
}

/* ... and two convolutions that differ by a word alone are two. */
static void convolutions_that_share_a_kernel_keep_their_padding(void **state) {
  (void)state;
  graph g = {{0}};
  add_input(&g, "x", MIX_FLOAT32, DIMS(-1, 2, 6, 6));
  add_floats(&g, "w", DIMS(4, 2, 3, 3));
  set_string("auto_pad", "SAME_UPPER");
  add_node(&g, "Conv", "x w", "same");
  set_string("auto_pad", "VALID");
  add_node(&g, "Conv", "x w", "valid");
  add_output(&g, "same");
  add_output(&g, "valid");
  MIX_SCOPE {
    mix_model *model = read_bytes(model_of(&g, 17));
    assert_non_null(model);
    mix_list *y = mix_model_call_outputs(model, mix_fill(MIX_SHAPE(1, 2, 6, 6), 1, MIX_FLOAT32));
    assert_non_null(y);
    assert_true(mix_shape_equal(mix_tensor_shape(mix_list_get(y, 0)), MIX_SHAPE(1, 4, 6, 6)));
    assert_true(mix_shape_equal(mix_tensor_shape(mix_list_get(y, 1)), MIX_SHAPE(1, 4, 4, 4)));
  }
  assert_int_equal(mix_error(), MIX_OK);
}

/* ---- files ---- */

static void write_file(const char *path, mix_message bytes) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes.data, 1, bytes.size, file), bytes.size);
  fclose(file);
  mix_message_free(&bytes);
}

static void add_external(graph *g, mix_message tensor, const char *location, const char *offset) {
  const char *const entries[][2] = {{"location", location}, {"offset", offset}};
  mix_message_integer(&tensor, MIX_ONNX_TENSOR_LOCATION, 1);
  for (int i = 0; i < 2; i++) {
    mix_message entry = {0};
    mix_message_text(&entry, MIX_ONNX_ENTRY_KEY, entries[i][0]);
    mix_message_text(&entry, MIX_ONNX_ENTRY_VALUE, entries[i][1]);
    mix_message_message(&tensor, MIX_ONNX_TENSOR_EXTERNAL, &entry);
  }
  mix_message_message(&g->message, MIX_ONNX_GRAPH_INITIALIZER, &tensor);
}

/* A Gemm whose kernel and bias lie in another file, one after the other. */
static mix_message graph_external(const char *location) {
  graph g = {{0}};
  add_external(&g, tensor_message("w", MIX_FLOAT32, DIMS(4, 4), NULL), location, "0");
  add_external(&g, tensor_message("b", MIX_FLOAT32, DIMS(4), NULL), location, "64");
  add_input(&g, "x", MIX_FLOAT32, DIMS(-1, 4));
  add_node(&g, "Gemm", "x w b", "y");
  add_output(&g, "y");
  return model_of(&g, 17);
}

static mix_model *load_external(const char *folder, const char *location, bool copies) {
  char path[512];
  snprintf(path, sizeof path, "%s/external.onnx", folder);
  write_file(path, graph_external(location));
  return mix_model_load(path, .copy_weights = copies);
}

static void external_data_stay_in_the_folder(void **state) {
  (void)state;
  const char *folder = test_folder;
  char path[512];
  float weights[20], y[16];
  for (int i = 0; i < 20; i++) weights[i] = weight_at(i);
  snprintf(path, sizeof path, "%s/weights.bin", folder);
  FILE *file = fopen(path, "wb");
  assert_int_equal(fwrite(weights, sizeof weights, 1, file), 1);
  fclose(file);
  MIX_SCOPE {
    const float one[16] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    for (int copies = 0; copies < 2; copies++) {
      mix_model *model = load_external(folder, "weights.bin", copies);
      assert_non_null(model);
      read_all(mix_model_call(model, mix_tensor_from(one, MIX_FLOAT32, MIX_SHAPE(4, 4))), y);
      for (int i = 0; i < 16; i++) assert_true(y[i] == weights[i] + weights[16 + i % 4]); /* eighths */
    }
    refused(load_external(folder, "../weights.bin", false), MIX_FORMAT_ERROR,
            "expected a file in the model's folder");
    refused(load_external(folder, "a/../../weights.bin", false), MIX_FORMAT_ERROR,
            "expected a file in the model's folder");
    refused(load_external(folder, path, false), MIX_FORMAT_ERROR, "expected a file in the model's folder");
    refused(load_external(folder, "other.bin", false), MIX_IO_ERROR, "other.bin is missing");
  }
}

/* What is read is saved as Keras's layers and operations, and predicts the same bits. */
static void a_model_of_onnx_is_saved_as_one_of_keras(void **state) {
  (void)state;
  char path[512], saved[512];
  snprintf(path, sizeof path, "%s/words.onnx", test_folder);
  snprintf(saved, sizeof saved, "%s/words.keras", test_folder);
  write_file(path, graph_words());
  MIX_SCOPE {
    float a[36], b[36];
    mix_tensor *ids = ramp(MIX_INT64, MIX_SHAPE(2, 3), 6);
    mix_model *model = mix_model_load(path);
    assert_non_null(model);
    assert_int_equal(mix_model_save(model, saved), MIX_OK);
    read_all(mix_model_call(model, ids), a);
    read_all(mix_model_call(mix_model_load(saved), ids), b);
    assert_memory_equal(a, b, sizeof a);
    mix_model *narrow = mix_model_load(path, .policy = "mixed_bfloat16");
    assert_non_null(narrow);
    read_all(mix_model_call(narrow, ids), b);
    /* 8 bits of each number, through an LSTM and two products of four terms */
    for (int i = 0; i < 36; i++) assert_float_equal(a[i], b[i], 0.05);
  }
  assert_int_equal(mix_error(), MIX_OK);
}

/* Against loops over the same eighths, which are exact here. */
static void steps_branches_and_functions(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_model *model = read_bytes(graph_steps());
    assert_non_null(model);
    float y[8], s[4], next[4];
    read_all(mix_model_call(model, ramp(MIX_FLOAT32, MIX_SHAPE(2, 4), 5)), y);
    for (int row = 0; row < 2; row++) {
      for (int j = 0; j < 4; j++) s[j] = (float)((4 * row + j) % 5);
      for (int step = 0; step < 3; step++) {
        for (int j = 0; j < 4; j++) {
          next[j] = 0;
          for (int k = 0; k < 4; k++) next[j] += s[k] * weight_at(4 * k + j);
        }
        memcpy(s, next, sizeof s);
      }
      for (int j = 0; j < 4; j++) assert_float_equal(y[4 * row + j], 4 * (s[j] + weight_at(j)), 0);
    }
  }
  assert_int_equal(mix_error(), MIX_OK);
}

/* Running sums of a row, from its end: whole numbers, exact. */
static void a_scan_goes_along_an_axis(void **state) {
  (void)state;
  MIX_SCOPE {
    static const float nothing[4];
    graph g = {{0}}, body = {{0}};
    add_input(&g, "x", MIX_FLOAT32, DIMS(-1, 4));
    add_tensor(&g, "zeros", MIX_FLOAT32, DIMS(4), nothing);
    add_node(&g, "MatMul", "x zeros", "first");
    add_input(&body, "sum", MIX_FLOAT32, DIMS(-1));
    add_input(&body, "number", MIX_FLOAT32, DIMS(-1));
    add_node(&body, "Add", "sum number", "next");
    add_node(&body, "Identity", "next", "kept");
    add_output(&body, "next");
    add_output(&body, "kept");
    set_graph("body", &body);
    set_int("num_scan_inputs", 1);
    SET_INTS("scan_input_axes", 1);
    SET_INTS("scan_output_axes", 1);
    SET_INTS("scan_input_directions", 1);
    SET_INTS("scan_output_directions", 1);
    add_node(&g, "Scan", "first x", "last y");
    add_output(&g, "y");
    mix_model *model = read_bytes(model_of(&g, 17));
    assert_non_null(model);
    float y[8], sum;
    read_all(mix_model_call(model, ramp(MIX_FLOAT32, MIX_SHAPE(2, 4), 5)), y);
    for (int row = 0; row < 2; row++) {
      sum = 0;
      for (int j = 3; j >= 0; j--) {
        sum += (float)((4 * row + j) % 5);
        assert_float_equal(y[4 * row + j], sum, 0);
      }
    }
  }
  assert_int_equal(mix_error(), MIX_OK);
}

/* A function that calls itself; 40 of which each calls the one before twice; a loop without an end. */
static void what_has_no_end_is_refused(void **state) {
  (void)state;
  MIX_SCOPE {
    graph g = {{0}};
    add_input(&g, "x", MIX_FLOAT32, DIMS(-1, 4));
    add_call(&g, "twice", "x", "y");
    add_output(&g, "y");
    mix_message model = model_with_functions(&g);
    add_function(&model, "twice", NULL, "twice");
    refused(read_bytes(model), MIX_UNSUPPORTED, "twice");
  }
  MIX_SCOPE {
    graph g = {{0}};
    char name[16] = "f39", before[16];
    add_input(&g, "x", MIX_FLOAT32, DIMS(-1, 4));
    add_call(&g, name, "x", "y");
    add_output(&g, "y");
    mix_message model = model_with_functions(&g);
    for (int i = 39; i >= 0; i--) {
      snprintf(name, sizeof name, "f%d", i);
      snprintf(before, sizeof before, "f%d", i - 1);
      add_function(&model, name, i ? NULL : "Add", before);
    }
    refused(read_bytes(model), MIX_UNSUPPORTED, "f");
  }
  MIX_SCOPE {
    graph g = {{0}}, body = loop_body("go");
    const bool on = true;
    add_input(&g, "x", MIX_FLOAT32, DIMS(-1, 4));
    add_floats(&g, "w", DIMS(4, 4));
    add_tensor(&g, "on", MIX_BOOL, 0, NULL, &on);
    set_graph("body", &body);
    add_node(&g, "Loop", "_ on x", "y");
    add_output(&g, "y");
    refused(read_bytes(model_of(&g, 17)), MIX_UNSUPPORTED, "Loop");
  }
}

/* The reciprocal of a square root is rounded once, as where it came from. */
static void a_normalization_comes_back_with_its_bits(void **state) {
  (void)state;
  enum { FEATURES = 64 };
  char path[512];
  snprintf(path, sizeof path, "%s/norm.onnx", test_folder);
  MIX_SCOPE {
    float a[2 * FEATURES], b[2 * FEATURES], numbers[FEATURES];
    mix_tensor *x = mix_input(.shape = MIX_SHAPE(FEATURES));
    mix_model *model = mix_model_new(x, mix_call(mix_batch_normalization(), x));
    for (int w = 0; w < 4; w++) { /* gamma, beta, mean, variance */
      for (int i = 0; i < FEATURES; i++) numbers[i] = 0.1f + 0.37f * (float)((i * (w + 3)) % FEATURES);
      mix_variable_assign(mix_list_get(mix_model_weights(model), w),
                          mix_tensor_from(numbers, MIX_FLOAT32, MIX_SHAPE(FEATURES)));
    }
    mix_tensor *batch = ramp(MIX_FLOAT32, MIX_SHAPE(2, FEATURES), 2 * FEATURES);
    assert_int_equal(mix_model_export(model, path), MIX_OK);
    mix_model *again = mix_model_load(path);
    assert_non_null(again);
    read_all(mix_model_call(model, batch), a);
    read_all(mix_model_call(again, batch), b);
    assert_memory_equal(a, b, sizeof a);
  }
  assert_int_equal(mix_error(), MIX_OK);
}

enum { BATCH = 2, HEADS = 4, GROUPS = 2, PLACES = 3, SIZE = 2 };

static int attention_at(bool joined, int heads, int batch, int head, int place, int i) {
  return joined ? ((batch * PLACES + place) * heads + head) * SIZE + i
                : ((batch * heads + head) * PLACES + place) * SIZE + i;
}

/* Query (2, heads 4, places 3, size 2) over keys and values of 2 groups and 3 places: plain loops, in double;
 * 1e-6: an exponential and a quotient. Place 2 is masked for all, a later place by the order. */
static void attention_is_that_of_the_loops(void **state) {
  (void)state;
  const double scale = 0.5;
  for (int joined = 0; joined < 2; joined++)
    MIX_SCOPE {
      graph g = {{0}};
      float q[BATCH * HEADS * PLACES * SIZE], y[BATCH * HEADS * PLACES * SIZE];
      const bool seen[] = {true, true, false};
      if (joined) { /* heads in the last axis */
        add_input(&g, "q", MIX_FLOAT32, DIMS(-1, PLACES, HEADS * SIZE));
        add_input(&g, "k", MIX_FLOAT32, DIMS(-1, PLACES, GROUPS * SIZE));
        set_int("q_num_heads", HEADS);
        set_int("kv_num_heads", GROUPS);
      } else {
        add_input(&g, "q", MIX_FLOAT32, DIMS(-1, HEADS, PLACES, SIZE));
        add_input(&g, "k", MIX_FLOAT32, DIMS(-1, GROUPS, PLACES, SIZE));
      }
      add_tensor(&g, "mask", MIX_BOOL, DIMS(1, PLACES), seen);
      set_int("is_causal", 1);
      set_float("scale", (float)scale);
      add_node(&g, "Attention", "q k k mask", "y");
      add_output(&g, "y");
      mix_model *model = read_bytes(model_of(&g, 23));
      assert_int_equal(mix_error(), MIX_OK);
      mix_tensor *query = ramp(MIX_FLOAT32,
                               joined ? MIX_SHAPE(BATCH, PLACES, HEADS * SIZE)
                                      : MIX_SHAPE(BATCH, HEADS, PLACES, SIZE),
                               5),
                 *key = ramp(MIX_FLOAT32,
                             joined ? MIX_SHAPE(BATCH, PLACES, GROUPS * SIZE)
                                    : MIX_SHAPE(BATCH, GROUPS, PLACES, SIZE),
                             7);
      float k[BATCH * GROUPS * PLACES * SIZE];
      read_all(query, q);
      read_all(key, k);
      read_all(mix_model_call(model, mix_list_of(query, key)), y);
      for (int a = 0; a < BATCH; a++)
        for (int n = 0; n < HEADS; n++)
          for (int p = 0; p < PLACES; p++)
            for (int d = 0; d < SIZE; d++) {
              double sum = 0, result = 0;
              for (int t = 0; t <= p && t < 2; t++) {
                double score = 0;
                for (int e = 0; e < SIZE; e++)
                  score += scale * q[attention_at(joined, HEADS, a, n, p, e)] *
                           k[attention_at(joined, GROUPS, a, n / 2, t, e)];
                sum += exp(score);
                result += exp(score) * k[attention_at(joined, GROUPS, a, n / 2, t, d)];
              }
              assert_float_equal(y[attention_at(joined, HEADS, a, n, p, d)], result / sum, 1e-6 * 7);
            }
    }
  assert_int_equal(mix_error(), MIX_OK);
}

/* As tf2onnx writes products of several axes: the batch is the larger one of two. */
static void the_larger_of_two_batches_is_the_batch(void **state) {
  (void)state;
  graph g = {{0}};
  float y[8];
  add_input(&g, "x", MIX_FLOAT32, DIMS(-1, 4));
  ADD_INTS(&g, "zero", 0);
  ADD_INTS(&g, "one", 1);
  ADD_INTS(&g, "rest", 2, 2);
  add_node(&g, "Relu", "x", "r");
  add_node(&g, "Shape", "x", "a");
  add_node(&g, "Shape", "r", "b");
  add_node(&g, "Gather", "a zero", "c");
  add_node(&g, "Gather", "b zero", "d");
  add_node(&g, "Max", "c d", "e");
  add_node(&g, "Max", "one e", "f");
  set_int("axis", 0);
  add_node(&g, "Concat", "f rest", "s");
  add_node(&g, "Reshape", "r s", "y");
  add_output(&g, "y");
  MIX_SCOPE {
    mix_model *model = read_bytes(model_of(&g, 18));
    assert_int_equal(mix_error(), MIX_OK);
    mix_tensor *output = mix_model_call(model, ramp(MIX_FLOAT32, MIX_SHAPE(2, 4), 8));
    assert_true(mix_shape_equal(mix_tensor_shape(output), MIX_SHAPE(2, 2, 2)));
    read_all(output, y);
    for (int i = 0; i < 8; i++) assert_true(y[i] == (float)i);
  }
  assert_int_equal(mix_error(), MIX_OK);
}

/* The table is searched by bisection. */
static void operators_stand_in_order(void **state) {
  (void)state;
  int count = 0;
  for (const mix_import_operator *o = mix_import_operators; o->name; o++, count++) {
    assert_ptr_equal(mix_import_operator_named(o->name), o);
    assert_true((o->convert != NULL) != (o->operation != NULL));
    if (o->operation) assert_non_null(mix_keras_operation_named(o->operation));
  }
  assert_true(count > 100);
  assert_null(mix_import_operator_named("Det"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_become_dense),
      cmocka_unit_test(convolutions_have_channels_first),
      cmocka_unit_test(a_table_read_twice_is_one_weight),
      cmocka_unit_test(what_is_not_read_is_named),
      cmocka_unit_test(a_node_without_its_first_input_is_refused),
      cmocka_unit_test(options_that_no_layer_has_are_refused),
      cmocka_unit_test(negative_indices_count_from_the_end),
      cmocka_unit_test(products_that_share_a_kernel_keep_their_biases),
      cmocka_unit_test(convolutions_that_share_a_kernel_keep_their_padding),
      cmocka_unit_test_setup_teardown(external_data_stay_in_the_folder, folder_begin, folder_end),
      cmocka_unit_test_setup_teardown(a_model_of_onnx_is_saved_as_one_of_keras, folder_begin, folder_end),
      cmocka_unit_test(steps_branches_and_functions),
      cmocka_unit_test(a_scan_goes_along_an_axis),
      cmocka_unit_test(what_has_no_end_is_refused),
      cmocka_unit_test_setup_teardown(a_normalization_comes_back_with_its_bits, folder_begin, folder_end),
      cmocka_unit_test(attention_is_that_of_the_loops),
      cmocka_unit_test(the_larger_of_two_batches_is_the_batch),
      cmocka_unit_test(operators_stand_in_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
