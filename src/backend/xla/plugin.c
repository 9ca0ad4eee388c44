/* The plug-in of the process: which one, and why there is none. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* secure_getenv */
#endif
#include "backend/xla/xla.h"

#include "base/alloc.h"
#include "base/error.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *chosen; /* by a call; NULL: none */
static mix_pjrt loaded;
static _Atomic(const mix_pjrt *) in_use;
/* The latest library that failed, and how, for the devices "xla" and "cuda". */
static struct { const char *path, *problem; } failed[2];

const mix_pjrt *mix_xla_plugin(void) { return atomic_load(&in_use); }

static bool is_for_cuda(const mix_pjrt *plugin) { return !strcmp(plugin->platform, "cuda"); }

bool mix_xla_usable(void) {
  const char *lost = mix_pjrt_lost();
  if (lost) mix_fail_runtime("xla: %s", lost);
  return !lost;
}

bool mix_xla_choose(const char *path, const char *source) {
  bool good = false;
  const char *lost = mix_pjrt_lost();
  if (lost) return mix_fail_unsupported("%s: %s: %s", source, path, lost);
  pthread_mutex_lock(&lock);
  const mix_pjrt *now = mix_xla_plugin();
  if (!*path)
    mix_fail_value("%s: \"xla:\" without a path; expected \"xla:PLUGIN.so\", or \"xla\"", source);
  else if (now && strcmp(now->path, path))
    mix_fail_unsupported("%s: a process has one plug-in, and %s is in use; %s cannot be, too", source,
                         now->path, path);
  else
    good = (chosen = mix_intern(path)) != NULL;
  pthread_mutex_unlock(&lock);
  return good;
}

bool mix_cuda_choose(const char *number, const char *source) {
  char *end;
  const long wanted = strtol(number, &end, 10);
  const mix_cuda_driver *driver = mix_cuda_ask_driver();
  pthread_mutex_lock(&lock);
  const mix_pjrt *now = mix_xla_plugin();
  if (end == number || *end || wanted < 0)
    mix_fail(MIX_VALUE_ERROR, "%s: device \"cuda:%s\"; expected \"cuda:\" and a number", source, number);
  else if (!*driver->problem && wanted >= driver->count)
    mix_fail(MIX_VALUE_ERROR, "%s: there is no device \"cuda:%s\"; the driver sees %d GPU%s, from cuda:0 on",
             source, number, driver->count, driver->count == 1 ? "" : "s");
  else if (now && is_for_cuda(now) && wanted != mix_cuda_gpu_in_use())
    mix_fail(MIX_UNSUPPORTED, "%s: a process has one GPU, and cuda:%d is in use; cuda:%s cannot be, too",
             source, mix_cuda_gpu_in_use(), number);
  else if (!now && !*driver->problem && wanted != mix_cuda_gpu_in_use())
    mix_cuda_use_gpu((int)wanted), failed[1].path = NULL;
  pthread_mutex_unlock(&lock);
  return !mix_failed();
}

/* ---- loading ---- */

static bool is_named_cuda(const char *path) {
  const char *slash = strrchr(path, '/');
  return strstr(slash ? slash : path, "cuda") != NULL;
}

/* The first one that is there, if it suits the GPU where it is for one. */
static bool load_first(char *paths, bool cuda) {
  char unsuited[1024] = "", *path = paths;
  for (char *end; (end = strchr(path, '\n')); path = end + 1) {
    *end = 0;
    if (!mix_pjrt_load(&loaded, path) && !strchr(path, '/') && mix_error() == MIX_IO_ERROR)
      mix_error_clear(); /* the loader does not know the name */
    else if (mix_failed() || !is_named_cuda(path) || mix_cuda_check(loaded.path, mix_cuda_gpu_in_use()))
      return !mix_failed();
    else if (*unsuited)
      mix_error_clear();
    else
      mix_error_take(unsuited, sizeof unsuited);
  }
  if (*unsuited)
    mix_fail(MIX_UNSUPPORTED, "%s", unsuited);
  else
    mix_fail(MIX_IO_ERROR,
             cuda ? "no XLA plug-in for CUDA: %s; or give one by MIXTAPE_PJRT_PLUGIN; searched was %s"
                  : "no PJRT plug-in: give one by %s; searched were %s",
             cuda ? mix_cuda_remedy(mix_cuda_gpu_in_use()) : "\"xla:PLUGIN.so\" or MIXTAPE_PJRT_PLUGIN",
             mix_xla_places(cuda));
  return false;
}

