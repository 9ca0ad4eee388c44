/* The loop of the host backends: the plan of one step, compiled as an executable of its own, runs once a step
 * inside the parallel region of the whole plan. Its arguments and results are bound to rows of the operands
 * and results of the loop, so that nothing is copied. The carry alternates between two buffers. */
#include "backend/host/executor.h"

#include "base/alloc.h"
#include "tensor/shape.h"
#include <string.h>

typedef struct loop {
  mix_executable *step;
  bool begun; /* before: all that its steps have in common stays the same in a loop around it, or in runs */
  size_t arena_bytes, carry_bytes; /* in the workspace: the arena, then each carry twice */
} loop;

static size_t type_bytes(const mix_type *type) { return mix_value_bytes(type->dtype, type->shape); }

static void release(void *prepared) {
  mix_host_destroy(((loop *)prepared)->step);
  mix_free(prepared);
}

/* Are all operands that its steps have in common the same in all steps of a loop around it, or in many runs?
 */
static bool has_fixed_operands(const mix_kernel_args *args) {
  const mix_scan_attributes *attributes = args->attributes;
  for (int i = attributes->carries + attributes->inputs; i < args->input_count; i++)
    if (i >= 32 || !((args->fixed | args->lasting) >> i & 1)) return false;
  return args->fixed | args->lasting;
}

static bool prepare(mix_kernel_args *args, int threads) {
  const mix_scan_attributes *attributes = args->attributes;
  loop *made = mix_calloc(1, sizeof *made);
  if (!made) return false;
  made->step = mix_host_compile(args->body, threads, args->precision, args->tables, args->flush_subnormals);
  if (!made->step) return mix_free(made), false;
  made->begun = made->step->kept_bytes && has_fixed_operands(args);
  made->arena_bytes = mix_buffer_aligned(args->body->arena_bytes);
  for (int i = 0; i < attributes->carries; i++)
    made->carry_bytes += mix_buffer_aligned(type_bytes(&args->output_types[i]));
  args->prepared = made;
  return true;
}

static size_t workspace(const mix_kernel_args *args, int threads) {
  const loop *made = args->prepared;
  return made->arena_bytes + 2 * made->carry_bytes;
}

static bool serial(const mix_kernel_args *args) {
  const mix_executable *step = ((const loop *)args->prepared)->step;
  return step->threads == 1 || !step->parallel;
}

static int barriers(const mix_kernel_args *args, int threads) {
  const mix_scan_attributes *attributes = args->attributes;
  const int64_t most = 1 << 20, steps = attributes->steps < most ? attributes->steps : most;
  const mix_executable *step = ((const loop *)args->prepared)->step;
  const int64_t count = steps * (2 + (int64_t)step->barriers) +
                        2 * (step->kept_bytes > 0 && !((const loop *)args->prepared)->begun);
  return threads < 2 ? 0 : (int)(count < most << 8 ? count : most << 8);
}

/* Value errors of a step are those of the loop. */
static void share_error(const mix_kernel_args *args, mix_executable *step) {
  for (int i = 0; i < step->plan->step_count; i++) step->steps[i].args.error = args->error;
}

/* Row `row` of an operand or a result. */
static char *row_of(const void *stacked, const mix_type *type, int64_t row, int64_t steps) {
  return (char *)stacked + (steps ? type_bytes(type) / (size_t)steps : 0) * (size_t)row;
}

/* Where carry `i`, at `offset` of the carries, is before step `s`. */
static void *carry_at(const mix_kernel_args *args, const loop *made, int i, size_t offset, int64_t s) {
  const int64_t steps = ((const mix_scan_attributes *)args->attributes)->steps;
  if (s == 0) return (void *)args->inputs[i];
  if (s == steps) return args->outputs[i];
  return (char *)args->workspace + made->arena_bytes + (size_t)(s % 2) * made->carry_bytes + offset;
}

static void bind_step(const mix_kernel_args *args, const loop *made, int64_t s) {
  const mix_scan_attributes *a = args->attributes;
  const int64_t row = a->reverse ? a->steps - 1 - s : s;
  const int results = args->input_count;
  size_t offset = 0;
  for (int i = 0; i < a->carries; i++) {
    mix_host_bind(made->step, i, carry_at(args, made, i, offset, s));
    mix_host_bind(made->step, results + i, carry_at(args, made, i, offset, s + 1));
    offset += mix_buffer_aligned(type_bytes(&args->output_types[i]));
  }
  for (int i = a->carries; i < a->carries + a->inputs; i++)
    mix_host_bind(made->step, i, row_of(args->inputs[i], &args->input_types[i], row, a->steps));
  for (int i = a->carries; i < args->output_count; i++)
    mix_host_bind(made->step, results + i, row_of(args->outputs[i], &args->output_types[i], row, a->steps));
}

/* What stays the same in all steps. */
static void bind_fixed(const mix_kernel_args *args, const loop *made) {
  const mix_scan_attributes *a = args->attributes;
  for (int i = a->carries + a->inputs; i < args->input_count; i++)
    mix_host_bind(made->step, i, (void *)args->inputs[i]);
  mix_host_bind(made->step, args->input_count + args->output_count, args->workspace);
  share_error(args, made->step);
}

/* What it keeps is in its own executable: the least that is not nothing. */
static size_t kept(const mix_kernel_args *args) { return ((const loop *)args->prepared)->begun; }

/* By one thread, because the others would have to wait until the addresses are bound. */
static void begin(const mix_kernel_args *args, const mix_team *team) {
  const loop *made = args->prepared;
  if (team->rank) return;
  bind_fixed(args, made);
  for (int rank = 0; rank < team->size; rank++)
    mix_host_begin_steps(made->step, &(mix_team){.rank = rank, .size = team->size});
}

static void run(const mix_kernel_args *args, const mix_team *team) {
  const mix_scan_attributes *a = args->attributes;
  const loop *made = args->prepared;
  if (!team->rank) {
    bind_fixed(args, made);
    for (int i = 0; i < a->carries && !a->steps; i++)
      memcpy(args->outputs[i], args->inputs[i], type_bytes(&args->output_types[i]));
  }
  if (made->step->kept_bytes && !made->begun) {
    if (team->size > 1) mix_team_barrier(team);
    mix_host_begin_steps(made->step, team);
    if (team->size > 1) mix_team_barrier(team);
  }
  for (int64_t s = 0; s < a->steps; s++) {
    if (!team->rank) bind_step(args, made, s);
    if (team->size > 1) mix_team_barrier(team);
    mix_host_run_steps(made->step, team);
    if (team->size > 1) mix_team_barrier(team);
  }
}

const mix_kernel mix_host_scan = {.name = "scan",
                                  .run = run,
                                  .prepare = prepare,
                                  .release = release,
                                  .workspace = workspace,
                                  .kept = kept,
                                  .begin = begin,
                                  .serial = serial,
                                  .barriers = barriers};
