/* Replacing several files together. */
#include "formats/file_set.h"

#include "base/alloc.h"
#include "base/error.h"
#include <dirent.h>
#include <string.h>
#include <unistd.h>

/* Takes the path. */
static bool add_path(mix_file_set *set, char *path) {
  if (path && set->count == MIX_FILE_SET_LIMIT) {
    mix_fail_value("%s: %s is one file too many; expected %d", set->call, path, MIX_FILE_SET_LIMIT);
    mix_free(path);
    return false;
  }
  if (path) set->files[set->count++].path = path;
  return path;
}

bool mix_file_set_add(mix_file_set *set, const char *name, const mix_piece_source *source) {
  if (!add_path(set, mix_path_join(set->folder, name))) return false;
  const char *path = set->files[set->count - 1].path;
  char *part = mix_file_part(path, set->call);
  if (part && mix_file_write_source(part, path, source, set->call) &&
      mix_file_settle(part, path, set->call)) {
    set->files[set->count - 1].part = part;
    return true;
  }
  mix_free(part);
  return false;
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
  return add_path(set, mix_path_join(set->folder, name));
}

static bool commit(mix_file_set *set, int index) {
  char *part = set->files[index].part, *path = set->files[index].path;
  if (!part) return mix_file_remove(path, set->call);
  set->files[index].part = NULL;
  const bool done = mix_file_commit(part, path, set->call);
  mix_free(part);
  return done;
}

bool mix_file_set_commit(mix_file_set *set) {
  bool done = set->count > 0 && mix_file_remove(set->files[set->count - 1].path, set->call);
  for (int i = 0; i < set->count && done; i++) done = commit(set, i);
  return done;
}

void mix_file_set_free(mix_file_set *set) {
  for (int i = 0; i < set->count; i++) {
    if (set->files[i].part) unlink(set->files[i].part);
    mix_free(set->files[i].part);
    mix_free(set->files[i].path);
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
