/* Reference counts, and the scopes of each thread that own the results of constructors. */
#include "base/object.h"
#include "base/ended_object.h"
#include "base/error.h"
#include "base/loaded.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

struct mix_scope {
  mix_scope *outer; /* the enclosing scope; for a recycled scope, the next one in the list */
  mix_object **objects;
  int count, capacity;
  mix_scope_places places;
};

/* A recycled scope keeps its array up to this many entries, so that a loop of MIX_SCOPEs does not
 * allocate. */
enum { RECYCLED_CAPACITY = 4096, SHUTDOWN_HOOKS = 32 };

/* Free lists of small objects, one for each size class of 64 bytes, with a maximum length. */
enum { SIZE_CLASS_STEP = 64, SIZE_CLASSES = 16, FREE_LIST_MAX = 256, SHARED_MAX = 512, NO_FREE_LIST = -1 };
#if defined(__SANITIZE_ADDRESS__)
/* so that the sanitizer detects every use after release */
static const bool reuses_memory = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
static const bool reuses_memory = false;
#else
static const bool reuses_memory = true;
#endif
#else
static const bool reuses_memory = true;
#endif

static _Thread_local struct {
  mix_scope root;
  mix_scope *innermost; /* NULL: only the root is open */
  mix_scope *recycled;
  mix_object *dead; /* objects without references, not yet finalized */
  struct {
    mix_object *first; /* linked through next_dead */
    int count;
  } free_lists[SIZE_CLASSES];
  const mix_scope_places *ending; /* of the scope whose objects are being released; NULL: none */
  bool releasing;
  bool registered; /* exit_key is set, so at_thread_exit will run */
} thread;

static void register_thread(void);

/* Objects that one thread makes and another releases, as batches are: what is left over in the list of the
 * one goes to the other. A thread that would have to wait does without, also in a child by fork. */
static struct {
  mix_object *first;
  atomic_int count;
} shared[SIZE_CLASSES];
static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- memory ---- */

static void move(mix_object **from, mix_object **to) {
  mix_object *object = *from;
  *from = object->next_dead;
  object->next_dead = *to;
  *to = object;
}

static void take_shared(int size_class) {
  if (pthread_mutex_trylock(&shared_lock)) return;
  for (int i = 0; i < FREE_LIST_MAX / 4 && shared[size_class].first; i++) {
    move(&shared[size_class].first, &thread.free_lists[size_class].first);
    atomic_fetch_sub(&shared[size_class].count, 1);
    thread.free_lists[size_class].count++;
  }
  pthread_mutex_unlock(&shared_lock);
}

/* Gives so many of this thread's away; frees what is too much. */
static void share(int size_class, int count) {
  const bool locked = count && !pthread_mutex_trylock(&shared_lock);
  for (int i = 0; i < count; i++) {
    mix_object *object = thread.free_lists[size_class].first;
    thread.free_lists[size_class].count--;
    if (locked && atomic_load(&shared[size_class].count) < SHARED_MAX) {
      move(&thread.free_lists[size_class].first, &shared[size_class].first);
      atomic_fetch_add(&shared[size_class].count, 1);
      continue;
    }
    thread.free_lists[size_class].first = object->next_dead;
    mix_free(object);
  }
  if (locked) pthread_mutex_unlock(&shared_lock);
}

static int size_class_of(size_t size) {
  return reuses_memory && size > 0 && size <= (size_t)SIZE_CLASSES * SIZE_CLASS_STEP
             ? (int)((size - 1) / SIZE_CLASS_STEP)
             : NO_FREE_LIST;
}

static void free_shared(void) {
  if (pthread_mutex_trylock(&shared_lock)) return;
  for (int i = 0; i < SIZE_CLASSES; i++)
    for (mix_object *object; (object = shared[i].first); atomic_fetch_sub(&shared[i].count, 1)) {
      shared[i].first = object->next_dead;
      mix_free(object);
    }
  pthread_mutex_unlock(&shared_lock);
}

/* A thread that has taken some gives them back when it ends, whether or not it has scopes. */
static mix_object *take_first(int size_class) {
  if (!thread.free_lists[size_class].first && atomic_load(&shared[size_class].count)) {
    if (!thread.registered) register_thread();
    take_shared(size_class);
  }
  return thread.free_lists[size_class].first;
}

static mix_object *memory_new(size_t size) {
  if (mix_keeps_handles()) return mix_handle_new(size);
  int size_class = size_class_of(size);
  mix_object *object = size_class >= 0 && !mix_allocation_failure_injected() ? take_first(size_class) : NULL;
  if (object) {
    thread.free_lists[size_class].first = object->next_dead;
    thread.free_lists[size_class].count--;
    memset(object, 0, size);
  } else {
    object = mix_calloc(1, size_class >= 0 ? (size_t)(size_class + 1) * SIZE_CLASS_STEP : size);
  }
  if (object) object->size_class = size_class;
  return object;
}

