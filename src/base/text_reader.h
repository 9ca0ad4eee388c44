/* A scanner for the library's own text formats. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `at` advances to `end`; nothing at or after `end` is read. */
typedef struct mix_scan {
  const char *at, *end;
} mix_scan;

/* Skips blanks and tabs, but not the end of a line. */
void mix_scan_blanks(mix_scan *scan);
/* Each of these skips blanks first, and advances further only if it returns true. mix_scan_done: at the
 * end? */
bool mix_scan_done(mix_scan *scan);
/* The given text follows. If it ends in a letter or digit, it must be a whole word. */
bool mix_scan_text(mix_scan *scan, const char *text);
/* Reads letters, digits and underscores into `word` (size bytes). */
bool mix_scan_name(mix_scan *scan, char *word, size_t size);
/* Reads what mix_text_put_word or mix_text_put_quoted wrote into `word`. */
bool mix_scan_word(mix_scan *scan, char *word, size_t size);
bool mix_scan_integer(mix_scan *scan, int64_t *number);
/* A decimal number, or nan, inf, -inf. */
bool mix_scan_number(mix_scan *scan, double *number);
/* "0x" and up to 16 hexadecimal digits. */
bool mix_scan_bits(mix_scan *scan, uint64_t *bits);
