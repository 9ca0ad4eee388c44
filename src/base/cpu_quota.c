/* Control groups: Linux, Documentation/admin-guide/cgroup-v2.rst, scheduler/sched-bwc.rst (version 1), and
 * proc_pid_mountinfo(5). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* strchrnul */
#endif
#include "base/cpu_quota.h"
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 3 * PATH_MAX, PATH = 2 * PATH_MAX };

/* ---- one group ---- */

/* The first line of the file, without its end. */
static bool read_line(const char *folder, const char *file, char *line, int size) {
  char path[PATH + 32];
  snprintf(path, sizeof path, "%s/%s", folder, file);
  FILE *stream = fopen(path, "re");
  if (!stream) return false;
  const bool good = fgets(line, size, stream) != NULL;
  fclose(stream);
  if (good) line[strcspn(line, "\n")] = '\0';
  return good;
}

/* "max", -1 and what is no number: no limit. */
static void lower(int *least, const char *quota, const char *period) {
  const long long limit = strtoll(quota, NULL, 10), whole = strtoll(period, NULL, 10);
  if (limit <= 0 || whole <= 0) return;
  const long long cpus = limit / whole + (limit % whole > 0);
  if (cpus < INT_MAX && (*least == 0 || cpus < *least)) *least = (int)cpus;
}

static void lower_to_group(int *least, const char *folder, int version) {
  char quota[64], period[64];
  if (version == 2) {
    if (!read_line(folder, "cpu.max", quota, sizeof quota)) return;
    const char *space = strchr(quota, ' ');
    lower(least, quota, space ? space : " 100000"); /* the kernel's period where none is written */
  } else if (read_line(folder, "cpu.cfs_quota_us", quota, sizeof quota) &&
             read_line(folder, "cpu.cfs_period_us", period, sizeof period)) {
    lower(least, quota, period);
  }
}

/* ---- the groups of this process ---- */

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
static void lower_to_groups(int *least, const char *root, const char *mount_point, const char *group,
                            int version) {
  char folder[PATH];
  const size_t top = strlen(root) + strlen(mount_point);
  if ((size_t)snprintf(folder, sizeof folder, "%s%s%s", root, mount_point, group) >= sizeof folder) return;
  for (;;) {
    lower_to_group(least, folder, version);
    char *slash = strrchr(folder, '/');
    if (!slash || (size_t)(slash - folder) < top) return;
    *slash = '\0';
  }
}

/* "36 35 0:28 /docker/1 /sys/fs/cgroup/cpu ro,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct": the folder
 * that is mounted, where, and after the hyphen type, source and options. */
static void lower_to_mount(int *least, const char *root, char *line, const char *group, int version) {
  enum { MOUNTED = 3, MOUNT_POINT = 4, FIELDS = 5 };
  char *fields[FIELDS] = {NULL}, *rest = line, *after = strstr(line, " - ");
  char type[32], options[1024];
  for (int i = 0; i < FIELDS; i++) fields[i] = strsep(&rest, " ");
  if (!rest || !after || after < rest - 1) return;
  if (sscanf(after, " - %31s %*s %1023s", type, options) != 2) return;
  if (version == 2 ? strcmp(type, "cgroup2") != 0 : strcmp(type, "cgroup") || !in_list(options, "cpu"))
    return;
  unescape(fields[MOUNTED]);
  unescape(fields[MOUNT_POINT]);
  lower_to_groups(least, root, fields[MOUNT_POINT], below(group, fields[MOUNTED]), version);
}

static FILE *open_list(const char *root, const char *file) {
  char path[PATH];
  snprintf(path, sizeof path, "%s/proc/self/%s", root, file);
  return fopen(path, "re");
}

static void lower_to_mounts(int *least, const char *root, const char *group, int version) {
  char line[LINE];
  FILE *mounts = open_list(root, "mountinfo");
  while (mounts && fgets(line, sizeof line, mounts)) {
    line[strcspn(line, "\n")] = '\0';
    lower_to_mount(least, root, line, group, version);
  }
  if (mounts) fclose(mounts);
}

int mix_cpu_quota(const char *root) {
  char line[LINE];
  int least = 0;
  FILE *groups = open_list(root, "cgroup");
  while (groups && fgets(line, sizeof line, groups)) { /* "4:cpu,cpuacct:/docker/1", "0::/docker/1" */
    char *rest = line;
    line[strcspn(line, "\n")] = '\0';
    const char *number = strsep(&rest, ":"), *controllers = strsep(&rest, ":");
    if (!rest) continue;
    const int version = !strcmp(number, "0") && !*controllers ? 2 : 1;
    if (version == 2 || in_list(controllers, "cpu")) lower_to_mounts(&least, root, rest, version);
  }
  if (groups) fclose(groups);
  return least;
}
