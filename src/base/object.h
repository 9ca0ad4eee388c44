/* Reference-counted objects and the scopes that own what constructors return. */
#ifndef MIX_BASE_OBJECT_H
#define MIX_BASE_OBJECT_H

#include <mixtape/object.h>
#include <stdatomic.h>

typedef struct mix_class {
  const char *name;                /* "tensor": used in messages and type checks */
  void (*finalize)(void *object);  /* releases what the object holds, not the object itself; may be NULL */
  /* Asked first when the references are gone; may be NULL. True: the object was handed back to its owner, finalize does not run and the
   * memory stays, with references 0; the owner reuses it by setting references to 1. */
  bool (*recycle)(void *object);
} mix_class;

/* The first member of every object. */
typedef struct mix_object {
  const mix_class *class;
  atomic_int references;
  int shelf;                    /* of the thread's memory for reuse that takes it back; -1: none */
  struct mix_object *next_dead; /* releases are iterative: a chain of a million nodes uses no stack */
} mix_object;

/* A zeroed object with one reference that the caller owns; NULL with MIX_MEMORY_ERROR recorded. The memory of small objects is kept by
 * the thread that released them, for its next ones: a loop that makes and releases the same objects allocates nothing (while an allocation
 * failure is injected, and under the address sanitizer, every object is an allocation of its own). */
void *mix_object_new(size_t size, const mix_class *class);
/* Hands the caller's reference to the innermost scope; returns the object. NULL gives NULL. The last line of every constructor. */
void *mix_scoped(void *object);
/* Is it an object of that class? NULL is not. */
bool mix_is(const void *object, const mix_class *class);
/* The number of references, for tests and for copy on write. */
int mix_references(const void *object);

/* Has mix_shutdown call `hook` once, after the root scope is released, last registered first; a hook that is registered already is not
 * registered twice. For the rooms' caches: register when filling one. */
bool mix_on_shutdown(void (*hook)(void));

extern const mix_class mix_list_class;
/* Takes the storage of a list: borrowed items. */
void *const *mix_list_items(const mix_list *list);

#endif
