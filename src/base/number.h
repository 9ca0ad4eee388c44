/* Conversion between numbers and text, independent of the program's locale (some locales write 0,5). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Like strtod. */
double mix_number_read(const char *text, char **end);
/* True if all of the text is a whole number in decimal that int64_t holds. */
bool mix_integer_read(const char *text, int64_t *number);
/* Reads an amount of bytes: a number and a unit, "512MiB" or "1.5 GB" (none or B; KB, MB, GB, TB are powers
 * of 1000, KiB, MiB, GiB, TiB of 1024). False for other text, and for less than a byte or more than size_t.
 */
bool mix_bytes_read(const char *text, size_t *bytes);
/* Writes x as "%.*g" does; `form` 'e' or 'f' selects that conversion instead. */
void mix_number_write(char *text, size_t size, char form, int digits, double x);
/* The shortest decimal that reads back as the double x; "nan", "inf", "-inf". */
void mix_number_write_shortest(char *text, size_t size, double x);
