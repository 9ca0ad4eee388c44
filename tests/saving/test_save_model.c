/* Models and weights in files of Keras: what is in the files (rows Z of the specification), and that our own
 * reader gets back every bit, of predictions, weights and optimizer, and trains on with the same bits. What
 * real Keras makes of the files is for tests/oracle/converted.py. */
#include "saving/recorded_files.h"

#include "base/json.h"
#include "formats/file.h"
#include "formats/hdf5.h"
#include "saving/keras_file.h"
#include "saving/weight_tree.h"
#include "support/expect.h"
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <zip.h>

/* ---- comparing ---- */

static void assert_same_variables(const char *what, mix_list *a, mix_list *b) {
  size_t size_a, size_b;
  assert_int_equal(mix_list_count(a), mix_list_count(b));
  unsigned char *bits_a = bits_of(a, &size_a), *bits_b = bits_of(b, &size_b);
  if (size_a != size_b || memcmp(bits_a, bits_b, size_a)) fail_msg("%s: other bits", what);
  free(bits_a);
  free(bits_b);
}

static void assert_same_tensors(const char *what, mix_list *a, mix_list *b) {
  assert_no_error();
  assert_int_equal(mix_list_count(a), mix_list_count(b));
  for (int i = 0; i < mix_list_count(a); i++) {
    mix_tensor *x = mix_list_get(a, i), *y = mix_list_get(b, i);
    assert_true(mix_shape_equal(mix_tensor_shape(x), mix_tensor_shape(y)));
    const size_t count = (size_t)mix_shape_size(mix_tensor_shape(x));
    if (memcmp(mix_tensor_data(x), mix_tensor_data(y), count * mix_dtype_size(mix_tensor_dtype(x))))
      fail_msg("%s: other bits", what);
  }
}

static mix_list *state_of(mix_model *model) {
  mix_optimizer *optimizer = mix_model_optimizer(model);
  return optimizer ? mix_optimizer_saved_variables(optimizer) : mix_list_new(0, NULL);
}

static void train(mix_model *model, mix_list *x, mix_list *y, double *losses) {
  for (int i = 0; i < 2; i++) losses[i] = mix_logs_get(mix_model_train_on_batch(model, x, y), "loss");
  assert_no_error();
}

/* ---- round trips ---- */

static mix_model *loaded(const char *path) {
  mix_model *model = mix_model_load(path, .custom_layers = classes);
  if (!model) fail_msg("%s: %s", path, mix_error_message());
  return model;
}

static void check_whole(mix_model *model, mix_npz *npz, const char *path) {
  mix_model *again = loaded(path);
  mix_list *x = arrays(npz, "x"), *y = arrays(npz, "y");
  assert_same_variables(path, mix_model_weights(model), mix_model_weights(again));
  assert_same_variables(path, state_of(model), state_of(again));
  assert_same_tensors(path, mix_model_predict(model, x), mix_model_predict(again, x));
  mix_model *twin = loaded(path); /* a call that trains changes the model */
  double losses[2], others[2];
  train(again, x, y, losses);
  train(twin, x, y, others);
  assert_memory_equal(losses, others, sizeof losses);
  assert_same_variables(path, mix_model_weights(again), mix_model_weights(twin));
}

static void check_weights(mix_model *model, const char *source, mix_npz *npz, const char *path) {
  mix_model *other = loaded(source);
  mix_list *zeros = mix_list_new(0, NULL), *weights = mix_model_weights(other);
  for (int i = 0; i < mix_list_count(weights); i++)
    mix_list_append(zeros, mix_zeros_like(mix_variable_true_value(mix_list_get(weights, i))));
  mix_model_set_weights(other, zeros);
  mix_model_load_weights(other, path);
  assert_no_error();
  assert_same_variables(path, mix_model_weights(model), mix_model_weights(other));
  mix_list *x = arrays(npz, "x");
  assert_same_tensors(path, mix_model_predict(model, x), mix_model_predict(other, x));
}

/* A case of files/record.py from the file that Keras wrote, into every kind of file and back. */
static void check_case(const char *generation, const char *name, const char *from) {
  const char *source = extract(generation, name, from);
  if (!source) return;
  char kept[512];
  snprintf(kept, sizeof kept, "%s", source);
  mix_npz *npz = mix_npz_open(extract(generation, name, ".npz"));
  mix_model *model = loaded(kept);
  static const char *const wholes[] = {"saved.keras", "saved.h5"};
  for (int i = 0; i < 2; i++) {
    mix_model_save(model, in_folder(wholes[i]));
    assert_no_error();
    check_whole(model, npz, in_folder(wholes[i]));
  }
  static const char *const weights[] = {"saved.weights.h5", "saved.legacy.h5", "saved.npz"};
  for (int i = 0; i < 3; i++) {
    mix_model_save_weights(model, in_folder(weights[i]));
    assert_no_error();
    check_weights(model, kept, npz, in_folder(weights[i]));
  }
}

static const char *const cases[] = {"nested",   "scaled",   "schedule", "nadam",
                                    "averages", "policies", "custom"};
enum { CASES = sizeof cases / sizeof *cases };

static void recorded_files(void **state) {
  (void)state;
  for (int i = 0; i < CASES; i++) {
    MIX_SCOPE { check_case("keras3", cases[i], ".keras"); }
    MIX_SCOPE { check_case("tf_keras", cases[i], ".keras"); }
    MIX_SCOPE { check_case("keras3", cases[i], ".h5"); }
    MIX_SCOPE { check_case("tf_keras", cases[i], ".h5"); }
  }
  check_case("keras3", "accumulate", ".keras");
}

