/* The reference kernels: every op in every dtype, scalar and simple. They are the specification against
 * which the other backends are tested. All run on one thread. Sums accumulate in double (integers in
 * int64) and round once. */
#ifndef MIX_BACKEND_REF_REF_H
#define MIX_BACKEND_REF_REF_H

#include "backend/host/kernel.h"

extern const mix_kernel mix_ref_fused, mix_ref_matmul;
extern const mix_kernel mix_ref_reduce_sum, mix_ref_reduce_mean, mix_ref_reduce_prod, mix_ref_reduce_max,
    mix_ref_reduce_min, mix_ref_reduce_all, mix_ref_reduce_any, mix_ref_bias_add_grad;
extern const mix_kernel mix_ref_add_n, mix_ref_argmax, mix_ref_argmin, mix_ref_all_finite,
    mix_ref_magnitudes, mix_ref_matmul_finite_bound;
extern const mix_kernel mix_ref_softmax, mix_ref_log_softmax, mix_ref_softmax_cross_entropy,
    mix_ref_sparse_softmax_cross_entropy;
extern const mix_kernel mix_ref_gather, mix_ref_segment_sum, mix_ref_one_hot;
extern const mix_kernel mix_ref_reshape, mix_ref_transpose, mix_ref_broadcast_to, mix_ref_concat,
    mix_ref_slice, mix_ref_pad, mix_ref_fill, mix_ref_range;
extern const mix_kernel mix_ref_random_uniform, mix_ref_random_normal, mix_ref_random_truncated_normal;

/* The `serial` of every reference kernel: true. */
bool mix_ref_serial(const mix_kernel_args *args);
/* Records the text of a bad value, unless one is already recorded. */
void mix_ref_fail(const mix_kernel_args *args, const char *text);

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

/* The index along each dimension of element `flat` in C order, and the inverse. */
void mix_ref_unravel(int64_t flat, int rank, const int64_t *dims, int64_t *index);
int64_t mix_ref_ravel(int rank, const int64_t *dims, const int64_t *index);

#endif
