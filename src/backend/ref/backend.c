/* The device "ref": the reference kernels, on one thread. */
#include "backend/host/host.h"

static const mix_kernel_row *const tables[] = {mix_ref_kernels, NULL};

static mix_executable *compile(const mix_plan *plan, const mix_context *context) {
  return mix_host_compile(plan, 1, context->precision, tables, false);
}

static void describe(const mix_context *context, mix_text *text) {
  mix_text_put(text, "ref: the scalar reference, one thread\n");
}

const mix_backend mix_backend_ref = {.name = "ref",
                                     .host = &mix_backend_ref,
                                     .own = tables,
                                     .compile = compile,
                                     .describe = describe,
                                     MIX_HOST_BACKEND};
