/* The only thing the compiler knows of a device: a backend compiles and runs whole plans. */
#ifndef MIX_BACKEND_BACKEND_H
#define MIX_BACKEND_BACKEND_H

#include "backend/plan.h"

typedef struct mix_executable mix_executable;

/* What a run binds: one address for each argument and result, and the arena (64-byte aligned, plan->arena_bytes; shared by all plans
 * of a function, which run one at a time). */
typedef struct mix_bindings {
  void *const *arguments;
  void *const *results;
  void *arena;
} mix_bindings;

typedef struct mix_executable_facts {
  int barriers;           /* in one run */
  int threads;
  size_t workspace_bytes; /* scratch owned by the executable */
} mix_executable_facts;

/* A product as a kernel is asked about it: operands as stored, and which of them are transposed. */
typedef struct mix_product {
  const mix_op *op;
  bool transpose_a, transpose_b;
  mix_dtype dtype;
  mix_shape a, b, result;
} mix_product;

typedef struct mix_backend {
  const char *name;      /* "cpu" */
  /* NULL when usable, else the reason why not (static text). */
  const char *(*unavailable)(void);
  /* The plan must outlive the executable. NULL with the error recorded. */
  mix_executable *(*compile)(const mix_plan *plan, int threads);
  /* Runs the plan. Errors that only values show (a label outside the classes) come back as MIX_VALUE_ERROR with a message that names op
   * and layer; no variable has then changed. enqueue followed by wait; on the CPU both happen in run. */
  mix_status (*run)(mix_executable *executable, const mix_bindings *bindings);
  void (*facts)(const mix_executable *executable, mix_executable_facts *facts);
  /* The kernel that serves a step, for dumps ("gemm_f32_acc32_avx512"). */
  const char *(*kernel_name)(const mix_executable *executable, int step);
  /* Do both products, of the same matrices stored in two ways, give the same bits: one kernel, one order of sums? */
  bool (*same_product)(const mix_product *x, const mix_product *y);
  /* Is this product of 16-bit matrices best done as that of the float32 matrices of their numbers (matmul_downcast)? It has the same bits. */
  bool (*prefers_upcast)(const mix_product *product);
  void (*destroy)(mix_executable *executable);
  void *(*allocate)(size_t bytes);
  void (*deallocate)(void *memory, size_t bytes);
} mix_backend;

extern const mix_backend mix_backend_cpu, mix_backend_ref;
/* The backend in force (mix_set_device). */
const mix_backend *mix_backend_current(void);
/* Threads of the CPU that the calling thread's latest plan ran on, itself among them: they wait for the next one, and can be had in about
 * a microsecond. 1 before the first; plans with nothing to share do not count. */
int mix_threads_awake(void);
/* Why there is no device "cuda" (static text). */
extern const char *const mix_cuda_missing;

/* Numerical choices of the process, read while a plan is compiled. */
typedef enum mix_accumulation {
  MIX_ACCUMULATE_AUTO,
  MIX_ACCUMULATE_EXACT,
  MIX_ACCUMULATE_BLOCKED,
  MIX_ACCUMULATE_BLOCKED_SHORT,
  MIX_ACCUMULATE_BLOCKED_LONG,
  MIX_ACCUMULATE_BLOCKED_WIDE,
} mix_accumulation;
mix_accumulation mix_accumulation_current(void);
/* The choice; for `auto` what it comes to with the instruction sets in force (large products may have longer blocks then). */
mix_accumulation mix_accumulation_wanted(void);
const char *mix_accumulation_name(mix_accumulation accumulation);
typedef enum mix_float32_precision { MIX_FLOAT32_HIGHEST, MIX_FLOAT32_HIGH } mix_float32_precision;
mix_float32_precision mix_float32_precision_current(void);
/* Which kernel serves a product under the settings in force, and why (backend/services.c). Static texts. */
typedef struct mix_kernel_info {
  const char *kernel, *description; /* its name, what it description */
  const char *accumulation;    /* how it sums: a name of mix_set_accumulate, but not "auto" */
  const char *preferred, *reason; /* the best kernel in force that sums that way but leaves this product to others; NULL: none */
} mix_kernel_info;
mix_kernel_info mix_kernel_info_of(const mix_product *product);
/* The same of two large matrices of a dtype. */
mix_kernel_info mix_kernel_info_of_large(mix_dtype dtype);
/* And of a layer's product, (rows, inputs) by (inputs, units); where it is too small for the kernel that would sum as wanted, of one that is
 * just large enough: what the settings come to, as far as they do. */
mix_kernel_info mix_kernel_info_of_layer(mix_dtype dtype, int64_t rows, int64_t inputs, int64_t units);
/* "gemm_f16_acc32_amx: three bfloat16 products on tiles for one". */
const char *mix_kernel_info_text(const mix_kernel_info *service, char *text, size_t size);
/* Changes whenever device, threads, instruction-set cap, accumulation or float32 precision change: part of the key of compiled plans. */
uint64_t mix_backend_epoch(void);

#endif