/* The state that .keras files of tf_keras lack for the optimizers of TensorFlow 2.10 is in .h5. */
static void optimizers_of_before(void **state) {
  (void)state;
  static const char *const names[] = {"old", "old_scaled"};
  for (int i = 0; i < 2; i++) {
    mix_model *model = loaded(extract("tf_keras", names[i], ".h5"));
    assert_true(mix_optimizer_iterations(mix_model_optimizer(model)) == 2);
    mix_model_save(model, in_folder("saved.h5"));
    check_whole(model, mix_npz_open(extract("tf_keras", names[i], ".npz")), in_folder("saved.h5"));
    mix_model_save(model, in_folder("saved.keras"));
    assert_no_error();
    assert_true(mix_optimizer_iterations(mix_model_optimizer(loaded(in_folder("saved.keras")))) == 0);
  }
}

/* ---- what is in the files ---- */

static json_t *config_of(const char *path) {
  size_t size;
  mix_zip *zip = mix_zip_open(path);
  char *text = zip ? mix_zip_read(zip, "config.json", SIZE_MAX - 1, &size) : NULL;
  assert_no_error();
  json_t *config = json_loads(text, 0, NULL);
  mix_free(text);
  assert_non_null(config);
  return config;
}

static bool has(const char *path, const char *object) {
  mix_keras_file file;
  assert_true(mix_keras_file_open(&file, path, false));
  const bool found = mix_hdf5_has(&file.hdf5, object);
  mix_keras_file_close(&file);
  assert_no_error();
  return found;
}

static mix_shape shape_of(const char *path, const char *object, mix_dtype *dtype) {
  mix_keras_file file;
  mix_shape shape = {0};
  assert_true(mix_keras_file_open(&file, path, false));
  assert_true(mix_hdf5_describe(&file.hdf5, object, dtype, &shape));
  mix_keras_file_close(&file);
  return shape;
}

/* The texts of an attribute with commas between. */
static const char *texts_in(const char *path, const char *object, const char *name) {
  static char text[4096];
  mix_keras_file file;
  mix_hdf5_value value;
  assert_true(mix_keras_file_open(&file, path, false));
  if (!mix_hdf5_attribute(&file.hdf5, object, name, &value)) fail_msg("%s has no %s", object, name);
  text[0] = 0;
  for (size_t i = 0; value.texts && i < value.count && strlen(text) < 3000; i++)
    snprintf(text + strlen(text), 512, "%s%s", i ? "," : "", value.texts[i]);
  mix_hdf5_value_free(&value);
  mix_keras_file_close(&file);
  return text;
}

static mix_model *two_layers(const char *first, const char *second) {
  mix_model *model =
      mix_sequential(mix_list_of(mix_dense(.units = 3, .name = first), mix_dense(.units = 2, .name = second)),
                     .name = "chain");
  assert_int_equal(mix_model_build(model, MIX_SHAPE(MIX_UNKNOWN, 4)), MIX_OK);
  return model;
}

static void Z01_members_of_an_archive(void **state) {
  (void)state;
  static const char *const names[] = {"metadata.json", "config.json", "model.weights.h5"};
  const char *path = in_folder("model.keras");
  assert_int_equal(mix_model_save(two_layers("a", "b"), path), MIX_OK);
  zip_t *zip = zip_open(path, ZIP_RDONLY, NULL);
  assert_int_equal(zip_get_num_entries(zip, 0), 3);
  for (zip_uint64_t i = 0; i < 3; i++) {
    zip_stat_t status;
    zip_stat_index(zip, i, 0, &status);
    assert_string_equal(status.name, names[i]);
    assert_int_equal(status.comp_method, ZIP_CM_STORE);
    assert_int_equal(status.size, status.comp_size);
  }
  zip_discard(zip);
}

/* Z05 too: not compiled. */
static void Z02_Z05_groups_are_named_by_classes(void **state) {
  (void)state;
  static const char *const generations[] = {"keras3", "tf_keras"};
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    const char *path = in_folder("model.keras");
    assert_int_equal(mix_model_save(two_layers("a", "b"), path), MIX_OK);
    assert_true(has(path, "vars") && has(path, "layers/dense/vars/1") && has(path, "layers/dense_1/vars/1"));
    assert_false(has(path, "layers/a") || has(path, "layers/input_layer") || has(path, "optimizer"));
    if (g == 0) assert_string_equal(texts_in(path, "layers/dense_1/vars", "name"), "b");
    json_t *config = config_of(path), *compiled = json_object_get(config, "compile_config");
    assert_true(!compiled || json_object_size(compiled) == 0);
    json_decref(config);
  }
}

static void Z03_functional_models_have_their_inputs(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(4));
  mix_model *model = mix_model_new(x, mix_call(mix_dense(.units = 3), x));
  assert_int_equal(mix_model_save_weights(model, in_folder("model.weights.h5")), MIX_OK);
  assert_true(has(in_folder("model.weights.h5"), "layers/input_layer/vars"));
  assert_false(has(in_folder("model.weights.h5"), "layers/input_layer/vars/0"));
  assert_true(has(in_folder("model.weights.h5"), "layers/dense/vars/0"));
}

