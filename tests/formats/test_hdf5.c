/* The HDF5 reader: files that h5py wrote (hdf5/record.py), what it refuses, and damage at every byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "formats/hdf5.h"
#include "support/expect.h"
#include <mixtape/mixtape.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char *bytes;
static size_t size;
static mix_hdf5 file;

static void load(const char *name) {
  char path[1024];
  snprintf(path, sizeof path, "%s/formats/hdf5/%s.h5", getenv("MIXTAPE_TESTS_DIR"), name);
  FILE *stream = fopen(path, "rb");
  assert_non_null(stream);
  free(bytes);
  bytes = malloc(1 << 20);
  assert_non_null(bytes);
  size = fread(bytes, 1, 1 << 20, stream);
  fclose(stream);
  bytes = realloc(bytes, size); /* the sanitizer sees a read past the end */
  assert_non_null(bytes);
}

static void open_file(const char *name) {
  mix_hdf5_close(&file);
  load(name);
  assert_true(mix_hdf5_open(&file, name, bytes, size));
}

static int end(void **state) {
  (void)state;
  mix_hdf5_close(&file);
  free(bytes);
  bytes = NULL;
  mix_error_clear();
  mix_shutdown();
  return 0;
}

/* ---- what h5py wrote ---- */

/* `whole`: integers lose the halves. */
static void check_numbers(const char *path, mix_dtype dtype, bool whole) {
  mix_tensor *tensor = mix_hdf5_tensor(&file, path);
  double values[6];
  assert_int_equal(mix_error(), MIX_OK);
  assert_int_equal(mix_tensor_dtype(tensor), dtype);
  assert_true(mix_shape_equal(mix_tensor_shape(tensor), MIX_SHAPE(2, 3)));
  assert_int_equal(mix_tensor_read(tensor, MIX_FLOAT64, values, 6), MIX_OK);
  for (int i = 0; i < 6; i++) assert_true(values[i] == (whole ? i / 2 : i / 2.0));
}

/* The same from the file's own bytes where they lie there as they are: not in chunks, not big-endian. */
static void check_borrowed(const char *path, bool shares) {
  mix_dtype dtype;
  mix_shape shape;
  assert_true(mix_hdf5_describe(&file, path, &dtype, &shape));
  mix_tensor *read = mix_hdf5_tensor(&file, path), *borrowed = mix_hdf5_borrow(&file, path);
  assert_non_null(borrowed);
  assert_int_equal(mix_tensor_dtype(borrowed), dtype);
  assert_true(mix_shape_equal(mix_tensor_shape(borrowed), shape));
  const unsigned char *data = mix_tensor_data(borrowed);
  assert_memory_equal(data, mix_tensor_data(read), (size_t)mix_shape_size(shape) * mix_dtype_size(dtype));
  assert_true((data >= bytes && data < bytes + size) == shares);
}

static void check_small(const char *path, mix_dtype dtype, int count, const double *wanted) {
  mix_tensor *tensor = mix_hdf5_tensor(&file, path);
  double values[8];
  assert_int_equal(mix_tensor_dtype(tensor), dtype);
  assert_int_equal(mix_tensor_read(tensor, MIX_FLOAT64, values, count), MIX_OK);
  for (int i = 0; i < count; i++) assert_true(values[i] == wanted[i]);
}

static void dtypes(void **state) {
  (void)state;
  static const char *const names[] = {"earliest", "v108", "latest"};
  for (int i = 0; i < 3; i++) {
    open_file(names[i]);
    check_numbers("numbers/f2", MIX_FLOAT16, false);
    check_numbers("numbers/f4", MIX_FLOAT32, false);
    check_numbers("numbers/f8", MIX_FLOAT64, false);
    check_numbers("numbers/big_f4", MIX_FLOAT32, false);
    check_numbers("/numbers/i1", MIX_INT8, true);
    check_numbers("numbers/i2", MIX_INT16, true);
    check_numbers("numbers/i4", MIX_INT32, true);
    check_numbers("numbers//i8", MIX_INT64, true);
    check_numbers("numbers/u1", MIX_UINT8, true);
    check_small("bool", MIX_BOOL, 3, (const double[]){1, 0, 1});
    check_small("scalar", MIX_FLOAT32, 1, (const double[]){3.5});
    check_small("bfloat16", MIX_BFLOAT16, 2, (const double[]){1, -2});
  }
}

