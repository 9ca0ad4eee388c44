/* Rows of the tables of products, an engine and a storage dtype each: of the engines in product_list.h, and
 * of those that tests emulate. */
#pragma once

#include "backend/cpu/gemm/gemm.h"

/* The functions of matmul, matmul_downcast and batch_matmul. */
const char *mix_matmul_unsupported_reason(const mix_gemm_engine *engine, const mix_kernel_args *args,
                                          mix_dtype dtype);
size_t mix_matmul_workspace(const mix_gemm_engine *engine, const mix_kernel_args *args, int threads);
bool mix_matmul_prepare(const mix_gemm_engine *engine, mix_kernel_args *args, int threads);
int mix_matmul_barriers(const mix_gemm_engine *engine, const mix_kernel_args *args, int threads);
bool mix_matmul_same_order(const mix_gemm_engine *engine, const mix_kernel_args *x, const mix_kernel_args *y);
bool mix_matmul_serial(const mix_kernel_args *args);
void mix_matmul_release(void *prepared);
void mix_matmul_run(const mix_kernel_args *args, const mix_team *team);
size_t mix_matmul_kept(const mix_kernel_args *args);
int mix_matmul_kept_operand(const mix_kernel_args *args, int64_t layout[MIX_KEPT_LAYOUT]);
void mix_matmul_begin(const mix_kernel_args *args, const mix_team *team);

/* Functions of a row, `calls` with its engine and dtype. */
#define MIX_PRODUCT_FUNCTIONS(calls, id, constant, engine)                                                   \
  static const char *unsupported_reason_##id(const mix_kernel_args *args) {                                  \
    return calls##_unsupported_reason(&engine, args, constant);                                              \
  }                                                                                                          \
  static size_t workspace_##id(const mix_kernel_args *args, int threads) {                                   \
    return calls##_workspace(&engine, args, threads);                                                        \
  }                                                                                                          \
  static bool prepare_##id(mix_kernel_args *args, int threads) {                                             \
    return calls##_prepare(&engine, args, threads);                                                          \
  }                                                                                                          \
  static int barriers_##id(const mix_kernel_args *args, int threads) {                                       \
    return calls##_barriers(&engine, args, threads);                                                         \
  }
#define MIX_PRODUCT_MEMBERS(calls, id)                                                                       \
  .unsupported_reason = unsupported_reason_##id, .run = calls##_run, .workspace = workspace_##id,            \
  .prepare = prepare_##id, .release = calls##_release, .kept = calls##_kept, .begin = calls##_begin,         \
  .kept_operand = calls##_kept_operand, .serial = calls##_serial, .barriers = barriers_##id

#define MIX_MATMUL_KERNEL(id, constant, engine, text, features, upcast_kernel, summed, text_of_kernel)       \
  MIX_PRODUCT_FUNCTIONS(mix_matmul, id, constant, engine)                                                    \
  static bool same_order_##id(const mix_kernel_args *x, const mix_kernel_args *y) {                          \
    return mix_matmul_same_order(&engine, x, y);                                                             \
  }                                                                                                          \
  static const mix_kernel id = {                                                                             \
      .name = "gemm_" text,                                                                                  \
      .needs = features,                                                                                     \
      MIX_PRODUCT_MEMBERS(mix_matmul, id),                                                                   \
      .same_order = same_order_##id,                                                                         \
      .widened = upcast_kernel,                                                                              \
      .operands = constant,                                                                                  \
      .accumulation = summed,                                                                                \
      .description = text_of_kernel,                                                                         \
  };