static void Z04_weights_of_a_recurrent_layer_are_its_cells(void **state) {
  (void)state;
  static const char *const generations[] = {"keras3", "tf_keras"};
  static const char *const weights[] = {"layers/lstm/cell/vars/0", "layers/lstm/cell/vars/1",
                                        "layers/lstm/cell/vars/2"};
  const mix_shape shapes[] = {MIX_SHAPE(4, 12), MIX_SHAPE(3, 12), MIX_SHAPE(12)};
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    mix_model *model = mix_sequential(mix_list_of(mix_lstm(3, .name = "a")));
    assert_int_equal(mix_model_build(model, MIX_SHAPE(MIX_UNKNOWN, 2, 4)), MIX_OK);
    const char *path = in_folder("model.weights.h5");
    assert_int_equal(mix_model_save_weights(model, path), MIX_OK);
    for (int i = 0; i < 3; i++) {
      mix_dtype dtype;
      assert_true(mix_shape_equal(shape_of(path, weights[i], &dtype), shapes[i]));
    }
    assert_false(has(path, "layers/lstm/vars/0") || has(path, "layers/lstm/cell/vars/3"));
  }
}

static void Z08_mixed_policies(void **state) {
  (void)state;
  mix_dtype dtype;
  mix_set_semantics("keras3");
  mix_set_global_policy("mixed_float16");
  const char *path = in_folder("model.keras");
  assert_int_equal(mix_model_save(two_layers("a", "b"), path), MIX_OK);
  json_t *config = config_of(path), *layers = json_object_get(json_object_get(config, "config"), "layers");
  for (size_t i = 1; i < 3; i++) {
    json_t *own = json_object_get(json_object_get(json_array_get(layers, i), "config"), "dtype");
    assert_string_equal(json_string_value(json_object_get(json_object_get(own, "config"), "name")),
                        "mixed_float16");
  }
  json_decref(config);
  assert_true(mix_shape_equal(shape_of(path, "layers/dense/vars/0", &dtype), MIX_SHAPE(4, 3)));
  assert_int_equal(dtype, MIX_FLOAT32);
}

/* Only Keras 3 reads bfloat16; the others read float32 into bfloat16. */
static void Z09_bfloat16(void **state) {
  (void)state;
  static const struct {
    const char *semantics, *file;
    mix_dtype dtype;
  } rows[] = {{"keras3", "model.weights.h5", MIX_BFLOAT16},
              {"keras3", "model.h5", MIX_FLOAT32},
              {"tf_keras", "model.weights.h5", MIX_FLOAT32}};
  for (int i = 0; i < 3; i++) {
    mix_dtype dtype;
    mix_set_semantics(rows[i].semantics);
    mix_set_global_policy("bfloat16");
    mix_model *model = two_layers("a", "b"), *other = two_layers("a", "b");
    const char *path = in_folder(rows[i].file), *object = i == 1 ? "a/chain/a/kernel" : "layers/dense/vars/0";
    assert_int_equal(mix_model_save_weights(model, path), MIX_OK);
    shape_of(path, object, &dtype);
    assert_int_equal(dtype, rows[i].dtype);
    if (i == 0) assert_string_equal(texts_in(path, object, "dtype"), "bfloat16");
    assert_int_equal(mix_model_load_weights(other, path), MIX_OK);
    assert_same_variables(path, mix_model_weights(model), mix_model_weights(other));
  }
}

/* As in the .h5 of Keras 3, which it cannot read itself. */
static void bfloat16_without_its_name(void **state) {
  (void)state;
  size_t size;
  mix_set_semantics("keras3");
  mix_set_global_policy("bfloat16");
  mix_model *model = two_layers("a", "b"), *other = two_layers("a", "b");
  const char *path = in_folder("model.weights.h5");
  assert_int_equal(mix_model_save_weights(model, path), MIX_OK);
  char *bytes = mix_file_read(path, SIZE_MAX - 1, &size);
  int found = 0;
  for (size_t i = 0; i + 6 < size; i++)
    if (!memcmp(bytes + i, "dtype", 6)) memcpy(bytes + i, "dtypo", 5), found++;
  assert_true(found > 0);
  FILE *file = fopen(path, "wb");
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  fclose(file);
  mix_free(bytes);
  assert_int_equal(mix_model_load_weights(other, path), MIX_OK);
  assert_same_variables(path, mix_model_weights(model), mix_model_weights(other));
}

static bool add_name(void *context, const char *name, bool is_group) {
  (void)is_group;
  strcat(strcat(context, name), " ");
  return true;
}

static void Z10_legacy_names(void **state) {
  (void)state;
  static const char *const kernels[] = {"chain/zz/kernel,chain/zz/bias", "chain/zz/kernel:0,chain/zz/bias:0"};
  static const char *const generations[] = {"keras3", "tf_keras"};
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    char names[256] = "";
    mix_keras_file file;
    assert_int_equal(mix_model_save(two_layers("zz", "aa"), in_folder("model.h5")), MIX_OK);
    assert_string_equal(texts_in(in_folder("model.h5"), "model_weights", "layer_names"), "zz,aa");
    assert_string_equal(texts_in(in_folder("model.h5"), "model_weights/zz", "weight_names"), kernels[g]);
    assert_string_equal(texts_in(in_folder("model.h5"), "", "backend"), "tensorflow");
    assert_true(mix_keras_file_open(&file, in_folder("model.h5"), true));
    assert_true(mix_hdf5_list(&file.hdf5, "model_weights", add_name, names));
    assert_string_equal(names, "aa top_level_model_weights zz ");
    json_t *layer = json_array_get(json_object_get(json_object_get(file.model, "config"), "layers"), 1);
    assert_null(json_object_get(layer, "module"));
    assert_null(json_object_get(file.model, "compile_config"));
    mix_keras_file_close(&file);
  }
}

