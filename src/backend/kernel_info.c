/* Reports: what the machine has, which kernels compute matrix products on it, and why. */
#include "backend/host/executor.h"
#include "base/processor.h"
#include "ops/table.h"
#include <mixtape/device.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The kernel tables of the device in force. The CPU's rows fall back on ref's. */
static const mix_kernel_row *const *tables(void) {
  static const mix_kernel_row *const all[] = {mix_cpu_kernels, mix_ref_kernels, NULL};
  return all + (mix_backend_current() == &mix_backend_ref);
}

/* ---- one product ---- */

/* The last kernel in force that sums as wanted but does not take this product. */
static void note_better(void *context, const mix_kernel *kernel, const mix_kernel_args *args,
                        const char *why_not) {
  mix_kernel_info *service = context;
  if (!why_not || kernel->operands != args->input_types[0].dtype ||
      kernel->accumulation != mix_accumulation_wanted())
    return;
  if ((kernel->needs & mix_cpu_features()) == kernel->needs)
    service->preferred = kernel->name, service->reason = why_not;
}

mix_kernel_info mix_kernel_info_of(const mix_product *product) {
  mix_kernel_info service = {.kernel = "none"};
  const mix_kernel *kernel = mix_host_choose_product(tables(), product, note_better, &service);
  /* Chains of 16 and of 32 are both blocked: neither is preferred to the other. */
  if (kernel && kernel->accumulation == MIX_ACCUMULATE_BLOCKED) service.preferred = service.reason = NULL;
  const bool known = kernel && kernel->accumulation != MIX_ACCUMULATE_AUTO; /* else the reference, exact */
  service.accumulation = mix_accumulation_name(known ? kernel->accumulation : MIX_ACCUMULATE_EXACT);
  if (kernel) service.kernel = kernel->name, service.description = kernel->description;
  if (!service.description)
    service.description = kernel ? "the scalar reference" : "no kernel of this device";
  return service;
}

static mix_kernel_info service_of_sizes(mix_dtype dtype, int64_t m, int64_t n, int64_t k) {
  return mix_kernel_info_of(&(mix_product){.op = &mix_op_matmul,
                                           .dtype = dtype,
                                           .a = MIX_SHAPE(m, k),
                                           .b = MIX_SHAPE(k, n),
                                           .result = MIX_SHAPE(m, n)});
}

mix_kernel_info mix_kernel_info_of_large(mix_dtype dtype) {
  return service_of_sizes(dtype, 1024, 1024, 1024);
}

mix_kernel_info mix_kernel_info_of_layer(mix_dtype dtype, int64_t rows, int64_t inputs, int64_t units) {
  enum { ENOUGH = 64 };
  const mix_kernel_info service = service_of_sizes(dtype, rows, units, inputs);
  return service.preferred ? service_of_sizes(dtype, ENOUGH, ENOUGH, ENOUGH) : service;
}

const char *mix_kernel_info_text(const mix_kernel_info *service, char *text, size_t size) {
  const int used = snprintf(text, size, "%s: %s", service->kernel, service->description);
  if (service->preferred && used > 0 && (size_t)used < size)
    snprintf(text + used, size - (size_t)used, "; not %s: %s", service->preferred, service->reason);
  return text;
}

const char *mix_accumulate_in_force(mix_dtype dtype) { return mix_kernel_info_of_large(dtype).accumulation; }

/* ---- the text ---- */

typedef struct page {
  char text[8192];
  size_t used;
} page;

static void MIX_PRINTF(2, 3) put(page *to, const char *format, ...) {
  if (to->used >= sizeof to->text) return;
  va_list list;
  va_start(list, format);
  int written = vsnprintf(to->text + to->used, sizeof to->text - to->used, format, list);
  va_end(list);
  if (written > 0) to->used += (size_t)written;
}

/* Lists the kernels of 16-bit products that come before the chosen one. */
static void put_refusal(void *context, const mix_kernel *kernel, const mix_kernel_args *args,
                        const char *why_not) {
  const mix_dtype dtype = args->input_types[0].dtype;
  if (why_not && kernel->operands == dtype && mix_dtype_size(dtype) == 2)
    put(context, "    not %s: %s\n", kernel->name, why_not);
}

/* A product of two large matrices, then shapes that may have other kernels. */
static void put_products(page *to, mix_dtype dtype) {
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
    const mix_product product = {.op = &mix_op_matmul,
                                 .dtype = dtype,
                                 .a = MIX_SHAPE(m, k),
                                 .b = MIX_SHAPE(k, n),
                                 .result = MIX_SHAPE(m, n)};
    const mix_kernel_info service = mix_kernel_info_of(&product);
    mix_kernel_info_text(&service, text, sizeof text);
    if (i == 0) {
      put(to, "  matmul of %s (%lld, %lld): %s\n", mix_dtype_name(dtype), (long long)m, (long long)k, text);
      mix_host_choose_product(tables(), &product, put_refusal, to);
      large = service.kernel;
    } else if (strcmp(large, service.kernel)) {
      put(to, "    %s, (%lld, %lld, %lld): %s\n", shapes[i].what, (long long)m, (long long)n, (long long)k,
          text);
    }
  }
}

const char *mix_devices_text(void) {
  static _Thread_local page text;
  static const mix_dtype products[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64, MIX_INT32};
  char names[128];
  int cores = mix_cpu_cores();
  text.used = 0;
  put(&text, "cpu: %s, %d core%s\n", mix_cpu_name(), cores, cores == 1 ? "" : "s");
  put(&text, "  instruction sets found: %s\n", mix_cpu_features_text(mix_cpu_found(), names, sizeof names));
  put(&text, "  instruction sets in force: %s\n",
      mix_cpu_features_text(mix_cpu_features(), names, sizeof names));
  for (size_t i = 0; i < sizeof products / sizeof *products; i++) put_products(&text, products[i]);
  put(&text, "ref: the scalar reference, one thread\n");
  put(&text, "cuda: unavailable: %s\n", mix_cuda_missing);
  put(&text, "in force: device %s, %d thread%s, accumulation %s, float32 precision %s\n", mix_device(),
      mix_threads(), mix_threads() == 1 ? "" : "s", mix_accumulate(), mix_float32_precision_name());
  put(&text, "large products here accumulate: float16 %s, bfloat16 %s\n",
      mix_kernel_info_of_large(MIX_FLOAT16).accumulation,
      mix_kernel_info_of_large(MIX_BFLOAT16).accumulation);
  return text.text;
}
