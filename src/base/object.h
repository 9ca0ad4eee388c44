/* Reference-counted objects, and the scopes that own the results of constructors. */
#pragma once

#include <mixtape/object.h>
#include <stdatomic.h>

typedef struct mix_class {
  const char *name;               /* "tensor": used in messages and type checks */
  void (*finalize)(void *object); /* releases what the object refers to, not the object itself; may be NULL */
  /* Called first when the reference count reaches 0; may be NULL. True: the object went back to its owner,
   * so finalize does not run and the memory stays. The owner reuses it by setting references to 1. */
  bool (*recycle)(void *object);
  /* The name that messages give the object, beside that of its class; may be NULL, and so may the result. */
  const char *(*name_of)(const void *object);
} mix_class;

/* The first member of every object. */
typedef struct mix_object {
  const mix_class *class;
  atomic_int references;
  int size_class; /* the size class of the free list that takes its memory; -1: none; less: ended_object.h */
  struct mix_object *next_dead; /* release is iterative: a chain of a million nodes needs no stack */
} mix_object;

/* A zeroed object with one reference, owned by the caller; NULL with MIX_MEMORY_ERROR recorded. Small
 * objects are recycled through free lists of the thread that released them, so a loop that creates and
 * releases the same objects does not allocate. Under the address sanitizer, and while an allocation
 * failure is injected, every object is a separate allocation. */
void *mix_object_new(size_t size, const mix_class *class);
/* Gives the caller's reference to the innermost scope and returns the object; NULL gives NULL. The last
 * statement of every constructor. */
void *mix_scoped(void *object);
/* The class of the handles of released objects that base/ended_object.h keeps. */
extern const mix_class mix_ended_class;
/* Records that the call, or a use where it is NULL, got such a handle: which object it was, and where its
 * scope began and ended. */
void mix_refuse_ended(const void *object, const char *call);
/* True if `object` is of that class; false for NULL, and with an error for the handle of a released object.
 */
static inline bool mix_is(const void *object, const mix_class *class) {
  if (!object) return false;
  const mix_class *own = ((const mix_object *)object)->class;
  if (own == &mix_ended_class) mix_refuse_ended(object, NULL);
  return own == class;
}
/* The first check of functions that work on an object. Returns false if an error is pending, or if `object`
 * is NULL or of another class, a TypeError: "call: got an object of class list; expected a layer". No class:
 * NULL alone is an error. Getters, which return NULL or 0 then, use mix_is. */
bool mix_given(const void *object, const mix_class *class, const char *call, const char *expected);
/* The reference count, for tests and for copy on write. */
int mix_references(const void *object);
/* Retains an object that a table borrows, unless its last reference is gone and it only waits to be
 * finalized, which false tells. The finalizer takes the table's lock, and the caller holds it. */
bool mix_retain_alive(void *object);

/* Registers a function that the next mix_shutdown calls once, after the root scope is released, in reverse
 * order of registration. A second registration of the same function has no effect. A cache registers its
 * clearing when it is filled. */
bool mix_on_shutdown(void (*hook)(void));

typedef struct mix_structure mix_structure; /* base/structure.h */

extern const mix_class mix_list_class;
/* The items of a list, borrowed; NULL for NULL. */
void *const *mix_list_items(const mix_list *list);
bool mix_list_is_dict(const mix_list *list);
/* An empty list for items that replace those of `list`: a dict if that is one. Then its item `index`, under
 * its name. */
mix_list *mix_list_like(const mix_list *list);
mix_status mix_list_append_like(mix_list *to, const mix_list *list, int index, void *item);
/* How the items were nested before they became one list; NULL: not at all. */
const mix_structure *mix_list_structure(const mix_list *list);
void mix_list_set_structure(mix_list *list, const mix_structure *structure);