/* Archives have the public name of a class, legacy files the name inside Keras. */
static void a_class_of_two_names(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(5, 4));
  mix_layer *layer =
      mix_grouped_query_attention(.head_dim = 3, .num_query_heads = 4, .num_key_value_heads = 2);
  mix_model *model = mix_model_new(x, mix_call(layer, x, .arguments = mix_list_of(x)));
  static const char *const files[] = {"model.keras", "model.h5"};
  static const char *const names[] = {"GroupQueryAttention", "GroupedQueryAttention"};
  for (int i = 0; i < 2; i++) {
    mix_keras_file file;
    assert_int_equal(mix_model_save(model, in_folder(files[i])), MIX_OK);
    assert_true(mix_keras_file_open(&file, in_folder(files[i]), true));
    json_t *made = json_array_get(json_object_get(json_object_get(file.model, "config"), "layers"), 1);
    assert_string_equal(json_string_value(json_object_get(made, "class_name")), names[i]);
    mix_keras_file_close(&file);
    assert_same_variables(files[i], mix_model_weights(model), mix_model_weights(loaded(in_folder(files[i]))));
  }
}

static void Z12_names_of_three_thousand_layers(void **state) {
  (void)state;
  mix_list *layers = mix_list_new(0, NULL);
  for (int i = 0; i < 3000; i++) {
    char name[64];
    snprintf(name, sizeof name, "a_layer_with_a_longer_name_%04d", i);
    mix_list_append(layers, mix_activation("linear", .name = name));
  }
  mix_list_append(layers, mix_dense(.units = 1, .name = "last"));
  mix_model *model = mix_sequential(layers);
  mix_model_build(model, MIX_SHAPE(MIX_UNKNOWN, 1));
  assert_no_error();
  const char *path = in_folder("model.h5");
  assert_int_equal(mix_model_save_weights(model, path), MIX_OK);
  assert_true(!strncmp(texts_in(path, "", "layer_names0"), "a_layer_with_a_longer_name_0000,", 32));
  assert_true(!strncmp(texts_in(path, "", "layer_names1"), "a_layer_with_a_longer_name_1501,", 32));
  assert_int_equal(mix_model_load_weights(model, path), MIX_OK);
}

/* Two weights of one name, which Keras cannot save in the legacy form. */
static mix_status pair_build(mix_layer *layer, int count, const mix_shape *shapes) {
  (void)count, (void)shapes;
  mix_layer_add_weight(layer, "same", .shape = MIX_SHAPE(2), .initializer = "ones");
  mix_layer_add_weight(layer, "same", .shape = MIX_SHAPE(3), .initializer = "zeros");
  return mix_error();
}
static mix_list *pair_call(mix_layer *layer, const mix_call_args *args) {
  (void)layer;
  return mix_list_of(mix_call_input(args, 0));
}
static const mix_layer_class pair_class = {
    .size = sizeof(mix_layer_class), .name = "Pair", .build = pair_build, .call = pair_call};

static void two_weights_of_one_name(void **state) {
  (void)state;
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(4));
  mix_model *model = mix_model_new(x, mix_call(mix_layer_new(.layer_class = &pair_class, .name = "pair"), x));
  const char *path = in_folder("model.h5");
  assert_int_equal(mix_model_save_weights(model, path), MIX_OK);
  assert_string_equal(texts_in(path, "pair", "weight_names"), "pair/same:0,pair/same_1:0");
  assert_int_equal(mix_model_load_weights(model, path), MIX_OK);
}

static mix_model *with_models_inside_of_layers(void) {
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(4, 3)), *step = mix_input(.shape = MIX_SHAPE(2));
  mix_model *chain = mix_sequential(mix_list_of(mix_dense(5, "relu"), mix_dense(2)), .name = "chain");
  mix_model *graph = mix_model_new(step, mix_call(mix_dense(3), step), .name = "graph");
  mix_tensor *y = mix_call(mix_time_distributed(mix_model_layer(chain)), x);
  return mix_model_new(x, mix_call(mix_time_distributed(mix_model_layer(graph)), y));
}

/* The config of a TimeDistributed alone does not have that of a model in it. */
static void models_inside_of_layers(void **state) {
  (void)state;
  static const char *const generations[] = {"keras3", "tf_keras"}, *const names[] = {"in.keras", "in.h5"};
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    mix_model *model = with_models_inside_of_layers();
    mix_list *x = mix_list_of(mix_reshape(mix_range(-12, 12, 1, MIX_FLOAT32), MIX_SHAPE(2, 4, 3)));
    for (int i = 0; i < 2; i++) {
      mix_model_save(model, in_folder(names[i]));
      mix_model *again = loaded(in_folder(names[i]));
      assert_same_tensors(names[i], mix_model_predict(model, x), mix_model_predict(again, x));
    }
    mix_model *clone = mix_model_clone(model);
    mix_model_set_weights(clone, mix_model_get_weights(model));
    assert_no_error();
    assert_same_tensors("clone", mix_model_predict(model, x), mix_model_predict(clone, x));
  }
}

/* One model under a TimeDistributed and called by itself. */
static mix_model *with_a_shared_model(bool functional) {
  mix_tensor *a = mix_input(.shape = MIX_SHAPE(3, 4), .name = "a"),
             *b = mix_input(.shape = MIX_SHAPE(4), .name = "b");
  mix_tensor *step = mix_input(.shape = MIX_SHAPE(4), .name = "step");
  mix_layer *dense = mix_dense(4, "tanh", .name = "d");
  mix_model *inner = functional ? mix_model_new(step, mix_call(dense, step), .name = "inner")
                                : mix_sequential(mix_list_of(dense), .name = "inner");
  if (!functional) mix_model_build(inner, MIX_SHAPE(MIX_UNKNOWN, 4));
  mix_tensor *steps = mix_call(mix_time_distributed(mix_model_layer(inner), .name = "td"), a);
  mix_tensor *alone = mix_call(mix_model_layer(inner), b);
  mix_model *other = mix_sequential(mix_list_of(mix_dense(4, .name = "e")), .name = "other");
  mix_model_build(other, MIX_SHAPE(MIX_UNKNOWN, 4));
  alone = mix_call(mix_model_layer(other), alone);
  mix_model *model =
      mix_model_new(mix_list_of(a, b), mix_list_of(mix_call(mix_flatten(), steps), alone), .name = "whole");
  mix_model_compile(model, .loss = "mse", .optimizer = mix_adam());
  return model;
}

