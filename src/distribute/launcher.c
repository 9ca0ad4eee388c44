/* What launchers leave in the environment of a process, and what they read of it. */
#include "distribute/launcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* What each flavour's launchers set. srun sets PMI_RANK (pmi2) or PMIX_RANK (pmix), which both flavours may
 * speak; Debian's Open MPI speaks pmix, its MPICH pmi2. */
static const struct {
  const char *variable, *flavor;
} launchers[] = {{"OMPI_COMM_WORLD_RANK", "openmpi"}, {"PMI_RANK", "mpich"}, {"PMIX_RANK", "openmpi"}};
enum { LAUNCHERS = sizeof launchers / sizeof *launchers };

const char *mix_mpi_launched_flavor(void) {
  for (int i = 0; i < LAUNCHERS; i++)
    if (getenv(launchers[i].variable)) return launchers[i].flavor;
  return NULL;
}

bool mix_mpi_launched(void) { return mix_mpi_launched_flavor() != NULL; }

/* srun alone sets the number of tasks of a step: a batch script has none. */
bool mix_mpi_is_missing(void) {
  const char *tasks = getenv("SLURM_STEP_NUM_TASKS");
  return !mix_mpi_launched() && getenv("SLURM_PROCID") && tasks && atoi(tasks) > 1;
}

const char *mix_mpi_launched_rank(void) {
  for (int i = 0; i < LAUNCHERS; i++)
    if (getenv(launchers[i].variable)) return getenv(launchers[i].variable);
  return "?";
}

int mix_mpi_launched_ranks(void) {
  static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
  for (size_t i = 0; mix_mpi_launched() && i < sizeof sizes / sizeof *sizes; i++)
    if (getenv(sizes[i])) return atoi(getenv(sizes[i]));
  return 0;
}

static bool is_unread(int stream) {
  struct stat status;
  int unread;
  return !fstat(stream, &status) && S_ISFIFO(status.st_mode) && !ioctl(stream, FIONREAD, &unread) && unread;
}

/* A launcher drops what it has not yet read of a rank that ends its job. */
void mix_wait_for_launcher(void) {
  fflush(stdout);
  fflush(stderr);
  for (int stream = STDOUT_FILENO, tries = 0; stream <= STDERR_FILENO && tries < 100;)
    if (is_unread(stream))
      nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL), tries++;
    else
      stream++;
  nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
}

void mix_end_job_without_mpi(int code) {
  const char *launcher = getenv("PMI_FD");
  mix_wait_for_launcher();
  if (launcher) dprintf(atoi(launcher), "cmd=abort exitcode=%d\n", code);
}
