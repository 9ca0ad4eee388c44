/* Shape arithmetic. */
#pragma once

#include <mixtape/dtype.h>

/* The shape as text, for the arguments of one call. */
#define MIX_SHAPE_TEXT(shape) mix_shape_text(shape, (char[160]){0}, 160)

/* NumPy broadcasting; an unknown dimension broadcasts with anything. Returns false, without an error, if
 * the shapes do not fit. */
bool mix_shape_broadcast(mix_shape a, mix_shape b, mix_shape *result);
/* True if `from` can be broadcast to exactly `to`. */
bool mix_shape_broadcasts_to(mix_shape from, mix_shape to);
/* Equal in every dimension that both know. */
bool mix_shape_compatible(mix_shape a, mix_shape b);
/* Checks a shape that a caller gave: false with a ValueError if its rank is not 0 to MIX_MAX_RANK. */
bool mix_shape_option(mix_shape shape, const char *call, const char *option);
bool mix_shape_is_known(mix_shape shape);
/* The number of elements. -1 if a dimension is negative or unknown, or if the size in bytes as float64
 * overflows int64. */
int64_t mix_shape_checked_size(mix_shape shape);
/* Converts a negative axis, counted from the end; -1 if out of range. */
int mix_axis_normal(int axis, int rank);
/* The size of a value in bytes; 0 if mix_shape_checked_size gives -1. */
size_t mix_value_bytes(mix_dtype dtype, mix_shape shape);