static mix_list *shared_x(void) {
  return mix_list_of(mix_reshape(mix_range(-12, 12, 1, F32), MIX_SHAPE(2, 3, 4)),
                     mix_fill(MIX_SHAPE(2, 4), 0.5, F32));
}
static mix_list *shared_y(void) {
  return mix_list_of(mix_fill(MIX_SHAPE(2, 12), 1, F32), mix_fill(MIX_SHAPE(2, 4), 1, F32));
}

/* As Python writes it: the id stands in the second object alone. */
static char *without_first_id(const char *path) {
  json_t *config = config_of(path), *layers = json_object_get(json_object_get(config, "config"), "layers");
  json_t *first = NULL;
  for (size_t i = 0; i < json_array_size(layers); i++) {
    json_t *inner = json_object_get(json_object_get(json_array_get(layers, i), "config"), "layer");
    if (inner) first = inner;
  }
  assert_true(json_is_integer(json_object_get(first, "shared_object_id")));
  json_object_del(first, "shared_object_id");
  char *text = json_dumps(config, 0);
  json_decref(config);
  return text;
}

static void a_model_shared_by_a_wrapper(void **state) {
  (void)state;
  static const char *const generations[] = {"keras3", "tf_keras"}, *const names[] = {"in.keras", "in.h5"};
  for (int i = 0; i < 4; i++) {
    mix_set_semantics(generations[i % 2]);
    mix_model *model = with_a_shared_model(i / 2);
    mix_model_train_on_batch(model, shared_x(), shared_y());
    double losses[2], others[2];
    for (int n = 0; n < 2; n++) mix_model_save(model, in_folder(names[n]));
    train(model, shared_x(), shared_y(), losses);
    for (int n = 0; n < 2; n++) {
      mix_model *again = loaded(in_folder(names[n]));
      assert_int_equal(mix_list_count(mix_model_weights(again)), 4);
      train(again, shared_x(), shared_y(), others);
      assert_memory_equal(losses, others, sizeof losses);
      assert_same_variables(names[n], mix_model_weights(model), mix_model_weights(again));
    }
    char *text = without_first_id(in_folder("in.keras"));
    mix_model *read = mix_model_from_json(text);
    assert_no_error();
    assert_int_equal(mix_list_count(mix_model_weights(read)), 4);
    free(text);
    /* tf_keras makes a model for each place when it loads the archive, and looks for weights there */
    const char *second =
        i / 2 ? "layers/functional/layers/dense/vars/0" : "layers/sequential/layers/dense/vars/0";
    const char *next =
        i < 2 ? "layers/sequential_1/layers/dense/vars/0" : "layers/sequential/layers/dense/vars/0";
    assert_true(has(in_folder("in.keras"), "layers/time_distributed/layer/layers/dense/vars/0"));
    assert_true(has(in_folder("in.keras"), next));
    assert_int_equal(has(in_folder("in.keras"), second), i % 2);
    /* in Python the models are the same */
    mix_model_save_weights(model, in_folder("in.weights.h5"));
    assert_int_equal(mix_model_load_weights(read, in_folder("in.weights.h5")), MIX_OK);
    assert_same_variables("in.weights.h5", mix_model_weights(model), mix_model_weights(read));
    assert_int_equal(has(in_folder("in.weights.h5"), "layers/sequential_1/layers/dense/vars/0"), i == 0);
  }
}

/* Keras 3 counts the calls of a Functional model from 1 where its result is an output, and from 0 elsewhere.
 */
static void a_functional_model_at_the_end(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(4)), *step = mix_input(.shape = MIX_SHAPE(4));
  mix_model *inner = mix_model_new(step, mix_call(mix_dense(4), step), .name = "inner");
  mix_tensor *once = mix_call(mix_model_layer(inner), x);
  mix_model *model = mix_model_new(x, mix_list_of(once, mix_call(mix_model_layer(inner), once)));
  const char *path = in_folder("in.keras");
  assert_int_equal(mix_model_save(model, path), MIX_OK);
  json_t *config = config_of(path),
         *ends = json_object_get(json_object_get(config, "config"), "output_layers");
  for (size_t i = 0; i < 2; i++)
    assert_int_equal(json_integer_value(json_array_get(json_array_get(ends, i), 1)), i + 1);
  json_decref(config);
  mix_list *data = mix_list_of(mix_fill(MIX_SHAPE(2, 4), 0.5, F32));
  assert_same_tensors(path, mix_model_predict(model, data), mix_model_predict(loaded(path), data));
}

/* ---- layers of a user's ---- */

