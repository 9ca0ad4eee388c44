/* Tensors as large as another one is in a call: ones, and what is repeated over such a shape. */
#include "onnx/import.h"

#include "base/error.h"

mix_tensor *mix_import_ones(mix_import *in, const mix_import_size *size, mix_dtype dtype) {
  if (!size->source || size->value < 1)
    return mix_import_fail(in, MIX_UNSUPPORTED,
                           "a tensor of a size that is computed of several unknown ones; expected a file "
                           "exported with fixed sizes");
  const int rank = mix_tensor_shape(size->source).rank;
  json_t *key = json_array();
  for (int i = 0; i < rank && key; i++)
    mix_json_append(key, i == size->axis ? MIX_PACK("{s:s,s:{s:n,s:n,s:n}}", "class_name", "__slice__",
                                                    "config", "start", "stop", "step")
                                         : json_integer(0));
  mix_list *line = mix_import_run(in, "GetItem", 1, &size->source, NULL, MIX_PACK("[o]", key));
  mix_tensor *ones = line ? mix_import_apply(in, "OnesLike", mix_list_get(line, 0),
                                             MIX_PACK("{s:s}", "dtype", mix_dtype_name(dtype)))
                          : NULL;
  if (!ones || size->value == 1) return ones;
  return mix_import_apply(in, "Repeat", ones,
                          MIX_PACK("{s:I,s:i}", "repeats", (json_int_t)size->value, "axis", 0));
}

mix_tensor *mix_import_expanded(mix_import *in, mix_tensor *x, int count, const mix_import_size *sizes) {
  const bool flags = mix_tensor_dtype(x) == MIX_BOOL;
  const char *times = flags ? "LogicalAnd" : "Multiply";
  const mix_shape from = mix_tensor_shape(x);
  mix_shape known = {.rank = count};
  bool same = count <= from.rank;
  if (count > MIX_MAX_RANK) return mix_import_fail(in, MIX_UNSUPPORTED, "more than %d axes", MIX_MAX_RANK);
  for (int i = 0; i < count; i++) {
    const int at = i + from.rank - count;
    const int64_t own = at >= 0 ? from.dims[at] : 1;
    known.dims[i] = sizes[i].open ? 1 : sizes[i].value;
    if (known.dims[i] < 0) return mix_import_fail(in, MIX_FORMAT_ERROR, "a negative size");
    same = same && (sizes[i].open ? own == MIX_UNKNOWN : known.dims[i] == 1 || known.dims[i] == own);
  }
  if (same) return x;
  mix_tensor *ones = mix_import_evaluated(in, mix_fill(known, 1, mix_tensor_dtype(x)));
  mix_tensor *result = ones ? mix_import_apply_two(in, times, x, ones) : NULL;
  for (int i = 0; i < count && result; i++) {
    const int at = i + from.rank - count;
    int64_t shape[MIX_MAX_RANK];
    if (!sizes[i].open || (at >= 0 && from.dims[at] == MIX_UNKNOWN)) continue;
    for (int k = 0; k < count; k++) shape[k] = k == i ? -1 : 1;
    mix_tensor *line = mix_import_ones(in, &sizes[i], mix_tensor_dtype(x));
    if (line)
      line =
          mix_import_apply(in, "Reshape", line, MIX_PACK("{s:o}", "newshape", mix_import_list(count, shape)));
    result = line ? mix_import_apply_two(in, times, result, line) : NULL;
  }
  return result;
}
