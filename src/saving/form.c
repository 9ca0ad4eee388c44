/* Structures of tensors: one, or lists and objects of them. */
#include "saving/model_json.h"

#include "base/error.h"
#include "base/json.h"
#include "nn/layers/operands.h"
#include <stdlib.h>
#include <string.h>

json_t *mix_form_fill(const json_t *form, mix_form_leaf *leaf, void *context) {
  const char *key;
  json_t *item;
  if (!form) return mix_json_whole(NULL);
  if (json_is_integer(form)) return leaf(context, (int)json_integer_value(form));
  json_t *filled = json_is_array(form) ? json_array() : json_object();
  if (json_is_array(form))
    for (size_t i = 0; i < json_array_size(form); i++)
      mix_json_append(filled, mix_form_fill(json_array_get(form, i), leaf, context));
  else
    json_object_foreach((json_t *)form, key, item)
        mix_json_set(filled, key, mix_form_fill(item, leaf, context));
  return mix_json_whole(filled);
}

json_t *mix_operand_form_fill(const json_t *form, mix_form_leaf *leaf, void *context) {
  const char *key;
  json_t *item;
  const int number = mix_operand_form_number(form);
  if (number >= 0) return leaf(context, number);
  if (!json_is_array(form) && !json_is_object(form)) return json_incref((json_t *)form);
  json_t *filled = json_is_array(form) ? json_array() : json_object();
  for (size_t i = 0; i < json_array_size(form); i++)
    mix_json_append(filled, mix_operand_form_fill(json_array_get(form, i), leaf, context));
  json_object_foreach((json_t *)form, key, item)
      mix_json_set(filled, key, mix_operand_form_fill(item, leaf, context));
  return mix_json_whole(filled);
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

const char **mix_sorted_keys(const json_t *object) {
  const char *key, **keys = mix_scoped_memory((json_object_size(object) + 1) * sizeof *keys);
  json_t *item;
  size_t count = 0;
  if (!keys) return NULL;
  json_object_foreach((json_t *)object, key, item) keys[count++] = key;
  qsort(keys, count, sizeof *keys, by_text);
  return keys;
}

/* Sorted order numbers the leaves; the form keeps the order of the object. */
static json_t *form_of_object(const json_t *object, bool (*is_leaf)(const json_t *), json_t *leaves) {
  const char **keys = mix_sorted_keys(object);
  json_t *form = keys ? mix_json_shallow_copy((json_t *)object) : NULL;
  for (size_t i = 0; form && i < json_object_size(object); i++)
    mix_json_set(form, keys[i], mix_form_of(json_object_get(object, keys[i]), is_leaf, leaves));
  return mix_json_whole(form);
}

json_t *mix_form_of(const json_t *structure, bool (*is_leaf)(const json_t *), json_t *leaves) {
  if (is_leaf(structure)) {
    if (!mix_json_append(leaves, json_incref((json_t *)structure))) return NULL;
    return json_integer((json_int_t)json_array_size(leaves) - 1);
  }
  if (json_is_object(structure)) return form_of_object(structure, is_leaf, leaves);
  if (!json_is_array(structure))
    return mix_fail(MIX_VALUE_ERROR, "model_from_json: %s stands where a tensor is expected",
                    mix_json_kind(structure));
  json_t *form = json_array();
  for (size_t i = 0; i < json_array_size(structure); i++)
    mix_json_append(form, mix_form_of(json_array_get(structure, i), is_leaf, leaves));
  return form;
}
