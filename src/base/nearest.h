/* "Did you mean": among known words the one nearest to a word that is not known. */
#ifndef MIX_BASE_NEAREST_H
#define MIX_BASE_NEAREST_H

#include <stddef.h>

typedef struct mix_nearest {
  const char *word;  /* as given */
  const char *found; /* the nearest so far; NULL: none is near */
  int distance;
} mix_nearest;

/* Takes `candidate`, which must live as long, where it is near enough and nearer than what was found: letters that were left out, added,
 * changed or swapped, of three at most one. Case does not count, nor the difference of - and _. */
void mix_nearest_try(mix_nearest *nearest, const char *candidate);
/* "; did you mean 'accuracy'?", or "" where nothing is near. */
const char *mix_nearest_hint(const mix_nearest *nearest, char *text, size_t size);

#endif
