/* A string builder: in a fixed buffer, with truncation, or in memory that grows. */
#pragma once

#include <mixtape/api.h>

typedef struct mix_text {
  char *text; /* size bytes, zero-terminated after the first write */
  size_t used, size;
  bool grows;  /* text starts as NULL and is enlarged as needed; the caller frees it (mix_free) */
  bool failed; /* grows, and memory ran out: the error is recorded and the text is incomplete */
} mix_text;

void mix_text_put(mix_text *text, const char *format, ...) MIX_PRINTF(2, 3);
/* The shortest decimal that reads back as the double x; "nan", "inf", "-inf". */
void mix_text_put_number(mix_text *text, double x);
/* The word itself if it has only letters, digits and _./:+-, else in single quotes with \' \\ and \xHH as
 * escapes. */
void mix_text_put_word(mix_text *text, const char *word);
/* The word, always in single quotes. */
void mix_text_put_quoted(mix_text *text, const char *word);

/* The text in XML or HTML, with & < > and " as entities. */
void mix_text_put_escaped(mix_text *text, const char *word);
/* The text between double quotes in graphviz's language. */
void mix_text_put_dot(mix_text *text, const char *word);

/* Is the word one of a list with commas between, such as a variable of the environment? False for NULL. */
bool mix_has_word(const char *list, const char *word);
/* Is the word one of those that stand in `choices` with | between? */
bool mix_is_choice(const char *choices, const char *word);
