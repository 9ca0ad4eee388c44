/* What an architecture does its own way outside of kernels: pauses, ticks, subnormals. Beside this file only
 * base/processor_*.c and backend/cpu/isa_*.h differ by architecture. */
#pragma once

#include <stdint.h>

/* mix_pause: in loops that wait for another thread.
 * mix_ticks: a counter of constant rate, for comparing durations on one thread.
 * mix_end_streams: orders streaming stores, which barriers of C11 do not.
 * mix_float_control: the thread's modes of floating-point arithmetic. MIX_FLOAT_DEFAULT rounds to nearest and
 * traps nothing; with MIX_FLUSH_SUBNORMALS added, subnormal operands and results of float32 and float64 are
 * zero. */
#if defined(__x86_64__)
#include <xmmintrin.h>
#define MIX_MACHINE "x86-64"
#define MIX_FLOAT_DEFAULT 0x1f80u    /* MXCSR: all exceptions masked */
#define MIX_FLUSH_SUBNORMALS 0x8040u /* FTZ and DAZ */
typedef uint32_t mix_float_control;
static inline mix_float_control mix_float_control_get(void) { return _mm_getcsr(); }
static inline void mix_float_control_set(mix_float_control control) { _mm_setcsr(control); }
static inline void mix_pause(void) { __builtin_ia32_pause(); }
static inline uint64_t mix_ticks(void) { return __builtin_ia32_rdtsc(); }
static inline void mix_end_streams(void) { _mm_sfence(); }

#elif defined(__aarch64__)
#define MIX_MACHINE "arm64"
#define MIX_FLOAT_DEFAULT UINT64_C(0)
#define MIX_FLUSH_SUBNORMALS (UINT64_C(1) << 24) /* FPCR.FZ; float16 has FZ16, which stays clear */
typedef uint64_t mix_float_control;
static inline mix_float_control mix_float_control_get(void) {
  uint64_t control;
  __asm__ volatile("mrs %0, fpcr" : "=r"(control));
  return control;
}
static inline void mix_float_control_set(mix_float_control control) {
  __asm__ volatile("msr fpcr, %0" : : "r"(control) : "memory");
}
static inline void mix_pause(void) { __asm__ volatile("isb" : : : "memory"); } /* yield returns at once */
static inline uint64_t mix_ticks(void) {
  uint64_t ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
}
static inline void mix_end_streams(void) {} /* kernels have none */

#else
#error "mixtape: an architecture without base/machine.h; known are x86-64 and arm64"
#endif
