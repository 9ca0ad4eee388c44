/* The device "cpu": the fast kernels if they accept a step, else the reference kernels. Float32 subnormals
 * are flushed to zero. */
#include "backend/host/host.h"

static const mix_kernel_row *const tables[] = {mix_cpu_kernels, mix_ref_kernels, NULL};

static mix_executable *compile(const mix_plan *plan, const mix_context *context) {
  return mix_host_compile(plan, context->threads, context->precision, tables, true);
}

static void describe(const mix_context *context, mix_text *text) {
  char names[128];
  const int cores = mix_cpu_cores();
  mix_text_put(text, "cpu: %s, %d core%s\n", mix_cpu_name(), cores, cores == 1 ? "" : "s");
  mix_text_put(text, "  instruction sets found: %s\n",
               mix_cpu_features_text(mix_cpu_found(), names, sizeof names));
  mix_text_put(text, "  instruction sets in force: %s\n",
               mix_cpu_features_text(mix_cpu_features(), names, sizeof names));
  mix_host_describe_products(context, text);
}

const mix_backend mix_backend_cpu = {.name = "cpu",
                                     .host = &mix_backend_cpu,
                                     .has_threads = true,
                                     .own = tables,
                                     .compile = compile,
                                     .describe = describe,
                                     MIX_HOST_BACKEND};
