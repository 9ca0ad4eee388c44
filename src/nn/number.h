/* Numbers as Python prints them. */
#ifndef MIX_NN_NUMBER_H
#define MIX_NN_NUMBER_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The shortest decimal that reads back as x, with ".0" where it looks like an integer; `text` holds 32 bytes. */
static inline const char *mix_python_float(double x, char *text) {
  int digits = 1;
  if (isnan(x)) return strcpy(text, "nan");
  if (isinf(x)) return strcpy(text, x > 0 ? "inf" : "-inf");
  do snprintf(text, 32, "%.*g", digits, x);
  while (strtod(text, NULL) != x && ++digits <= 17);
  /* Python keeps positional notation below 1e16 */
  if (strchr(text, 'e') && fabs(x) >= 1 && fabs(x) < 1e16) snprintf(text, 32, "%.0f", x);
  if (!strpbrk(text, ".en")) strcat(text, ".0");
  return text;
}

#endif
