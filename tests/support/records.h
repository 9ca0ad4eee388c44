/* Values that scripts beside the tests have recorded. */
#ifndef MIX_TESTS_SUPPORT_RECORDS_H
#define MIX_TESTS_SUPPORT_RECORDS_H

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

/* What a file below tests/ holds: an array of more than `least` records, if that is not 0. The caller
 * releases it. */
static inline json_t *load_records(const char *file, size_t least) {
  char path[4096];
  json_error_t error;
  snprintf(path, sizeof path, "%s/%s", getenv("MIXTAPE_TESTS_DIR"), file);
  json_t *records = json_load_file(path, 0, &error);
  if (!records) fail_msg("%s: %s", path, error.text);
  assert_true(!least || json_array_size(records) > least);
  return records;
}

#endif
