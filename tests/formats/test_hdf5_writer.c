/* The HDF5 writer: what it writes reads back bit by bit, lists of names stand in pieces, threads may write at
 * once, and an allocation that fails is an error. The bytes: test_hdf5_layout.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "formats/hdf5.h"
#include "formats/written_hdf5.h"
#include "support/expect.h"
#include <mixtape/mixtape.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static written_hdf5 written; /* the file that is open */

static int end(void **state) {
  (void)state;
  free(written.data);
  written = (written_hdf5){0};
  mix_error_clear();
  mix_shutdown();
  return 0;
}
#define WRITER_TEST(function) cmocka_unit_test_teardown(function, end)

static void open_written(mix_hdf5_writer *writer, mix_hdf5 *file) {
  assert_true(take_hdf5(writer, &written));
  assert_true(mix_hdf5_open(file, "written", written.data, written.size));
}

/* ---- data sets ---- */

static const mix_dtype dtypes[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64, MIX_INT8,
                                   MIX_INT16,   MIX_INT32,    MIX_INT64,   MIX_UINT8,   MIX_BOOL};
static const mix_shape shapes[] = {{0}, {1, {5}}, {2, {3, 0}}, {2, {2, 3}}, {4, {2, 1, 3, 2}}};
enum { DTYPES = sizeof dtypes / sizeof *dtypes, SHAPES = sizeof shapes / sizeof *shapes };

static const char *path_of(mix_dtype dtype, int shape) {
  static char path[64];
  snprintf(path, sizeof path, "sets/%s/%d", mix_dtype_name(dtype), shape);
  return path;
}

static mix_tensor *made(mix_dtype dtype, mix_shape shape) {
  double values[16];
  for (int i = 0; i < 16; i++) values[i] = dtype == MIX_BOOL ? i % 2 : i - (dtype == MIX_UINT8 ? 0 : 3.0);
  return mix_tensor_from_doubles(values, dtype, shape);
}

static void assert_same(mix_tensor *got, mix_tensor *expected) {
  assert_int_equal(mix_error(), MIX_OK);
  assert_int_equal(mix_tensor_dtype(got), mix_tensor_dtype(expected));
  assert_true(mix_shape_equal(mix_tensor_shape(got), mix_tensor_shape(expected)));
  const size_t count = (size_t)mix_shape_size(mix_tensor_shape(got));
  assert_memory_equal(mix_tensor_data(got), mix_tensor_data(expected),
                      count * mix_dtype_size(mix_tensor_dtype(got)));
}

static void every_dtype_and_rank(void **state) {
  (void)state;
  mix_hdf5 file;
  mix_hdf5_writer *writer = mix_hdf5_writer_new("test");
  for (int d = 0; d < DTYPES; d++)
    for (int s = 0; s < SHAPES; s++)
      assert_true(mix_hdf5_write_tensor(writer, path_of(dtypes[d], s), made(dtypes[d], shapes[s])));
  open_written(writer, &file);
  for (int d = 0; d < DTYPES; d++)
    for (int s = 0; s < SHAPES; s++)
      assert_same(mix_hdf5_tensor(&file, path_of(dtypes[d], s)), made(dtypes[d], shapes[s]));
}

/* Larger than a piece. */
static void a_large_tensor(void **state) {
  (void)state;
  mix_hdf5 file;
  mix_hdf5_writer *writer = mix_hdf5_writer_new("test");
  mix_tensor *large = mix_range(0, 700000, 1, MIX_FLOAT32);
  assert_true(mix_hdf5_write_tensor(writer, "large", large));
  open_written(writer, &file);
  assert_true(written.size > 2800000 && written.size < 2800000 + 4096);
  assert_int_equal(written.pieces, 4); /* three of a MiB each at most, and the headers */
  assert_same(mix_hdf5_tensor(&file, "large"), large);
}

