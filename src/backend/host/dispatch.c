/* Which kernel serves a step: the first of the ordered tables that this processor can run and that accepts.
 */
#include "backend/host/executor.h"
#include "ops/table.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <string.h>

static const char *refusal(const mix_kernel *kernel, const mix_kernel_args *args, uint32_t features,
                           char *text, size_t size) {
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
        const char *why_not = refusal(*kernel, args, features, text, sizeof text);
        if (trace) trace(context, *kernel, args, why_not);
        if (!why_not) return *kernel;
      }
    }
  return NULL;
}

typedef struct report {
  char *text;
  size_t size;
} report;

/* Kernels for operands of another dtype are no news. */
static void write_report(void *context, const mix_kernel *kernel, const mix_kernel_args *args,
                         const char *why_not) {
  const report *to = context;
  if (why_not && kernel->operands != MIX_DTYPE_NONE && kernel->operands != args->input_types[0].dtype) return;
  const size_t used = strlen(to->text);
  if (used < to->size)
    snprintf(to->text + used, to->size - used, "%s%s: %s", used ? "; " : "", kernel->name,
             why_not ? why_not : "serves");
}

const mix_kernel *mix_host_choose(const mix_kernel_row *const *tables, const mix_kernel_args *args,
                                  char *text, size_t size) {
  report to = {text, size};
  if (!text || !size) return mix_host_choose_traced(tables, args, NULL, NULL);
  text[0] = 0;
  return mix_host_choose_traced(tables, args, write_report, &to);
}

typedef struct product_args {
  mix_matmul_attributes attributes;
  mix_type inputs[2], output;
  mix_kernel_args args;
} product_args;

static const mix_kernel_args *args_of(const mix_product *product, product_args *out) {
  *out =
      (product_args){.attributes = {.transpose_a = product->transpose_a, .transpose_b = product->transpose_b},
                     .inputs = {{product->dtype, product->a}, {product->dtype, product->b}},
                     .output = {product->dtype, product->result}};
  out->args = (mix_kernel_args){.op = product->op,
                                .attributes = &out->attributes,
                                .input_count = 2,
                                .output_count = 1,
                                .input_types = out->inputs,
                                .output_types = &out->output};
  return &out->args;
}

const mix_kernel *mix_host_choose_product(const mix_kernel_row *const *tables, const mix_product *product,
                                          mix_dispatch_trace *trace, void *context) {
  product_args args;
  return mix_host_choose_traced(tables, args_of(product, &args), trace, context);
}

bool mix_host_same_product(const mix_kernel_row *const *tables, const mix_product *x, const mix_product *y) {
  product_args a, b;
  const mix_kernel *kernel = mix_host_choose(tables, args_of(x, &a), NULL, 0);
  if (!kernel || kernel != mix_host_choose(tables, args_of(y, &b), NULL, 0)) return false;
  return !kernel->same_order || kernel->same_order(&a.args, &b.args);
}

/* Widened operands are read in place where 16-bit ones are packed, but take twice the room: a gain while all
 * stays in the second-level cache. */
bool mix_host_prefers_upcast(const mix_kernel_row *const *tables, const mix_product *product) {
  product_args narrow, wide;
  if (product->op != &mix_op_matmul) return false;
  const mix_kernel *kernel = mix_host_choose(tables, args_of(product, &narrow), NULL, 0);
  if (!kernel || !kernel->widened) return false;
  const int64_t numbers =
      mix_shape_size(product->a) + mix_shape_size(product->b) + mix_shape_size(product->result);
  if (numbers * (int64_t)sizeof(float) > mix_cpu_cache(2) * 3 / 4) return false;
  args_of(product, &wide);
  wide.args.op = &mix_op_matmul_downcast;
  wide.attributes.dtype = product->dtype;
  wide.inputs[0].dtype = wide.inputs[1].dtype = MIX_FLOAT32;
  return mix_host_choose(tables, &wide.args, NULL, 0) == kernel->widened;
}
