/* Text that grows: in a block of given size, where what does not fit is cut, or in memory of its own. */
#ifndef MIX_BASE_TEXT_H
#define MIX_BASE_TEXT_H

#include <mixtape/api.h>
#include <stddef.h>

typedef struct mix_text {
  char *text; /* size bytes, ended by zero once anything was put */
  size_t used, size;
  bool grows;  /* text starts as NULL, is enlarged as needed, and is the caller's to free (mix_free) */
  bool failed; /* grows, and there was no memory: the error is recorded, the text lacks something */
} mix_text;

void mix_text_put(mix_text *text, const char *format, ...) MIX_PRINTF(2, 3);
/* The shortest decimal that reads back as the double x; "nan", "inf", "-inf". */
void mix_text_put_number(mix_text *text, double x);
/* The word as it is where it has only letters, digits and _./:+-, else in single quotes, with \' \\ and \xHH inside. */
void mix_text_put_word(mix_text *text, const char *word);
/* The word in single quotes, whatever it has. */
void mix_text_put_quoted(mix_text *text, const char *word);

#endif
