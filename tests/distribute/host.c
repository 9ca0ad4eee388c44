/* A program that starts and ends MPI itself, and trains in between: LEVEL TASK. A task ends with 0, or says
 * what was wrong. Calls of MPI go through this file (MPI's profiling interface), which sees who makes them.
 */
#include <mpi.h>

#include "backend/host/executor.h"
#include <mixtape/mixtape.h>
#include <mixtape/mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, ranks; /* of MPI_COMM_WORLD */

static int fail(int line, const char *what) {
  fprintf(stderr, "host.c:%d: rank %d of %d: %s: %s\n", line, rank, ranks, what, mix_error_message());
  return 1;
}
#define CHECK(condition)                                                                                     \
  if (!(condition)) return fail(__LINE__, #condition)
#define DO(task)                                                                                             \
  if (task) return 1

static int refused(const void *made, mix_status status, const char *part) {
  CHECK(!made && mix_error() == status && strstr(mix_error_message(), part));
  mix_error_clear();
  return 0;
}

/* ---- who calls MPI ---- */

static pthread_t main_thread;
static atomic_int calls, of_others, too_late; /* with messages; on other threads; after MPI_Finalize */
static atomic_bool finalized;

static void count(void) {
  atomic_fetch_add(&calls, 1);
  if (!pthread_equal(pthread_self(), main_thread)) atomic_fetch_add(&of_others, 1);
  if (atomic_load(&finalized)) atomic_fetch_add(&too_late, 1);
}

int MPI_Iallgatherv(const void *part, int n, MPI_Datatype type, void *all, const int *counts,
                    const int *places, MPI_Datatype as, MPI_Comm comm, MPI_Request *request) {
  count();
  return PMPI_Iallgatherv(part, n, type, all, counts, places, as, comm, request);
}
int MPI_Ibcast(void *data, int n, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request) {
  count();
  return PMPI_Ibcast(data, n, type, root, comm, request);
}
int MPI_Isend(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request) {
  count();
  return PMPI_Isend(data, n, type, to, tag, comm, request);
}
int MPI_Comm_free(MPI_Comm *comm) {
  count();
  return PMPI_Comm_free(comm);
}
int MPI_Testall(int n, MPI_Request *requests, int *done, MPI_Status *statuses) {
  count();
  return PMPI_Testall(n, requests, done, statuses);
}
int MPI_Test(MPI_Request *request, int *done, MPI_Status *status) {
  count();
  return PMPI_Test(request, done, status);
}
int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *there, MPI_Status *status) {
  count();
  return PMPI_Iprobe(from, tag, comm, there, status);
}
int MPI_Recv(void *data, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status) {
  count();
  return PMPI_Recv(data, n, type, from, tag, comm, status);
}

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
  mix_model *model = new_model();
  for (int i = 0; i < STEPS; i++) DO(train(model, 1, &losses[i]) || exchange(comm));
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

/* Losses and weights, for a comparison between levels; the gradients need two threads. */
static int levels(bool on_main_alone) {
  double losses[STEPS];
  mix_set_threads(2);
  mix_host_take_all_threads(true); /* in small plans too */
  mix_distribution *distribution = mix_distribution_mpi_of(MPI_COMM_WORLD);
  CHECK(mix_set_distribution(distribution) == MIX_OK);
  mix_model *model = new_model();
  for (int i = 0; i < 20; i++) DO(train(model, STEPS, losses));
  mix_list *weights = mix_model_get_weights(model);
  CHECK(weights);
  for (int i = 0; i < STEPS && !rank; i++) printf("%a\n", losses[i]);
  for (int i = 0; i < mix_list_count(weights) && !rank; i++) {
    float values[FEATURES * 16];
    mix_tensor *w = mix_list_get(weights, i);
    const int64_t size = mix_shape_size(mix_tensor_shape(w));
    CHECK(mix_tensor_read(w, MIX_FLOAT32, values, size) == MIX_OK);
    for (int64_t k = 0; k < size; k++) printf("%a\n", (double)values[k]);
  }
  CHECK(mix_set_distribution(NULL) == MIX_OK);
  CHECK(atomic_load(&calls) > 20 * STEPS);
  CHECK((atomic_load(&of_others) == 0) == on_main_alone);
  return 0;
}

static mix_list *all_ones(void *context, mix_list *arguments) {
  (void)context;
  return mix_list_of(mix_all_reduce(mix_list_get(arguments, 0)));
}

static double sum_of_ones(mix_function *function) {
  mix_list *sums = mix_function_call(function, mix_list_of(mix_scalar(1, MIX_FLOAT32)));
  return sums ? mix_tensor_item(mix_list_get(sums, 0)) : -1;
}

/* Two at the same time, and none: a function is compiled for each, and finds its own again. */
static int both(void) {
  MPI_Comm pair;
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &pair);
  mix_distribution *world = mix_distribution_mpi_of(MPI_COMM_WORLD), *part = mix_distribution_mpi_of(pair);
  mix_function *function = mix_function_new(all_ones, NULL);
  CHECK(world && part && world != part && function);
  for (int i = 0; i < 3; i++)
    MIX_SCOPE {
      CHECK(mix_set_distribution(world) == MIX_OK && mix_distribution_current() == world);
      CHECK(sum_of_ones(function) == ranks);
      CHECK(mix_set_distribution(part) == MIX_OK && sum_of_ones(function) == (rank ? ranks - 1 : 1));
      CHECK(mix_set_distribution(NULL) == MIX_OK && sum_of_ones(function) == 1);
    }
  MPI_Comm_free(&pair);
  return 0;
}