static void memory_release(mix_object *object) {
  int size_class = object->size_class;
  if (size_class < 0) {
    mix_free(object);
    return;
  }
  if (!thread.registered) register_thread();
  if (thread.free_lists[size_class].count == FREE_LIST_MAX) share(size_class, FREE_LIST_MAX / 2);
  object->next_dead = thread.free_lists[size_class].first;
  thread.free_lists[size_class].first = object;
  thread.free_lists[size_class].count++;
}

static void clear_free_lists(void) {
  for (int i = 0; i < SIZE_CLASSES; i++) share(i, thread.free_lists[i].count);
}

/* ---- references ---- */

void *mix_object_new(size_t size, const mix_class *class) {
  mix_object *object = memory_new(size);
  if (!object) return NULL;
  object->class = class;
  atomic_init(&object->references, 1);
  return object;
}

/* Of an object that has no references any more; NULL if it is a handle that was kept. */
static void *refuse_if_ended(void *object, const char *call) {
  if (((mix_object *)object)->class != &mix_ended_class) return object;
  mix_refuse_ended(object, call);
  return NULL;
}

void *mix_retain(void *object) {
  if (!object) return NULL;
  mix_object *retained = object;
  if (atomic_fetch_add_explicit(&retained->references, 1, memory_order_relaxed) > 0) return object;
  return refuse_if_ended(object, "retain");
}

/* A finalizer that releases other objects only appends to this list. Stack use is therefore constant for a
 * chain of any length. */
static void release_dead(void) {
  thread.releasing = true;
  for (mix_object *object; (object = thread.dead);) {
    thread.dead = object->next_dead;
    const mix_class *class = object->class;
    if (class->recycle && class->recycle(object)) continue; /* another thread may already own it */
    if (object->size_class < NO_FREE_LIST) {
      mix_handle_end(object, thread.ending);
      continue;
    }
    if (class->finalize) class->finalize(object);
    memory_release(object);
  }
  thread.releasing = false;
}

void mix_release(void *pointer) {
  mix_object *object = pointer;
  if (!object) return;
  const int references = atomic_fetch_sub_explicit(&object->references, 1, memory_order_acq_rel);
  if (references != 1) {
    if (references <= 0) refuse_if_ended(object, "release");
    return;
  }
  object->next_dead = thread.dead;
  thread.dead = object;
  if (!thread.releasing) release_dead();
}

bool mix_given(const void *object, const mix_class *class, const char *call, const char *expected) {
  if (!object)
    mix_fail_type("%s: got NULL; expected %s", call, expected);
  else if (class && ((const mix_object *)object)->class == &mix_ended_class)
    mix_refuse_ended(object, call);
  else if (class && !mix_is(object, class))
    mix_fail_type("%s: got an object of class %s; expected %s", call,
                  ((const mix_object *)object)->class->name, expected);
  return !mix_failed();
}

bool mix_retain_alive(void *object) {
  atomic_int *references = &((mix_object *)object)->references;
  int count = atomic_load(references);
  while (count > 0 && !atomic_compare_exchange_weak(references, &count, count + 1)) continue;
  return count > 0;
}

int mix_references(const void *object) {
  return object ? atomic_load(&((mix_object *)object)->references) : 0;
}

/* ---- scopes ---- */

/* Newest first, because a later object may refer to an earlier one. */
static void scope_empty(mix_scope *scope) {
  while (scope->count > 0) mix_release(scope->objects[--scope->count]);
}

static void scope_free_array(mix_scope *scope) {
  mix_free(scope->objects);
  scope->objects = NULL;
  scope->capacity = 0;
}

static void recycle_scope(mix_scope *scope) {
  if (scope->capacity > RECYCLED_CAPACITY) scope_free_array(scope);
  scope->outer = thread.recycled;
  thread.recycled = scope;
}

/* The scope is popped before its objects are released. Objects that a finalizer creates then go to a scope
 * that stays. */
static void end_innermost(void) {
  mix_scope *scope = thread.innermost;
  const mix_scope_places *outer = thread.ending;
  thread.innermost = scope->outer;
  thread.ending = &scope->places;
  scope_empty(scope);
  thread.ending = outer;
  recycle_scope(scope);
}

static void release_root(void) {
  thread.ending = &thread.root.places;
  while (thread.root.count > 0) scope_empty(&thread.root);
  thread.ending = NULL;
  scope_free_array(&thread.root);
  for (mix_scope *scope; (scope = thread.recycled);) {
    thread.recycled = scope->outer;
    mix_free(scope->objects);
    mix_free(scope);
  }
  clear_free_lists();
}

static pthread_key_t exit_key;
static bool exit_key_made;

