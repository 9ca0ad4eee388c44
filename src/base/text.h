/* Text that grows in a block of given size: what does not fit is cut. */
#ifndef MIX_BASE_TEXT_H
#define MIX_BASE_TEXT_H

#include <mixtape/api.h>

typedef struct mix_text {
  char *text; /* size bytes, ended by zero once anything was put */
  size_t used, size;
} mix_text;

void mix_text_put(mix_text *text, const char *format, ...) MIX_PRINTF(2, 3);

#endif
