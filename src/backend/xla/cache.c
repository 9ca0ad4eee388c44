/* Compiled programs on disk, in the folder of MIXTAPE_XLA_CACHE. A file's name is the hash of what the
 * program was compiled from, all of which is in the file too and compared. A file that cannot be used is
 * written anew. */
#include "backend/xla/xla.h"

#include "base/alloc.h"
#include "base/error.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct header {
  char magic[8];
  uint64_t key_bytes, program_bytes, program_hash;
} header;
static const char magic[8] = "MIXXLA1";
enum { PATH = 1024 };
static const uint64_t FILE_MAX = (uint64_t)1 << 32;

static atomic_bool off;          /* the plug-in does not serialize */
static atomic_int loads, writes; /* of this process */

static const char *folder(void) {
  const char *path = getenv("MIXTAPE_XLA_CACHE");
  return path && *path && !atomic_load(&off) ? path : NULL;
}

/* FNV-1a */
static uint64_t hash(const char *bytes, size_t size, uint64_t h) {
  for (size_t i = 0; i < size; i++) h = (h ^ (unsigned char)bytes[i]) * 0x100000001b3u;
  return h;
}

/* ---- keys ---- */

/* What a program is compiled from: the plug-in, told by its version, size and time, the processor, the kinds
 * of device, options and text. */
static bool make_key(mix_text *key, const char *text) {
  const mix_pjrt *plugin = mix_xla_plugin();
  char options[MIX_PJRT_OPTIONS];
  const size_t size = mix_pjrt_options(plugin->platform, options);
  struct stat library = {0};
  stat(plugin->path, &library);
  mix_text_put(key, "%s\n%s\n%d.%d\n%s\n%lld %lld\n", plugin->platform, plugin->version,
               plugin->api->version.major, plugin->api->version.minor, plugin->path,
               (long long)library.st_size, (long long)library.st_mtime);
  mix_text_put(key, "%s %x\n", mix_cpu_name(), (unsigned)mix_cpu_found());
  for (int i = 0; i < plugin->device_count; i++) mix_text_put(key, "%s\n", mix_pjrt_device_kind(plugin, i));
  for (size_t i = 0; i < size; i++) mix_text_put(key, "%02x", (unsigned char)options[i]);
  mix_text_put(key, "\n%s", text);
  return !key->failed;
}

static void path_of(char path[PATH], const char *in, const mix_text *key, const char *ending) {
  snprintf(path, PATH, "%s/%016llx%016llx%s", in,
           (unsigned long long)hash(key->text, key->used, 0xcbf29ce484222325u),
           (unsigned long long)hash(key->text, key->used, 0x9e3779b97f4a7c15u), ending);
}

/* ---- reading ---- */

/* The program of a file with this key, of *size bytes (mix_free); NULL: it has none. */
static char *read_program(FILE *file, const mix_text *key, size_t *size) {
  header h;
  if (fread(&h, sizeof h, 1, file) != 1 || memcmp(h.magic, magic, sizeof magic)) return NULL;
  if (h.key_bytes != key->used || !h.program_bytes || h.program_bytes > FILE_MAX) return NULL;
  *size = (size_t)h.program_bytes;
  char *found = mix_alloc(key->used + 1), *program = found ? mix_alloc(*size) : NULL;
  const bool good = program && fread(found, 1, key->used, file) == key->used &&
                    !memcmp(found, key->text, key->used) && fread(program, 1, *size, file) == *size &&
                    hash(program, *size, 0) == h.program_hash;
  mix_free(found);
  if (good) return program;
  mix_free(program);
  return NULL;
}

static pjrt_loaded *load(const char *in, const mix_text *key) {
  char path[PATH];
  size_t size = 0;
  path_of(path, in, key, "");
  FILE *file = fopen(path, "rb");
  char *program = file ? read_program(file, key, &size) : NULL;
  if (file) fclose(file);
  if (!program) return NULL;
  pjrt_deserialize_args args = {.client = mix_xla_plugin()->client, .bytes = program, .size = size};
  const bool good = MIX_PJRT_CALL(mix_xla_plugin(), PJRT_EXECUTABLE_DESERIALIZE_AND_LOAD, args, path);
  mix_free(program);
  if (good) atomic_fetch_add(&loads, 1);
  return good ? args.loaded : NULL;
}

