/* Loading a PJRT plug-in, calling its functions, and its errors. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dlsym and its kin */
#endif
#include "backend/xla/pjrt.h"

#include "base/alloc.h"
#include "base/error.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MESSAGE = 700 }; /* bytes of a plug-in's message that are shown */

/* ---- calls ---- */

/* A newer plug-in refuses structs that are shorter than its own. Members that were added since are zero,
 * which means their default: so every struct is given longer than it is. */
enum { LATER = 64 };

/* NULL: the plug-in has no such function. */
static pjrt_function *function_of(const mix_pjrt *plugin, pjrt_call call) {
  const size_t end = offsetof(pjrt_api, functions) + ((size_t)call + 1) * sizeof(pjrt_function *);
  return plugin->api->struct_size < end ? NULL : plugin->api->functions[call];
}

static void call_with(pjrt_function *function, void *arguments, size_t size, pjrt_error **error) {
  union {
    pjrt_object_args head;
    char bytes[PJRT_ARGUMENTS + LATER];
  } wide;
  memset(&wide, 0, sizeof wide);
  memcpy(&wide, arguments, size);
  wide.head.struct_size = size + LATER;
  wide.head.extensions = NULL;
  pjrt_error *returned = function(&wide);
  if (error) *error = returned;
  memcpy(arguments, &wide, size);
}

/* XLA's CPU tells of exhausted memory in a run by its message alone, with the code of an internal error. */
static bool is_exhausted(int code, const char *text, int size) {
  static const char words[] = "Out of memory";
  return code == PJRT_RESOURCE_EXHAUSTED || (size && memmem(text, (size_t)size, words, sizeof words - 1));
}

static mix_status status_of(pjrt_call call, int code) {
  return call == PJRT_CLIENT_COMPILE || call == PJRT_COMPILE || code == PJRT_UNIMPLEMENTED
             ? MIX_UNSUPPORTED
             : MIX_RUNTIME_ERROR;
}

/* What helps where memory ran out. */
static const char *memory_remedy(const mix_pjrt *plugin, pjrt_call call) {
  const bool cuda =
      plugin->platform ? !strcmp(plugin->platform, "cuda") : strstr(plugin->path, "cuda") != NULL;
  if (!cuda) return "; release what is no longer needed, or use a smaller batch or model";
  if (call == PJRT_CLIENT_CREATE)
    return "; nvidia-smi lists who holds memory of the GPU; MIXTAPE_DEVICE_MEMORY=grow takes it as needed, "
           "8GiB or the like takes less at once";
  return "; release what is no longer needed, use a smaller batch or model, or end what else holds memory of "
         "the GPU: nvidia-smi lists it";
}

/* Records the error and frees it. */
static void record(const mix_pjrt *plugin, pjrt_call call, pjrt_error *error, const char *what) {
  pjrt_function *message = function_of(plugin, PJRT_ERROR_MESSAGE),
                *code = function_of(plugin, PJRT_ERROR_GET_CODE),
                *destroy = function_of(plugin, PJRT_ERROR_DESTROY);
  pjrt_text_args text = {.object = error};
  pjrt_error_code_args number = {.error = error};
  pjrt_object_args object = {.object = error};
  if (message) call_with(message, &text, sizeof text, NULL);
  if (code) call_with(code, &number, sizeof number, NULL);
  const int shown = text.text ? (int)(text.size < MESSAGE ? text.size : MESSAGE) : 0;
  const bool exhausted = is_exhausted(number.code, text.text, shown);
  mix_fail(exhausted ? MIX_MEMORY_ERROR : status_of(call, number.code), "%s: %.*s%s%s", what, shown,
           shown ? text.text : "", shown ? "" : "the plug-in gave an error without a message",
           exhausted ? memory_remedy(plugin, call) : "");
  if (destroy) call_with(destroy, &object, sizeof object, NULL);
}

static atomic_bool has_client, in_child;

static void lose_client(void) { atomic_store(&in_child, atomic_load(&has_client)); }
static void watch_forks(void) { pthread_atfork(NULL, NULL, lose_client); }

const char *mix_pjrt_lost(void) {
  return atomic_load_explicit(&in_child, memory_order_relaxed)
             ? "the plug-in was in use before fork, and works in the parent alone; a child uses the device "
               "\"cpu\", or is started with exec"
             : NULL;
}

bool mix_pjrt_call(const mix_pjrt *plugin, pjrt_call call, void *arguments, size_t size, const char *what) {
  const char *lost = mix_pjrt_lost();
  if (lost) return mix_fail_runtime("%s: %s", what, lost);
  pjrt_function *function = function_of(plugin, call);
  pjrt_error *error = NULL;
  if (!function)
    return mix_fail_unsupported("%s: the plug-in %s has no function %d, its API is %d.%d", what, plugin->path,
                                (int)call, plugin->api->version.major, plugin->api->version.minor);
  call_with(function, arguments, size, &error);
  if (error) record(plugin, call, error, what);
  return !error;
}

