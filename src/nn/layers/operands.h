/* What calls of operations are given, in the JSON of their forms (mix_call_keywords): tensors by their
 * numbers, constants and slices. */
#pragma once

#include "nn/json_arrays.h"
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

/* ---- slices: {"start", "stop", "step"}, of integers or null ---- */

typedef struct mix_json_slice {
  const json_t *start, *stop; /* NULL: from or to the end */
  int64_t step;
} mix_json_slice;

/* False, without an error: it has other values, or a step of 0 or beyond 2^24. */
bool mix_json_slice_read(const json_t *value, mix_json_slice *slice);
/* The number of elements that it takes of an axis of that size, from `begin` on, as Python cuts it. */
int64_t mix_json_slice_range(const mix_json_slice *slice, int64_t size, int64_t *begin);
