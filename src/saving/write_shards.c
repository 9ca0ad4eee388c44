/* Writes sharded weights, group by group and array by array in the order of the tree, as Keras fills shards.
 */
#include "saving/weight_shards.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "saving/read_weights.h"
#include "saving/weight_tree.h"
#include "saving/write_weights.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <string.h>

/* A file that is written whole under another name. */
typedef struct written {
  char *path, *part;
} written;

typedef struct writing {
  mix_model *model;
  const char *path, *call;
  double limit;
  mix_hdf5_writer *file; /* of the current shard */
  double size, total;    /* bytes of values: in the current shard, in all */
  json_t *weight_map;
  written *files;
  int count, capacity; /* of the files; the last one is the current shard, which has no part yet */
} writing;

/* ---- files ---- */

/* "w.weights.json": "w_00002.weights.h5" */
static char *shard_path(const writing *w, int number) {
  static const char end[] = ".weights.json";
  const size_t stem = strlen(w->path) - (sizeof end - 1), size = stem + 40;
  char *path = mix_alloc(size);
  if (path) snprintf(path, size, "%.*s_%05d.weights.h5", (int)stem, w->path, number);
  return path;
}

static const char *file_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static bool add_file(writing *w, char *path) {
  if (!path || !mix_reserve(&w->files, &w->capacity, w->count + 1, sizeof *w->files))
    return mix_free(path), false;
  w->files[w->count++] = (written){.path = path};
  return true;
}

/* A part for the file that was added last, unless writing it fails. */
static bool keep_part(writing *w, char *part, bool done) {
  w->files[w->count - 1].part = done ? part : NULL;
  if (!done) mix_free(part);
  return done;
}

/* The current shard goes to the disk, and its memory ends. */
static bool end_shard(writing *w) {
  const char *path = w->files[w->count - 1].path;
  mix_piece_source bytes;
  char *part = mix_hdf5_writer_source(w->file, &bytes) ? mix_file_part(path, w->call) : NULL;
  const bool done = keep_part(w, part, part && mix_file_write_source(part, path, &bytes, w->call));
  mix_release(w->file);
  w->file = NULL;
  return done;
}

static bool begin_shard(writing *w) {
  if (w->file && !end_shard(w)) return false;
  if (!add_file(w, shard_path(w, w->count))) return false;
  w->size = 0;
  MIX_SCOPE { w->file = mix_retain(mix_hdf5_writer_new(w->call)); }
  return w->file && !mix_failed();
}

static bool write_index(writing *w) {
  json_t *index = json_pack("{s:{s:f},s:O}", "metadata", "total_size", w->total, "weight_map", w->weight_map);
  char *text = (index = mix_json_whole(index)) ? json_dumps(index, JSON_INDENT(4) | JSON_ENSURE_ASCII) : NULL;
  if (index && !text) mix_fail_memory("an index of shards");
  char *path = text ? mix_strdup(w->path) : NULL;
  char *part = path && add_file(w, path) ? mix_file_part(path, w->call) : NULL;
  const bool done =
      part &&
      keep_part(w, part,
                mix_file_write_part(part, path, &(mix_bytes){text, text ? strlen(text) : 0}, 1, w->call));
  free(text);
  json_decref(index);
  return done;
}

/* The index comes last: until then it is the old one. */
static bool commit_files(writing *w) {
  for (int i = 0; i < w->count; i++) {
    char *part = w->files[i].part;
    w->files[i].part = NULL;
    const bool done = mix_file_commit(part, w->files[i].path, w->call);
    mix_free(part);
    if (!done) return false;
  }
  return true;
}

static void release_files(writing *w) {
  for (int i = 0; i < w->count; i++) {
    if (w->files[i].part) remove(w->files[i].part);
    mix_free(w->files[i].part);
    mix_free(w->files[i].path);
  }
  mix_free(w->files);
}

/* ---- groups ---- */

/* The first name stands alone; others make a list of it. */
static bool note_shard(writing *w, const char *group) {
  char key[1024];
  const char *name = file_name(w->files[w->count - 1].path);
  snprintf(key, sizeof key, "/%s", group);
  json_t *value = json_object_get(w->weight_map, key);
  if (!value) return mix_json_set(w->weight_map, key, mix_json_name(name));
  if (json_is_string(value)) {
    json_t *list = json_array();
    if (!mix_json_append(list, json_incref(value)) || !mix_json_set(w->weight_map, key, list)) return false;
    value = list;
  }
  const char *last = json_string_value(json_array_get(value, json_array_size(value) - 1));
  return (last && !strcmp(last, name)) || mix_json_append(value, mix_json_name(name));
}

static bool write_value(writing *w, const char *group, int number, mix_variable *variable) {
  char text[16];
  const double size = (double)mix_value_bytes(variable->dtype, variable->shape);
  if (size > w->limit)
    return mix_fail_value("%s: '%s' has %.0f bytes, more than a shard of max_shard_size, which is %.0f; "
                          "expected a larger max_shard_size",
                          w->call, variable->name, size, w->limit);
  if (w->size + size > w->limit && !(begin_shard(w) && mix_hdf5_write_group(w->file, group))) return false;
  w->size += size;
  w->total += size;
  snprintf(text, sizeof text, "%d", number);
  const char *path = mix_join_path(group, text);
  return path && mix_write_variable(w->file, path, variable, w->model->semantics->bfloat16_saved, true) &&
         note_shard(w, group);
}

static bool write_object(void *context, const char *path, const char *name, mix_list *variables) {
  writing *w = context;
  const char *group = mix_join_path(path, "vars");
  if (!group || !mix_hdf5_write_group(w->file, group)) return false;
  if (w->model->semantics->saved_objects_named && !mix_hdf5_write_text(w->file, group, "name", name))
    return false;
  for (int i = 0; i < mix_list_count(variables); i++)
    if (!write_value(w, group, i, mix_list_items(variables)[i])) return false;
  return true;
}

bool mix_weight_shards_write(mix_model *model, const char *path, double limit, const char *call) {
  writing w = {.model = model, .path = path, .call = call, .limit = limit, .weight_map = json_object()};
  const bool done = begin_shard(&w) && mix_visit_weight_tree(model, write_object, &w) && end_shard(&w) &&
                    write_index(&w) && commit_files(&w);
  mix_release(w.file);
  json_decref(w.weight_map);
  release_files(&w);
  return done && !mix_failed();
}
