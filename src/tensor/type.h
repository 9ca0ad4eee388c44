/* The type of a value: dtype and shape. */
#pragma once

#include <mixtape/tensor.h>

typedef struct mix_type {
  mix_dtype dtype;
  mix_shape shape;
} mix_type;

/* Struct members for a type: x.dtype and x.shape, and both together as x.type. */
#define MIX_TYPE_MEMBERS                                                                                     \
  union {                                                                                                    \
    mix_type type;                                                                                           \
    struct {                                                                                                 \
      mix_dtype dtype;                                                                                       \
      mix_shape shape;                                                                                       \
    };                                                                                                       \
  }

static inline bool mix_dtype_is_float8(mix_dtype dtype) {
  return dtype == MIX_FLOAT8_E4M3FN || dtype == MIX_FLOAT8_E5M2;
}
/* The floating dtypes that operations compute in and gradients have. float8 only holds numbers: as in
 * TensorFlow, no gradient flows through it. */
static inline bool mix_dtype_is_real(mix_dtype dtype) {
  return mix_dtype_is_floating(dtype) && !mix_dtype_is_float8(dtype);
}

static inline bool mix_dtype_is_16_bit(mix_dtype dtype) {
  return dtype == MIX_FLOAT16 || dtype == MIX_BFLOAT16;
}
