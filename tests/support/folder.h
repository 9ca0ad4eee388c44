/* A temporary folder for a test: created before it, removed with its contents after it. Include cmocka.h
 * first. */
#ifndef TESTS_SUPPORT_FOLDER_H
#define TESTS_SUPPORT_FOLDER_H

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char test_folder[64];

static inline int folder_begin(void **state) {
  (void)state;
  strcpy(test_folder, "/tmp/mixtape-test-XXXXXX");
  return mkdtemp(test_folder) ? 0 : -1;
}

static inline int folder_end(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", test_folder);
  return system(command);
}

/* "FOLDER/name"; valid until the eighth call from here. */
static inline char *in_folder(const char *name) {
  static char paths[8][512];
  static int next;
  next = (next + 1) % 8;
  snprintf(paths[next], sizeof paths[next], "%s/%s", test_folder, name);
  return paths[next];
}

/* Writes a text to the file "FOLDER" + path, whose folders it makes. */
static inline void write_in_folder(const char *path, const char *text) {
  char whole[PATH_MAX];
  snprintf(whole, sizeof whole, "%s%s", test_folder, path);
  for (char *slash = whole + strlen(test_folder) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
    *slash = '\0';
    mkdir(whole, 0700);
  }
  FILE *file = fopen(whole, "w");
  assert_non_null(file);
  fputs(text, file);
  assert_int_equal(fclose(file), 0);
}

/* The number of files in the folder. */
static inline int folder_count(void) {
  DIR *directory = opendir(test_folder);
  int count = -2; /* . and .. */
  while (readdir(directory)) count++;
  closedir(directory);
  return count;
}

/* Removes that file or folder from the test's folder. */
static inline void forget(const char *name) {
  char command[700];
  snprintf(command, sizeof command, "rm -rf '%s'", in_folder(name));
  assert_int_equal(system(command), 0);
}

#endif
