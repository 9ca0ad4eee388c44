/* .npz archives: what numpy.savez and numpy.savez_compressed write, built byte by byte, and damaged ones. */
#include "support/skip.h"
#include "data/support.h"

#include "base/alloc.h"
#include "formats/npz.h"
#include <mixtape/arrays.h>
#include <signal.h>
#include <sys/resource.h>

static const float kernel_elements[6] = {0, 1, 2, 3, 4, 5};
static const int64_t bias_elements[3] = {-1, 0, 1};

/* Two arrays in numpy's layout, and a member that is no array. */
static void put_archive(zip_writer *zip, int compressed) {
  bytes kernel = {.size = 0}, bias = {.size = 0};
  put_npy(&kernel, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }         \n",
          kernel_elements, sizeof kernel_elements);
  put_npy(&bias, 1, "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }         \n", bias_elements,
          sizeof bias_elements);
  put_member(zip, "dense/kernel.npy", kernel.data, kernel.size, compressed, kernel.size);
  put_member(zip, "readme.txt", "hello", 5, 0, 5);
  put_member(zip, "arr_0.npy", bias.data, bias.size, compressed, bias.size);
  put_zip_end(zip);
}

static void reads_stored_and_deflated_members(void **state) {
  (void)state;
  for (int compressed = 0; compressed <= 1; compressed++) {
    static zip_writer zip;
    memset(&zip, 0, sizeof zip);
    put_archive(&zip, compressed);
    write_file(in_folder("a.npz"), zip.file.data, zip.file.size);
    mix_npz *npz = mix_npz_open(in_folder("a.npz"));
    assert_non_null(npz);
    assert_int_equal(mix_npz_count(npz), 2);
    assert_string_equal(mix_npz_name(npz, 0), "dense/kernel");
    assert_string_equal(mix_npz_name(npz, 1), "arr_0");
    mix_tensor *kernel = mix_npz_get(npz, "dense/kernel"), *bias = mix_npz_require(npz, "arr_0.npy");
    assert_non_null(kernel);
    assert_non_null(bias);
    assert_true(mix_shape_equal(mix_tensor_shape(kernel), MIX_SHAPE(2, 3)));
    assert_memory_equal(mix_tensor_data(kernel), kernel_elements, sizeof kernel_elements);
    assert_int_equal(mix_tensor_dtype(bias), MIX_INT64);
    assert_memory_equal(mix_tensor_data(bias), bias_elements, sizeof bias_elements);
  }
}

static void an_absent_name_is_no_error_unless_it_is_required(void **state) {
  (void)state;
  static zip_writer zip;
  memset(&zip, 0, sizeof zip);
  put_archive(&zip, 0);
  mix_npz *npz = mix_npz_open_memory("some.npz", zip.file.data, zip.file.size);
  static const char *const absent[] = {"arr_1",  "arr", "arr_0.npy.npy", "readme.txt",
                                       "readme", "",    ".npy",          "dense"};
  for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) {
    assert_null(mix_npz_get(npz, absent[i]));
    assert_int_equal(mix_error(), MIX_OK);
  }
  assert_null(mix_npz_require(npz, "x_train"));
  assert_failed(MIX_VALUE_ERROR, "'x_train' in the archive; there are: dense/kernel, arr_0");
  assert_null(mix_npz_name(npz, 2));
  assert_failed(MIX_VALUE_ERROR, "index 2");
  assert_null(mix_npz_name(npz, -1));
  assert_failed(MIX_VALUE_ERROR, "index -1");
}

static void what_is_saved_is_read_back(void **state) {
  (void)state;
  const char *const names[] = {"dense_1/kernel", NULL, "scalar", "empty"};
  mix_tensor *tensors[] = {mix_tensor_from(kernel_elements, MIX_FLOAT32, MIX_SHAPE(3, 2)),
                           mix_tensor_from_doubles((const double[]){1.5, -2}, MIX_BFLOAT16, MIX_SHAPE(2)),
                           mix_scalar(7, MIX_INT32), mix_tensor_from(NULL, MIX_FLOAT16, MIX_SHAPE(0, 4))};
  const char *path = in_folder("saved.npz");
  assert_int_equal(mix_npz_save(path, 4, names, tensors), MIX_OK);
  assert_int_equal(folder_count(), 1);
  mix_npz *npz = mix_npz_open(path);
  assert_int_equal(mix_npz_count(npz), 4);
  assert_string_equal(mix_npz_name(npz, 0), "dense_1/kernel");
  assert_string_equal(mix_npz_name(npz, 1), "arr_1");
  assert_memory_equal(mix_tensor_data(mix_npz_require(npz, "dense_1/kernel")), kernel_elements,
                      sizeof kernel_elements);
  mix_tensor *half = mix_npz_require(npz, "arr_1");
  assert_int_equal(mix_tensor_dtype(half), MIX_FLOAT32); /* NumPy has no bfloat16 */
  assert_memory_equal(mix_tensor_data(half), ((const float[]){1.5f, -2}), 8);
  mix_tensor *scalar = mix_npz_require(npz, "scalar"), *empty = mix_npz_require(npz, "empty");
  assert_int_equal(mix_tensor_shape(scalar).rank, 0);
  assert_int_equal(*(const int32_t *)mix_tensor_data(scalar), 7);
  assert_true(mix_shape_equal(mix_tensor_shape(empty), MIX_SHAPE(0, 4)));
}

