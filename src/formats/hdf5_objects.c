/* The objects of an HDF5 file in the making. */
#include "formats/hdf5_objects.h"

#include "base/alloc.h"
#include "base/error.h"
#include <string.h>

/* ---- members of a group ---- */

/* The next name of a path, whose slashes may be several; length 0: the path has ended. */
static const char *next_name(const char *path, size_t *length) {
  path += strspn(path, "/");
  *length = strcspn(path, "/");
  return path;
}

/* Compares as strcmp does, which is the order of symbol tables. */
static int compare_names(const char *name, size_t length, const char *other) {
  const int order = strncmp(name, other, length);
  return order ? order : other[length] ? -1 : 0;
}

/* Where the name is, or belongs. */
static int place_of(const mix_hdf5_object *group, const char *name, size_t length, bool *found) {
  int low = 0, high = group->count;
  *found = false;
  while (low < high && !*found) {
    const int middle = low + (high - low) / 2;
    const int order = compare_names(name, length, group->members[middle]->name);
    if (!order) *found = true, low = middle;
    if (order < 0) high = middle;
    if (order > 0) low = middle + 1;
  }
  return low;
}

static mix_hdf5_object *member_of(const mix_hdf5_object *group, const char *name, size_t length) {
  bool found = false;
  const int place = group->is_group ? place_of(group, name, length, &found) : 0;
  return found ? group->members[place] : NULL;
}

/* ---- making objects ---- */

static void free_object(mix_hdf5_object *object) {
  for (int i = 0; i < object->text_count; i++) {
    mix_free(object->texts[i].name);
    mix_free(object->texts[i].bytes);
  }
  mix_release(object->tensor);
  mix_free(object->texts);
  mix_free(object->members);
  mix_free(object->name);
  mix_free(object);
}

static mix_hdf5_object *add_object(mix_hdf5_objects *objects, const char *name, size_t length,
                                   bool is_group) {
  if (!mix_reserve(&objects->items, &objects->capacity, objects->count + 1, sizeof *objects->items))
    return NULL;
  mix_hdf5_object *object = mix_calloc(1, sizeof *object);
  if (!object) return NULL;
  object->is_group = is_group;
  object->name = mix_calloc(length + 1, 1);
  if (!object->name) return free_object(object), NULL;
  memcpy(object->name, name, length);
  return objects->items[objects->count++] = object;
}

static mix_hdf5_object *add_member(mix_hdf5_objects *objects, mix_hdf5_object *group, const char *name,
                                   size_t length, bool is_group) {
  bool found;
  if (!mix_reserve(&group->members, &group->capacity, group->count + 1, sizeof *group->members)) return NULL;
  mix_hdf5_object *object = add_object(objects, name, length, is_group);
  if (!object) return NULL;
  const int place = place_of(group, name, length, &found);
  mix_hdf5_object **at = group->members + place;
  memmove(at + 1, at, (size_t)(group->count++ - place) * sizeof *at);
  return *at = object;
}

bool mix_hdf5_objects_begin(mix_hdf5_objects *objects) {
  *objects = (mix_hdf5_objects){0};
  return add_object(objects, "", 0, true);
}

void mix_hdf5_objects_end(mix_hdf5_objects *objects) {
  for (int i = 0; i < objects->count; i++) free_object(objects->items[i]);
  mix_free(objects->items);
  *objects = (mix_hdf5_objects){0};
}

/* ---- paths ---- */

/* The last object of the path that is there, and what is left of the path behind it. */
static mix_hdf5_object *walk_path(const mix_hdf5_objects *objects, const char **path) {
  mix_hdf5_object *object = objects->items[0], *member = object;
  size_t length;
  for (*path = next_name(*path, &length); length && member; *path = next_name(*path, &length)) {
    member = member_of(object, *path, length);
    if (!member) break;
    object = member;
    *path += length;
  }
  return object;
}

mix_hdf5_object *mix_hdf5_find_object(const mix_hdf5_objects *objects, const char *path) {
  mix_hdf5_object *object = walk_path(objects, &path);
  return *path ? NULL : object;
}

bool mix_hdf5_path_is_free(const mix_hdf5_objects *objects, const char *path) {
  const mix_hdf5_object *object = walk_path(objects, &path);
  return *path && object->is_group;
}

mix_hdf5_object *mix_hdf5_make_object(mix_hdf5_objects *objects, const char *path, bool is_group,
                                      const char *call) {
  const char *left = path;
  mix_hdf5_object *object = walk_path(objects, &left);
  size_t length;
  if (*left && !object->is_group)
    return mix_fail_value("%s: '%.200s' cannot be written below '%.200s', which is an array; expected "
                          "another name",
                          call, path, object->name);
  for (left = next_name(left, &length); length && object;) {
    const char *name = left;
    const size_t size = length;
    left = next_name(name + size, &length);
    object = add_member(objects, object, name, size, is_group || length);
  }
  return object;
}

/* ---- attributes ---- */

static bool has_text(const mix_hdf5_object *object, const char *name) {
  for (int i = 0; i < object->text_count; i++)
    if (!strcmp(object->texts[i].name, name)) return true;
  return false;
}

bool mix_hdf5_add_text(mix_hdf5_object *object, mix_hdf5_text text, const char *call) {
  if (has_text(object, text.name))
    mix_fail_value("%s: '%.200s' has an attribute '%.200s' already; expected another name", call,
                   object->name, text.name);
  else if (mix_reserve(&object->texts, &object->text_capacity, object->text_count + 1, sizeof *object->texts))
    text.name = mix_strdup(text.name);
  if (!mix_failed()) return object->texts[object->text_count++] = text, true;
  mix_free(text.bytes);
  return false;
}
