/* Threads, accumulation and float32 precision of the process. Initial values come from the environment when
 * they are first needed. A bad value is an error of each call that needs it, until a call sets it. */
#include "backend/backend.h"
#include "base/error.h"
#include "base/processor.h"
#include <mixtape/device.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { UNSET = -1, MAX_THREADS = 1024 };

static const char *const accumulations[] = {"auto", "exact", "blocked"};
static const char *const float32_precisions[] = {"highest", "high"};
static atomic_int threads = UNSET, accumulation = UNSET, float32 = UNSET;

/* ---- threads ---- */

/* OMP_NUM_THREADS may be a list with a number for each nesting level; the first one counts. */
static int default_threads(void) {
  const char *text = getenv("OMP_NUM_THREADS");
  long wanted = text ? strtol(text, NULL, 10) : 0;
  if (wanted < 1) wanted = mix_cpu_cores();
  return wanted < MAX_THREADS ? (int)wanted : MAX_THREADS;
}

int mix_threads(void) {
  int number = atomic_load(&threads);
  if (number != UNSET) return number;
  const char *text = getenv("MIXTAPE_THREADS");
  char *end = NULL;
  long wanted = text ? strtol(text, &end, 10) : 0;
  bool valid = !text || (*end == 0 && wanted >= 0 && wanted <= MAX_THREADS);
  number = valid && wanted > 0 ? (int)wanted : default_threads();
  if (valid)
    atomic_store(&threads, number);
  else
    mix_fail(MIX_VALUE_ERROR, "MIXTAPE_THREADS is \"%s\"; expected a number from 0 (all cores) to %d", text,
             MAX_THREADS);
  return number;
}

mix_status mix_set_threads(int number) {
  if (mix_failed()) return mix_error();
  if (number < 0 || number > MAX_THREADS)
    return mix_fail_status(MIX_VALUE_ERROR, "set_threads: got %d; expected a number from 0 (all cores) to %d",
                           number, MAX_THREADS);
  atomic_store(&threads, number ? number : default_threads());
  return MIX_OK;
}

/* ---- accumulation ---- */

static int accumulation_named(const char *name, const char *source) {
  for (int i = 0; name && i < (int)(sizeof accumulations / sizeof *accumulations); i++)
    if (strcmp(name, accumulations[i]) == 0) return i;
  mix_fail(MIX_VALUE_ERROR,
           "%s: there is no accumulation \"%s\"; expected \"auto\", \"exact\" or \"blocked\"", source,
           name ? name : "");
  return UNSET;
}

static mix_accumulation accumulation_default(void) {
  int number = atomic_load(&accumulation);
  if (number != UNSET) return (mix_accumulation)number;
  const char *name = getenv("MIXTAPE_ACCUMULATE");
  number = name && *name ? accumulation_named(name, "MIXTAPE_ACCUMULATE") : MIX_ACCUMULATE_AUTO;
  if (number == UNSET) return MIX_ACCUMULATE_AUTO;
  atomic_store(&accumulation, number);
  return (mix_accumulation)number;
}

const char *mix_accumulation_name(mix_accumulation number) { return accumulations[number]; }
const char *mix_accumulate(void) { return accumulations[accumulation_default()]; }

mix_accumulation mix_accumulation_resolve(mix_accumulation setting) {
  const uint32_t features = mix_cpu_features();
  if (setting != MIX_ACCUMULATE_AUTO) return setting;
  return features & MIX_CPU_AVX512_FP16 && !(features & MIX_CPU_AMX_BF16) ? MIX_ACCUMULATE_BLOCKED
                                                                          : MIX_ACCUMULATE_EXACT;
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
  mix_fail(MIX_VALUE_ERROR, "%s: there is no float32 precision \"%s\"; expected \"highest\" or \"high\"",
           source, name ? name : "");
  return UNSET;
}

static mix_float32_precision precision_default(void) {
  int number = atomic_load(&float32);
  if (number != UNSET) return (mix_float32_precision)number;
  const char *name = getenv("MIXTAPE_FLOAT32_PRECISION");
  number = name && *name ? precision_named(name, "MIXTAPE_FLOAT32_PRECISION") : MIX_FLOAT32_HIGHEST;
  if (number == UNSET) return MIX_FLOAT32_HIGHEST;
  atomic_store(&float32, number);
  return (mix_float32_precision)number;
}

const char *mix_float32_precision_text(mix_float32_precision number) { return float32_precisions[number]; }
const char *mix_float32_precision_name(void) { return float32_precisions[precision_default()]; }

mix_status mix_set_float32_precision(const char *name) {
  if (mix_failed()) return mix_error();
  int number = precision_named(name, "set_float32_precision");
  if (number == UNSET) return mix_error();
  atomic_store(&float32, number);
  return MIX_OK;
}

mix_matmul_precision mix_matmul_precision_default(void) {
  return (mix_matmul_precision){.accumulation = accumulation_default(), .float32 = precision_default()};
}