/* Inner layers that are made in `build` without names, of which each model counts on. */
static mix_status unnamed_build(mix_layer *layer, int count, const mix_shape *shapes) {
  (void)count, (void)shapes;
  mix_layer **inner = mix_layer_data(layer);
  for (int i = 0; i < 3; i++)
    inner[i] = mix_layer_add_layer(layer, i == 1 ? mix_layer_normalization() : mix_dense(.units = 4 + i));
  return mix_error();
}
static mix_list *unnamed_call(mix_layer *layer, const mix_call_args *args) {
  mix_layer **inner = mix_layer_data(layer);
  mix_tensor *y = mix_call_input(args, 0);
  for (int i = 0; i < 3; i++) y = mix_call(inner[i], y);
  return mix_list_of(y);
}
/* A key of the config that models have too. */
static mix_status unnamed_config(mix_layer *layer, mix_config *config) {
  (void)layer;
  return mix_config_json(config, "layers",
                         "[1, \"two\", {\"class_name\": \"Dense\", \"module\": \"keras.layers\"}]");
}
static mix_status unnamed_from_config(mix_layer *layer, mix_config *config) {
  const char *layers = mix_config_get_json(config, "layers");
  (void)layer;
  assert_non_null(layers);
  assert_non_null(strstr(layers, "\"two\""));
  assert_non_null(strstr(layers, "\"keras.layers\""));
  return mix_error();
}
static const mix_layer_class unnamed_class = {.size = sizeof(mix_layer_class),
                                              .name = "Unnamed",
                                              .instance_size = 3 * sizeof(mix_layer *),
                                              .build = unnamed_build,
                                              .call = unnamed_call,
                                              .get_config = unnamed_config,
                                              .from_config = unnamed_from_config};

static void layers_without_names_inside_of_others(void **state) {
  (void)state;
  static const char *const generations[] = {"keras3", "tf_keras"}, *const names[] = {"in.keras", "in.h5"};
  mix_register_layer("test", NULL, &unnamed_class);
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    mix_dense(.units = 1); /* takes a name */
    mix_tensor *x = mix_input(.shape = MIX_SHAPE(4));
    mix_model *model = mix_model_new(x, mix_call(mix_layer_new(.layer_class = &unnamed_class), x));
    mix_list *data = mix_list_of(mix_fill(MIX_SHAPE(2, 4), 0.5, F32));
    for (int n = 0; n < 2; n++) {
      mix_model_save(model, in_folder(names[n]));
      mix_model *again = loaded(in_folder(names[n]));
      assert_same_tensors(names[n], mix_model_predict(model, data), mix_model_predict(again, data));
    }
    assert_true(has(in_folder("in.keras"), "layers/unnamed/dense/vars/1"));
    assert_true(has(in_folder("in.keras"), "layers/unnamed/dense_1/vars/1"));
    assert_true(has(in_folder("in.keras"), "layers/unnamed/layer_normalization/vars/1"));
  }
}

/* The text of a layer alone has the model in it. */
static void a_layer_alone_with_a_model_in_it(void **state) {
  (void)state;
  static const char *const generations[] = {"keras3", "tf_keras"};
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    mix_model *chain = mix_sequential(mix_list_of(mix_dense(5, "relu"), mix_dense(2)), .name = "chain");
    mix_model_build(chain, MIX_SHAPE(MIX_UNKNOWN, 3));
    mix_layer *layer = mix_time_distributed(mix_model_layer(chain)), *made[3];
    made[0] = mix_layer_deserialize(mix_layer_serialize(layer), NULL);
    made[1] = mix_layer_from_config("TimeDistributed", mix_layer_config(layer), NULL);
    made[2] = mix_layer_deserialize(mix_layer_serialize(mix_model_layer(chain)), NULL);
    for (int i = 0; i < 3; i++) {
      assert_no_error();
      const mix_shape in = i < 2 ? MIX_SHAPE(2, 4, 3) : MIX_SHAPE(2, 3);
      mix_tensor *y = mix_call(made[i], mix_fill(in, 1, F32));
      assert_no_error();
      assert_int_equal(mix_tensor_shape(y).dims[mix_tensor_shape(y).rank - 1], 2);
      assert_int_equal(mix_list_count(mix_layer_weights(made[i])), 4);
    }
  }
}

/* Under another global policy Keras would not wrap the optimizer, and not find its state. */
static void the_wrapped_optimizer_is_saved(void **state) {
  (void)state;
  static const char *const generations[] = {"keras3", "tf_keras"};
  static const char *const names[] = {"LossScaleOptimizer", "LossScaleOptimizerV3"};
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    mix_set_global_policy("mixed_float16");
    mix_model *model = two_layers("a", "b");
    mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(.momentum = 0.5));
    assert_int_equal(mix_model_save(model, in_folder("model.keras")), MIX_OK);
    mix_set_global_policy("float32");
    json_t *config = config_of(in_folder("model.keras"));
    json_t *optimizer = json_object_get(json_object_get(config, "compile_config"), "optimizer");
    assert_string_equal(json_string_value(json_object_get(optimizer, "class_name")), names[g]);
    json_decref(config);
    assert_true(has(in_folder("model.keras"), "optimizer/inner_optimizer/vars"));
    mix_model_save(model, in_folder("plain.keras"), .no_optimizer = true);
    assert_no_error();
    assert_false(has(in_folder("plain.keras"), "optimizer"));
    assert_null(mix_model_optimizer(loaded(in_folder("plain.keras"))));
  }
}

/* The whole state of the plain optimizer's file goes into one that a policy has wrapped. */
static void expect_taken(mix_list *before, bool nadam) {
  mix_set_global_policy("mixed_float16");
  mix_model *scaled = two_layers("a", "b");
  mix_model_compile(scaled, .loss = "mse", .optimizer = nadam ? mix_nadam() : mix_adafactor());
  mix_optimizer *own = mix_optimizer_inner(mix_model_optimizer(scaled));
  mix_optimizer_build(own, mix_model_trainable_variables(scaled));
  mix_model_load_weights(scaled, in_folder("wrapped.keras"));
  assert_no_error();
  mix_list *taken = mix_optimizer_variables(own);
  assert_int_equal(mix_list_count(before), mix_list_count(taken));
  for (int v = 0; v < mix_list_count(before); v++)
    assert_true(at(mix_variable_value(mix_list_get(before, v)), 0) ==
                at(mix_variable_value(mix_list_get(taken, v)), 0));
}

