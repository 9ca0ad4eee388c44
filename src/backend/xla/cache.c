/* Compiled programs are kept (cache_files.c) by the digest of all that they were compiled from. What cannot
 * be loaded is compiled and written anew. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr */
#endif
#include "backend/xla/cache_files.h"
#include "backend/xla/xla.h"

#include "base/alloc.h"
#include "base/error.h"
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static atomic_bool off;          /* the plug-in does not serialize */
static atomic_int loads, writes; /* of this process */

/* ---- keys ---- */

/* What a program is compiled from: the plug-in, told by its version, size and time, the processor, the kinds
 * of device, options and text. */
static void put_key(mix_text *key, const char *text) {
  static const char *const variables[] = {"XLA_FLAGS", "TF_XLA_FLAGS", "LIBTPU_INIT_ARGS"};
  const mix_pjrt *plugin = mix_xla_plugin();
  char options[MIX_PJRT_OPTIONS];
  const size_t size = mix_pjrt_options(plugin->platform, options);
  struct stat library = {0};
  Dl_info found = {0}; /* the path may be a name that the loader has searched for */
  const char *path = dladdr((const void *)plugin->api->functions[PJRT_CLIENT_COMPILE], &found)
                         ? found.dli_fname
                         : plugin->path;
  stat(path, &library);
  mix_text_put(key, "%s\n%s\n%d.%d\n%s\n%lld %lld.%09ld\n", plugin->platform, plugin->version,
               plugin->api->version.major, plugin->api->version.minor, path, (long long)library.st_size,
               (long long)library.st_mtim.tv_sec, library.st_mtim.tv_nsec);
  mix_text_put(key, "%s %x\n", mix_cpu_name(), (unsigned)mix_cpu_found());
  for (int i = 0; i < plugin->device_count; i++) mix_text_put(key, "%s\n", mix_pjrt_device_kind(plugin, i));
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
    mix_text_put(key, "%s\n", getenv(variables[i]) ? getenv(variables[i]) : "");
  for (size_t i = 0; i < size; i++) mix_text_put(key, "%02x", (unsigned char)options[i]);
  mix_text_put(key, "\n%s", text);
}

static bool make_key(const char *text, unsigned char digest[MIX_XLA_DIGEST]) {
  mix_text key = {.grows = true};
  put_key(&key, text);
  const bool good = !key.failed && mix_xla_digest(key.text, key.used, digest);
  mix_free(key.text);
  return good;
}

const char *mix_xla_driver_file = "/sys/module/nvidia/version";

/* NVIDIA's, for the device "cuda"; "": none. */
static void read_driver(char driver[MIX_XLA_DRIVER]) {
  FILE *file = strcmp(mix_xla_plugin()->platform, "cuda") ? NULL : fopen(mix_xla_driver_file, "re");
  if (!file || !fgets(driver, MIX_XLA_DRIVER, file)) *driver = 0;
  driver[strcspn(driver, "\n")] = 0;
  if (file) fclose(file);
}

/* ---- loading and keeping ---- */

static pjrt_loaded *load(const mix_xla_cache *cache, const unsigned char *key, const char *driver) {
  size_t size = 0;
  char *program = mix_xla_cache_read(cache, key, driver, &size);
  pjrt_deserialize_args args = {.client = mix_xla_plugin()->client, .bytes = program, .size = size};
  const bool good = program && MIX_PJRT_CALL(mix_xla_plugin(), PJRT_EXECUTABLE_DESERIALIZE_AND_LOAD, args,
                                             "loading a compiled program");
  mix_free(program);
  mix_error_clear(); /* compiled anew */
  if (good) atomic_fetch_add(&loads, 1);
  return good ? args.loaded : NULL;
}

static void keep(const mix_xla_cache *cache, const unsigned char *key, const char *driver,
                 pjrt_loaded *loaded) {
  const mix_pjrt *plugin = mix_xla_plugin();
  static const char what[] = "the plug-in does not serialize programs";
  char message[MIX_ERROR_BYTES];
  pjrt_part_args part = {.object = loaded};
  pjrt_serialize_args args = {0};
  if (MIX_PJRT_CALL(plugin, PJRT_LOADED_GET_EXECUTABLE, part, what)) {
    args.executable = part.part;
    if (MIX_PJRT_CALL(plugin, PJRT_EXECUTABLE_SERIALIZE, args, what)) {
      if (mix_xla_cache_write(cache, key, driver, args.bytes, args.size)) atomic_fetch_add(&writes, 1);
      if (args.destroy) args.destroy(args.serialized);
    }
    mix_pjrt_destroy(plugin, PJRT_EXECUTABLE_DESTROY, part.part);
  }
  if (!mix_failed()) return;
  if (mix_error_take(message, sizeof message) == MIX_MEMORY_ERROR) return; /* memory may come back */
  if (!atomic_exchange(&off, true) && cache->named)
    mix_log_message(MIX_LOG_WARNING, "MIXTAPE_XLA_CACHE: the cache is off: %s", message);
}

/* A folder that the user has named must be usable; without the other one, programs are compiled. */
static bool open_cache(mix_xla_cache *cache) {
  static atomic_bool told;
  char message[MIX_ERROR_BYTES];
  if (mix_xla_cache_open(cache, true) || !mix_failed() || cache->named) return cache->folder >= 0;
  mix_error_take(message, sizeof message);
  if (!atomic_exchange(&told, true)) mix_log_text(MIX_LOG_WARNING, message);
  return false;
}

static pjrt_loaded *compile_text(const char *text, const char *name) {
  mix_xla_watch *watch = mix_xla_watch_begin(name);
  pjrt_loaded *loaded = watch ? mix_pjrt_compile(mix_xla_plugin(), text, strlen(text), name) : NULL;
  mix_xla_watch_end(watch);
  return loaded;
}

pjrt_loaded *mix_xla_compile_text(const char *text, const char *name) {
  mix_xla_cache cache = {.folder = -1};
  unsigned char key[MIX_XLA_DIGEST];
  char driver[MIX_XLA_DRIVER] = "";
  bool kept = !atomic_load(&off) && open_cache(&cache) && make_key(text, key);
  if (kept) read_driver(driver);
  pjrt_loaded *loaded = kept ? load(&cache, key, driver) : NULL;
  if (!loaded && !mix_failed()) {
    loaded = compile_text(text, name);
    if (loaded && kept) keep(&cache, key, driver, loaded);
  }
  mix_xla_cache_close(&cache);
  return loaded;
}

void mix_xla_describe_cache(mix_text *text) {
  mix_xla_cache cache;
  char message[MIX_ERROR_BYTES] = "";
  mix_error_aside pending;
  mix_error_set_aside(&pending);
  mix_xla_cache_open(&cache, false);
  mix_error_take(message, sizeof message);
  mix_error_put_back(&pending);
  mix_xla_cache_close(&cache);
  mix_text_put(text, "  cache of compiled programs: ");
  if (*message)
    mix_text_put(text, "off, %s\n", message);
  else if (!*cache.path)
    mix_text_put(text, "off, %s\n", cache.named ? "by MIXTAPE_XLA_CACHE" : "there is no home folder");
  else if (atomic_load(&off))
    mix_text_put(text, "off, the plug-in does not serialize programs\n");
  else
    mix_text_put(text, "%s, %d loaded and %d written by this process\n", cache.path, atomic_load(&loads),
                 atomic_load(&writes));
}
