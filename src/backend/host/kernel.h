/* Kernels of the host backends, and the team of threads that runs them. An op has a list of kernels, best
 * first, the reference kernel last. The first kernel that accepts a step runs it. The kernel
 * is called for each thread of the team, on it or on another that does its share; a kernel uses no OpenMP. */
#pragma once

#include "backend/backend.h"
#include "base/processor.h"

/* The threads that a plan is cut for: always as many as its kernels were prepared for. A parallel kernel is
 * called once for each rank, in any order and on any thread (base/crew.h); only if it has `barriers` do all
 * ranks run at the same time. A serial kernel is called for rank 0 with a team of one. */
typedef struct mix_team {
  int rank, size;
  struct mix_barrier *barrier;
} mix_team;
static const mix_team mix_team_alone = {.rank = 0, .size = 1}; /* of serial steps */
/* Waits for the whole team. Only kernels with `barriers` > 0 may call it, and every thread calls it
 * exactly that often. */
void mix_team_barrier(const mix_team *team);
/* True for the last thread of the team to arrive, which sees everything that the others wrote before they
 * arrived. So a result to which all threads contribute needs no barrier. `arrived` is 0 before and after. */
static inline bool mix_team_last(const mix_team *team, atomic_int *arrived) {
  if (atomic_fetch_add_explicit(arrived, 1, memory_order_acq_rel) + 1 < team->size) return false;
  atomic_store_explicit(arrived, 0, memory_order_relaxed);
  return true;
}
/* This thread's share [*begin, *end) of `count` units of work, in blocks of `grain`. All kernels share
 * work this way, so element-wise steps over the same space access the same elements on the same thread. If
 * the blocks do not divide evenly, the last threads get one more: thread 0 also runs the serial steps, and
 * the last block may be short. */
static inline void mix_team_share(const mix_team *team, int64_t count, int64_t grain, int64_t *begin,
                                  int64_t *end) {
  int64_t blocks = (count + grain - 1) / grain, each = blocks / team->size;
  int64_t few = team->size - blocks % team->size; /* threads that get `each` blocks; others get one more */
  int64_t first = each * team->rank + (team->rank > few ? team->rank - few : 0);
  int64_t number = each + (team->rank >= few);
  *begin = first * grain < count ? first * grain : count;
  *end = (first + number) * grain < count ? (first + number) * grain : count;
}

/* Columns of at most so many elements are one chain of additions, which threads share by columns alone. */
enum { MIX_ONE_CHAIN = 1024 };

/* What is wrong with an element of an operand. The texts are static. */
typedef struct mix_bad_value {
  const char *what;   /* "label"; the whole reason if `range` is NULL */
  const char *range;  /* "the classes", which are [0, limit) */
  const char *remedy; /* or NULL */
  int64_t element, value, limit;
} mix_bad_value;
/* The error word of a step. */
typedef struct mix_value_error {
  atomic_bool met;
  atomic_flag busy;
  mix_bad_value first; /* of the lowest element; valid if `met`, and after the kernel has ended */
} mix_value_error;

/* The description of a step for its kernel, and its operands. Types are set once, addresses before each
 * run. */
typedef struct mix_kernel_args {
  const mix_op *op;
  const void *attributes;
  const mix_program *program;
  /* Of a loop: the plan of one step, and what it is compiled with. */
  const mix_plan *body;
  const struct mix_kernel_row *const *tables;
  bool flush_subnormals;
  void *prepared; /* the result of `prepare` */
  mix_matmul_precision precision;
  struct mix_communicator *communicator; /* of collectives; NULL: one process */
  int input_count, output_count;
  const mix_type *input_types, *output_types;
  const void **inputs; /* addresses */
  void **outputs;
  void *workspace; /* shared by the team, 64-byte aligned; contents undefined */
  /* fixed: bit i is set if operand i is the same in all steps of a loop; lasting: if it is the same in all
   * runs between changes of its variable. kept: what `begin` of the kernel made of these. */
  unsigned fixed, lasting;
  void *kept;
  mix_value_error *error;
} mix_kernel_args;

/* For a kernel that meets a bad value, which then continues safely. Of several the one of the lowest element
 * is kept, whichever thread met it. `reason` and `axis` are static. */
void mix_kernel_fail(const mix_kernel_args *args, const char *reason);
void mix_kernel_fail_label(const mix_kernel_args *args, int64_t element, int64_t label, int64_t classes);
void mix_kernel_fail_index(const mix_kernel_args *args, int64_t element, int64_t index, const char *axis,
                           int64_t length);
/* The message: op, layer, what is wrong, operands. */
void mix_value_error_text(const mix_kernel_args *args, const char *scope, char *text, size_t size);
/* The types of the operands, for messages; `text`. */
const char *mix_kernel_operands_text(const mix_kernel_args *args, char *text, size_t size);

