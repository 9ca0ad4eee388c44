/* What calls of operations are given, in the JSON of their forms (mix_call_keywords): tensors by their
 * numbers, constants and slices. */
#pragma once

#include <jansson.h>
#include <mixtape/layer.h>

/* ---- tensors ---- */

/* The member of an object that stands for a tensor: its number among the inputs and then the arguments. */
#define MIX_OPERAND_TENSOR "$tensor"
/* The member of an object that holds a constant where a tensor is expected, in forms of tf_keras. */
#define MIX_OPERAND_VALUE "$value"

/* Has the JSON of a call, or an object in it, a member of that name? Only forms have: a text is refused. */
bool mix_operand_form_reserved(const json_t *json);
/* A new reference. NULL with the error recorded. */
json_t *mix_operand_form(int number);
/* -1: it stands for no tensor. */
int mix_operand_form_number(const json_t *form);
/* The inputs of a call and then its arguments, which may be NULL. */
mix_list *mix_operand_tensors(mix_list *inputs, mix_list *arguments);

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

/* ---- slices: {"start", "stop", "step"}, of integers or null ---- */

typedef struct mix_json_slice {
  const json_t *start, *stop; /* NULL: from or to the end */
  int64_t step;
} mix_json_slice;

/* False, without an error: it has other values, or a step of 0 or beyond 2^24. */
bool mix_json_slice_read(const json_t *value, mix_json_slice *slice);
/* The number of elements that it takes of an axis of that size, from `begin` on, as Python cuts it. */
int64_t mix_json_slice_range(const mix_json_slice *slice, int64_t size, int64_t *begin);
