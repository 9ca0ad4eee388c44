/* Ownership. Every object is reference counted. The result of a constructor belongs to the innermost open
 * scope of the thread and is released when that scope ends; mix_retain keeps it longer. Containers retain
 * their items. */
#ifndef MIXTAPE_OBJECT_H
#define MIXTAPE_OBJECT_H

#include <mixtape/status.h>

MIX_BEGIN_DECLARATIONS

/* Adds a reference to any Mixtape object and returns it. NULL gives NULL. */
MIX_API void *mix_retain(void *object);
/* Releases a reference that mix_retain added. NULL is allowed. */
MIX_API void mix_release(void *object);

/* Plug-ins (dlopen). The object that contains this library, or that it is linked into as a static library,
 * stays in the process after dlclose once a thread has made an object: the thread's end, and the threads of
 * plans and pipelines, still call it. dlopen finds it again, with its state. */

/* A scope owns the results of constructors. With no scope open they belong to the thread's root scope,
 * which is released at thread exit or by mix_shutdown. */
typedef struct mix_scope mix_scope;
/* Contexts: a constructor that takes a context (or data) with a `release` function takes it over when it
 * succeeds. If it fails (NULL), release is not called and the context is still the caller's. */
/* Opens a scope on this thread, inside those that are open. NULL if memory runs out. */
MIX_API mix_scope *mix_scope_begin(void);
/* Ends the scope and those opened inside it, and releases what they own. */
MIX_API void mix_scope_end(mix_scope *scope);
/* The same with the place of the call, which the message on a later use of what the scope owned names. The
 * macros of the names above pass their own place; file may be NULL. */
MIX_API mix_scope *mix_scope_begin_at(const char *file, int line);
MIX_API void mix_scope_end_at(mix_scope *scope, const char *file, int line);
#define mix_scope_begin() mix_scope_begin_at(__FILE__, __LINE__)
#define mix_scope_end(scope) mix_scope_end_at(scope, __FILE__, __LINE__)
/* Moves an object from its scope of this thread to the enclosing one, so that it outlives the inner scope.
 * Returns the object. */
MIX_API void *mix_scope_leave(void *object);
/* Releases the objects of the calling thread's root scope, and the library's caches. */
MIX_API void mix_shutdown(void);

/* ---- scopes of a block ----
 * In a loop, and wherever break or continue are written: MIX_SCOPE_HERE; at the beginning of a block opens a
 * scope that ends with this block, however it is left: at its end, by break, continue, return or goto. It
 * needs gcc or clang, as C++ does not.
 *
 *   for (int step = 0; step < 1000; step++) {
 *     MIX_SCOPE_HERE;
 *     ...
 *   }
 *
 * For a block that stands by itself: MIX_SCOPE { ... } opens a scope for the block that follows, which return
 * and goto end too (with gcc and clang; with others they leave it to the scope around it). In C it is a loop
 * of its own: `continue` in it goes to the end of its block, not to the next round of the loop around it, and
 * `break` is a RuntimeError. No compiler can refuse that `continue`: no statement of C11 but a loop declares
 * a variable for the block that follows, and there a `continue` and the end of the block are the same point.
 * In C++ it is no loop, and both leave the loop around it.
 */
/* Ends the scope of a block and sets it to NULL; does nothing for NULL. For the macros. */
MIX_API void mix_scope_end_block(mix_scope **scope);
/* The same after a `break`, with a RuntimeError that names the place of the MIX_SCOPE. For the macro. */
MIX_API void mix_scope_broken(mix_scope **scope, const char *file, int line);
/* The line is part of the names, so that no scope hides another. */
#define MIX_SCOPE_NAME_(name, line) name##line
#define MIX_SCOPE_LINE_(name, line) MIX_SCOPE_NAME_(name, line)
#ifdef __cplusplus
struct mix_scope_of_block {
  mix_scope *scope;
  mix_scope_of_block(const char *file, int line) : scope(mix_scope_begin_at(file, line)) {}
  ~mix_scope_of_block() { mix_scope_end_block(&scope); }
  mix_scope_of_block(const mix_scope_of_block &) = delete;
  mix_scope_of_block &operator=(const mix_scope_of_block &) = delete;
  explicit operator bool() const { return scope != nullptr; }
};
/* Ends in `else`, so that it takes no other one. */
#define MIX_SCOPE MIX_SCOPE_IF_(MIX_SCOPE_LINE_(mix_scope_, __LINE__))
#define MIX_SCOPE_IF_(scope)                                                                                 \
  if (mix_scope_of_block scope{__FILE__, __LINE__}; !scope) {                                                \
  } else
