/* The sub-command `mixtape bench`: one file a subject, each a function that prints its table and adds its object to the JSON. */
#ifndef MIX_BENCH_BENCH_H
#define MIX_BENCH_BENCH_H

#include <jansson.h>
#include <mixtape/function.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct bench_settings {
  int threads;
  bool quick, text;     /* text: tables to standard output */
  bool advise;          /* rules alone: nothing is timed */
  int64_t units, batch; /* 0: the guide's own configurations */
  json_t *json;         /* the object that results are added to */
} bench_settings;

/* Each: false with the error recorded, or said to standard error. */
bool bench_steps(const bench_settings *settings);
bool bench_dispatch(const bench_settings *settings);
bool bench_update(const bench_settings *settings);
bool bench_pipeline(const bench_settings *settings);
bool bench_optimizers(const bench_settings *settings);
bool bench_memory_passes(const bench_settings *settings);
bool bench_start(const bench_settings *settings);
bool bench_compile(const bench_settings *settings);
bool bench_products(const bench_settings *settings);
bool bench_figures(const bench_settings *settings);
bool bench_advise(const bench_settings *settings, const char *policy);

/* The time of a float32 RMSprop update that writes the weight's 16-bit copy too, over that of one that does not. */
bool bench_update_copy(const bench_settings *settings, double *ratio);

/* Steps of the plan of the function's latest call that touch a value of that shape, "(1024, 4096)". */
int bench_passes_over(mix_function *function, const char *shape);

double bench_now(void); /* seconds */
/* Sorts and takes the middle. */
double bench_median(double *times, int count);

/* Contestants that run interleaved, A B C B C A ..., each round timed by itself. A timing that
 * lasts less than a millisecond follows an untimed one of the same contestant. */
enum { BENCH_ROUNDS = 1000, BENCH_CONTESTANTS = 12 };
typedef struct bench_contestant {
  bool (*run)(void *context);
  void *context;
  bool rest;           /* a pause before each timing: threads of other libraries go to sleep */
  int repeats;         /* runs in a timing; 0: chosen so that it can be measured */
  double median, best; /* seconds of one run */
  double rounds[BENCH_ROUNDS];
} bench_contestant;
/* One warm-up run each, then rounds until `budget` seconds are spent, at least three. False where a run failed. */
bool bench_interleave(bench_contestant *contestants, int count, double budget, int *rounds);
/* Median over the rounds of a's time over b's. */
double bench_ratio(const bench_contestant *a, const bench_contestant *b, int rounds);
/* The two between which the middle half of them lies. */
void bench_ratio_quartiles(const bench_contestant *a, const bench_contestant *b, int rounds, double quartiles[2]);

#endif
