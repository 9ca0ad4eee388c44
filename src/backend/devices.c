/* The device of the process. Its initial value comes from the environment on first use. A bad value is an
 * error of every use until mix_set_device replaces it. */
#include "backend/backend.h"
#include "base/processor.h"
#include "base/error.h"
#include <mixtape/device.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { UNSET = -1 };

static const mix_backend *const devices[] = {&mix_backend_cpu, &mix_backend_ref};
enum { DEVICE_COUNT = sizeof devices / sizeof *devices };
const char *const mix_cuda_missing = "this build has no CUDA backend yet";
static atomic_int device = UNSET;

/* The index of a device, or UNSET with the error recorded. `source`: the call or the environment variable. */
static int device_named(const char *name, const char *source) {
  if (name && strcmp(name, "auto") == 0) name = "cpu"; /* the best device of this build */
  for (int i = 0; name && i < DEVICE_COUNT; i++) {
    if (strcmp(name, devices[i]->name) != 0) continue;
    const char *why = devices[i]->unavailable();
    if (!why) return i;
    mix_fail(MIX_UNSUPPORTED, "%s: device \"%s\" is unavailable: %s", source, name, why);
    return UNSET;
  }
  if (name && strcmp(name, "cuda") == 0)
    mix_fail(MIX_UNSUPPORTED, "%s: device \"cuda\" is unavailable: %s", source, mix_cuda_missing);
  else
    mix_fail(MIX_VALUE_ERROR,
             "%s: there is no device \"%s\"; expected \"cpu\", \"ref\", \"cuda\" or \"auto\"", source,
             name ? name : "");
  return UNSET;
}

static int device_current(void) {
  int number = atomic_load(&device);
  if (number != UNSET) return number;
  const char *name = getenv("MIXTAPE_DEVICE");
  number = name && *name ? device_named(name, "MIXTAPE_DEVICE") : 0;
  if (number == UNSET) return 0;
  atomic_store(&device, number);
  return number;
}

const mix_backend *mix_backend_current(void) { return devices[device_current()]; }
const char *mix_device(void) { return mix_backend_current()->name; }

mix_status mix_set_device(const char *name) {
  if (mix_failed()) return mix_error();
  int number = device_named(name, "set_device");
  if (number == UNSET) return mix_error();
  atomic_store(&device, number);
  return MIX_OK;
}

/* A function of the settings alone: restoring former settings finds the plans compiled under them again. */
uint64_t mix_backend_epoch(void) {
  return (uint64_t)device_current() << 56 | (uint64_t)mix_float32_precision_current() << 52 |
         (uint64_t)mix_accumulation_current() << 48 | (uint64_t)mix_threads() << 32 | mix_cpu_features();
}
