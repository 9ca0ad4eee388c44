/* The lock of a checkpoint folder. flock on the folder itself needs no file and no right to write, and the
 * kernel takes it back from a killed process. Several checkpoints of one process share it. */
#include "saving/folder_lock.h"

#include "base/alloc.h"
#include "base/error.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct mix_folder_lock {
  mix_folder_lock *next;
  dev_t device; /* with `number` the identity of the folder, which stays while `file` is open */
  ino_t number;
  int file, references;
  bool excludes;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static mix_folder_lock *locks; /* of this process */

static mix_folder_lock *find(const struct stat *status) {
  mix_folder_lock *lock = locks;
  while (lock && (lock->device != status->st_dev || lock->number != status->st_ino)) lock = lock->next;
  return lock;
}

/* Locks the open folder. False with the error recorded if another process has. */
static bool try_lock(mix_folder_lock *lock, const char *folder, const char *call) {
  lock->excludes = flock(lock->file, LOCK_EX | LOCK_NB) == 0;
  if (lock->excludes) return true;
  if (errno == EWOULDBLOCK)
    return mix_fail_runtime(
        "%s: the folder %s is in use by another process; wait until that has ended, or name "
        "another folder",
        call, folder);
  mix_log_message(MIX_LOG_WARNING,
                  "%s: the folder %s cannot be locked: %s; see that no other process uses it", call, folder,
                  strerror(errno));
  return true;
}

static mix_folder_lock *take(int file, const char *folder, const char *call) {
  struct stat status;
  if (fstat(file, &status) != 0)
    return mix_fail_io("%s: the folder %s cannot be read: %s", call, folder, strerror(errno));
  mix_folder_lock *lock = find(&status);
  if (lock) {
    close(file);
    lock->references++;
    return lock;
  }
  if (!(lock = mix_alloc(sizeof *lock))) return NULL;
  *lock = (mix_folder_lock){
      .device = status.st_dev, .number = status.st_ino, .file = file, .references = 1, .next = locks};
  if (try_lock(lock, folder, call)) return locks = lock;
  mix_free(lock);
  return NULL;
}

mix_folder_lock *mix_folder_lock_take(const char *folder, const char *call) {
  int file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return mix_fail_io("%s: the folder %s cannot be read: %s", call, folder, strerror(errno));
  pthread_mutex_lock(&mutex);
  mix_folder_lock *lock = take(file, folder, call);
  pthread_mutex_unlock(&mutex);
  if (!lock) close(file);
  return lock;
}

bool mix_folder_lock_fits(const mix_folder_lock *lock, const char *folder) {
  struct stat status;
  return stat(folder, &status) == 0 && status.st_dev == lock->device && status.st_ino == lock->number;
}

bool mix_folder_lock_excludes(const mix_folder_lock *lock) { return lock->excludes; }

void mix_folder_lock_release(mix_folder_lock *lock) {
  if (!lock) return;
  pthread_mutex_lock(&mutex);
  if (--lock->references == 0) {
    mix_folder_lock **link = &locks;
    while (*link != lock) link = &(*link)->next;
    *link = lock->next;
    close(lock->file);
    mix_free(lock);
  }
  pthread_mutex_unlock(&mutex);
}
