/* mix_csv_load and mix_csv_dataset: tables as arrays, and as batches that are read pass by pass. */
#include "base/alloc.h"
#include "base/error.h"
#include "data/pipeline/pipeline.h"
#include "data/sources/csv_table.h"
#include "graph/unfilled_tensor.h"

/* ---- rows as tensors ---- */

static bool has_word_label(const mix_csv_source *source) {
  return source->labelled && source->columns->items[source->columns->features].of_words;
}

static bool fill(mix_csv_pass *pass, int64_t rows, float *x, void *y) {
  const mix_csv_source *source = pass->source;
  const bool words = has_word_label(source);
  for (int64_t r = 0; r < rows; r++) {
    mix_csv_label label;
    if (!mix_csv_pass_row(pass, x + r * source->columns->features, &label))
      return mix_failed() ? false : mix_fail_io("%s: it changed while it was read", source->path);
    if (source->labelled && words) ((int64_t *)y)[r] = label.word;
    if (source->labelled && !words) ((float *)y)[r] = label.number;
  }
  return true;
}

/* The next rows, stacked, or one alone. False with the error recorded. */
static bool read_rows(mix_csv_pass *pass, int64_t rows, bool stacked, mix_tensor **x, mix_tensor **y) {
  const mix_csv_source *source = pass->source;
  const int64_t features = source->columns->features;
  void *values = NULL, *labels = NULL;
  *x = mix_tensor_unfilled(MIX_FLOAT32, stacked ? MIX_SHAPE(rows, features) : MIX_SHAPE(features), &values);
  *y = *x && source->labelled
           ? mix_tensor_unfilled(has_word_label(source) ? MIX_INT64 : MIX_FLOAT32,
                                 stacked ? MIX_SHAPE(rows) : (mix_shape){.rank = 0}, &labels)
           : NULL;
  return !mix_failed() && fill(pass, rows, values, labels);
}

mix_csv_table mix_csv_load_with(const mix_csv_options *given) {
  mix_csv_table table = {NULL};
  mix_csv_options options;
  mix_csv_source source;
  mix_csv_pass pass = {NULL};
  if (!mix_options_copy(&options, sizeof options, given, "csv_load")) return table;
  if (mix_csv_source_begin(&source, &options, "csv_load") && mix_csv_pass_begin(&pass, &source) &&
      read_rows(&pass, source.rows, true, &table.x, &table.y)) {
    table.rows = source.rows;
    table.columns = mix_scoped(mix_retain(source.columns));
  }
  mix_csv_pass_end(&pass);
  mix_csv_source_release(&source);
  return mix_failed() ? (mix_csv_table){NULL} : table;
}

/* ---- data set ---- */

typedef struct csv_dataset {
  mix_dataset base;
  mix_csv_source source;
  int64_t batch; /* 0: single rows */
} csv_dataset;

typedef struct csv_cursor {
  mix_cursor base;
  mix_csv_pass pass;
  int64_t done; /* rows */
} csv_cursor;

static int64_t csv_cardinality(const mix_dataset *dataset) {
  const csv_dataset *csv = (const csv_dataset *)dataset;
  return csv->batch ? (csv->source.rows - 1) / csv->batch + 1 : csv->source.rows;
}

static bool csv_open(mix_cursor *cursor) {
  return mix_csv_pass_begin(&((csv_cursor *)cursor)->pass, &((const csv_dataset *)cursor->dataset)->source);
}

static mix_pull csv_next(mix_cursor *cursor, mix_element *element) {
  const csv_dataset *dataset = (const csv_dataset *)cursor->dataset;
  csv_cursor *csv = (csv_cursor *)cursor;
  const int64_t left = dataset->source.rows - csv->done, rows = dataset->batch && dataset->batch < left
                                                                    ? dataset->batch
                                                                : dataset->batch ? left
                                                                                 : left > 0;
  if (!rows) return MIX_PULL_END;
  mix_scope *scope = mix_scope_begin();
  mix_tensor *x, *y;
  const bool good = scope && read_rows(&csv->pass, rows, dataset->batch > 0, &x, &y);
  *element = (mix_element){.values = good ? mix_retain(y ? mix_list_of(x, y) : mix_list_of(x)) : NULL};
  mix_scope_end(scope);
  csv->done += rows;
  return element->values ? MIX_PULL_ELEMENT : MIX_PULL_FAILED;
}

static void csv_close(mix_cursor *cursor) { mix_csv_pass_end(&((csv_cursor *)cursor)->pass); }

static void csv_finalize(mix_dataset *dataset) { mix_csv_source_release(&((csv_dataset *)dataset)->source); }

static int csv_numbers(const mix_dataset *dataset, int64_t numbers[MIX_STEP_NUMBERS]) {
  const csv_dataset *csv = (const csv_dataset *)dataset;
  numbers[0] = csv->source.rows, numbers[1] = csv->source.columns->features, numbers[2] = csv->batch;
  return 3;
}

static const mix_dataset_class csv_class = {
    .name = "csv",
    .cursor_size = sizeof(csv_cursor),
    .cardinality = csv_cardinality,
    .open = csv_open,
    .next = csv_next,
    .close = csv_close,
    .finalize = csv_finalize,
    .numbers = csv_numbers,
};

static mix_dataset *new_dataset(mix_csv_source *source, int64_t batch) {
  csv_dataset *dataset = mix_dataset_new(sizeof *dataset, &csv_class, NULL, false);
  if (!dataset) return NULL;
  dataset->source = *source;
  dataset->source.columns = mix_retain(source->columns);
  dataset->batch = batch;
  return mix_scoped(dataset);
}

static bool check(const mix_csv_options *o) {
  if (o->batch_size >= 0 && o->shuffle_buffer >= 0) return true;
  return mix_fail_value("csv_dataset: %s is %lld; expected a positive number",
                        o->batch_size < 0 ? "batch_size" : "shuffle_buffer",
                        (long long)(o->batch_size < 0 ? o->batch_size : o->shuffle_buffer));
}

mix_csv_table mix_csv_dataset_with(const mix_csv_options *given) {
  mix_csv_table table = {NULL};
  mix_csv_options o;
  mix_csv_source source;
  if (!mix_options_copy(&o, sizeof o, given, "csv_dataset") || !check(&o)) return table;
  const int64_t batch = o.batch_size ? o.batch_size : 32;
  if (mix_csv_source_begin(&source, &o, "csv_dataset")) {
    table.dataset = new_dataset(&source, o.shuffle_buffer ? 0 : batch);
    if (o.shuffle_buffer)
      table.dataset =
          mix_dataset_batch(mix_dataset_shuffle(table.dataset, o.shuffle_buffer, .seed = o.seed), batch);
    table.rows = source.rows;
    table.columns = mix_scoped(mix_retain(source.columns));
  }
  mix_csv_source_release(&source);
  return mix_failed() ? (mix_csv_table){NULL} : table;
}
