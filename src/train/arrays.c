/* Checks and converts the arrays given to fit, evaluate and predict. */
#include "train/data_adapter.h"

#include "base/error.h"
#include "tensor/convert.h"
#include "tensor/shape.h"

/* Floating-point arrays are cast to floatx, as Keras's data adapters do. */
mix_list *mix_model_arrays(mix_list *given, bool may_be_empty, const char *call) {
  if (!given) return NULL;
  mix_list *converted = mix_list_new(0, NULL);
  int64_t rows = -1;
  for (int i = 0; i < mix_list_count(given) && !mix_failed(); i++) {
    mix_tensor *array = mix_list_get(given, i);
    mix_shape shape = mix_tensor_shape(array);
    if (mix_tensor_is_symbolic(array))
      return mix_fail_type("%s: array %d is symbolic; expected data", call, i);
    if (shape.rank < 1) return mix_fail_value("%s: array %d is a scalar; expected (rows, ...)", call, i);
    if (shape.dims[0] == 0 && !may_be_empty) return mix_fail_value("%s: array %d has no rows", call, i);
    if (rows >= 0 && shape.dims[0] != rows)
      return mix_fail_value("%s: arrays of %lld and %lld rows; all must have the same number", call,
                            (long long)rows, (long long)shape.dims[0]);
    rows = shape.dims[0];
    if (mix_dtype_is_floating(mix_tensor_dtype(array)) && mix_tensor_dtype(array) != mix_floatx())
      array = mix_cast(array, mix_floatx());
    if (!array || mix_evaluate(1, &array) != MIX_OK) return NULL;
    mix_list_append(converted, array);
  }
  return mix_failed() ? NULL : converted;
}