static void borrowed_elements(void **state) {
  (void)state;
  open_file("earliest");
  check_borrowed("numbers/f4", true);
  check_borrowed("bfloat16", true);
  check_borrowed("numbers/big_f4", false);
  check_borrowed("zipped", false);
  check_borrowed("sparse", false);
  open_file("latest");
  check_borrowed("numbers/f2", true);
  mix_dtype dtype;
  mix_shape shape;
  expect_refused(mix_hdf5_describe(&file, "text", &dtype, &shape), MIX_UNSUPPORTED, "text");
  expect_refused(mix_hdf5_borrow(&file, "none"), MIX_FORMAT_ERROR, "no data set 'none'");
}

static bool count_link(void *context, const char *name, bool is_group) {
  int *count = context;
  char wanted[16];
  snprintf(wanted, sizeof wanted, "d%03d", (*count)++);
  assert_string_equal(name, wanted);
  return !is_group;
}

static void groups(void **state) {
  (void)state;
  static const char *const names[] = {"earliest", "v108", "latest"};
  static const int many[] = {40, 40, 4};
  for (int i = 0; i < 3; i++) {
    int count = 0;
    open_file(names[i]);
    assert_true(mix_hdf5_list(&file, "many", count_link, &count));
    assert_int_equal(count, many[i]);
    check_small("many/d003", MIX_FLOAT32, 1, (const double[]){3});
    assert_true(mix_hdf5_has(&file, "many/d001"));
    assert_false(mix_hdf5_has(&file, "many/d1"));
    assert_false(mix_hdf5_has(&file, "many/d001/below"));
    assert_int_equal(mix_error(), MIX_OK);
  }
}

static void attributes(void **state) {
  (void)state;
  static const char *const names[] = {"earliest", "v108", "latest"};
  static const size_t many[] = {40, 40, 4};
  for (int i = 0; i < 3; i++) {
    mix_hdf5_value value;
    open_file(names[i]);
    assert_true(mix_hdf5_attribute(&file, "attributes", "names", &value));
    assert_int_equal(value.count, many[i]);
    assert_string_equal(value.texts[3], "layer/w3");
    mix_hdf5_value_free(&value);
    assert_true(mix_hdf5_attribute(&file, "attributes", "text", &value));
    assert_string_equal(value.texts[0], "some text");
    mix_hdf5_value_free(&value);
    assert_true(mix_hdf5_attribute(&file, "attributes", "number", &value));
    assert_int_equal(value.dtype, MIX_INT64);
    assert_int_equal(value.bytes[0], 7);
    mix_hdf5_value_free(&value);
    assert_true(mix_hdf5_attribute(&file, "", "config", &value));
    assert_int_equal(strspn(value.texts[0], "x"), 5000);
    mix_hdf5_value_free(&value);
    assert_false(mix_hdf5_attribute(&file, "attributes", "none", &value));
    assert_int_equal(mix_error(), MIX_OK);
    assert_true(mix_hdf5_dataset(&file, "text", &value));
    assert_string_equal(value.texts[0], "hello");
    mix_hdf5_value_free(&value);
  }
}

static void chunks(void **state) {
  (void)state;
  static const char *const names[] = {"earliest", "v108"};
  for (int i = 0; i < 2; i++) {
    double values[36];
    open_file(names[i]);
    assert_int_equal(mix_tensor_read(mix_hdf5_tensor(&file, "zipped"), MIX_FLOAT64, values, 30), MIX_OK);
    for (int j = 0; j < 30; j++) assert_true(values[j] == j / 2.0);
    assert_int_equal(mix_tensor_read(mix_hdf5_tensor(&file, "chunked"), MIX_FLOAT64, values, 30), MIX_OK);
    for (int j = 0; j < 30; j++) assert_true(values[j] == j / 2);
    assert_int_equal(mix_tensor_read(mix_hdf5_tensor(&file, "sparse"), MIX_FLOAT64, values, 36), MIX_OK);
    for (int j = 0; j < 36; j++) assert_true(values[j] == (j == 21));
  }
}

/* ---- what is refused ---- */

static bool any_link(void *context, const char *name, bool is_group) { return context || name || is_group; }

