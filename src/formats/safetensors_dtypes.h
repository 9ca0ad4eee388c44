/* The names of dtypes in safetensors, for its reader and its writer. */
#pragma once

#include <mixtape/dtype.h>

/* clang-format off */
#define MIX_SAFETENSORS_DTYPES(X) \
  X(MIX_FLOAT64, "F64") X(MIX_FLOAT32, "F32") X(MIX_FLOAT16, "F16") X(MIX_BFLOAT16, "BF16") \
  X(MIX_INT64, "I64") X(MIX_INT32, "I32") X(MIX_INT16, "I16") X(MIX_INT8, "I8") X(MIX_UINT8, "U8") \
  X(MIX_BOOL, "BOOL") X(MIX_FLOAT8_E4M3FN, "F8_E4M3") X(MIX_FLOAT8_E5M2, "F8_E5M2")
/* clang-format on */

/* By dtype; NULL: the format has none. */
extern const char *const mix_safetensors_dtypes[MIX_DTYPE_COUNT];
