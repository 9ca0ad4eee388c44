/* The part text of the table pipeline: lines of a file as tokens of one byte, in padded batches. */
#include "base/error.h"
#include "cli/bench/pipeline.h"
#include <stdlib.h>
#include <string.h>

enum { TOKENS = 256, LENGTH = 80, CLASSES = 10, UNITS = 64, FEEDS = 2 };

/* A line of 20 to LENGTH bytes. */
static void put_line(FILE *file, int number) {
  uint32_t state = 2654435761u * (uint32_t)(number + 1);
  const int length = 20 + number * 7 % (LENGTH - 20);
  for (int i = 0; i < length; i++) {
    state = state * 1664525u + 1013904223u;
    fputc(i % 6 == 5 ? ' ' : 'a' + (int)(state >> 24) % 26, file);
  }
  fputc('\n', file);
}

/* One pass at a time reads the file. */
static mix_list *next_line(void *context, int64_t index) {
  FILE *file = context;
  char line[LENGTH + 2];
  int32_t tokens[LENGTH];
  if (!index) rewind(file);
  if (!fgets(line, sizeof line, file)) return NULL;
  const int length = (int)strcspn(line, "\n");
  for (int i = 0; i < length; i++) tokens[i] = (unsigned char)line[i];
  return mix_list_of(mix_tensor_from(tokens, MIX_INT32, MIX_SHAPE(length)),
                     mix_scalar((double)(length % CLASSES), MIX_INT64));
}

static mix_model *make_model(void) {
  mix_model *model = mix_sequential(mix_list_of(mix_embedding(TOKENS, UNITS), mix_global_average_pooling1d(),
                                                mix_dense(UNITS, "relu"), mix_dense(CLASSES, "softmax")));
  return model && mix_model_compile(model, .loss = "sparse_categorical_crossentropy") == MIX_OK ? model
                                                                                                : NULL;
}

static bool make_feeds(bench_feed *feeds, FILE *file, int64_t batch, int64_t steps) {
  mix_dataset *lines = mix_dataset_from_generator(next_line, .context = file);
  lines = mix_dataset_padded_batch(lines, batch, .padded_shapes = {MIX_SHAPE(LENGTH)});
  /* The iterator, which is not asked again, keeps it. */
  mix_list *first = lines ? mix_iterator_next(mix_dataset_iterate(lines)) : NULL;
  if (!first) return false;
  feeds[0] = (bench_feed){.name = "a batch that stays", .resident = first};
  feeds[1] = (bench_feed){.name = "lines of a file", .dataset = mix_dataset_prefetch(lines, -1)};
  for (int i = 0; i < FEEDS; i++) {
    feeds[i].batch = batch, feeds[i].steps = steps;
    if (!(feeds[i].model = make_model())) return false;
  }
  return mix_model_train_on_batch(feeds[0].model, mix_list_get(first, 0), mix_list_get(first, 1)) != NULL;
}

bool bench_pipeline_text(const bench_settings *settings, json_t *json) {
  static bench_feed feeds[FEEDS];
  const int64_t batch = settings->batch ? settings->batch : 128, steps = settings->quick ? 5 : 50;
  FILE *file = tmpfile();
  if (!file) return mix_fail_io("bench: cannot make a temporary file");
  for (int i = 0; i < batch * steps; i++) put_line(file, i);
  int rounds;
  bool good = false;
  MIX_SCOPE {
    good = make_feeds(feeds, file, batch, steps) &&
           bench_feeds_time(settings, "text", "lines of text as tokens of one byte", feeds, FEEDS,
                            settings->quick ? 1 : 5, &rounds, json);
  }
  fclose(file);
  return good;
}
