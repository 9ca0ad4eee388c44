/* Loads, stores, rounding and indices for the reference kernels. */
#include "backend/ref/ref.h"
#include "tensor/convert.h"

bool mix_ref_serial(const mix_kernel_args *args) { return true; }

mix_ref_value mix_ref_load(const void *data, mix_dtype dtype, int64_t index) {
  if (mix_dtype_is_floating(dtype)) return (mix_ref_value){.real = mix_load_double(data, dtype, index)};
  return (mix_ref_value){.integer = mix_load_integer(data, dtype, index)};
}

void mix_ref_store(void *data, mix_dtype dtype, int64_t index, mix_ref_value value) {
  if (mix_dtype_is_floating(dtype))
    mix_store_double(data, dtype, index, value.real);
  else
    mix_store_integer(data, dtype, index, value.integer);
}

mix_ref_value mix_ref_round(mix_ref_value value, mix_dtype dtype) {
  if (dtype == MIX_BOOL) return (mix_ref_value){.integer = value.integer != 0};
  if (!mix_dtype_is_floating(dtype))
    return (mix_ref_value){.integer = mix_wrap_integer(value.integer, dtype)};
  double element;
  mix_store_double(&element, dtype, 0, value.real);
  return (mix_ref_value){.real = mix_load_double(&element, dtype, 0)};
}

mix_ref_value mix_ref_cast(mix_ref_value value, mix_dtype from, mix_dtype to) {
  bool real = mix_dtype_is_floating(from);
  if (to == MIX_BOOL) return (mix_ref_value){.integer = real ? value.real != 0 : value.integer != 0};
  if (mix_dtype_is_floating(to)) {
    if (real) return mix_ref_round(value, to);
    double element; /* one rounding, from the integer directly to `to` */
    mix_store_integer(&element, to, 0, value.integer);
    return (mix_ref_value){.real = mix_load_double(&element, to, 0)};
  }
  return mix_ref_round((mix_ref_value){.integer = real ? mix_f64_to_i64(value.real) : value.integer}, to);
}

void mix_ref_unravel(int64_t flat, int rank, const int64_t *dims, int64_t *index) {
  for (int d = rank - 1; d >= 0; d--) {
    index[d] = flat % dims[d];
    flat /= dims[d];
  }
}

int64_t mix_ref_ravel(int rank, const int64_t *dims, const int64_t *index) {
  int64_t flat = 0;
  for (int d = 0; d < rank; d++) flat = flat * dims[d] + index[d];
  return flat;
}
