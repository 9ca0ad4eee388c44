/* The list of products from which the tables of matrix products and of convolutions are made. */
#pragma once

#include "backend/cpu/isa.h"

#define MIX_WIDENS "widened to float32, and multiplied there"
/* X(id, dtype, engine, name, features, kernel that it widens for, accumulation, description) of one set. */
#define MIX_VECTOR_PRODUCTS(set, features, vectors, X)                                                       \
  X(f32_##set, MIX_FLOAT32, mix_gemm_f32_##set, "f32_acc32_" #set, features, NULL, MIX_ACCUMULATE_EXACT,     \
    vectors)                                                                                                 \
  X(f16_##set, MIX_FLOAT16, mix_gemm_f32_##set, "f16_acc32_" #set, features, &f32_##set,                     \
    MIX_ACCUMULATE_EXACT, MIX_WIDENS)                                                                        \
  X(bf16_##set, MIX_BFLOAT16, mix_gemm_f32_##set, "bf16_acc32_" #set, features, &f32_##set,                  \
    MIX_ACCUMULATE_EXACT, MIX_WIDENS)                                                                        \
  X(f64_##set, MIX_FLOAT64, mix_gemm_f64_##set, "f64_acc64_" #set, features, NULL, MIX_ACCUMULATE_EXACT,     \
    vectors)
/* In the order of choice. */
#define MIX_PRODUCTS(X) MIX_SPECIAL_PRODUCTS(X) MIX_VECTOR_SETS(MIX_VECTOR_PRODUCTS, X)
#define MIX_PRODUCT_ROW(id, ...) &id,
