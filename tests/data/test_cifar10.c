/* CIFAR-10: where it is searched, how it is read, and damaged files. The files here have few images; nothing
 * asks for their number. */
#include "formats/tar_bytes.h"

#include <mixtape/cifar10.h>

enum { RECORD = 3073 };
static const char *const names[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                    "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};

/* One record a file, two of the test file: label i, pixel p of colour c is i + 10 c + p % 200. */
static void fill(unsigned char *record, int i) {
  record[0] = (unsigned char)i;
  for (int c = 0; c < 3; c++)
    for (int p = 0; p < 1024; p++) record[1 + 1024 * c + p] = (unsigned char)(i + 10 * c + p % 200);
}
static size_t content(unsigned char *records, int file) {
  fill(records, file);
  if (file == 5) fill(records + RECORD, 9);
  return file == 5 ? 2 * RECORD : RECORD;
}
static void make_folder(const char *name) { assert_int_equal(mkdir(in_folder(name), 0777), 0); }
static void write_files(const char *folder) {
  char path[700];
  unsigned char records[2 * RECORD];
  for (int i = 0; i < 6; i++) {
    const size_t size = content(records, i);
    snprintf(path, sizeof path, "%s/%s", in_folder(folder), names[i]);
    write_file(path, records, size);
  }
}

static int begin(void **state) {
  unsetenv("MIXTAPE_DATA_DIR");
  unsetenv("KERAS_HOME");
  if (folder_begin(state) != 0) return -1;
  setenv("HOME", in_folder("home"), 1);
  return setenv("MIXTAPE_OFFLINE", "1", 1);
}
#define CIFAR_TEST(test) cmocka_unit_test_setup_teardown(test, begin, data_end)

static void expect_images(const mix_cifar10 *images, const char *source) {
  if (!images->x_train) fail_msg("%s", mix_error_message());
  assert_non_null(strstr(images->source, source));
  assert_int_equal(mix_tensor_dtype(images->x_train), MIX_UINT8);
  assert_true(mix_shape_equal(mix_tensor_shape(images->x_train), MIX_SHAPE(5, 32, 32, 3)));
  assert_true(mix_shape_equal(mix_tensor_shape(images->x_test), MIX_SHAPE(2, 32, 32, 3)));
  assert_true(mix_shape_equal(mix_tensor_shape(images->y_train), MIX_SHAPE(5, 1)));
  const unsigned char *x = mix_tensor_data(images->x_train), *y = mix_tensor_data(images->y_train),
                      *t = mix_tensor_data(images->y_test);
  for (int i = 0; i < 5; i++) {
    assert_int_equal(y[i], i);
    for (int p = 0; p < 1024; p++)
      for (int c = 0; c < 3; c++) assert_int_equal(x[(i * 1024 + p) * 3 + c], i + 10 * c + p % 200);
  }
  assert_int_equal(t[0], 5);
  assert_int_equal(t[1], 9);
}

static void the_folder_of_files(void **state) {
  (void)state;
  make_folder("data");
  make_folder("data/cifar-10-batches-bin");
  write_files("data/cifar-10-batches-bin");
  MIX_SCOPE {
    mix_cifar10 images = mix_cifar10_load(in_folder("data"), .bytes = true);
    expect_images(&images, "cifar-10-batches-bin");
    setenv("MIXTAPE_DATA_DIR", in_folder("data/cifar-10-batches-bin"), 1);
    images = mix_cifar10_load(.bytes = true);
    expect_images(&images, "data");
    images = mix_cifar10_load();
    assert_int_equal(mix_tensor_dtype(images.x_train), MIX_FLOAT32);
    assert_true(mix_shape_equal(mix_tensor_shape(images.y_test), MIX_SHAPE(2)));
    assert_int_equal(mix_tensor_dtype(images.y_test), MIX_INT64);
    const float *x = mix_tensor_data(images.x_train);
    assert_true(x[3 * 7 + 2] == 27.0f / 255.0f);
  }
}

static void the_archive(void **state) {
  (void)state;
  static bytes plain, gzipped;
  unsigned char records[2 * RECORD];
  put_tar_member(&plain, "cifar-10-batches-bin/", '5', "", 0);
  put_tar_member(&plain, "cifar-10-batches-bin/readme.html", '0', "text", 4);
  for (int i = 0; i < 6; i++) {
    char path[100];
    snprintf(path, sizeof path, "cifar-10-batches-bin/%s", names[i]);
    const size_t size = content(records, i);
    put_tar_member(&plain, path, '0', records, size);
  }
  put_tar_end(&plain);
  put_gzip(&gzipped, &plain);
  make_folder("cifar10");
  write_file(in_folder("cifar10/cifar-10-binary.tar.gz"), gzipped.data, gzipped.size);
  MIX_SCOPE {
    mix_cifar10 images = mix_cifar10_load(in_folder(""), .bytes = true);
    expect_images(&images, "cifar-10-binary.tar.gz");
  }
  write_file(in_folder("cifar10/cifar-10-binary.tar.gz"), gzipped.data, gzipped.size / 2);
  MIX_SCOPE { assert_null(mix_cifar10_load(in_folder("")).x_train); }
  assert_failed(MIX_FORMAT_ERROR, "cifar-10-binary.tar.gz");
}

static void damaged_files(void **state) {
  (void)state;
  make_folder("d");
  write_files("d");
  unsigned char record[RECORD];
  write_file(in_folder("d/data_batch_3.bin"), record, 100);
  assert_null(mix_cifar10_load(in_folder("d")).x_train);
  assert_failed(MIX_FORMAT_ERROR, "data_batch_3.bin: 100 bytes");
  fill(record, 10);
  write_file(in_folder("d/data_batch_3.bin"), record, RECORD);
  assert_null(mix_cifar10_load(in_folder("d")).x_train);
  assert_failed(MIX_FORMAT_ERROR, "label 0 is 10");
  unlink(in_folder("d/data_batch_3.bin"));
  assert_null(mix_cifar10_load(in_folder("d")).x_train);
  assert_failed(MIX_IO_ERROR, "not data_batch_3.bin");
  assert_null(mix_cifar10_load(in_folder("d"), .optional = true).x_train);
  assert_failed(MIX_IO_ERROR, "not data_batch_3.bin");
}

static void nothing_there(void **state) {
  (void)state;
  assert_null(mix_cifar10_load(in_folder("none")).x_train);
  assert_failed(MIX_IO_ERROR, "cifar-10-binary.tar.gz are in");
  assert_null(mix_cifar10_load().x_train);
  assert_failed(MIX_IO_ERROR, "MIXTAPE_OFFLINE");
  assert_null(mix_cifar10_load(in_folder("none"), .optional = true).x_train);
  assert_null(mix_cifar10_load(.optional = true).source);
  assert_int_equal(mix_error(), MIX_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {CIFAR_TEST(the_folder_of_files), CIFAR_TEST(the_archive),
                                     CIFAR_TEST(damaged_files), CIFAR_TEST(nothing_there)};
  return cmocka_run_group_tests_name("data/cifar10", tests, NULL, NULL);
}
