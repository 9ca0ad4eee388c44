/* The device "xla": graphs become StableHLO text, which a PJRT plug-in compiles and runs. */
#include "backend/xla/xla.h"

/* XLA fuses and plans by itself. What remains are rewrites that save compile time or change what is computed:
 * the mixed precision rewrite, and constants that were computed on the host. */
static const char *const passes[] = {
    "amp", "expand_einsum", "remove_identities", "simplify_casts", "constant_fold", "cse", "dce", NULL};

static const char *platform(void) { return mix_xla_plugin() ? mix_xla_plugin()->platform : ""; }

static bool supports(const mix_context *context, const mix_op *op, mix_dtype dtype) {
  return mix_xla_supports(op, dtype);
}

static mix_kernel_info kernel_info(const mix_context *context, const mix_product *product) {
  return (mix_kernel_info){.kernel = "dot_general", .description = "by XLA", .accumulation = "exact"};
}

static void describe(const mix_context *context, mix_text *text) {
  const mix_pjrt *plugin = mix_xla_plugin();
  mix_text_put(text, "xla: %d device%s\n", plugin->device_count, plugin->device_count == 1 ? "" : "s");
  mix_pjrt_describe(plugin, text);
  mix_xla_describe_cache(text);
}

const mix_backend mix_backend_xla = {.name = "xla",
                                     .choose = mix_xla_choose,
                                     .replaces_variables = true,
                                     .memory = &mix_xla_memory,
                                     .host = &mix_backend_cpu,
                                     /* Compiling takes far longer than evaluating once. */
                                     .host_evaluation_bytes = SIZE_MAX,
                                     .unavailable = mix_xla_load,
                                     .platform = platform,
                                     .passes = passes,
                                     .supports = supports,
                                     .compile_graph = mix_xla_compile,
                                     .destroy = mix_xla_destroy,
                                     .enqueue = mix_xla_enqueue,
                                     .wait = mix_xla_wait,
                                     .kernel_info = kernel_info,
                                     .describe = describe};
