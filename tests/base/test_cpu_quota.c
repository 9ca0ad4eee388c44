/* The CPU quota, read from folders that look like a machine's /proc and /sys/fs/cgroup. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* mkdtemp, CPU_COUNT */
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cpu_quota.h"
#include "base/processor.h"
#include "support/folder.h"
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define root test_folder

#define MOUNT_V2 "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"

static int of_version_2(const char *text) {
  write_in_folder("/proc/self/cgroup", "0::/\n");
  write_in_folder("/proc/self/mountinfo", MOUNT_V2);
  write_in_folder("/sys/fs/cgroup/cpu.max", text);
  return mix_cpu_quota(root);
}

static void quotas_of_version_2(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int cpus;
  } table[] = {{"max 100000\n", 0},       {"100000 100000\n", 1}, {"100001 100000\n", 2},
               {"50000 100000\n", 1},     {"1000 1000000\n", 1},  {"250000 100000\n", 3},
               {"6400000 100000\n", 64},  {"200000\n", 2},        {"", 0},
               {"nonsense\n", 0},         {"-1 100000\n", 0},     {"100000 0\n", 0},
               {"99999999999999 1\n", 0}, {"max\n", 0},           {"3 2", 2}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (of_version_2(table[i].text) != table[i].cpus)
      fail_msg("cpu.max \"%s\": %d, not %d", table[i].text, mix_cpu_quota(root), table[i].cpus);
}

static int of_version_1(const char *quota, const char *period) {
  write_in_folder("/proc/self/cgroup", "9:memory:/\n4:cpuset:/x\n3:cpu,cpuacct:/\n");
  write_in_folder(
      "/proc/self/mountinfo",
      "31 23 0:27 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
      "32 23 0:28 / /sys/fs/cgroup/cpu,cpuacct rw shared:5 master:1 - cgroup cgroup rw,cpu,cpuacct\n");
  write_in_folder("/sys/fs/cgroup/cpuset/cpu.cfs_quota_us", "1\n"); /* another controller's folder */
  write_in_folder("/sys/fs/cgroup/cpuset/cpu.cfs_period_us", "1\n");
  write_in_folder("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", quota);
  write_in_folder("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", period);
  return mix_cpu_quota(root);
}

static void quotas_of_version_1(void **state) {
  (void)state;
  assert_int_equal(of_version_1("-1\n", "100000\n"), 0);
  assert_int_equal(of_version_1("150000\n", "100000\n"), 2);
  assert_int_equal(of_version_1("1000\n", "100000\n"), 1);
  assert_int_equal(of_version_1("300000\n", "100000\n"), 3);
  assert_int_equal(of_version_1("300000\n", "0\n"), 0);
}

/* The least of a group and all around it counts, up to what is mounted. */
static void groups_within_groups(void **state) {
  (void)state;
  write_in_folder("/proc/self/cgroup", "0::/machine/box 1/job\n");
  write_in_folder("/proc/self/mountinfo", MOUNT_V2);
  write_in_folder("/sys/fs/cgroup/machine/cpu.max", "800000 100000\n");
  write_in_folder("/sys/fs/cgroup/machine/box 1/cpu.max", "300000 100000\n");
  write_in_folder("/sys/fs/cgroup/machine/box 1/job/cpu.max", "max 100000\n");
  write_in_folder("/sys/fs/cgroup/machine/other/cpu.max", "100000 100000\n");
  write_in_folder("/sys/fs/cpu.max", "100000 100000\n"); /* above the mount point */
  assert_int_equal(mix_cpu_quota(root), 3);
  write_in_folder("/sys/fs/cgroup/machine/box 1/job/cpu.max", "150000 100000\n");
  assert_int_equal(mix_cpu_quota(root), 2);
  write_in_folder("/sys/fs/cgroup/machine/cpu.max", "20000 100000\n");
  assert_int_equal(mix_cpu_quota(root), 1);
}

