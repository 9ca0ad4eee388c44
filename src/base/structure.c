/* Structures of nested lists: interned, flattened, packed, and as text. */
#include "base/structure.h"

#include "base/alloc.h"
#include "base/error.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 16, MAX_ITEMS = 1 << 16 };

/* ---- interning ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static mix_structure *known;

static bool is_same(const mix_structure *structure, int count, const char *const *names,
                    const mix_structure *const *items) {
  if (structure->count != count || !structure->names != !names) return false;
  for (int i = 0; i < count; i++)
    if (structure->items[i] != items[i] || (names && structure->names[i] != names[i])) return false;
  return true;
}

/* One block: the struct, the items, the names. */
static mix_structure *copy_of(int count, const char *const *names, const mix_structure *const *items) {
  const size_t pointers = (size_t)count * sizeof(void *);
  mix_structure *made = mix_alloc(sizeof *made + 2 * pointers);
  if (!made) return NULL;
  const mix_structure **own_items = (void *)(made + 1);
  const char **own_names = (void *)(own_items + count);
  *made =
      (mix_structure){.count = count, .names = names ? own_names : NULL, .items = own_items, .next = known};
  for (int i = 0; i < count; i++) {
    own_items[i] = items[i];
    made->leaves += items[i] ? items[i]->leaves : 1;
    if (names) own_names[i] = names[i];
  }
  return made;
}

const mix_structure *mix_structure_of(int count, const char *const *names,
                                      const mix_structure *const *items) {
  pthread_mutex_lock(&mutex);
  mix_structure *found = known;
  while (found && !is_same(found, count, names, items)) found = found->next;
  if (!found && (found = copy_of(count, names, items))) known = found;
  pthread_mutex_unlock(&mutex);
  return found;
}

/* ---- flattening ---- */

static bool is_flat(const mix_list *list) {
  if (mix_list_is_dict(list)) return false;
  for (int i = 0; i < mix_list_count(list); i++)
    if (mix_is(mix_list_items(list)[i], &mix_list_class)) return false;
  return true;
}

typedef struct named_item {
  const char *name;
  void *item;
} named_item;

static int by_name(const void *a, const void *b) {
  return strcmp(((const named_item *)a)->name, ((const named_item *)b)->name);
}

static const mix_structure *flatten(const mix_list *list, mix_list *flat, int depth, const char *call);

/* `work` holds the items in their order, then `names` and `items` of the structure. */
static const mix_structure *flatten_items(const mix_list *list, mix_list *flat, int depth, const char *call,
                                          named_item *work, int count) {
  const mix_structure **items = (void *)(work + count);
  const char **names = (void *)(items + count);
  for (int i = 0; i < count; i++) work[i] = (named_item){mix_dict_name(list, i), mix_list_items(list)[i]};
  if (mix_list_is_dict(list) && count > 1) qsort(work, (size_t)count, sizeof *work, by_name);
  for (int i = 0; i < count; i++) {
    names[i] = work[i].name;
    items[i] = NULL;
    if (mix_is(work[i].item, &mix_list_class))
      items[i] = flatten(work[i].item, flat, depth + 1, call);
    else
      mix_list_append(flat, work[i].item);
    if (mix_failed()) return NULL;
  }
  return mix_structure_of(count, mix_list_is_dict(list) ? names : NULL, items);
}

static const mix_structure *flatten(const mix_list *list, mix_list *flat, int depth, const char *call) {
  int count = mix_list_count(list);
  if (depth == MAX_DEPTH) return mix_fail_value("%s: lists are nested more than %d deep", call, MAX_DEPTH);
  if (count > MAX_ITEMS)
    return mix_fail_value("%s: a list of %d items; expected at most %d", call, count, MAX_ITEMS);
  named_item *work = mix_alloc((size_t)count * (sizeof *work + 2 * sizeof(void *)) + 1);
  const mix_structure *structure = work ? flatten_items(list, flat, depth, call, work, count) : NULL;
  mix_free(work);
  return structure;
}

