/* A stretch of calls whose values are not kept for the backward pass but computed again there
 * (mixtape/remat.h). Nodes made in between belong to it. */
#pragma once

#include "base/object.h"

typedef struct mix_segment {
  mix_object object;
  struct mix_segment *outer; /* that was open when it began; retained, or NULL */
  bool kept;                 /* its values are kept after all: it counts as part of `outer` */
} mix_segment;

/* Opens a segment on this thread. One reference for the caller; NULL with the error recorded. */
mix_segment *mix_segment_begin(void);
/* Closes it and releases the caller's reference. `keep`: as if it had never been opened. NULL: nothing. */
void mix_segment_end(mix_segment *segment, bool keep);
/* The innermost open segment of this thread, borrowed, or NULL. */
mix_segment *mix_segment_current(void);
/* The innermost segment, itself or around it, that is not kept and lies inside `within` (NULL: anywhere);
 * NULL: none. */
mix_segment *mix_segment_inside(mix_segment *segment, const mix_segment *within);
