/* One thread, which waits for the descriptors of processes (Linux 5.3 and later). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall, sched_getaffinity */
#endif
#include "distribute/watch.h"

#include "base/alloc.h"
#include "base/error.h"
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct mix_watch {
  pthread_t thread;
  int count; /* of descriptors; the last one ends the watch */
  struct pollfd *polled;
  int *ranks;
  int wake; /* written to end the watch */
  void (*ended)(void *context, int rank);
  void *context;
};

_Static_assert(sizeof((mix_rank_identity *)0)->cores == sizeof(cpu_set_t), "cores is a cpu_set_t");
_Static_assert(sizeof(mix_rank_identity) == 64 + 40 + 128 + 2 * sizeof(int), "no padding");

static void read_boot(char *text, int size) {
  FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
  if (file && !fgets(text, size, file)) *text = 0;
  if (file) fclose(file);
}

mix_rank_identity mix_rank_identity_own(void) {
  mix_rank_identity own = {.process = (int)getpid()};
  cpu_set_t cores;
  struct stat space;
  gethostname(own.host, sizeof own.host - 1);
  read_boot(own.boot, sizeof own.boot);
  if (!stat("/proc/self/ns/pid", &space)) own.process_space = (unsigned)space.st_ino;
  /* of the main thread: MPI may have bound this one, which calls it */
  if (!sched_getaffinity(getpid(), sizeof cores, &cores)) memcpy(own.cores, &cores, sizeof cores);
  return own;
}

static bool same_machine(const mix_rank_identity *a, const mix_rank_identity *b) {
  return !strncmp(a->host, b->host, sizeof a->host) && !strncmp(a->boot, b->boot, sizeof a->boot);
}

bool mix_ranks_share_cores(const mix_rank_identity *a, const mix_rank_identity *b) {
  return same_machine(a, b) && !memcmp(a->cores, b->cores, sizeof a->cores);
}

static void *watch(void *context) {
  mix_watch *w = context;
  while (poll(w->polled, (nfds_t)w->count, -1) < 0) continue; /* interrupted */
  if (w->polled[w->count - 1].revents) return NULL;
  for (int i = 0; i < w->count - 1; i++)
    if (w->polled[i].revents) return w->ended(w->context, w->ranks[i]), NULL;
  return NULL;
}

static void destroy(mix_watch *w) {
  for (int i = 0; i < w->count; i++) close(w->polled[i].fd);
  if (w->wake >= 0) close(w->wake);
  mix_free(w->polled);
  mix_free(w->ranks);
  mix_free(w);
}

static bool open_descriptors(mix_watch *w, const mix_rank_identity *ranks, int count, int own) {
  int ends[2];
  for (int r = 0; r < count; r++) {
    if (r == own || !same_machine(&ranks[r], &ranks[own]) ||
        ranks[r].process_space != ranks[own].process_space)
      continue;
    const int descriptor = (int)syscall(SYS_pidfd_open, ranks[r].process, 0);
    if (descriptor < 0) continue;
    w->ranks[w->count] = r;
    w->polled[w->count++] = (struct pollfd){.fd = descriptor, .events = POLLIN};
  }
  if (!w->count || pipe(ends)) return false;
  w->polled[w->count++] = (struct pollfd){.fd = ends[0], .events = POLLIN};
  w->wake = ends[1];
  return true;
}

mix_watch *mix_watch_begin(const mix_rank_identity *ranks, int count, int own,
                           void (*ended)(void *context, int rank), void *context) {
  mix_watch *w = mix_calloc(1, sizeof *w);
  if (w) {
    *w = (mix_watch){.wake = -1, .ended = ended, .context = context};
    w->polled = mix_calloc((size_t)count + 1, sizeof *w->polled);
    w->ranks = mix_calloc((size_t)count + 1, sizeof *w->ranks);
  }
  if (w && w->polled && w->ranks && open_descriptors(w, ranks, count, own) &&
      !pthread_create(&w->thread, NULL, watch, w))
    return w;
  if (w) destroy(w);
  mix_error_clear();
  return NULL;
}

void mix_watch_end(mix_watch *w) {
  if (!w) return;
  if (write(w->wake, "", 1) == 1) pthread_join(w->thread, NULL);
  destroy(w);
}
