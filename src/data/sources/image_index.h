/* The files of a tree of folders, in Keras's order. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Sorted or in the order of their finding; the strings are interned. */
typedef struct mix_names {
  const char **items;
  int64_t count, room;
} mix_names;
bool mix_names_add(mix_names *names, const char *name);
void mix_names_release(mix_names *names);

/* The folders in a folder, sorted, without those whose names begin with a dot. False with the error recorded.
 */
bool mix_index_folders(const char *directory, mix_names *folders);
/* Adds the paths of the images in a folder and in the folders in it: folder by folder, sorted by their paths,
 * the files of each sorted. */
bool mix_index_images(const char *folder, bool follow_links, mix_names *paths);
