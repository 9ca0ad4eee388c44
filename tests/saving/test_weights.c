/* Weights: get and set, .npz files by name and by number, between policies. */
#include "model/support.h"

#include <unistd.h>

static char path[64];
static int folder_setup(void **state) {
  strcpy(path, "/tmp/mixtape-test-XXXXXX.npz");
  int file = mkstemps(path, 4);
  if (file >= 0) close(file);
  return file < 0 ? -1 : setup(state);
}
static int folder_teardown(void **state) {
  unlink(path);
  return teardown(state);
}
#define FILE_TEST(function) cmocka_unit_test_setup_teardown(function, folder_setup, folder_teardown)

static mix_model *model_under(const char *policy) {
  mix_set_global_policy(policy);
  mix_clear_names();
  return guide_model(12, 16);
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

static void M04_weights_saved_mixed_load_into_float32(void **state) {
  (void)state;
  mix_set_seed(1);
  mix_model *mixed = model_under("mixed_float16");
  assert_int_equal(mix_model_save_weights(mixed, path), MIX_OK);
  mix_set_seed(2);
  mix_model *plain = model_under("float32");
  assert_int_equal(mix_model_load_weights(plain, path), MIX_OK);
  assert_same_weights(mixed, plain);
}

/* Outputs of a softmax within 2e-3: two hidden layers in float16 (eps 2^-10, sums of 12 and 16 products). */
static void M06_weights_move_between_policies(void **state) {
  (void)state;
  mix_set_seed(1);
  mix_model *plain = model_under("float32");
  mix_set_seed(2);
  mix_model *mixed = model_under("mixed_float16");
  assert_int_equal(mix_model_set_weights(mixed, mix_model_get_weights(plain)), MIX_OK);
  assert_same_weights(mixed, plain);
  examples e = examples_of(30, 12, 10);
  mix_tensor *a = mix_model_call(plain, e.x), *b = mix_model_call(mixed, e.x);
  double distance = 0;
  for (int i = 0; i < 300; i++) distance = fmax(distance, fabs(at(a, i) - at(b, i)));
  assert_true(distance > 0 && distance <= 2e-3);
  assert_int_equal(mix_model_set_weights(plain, mix_model_get_weights(mixed)), MIX_OK);
  assert_same_weights(mixed, plain);
}

static void W10_restored_weights_start_training_from_the_same_values(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  mix_model *model = compiled_guide_model(12, 16);
  mix_list *initial = mix_model_get_weights(model);
  examples e = examples_of(64, 12, 10);
  step_losses_seen first = {.count = 0}, again = {.count = 0};
  mix_model_fit(model, e.x, e.y, .no_shuffle = true, .on_step = see_step, .context = &first,
                .verbose = MIX_SILENT);
  assert_int_equal(mix_model_set_weights(model, initial), MIX_OK);
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                    .optimizer = mix_rmsprop(.learning_rate = 0), .metrics = {"accuracy"});
  mix_model_fit(model, e.x, e.y, .no_shuffle = true, .on_step = see_step, .context = &again,
                .verbose = MIX_SILENT);
  assert_int_equal(first.count, 2);
  assert_memory_equal(first.loss, again.loss, sizeof first.loss[0] * 2);
}

static void copies_do_not_follow_the_weights(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0.25);
  mix_list *copies = mix_model_get_weights(model);
  mix_model_train_on_batch(model, ARRAY(F32, MIX_SHAPE(1, 1), 1), ARRAY(F32, MIX_SHAPE(1, 1), 0));
  assert_true(at(mix_list_get(copies, 0), 0) == 1 && weight_at(model, 0, 0) == 0.5);
}

