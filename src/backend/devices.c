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

#define BACKEND(name, forms) &mix_backend_##name,
enum { DEVICES_MAX = 8 };
static const mix_backend *devices[DEVICES_MAX] = {MIX_DEVICES(BACKEND)};
#define ONE(name, forms) +1
static atomic_int device_count = MIX_DEVICES(ONE);
static _Atomic(const mix_backend *) device; /* NULL: not asked for yet */

static const char *unavailable(const mix_backend *backend) {
  return backend->unavailable ? backend->unavailable() : NULL;
}

const mix_backend *mix_backend_named(const char *name) {
  if (!strcmp(name, "auto")) return devices[0]; /* where no other can be used */
  for (int i = 0; i < device_count; i++) {
    const size_t length = strlen(devices[i]->name);
    if (!strncmp(name, devices[i]->name, length) &&
        (!name[length] || (name[length] == ':' && devices[i]->choose)))
      return devices[i];
  }
  return NULL;
}

/* NULL with the error recorded. `source`: the call or the environment variable. */
static const mix_backend *usable_device(const char *name, const char *source) {
  char hint[100];
  if (!strcmp(name, "auto") && !unavailable(&mix_backend_cuda)) name = "cuda";
  const mix_backend *backend = mix_backend_named(name);
  const char *which = strchr(name, ':'), *why;
  if (!backend)
    mix_fail_value("%s: there is no device \"%s\"%s; expected %s", source, name,
                   mix_did_you_mean_choice(name, MIX_DEVICE_CHOICES, hint, sizeof hint), MIX_DEVICE_CHOICES);
  else if (which && !backend->choose(which + 1, source))
    return NULL;
  else if ((why = unavailable(backend)))
    mix_fail_unsupported("%s: device \"%s\" is unavailable: %s", source, backend->name, why);
  else
    return backend;
  return NULL;
}

const mix_backend *mix_backend_current(void) {
  const mix_backend *backend = atomic_load(&device);
  if (backend) return backend;
  const char *name = getenv("MIXTAPE_DEVICE");
  backend = name && *name ? usable_device(name, "MIXTAPE_DEVICE") : devices[0];
  if (!backend) return devices[0];
  atomic_store(&device, backend);
  return backend;
}

bool mix_backend_add(const mix_backend *backend) {
  const int count = atomic_load(&device_count);
  if (count == DEVICES_MAX) return false;
  devices[count] = backend;
  atomic_store(&device_count, count + 1); /* readers on other threads see the device */
  return true;
}

const char *mix_device(void) { return mix_backend_current()->name; }

mix_status mix_set_device(const char *name) {
  if (mix_failed()) return mix_error();
  const mix_backend *backend = usable_device(name ? name : "", "set_device");
  if (backend) atomic_store(&device, backend);
  return mix_error();
}

mix_status mix_synchronize(void) {
  if (mix_failed()) return mix_error();
  for (int i = 0; i < device_count && !mix_failed(); i++)
    if (devices[i]->wait) devices[i]->wait(UINT64_MAX);
  return mix_error();
}

mix_context mix_context_on(const mix_backend *backend, const mix_context *context) {
  mix_context on = *context;
  const int threads = mix_threads(); /* a bad value of the environment is an error on every device */
  on.backend = backend;
  on.threads = backend->has_threads ? threads : 0;
  return on;
}

mix_context mix_context_default(void) {
  return mix_context_on(mix_backend_current(), &(mix_context){.precision = mix_matmul_precision_default(),
                                                              .memory = mix_memory_use_default(),
                                                              .communicator = mix_communicator_in_force()});
}

/* A function of the settings alone: restoring former settings finds the plans compiled under them again. */
uint64_t mix_context_key(const mix_context *context) {
  int number = 0;
  const unsigned communicator = context->communicator ? context->communicator->number : 0;
  while (number < device_count && devices[number] != context->backend) number++;
  /* an odd factor: different budgets always differ */
  const uint64_t budget = (uint64_t)mix_memory_budget() * 0x9e3779b97f4a7c15u;
  return budget ^
         ((uint64_t)(communicator >> 4) << 60 | (uint64_t)number << 56 | (uint64_t)context->memory << 54 |
          (uint64_t)mix_deterministic() << 53 | (uint64_t)context->precision.float32 << 52 |
          (uint64_t)context->precision.accumulation << 48 | (uint64_t)(communicator & 15) << 44 |
          (uint64_t)context->threads << 32 | mix_cpu_features());
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
  const int threads = mix_threads();
  for (int i = 0; i < device_count; i++) {
    const mix_context context = mix_context_on(devices[i], &now);
    const char *why = unavailable(devices[i]);
    if (why)
      mix_text_put(&text, "%s: unavailable: %s\n", devices[i]->name, why);
    else
      devices[i]->describe(&context, &text);
  }
  mix_text_put(&text, "in force: device %s, %d thread%s, accumulation %s, float32 precision %s\n",
               now.backend->name, threads, threads == 1 ? "" : "s",
               mix_accumulation_name(now.precision.accumulation),
               mix_float32_precision_text(now.precision.float32));
  mix_text_put(&text, "large products here accumulate: float16 %s, bfloat16 %s\n",
               mix_kernel_info_of_large(&now, MIX_FLOAT16).accumulation,
               mix_kernel_info_of_large(&now, MIX_BFLOAT16).accumulation);
  return page;
}
