/* Formatting of messages into fixed buffers, without allocation. */
#ifndef MIX_BASE_FORMAT_H
#define MIX_BASE_FORMAT_H

#include <stdarg.h>
#include <stddef.h>

/* If `length`, the length of the full text, does not fit into `size` bytes, replaces the end of `text` by
 * "...". Never cuts inside a UTF-8 character. */
void mix_mark_cut(char *text, size_t size, size_t length);
/* Formats into `text` and truncates what does not fit. */
void mix_format_into(char *text, size_t size, const char *format, va_list arguments);

/* The number of characters of a UTF-8 text, and the bytes of the first `count` of them (of all, if there are
 * fewer). Bytes that begin no character belong to the one before. */
size_t mix_letters(const char *text);
size_t mix_letters_bytes(const char *text, size_t count);

#endif
