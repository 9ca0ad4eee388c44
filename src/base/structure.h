/* Nested lists and dicts as one list of their leaves and a structure, as tf.nest flattens them: items in
 * their order, dicts sorted by name. A leaf is any object that is no list, or NULL. */
#pragma once

#include "base/object.h"

/* Interned: equal structures have one address, which lives as long as the process. */
struct mix_structure {
  int count, leaves;               /* items; leaves below them */
  const char *const *names;        /* (count) interned and sorted; NULL: a list */
  const mix_structure *const *items; /* (count) NULL: a leaf */
  struct mix_structure *next;
};

/* The structure of a list (names NULL) or of a dict with sorted names. NULL with the error recorded. */
const mix_structure *mix_structure_of(int count, const char *const *names, const mix_structure *const *items);
/* One list of the leaves, which remembers the structure; a list of leaves is returned as it is. Scoped; NULL
 * with an error of `call`. */
mix_list *mix_list_flatten(mix_list *nested, const char *call);
/* The nested lists again, with sorted dicts; a list without structure is returned as it is. Scoped. */
mix_list *mix_list_pack(mix_list *flat);
/* What messages call a leaf: "tensor 2", or in a structure "component (0, 'a')". */
const char *mix_leaf_text(const mix_structure *structure, int leaf, char *text, size_t size);
/* "((., .), {'a': .})". `leaf` writes each leaf; NULL: dots. */
typedef void (*mix_leaf_writer)(void *context, int leaf, char *text, size_t size);
const char *mix_structure_text(const mix_list *flat, mix_leaf_writer leaf, void *context, char *text,
                               size_t size);
