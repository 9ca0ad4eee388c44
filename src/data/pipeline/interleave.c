/* mix_dataset_interleave: elements of several data sets in turn, each made from an element of the input. */
#include "base/alloc.h"
#include "base/error.h"
#include "data/pipeline/row_stream.h"
#include <mixtape/device.h>

typedef struct interleave_dataset {
  mix_dataset base;
  mix_dataset_interleave_options options;
} interleave_dataset;

typedef struct interleave_cursor {
  mix_cursor base;
  mix_stream *cycle; /* (length), open or not */
  int length, turn;
  int64_t block; /* elements taken from the current data set in this block */
  int open;
} interleave_cursor;

static int64_t interleave_cardinality(const mix_dataset *dataset) { return MIX_UNKNOWN_CARDINALITY; }

static bool interleave_open(mix_cursor *cursor) {
  interleave_cursor *interleave = (interleave_cursor *)cursor;
  int64_t length = ((const interleave_dataset *)cursor->dataset)->options.cycle_length;
  interleave->length = length ? (int)length : mix_threads();
  interleave->cycle = mix_calloc((size_t)interleave->length, sizeof *interleave->cycle);
  return interleave->cycle != NULL;
}

static void next_turn(interleave_cursor *interleave) {
  interleave->turn = (interleave->turn + 1) % interleave->length;
  interleave->block = 0;
}

/* Opens the data set made from the input's next element in the current slot of the cycle. */
static mix_pull open_one(interleave_cursor *interleave) {
  const interleave_dataset *dataset = (const interleave_dataset *)interleave->base.dataset;
  mix_element element = {0};
  mix_pull pull = mix_cursor_next(interleave->base.input, &element);
  if (pull != MIX_PULL_ELEMENT) return pull;
  mix_scope *scope = mix_scope_begin();
  if (scope && mix_element_own(dataset->base.input, &element, &interleave->base.buffers)) {
    mix_dataset *made = dataset->options.function(dataset->options.context, element.values);
    if (mix_dataset_given(made, "dataset_interleave: what the function returned")) {
      interleave->open++;
      mix_stream_open(&interleave->cycle[interleave->turn], made);
    }
  }
  mix_release(element.values);
  mix_scope_end(scope);
  return mix_failed() ? MIX_PULL_FAILED : MIX_PULL_ELEMENT;
}

/* The order is tf.data's: a slot whose data set has ended is refilled when its turn comes again. */
static mix_pull interleave_next(mix_cursor *cursor, mix_element *element) {
  interleave_cursor *interleave = (interleave_cursor *)cursor;
  int64_t block_length = ((const interleave_dataset *)cursor->dataset)->options.block_length;
  while (!cursor->input->ended || interleave->open > 0) {
    mix_stream *stream = &interleave->cycle[interleave->turn];
    if (stream->cursor) {
      mix_pull pull = mix_stream_next(stream, element);
      if (pull == MIX_PULL_ELEMENT && ++interleave->block == block_length) next_turn(interleave);
      if (pull != MIX_PULL_END) return pull;
      mix_stream_close(stream);
      interleave->open--;
      next_turn(interleave);
    } else if (!cursor->input->ended) {
      if (open_one(interleave) == MIX_PULL_FAILED) return MIX_PULL_FAILED;
    } else {
      next_turn(interleave);
    }
  }
  return MIX_PULL_END;
}

static void interleave_close(mix_cursor *cursor) {
  interleave_cursor *interleave = (interleave_cursor *)cursor;
  for (int i = 0; interleave->cycle && i < interleave->length; i++) mix_stream_close(&interleave->cycle[i]);
  mix_free(interleave->cycle);
}

static mix_made interleave_place(const mix_dataset *dataset) { return MIX_MADE_BY_RECEIVER; }

static const mix_dataset_class interleave_class = {
    .name = "interleave",
    .place = interleave_place,
    .cursor_size = sizeof(interleave_cursor),
    .cardinality = interleave_cardinality,
    .open = interleave_open,
    .next = interleave_next,
    .close = interleave_close,
};

mix_dataset *mix_dataset_interleave_with(const mix_dataset_interleave_options *given) {
  MIX_OPTIONS(mix_dataset_interleave_options, options, given, "dataset_interleave");
  if (!mix_dataset_given(options.dataset, "dataset_interleave")) return NULL;
  if (!options.function) return mix_fail_type("dataset_interleave: the function is NULL");
  if (options.cycle_length < 0 || options.cycle_length > INT16_MAX)
    return mix_fail_value(
        "dataset_interleave: cycle_length is %lld; expected 1 to %d, or 0 (the number of threads)",
        (long long)options.cycle_length, INT16_MAX);
  if (options.block_length < 0)
    return mix_fail_value("dataset_interleave: block_length is %lld; expected 1 or more, or 0 (1)",
                          (long long)options.block_length);
  if (options.block_length == 0) options.block_length = 1;
  interleave_dataset *dataset = mix_dataset_new(sizeof *dataset, &interleave_class, options.dataset, false);
  if (!dataset) return NULL;
  dataset->options = options;
  return mix_dataset_calling(dataset, (const void *)options.function, options.context, options.release);
}
