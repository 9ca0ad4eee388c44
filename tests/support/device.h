/* The device that tests run on unless they choose another: "cpu", or that of MIXTAPE_TEST_DEVICE. Include
 * cmocka.h first. */
#ifndef MIX_TESTS_SUPPORT_DEVICE_H
#define MIX_TESTS_SUPPORT_DEVICE_H

#include <mixtape/device.h>
#include <mixtape/object.h>
#include <stdlib.h>
#include <string.h>

static inline const char *default_device(void) {
  const char *name = getenv("MIXTAPE_TEST_DEVICE");
  return name ? name : "cpu";
}
/* Variables keep their address, and a run is finished when its call returns. */
static inline bool on_host(void) { return strcmp(mix_device(), "remote") && strcmp(mix_device(), "xla"); }

/* The results of a call that must fail, on a device with a queue when it is waited for. */
static inline void expect_no_results(const mix_list *results) {
  mix_synchronize();
  if (on_host()) assert_null(results);
}

#endif
