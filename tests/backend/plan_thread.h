/* Calls a kernel as a thread of a plan does. */
#ifndef TESTS_BACKEND_PLAN_THREAD_H
#define TESTS_BACKEND_PLAN_THREAD_H

#include "backend/host/kernel.h"
#include "base/machine.h"
#include <string.h>

/* On the device cpu threads flush float32 subnormals (backend/host/executor.c). Reference kernels run as on
 * the device ref, which keeps them. */
static inline void run_as_in_a_plan(const mix_kernel *kernel, const mix_kernel_args *args,
                                    const mix_team *team) {
  const mix_float_control control = mix_float_control_get();
  if (strncmp(kernel->name, "ref_", 4)) mix_float_control_set(control | MIX_FLUSH_SUBNORMALS);
  kernel->run(args, team);
  mix_float_control_set(control);
}

#endif
