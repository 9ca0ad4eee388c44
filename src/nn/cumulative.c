/* Sums and products of all elements up to each one along an axis (mixtape/ops.h). Not in ops/: they are
 * loops, which are traced (mixtape/scan.h). */
#include "ops/rules.h"
#include <mixtape/scan.h>

static mix_list *step(mix_list *carry, mix_tensor *next) {
  return mix_failed() ? NULL : mix_list_of(mix_list_of(next), mix_list_of(next));
}
static mix_list *add_step(void *context, mix_list *carry, mix_list *inputs) {
  return step(carry, mix_add(mix_list_get(carry, 0), mix_list_get(inputs, 0)));
}
static mix_list *multiply_step(void *context, mix_list *carry, mix_list *inputs) {
  return step(carry, mix_multiply(mix_list_get(carry, 0), mix_list_get(inputs, 0)));
}

static mix_tensor *cumulative(const char *call, mix_tensor *x, int axis, double first, mix_scan_body body) {
  if (!mix_operand_ready(call, x) || (axis = mix_call_axis(call, x, axis, 0)) < 0) return NULL;
  const mix_dtype dtype = mix_tensor_dtype(x);
  const mix_shape shape = mix_tensor_shape(x);
  const bool number = dtype != MIX_BOOL && !mix_dtype_is_float8(dtype);
  mix_axes front = {.count = shape.rank}, back = front;
  if (!number || shape.dims[axis] == MIX_UNKNOWN)
    return mix_call_fail(number ? MIX_VALUE_ERROR : MIX_TYPE_ERROR, call, x,
                         "expected numbers, and an axis whose size is known");
  if (!shape.dims[axis]) return x;
  for (int i = 0; i < shape.rank; i++) {
    front.axis[i] = i == 0 ? axis : i <= axis ? i - 1 : i;
    back.axis[front.axis[i]] = i;
  }
  mix_tensor *steps = mix_transpose(mix_cast(x, mix_dtype_is_16_bit(dtype) ? MIX_FLOAT32 : dtype), front),
             *row = steps ? mix_reduce_max(mix_zeros_like(steps), MIX_AXES(0), false) : NULL,
             *start = row ? mix_add(row, mix_scalar_like(row, first)) : NULL;
  mix_list *results = start ? mix_scan(body, NULL, mix_list_of(start), mix_list_of(steps)) : NULL;
  mix_list *outputs = results ? mix_list_get(results, 1) : NULL;
  return outputs ? mix_cast(mix_transpose(mix_list_get(outputs, 0), back), dtype) : NULL;
}

mix_tensor *mix_cumulative_sum(mix_tensor *x, int axis) {
  return cumulative("cumulative_sum", x, axis, 0, add_step);
}
mix_tensor *mix_cumulative_product(mix_tensor *x, int axis) {
  return cumulative("cumulative_product", x, axis, 1, multiply_step);
}
