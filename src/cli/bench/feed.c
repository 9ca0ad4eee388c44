/* Epochs by what feeds them, timed beside each other. */
#include "base/clock.h"
#include "base/json.h"
#include "cli/bench/pipeline.h"

static bool run_resident(const bench_feed *feed) {
  mix_function *step = mix_model_train_function(feed->model);
  bool good = true;
  for (int64_t i = 0; i < feed->steps && good; i++)
    MIX_SCOPE { good = mix_function_call(step, feed->resident) != NULL; }
  return good;
}

static bool read_all(mix_dataset *dataset) {
  mix_iterator *iterator = mix_dataset_iterate(dataset);
  while (mix_iterator_next(iterator)) continue;
  return mix_error() == MIX_OK;
}

static bool run_epoch(void *context) {
  bench_feed *feed = context;
  const double begin = mix_clock(CLOCK_PROCESS_CPUTIME_ID);
  bool good = false;
  MIX_SCOPE {
    good = feed->resident  ? run_resident(feed)
           : !feed->model  ? read_all(feed->dataset)
           : feed->dataset ? mix_model_fit(feed->model, feed->dataset, NULL, .quiet = true) != NULL
                           : mix_model_fit(feed->model, feed->x, feed->y, .batch_size = feed->batch,
                                           .no_shuffle = feed->in_order, .quiet = true) != NULL;
  }
  if (feed->runs < BENCH_ROUNDS + 2)
    feed->processor[feed->runs++] = mix_clock(CLOCK_PROCESS_CPUTIME_ID) - begin;
  return good;
}

static bool put_feed(const bench_settings *settings, const bench_feed *feed, const bench_feed *first,
                     int rounds, json_t *rows) {
  const double steps = (double)feed->steps, ratio = bench_ratio(&first->timed, &feed->timed, rounds),
               rate = steps * (double)feed->batch / feed->timed.median;
  if (settings->text)
    printf("%-46s %11.1f %11.1f %12.0f %9.3f\n", feed->name, 1e6 * feed->timed.median / steps,
           1e6 * feed->timed.best / steps, rate, ratio);
  return mix_json_append(rows,
                         json_pack("{s:s, s:f, s:f, s:f, s:f}", "fed_by", feed->name, "step_seconds",
                                   feed->timed.median / steps, "best_step_seconds", feed->timed.best / steps,
                                   "examples_per_second", rate, "rate_to_resident", ratio));
}

bool bench_feeds_time(const bench_settings *settings, const char *name, const char *title, bench_feed *feeds,
                      int count, double budget, int *rounds, json_t *json) {
  bench_candidate runs[BENCH_MAX_CANDIDATES];
  for (int i = 0; i < count; i++)
    runs[i] = (bench_candidate){.run = run_epoch,
                                .context = &feeds[i],
                                .repeats = feeds[i].timed.repeats ? feeds[i].timed.repeats : 1};
  if (!bench_interleave(runs, count, budget, rounds)) return false;
  if (settings->text)
    printf("\n%s; epochs of %lld steps, batch %lld, %d interleaved rounds\n%-46s %11s %11s %12s %9s\n", title,
           (long long)feeds->steps, (long long)feeds->batch, *rounds, "fed by", "median us", "best us",
           "examples/s", "rate");
  json_t *rows = json_array();
  bool good = mix_json_set(json, name,
                           json_pack("{s:I, s:I, s:i, s:o}", "batch_size", (json_int_t)feeds->batch, "steps",
                                     (json_int_t)feeds->steps, "rounds", *rounds, "feeds", rows));
  for (int i = 0; i < count && good; i++) {
    feeds[i].timed = runs[i];
    good = put_feed(settings, &feeds[i], feeds, *rounds, rows);
  }
  fflush(stdout);
  return good;
}
