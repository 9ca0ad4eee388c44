/* Linux: proc_meminfo(5), Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst. */
#include "base/machine_memory.h"
#include "base/control_groups.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 128 };

/* Version 1 writes the largest number of whole pages where there is no limit. */
static const uint64_t unlimited = INT64_MAX / 2;

static uint64_t bytes_of(const char *text) {
  char *end;
  errno = 0;
  const long long bytes = strtoll(text, &end, 10);
  return errno || end == text || bytes < 0 ? 0 : (uint64_t)bytes;
}

static void lower(void *context, const char *folder, int version) {
  mix_machine_memory *memory = context;
  char line[LINE];
  if (!mix_read_first_line(folder, version == 2 ? "memory.max" : "memory.limit_in_bytes", line, sizeof line))
    return;
  const uint64_t limit = bytes_of(line);
  if (limit && limit < unlimited && (!memory->limit || limit < memory->limit)) memory->limit = limit;
}

mix_machine_memory mix_find_machine_memory(const char *root) {
  mix_machine_memory memory = {0};
  char folder[4096], line[LINE];
  const size_t length = strlen(root);
  if (length + sizeof "/proc" <= sizeof folder) {
    memcpy(folder, root, length);
    memcpy(folder + length, "/proc", sizeof "/proc");
    /* "MemTotal:       24737532 kB", in the first line */
    if (mix_read_first_line(folder, "meminfo", line, sizeof line) && !strncmp(line, "MemTotal:", 9))
      memory.physical = bytes_of(line + 9) * 1024;
  }
  mix_visit_control_groups(root, "memory", lower, &memory);
  return memory;
}
