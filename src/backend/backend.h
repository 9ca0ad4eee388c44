/* The interface between the compiler and a device. A backend compiles whole plans or whole graphs, and runs
 * them in the order in which they are enqueued. */
#pragma once

#include "backend/context.h"
#include "backend/plan.h"
#include "backend/trace.h"
#include "ir/ir.h"

typedef struct mix_executable mix_executable;
/* Of an enqueued run. Later runs of a backend have larger tickets. 0: no run. */
typedef uint64_t mix_ticket;

/* The bindings of a run: a memory for each argument, variable and result, and the arena of at least
 * plan->arena_bytes. All plans of a function share the arena. Arguments may be memory of the host; the rest
 * is the backend's. */
typedef struct mix_bindings {
  mix_memory *const *arguments;
  mix_memory **variables;
  /* By variable: differs from that of an earlier run if its value may. NULL: nothing is known. */
  const uint64_t *stamps;
  mix_memory *const *results;
  mix_memory *arena;
  mix_trace_run *trace; /* filled by a backend that runs at once; NULL: no trace */
} mix_bindings;

/* 0: the device has no such thing. */
typedef struct mix_executable_facts {
  int barriers; /* in one run */
  int threads;
  size_t workspace_bytes; /* scratch owned by the executable */
  size_t cached_bytes;    /* of operands of steps in bands: those that stay in the caches */
} mix_executable_facts;

/* A product, for queries about its kernel. Shapes are those of the operands as stored. */
typedef struct mix_product {
  const mix_op *op;
  const void *attributes; /* NULL: those of a matmul with these flags */
  bool transpose_a, transpose_b;
  mix_dtype dtype;
  mix_shape a, b, result;
} mix_product;

/* The kernel that runs a product, and why. Static texts. */
typedef struct mix_kernel_info {
  const char *kernel, *description; /* the kernel's name, what it does */
  const char *accumulation;         /* how it sums: "exact" or "blocked" */
  /* The best kernel in force that sums as wanted but refuses this product, and its reason. NULL: none. */
  const char *preferred, *reason;
} mix_kernel_info;

/* A GPU as the compatibility check of mixed precision sees it. */
typedef struct mix_gpu_fact {
  const char *name; /* NULL: "Unknown GPU" */
  bool has_capability;
  int major, minor;
} mix_gpu_fact;

typedef struct mix_backend {
  const char *name; /* "cpu" */
  /* Takes what follows its name and a colon: the path of "xla:PATH". False with the error recorded, in the
   * name of `source`, the call or the variable that has it. NULL: nothing may follow. */
  bool (*choose)(const char *which, const char *source);
  const mix_memory_device *memory;
  /* A run may give a variable that it writes new memory, in bindings->variables, of which the caller gets the
   * reference. The caller still releases the former one. */
  bool replaces_variables;
  bool has_threads; /* plans run on several threads of the host */
  /* Folds constants, and evaluates graphs outside functions whose values take at most so many bytes. Itself
   * if its memory is the host's. */
  const struct mix_backend *host;
  size_t host_evaluation_bytes;
  /* The reason why the backend cannot be used (static text); a NULL text or function: it can. */
  const char *(*unavailable)(void);
  /* The platform of its devices where a plug-in decides it: "tpu", "cuda", "cpu". NULL: none does. */
  const char *(*platform)(void);
  /* Free bytes of its memory; 0: not known. NULL: its memory is the host's, or it never knows. */
  size_t (*free_bytes)(void);
  const void *own; /* what only the backend's functions read */
  /* Writes up to `capacity` GPUs of the machine, that in use first. Returns their number. NULL: none. */
  int (*gpus)(mix_gpu_fact *facts, int capacity);

  /* ---- what the compiler asks ---- */

  /* The names of the passes and of the planner's optimizations to run for it, ended by NULL; no list: all. */
  const char *const *passes;
  /* Is there a kernel of the op for operands of a dtype? */
  bool (*supports)(const mix_context *context, const mix_op *op, mix_dtype dtype);

  /* Of a fused program. It adds sums, which are at most MIX_PROGRAM_SUMS, in the order of their own kernels;
   * a backend whose order differs has none. */
  int max_loads, max_stores, max_sums;
  int64_t one_chain; /* columns of at most so many elements are not summed beside rows */

  /* NULL for one of the questions below: no, never. */

  /* May the program become the epilogue of a product? */
  bool (*supports_epilogue)(const mix_context *context, const mix_product *product,
                            const mix_program *program);
  /* Do x and y, products of the same matrices stored in two ways, give the same bits? They do if one kernel
   * runs both and sums in the same order. */
  bool (*same_product)(const mix_context *context, const mix_product *x, const mix_product *y);
  /* Is this product of 16-bit matrices faster on operands upcast to float32 (matmul_downcast)? The bits are
   * the same. */
  bool (*prefers_upcast)(const mix_context *context, const mix_product *product);
  /* Does this product of 16-bit matrices sum as that of the same numbers in float32, from which it does not
   * differ in speed? */
  bool (*widens_operands)(const mix_context *context, const mix_product *product);
  /* Does the product on float32 operands that it rounds as it reads them (matmul_downcast with
   * round_operands) give the same bits, by the same kernel? */
  bool (*rounds_operands)(const mix_context *context, const mix_product *product);
  /* Does it where only this operand is float32, and rounded, and the other one is in 16 bits? */
  bool (*rounds_operand)(const mix_context *context, const mix_product *product, int operand);
  /* Where 16 bits are only widened: are so many bytes of 16-bit copies of weights, or of stored gradients,
   * which all those of a plan take, too many by the context's setting? */
  bool (*avoids_copies)(const mix_context *context, size_t bytes);
  /* Is speculative update fusion faster for a gradient and operands of its product of these sizes? */
  bool (*prefers_speculation)(const mix_context *context, size_t gradient_bytes, size_t operand_bytes);
  /* May result `output` of the step be written into the memory of its operand `input`? Both take the same
   * number of bytes, and no other operand lies there. */
  bool (*writes_over)(const mix_plan *plan, const mix_step *step, int input, int output);

  /* ---- compiling: one of the two ---- */

  /* The plan must outlive the executable. NULL with the error recorded. */
  mix_executable *(*compile)(const mix_plan *plan, const mix_context *context);
  /* For a backend that fuses and plans by itself: the graph after its passes, which must outlive the
   * executable. */
  mix_executable *(*compile_graph)(mix_ir *ir, const mix_context *context);
  /* Waits for its runs. Their value errors stay to be reported. */
  void (*destroy)(mix_executable *executable);

  /* ---- running ---- */

  /* Begins a run, and retains what it needs of the bindings. 0 with the error recorded: nothing was written.
   * A backend that runs at once reports value errors here. */
  mix_ticket (*enqueue)(mix_executable *executable, const mix_bindings *bindings);
  /* Waits for a run and those before it (UINT64_MAX: all). An error that depends on values (a label outside
   * the classes) is a MIX_VALUE_ERROR whose message names the op and the layer. From such a run on no run
   * writes a variable, until a wait has reported the error; reading memory waits too. NULL: runs at once. */
  mix_status (*wait)(mix_ticket ticket);

  /* ---- reports ---- */

  /* NULL: there is nothing to tell. */
  void (*facts)(const mix_executable *executable, mix_executable_facts *facts);
  /* Of a backend that takes plans: the name of the kernel that runs a step, for dumps
   * ("gemm_f32_acc32_avx512"). */
  const char *(*kernel_name)(const mix_executable *executable, int step);
  mix_kernel_info (*kernel_info)(const mix_context *context, const mix_product *product);
  /* Adds the device's lines to the text of mix_devices_text. */
  void (*describe)(const mix_context *context, mix_text *text);
} mix_backend;

