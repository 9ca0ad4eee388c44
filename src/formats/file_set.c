/* Replacing several files together. */
#include "formats/file_set.h"

#include "base/alloc.h"
#include "base/error.h"
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

static bool add_target(mix_file_set *set, const char *path) {
  if (set->count == MIX_FILE_SET_LIMIT)
    return mix_fail_value("%s: %s is one file too many; expected %d", set->call, path, MIX_FILE_SET_LIMIT);
  char *target = mix_file_target(path);
  if (target) set->files[set->count++].target = target;
  return target;
}

bool mix_file_set_add(mix_file_set *set, const char *name, const mix_piece_source *source) {
  char *path = mix_path_join(set->folder, name), *part = NULL;
  const bool done = path && add_target(set, path) && (part = mix_file_part(path, set->call)) &&
                    mix_file_write_source(part, path, source, set->call) &&
                    mix_file_settle(part, path, set->call);
  if (done)
    set->files[set->count - 1].part = part;
  else
    mix_free(part);
  mix_free(path);
  return done;
}

static bool next_text(void *context, mix_bytes *piece) {
  const char **text = context;
  *piece = (mix_bytes){*text, strlen(*text)};
  *text += piece->size;
  return true;
}

bool mix_file_set_add_text(mix_file_set *set, const char *name, const char *text) {
  return mix_file_set_add(set, name,
                          &(mix_piece_source){.size = strlen(text), .next = next_text, .context = &text});
}

bool mix_file_set_remove(mix_file_set *set, const char *name) {
  char *path = mix_path_join(set->folder, name);
  const bool done = path && add_target(set, path);
  mix_free(path);
  return done;
}

/* From the first step on nothing is taken back: parts that stay behind are the new files. */
bool mix_file_set_commit(mix_file_set *set) {
  const char *at = set->count ? set->files[set->count - 1].target : set->folder;
  bool done = set->count && mix_file_take_place(NULL, at);
  set->begun = true;
  for (int i = 0; i < set->count && done; i++) {
    at = set->files[i].target;
    done = mix_file_take_place(set->files[i].part, at);
  }
  return done || mix_fail_io("%s: %s cannot be replaced: %s; the new files of the folder have \".part-\" in "
                             "their names",
                             set->call, at, strerror(errno));
}

void mix_file_set_free(mix_file_set *set) {
  for (int i = 0; i < set->count; i++) {
    if (set->files[i].part && !set->begun) unlink(set->files[i].part);
    mix_free(set->files[i].part);
    mix_free(set->files[i].target);
  }
  *set = (mix_file_set){0};
}

bool mix_file_set_interrupted(const char *folder, const char *mark) {
  DIR *directory = opendir(folder);
  bool found = false;
  for (struct dirent *entry; directory && !found && (entry = readdir(directory));)
    found = mix_part_state_of(entry->d_name, mark, strlen(mark)) != MIX_PART_NONE;
  if (directory) closedir(directory);
  return found;
}
