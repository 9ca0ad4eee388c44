/* Shape arithmetic. */
#ifndef MIX_TENSOR_SHAPE_H
#define MIX_TENSOR_SHAPE_H

#include <mixtape/dtype.h>

/* NumPy broadcasting; unknown dimensions broadcast with anything. False if they do not fit (no error recorded). */
bool mix_shape_broadcast(mix_shape a, mix_shape b, mix_shape *result);
/* Can `from` be broadcast to exactly `to`? */
bool mix_shape_broadcasts_to(mix_shape from, mix_shape to);
/* Equal where both are known. */
bool mix_shape_compatible(mix_shape a, mix_shape b);
/* A caller's shape: false with a ValueError where its rank is none (0 to MIX_MAX_RANK), past which its dimensions cannot be read. */
bool mix_shape_option(mix_shape shape, const char *call, const char *option);
bool mix_shape_is_known(mix_shape shape);
/* Elements, or -1 on overflow of int64 (bytes of float64 included) or a negative dimension; such a shape is an error. */
int64_t mix_shape_checked_size(mix_shape shape);
/* Negative axes counted from the end; -1 if outside. */
int mix_axis_normal(int axis, int rank);
/* Bytes of a value. */
size_t mix_value_bytes(mix_dtype dtype, mix_shape shape);

#endif
