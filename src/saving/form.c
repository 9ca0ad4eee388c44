/* Structures of tensors: one, or lists and objects of them. */
#include "saving/model_json.h"

#include "base/error.h"
#include "nn/layers/operands.h"
#include <stdlib.h>
#include <string.h>

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static const char **sorted_keys(const json_t *object) {
  const char *key, **keys = mix_scoped_memory((json_object_size(object) + 1) * sizeof *keys);
  json_t *item;
  size_t count = 0;
  if (!keys) return NULL;
  json_object_foreach((json_t *)object, key, item) keys[count++] = key;
  qsort(keys, count, sizeof *keys, by_text);
  return keys;
}

static json_t *map(const json_t *value, mix_form_item *item, void *context, int depth) {
  enum { MAX_DEPTH = 64 };
  json_t *made = item(context, value);
  if (made || mix_failed()) return mix_json_whole(made);
  if (!json_is_array(value) && !json_is_object(value)) return json_incref((json_t *)value);
  if (depth > MAX_DEPTH)
    return mix_fail_value("model_from_json: the lists of a call are nested more than 64 deep");
  made = json_is_array(value) ? json_array() : mix_json_shallow_copy((json_t *)value);
  for (size_t i = 0; i < json_array_size(value) && !mix_failed(); i++)
    mix_json_append(made, map(json_array_get(value, i), item, context, depth + 1));
  const char **keys = json_is_object(value) ? sorted_keys(value) : NULL;
  for (size_t i = 0; keys && i < json_object_size(value) && !mix_failed(); i++)
    mix_json_set(made, keys[i], map(json_object_get(value, keys[i]), item, context, depth + 1));
  return mix_json_whole(made);
}

json_t *mix_form_map(const json_t *value, mix_form_item *item, void *context) {
  return value ? map(value, item, context, 0) : mix_json_whole(NULL);
}

typedef struct filling {
  mix_form_leaf *leaf;
  void *context;
} filling;

static json_t *fill_item(void *context, const json_t *value) {
  const filling *fill = context;
  const int number = mix_operand_form_number(value);
  return number < 0 ? NULL : mix_json_whole(fill->leaf(fill->context, number));
}

json_t *mix_form_fill(const json_t *form, mix_form_leaf *leaf, void *context) {
  return mix_form_map(form, fill_item, &(filling){leaf, context});
}