/* An object that cannot be freed stays; nothing can be done about that. */
void mix_pjrt_destroy(const mix_pjrt *plugin, pjrt_call call, void *object) {
  if (mix_pjrt_lost()) return;
  pjrt_function *function = object ? function_of(plugin, call) : NULL,
                *destroy = function_of(plugin, PJRT_ERROR_DESTROY);
  pjrt_object_args args = {.object = object};
  pjrt_error *error = NULL;
  if (function) call_with(function, &args, sizeof args, &error);
  args = (pjrt_object_args){.object = error};
  if (error && destroy) call_with(destroy, &args, sizeof args, NULL);
}

bool mix_pjrt_await(const mix_pjrt *plugin, pjrt_event *event, const char *what) {
  if (!event) return true;
  pjrt_object_args args = {.object = event};
  const bool good = MIX_PJRT_CALL(plugin, PJRT_EVENT_AWAIT, args, what);
  mix_pjrt_destroy(plugin, PJRT_EVENT_DESTROY, event);
  return good;
}

bool mix_pjrt_is_ready(const mix_pjrt *plugin, pjrt_event *event) {
  pjrt_is_ready_args args = {.event = event};
  if (!event) return true;
  if (MIX_PJRT_CALL(plugin, PJRT_EVENT_IS_READY, args, plugin->path)) return args.is_ready;
  mix_error_clear();
  return false;
}

bool mix_pjrt_take(const mix_pjrt *plugin, pjrt_event *event, const char *what) {
  if (!event) return true;
  pjrt_object_args args = {.object = event};
  const bool good = MIX_PJRT_CALL(plugin, PJRT_EVENT_ERROR, args, what);
  mix_pjrt_destroy(plugin, PJRT_EVENT_DESTROY, event);
  return good;
}

/* ---- loading ---- */

/* Elsewhere libtpu asks a server of Google's cloud about its machine, for minutes. */
static void keep_libtpu_short(const char *path) {
  const bool host = access("/dev/accel0", F_OK) == 0 || access("/dev/vfio/0", F_OK) == 0;
  if (strstr(path, "libtpu") && !host) setenv("TPU_SKIP_MDS_QUERY", "1", 0);
}

/* The table of functions of a library; NULL with the error recorded. */
static const pjrt_api *api_of(void *library, const char *path) {
  union {
    void *address;
    const pjrt_api *(*call)(void);
  } entry = {dlsym(library, PJRT_ENTRY)};
  if (!entry.address)
    return mix_fail_format("%s is no PJRT plug-in: it does not export %s", path, PJRT_ENTRY);
  const pjrt_api *api = entry.call();
  const size_t needed = offsetof(pjrt_api, functions) + PJRT_FUNCTIONS * sizeof(pjrt_function *);
  if (!api || api->struct_size < offsetof(pjrt_api, functions))
    return mix_fail_format("%s is no PJRT plug-in: %s gives no table of functions", path, PJRT_ENTRY);
  if (api->version.major != PJRT_MAJOR)
    return mix_fail_unsupported("%s has version %d.%d of the PJRT API; expected version %d", path,
                                api->version.major, api->version.minor, PJRT_MAJOR);
  if (api->struct_size < needed)
    return mix_fail_unsupported(
        "%s has version %d.%d of the PJRT API, which is too old: its table of functions has %zu "
        "bytes; expected at least %zu",
        path, api->version.major, api->version.minor, api->struct_size, needed);
  return api;
}

bool mix_pjrt_load(mix_pjrt *plugin, const char *path) {
  *plugin = (mix_pjrt){.path = mix_intern(path)};
  if (!plugin->path) return false;
  keep_libtpu_short(path);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    return mix_fail_io("%s cannot be loaded: %s", path, why ? why : "no reason given");
  }
  plugin->api = api_of(library, path);
  if (!plugin->api) return dlclose(library), false;
  Dl_info found;
  if (!strchr(path, '/') && dladdr(plugin->api, &found) && !(plugin->path = mix_intern(found.dli_fname)))
    return false;
  pjrt_initialize_args args = {0};
  return MIX_PJRT_CALL(plugin, PJRT_PLUGIN_INITIALIZE, args, path);
}

/* ---- the client ---- */

/* A text of an object, interned; "" if the plug-in gives none. */
static const char *text_of(const mix_pjrt *plugin, pjrt_call call, const void *object) {
  pjrt_text_args args = {.object = object};
  char text[256] = "";
  if (!MIX_PJRT_CALL(plugin, call, args, plugin->path)) return NULL;
  const size_t size = args.size < sizeof text ? args.size : sizeof text - 1;
  if (args.text) memcpy(text, args.text, size);
  return mix_intern(text);
}

