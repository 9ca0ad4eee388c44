/* Sizes of three digits could ask for more memory than the machine has, which is no defect. */
#ifndef TESTS_FUZZ_LARGE_NUMBERS_H
#define TESTS_FUZZ_LARGE_NUMBERS_H

#include <jansson.h>
#include <stdbool.h>
#include <string.h>

/* Some numbers are no sizes. */
static inline bool has_large_number(const json_t *json) {
  static const char *const no_sizes[] = {"shared_object_id", "dynamic_growth_steps", "seed", "decay_steps"};
  const char *key;
  json_t *value;
  size_t index;
  if (json_is_integer(json)) return json_integer_value(json) > 99;
  json_object_foreach((json_t *)json, key, value) {
    bool size = true;
    for (size_t i = 0; i < sizeof no_sizes / sizeof *no_sizes; i++) size = size && strcmp(key, no_sizes[i]);
    if (size && has_large_number(value)) return true;
  }
  json_array_foreach((json_t *)json, index, value) {
    if (has_large_number(value)) return true;
  }
  return false;
}

#endif
