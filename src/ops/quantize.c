/* Rounding to float8: casts that saturate, and quantization with a scale. */
#include "ops/rules.h"

static bool is_float8_checked(const char *call, const mix_tensor *x, mix_dtype dtype) {
  if (!mix_operand_ready(call, x)) return false;
  if (mix_dtype_is_float8(dtype)) return true;
  mix_call_fail(MIX_TYPE_ERROR, call, x, "dtype %s; expected float8_e4m3fn or float8_e5m2",
                mix_dtype_name(dtype));
  return false;
}

static mix_tensor *clip_to_range(mix_tensor *x, mix_dtype dtype) {
  const double max = mix_dtype_max(dtype);
  return mix_clip(x, mix_scalar_like(x, -max), mix_scalar_like(x, max));
}

mix_tensor *mix_cast_saturating(mix_tensor *x, mix_dtype dtype) {
  if (!is_float8_checked("cast_saturating", x, dtype)) return NULL;
  if (mix_tensor_dtype(x) == dtype) return x;
  if (!mix_dtype_is_real(mix_tensor_dtype(x))) x = mix_cast(x, MIX_FLOAT32);
  return mix_cast(clip_to_range(x, dtype), dtype);
}

/* The gradient goes straight through to x (Bengio et al., Estimating or propagating gradients through
 * stochastic neurons, 2013). */
mix_tensor *mix_quantize_dequantize(mix_tensor *x, mix_tensor *scale, mix_dtype dtype) {
  static const char call[] = "quantize_dequantize";
  if (!is_float8_checked(call, x, dtype) || !mix_operand_ready(call, scale)) return NULL;
  const mix_dtype own = mix_tensor_dtype(x);
  if (!mix_dtype_is_real(own))
    return mix_call_fail(MIX_TYPE_ERROR, call, x,
                         "expected float16, bfloat16, float32 or float64; cast it with mix_cast");
  if (mix_tensor_shape(scale).rank)
    return mix_call_fail(MIX_VALUE_ERROR, call, scale, "the scale must be a scalar");
  mix_tensor *s = mix_cast(scale, own), *quantized = mix_cast(clip_to_range(mix_divide(x, s), dtype), dtype);
  return mix_surrogate_gradient(mix_multiply(mix_cast(quantized, own), s), x);
}