/* Keras 3 makes Nadam's product, and what stands in for slots that a vector has not, while it tracks nothing:
 * its files lack them under a loss-scale optimizer, and Nadam begins anew with its product. A file has 10 of
 * the counter, the rate and eight slots: two of each of the four weights (Nadam), or one of each and two more
 * of each matrix (Adafactor); unwrapped 1 for the product, or 4 for two of each vector. */
static void what_a_wrapped_optimizer_does_not_track(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  for (int i = 0; i < 4; i++)
    MIX_SCOPE {
      const bool wrapped = i < 2, nadam = i % 2;
      const int inner = wrapped ? 10 : nadam ? 10 + 1 : 10 + 4;
      mix_set_global_policy(wrapped ? "mixed_float16" : "float32");
      mix_model *model = two_layers("a", "b");
      mix_model_compile(model, .loss = "mse", .optimizer = nadam ? mix_nadam() : mix_adafactor());
      mix_list *x = mix_list_of(mix_fill(MIX_SHAPE(4, 4), 0.5, F32)),
               *y = mix_list_of(mix_fill(MIX_SHAPE(4, 2), 1, F32));
      train(model, x, y, (double[3]){0});
      mix_model_save(model, in_folder("wrapped.keras"));
      assert_no_error();
      char path[80];
      for (int own = 0; own <= wrapped; own++) {
        const char *group = wrapped && !own ? "optimizer/inner_optimizer/vars" : "optimizer/vars";
        const int before = own ? 4 : 0; /* the wrapper's counter, rate, steps since a change and scale */
        for (int over = 0; over < 2; over++) {
          snprintf(path, sizeof path, "%s/%d", group, before + inner - 1 + over);
          if (has(in_folder("wrapped.keras"), path) == over) fail_msg("case %d: %s", i, path);
        }
      }
      mix_list *before = mix_optimizer_variables(mix_model_optimizer(model)),
               *after = mix_optimizer_variables(mix_model_optimizer(loaded(in_folder("wrapped.keras"))));
      assert_int_equal(mix_list_count(before), mix_list_count(after));
      int differ = 0;
      for (int v = 0; v < mix_list_count(before); v++)
        differ += at(mix_variable_value(mix_list_get(before, v)), 0) !=
                  at(mix_variable_value(mix_list_get(after, v)), 0);
      assert_int_equal(differ, wrapped && nadam);
      if (!wrapped) expect_taken(before, nadam);
      mix_set_global_policy("float32");
    }
}

/* Its files are those of tf_keras, with the optimizers that are legacy there. */
static void the_experimental_generation(void **state) {
  (void)state;
  static const char *const policies[] = {"float32", "mixed_float16"};
  for (int p = 0; p < 2; p++) {
    mix_set_semantics("experimental");
    mix_set_global_policy(policies[p]);
    mix_model *model = two_layers("a", "b");
    mix_model_compile(model, .loss = "mse", .optimizer = mix_rmsprop(.momentum = 0.5), .metrics = {"mae"});
    mix_tensor *x = mix_fill(MIX_SHAPE(6, 4), 1, F32), *y = mix_fill(MIX_SHAPE(6, 2), 1, F32);
    mix_model_train_on_batch(model, x, y);
    mix_model_save(model, in_folder("model.keras"));
    mix_model_save(model, in_folder("model.h5"));
    mix_set_global_policy("float32");
    mix_model *archive = loaded(in_folder("model.keras")), *legacy = loaded(in_folder("model.h5"));
    assert_same_variables("model.keras", mix_model_weights(model), mix_model_weights(archive));
    assert_same_variables("model.h5", mix_model_weights(model), mix_model_weights(legacy));
    assert_same_variables("model.h5", state_of(model), state_of(legacy));
    assert_same_tensors("model.h5", mix_model_predict(model, x), mix_model_predict(legacy, x));
    assert_int_equal(mix_optimizer_dynamic(mix_model_optimizer(archive)), p == 1);
    assert_string_equal(texts_in(in_folder("model.h5"), "", "keras_version"), "2.21.0");
    const double loss = mix_logs_get(mix_model_train_on_batch(model, x, y), "loss");
    assert_true(mix_logs_get(mix_model_train_on_batch(legacy, x, y), "loss") == loss);
    assert_same_variables("model.h5", mix_model_weights(model), mix_model_weights(legacy));
  }
}

/* ---- what cannot be saved ---- */

static void names_and_models_that_are_refused(void **state) {
  (void)state;
  mix_model *model = two_layers("a", "b");
  static const char *const names[] = {"model", "model.onnx", "model.npz", "model.weights.h5", ".keras"};
  for (int i = 0; i < 5; i++) {
    assert_int_equal(mix_model_save(model, names[i]), MIX_VALUE_ERROR);
    expect_error(MIX_VALUE_ERROR, "ends in .keras");
  }
  assert_int_equal(mix_model_save(model, NULL), MIX_TYPE_ERROR);
  expect_error(MIX_TYPE_ERROR, "path is NULL");
  assert_int_equal(mix_model_save_weights(model, "model.keras"), MIX_VALUE_ERROR);
  expect_error(MIX_VALUE_ERROR, "mix_model_save");
  mix_model *subclassed = mix_subclassed(mix_layer_new(.layer_class = &pair_class));
  mix_model_call(subclassed, counting(2));
  assert_no_error();
  assert_int_equal(mix_model_save(subclassed, in_folder("model.keras")), MIX_UNSUPPORTED);
  expect_error(MIX_UNSUPPORTED, "is a subclassed model");
  assert_int_equal(mix_model_save_weights(subclassed, in_folder("model.weights.h5")), MIX_OK);
  assert_int_equal(mix_model_load_weights(subclassed, in_folder("model.weights.h5")), MIX_OK);
}

