/* Handles of released objects: the oldest are freed when they are many or large. */
#include "base/ended_object.h"
#include "base/error.h"
#include "base/text.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const mix_class mix_ended_class = {.name = "object that was released"};

/* What a handle holds in place of the object. */
typedef struct ended_object {
  mix_object object; /* next_dead: the handle that was kept after it */
  size_t size;
  const mix_class *was;
  mix_scope_places places;
  bool in_scope;
  char name[64]; /* empty: none */
} ended_object;

/* About the handles of a thousand training steps. */
enum { KEPT_HANDLES = 1 << 16, KEPT_BYTES = 16 << 20, MIX_HANDLE_BYTES_MAX = 1 << 16 };

static struct {
  pthread_mutex_t mutex;
  mix_object *oldest, *newest;
  int count;
  size_t bytes;
} kept = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* ---- when ---- */

#ifdef MIXTAPE_DEBUG_BUILD
enum { KEEPS_BY_DEFAULT = 1 };
#else
enum { KEEPS_BY_DEFAULT = 0 };
#endif

atomic_int mix_handles_kept = -1;

bool mix_decide_handles(void) {
  const bool kept_here = KEEPS_BY_DEFAULT || mix_has_word(getenv("MIXTAPE_DEBUG"), "scopes");
  atomic_store_explicit(&mix_handles_kept, kept_here, memory_order_relaxed);
  return kept_here;
}

/* ---- keeping ---- */

mix_object *mix_handle_new(size_t size) {
  const bool large = size > MIX_HANDLE_BYTES_MAX;
  if (size < sizeof(ended_object)) size = sizeof(ended_object);
  mix_object *object = mix_calloc(1, size);
  if (object) object->size_class = large ? -1 : -(int)size;
  return object;
}

static size_t size_of(const mix_object *handle) { return ((const ended_object *)handle)->size; }

/* Appends the handle and returns those that are too many, linked. */
static mix_object *keep(ended_object *handle) {
  mix_object *excess = NULL;
  pthread_mutex_lock(&kept.mutex);
  if (kept.newest)
    kept.newest->next_dead = &handle->object;
  else
    kept.oldest = &handle->object;
  kept.newest = &handle->object;
  kept.count++;
  kept.bytes += handle->size;
  while (kept.count > 1 && (kept.count > KEPT_HANDLES || kept.bytes > KEPT_BYTES)) {
    mix_object *oldest = kept.oldest;
    kept.oldest = oldest->next_dead;
    kept.count--;
    kept.bytes -= size_of(oldest);
    oldest->next_dead = excess;
    excess = oldest;
  }
  pthread_mutex_unlock(&kept.mutex);
  return excess;
}

void mix_handle_end(mix_object *object, const mix_scope_places *places) {
  const mix_class *class = object->class;
  ended_object ended = {.object.class = &mix_ended_class, .was = class, .in_scope = places != NULL};
  const char *name = class->name_of ? class->name_of(object) : NULL;
  if (name) snprintf(ended.name, sizeof ended.name, "%s", name);
  if (places) ended.places = *places;
  ended.size = (size_t) - (int64_t)object->size_class;
  if (class->finalize) class->finalize(object);
  memcpy((void *)object, &ended, sizeof ended);
  /* so low that no number of calls makes it look alive */
  atomic_store(&object->references, INT_MIN / 2);
  for (mix_object *excess = keep((ended_object *)object), *next; excess; excess = next) {
    next = excess->next_dead;
    mix_free(excess);
  }
}

size_t mix_kept_handle_bytes(void) {
  pthread_mutex_lock(&kept.mutex);
  const size_t bytes = kept.bytes;
  pthread_mutex_unlock(&kept.mutex);
  return bytes;
}

/* ---- refusing ---- */

static void put_place(char *text, size_t size, const char *file, int line, const char *unknown) {
  if (file)
    snprintf(text, size, "at %s:%d", file, line);
  else
    snprintf(text, size, "%s", unknown);
}

void mix_refuse_ended(const void *object, const char *call) {
  const ended_object *ended = object;
  const char *quote = ended->name[0] ? " '" : "", *unquote = ended->name[0] ? "'" : "";
  char begin[256], end[256];
  if (!call) call = "use of an object";
  if (!ended->in_scope) {
    mix_fail_runtime(
        "%s: got a released object: the %s%s%s%s was given up by its last mix_release, outside the end of a "
        "scope; release an object once, after its last use",
        call, ended->was->name, quote, ended->name, unquote);
    return;
  }
  const bool root = !ended->places.begin_file && !ended->places.begin_line;
  put_place(begin, sizeof begin, ended->places.begin_file, ended->places.begin_line,
            root ? "with its thread" : "at a place that is not known");
  put_place(end, sizeof end, ended->places.end_file, ended->places.end_line,
            root ? "in mix_shutdown or with it" : "with its block");
  mix_fail_runtime(
      "%s: got an object of an ended scope: the %s%s%s%s went when the scope that began %s ended %s; keep it "
      "with mix_retain, or move it out with mix_scope_leave",
      call, ended->was->name, quote, ended->name, unquote, begin, end);
}
