/* The interface between the compiler and a device: a backend compiles and runs whole plans. */
#ifndef MIX_BACKEND_BACKEND_H
#define MIX_BACKEND_BACKEND_H

#include "backend/plan.h"

typedef struct mix_executable mix_executable;

/* The bindings of a run: a memory for each argument, variable and result, and the arena of at least
 * plan->arena_bytes. All plans of a function share the arena; they run one at a time. */
typedef struct mix_bindings {
  mix_memory *const *arguments;
  mix_memory *const *variables;
  mix_memory *const *results;
  mix_memory *arena;
} mix_bindings;

typedef struct mix_executable_facts {
  int barriers; /* in one run */
  int threads;
  size_t workspace_bytes; /* scratch owned by the executable */
} mix_executable_facts;

/* A product, for queries about its kernel. Shapes are those of the operands as stored. */
typedef struct mix_product {
  const mix_op *op;
  bool transpose_a, transpose_b;
  mix_dtype dtype;
  mix_shape a, b, result;
} mix_product;

typedef struct mix_backend {
  const char *name; /* "cpu" */
  const mix_memory_device *memory; /* of its results and arenas */
  /* NULL: the backend is usable; else the reason why not (static text). */
  const char *(*unavailable)(void);
  /* The plan must outlive the executable. NULL with the error recorded. */
  mix_executable *(*compile)(const mix_plan *plan, int threads);
  /* Runs the plan and waits for it. An error that depends on values (a label outside the classes) is a
   * MIX_VALUE_ERROR whose message names the op and the layer; no variable has changed then. */
  mix_status (*run)(mix_executable *executable, const mix_bindings *bindings);
  void (*facts)(const mix_executable *executable, mix_executable_facts *facts);
  /* The name of the kernel that runs a step, for dumps ("gemm_f32_acc32_avx512"). */
  const char *(*kernel_name)(const mix_executable *executable, int step);
  /* Do x and y, products of the same matrices stored in two ways, give the same bits? They do if one kernel
   * runs both and sums in the same order. */
  bool (*same_product)(const mix_product *x, const mix_product *y);
  /* Is this product of 16-bit matrices faster on operands upcast to float32 (matmul_downcast)? The bits are
   * the same. */
  bool (*prefers_upcast)(const mix_product *product);
  void (*destroy)(mix_executable *executable);
} mix_backend;

extern const mix_backend mix_backend_cpu, mix_backend_ref;
/* The backend in force (mix_set_device). */
const mix_backend *mix_backend_current(void);
/* The number of CPU threads that ran the latest plan of the calling thread, itself included. They wait for
 * the next plan and start in about a microsecond. Plans without parallel steps do not count. 1 before the
 * first plan. */
int mix_threads_awake(void);
/* The reason why there is no device "cuda" (static text). */
extern const char *const mix_cuda_missing;

/* Numerical choices of the process, read while a plan is compiled. */
typedef enum mix_accumulation {
  MIX_ACCUMULATE_AUTO,
  MIX_ACCUMULATE_EXACT,
  MIX_ACCUMULATE_BLOCKED,
} mix_accumulation;
mix_accumulation mix_accumulation_current(void);
/* The setting; for `auto` the one that it means with the instruction sets in force. */
mix_accumulation mix_accumulation_wanted(void);
const char *mix_accumulation_name(mix_accumulation accumulation);
typedef enum mix_float32_precision { MIX_FLOAT32_HIGHEST, MIX_FLOAT32_HIGH } mix_float32_precision;
mix_float32_precision mix_float32_precision_current(void);
/* The kernel that runs a product under the settings in force, and why (backend/kernel_info.c). Static
 * texts. */
typedef struct mix_kernel_info {
  const char *kernel, *description; /* the kernel's name, what it does */
  const char *accumulation; /* how it sums: "exact" or "blocked" */
  /* The best kernel in force that sums as wanted but refuses this product, and its reason. NULL: none. */
  const char *preferred, *reason;
} mix_kernel_info;
mix_kernel_info mix_kernel_info_of(const mix_product *product);
/* The same for a product of two large matrices of a dtype. */
mix_kernel_info mix_kernel_info_of_large(mix_dtype dtype);
/* The same for the product of a layer, (rows, inputs) by (inputs, units). If it is too small for the kernel
 * that sums as wanted, the answer is for a product that is just large enough, so that it shows the effect of
 * the settings. */
mix_kernel_info mix_kernel_info_of_layer(mix_dtype dtype, int64_t rows, int64_t inputs, int64_t units);
/* "gemm_f16_acc32_amx: three bfloat16 products on tiles for one". */
const char *mix_kernel_info_text(const mix_kernel_info *service, char *text, size_t size);
/* Differs for different settings of device, threads, instruction-set cap, accumulation and float32 precision.
 * Part of the key of compiled plans. */
uint64_t mix_backend_epoch(void);

#endif
