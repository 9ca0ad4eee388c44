/* The devices "xla" and "cuda": graphs become StableHLO text, which a PJRT plug-in compiles and runs. */
#include "backend/xla/xla.h"

#include <string.h>

/* XLA fuses and plans by itself. What remains are rewrites that save compile time or change what is computed:
 * the mixed precision rewrite, and constants that were computed on the host. */
static const char *const passes[] = {
    "amp", "expand_einsum", "remove_identities", "simplify_casts", "constant_fold", "cse", "dce", NULL};

static const char *platform(void) { return mix_xla_plugin() ? mix_xla_plugin()->platform : ""; }

/* The GPUs of the machine, where the plug-in drives one. */
static int gpus(mix_gpu_fact *facts, int capacity) {
  return strcmp(platform(), "cuda") ? 0 : mix_cuda_facts(facts, capacity);
}

/* A plug-in for processors, whose memory is the host's, does not say. */
static size_t free_bytes(void) { return mix_xla_plugin() ? mix_pjrt_free_bytes(mix_xla_plugin()) : 0; }

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

static void describe_cuda(const mix_context *context, mix_text *text) {
  mix_cuda_describe(text);
  mix_text_put(text, "cuda: cuda:%d by the plug-in %s\n", mix_cuda_gpu_in_use(), mix_xla_plugin()->path);
}

/* Outside functions the host computes, for compiling takes far longer than evaluating once. */
#define BACKEND(device, choice, load, description)                                                           \
  {                                                                                                          \
    .name = device, .choose = choice, .replaces_variables = true, .memory = &mix_xla_memory,                 \
    .host = &mix_backend_cpu, .host_evaluation_bytes = SIZE_MAX, .unavailable = load, .platform = platform,  \
    .gpus = gpus, .free_bytes = free_bytes, .passes = passes, .supports = supports,                          \
    .compile_graph = mix_xla_compile, .destroy = mix_xla_destroy, .enqueue = mix_xla_enqueue,                \
    .wait = mix_xla_wait, .kernel_info = kernel_info, .describe = description                                \
  }
const mix_backend mix_backend_xla = BACKEND("xla", mix_xla_choose, mix_xla_load, describe);
const mix_backend mix_backend_cuda = BACKEND("cuda", mix_cuda_choose, mix_cuda_load, describe_cuda);
