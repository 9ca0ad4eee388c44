/* Runs of tests/distribute/worker.c, and the weights that its ranks have saved. */
#ifndef TESTS_DISTRIBUTE_WORKER_RUNS_H
#define TESTS_DISTRIBUTE_WORKER_RUNS_H

#include "distribute/ranks.h"

#include <mixtape/arrays.h>
#include <sys/stat.h>

static inline const char *worker(void) { return getenv("MIXTAPE_WORKER"); }

/* Runs a task whose last argument, or the one that %s stands for, is a new folder of the test's. */
static inline const char *run_task(int ranks, const char *name, const char *format) {
  static char folder[8][512];
  static int used;
  char arguments[1024], *place = folder[used++ % 8];
  snprintf(place, sizeof folder[0], "%s/%s_%d", test_folder, name, ranks);
  mkdir(place, 0777);
  snprintf(arguments, sizeof arguments, format, place);
  assert_code(run_ranks(ranks, worker(), arguments), 0);
  return place;
}

/* ---- weights ---- */

typedef struct weights {
  int64_t count;
  float values[4096];
} weights;

static inline void read_weights(const char *folder, int rank, weights *w) {
  char path[600];
  snprintf(path, sizeof path, "%s/%d.npz", folder, rank);
  w->count = 0;
  MIX_SCOPE {
    mix_npz *npz = mix_npz_open(path);
    assert_non_null(npz);
    for (int i = 0; i < mix_npz_count(npz); i++) {
      mix_tensor *array = mix_npz_get(npz, mix_npz_name(npz, i));
      const int64_t size = mix_shape_size(mix_tensor_shape(array));
      assert_true(w->count + size <= 4096);
      assert_int_equal(mix_tensor_read(array, MIX_FLOAT32, w->values + w->count, size), MIX_OK);
      w->count += size;
    }
  }
  assert_true(w->count > 0);
}

static inline void assert_same_bits(const char *a, int rank_a, const char *b, int rank_b) {
  static weights x, y;
  read_weights(a, rank_a, &x);
  read_weights(b, rank_b, &y);
  assert_int_equal(x.count, y.count);
  assert_memory_equal(x.values, y.values, sizeof(float) * (size_t)x.count);
}

/* All differences are at most `share` of the largest weight. */
static inline void assert_near(const char *a, const char *b, double share) {
  static weights x, y;
  double largest = 0, difference = 0;
  read_weights(a, 0, &x);
  read_weights(b, 0, &y);
  assert_int_equal(x.count, y.count);
  for (int64_t i = 0; i < x.count; i++) {
    largest = fmax(largest, fabs((double)x.values[i]));
    difference = fmax(difference, fabs((double)x.values[i] - (double)y.values[i]));
  }
  assert_true(largest > 0.01);
  if (!(difference <= share * largest)) fail_msg("differ by %g of %g", difference, largest);
}

static inline void assert_ranks_agree(const char *folder, int ranks) {
  for (int r = 1; r < ranks; r++) assert_same_bits(folder, 0, folder, r);
}

#endif
