/* Expected errors. Include cmocka.h first. */
#ifndef TESTS_SUPPORT_EXPECT_H
#define TESTS_SUPPORT_EXPECT_H

#include <mixtape/status.h>
#include <string.h>

/* Expects a pending error of that kind that mentions the text; clears it. */
static inline void expect_error(mix_status status, const char *mentions) {
  char message[1024];
  assert_string_equal(mix_status_name(mix_error()), mix_status_name(status));
  mix_error_take(message, sizeof message);
  if (!strstr(message, mentions)) fail_msg("\"%s\" does not mention \"%s\"", message, mentions);
}
#define expect_refused(call, status, mentions)                                                               \
  do {                                                                                                       \
    assert_true(!(call));                                                                                    \
    expect_error(status, mentions);                                                                          \
  } while (0)

#endif
