/* Handles of released objects, kept for a while so that a use of one is an error and not damaged memory: in
 * debug builds, and where MIXTAPE_DEBUG contains "scopes". */
#pragma once

#include "base/alloc.h"
#include "base/object.h"

/* Where a scope began and ended; a file is NULL where nothing is known. */
typedef struct mix_scope_places {
  const char *begin_file, *end_file; /* interned where handles are kept */
  int begin_line, end_line;          /* both 0: the root scope of a thread */
} mix_scope_places;

extern atomic_int mix_handles_kept; /* negative: not decided */
bool mix_decide_handles(void);
/* True if handles are kept, which the first call decides for the process. */
static inline bool mix_keeps_handles(void) {
  const int known = atomic_load_explicit(&mix_handles_kept, memory_order_relaxed);
  return known < 0 ? mix_decide_handles() : known;
}
/* The zeroed memory of an object, large enough for the record of its end. size_class becomes minus the size
 * of the handle that will be kept, or stays 0 for one that is too large to keep. */
mix_object *mix_handle_new(size_t size);
/* Ends the object, which has no references: finalizes it, and keeps its handle. `places`: those of the scope
 * that is ending; NULL: none is. */
void mix_handle_end(mix_object *object, const mix_scope_places *places);
/* The bytes of the handles that are kept, for tests. */
size_t mix_kept_handle_bytes(void);
/* The file of a place: interned, or NULL where no handles are kept. */
static inline const char *mix_scope_file(const char *file) {
  return mix_keeps_handles() ? mix_intern(file) : NULL;
}
