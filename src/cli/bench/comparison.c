#include "cli/bench/comparison.h"
#include "base/clock.h"

#include <mixtape/device.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Seconds that one timing lasts at least. Less than a time slice, so that the best rounds are undisturbed; on
 * a device with a queue so long that the wait at its end does not count. */
#define TIMING 5e-4
#define TIMING_OF_QUEUE 2e-2

double bench_now(void) { return mix_clock(CLOCK_MONOTONIC); }

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double bench_median(double *times, int count) {
  qsort(times, (size_t)count, sizeof *times, by_value);
  return count % 2 ? times[count / 2] : (times[count / 2 - 1] + times[count / 2]) / 2;
}

static bool run_once(bench_candidate *c, double *seconds) {
  const clockid_t clock = c->processor_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
  const double begin = mix_clock(clock);
  for (int i = 0; i < c->repeats; i++)
    if (!c->run(c->context)) return false;
  if (mix_synchronize() != MIX_OK) return false;
  *seconds = (mix_clock(clock) - begin) / c->repeats;
  return true;
}

bool bench_interleave(bench_candidate *candidates, int count, double budget, int *rounds) {
  const char *device = mix_device();
  const double timing = !strcmp(device, "cpu") || !strcmp(device, "ref") ? TIMING : TIMING_OF_QUEUE;
  for (int i = 0; i < count; i++) {
    bench_candidate *c = &candidates[i];
    const int wanted = c->repeats;
    double warm, seconds;
    c->repeats = 1;
    if (!run_once(c, &warm)) return false;
    seconds = warm;
    if (warm < 0.5 && !run_once(c, &seconds)) return false;
    c->repeats = wanted ? wanted : seconds < timing ? (int)(timing / (seconds + 1e-9)) + 1 : 1;
  }
  const double start = bench_now();
  int done = 0;
  while (done < BENCH_ROUNDS && (done < 3 || bench_now() - start < budget)) {
    for (int i = 0; i < count; i++) {
      bench_candidate *c = &candidates[(i + done) % count];
      if (c->pause) usleep(1000);
      /* The untimed run replaces what other candidates left in the caches. */
      if (c->repeats > 1 && !run_once(c, &c->rounds[done])) return false;
      if (!run_once(c, &c->rounds[done])) return false;
    }
    done++;
  }
  for (int i = 0; i < count; i++) {
    double sorted[BENCH_ROUNDS];
    for (int r = 0; r < done; r++) sorted[r] = candidates[i].rounds[r];
    candidates[i].median = bench_median(sorted, done);
    candidates[i].best = sorted[0];
  }
  *rounds = done;
  return true;
}

static void ratios_of(const bench_candidate *a, const bench_candidate *b, int rounds, double *ratios) {
  for (int r = 0; r < rounds; r++) ratios[r] = a->rounds[r] / b->rounds[r];
}

double bench_ratio(const bench_candidate *a, const bench_candidate *b, int rounds) {
  double ratios[BENCH_ROUNDS];
  ratios_of(a, b, rounds, ratios);
  return bench_median(ratios, rounds);
}

void bench_ratio_quartiles(const bench_candidate *a, const bench_candidate *b, int rounds,
                           double quartiles[2]) {
  double ratios[BENCH_ROUNDS];
  ratios_of(a, b, rounds, ratios);
  bench_median(ratios, rounds); /* sorts */
  quartiles[0] = ratios[rounds / 4], quartiles[1] = ratios[rounds - 1 - rounds / 4];
}
