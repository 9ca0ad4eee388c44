#include "graph/segment.h"

static _Thread_local mix_segment *current;

static void segment_finalize(void *object) { mix_release(((mix_segment *)object)->outer); }

static const mix_class segment_class = {.name = "segment", .finalize = segment_finalize};

mix_segment *mix_segment_current(void) { return current; }

mix_segment *mix_segment_begin(void) {
  mix_segment *segment = mix_object_new(sizeof *segment, &segment_class);
  if (!segment) return NULL;
  segment->outer = mix_retain(current);
  return current = segment;
}

void mix_segment_end(mix_segment *segment, bool keep) {
  if (!segment) return;
  segment->kept = keep;
  current = segment->outer;
  mix_release(segment);
}

mix_segment *mix_segment_inside(mix_segment *segment, const mix_segment *within) {
  mix_segment *found = NULL;
  for (; segment && segment != within; segment = segment->outer)
    if (!found && !segment->kept) found = segment;
  return found;
}