bool mix_pjrt_connect(mix_pjrt *plugin, const pjrt_option *options, int count) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pjrt_client_create_args create = {.options = options, .option_count = (size_t)count};
  pthread_once(&once, watch_forks);
  if (!MIX_PJRT_CALL(plugin, PJRT_CLIENT_CREATE, create, plugin->path)) return false;
  pjrt_devices_args devices = {.client = create.client};
  const bool good = MIX_PJRT_CALL(plugin, PJRT_CLIENT_ADDRESSABLE_DEVICES, devices, plugin->path) &&
                    (plugin->platform = text_of(plugin, PJRT_CLIENT_PLATFORM_NAME, create.client)) &&
                    (plugin->version = text_of(plugin, PJRT_CLIENT_PLATFORM_VERSION, create.client));
  if (good && !devices.count)
    mix_fail_unsupported("%s, for the platform \"%s\", finds no device on this machine", plugin->path,
                         plugin->platform);
  if (!good || !devices.count) {
    mix_pjrt_destroy(plugin, PJRT_CLIENT_DESTROY, create.client);
    return false;
  }
  atomic_store(&has_client, true);
  /* Processors copy memory; a GPU whose copies fail is lost, with all that is in its memory. */
  plugin->copies_may_fail = strcmp(plugin->platform, "cpu") && strcmp(plugin->platform, "cuda");
  plugin->client = create.client;
  plugin->devices = devices.devices;
  plugin->device_count = (int)devices.count;
  return true;
}

bool mix_pjrt_describe_target(mix_pjrt *plugin, const char *facts) {
  static const char name[] = "target", one[] = "1x1x1";
  pjrt_option options[] = {{.name = "target_config", .value.text = facts, .value_size = strlen(facts)},
                           {.name = "topology", .value.text = one, .value_size = sizeof one - 1}};
  pjrt_topology_create_args create = {
      .name = name, .name_size = sizeof name - 1, .options = options, .option_count = 2};
  for (int i = 0; i < 2; i++) {
    options[i].struct_size = sizeof *options;
    options[i].name_size = strlen(options[i].name);
    options[i].type = PJRT_OPTION_TEXT;
  }
  if (!MIX_PJRT_CALL(plugin, PJRT_TOPOLOGY_CREATE, create, plugin->path)) return false;
  plugin->topology = create.topology;
  plugin->version = "";
  return (plugin->platform = text_of(plugin, PJRT_TOPOLOGY_PLATFORM_NAME, create.topology)) != NULL;
}

/* ---- reports ---- */

/* The first line of a text that may have several. */
static int first_line(const char *text) { return (int)strcspn(text, "\n"); }

static const char *device_text(const mix_pjrt *plugin, pjrt_device *device, pjrt_call call) {
  pjrt_part_args args = {.object = device};
  const char *text = MIX_PJRT_CALL(plugin, PJRT_DEVICE_GET_DESCRIPTION, args, plugin->path)
                         ? text_of(plugin, call, args.part)
                         : NULL;
  if (!text) mix_error_clear();
  return text ? text : "a device without a name";
}

const char *mix_pjrt_device_kind(const mix_pjrt *plugin, int device) {
  return device_text(plugin, plugin->devices[device], PJRT_DESCRIPTION_KIND);
}

size_t mix_pjrt_free_bytes(const mix_pjrt *plugin) {
  if (!plugin->client) return 0;
  pjrt_memory_stats_args args = {.device = plugin->devices[0]};
  mix_error_aside pending;
  mix_error_set_aside(&pending);
  const bool known = MIX_PJRT_CALL(plugin, PJRT_DEVICE_MEMORY_STATS, args, plugin->path);
  mix_error_clear();
  mix_error_put_back(&pending);
  return known && args.limit.is_set && args.limit.number > args.used ? (size_t)(args.limit.number - args.used)
                                                                     : 0;
}

void mix_pjrt_describe(const mix_pjrt *plugin, mix_text *text) {
  mix_text_put(text, "  plug-in: %s, PJRT API %d.%d\n", plugin->path, plugin->api->version.major,
               plugin->api->version.minor);
  mix_text_put(text, "  platform: %s, %.*s\n", plugin->platform, first_line(plugin->version),
               plugin->version);
  enum { SHOWN = 8 };
  for (int i = 0; i < plugin->device_count && i < SHOWN; i++) {
    const char *kind = mix_pjrt_device_kind(plugin, i),
               *name = device_text(plugin, plugin->devices[i], PJRT_DESCRIPTION_TO_STRING);
    mix_text_put(text, "  device %d: %.*s, %.*s%s\n", i, first_line(kind), kind, first_line(name), name,
                 i ? "" : "; in use");
  }
  if (plugin->device_count > SHOWN) mix_text_put(text, "  and %d more\n", plugin->device_count - SHOWN);
}
