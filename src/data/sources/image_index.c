#include "data/sources/image_index.h"
#include "base/alloc.h"
#include "base/error.h"
#include "formats/file.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* ---- names ---- */

bool mix_names_add(mix_names *names, const char *name) {
  if (names->count == names->room) {
    const int64_t room = names->room ? 2 * names->room : 64;
    const char **items = mix_alloc((size_t)room * sizeof *items);
    if (!items) return false;
    if (names->count) memcpy(items, names->items, (size_t)names->count * sizeof *items);
    mix_free(names->items);
    names->items = items;
    names->room = room;
  }
  const char *interned = mix_intern(name);
  if (interned) names->items[names->count++] = interned;
  return interned;
}

static int by_text(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}
static void sort(mix_names *names) {
  if (names->count) qsort(names->items, (size_t)names->count, sizeof *names->items, by_text);
}
void mix_names_release(mix_names *names) {
  mix_free(names->items);
  *names = (mix_names){NULL};
}

/* ---- folders ---- */

static bool is_image(const char *name) {
  static const char *const ends[] = {".bmp", ".gif", ".jpeg", ".jpg", ".png"};
  const size_t length = strlen(name);
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
    if (length >= strlen(ends[i]) && !strcasecmp(name + length - strlen(ends[i]), ends[i])) return true;
  return false;
}

typedef enum entry_kind { OTHER, A_FILE, A_FOLDER, A_LINK_TO_FOLDER } entry_kind;

static entry_kind kind_of(const char *path) {
  struct stat target, itself;
  if (stat(path, &target) || lstat(path, &itself)) return OTHER;
  if (!S_ISDIR(target.st_mode)) return A_FILE;
  return S_ISLNK(itself.st_mode) ? A_LINK_TO_FOLDER : A_FOLDER;
}

/* Adds the names of the entries of a folder that are images, or the paths of those that are folders; either
 * may be NULL. */
static bool list(const char *folder, mix_names *images, mix_names *folders, bool paths, bool follow_links) {
  DIR *handle = opendir(folder);
  if (!handle)
    return mix_fail_io("image_dataset_from_directory: cannot read the folder %s: %s", folder,
                       strerror(errno));
  for (const struct dirent *entry; !mix_failed() && (entry = readdir(handle));) {
    if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
    char *path = mix_path_join(folder, entry->d_name);
    const entry_kind kind = path ? kind_of(path) : OTHER;
    if (images && kind == A_FILE && is_image(entry->d_name)) mix_names_add(images, entry->d_name);
    if (folders && (kind == A_FOLDER || (kind == A_LINK_TO_FOLDER && follow_links)))
      mix_names_add(folders, paths ? path : entry->d_name);
    mix_free(path);
  }
  closedir(handle);
  return !mix_failed();
}

bool mix_index_folders(const char *directory, mix_names *folders) {
  if (!list(directory, NULL, folders, false, true)) return false;
  int64_t kept = 0;
  for (int64_t i = 0; i < folders->count; i++)
    if (folders->items[i][0] != '.') folders->items[kept++] = folders->items[i];
  folders->count = kept;
  sort(folders);
  return true;
}

/* A chain of links that leads back to a folder above would never end. */
enum { MAX_FOLDERS = 1 << 20 };

bool mix_index_images(const char *folder, bool follow_links, mix_names *paths) {
  mix_names folders = {NULL}, files = {NULL};
  bool good = mix_names_add(&folders, folder);
  for (int64_t i = 0; good && i < folders.count; i++) {
    good = list(folders.items[i], NULL, &folders, true, follow_links);
    if (folders.count > MAX_FOLDERS)
      good = mix_fail_value(
                 "image_dataset_from_directory: more than %d folders in %s; do its links lead in a circle?",
                 MAX_FOLDERS, folder) != NULL;
  }
  sort(&folders);
  for (int64_t i = 0; good && i < folders.count; i++) {
    files.count = 0;
    good = list(folders.items[i], &files, NULL, false, follow_links);
    sort(&files);
    for (int64_t f = 0; good && f < files.count; f++) {
      char *path = mix_path_join(folders.items[i], files.items[f]);
      good = path && mix_names_add(paths, path);
      mix_free(path);
    }
  }
  mix_names_release(&folders);
  mix_names_release(&files);
  return good;
}
