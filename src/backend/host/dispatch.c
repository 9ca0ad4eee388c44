/* Dispatch: the kernel of a step is the first one in the ordered tables that this processor can run and that
 * accepts the step. */
#include "backend/host/host.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <string.h>

static const char *unsupported_reason(const mix_kernel *kernel, const mix_kernel_args *args,
                                      uint32_t features, char *text, size_t size) {
  uint32_t missing = kernel->needs & ~features;
  if (missing) {
    char names[128];
    snprintf(text, size, "needs %s", mix_cpu_features_text(missing, names, sizeof names));
    return text;
  }
  return kernel->unsupported_reason ? kernel->unsupported_reason(args) : NULL;
}

const mix_kernel *mix_host_choose_traced(const mix_kernel_row *const *tables, const mix_kernel_args *args,
                                         mix_dispatch_trace *trace, void *context) {
  const uint32_t features = mix_cpu_features();
  for (; *tables; tables++)
    for (const mix_kernel_row *row = *tables; row->op; row++) {
      if (row->op != args->op) continue;
      for (const mix_kernel *const *kernel = row->kernels; *kernel; kernel++) {
        char text[160];
        const char *reason = unsupported_reason(*kernel, args, features, text, sizeof text);
        if (trace) trace(context, *kernel, args, reason);
        if (!reason) return *kernel;
      }
    }
  return NULL;
}

typedef struct trace_text {
  char *text;
  size_t size;
} trace_text;

/* Kernels for operands of another dtype are left out. */
static void append_trace(void *context, const mix_kernel *kernel, const mix_kernel_args *args,
                         const char *reason) {
  const trace_text *to = context;
  if (reason && kernel->operands != MIX_DTYPE_NONE && kernel->operands != args->input_types[0].dtype) return;
  const size_t used = strlen(to->text);
  if (used < to->size)
    snprintf(to->text + used, to->size - used, "%s%s: %s", used ? "; " : "", kernel->name,
             reason ? reason : "serves");
}

const mix_kernel *mix_host_choose(const mix_kernel_row *const *tables, const mix_kernel_args *args,
                                  char *text, size_t size) {
  trace_text to = {text, size};
  if (!text || !size) return mix_host_choose_traced(tables, args, NULL, NULL);
  text[0] = 0;
  return mix_host_choose_traced(tables, args, append_trace, &to);
}
