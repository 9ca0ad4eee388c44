/* Lists of objects, and dicts: lists whose items have names. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/object.h"

#include <stdio.h>
#include <string.h>

enum { INLINE_ITEMS = 8 };

struct mix_list {
  mix_object object;
  void **items; /* retained; entries may be NULL */
  int count, capacity;
  void *few[INLINE_ITEMS]; /* storage of a short list */
  const char **names;      /* (count) interned; NULL: a list, or an empty dict */
  const mix_structure *structure;
  int name_capacity;
  bool is_dict;
};

static void finalize(void *object) {
  mix_list *list = object;
  for (int i = 0; i < list->count; i++) mix_release(list->items[i]);
  if (list->items != list->few) mix_free(list->items);
  mix_free(list->names);
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
  return mix_fail_type("%s: got %s; expected a list", call,
                       list ? ((const mix_object *)list)->class->name : "NULL");
}

mix_list *mix_list_new(int count, void *const *items) {
  if (mix_failed()) return NULL;
  if (count < 0) return mix_fail_value("list_new: count is %d; expected 0 or more", count);
  if (count > 0 && !items) return mix_fail_value("list_new: items is NULL; expected %d objects", count);
  mix_list *list = mix_object_new(sizeof *list, &mix_list_class);
  if (!list) return NULL;
  list->items = list->few;
  list->capacity = INLINE_ITEMS;
  if (!reserve(list, count)) {
    mix_release(list);
    return NULL;
  }
  for (; list->count < count; list->count++) list->items[list->count] = mix_retain(items[list->count]);
  if (mix_failed()) { /* an item of an ended scope */
    mix_release(list);
    return NULL;
  }
  return mix_scoped(list);
}

int mix_list_count(const mix_list *list) { return list && is_list(list, "list_count") ? list->count : 0; }

void *mix_list_get(const mix_list *list, int index) {
  if (!is_list(list, "list_get")) return NULL;
  if (index < 0 || index >= list->count)
    return mix_fail_value("list_get: index is %d; expected 0 or more and below %d, the list's count", index,
                          list->count);
  return list->items[index];
}

mix_status mix_list_append(mix_list *list, void *item) {
  if (mix_failed()) return mix_error();
  if (!is_list(list, "list_append")) return mix_error();
  if (item == (void *)list)
    return mix_fail_status(MIX_VALUE_ERROR,
                           "list_append: the item is the list itself, which would never be released");
  if (list->is_dict)
    return mix_fail_status(MIX_TYPE_ERROR,
                           "list_append: the list is a dict, whose items have names; use mix_dict_set");
  if (!reserve(list, list->count + 1)) return mix_error();
  void *retained = mix_retain(item);
  if (item && !retained) return mix_error(); /* of an ended scope */
  list->items[list->count++] = retained;
  return MIX_OK;
}

/* ---- dicts ---- */

static int index_of(const mix_list *dict, const char *name) {
  for (int i = 0; i < dict->count; i++)
    if (!strcmp(dict->names[i], name)) return i;
  return -1;
}

static bool is_dict(const mix_list *dict, const char *name, const char *call) {
  if (!is_list(dict, call)) return false;
  if (!dict->is_dict)
    mix_fail_type("%s: the list has no names; expected a dict", call);
  else if (!name)
    mix_fail_type("%s: the name is NULL", call);
  return !mix_failed();
}

static bool append_named(mix_list *dict, const char *name, void *item) {
  const char *kept = mix_intern(name);
  if (!kept || !reserve(dict, dict->count + 1) ||
      !mix_reserve(&dict->names, &dict->name_capacity, dict->count + 1, sizeof *dict->names))
    return false;
  dict->names[dict->count] = kept;
  dict->items[dict->count++] = mix_retain(item);
  return true;
}

mix_status mix_dict_set(mix_list *dict, const char *name, void *item) {
  if (mix_failed() || !is_dict(dict, name, "dict_set")) return mix_error();
  if (item == (void *)dict)
    return mix_fail_status(MIX_VALUE_ERROR,
                           "dict_set: the item is the dict itself, which would never be released");
  int index = index_of(dict, name);
  if (index < 0) {
    append_named(dict, name, item);
    return mix_error();
  }
  mix_retain(item);
  mix_release(dict->items[index]);
  dict->items[index] = item;
  return MIX_OK;
}

mix_list *mix_dict_new(int count, const char *const *names, void *const *items) {
  if (mix_failed()) return NULL;
  if (count < 0 || (count > 0 && (!names || !items)))
    return mix_fail_value("dict_new: %d items; expected 0 or more, with names", count);
  mix_list *dict = mix_list_new(0, NULL);
  if (!dict) return NULL;
  dict->is_dict = true;
  for (int i = 0; i < count; i++) {
    if (!names[i]) return mix_fail_type("dict_new: name %d is NULL", i);
    if (index_of(dict, names[i]) >= 0)
      return mix_fail_value("dict_new: the name '%s' is given twice", names[i]);
    if (!append_named(dict, names[i], items[i])) return NULL;
  }
  return dict;
}

mix_list *mix_dict_from_pairs(int count, const void *const *names_and_items) {
  if (mix_failed()) return NULL;
  if (count < 0 || count % 2 || (count > 0 && !names_and_items))
    return mix_fail_value("dict_of: %d arguments; expected names, each followed by its item", count);
  mix_list *dict = mix_dict_new(0, NULL, NULL);
  for (int i = 0; dict && i < count; i += 2)
    if (names_and_items[i] && index_of(dict, names_and_items[i]) >= 0)
      return mix_fail_value("dict_of: the name '%s' is given twice", (const char *)names_and_items[i]);
    else if (mix_dict_set(dict, names_and_items[i], (void *)names_and_items[i + 1]) != MIX_OK)
      return NULL;
  return dict;
}

void *mix_dict_get(const mix_list *dict, const char *name) {
  if (!is_dict(dict, name, "dict_get")) return NULL;
  int index = index_of(dict, name);
  if (index >= 0) return dict->items[index];
  char names[512] = "none";
  for (int i = 0, used = 0; i < dict->count && used < (int)sizeof names; i++)
    used += snprintf(names + used, sizeof names - (size_t)used, "%s'%s'", i ? ", " : "", dict->names[i]);
  return mix_fail_value("dict_get: no item is named '%s'; the names are %s", name, names);
}

const char *mix_dict_name(const mix_list *dict, int index) {
  if (!dict || !is_list(dict, "dict_name") || !dict->is_dict) return NULL;
  return index >= 0 && index < dict->count ? dict->names[index] : NULL;
}

mix_list *mix_list_like(const mix_list *list) {
  return list->is_dict ? mix_dict_new(0, NULL, NULL) : mix_list_new(0, NULL);
}

mix_status mix_list_append_like(mix_list *to, const mix_list *list, int index, void *item) {
  return list->is_dict ? mix_dict_set(to, list->names[index], item) : mix_list_append(to, item);
}

bool mix_list_is_dict(const mix_list *list) { return mix_is(list, &mix_list_class) && list->is_dict; }
const mix_structure *mix_list_structure(const mix_list *list) { return list ? list->structure : NULL; }
void mix_list_set_structure(mix_list *list, const mix_structure *structure) {
  if (list) list->structure = structure;
}

void *const *mix_list_items(const mix_list *list) { return list ? list->items : NULL; }