static void set_weights_checks_count_and_shapes(void **state) {
  (void)state;
  mix_model *model = model_under("float32");
  mix_list *weights = mix_model_get_weights(model);
  assert_int_equal(mix_list_count(weights), 6);
  assert_int_equal(mix_model_set_weights(model, mix_list_of(mix_list_get(weights, 0))), MIX_VALUE_ERROR);
  mix_error_clear();
  mix_list *wrong = mix_list_new(0, NULL);
  for (int i = 0; i < 6; i++)
    mix_list_append(wrong, i == 3 ? mix_fill(MIX_SHAPE(5), 1, F32)
                                  : mix_fill(mix_tensor_shape(mix_list_get(weights, i)), 1, F32));
  size_t size, after;
  unsigned char *before = bits_of(mix_model_weights(model), &size);
  assert_int_equal(mix_model_set_weights(model, wrong), MIX_VALUE_ERROR);
  assert_error(MIX_VALUE_ERROR, "dense_2/bias");
  unsigned char *now = bits_of(mix_model_weights(model), &after);
  assert_memory_equal(before, now, size); /* all or nothing */
  free(before);
  free(now);
}

static void files_are_read_by_name_or_by_number(void **state) {
  (void)state;
  mix_set_seed(1);
  mix_model *model = model_under("float32");
  mix_list *weights = mix_model_get_weights(model);
  /* Names in another order than the model's. */
  static const char *const names[] = {"dense_logits/bias", "dense_logits/kernel", "dense_2/bias",
                                      "dense_2/kernel",    "dense_1/bias",        "dense_1/kernel"};
  mix_tensor *reversed[6], *in_order[6];
  for (int i = 0; i < 6; i++) in_order[i] = reversed[5 - i] = mix_list_get(weights, i);
  assert_int_equal(mix_npz_save(path, 6, names, reversed), MIX_OK);
  mix_set_seed(2);
  mix_model *other = model_under("float32");
  assert_int_equal(mix_model_load_weights(other, path), MIX_OK);
  assert_same_weights(model, other);
  assert_int_equal(mix_npz_save(path, 6, (const char *const[6]){NULL}, in_order), MIX_OK); /* arr_0, ... */
  mix_set_seed(3);
  other = model_under("mixed_bfloat16");
  assert_int_equal(mix_model_load_weights(other, path), MIX_OK);
  assert_same_weights(model, other);
}

static void a_file_of_float64_is_rounded(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  mix_npz_save(path, 1, (const char *const[]){"arr_0"},
               (mix_tensor *const[]){ARRAY(MIX_FLOAT64, MIX_SHAPE(1, 1), 0.1)});
  assert_int_equal(mix_model_load_weights(model, path), MIX_OK);
  assert_true(weight_at(model, 0, 0) == (double)0.1f);
}

static void mismatches_are_named(void **state) {
  (void)state;
  mix_model *model = model_under("float32");
  mix_list *weights = mix_model_get_weights(model);
  mix_tensor *arrays[6];
  for (int i = 0; i < 6; i++)
    arrays[i] = i == 2 ? mix_fill(MIX_SHAPE(16, 17), 0, F32) : mix_list_get(weights, i);
  mix_npz_save(path, 6, (const char *const[6]){NULL}, arrays);
  mix_model_load_weights(model, path);
  assert_error(MIX_VALUE_ERROR, "'dense_2/kernel' has shape (16, 16), the array in");
  mix_npz_save(path, 3, (const char *const[3]){NULL}, arrays);
  mix_model_load_weights(model, path);
  assert_error(MIX_VALUE_ERROR, "3 arrays, the model has 6 weights");
  mix_npz_save(path, 6, (const char *const[6]){"a", "b", "c", "d", "e", "f"}, arrays);
  mix_model_load_weights(model, path);
  assert_error(MIX_VALUE_ERROR, "neither 'dense_1/kernel' nor 'arr_0'");
  FILE *file = fopen(path, "wb");
  fputs("no archive", file);
  fclose(file);
  mix_model_load_weights(model, path);
  assert_error(MIX_FORMAT_ERROR, path);
  mix_model_load_weights(model, "/tmp/mixtape-no-such-file.npz");
  assert_error(MIX_IO_ERROR, "mixtape-no-such-file");
  mix_model_save_weights(model, "a.keras");
  assert_error(MIX_VALUE_ERROR, ".npz");
  assert_int_equal(access("a.keras", F_OK), -1);
  mix_model_save_weights(model, "/tmp/mixtape-no-such-folder/a.npz");
  assert_error(MIX_IO_ERROR, "mixtape-no-such-folder");
}

