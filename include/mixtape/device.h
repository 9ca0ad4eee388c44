/* Devices, threads and numerical choices of the process. */
#ifndef MIXTAPE_DEVICE_H
#define MIXTAPE_DEVICE_H

#include <mixtape/dtype.h>
#include <mixtape/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "cpu" (the library's default), "ref" (the scalar reference), "cuda" or "auto"; MIXTAPE_DEVICE sets the start value. An unavailable
 * device is an error that says why. */
MIX_API mix_status mix_set_device(const char *name);
/* The device in force, by its name. */
MIX_API const char *mix_device(void);
/* Threads of a plan at most; 0: OMP_NUM_THREADS, else the cores this process may run on. MIXTAPE_THREADS sets the start value. Plans
 * whose work is not worth more take one (float32 models of few weights in small batches). */
MIX_API mix_status mix_set_threads(int threads);
/* The number in force, never 0. */
MIX_API int mix_threads(void);
/* How products of 16-bit numbers are summed: "exact" (float32), "blocked" (AVX512-FP16: four chains of 16 products in float16, their sum
 * added in float32), "blocked_short" and "blocked_long" (four chains of 8, of 32), "blocked_wide" (eight of 16), or "auto": exact, but
 * blocked where the processor has AVX512-FP16 and no AMX; there products of at least 2^26 multiplications and 32 rows are "blocked_long".
 * Where no kernel sums in blocks (another processor, few rows or columns), products are exact in any case. MIXTAPE_ACCUMULATE sets the
 * start value. */
MIX_API mix_status mix_set_accumulate(const char *name);
/* The choice by its name, "auto" included. */
MIX_API const char *mix_accumulate(void);
/* What large products of a dtype's numbers really do under that choice on this machine, by one of those names but "auto". */
MIX_API const char *mix_accumulate_in_force(mix_dtype dtype);
/* Precision of products of float32 matrices: "highest" (the default: float32 throughout), or "high": where the processor has AMX, large
 * products are computed as three of bfloat16 with float32 sums, about twice as fast; each element errs by at most (2^-13 + k 2^-21)
 * of |A||B|, in practice 5e-6 of the result's size (docs/NUMERICS.md). MIXTAPE_FLOAT32_PRECISION sets the start value. */
MIX_API mix_status mix_set_float32_precision(const char *name);
/* The choice by its name. */
MIX_API const char *mix_float32_precision_name(void);
/* A text, one line each: devices, instruction sets found and in force (MIXTAPE_MAX_ISA caps them), the kernels that serve products
 * of each dtype, and for what is unavailable the reason. Valid until the next call on this thread. */
MIX_API const char *mix_devices_text(void);

#ifdef __cplusplus
}
#endif
#endif
