/* The plug-in of the process: which one, and why there is none. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* secure_getenv */
#endif
#include "backend/xla/xla.h"

#include "base/alloc.h"
#include "base/error.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Names as Google's packages have them. First where the loader looks, then in the folders. */
static const char *const names[] = {"libtpu.so", "xla_cuda_plugin.so", "xla_cpu_pjrt.so"};
static const char *const folders[] = {"/usr/local/lib/pjrt", "/usr/lib/pjrt"};
enum { NAMES = sizeof names / sizeof *names, FOLDERS = sizeof folders / sizeof *folders };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *chosen; /* by a call; NULL: none */
static mix_pjrt loaded;
static _Atomic(const mix_pjrt *) in_use;
static const char *failed, *problem; /* the latest library that failed, and how */

const mix_pjrt *mix_xla_plugin(void) { return atomic_load(&in_use); }

bool mix_xla_usable(void) {
  const char *lost = mix_pjrt_lost();
  if (lost) mix_fail_runtime("xla: %s", lost);
  return !lost;
}

/* Adds the names and folders that are searched. */
static void put_places(mix_text *text) {
  for (int i = 0; i < NAMES; i++)
    mix_text_put(text, "%s%s", i ? i < NAMES - 1 ? ", " : " and " : "", names[i]);
  mix_text_put(text, " where the loader looks");
  for (int i = 0; i < FOLDERS; i++) mix_text_put(text, "%s%s", i ? " and " : ", in ", folders[i]);
}

bool mix_xla_choose(const char *path, const char *source) {
  bool good = false;
  const char *lost = mix_pjrt_lost();
  if (lost) return mix_fail_unsupported("%s: %s: %s", source, path, lost), false;
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

/* ---- searching ---- */

/* Does the loader know this name? It is opened for that, and closed again where it is no plug-in. */
static bool try_name(const char *name) {
  mix_pjrt_load(&loaded, name);
  if (mix_error() != MIX_IO_ERROR) return true; /* found, good or bad */
  mix_error_clear();
  return false;
}

static bool try_folder(const char *folder, const char *name) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  if (access(path, R_OK)) return false;
  mix_pjrt_load(&loaded, path);
  return true;
}

static bool search(void) {
  for (int i = 0; i < NAMES; i++)
    if (try_name(names[i])) return !mix_failed();
  for (int f = 0; f < FOLDERS; f++)
    for (int i = 0; i < NAMES; i++)
      if (try_folder(folders[f], names[i])) return !mix_failed();
  mix_text places = {.grows = true};
  put_places(&places);
  if (!places.failed)
    mix_fail_io("no PJRT plug-in: give one by \"xla:PLUGIN.so\" or MIXTAPE_PJRT_PLUGIN; searched were %s",
                places.text);
  mix_free(places.text);
  return false;
}

/* ---- loading ---- */

static const char *wanted(void) {
  const char *path = secure_getenv("MIXTAPE_PJRT_PLUGIN"); /* loads code */
  return chosen ? chosen : path && *path ? path : "";
}

static void load(const char *path) {
  const bool good = (*path ? mix_pjrt_load(&loaded, path) : search()) && mix_pjrt_connect(&loaded);
  if (good) {
    atomic_store(&in_use, &loaded);
    return;
  }
  char message[1024];
  const mix_status status = mix_error_take(message, sizeof message);
  problem = mix_intern(message);
  failed = status == MIX_MEMORY_ERROR ? NULL : mix_intern(path); /* memory may come back */
  if (!problem) problem = "out of memory while the plug-in was loaded", mix_error_clear();
}

const char *mix_xla_load(void) {
  if (mix_xla_plugin()) return mix_pjrt_lost();
  mix_error_aside pending;
  mix_error_set_aside(&pending);
  pthread_mutex_lock(&lock);
  const char *path = wanted();
  if (!mix_xla_plugin() && !(failed && !strcmp(failed, path))) load(path);
  const char *reason = mix_xla_plugin() ? NULL : problem;
  pthread_mutex_unlock(&lock);
  mix_error_clear(); /* the reason tells it */
  mix_error_put_back(&pending);
  return reason;
}
