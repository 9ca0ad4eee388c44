#include "base/number.h"
#include "base/float_modes.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t c_locale; /* the C locale; 0 if newlocale failed: the program's locale is used */

static void make_c_locale(void) { c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

/* Switches this thread to the C locale; returns the former locale. */
static locale_t enter(void) {
  pthread_once(&once, make_c_locale);
  return uselocale(c_locale);
}

double mix_number_read(const char *text, char **end) {
  MIX_OWN_FLOAT_MODES;
  const locale_t former = enter();
  const double x = strtod(text, end);
  uselocale(former);
  return x;
}

bool mix_integer_read(const char *text, int64_t *number) {
  char *end;
  errno = 0;
  *number = strtoll(text, &end, 10);
  return *text && !*end && !errno;
}

bool mix_bytes_read(const char *text, size_t *bytes) {
  static const struct {
    const char *name;
    double bytes;
  } units[] = {{"", 1},      {"B", 1},         {"KB", 1e3},      {"MB", 1e6},      {"GB", 1e9},
               {"TB", 1e12}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 0x1p40}};
  char *end;
  if (*text < '0' || *text > '9' || text[1] == 'x' || text[1] == 'X') return false;
  const double amount = mix_number_read(text, &end);
  while (*end == ' ') end++;
  for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
    if (strcmp(end, units[u].name)) continue;
    const double total = amount * units[u].bytes;
    if (!(total >= 1 && total < 0x1p63)) return false;
    *bytes = (size_t)total;
    return true;
  }
  return false;
}

void mix_number_write(char *text, size_t size, char form, int digits, double x) {
  const locale_t former = enter();
  snprintf(text, size, form == 'g' ? "%.*g" : form == 'e' ? "%.*e" : "%.*f", digits, x);
  uselocale(former);
}

void mix_number_write_shortest(char *text, size_t size, double x) {
  int digits = 1;
  if (isnan(x)) {
    snprintf(text, size, "nan");
    return;
  }
  do mix_number_write(text, size, 'g', digits, x);
  while (mix_number_read(text, NULL) != x && ++digits <= 17);
}
