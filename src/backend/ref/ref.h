/* The reference kernels: every op in every dtype, scalar and simple. They are the specification against
 * which the other backends are tested. All run on one thread. Sums accumulate in double (integers in
 * int64) and round once. */
#pragma once

#include "backend/host/kernel.h"
#include "ops/decompositions.h"

/* mix_ref_NAME runs the ops that ops/list.h gives it. */
#define MIX_DECLARE_KERNEL(name, kernel, ...) extern const mix_kernel mix_ref_##kernel;
MIX_KERNEL_OPS(MIX_DECLARE_KERNEL)
MIX_DECOMPOSITION_OPS(MIX_DECLARE_KERNEL)
MIX_PLAN_OPS(MIX_DECLARE_KERNEL)
#undef MIX_DECLARE_KERNEL

/* The `serial` of every reference kernel: true. */
bool mix_ref_serial(const mix_kernel_args *args);

/* A number of a dtype: `real` for floating dtypes, `integer` for the others. Exactly representable in the
 * dtype. */
typedef struct mix_ref_value {
  double real;
  int64_t integer;
} mix_ref_value;

mix_ref_value mix_ref_load(const void *data, mix_dtype dtype, int64_t index);
void mix_ref_store(void *data, mix_dtype dtype, int64_t index, mix_ref_value value);
/* Rounds (floating), wraps (integer) or tests != 0 (bool). */
mix_ref_value mix_ref_round(mix_ref_value value, mix_dtype dtype);
mix_ref_value mix_ref_cast(mix_ref_value value, mix_dtype from, mix_dtype to);

/* The interpreter of programs, element by element. NULL: the program can be interpreted; else the reason
 * why not. */
const char *mix_ref_program_unsupported_reason(const mix_program *program);
/* Sets args->prepared to the interpreter of args->program. False: out of memory, recorded. */
bool mix_ref_program_prepare(mix_kernel_args *args, int threads);
/* A run calls begin, then element for 0 .. size - 1 in C order, then end, which stores the reduction.
 * `product` is the value of loads from MIX_FROM_ACCUMULATOR, before rounding. */
void mix_ref_program_begin(const mix_kernel_args *args);
void mix_ref_program_element(const mix_kernel_args *args, int64_t element, mix_ref_value product);
void mix_ref_program_end(const mix_kernel_args *args);

/* Element `index` of random_uniform: the top 24 bits of word 0 of its block; for float64 the top 53 bits of
 * words 0 and 1. */
double mix_ref_uniform(uint64_t key, uint64_t counter, uint64_t index, mix_dtype dtype);

/* The index along each dimension of element `flat` in C order, and the inverse. */
void mix_ref_unravel(int64_t flat, int rank, const int64_t *dims, int64_t *index);
int64_t mix_ref_ravel(int rank, const int64_t *dims, const int64_t *index);