/* The devices by name, the default one first, and how else each may be written. */
#define MIX_DEVICES(DO) DO(cpu, "") DO(cuda, "|cuda:N") DO(ref, "") DO(xla, "|xla:PLUGIN.so")
#define MIX_DEVICE_CHOICE(name, forms) "|" #name forms
#define MIX_DEVICE_CHOICES "auto" MIX_DEVICES(MIX_DEVICE_CHOICE)
#define MIX_DECLARE_BACKEND(name, forms) extern const mix_backend mix_backend_##name;
MIX_DEVICES(MIX_DECLARE_BACKEND)
/* From now on, the device "cuda" compiles for a GPU that is not here and runs nothing: programs are kept for
 * machines that have it, and a run's results are zeros. `target`: its name, or a file of facts. To be called
 * before a device is asked for. False with the error recorded. */
bool mix_cuda_set_target(const char *target);
/* Adds a line: how many programs are kept for it, and where. */
void mix_cuda_describe_target(mix_text *text);
/* The backend in force (mix_set_device). */
const mix_backend *mix_backend_current(void);
/* The backend of a device as it is given to mix_set_device; NULL: there is none. */
const mix_backend *mix_backend_named(const char *name);
/* Makes a backend known, which lives as long as the process, under its name. Call before other threads use
 * the library. False: no room. */
bool mix_backend_add(const mix_backend *backend);
/* The number of CPU threads that ran the latest plan of the calling thread, itself included. They wait for
 * the next plan and start in about a microsecond. Plans without parallel steps do not count. 1 before the
 * first plan. */
int mix_threads_awake(void);

/* ---- the backend of a context, asked about products (kernel_info.c) ---- */

/* The product (m, k) by (k, n). */
mix_product mix_product_of(mix_dtype dtype, int64_t m, int64_t n, int64_t k);
mix_kernel_info mix_kernel_info_of(const mix_context *context, const mix_product *product);
/* The same for a product of two large matrices of a dtype. */
mix_kernel_info mix_kernel_info_of_large(const mix_context *context, mix_dtype dtype);
/* The same for the product of a layer, (rows, inputs) by (inputs, units). If it is too small for the kernel
 * that sums as wanted, the answer is for a product that is just large enough, so that it shows the effect of
 * the settings. */
mix_kernel_info mix_kernel_info_of_layer(const mix_context *context, mix_dtype dtype, int64_t rows,
                                         int64_t inputs, int64_t units);
/* "gemm_f16_acc32_amx: three bfloat16 products on tiles for one". */
const char *mix_kernel_info_text(const mix_kernel_info *info, char *text, size_t size);
