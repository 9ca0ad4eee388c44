/* Training in several processes: the step of the guide's model, the share of communication that is hidden
 * behind computing, latency and bandwidth, and the efficiency that these predict for 2 to 1,024 ranks.
 *
 *   mpirun -n N bench/ranks [UNITS [BATCH [STEPS [POLICY]]]]     default: 1024 1024 20 mixed_float16
 *
 * BATCH counts the rows of all ranks. In one process there is nothing to communicate: only the step is timed.
 */
#include "base/clock.h"

#include <math.h>
#include <mixtape/mixtape.h>
#include <stdio.h>
#include <stdlib.h>

static double now(void) { return mix_clock(CLOCK_MONOTONIC); }

typedef struct result {
  double step, communication, waited; /* seconds a step */
} result;

/* ---- the step ---- */

typedef struct timing {
  int64_t warm;
  double began;
  mix_distribution_times before;
} timing;

static void on_step(void *context, const mix_step_record *record) {
  timing *t = context;
  if (record->step != t->warm) return;
  t->began = now();
  t->before = mix_distribution_measured(mix_distribution_current());
}

static mix_model *guide(int64_t units) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(784));
  mix_tensor *x = mix_call(mix_dense(units, .activation = "relu"), inputs);
  x = mix_call(mix_dense(units, .activation = "relu"), x);
  x = mix_call(mix_dense(10), x);
  return mix_model_new(inputs, mix_call(mix_activation("softmax", .dtype = "float32"), x));
}

static bool time_steps(int64_t units, int64_t batch, int64_t steps, result *r) {
  timing t = {.warm = 3};
  mix_model *model = guide(units);
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy", .optimizer = mix_rmsprop());
  mix_tensor *x = mix_fill(MIX_SHAPE(batch, 784), 0.5, MIX_FLOAT32),
             *y = mix_fill(MIX_SHAPE(batch), 3, MIX_INT64);
  if (!mix_model_fit(model, x, y, .batch_size = batch, .epochs = steps + t.warm, .verbose = MIX_SILENT,
                     .on_step = on_step, .context = &t))
    return false;
  const mix_distribution_times after = mix_distribution_measured(mix_distribution_current());
  *r = (result){.step = (now() - t.began) / (double)steps,
                .communication = (after.communication - t.before.communication) / (double)steps,
                .waited = (after.waited - t.before.waited) / (double)steps};
  return true;
}

/* ---- latency and bandwidth ---- */

/* Seconds of a sum of that many numbers over all ranks, the least of several rounds. */
static double time_sum(int64_t count, mix_dtype dtype) {
  double least = 1e9;
  mix_tensor *x = mix_fill(MIX_SHAPE(count), 1, dtype);
  mix_evaluate(1, &x);
  for (int i = 0; i < 20; i++)
    MIX_SCOPE {
      const double begin = now();
      mix_all_reduce(x);
      if (now() - begin < least) least = now() - begin;
    }
  return least;
}

/* The time of a sum of `bytes` on R ranks, in exchanges of 16 MiB at most: in each of them chunks go to their
 * owners and their sums to all, both in R - 1 messages. */
static double predict_sum(double bytes, double ranks, double latency, double seconds_per_byte) {
  const double exchanges = ceil(bytes / (16 << 20));
  return 2 * (exchanges * (ranks - 1) * latency + bytes * (ranks - 1) / ranks * seconds_per_byte);
}

static void print_prediction(mix_dtype dtype, double gradient_bytes, double compute, double hidden,
                             int measured, double small, double large, double large_bytes) {
  /* The small sum is one round of messages, the large one two. */
  const double others = measured - 1, latency = small / others,
               per_byte = (large - 2 * small) / (2 * large_bytes * others / measured);
  printf("\nlatency %.1f us, bandwidth of sums in %s %.2f GB/s; gradients %.1f MB\n", 1e6 * latency,
         mix_dtype_name(dtype), 1e-9 / per_byte, 1e-6 * gradient_bytes);
  printf("predicted, for the same rows a rank:\n%8s %14s %12s\n", "ranks", "sums (ms)", "efficiency");
  for (int ranks = 2; ranks <= 1024; ranks *= 2) {
    const double sum = predict_sum(gradient_bytes, ranks, latency, per_byte);
    /* what was hidden here is hidden there, as far as the computing reaches */
    const double covered = sum * hidden < compute ? sum * hidden : compute;
    printf("%8d %14.3f %11.1f%%\n", ranks, 1e3 * sum, 100 * compute / (compute + sum - covered));
  }
}

int main(int argc, char **argv) {
  const int64_t units = argc > 1 ? atoll(argv[1]) : 1024, batch = argc > 2 ? atoll(argv[2]) : 1024,
                steps = argc > 3 ? atoll(argv[3]) : 20;
  const char *policy = argc > 4 ? argv[4] : "mixed_float16";
  enum { LARGE = 16 << 20 }; /* bytes: one exchange */
  mix_scope *scope = mix_scope_begin();
  mix_distribution *ranks = mix_distribution_mpi();
  mix_set_distribution(ranks);
  const int size = mix_distribution_size(ranks), rank = mix_distribution_rank(ranks);
  mix_set_global_policy(policy);
  /* gradients are summed in the dtype in which they are computed */
  const mix_dtype dtype = mix_policy_compute_dtype(mix_global_policy());
  const int64_t width = (int64_t)mix_dtype_size(dtype);
  result r = {0};
  double small = 0, large = 0;
  bool good = time_steps(units, batch, steps, &r);
  if (good && size > 1) small = time_sum(1, dtype), large = time_sum(LARGE / width, dtype);
  if (!good || mix_error()) {
    fprintf(stderr, "ranks: rank %d: %s\n", rank, mix_error_message());
    mix_distribution_end_job(ranks, 1);
    return 1;
  }
  if (!rank) {
    printf("%d rank%s of %d thread%s, %lld units, %lld rows in all, %s: %.2f ms a step\n", size,
           size > 1 ? "s" : "", mix_threads(), mix_threads() > 1 ? "s" : "", (long long)units,
           (long long)batch, policy, 1e3 * r.step);
    if (size > 1) {
      const double hidden = r.communication > 0 ? 1 - r.waited / r.communication : 0;
      printf("communication %.2f ms a step, of which steps waited for %.2f ms: %.0f %% hidden\n",
             1e3 * r.communication, 1e3 * r.waited, 100 * (hidden > 0 ? hidden : 0));
      const double weights = (double)(784 * units + units * units + 12 * units + 10);
      print_prediction(dtype, (double)width * weights, r.step - r.waited, hidden > 0 ? hidden : 0, size,
                       small, large, LARGE);
    }
  }
  mix_set_distribution(NULL);
  mix_scope_end(scope);
  return 0;
}
