/* Rows of the table of convolutions as products (products.c): of the engines in gemm/product_list.h, and of
 * those that tests emulate. */
#pragma once

#include "backend/cpu/gemm/kernel_rows.h"

const char *mix_conv_product_unsupported_reason(const mix_gemm_engine *engine, const mix_kernel_args *args,
                                                mix_dtype dtype);
size_t mix_conv_product_workspace(const mix_gemm_engine *engine, const mix_kernel_args *args, int threads);
bool mix_conv_product_prepare(const mix_gemm_engine *engine, mix_kernel_args *args, int threads);
int mix_conv_product_barriers(const mix_gemm_engine *engine, const mix_kernel_args *args, int threads);
bool mix_conv_product_serial(const mix_kernel_args *args);
void mix_conv_product_release(void *prepared);
void mix_conv_product_run(const mix_kernel_args *args, const mix_team *team);
size_t mix_conv_product_kept(const mix_kernel_args *args);
int mix_conv_product_kept_operand(const mix_kernel_args *args, int64_t layout[MIX_KEPT_LAYOUT]);
void mix_conv_product_begin(const mix_kernel_args *args, const mix_team *team);

#define MIX_CONV_PRODUCT_KERNEL(id, constant, engine, text, features, upcast_kernel, summed, description)    \
  MIX_PRODUCT_FUNCTIONS(mix_conv_product, id, constant, engine)                                              \
  static const mix_kernel id = {                                                                             \
      .name = "conv_" text,                                                                                  \
      .needs = features,                                                                                     \
      MIX_PRODUCT_MEMBERS(mix_conv_product, id),                                                             \
      .operands = constant,                                                                                  \
      .accumulation = summed,                                                                                \
  };
