/* MNIST: where it is searched, how it is read, and the error if it is not found. */
#include "support/skip.h"
#include "formats/idx_bytes.h"

#include <mixtape/arrays.h>
#include <mixtape/mnist.h>

static const char *const idx_files[4] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                         "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
/* A small set: 12 and 5 images of 2 x 3. */
static const uint32_t image_dims[2][3] = {{12, 2, 3}, {5, 2, 3}};

static void make_folder(const char *name) { assert_int_equal(mkdir(in_folder(name), 0777), 0); }

/* Element i of the images is (seed + i) % 256, label i is i % 10. */
static void write_idx_files(const char *where, const char *suffix, int seed) {
  for (int i = 0; i < 4; i++) {
    bytes plain = {.size = 0}, gzipped = {.size = 0};
    char path[700];
    put_idx(&plain, i % 2 ? 1 : 3, image_dims[i / 2], i % 2 ? 0 : seed, i % 2 ? 10 : 256);
    put_gzip(&gzipped, &plain);
    snprintf(path, sizeof path, "%s/%s%s", where, idx_files[i], suffix);
    if (*suffix)
      write_file(path, gzipped.data, gzipped.size);
    else
      write_file(path, plain.data, plain.size);
  }
}

static void write_npz(const char *path, int seed) {
  static const char *const names[4] = {"x_train", "y_train", "x_test", "y_test"};
  mix_tensor *tensors[4];
  uint8_t data[72];
  for (int i = 0; i < 4; i++) {
    for (int j = 0; j < 72; j++) data[j] = (uint8_t)(i % 2 ? j % 10 : (seed + j) % 256);
    int64_t n = image_dims[i / 2][0];
    tensors[i] = mix_tensor_from(data, MIX_UINT8, i % 2 ? MIX_SHAPE(n) : MIX_SHAPE(n, 2, 3));
  }
  assert_int_equal(mix_npz_save(path, 4, names, tensors), MIX_OK);
}

static int begin(void **state) {
  unsetenv("MIXTAPE_DATA_DIR");
  unsetenv("KERAS_HOME");
  if (folder_begin(state) != 0) return -1;
  setenv("HOME", in_folder("home"), 1);
  return setenv("MIXTAPE_OFFLINE", "1", 1);
}

static void assert_set(const mix_mnist *mnist, int seed, const char *source) {
  if (mix_error()) print_message("%s\n", mix_error_message());
  assert_non_null(mnist->x_train);
  assert_non_null(strstr(mnist->source, source));
  assert_int_equal(mix_tensor_dtype(mnist->x_train), MIX_FLOAT32);
  assert_true(mix_shape_equal(mix_tensor_shape(mnist->x_train), MIX_SHAPE(12, 6)));
  assert_true(mix_shape_equal(mix_tensor_shape(mnist->x_test), MIX_SHAPE(5, 6)));
  assert_true(mix_shape_equal(mix_tensor_shape(mnist->y_train), MIX_SHAPE(12)));
  assert_true(mix_shape_equal(mix_tensor_shape(mnist->y_test), MIX_SHAPE(5)));
  assert_int_equal(mix_tensor_dtype(mnist->y_train), MIX_INT64);
  const float *x = mix_tensor_data(mnist->x_train);
  const int64_t *y = mix_tensor_data(mnist->y_train);
  for (int i = 0; i < 72; i++)
    assert_true(x[i] == (float)((seed + i) % 256) / 255.0f); /* the guide's own division */
  for (int i = 0; i < 12; i++) assert_int_equal(y[i], i % 10);
}

