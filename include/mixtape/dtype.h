/* Element types and shapes. */
#ifndef MIXTAPE_DTYPE_H
#define MIXTAPE_DTYPE_H

#include <mixtape/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* constant, Keras name, bytes an element (0: a name that policies accept and no tensor may have), class */
#define MIX_DTYPE_LIST(X)                                                                                                      \
  X(MIX_FLOAT16, "float16", 2, MIX_CLASS_FLOAT)                                                                                \
  X(MIX_BFLOAT16, "bfloat16", 2, MIX_CLASS_FLOAT)                                                                              \
  X(MIX_FLOAT32, "float32", 4, MIX_CLASS_FLOAT)                                                                                \
  X(MIX_FLOAT64, "float64", 8, MIX_CLASS_FLOAT)                                                                                \
  X(MIX_INT8, "int8", 1, MIX_CLASS_INT)                                                                                        \
  X(MIX_INT16, "int16", 2, MIX_CLASS_INT)                                                                                      \
  X(MIX_INT32, "int32", 4, MIX_CLASS_INT)                                                                                      \
  X(MIX_INT64, "int64", 8, MIX_CLASS_INT)                                                                                      \
  X(MIX_UINT8, "uint8", 1, MIX_CLASS_INT)                                                                                      \
  X(MIX_BOOL, "bool", 1, MIX_CLASS_BOOL)                                                                                       \
  X(MIX_UINT16, "uint16", 0, MIX_CLASS_NAME_ONLY)                                                                              \
  X(MIX_UINT32, "uint32", 0, MIX_CLASS_NAME_ONLY)                                                                              \
  X(MIX_UINT64, "uint64", 0, MIX_CLASS_NAME_ONLY)                                                                              \
  X(MIX_COMPLEX64, "complex64", 0, MIX_CLASS_NAME_ONLY)                                                                        \
  X(MIX_COMPLEX128, "complex128", 0, MIX_CLASS_NAME_ONLY)                                                                      \
  X(MIX_STRING, "string", 0, MIX_CLASS_NAME_ONLY)

typedef enum mix_dtype {
  MIX_DTYPE_NONE, /* unset: Keras's None */
#define MIX_DTYPE_ENUM(constant, name, bytes, class) constant,
  MIX_DTYPE_LIST(MIX_DTYPE_ENUM)
#undef MIX_DTYPE_ENUM
  MIX_DTYPE_COUNT
} mix_dtype;

/* "float16"; "none" for MIX_DTYPE_NONE. */
MIX_API const char *mix_dtype_name(mix_dtype dtype);
/* The dtype of that name, MIX_DTYPE_NONE where there is none; records no error. */
MIX_API mix_dtype mix_dtype_from_name(const char *name);
/* Bytes an element; 0 for dtypes that are names only. */
MIX_API size_t mix_dtype_size(mix_dtype dtype);
/* float16, bfloat16, float32, float64; int8 to int64 and uint8. */
MIX_API bool mix_dtype_is_floating(mix_dtype dtype);
MIX_API bool mix_dtype_is_integer(mix_dtype dtype); /* bool is not one */

#define MIX_MAX_RANK 8
#define MIX_UNKNOWN (-1) /* a dimension that is not known before a call; only in symbolic tensors */

/* A value, passed by value. rank 0 is a scalar. */
typedef struct mix_shape {
  int rank;
  int64_t dims[MIX_MAX_RANK];
} mix_shape;

#ifndef __cplusplus
#define MIX_SHAPE(...)                                                                                                         \
  ((mix_shape){.rank = (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), .dims = {__VA_ARGS__}})
#define MIX_SCALAR ((mix_shape){.rank = 0})
#endif

/* Elements in all; 1 for a scalar, MIX_UNKNOWN where a dimension is, or where the rank is none (0 to MIX_MAX_RANK); INT64_MAX where they
 * are more than can be counted. */
MIX_API int64_t mix_shape_size(mix_shape shape);
/* The same rank and the same dimensions, unknown ones included. */
MIX_API bool mix_shape_equal(mix_shape a, mix_shape b);
/* Writes "(128, 784)", with "None" for unknown dimensions, into `text`; returns text. 160 bytes always suffice. */
MIX_API const char *mix_shape_text(mix_shape shape, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
