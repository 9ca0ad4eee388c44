/* The memory of a machine and of its control groups, read from folders that look like /proc and
 * /sys/fs/cgroup. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* mkdtemp */
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/machine_memory.h"
#include "support/folder.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define root test_folder

static void memory_of_the_machine(void **state) {
  (void)state;
  static const struct {
    const char *text;
    uint64_t bytes;
  } table[] = {{"MemTotal:       24684092 kB\nMemFree:  1 kB\n", 24684092ull * 1024},
               {"MemTotal: 1 kB\n", 1024},
               {"MemFree: 1 kB\n", 0},
               {"MemTotal: many\n", 0},
               {"MemTotal: -3 kB\n", 0},
               {"", 0}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    write_in_folder("/proc/meminfo", table[i].text);
    assert_int_equal(mix_find_machine_memory(root).physical, table[i].bytes);
  }
}

/* The least of a group and all around it counts. */
static void limits_of_version_2(void **state) {
  (void)state;
  write_in_folder("/proc/self/cgroup", "0::/machine/job\n");
  write_in_folder("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  assert_int_equal(mix_find_machine_memory(root).limit, 0);
  write_in_folder("/sys/fs/cgroup/machine/job/memory.max", "max\n");
  assert_int_equal(mix_find_machine_memory(root).limit, 0);
  write_in_folder("/sys/fs/cgroup/machine/memory.max", "536870912\n");
  assert_int_equal(mix_find_machine_memory(root).limit, 536870912);
  write_in_folder("/sys/fs/cgroup/machine/job/memory.max", "1073741824\n");
  assert_int_equal(mix_find_machine_memory(root).limit, 536870912);
  write_in_folder("/sys/fs/cgroup/machine/job/memory.max", "4096\n");
  assert_int_equal(mix_find_machine_memory(root).limit, 4096);
}

/* Without a limit this version writes the largest number of whole pages. */
static void limits_of_version_1(void **state) {
  (void)state;
  write_in_folder("/proc/self/cgroup", "4:memory:/docker/1\n3:cpu:/x\n");
  write_in_folder("/proc/self/mountinfo", "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                                          "36 31 0:33 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n");
  write_in_folder("/sys/fs/cgroup/cpu/x/memory.limit_in_bytes", "1\n"); /* another controller's folder */
  write_in_folder("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  assert_int_equal(mix_find_machine_memory(root).limit, 0);
  write_in_folder("/sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "2147483648\n");
  write_in_folder("/sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "9223372036854771712\n");
  assert_int_equal(mix_find_machine_memory(root).limit, 2147483648u);
}

static void what_cannot_be_read_is_no_limit(void **state) {
  (void)state;
  static const char *const limits[] = {"", "\n", "many\n", "-1\n", "99999999999999999999999\n", "0\n"};
  assert_int_equal(mix_find_machine_memory(root).physical, 0);
  write_in_folder("/proc/self/cgroup", "0::/\n");
  write_in_folder("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    write_in_folder("/sys/fs/cgroup/memory.max", limits[i]);
    assert_int_equal(mix_find_machine_memory(root).limit, 0);
  }
}

static void this_machine_has_memory(void **state) {
  (void)state;
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  assert_int_equal(mix_find_machine_memory("").physical, (uint64_t)pages * (uint64_t)page);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(memory_of_the_machine, folder_begin, folder_end),
      cmocka_unit_test_setup_teardown(limits_of_version_2, folder_begin, folder_end),
      cmocka_unit_test_setup_teardown(limits_of_version_1, folder_begin, folder_end),
      cmocka_unit_test_setup_teardown(what_cannot_be_read_is_no_limit, folder_begin, folder_end),
      cmocka_unit_test(this_machine_has_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
