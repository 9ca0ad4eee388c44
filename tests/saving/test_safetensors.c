/* Weights as safetensors: there and back, and files of another library by a weight map. */
#include "support/skip.h"
#include "model/support.h"

#include "base/alloc.h"
#include "formats/safetensors.h"
#include "support/folder.h"

static int begin(void **state) { return folder_begin(state) || setup(state); }
static int end(void **state) { return teardown(state) || folder_end(state); }
#define MODEL_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

/* Under a policy with float32 weights, or all in bfloat16. */
static mix_model *dense_model(const char *policy, int units) {
  mix_set_global_policy(policy);
  mix_clear_names();
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(32));
  mix_tensor *x = mix_call(mix_dense(units, "relu", .name = "h_0"), inputs);
  return mix_model_new(inputs, mix_call(mix_dense(3, .name = "out"), x));
}

static void assert_same_weights(mix_model *a, mix_model *b) {
  size_t size_a, size_b;
  unsigned char *bits_a = bits_of(mix_model_weights(a), &size_a),
                *bits_b = bits_of(mix_model_weights(b), &size_b);
  assert_int_equal(size_a, size_b);
  assert_memory_equal(bits_a, bits_b, size_a);
  free(bits_a);
  free(bits_b);
}

static void weights_come_back(void **state) {
  (void)state;
  static const char *const policies[] = {"float32", "mixed_float16", "bfloat16", "float16", "float64"};
  const char *path = in_folder("w.safetensors");
  for (size_t p = 0; p < sizeof policies / sizeof *policies; p++) {
    mix_set_seed(1);
    mix_model *saved = dense_model(policies[p], 64);
    assert_int_equal(mix_model_save_weights(saved, path), MIX_OK);
    mix_set_seed(2);
    mix_model *loaded = dense_model(policies[p], 64);
    assert_int_equal(mix_model_load_weights(loaded, path), MIX_OK);
    assert_no_error();
    assert_same_weights(saved, loaded);
    const mix_stored_tensor *kernel = mix_safetensors_find(mix_safetensors_open(path, false), "h_0/kernel");
    assert_non_null(kernel);
    assert_int_equal(kernel->dtype,
                     mix_tensor_dtype(mix_variable_true_value(variable_at(saved, "h_0/kernel"))));
  }
}

/* What is mapped is the file's until something writes it. */
static void mapped_weights_train(void **state) {
  (void)state;
  const char *path = in_folder("w.safetensors");
  mix_set_seed(1);
  mix_model *saved = dense_model("float32", 64);
  assert_int_equal(mix_model_save_weights(saved, path), MIX_OK);
  for (int copies = 0; copies < 2; copies++) {
    mix_model *model = dense_model("float32", 64);
    assert_int_equal(mix_model_load_weights_with(
                         model, &(mix_load_weights_options){.size = sizeof(mix_load_weights_options),
                                                            .path = path,
                                                            .copy_weights = copies}),
                     MIX_OK);
    mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(.learning_rate = 0.1));
    mix_tensor *x = mix_fill(MIX_SHAPE(8, 32), F32, 1), *y = mix_fill(MIX_SHAPE(8, 3), F32, 1);
    mix_model_fit(model, x, y, .verbose = MIX_SILENT);
    assert_no_error();
    int changed = 0; /* units that relu leaves out do not */
    for (int i = 0; i < 3 * 64; i++) changed += weight_at(model, 2, i) != weight_at(saved, 2, i);
    assert_true(changed > 0);
    mix_model *again = dense_model("float32", 64);
    assert_int_equal(mix_model_load_weights(again, path), MIX_OK);
    assert_same_weights(saved, again);
  }
}

/* ---- maps ---- */

static mix_status load_by(mix_model *model, const char *path, const char *map) {
  char name[512];
  snprintf(name, sizeof name, "%s", in_folder("map.json"));
  write_in_folder("/map.json", map);
  return mix_model_load_weights_with(
      model, &(mix_load_weights_options){
                 .size = sizeof(mix_load_weights_options), .path = path, .weight_map = name});
}

/* A file as PyTorch has it: kernels (outputs, inputs), of which two lie in one tensor. */
static const char *foreign_file(void) {
  static float values[2][64 * 32];
  static char path[512];
  for (int o = 0; o < 64; o++)
    for (int i = 0; i < 32; i++) values[0][o * 32 + i] = (float)(100 * o + i);
  for (int i = 0; i < 3 * 64; i++) values[1][i] = (float)i;
  mix_tensor *tensors[] = {mix_tensor_from(values[0], MIX_FLOAT32, MIX_SHAPE(64, 32)),
                           mix_tensor_from(values[1], MIX_FLOAT32, MIX_SHAPE(1, 32)),
                           mix_cast(mix_tensor_from(values[1], MIX_FLOAT32, MIX_SHAPE(3, 32)), MIX_FLOAT16),
                           mix_tensor_from(values[1], MIX_FLOAT32, MIX_SHAPE(3)),
                           mix_tensor_from(values[1], MIX_FLOAT32, MIX_SHAPE(1))};
  const char *const names[] = {"layers.0.both.weight", "layers.0.bias", "head.weight", "head.bias", "step"};
  snprintf(path, sizeof path, "%s", in_folder("foreign.safetensors"));
  assert_true(mix_safetensors_write("test", path, 5, names, tensors));
  return path;
}

