/* Reading and replacing whole files; paths and folders. */
#include "formats/file.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "formats/output_file.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

bool mix_file_exists(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* Reads up to `size` bytes or the end of the file. Returns the bytes read, -1 on an error. */
static ssize_t read_fully(int file, void *data, size_t size) {
  size_t done = 0;
  while (done < size) {
    ssize_t got = read(file, (char *)data + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += (size_t)got;
  }
  return (ssize_t)done;
}

void *mix_file_read(const char *path, size_t limit, size_t *size) {
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe does not wait for its writer */
  if (file < 0) return mix_fail_io("%s: cannot be opened: %s", path, strerror(errno));
  struct stat status;
  void *data = NULL;
  if (fstat(file, &status) != 0) {
    mix_fail_io("%s: cannot be read: %s", path, strerror(errno));
  } else if (!S_ISREG(status.st_mode)) {
    mix_fail_io("%s: not a regular file", path);
  } else if ((uint64_t)status.st_size > limit) {
    mix_fail_format("%s: %lld bytes, more than the %zu that such a file can have", path,
                    (long long)status.st_size, limit);
  } else if ((data = mix_alloc((size_t)status.st_size)) != NULL) {
    ssize_t got = read_fully(file, data, (size_t)status.st_size);
    if (got == status.st_size) {
      *size = (size_t)got;
    } else {
      if (got < 0)
        mix_fail_io("%s: cannot be read: %s", path, strerror(errno));
      else
        mix_fail_io("%s: shrank while it was read", path);
      mix_free(data);
      data = NULL;
    }
  }
  close(file);
  return data;
}

char *mix_file_target(const char *path) {
  enum { MAX_LINKS = 40 }; /* the limit of Linux */
  char *target = mix_strdup(path), name[PATH_MAX];
  ssize_t length;
  for (int i = 0; target && i < MAX_LINKS && (length = readlink(target, name, sizeof name - 1)) > 0; i++) {
    name[length] = 0;
    /* A relative target starts at the folder of the link. */
    char *slash = name[0] == '/' ? NULL : strrchr(target, '/');
    if (slash) slash[1] = 0;
    char *next = slash ? mix_path_join(target, name) : mix_strdup(name);
    mix_free(target);
    target = next;
  }
  return target;
}

const char *mix_file_unwritable_reason(const char *path) {
  struct stat status;
  const bool exists = stat(path, &status) == 0;
  if (exists && !S_ISREG(status.st_mode)) return "not a regular file, and not to be replaced by one";
  if (!exists && errno != ENOENT) return strerror(errno);
  char *target = mix_file_target(path), *slash = target ? strrchr(target, '/') : NULL;
  if (!target) return mix_error_message();
  if (slash) slash[1] = 0;
  const char *reason = access(slash ? target : ".", W_OK | X_OK) ? strerror(errno) : NULL;
  mix_free(target);
  return reason;
}

const char *mix_folder_unwritable_reason(const char *path) {
  struct stat status;
  char *folder = mix_strdup(*path ? path : ".");
  if (!folder) return mix_error_message();
  bool exists;
  while (!(exists = stat(folder, &status) == 0) && errno == ENOENT &&
         strcmp(folder, "/") != 0) { /* its parent folder */
    char *slash = strrchr(folder, '/');
    if (slash)
      slash[slash == folder] = 0;
    else
      strcpy(folder, ".");
  }
  const char *reason = !exists                            ? strerror(errno)
                       : !S_ISDIR(status.st_mode)         ? "not a folder"
                       : access(folder, W_OK | X_OK) != 0 ? strerror(errno)
                                                          : NULL;
  mix_free(folder);
  return reason;
}

/* ---- part files ---- */

#define PART ".part-"
enum { MAX_NAME = 180 }; /* of a name, so that the suffixes of a part file and of libzip fit */

/* Differs between processes, also of equal numbers in other containers or on other machines. */
static uint64_t process_token(void) {
  static _Atomic uint64_t token;
  uint64_t now = atomic_load(&token), fresh = 0;
  if (now) return now;
  if (getrandom(&fresh, sizeof fresh, 0) != sizeof fresh)
    fresh = (uint64_t)(mix_clock(CLOCK_REALTIME) * 1e9) ^ (uint64_t)getpid() << 32;
  if (!fresh) fresh = 1;
  return atomic_compare_exchange_strong(&token, &now, fresh) ? fresh : now;
}

/* A number of this machine: process numbers say something only here. */
static uint32_t machine_number(void) {
  char name[256] = "";
  uint32_t hash = 2166136261u; /* FNV-1a */
  if (gethostname(name, sizeof name - 1) != 0) return 0;
  for (const char *c = name; *c; c++) hash = (hash ^ (unsigned char)*c) * 16777619u;
  return hash;
}

mix_part_state mix_part_state_of(const char *name, const char *stem, size_t length) {
  long process = 0;
  unsigned machine = machine_number();
  unsigned long long token = 0;
  if (strncmp(name, stem, length) != 0 || strncmp(name + length, PART, sizeof PART - 1) != 0)
    return MIX_PART_NONE;
  if (sscanf(name + length + sizeof PART - 1, "%ld-%8x-%16llx-", &process, &machine, &token) < 3)
    machine = machine_number(); /* the name that an earlier version gave: a process and a number */
  if (token == process_token() && process == (long)getpid()) return MIX_PART_OURS;
  if (machine != machine_number() || process <= 0) return MIX_PART_UNKNOWN;
  const bool gone = process == (long)getpid() || (kill((pid_t)process, 0) != 0 && errno == ESRCH);
  return gone ? MIX_PART_STALE : MIX_PART_UNKNOWN;
}

/* The folder that `path` lies in, in `folder` of PATH_MAX bytes. */
static const char *folder_of(const char *path, char *folder) {
  const char *slash = strrchr(path, '/');
  if (slash)
    snprintf(folder, PATH_MAX, "%.*s", (int)(slash == path ? 1 : slash - path), path);
  else
    strcpy(folder, ".");
  return folder;
}

/* Removes what killed processes left of this file. What cannot be removed stays. */
static void remove_stale_parts(const char *target, size_t folder_length) {
  char folder[PATH_MAX];
  DIR *directory = opendir(folder_of(target, folder));
  const char *name = target + folder_length;
  const size_t length = strlen(name) < MAX_NAME ? strlen(name) : MAX_NAME;
  for (struct dirent *entry; directory && (entry = readdir(directory));)
    if (mix_part_state_of(entry->d_name, name, length) == MIX_PART_STALE)
      (void)unlinkat(dirfd(directory), entry->d_name, 0);
  if (directory) closedir(directory);
}

char *mix_file_part(const char *path, const char *call) {
  static atomic_uint number;
  const char *reason = mix_file_unwritable_reason(path);
  if (reason) return mix_fail_io("%s: %s cannot be written: %s", call, path, reason);
  char *target = mix_file_target(path);
  const char *slash = target ? strrchr(target, '/') : NULL;
  const size_t folder = slash ? (size_t)(slash + 1 - target) : 0, size = target ? strlen(target) + 64 : 0;
  if (target) remove_stale_parts(target, folder);
  char *part = target && !mix_failed() ? mix_alloc(size) : NULL;
  if (part)
    snprintf(part, size, "%.*s%.*s" PART "%ld-%08x-%016llx-%u", (int)folder, target, MAX_NAME,
             target + folder, (long)getpid(), machine_number(), (unsigned long long)process_token(),
             atomic_fetch_add(&number, 1));
  mix_free(target);
  return part;
}

/* ---- to the disk ---- */

/* Flushes the folder that `path` lies in, so that its name is on the disk. A file system that knows no such
 * request has nothing to flush. */
static bool flush_folder(const char *path) {
  char folder[PATH_MAX];
  int file = open(folder_of(path, folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return errno == EACCES; /* a folder that may be written but not read cannot be flushed */
  const bool done = fsync(file) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS;
  const int reason = errno;
  close(file);
  errno = reason;
  return done;
}

/* Gives a part the mode and the owner of the file that it replaces. Another user's file can be replaced
 * without the right to keep its owner. */
static bool keep_mode_and_owner(int part, const char *target) {
  struct stat old, made;
  if (stat(target, &old) != 0) return errno == ENOENT;
  if (fstat(part, &made) != 0) return false;
  mode_t mode = old.st_mode & 07777;
  if ((made.st_uid != old.st_uid || made.st_gid != old.st_gid) && fchown(part, old.st_uid, old.st_gid) != 0 &&
      fchown(part, (uid_t)-1, old.st_gid) != 0)
    mode &= 01777; /* set-user-id and set-group-id are not for another owner */
  return fchmod(part, mode) == 0;
}

/* Says why the part cannot be written and removes it, unless it is done. Takes the target. */
static bool part_ended(const char *part, char *target, const char *path, const char *call, bool done,
                       int reason) {
  if (!done) unlink(part);
  if (!done && target) mix_fail_io("%s: %s cannot be written: %s", call, path, strerror(reason));
  mix_free(target);
  return done;
}

bool mix_file_settle(const char *part, const char *path, const char *call) {
  char *target = mix_file_target(path);
  int file = target ? open(part, O_RDONLY | O_CLOEXEC) : -1;
  const bool done = file >= 0 && keep_mode_and_owner(file, target) && fsync(file) == 0;
  const int reason = errno;
  if (file >= 0) close(file);
  return part_ended(part, target, path, call, done, reason);
}

bool mix_file_commit(const char *part, const char *path, const char *call) {
  if (!mix_file_settle(part, path, call)) return false;
  char *target = mix_file_target(path);
  const bool done = target && mix_file_take_place(part, target);
  return part_ended(part, target, path, call, done, errno);
}

bool mix_file_take_place(const char *part, const char *target) {
  return (part ? rename(part, target) == 0 : unlink(target) == 0 || errno == ENOENT) && flush_folder(target);
}

/* Says why the part cannot be written, unless an error is recorded, and removes it. */
static bool part_failed(const char *part, const char *path, const char *call, int reason) {
  unlink(part);
  return mix_fail_io("%s: %s cannot be written: %s", call, path, strerror(reason));
}

bool mix_file_write_source(const char *part, const char *path, const mix_piece_source *source,
                           const char *call) {
  mix_output_file output;
  mix_bytes piece;
  if (!mix_output_open(&output, part)) /* a file of that name is another's */
    return mix_fail_io("%s: %s cannot be written: %s", call, path, strerror(errno));
  bool done;
  do done = source->next(source->context, &piece) && mix_output_put(&output, piece.data, piece.size);
  while (done && piece.size);
  int reason = errno;
  if (!mix_output_close(&output) && done) {
    reason = errno;
    done = false;
  }
  return done || part_failed(part, path, call, reason);
}

typedef struct blocks {
  const mix_bytes *items;
  int count;
} blocks;

static bool next_block(void *context, mix_bytes *piece) {
  blocks *left = context;
  *piece = (mix_bytes){0};
  while (left->count && !piece->size) {
    *piece = *left->items++;
    left->count--;
  }
  return true;
}

bool mix_file_write_part(const char *part, const char *path, const mix_bytes *pieces, int count,
                         const char *call) {
  blocks all = {pieces, count};
  return mix_file_write_source(part, path, &(mix_piece_source){.next = next_block, .context = &all}, call);
}

bool mix_file_replace_from(const char *path, const mix_piece_source *source, const char *call) {
  char *part = mix_file_part(path, call);
  const bool done =
      part && mix_file_write_source(part, path, source, call) && mix_file_commit(part, path, call);
  mix_free(part);
  return done;
}

bool mix_file_replace(const char *path, const mix_bytes *pieces, int count, const char *call) {
  blocks all = {pieces, count};
  return mix_file_replace_from(path, &(mix_piece_source){.next = next_block, .context = &all}, call);
}

bool mix_folder_make_last(const char *path) {
  if (mkdir(path, 0777) != 0) return errno == EEXIST;
  return flush_folder(path);
}

bool mix_folder_make(const char *path) {
  char *copy = mix_strdup(path);
  if (!copy) return false;
  bool done = true;
  for (char *at = copy + 1; done; at++) {
    if (*at != '/' && *at != 0) continue;
    char end = *at;
    *at = 0;
    done = at[-1] == '/' || mix_folder_make_last(copy);
    if (!done) mix_fail_io("%s: the folder cannot be made: %s", copy, strerror(errno));
    *at = end;
    if (end == 0) break;
  }
  mix_free(copy);
  return done;
}

char *mix_path_join(const char *folder, const char *name) {
  size_t length = strlen(folder), size = length + strlen(name) + 2;
  char *path = mix_alloc(size);
  if (path) snprintf(path, size, "%s%s%s", folder, length && folder[length - 1] == '/' ? "" : "/", name);
  return path;
}