/* ---- writing ---- */

static bool write_file(const char *path, const mix_text *key, const pjrt_serialize_args *program) {
  header h = {.key_bytes = key->used,
              .program_bytes = program->size,
              .program_hash = hash(program->bytes, program->size, 0)};
  memcpy(h.magic, magic, sizeof magic);
  FILE *file = fopen(path, "wb");
  bool good = file && fwrite(&h, sizeof h, 1, file) == 1 &&
              fwrite(key->text, 1, key->used, file) == key->used &&
              fwrite(program->bytes, 1, program->size, file) == program->size;
  if (file) good = fclose(file) == 0 && good;
  return good;
}

/* Under another name first, so that no other process reads half a file. */
static void write_program(const char *in, const mix_text *key, const pjrt_serialize_args *program) {
  char path[PATH], new_path[PATH], ending[32];
  snprintf(ending, sizeof ending, ".new%ld", (long)getpid());
  path_of(path, in, key, "");
  path_of(new_path, in, key, ending);
  mkdir(in, 0777);
  if (write_file(new_path, key, program) && rename(new_path, path) == 0) {
    atomic_fetch_add(&writes, 1);
    return;
  }
  mix_log_message(MIX_LOG_WARNING, "MIXTAPE_XLA_CACHE: %s cannot be written: %s", path, strerror(errno));
  remove(new_path);
}

static void save(const char *in, const mix_text *key, pjrt_loaded *loaded) {
  const mix_pjrt *plugin = mix_xla_plugin();
  static const char what[] = "the plug-in does not serialize programs";
  char message[1024];
  pjrt_part_args part = {.object = loaded};
  pjrt_serialize_args args = {0};
  if (MIX_PJRT_CALL(plugin, PJRT_LOADED_GET_EXECUTABLE, part, what)) {
    args.executable = part.part;
    if (MIX_PJRT_CALL(plugin, PJRT_EXECUTABLE_SERIALIZE, args, what)) {
      write_program(in, key, &args);
      if (args.destroy) args.destroy(args.serialized);
    }
    mix_pjrt_destroy(plugin, PJRT_EXECUTABLE_DESTROY, part.part);
  }
  if (!mix_failed()) return;
  mix_error_take(message, sizeof message);
  if (!atomic_exchange(&off, true))
    mix_log_message(MIX_LOG_WARNING, "MIXTAPE_XLA_CACHE: the cache is off: %s", message);
}

/* ---- both ---- */

pjrt_loaded *mix_xla_compile_text(const char *text, const char *name) {
  const char *in = folder();
  mix_text key = {.grows = true};
  pjrt_loaded *loaded = NULL;
  if (in && make_key(&key, text)) {
    loaded = load(in, &key);
    mix_error_clear(); /* compiled anew */
  }
  if (!loaded && !key.failed) {
    loaded = mix_pjrt_compile(mix_xla_plugin(), text, strlen(text), name);
    if (loaded && in) save(in, &key, loaded);
  }
  mix_free(key.text);
  return loaded;
}

void mix_xla_describe_cache(mix_text *text) {
  const char *path = getenv("MIXTAPE_XLA_CACHE");
  if (!path || !*path)
    mix_text_put(text, "  cache of compiled programs: off, MIXTAPE_XLA_CACHE names no folder\n");
  else if (atomic_load(&off))
    mix_text_put(text, "  cache of compiled programs: off, the plug-in does not serialize programs\n");
  else
    mix_text_put(text, "  cache of compiled programs: %s, %d loaded and %d written by this process\n", path,
                 atomic_load(&loads), atomic_load(&writes));
}
