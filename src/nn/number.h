/* Numbers as Python prints them. */
#ifndef MIX_NN_NUMBER_H
#define MIX_NN_NUMBER_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline const char *mix_python_number(double x, bool is_float32, char *text) {
  int digits = 1;
  if (isnan(x)) return strcpy(text, "nan");
  if (isinf(x)) return strcpy(text, x > 0 ? "inf" : "-inf");
  do snprintf(text, 32, "%.*g", digits, x);
  while ((is_float32 ? (double)strtof(text, NULL) : strtod(text, NULL)) != x && ++digits <= 17);
  /* Python keeps positional notation below 1e16 */
  if (strchr(text, 'e') && fabs(x) >= 1 && fabs(x) < 1e16) snprintf(text, 32, "%.0f", x);
  if (!strpbrk(text, ".en")) strcat(text, ".0");
  return text;
}
/* The shortest decimal that reads back as x, with ".0" where it looks like an integer; `text` holds 32 bytes. */
static inline const char *mix_python_float(double x, char *text) { return mix_python_number(x, false, text); }
/* As NumPy's float32 prints itself: the shortest that reads back as that float. */
static inline const char *mix_python_float32(float x, char *text) { return mix_python_number((double)x, true, text); }

#endif
