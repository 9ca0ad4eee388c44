/* A process announces itself by a socket in the abstract namespace of Linux, which ends with the process
 * however that ends. Its name has the user, the job and the process's number in it. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* struct ucred, SOCK_CLOEXEC */
#endif
#include "distribute/meeting.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

typedef enum presence { ABSENT, PRESENT, HALTED } presence;

struct mix_meeting {
  const mix_transport *transport;
  mix_transport_link *link;
  int ranks, announced; /* a socket; negative: nobody can be told */
  presence seen[];
};

/* ---- names ---- */

/* The parent and the name of a process. */
static bool read_process(int process, int *parent, char *name, size_t size, char *state) {
  char path[64], line[512] = "";
  snprintf(path, sizeof path, "/proc/%d/stat", process);
  FILE *file = fopen(path, "r");
  if (!file) return false;
  const bool read = fgets(line, sizeof line, file) != NULL;
  fclose(file);
  char *begin = strchr(line, '('), *end = strrchr(line, ')'); /* a name may have parentheses */
  if (!read || !begin || !end || sscanf(end + 1, " %c %d", state, parent) != 2) return false;
  *end = 0;
  snprintf(name, size, "%s", begin + 1);
  return true;
}

/* MPICH's launcher names no job: all its ranks of one machine come from one process. */
static int launcher_process(void) {
  char name[64], state;
  for (int process = (int)getppid(), parent; process > 1; process = parent) {
    if (!read_process(process, &parent, name, sizeof name, &state)) return 0;
    if (!strcmp(name, "hydra_pmi_proxy")) return process;
  }
  return 0;
}

static bool name_job(char *job, size_t size) {
  const char *name = getenv("PMIX_NAMESPACE"), *slurm = getenv("SLURM_JOB_ID"),
             *step = getenv("SLURM_STEP_ID");
  const int launcher = name || (slurm && step) ? 0 : launcher_process();
  if (name)
    snprintf(job, size, "%.60s", name);
  else if (slurm && step)
    snprintf(job, size, "%.20s.%.20s", slurm, step);
  else
    snprintf(job, size, "%d", launcher);
  return name || (slurm && step) || launcher;
}

static bool name_process(int process, struct sockaddr_un *address, socklen_t *length) {
  char job[64];
  *address = (struct sockaddr_un){.sun_family = AF_UNIX};
  if (!name_job(job, sizeof job)) return false;
  const int used = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "mixtape-%d-%s-%d",
                            (int)getuid(), job, process);
  *length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)used);
  return true;
}

/* ---- announcing ---- */

static int process_of(const mix_meeting *m, int rank) {
  return m->link ? m->transport->process_of(m->link, rank) : rank;
}

static int announce(int process) {
  struct sockaddr_un address;
  socklen_t length;
  if (process < 0 || !name_process(process, &address, &length)) return -1;
  const int announced = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (announced < 0) return -1;
  /* A name that is taken is this process's own, of another meeting. */
  if (!bind(announced, (struct sockaddr *)&address, length) && !listen(announced, 1)) return announced;
  const bool taken = errno == EADDRINUSE;
  if (!taken) close(announced);
  return taken ? announced : -1;
}

mix_meeting *mix_meeting_begin(const mix_transport *transport, mix_transport_link *link, int rank,
                               int ranks) {
  mix_meeting *m = mix_calloc(1, sizeof *m + sizeof *m->seen * (size_t)ranks);
  if (!m) return mix_error_clear(), NULL;
  m->transport = transport, m->link = link, m->ranks = ranks;
  m->announced = announce(process_of(m, rank));
  return m;
}

void mix_meeting_end(mix_meeting *m) {
  if (!m) return;
  if (m->announced >= 0) close(m->announced);
  mix_free(m);
}

/* ---- asking ---- */

/* The other side's process, as it was when it announced itself. */
static presence of_connected(int connection) {
  struct ucred other;
  socklen_t length = sizeof other;
  char name[64], state = 0;
  int parent;
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &other, &length)) return PRESENT;
  const bool read = read_process(other.pid, &parent, name, sizeof name, &state);
  return read && (state == 'T' || state == 't') ? HALTED : PRESENT;
}

static presence presence_of(int process) {
  struct sockaddr_un address;
  socklen_t length;
  if (process < 0 || !name_process(process, &address, &length)) return ABSENT;
  const int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (connection < 0) return PRESENT;
  presence found = ABSENT;
  if (!connect(connection, (struct sockaddr *)&address, length))
    found = of_connected(connection);
  else if (errno == EAGAIN) /* others ask as well */
    found = PRESENT;
  close(connection);
  return found;
}

/* Are all ranks processes of this machine, as far as the launcher says? */
static bool all_are_here(void) {
  const char *all = getenv("OMPI_COMM_WORLD_SIZE"), *here = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  if (!all || !here) all = getenv("PMI_SIZE"), here = getenv("MPI_LOCALNRANKS");
  return all && here && !strcmp(all, here);
}

void mix_meeting_look(mix_meeting *m) {
  for (int r = 0; m && m->announced >= 0 && r < m->ranks; r++) {
    const presence now = presence_of(process_of(m, r));
    if (now != ABSENT) m->seen[r] = now;
  }
}

const char *mix_meeting_missing(mix_meeting *m, char *text, size_t size) {
  mix_text list = {.text = text, .size = size};
  const char *elsewhere = all_are_here() ? "" : " or is on another machine";
  if (!m || m->announced < 0 || !m->ranks) return "which ones have not come cannot be told here";
  mix_meeting_look(m);
  for (int r = 0; r < m->ranks; r++) {
    if (m->seen[r] == PRESENT) continue;
    mix_text_put(&list, "%srank %d of %d ", list.used ? ", " : "", r, m->ranks);
    mix_text_put(&list, "%s%s", m->seen[r] ? "is stopped" : "has not come", m->seen[r] ? "" : elsewhere);
  }
  return list.used ? text : "all have come on this machine, and one of them does not go on";
}
