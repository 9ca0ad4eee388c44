#include "base/format.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool begins_letter(char c) { return ((unsigned char)c & 0xc0) != 0x80; }

size_t mix_letters(const char *text) {
  size_t letters = 0;
  for (; *text; text++) letters += begins_letter(*text);
  return letters;
}

size_t mix_letters_bytes(const char *text, size_t count) {
  size_t bytes = 0;
  for (; text[bytes]; bytes++)
    if (begins_letter(text[bytes]) && !count--) break;
  return bytes;
}

void mix_mark_cut(char *text, size_t size, size_t length) {
  static const char dots[] = "...";
  if (length < size || size < sizeof dots) return;
  size_t end = size - sizeof dots;
  while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80) end--;
  memcpy(text + end, dots, sizeof dots);
}

void mix_format_into(char *text, size_t size, const char *format, va_list arguments) {
  int length = vsnprintf(text, size, format, arguments);
  if (length < 0) {
    snprintf(text, size, "(a message that could not be formatted: \"%s\")", format);
    return;
  }
  mix_mark_cut(text, size, (size_t)length);
}
