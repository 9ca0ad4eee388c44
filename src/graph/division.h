/* Which elements of a tensor each rank holds, where it is divided among the ranks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { MIX_BY_ROWS = -1 };

/* `rows` rows of `row_size` elements: all of rank `owner`, or, MIX_BY_ROWS, each rank's consecutive ones, of
 * about the same number. */
typedef struct mix_division {
  int owner;
  int64_t rows, row_size;
} mix_division;

/* Shares by rows begin at whole packets of eight elements, behind which kernels may round in another way
 * (docs/NUMERICS.md): so many rows belong together. */
static inline int64_t mix_division_unit(const mix_division *d) {
  int64_t unit = 8;
  for (int64_t size = d->row_size; unit > 1 && size % 2 == 0; size /= 2) unit /= 2;
  return unit;
}
/* The first row of a rank; for the number of ranks the number of rows. */
static inline int64_t mix_division_row(const mix_division *d, int ranks, int rank) {
  if (d->owner != MIX_BY_ROWS) return rank > d->owner ? d->rows : 0;
  const int64_t unit = mix_division_unit(d);
  return rank == ranks ? d->rows : d->rows / unit * rank / ranks * unit;
}
/* Has each rank a row, if it is divided by rows? */
static inline bool mix_division_reaches(const mix_division *d, int ranks) {
  return d->row_size > 0 && d->rows / mix_division_unit(d) >= ranks;
}
static inline int64_t mix_division_rows(const mix_division *d, int ranks, int rank) {
  return mix_division_row(d, ranks, rank + 1) - mix_division_row(d, ranks, rank);
}
/* The same in elements. */
static inline int64_t mix_division_begin(const mix_division *d, int ranks, int rank) {
  return mix_division_row(d, ranks, rank) * d->row_size;
}
