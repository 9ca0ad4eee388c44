/* Rows of the kernel table: an engine and a storage dtype each, for single products and for batches. */
#include "backend/cpu/gemm/kernels.h"
#include "backend/cpu/gemm/kernel_rows.h"
#include "backend/cpu/gemm/product_list.h"
#include "base/alloc.h"
#include "base/error.h"
#include "ops/table.h"

/* What a step keeps. Where there are many products in a batch, threads share the products; else they share
 * each product. */
typedef struct prepared_gemm {
  mix_gemm_plan plan; /* of one product */
  bool share_batches;
  int64_t batches;
  mix_tile_program *epilogue;
  atomic_int finished;         /* threads that have finished */
  atomic_bool failed;          /* the finite test of one of them, with which the program ends */
  mix_gemm_stealing *stealing; /* NULL: no work stealing */
} prepared_gemm;

enum {
  SERIAL_OPERATIONS = 1 << 15,
  /* Products of more rows spend too little of their time on packing B for memory that holds it between runs.
   */
  KEPT_ROWS = 512,
};

/* The sums themselves show whether what is stored in 16 bits is finite: no program needs to run. */
bool mix_gemm_has_epilogue(const mix_kernel_args *args) {
  int tested, factor;
  return args->program && !mix_program_only_tests_product(args->program, &tested, &factor);
}

bool mix_gemm_keeps_b(const mix_kernel_args *args, int64_t rows) {
  return args->fixed >> 1 & 1 || (args->lasting >> 1 & 1 && rows <= KEPT_ROWS);
}

/* Does the product round float32 operands, of which there may be one, as it reads them? */
static bool rounds_operands(const mix_kernel_args *args) {
  return args->op == &mix_op_matmul_downcast &&
         ((const mix_matmul_attributes *)args->attributes)->round_operands;
}
static bool rounds_one(const mix_kernel_args *args) {
  return rounds_operands(args) && args->input_types[0].dtype != args->input_types[1].dtype;
}

static mix_gemm_problem problem_of(const mix_kernel_args *args) {
  const mix_matmul_attributes *attributes = args->attributes;
  const mix_shape *a = &args->input_types[0].shape, *b = &args->input_types[1].shape;
  const bool ta = attributes->transpose_a, tb = attributes->transpose_b;
  const int64_t *da = a->dims + a->rank - 2, *db = b->dims + b->rank - 2;
  mix_gemm_problem p = {.m = da[ta],
                        .n = db[!tb],
                        .k = da[!ta],
                        .transpose_a = ta,
                        .transpose_b = tb,
                        .precision = args->precision};
  p.lda = da[1], p.ldb = db[1], p.ldc = p.n;
  p.fixed_b = args->op != &mix_op_batch_matmul && mix_gemm_keeps_b(args, p.m);
  p.epilogue = mix_gemm_has_epilogue(args);
  p.rounded = args->op == &mix_op_matmul_downcast ? attributes->dtype : MIX_DTYPE_NONE;
  p.a_rounds = rounds_one(args) && args->input_types[0].dtype == MIX_FLOAT32;
  p.b_rounds = rounds_one(args) && !p.a_rounds;
  return p;
}

static const mix_gemm_storage *storage_of(const mix_gemm_engine *engine, const mix_kernel_args *args) {
  const mix_dtype rounded = ((const mix_matmul_attributes *)args->attributes)->dtype;
  if (rounds_one(args)) return mix_gemm_storage_of(engine, rounded);
  return rounds_operands(args) ? mix_gemm_rounding_storage_of(engine, rounded)
                               : mix_gemm_storage_of(engine, args->input_types[0].dtype);
}

/* Elements of the broadcast leading dimensions. */
static int64_t batches_of(const mix_kernel_args *args) {
  if (args->op != &mix_op_batch_matmul) return 1;
  const mix_shape *shape = &args->output_types[0].shape;
  int64_t count = 1;
  for (int d = 0; d < shape->rank - 2; d++) count *= shape->dims[d];
  return count;
}

