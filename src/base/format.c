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

/* ---- control characters ---- */

/* The bytes of the UTF-8 character; 0: of none, or of a control character. */
static size_t printable_bytes(const unsigned char *text) {
  const unsigned char first = text[0];
  if (first < 0x80) return first >= 0x20 && first != 0x7f;
  const size_t bytes = first >= 0xf0 && first < 0xf5 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first >= 0xf5) return 0;
  for (size_t i = 1; i < bytes; i++)
    if ((text[i] & 0xc0) != 0x80) return 0;
  return first == 0xc2 && text[1] < 0xa0 ? 0 : bytes;
}

static bool is_printable(const char *text) {
  for (size_t bytes; *text; text += bytes)
    if (!(bytes = printable_bytes((const unsigned char *)text))) return false;
  return true;
}

const char *mix_printable(const char *text, char *buffer, size_t size) {
  if (!text || is_printable(text)) return text;
  size_t used = 0;
  for (const char *c = text; *c;) {
    size_t bytes = printable_bytes((const unsigned char *)c);
    char piece[8];
    if (bytes)
      snprintf(piece, sizeof piece, "%.*s", (int)bytes, c);
    else if (*c == '\n' || *c == '\t' || *c == '\r')
      snprintf(piece, sizeof piece, "\\%c", *c == '\n' ? 'n' : *c == '\t' ? 't' : 'r');
    else
      snprintf(piece, sizeof piece, "\\x%02x", (unsigned)(unsigned char)*c);
    const size_t length = strlen(piece);
    if (used + length >= size) {
      memset(buffer + used, '.', size - used);
      buffer[size - 1] = 0;
      mix_mark_cut(buffer, size, size);
      return buffer;
    }
    memcpy(buffer + used, piece, length + 1);
    used += length;
    c += bytes ? bytes : 1;
  }
  return buffer;
}

int mix_column_bytes(const char *text, int letters) {
  return letters + (int)(strlen(text) - mix_letters(text));
}

/* Does the format have control characters of its own? */
static bool arranges_lines(const char *format) { return !is_printable(format); }

/* In place, because errors must be reportable without memory. */
static void escape_in_place(char *text, size_t size) {
  for (size_t at = 0; text[at];) {
    size_t bytes = printable_bytes((unsigned char *)text + at);
    if (bytes) {
      at += bytes;
      continue;
    }
    char escaped[8];
    const char one[2] = {text[at], 0};
    mix_printable(one, escaped, sizeof escaped);
    const size_t length = strlen(escaped), rest = strlen(text + at + 1);
    if (at + length + rest >= size) {
      text[at + length < size ? at + length : size - 1] = 0;
      if (at + length < size) memcpy(text + at, escaped, length);
      const size_t used = strlen(text);
      mix_mark_cut(text, used + 1, used + 1);
      return;
    }
    memmove(text + at + length, text + at + 1, rest + 1);
    memcpy(text + at, escaped, length);
    at += length;
  }
}

void mix_format_into(char *text, size_t size, const char *format, va_list arguments) {
  int length = vsnprintf(text, size, format, arguments);
  if (length < 0) {
    snprintf(text, size, "(a message that could not be formatted: \"%s\")", format);
    return;
  }
  mix_mark_cut(text, size, (size_t)length);
  if (size && !arranges_lines(format)) escape_in_place(text, size);
}