/* "x.npy" may be an array's name. It is also the member name of "x" if there is no such array. */
static void names_may_end_like_files(void **state) {
  (void)state;
  mix_tensor *tensors[] = {mix_scalar(1, MIX_INT32), mix_scalar(2, MIX_INT32)};
  const char *path = in_folder("names.npz");
  assert_int_equal(mix_npz_save(path, 2, (const char *const[]){"x.npy", "x"}, tensors), MIX_OK);
  mix_npz *npz = mix_npz_open(path);
  for (int i = 0; i < 2; i++)
    assert_int_equal((int)mix_tensor_item(mix_npz_require(npz, mix_npz_name(npz, i))), i + 1);
  assert_int_equal((int)mix_tensor_item(mix_npz_require(npz, "x.npy.npy")), 1);
  assert_int_equal(mix_npz_save(path, 1, (const char *const[]){"x.npy"}, tensors), MIX_OK);
  npz = mix_npz_open(path);
  assert_int_equal((int)mix_tensor_item(mix_npz_require(npz, "x.npy")), 1);
  assert_null(mix_npz_get(npz, "x"));
  assert_int_equal(mix_npz_save(path, 1, (const char *const[]){"x"}, tensors), MIX_OK);
  npz = mix_npz_open(path);
  assert_int_equal((int)mix_tensor_item(mix_npz_require(npz, "x.npy")), 1);
  assert_null(mix_npz_get_listed(npz, "x.npy"));
  assert_null(mix_npz_get(npz, "x.npy.npy"));
  assert_int_equal(mix_error(), MIX_OK);
}

/* Members are stored without compression, as numpy.savez does. The same arrays always give the same bytes. */
static void archives_are_stored_and_repeatable(void **state) {
  (void)state;
  mix_tensor *tensor = mix_tensor_from(kernel_elements, MIX_FLOAT32, MIX_SHAPE(6));
  static unsigned char first[1 << 12];
  size_t size, other;
  assert_int_equal(mix_npz_save(in_folder("1.npz"), 1, NULL, &tensor), MIX_OK);
  const unsigned char *data = read_file(in_folder("1.npz"), &size);
  assert_true(size < sizeof first);
  memcpy(first, data, size);
  assert_memory_equal(first, "PK\3\4", 4);
  assert_int_equal(first[8] | first[9] << 8, 0); /* method: stored */
  bool found = false;
  for (size_t i = 0; i + sizeof kernel_elements <= size; i++)
    found |= memcmp(first + i, kernel_elements, sizeof kernel_elements) == 0;
  assert_true(found);
  assert_int_equal(mix_npz_save(in_folder("2.npz"), 1, NULL, &tensor), MIX_OK);
  data = read_file(in_folder("2.npz"), &other);
  assert_int_equal(other, size);
  assert_memory_equal(data, first, size);
}

static void arguments_of_save_are_checked(void **state) {
  (void)state;
  mix_tensor *tensors[] = {mix_scalar(1, MIX_FLOAT32), mix_scalar(2, MIX_FLOAT32)};
  const char *path = in_folder("kept.npz");
  assert_int_equal(mix_npz_save(path, 2, NULL, tensors), MIX_OK);
  assert_int_equal(mix_npz_save(path, 2, (const char *const[]){"a", "a"}, tensors), MIX_VALUE_ERROR);
  assert_failed(MIX_VALUE_ERROR, "'a.npy'");
  assert_int_equal(mix_npz_save(path, 0, NULL, NULL), MIX_VALUE_ERROR);
  assert_failed(MIX_VALUE_ERROR, "at least one");
  assert_int_equal(mix_npz_save(path, 2, NULL, (mix_tensor *[]){tensors[0], NULL}), MIX_VALUE_ERROR);
  assert_failed(MIX_VALUE_ERROR, "array 1");
  assert_int_equal(mix_npz_save(in_folder("no/folder.npz"), 2, NULL, tensors), MIX_IO_ERROR);
  assert_failed(MIX_IO_ERROR, "no/folder.npz");
  assert_int_equal(mix_npz_count(mix_npz_open(path)), 2);
  assert_int_equal(folder_count(), 1);
}

