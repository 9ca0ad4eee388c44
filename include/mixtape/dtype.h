/* Element types and shapes. */
#ifndef MIXTAPE_DTYPE_H
#define MIXTAPE_DTYPE_H

#include <mixtape/status.h>

MIX_BEGIN_DECLARATIONS

/* constant, Keras name, bytes per element (0: a name that policies accept but no tensor may have), class */
#define MIX_DTYPE_LIST(X)                                                                                   \
  X(MIX_FLOAT16, "float16", 2, MIX_CLASS_FLOAT)                                                             \
  X(MIX_BFLOAT16, "bfloat16", 2, MIX_CLASS_FLOAT)                                                           \
  X(MIX_FLOAT32, "float32", 4, MIX_CLASS_FLOAT)                                                             \
  X(MIX_FLOAT64, "float64", 8, MIX_CLASS_FLOAT)                                                             \
  X(MIX_INT8, "int8", 1, MIX_CLASS_INT)                                                                     \
  X(MIX_INT16, "int16", 2, MIX_CLASS_INT)                                                                   \
  X(MIX_INT32, "int32", 4, MIX_CLASS_INT)                                                                   \
  X(MIX_INT64, "int64", 8, MIX_CLASS_INT)                                                                   \
  X(MIX_UINT8, "uint8", 1, MIX_CLASS_INT)                                                                   \
  X(MIX_BOOL, "bool", 1, MIX_CLASS_BOOL)                                                                    \
  X(MIX_UINT16, "uint16", 0, MIX_CLASS_NAME_ONLY)                                                           \
  X(MIX_UINT32, "uint32", 0, MIX_CLASS_NAME_ONLY)                                                           \
  X(MIX_UINT64, "uint64", 0, MIX_CLASS_NAME_ONLY)                                                           \
  X(MIX_COMPLEX64, "complex64", 0, MIX_CLASS_NAME_ONLY)                                                     \
  X(MIX_COMPLEX128, "complex128", 0, MIX_CLASS_NAME_ONLY)                                                   \
  X(MIX_STRING, "string", 0, MIX_CLASS_NAME_ONLY)                                                           \
  X(MIX_FLOAT8_E4M3FN, "float8_e4m3fn", 1, MIX_CLASS_FLOAT)                                                 \
  X(MIX_FLOAT8_E5M2, "float8_e5m2", 1, MIX_CLASS_FLOAT)

typedef enum mix_dtype {
  MIX_DTYPE_NONE, /* unset: Keras's None */
#define MIX_DTYPE_ENUM(constant, name, bytes, class) constant,
  MIX_DTYPE_LIST(MIX_DTYPE_ENUM)
#undef MIX_DTYPE_ENUM
  MIX_DTYPE_COUNT
} mix_dtype;

/* The name of a dtype: "float16"; "none" for MIX_DTYPE_NONE. */
MIX_API const char *mix_dtype_name(mix_dtype dtype);
/* The dtype with that name, or MIX_DTYPE_NONE. Records no error. */
MIX_API mix_dtype mix_dtype_from_name(const char *name);
/* Bytes per element; 0 for dtypes that exist only as names. */
MIX_API size_t mix_dtype_size(mix_dtype dtype);
/* True for float16, bfloat16, float32, float64 and the two float8 dtypes. */
MIX_API bool mix_dtype_is_floating(mix_dtype dtype);
/* The largest finite number of a floating dtype: 65504 of float16, 448 of float8_e4m3fn, 57344 of
 * float8_e5m2. NaN for other dtypes. */
MIX_API double mix_dtype_max(mix_dtype dtype);
/* True for int8, int16, int32, int64 and uint8. bool is not an integer dtype. */
MIX_API bool mix_dtype_is_integer(mix_dtype dtype);

#define MIX_MAX_RANK 8
/* A dimension that is unknown until a call. Only symbolic tensors have unknown dimensions. */
#define MIX_UNKNOWN (-1)

/* The shape of a tensor, passed by value. Rank 0 is a scalar. */
typedef struct mix_shape {
  int rank;
  int64_t dims[MIX_MAX_RANK];
} mix_shape;

#ifndef __cplusplus
#define MIX_SHAPE(...)                                                                                      \
  ((mix_shape){.rank = (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), .dims = {__VA_ARGS__}})
#define MIX_SCALAR ((mix_shape){.rank = 0})
#endif

/* The number of elements; 1 for a scalar. MIX_UNKNOWN if a dimension is unknown or the rank is not 0 to
 * MIX_MAX_RANK. INT64_MAX on overflow. */
MIX_API int64_t mix_shape_size(mix_shape shape);
/* True if rank and dimensions are equal. An unknown dimension equals only an unknown one. */
MIX_API bool mix_shape_equal(mix_shape a, mix_shape b);
/* Writes "(128, 784)", with "None" for unknown dimensions, into `text` and returns it. 160 bytes are
 * always enough. */
MIX_API const char *mix_shape_text(mix_shape shape, char *text, size_t size);

MIX_END_DECLARATIONS
#endif
