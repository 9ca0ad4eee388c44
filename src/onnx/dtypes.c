/* Element types of ONNX (TensorProto.DataType) and ours. */
#include "onnx/onnx.h"

static const struct {
  mix_dtype dtype;
  int type;
} types[] = {
    {MIX_FLOAT32, 1},  {MIX_UINT8, 2},     {MIX_INT8, 3},           {MIX_INT16, 5},
    {MIX_INT32, 6},    {MIX_INT64, 7},     {MIX_BOOL, 9},           {MIX_FLOAT16, 10},
    {MIX_FLOAT64, 11}, {MIX_BFLOAT16, 16}, {MIX_FLOAT8_E4M3FN, 17}, {MIX_FLOAT8_E5M2, 19},
};
enum { TYPES = sizeof types / sizeof *types };

int mix_onnx_type_of(mix_dtype dtype) {
  for (int i = 0; i < TYPES; i++)
    if (types[i].dtype == dtype) return types[i].type;
  return 0;
}

mix_dtype mix_onnx_dtype_of(long long type) {
  for (int i = 0; i < TYPES; i++)
    if (types[i].type == type) return types[i].dtype;
  return MIX_DTYPE_NONE;
}
