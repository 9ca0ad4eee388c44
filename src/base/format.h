/* Messages of limited length, formatted without an allocation. */
#ifndef MIX_BASE_FORMAT_H
#define MIX_BASE_FORMAT_H

#include <stdarg.h>
#include <stddef.h>

/* Marks with dots that `text` of `size` bytes was cut; `length` is what the whole text would have needed. Never cuts
 * inside a UTF-8 character. */
void mix_mark_cut(char *text, size_t size, size_t length);
/* Formats, cutting what does not fit. */
void mix_format_into(char *text, size_t size, const char *format, va_list arguments);

#endif
