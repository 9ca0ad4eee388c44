/* Element types: names, sizes, classes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <mixtape/dtype.h>

static const struct {
  mix_dtype dtype;
  const char *name;
  size_t size;
  bool floating, integer;
} rows[] = {
    {MIX_FLOAT16, "float16", 2, true, false},
    {MIX_BFLOAT16, "bfloat16", 2, true, false},
    {MIX_FLOAT32, "float32", 4, true, false},
    {MIX_FLOAT64, "float64", 8, true, false},
    {MIX_INT8, "int8", 1, false, true},
    {MIX_INT16, "int16", 2, false, true},
    {MIX_INT32, "int32", 4, false, true},
    {MIX_INT64, "int64", 8, false, true},
    {MIX_UINT8, "uint8", 1, false, true},
    {MIX_BOOL, "bool", 1, false, false},
    {MIX_UINT16, "uint16", 0, false, false},
    {MIX_UINT32, "uint32", 0, false, false},
    {MIX_UINT64, "uint64", 0, false, false},
    {MIX_COMPLEX64, "complex64", 0, false, false},
    {MIX_COMPLEX128, "complex128", 0, false, false},
    {MIX_STRING, "string", 0, false, false},
    {MIX_FLOAT8_E4M3FN, "float8_e4m3fn", 1, true, false},
    {MIX_FLOAT8_E5M2, "float8_e5m2", 1, true, false},
};

static void every_dtype_has_its_name_size_and_class(void **state) {
  (void)state;
  assert_int_equal(sizeof rows / sizeof *rows, MIX_DTYPE_COUNT - 1);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_string_equal(mix_dtype_name(rows[i].dtype), rows[i].name);
    assert_int_equal(mix_dtype_from_name(rows[i].name), rows[i].dtype);
    assert_int_equal(mix_dtype_size(rows[i].dtype), rows[i].size);
    assert_int_equal(mix_dtype_is_floating(rows[i].dtype), rows[i].floating);
    assert_int_equal(mix_dtype_is_integer(rows[i].dtype), rows[i].integer);
  }
}

static void names_are_exact(void **state) {
  (void)state;
  static const char *const wrong[] = {"",      "none", "Float16", "float16 ",
                                      "float", "half", "fp16",    "mixed_float16"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_int_equal(mix_dtype_from_name(wrong[i]), MIX_DTYPE_NONE);
  assert_int_equal(mix_dtype_from_name(NULL), MIX_DTYPE_NONE);
  assert_int_equal(mix_error(), MIX_OK);
}

static void no_dtype_and_numbers_outside(void **state) {
  (void)state;
  assert_string_equal(mix_dtype_name(MIX_DTYPE_NONE), "none");
  const mix_dtype outside[] = {MIX_DTYPE_NONE, MIX_DTYPE_COUNT, (mix_dtype)-1, (mix_dtype)1000};
  for (int i = 0; i < 4; i++) {
    assert_non_null(mix_dtype_name(outside[i]));
    assert_int_equal(mix_dtype_size(outside[i]), 0);
    assert_false(mix_dtype_is_floating(outside[i]));
    assert_false(mix_dtype_is_integer(outside[i]));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_dtype_has_its_name_size_and_class),
      cmocka_unit_test(names_are_exact),
      cmocka_unit_test(no_dtype_and_numbers_outside),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
