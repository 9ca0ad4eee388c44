/* Dispatch: the kernel of a step is the first one in the ordered tables that this processor can run and that
 * accepts the step. */
#include "backend/host/executor.h"
#include "ops/table.h"
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

/* Operands upcast to float32 are read in place, whereas 16-bit operands are packed. They take twice the
 * memory, so upcasting pays only while everything fits into the second-level cache. */
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
