/* The search for a smallest set of items that is enough: what is asked, apart from how it is answered. */
#pragma once

#include <stdbool.h>

typedef enum mix_answer {
  MIX_ENOUGH,
  MIX_NOT_ENOUGH,
  MIX_NO_ANSWER, /* a limit or an error: stop */
} mix_answer;

typedef struct mix_search {
  int count; /* of items; sets are arrays of as many booleans */
  /* Is the set enough? Asked again, it answers from memory. suspects: NULL, or to be set where an item may be
   * the reason why it is not. */
  mix_answer (*ask)(void *context, const bool *set, bool *suspects);
  void *context;
} mix_search;

/* Looks for a set that is enough and from which no single item can be left out: of those that were enough,
 * the last. MIX_NOT_ENOUGH: all items together are not. MIX_NO_ANSWER: it was stopped. Out of memory is
 * MIX_NO_ANSWER with the error recorded. */
mix_answer mix_search_smallest(const mix_search *search);
