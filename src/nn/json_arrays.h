/* Numbers, lists of numbers, and arrays of Keras 3 in JSON. */
#pragma once

#include <jansson.h>
#include <mixtape/tensor.h>

/* ---- numbers, or lists in lists of them ---- */

/* False, without an error: no number, or an integer that float64 does not hold, whatever the dtype of the
 * operands. INT64_MAX becomes 2^63, which is INT64_MAX again in int64. */
bool mix_json_number_read(const json_t *value, double *number);
#define MIX_NUMBER_EXPECTED "a number that float64 holds"

typedef struct mix_json_numbers {
  const json_t *json; /* borrowed */
  mix_shape shape;
  bool boolean, integer, real; /* some of them are */
} mix_json_numbers;

/* False, without an error: other values than numbers, or lists of unlike lengths. */
bool mix_json_numbers_read(const json_t *value, mix_json_numbers *numbers);
/* A tensor of them. Integers are exact in int64. NULL: the error is recorded. */
mix_tensor *mix_json_numbers_tensor(const mix_json_numbers *numbers, mix_dtype dtype);

/* ---- arrays of Keras 3: {"class_name": "__tensor__" or "__numpy__", "config": {"value", "dtype"}} ---- */

bool mix_is_array_form(const json_t *value);
/* NULL: the error is recorded, which names the owner and the value. */
mix_tensor *mix_array_form_read(const json_t *form, const char *owner, const char *name);
/* A new reference; `name` is for messages. NULL: the error is recorded. */
json_t *mix_array_form(mix_tensor *tensor, const char *name);
