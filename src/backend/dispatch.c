/* Which kernel serves a step: the first of the ordered tables that this processor can run and that accepts. */
#include "backend/host.h"
#include <stdio.h>
#include <string.h>

static void report_append(char *report, size_t size, const char *name, const char *verdict) {
  if (!report) return;
  size_t used = strlen(report);
  if (used < size) snprintf(report + used, size - used, "%s%s: %s", used ? "; " : "", name, verdict);
}

static const char *refusal(const mix_kernel *kernel, const mix_kernel_args *args, uint32_t features, char *text, size_t size) {
  uint32_t missing = kernel->needs & ~features;
  if (missing) {
    char names[128];
    snprintf(text, size, "needs %s", mix_cpu_features_text(missing, names, sizeof names));
    return text;
  }
  return kernel->refuses ? kernel->refuses(args) : NULL;
}

const mix_kernel *mix_host_choose(const mix_kernel_row *const *tables, const mix_kernel_args *args, char *report, size_t size) {
  uint32_t features = mix_cpu_features();
  if (report && size) report[0] = 0;
  for (; *tables; tables++)
    for (const mix_kernel_row *row = *tables; row->op; row++) {
      if (row->op != args->op) continue;
      for (const mix_kernel *const *kernel = row->kernels; *kernel; kernel++) {
        char text[160];
        const char *why = refusal(*kernel, args, features, text, sizeof text);
        report_append(report, size, (*kernel)->name, why ? why : "serves");
        if (!why) return *kernel;
      }
    }
  return NULL;
}