static void files_that_exist(void **state) {
  (void)state;
  mix_model *model = two_layers("a", "b");
  static const char *const names[] = {"model.keras", "model.h5"};
  for (int i = 0; i < 2; i++) {
    struct stat status;
    const char *path = in_folder(names[i]);
    assert_int_equal(mix_model_save(model, path), MIX_OK);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(mix_model_save(model, path), MIX_OK);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0640);
    assert_int_equal(mix_model_save(model, path, .no_overwrite = true), MIX_IO_ERROR);
    expect_error(MIX_IO_ERROR, "exists already");
  }
}

static void a_folder_that_is_missing(void **state) {
  (void)state;
  mix_model *model = two_layers("a", "b");
  mix_model_save(model, in_folder("none/model.keras"));
  expect_error(MIX_IO_ERROR, "none/model.keras cannot be written");
  mix_model_save(model, in_folder("none/model.h5"));
  expect_error(MIX_IO_ERROR, "none/model.h5 cannot be written");
  mix_model_save_weights(model, in_folder("none/model.weights.h5"));
  expect_error(MIX_IO_ERROR, "none/model.weights.h5 cannot be written");
}

/* A limit on the size of files has the effect of a full disk. The old file stays, and nothing beside it. */
static void a_full_disk(void **state) {
  (void)state;
  mix_model *model = two_layers("a", "b");
  static const char *const names[] = {"model.keras", "model.h5", "model.weights.h5"};
  struct rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
  for (int i = 0; i < 3; i++) {
    const char *path = in_folder(names[i]);
    struct stat status;
    mix_status (*save)(mix_model *, const char *) = mix_model_save_weights;
    if (i < 2)
      mix_model_save(model, path);
    else
      save(model, path);
    assert_no_error();
    stat(path, &status);
    const int files = folder_count();
    for (rlim_t limit = 0; limit < (rlim_t)status.st_size; limit += (rlim_t)status.st_size / 10 + 1) {
      struct rlimit small = {limit, before.rlim_max};
      setrlimit(RLIMIT_FSIZE, &small);
      if (i < 2)
        mix_model_save(model, path);
      else
        save(model, path);
      setrlimit(RLIMIT_FSIZE, &before);
      expect_error(MIX_IO_ERROR, "cannot be written");
      assert_int_equal(folder_count(), files);
      if (i < 2) loaded(path);
    }
  }
  signal(SIGXFSZ, handler);
}

static void any_allocation_fails(void **state) {
  (void)state;
  mix_model *model = two_layers("a", "b");
  mix_model_compile(model, .loss = "mse", .optimizer = mix_adam());
  static const char *const names[] = {"model.keras", "model.h5"};
  for (int n = 0; n < 2; n++) {
    const char *path = in_folder(names[n]);
    assert_int_equal(mix_model_save(model, path), MIX_OK);
    const int files = folder_count();
    int failed = 0;
    for (int64_t i = 0;; i += 1 + i / 64) { /* each of the first, and fewer of many */
      bool pending = false;
      MIX_SCOPE {
        mix_inject_allocation_failure(i);
        mix_model_save(model, path);
        pending = mix_allocation_failure_injected();
        mix_inject_allocation_failure(-1);
      }
      if (pending) break;
      if (mix_error()) expect_error(MIX_MEMORY_ERROR, "memory"), failed++;
      assert_int_equal(folder_count(), files);
    }
    assert_true(failed > 20);
    loaded(path);
  }
}

static int begin(void **state) { return folder_begin(state) || setup(state); }
static int end(void **state) { return teardown(state) || folder_end(state); }

int main(void) {
#define SAVE_TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)
  const struct CMUnitTest tests[] = {SAVE_TEST(recorded_files),
                                     SAVE_TEST(optimizers_of_before),
                                     SAVE_TEST(Z01_members_of_an_archive),
                                     SAVE_TEST(Z02_Z05_groups_are_named_by_classes),
                                     SAVE_TEST(Z03_functional_models_have_their_inputs),
                                     SAVE_TEST(Z04_weights_of_a_recurrent_layer_are_its_cells),
                                     SAVE_TEST(Z08_mixed_policies),
                                     SAVE_TEST(Z09_bfloat16),
                                     SAVE_TEST(bfloat16_without_its_name),
                                     SAVE_TEST(Z10_legacy_names),
                                     SAVE_TEST(a_class_of_two_names),
                                     SAVE_TEST(Z12_names_of_three_thousand_layers),
                                     SAVE_TEST(two_weights_of_one_name),
                                     SAVE_TEST(models_inside_of_layers),
                                     SAVE_TEST(a_model_shared_by_a_wrapper),
                                     SAVE_TEST(a_functional_model_at_the_end),
                                     SAVE_TEST(layers_without_names_inside_of_others),
                                     SAVE_TEST(a_layer_alone_with_a_model_in_it),
                                     SAVE_TEST(the_wrapped_optimizer_is_saved),
                                     SAVE_TEST(what_a_wrapped_optimizer_does_not_track),
                                     SAVE_TEST(the_experimental_generation),
                                     SAVE_TEST(names_and_models_that_are_refused),
                                     SAVE_TEST(files_that_exist),
                                     SAVE_TEST(a_folder_that_is_missing),
                                     SAVE_TEST(a_full_disk),
                                     SAVE_TEST(any_allocation_fails)};
  return cmocka_run_group_tests_name("saving models", tests, NULL, NULL);
}
