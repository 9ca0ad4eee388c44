/* The device of the process. Its initial value comes from the environment on first use. A bad value is an
 * error of every use until mix_set_device replaces it. */
#include "backend/backend.h"
#include "backend/communicator.h"
#include "base/did_you_mean.h"
#include "base/processor.h"
#include "base/error.h"
#include <mixtape/device.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { UNSET = -1 };

enum { DEVICES_MAX = 8 };
static const mix_backend *devices[DEVICES_MAX] = {&mix_backend_cpu, &mix_backend_ref, &mix_backend_xla};
static int device_count = 3;
static const char *const cuda_missing = "this build has no CUDA backend yet";
static atomic_int device = UNSET;

/* The index of a device, or UNSET with the error recorded. `source`: the call or the environment variable. */
static int device_named(const char *name, const char *source) {
  char hint[100];
  if (name && strcmp(name, "auto") == 0) name = "cpu"; /* the best device of this build */
  if (name && strncmp(name, "xla:", 4) == 0) {
    if (!mix_xla_choose(name + 4, source)) return UNSET;
    name = "xla";
  }
  for (int i = 0; name && i < device_count; i++) {
    if (strcmp(name, devices[i]->name) != 0) continue;
    const char *why = devices[i]->unavailable();
    if (!why) return i;
    mix_fail(MIX_UNSUPPORTED, "%s: device \"%s\" is unavailable: %s", source, name, why);
    return UNSET;
  }
  if (name && strcmp(name, "cuda") == 0)
    mix_fail(MIX_UNSUPPORTED, "%s: device \"cuda\" is unavailable: %s", source, cuda_missing);
  else
    mix_fail(MIX_VALUE_ERROR,
             "%s: there is no device \"%s\"%s; expected \"cpu\", \"ref\", \"cuda\", \"xla\", "
             "\"xla:PLUGIN.so\" or \"auto\"",
             source, name ? name : "",
             mix_did_you_mean_choice(name ? name : "", "cpu|ref|cuda|xla|auto", hint, sizeof hint));
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

bool mix_backend_add(const mix_backend *backend) {
  if (device_count == DEVICES_MAX) return false;
  devices[device_count++] = backend;
  return true;
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

mix_status mix_synchronize(void) {
  if (mix_failed()) return mix_error();
  for (int i = 0; i < device_count && !mix_failed(); i++) devices[i]->wait(UINT64_MAX);
  return mix_error();
}

mix_context mix_context_default(void) {
  return (mix_context){.backend = mix_backend_current(),
                       .threads = mix_threads(),
                       .precision = mix_matmul_precision_default(),
                       .memory = mix_memory_use_default(),
                       .communicator = mix_communicator_in_force()};
}

/* A function of the settings alone: restoring former settings finds the plans compiled under them again. */
uint64_t mix_context_key(const mix_context *context) {
  int number = 0;
  while (number < device_count && devices[number] != context->backend) number++;
  return (uint64_t)number << 56 | (uint64_t)context->memory << 54 |
         (uint64_t)context->precision.float32 << 52 | (uint64_t)context->precision.accumulation << 48 |
         (uint64_t)(context->communicator ? context->communicator->number & 15 : 0) << 44 |
         (uint64_t)context->threads << 32 | mix_cpu_features();
}

/* ---- reports ---- */

const char *mix_accumulate_in_force(mix_dtype dtype) {
  const mix_context context = mix_context_default();
  return mix_kernel_info_of_large(&context, dtype).accumulation;
}

const char *mix_devices_text(void) {
  static _Thread_local char page[8192];
  mix_text text = {.text = page, .size = sizeof page};
  const mix_context now = mix_context_default();
  for (int i = 0; i < device_count; i++) {
    mix_context context = now;
    context.backend = devices[i];
    devices[i]->describe(&context, &text);
  }
  mix_text_put(&text, "cuda: unavailable: %s\n", cuda_missing);
  mix_text_put(&text, "in force: device %s, %d thread%s, accumulation %s, float32 precision %s\n",
               now.backend->name, now.threads, now.threads == 1 ? "" : "s",
               mix_accumulation_name(now.precision.accumulation),
               mix_float32_precision_text(now.precision.float32));
  mix_text_put(&text, "large products here accumulate: float16 %s, bfloat16 %s\n",
               mix_kernel_info_of_large(&now, MIX_FLOAT16).accumulation,
               mix_kernel_info_of_large(&now, MIX_BFLOAT16).accumulation);
  return page;
}
