/* Linux, Documentation/admin-guide/cgroup-v2.rst, scheduler/sched-bwc.rst (version 1). */
#include "base/cpu_quota.h"
#include "base/control_groups.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* "max", -1 and what is no number: no limit. */
static void lower(int *least, const char *quota, const char *period) {
  const long long limit = strtoll(quota, NULL, 10), whole = strtoll(period, NULL, 10);
  if (limit <= 0 || whole <= 0) return;
  const long long cpus = limit / whole + (limit % whole > 0);
  if (cpus < INT_MAX && (*least == 0 || cpus < *least)) *least = (int)cpus;
}

static void lower_to_group(void *context, const char *folder, int version) {
  int *least = context;
  char quota[64], period[64];
  if (version == 2) {
    if (!mix_read_first_line(folder, "cpu.max", quota, sizeof quota)) return;
    const char *space = strchr(quota, ' ');
    lower(least, quota, space ? space : " 100000"); /* the kernel's period where none is written */
  } else if (mix_read_first_line(folder, "cpu.cfs_quota_us", quota, sizeof quota) &&
             mix_read_first_line(folder, "cpu.cfs_period_us", period, sizeof period)) {
    lower(least, quota, period);
  }
}

int mix_cpu_quota(const char *root) {
  int least = 0;
  mix_visit_control_groups(root, "cpu", lower_to_group, &least);
  return least;
}
