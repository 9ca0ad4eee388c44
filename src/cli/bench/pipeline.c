/* Table pipeline: epochs fed by arrays, data sets, folders of images and text, beside steps over a batch that
 * stays. The guide's small model has the shortest steps. */
#include "cli/bench/pipeline.h"
#include "base/alloc.h"
#include "base/json.h"
#include "cli/bench/step_candidate.h"

enum { FEEDS = 9 };

/* Bytes to numbers in [0, 1]. The guide does it with all images beforehand. */
static mix_list *normalise(void *context, mix_list *element) {
  (void)context;
  mix_tensor *x = mix_divide(mix_cast(mix_list_get(element, 0), MIX_FLOAT32), mix_scalar(255, MIX_FLOAT32));
  return mix_list_of(x, mix_list_get(element, 1));
}

static mix_dataset *shuffled(mix_tensor *x, mix_tensor *y, int64_t rows) {
  return mix_dataset_shuffle(mix_dataset_from_tensors(x, y), rows);
}

static bool make_arrays(int64_t rows, mix_tensor **images, mix_tensor **labels) {
  unsigned char *bytes = mix_alloc((size_t)(rows * BENCH_WIDTH));
  int64_t *classes = mix_alloc((size_t)rows * sizeof *classes);
  for (int64_t i = 0; bytes && i < rows * BENCH_WIDTH; i++) bytes[i] = (unsigned char)(i * 2654435761u >> 24);
  for (int64_t i = 0; classes && i < rows; i++) classes[i] = i * 7 % BENCH_CLASSES;
  if (bytes && classes) {
    *images = mix_tensor_from(bytes, MIX_UINT8, MIX_SHAPE(rows, BENCH_WIDTH));
    *labels = mix_tensor_from(classes, MIX_INT64, MIX_SHAPE(rows));
  }
  mix_free(bytes);
  mix_free(classes);
  return mix_error() == MIX_OK;
}

static bool make_feeds(bench_feed *feeds, int64_t units, int64_t batch, int64_t steps) {
  const int64_t rows = batch * steps;
  mix_tensor *images = NULL, *y = NULL;
  if (!make_arrays(rows, &images, &y)) return false;
  mix_tensor *x = mix_divide(mix_cast(images, MIX_FLOAT32), mix_scalar(255, MIX_FLOAT32));
  if (mix_evaluate(1, &x) != MIX_OK) return false;
  mix_list *resident = bench_step_data(mix_generator_new(1), batch);
  mix_dataset *whole = mix_dataset_batch(shuffled(images, y, rows), batch),
              *each = mix_dataset_map(shuffled(images, y, rows), normalise, .num_parallel_calls = -1);
  const bench_feed made[FEEDS] = {
      {.name = "a batch that stays", .resident = resident},
      {.name = "arrays, in their order", .x = x, .y = y, .in_order = true},
      {.name = "arrays", .x = x, .y = y},
      {.name = "shuffle, batch", .dataset = mix_dataset_batch(shuffled(x, y, rows), batch)},
      {.name = "shuffle, batch, prefetch (0)",
       .dataset = mix_dataset_prefetch(mix_dataset_batch(shuffled(x, y, rows), batch), 0)},
      {.name = "shuffle, batch, prefetch",
       .dataset = mix_dataset_prefetch(mix_dataset_batch(shuffled(x, y, rows), batch), -1)},
      {.name = "shuffle, batch, map, prefetch",
       .dataset = mix_dataset_prefetch(mix_dataset_map(whole, normalise), -1)},
      {.name = "shuffle, batch, map (-1), prefetch",
       .dataset = mix_dataset_prefetch(mix_dataset_map(whole, normalise, .num_parallel_calls = -1), -1)},
      {.name = "shuffle, map of images (-1), batch, prefetch",
       .dataset = mix_dataset_prefetch(mix_dataset_batch(each, batch), -1)}};
  for (int i = 0; i < FEEDS; i++) {
    bench_step step = {.policy = "float32"};
    if (!bench_step_prepare(&step, units, resident)) return false;
    feeds[i] = made[i];
    feeds[i].model = step.model, feeds[i].batch = batch, feeds[i].steps = steps;
    /* What ran before decides whether the helpers of the first steps are awake; an untimed epoch goes before.
     */
    feeds[i].timed.repeats = 2;
  }
  return true;
}

static bool time_guide(const bench_settings *settings, json_t *json) {
  static bench_feed feeds[FEEDS];
  const int64_t units = settings->units ? settings->units : 64;
  char title[64];
  int rounds;
  snprintf(title, sizeof title, "the guide's model of %lld units", (long long)units);
  return make_feeds(feeds, units, settings->batch ? settings->batch : 128, settings->quick ? 20 : 100) &&
         bench_feeds_time(settings, "arrays", title, feeds, FEEDS, settings->quick ? 1 : 15, &rounds, json);
}

/* Under a 16-bit policy fit rounds arrays where it gathers them; elements of a data set are rounded by the
 * step. */
static bool time_rounded(const bench_settings *settings, json_t *json) {
  enum { COUNT = 3, ROUNDED_BATCH = 4096, ROUNDED_STEPS = 16 };
  static bench_feed feeds[COUNT];
  const int64_t units = settings->units ? settings->units : 64,
                batch = settings->batch   ? settings->batch
                        : settings->quick ? 512
                                          : ROUNDED_BATCH,
                rows = batch * ROUNDED_STEPS;
  mix_tensor *images = NULL, *y = NULL;
  if (!make_arrays(rows, &images, &y)) return false;
  mix_tensor *x = mix_divide(mix_cast(images, MIX_FLOAT32), mix_scalar(255, MIX_FLOAT32));
  if (mix_evaluate(1, &x) != MIX_OK) return false;
  mix_list *resident = bench_step_data(mix_generator_new(1), batch);
  const bench_feed made[COUNT] = {
      {.name = "a batch that stays", .resident = resident},
      {.name = "arrays", .x = x, .y = y},
      {.name = "shuffle, batch", .dataset = mix_dataset_batch(shuffled(x, y, rows), batch)}};
  for (int i = 0; i < COUNT; i++) {
    bench_step step = {.policy = "mixed_bfloat16"};
    if (!bench_step_prepare(&step, units, resident)) return false;
    feeds[i] = made[i];
    feeds[i].model = step.model, feeds[i].batch = batch, feeds[i].steps = ROUNDED_STEPS;
    feeds[i].timed.repeats = 2;
  }
  char title[80];
  int rounds;
  snprintf(title, sizeof title, "the guide's model of %lld units, mixed_bfloat16", (long long)units);
  return bench_feeds_time(settings, "rounded_arrays", title, feeds, COUNT, settings->quick ? 1 : 5, &rounds,
                          json) &&
         mix_set_global_policy("float32") == MIX_OK;
}

bool bench_pipeline(const bench_settings *settings) {
  static bench_pipeline_part *const parts[] = {time_guide, time_rounded, bench_pipeline_images,
                                               bench_pipeline_text};
  json_t *json = json_object();
  bool good = mix_json_set(settings->json, "pipeline", json);
  for (size_t i = 0; i < sizeof parts / sizeof *parts && good; i++)
    MIX_SCOPE { good = parts[i](settings, json); }
  if (good && settings->text) printf("rate: that of examples over the first row's, median of the rounds\n");
  return good;
}
