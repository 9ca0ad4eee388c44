/* A folder of a test's own: made before it, removed with all that is in it after. Included behind cmocka.h. */
#ifndef TESTS_SUPPORT_FOLDER_H
#define TESTS_SUPPORT_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
  static int turn;
  turn = (turn + 1) % 8;
  snprintf(paths[turn], sizeof paths[turn], "%s/%s", test_folder, name);
  return paths[turn];
}

/* Removes what is called so in the folder. */
static inline void forget(const char *name) {
  char command[700];
  snprintf(command, sizeof command, "rm -rf '%s'", in_folder(name));
  assert_int_equal(system(command), 0);
}

#endif