/* An optimizer whose state is divided among the ranks of one distribution, and then of another. */
static int train_divided(mix_model *model, mix_distribution *ranks_of, bool divided, double *losses) {
  CHECK(mix_set_distribution(ranks_of) == MIX_OK);
  if (mix_distribution_size(ranks_of) > 1)
    CHECK(mix_distribution_shard(ranks_of, divided ? MIX_SHARD_OPTIMIZER : MIX_SHARD_NOTHING) == MIX_OK);
  DO(train(model, STEPS, losses));
  mix_checkpoint *checkpoint = mix_checkpoint_new(NULL, .model = model);
  if (divided && mix_distribution_size(ranks_of) > 1)
    DO(refused(mix_checkpoint_to_memory(checkpoint, STEPS, NULL), MIX_RUNTIME_ERROR,
               "mix_optimizer_gather_state"));
  CHECK(mix_optimizer_gather_state(mix_model_optimizer(model), MIX_EVERY_RANK) == MIX_OK);
  CHECK(mix_checkpoint_to_memory(checkpoint, STEPS, NULL));
  return 0;
}

static int shards(void) {
  MPI_Comm pair;
  double losses[2][3][STEPS];
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &pair);
  mix_distribution *world = mix_distribution_mpi_of(MPI_COMM_WORLD), *part = mix_distribution_mpi_of(pair);
  mix_set_global_policy("mixed_bfloat16");
  for (int divided = 0; divided < 2; divided++)
    MIX_SCOPE {
      mix_model *model = new_model();
      mix_model_compile(model, .loss = "mean_squared_error", .optimizer = mix_adam(.learning_rate = 0.05));
      DO(train_divided(model, world, divided, losses[divided][0]));
      DO(train_divided(model, part, divided, losses[divided][1]));
      CHECK(mix_set_distribution(world) == MIX_OK);
      CHECK(mix_broadcast_variables(mix_layer_weights(mix_model_layer(model))) == MIX_OK);
      CHECK(mix_broadcast_variables(mix_optimizer_variables(mix_model_optimizer(model))) == MIX_OK);
      DO(train_divided(model, world, divided, losses[divided][2]));
    }
  CHECK(mix_set_distribution(NULL) == MIX_OK);
  CHECK(!memcmp(losses[0], losses[1], sizeof losses[0]));
  MPI_Comm_free(&pair);
  return 0;
}

/* ---- the host's own errors ---- */

static atomic_int handled;
static void handle(MPI_Comm *comm, int *code, ...) {
  (void)comm, (void)code;
  atomic_fetch_add(&handled, 1);
}

static int handlers(void) {
  MPI_Errhandler own, now;
  double losses[STEPS];
  int value = 0;
  MPI_Comm_create_errhandler(handle, &own);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, own);
  MIX_SCOPE
    DO(use(MPI_COMM_WORLD, losses));
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &now);
  CHECK(now == own && atomic_load(&handled) == 0);
  MPI_Send(&value, 1, MPI_INT, ranks + 7, 0, MPI_COMM_WORLD);
  CHECK(atomic_load(&handled) == 1);
  MPI_Comm_get_errhandler(MPI_COMM_SELF, &now);
  CHECK(now == MPI_ERRORS_ARE_FATAL);
  return 0;
}

/* ---- what is refused ---- */

static int refusals(void) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  MPI_Comm part, between;
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &part);
  MPI_Intercomm_create(part, 0, MPI_COMM_WORLD, rank ? 0 : 1, 9, &between);
  DO(refused(mix_distribution_mpi_of(MPI_COMM_NULL), MIX_RUNTIME_ERROR, "MPI_COMM_NULL is no communicator"));
  DO(refused(mix_distribution_mpi_of(between), MIX_RUNTIME_ERROR, "an intercommunicator has no ranks"));
  DO(refused(mix_distribution_mpi_from(MPI_Comm_c2f(part), "intel"), MIX_VALUE_ERROR,
             "there is no flavour \"intel\"; expected openmpi or mpich"));
  MPI_Get_library_version(version, &length);
  DO(refused(mix_distribution_mpi_from(MPI_Comm_c2f(part), strstr(version, "MPICH") ? "openmpi" : "mpich"),
             MIX_VALUE_ERROR, "name that one, or none"));
  DO(refused(mix_distribution_mpi(), MIX_RUNTIME_ERROR, "the program has started MPI itself"));
  setenv("MIXTAPE_MPI_TIMEOUT", "soon", 1);
  DO(refused(mix_distribution_mpi_of(part), MIX_VALUE_ERROR,
             "MIXTAPE_MPI_TIMEOUT is \"soon\"; expected seconds"));
  unsetenv("MIXTAPE_MPI_TIMEOUT");
  MPI_Comm_free(&between);
  MPI_Comm_free(&part);
  return 0;
}