mix_list *mix_list_flatten(mix_list *nested, const char *call) {
  if (mix_failed()) return NULL;
  if (!mix_is(nested, &mix_list_class))
    return mix_fail_type("%s: got %s; expected a list", call, nested ? "another object" : "NULL");
  if (is_flat(nested)) return nested;
  mix_list *flat = mix_list_new(0, NULL);
  const mix_structure *structure = flat ? flatten(nested, flat, 0, call) : NULL;
  mix_list_set_structure(flat, structure);
  return structure ? flat : NULL;
}

/* ---- packing ---- */

static mix_list *pack(const mix_structure *structure, void *const *leaves, int *next) {
  mix_list *list = structure->names ? mix_dict_new(0, NULL, NULL) : mix_list_new(0, NULL);
  for (int i = 0; list && i < structure->count; i++) {
    void *item = structure->items[i] ? pack(structure->items[i], leaves, next) : leaves[(*next)++];
    if (mix_failed()) return NULL;
    if (structure->names)
      mix_dict_set(list, structure->names[i], item);
    else
      mix_list_append(list, item);
  }
  return mix_failed() ? NULL : list;
}

mix_list *mix_list_pack(mix_list *flat) {
  const mix_structure *structure = mix_list_structure(flat);
  int next = 0;
  return structure ? pack(structure, mix_list_items(flat), &next) : flat;
}

/* ---- text ---- */

const char *mix_leaf_text(const mix_structure *structure, int leaf, char *text, size_t size) {
  if (!structure) {
    snprintf(text, size, "tensor %d", leaf);
    return text;
  }
  size_t used = (size_t)snprintf(text, size, "component (");
  for (bool first = true; structure && used < size; first = false) {
    int i = 0;
    for (int own; i < structure->count; i++, leaf -= own) {
      own = structure->items[i] ? structure->items[i]->leaves : 1;
      if (leaf < own) break;
    }
    if (i == structure->count) break; /* no such leaf */
    const char *comma = first ? "" : ", ";
    used +=
        (size_t)(structure->names ? snprintf(text + used, size - used, "%s'%s'", comma, structure->names[i])
                                  : snprintf(text + used, size - used, "%s%d", comma, i));
    structure = structure->items[i];
  }
  if (used < size) snprintf(text + used, size - used, ")");
  return text;
}

typedef struct writer {
  mix_leaf_writer leaf;
  void *context;
  char *text;
  size_t size, used;
  int next;
} writer;

static void put(writer *out, const char *piece) {
  int length = snprintf(out->text + out->used, out->size - out->used, "%s", piece);
  out->used = out->used + (size_t)length < out->size ? out->used + (size_t)length : out->size - 1;
}

static void put_structure(writer *out, const mix_structure *structure, int count) {
  const bool named = structure && structure->names;
  put(out, named ? "{" : "(");
  for (int i = 0; i < count; i++) {
    const mix_structure *item = structure ? structure->items[i] : NULL;
    char leaf[256] = ".";
    put(out, i ? ", " : "");
    if (named) {
      snprintf(leaf, sizeof leaf, "'%s': ", structure->names[i]);
      put(out, leaf);
      snprintf(leaf, sizeof leaf, ".");
    }
    if (item) {
      put_structure(out, item, item->count);
      continue;
    }
    if (out->leaf) out->leaf(out->context, out->next, leaf, sizeof leaf);
    out->next++;
    put(out, leaf);
  }
  put(out, named ? "}" : count == 1 ? ",)" : ")");
}

const char *mix_structure_text(const mix_list *flat, mix_leaf_writer leaf, void *context, char *text,
                               size_t size) {
  const mix_structure *structure = mix_list_structure(flat);
  writer out = {.leaf = leaf, .context = context, .text = text, .size = size};
  put_structure(&out, structure, structure ? structure->count : mix_list_count(flat));
  return text;
}
