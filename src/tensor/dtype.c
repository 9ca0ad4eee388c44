/* Element types: names, sizes and classes. */
#include <mixtape/dtype.h>

#include <float.h>
#include <math.h>
#include <string.h>

typedef enum mix_dtype_class {
  MIX_CLASS_NONE,
  MIX_CLASS_FLOAT,
  MIX_CLASS_INT,
  MIX_CLASS_BOOL,
  MIX_CLASS_NAME_ONLY
} mix_dtype_class;

static const struct {
  const char *name;
  size_t size;
  mix_dtype_class class;
} dtypes[MIX_DTYPE_COUNT] = {[MIX_DTYPE_NONE] = {"none", 0, MIX_CLASS_NONE},
#define ROW(constant, name, bytes, class) [constant] = {name, bytes, class},
                             MIX_DTYPE_LIST(ROW)
#undef ROW
};

static inline bool exists(mix_dtype dtype) { return (unsigned)dtype < MIX_DTYPE_COUNT; }

const char *mix_dtype_name(mix_dtype dtype) { return exists(dtype) ? dtypes[dtype].name : "unknown dtype"; }

mix_dtype mix_dtype_from_name(const char *name) {
  if (!name) return MIX_DTYPE_NONE;
  for (int i = MIX_DTYPE_NONE + 1; i < MIX_DTYPE_COUNT; i++)
    if (strcmp(dtypes[i].name, name) == 0) return (mix_dtype)i;
  return MIX_DTYPE_NONE;
}

size_t mix_dtype_size(mix_dtype dtype) { return exists(dtype) ? dtypes[dtype].size : 0; }
bool mix_dtype_is_floating(mix_dtype dtype) {
  return exists(dtype) && dtypes[dtype].class == MIX_CLASS_FLOAT;
}
bool mix_dtype_is_integer(mix_dtype dtype) { return exists(dtype) && dtypes[dtype].class == MIX_CLASS_INT; }

double mix_dtype_max(mix_dtype dtype) {
  switch (dtype) {
  case MIX_FLOAT8_E4M3FN: return 448;
  case MIX_FLOAT8_E5M2: return 57344;
  case MIX_FLOAT16: return 65504;
  case MIX_BFLOAT16: return 0x1.fep127;
  case MIX_FLOAT32: return FLT_MAX;
  case MIX_FLOAT64: return DBL_MAX;
  default: return NAN;
  }
}
