/* The part images of the table pipeline: ResNet-56 fed by folders of PNG and JPEG images, beside a batch that
 * stays and beside the work of decoding. */
#include "base/json.h"
#include "cli/bench/pipeline.h"
#include <mixtape/image_dataset.h>

enum { CLASSES = 10, RESIDENT = 0, PNG_FOLDER, JPEG_FOLDER, PNG_ALONE, JPEG_ALONE, FEEDS };

typedef struct sizes {
  int side;
  int64_t batch, steps;
} sizes;

static mix_model *make_model(int side) {
  cli_options options;
  char *arguments[] = {"bench", "--model", "resnet56", NULL};
  if (cli_parse("bench", CLI_BENCH, 3, arguments, &options)) return NULL;
  options.image_size = side;
  return mix_set_global_policy("float32") == MIX_OK ? cli_compiled_model(&options, 0) : NULL;
}

static bool make_resident(bench_feed *feed, const sizes *s) {
  const cli_invention invention = {.rows = s->batch, .side = s->side, .classes = CLASSES, .seed = 1};
  cli_part part;
  if (!(feed->model = make_model(s->side)) || !cli_invent_data(feed->model, &invention, &part) ||
      !mix_model_train_on_batch(feed->model, part.x, part.y))
    return false;
  feed->resident = mix_list_of(part.x, part.y);
  return feed->resident != NULL;
}

static mix_dataset *images_of(const bench_folder *folder, const sizes *s) {
  return mix_image_dataset_from_directory(folder->path, .height = s->side, .width = s->side,
                                          .batch_size = s->batch, .seed = 1)
      .dataset;
}

static bool make_feeds(bench_feed *feeds, const bench_folder *folders, const sizes *s) {
  static const char *const names[FEEDS] = {"a batch that stays", "a folder of PNG images",
                                           "a folder of JPEG images", "PNG images, no step",
                                           "JPEG images, no step"};
  for (int i = 0; i < FEEDS; i++) {
    feeds[i] = (bench_feed){.name = names[i], .batch = s->batch, .steps = s->steps};
    if (i == RESIDENT && !make_resident(&feeds[i], s)) return false;
    const bool jpeg = i == JPEG_FOLDER || i == JPEG_ALONE;
    if (i != RESIDENT && !(feeds[i].dataset = images_of(&folders[jpeg], s))) return false;
    if ((i == PNG_FOLDER || i == JPEG_FOLDER) && !(feeds[i].model = make_model(s->side))) return false;
  }
  return true;
}

/* The time of an epoch over the larger of the step alone and all work over the threads, in the same round;
 * median of the rounds. */
static double over_bound(const bench_feed *feeds, int fed, int alone, int threads, int rounds) {
  double ratios[BENCH_ROUNDS];
  const bench_feed *step = &feeds[RESIDENT], *decoding = &feeds[alone];
  for (int r = 0; r < rounds; r++) {
    const double work = step->processor[step->runs - rounds + r] +
                        decoding->processor[decoding->runs - rounds + r],
                 shared = work / threads, lone = step->timed.rounds[r];
    ratios[r] = feeds[fed].timed.rounds[r] / (shared > lone ? shared : lone);
  }
  return bench_median(ratios, rounds);
}

static bool put_bounds(const bench_settings *settings, const bench_feed *feeds, int rounds, json_t *json) {
  const double png = over_bound(feeds, PNG_FOLDER, PNG_ALONE, settings->threads, rounds),
               jpeg = over_bound(feeds, JPEG_FOLDER, JPEG_ALONE, settings->threads, rounds);
  if (settings->text)
    printf("an epoch over the larger of the step alone and all work over the threads: PNG %.3f, JPEG %.3f\n",
           png, jpeg);
  json_t *part = json_object_get(json, "images");
  return mix_json_set(part, "png_to_bound", json_real(png)) &&
         mix_json_set(part, "jpeg_to_bound", json_real(jpeg));
}

bool bench_pipeline_images(const bench_settings *settings, json_t *json) {
  static bench_feed feeds[FEEDS];
  const sizes s = {.side = settings->quick ? 16 : 64,
                   .batch = settings->batch ? settings->batch : 32,
                   .steps = settings->quick ? 2 : 8};
  bench_folder folders[2] = {{{0}}};
  const int count = (int)(s.batch * s.steps);
  char title[64];
  int rounds;
  snprintf(title, sizeof title, "ResNet-56, images of %dx%d", s.side, s.side);
  const bool good =
      bench_image_folder_make(&folders[0], "png", s.side, count, CLASSES) &&
      bench_image_folder_make(&folders[1], "jpeg", s.side, count, CLASSES) &&
      make_feeds(feeds, folders, &s) &&
      bench_feeds_time(settings, "images", title, feeds, FEEDS, settings->quick ? 1 : 60, &rounds, json) &&
      put_bounds(settings, feeds, rounds, json);
  bench_folder_remove(&folders[0]);
  bench_folder_remove(&folders[1]);
  return good;
}
