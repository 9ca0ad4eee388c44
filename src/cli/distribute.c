/* --distribute: what each rank prints and writes, and how a rank that fails ends the others. */
#include "cli/cli.h"
#include "distribute/distribute.h"
#include "distribute/launcher.h"
#include "train/callback.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- messages before the ranks have joined ---- */

static struct {
  FILE *file; /* what is held; NULL: nothing */
  int errors; /* where standard error wrote before; -1: it does so again */
} held = {.errors = -1};

/* The options may be wrong, so that they cannot be parsed. */
static bool asks_for_ranks(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    const char *value = NULL;
    if (cli_is_option(argc, argv, &i, "--distribute", &value)) {
      if (value && strcmp(value, "none")) return true;
    } else {
      value = strrchr(argv[i], '=');
      if (!strcmp(value ? value + 1 : argv[i], "mpi")) return true;
    }
  }
  return false;
}

static void end_held(void) {
  if (held.file) fclose(held.file);
  held.file = NULL;
}

void cli_hold_messages(int argc, char **argv) {
  if (!mix_mpi_launched() || !asks_for_ranks(argc, argv)) return;
  held.file = tmpfile();
  if (held.file) fcntl(fileno(held.file), F_SETFD, FD_CLOEXEC);
  held.errors = held.file ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0) : -1;
  if (held.errors >= 0 && dup2(fileno(held.file), STDERR_FILENO) >= 0) return;
  if (held.errors >= 0) close(held.errors);
  held.errors = -1;
  end_held();
}

static void stop_holding(void) {
  if (held.errors < 0) return;
  fflush(stderr);
  dup2(held.errors, STDERR_FILENO);
  close(held.errors);
  held.errors = -1;
}

/* From its beginning: a process and its child have one place in it, so only one of them asks. */
static size_t read_first(char *text, size_t size) {
  if (!held.file) return 0;
  rewind(held.file);
  return fread(text, 1, size, held.file);
}

/* Prints what has not been read of it. */
static void print_rest(void) {
  char some[4096];
  for (size_t size; held.file && (size = fread(some, 1, sizeof some, held.file)) > 0;)
    fwrite(some, 1, size, stderr);
  end_held();
}

static void print_held(void) {
  char some[256];
  stop_holding();
  fwrite(some, 1, read_first(some, sizeof some), stderr);
  print_rest();
}

/* "mixtape train: unknown option" becomes "mixtape train: rank 1 of 2: unknown option". */
static void print_held_of_rank(int rank, int ranks) {
  char text[256];
  text[read_first(text, sizeof text - 1)] = '\0';
  const char *colon = strstr(text, ": ");
  const int begin = colon ? (int)(colon + 2 - text) : 0;
  fprintf(stderr, "%.*srank %d of %d: %s", begin, begin ? text : "mixtape train: ", rank, ranks,
          *text ? text + begin : "--help is not given to all ranks\n");
  print_rest();
}

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
  stop_holding(); /* the child prints */
  end_held();
  signal(SIGTERM, pass_on);
  signal(SIGINT, pass_on);
  while (waitpid(child, &status, 0) < 0) continue; /* interrupted */
  if (!WIFSIGNALED(status)) _exit(WEXITSTATUS(status));
  if (passed_on == WTERMSIG(status)) _exit(128 + passed_on); /* the launcher or the user ends the job */
  gethostname(host, sizeof host - 1);
  fprintf(stderr,
          "mixtape train: rank %s (process %d on %s) was ended by signal %d (%s), and with it this job\n",
          mix_mpi_launched_rank(), (int)child, host, WTERMSIG(status), strsignal(WTERMSIG(status)));
  mix_end_job_without_mpi(128 + WTERMSIG(status)); /* it may have ended before MPI has started */
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

/* The rank whose failure is told: the first one; with none, the first that was asked for --help; -1: all can
 * begin. */
static int first_failure(const int *codes, int ranks) {
  for (int r = 0; r < ranks; r++)
    if (codes[r] > 0) return r;
  for (int r = 0; r < ranks; r++)
    if (codes[r] < 0) return r;
  return -1;
}

