/* The kernel table of the device "ref": the reference kernel of every op. */
#include "backend/host/debug_ops.h"
#include "backend/ref/ref.h"
#include "ops/collective.h"
#include "ops/debug_ops.h"

#define KERNEL_ROW(name, kernel) {&mix_op_##name, (const mix_kernel *const[]){&kernel, NULL}},
#define ROW(name, kernel, ...) KERNEL_ROW(name, mix_ref_##kernel)
#define HOST_ROW(name) KERNEL_ROW(name, mix_host_##name)

const mix_kernel_row mix_ref_kernels[] = {MIX_KERNEL_OPS(ROW) MIX_DECOMPOSITION_OPS(ROW) MIX_PLAN_OPS(
    ROW) MIX_LOOP_OPS(HOST_ROW) MIX_COLLECTIVE_OPS(HOST_ROW) MIX_DEBUG_OPS(HOST_ROW){NULL, NULL}};
