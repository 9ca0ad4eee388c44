/* The CPU quota of the control groups that this process is in. */
#pragma once

/* Whole CPUs, rounded up, at least 1: the least that the group of this process or a group around it allows,
 * by cpu.max (version 2) or cpu.cfs_quota_us (version 1). 0: no limit, or none that can be read. `root`
 * stands before all paths: "", or a test's folder. */
int mix_cpu_quota(const char *root);