/* Each folder in turn gets a data set; the first folder with one is used. */
static void places_are_searched_in_order(void **state) {
  (void)state;
  make_folder("home");
  make_folder("home/.keras");
  make_folder("home/.keras/datasets");
  make_folder("keras");
  make_folder("keras/datasets");
  make_folder("data");
  make_folder("data/mnist");
  write_npz(in_folder("home/.keras/datasets/mnist.npz"), 1);
  mix_mnist mnist = mix_mnist_load();
  assert_set(&mnist, 1, "home/.keras/datasets/mnist.npz");
  setenv("KERAS_HOME", in_folder("keras"), 1);
  setenv("MIXTAPE_DATA_DIR", in_folder("data"), 1);
  mnist = mix_mnist_load(); /* both are empty: the last folder is used */
  assert_set(&mnist, 1, "home/.keras/datasets/mnist.npz");
  write_npz(in_folder("keras/datasets/mnist.npz"), 2);
  mnist = mix_mnist_load();
  assert_set(&mnist, 2, "keras/datasets/mnist.npz");
  write_idx_files(in_folder("data/mnist"), "", 3);
  mnist = mix_mnist_load();
  assert_set(&mnist, 3, "IDX files in");
  write_idx_files(in_folder("data"), ".gz", 4);
  mnist = mix_mnist_load();
  assert_set(&mnist, 4, "/data");
  write_npz(in_folder("data/mnist.npz"), 5);
  mnist = mix_mnist_load();
  assert_set(&mnist, 5, "data/mnist.npz");
  make_folder("else");
  mnist = mix_mnist_load(.directory = in_folder("else"));
  assert_null(mnist.x_train);
  assert_null(mnist.source);
  assert_failed(MIX_IO_ERROR, "else");
  write_idx_files(in_folder("else"), ".gz", 6);
  mnist = mix_mnist_load(.directory = in_folder("else"));
  assert_set(&mnist, 6, "else");
}

static void bytes_stay_bytes(void **state) {
  (void)state;
  make_folder("data");
  write_idx_files(in_folder("data"), ".gz", 9);
  mix_mnist mnist = mix_mnist_load(.directory = in_folder("data"), .bytes = true);
  assert_non_null(mnist.x_test);
  assert_int_equal(mix_tensor_dtype(mnist.x_test), MIX_UINT8);
  assert_int_equal(mix_tensor_dtype(mnist.y_test), MIX_UINT8);
  assert_true(mix_shape_equal(mix_tensor_shape(mnist.x_test), MIX_SHAPE(5, 2, 3)));
  const uint8_t *x = mix_tensor_data(mnist.x_test);
  for (int i = 0; i < 30; i++) assert_int_equal(x[i], 9 + i);
}

static void a_missing_set_lists_the_searched_folders(void **state) {
  (void)state;
  setenv("MIXTAPE_DATA_DIR", in_folder("nowhere"), 1);
  mix_mnist mnist = mix_mnist_load();
  assert_null(mnist.x_train);
  assert_null(mnist.y_test);
  char message[2000];
  assert_int_equal(mix_error_take(message, sizeof message), MIX_IO_ERROR);
  static const char *const parts[] = {"/nowhere",  "home/.keras/datasets", "MIXTAPE_OFFLINE",
                                      "mnist.npz", "MIXTAPE_DATA_DIR",     "digits"};
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
    if (!strstr(message, parts[i])) print_message("lacks %s: %s\n", parts[i], message);
    assert_non_null(strstr(message, parts[i]));
  }
  assert_null(mix_mnist_load(.optional = true).x_train);
  assert_null(mix_mnist_load(in_folder("nowhere"), .optional = true).source);
  assert_int_equal(mix_error(), MIX_OK);
}

