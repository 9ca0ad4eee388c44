/* The device "xla" with the plug-in for CPUs, for tests that compare it with the CPU backend. Include
 * cmocka.h first. */
#ifndef TESTS_SUPPORT_XLA_H
#define TESTS_SUPPORT_XLA_H

#include "support/skip.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "cuda", if MIXTAPE_DEVICE says so; else "xla:PLUGIN.so", that of MIXTAPE_PJRT_PLUGIN or what
 * scripts/bootstrap --check has fetched. NULL: none. */
static inline const char *xla_device(void) {
  static char device[600];
  const char *chosen = getenv("MIXTAPE_DEVICE");
  if (chosen && !strncmp(chosen, "cuda", 4)) return chosen;
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
