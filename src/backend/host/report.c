/* Reports: which kernels of a host backend compute matrix products, and why. */
#include "backend/host/host.h"
#include <string.h>

typedef struct wanted_kernel {
  mix_accumulation accumulation;
  const char *name, *reason;
} wanted_kernel;

/* The last kernel in force that sums as wanted but does not take this product. */
static void note_wanted(void *to, const mix_kernel *kernel, const mix_kernel_args *args, const char *reason) {
  wanted_kernel *wanted = to;
  if (!reason || kernel->operands != args->input_types[0].dtype ||
      kernel->accumulation != wanted->accumulation)
    return;
  if ((kernel->needs & mix_cpu_features()) == kernel->needs)
    wanted->name = kernel->name, wanted->reason = reason;
}

mix_kernel_info mix_host_kernel_info(const mix_context *context, const mix_product *product) {
  wanted_kernel wanted = {.accumulation = mix_accumulation_resolve(context->precision.accumulation)};
  const mix_kernel *kernel = mix_host_choose_product(context, product, note_wanted, &wanted);
  mix_kernel_info info = {.kernel = "none", .preferred = wanted.name, .reason = wanted.reason};
  /* Chains of 16 and of 32 are both blocked: neither is preferred to the other. */
  if (kernel && kernel->accumulation == MIX_ACCUMULATE_BLOCKED) info.preferred = info.reason = NULL;
  const bool known = kernel && kernel->accumulation != MIX_ACCUMULATE_AUTO; /* else the reference, exact */
  info.accumulation = mix_accumulation_name(known ? kernel->accumulation : MIX_ACCUMULATE_EXACT);
  if (kernel) info.kernel = kernel->name, info.description = kernel->description;
  if (!info.description) info.description = kernel ? "the scalar reference" : "no kernel of this device";
  return info;
}

/* Lists the kernels of 16-bit products that come before the chosen one. */
static void put_refusal(void *to, const mix_kernel *kernel, const mix_kernel_args *args, const char *reason) {
  const mix_dtype dtype = args->input_types[0].dtype;
  if (reason && kernel->operands == dtype && mix_dtype_size(dtype) == 2)
    mix_text_put(to, "    not %s: %s\n", kernel->name, reason);
}

/* A product of two large matrices, then shapes that may have other kernels. */
static void describe_dtype(const mix_context *context, mix_dtype dtype, mix_text *to) {
  static const struct {
    const char *what;
    int64_t m, n, k;
  } shapes[] = {{"large", 1024, 1024, 1024},
                {"one row", 1, 1024, 1024},
                {"ten columns", 1024, 10, 1024},
                {"small", 16, 16, 16}};
  char text[512];
  const char *large = NULL;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    const int64_t m = shapes[i].m, n = shapes[i].n, k = shapes[i].k;
    const mix_product product = mix_product_of(dtype, m, n, k);
    const mix_kernel_info info = mix_host_kernel_info(context, &product);
    mix_kernel_info_text(&info, text, sizeof text);
    if (i == 0) {
      mix_text_put(to, "  matmul of %s (%lld, %lld): %s\n", mix_dtype_name(dtype), (long long)m, (long long)k,
                   text);
      mix_host_choose_product(context, &product, put_refusal, to);
      large = info.kernel;
    } else if (strcmp(large, info.kernel)) {
      mix_text_put(to, "    %s, (%lld, %lld, %lld): %s\n", shapes[i].what, (long long)m, (long long)n,
                   (long long)k, text);
    }
  }
}

void mix_host_describe_products(const mix_context *context, mix_text *text) {
  static const mix_dtype products[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64, MIX_INT32};
  for (size_t i = 0; i < sizeof products / sizeof *products; i++) describe_dtype(context, products[i], text);
}
