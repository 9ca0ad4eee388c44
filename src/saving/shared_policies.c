/* Equal policy maps in a model's text are one object, as Keras writes and reads them. */
#include "saving/model_json.h"

#include "base/error.h"

static bool is_map(const json_t *json) { return mix_json_is_class(json, "DTypePolicyMap"); }

typedef struct sharing {
  json_t *maps; /* the first of each */
  json_int_t used;
} sharing;

static void find_number(sharing *s, const json_t *json) {
  const char *key;
  json_t *item;
  size_t i;
  const json_t *number = json_object_get(json, "shared_object_id");
  if (json_is_integer(number) && json_integer_value(number) > s->used) s->used = json_integer_value(number);
  json_array_foreach((json_t *)json, i, item) find_number(s, item);
  json_object_foreach((json_t *)json, key, item) find_number(s, item);
}

/* Only the second object of a Python object and those behind it have its number. */
static void number_map(json_t *map, json_int_t number) {
  const char *key;
  json_t *policy;
  mix_json_set(map, "shared_object_id", json_integer(number++));
  json_object_foreach(json_object_get(json_object_get(map, "config"), "policy_map"), key, policy)
      mix_json_set(policy, "shared_object_id", json_integer(number++));
}

static void share_map(sharing *s, json_t *map) {
  json_t *first;
  size_t i;
  json_array_foreach(s->maps, i, first) {
    if (!json_equal(json_object_get(first, "map"), map)) continue;
    number_map(map, json_integer_value(json_object_get(first, "number")));
    return;
  }
  const json_t *keys = json_object_get(json_object_get(map, "config"), "policy_map");
  mix_json_append(s->maps, json_pack("{s:O,s:I}", "map", map, "number", s->used + 1));
  s->used += 1 + (json_int_t)json_object_size(keys);
}

static void share_maps(sharing *s, json_t *json) {
  const char *key;
  json_t *item;
  size_t i;
  if (is_map(json)) return share_map(s, json);
  json_array_foreach(json, i, item) share_maps(s, item);
  json_object_foreach(json, key, item) share_maps(s, item);
}

bool mix_share_policy_maps(json_t *object) {
  sharing s = {.maps = json_array()};
  find_number(&s, object);
  if (!mix_failed()) share_maps(&s, object);
  json_decref(s.maps);
  return !mix_failed();
}