#define MIX_SCOPE_HERE mix_scope_of_block MIX_SCOPE_LINE_(mix_scope_, __LINE__)(__FILE__, __LINE__)
#else
#ifdef __GNUC__
#define MIX_SCOPE_CLEANUP_ __attribute__((__cleanup__(mix_scope_end_block), __unused__))
#define MIX_SCOPE_HERE mix_scope *MIX_SCOPE_LINE_(mix_scope_, __LINE__) MIX_SCOPE_CLEANUP_ = mix_scope_begin()
#else
#define MIX_SCOPE_CLEANUP_
#endif
#define MIX_SCOPE                                                                                            \
  MIX_SCOPE_LOOP_(MIX_SCOPE_LINE_(mix_scope_, __LINE__), MIX_SCOPE_LINE_(mix_scope_open_, __LINE__))
#define MIX_SCOPE_LOOP_(scope, open)                                                                         \
  for (mix_scope *scope MIX_SCOPE_CLEANUP_ = mix_scope_begin(), *open = scope; open;                         \
       open = NULL, mix_scope_broken(&scope, __FILE__, __LINE__))                                            \
    for (; scope; mix_scope_end_block(&scope))
#endif

/* A new list that retains its items; an item may be NULL. */
MIX_API mix_list *mix_list_new(int count, void *const *items);
/* The number of items; 0 for NULL. */
MIX_API int mix_list_count(const mix_list *list);
/* The item at `index`, borrowed; may be NULL. ValueError if the index is out of range. */
MIX_API void *mix_list_get(const mix_list *list, int index);
/* Appends an item, which the list retains; it may be NULL. TypeError for a dict. */
MIX_API mix_status mix_list_append(mix_list *list, void *item);
#ifndef __cplusplus
/* mix_list_of(a, b, c): a new list of these objects. */
#define mix_list_of(...)                                                                                     \
  mix_list_new((int)(sizeof((void *[]){__VA_ARGS__}) / sizeof(void *)), (void *[]){__VA_ARGS__})
#endif

/* ---- dicts ----
 * A dict is a list whose items have names, Python's {"a": x, "b": y}. Functions for lists take it, except
 * mix_list_append. The items stay in the order in which they were given. */

/* A new dict, which copies the names and retains the items; an item may be NULL. ValueError for a name
 * given twice. */
MIX_API mix_list *mix_dict_new(int count, const char *const *names, void *const *items);
/* The same from `count` pointers, each name followed by its item. */
MIX_API mix_list *mix_dict_from_pairs(int count, const void *const *names_and_items);
/* The item of that name, borrowed; may be NULL. ValueError, which lists the names, if there is none. */
MIX_API void *mix_dict_get(const mix_list *dict, const char *name);
/* Sets the item of that name, which the dict retains, or appends it. */
MIX_API mix_status mix_dict_set(mix_list *dict, const char *name, void *item);
/* The name of the item at `index`; NULL for a list without names, or out of range. It lives as long as the
 * process. */
MIX_API const char *mix_dict_name(const mix_list *dict, int index);
#ifndef __cplusplus
/* mix_dict_of("a", x, "b", y) */
#define mix_dict_of(...)                                                                                     \
  mix_dict_from_pairs((int)(sizeof((const void *[]){__VA_ARGS__}) / sizeof(void *)),                         \
                      (const void *[]){__VA_ARGS__})
#endif

MIX_END_DECLARATIONS
#endif
