/* The device, the threads and the numerical choices of the process. Start values come from the environment when they are first needed;
 * a bad one is an error of whoever needs it, until the setting is made by a call. */
#include "backend/host.h"
#include "base/error.h"
#include "ops/table.h"
#include <mixtape/device.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNSET = -1, MOST_THREADS = 1024 };

static const mix_backend *const devices[] = {&mix_backend_cpu, &mix_backend_ref};
enum { DEVICE_COUNT = sizeof devices / sizeof *devices };
static const char *const cuda_missing = "this build has no CUDA backend yet";
static const char *const accumulations[] = {"auto", "exact", "blocked", "blocked_short", "blocked_long"};

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
    mix_fail(MIX_UNSUPPORTED, "%s: device \"cuda\" is unavailable: %s", source, cuda_missing);
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
           "%s: there is no accumulation \"%s\"; expected \"auto\", \"exact\", \"blocked\", \"blocked_short\" or \"blocked_long\"",
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

const char *mix_accumulate(void) { return accumulations[mix_accumulation_current()]; }

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

/* ---- the text ---- */

typedef struct page {
  char text[4096];
  size_t used;
} page;

static void MIX_PRINTF(2, 3) put(page *to, const char *format, ...) {
  if (to->used >= sizeof to->text) return;
  va_list list;
  va_start(list, format);
  int written = vsnprintf(to->text + to->used, sizeof to->text - to->used, format, list);
  va_end(list);
  if (written > 0) to->used += (size_t)written;
}

/* Who multiplies two large matrices of that dtype; `report`, unless NULL, as mix_host_choose writes it. */
static const mix_kernel *matmul_kernel(mix_dtype dtype, char *report, size_t size) {
  static const mix_kernel_row *const tables[] = {mix_cpu_kernels, mix_ref_kernels, NULL};
  mix_matmul_attributes attributes = {0};
  mix_shape shape = MIX_SHAPE(1024, 1024);
  mix_kernel_value types[3] = {{dtype, shape}, {dtype, shape}, {dtype, shape}};
  mix_kernel_args args = {.op = &mix_op_matmul,
                          .attributes = &attributes,
                          .input_count = 2,
                          .output_count = 1,
                          .input_types = types,
                          .output_types = types + 2};
  return mix_host_choose(tables + (mix_backend_current() == &mix_backend_ref), &args, report, size);
}

/* Kernels are named after their sums (gemm/kernels.c). */
const char *mix_accumulation_of(mix_dtype dtype) {
  static const struct {
    const char *sums;
    mix_accumulation accumulation;
  } blocked[] = {
      {"_t4x16_", MIX_ACCUMULATE_BLOCKED}, {"_t4x8_", MIX_ACCUMULATE_BLOCKED_SHORT}, {"_t4x32_", MIX_ACCUMULATE_BLOCKED_LONG}};
  const mix_kernel *kernel = matmul_kernel(dtype, NULL, 0);
  for (size_t i = 0; kernel && i < sizeof blocked / sizeof *blocked; i++)
    if (strstr(kernel->name, blocked[i].sums)) return accumulations[blocked[i].accumulation];
  return accumulations[MIX_ACCUMULATE_EXACT];
}

const char *mix_accumulate_in_force(void) { return mix_accumulation_of(MIX_FLOAT16); }

/* A line for a dtype: who serves; and for 16 bits, which have several ways, a line for each kernel of that dtype that comes before. */
static void put_products(page *to, mix_dtype dtype) {
  static const char other[] = ": operands of another dtype";
  char report[2048];
  const mix_kernel *kernel = matmul_kernel(dtype, report, sizeof report);
  put(to, "  matmul of %s (1024, 1024): %s\n", mix_dtype_name(dtype), kernel ? kernel->name : "none");
  if (mix_dtype_size(dtype) != 2) return;
  for (char *entry = report, *end; (end = strstr(entry, "; ")); entry = end + 2) {
    const int length = (int)(end - entry), suffix = (int)sizeof other - 1;
    const bool foreign = length > suffix && !memcmp(end - suffix, other, (size_t)suffix);
    const bool named = strstr(entry, dtype == MIX_FLOAT16 ? "_f16_" : "_bf16_") == strchr(entry, '_');
    if (!foreign && named) put(to, "    not %.*s\n", length, entry);
  }
}

const char *mix_devices_text(void) {
  static _Thread_local page text;
  static const mix_dtype products[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64, MIX_INT32};
  char names[128];
  int cores = mix_cpu_cores();
  text.used = 0;
  put(&text, "cpu: %s, %d core%s\n", mix_cpu_name(), cores, cores == 1 ? "" : "s");
  put(&text, "  instruction sets found: %s\n", mix_cpu_features_text(mix_cpu_found(), names, sizeof names));
  put(&text, "  instruction sets in force: %s\n", mix_cpu_features_text(mix_cpu_features(), names, sizeof names));
  for (size_t i = 0; i < sizeof products / sizeof *products; i++) put_products(&text, products[i]);
  put(&text, "ref: the scalar reference, one thread\n");
  put(&text, "cuda: unavailable: %s\n", cuda_missing);
  put(&text, "in force: device %s, %d thread%s, accumulation %s, float32 precision %s\n", mix_device(), mix_threads(),
      mix_threads() == 1 ? "" : "s", mix_accumulate(), mix_float32_precision_name());
  put(&text, "large products here accumulate: float16 %s, bfloat16 %s\n", mix_accumulation_of(MIX_FLOAT16),
      mix_accumulation_of(MIX_BFLOAT16));
  return text.text;
}
