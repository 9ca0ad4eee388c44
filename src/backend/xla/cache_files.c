/* The folder of compiled programs. A program of it is run, so nobody else may be able to put one there: what
 * protects it is that the folder and its files are this user's alone. The digest only finds damage. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* secure_getenv */
#endif
#include "backend/xla/cache_files.h"

#include "base/alloc.h"
#include "base/error.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

uint64_t mix_xla_cache_bytes = (uint64_t)2 << 30;

/* ---- the folder ---- */

static bool find_folder(mix_xla_cache *cache) {
  const char *given = secure_getenv("MIXTAPE_XLA_CACHE"), *caches = secure_getenv("XDG_CACHE_HOME"),
             *home = secure_getenv("HOME");
  char *path = cache->path;
  cache->named = given && *given;
  if (cache->named)
    snprintf(path, sizeof cache->path, "%s", strcmp(given, "off") ? given : "");
  else if (caches && *caches == '/')
    snprintf(path, sizeof cache->path, "%s/mixtape", caches);
  else if (home && *home == '/')
    snprintf(path, sizeof cache->path, "%s/.cache/mixtape", home);
  for (size_t n = strlen(path); n > 1 && path[n - 1] == '/';) path[--n] = 0; /* it follows a link */
  return *path;
}

static void make_folder(mix_xla_cache *cache) {
  char *slash = strrchr(cache->path, '/');
  if (!cache->named) {
    *slash = 0;
    mkdir(cache->path, 0700);
    *slash = '/';
  }
  mkdir(cache->path, 0700);
}

/* NULL: it is this user's alone. */
static const char *find_fault(int folder, char fault[160]) {
  struct stat own, parent;
  if (folder < 0 || fstat(folder, &own) || fstatat(folder, "..", &parent, 0))
    snprintf(fault, 160, "%s",
             errno == ENOTDIR || errno == ELOOP ? "it is a symbolic link or no folder" : strerror(errno));
  else if (own.st_uid != geteuid())
    snprintf(fault, 160, "it belongs to user %u, and this is user %u", (unsigned)own.st_uid,
             (unsigned)geteuid());
  else if ((own.st_mode & 0777) != 0700)
    snprintf(fault, 160,
             "its mode is %04o, so others may have put programs into it; expected 0700; remove it",
             (unsigned)own.st_mode & 0777);
  else if ((parent.st_mode & (S_IWOTH | S_ISVTX)) == S_IWOTH)
    snprintf(fault, 160, "all users may replace it: the mode of the folder around it is %04o",
             (unsigned)parent.st_mode & 07777);
  else
    return NULL;
  return fault;
}

