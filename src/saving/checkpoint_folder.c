/* The files of a checkpoint folder. */
#include "saving/checkpoint_folder.h"

#include "base/alloc.h"
#include "base/error.h"
#include "formats/file.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "checkpoint-"
#define SUFFIX ".npz"

/* The number in a checkpoint's file name; -1: another name. `*rest` is what follows the number. */
static int64_t number_of(const char *name, const char **rest) {
  size_t prefix = sizeof PREFIX - 1;
  if (strncmp(name, PREFIX, prefix) != 0 || name[prefix] < '0' || name[prefix] > '9') return -1;
  char *end;
  errno = 0;
  long long number = strtoll(name + prefix, &end, 10);
  *rest = end;
  return errno ? -1 : number;
}

static int64_t checkpoint_number(const char *name) {
  const char *rest;
  int64_t number = number_of(name, &rest);
  return number >= 0 && !strcmp(rest, SUFFIX) ? number : -1;
}

int64_t mix_checkpoint_folder_newest(const char *folder, int64_t limit, const char *call) {
  DIR *directory = opendir(folder);
  if (!directory) {
    if (errno != ENOENT) mix_fail_io("%s: the folder %s cannot be read: %s", call, folder, strerror(errno));
    return -1;
  }
  int64_t newest = -1;
  for (struct dirent *entry; (entry = readdir(directory));) {
    int64_t number = checkpoint_number(entry->d_name);
    if (number > newest && number < limit) newest = number;
  }
  closedir(directory);
  return newest;
}

char *mix_checkpoint_folder_path(const char *folder, int64_t number) {
  char name[64];
  snprintf(name, sizeof name, PREFIX "%lld" SUFFIX, (long long)number);
  return mix_path_join(folder, name);
}

/* True for a part file of a checkpoint that nobody writes any more. `alone`: no other process uses the
 * folder. */
static bool is_stale_part(const char *name, bool alone) {
  const char *rest;
  if (number_of(name, &rest) < 0 || strncmp(rest, SUFFIX, sizeof SUFFIX - 1) != 0) return false;
  mix_part_state state = mix_part_state_of(name, name, (size_t)(rest - name) + sizeof SUFFIX - 1);
  return state == MIX_PART_STALE || (alone && state == MIX_PART_UNKNOWN);
}

void mix_checkpoint_folder_prune(const char *folder, int64_t keep, int64_t keep_too, bool alone) {
  DIR *directory = opendir(folder);
  if (!directory) return;
  for (struct dirent *entry; (entry = readdir(directory));) {
    int64_t number = checkpoint_number(entry->d_name);
    if ((number >= 0 && number != keep && number != keep_too) || is_stale_part(entry->d_name, alone))
      (void)unlinkat(dirfd(directory), entry->d_name, 0);
  }
  closedir(directory);
}

void mix_checkpoint_folder_remove(const char *folder, bool alone) {
  mix_checkpoint_folder_prune(folder, -1, -1, alone);
  (void)rmdir(folder); /* fails if other files are in it */
}
