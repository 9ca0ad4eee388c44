/* --distribute: what each rank prints and writes, and how a rank that fails ends the others. */
#include "cli/cli.h"
#include "distribute/plugin.h"
#include "train/callback.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- a process that watches over the rank ---- */

static volatile sig_atomic_t rank_process, passed_on;
static void pass_on(int number) {
  passed_on = number;
  kill(rank_process, number);
}

static void wait_for_rank(pid_t child) {
  int status;
  char host[64] = "";
  rank_process = child;
  signal(SIGTERM, pass_on);
  signal(SIGINT, pass_on);
  while (waitpid(child, &status, 0) < 0) continue; /* interrupted */
  if (!WIFSIGNALED(status)) _exit(WEXITSTATUS(status));
  if (passed_on == WTERMSIG(status)) _exit(128 + passed_on); /* the launcher or the user ends the job */
  gethostname(host, sizeof host - 1);
  fprintf(stderr,
          "mixtape train: rank %s (process %d on %s) was ended by signal %d (%s), and with it this job\n",
          mix_mpi_launched_rank(), (int)child, host, WTERMSIG(status), strsignal(WTERMSIG(status)));
  mix_wait_for_launcher();
  _exit(128 + WTERMSIG(status));
}

void cli_watch_rank(const cli_options *options) {
  if (!cli_is_distributed(options) || !mix_mpi_launched()) return;
  const pid_t child = fork();
  if (child > 0) wait_for_rank(child);
  if (!child) prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* ---- ranks ---- */

/* Warnings and progress are those of rank 0. */
static void log_errors(void *context, mix_log_level level, const char *message) {
  if (level == MIX_LOG_ERROR) mix_log_to_stderr(context, level, message);
}

int cli_join_ranks(cli_options *options) {
  if (!cli_is_distributed(options)) return CLI_OK;
  mix_distribution *ranks = mix_distribution_mpi();
  mix_set_distribution(ranks);
  if (mix_error() != MIX_OK) return cli_fail();
  if (options->threads) mix_set_threads((int)options->threads);
  if (mix_distribution_size(ranks) == 1)
    fprintf(stderr, "mixtape train: --distribute mpi in one process; start it as in: mpirun -n 2 mixtape "
                    "train --distribute mpi ...\n");
  if (!mix_distribution_rank(ranks)) return CLI_OK;
  mix_set_log_callback(log_errors, NULL);
  options->save = options->step_log = options->tensorboard = options->trace = NULL;
  options->verbose = 0;
  return CLI_OK;
}

int cli_leave_ranks(const cli_options *options, int code) {
  mix_distribution *ranks = cli_is_distributed(options) ? mix_distribution_current() : NULL;
  if (code && mix_distribution_size(ranks) > 1)
    mix_distribution_end_job(ranks, code); /* and it stays open: the others may not come to close it */
  else
    mix_set_distribution(NULL);
  return code;
}

bool cli_callback_is_local(const char *text) {
  static const char *const local[] = {"model_checkpoint", "csv_logger", "tensorboard"};
  for (size_t i = 0; i < sizeof local / sizeof *local; i++)
    if (mix_callback_text_names(text, local[i])) return true;
  return false;
}
