/* Control groups: Linux, Documentation/admin-guide/cgroup-v2.rst, and proc_pid_mountinfo(5). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* strchrnul */
#endif
#include "base/control_groups.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { LINE = 3 * PATH_MAX, PATH = 2 * PATH_MAX };

typedef struct visitor {
  const char *root, *controller;
  mix_control_group_visit *visit;
  void *context;
} visitor;

bool mix_read_first_line(const char *folder, const char *file, char *line, int size) {
  char path[PATH + 32];
  snprintf(path, sizeof path, "%s/%s", folder, file);
  FILE *stream = fopen(path, "re");
  if (!stream) return false;
  const bool good = fgets(line, size, stream) != NULL;
  fclose(stream);
  if (good) line[strcspn(line, "\n")] = '\0';
  return good;
}

static bool in_list(const char *list, const char *word) {
  const size_t length = strlen(word);
  for (const char *item = list; *item;) {
    const char *end = strchrnul(item, ',');
    if ((size_t)(end - item) == length && !strncmp(item, word, length)) return true;
    item = *end ? end + 1 : end;
  }
  return false;
}

/* mountinfo writes spaces and the like in paths as \040. */
static void unescape(char *text) {
  char *to = text;
  for (const char *from = text; *from; to++) {
    int number = 0, digits = 0;
    if (*from == '\\')
      while (digits < 3 && from[1 + digits] >= '0' && from[1 + digits] <= '7')
        number = number * 8 + from[1 + digits++] - '0';
    *to = digits == 3 ? (char)number : *from;
    from += digits == 3 ? 4 : 1;
  }
  *to = '\0';
}

/* The part of the group's path below the folder that is mounted. A group outside of it, as a namespace shows
 * it, counts as that folder. */
static const char *below(const char *group, const char *mounted) {
  const size_t length = strcmp(mounted, "/") ? strlen(mounted) : 0;
  const bool inside = !strncmp(group, mounted, length) && (group[length] == '/' || !group[length]);
  return inside && !strstr(group, "/..") && strcmp(group + length, "/") ? group + length : "";
}

/* The group and all around it, as far as they are mounted. */
static void visit_groups(const visitor *v, const char *mount_point, const char *group, int version) {
  char folder[PATH];
  const size_t top = strlen(v->root) + strlen(mount_point);
  if ((size_t)snprintf(folder, sizeof folder, "%s%s%s", v->root, mount_point, group) >= sizeof folder) return;
  for (;;) {
    v->visit(v->context, folder, version);
    char *slash = strrchr(folder, '/');
    if (!slash || (size_t)(slash - folder) < top) return;
    *slash = '\0';
  }
}

/* "36 35 0:28 /docker/1 /sys/fs/cgroup/cpu ro,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct": the folder
 * that is mounted, where, and after the hyphen type, source and options. */
static void visit_mount(const visitor *v, char *line, const char *group, int version) {
  enum { MOUNTED = 3, MOUNT_POINT = 4, FIELDS = 5 };
  char *fields[FIELDS] = {NULL}, *rest = line, *after = strstr(line, " - ");
  char type[32], options[1024];
  for (int i = 0; i < FIELDS; i++) fields[i] = strsep(&rest, " ");
  if (!rest || !after || after < rest - 1) return;
  if (sscanf(after, " - %31s %*s %1023s", type, options) != 2) return;
  if (version == 2 ? strcmp(type, "cgroup2") != 0
                   : strcmp(type, "cgroup") || !in_list(options, v->controller))
    return;
  unescape(fields[MOUNTED]);
  unescape(fields[MOUNT_POINT]);
  visit_groups(v, fields[MOUNT_POINT], below(group, fields[MOUNTED]), version);
}

static FILE *open_list(const char *root, const char *file) {
  char path[PATH];
  snprintf(path, sizeof path, "%s/proc/self/%s", root, file);
  return fopen(path, "re");
}

static void visit_mounts(const visitor *v, const char *group, int version) {
  char line[LINE];
  FILE *mounts = open_list(v->root, "mountinfo");
  while (mounts && fgets(line, sizeof line, mounts)) {
    line[strcspn(line, "\n")] = '\0';
    visit_mount(v, line, group, version);
  }
  if (mounts) fclose(mounts);
}

void mix_visit_control_groups(const char *root, const char *controller, mix_control_group_visit *visit,
                              void *context) {
  const visitor v = {root, controller, visit, context};
  char line[LINE];
  FILE *groups = open_list(root, "cgroup");
  while (groups && fgets(line, sizeof line, groups)) { /* "4:cpu,cpuacct:/docker/1", "0::/docker/1" */
    char *rest = line;
    line[strcspn(line, "\n")] = '\0';
    const char *number = strsep(&rest, ":"), *controllers = strsep(&rest, ":");
    if (!rest) continue;
    const int version = !strcmp(number, "0") && !*controllers ? 2 : 1;
    if (version == 2 || in_list(controllers, controller)) visit_mounts(&v, rest, version);
  }
  if (groups) fclose(groups);
}