/* A container sees its own group mounted at the top, whatever the host calls it. */
static void containers(void **state) {
  (void)state;
  write_in_folder("/proc/self/cgroup", "5:cpu,cpuacct:/docker/1f\n0::/docker/1f\n");
  write_in_folder("/proc/self/mountinfo",
                  "40 30 0:28 /docker/1f /sys/fs/cgroup/cpu ro,nosuid - cgroup cgroup rw,cpu,cpuacct\n");
  write_in_folder("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
  write_in_folder("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  assert_int_equal(mix_cpu_quota(root), 2);
  write_in_folder("/proc/self/cgroup", "5:cpu,cpuacct:/docker/1f/inner\n");
  write_in_folder("/sys/fs/cgroup/cpu/inner/cpu.cfs_quota_us", "100000\n");
  write_in_folder("/sys/fs/cgroup/cpu/inner/cpu.cfs_period_us", "100000\n");
  assert_int_equal(mix_cpu_quota(root), 1);
  write_in_folder("/proc/self/cgroup", "5:cpu,cpuacct:/docker/1fa\n"); /* not below /docker/1f */
  assert_int_equal(mix_cpu_quota(root), 2);
  write_in_folder("/proc/self/cgroup", "5:cpu,cpuacct:/../outside\n");
  assert_int_equal(mix_cpu_quota(root), 2);
}

static void both_versions_and_spaces(void **state) {
  (void)state;
  write_in_folder("/proc/self/cgroup", "2:cpu:/a\n0::/a\n");
  write_in_folder("/proc/self/mountinfo", "30 23 0:26 / /one\\040two rw - cgroup2 cgroup2 rw\n"
                                          "31 23 0:27 / /v1 rw - cgroup cgroup rw,cpu\n");
  write_in_folder("/one two/a/cpu.max", "400000 100000\n");
  assert_int_equal(mix_cpu_quota(root), 4);
  write_in_folder("/v1/a/cpu.cfs_quota_us", "300000\n");
  write_in_folder("/v1/a/cpu.cfs_period_us", "100000\n");
  assert_int_equal(mix_cpu_quota(root), 3);
}

static void what_cannot_be_read_is_no_limit(void **state) {
  (void)state;
  assert_int_equal(mix_cpu_quota(root), 0);
  static const char *const groups[] = {"", "\n", "0\n", "0:\n", "0::\n", "::::\n", "0::/x", ":cpu:"};
  static const char *const mounts[] = {"",
                                       "\n",
                                       " - cgroup2 cgroup2 rw\n",
                                       "1 2 3 4 - cgroup2 cgroup2 rw\n",
                                       "1 2 3 / /x y - cgroup2\n",
                                       "1 2 3 / /\\0 y - cgroup2 c rw\n",
                                       MOUNT_V2};
  for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
    for (size_t m = 0; m < sizeof mounts / sizeof *mounts; m++) {
      write_in_folder("/proc/self/cgroup", groups[g]);
      write_in_folder("/proc/self/mountinfo", mounts[m]);
      assert_int_equal(mix_cpu_quota(root), 0);
    }
}

static void cores_are_those_of_affinity_and_quota(void **state) {
  (void)state;
  cpu_set_t all;
  assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
  const int quota = mix_cpu_quota(""), cores = CPU_COUNT(&all);
  assert_int_equal(mix_cpu_cores(), quota && quota < cores ? quota : cores);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(quotas_of_version_2, folder_begin, folder_end),
      cmocka_unit_test_setup_teardown(quotas_of_version_1, folder_begin, folder_end),
      cmocka_unit_test_setup_teardown(groups_within_groups, folder_begin, folder_end),
      cmocka_unit_test_setup_teardown(containers, folder_begin, folder_end),
      cmocka_unit_test_setup_teardown(both_versions_and_spaces, folder_begin, folder_end),
      cmocka_unit_test_setup_teardown(what_cannot_be_read_is_no_limit, folder_begin, folder_end),
      cmocka_unit_test(cores_are_those_of_affinity_and_quota),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