/* A limit on the file size simulates a full disk. */
static void a_full_disk_leaves_the_old_archive(void **state) {
  (void)state;
  const char *path = in_folder("kept.npz");
  static float large[8192];
  mix_tensor *small = mix_scalar(42, MIX_FLOAT32),
             *tensor = mix_tensor_from(large, MIX_FLOAT32, MIX_SHAPE(8192));
  assert_int_equal(mix_npz_save(path, 1, NULL, &small), MIX_OK);
  struct rlimit old;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
  signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){10000, old.rlim_max}), 0);
  mix_status status = mix_npz_save(path, 1, NULL, &tensor);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
  assert_int_equal(status, MIX_IO_ERROR);
  assert_failed(MIX_IO_ERROR, "kept.npz");
  mix_tensor *kept = mix_npz_require(mix_npz_open(path), "arr_0");
  assert_non_null(kept);
  assert_true(*(const float *)mix_tensor_data(kept) == 42);
  assert_int_equal(folder_count(), 1);
}

static void files_that_are_no_archives(void **state) {
  (void)state;
  assert_null(mix_npz_open(in_folder("absent.npz")));
  assert_failed(MIX_IO_ERROR, "absent.npz");
  assert_null(mix_npz_open(test_folder));
  assert_int_not_equal(mix_error(), MIX_OK);
  mix_error_clear();
  write_file(in_folder("text.npz"), "this is no archive", 18);
  assert_null(mix_npz_open(in_folder("text.npz")));
  assert_failed(MIX_FORMAT_ERROR, "text.npz");
  write_file(in_folder("empty.npz"), "", 0);
  assert_null(mix_npz_open(in_folder("empty.npz")));
  assert_failed(MIX_FORMAT_ERROR, "empty.npz");
  assert_null(mix_npz_open(NULL));
  assert_failed(MIX_VALUE_ERROR, "path");
}

/* Reads every array; true: no error. */
static bool all_good(const void *data, size_t size) {
  bool good = true;
  MIX_SCOPE {
    mix_npz *npz = mix_npz_open_memory("memory", data, size);
    for (int i = 0; npz && i < mix_npz_count(npz) && good; i++)
      good = mix_npz_get(npz, mix_npz_name(npz, i)) != NULL;
    good = good && npz != NULL;
  }
  assert_int_equal(good, mix_error() == MIX_OK);
  mix_error_clear();
  return good;
}

static void cut_at_every_byte_is_an_error(void **state) {
  (void)state;
  static zip_writer zip;
  memset(&zip, 0, sizeof zip);
  put_archive(&zip, 1);
  assert_true(all_good(zip.file.data, zip.file.size));
  for (size_t size = 0; size < zip.file.size; size++) {
    unsigned char *exact = malloc(size ? size : 1);
    memcpy(exact, zip.file.data, size);
    assert_false(all_good(exact, size));
    free(exact);
  }
}

/* The checksum of a member covers every byte of a stored array. */
static void a_changed_element_is_an_error(void **state) {
  (void)state;
  for (int compressed = 0; compressed <= 1; compressed++) {
    static zip_writer zip;
    memset(&zip, 0, sizeof zip);
    bytes array = {.size = 0};
    put_npy(&array, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", kernel_elements,
            sizeof kernel_elements);
    put_member(&zip, "a.npy", array.data, array.size, compressed, array.size);
    /* the last byte of a deflated stream may have unused bits */
    size_t begin = 30 + strlen("a.npy"), end = zip.file.size - (size_t)compressed;
    put_zip_end(&zip);
    assert_true(all_good(zip.file.data, zip.file.size));
    for (size_t at = begin; at < end; at++) {
      zip.file.data[at] ^= 0x10;
      assert_false(all_good(zip.file.data, zip.file.size));
      zip.file.data[at] ^= 0x10;
    }
  }
}

