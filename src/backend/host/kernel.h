/* Kernels of the host backends: rows of ordered tables, best first, the reference last; the first that accepts wins. A kernel runs
 * inside the plan's one parallel region, called by every thread of the team, without any OpenMP of its own. */
#ifndef MIX_BACKEND_HOST_KERNEL_H
#define MIX_BACKEND_HOST_KERNEL_H

#include "backend/backend.h"
#include "base/processor.h"
#include <stdatomic.h>

/* The threads that run a plan: always as many as its kernels were prepared for. A kernel with `serial` false is called once by each,
 * with its own rank; a serial one by thread 0, with a team of one. */
typedef struct mix_team {
  int rank, size;
  struct mix_barrier *barrier;
} mix_team;
/* Waits for the whole team. Only kernels that say `barriers` > 0 may call it, exactly that often on every thread. */
void mix_team_barrier(const mix_team *team);
/* True for the thread of the team that comes last, which sees what the others wrote before they came: results that all have a part in,
 * without a barrier. `come` is 0 before and after. */
static inline bool mix_team_last(const mix_team *team, atomic_int *come) {
  if (atomic_fetch_add_explicit(come, 1, memory_order_acq_rel) + 1 < team->size) return false;
  atomic_store_explicit(come, 0, memory_order_relaxed);
  return true;
}
/* The share [*begin, *end) of `count` units of work for this thread, in blocks of `grain`; the same for every kernel, so that element-wise
 * steps over the same space touch the same elements on the same thread. Where blocks do not come out even, the last threads have one
 * more: thread 0 has the serial steps, and the last block may be short. */
static inline void mix_team_share(const mix_team *team, int64_t count, int64_t grain, int64_t *begin, int64_t *end) {
  int64_t blocks = (count + grain - 1) / grain, each = blocks / team->size, few = team->size - blocks % team->size;
  int64_t first = each * team->rank + (team->rank > few ? team->rank - few : 0), number = each + (team->rank >= few);
  *begin = first * grain < count ? first * grain : count;
  *end = (first + number) * grain < count ? (first + number) * grain : count;
}

/* What a kernel is asked about, and what it runs on. Types are set once; addresses before each run. */
typedef struct mix_kernel_args {
  const mix_op *op;
  const void *attributes;
  const mix_program *program;
  void *prepared;                  /* what `prepare` returned */
  int input_count, output_count;
  const mix_type *input_types, *output_types;
  const void **inputs;             /* addresses */
  void **outputs;
  void *workspace;                 /* shared by the team, 64-byte aligned; contents undefined */
  _Atomic(const char *) *failure;  /* a kernel that meets a bad value stores a static text here, once, and carries on safely */
} mix_kernel_args;

typedef struct mix_kernel {
  const char *name;     /* storage and accumulation in it: "gemm_f16_acc32_avx512" */
  uint32_t needs;       /* mix_cpu_feature bits */
  /* NULL: accepts; else why not (static text, printed under MIXTAPE_VERBOSE=dispatch). */
  const char *(*unsupported_reason)(const mix_kernel_args *args);
  void (*run)(const mix_kernel_args *args, const mix_team *team);
  size_t (*workspace)(const mix_kernel_args *args, int threads); /* NULL: none */
  bool (*prepare)(mix_kernel_args *args, int threads);           /* once, while the plan is compiled; sets args->prepared (freed with mix_free
                                                                  * unless `release`); false with the error recorded. NULL: nothing to do */
  void (*release)(void *prepared);
  bool (*serial)(const mix_kernel_args *args); /* NULL: runs on the whole team; true: on thread 0 alone (small work) */
  int (*barriers)(const mix_kernel_args *args, int threads); /* mix_team_barrier calls in a run; NULL: none */
  /* True, with count and grain, if thread r reads and writes, of every operand and result that has `count` elements and that it takes
   * in their own order, exactly those of mix_team_share(count, grain): steps that agree need no barrier between them for such
   * values. NULL: unknown. */
  bool (*share)(const mix_kernel_args *args, int64_t *count, int64_t *grain);
  /* Of products: are the sums of both, the same matrices stored in two ways, in the same order? NULL: they are. */
  bool (*same_order)(const mix_kernel_args *x, const mix_kernel_args *y);
  /* Of products of 16-bit matrices: the kernel of matmul_downcast that gives the same bits, on numbers that are widened already. NULL: none. */
  const struct mix_kernel *widened;
  /* Of products, for those who ask which kernel serves and why: the dtype of the operands, how they are summed, and what the kernel
   * description (static text). */
  mix_dtype operands;
  mix_accumulation accumulation;
  const char *description;
} mix_kernel;

/* An op's kernels, best first. */
typedef struct mix_kernel_row {
  const mix_op *op;
  const mix_kernel *const *kernels; /* ended by NULL */
} mix_kernel_row;

/* Tables, ended by a row whose op is NULL: backend/cpu/table.c and backend/ref/table.c. The CPU's rows fall back on ref's. */
extern const mix_kernel_row mix_cpu_kernels[], mix_ref_kernels[];

#endif