static void weights_come_layer_by_layer(void **state) {
  (void)state;
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(2));
  mix_layer *frozen = mix_dense(.units = 3, .name = "frozen", .not_trainable = true),
            *moving = mix_dense(.units = 1, .name = "moving");
  mix_model *model = mix_model_new(inputs, mix_call(moving, mix_call(frozen, inputs)));
  static const char *const names[] = {"frozen/kernel", "frozen/bias", "moving/kernel", "moving/bias"};
  mix_list *weights = mix_model_weights(model);
  assert_int_equal(mix_list_count(weights), 4);
  for (int i = 0; i < 4; i++) assert_string_equal(mix_variable_name(mix_list_get(weights, i)), names[i]);
  assert_int_equal(mix_list_count(mix_model_trainable_variables(model)), 2);
  mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(.learning_rate = 0.5));
  double before = weight_at(model, 0, 0);
  mix_model_train_on_batch(model, mix_fill(MIX_SHAPE(2, 2), 1, F32), mix_fill(MIX_SHAPE(2, 1), 5, F32));
  assert_true(weight_at(model, 0, 0) == before);
  assert_true(weight_at(model, 3, 0) != 0);
}

/* Each of two models has a layer "dense". */
static void equal_names_are_told_apart(void **state) {
  (void)state;
  char path[] = "/tmp/mixtape-weights-XXXXXX.npz";
  const int file = mkstemps(path, 4);
  assert_true(file >= 0);
  close(file);
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(2)), *y = x;
  for (int i = 0; i < 2; i++) {
    mix_tensor *inner = mix_input(.shape = MIX_SHAPE(2));
    y = mix_call(
        mix_model_layer(mix_model_new(inner, mix_call(mix_dense(.units = 2, .name = "dense"), inner))), y);
  }
  mix_model *model = mix_model_new(x, y);
  const double first = weight_at(model, 0, 0), second = weight_at(model, 2, 0);
  assert_int_equal(mix_model_save_weights(model, path), MIX_OK);
  static const char *const names[] = {"dense/kernel", "dense/bias", "dense/kernel_1", "dense/bias_1"};
  mix_npz *npz = mix_npz_open(path);
  assert_int_equal(mix_npz_count(npz), 4);
  for (int i = 0; i < 4; i++) assert_string_equal(mix_npz_name(npz, i), names[i]);
  mix_list *zeros = mix_list_new(0, NULL);
  for (int i = 0; i < 4; i++)
    mix_list_append(zeros, mix_fill(mix_variable_shape(mix_list_get(mix_model_weights(model), i)), 0, F32));
  mix_model_set_weights(model, zeros);
  assert_int_equal(mix_model_load_weights(model, path), MIX_OK);
  assert_true(weight_at(model, 0, 0) == first && weight_at(model, 2, 0) == second && first != second);
  unlink(path);
}

/* A name says what is written, so that no zip stands under ".npy". */
static void other_endings_are_refused(void **state) {
  (void)state;
  mix_model *model = model_under("float32");
  static const char *const ends[] = {".npy", "", ".h5.bak", ".NPZ", ".txt"};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    char name[100];
    snprintf(name, sizeof name, "%.50s%s", path, ends[i]);
    if (!*ends[i]) name[strlen(name) - 4] = 0;
    assert_int_equal(mix_model_save_weights(model, name), MIX_VALUE_ERROR);
    assert_error(MIX_VALUE_ERROR,
                 "expected a name that ends in .weights.h5, .h5, .hdf5, .npz or .safetensors");
    assert_int_not_equal(access(name, F_OK), 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      FILE_TEST(M04_weights_saved_mixed_load_into_float32),
      TEST(M06_weights_move_between_policies),
      TEST(W10_restored_weights_start_training_from_the_same_values),
      TEST(copies_do_not_follow_the_weights),
      TEST(set_weights_checks_count_and_shapes),
      FILE_TEST(files_are_read_by_name_or_by_number),
      FILE_TEST(a_file_of_float64_is_rounded),
      FILE_TEST(mismatches_are_named),
      TEST(weights_come_layer_by_layer),
      TEST(equal_names_are_told_apart),
      FILE_TEST(other_endings_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