static void make(const mix_gemm_engine *engine, const mix_kernel_args *args, int threads,
                 prepared_gemm *prepared) {
  const mix_gemm_problem problem = problem_of(args);
  const mix_gemm_storage *storage = storage_of(engine, args);
  prepared->batches = batches_of(args);
  prepared->share_batches =
      threads > 1 &&
      (prepared->batches % threads == 0 ? prepared->batches > 0 : prepared->batches >= 4 * threads);
  prepared->epilogue = NULL;
  prepared->stealing = NULL;
  atomic_init(&prepared->finished, 0);
  atomic_init(&prepared->failed, false);
  mix_gemm_make_plan(engine, storage, &problem, prepared->share_batches ? 1 : threads, &prepared->plan);
}

const char *mix_gemm_result_unsupported_reason(const mix_kernel_args *args, mix_dtype dtype) {
  if (!args->program) return args->output_types[0].dtype == dtype ? NULL : "result of another dtype";
  if (args->program->rank != 2) return "the epilogue is not over a matrix";
  if (args->program->reduction > MIX_REDUCE_ALL_FINITE || args->program->sum_count)
    return "the epilogue sums";
  return mix_tile_unsupported_reason(args->program);
}

const char *mix_matmul_unsupported_reason(const mix_gemm_engine *engine, const mix_kernel_args *args,
                                          mix_dtype dtype) {
  const mix_dtype stored = rounds_operands(args) ? MIX_FLOAT32 : dtype;
  for (int i = 0; i < MIX_CONTRACTED; i++)
    if (args->input_types[i].dtype != stored && !(rounds_one(args) && args->input_types[i].dtype == dtype))
      return "operands of another dtype";
  if (rounds_operands(args) && ((const mix_matmul_attributes *)args->attributes)->dtype != dtype)
    return "operands rounded to another dtype";
  if (storage_of(engine, args)->dtype == MIX_DTYPE_NONE ||
      (rounds_operands(args) && mix_gemm_rounding_storage_of(engine, dtype)->dtype == MIX_DTYPE_NONE))
    return "rounds no operands as it reads them";
  if (args->program && args->op == &mix_op_batch_matmul) return "a batch of products has no epilogue";
  const bool rounds = !args->program && args->op == &mix_op_matmul_downcast;
  const char *reason = rounds ? NULL : mix_gemm_result_unsupported_reason(args, dtype);
  if (reason) return reason;
  if (args->op == &mix_op_matmul_downcast &&
      mix_gemm_storage_of(engine, ((const mix_matmul_attributes *)args->attributes)->dtype)->dtype ==
          MIX_DTYPE_NONE)
    return "rounds to no such dtype";
  if (args->input_types[0].shape.rank < 2 || args->input_types[1].shape.rank < 2)
    return "operands of rank below 2";
  const mix_gemm_problem problem = problem_of(args);
  return mix_gemm_unsupported_reason(engine, dtype, &problem);
}

/* For `threads` threads: together, or each with a product of its own. */
static size_t workspace_of(const prepared_gemm *x, int threads) {
  const size_t shared = x->plan.workspace.shared, own = x->plan.workspace.thread;
  return x->share_batches ? (shared + own) * (size_t)threads : shared + own * (size_t)threads;
}

size_t mix_matmul_workspace(const mix_gemm_engine *engine, const mix_kernel_args *args, int threads) {
  prepared_gemm team, alone; /* a serial step runs on one thread of the team */
  make(engine, args, threads, &team);
  make(engine, args, 1, &alone);
  const size_t bytes = workspace_of(&team, threads), serial_bytes = workspace_of(&alone, 1);
  return bytes > serial_bytes ? bytes : serial_bytes;
}

int mix_matmul_barriers(const mix_gemm_engine *engine, const mix_kernel_args *args, int threads) {
  prepared_gemm x;
  make(engine, args, threads, &x);
  return x.plan.barriers && x.batches ? (x.plan.barriers + 1) * (int)x.batches - 1 : 0;
}

bool mix_matmul_serial(const mix_kernel_args *args) {
  const mix_gemm_problem p = problem_of(args);
  return (double)p.m * (double)p.n * (double)p.k * (double)batches_of(args) < SERIAL_OPERATIONS &&
         p.m * p.n < SERIAL_OPERATIONS / 8;
}

void mix_matmul_release(void *prepared) {
  mix_free(((prepared_gemm *)prepared)->epilogue);
  mix_free(((prepared_gemm *)prepared)->stealing);
  mix_free(prepared);
}

