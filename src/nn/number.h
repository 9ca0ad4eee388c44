/* Numbers as Python and NumPy print them. */
#pragma once

#include "base/number.h"
#include "tensor/convert.h"
#include <math.h>
#include <stdlib.h>

/* The shortest decimal that reads back as x, with ".0" if it looks like an integer. `text` holds 32 bytes. */
static inline const char *mix_python_float(double x, char *text) {
  mix_number_write_shortest(text, 32, x);
  if (!isfinite(x)) return text;
  /* Python keeps positional notation below 1e16 */
  if (strchr(text, 'e') && fabs(x) >= 1 && fabs(x) < 1e16) mix_number_write(text, 32, 'f', 0, x);
  if (!strpbrk(text, ".en")) strcat(text, ".0");
  return text;
}

/* The fewest digits that read back as x in the dtype, positional for magnitudes in [1e-4, 1e16). `text` as
 * above. */
static inline const char *mix_numpy_number(double x, mix_dtype dtype, char *text) {
  for (int digits = 0; digits < 17; digits++) {
    uint64_t stored;
    mix_number_write(text, 32, 'e', digits, x);
    mix_store_double(&stored, dtype, 0, mix_number_read(text, NULL));
    if (mix_load_double(&stored, dtype, 0) != x) continue;
    const int decimals = digits - atoi(strchr(text, 'e') + 1);
    if (x == 0 || (fabs(x) >= 1e-4 && fabs(x) < 1e16))
      mix_number_write(text, 32, 'f', decimals < 1 ? 1 : decimals, mix_number_read(text, NULL));
    return text;
  }
  return mix_python_float(x, text); /* infinite, NaN */
}
