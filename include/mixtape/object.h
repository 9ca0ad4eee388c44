/* Ownership: every object is reference counted. What a constructor returns belongs to the innermost open scope and goes when
 * that scope ends; mix_retain keeps it longer. Containers retain what they hold. NULL is accepted by every release. */
#ifndef MIXTAPE_OBJECT_H
#define MIXTAPE_OBJECT_H

#include <mixtape/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Adds a reference to any Mixtape object and returns it; NULL gives NULL. */
MIX_API void *mix_retain(void *object);
/* Gives back a reference that mix_retain added. */
MIX_API void mix_release(void *object);

/* With no scope open, objects belong to the thread's root scope, released at thread exit or by mix_shutdown. */
typedef struct mix_scope mix_scope;
/* Opens a scope on this thread, inside those that are open; NULL only without memory. */
MIX_API mix_scope *mix_scope_begin(void);
/* Ends the scope and those opened inside it, and releases what they own. */
MIX_API void mix_scope_end(mix_scope *scope);
/* Moves an object from its scope of this thread to the one around it, so that it outlives the inner one; returns it. */
MIX_API void *mix_scope_leave(void *object);
/* Releases what the calling thread's root scope owns and the library's caches. */
MIX_API void mix_shutdown(void);

/* MIX_SCOPE { ... } must not be left by break, return or goto. */
#define MIX_SCOPE for (mix_scope *mix_scope_here_ = mix_scope_begin(); mix_scope_here_; mix_scope_end(mix_scope_here_), mix_scope_here_ = NULL)

/* Lists hold objects (or NULL) and retain them. */
MIX_API mix_list *mix_list_new(int count, void *const *items);
/* Items; 0 for NULL. */
MIX_API int mix_list_count(const mix_list *list);
/* Borrowed; NULL for an item that is absent. An index outside the list is an error. */
MIX_API void *mix_list_get(const mix_list *list, int index);
/* Retains the item, which may be NULL. */
MIX_API mix_status mix_list_append(mix_list *list, void *item);
#ifndef __cplusplus
/* mix_list_of(a, b, c): a new list of these objects. */
#define mix_list_of(...) mix_list_new((int)(sizeof((void *[]){__VA_ARGS__}) / sizeof(void *)), (void *[]){__VA_ARGS__})
#endif

#ifdef __cplusplus
}
#endif
#endif