bool mix_matmul_prepare(const mix_gemm_engine *engine, mix_kernel_args *args, int threads) {
  prepared_gemm *prepared = mix_alloc(sizeof *prepared);
  if (!prepared) return false;
  make(engine, args, mix_matmul_serial(args) ? 1 : threads, prepared);
  const bool steal = prepared->plan.tiles.steal && prepared->batches == 1;
  if (args->program) prepared->epilogue = mix_tile_prepare(args->program);
  if (steal) prepared->stealing = mix_gemm_new_stealing(&prepared->plan);
  if ((args->program && !prepared->epilogue) || (steal && !prepared->stealing)) {
    mix_matmul_release(prepared);
    return false;
  }
  args->prepared = prepared;
  return true;
}

bool mix_matmul_same_order(const mix_gemm_engine *engine, const mix_kernel_args *x,
                           const mix_kernel_args *y) {
  prepared_gemm a, b;
  make(engine, x, 1, &a);
  make(engine, y, 1, &b);
  return a.plan.algorithm->sums_in_lanes == b.plan.algorithm->sums_in_lanes &&
         a.plan.compute_transposed == b.plan.compute_transposed && a.plan.kc == b.plan.kc;
}

int64_t mix_gemm_batch_offset(const mix_shape *operand, const mix_shape *result, int64_t index) {
  int64_t stride = operand->dims[operand->rank - 1] * operand->dims[operand->rank - 2], offset = 0;
  for (int d = result->rank - 3; d >= 0; d--) {
    const int64_t i = index % result->dims[d];
    index /= result->dims[d];
    const int own = d - (result->rank - operand->rank);
    if (own < 0 || operand->dims[own] == 1) continue;
    offset += i * stride;
    stride *= operand->dims[own];
  }
  return offset;
}

static mix_gemm_view view_of(const mix_kernel_args *args, int input, bool transposed) {
  const mix_type *type = &args->input_types[input];
  return (mix_gemm_view){.base = args->inputs[input],
                         .size = (int64_t)mix_dtype_size(type->dtype),
                         .stride = type->shape.dims[type->shape.rank - 1],
                         .transposed = transposed};
}

/* Results that are only stored and tested need no program, unless the factor prevents it: they are compared
 * with the smallest magnitude that rounds to infinity. */
void mix_gemm_test_sums(const mix_kernel_args *args, mix_gemm_operands *operands) {
  const mix_program *program = args->program;
  int tested, factor;
  if (!mix_program_only_tests_product(program, &tested, &factor)) return;
  const mix_dtype dtype = program->loads[tested].dtype;
  if (factor >= 0 &&
      !mix_tile_factor_keeps(dtype, *(const float *)args->inputs[program->loads[factor].input]))
    return;
  operands->epilogue = NULL;
  operands->c = args->outputs[program->stores[0].output];
  operands->limit = dtype == MIX_FLOAT16 ? 65520 : 0x1.ffp127f;
}

/* The thread that finishes last combines the finite tests and resets work stealing. */
static void finish(const mix_kernel_args *args, const mix_team *team, bool tests, bool finite) {
  prepared_gemm *prepared = args->prepared;
  if (!finite) atomic_store_explicit(&prepared->failed, true, memory_order_relaxed);
  if (!mix_team_last(team, &prepared->finished)) return;
  if (prepared->stealing) mix_gemm_reset_stealing(&prepared->plan, prepared->stealing);
  if (!tests) return;
  *(bool *)args->outputs[args->program->reduction_output] =
      !atomic_load_explicit(&prepared->failed, memory_order_relaxed);
  atomic_store_explicit(&prepared->failed, false, memory_order_relaxed);
}

