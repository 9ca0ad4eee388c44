/* Training inside a program: a solver on a grid trains a network online, which learns to make two of its
 * steps at once. The solver has its own processes, time steps and restart file; the library is called in
 * between.
 *
 *   mpirun -n 3 16_in_situ_openmpi [STEPS [RESTART]]    (or 16_in_situ_mpich; 1, 2, 3, 4, 6 ... ranks)
 *   16_in_situ [STEPS [RESTART]]                        without MPI
 *
 * The first is made by mpicc -DWITH_MPI 16_in_situ.c $(pkg-config --cflags --libs mixtape) -lm.
 * A restart file holds field, replay buffer and the library's checkpoint; it is written every 20 steps, and
 * read if it is there: the run goes on with the same bits. */
#include "16_host.h"

#include <mixtape/mixtape.h>
#ifdef WITH_MPI
#include <mixtape/mpi.h>
#endif

enum { SIDE = 2 * HALO + 1, PATCH = SIDE * SIDE, CAPACITY = 1024, SAMPLES = 64, BATCH = 64, SAVE_EVERY = 20 };

/* ---- the replay buffer: the latest examples of this rank ---- */

typedef struct replay {
  int64_t added;
  float x[CAPACITY][PATCH], y[CAPACITY];
} replay;

/* SplitMix64: a number for each key, so that there is no state to save. */
static uint64_t random_of(uint64_t key) {
  uint64_t z = (key + 1) * UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

/* The change of a cell, times 10, is learned from the patch around it, less 1. */
static void replay_add(replay *r, const host *h, int row, int column) {
  const int64_t slot = r->added++ % CAPACITY;
  for (int i = 0; i < PATCH; i++) r->x[slot][i] = h->former[row + i / SIDE][column + i % SIDE] - 1;
  r->y[slot] = 10 * (h->field[HALO + row][HALO + column] - h->former[HALO + row][HALO + column]);
}

static void replay_draw(const replay *r, uint64_t key, float x[BATCH][PATCH], float y[BATCH]) {
  const uint64_t count = (uint64_t)(r->added < CAPACITY ? r->added : CAPACITY);
  for (uint64_t i = 0; i < BATCH; i++) {
    const uint64_t slot = random_of(key + i) % count;
    memcpy(x[i], r->x[slot], sizeof x[i]);
    y[i] = r->y[slot];
  }
}

/* ---- the surrogate ---- */

static mix_model *new_surrogate(void) {
  mix_set_seed(1);
  mix_set_global_policy("mixed_float16");
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(PATCH));
  mix_tensor *y = mix_call(mix_dense(32, "tanh"), mix_call(mix_dense(32, "tanh"), x));
  mix_model *model = mix_model_new(x, mix_call(mix_dense(1, .dtype = "float32"), y));
  /* under this policy the optimizer scales the loss */
  mix_model_compile(model, .loss = "mse", .optimizer = mix_adam(.learning_rate = 3e-3));
  return model;
}

/* One step on rows of all ranks: each gives its own. The arrays are read where they are. */
static double train(mix_model *model, const replay *r, uint64_t key) {
  static float x[BATCH][PATCH], y[BATCH];
  MIX_SCOPE_HERE;
  replay_draw(r, key, x, y);
  mix_on_batch_options options = {.size = sizeof options,
                                  .x = mix_tensor_wrap(x, MIX_FLOAT32, MIX_SHAPE(BATCH, PATCH), NULL),
                                  .y = mix_tensor_wrap(y, MIX_FLOAT32, MIX_SHAPE(BATCH, 1), NULL),
                                  .rows = MIX_LOCAL};
  return mix_logs_get(mix_model_train_on_batch_with(model, &options), "loss");
}

/* The surrogate's error over the whole field, as a part of what two steps change. The patches are the field
 * itself, by strides. */
static double error_of(mix_model *model, const host *h) {
  static float change[CELLS * CELLS];
  double sums[2] = {0};
  const int64_t count = (int64_t)h->rows * CELLS;
  MIX_SCOPE_HERE;
  mix_tensor *patches = mix_tensor_from_strided(h->former, MIX_FLOAT32, MIX_SHAPE(h->rows, CELLS, SIDE, SIDE),
                                                MIX_SHAPE(WIDTH, 1, WIDTH, 1)),
             *x = mix_add(mix_reshape(patches, MIX_SHAPE(count, PATCH)), mix_scalar(-1, MIX_FLOAT32));
  mix_tensor_read(mix_list_get(mix_model_predict(model, x), 0), MIX_FLOAT32, change, count);
  for (int64_t i = 0; i < count; i++) {
    const int64_t row = HALO + i / CELLS, column = HALO + i % CELLS;
    const double changed = 10 * (h->field[row][column] - h->former[row][column]);
    sums[0] += (change[i] - changed) * (change[i] - changed);
    sums[1] += changed * changed;
  }
  host_sum(sums, 2);
  return sqrt(sums[0] / sums[1]);
}

/* ---- the restart file ---- */

typedef struct header {
  int64_t step, ranks, block, checkpoint; /* the last two: bytes of each rank, and of the checkpoint */
} header;

typedef struct block {
  float field[CELLS][CELLS]; /* the rows of a rank, and zeros */
  replay buffer;
} block;

