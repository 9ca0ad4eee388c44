/* Reads the index of sharded weights, and its shards. */
#include "saving/weight_shards.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "formats/file.h"
#include "formats/file_mapping.h"
#include <stdio.h>
#include <string.h>

enum { MAX_SHARDS = 100000 };

bool mix_weight_shards_begin(const char *first, size_t size) {
  size_t at = 0;
  while (at < size && first[at] && strchr(" \t\r\n", first[at])) at++;
  return at < size && first[at] == '{';
}

/* ---- the index ---- */

/* A file of the index's own folder: Keras takes the last part of the path alone, too. */
static bool is_plain_name(const char *name) {
  return *name && !strpbrk(name, "/\\") && strcmp(name, ".") && strcmp(name, "..");
}

static bool open_shard(mix_weight_shards *shards, const char *name) {
  if (shards->count == MAX_SHARDS) return mix_fail_format("%s: it names too many files", shards->name);
  if (!mix_reserve(&shards->items, &shards->capacity, shards->count + 1, sizeof *shards->items)) return false;
  mix_weight_shard *shard = &shards->items[shards->count];
  const char *slash = strrchr(shards->name, '/');
  const size_t folder = slash ? (size_t)(slash + 1 - shards->name) : 0, length = folder + strlen(name) + 1;
  bool mapped;
  *shard = (mix_weight_shard){.path = mix_alloc(length)};
  if (!shard->path) return false;
  snprintf(shard->path, length, "%.*s%s", (int)folder, shards->name, name);
  shards->count++;
  if (!mix_file_exists(shard->path))
    return mix_fail_io("%s: the shard %s is missing; expected it beside the index", shards->name,
                       shard->path);
  shard->bytes = mix_file_memory(shard->path, shards->copies, &mapped);
  const void *data = shard->bytes ? mix_memory_map(shard->bytes, MIX_MAP_READ) : NULL;
  if (!data || !mix_hdf5_open(&shard->hdf5, shard->path, data, mix_memory_bytes(shard->bytes))) return false;
  shard->hdf5.memory = mapped ? shard->bytes : NULL;
  return true;
}

/* Adds the number of the shard, which is opened at its first mention. */
static bool add_shard(mix_weight_shards *shards, json_t *numbers, json_t *list, const json_t *name) {
  const char *text = json_string_value(name);
  if (!text)
    return mix_fail_format("%s: weight_map holds %s; expected names of files", shards->name,
                           mix_json_kind(name));
  if (strlen(text) != json_string_length(name) || !is_plain_name(text))
    return mix_fail_format("%s: '%.200s' is no name of a file beside the index", shards->name, text);
  if (!json_object_get(numbers, text)) {
    const int number = shards->count;
    if (!open_shard(shards, text) || !mix_json_set(numbers, text, json_integer(number))) return false;
  }
  return mix_json_append(list, json_incref(json_object_get(numbers, text)));
}

/* A name, or a list of names. */
static bool add_group(mix_weight_shards *shards, json_t *numbers, const char *group, const json_t *value) {
  json_t *list = json_array();
  bool good = mix_json_set(shards->weight_map, group, list);
  const size_t count = json_is_array(value) ? json_array_size(value) : 1;
  for (size_t i = 0; good && i < count; i++)
    good = add_shard(shards, numbers, list, json_is_array(value) ? json_array_get(value, i) : value);
  return good;
}

static bool open_all(mix_weight_shards *shards, json_t *index) {
  json_t *given = json_object_get(index, "weight_map"), *value;
  const char *group;
  if (!json_is_object(given))
    return mix_fail_format("%s: no index of sharded weights, as it has no object weight_map; expected the "
                           ".weights.json that Keras writes beside its shards",
                           shards->name);
  json_t *numbers = json_object();
  bool good = (shards->weight_map = json_object()) != NULL;
  json_object_foreach(given, group, value) good = good && add_group(shards, numbers, group, value);
  json_decref(numbers);
  return good && !mix_failed();
}

mix_weight_shards *mix_weight_shards_open(const char *path, const char *text, bool copies) {
  char call[256];
  snprintf(call, sizeof call, "%.200s: the index of shards", path);
  mix_weight_shards *shards = mix_calloc(1, sizeof *shards);
  json_t *index = shards && mix_json_has_few_values(text, call) ? mix_json_parse(text, call) : NULL;
  if (shards) *shards = (mix_weight_shards){.name = path, .copies = copies};
  const bool good = index && open_all(shards, index);
  json_decref(index);
  if (good) return shards;
  mix_weight_shards_close(shards);
  return NULL;
}

void mix_weight_shards_close(mix_weight_shards *shards) {
  if (!shards) return;
  for (int i = 0; i < shards->count; i++) {
    mix_hdf5_close(&shards->items[i].hdf5);
    mix_release(shards->items[i].bytes);
    mix_free(shards->items[i].path);
  }
  mix_free(shards->items);
  json_decref(shards->weight_map);
  mix_free(shards);
}

/* ---- looking up ---- */

mix_hdf5 *mix_weight_shards_next(mix_weight_shards *shards, const char *group, int *at) {
  const size_t size = strlen(group) + 2;
  char *key = mix_alloc(size);
  if (!key) return NULL;
  snprintf(key, size, "/%s", group);
  const json_t *list = json_object_get(shards->weight_map, key);
  mix_free(key);
  const json_t *number = json_array_get(list, (size_t)(*at)++);
  return number ? &shards->items[json_integer_value(number)].hdf5 : NULL;
}

mix_hdf5 *mix_weight_shards_with(mix_weight_shards *shards, const char *path) {
  const char *slash = strrchr(path, '/');
  char *group = mix_strdup(path);
  mix_hdf5 *hdf5 = NULL;
  if (group && slash) {
    group[slash - path] = 0;
    int at = 0;
    while ((hdf5 = mix_weight_shards_next(shards, group, &at)) && !mix_hdf5_has(hdf5, path) && !mix_failed())
      continue;
  }
  mix_free(group);
  return mix_failed() ? NULL : hdf5;
}