static void equal_tensors_give_equal_files(void **state) {
  (void)state;
  written_hdf5 files[2];
  for (int i = 0; i < 2; i++) {
    mix_hdf5_writer *writer = mix_hdf5_writer_new("test");
    mix_hdf5_write_tensor(writer, "a/b", mix_range(0, 10, 1, MIX_FLOAT32));
    mix_hdf5_write_text(writer, "a", "name", "text");
    assert_true(take_hdf5(writer, &files[i]));
  }
  assert_int_equal(files[0].size, files[1].size);
  assert_memory_equal(files[0].data, files[1].data, files[0].size);
  free(files[0].data);
  free(files[1].data);
}

/* ---- groups and paths ---- */

static bool add_name(void *context, const char *name, bool is_group) {
  char *names = context;
  snprintf(names + strlen(names), 64, "%s%s ", name, is_group ? "/" : "");
  return true;
}

static void groups(void **state) {
  (void)state;
  mix_hdf5 file;
  char names[256] = "";
  mix_hdf5_writer *writer = mix_hdf5_writer_new("test");
  assert_true(mix_hdf5_write_group(writer, "layers/dense/vars"));
  assert_true(mix_hdf5_write_group(writer, "layers/dense/vars"));
  assert_true(mix_hdf5_write_group(writer, ""));
  assert_true(mix_hdf5_write_tensor(writer, "layers/add", made(MIX_FLOAT32, shapes[1])));
  assert_true(mix_hdf5_is_free(writer, "layers/dense/vars/0"));
  assert_true(mix_hdf5_is_free(writer, "other/0"));
  assert_false(mix_hdf5_is_free(writer, "layers/add"));
  assert_false(mix_hdf5_is_free(writer, "layers/add/0"));
  assert_false(mix_hdf5_is_free(writer, "layers/dense"));
  open_written(writer, &file);
  assert_true(mix_hdf5_list(&file, "layers", add_name, names));
  assert_string_equal(names, "add dense/ ");
}

/* The blocks that the last call has read. */
static int64_t visited(const mix_hdf5 *file) { return (int64_t)(file->size / 8) + 64 - file->visits; }

/* The links of a large group are read once, and not again for each path through it. */
static void a_large_group_is_read_once(void **state) {
  (void)state;
  enum { LINKS = 3000 };
  mix_hdf5 file;
  char path[32];
  mix_hdf5_writer *writer = mix_hdf5_writer_new("test");
  for (int i = 0; i < LINKS; i++) {
    snprintf(path, sizeof path, "layers/l%d/vars", i);
    assert_true(mix_hdf5_write_group(writer, path));
  }
  open_written(writer, &file);
  int64_t blocks = 0;
  for (int i = 0; i < LINKS; i++) {
    snprintf(path, sizeof path, "layers/l%d/vars", i);
    assert_true(mix_hdf5_has(&file, path));
    blocks += visited(&file);
    snprintf(path, sizeof path, "layers/l%d/weights", i);
    assert_false(mix_hdf5_has(&file, path));
  }
  assert_false(mix_hdf5_has(&file, "layers/l"));
  assert_false(mix_hdf5_has(&file, "layers/l29990"));
  if (blocks > 32 * LINKS) fail_msg("%lld blocks are read for %d paths", (long long)blocks, LINKS);
  mix_hdf5_close(&file);
}

static void a_path_that_is_taken(void **state) {
  (void)state;
  mix_hdf5_writer *writer = mix_hdf5_writer_new("test");
  assert_true(mix_hdf5_write_tensor(writer, "set", made(MIX_FLOAT32, shapes[1])));
  assert_false(mix_hdf5_write_tensor(writer, "set", made(MIX_FLOAT32, shapes[1])));
  expect_error(MIX_VALUE_ERROR, "test: 'set' is in the HDF5 file already");
  assert_false(mix_hdf5_write_tensor(writer, "set/0", made(MIX_FLOAT32, shapes[1])));
  expect_error(MIX_VALUE_ERROR, "test: 'set/0' cannot be written below 'set', which is an array");
  assert_false(mix_hdf5_write_group(writer, "set/a/b"));
  expect_error(MIX_VALUE_ERROR, "test: 'set/a/b' cannot be written below 'set'");
  assert_false(mix_hdf5_write_tensor(writer, "", made(MIX_FLOAT32, shapes[1])));
  expect_error(MIX_VALUE_ERROR, "test: '' is in the HDF5 file already");
  assert_false(mix_hdf5_write_tensor(writer, "f8", made(MIX_FLOAT8_E5M2, shapes[1])));
  expect_error(MIX_UNSUPPORTED, "test: 'f8' is float8_e5m2, which HDF5 files do not have");
}