void mix_matmul_run(const mix_kernel_args *args, const mix_team *team) {
  prepared_gemm *prepared = args->prepared;
  const mix_gemm_plan *plan = &prepared->plan;
  const mix_team *runners = prepared->share_batches ? &mix_team_alone : team;
  char *shared = (char *)args->workspace + (prepared->share_batches ? workspace_of(prepared, team->rank) : 0);
  char *own = shared + plan->workspace.shared + plan->workspace.thread * (size_t)runners->rank;
  const bool tests = args->program && args->program->reduction == MIX_REDUCE_ALL_FINITE;
  bool finite = true;
  const mix_matmul_attributes *attributes = args->attributes;
  mix_gemm_operands operands = {.a = view_of(args, 0, attributes->transpose_a),
                                .b = view_of(args, 1, attributes->transpose_b),
                                .kept = args->kept,
                                .epilogue = prepared->epilogue,
                                .args = args,
                                .finite = tests ? &finite : NULL,
                                .stealing = prepared->stealing};
  if (tests) mix_gemm_test_sums(args, &operands);
  if (!args->program) operands.c = args->outputs[0];
  int64_t begin = 0, end = prepared->batches;
  if (prepared->share_batches) mix_team_share(team, prepared->batches, 1, &begin, &end);
  const mix_gemm_view a = operands.a, b = operands.b;
  for (int64_t index = begin; index < end; index++) {
    if (plan->barriers && index > begin) mix_team_barrier(team);
    if (args->op == &mix_op_batch_matmul) {
      const mix_shape *result = &args->output_types[0].shape;
      operands.a.base = a.base + mix_gemm_batch_offset(&args->input_types[0].shape, result, index) * a.size;
      operands.b.base = b.base + mix_gemm_batch_offset(&args->input_types[1].shape, result, index) * b.size;
      operands.c = (char *)args->outputs[0] +
                   index * result->dims[result->rank - 1] * result->dims[result->rank - 2] * a.size;
    }
    if (plan->compute_transposed) {
      const mix_gemm_view left = operands.a;
      operands.a = mix_gemm_view_transposed(&operands.b), operands.b = mix_gemm_view_transposed(&left);
    }
    mix_gemm_run(plan, &operands, runners, shared, own);
    operands.a = a, operands.b = b;
  }
  if (tests || operands.stealing) finish(args, team, tests, finite);
}

/* ---- B packed before a loop, or once for many runs ---- */

size_t mix_matmul_kept(const mix_kernel_args *args) {
  const mix_gemm_plan *plan = &((const prepared_gemm *)args->prepared)->plan;
  return plan->algorithm->kept_bytes ? plan->algorithm->kept_bytes(plan) : 0;
}

/* Of patches: what decides which numbers of k lie in one line (lines/). */
int mix_gemm_set_layout(const mix_gemm_plan *plan, const mix_gemm_view *b, int64_t *layout) {
  const mix_gemm_problem *problem = &plan->problem;
  const mix_gemm_patches *p = problem->patches;
  int count = 0;
  layout[count++] = (int64_t)(intptr_t)plan->algorithm, layout[count++] = (int64_t)(intptr_t)plan->engine;
  layout[count++] = (int64_t)(intptr_t)plan->storage, layout[count++] = problem->b_rounds;
  layout[count++] = problem->n, layout[count++] = problem->k;
  layout[count++] = b->stride, layout[count++] = b->transposed;
  if (!p) return count;
  layout[count++] = p->channels, layout[count++] = p->pixel;
  for (int i = 1; i < MIX_GEMM_PATCH_AXES; i++) {
    layout[count++] = p->window[i], layout[count++] = p->window_step[i];
    layout[count++] = p->step[i], layout[count++] = p->origin[i];
  }
  return count;
}

static mix_gemm_view view_of_b(const mix_kernel_args *args) {
  return view_of(args, 1, ((const mix_matmul_attributes *)args->attributes)->transpose_b);
}

int mix_matmul_kept_operand(const mix_kernel_args *args, int64_t layout[MIX_KEPT_LAYOUT]) {
  const mix_gemm_view b = view_of_b(args);
  mix_gemm_set_layout(&((const prepared_gemm *)args->prepared)->plan, &b, layout);
  return 1;
}

void mix_matmul_begin(const mix_kernel_args *args, const mix_team *team) {
  const mix_gemm_plan *plan = &((const prepared_gemm *)args->prepared)->plan;
  const mix_gemm_view b = view_of_b(args);
  plan->algorithm->keep(plan, &b, team->rank, team->size, args->kept);
}

MIX_PRODUCTS(MIX_MATMUL_KERNEL)
const mix_kernel *const mix_cpu_matmul_kernels[] = {MIX_PRODUCTS(MIX_PRODUCT_ROW) NULL};
