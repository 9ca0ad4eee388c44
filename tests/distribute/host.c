/* A program that starts and ends MPI itself, and trains in between. Every task prints nothing and ends with
 * 0, or says what was wrong. */
#include <mpi.h>

#include <mixtape/mixtape.h>
#include <mixtape/mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks; /* of MPI_COMM_WORLD */

static int fail(int line, const char *what) {
  fprintf(stderr, "host.c:%d: rank %d of %d: %s: %s\n", line, rank, ranks, what, mix_error_message());
  MPI_Abort(MPI_COMM_WORLD, 1);
  return 1;
}
#define CHECK(condition)                                                                                     \
  if (!(condition)) return fail(__LINE__, #condition)

/* ---- what is trained ---- */

enum { ROWS = 48, FEATURES = 8, OUTPUTS = 3 };

static mix_tensor *table(int64_t columns, uint32_t seed) {
  float values[ROWS * FEATURES];
  for (int64_t i = 0; i < ROWS * columns; i++) values[i] = (float)(((uint32_t)i * 37 + seed) % 23) / 8 - 1;
  return mix_tensor_from(values, MIX_FLOAT32, MIX_SHAPE(ROWS, columns));
}

static mix_model *new_model(void) {
  mix_set_seed(11);
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(FEATURES));
  mix_tensor *x = mix_call(mix_dense(16, .activation = "relu"), inputs);
  mix_model *model = mix_model_new(inputs, mix_call(mix_dense(OUTPUTS), x));
  mix_model_compile(model, .loss = "mean_squared_error", .optimizer = mix_sgd(.learning_rate = 0.05));
  return model;
}

/* The loss of each step. */
static int train(mix_model *model, int steps, double *losses) {
  for (int i = 0; i < steps; i++)
    MIX_SCOPE {
      const mix_logs *logs = mix_model_train_on_batch(model, table(FEATURES, 1), table(OUTPUTS, 2));
      CHECK(logs);
      losses[i] = mix_logs_get(logs, "loss");
    }
  return 0;
}

static int same_everywhere(MPI_Comm comm, const double *losses, int count) {
  double first[16];
  memcpy(first, losses, sizeof *losses * (size_t)count);
  MPI_Bcast(first, count, MPI_DOUBLE, 0, comm);
  CHECK(!memcmp(first, losses, sizeof *losses * (size_t)count));
  return 0;
}

/* Traffic of the host, with the tag that a naive library would take. */
static int exchange(MPI_Comm comm) {
  int own, all, got = -1, sum = 0;
  MPI_Comm_rank(comm, &own);
  MPI_Comm_size(comm, &all);
  MPI_Sendrecv(&own, 1, MPI_INT, (own + 1) % all, 1, &got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm,
               MPI_STATUS_IGNORE);
  CHECK(got == (own + all - 1) % all);
  MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, comm);
  CHECK(sum == all * (all - 1) / 2);
  return 0;
}

/* ---- tasks ---- */

enum { STEPS = 6 };

static int use(MPI_Comm comm, double *losses) {
  mix_distribution *distribution = mix_distribution_mpi_of(comm);
  int own, all;
  MPI_Comm_rank(comm, &own);
  MPI_Comm_size(comm, &all);
  CHECK(mix_distribution_rank(distribution) == own && mix_distribution_size(distribution) == all);
  CHECK(mix_set_distribution(distribution) == MIX_OK);
  if (train(new_model(), STEPS, losses)) return 1;
  CHECK(mix_set_distribution(NULL) == MIX_OK);
  return same_everywhere(comm, losses, STEPS);
}

/* The whole world, a part of it, this process alone, and the world again. */
static int communicators(void) {
  double world[STEPS], part[STEPS], own[STEPS], again[STEPS];
  MPI_Comm pair;
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0, -rank, &pair);
  MIX_SCOPE
    if (use(MPI_COMM_WORLD, world) || exchange(MPI_COMM_WORLD)) return 1;
  MIX_SCOPE
    if (use(pair, part) || exchange(pair)) return 1;
  MIX_SCOPE
    if (use(MPI_COMM_SELF, own)) return 1;
  MIX_SCOPE
    if (use(MPI_COMM_WORLD, again)) return 1;
  CHECK(!memcmp(world, again, sizeof world));
  MPI_Comm_free(&pair);
  return 0;
}

static int run(const char *task) {
  if (!strcmp(task, "communicators")) return communicators();
  return fail(__LINE__, "unknown task");
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    int level;
  } levels[] = {{"multiple", MPI_THREAD_MULTIPLE}};
  int wanted = -1, got = -1;
  for (size_t i = 0; argc == 3 && i < sizeof levels / sizeof *levels; i++)
    if (!strcmp(argv[1], levels[i].name)) wanted = levels[i].level;
  MPI_Init_thread(&argc, &argv, wanted, &got);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  CHECK(wanted >= 0 && got == wanted);
  mix_set_log_callback(mix_log_to_stderr, NULL);
  mix_set_threads(1);
  mix_scope *scope = mix_scope_begin();
  const int code = run(argv[2]);
  mix_scope_end(scope);
  return code ? code : MPI_Finalize();
}
