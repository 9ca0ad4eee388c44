/* What the backends of processors share: plans compiled into kernels out of ordered tables, answers to the
 * compiler's questions, reports. */
#pragma once

#include "backend/host/kernel.h"

/* The kernels of a context's backend, which is one of the host: in order of preference, ended by NULL. */
static inline const mix_kernel_row *const *mix_host_tables(const mix_context *context) {
  return context->backend->own;
}
/* The kernels of a host backend: `tables` in order of preference, ended by NULL, which outlive the
 * executables. `flush_subnormals`: float32 subnormals may be flushed to zero. */
mix_executable *mix_host_compile(const mix_plan *plan, int threads, mix_matmul_precision precision,
                                 const mix_kernel_row *const *tables, bool flush_subnormals);
/* Runs at once. */
mix_ticket mix_host_enqueue(mix_executable *executable, const mix_bindings *bindings);
void mix_host_facts(const mix_executable *executable, mix_executable_facts *facts);
const char *mix_host_kernel_name(const mix_executable *executable, int step);
void mix_host_destroy(mix_executable *executable);

/* The first kernel of the tables that accepts; NULL if none does. `trace`, unless NULL, receives the
 * dispatch trace as text: the kernels tried, and why each one refused: "gemm_f16_amx: needs amx_bf16;
 * gemm_f32_avx512: serves". */
const mix_kernel *mix_host_choose(const mix_kernel_row *const *tables, const mix_kernel_args *args,
                                  char *trace, size_t size);

/* The same, with a callback for each kernel tried. `reason`: why the kernel refused; NULL: it serves. */
typedef void mix_dispatch_trace(void *context, const mix_kernel *kernel, const mix_kernel_args *args,
                                const char *reason);
const mix_kernel *mix_host_choose_traced(const mix_kernel_row *const *tables, const mix_kernel_args *args,
                                         mix_dispatch_trace *trace, void *context);
/* ---- what the compiler asks (mix_backend), answered for mix_host_tables: host/preferences.c ---- */

bool mix_host_supports(const mix_context *context, const mix_op *op, mix_dtype dtype);
bool mix_host_supports_epilogue(const mix_context *context, const mix_product *product,
                                const mix_program *program);
bool mix_host_same_product(const mix_context *context, const mix_product *x, const mix_product *y);
bool mix_host_widens_operands(const mix_context *context, const mix_product *product);
bool mix_host_prefers_upcast(const mix_context *context, const mix_product *product);
bool mix_host_rounds_operands(const mix_context *context, const mix_product *product);
bool mix_host_rounds_operand(const mix_context *context, const mix_product *product, int operand);
bool mix_host_avoids_copies(const mix_context *context, size_t bytes);
bool mix_host_prefers_speculation(const mix_context *context, size_t gradient_bytes, size_t operand_bytes);
bool mix_host_writes_over(const mix_plan *plan, const mix_step *step, int input, int output);
/* mix_host_choose_traced for a product. */
const mix_kernel *mix_host_choose_product(const mix_context *context, const mix_product *product,
                                          mix_dispatch_trace *trace, void *to);

/* ---- reports: host/report.c ---- */

mix_kernel_info mix_host_kernel_info(const mix_context *context, const mix_product *product);
/* The kernels of large products of each dtype, why those before them were refused, and the shapes that have
 * other kernels. */
void mix_host_describe_products(const mix_context *context, mix_text *text);

/* The answers of backends whose kernels are those of the tables. */
#define MIX_HOST_ANSWERS                                                                                     \
  .max_loads = 14, .max_stores = 14, .max_sums = MIX_PROGRAM_SUMS, .one_chain = MIX_ONE_CHAIN,               \
  .supports = mix_host_supports, .supports_epilogue = mix_host_supports_epilogue,                            \
  .same_product = mix_host_same_product, .prefers_upcast = mix_host_prefers_upcast,                          \
  .widens_operands = mix_host_widens_operands, .rounds_operands = mix_host_rounds_operands,                  \
  .rounds_operand = mix_host_rounds_operand, .avoids_copies = mix_host_avoids_copies,                        \
  .prefers_speculation = mix_host_prefers_speculation, .writes_over = mix_host_writes_over,                  \
  .kernel_info = mix_host_kernel_info
/* The members that all host backends have in common. */
#define MIX_HOST_BACKEND                                                                                     \
  .memory = &mix_host_memory, .destroy = mix_host_destroy, .enqueue = mix_host_enqueue,                      \
  .facts = mix_host_facts, .kernel_name = mix_host_kernel_name, MIX_HOST_ANSWERS
