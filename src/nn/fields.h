/* Kinds of fields that hold objects, axes and shapes. */
#pragma once

#include "base/fields.h"
#include "nn/policy/semantics.h"
#include <mixtape/activation.h>
#include <mixtape/metric.h>

extern const mix_value_kind mix_field_initializer, /* a name, or the object at `other`, where it is kept */
    mix_field_regularizer, mix_field_constraint,   /* objects */
    mix_field_policy,                              /* an object that the struct borrows */
    mix_field_quantization_config, /* Keras's object as text (quantization_config.h); `other`: the policy */
    mix_field_axis,      /* int: 0 is the last, MIX_AXIS_0 is 0 */
    mix_field_axes,      /* mix_axes: an integer, or a list of several; none is -1 */
    mix_field_axis_list, /* mix_axes: always a list */
    mix_field_shape,     /* mix_shape: null is an unknown dimension */
    mix_field_size_or_shape, /* the same; an integer is a shape of one */
    mix_field_sizes,     /* mix_shape: -1 is an unknown dimension */
    mix_field_numbers;   /* mix_numbers: copied; none is null */

/* The row of an initializer, which the options struct holds by name and as an object. */
#define MIX_INITIALIZER_FIELD(type, member, initializer)                                                    \
  {MIX_FIELD(type, member), &mix_field_initializer, .text = initializer,                                    \
   .other = offsetof(type, member##_object)}

/* The functions of kinds that hold an object. */
mix_field_resolve mix_retain_field;
void mix_release_field(const mix_field *field);
/* A size up to MIX_FIELD_MAX_SIZE, -1 for an unknown one. False with the error recorded. */
bool mix_field_read_size(const mix_field *field, const json_t *value, int64_t *size);
/* An integer if the number is whole. */
json_t *mix_number_json(double value);
/* A shape as configs hold it: null is an unknown dimension, and the first one of an open batch. */
json_t *mix_shape_json(mix_shape shape, bool open_batch);
/* Converts an axis from the form of options (0 means the last, MIX_AXIS_0 means 0), and back. */
static inline int mix_axis_number(int option) {
  return option == 0 ? -1 : option == MIX_AXIS_0 ? 0 : option;
}
static inline int mix_axis_option(int number) { return number == 0 ? MIX_AXIS_0 : number; }