static void attributes_that_are_refused(void **state) {
  (void)state;
  mix_hdf5_writer *writer = mix_hdf5_writer_new("test");
  assert_true(mix_hdf5_write_text(writer, "", "name", "a"));
  assert_false(mix_hdf5_write_text(writer, "", "name", "b"));
  expect_error(MIX_VALUE_ERROR, "test: '' has an attribute 'name' already");
  assert_false(mix_hdf5_write_text(writer, "nowhere", "name", "b"));
  expect_error(MIX_VALUE_ERROR, "test: 'nowhere' is not in the HDF5 file");
}

/* ---- attributes ---- */

static void check_texts(mix_hdf5 *file, const char *name, int first, int count, int length) {
  char expected[32];
  mix_hdf5_value value;
  if (!mix_hdf5_attribute(file, "", name, &value)) fail_msg("no attribute %s", name);
  assert_int_equal(value.count, count);
  for (int i = 0; i < count; i++) {
    snprintf(expected, sizeof expected, "%0*d", length, first + i);
    assert_string_equal(value.texts[i], expected);
  }
  mix_hdf5_value_free(&value);
}

static bool write_numbers(mix_hdf5_writer *writer, const char *name, int count, int length) {
  static char block[13000][32];
  static const char *texts[13000];
  assert_true(count <= 13000);
  for (int i = 0; i < count; i++) {
    snprintf(block[i], sizeof block[i], "%0*d", length, i);
    texts[i] = block[i];
  }
  return mix_hdf5_write_texts(writer, "", name, count, texts);
}

/* 64512 bytes are one piece; one text more makes two, the first of which is longer by one, as numpy splits.
 */
static void Z12_lists_of_names_in_pieces(void **state) {
  (void)state;
  mix_hdf5 file;
  mix_hdf5_value value;
  mix_hdf5_writer *writer = mix_hdf5_writer_new("test");
  assert_true(write_numbers(writer, "whole", 64512 / 24, 24));
  assert_true(write_numbers(writer, "names", 64512 / 24 + 1, 24));
  assert_true(write_numbers(writer, "many", 3 * 64512 / 16 + 1, 16));
  open_written(writer, &file);
  check_texts(&file, "whole", 0, 2688, 24);
  assert_false(mix_hdf5_attribute(&file, "", "names", &value));
  check_texts(&file, "names0", 0, 1345, 24);
  check_texts(&file, "names1", 1345, 1344, 24);
  assert_false(mix_hdf5_attribute(&file, "", "names2", &value));
  check_texts(&file, "many0", 0, 3025, 16);
  check_texts(&file, "many1", 3025, 3024, 16);
  check_texts(&file, "many3", 9073, 3024, 16);
}