static void at_thread_exit(void *unused) {
  /* if a finalizer creates objects, the thread registers again and this runs again */
  thread.registered = false;
  while (thread.innermost) end_innermost();
  release_root();
}

static void make_exit_key(void) {
  /* Threads may end after dlclose, and those of plans and pipelines, which objects begin, go on. */
  mix_keep_library_loaded();
  exit_key_made = pthread_key_create(&exit_key, at_thread_exit) == 0;
}

static void register_thread(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_exit_key);
  thread.registered = true;
  if (exit_key_made) pthread_setspecific(exit_key, &thread);
}

static bool scope_add(mix_scope *scope, mix_object *object) {
  if (!thread.registered) register_thread();
  if (scope->count == scope->capacity &&
      !mix_reserve(&scope->objects, &scope->capacity, scope->count + 1, sizeof *scope->objects))
    return false;
  scope->objects[scope->count++] = object;
  return true;
}

void *mix_scoped(void *object) {
  if (!object || scope_add(thread.innermost ? thread.innermost : &thread.root, object)) return object;
  mix_release(object);
  return NULL;
}

mix_scope *mix_scope_begin_at(const char *file, int line) {
  if (!thread.registered) register_thread();
  mix_scope *scope = thread.recycled;
  if (scope) {
    thread.recycled = scope->outer;
  } else if (!(scope = mix_calloc(1, sizeof *scope))) {
    return NULL;
  }
  scope->outer = thread.innermost;
  scope->places = (mix_scope_places){.begin_file = mix_scope_file(file), .begin_line = line};
  thread.innermost = scope;
  return scope;
}

/* The names without a place, for programs compiled before there were places. */
mix_scope *(mix_scope_begin)(void) { return mix_scope_begin_at(NULL, -1); }
void(mix_scope_end)(mix_scope *scope) { mix_scope_end_at(scope, NULL, 0); }

void mix_scope_end_at(mix_scope *scope, const char *file, int line) {
  if (!scope) return;
  mix_scope *open = thread.innermost;
  while (open && open != scope) open = open->outer;
  if (!open) {
    mix_fail_runtime(
        "scope_end: the scope is not open on this thread; end a scope once, on the thread that began it, "
        "and not after a scope around it");
    return;
  }
  mix_scope *outer = scope->outer;
  file = mix_scope_file(file);
  while (thread.innermost != outer) {
    thread.innermost->places.end_file = file;
    thread.innermost->places.end_line = line;
    end_innermost();
  }
}

void mix_scope_end_block(mix_scope **scope) {
  if (!scope) return;
  mix_scope *ended = *scope;
  *scope = NULL;
  mix_scope_end_at(ended, NULL, 0);
}

void mix_scope_broken(mix_scope **scope, const char *file, int line) {
  if (!scope || !*scope) return;
  mix_scope_end_block(scope);
  mix_fail_runtime(
      "MIX_SCOPE: the block at %s:%d was left by break, which ends this block and not the loop around it; "
      "begin a block with MIX_SCOPE_HERE; to leave a loop from it",
      file ? file : "unknown", line);
}

void *mix_scope_leave(void *object) {
  if (!object || !refuse_if_ended(object, "scope_leave")) return NULL;
  for (mix_scope *scope = thread.innermost; scope; scope = scope->outer) {
    for (int i = scope->count - 1; i >= 0; i--) {
      if (scope->objects[i] != object) continue;
      if (!scope_add(scope->outer ? scope->outer : &thread.root, object)) return NULL;
      memmove(scope->objects + i, scope->objects + i + 1,
              (size_t)(scope->count - i - 1) * sizeof *scope->objects);
      scope->count--;
      return object;
    }
  }
  return object;
}

/* ---- shutdown ---- */

static pthread_mutex_t hook_mutex = PTHREAD_MUTEX_INITIALIZER;
static void (*hooks[SHUTDOWN_HOOKS])(void);
static int hook_count;

bool mix_on_shutdown(void (*hook)(void)) {
  pthread_mutex_lock(&hook_mutex);
  int i = 0;
  while (i < hook_count && hooks[i] != hook) i++;
  bool known = i < hook_count, fits = known || hook_count < SHUTDOWN_HOOKS;
  if (!known && fits) hooks[hook_count++] = hook;
  pthread_mutex_unlock(&hook_mutex);
  if (!fits) mix_fail_internal("mix_on_shutdown: more than %d hooks", SHUTDOWN_HOOKS);
  return fits;
}

void mix_shutdown(void) {
  release_root();
  free_shared();
  pthread_mutex_lock(&hook_mutex);
  void (*taken[SHUTDOWN_HOOKS])(void);
  int count = hook_count;
  memcpy(taken, hooks, sizeof taken);
  hook_count = 0; /* a cache that is filled again registers again */
  pthread_mutex_unlock(&hook_mutex);
  while (count > 0) taken[--count]();
}