static void save(const host *h, const replay *r, mix_checkpoint *checkpoint, int64_t step, const char *path) {
  static block own;
  char part[1024];
  block *all = h->rank ? NULL : malloc(sizeof *all * (size_t)h->ranks);
  if (!h->rank && !all) host_fail(h, path, "out of memory");
  for (int i = 0; i < h->rows; i++) memcpy(own.field[i], h->field[HALO + i] + HALO, sizeof own.field[i]);
  own.buffer = *r;
  host_gather(&own, sizeof own, all);
  if (h->rank) return;
  MIX_SCOPE_HERE;
  mix_tensor *bytes = mix_checkpoint_to_memory(checkpoint, step, NULL);
  const size_t size = (size_t)mix_shape_size(mix_tensor_shape(bytes));
  const header head = {step, h->ranks, sizeof own, (int64_t)size};
  snprintf(part, sizeof part, "%s.part", path);
  FILE *file = bytes ? fopen(part, "wb") : NULL;
  bool done = file && fwrite(&head, sizeof head, 1, file) == 1 &&
              fwrite(all, sizeof *all, (size_t)h->ranks, file) == (size_t)h->ranks &&
              fwrite(mix_tensor_data(bytes), 1, size, file) == size;
  if (file) done = fclose(file) == 0 && done;
  /* a killed process leaves the former file or the new one */
  if (!done || rename(part, path))
    host_fail(h, path, mix_error() ? mix_error_message() : "cannot be written");
  free(all);
}

/* The step; 0: there is no file. */
static int64_t restore(host *h, replay *r, mix_checkpoint *checkpoint, const char *path) {
  static block own;
  header head = {0};
  FILE *file = h->rank ? NULL : fopen(path, "rb");
  if (file && (fread(&head, sizeof head, 1, file) != 1 || head.ranks != h->ranks || head.block != sizeof own))
    host_fail(h, path, "not a restart file of as many ranks");
  host_broadcast(&head, sizeof head);
  if (!head.ranks) return 0;
  const size_t size = (size_t)head.checkpoint, ranks = (size_t)head.ranks;
  block *all = h->rank ? NULL : malloc(sizeof *all * ranks);
  char *bytes = malloc(size);
  if (!bytes || (!h->rank && !all)) host_fail(h, path, "out of memory");
  if (!h->rank && (fread(all, sizeof *all, ranks, file) != ranks || fread(bytes, 1, size, file) != size))
    host_fail(h, path, "is too short");
  if (file) fclose(file);
  host_scatter(all, sizeof own, &own);
  host_broadcast(bytes, (int)size);
  for (int i = 0; i < h->rows; i++) memcpy(h->field[HALO + i] + HALO, own.field[i], sizeof own.field[i]);
  host_fill_halo(h);
  *r = own.buffer;
  if (mix_checkpoint_from_memory(checkpoint, bytes, size, NULL) != head.step)
    host_fail(h, path, mix_error_message());
  free(bytes);
  free(all);
  return head.step;
}

/* ---- the host's time steps ---- */

static void run(host *h, int64_t steps, const char *path) {
  static replay buffer;
  mix_model *model = new_surrogate();
  mix_checkpoint *checkpoint = mix_checkpoint_new(NULL, .model = model);
  host_set_field(h);
  int64_t step = path ? restore(h, &buffer, checkpoint, path) : 0;
  if (!h->rank) printf("%d ranks, %d x %d cells, from step %lld\n", h->ranks, CELLS, CELLS, (long long)step);
  fflush(stdout);
  while (step < steps) {
    const uint64_t key = ((uint64_t)step * 64 + (uint64_t)h->rank) << 20;
    host_advance(h);
    for (uint64_t i = 0; i < SAMPLES; i++)
      replay_add(&buffer, h, (int)(random_of(key + i) % (uint64_t)h->rows),
                 (int)(random_of(key + SAMPLES + i) % CELLS));
    const double loss = train(model, &buffer, key + 2 * SAMPLES);
    if (mix_error()) host_fail(h, "training", mix_error_message());
    if (++step % (2 * SAVE_EVERY) == 0 && !h->rank)
      printf("step %lld: loss %.2g, loss scale %g\n", (long long)step, loss,
             mix_tensor_item(mix_optimizer_loss_scale(mix_model_optimizer(model))));
    if (path && (step % SAVE_EVERY == 0 || step == steps)) save(h, &buffer, checkpoint, step, path);
  }
  host_advance(h); /* which the surrogate has not seen */
  const double error = error_of(model, h);
  if (!h->rank) printf("error of the surrogate: %.3f of the change\n", error);
}

int main(int argc, char **argv) {
  host h;
  host_begin(&h, &argc, &argv);
  if (CELLS % h.ranks || CELLS / h.ranks < HALO)
    host_fail(&h, "ranks", "must divide the 48 rows, two or more each");
  h.rows = CELLS / h.ranks;
  mix_scope *scope = mix_scope_begin();
  if (!h.rank) mix_set_log_callback(mix_log_to_stderr, NULL);
#ifdef WITH_MPI
  mix_set_distribution(mix_distribution_mpi_of(MPI_COMM_WORLD));
#endif
  if (!mix_error()) run(&h, argc > 1 ? atoll(argv[1]) : 400, argc > 2 ? argv[2] : NULL);
  if (mix_error()) host_fail(&h, "the surrogate", mix_error_message());
  mix_set_distribution(NULL);
  mix_scope_end(scope); /* the last of the library's messages, before MPI ends */
  host_end(&h);
  return 0;
}
