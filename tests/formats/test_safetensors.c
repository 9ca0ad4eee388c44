/* safetensors: a file that Python's library wrote, files written here, and damaged ones. */
#include "support/skip.h"
#include "data/support.h"
#include "model/support.h"

#include "base/alloc.h"
#include "formats/safetensors.h"
#include <mixtape/ops.h>

static void reads_what_python_wrote(void **state) {
  (void)state;
  static const struct {
    const char *name;
    mix_dtype dtype;
  } dtypes[] = {{"of.F64", MIX_FLOAT64},
                {"of.F32", MIX_FLOAT32},
                {"of.F16", MIX_FLOAT16},
                {"of.BF16", MIX_BFLOAT16},
                {"of.I64", MIX_INT64},
                {"of.I32", MIX_INT32},
                {"of.I16", MIX_INT16},
                {"of.I8", MIX_INT8},
                {"of.U8", MIX_UINT8},
                {"of.BOOL", MIX_BOOL},
                {"of.F8_E4M3", MIX_FLOAT8_E4M3FN},
                {"of.F8_E5M2", MIX_FLOAT8_E5M2}};
  const double expected[] = {0, 1, 2, 3, 4, 1};
  char path[1024];
  snprintf(path, sizeof path, "%s/formats/safetensors/dtypes.safetensors", getenv("MIXTAPE_TESTS_DIR"));
  for (int copies = 0; copies < 2; copies++) {
    mix_safetensors *file = mix_safetensors_open(path, copies);
    assert_no_error();
    assert_int_equal(mix_safetensors_count(file), 15);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
      const mix_stored_tensor *stored = mix_safetensors_find(file, dtypes[i].name);
      assert_non_null(stored);
      mix_tensor *value = mix_stored_tensor_value(stored);
      assert_int_equal(mix_tensor_dtype(value), dtypes[i].dtype);
      assert_true(mix_shape_equal(mix_tensor_shape(value), MIX_SHAPE(2, 3)));
      for (int e = 0; e < 6; e++)
        assert_true(at(value, e) == (dtypes[i].dtype == MIX_BOOL ? expected[e] != 0 : expected[e]));
    }
    assert_true(at(mix_stored_tensor_value(mix_safetensors_find(file, "scalar")), 0) == 2.5);
    assert_int_equal(
        mix_shape_size(mix_tensor_shape(mix_stored_tensor_value(mix_safetensors_find(file, "empty")))), 0);
    assert_null(mix_safetensors_find(file, "none"));
    assert_null(mix_stored_tensor_value(mix_safetensors_find(file, "of.U32")));
    assert_error(MIX_UNSUPPORTED, "'of.U32': its dtype is not one that tensors have here");
  }
}

/* Every tensor of a multiple of 64 bytes lies where the mapping itself can be a variable's storage. */
static void written_values_are_aligned(void **state) {
  (void)state;
  static float values[2048];
  for (int i = 0; i < 2048; i++) values[i] = (float)i;
  mix_tensor *large = mix_tensor_from(values, MIX_FLOAT32, MIX_SHAPE(2, 1024)),
             *odd = mix_tensor_from(values, MIX_FLOAT32, MIX_SHAPE(3)),
             *half = mix_cast(mix_tensor_from(values, MIX_FLOAT32, MIX_SHAPE(2048)), MIX_BFLOAT16);
  const char *const names[] = {"odd", "large/\"name\"", "half"};
  const char *path = in_folder("w.safetensors");
  assert_true(mix_safetensors_write("test", path, 3, names, (mix_tensor *[]){odd, large, half}));
  mix_safetensors *file = mix_safetensors_open(path, false);
  assert_no_error();
  for (int i = 0; i < 3; i++) {
    const mix_stored_tensor *stored = mix_safetensors_find(file, names[i]);
    mix_memory *share = mix_stored_tensor_share(stored);
    assert_int_equal(share != NULL, i > 0);
    mix_release(share);
    mix_tensor *value = mix_stored_tensor_value(stored);
    assert_int_equal(mix_tensor_dtype(value), i == 2 ? MIX_BFLOAT16 : MIX_FLOAT32);
    assert_true(at(value, 2) == 2);
  }
  assert_false(
      mix_safetensors_write("test", path, 2, (const char *const[]){"a", "a"}, (mix_tensor *[]){odd, odd}));
  assert_error(MIX_VALUE_ERROR, "two tensors have the name 'a'");
  assert_int_equal(mix_safetensors_count(mix_safetensors_open(path, false)), 3); /* the old file stayed */
  assert_true(mix_safetensors_write("test", path, 0, NULL, NULL));
  assert_int_equal(mix_safetensors_count(mix_safetensors_open(path, false)), 0);
  assert_no_error();
}

/* A file of that header, and so many bytes of tensors. */
static mix_safetensors *open_text(const char *header, size_t bytes) {
  static char file[4096];
  const size_t length = strlen(header);
  memset(file, 0, sizeof file);
  file[0] = (char)length, file[1] = (char)(length >> 8);
  memcpy(file + 8, header, length);
  return mix_safetensors_open_memory("f", file, 8 + length + bytes);
}

