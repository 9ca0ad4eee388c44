/* Shared by the tests of pipeline steps: passes written as text, and two kinds of source. */
#ifndef TESTS_DATA_PIPELINE_SUPPORT_H
#define TESTS_DATA_PIPELINE_SUPPORT_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/object.h"
#include <mixtape/dataset.h>
#include <mixtape/device.h>
#include <stdio.h>
#include <string.h>

static inline int end(void **state) {
  (void)state;
  mix_inject_allocation_failure(-1);
  mix_error_clear();
  mix_set_threads(0);
  mix_shutdown();
  return 0;
}

static inline void assert_failed(mix_status status, const char *part) {
  char message[1000];
  mix_status got = mix_error_take(message, sizeof message);
  if (got != status || !strstr(message, part)) print_message("%s: %s\n", mix_status_name(got), message);
  assert_int_equal(got, status);
  assert_non_null(strstr(message, part));
}
#define FAILS(call, status, part)                                                                            \
  do {                                                                                                       \
    assert_null(call);                                                                                       \
    assert_failed(status, part);                                                                             \
  } while (0)

/* The values, read as int64: "5" for a scalar, "[0 1]" for more. */
static inline char *put_tensor(char *at, mix_tensor *tensor) {
  int64_t values[64], count = mix_shape_size(mix_tensor_shape(tensor));
  assert_true(count <= 64);
  assert_int_equal(mix_tensor_read(tensor, MIX_INT64, values, count), MIX_OK);
  if (mix_tensor_shape(tensor).rank == 0) return at + sprintf(at, "%lld", (long long)values[0]);
  at += sprintf(at, "[");
  for (int64_t i = 0; i < count; i++) at += sprintf(at, "%s%lld", i ? " " : "", (long long)values[i]);
  return at + sprintf(at, "]");
}

/* The next elements of a pass, at most `limit`: "0 1", or "0:10 1:11" if an element has two tensors. */
static inline const char *elements_of(mix_iterator *iterator, int limit) {
  static char texts[4][4000];
  static int next;
  char *text = texts[next = (next + 1) % 4], *at = text;
  *at = 0;
  if (mix_error()) print_message("%s\n", mix_error_message());
  assert_non_null(iterator);
  for (mix_list *element; limit > 0 && (element = mix_iterator_next(iterator)); limit--) {
    if (at != text) at += sprintf(at, " ");
    for (int i = 0; i < mix_list_count(element); i++) {
      if (i > 0) at += sprintf(at, ":");
      at = put_tensor(at, mix_list_get(element, i));
    }
  }
  return text;
}

/* A whole pass, at most `limit` elements. */
static inline const char *elements(mix_dataset *dataset, int limit) {
  mix_iterator *iterator = mix_dataset_iterate(dataset);
  const char *text = elements_of(iterator, limit);
  if (mix_error()) print_message("%s\n", mix_error_message());
  assert_int_equal(mix_error(), MIX_OK);
  return text;
}

static inline mix_dataset *range(int64_t stop) { return mix_dataset_range(0, stop, 1); }

/* The same numbers without rows: each element is a tensor of its own. */
static inline mix_list *number(void *context, int64_t index) {
  return index < (int64_t)(intptr_t)context ? mix_list_of(mix_tensor_from(&index, MIX_INT64, MIX_SCALAR))
                                            : NULL;
}
static inline mix_dataset *numbers(int64_t stop) {
  return mix_dataset_from_generator(number, .context = (void *)(intptr_t)stop, .cardinality = stop);
}

typedef mix_dataset *(*source)(int64_t stop);
static const source sources[2] = {range, numbers};
#define FOR_EACH_SOURCE(name)                                                                                \
  for (int i_ = 0; i_ < 2; i_++)                                                                             \
    for (source name = sources[i_]; name; name = NULL)

static inline int64_t value_of(mix_list *element, int index) {
  return (int64_t)mix_tensor_item(mix_list_get(element, index));
}
static inline mix_tensor *integer(int64_t value) { return mix_tensor_from(&value, MIX_INT64, MIX_SCALAR); }

#endif