#define KERNEL                                                                                               \
  "{\"weight\": \"h_([0-9]+)/kernel\", \"tensor\": \"layers.\\\\1.both.weight\", \"part\": [0, 1, 2], "      \
  "\"transpose\": [1, 0]}"
#define OTHERS                                                                                               \
  "{\"weight\": \"h_([0-9]+)/bias\", \"tensor\": \"layers.\\\\1.bias\", \"reshape\": true},"                 \
  "{\"weight\": \"out/kernel\", \"tensor\": \"head.weight\", \"transpose\": [1, 0]},"                        \
  "{\"weight\": \"out/(.*)\", \"tensor\": \"head.\\\\1\"}"

static void a_map_renames_splits_and_transposes(void **state) {
  (void)state;
  const char *path = foreign_file();
  mix_model *model = dense_model("mixed_float16", 32);
  assert_int_equal(load_by(model, path, "{\"rules\": [" KERNEL "," OTHERS "], \"leave\": [\"st.p\"]}"),
                   MIX_OK);
  assert_no_error();
  for (int i = 0; i < 32; i++)
    for (int o = 0; o < 32; o++) assert_true(weight_at(model, 0, i * 32 + o) == 100 * (o + 32) + i);
  assert_true(weight_at(model, 1, 31) == 31);
  for (int i = 0; i < 32; i++)
    for (int o = 0; o < 3; o++) assert_true(weight_at(model, 2, i * 3 + o) == o * 32 + i);
  assert_true(weight_at(model, 3, 2) == 2);
}

static void mistakes_in_maps_are_named(void **state) {
  (void)state;
  static const struct {
    const char *map, *message;
  } cases[] = {
      {"{", "not valid JSON"},
      {"[]", "no weight map"},
      {"{\"rules\": [], \"leaves\": []}", "no member is called 'leaves'"},
      {"{\"rules\": [3]}", "rule 0 is an integer"},
      {"{\"rules\": [{\"weight\": \"(\", \"tensor\": \"a\"}]}", "'(' is no extended regular expression"},
      {"{\"rules\": [{\"tensor\": \"a\"}]}", "weight is missing"},
      {"{\"rules\": [{\"weight\": \"a\"}]}", "tensor is missing"},
      {"{\"rules\": [{\"weight\": \"a\", \"tensor\": \"\\\\1\"}]}", "the number of a group"},
      {"{\"rules\": [{\"weight\": \"a\", \"tensor\": \"b\\\\\"}]}", "the number of a group"},
      {"{\"rules\": [{\"weight\": \"a\", \"tensor\": \"b\", \"part\": [0, 2, 2]}]}", "part is not"},
      {"{\"rules\": [{\"weight\": \"a\", \"tensor\": \"b\", \"transpose\": [0, 0]}]}", "transpose is not"},
      {"{\"rules\": [{\"weight\": \"a\", \"tensor\": \"b\", \"reshape\": 1}]}", "reshape is an integer"},
      {"{\"rules\": [{\"weight\": \"a\", \"tensor\": \"b\", \"slice\": 1}]}", "no member is called 'slice'"},
      {"{\"rules\": [" OTHERS "]}", "has no 'h_0/kernel'"},
      {"{\"rules\": [{\"weight\": \"h_0/kernel\", \"tensor\": \"head.wieght\"}," OTHERS "]}",
       "did you mean 'head.weight'"},
      {"{\"rules\": [" KERNEL "," OTHERS "]}", "'step' in"},
      {"{\"rules\": [{\"weight\": \"h_0/kernel\", \"tensor\": \"head.bias\", \"transpose\": [1, 0]}," OTHERS
       "]}",
       "transpose has 2 axes"},
      {"{\"rules\": [{\"weight\": \"h_0/kernel\", \"tensor\": \"head.bias\", \"part\": [0, 0, 2]}," OTHERS
       "]}",
       "whose axis 0 has no 2 equal parts"},
      {"{\"rules\": [{\"weight\": \"h_0/kernel\", \"tensor\": \"head.bias\", \"reshape\": true}," OTHERS "]}",
       "cannot be reshaped to (32, 32)"},
      {"{\"rules\": [{\"weight\": \"h_0/kernel\", \"tensor\": \"layers.0.both.weight\", \"transpose\": [1, "
       "0]}," OTHERS "]}",
       "the map makes (32, 64)"},
      {"{\"rules\": [{\"weight\": \"h_0/kernel\", \"tensor\": \"layers.0.both.weight\"}," OTHERS "]}",
       "'layers.0.both.weight' in the file has (64, 32)"},
  };
  const char *path = foreign_file();
  mix_set_seed(1);
  mix_model *model = dense_model("float32", 32);
  size_t size;
  unsigned char *before = bits_of(mix_model_weights(model), &size);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_not_equal(load_by(model, path, cases[i].map), MIX_OK);
    assert_error(mix_error(), cases[i].message);
    unsigned char *after = bits_of(mix_model_weights(model), &size);
    assert_memory_equal(before, after, size);
    free(after);
  }
  free(before);
}

