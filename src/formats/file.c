/* Reading and replacing whole files; paths and folders. */
#include "formats/file.h"

#include "base/alloc.h"
#include "base/error.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
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
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return mix_fail(MIX_IO_ERROR, "%s: cannot be opened: %s", path, strerror(errno));
  struct stat status;
  void *data = NULL;
  if (fstat(file, &status) != 0) {
    mix_fail(MIX_IO_ERROR, "%s: cannot be read: %s", path, strerror(errno));
  } else if (!S_ISREG(status.st_mode)) {
    mix_fail(MIX_IO_ERROR, "%s: not a regular file", path);
  } else if ((uint64_t)status.st_size > limit) {
    mix_fail(MIX_FORMAT_ERROR, "%s: %lld bytes, more than the %zu that such a file can have", path,
             (long long)status.st_size, limit);
  } else if ((data = mix_alloc((size_t)status.st_size)) != NULL) {
    ssize_t got = read_fully(file, data, (size_t)status.st_size);
    if (got == status.st_size) {
      *size = (size_t)got;
    } else {
      if (got < 0)
        mix_fail(MIX_IO_ERROR, "%s: cannot be read: %s", path, strerror(errno));
      else
        mix_fail(MIX_IO_ERROR, "%s: shrank while it was read", path);
      mix_free(data);
      data = NULL;
    }
  }
  close(file);
  return data;
}

/* The target of a symbolic link, existing or not; `path` itself if it is no link; mix_free it. */
static char *link_target(const char *path) {
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
  char *target = link_target(path), *slash = target ? strrchr(target, '/') : NULL;
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

char *mix_file_part(const char *path, const char *call) {
  enum { MAX_NAME = 200 }; /* of a name, so that the suffix fits */
  static atomic_uint number;
  const char *reason = mix_file_unwritable_reason(path);
  if (reason) return mix_fail(MIX_IO_ERROR, "%s: %s cannot be written: %s", call, path, reason);
  char *target = link_target(path);
  const char *slash = target ? strrchr(target, '/') : NULL;
  const size_t folder = slash ? (size_t)(slash + 1 - target) : 0, size = target ? strlen(target) + 48 : 0;
  char *part = target ? mix_alloc(size) : NULL;
  if (part)
    snprintf(part, size, "%.*s%.*s.part-%ld-%u", (int)folder, target, MAX_NAME, target + folder,
             (long)getpid(), atomic_fetch_add(&number, 1));
  mix_free(target);
  return part;
}

/* Flushes the folder's entry for the new name. Errors are ignored: a file system that refuses has nothing to
 * flush. */
static void flush_folder(const char *path) {
  const char *slash = strrchr(path, '/');
  char *folder = slash ? mix_strdup(path) : NULL;
  if (slash && !folder) return;
  if (folder) folder[slash == path ? 1 : slash - path] = 0;
  int file = open(folder ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  mix_free(folder);
  if (file < 0) return;
  (void)fsync(file);
  close(file);
}

bool mix_file_commit(const char *part, const char *path, const char *call) {
  char *target = link_target(path);
  int file = target ? open(part, O_RDONLY | O_CLOEXEC) : -1;
  bool done = file >= 0 && fsync(file) == 0;
  int reason = errno;
  if (file >= 0) close(file);
  if (done && rename(part, target) != 0) {
    reason = errno;
    done = false;
  }
  if (done) {
    flush_folder(target);
  } else {
    unlink(part);
    if (target) mix_fail(MIX_IO_ERROR, "%s: %s cannot be written: %s", call, path, strerror(reason));
  }
  mix_free(target);
  return done;
}

static bool write_fully(int file, const char *data, size_t size) {
  while (size > 0) {
    ssize_t put = write(file, data, size);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    data += put;
    size -= (size_t)put;
  }
  return true;
}

bool mix_file_replace(const char *path, const mix_bytes *pieces, int count, const char *call) {
  char *part = mix_file_part(path, call);
  if (!part) return false;
  int file = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  bool done = file >= 0;
  for (int i = 0; done && i < count; i++) done = write_fully(file, pieces[i].data, pieces[i].size);
  int reason = errno;
  if (file >= 0 && close(file) != 0 && done) {
    reason = errno;
    done = false;
  }
  if (done) {
    done = mix_file_commit(part, path, call);
  } else {
    if (file >= 0) unlink(part);
    mix_fail(MIX_IO_ERROR, "%s: %s cannot be written: %s", call, path, strerror(reason));
  }
  mix_free(part);
  return done;
}

bool mix_folder_make(const char *path) {
  char *copy = mix_strdup(path);
  if (!copy) return false;
  bool done = true;
  for (char *at = copy + 1; done; at++) {
    if (*at != '/' && *at != 0) continue;
    char end = *at;
    *at = 0;
    done = mkdir(copy, 0777) == 0 || errno == EEXIST;
    if (!done) mix_fail(MIX_IO_ERROR, "%s: the folder cannot be made: %s", copy, strerror(errno));
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