static bool all_are(const int *codes, int ranks, int code) {
  for (int r = 0; r < ranks; r++)
    if (codes[r] != code) return false;
  return true;
}

/* One rank prints for all that cannot begin. Returns its exit code, on every rank, so that the launcher gets
 * that one; -1 if all have printed the help. */
static int agree_to_begin(const mix_distribution *distribution, int code) {
  const int ranks = mix_distribution_size(distribution), rank = mix_distribution_rank(distribution);
  int codes[ranks];
  if (!mix_gather_numbers("train", code, codes)) return cli_fail();
  const int first = first_failure(codes, ranks);
  if (first < 0 || all_are(codes, ranks, -1)) return first < 0 ? CLI_OK : -1;
  code = codes[first] > 0 ? codes[first] : CLI_USAGE;
  if (first == rank) {
    print_held_of_rank(rank, ranks);
    mix_wait_for_launcher();
  }
  return mix_gather_numbers("train", code, codes) ? code : cli_fail(); /* it has been printed */
}

/* A model that Keras trains on has the state of its optimizer; .npz and .weights.* have not. */
static bool saves_state(const cli_options *options) {
  const char *end = options->save ? strrchr(options->save, '.') : NULL;
  return end && (!strcmp(end, ".keras") || !strcmp(end, ".h5"));
}

/* Warnings and results are those of rank 0. */
static void print_less(cli_options *options) {
  mix_set_log_callback(log_errors, NULL);
  options->save = options->save_lora = options->step_log = options->tensorboard = options->trace = NULL;
  options->verbose = 0;
}

/* Ranks that have --distribute mpi wait for this one. */
static void say_who_is_alone(void) {
  if (mix_mpi_launched_ranks() > 1)
    fprintf(stderr,
            "mixtape train: rank %s of %d trains alone; all ranks need --distribute mpi to share a run\n",
            mix_mpi_launched_rank(), mix_mpi_launched_ranks());
}

/* With the error recorded. Returns the exit code; --help needs no other rank. */
static int cannot_join(int code) {
  print_held();
  if (code < 0) {
    mix_error_clear();
    return code;
  }
  if (mix_mpi_launched())
    fprintf(stderr, "mixtape train: rank %s cannot join the others, and ends the job\n",
            mix_mpi_launched_rank());
  cli_fail();
  if (!code) code = CLI_FAILED;
  mix_end_job_without_mpi(code);
  return code;
}

int cli_join_ranks(cli_options *options, int code) {
  /* A rank that cannot begin joins the others only where they wait: its messages are then held. */
  const bool joins = code ? held.file != NULL : cli_is_distributed(options);
  if (!joins) {
    print_held();
    if (!code) say_who_is_alone();
    return code;
  }
  stop_holding();
  if (code) mix_error_clear();
  mix_distribution *ranks = mix_distribution_mpi();
  mix_set_distribution(ranks);
  if (mix_error() != MIX_OK) return cannot_join(code);
  const bool several = mix_distribution_size(ranks) > 1;
  if (several && (code = agree_to_begin(ranks, code))) return code;
  print_held();
  if (code) return code;
  if (options->threads) mix_set_threads((int)options->threads);
  /* Also without --shard, which ranks may have been given or not. */
  if ((several || cli_shards(options)) &&
      mix_distribution_shard(ranks, cli_shards(options) ? MIX_SHARD_OPTIMIZER : MIX_SHARD_NOTHING) != MIX_OK)
    return cli_fail();
  if (!several)
    fprintf(stderr, "mixtape train: --distribute mpi in one process; start it as in: mpirun -n 2 mixtape "
                    "train --distribute mpi ...\n");
  options->gathers = cli_shards(options) && saves_state(options);
  if (mix_distribution_rank(ranks)) print_less(options);
  return CLI_OK;
}

int cli_leave_ranks(int code) {
  mix_distribution *ranks = mix_distribution_current();
  if (code > 0 && mix_distribution_size(ranks) > 1)
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
