/* Formatting of messages into fixed buffers, without allocation. */
#pragma once

#include <stdarg.h>
#include <stddef.h>

/* If `length`, the length of the full text, does not fit into `size` bytes, replaces the end of `text` by
 * "...". Never cuts inside a UTF-8 character. */
void mix_mark_cut(char *text, size_t size, size_t length);
/* Formats into `text` and truncates what does not fit. Control characters are escaped, unless the format has
 * some itself: it then arranges lines, and its caller escapes what it puts into them. */
void mix_format_into(char *text, size_t size, const char *format, va_list arguments);

/* The number of characters of a UTF-8 text, and the bytes of the first `count` of them (of all, if there are
 * fewer). Bytes that begin no character belong to the one before. */
size_t mix_letters(const char *text);
size_t mix_letters_bytes(const char *text, size_t count);

/* A text of a file, such as a name, to be shown: control characters (C0, DEL, C1) and bytes that are no UTF-8
 * as \n, \t, \x1b. The text itself if it has none, else `buffer`, which ends in "..." if it is too small. */
const char *mix_printable(const char *text, char *buffer, size_t size);
/* The same with a buffer that lives as long as the block around it. */
#define MIX_PRINTABLE(text) mix_printable(text, (char[1024]){0}, 1024)
/* The bytes that printf's %-*s must count to fill `letters` columns with the text. */
int mix_column_bytes(const char *text, int letters);
