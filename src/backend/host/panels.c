#include "backend/host/panels.h"

#include "base/alloc.h"
#include "base/error.h"
#include <pthread.h>
#include <string.h>

enum { UNMADE, BEING_MADE, MADE };

struct mix_panels {
  mix_panels *next;
  mix_panels_key key;
  int owners;             /* steps of executables */
  const void *maker;      /* the run that makes them now */
  atomic_int state;       /* changes only while nobody holds them */
  atomic_int holders;     /* steps in runs that read or make them */
  _Atomic uint64_t stamp; /* of the variable that they were made of */
  void *memory;
  size_t bytes;
  bool counted;
};

/* A function has a plan for each shape of its arguments, and each plan what it keeps. */
static const size_t MAX_BYTES = (size_t)256 << 20;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mix_panels *first;
static size_t counted_bytes;

static bool is_same(const mix_panels_key *a, const mix_panels_key *b) {
  return a->variable == b->variable && a->offset == b->offset && a->kernel == b->kernel &&
         a->flush_subnormals == b->flush_subnormals && !memcmp(a->layout, b->layout, sizeof a->layout);
}

/* NULL without an error: panels only save time. */
static mix_panels *allocate(const mix_panels_key *key, size_t bytes) {
  mix_panels *panels = mix_calloc(1, sizeof *panels);
  if (panels) panels->memory = mix_alloc_buffer(bytes);
  if (panels && panels->memory) {
    panels->key = *key, panels->bytes = bytes, panels->owners = 1;
    return panels;
  }
  mix_free(panels);
  mix_error_clear();
  return NULL;
}

/* With the lock. */
static mix_panels *find(const mix_panels_key *key, size_t bytes) {
  for (mix_panels *p = key->variable ? first : NULL; p; p = p->next)
    if (p->bytes == bytes && is_same(&p->key, key)) return p;
  return NULL;
}

mix_panels *mix_panels_share(const mix_panels_key *key, size_t bytes, bool counted) {
  pthread_mutex_lock(&lock);
  mix_panels *panels = find(key, bytes);
  if (panels) {
    panels->owners++;
  } else if (!counted || (bytes <= MAX_BYTES && counted_bytes <= MAX_BYTES - bytes)) {
    if ((panels = allocate(key, bytes))) {
      panels->counted = counted;
      if (counted) counted_bytes += bytes;
      panels->next = first, first = panels;
    }
  }
  pthread_mutex_unlock(&lock);
  return panels;
}

void mix_panels_release(mix_panels *panels) {
  pthread_mutex_lock(&lock);
  const bool last = !--panels->owners;
  mix_panels **at = &first;
  while (last && *at != panels) at = &(*at)->next;
  if (last) *at = panels->next;
  if (last && panels->counted) counted_bytes -= panels->bytes;
  pthread_mutex_unlock(&lock);
  if (!last) return;
  mix_free_buffer(panels->memory, panels->bytes);
  mix_free(panels);
}

void *mix_panels_memory(const mix_panels *panels) { return panels->memory; }

static bool is_made_of(mix_panels *panels, uint64_t stamp) {
  return atomic_load(&panels->state) == MADE &&
         atomic_load_explicit(&panels->stamp, memory_order_relaxed) == stamp;
}

/* Who makes them anew changes the state before it looks for holders: one of both sees the other. */
bool mix_panels_hold(mix_panels *panels, uint64_t stamp) {
  if (!is_made_of(panels, stamp)) return false;
  atomic_fetch_add(&panels->holders, 1);
  if (is_made_of(panels, stamp)) return true;
  atomic_fetch_sub(&panels->holders, 1);
  return false;
}

/* With the lock. */
static mix_panels_claim claim(mix_panels *panels, uint64_t stamp, const void *run) {
  const int state = atomic_load(&panels->state);
  if (is_made_of(panels, stamp)) return MIX_PANELS_HELD;
  if (state == BEING_MADE) return panels->maker == run ? MIX_PANELS_HELD : MIX_PANELS_BUSY;
  atomic_store(&panels->state, BEING_MADE);
  if (atomic_load(&panels->holders)) {
    atomic_store(&panels->state, state);
    return MIX_PANELS_BUSY;
  }
  panels->maker = run;
  return MIX_PANELS_CLAIMED;
}

mix_panels_claim mix_panels_claim_for(mix_panels *panels, uint64_t stamp, const void *run) {
  pthread_mutex_lock(&lock);
  const mix_panels_claim result = claim(panels, stamp, run);
  if (result != MIX_PANELS_BUSY) atomic_fetch_add(&panels->holders, 1);
  pthread_mutex_unlock(&lock);
  return result;
}

void mix_panels_finish(mix_panels *panels, uint64_t stamp, bool good) {
  atomic_store_explicit(&panels->stamp, stamp, memory_order_relaxed);
  atomic_store(&panels->state, good ? MADE : UNMADE);
}

void mix_panels_let_go(mix_panels *panels) { atomic_fetch_sub(&panels->holders, 1); }