/* A member that declares a gigabyte, with a matching header: rejected before memory is allocated. */
static void declared_sizes_are_checked_first(void **state) {
  (void)state;
  for (int compressed = 0; compressed <= 1; compressed++) {
    static zip_writer zip;
    memset(&zip, 0, sizeof zip);
    bytes array = {.size = 0};
    put_npy(&array, 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (1000000000,), }\n", "abc", 3);
    put_member(&zip, "a.npy", array.data, array.size, compressed, array.size - 3 + 1000000000);
    put_zip_end(&zip);
    mix_shutdown();
    mix_buffer_peak_reset();
    size_t before = mix_buffer_peak();
    assert_false(all_good(zip.file.data, zip.file.size));
    assert_int_equal(mix_buffer_peak(), before);
  }
}

static void other_methods_are_refused(void **state) {
  (void)state;
  static zip_writer zip;
  memset(&zip, 0, sizeof zip);
  put_archive(&zip, 0);
  size_t directory = zip.file.size - 22 - zip.directory.size;
  zip.file.data[8] = zip.file.data[directory + 10] = 14; /* LZMA */
  mix_npz *npz = mix_npz_open_memory("memory", zip.file.data, zip.file.size);
  assert_null(mix_npz_get(npz, "dense/kernel"));
  assert_failed(MIX_UNSUPPORTED, "method 14");
}

static void allocation_failures_are_errors(void **state) {
  (void)state;
  mix_tensor *tensor = mix_tensor_from(kernel_elements, MIX_BFLOAT16, MIX_SHAPE(6));
  bool saved = false, read = false;
  for (int64_t count = 0; !saved || !read; count++) {
    mix_inject_allocation_failure(count);
    saved = mix_npz_save(in_folder("fail.npz"), 1, NULL, &tensor) == MIX_OK;
    mix_inject_allocation_failure(-1);
    mix_error_clear();
    assert_int_equal(mix_npz_save(in_folder("good.npz"), 1, NULL, &tensor), MIX_OK);
    mix_inject_allocation_failure(count);
    mix_npz *npz = mix_npz_open(in_folder("good.npz"));
    read = npz && mix_npz_get(npz, "arr_0");
    mix_inject_allocation_failure(-1);
    if (!read) assert_failed(MIX_MEMORY_ERROR, NULL);
    assert_true(count < 200);
  }
  assert_int_equal(folder_count(), 2);
}

/* Files written by NumPy: weights of a recorded Keras run, 784-64-64-10. */
static void reads_files_of_numpy(void **state) {
  (void)state;
  const char *reference = getenv("MIXTAPE_REFERENCE_DIR");
  char path[1000];
  if (!reference) SKIP("MIXTAPE_REFERENCE_DIR is not set");
  snprintf(path, sizeof path, "%s/guide-float32.init.npz", reference);
  mix_npz *npz = mix_npz_open(path);
  assert_non_null(npz);
  assert_int_equal(mix_npz_count(npz), 6);
  const mix_shape shapes[6] = {MIX_SHAPE(784, 64), MIX_SHAPE(64),     MIX_SHAPE(64, 64),
                               MIX_SHAPE(64),      MIX_SHAPE(64, 10), MIX_SHAPE(10)};
  for (int i = 0; i < 6; i++) {
    char name[16];
    snprintf(name, sizeof name, "arr_%d", i);
    mix_tensor *tensor = mix_npz_require(npz, name);
    assert_non_null(tensor);
    assert_int_equal(mix_tensor_dtype(tensor), MIX_FLOAT32);
    assert_true(mix_shape_equal(mix_tensor_shape(tensor), shapes[i]));
  }
  /* Glorot's uniform bound sqrt(6 / (784 + 64)): all kernel elements are within it, and some near it */
  const float *kernel = mix_tensor_data(mix_npz_require(npz, "arr_0"));
  float largest = 0;
  for (int i = 0; i < 784 * 64; i++) largest = kernel[i] > largest ? kernel[i] : largest;
  assert_true(largest > 0.084f && largest <= 0.08412f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      FOLDER_TEST(reads_stored_and_deflated_members),
      FOLDER_TEST(an_absent_name_is_no_error_unless_it_is_required),
      FOLDER_TEST(what_is_saved_is_read_back),
      FOLDER_TEST(names_may_end_like_files),
      FOLDER_TEST(archives_are_stored_and_repeatable),
      FOLDER_TEST(arguments_of_save_are_checked),
      FOLDER_TEST(a_full_disk_leaves_the_old_archive),
      FOLDER_TEST(files_that_are_no_archives),
      FOLDER_TEST(cut_at_every_byte_is_an_error),
      FOLDER_TEST(a_changed_element_is_an_error),
      FOLDER_TEST(declared_sizes_are_checked_first),
      FOLDER_TEST(other_methods_are_refused),
      FOLDER_TEST(allocation_failures_are_errors),
      FOLDER_TEST(reads_files_of_numpy),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
