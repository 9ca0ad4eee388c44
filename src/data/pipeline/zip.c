/* mix_dataset_zip: elements of several data sets side by side. */
#include "base/alloc.h"
#include "base/error.h"
#include "data/pipeline/row_stream.h"

typedef struct zip_dataset {
  mix_dataset base;
  mix_dataset **inputs; /* (count), retained */
  int count;
} zip_dataset;

typedef struct zip_cursor {
  mix_cursor base;
  mix_stream *streams; /* one for each input */
} zip_cursor;

static int64_t zip_cardinality(const mix_dataset *dataset) {
  const zip_dataset *zip = (const zip_dataset *)dataset;
  int64_t shortest = MIX_INFINITE;
  for (int i = 0; i < zip->count; i++) {
    int64_t input = mix_dataset_length(zip->inputs[i]);
    if (input == MIX_UNKNOWN_CARDINALITY) return input;
    if (input != MIX_INFINITE && (shortest == MIX_INFINITE || input < shortest)) shortest = input;
  }
  return shortest;
}

static bool zip_open(mix_cursor *cursor) {
  const zip_dataset *dataset = (const zip_dataset *)cursor->dataset;
  zip_cursor *zip = (zip_cursor *)cursor;
  zip->streams = mix_calloc((size_t)dataset->count, sizeof *zip->streams);
  for (int i = 0; zip->streams && i < dataset->count; i++)
    if (!mix_stream_open(&zip->streams[i], dataset->inputs[i])) return false;
  return zip->streams != NULL;
}

static mix_pull zip_next(mix_cursor *cursor, mix_element *element) {
  zip_cursor *zip = (zip_cursor *)cursor;
  mix_scope *scope = mix_scope_begin();
  mix_list *values = scope ? mix_list_new(0, NULL) : NULL;
  mix_pull pull = values ? MIX_PULL_ELEMENT : MIX_PULL_FAILED;
  for (int i = 0; pull == MIX_PULL_ELEMENT && i < ((const zip_dataset *)cursor->dataset)->count; i++) {
    mix_element part = {0};
    pull = mix_stream_next(&zip->streams[i], &part);
    for (int j = 0; pull == MIX_PULL_ELEMENT && j < mix_list_count(part.values); j++)
      if (mix_list_append(values, mix_list_items(part.values)[j]) != MIX_OK) pull = MIX_PULL_FAILED;
    mix_release(part.values);
  }
  if (pull == MIX_PULL_ELEMENT) *element = (mix_element){.values = mix_retain(values)};
  mix_scope_end(scope);
  return pull;
}

static void zip_close(mix_cursor *cursor) {
  zip_cursor *zip = (zip_cursor *)cursor;
  for (int i = 0; zip->streams && i < ((const zip_dataset *)cursor->dataset)->count; i++)
    mix_stream_close(&zip->streams[i]);
  mix_free(zip->streams);
}

static void zip_finalize(mix_dataset *dataset) {
  zip_dataset *zip = (zip_dataset *)dataset;
  for (int i = 0; i < zip->count; i++) mix_release(zip->inputs[i]);
  mix_free(zip->inputs);
}

static mix_dataset *zip_beside(const mix_dataset *dataset, int index) {
  const zip_dataset *zip = (const zip_dataset *)dataset;
  return index < zip->count ? zip->inputs[index] : NULL;
}

static const mix_dataset_class zip_class = {
    .name = "zip",
    .cursor_size = sizeof(zip_cursor),
    .cardinality = zip_cardinality,
    .open = zip_open,
    .next = zip_next,
    .close = zip_close,
    .finalize = zip_finalize,
    .beside = zip_beside,
};

mix_dataset *mix_dataset_zip_list(mix_list *datasets) {
  if (mix_failed()) return NULL;
  int count = mix_list_count(datasets);
  if (mix_failed()) return NULL;
  if (count == 0) return mix_fail(MIX_VALUE_ERROR, "dataset_zip: no data sets; expected at least one");
  for (int i = 0; i < count; i++)
    if (!mix_dataset_given(mix_list_items(datasets)[i], "dataset_zip")) return NULL;
  zip_dataset *dataset = mix_dataset_new(sizeof *dataset, &zip_class, NULL, false);
  if (!dataset) return NULL;
  dataset->inputs = mix_calloc((size_t)count, sizeof(mix_dataset *));
  if (!dataset->inputs) {
    mix_release(dataset);
    return NULL;
  }
  for (; dataset->count < count; dataset->count++)
    dataset->inputs[dataset->count] = mix_retain(mix_list_items(datasets)[dataset->count]);
  return mix_scoped(dataset);
}