/* The scope ends after MPI: nothing is sent any more. */
static int finalized_before(void) {
  mix_distribution *distribution = mix_distribution_mpi_of(MPI_COMM_WORLD);
  CHECK(mix_set_distribution(distribution) == MIX_OK);
  mix_model *model = new_model();
  double losses[STEPS];
  DO(train(model, STEPS, losses));
  MPI_Finalize();
  atomic_store(&finalized, true);
  return 0;
}

static int after_the_end(mix_scope *scope, bool used) {
  if (used) {
    const mix_tensor *sum = mix_all_reduce(mix_scalar(1, MIX_FLOAT32));
    DO(refused(sum, MIX_VALUE_ERROR, "the program has called MPI_Finalize"));
  }
  CHECK(mix_set_distribution(NULL) == MIX_OK);
  DO(refused(mix_distribution_mpi_from(0, NULL), MIX_RUNTIME_ERROR, "the program has called MPI_Finalize"));
  mix_scope_end(scope);
  CHECK(atomic_load(&too_late) == 0);
  return 0;
}

/* ---- ranks that differ ---- */

static void *open_and_train(void *context) {
  double losses[STEPS];
  MIX_SCOPE
    *(int *)context = use(MPI_COMM_WORLD, losses);
  return NULL;
}

/* Below MPI_THREAD_SERIALIZED the main thread alone may. */
static int other_thread(void) {
  pthread_t other;
  int code = 0;
  CHECK(!pthread_create(&other, NULL, open_and_train, &code) && !pthread_join(other, NULL));
  return code;
}

static int one_more_step(void) {
  double losses[STEPS + 1];
  CHECK(mix_set_distribution(mix_distribution_mpi_of(MPI_COMM_WORLD)) == MIX_OK);
  DO(train(new_model(), rank ? STEPS : STEPS + 1, losses));
  CHECK(mix_set_distribution(NULL) == MIX_OK);
  return 0;
}

/* One rank comes late or never. */
static int late(int seconds) {
  if (rank == 1) sleep((unsigned)seconds);
  CHECK(mix_distribution_mpi_of(MPI_COMM_WORLD));
  return 0;
}

static int slow_step(void) {
  double losses[STEPS];
  CHECK(mix_set_distribution(mix_distribution_mpi_of(MPI_COMM_WORLD)) == MIX_OK);
  mix_model *model = new_model();
  DO(train(model, 1, losses));
  if (rank) sleep(rank == 1 ? 35 : 10); /* rank 2 has waited less than half a minute when rank 0 asks */
  DO(train(model, 1, losses));
  CHECK(mix_set_distribution(NULL) == MIX_OK);
  return 0;
}

/* Until it is killed. */
static int endless(void) {
  double losses[STEPS];
  CHECK(mix_set_distribution(mix_distribution_mpi_of(MPI_COMM_WORLD)) == MIX_OK);
  mix_model *model = new_model();
  for (;;) DO(train(model, STEPS, losses));
}

static int run(const char *task, int level) {
  if (!strcmp(task, "communicators")) return communicators();
  if (!strcmp(task, "levels")) return levels(level < MPI_THREAD_MULTIPLE);
  if (!strcmp(task, "both")) return both();
  if (!strcmp(task, "shards")) return shards();
  if (!strcmp(task, "handlers")) return handlers();
  if (!strcmp(task, "refusals")) return refusals();
  if (!strncmp(task, "finalized", 9)) return finalized_before();
  if (!strcmp(task, "other_thread")) return other_thread();
  if (!strcmp(task, "one_more_step")) return one_more_step();
  if (!strcmp(task, "late")) return late(100);
  if (!strcmp(task, "slow_step")) return slow_step();
  if (!strcmp(task, "endless")) return endless();
  return fail(__LINE__, "unknown task");
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    int level;
  } levels[] = {{"single", MPI_THREAD_SINGLE},
                {"funneled", MPI_THREAD_FUNNELED},
                {"serialized", MPI_THREAD_SERIALIZED},
                {"multiple", MPI_THREAD_MULTIPLE}};
  int wanted = -1, got = -1;
  main_thread = pthread_self();
  mix_set_log_callback(mix_log_to_stderr, NULL);
  if (refused(mix_distribution_mpi_from(0, NULL), MIX_RUNTIME_ERROR, "has not called MPI_Init_thread"))
    return 1;
  for (size_t i = 0; argc == 3 && i < sizeof levels / sizeof *levels; i++)
    if (!strcmp(argv[1], levels[i].name)) wanted = levels[i].level;
  MPI_Init_thread(&argc, &argv, wanted, &got);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  CHECK(wanted >= 0 && got == wanted);
  mix_set_threads(1);
  mix_scope *scope = mix_scope_begin();
  int code = run(argv[2], got);
  if (code) return code; /* without an end of MPI: the launcher ends the others */
  if (atomic_load(&finalized)) return after_the_end(scope, !strcmp(argv[2], "finalized_used"));
  mix_scope_end(scope);
  return MPI_Finalize();
}
