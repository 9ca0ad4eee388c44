/* The kernels of matrix products on the CPU: rows of backend/cpu/table.c, best first, without the
 * reference. */
#pragma once

#include "backend/cpu/gemm/gemm.h"

/* Of matmul, matmul_downcast and batch_matmul; ended by NULL. */
extern const mix_kernel *const mix_cpu_matmul_kernels[];

/* Where product `index` of a batch starts in an operand, in elements. Leading dimensions broadcast. */
int64_t mix_gemm_batch_offset(const mix_shape *operand, const mix_shape *result, int64_t index);
/* Why a product of operands of `dtype` does not run the step's program, or store its result; NULL: it does.
 */
const char *mix_gemm_result_unsupported_reason(const mix_kernel_args *args, mix_dtype dtype);
/* Is B, operand 1 of a product of so many rows, the same for so long that it is worth packing once? */
bool mix_gemm_keeps_b(const mix_kernel_args *args, int64_t rows);
/* Sets what decides how a plan packs B (mix_kernel.kept_operand), and returns how many numbers it set. */
int mix_gemm_set_layout(const mix_gemm_plan *plan, const mix_gemm_view *b, int64_t *layout);
/* Does the result go through a program, other than a test of what is stored? */
bool mix_gemm_has_epilogue(const mix_kernel_args *args);
/* For a program that ends in the finite test: where nothing else is to be done, results are stored without
 * the program, and tested as sums. */
void mix_gemm_test_sums(const mix_kernel_args *args, mix_gemm_operands *operands);
