/* mix_dataset_window: batches that may overlap, or omit elements inside and between them. */
#include "base/alloc.h"
#include "base/error.h"
#include "data/pipeline/stack.h"
#include <string.h>

typedef struct window_dataset {
  mix_dataset base;
  int64_t window, shift, stride;
  bool drop_remainder;
} window_dataset;

typedef struct window_cursor {
  mix_cursor base;
  mix_element *buffered; /* (count): elements from the start of the next window on, values retained */
  int count, capacity;
  int64_t to_skip; /* elements between two windows that are still to be read */
} window_cursor;

static const window_dataset *recipe(const mix_cursor *cursor) {
  return (const window_dataset *)cursor->dataset;
}
/* Input elements from the first to the last of a window. */
static int64_t span(const window_dataset *dataset) { return (dataset->window - 1) * dataset->stride + 1; }

static int64_t window_cardinality(const mix_dataset *dataset) {
  const window_dataset *window = (const window_dataset *)dataset;
  int64_t input = mix_dataset_length(dataset->input);
  if (input <= 0) return input;
  if (!window->drop_remainder) return (input - 1) / window->shift + 1;
  return input < span(window) ? 0 : (input - span(window)) / window->shift + 1;
}

static bool window_open(mix_cursor *cursor) {
  const mix_dataset *source = cursor->dataset->input->source;
  return !source || mix_buffers_init(&cursor->buffers, source->components);
}

/* Reads until a whole window is buffered or the input ends. False: error recorded. */
static bool read_ahead(window_cursor *window) {
  const int64_t wanted = span(recipe(&window->base));
  while (window->count < wanted) {
    mix_element one = {0};
    mix_pull pull = mix_cursor_next(window->base.input, &one);
    if (pull != MIX_PULL_ELEMENT) return pull == MIX_PULL_END;
    if (window->to_skip > 0) {
      window->to_skip--;
      mix_release(one.values);
    } else if (!mix_reserve(&window->buffered, &window->capacity, window->count + 1,
                            sizeof *window->buffered)) {
      mix_release(one.values);
      return false;
    } else {
      window->buffered[window->count++] = one;
    }
  }
  return true;
}

static void drop(window_cursor *window, int64_t count) {
  int leaving = count < window->count ? (int)count : window->count;
  for (int i = 0; i < leaving; i++) mix_release(window->buffered[i].values);
  window->count -= leaving;
  memmove(window->buffered, window->buffered + leaving, (size_t)window->count * sizeof *window->buffered);
  window->to_skip = count - leaving;
}

/* Stacks the first `count` elements of the window at the head of the buffer. */
static mix_list *gather(window_cursor *window, int count) {
  const window_dataset *dataset = recipe(&window->base);
  const mix_dataset *source = dataset->base.input->source;
  const size_t size = source ? sizeof(int64_t) : sizeof(mix_list *);
  void *chosen = mix_alloc((size_t)count * size);
  if (!chosen) return NULL;
  for (int i = 0; i < count; i++) {
    const mix_element *element = &window->buffered[i * dataset->stride];
    if (source)
      ((int64_t *)chosen)[i] = element->row;
    else
      ((mix_list **)chosen)[i] = element->values;
  }
  mix_list *values = source ? source->class->gather(source, chosen, count, true, &window->base.buffers)
                            : mix_stack_elements(chosen, count, &window->base.buffers, "dataset_window");
  mix_free(chosen);
  return values;
}

static mix_pull window_next(mix_cursor *cursor, mix_element *element) {
  window_cursor *window = (window_cursor *)cursor;
  const window_dataset *dataset = recipe(cursor);
  if (!read_ahead(window)) return MIX_PULL_FAILED;
  if (window->count == 0 || (dataset->drop_remainder && window->count < span(dataset))) return MIX_PULL_END;
  const int64_t available = (window->count - 1) / dataset->stride + 1;
  mix_list *values = gather(window, (int)(available < dataset->window ? available : dataset->window));
  if (!values) return MIX_PULL_FAILED;
  drop(window, dataset->shift);
  *element = (mix_element){.values = values};
  return MIX_PULL_ELEMENT;
}

static void window_close(mix_cursor *cursor) {
  window_cursor *window = (window_cursor *)cursor;
  if (window->buffered) drop(window, window->count);
  mix_free(window->buffered);
}

static int window_numbers(const mix_dataset *dataset, int64_t numbers[MIX_STEP_NUMBERS]) {
  const window_dataset *window = (const window_dataset *)dataset;
  numbers[0] = window->window, numbers[1] = window->shift;
  numbers[2] = window->stride, numbers[3] = window->drop_remainder;
  return 4;
}

static const mix_dataset_class window_class = {
    .name = "window",
    .cursor_size = sizeof(window_cursor),
    .cardinality = window_cardinality,
    .open = window_open,
    .next = window_next,
    .close = window_close,
    .numbers = window_numbers,
};

mix_dataset *mix_dataset_window_with(const mix_dataset_window_options *given) {
  MIX_OPTIONS(mix_dataset_window_options, options, given, "dataset_window");
  if (!mix_dataset_given(options.dataset, "dataset_window")) return NULL;
  if (options.shift == 0) options.shift = options.window;
  if (options.stride == 0) options.stride = 1;
  const struct {
    const char *name;
    int64_t value;
  } numbers[] = {{"window", options.window}, {"shift", options.shift}, {"stride", options.stride}};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (numbers[i].value < 1 || numbers[i].value > INT32_MAX)
      return mix_fail_value("dataset_window: %s is %lld; expected 1 or more%s", numbers[i].name,
                            (long long)numbers[i].value, numbers[i].value > 1 ? ", below 2^31" : "");
  if ((options.window - 1) * options.stride >= INT32_MAX)
    return mix_fail_value("dataset_window: a window of %lld elements, every %lldth, spans more than 2^31",
                          (long long)options.window, (long long)options.stride);
  window_dataset *dataset = mix_dataset_new(sizeof *dataset, &window_class, options.dataset, false);
  if (!dataset) return NULL;
  dataset->window = options.window;
  dataset->shift = options.shift;
  dataset->stride = options.stride;
  dataset->drop_remainder = options.drop_remainder;
  return mix_scoped(dataset);
}
