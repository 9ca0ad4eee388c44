/* Suggestions for a misspelled word: the closest of the known words. */
#pragma once

#include <stddef.h>

typedef struct mix_did_you_mean {
  const char *word;  /* as given */
  const char *found; /* the closest candidate so far; NULL: none is close */
  int distance;
} mix_did_you_mean;

/* Keeps `candidate` if it is close enough and closer than the one found before. Close enough: at most one
 * letter in three is missing, added, changed or swapped. Case and the difference between - and _ are
 * ignored. The candidate must outlive `nearest`. */
void mix_did_you_mean_try(mix_did_you_mean *nearest, const char *candidate);
/* "; did you mean 'accuracy'?", or "" if no candidate is close. */
const char *mix_did_you_mean_hint(const mix_did_you_mean *nearest, char *text, size_t size);
/* The hint for one of the words that stand in `choices` with | between. */
const char *mix_did_you_mean_choice(const char *word, const char *choices, char *text, size_t size);
