/* Which kernels compute matrix products on a device, and why: the backend of a context is asked. */
#include "backend/backend.h"
#include <stdio.h>

mix_product mix_product_of(mix_dtype dtype, int64_t m, int64_t n, int64_t k) {
  return (mix_product){.op = &mix_op_matmul,
                       .dtype = dtype,
                       .a = MIX_SHAPE(m, k),
                       .b = MIX_SHAPE(k, n),
                       .result = MIX_SHAPE(m, n)};
}

mix_kernel_info mix_kernel_info_of(const mix_context *context, const mix_product *product) {
  return context->backend->kernel_info(context, product);
}

static mix_kernel_info info_of_sizes(const mix_context *context, mix_dtype dtype, int64_t m, int64_t n,
                                     int64_t k) {
  const mix_product product = mix_product_of(dtype, m, n, k);
  return mix_kernel_info_of(context, &product);
}

mix_kernel_info mix_kernel_info_of_large(const mix_context *context, mix_dtype dtype) {
  return info_of_sizes(context, dtype, 1024, 1024, 1024);
}

mix_kernel_info mix_kernel_info_of_layer(const mix_context *context, mix_dtype dtype, int64_t rows,
                                         int64_t inputs, int64_t units) {
  enum { ENOUGH = 64 };
  const mix_kernel_info info = info_of_sizes(context, dtype, rows, units, inputs);
  return info.preferred ? info_of_sizes(context, dtype, ENOUGH, ENOUGH, ENOUGH) : info;
}

const char *mix_kernel_info_text(const mix_kernel_info *info, char *text, size_t size) {
  const int used = snprintf(text, size, "%s: %s", info->kernel, info->description);
  if (info->preferred && used > 0 && (size_t)used < size)
    snprintf(text + used, size - (size_t)used, "; not %s: %s", info->preferred, info->reason);
  return text;
}