/* Rows [begin, end) of the `rows` that a step is cut into (host/bands.c). */
typedef struct mix_band {
  int64_t rows, begin, end;
  uint64_t reread; /* bit i is set if later steps of the band read output i: it belongs into the caches */
} mix_band;
/* What a step in bands accesses. Every other operand and result has a multiple of `rows` elements, of which a
 * band accesses exactly those of its own rows. */
typedef struct mix_band_access {
  uint64_t whole_inputs; /* bit i is set if each band reads all of operand i */
  uint64_t late_outputs; /* bit i is set if end_bands writes output i */
} mix_band_access;

enum { MIX_KEPT_LAYOUT = 24 };

typedef struct mix_kernel {
  const char *name; /* storage and accumulation in it: "gemm_f16_acc32_avx512" */
  uint32_t needs;   /* mix_cpu_feature bits */
  /* NULL: the kernel accepts; else the reason why not (static text, printed under
   * MIXTAPE_VERBOSE=dispatch). */
  const char *(*unsupported_reason)(const mix_kernel_args *args);
  void (*run)(const mix_kernel_args *args, const mix_team *team);
  size_t (*workspace)(const mix_kernel_args *args, int threads); /* bytes; NULL: none */
  /* Called once, while the plan is compiled. Sets args->prepared, which is freed with mix_free unless
   * there is a `release`. False with the error recorded. NULL: nothing to prepare. */
  bool (*prepare)(mix_kernel_args *args, int threads);
  void (*release)(void *prepared);
  /* Bytes of args->kept, 64-byte aligned, which `begin` fills before the first step of a loop, and before a
   * run after a change of what lasts; called as `run` is but without barriers. 0, or a NULL function: nothing
   * is kept. */
  size_t (*kept)(const mix_kernel_args *args);
  void (*begin)(const mix_kernel_args *args, const mix_team *team);
  /* The one operand that `begin` reads, and numbers (zeros before) that decide what it makes of it: steps of
   * one operand with equal numbers may share that. -1, or a NULL function: it reads several. */
  int (*kept_operand)(const mix_kernel_args *args, int64_t layout[MIX_KEPT_LAYOUT]);
  /* True: runs on thread 0 alone, because the work is small. NULL: runs on the whole team. */
  bool (*serial)(const mix_kernel_args *args);
  /* Calls of mix_team_barrier in a run; NULL: none. */
  int (*barriers)(const mix_kernel_args *args, int threads);
  /* Sets count and grain and returns true if thread r accesses exactly its mix_team_share(count, grain) of
   * every operand and result that has `count` elements and is accessed in its own order. Steps with the
   * same share need no barrier between them for such values. NULL: unknown. */
  bool (*share)(const mix_kernel_args *args, int64_t *count, int64_t *grain);
  /* Can the step run some of `rows` at a time, with the same bits? Sets *access. NULL: no. */
  bool (*bands)(const mix_kernel_args *args, int threads, int64_t rows, mix_band_access *access);
  void (*run_band)(const mix_kernel_args *args, const mix_band *band);
  /* Do sums of columns divide the rows among the threads? Sets this thread's. NULL: no. */
  bool (*band_share)(const mix_kernel_args *args, const mix_team *team, int64_t *begin, int64_t *end);
  /* After all bands of all steps, with `barriers`, if there are late outputs. */
  void (*end_bands)(const mix_kernel_args *args, const mix_team *team);
  /* Products: do x and y, the same matrices stored in two ways, sum in the same order? NULL: yes. */
  bool (*same_order)(const mix_kernel_args *x, const mix_kernel_args *y);
  /* Products of 16-bit matrices: the kernel of matmul_downcast that gives the same bits on operands upcast
   * to float32. NULL: none. */
  const struct mix_kernel *widened;
  /* Products, for mix_kernel_info: dtype of the operands, how they are summed, and what the kernel does
   * (static text). */
  mix_dtype operands;
  mix_accumulation accumulation;
  const char *description;
} mix_kernel;

/* The kernels of an op, best first. */
typedef struct mix_kernel_row {
  const mix_op *op;
  const mix_kernel *const *kernels; /* ended by NULL */
} mix_kernel_row;

/* Tables, ended by a row whose op is NULL: backend/cpu/table.c and backend/ref/table.c. The CPU's rows
 * fall back on ref's. */
extern const mix_kernel_row mix_cpu_kernels[], mix_ref_kernels[];
/* The kernel of loops of all host backends: runs the plan of a step again and again (host/scan.c). */
extern const mix_kernel mix_host_scan;
/* The kernels of collectives of all host backends: they call the communicator (host/collective.c). */
extern const mix_kernel mix_host_all_reduce_start, mix_host_all_reduce_done, mix_host_broadcast,
    mix_host_all_gather, mix_host_reduce_scatter_start, mix_host_reduce_scatter_done, mix_host_collect_shares;