static bool search(bool cuda) {
  mix_text list = {.grows = true};
  mix_xla_list_plugins(&list, cuda);
  const bool good = !list.failed && load_first(list.text, cuda);
  mix_free(list.text);
  return good;
}

static bool connect_target(void) {
  mix_text facts = {.grows = true};
  mix_cuda_write_target(&facts, mix_cuda_version_of(loaded.path));
  const bool good = !facts.failed && mix_pjrt_describe_target(&loaded, facts.text);
  mix_free(facts.text);
  return good;
}

static bool connect_client(bool cuda) {
  pjrt_option options[MIX_CUDA_CLIENT_OPTIONS];
  int count = 0;
  if (cuda || is_named_cuda(loaded.path))
    mix_cuda_ask_driver(), count = mix_cuda_client_options(mix_cuda_gpu_in_use(), options);
  return count >= 0 && mix_pjrt_connect(&loaded, options, count);
}

static bool connect_plugin(bool cuda) {
  if (!(cuda && mix_cuda_target() ? connect_target() : connect_client(cuda))) return false;
  if (!cuda || is_for_cuda(&loaded)) return true;
  mix_pjrt_destroy(&loaded, PJRT_CLIENT_DESTROY, loaded.client);
  mix_pjrt_destroy(&loaded, PJRT_TOPOLOGY_DESTROY, loaded.topology);
  mix_fail(MIX_UNSUPPORTED, "%s is for the platform \"%s\", not for CUDA; %s", loaded.path, loaded.platform,
           mix_cuda_remedy(mix_cuda_gpu_in_use()));
  return false;
}

static const char *wanted(bool cuda) {
  const char *path = secure_getenv("MIXTAPE_PJRT_PLUGIN"); /* loads code */
  return chosen && !cuda ? chosen : path && *path ? path : "";
}

static bool load_wanted(const char *path, bool cuda) {
  if (!*path) return search(cuda);
  return mix_pjrt_load(&loaded, path) && (!cuda || mix_cuda_check(loaded.path, mix_cuda_gpu_in_use()));
}

static void load(const char *path, bool cuda) {
  if (load_wanted(path, cuda) && connect_plugin(cuda)) {
    atomic_store(&in_use, &loaded);
    return;
  }
  char message[1024];
  const mix_status status = mix_error_take(message, sizeof message);
  failed[cuda].problem = mix_intern(message);
  failed[cuda].path = status == MIX_MEMORY_ERROR ? NULL : mix_intern(path); /* memory may come back */
  if (!failed[cuda].problem)
    failed[cuda].problem = "out of memory while the plug-in was loaded", mix_error_clear();
}

static const char *load_for(bool cuda) {
  mix_error_aside pending;
  mix_error_set_aside(&pending);
  pthread_mutex_lock(&lock);
  const char *path = wanted(cuda);
  if (!mix_xla_plugin() && !(failed[cuda].path && !strcmp(failed[cuda].path, path))) load(path, cuda);
  const char *reason = mix_xla_plugin() ? NULL : failed[cuda].problem;
  pthread_mutex_unlock(&lock);
  mix_error_clear(); /* the reason tells it */
  mix_error_put_back(&pending);
  return reason;
}

const char *mix_xla_load(void) { return mix_xla_plugin() ? mix_pjrt_lost() : load_for(false); }

const char *mix_cuda_load(void) {
  const mix_pjrt *now = mix_xla_plugin();
  if (now && !is_for_cuda(now)) return "a process has one plug-in, and one for another device is in use";
  if (now) return mix_pjrt_lost();
  const char *problem = mix_cuda_ask_driver()->problem;
  return *problem ? problem : load_for(true);
}
