/* Devices, threads and numerical choices of the process. */
#ifndef MIXTAPE_DEVICE_H
#define MIXTAPE_DEVICE_H

#include <mixtape/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "cpu" (the library's default), "ref" (the scalar reference), "cuda" or "auto"; MIXTAPE_DEVICE sets the start value. An unavailable
 * device is an error that says why. */
MIX_API mix_status mix_set_device(const char *name);
MIX_API const char *mix_device(void);
/* Threads of a plan; 0: OMP_NUM_THREADS, else the cores this process may run on. MIXTAPE_THREADS sets the start value. */
MIX_API mix_status mix_set_threads(int threads);
MIX_API int mix_threads(void);
/* How products of 16-bit numbers are summed: "auto", "exact" (float32) or "blocked"; MIXTAPE_ACCUMULATE sets the start value. No kernel
 * of this version sums in blocks: all three are exact. */
MIX_API mix_status mix_set_accumulate(const char *name);
MIX_API const char *mix_accumulate(void);
/* What products really do under that choice on this machine: "exact" (this version has no blocked kernels). Results name it. */
MIX_API const char *mix_accumulate_in_force(void);
/* Precision of products of float32 matrices: "highest" (the default: float32 throughout), or "high": where the processor has AMX, large
 * products are computed as three of bfloat16 with float32 sums, about twice as fast; each element errs by at most (2^-13 + k 2^-21)
 * of |A||B|, in practice 5e-6 of the result's size (docs/NUMERICS.md). MIXTAPE_FLOAT32_PRECISION sets the start value. */
MIX_API mix_status mix_set_float32_precision(const char *name);
MIX_API const char *mix_float32_precision_name(void);
/* A text, one line each: devices, instruction sets found and in force (MIXTAPE_MAX_ISA caps them), the kernels that serve products
 * of each dtype, and for what is unavailable the reason. Valid until the next call on this thread. */
MIX_API const char *mix_devices_text(void);

#ifdef __cplusplus
}
#endif
#endif