static void refused(void **state) {
  (void)state;
  open_file("refused");
  expect_refused(mix_hdf5_list(&file, "soft", any_link, NULL), MIX_UNSUPPORTED, "soft links");
  expect_refused(mix_hdf5_tensor(&file, "soft/link"), MIX_UNSUPPORTED, "soft links");
  expect_refused(mix_hdf5_tensor(&file, "external/link"), MIX_UNSUPPORTED, "external links");
  expect_refused(mix_hdf5_tensor(&file, "elsewhere"), MIX_UNSUPPORTED, "data in other files");
  expect_refused(mix_hdf5_tensor(&file, "compound"), MIX_UNSUPPORTED, "compound types");
  expect_refused(mix_hdf5_tensor(&file, "sequences"), MIX_UNSUPPORTED, "empty");
  expect_refused(mix_hdf5_tensor(&file, "lzf"), MIX_UNSUPPORTED, "deflate and shuffle");
  expect_refused(mix_hdf5_tensor(&file, "none"), MIX_FORMAT_ERROR, "no data set 'none'");
  expect_refused(mix_hdf5_tensor(&file, "circle"), MIX_FORMAT_ERROR, "no data set");
  expect_refused(mix_hdf5_list(&file, "none", any_link, NULL), MIX_FORMAT_ERROR, "no group 'none'");
  assert_true(mix_hdf5_has(&file, "circle/self/self/self"));
  open_file("virtual");
  expect_refused(mix_hdf5_tensor(&file, "virtual"), MIX_UNSUPPORTED, "virtual");
  expect_refused(mix_hdf5_tensor(&file, "chunked"), MIX_UNSUPPORTED, "chunks in layout 4");
  expect_refused(mix_hdf5_open(&file, "text", "no HDF5 here", 12), MIX_FORMAT_ERROR, "not an HDF5 file");
}

/* The 40 names of a group become one of many letters, of which each link takes what is left behind it. */
static void links_that_share_a_name(void **state) {
  (void)state;
  enum { LETTERS = 2000 };
  load("earliest");
  const uint64_t at[] = {LETTERS, 0, size};
  for (unsigned char *heap = bytes; heap < bytes + size - 32; heap++) {
    uint64_t names;
    memcpy(&names, heap + 24, sizeof names);
    if (!memcmp(heap, "HEAP", 4) && names < size - 12 && !memcmp(bytes + names + 8, "d000", 4))
      memcpy(heap + 8, at, sizeof at);
  }
  bytes = realloc(bytes, size + LETTERS);
  assert_non_null(bytes);
  memset(bytes + size, 'n', LETTERS);
  size += LETTERS;
  assert_true(mix_hdf5_open(&file, "shared", bytes, size));
  expect_refused(mix_hdf5_list(&file, "many", any_link, NULL), MIX_FORMAT_ERROR,
                 "a group's links have more names than the file has room for");
}

/* ---- damage ---- */

typedef struct walk {
  char path[256];
  int depth;
} walk;

static bool visit(void *context, const char *name, bool is_group) {
  const walk *outer = context;
  walk inner = {.depth = outer->depth + 1};
  mix_hdf5_value value;
  snprintf(inner.path, sizeof inner.path, "%.100s/%.100s", outer->path, name);
  if (is_group) {
    if (mix_hdf5_attribute(&file, inner.path, "names", &value)) mix_hdf5_value_free(&value);
    if (inner.depth < 4) mix_hdf5_list(&file, inner.path, visit, &inner);
  } else {
    MIX_SCOPE { mix_hdf5_tensor(&file, inner.path); }
  }
  mix_error_clear();
  return true;
}

/* Reads all that can be read. Errors are right; a crash, a hang or a leak is not. */
static void read_all(size_t count) {
  walk root = {.depth = 0};
  unsigned char *part = malloc(count ? count : 1); /* its end is the end of the memory */
  assert_non_null(part);
  memcpy(part, bytes, count);
  if (mix_hdf5_open(&file, "damaged", part, count)) mix_hdf5_list(&file, "", visit, &root);
  mix_hdf5_close(&file);
  mix_error_clear();
  free(part);
}

static void cut_off(void **state) {
  (void)state;
  load("latest");
  for (size_t count = 0; count < size; count += 37) read_all(count);
  load("earliest");
  for (size_t count = 0; count < size; count += 499) read_all(count);
}

static void damaged_bytes(void **state) {
  (void)state;
  static const char *const names[] = {"latest", "v108", "refused"};
  for (int i = 0; i < 3; i++) {
    load(names[i]);
    for (size_t at = 0; at < size; at += 23) {
      const unsigned char former = bytes[at];
      for (int change = 0; change < 3; change++) {
        bytes[at] = (unsigned char)(change == 0 ? former ^ 0xFF : change == 1 ? former + 1 : 0xFF);
        if (at % 3 == (size_t)change) read_all(size);
      }
      bytes[at] = former;
    }
  }
}

#define TEST(function) cmocka_unit_test_teardown(function, end)
int main(void) {
  const struct CMUnitTest tests[] = {TEST(dtypes),
                                     TEST(groups),
                                     TEST(attributes),
                                     TEST(chunks),
                                     TEST(refused),
                                     TEST(cut_off),
                                     TEST(damaged_bytes),
                                     TEST(borrowed_elements),
                                     TEST(links_that_share_a_name)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
