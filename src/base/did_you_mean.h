/* "Did you mean": among known words the one nearest to a word that is not known. */
#ifndef MIX_BASE_DID_YOU_MEAN_H
#define MIX_BASE_DID_YOU_MEAN_H

#include <stddef.h>

typedef struct mix_did_you_mean {
  const char *word;  /* as given */
  const char *found; /* the nearest so far; NULL: none is near */
  int distance;
} mix_did_you_mean;

/* Takes `candidate`, which must live as long, where it is near enough and nearer than what was found: letters that were left out, added,
 * changed or swapped, of three at most one. Case does not count, nor the difference of - and _. */
void mix_did_you_mean_try(mix_did_you_mean *nearest, const char *candidate);
/* "; did you mean 'accuracy'?", or "" where nothing is near. */
const char *mix_did_you_mean_hint(const mix_did_you_mean *nearest, char *text, size_t size);

#endif
