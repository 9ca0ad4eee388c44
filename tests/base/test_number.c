/* Numbers in texts under any locale. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/skip.h"
#include "base/number.h"
#include "base/text.h"

#include <locale.h>
#include <stdlib.h>
#include <math.h>
#include <string.h>

static void the_shortest_that_reads_back(void **state) {
  (void)state;
  static const struct {
    double x;
    const char *text;
  } cases[] = {{0.1, "0.1"},
               {1.0 / 3, "0.3333333333333333"},
               {-0.0, "-0"},
               {1e300, "1e+300"},
               {5e-324, "5e-324"},
               {0.5, "0.5"},
               {123456789, "123456789"},
               {INFINITY, "inf"},
               {-INFINITY, "-inf"},
               {NAN, "nan"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[40], *end;
    mix_number_write_shortest(text, sizeof text, cases[i].x);
    assert_string_equal(text, cases[i].text);
    const double again = mix_number_read(text, &end);
    assert_true(*end == 0 && (again == cases[i].x || isnan(again)));
  }
}

/* A program may have set any locale. Those with a decimal comma are tested if the machine has one. */
static void locales_change_nothing(void **state) {
  (void)state;
  static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "ru_RU.UTF-8"};
  const char *folder = getenv("MIXTAPE_LOCALES_DIR");
  if (folder) setenv("LOCPATH", folder, 1);
  int i = 0;
  while (i < 4 && !setlocale(LC_ALL, names[i])) i++;
  if (i == 4) SKIP("no locale with a decimal comma is installed");
  char text[40];
  mix_number_write(text, sizeof text, 'g', 3, 0.125);
  assert_string_equal(text, "0.125");
  assert_true(mix_number_read("0.125", NULL) == 0.125);
  assert_string_equal(localeconv()->decimal_point, ","); /* the program's own locale is unchanged */
  setlocale(LC_ALL, "C");
}

static void a_whole_number_is_all_of_the_text(void **state) {
  (void)state;
  int64_t n;
  assert_true(mix_integer_read("-12", &n) && n == -12);
  assert_true(mix_integer_read("9223372036854775807", &n) && n == INT64_MAX);
  static const char *const others[] = {"", "x", "1.5", "3 ", "0x10", "9223372036854775808"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) assert_false(mix_integer_read(others[i], &n));
}

static void amounts_of_bytes(void **state) {
  (void)state;
  static const struct {
    const char *text;
    size_t bytes; /* 0: refused */
  } cases[] = {{"1", 1},
               {"1B", 1},
               {"2KB", 2000},
               {"2KiB", 2048},
               {"1.5MB", 1500000},
               {"1.5 MiB", 3 << 19},
               {"3GB", 3000000000u},
               {"3GiB", 3ull << 30},
               {"2TB", 2000000000000u},
               {"2TiB", 2ull << 40},
               {"1.9", 1},
               {"0", 0},
               {"0.9", 0},
               {"-1", 0},
               {"+1", 0},
               {" 1", 0},
               {"", 0},
               {"GiB", 0},
               {"1gib", 0},
               {"0x10", 0},
               {"1Gi", 0},
               {"1 GiB ", 0},
               {"1KiBs", 0},
               {"nan", 0},
               {"inf", 0},
               {"1e19", 0},
               {"9000000000GiB", 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    size_t bytes = 0;
    assert_int_equal(mix_bytes_read(cases[i].text, &bytes), cases[i].bytes > 0);
    assert_int_equal(bytes, cases[i].bytes);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_shortest_that_reads_back),
      cmocka_unit_test(locales_change_nothing),
      cmocka_unit_test(amounts_of_bytes),
      cmocka_unit_test(a_whole_number_is_all_of_the_text),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