static mix_status save_by(mix_model *model, const char *path, const char *map) {
  char name[512];
  snprintf(name, sizeof name, "%s", in_folder("map.json"));
  write_in_folder("/map.json", map);
  return mix_model_save_weights_with(
      model, &(mix_save_weights_options){
                 .size = sizeof(mix_save_weights_options), .path = path, .weight_map = name});
}

/* Two layers of one input, whose kernels lie in one tensor of PyTorch. */
static mix_model *two_heads(void) {
  mix_clear_names();
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(8));
  mix_tensor *a = mix_call(mix_dense(4, .name = "a"), x), *b = mix_call(mix_dense(4, .name = "b"), x);
  return mix_model_new(x, mix_list_of(a, b));
}
#define HALVES                                                                                               \
  "{\"weight\": \"a/kernel\", \"tensor\": \"both.weight\", \"part\": [0, 0, 2], \"transpose\": [1, 0]},"     \
  "{\"weight\": \"b/kernel\", \"tensor\": \"both.weight\", \"part\": [0, 1, 2], \"transpose\": [1, 0]},"
#define ROWS "{\"weight\": \"(.)/bias\", \"tensor\": [\"\\\\1.bias\", \"\\\\1.b\"], \"reshape\": [0, 1]}"

static void a_map_backwards_joins_and_transposes(void **state) {
  (void)state;
  char path[512];
  snprintf(path, sizeof path, "%s", in_folder("back.safetensors"));
  mix_model *model = two_heads(), *again = two_heads();
  assert_int_equal(save_by(model, path, "{\"rules\": [" HALVES ROWS "]}"), MIX_OK);
  assert_no_error();
  mix_safetensors *file = mix_safetensors_open(path, true);
  assert_int_equal(mix_safetensors_count(file), 3);
  const mix_stored_tensor *both = mix_safetensors_find(file, "both.weight"),
                          *bias = mix_safetensors_find(file, "a.bias");
  assert_true(both && mix_shape_equal(both->shape, MIX_SHAPE(8, 8)));
  assert_true(bias && mix_shape_equal(bias->shape, MIX_SHAPE(1, 4)));
  const float *values = mix_tensor_data(mix_stored_tensor_value(both));
  for (int o = 0; o < 8; o++)
    for (int i = 0; i < 8; i++)
      assert_true((double)values[8 * o + i] == weight_at(model, o < 4 ? 0 : 2, 4 * i + o % 4));
  assert_int_equal(load_by(again, path, "{\"rules\": [" HALVES ROWS "]}"), MIX_OK);
  assert_same_weights(model, again);
}