/* A damaged data set is an error; the search does not continue. */
static void damaged_sets_are_errors(void **state) {
  (void)state;
  make_folder("data");
  setenv("MIXTAPE_DATA_DIR", in_folder("data"), 1);
  write_idx_files(in_folder("data"), "", 1);
  unlink(in_folder("data/t10k-labels-idx1-ubyte"));
  assert_null(mix_mnist_load().x_train);
  assert_failed(MIX_IO_ERROR, "not t10k-labels-idx1-ubyte");
  bytes b = {.size = 0};
  put_idx(&b, 1, (const uint32_t[]){4}, 0, 10); /* one label too few */
  write_file(in_folder("data/t10k-labels-idx1-ubyte"), b.data, b.size);
  assert_null(mix_mnist_load().x_train);
  assert_failed(MIX_FORMAT_ERROR, "test images have shape (5, 2, 3) and labels (4)");
  b.size = 0;
  put_idx(&b, 1, (const uint32_t[]){5}, 8, 12); /* 8, 9, 10 */
  write_file(in_folder("data/t10k-labels-idx1-ubyte"), b.data, b.size);
  assert_null(mix_mnist_load().x_train);
  assert_failed(MIX_FORMAT_ERROR, "label 2 is 10");
  write_file(in_folder("data/t10k-images-idx3-ubyte"), "\0\0", 2);
  assert_null(mix_mnist_load().x_train);
  assert_failed(MIX_FORMAT_ERROR, "t10k-images-idx3-ubyte");
  write_file(in_folder("data/mnist.npz"), "damaged", 7);
  assert_null(mix_mnist_load().x_train);
  assert_failed(MIX_FORMAT_ERROR, "mnist.npz");
  mix_tensor *wrong = mix_scalar(1, MIX_FLOAT32);
  assert_int_equal(mix_npz_save(in_folder("data/mnist.npz"), 1, (const char *const[]){"x_train"}, &wrong),
                   MIX_OK);
  assert_null(mix_mnist_load().x_train);
  assert_failed(MIX_FORMAT_ERROR, "x_train has dtype float32");
  assert_int_equal(mix_npz_save(in_folder("data/mnist.npz"), 1, (const char *const[]){"weights"}, &wrong),
                   MIX_OK);
  assert_null(mix_mnist_load().x_train);
  assert_failed(MIX_VALUE_ERROR, "'x_train'");
}

/* The real files: sizes, the first labels (5, 0, 4, 1, 9) and the number of each digit in the training set,
 * as published. */
static void the_real_files(void **state) {
  const char *real = *state;
  if (!real) SKIP("MIXTAPE_DATA_DIR is not set");
  mix_mnist mnist = mix_mnist_load(.directory = real);
  if (mix_error()) print_message("%s\n", mix_error_message());
  assert_non_null(mnist.x_train);
  assert_true(mix_shape_equal(mix_tensor_shape(mnist.x_train), MIX_SHAPE(60000, 784)));
  assert_true(mix_shape_equal(mix_tensor_shape(mnist.x_test), MIX_SHAPE(10000, 784)));
  static const int published[10] = {5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949};
  const int64_t *y = mix_tensor_data(mnist.y_train);
  int counts[10] = {0};
  for (int i = 0; i < 60000; i++) counts[y[i]]++;
  assert_memory_equal(counts, published, sizeof counts);
  assert_true(y[0] == 5 && y[1] == 0 && y[2] == 4 && y[3] == 1 && y[4] == 9);
  const float *x = mix_tensor_data(mnist.x_train);
  double sum = 0;
  for (int64_t i = 0; i < 60000 * 784; i++) sum += x[i];
  assert_true(sum / (60000.0 * 784) > 0.13065 &&
              sum / (60000.0 * 784) < 0.13067); /* the well-known mean 0.1307 */
}

#define CLEAN_TEST(test) cmocka_unit_test_setup_teardown(test, begin, data_end)

int main(void) {
  static char real[1000];
  const char *given = getenv("MIXTAPE_DATA_DIR");
  if (given) snprintf(real, sizeof real, "%s", given);
  const struct CMUnitTest tests[] = {
      CLEAN_TEST(places_are_searched_in_order),
      CLEAN_TEST(bytes_stay_bytes),
      CLEAN_TEST(a_missing_set_lists_the_searched_folders),
      CLEAN_TEST(damaged_sets_are_errors),
      {"the_real_files", the_real_files, NULL, NULL, given ? real : NULL},
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
