/* Ways to feed a model, as candidates: the parts of the table pipeline. */
#pragma once

#include "cli/bench/bench.h"
#include "cli/bench/comparison.h"

/* An epoch. The first of these that is given: a batch that stays, arrays, a data set. */
typedef struct bench_feed {
  const char *name;
  mix_model *model;      /* NULL: the data set is read, and nothing computed */
  mix_list *resident;    /* arguments of the training step */
  mix_tensor *x, *y;     /* arrays */
  bool in_order;         /* not shuffled */
  mix_dataset *dataset;  /* of batches */
  int64_t batch, steps;  /* of an epoch */
  bench_candidate timed; /* an epoch; `repeats` is the caller's, 0: 1 */
  int runs;
  double processor[BENCH_ROUNDS + 2]; /* seconds of all threads in each run, warm-ups first */
} bench_feed;

/* feed.c. Times the feeds beside the first one. Adds an object of that name to `json`, with `title` above the
 * table, and "steps", "rounds" and a row for each feed. */
bool bench_feeds_time(const bench_settings *settings, const char *name, const char *title, bench_feed *feeds,
                      int count, double budget, int *rounds, json_t *json);

/* The parts, each a member of `json`. */
typedef bool bench_pipeline_part(const bench_settings *settings, json_t *json);
bench_pipeline_part bench_pipeline_images, bench_pipeline_text;

/* Files that a benchmark makes and removes: `count` of them, in a folder for each of `classes`. */
typedef struct bench_folder {
  char path[256]; /* empty: there is none */
  const char *extension;
  int count, classes;
} bench_folder;
/* image_folder.c: square images "png" or "jpeg", of waves and some noise. False with the error recorded; what
 * has been made is to be removed in any case. */
bool bench_image_folder_make(bench_folder *folder, const char *extension, int side, int count, int classes);
void bench_folder_remove(bench_folder *folder);