static void texts_of_any_length(void **state) {
  (void)state;
  mix_hdf5 file;
  mix_hdf5_value value;
  char *large = malloc(300000);
  memset(large, 'x', 299999);
  large[299999] = 0;
  mix_hdf5_writer *writer = mix_hdf5_writer_new("test");
  assert_true(mix_hdf5_write_text(writer, "", "large", large));
  assert_true(mix_hdf5_write_text(writer, "", "empty", ""));
  assert_true(mix_hdf5_write_text(writer, "", "utf8", "Größe"));
  assert_true(mix_hdf5_write_texts(writer, "", "none", 0, NULL));
  open_written(writer, &file);
  const char *const expected[][2] = {{"large", large}, {"empty", ""}, {"utf8", "Größe"}};
  for (int i = 0; i < 3; i++) {
    assert_true(mix_hdf5_attribute(&file, "", expected[i][0], &value));
    assert_int_equal(value.count, 1);
    assert_string_equal(value.texts[0], expected[i][1]);
    mix_hdf5_value_free(&value);
  }
  assert_true(mix_hdf5_attribute(&file, "", "none", &value));
  assert_int_equal(value.count, 0);
  mix_hdf5_value_free(&value);
  large[70000] = 0;
  assert_false(mix_hdf5_write_texts(writer, "", "long", 1, (const char *const[]){large}));
  expect_error(MIX_VALUE_ERROR, "70000 bytes");
  free(large);
}

/* ---- threads, and memory that ends ---- */

static void *write_many(void *context) {
  bool *good = context;
  *good = true;
  for (int i = 0; i < 40; i++)
    MIX_SCOPE {
      mix_hdf5 file;
      written_hdf5 own = {0};
      mix_hdf5_writer *writer = mix_hdf5_writer_new("test");
      for (int s = 0; s < SHAPES; s++)
        mix_hdf5_write_tensor(writer, &"a/b/c/d/e"[2 * s], made(MIX_FLOAT32, shapes[s]));
      *good = *good && take_hdf5(writer, &own) && mix_hdf5_open(&file, "written", own.data, own.size) &&
              mix_hdf5_tensor(&file, "b/c/d/e");
      free(own.data);
    }
  mix_shutdown();
  return NULL;
}

static void threads_write_at_once(void **state) {
  (void)state;
  pthread_t threads[4];
  bool good[4];
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, write_many, &good[i]), 0);
  for (int i = 0; i < 4; i++) {
    pthread_join(threads[i], NULL);
    assert_true(good[i]);
  }
}

static bool write_some(void) {
  bool good = false;
  MIX_SCOPE {
    written_hdf5 own = {0};
    mix_hdf5_writer *writer = mix_hdf5_writer_new("test");
    mix_hdf5_write_tensor(writer, "layers/dense/vars/0", made(MIX_FLOAT16, shapes[3]));
    mix_hdf5_write_tensor(writer, "layers/dense/vars/1", made(MIX_BFLOAT16, shapes[1]));
    mix_hdf5_write_tensor(writer, "flags", made(MIX_BOOL, shapes[1]));
    mix_hdf5_write_text(writer, "layers", "name", "text");
    write_numbers(writer, "names", 3000, 24);
    good = take_hdf5(writer, &own);
    free(own.data);
  }
  return good;
}

static void any_allocation_fails(void **state) {
  (void)state;
  const uint64_t before = mix_inject_allocation_failure(-1);
  assert_true(write_some());
  const int64_t all = (int64_t)(mix_inject_allocation_failure(-1) - before);
  int failed = 0;
  for (int64_t i = 0; i < 2 * all; i++) {
    mix_inject_allocation_failure(i);
    const bool good = write_some();
    const bool pending = mix_allocation_failure_injected();
    mix_inject_allocation_failure(-1);
    if (pending) break;
    if (!good) expect_error(MIX_MEMORY_ERROR, "memory");
    failed += !good;
    assert_true(write_some());
  }
  assert_true(failed > 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WRITER_TEST(every_dtype_and_rank),
      WRITER_TEST(a_large_tensor),
      WRITER_TEST(equal_tensors_give_equal_files),
      WRITER_TEST(groups),
      WRITER_TEST(a_large_group_is_read_once),
      WRITER_TEST(a_path_that_is_taken),
      WRITER_TEST(attributes_that_are_refused),
      WRITER_TEST(Z12_lists_of_names_in_pieces),
      WRITER_TEST(texts_of_any_length),
      WRITER_TEST(threads_write_at_once),
      WRITER_TEST(any_allocation_fails),
  };
  return cmocka_run_group_tests_name("HDF5 writer", tests, NULL, NULL);
}
