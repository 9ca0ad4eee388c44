#include "base/text_reader.h"
#include "base/number.h"

#include <math.h>
#include <string.h>

void mix_scan_blanks(mix_scan *scan) {
  while (scan->at < scan->end && (*scan->at == ' ' || *scan->at == '\t')) scan->at++;
}

bool mix_scan_done(mix_scan *scan) {
  mix_scan_blanks(scan);
  return scan->at == scan->end;
}

static bool in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
static bool in_word(char c) { return in_name(c) || (c && strchr("./:+-", c)); }

bool mix_scan_text(mix_scan *scan, const char *text) {
  mix_scan_blanks(scan);
  size_t length = strlen(text);
  if ((size_t)(scan->end - scan->at) < length || memcmp(scan->at, text, length) != 0) return false;
  if (in_name(text[length - 1]) && scan->at + length < scan->end && in_name(scan->at[length])) return false;
  scan->at += length;
  return true;
}

static bool take(mix_scan *scan, bool (*part)(char), char *word, size_t size) {
  mix_scan_blanks(scan);
  size_t length = 0;
  while (scan->at + length < scan->end && part(scan->at[length])) length++;
  if (length == 0 || length >= size) return false;
  memcpy(word, scan->at, length);
  word[length] = 0;
  scan->at += length;
  return true;
}

bool mix_scan_name(mix_scan *scan, char *word, size_t size) { return take(scan, in_name, word, size); }

static int hexadecimal(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

bool mix_scan_word(mix_scan *scan, char *word, size_t size) {
  mix_scan_blanks(scan);
  if (scan->at == scan->end || *scan->at != '\'') return take(scan, in_word, word, size);
  const char *at = scan->at + 1;
  size_t length = 0;
  for (; at < scan->end && *at != '\'' && *at != '\n'; at++) {
    char c = *at;
    if (c == '\\') {
      if (++at == scan->end) return false;
      c = *at;
      if (c == 'x') {
        int high = at + 2 < scan->end ? hexadecimal(at[1]) : -1, low = high >= 0 ? hexadecimal(at[2]) : -1;
        if (low < 0 || high + low == 0) return false;
        c = (char)(high * 16 + low);
        at += 2;
      }
    }
    if (!c || length + 1 >= size) return false;
    word[length++] = c;
  }
  if (at == scan->end || *at != '\'') return false;
  word[length] = 0;
  scan->at = at + 1;
  return true;
}

bool mix_scan_integer(mix_scan *scan, int64_t *number) {
  mix_scan_blanks(scan);
  const char *at = scan->at;
  bool minus = at < scan->end && *at == '-';
  int64_t n = 0;
  at += minus;
  if (at == scan->end || *at < '0' || *at > '9') return false;
  for (; at < scan->end && *at >= '0' && *at <= '9'; at++)
    if (__builtin_mul_overflow(n, 10, &n) || __builtin_sub_overflow(n, *at - '0', &n))
      return false; /* subtraction, so that INT64_MIN can be read */
  if (at < scan->end && in_name(*at)) return false;
  if (!minus && n == INT64_MIN) return false;
  *number = minus ? n : -n;
  scan->at = at;
  return true;
}

bool mix_scan_number(mix_scan *scan, double *number) {
  char text[48];
  mix_scan next = *scan;
  if (!take(&next, in_word, text, sizeof text)) return false;
  if (!strcmp(text, "nan"))
    *number = NAN;
  else if (!strcmp(text, "inf") || !strcmp(text, "-inf"))
    *number = text[0] == '-' ? -INFINITY : INFINITY;
  else {
    char *end;
    if (text[strspn(text, "0123456789.+-e")]) return false; /* other forms that strtod accepts */
    *number = mix_number_read(text, &end);
    if (*end || end == text) return false;
  }
  *scan = next;
  return true;
}

bool mix_scan_bits(mix_scan *scan, uint64_t *bits) {
  mix_scan next = *scan;
  char text[24];
  if (!take(&next, in_name, text, sizeof text) || strncmp(text, "0x", 2) != 0 || !text[2] ||
      strlen(text) > 18)
    return false;
  uint64_t value = 0;
  for (const char *c = text + 2; *c; c++) {
    if (hexadecimal(*c) < 0) return false;
    value = value * 16 + (uint64_t)hexadecimal(*c);
  }
  *bits = value;
  *scan = next;
  return true;
}
