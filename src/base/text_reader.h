/* Reading text word by word: what the readers of the library's own texts share. */
#ifndef MIX_BASE_TEXT_READER_H
#define MIX_BASE_TEXT_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `at` moves up to `end`; nothing is read at or behind it. */
typedef struct mix_scan {
  const char *at, *end;
} mix_scan;

/* Skips blanks and tabs (not the end of a line). */
void mix_scan_blanks(mix_scan *scan);
/* All of these skip blanks first, and move only where they return true. */
bool mix_scan_done(mix_scan *scan);
/* The text stands here (for one that ends in a letter or digit: as a whole word). */
bool mix_scan_text(mix_scan *scan, const char *text);
/* Letters, digits, and underscores, into `word` (size bytes). */
bool mix_scan_name(mix_scan *scan, char *word, size_t size);
/* What mix_text_put_word wrote, or mix_text_put_quoted: into `word`. */
bool mix_scan_word(mix_scan *scan, char *word, size_t size);
bool mix_scan_integer(mix_scan *scan, int64_t *number);
/* Decimal, or nan, inf, -inf. */
bool mix_scan_number(mix_scan *scan, double *number);
/* "0x" and up to 16 hexadecimal digits. */
bool mix_scan_bits(mix_scan *scan, uint64_t *bits);

#endif
