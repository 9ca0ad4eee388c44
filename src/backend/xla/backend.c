/* The device "xla": graphs become StableHLO text, which a PJRT plug-in compiles and runs. */
#include "backend/xla/xla.h"

/* XLA fuses and plans by itself. What remains are rewrites that save compile time or change what is computed:
 * the mixed precision rewrite, and constants that were computed on the host. */
static const char *const passes[] = {
    "amp", "expand_einsum", "remove_identities", "simplify_casts", "constant_fold", "cse", "dce", NULL};

static const char *platform(void) { return mix_xla_plugin() ? mix_xla_plugin()->platform : ""; }

static bool supports(const mix_context *context, const mix_op *op, mix_dtype dtype) {
  (void)context;
  return mix_xla_supports(op, dtype);
}

/* Of the questions about kernels: there are none, so nothing is rewritten for their sake. */
static bool supports_epilogue(const mix_context *context, const mix_product *product,
                              const mix_program *program) {
  return (void)context, (void)product, (void)program, false;
}
static bool same_product(const mix_context *context, const mix_product *x, const mix_product *y) {
  return (void)context, (void)x, (void)y, false;
}
static bool prefers_upcast(const mix_context *context, const mix_product *product) {
  return (void)context, (void)product, false;
}
static bool prefers_speculation(const mix_context *context, size_t gradient_bytes, size_t operand_bytes) {
  return (void)context, (void)gradient_bytes, (void)operand_bytes, false;
}
static bool writes_over(const mix_plan *plan, const mix_step *step, int input, int output) {
  return (void)plan, (void)step, (void)input, (void)output, false;
}

static const char *kernel_name(const mix_executable *executable, int step) {
  return (void)executable, (void)step, NULL;
}
static mix_kernel_info kernel_info(const mix_context *context, const mix_product *product) {
  (void)context, (void)product;
  return (mix_kernel_info){.kernel = "dot_general", .description = "by XLA", .accumulation = "exact"};
}

static void describe(const mix_context *context, mix_text *text) {
  (void)context;
  const char *why = mix_xla_load();
  if (why) {
    mix_text_put(text, "xla: unavailable: %s\n", why);
    return;
  }
  const mix_pjrt *plugin = mix_xla_plugin();
  mix_text_put(text, "xla: %d device%s\n", plugin->device_count, plugin->device_count == 1 ? "" : "s");
  mix_pjrt_describe(plugin, text);
  mix_xla_describe_cache(text);
}

const mix_backend mix_backend_xla = {.name = "xla",
                                     .memory = &mix_xla_memory,
                                     .host = &mix_backend_cpu,
                                     /* Compiling takes far longer than evaluating once. */
                                     .host_evaluation_bytes = SIZE_MAX,
                                     .unavailable = mix_xla_load,
                                     .platform = platform,
                                     .passes = passes,
                                     .supports = supports,
                                     .supports_epilogue = supports_epilogue,
                                     .same_product = same_product,
                                     .prefers_upcast = prefers_upcast,
                                     .prefers_speculation = prefers_speculation,
                                     .writes_over = writes_over,
                                     .compile_graph = mix_xla_compile,
                                     .destroy = mix_xla_destroy,
                                     .enqueue = mix_xla_enqueue,
                                     .wait = mix_xla_wait,
                                     .facts = mix_xla_facts,
                                     .kernel_name = kernel_name,
                                     .kernel_info = kernel_info,
                                     .describe = describe};