static void what_no_map_reverses_is_named(void **state) {
  (void)state;
  static const struct {
    const char *map, *message;
  } cases[] = {
      {"{\"rules\": [{\"weight\": \"a/bias\", \"tensor\": \"x\", \"reshape\": true}]}",
       "'a/bias' is reshaped, and the map says not how many"},
      {"{\"rules\": [{\"weight\": \"a/bias\", \"tensor\": \"x\", \"reshape\": [1, 1]}]}",
       "'a/bias' has shape (4), and its rule reshapes another number of axes"},
      {"{\"rules\": [{\"weight\": \"a/bias\", \"tensor\": \"x\", \"reshape\": [9]}]}",
       "reshape is another list"},
      {"{\"rules\": [{\"weight\": \"a/bias\", \"tensor\": \"x\", \"transpose\": [1, 0]}]}",
       "'a/bias' has 1 axes before it is reshaped, and its rule transposes 2"},
      {"{\"rules\": [{\"weight\": \"a/bias\", \"tensor\": \"x\", \"part\": [0, 0, 2]}]}",
       "no weight is the part 1 of 'x', of which 'a/bias' is another"},
      {"{\"rules\": [{\"weight\": \"./bias\", \"tensor\": \"x\", \"part\": [0, 0, 1]}]}",
       "'b/bias' is the part 0 of 'x', which another weight is too"},
      {"{\"rules\": [{\"weight\": \"a/bias\", \"tensor\": \"x\", \"part\": [0, 0, 2000]}]}",
       "has 2000 parts"},
      {"{\"rules\": [{\"weight\": \"./kernel\", \"tensor\": \"x\"}]}",
       "'a/kernel' and 'b/kernel' are of the one tensor 'x', and differ"},
      {"{\"rules\": [{\"weight\": \"a/kernel\", \"tensor\": \"x\", \"part\": [0, 0, 2]},"
       "{\"weight\": \"b/kernel\", \"tensor\": \"x\", \"part\": [1, 1, 2]}]}",
       "'a/kernel' and 'b/kernel' are of 'x' in other parts"},
  };
  char path[512];
  snprintf(path, sizeof path, "%s", in_folder("back.safetensors"));
  mix_model *model = two_heads();
  /* Biases are equal: all of zeros, and one tensor. */
  assert_int_equal(save_by(model, path, "{\"rules\": [{\"weight\": \"./bias\", \"tensor\": \"x\"}]}"),
                   MIX_OK);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_not_equal(save_by(model, path, cases[i].map), MIX_OK);
    assert_error(MIX_VALUE_ERROR, cases[i].message);
  }
  assert_int_equal(mix_safetensors_count(mix_safetensors_open(path, true)), 3); /* the file stays */
  assert_int_not_equal(save_by(model, in_folder("w.npz"), "{\"rules\": []}"), MIX_OK);
  assert_error(MIX_VALUE_ERROR, ".weight_map is for a name that ends in .safetensors");
}

static void without_a_map_names_must_agree(void **state) {
  (void)state;
  const char *path = foreign_file();
  mix_model *model = dense_model("float32", 32);
  assert_int_not_equal(mix_model_load_weights(model, path), MIX_OK);
  assert_error(MIX_VALUE_ERROR, "has no 'h_0/kernel'");
  mix_load_weights_options options = {.size = sizeof options, .path = path, .by_name = true};
  assert_int_not_equal(mix_model_load_weights_with(model, &options), MIX_OK);
  assert_error(MIX_VALUE_ERROR, "not for safetensors");
  assert_int_equal(mix_model_save_weights(model, in_folder("w.npz")), MIX_OK);
  options =
      (mix_load_weights_options){.size = sizeof options, .path = in_folder("w.npz"), .weight_map = path};
  assert_int_not_equal(mix_model_load_weights_with(model, &options), MIX_OK);
  assert_error(MIX_VALUE_ERROR, ".weight_map is for safetensors");
  assert_int_not_equal(mix_model_save(model, in_folder("m.safetensors")), MIX_OK);
  assert_error(MIX_VALUE_ERROR, "mix_model_save_weights");
}

/* A name says what an empty file should have been. */
static void files_cut_short_are_named(void **state) {
  (void)state;
  mix_model *model = dense_model("float32", 32);
  for (int bytes = 0; bytes < 9; bytes++) {
    char text[10] = "\x10zzzzzzz{";
    text[bytes] = 0;
    write_in_folder("/cut.safetensors", text);
    assert_int_not_equal(mix_model_load_weights(model, in_folder("cut.safetensors")), MIX_OK);
    assert_error(MIX_FORMAT_ERROR, "no safetensors file, or one cut short");
  }
}

static void each_allocation_may_fail(void **state) {
  (void)state;
  const char *path = foreign_file();
  mix_model *model = dense_model("float32", 32);
  bool good = false;
  int64_t count = 0;
  for (; !good && count < 20000; count++) {
    mix_inject_allocation_failure(count);
    MIX_SCOPE {
      good = load_by(model, path, "{\"rules\": [" KERNEL "," OTHERS "], \"leave\": [\"step\"]}") == MIX_OK;
    }
    mix_inject_allocation_failure(-1);
    if (!good) assert_error(MIX_MEMORY_ERROR, NULL);
  }
  assert_true(good && count > 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {MODEL_TEST(weights_come_back),
                                     MODEL_TEST(mapped_weights_train),
                                     MODEL_TEST(a_map_renames_splits_and_transposes),
                                     MODEL_TEST(a_map_backwards_joins_and_transposes),
                                     MODEL_TEST(what_no_map_reverses_is_named),
                                     MODEL_TEST(mistakes_in_maps_are_named),
                                     MODEL_TEST(without_a_map_names_must_agree),
                                     MODEL_TEST(files_cut_short_are_named),
                                     MODEL_TEST(each_allocation_may_fail)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
