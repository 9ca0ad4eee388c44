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

/* The plug-in, wherever it lies: its size and a MiB of it, from end to end. */
static void put_library(mix_text *key, const mix_pjrt *plugin) {
  enum { BLOCKS = 64, BLOCK = 1 << 14 };
  Dl_info found = {0}; /* the path may be a name that the loader has searched for */
  const char *path = dladdr((const void *)plugin->api->functions[PJRT_CLIENT_COMPILE], &found)
                         ? found.dli_fname
                         : plugin->path;
  FILE *file = fopen(path, "re");
  char *bytes = mix_calloc(BLOCKS, BLOCK);
  unsigned char digest[MIX_SHA256_BYTES] = {0};
  char digits[MIX_SHA256_DIGITS + 1];
  struct stat library = {0};
  if (file) fstat(fileno(file), &library);
  const off_t step = library.st_size < BLOCKS * BLOCK ? BLOCK : library.st_size / BLOCKS;
  for (int b = 0; file && bytes && b < BLOCKS; b++)
    if (fseeko(file, b * step, SEEK_SET) == 0 && !fread(bytes + b * BLOCK, 1, BLOCK, file)) break;
  if (bytes) mix_sha256_of(bytes, BLOCKS * BLOCK, digest);
  mix_text_put(key, "%lld ", (long long)library.st_size);
  mix_sha256_text(digest, digits);
  mix_text_put(key, "%s\n", digits);
  mix_free(bytes);
  if (file) fclose(file);
}

/* What decides about the machine code: for a GPU its facts, so that one that is not here has the same key. */
static void put_devices(mix_text *key, const mix_pjrt *plugin) {
  if (!strcmp(plugin->platform, "cuda")) {
    mix_cuda_put_key(key);
    return;
  }
  mix_text_put(key, "%s\n%s %x\n", plugin->version, mix_cpu_name(), (unsigned)mix_cpu_found());
  for (int i = 0; i < plugin->device_count; i++) mix_text_put(key, "%s\n", mix_pjrt_device_kind(plugin, i));
}

/* What a program is compiled from: plug-in, devices, options and text. */
static void put_key(mix_text *key, const char *text) {
  static const char *const variables[] = {"XLA_FLAGS", "TF_XLA_FLAGS", "LIBTPU_INIT_ARGS"};
  const mix_pjrt *plugin = mix_xla_plugin();
  char options[MIX_PJRT_OPTIONS];
  const size_t size = mix_pjrt_options_of_program(plugin->platform, options);
  mix_text_put(key, "%s\n%d.%d\n", plugin->platform, plugin->api->version.major, plugin->api->version.minor);
  put_library(key, plugin);
  put_devices(key, plugin);
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
    mix_text_put(key, "%s\n", getenv(variables[i]) ? getenv(variables[i]) : "");
  for (size_t i = 0; i < size; i++) mix_text_put(key, "%02x", (unsigned char)options[i]);
  mix_text_put(key, "\n%s", text);
}

static bool make_key(const char *text, unsigned char digest[MIX_SHA256_BYTES]) {
  mix_text key = {.grows = true};
  put_key(&key, text);
  const bool good = !key.failed;
  if (good) mix_sha256_of(key.text, key.used, digest);
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

static const char serializing[] = "the plug-in does not serialize programs";

/* False, perhaps with the error recorded: it is not kept. */
static bool keep_executable(const mix_xla_cache *cache, const unsigned char *key, const char *driver,
                            pjrt_executable *executable) {
  pjrt_serialize_args args = {.executable = executable};
  bool kept = false;
  if (MIX_PJRT_CALL(mix_xla_plugin(), PJRT_EXECUTABLE_SERIALIZE, args, serializing)) {
    kept = mix_xla_cache_write(cache, key, driver, args.bytes, args.size);
    if (kept) atomic_fetch_add(&writes, 1);
    if (args.destroy) args.destroy(args.serialized);
  }
  mix_pjrt_destroy(mix_xla_plugin(), PJRT_EXECUTABLE_DESTROY, executable);
  return kept;
}

static void keep(const mix_xla_cache *cache, const unsigned char *key, const char *driver,
                 pjrt_loaded *loaded) {
  char message[MIX_ERROR_BYTES];
  pjrt_part_args part = {.object = loaded};
  if (MIX_PJRT_CALL(mix_xla_plugin(), PJRT_LOADED_GET_EXECUTABLE, part, serializing))
    keep_executable(cache, key, driver, part.part);
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
  unsigned char key[MIX_SHA256_BYTES];
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

static bool compile_and_keep(const mix_xla_cache *cache, const unsigned char *key, const char *text,
                             const char *name) {
  const mix_pjrt *plugin = mix_xla_plugin();
  mix_xla_watch *watch = mix_xla_watch_begin(name);
  pjrt_executable *made = watch ? mix_pjrt_compile_for_target(plugin, text, strlen(text), name) : NULL;
  mix_xla_watch_end(watch);
  if (!made || keep_executable(cache, key, "", made)) return made != NULL;
  if (!mix_failed()) mix_fail_io("xla: %s was compiled, but is not kept in %s", name, cache->path);
  return false;
}

bool mix_xla_compile_for_target(const char *text, const char *name) {
  mix_xla_cache cache = {.folder = -1};
  unsigned char key[MIX_SHA256_BYTES];
  size_t size;
  bool good = mix_xla_cache_open(&cache, true);
  if (!good && !mix_failed())
    mix_fail_value(
        "xla: programs for a GPU that is not here are kept, and the cache is off; name a folder by "
        "MIXTAPE_XLA_CACHE");
  if (good) good = make_key(text, key);
  char *program = good ? mix_xla_cache_read(&cache, key, "", &size) : NULL;
  if (program) atomic_fetch_add(&loads, 1);
  good = program || (good && !mix_failed() && compile_and_keep(&cache, key, text, name));
  mix_free(program);
  mix_xla_cache_close(&cache);
  return good;
}

void mix_cuda_describe_target(mix_text *text) {
  mix_xla_cache cache;
  mix_xla_cache_open(&cache, false);
  mix_xla_cache_close(&cache);
  mix_text_put(text, "%s: %d programs compiled, %d were there, in %s\n", mix_cuda_target()->name,
               atomic_load(&writes), atomic_load(&loads), cache.path);
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