bool mix_xla_cache_open(mix_xla_cache *cache, bool make) {
  char fault[160];
  *cache = (mix_xla_cache){.folder = -1};
  if (!find_folder(cache)) return false;
  if (make) make_folder(cache);
  cache->folder = open(cache->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (cache->folder < 0 && errno == ENOENT && !make) return false;
  if (!find_fault(cache->folder, fault)) return true;
  mix_xla_cache_close(cache);
  mix_fail_io(
      "MIXTAPE_XLA_CACHE: compiled programs cannot be kept in %s: %s; name another folder, or \"off\"",
      cache->path, fault);
  return false;
}

void mix_xla_cache_close(mix_xla_cache *cache) {
  if (cache->folder >= 0) close(cache->folder);
  cache->folder = -1;
}

/* ---- reading ---- */

typedef struct header {
  char magic[8];
  unsigned char digest[MIX_SHA256_BYTES]; /* of what follows */
  unsigned char key[MIX_SHA256_BYTES];
  char driver[MIX_XLA_DRIVER];
} header;
static const char magic[8] = "MIXXLA2";
enum { DIGESTED = offsetof(header, key), NAME = MIX_SHA256_DIGITS };

/* A regular file of this user (mix_free), which becomes the one used last; NULL: there is none. A FIFO is
 * opened without waiting for a writer. */
static char *read_file(int folder, const char *name, size_t *size) {
  struct stat found;
  const int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  char *bytes = NULL;
  if (file >= 0 && fstat(file, &found) == 0 && S_ISREG(found.st_mode) && found.st_uid == geteuid() &&
      !(found.st_mode & 022) && found.st_size > (off_t)sizeof(header) &&
      (uint64_t)found.st_size <= mix_xla_cache_bytes) {
    size_t at = 0;
    ssize_t got = 1;
    *size = (size_t)found.st_size;
    bytes = mix_alloc(*size);
    while (bytes && at < *size && (got = read(file, bytes + at, *size - at)) > 0) at += (size_t)got;
    if (at < *size) mix_free(bytes), bytes = NULL;
    futimens(file, NULL);
  }
  if (file >= 0) close(file);
  return bytes;
}

/* A program that was compiled where no driver was suits every one. */
static bool is_good(const char *bytes, size_t size, const unsigned char key[MIX_SHA256_BYTES],
                    const char *driver) {
  header h;
  unsigned char digest[MIX_SHA256_BYTES];
  memcpy(&h, bytes, sizeof h);
  mix_sha256_of(bytes + DIGESTED, size - DIGESTED, digest);
  return !memcmp(h.magic, magic, sizeof magic) && !memcmp(h.key, key, sizeof h.key) &&
         !memcmp(h.digest, digest, sizeof digest) &&
         (!*h.driver || !strncmp(h.driver, driver, sizeof h.driver));
}

char *mix_xla_cache_read(const mix_xla_cache *cache, const unsigned char key[MIX_SHA256_BYTES],
                         const char *driver, size_t *size) {
  char name[NAME + 1];
  mix_sha256_text(key, name);
  char *bytes = read_file(cache->folder, name, size);
  if (bytes && is_good(bytes, *size, key, driver)) {
    *size -= sizeof(header);
    memmove(bytes, bytes + sizeof(header), *size);
    return bytes;
  }
  mix_free(bytes);
  return NULL;
}

/* ---- the bound ---- */

/* Other files in the folder are not the cache's to remove. */
static bool is_ours(const char *name) {
  const size_t digits = strspn(name, "0123456789abcdef");
  return digits == NAME && (!name[NAME] || !strncmp(name + NAME, ".new", 4));
}

/* Returns the bytes of all files; `oldest` is the name of the one that was used longest ago. */
static uint64_t measure(int folder, char oldest[NAME_MAX + 1]) {
  const int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *list = again >= 0 ? fdopendir(again) : NULL;
  struct timespec least = {0};
  uint64_t bytes = 0;
  if (!list && again >= 0) close(again);
  for (struct dirent *entry; list && (entry = readdir(list));) {
    struct stat found;
    if (!is_ours(entry->d_name) || fstatat(folder, entry->d_name, &found, AT_SYMLINK_NOFOLLOW) ||
        !S_ISREG(found.st_mode))
      continue;
    const struct timespec t = found.st_mtim;
    if (!bytes || t.tv_sec < least.tv_sec || (t.tv_sec == least.tv_sec && t.tv_nsec < least.tv_nsec))
      least = t, strcpy(oldest, entry->d_name);
    bytes += (uint64_t)found.st_size;
  }
  if (list) closedir(list);
  return bytes;
}

static void make_room(int folder, uint64_t size) {
  char oldest[NAME_MAX + 1];
  while (measure(folder, oldest) > mix_xla_cache_bytes - size)
    if (unlinkat(folder, oldest, 0)) return;
}

/* ---- writing ---- */

static bool write_bytes(int file, const char *bytes, size_t size) {
  for (ssize_t done; size; bytes += done, size -= (size_t)done)
    if ((done = write(file, bytes, size)) <= 0) return false;
  return true;
}

/* Under another name first, so that no other process reads half a file. */
static bool write_file(int folder, const char *name, const char *bytes, size_t size) {
  char new_name[NAME + 32];
  uint64_t fresh = 0;
  if (getrandom(&fresh, sizeof fresh, 0) < 0) return false;
  snprintf(new_name, sizeof new_name, "%s.new%016llx", name, (unsigned long long)fresh);
  const int file = openat(folder, new_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  bool good = file >= 0 && write_bytes(file, bytes, size);
  if (file >= 0) good = close(file) == 0 && good;
  if (good && renameat(folder, new_name, folder, name) == 0) return true;
  const int reason = errno;
  if (file >= 0) unlinkat(folder, new_name, 0);
  errno = reason;
  return false;
}

bool mix_xla_cache_write(const mix_xla_cache *cache, const unsigned char key[MIX_SHA256_BYTES],
                         const char *driver, const char *program, size_t size) {
  static atomic_bool told;
  const size_t all = sizeof(header) + size;
  header h = {0};
  char name[NAME + 1], *bytes = all <= mix_xla_cache_bytes ? mix_alloc(all) : NULL;
  if (!bytes) return false;
  memcpy(h.magic, magic, sizeof magic);
  memcpy(h.key, key, sizeof h.key);
  snprintf(h.driver, sizeof h.driver, "%s", driver);
  memcpy(bytes, &h, sizeof h);
  memcpy(bytes + sizeof h, program, size);
  mix_sha256_of(bytes + DIGESTED, all - DIGESTED, (unsigned char *)bytes + offsetof(header, digest));
  mix_sha256_text(key, name);
  make_room(cache->folder, all);
  errno = 0;
  const bool good = write_file(cache->folder, name, bytes, all);
  if (!good && !atomic_exchange(&told, true))
    mix_log_message(MIX_LOG_WARNING,
                    "MIXTAPE_XLA_CACHE: compiled programs cannot be kept in %s: %s; make room there, name "
                    "another folder, or \"off\"",
                    cache->path, strerror(errno));
  mix_free(bytes);
  return good;
}
