#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

void mix_text_put(mix_text *text, const char *format, ...) {
  if (text->used >= text->size) return;
  va_list arguments;
  va_start(arguments, format);
  int n = vsnprintf(text->text + text->used, text->size - text->used, format, arguments);
  va_end(arguments);
  if (n > 0) text->used += (size_t)n;
}
