/* Data of the program: CIFAR-10 and made-up numbers, for the guide's model and for one that takes images. */
#include "cli/program.h"

#include <sys/stat.h>

enum { RECORD = 3073 };

/* Files of one record each: label i, all pixels 40 i. */
static void write_cifar10(void) {
  static const char *const names[] = {"data_batch_1", "data_batch_2", "data_batch_3",
                                      "data_batch_4", "data_batch_5", "test_batch"};
  assert_int_equal(mkdir(in_folder("cifar-10-batches-bin"), 0777), 0);
  for (int i = 0; i < 6; i++) {
    char path[700];
    unsigned char record[RECORD];
    memset(record, 40 * i, sizeof record);
    record[0] = (unsigned char)i;
    snprintf(path, sizeof path, "%s/%s.bin", in_folder("cifar-10-batches-bin"), names[i]);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(record, 1, sizeof record, file), sizeof record);
    assert_int_equal(fclose(file), 0);
  }
}

/* The mean of each image, of any size, or with classes a softmax over them. */
static void write_models(void) {
  MIX_SCOPE {
    mix_tensor *x = mix_input(.shape = MIX_SHAPE(MIX_UNKNOWN, MIX_UNKNOWN, 3));
    mix_tensor *means = mix_call(mix_global_average_pooling2d(.name = "mean"), x);
    mix_model_save(mix_model_new(x, means), in_folder("means.keras"));
    mix_model *classifier = mix_model_new(x, mix_call(mix_dense(4, .activation = "softmax"), means));
    mix_model_compile(classifier, .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"});
    mix_model_save(classifier, in_folder("classes.keras"));
    if (mix_error()) fail_msg("%s", mix_error_message());
  }
}

static int setup(void **state) {
  if (folder_begin(state)) return -1;
  setenv("MIXTAPE_DATA_DIR", test_folder, 1);
  setenv("MIXTAPE_OFFLINE", "1", 1);
  write_cifar10();
  write_models();
  return 0;
}

static void the_guide_takes_cifar10_flattened(void **state) {
  (void)state;
  assert_code(run_program("train", "--data", "cifar10", "--units", "4", "--batch-size", "2", "--save",
                          in_folder("guide.npz"), "--json"),
              0);
  assert_has(program_err, "data: CIFAR-10");
  json_t *object = printed_object();
  assert_int_equal(json_integer_value(json_object_get(object, "steps")), 3); /* of five images */
  json_decref(object);
  MIX_SCOPE {
    mix_npz *npz = mix_npz_open(in_folder("guide.npz"));
    int found = 0;
    for (int i = 0; i < mix_npz_count(npz); i++)
      found += mix_shape_equal(mix_tensor_shape(mix_npz_get(npz, mix_npz_name(npz, i))), MIX_SHAPE(3072, 4));
    assert_int_equal(found, 1);
  }
}

/* The only test image has the value 200 everywhere. */
static void a_model_of_images_takes_cifar10_as_it_is(void **state) {
  (void)state;
  assert_code(run_program("predict", "--model", in_folder("means.keras"), "--data", "cifar10", "--output",
                          in_folder("means.npy")),
              0);
  MIX_SCOPE {
    mix_tensor *y = mix_npy_load(in_folder("means.npy"));
    assert_true(mix_shape_equal(mix_tensor_shape(y), MIX_SHAPE(1, 3)));
    const float *means = mix_tensor_data(y);
    for (int i = 0; i < 3; i++)
      assert_float_equal(means[i], 200.0 / 255, 0x1p-14); /* 1024 float32 roundings */
  }
}

static void synthetic_data_follow_the_seed(void **state) {
  (void)state;
  double losses[3];
  static const char *const seeds[] = {"7", "7", "8"};
  for (int i = 0; i < 3; i++) {
    assert_code(run_program("evaluate", "--model", in_folder("classes.keras"), "--data", "synthetic",
                            "--seed", seeds[i], "--image-size", "6", "--json"),
                0);
    assert_has(program_err, "data: synthetic");
    json_t *object = printed_object();
    losses[i] = number_in(json_object_get(json_object_get(object, "test"), "loss"));
    json_decref(object);
  }
  assert_true(losses[0] == losses[1]);
  assert_true(losses[0] != losses[2]);
}

/* With labels of a single class the model learns to say it. */
static void classes_bound_the_labels(void **state) {
  (void)state;
  assert_code(run_program("train", "--data", "synthetic", "--classes", "1", "--epochs", "40", "--model",
                          in_folder("classes.keras"), "--optimizer", "sgd:learning_rate=1", "--json"),
              0);
  json_t *object = printed_object();
  assert_true(number_in(json_object_get(json_object_get(object, "test"), "accuracy")) == 1);
  json_decref(object);
  assert_code(run_program("train", "--data", "synthetic", "--classes", "3", "--steps", "1", "--loop",
                          "custom", "--dtype", "fp16"),
              0);
  assert_has(program_err, "data: synthetic");
}

static void every_command_of_data_takes_synthetic(void **state) {
  (void)state;
  assert_code(run_program("predict", "--data", "synthetic", "--batch-size", "3"), 0);
  int lines = 0;
  for (const char *p = program_out; (p = strchr(p, '\n')); p++) lines++;
  assert_int_equal(lines, 3);
  assert_code(run_program("numerics", "--data", "synthetic", "--steps", "2"), 0);
  assert_code(run_program("train", "--data", "synthetic", "--loss", "mse", "--metrics", "mse"), 0);
  assert_code(
      run_program("train", "--data", "synthetic", "--loss", "categorical_crossentropy", "--steps", "2"), 0);
}

static void bad_sizes_are_reported(void **state) {
  (void)state;
  assert_code(run_program("train", "--image-size", "32"), 2);
  assert_has(program_err, "--image-size belongs to --data synthetic, and the data are mnist");
  assert_code(run_program("train", "--data", "synthetic", "--image-size", "5000"), 2);
  assert_has(program_err, "'5000' given; expected a side of at most 4096");
  assert_code(run_program("train", "--data", "synthetic", "--classes", "0"), 2);
  assert_has(program_err, "--classes: '0' given; expected a positive whole number");
  assert_code(run_program("train", "--data", "synthetic", "--classes", "99999999"), 2);
  assert_code(
      run_program("train", "--data", "cifar10", "--classes", "4", "--model", in_folder("classes.keras")), 2);
  assert_has(program_err, "--classes belongs to --data synthetic");
  assert_code(
      run_program("train", "--data", "synthetic", "--classes", "5", "--model", in_folder("classes.keras")),
      1);
  assert_has(program_err, "--classes 5: the model has 4");
  assert_code(run_program("train", "--data", "cifar10", "--classes", "3"), 1);
  assert_has(program_err, "outside the classes");
  assert_code(run_program("train", "--data", "synthetic", "--batch-size", "9223372036854775807"), 1);
  assert_has(program_err, "too many elements");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_guide_takes_cifar10_flattened),
      cmocka_unit_test(a_model_of_images_takes_cifar10_as_it_is),
      cmocka_unit_test(synthetic_data_follow_the_seed),
      cmocka_unit_test(classes_bound_the_labels),
      cmocka_unit_test(every_command_of_data_takes_synthetic),
      cmocka_unit_test(bad_sizes_are_reported),
  };
  return cmocka_run_group_tests(tests, setup, folder_end);
}
