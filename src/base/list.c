/* Lists of objects. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/object.h"

#include <string.h>

enum { INLINE_ITEMS = 8 };

struct mix_list {
  mix_object object;
  void **items; /* retained; entries may be NULL */
  int count, capacity;
  void *few[INLINE_ITEMS]; /* storage of a short list */
};

static void finalize(void *object) {
  mix_list *list = object;
  for (int i = 0; i < list->count; i++) mix_release(list->items[i]);
  if (list->items != list->few) mix_free(list->items);
}

static bool reserve(mix_list *list, int needed) {
  if (needed <= list->capacity) return true;
  void **items = list->items == list->few ? NULL : list->items;
  int capacity = items ? list->capacity : 0;
  if (!mix_reserve(&items, &capacity, needed > 2 * INLINE_ITEMS ? needed : 2 * INLINE_ITEMS, sizeof *items))
    return false;
  if (list->items == list->few) memcpy(items, list->few, sizeof *items * (size_t)list->count);
  list->items = items;
  list->capacity = capacity;
  return true;
}

const mix_class mix_list_class = {.name = "list", .finalize = finalize};

/* Records an error if `list` is not a list. */
static bool is_list(const mix_list *list, const char *call) {
  if (mix_is(list, &mix_list_class)) return true;
  mix_fail(MIX_TYPE_ERROR, "%s: got %s; expected a list", call,
           list ? ((const mix_object *)list)->class->name : "NULL");
  return false;
}

mix_list *mix_list_new(int count, void *const *items) {
  if (mix_failed()) return NULL;
  if (count < 0) return mix_fail(MIX_VALUE_ERROR, "list_new: count is %d; expected 0 or more", count);
  if (count > 0 && !items)
    return mix_fail(MIX_VALUE_ERROR, "list_new: items is NULL; expected %d objects", count);
  mix_list *list = mix_object_new(sizeof *list, &mix_list_class);
  if (!list) return NULL;
  list->items = list->few;
  list->capacity = INLINE_ITEMS;
  if (!reserve(list, count)) {
    mix_release(list);
    return NULL;
  }
  for (; list->count < count; list->count++) list->items[list->count] = mix_retain(items[list->count]);
  return mix_scoped(list);
}

int mix_list_count(const mix_list *list) { return list && is_list(list, "list_count") ? list->count : 0; }

void *mix_list_get(const mix_list *list, int index) {
  if (!is_list(list, "list_get")) return NULL;
  if (index < 0 || index >= list->count)
    return mix_fail(MIX_VALUE_ERROR,
                    "list_get: index is %d; expected 0 or more and below %d, the list's count", index,
                    list->count);
  return list->items[index];
}

mix_status mix_list_append(mix_list *list, void *item) {
  if (mix_failed()) return mix_error();
  if (!is_list(list, "list_append")) return mix_error();
  if (item == (void *)list)
    return mix_fail_status(MIX_VALUE_ERROR,
                           "list_append: the item is the list itself, which would never be released");
  if (!reserve(list, list->count + 1)) return mix_error();
  list->items[list->count++] = mix_retain(item);
  return MIX_OK;
}

void *const *mix_list_items(const mix_list *list) { return list ? list->items : NULL; }
