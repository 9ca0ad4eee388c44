/* Calls a kernel as a thread of a plan does. */
#ifndef TESTS_BACKEND_PLAN_THREAD_H
#define TESTS_BACKEND_PLAN_THREAD_H

#include "backend/host/kernel.h"
#include <string.h>
#include <xmmintrin.h>

/* On the device cpu threads flush float32 subnormals (backend/host/executor.c). Reference kernels run as on
 * the device ref, which keeps them. */
static inline void run_as_in_a_plan(const mix_kernel *kernel, const mix_kernel_args *args,
                                    const mix_team *team) {
  enum { FLUSH_SUBNORMALS = 0x8040 /* MXCSR: FTZ and DAZ */ };
  const unsigned control = _mm_getcsr();
  if (strncmp(kernel->name, "ref_", 4)) _mm_setcsr(control | FLUSH_SUBNORMALS);
  kernel->run(args, team);
  _mm_setcsr(control);
}

#endif
