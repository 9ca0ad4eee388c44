/* Times of candidates that run interleaved in one process. */
#pragma once

#include <stdbool.h>

double bench_now(void); /* seconds */
/* Sorts the times. */
double bench_median(double *times, int count);

enum { BENCH_ROUNDS = 1000, BENCH_MAX_CANDIDATES = 12 };
typedef struct bench_candidate {
  bool (*run)(void *context);
  void *context;
  bool pause;          /* before each timing, so that threads of other libraries go to sleep */
  bool processor_time; /* of all threads, not of the clock: other work on the machine counts little */
  int repeats;         /* runs in a timing; 0: chosen so that the clock can measure it */
  double median, best; /* seconds of one run */
  double rounds[BENCH_ROUNDS];
} bench_candidate;

/* Runs A B C B C A ..., and times each run of each round by itself. After a warm-up it runs rounds until
 * `budget` seconds have passed, at least three. A timing of several runs follows an untimed one of the same
 * candidate. False: a run failed. */
bool bench_interleave(bench_candidate *candidates, int count, double budget, int *rounds);
/* Median over the rounds of a's time over b's. */
double bench_ratio(const bench_candidate *a, const bench_candidate *b, int rounds);
/* First and third quartile of the same ratios. */
void bench_ratio_quartiles(const bench_candidate *a, const bench_candidate *b, int rounds,
                           double quartiles[2]);
