/* The device, the threads and the numerical choices of the process. Start values come from the environment when they are first needed;
 * a bad one is an error of whoever needs it, until the setting is made by a call. */
#include "backend/backend.h"
#include "base/cpu.h"
#include "base/error.h"
#include <mixtape/device.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { UNSET = -1, MOST_THREADS = 1024 };

static const mix_backend *const devices[] = {&mix_backend_cpu, &mix_backend_ref};
enum { DEVICE_COUNT = sizeof devices / sizeof *devices };
const char *const mix_cuda_missing = "this build has no CUDA backend yet";
static const char *const accumulations[] = {"auto", "exact", "blocked", "blocked_short", "blocked_long", "blocked_wide"};

static const char *const float32_precisions[] = {"highest", "high"};

static atomic_int device = UNSET, threads = UNSET, accumulation = UNSET, float32 = UNSET;

/* ---- device ---- */

/* The number of a device, or UNSET with the error recorded; `source` is the call or the environment variable. */
static int device_named(const char *name, const char *source) {
  if (name && strcmp(name, "auto") == 0) name = "cpu"; /* the best device there is */
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
    mix_fail(MIX_VALUE_ERROR, "%s: there is no device \"%s\"; expected \"cpu\", \"ref\", \"cuda\" or \"auto\"", source,
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

/* ---- threads ---- */

/* OMP_NUM_THREADS may be a list, one number a nesting level. */
static int default_threads(void) {
  const char *text = getenv("OMP_NUM_THREADS");
  long wanted = text ? strtol(text, NULL, 10) : 0;
  if (wanted < 1) wanted = mix_cpu_cores();
  return wanted < MOST_THREADS ? (int)wanted : MOST_THREADS;
}

int mix_threads(void) {
  int number = atomic_load(&threads);
  if (number != UNSET) return number;
  const char *text = getenv("MIXTAPE_THREADS");
  char *end = NULL;
  long wanted = text ? strtol(text, &end, 10) : 0;
  bool valid = !text || (*end == 0 && wanted >= 0 && wanted <= MOST_THREADS);
  number = valid && wanted > 0 ? (int)wanted : default_threads();
  if (valid)
    atomic_store(&threads, number);
  else
    mix_fail(MIX_VALUE_ERROR, "MIXTAPE_THREADS is \"%s\"; expected a number from 0 (all cores) to %d", text, MOST_THREADS);
  return number;
}

mix_status mix_set_threads(int number) {
  if (mix_failed()) return mix_error();
  if (number < 0 || number > MOST_THREADS)
    return mix_fail_status(MIX_VALUE_ERROR, "set_threads: got %d; expected a number from 0 (all cores) to %d", number,
                           MOST_THREADS);
  atomic_store(&threads, number ? number : default_threads());
  return MIX_OK;
}

/* ---- accumulation ---- */

static int accumulation_named(const char *name, const char *source) {
  for (int i = 0; name && i < (int)(sizeof accumulations / sizeof *accumulations); i++)
    if (strcmp(name, accumulations[i]) == 0) return i;
  mix_fail(MIX_VALUE_ERROR,
           "%s: there is no accumulation \"%s\"; expected \"auto\", \"exact\", \"blocked\", \"blocked_short\", \"blocked_long\" or "
           "\"blocked_wide\"",
           source, name ? name : "");
  return UNSET;
}

mix_accumulation mix_accumulation_current(void) {
  int number = atomic_load(&accumulation);
  if (number != UNSET) return (mix_accumulation)number;
  const char *name = getenv("MIXTAPE_ACCUMULATE");
  number = name && *name ? accumulation_named(name, "MIXTAPE_ACCUMULATE") : MIX_ACCUMULATE_AUTO;
  if (number == UNSET) return MIX_ACCUMULATE_AUTO;
  atomic_store(&accumulation, number);
  return (mix_accumulation)number;
}

const char *mix_accumulation_name(mix_accumulation number) { return accumulations[number]; }
const char *mix_accumulate(void) { return accumulations[mix_accumulation_current()]; }

mix_accumulation mix_accumulation_wanted(void) {
  const mix_accumulation wanted = mix_accumulation_current();
  const uint32_t features = mix_cpu_features();
  if (wanted != MIX_ACCUMULATE_AUTO) return wanted;
  return features & MIX_CPU_AVX512_FP16 && !(features & MIX_CPU_AMX_BF16) ? MIX_ACCUMULATE_BLOCKED : MIX_ACCUMULATE_EXACT;
}

mix_status mix_set_accumulate(const char *name) {
  if (mix_failed()) return mix_error();
  int number = accumulation_named(name, "set_accumulate");
  if (number == UNSET) return mix_error();
  atomic_store(&accumulation, number);
  return MIX_OK;
}

/* ---- precision of float32 products ---- */

static int precision_named(const char *name, const char *source) {
  for (int i = 0; name && i < (int)(sizeof float32_precisions / sizeof *float32_precisions); i++)
    if (strcmp(name, float32_precisions[i]) == 0) return i;
  mix_fail(MIX_VALUE_ERROR, "%s: there is no float32 precision \"%s\"; expected \"highest\" or \"high\"", source, name ? name : "");
  return UNSET;
}

mix_float32_precision mix_float32_precision_current(void) {
  int number = atomic_load(&float32);
  if (number != UNSET) return (mix_float32_precision)number;
  const char *name = getenv("MIXTAPE_FLOAT32_PRECISION");
  number = name && *name ? precision_named(name, "MIXTAPE_FLOAT32_PRECISION") : MIX_FLOAT32_HIGHEST;
  if (number == UNSET) return MIX_FLOAT32_HIGHEST;
  atomic_store(&float32, number);
  return (mix_float32_precision)number;
}

const char *mix_float32_precision_name(void) { return float32_precisions[mix_float32_precision_current()]; }

mix_status mix_set_float32_precision(const char *name) {
  if (mix_failed()) return mix_error();
  int number = precision_named(name, "set_float32_precision");
  if (number == UNSET) return mix_error();
  atomic_store(&float32, number);
  return MIX_OK;
}

/* A function of the settings, so that plans compiled under a former setting are found again when it returns. */
uint64_t mix_backend_epoch(void) {
  return (uint64_t)device_current() << 56 | (uint64_t)mix_float32_precision_current() << 52 |
         (uint64_t)mix_accumulation_current() << 48 | (uint64_t)mix_threads() << 32 | mix_cpu_features();
}
