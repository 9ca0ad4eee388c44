/* Threads of the data pipeline in this process, by their name. */
#ifndef TESTS_SUPPORT_INPUT_THREADS_H
#define TESTS_SUPPORT_INPUT_THREADS_H

#include "data/pipeline/background.h"
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static inline int input_threads(void) {
  DIR *tasks = opendir("/proc/self/task");
  int count = 0;
  for (const struct dirent *task; tasks && (task = readdir(tasks));) {
    char path[300], name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
    FILE *file = fopen(path, "r");
    if (file && fgets(name, sizeof name, file)) count += !strcmp(name, MIX_INPUT_THREAD "\n");
    if (file) fclose(file);
  }
  if (tasks) closedir(tasks);
  return count;
}

/* A thread that was joined may stay in /proc for a moment, and one that begins has its name after a moment.
 */
static inline bool await_input_threads(int count) {
  for (int tries = 0; input_threads() != count; tries++) {
    if (tries == 60000) return false;
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  return true;
}

#endif