#define ENTRY(dtype, shape, offsets)                                                                         \
  "{\"a\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static void damaged_headers_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *header;
    size_t bytes;
    mix_status status;
    const char *message;
  } cases[] = {
      {"[]", 0, MIX_FORMAT_ERROR, "its header is an array"},
      {"{", 0, MIX_FORMAT_ERROR, "not valid JSON"},
      {"{\"a\":{},\"a\":{}}", 0, MIX_FORMAT_ERROR, "duplicate"},
      {"{\"a\":3}", 0, MIX_FORMAT_ERROR, "dtype is missing"},
      {ENTRY("F32", "3", "[0,4]"), 4, MIX_FORMAT_ERROR, "shape is an integer"},
      {ENTRY("F32", "[-1]", "[0,4]"), 4, MIX_FORMAT_ERROR, "something else than sizes"},
      {ENTRY("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4, MIX_UNSUPPORTED, "9 axes"},
      {ENTRY("F32", "[4611686018427387904,4]", "[0,4]"), 4, MIX_FORMAT_ERROR, "more elements"},
      {ENTRY("F32", "[1]", "[0]"), 4, MIX_FORMAT_ERROR, "data_offsets are not"},
      {ENTRY("F32", "[1]", "[4,0]"), 4, MIX_FORMAT_ERROR, "data_offsets are not"},
      {ENTRY("F32", "[2]", "[0,8]"), 4, MIX_FORMAT_ERROR, "its bytes end at 8 of 4"},
      {ENTRY("F32", "[2]", "[0,4]"), 4, MIX_FORMAT_ERROR, "F32 of shape (2) takes 8 bytes"},
      {ENTRY("F32", "[1]", "[0,4]"), 6, MIX_FORMAT_ERROR, "2 bytes at its end belong to no tensor"},
      {ENTRY("F32", "[1]", "[2,6]"), 6, MIX_FORMAT_ERROR, "without gaps"},
      {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
       "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[2,6]}}",
       6, MIX_FORMAT_ERROR, "'b': its bytes begin at 2, and those before it end at 4"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_null(open_text(cases[i].header, cases[i].bytes));
    assert_error(cases[i].status, cases[i].message);
  }
  assert_non_null(open_text(ENTRY("F32", "[1]", "[0,4]"), 4));
  assert_non_null(open_text("{\"__metadata__\":{\"format\":\"pt\"}}", 0));
  assert_null(mix_safetensors_open_memory("f", "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10));
  assert_error(MIX_FORMAT_ERROR, "cut short");
  assert_null(mix_safetensors_open_memory("f", "\x02", 1));
  assert_error(MIX_FORMAT_ERROR, "no safetensors file");
  assert_null(mix_safetensors_open_memory("f", "\x03\0\0\0\0\0\0\0{}\0", 11));
  assert_error(MIX_FORMAT_ERROR, "a byte of zero");
  assert_null(mix_safetensors_open(in_folder("none.safetensors"), false));
  assert_error(MIX_IO_ERROR, "none.safetensors");
}

static void an_index_opens_its_files(void **state) {
  (void)state;
  char index[512];
  mix_tensor *value = ARRAY(F32, MIX_SHAPE(2), 1, 2);
  for (int i = 0; i < 2; i++)
    assert_true(mix_safetensors_write("test", in_folder(i ? "b.safetensors" : "a.safetensors"), 1,
                                      (const char *const[]){i ? "b" : "a"}, &value));
  snprintf(index, sizeof index, "%s", in_folder("m.safetensors.index.json"));
  write_in_folder("/m.safetensors.index.json",
                  "{\"weight_map\": {\"a\": \"a.safetensors\", \"b\": \"b.safetensors\"}}");
  mix_safetensors *file = mix_safetensors_open(index, false);
  assert_no_error();
  assert_int_equal(mix_safetensors_count(file), 2);
  assert_true(at(mix_stored_tensor_value(mix_safetensors_find(file, "b")), 1) == 2);
  static const char *const bad[][2] = {
      {"{}", "no object weight_map"},
      {"{\"weight_map\": {\"a\": \"../a.safetensors\"}}", "something else than files beside it"},
      {"{\"weight_map\": {\"a\": \"c.safetensors\"}}", "c.safetensors is missing"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    write_in_folder("/m.safetensors.index.json", bad[i][0]);
    assert_null(mix_safetensors_open(index, false));
    assert_error(i == 2 ? MIX_IO_ERROR : MIX_FORMAT_ERROR, bad[i][1]);
  }
  assert_true(
      mix_safetensors_write("test", in_folder("b.safetensors"), 1, (const char *const[]){"a"}, &value));
  write_in_folder("/m.safetensors.index.json",
                  "{\"weight_map\": {\"a\": \"a.safetensors\", \"b\": \"b.safetensors\"}}");
  assert_null(mix_safetensors_open(index, false));
  assert_error(MIX_FORMAT_ERROR, "'a' is in");
}

static void each_allocation_may_fail(void **state) {
  (void)state;
  mix_tensor *value = ARRAY(F32, MIX_SHAPE(2), 1, 2);
  const char *const names[] = {"a", "b"};
  const char *path = in_folder("w.safetensors");
  bool good = false;
  int64_t count = 0;
  mix_tensor_data(value);
  for (; !good && count < 10000; count++) {
    mix_inject_allocation_failure(count);
    MIX_SCOPE {
      good = mix_safetensors_write("test", path, 2, names, (mix_tensor *[]){value, value});
      mix_safetensors *file = good ? mix_safetensors_open(path, count % 2) : NULL;
      good = file && mix_stored_tensor_value(mix_safetensors_find(file, "b"));
    }
    mix_inject_allocation_failure(-1);
    if (!good) assert_error(MIX_MEMORY_ERROR, NULL);
  }
  assert_true(good && count > 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      FOLDER_TEST(reads_what_python_wrote), FOLDER_TEST(written_values_are_aligned),
      FOLDER_TEST(damaged_headers_are_refused), FOLDER_TEST(an_index_opens_its_files),
      FOLDER_TEST(each_allocation_may_fail)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
