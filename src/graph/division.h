/* Which elements of a tensor each rank holds, where it is divided among the ranks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { MIX_BY_ROWS = -1 };

/* `rows` rows of `row_size` elements: all of rank `owner`, or, MIX_BY_ROWS, each rank's consecutive ones,
 * whose numbers differ by one at most. */
typedef struct mix_division {
  int owner;
  int64_t rows, row_size;
} mix_division;

/* The first row of a rank; for the number of ranks the number of rows. */
static inline int64_t mix_division_row(const mix_division *d, int ranks, int rank) {
  return d->owner == MIX_BY_ROWS ? d->rows * rank / ranks : rank > d->owner ? d->rows : 0;
}
static inline int64_t mix_division_rows(const mix_division *d, int ranks, int rank) {
  return mix_division_row(d, ranks, rank + 1) - mix_division_row(d, ranks, rank);
}
/* The same in elements. */
static inline int64_t mix_division_begin(const mix_division *d, int ranks, int rank) {
  return mix_division_row(d, ranks, rank) * d->row_size;
}
