/* Names and numbers as JSON values. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/error.h"
#include "base/json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static void names_that_are_not_utf8_have_a_word(void **state) {
  (void)state;
  static const char *const cases[][2] = {{"dense", "dense"},
                                         {"", ""},
                                         {"d\xc3\xa9", "d\xc3\xa9"},
                                         {"a\xff", "(not UTF-8)"},
                                         {"\xc3", "(not UTF-8)"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    errno = EAGAIN;
    json_t *name = mix_json_name(cases[i][0]);
    assert_int_equal(errno, EAGAIN);
    assert_string_equal(json_string_value(name), cases[i][1]);
    json_decref(name);
  }
}

static void numbers_that_are_not_finite_have_a_word(void **state) {
  (void)state;
  static const struct {
    double x;
    const char *text; /* NULL: a number */
  } cases[] = {{0.1, NULL}, {-3, NULL}, {INFINITY, "inf"}, {-INFINITY, "-inf"}, {NAN, "nan"}, {-NAN, "nan"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    json_t *number = mix_json_real(cases[i].x);
    if (cases[i].text)
      assert_string_equal(json_string_value(number), cases[i].text);
    else
      assert_true(json_is_real(number) && json_real_value(number) == cases[i].x);
    json_decref(number);
  }
}

static void *no_memory(size_t size) {
  (void)size;
  errno = ENOMEM;
  return NULL;
}

/* Memory that runs out is not a name that is not UTF-8. */
static void memory_that_runs_out_gives_none(void **state) {
  (void)state;
  json_set_alloc_funcs(no_memory, free);
  json_t *name = mix_json_name("dense"), *number = mix_json_real(1);
  json_set_alloc_funcs(malloc, free);
  assert_null(name);
  assert_null(number);
}

/* A text that was not made for want of memory is an error that says so, not silence. */
static void a_text_without_its_value_is_out_of_memory(void **state) {
  (void)state;
  char *kept = NULL;
  json_set_alloc_funcs(no_memory, free);
  const char *text = mix_json_keep_text(&kept, json_pack("{s:s}", "status", "found"));
  json_set_alloc_funcs(malloc, free);
  assert_null(text);
  assert_int_equal(mix_error(), MIX_MEMORY_ERROR);
  mix_error_clear();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_that_are_not_utf8_have_a_word),
      cmocka_unit_test(numbers_that_are_not_finite_have_a_word),
      cmocka_unit_test(memory_that_runs_out_gives_none),
      cmocka_unit_test(a_text_without_its_value_is_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
