/* The device "xla" with the plug-in for CPUs, for tests that compare it with the CPU backend. Include
 * cmocka.h first. */
#ifndef TESTS_SUPPORT_XLA_H
#define TESTS_SUPPORT_XLA_H

#include "support/skip.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* "xla:PLUGIN.so": that of MIXTAPE_PJRT_PLUGIN, else what scripts/bootstrap --check has fetched. NULL: none.
 */
static inline const char *xla_device(void) {
  static char device[600];
  const char *given = getenv("MIXTAPE_PJRT_PLUGIN"), *fetched = getenv("MIXTAPE_TEST_PJRT");
  const char *path = given && *given ? given : fetched;
  if (!path || access(path, R_OK)) return NULL;
  snprintf(device, sizeof device, "xla:%s", path);
  return device;
}
#define XLA_OR_SKIP()                                                                                        \
  do {                                                                                                       \
    if (!xla_device())                                                                                       \
      SKIP("there is no PJRT plug-in: scripts/bootstrap --check fetches it, MIXTAPE_PJRT_PLUGIN names one"); \
  } while (0)

#endif
