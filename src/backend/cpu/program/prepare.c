/* Prepares element-wise programs for the tile executor: classifies the loads, finds the uniform values, which
 * are computed once, and drops conversions that change nothing. */
#include "backend/cpu/program/prepare_steps.h"
#include "base/alloc.h"
#include "base/error.h"
#include <limits.h>
#include <string.h>

static const char *program_unsupported_reason(const mix_program *program) {
  if (program->load_count + program->instruction_count + program->store_count + program->sum_count + 1 >
      MIX_TILE_REGISTERS)
    return "more registers than the tile executor holds";
  if (program->store_count > MIX_TILE_STORES) return "more stores than the tile executor holds";
  for (int i = 0; i < program->instruction_count; i++) {
    const mix_instruction *instruction = &program->instructions[i];
    const mix_dtype dtype = mix_tile_operand_dtype(program, instruction);
    const mix_tile_class class = mix_tile_class_of(dtype);
    if (instruction->opcode == MIX_OPCODE_CAST) continue;
    if (mix_tile_instruction_of(&mix_vector_generic, instruction->opcode, class)) continue;
    return class == MIX_TILE_INTEGER ? "integer division and power can fail"
                                     : "an instruction has no meaning for its dtype";
  }
  return NULL;
}

/* ---- the iteration space ---- */

/* Drops dimensions of 1 and merges adjacent dimensions where every load allows it. */
static void merge_dimensions(mix_tile_program *p) {
  const mix_program *program = p->program;
  int rank = 0;
  for (int i = 0; i < program->load_count; i++) memset(p->loads[i].strides, 0, sizeof p->loads[i].strides);
  p->count = 1;
  for (int d = 0; d < program->rank; d++) {
    p->count *= program->dims[d];
    if (program->dims[d] == 1) continue;
    bool merges = rank > 0;
    for (int i = 0; i < program->load_count && merges; i++)
      if (program->loads[i].input != MIX_FROM_ACCUMULATOR)
        merges = p->loads[i].strides[rank - 1] == program->loads[i].strides[d] * program->dims[d];
    if (!merges) p->dims[rank++] = 1;
    p->dims[rank - 1] *= program->dims[d];
    for (int i = 0; i < program->load_count; i++)
      p->loads[i].strides[rank - 1] = program->loads[i].strides[d];
  }
  if (rank == 0) p->dims[rank++] = 1;
  p->rank = rank;
  p->inner = p->dims[rank - 1];
  p->rows = p->inner ? p->count / p->inner : 0;
}

static mix_tile_access access_of(const mix_tile_program *p, const mix_tile_load *load) {
  if (load->input == MIX_FROM_ACCUMULATOR) return MIX_TILE_ACCUMULATOR;
  bool uniform = true, contiguous = true, periodic = p->rank > 1 && load->strides[p->rank - 1] != 0;
  int64_t stride = 1;
  for (int d = p->rank - 1; d >= 0; stride *= p->dims[d--]) {
    if (load->strides[d] != 0) uniform = false;
    if (load->strides[d] != stride) contiguous = false;
    if (d < p->rank - 1 && load->strides[d] != 0) periodic = false;
  }
  if (uniform || p->count == 1) return MIX_TILE_UNIFORM;
  return contiguous ? MIX_TILE_CONTIGUOUS : periodic ? MIX_TILE_PERIODIC : MIX_TILE_GENERAL;
}

/* ---- the analysis of the registers ---- */

static void find_uses(mix_tile_plan *plan) {
  const mix_program *program = plan->p->program;
  for (int r = 0; r < plan->count; r++) {
    plan->only_stored[r] = true;
    plan->same[r] = r;
    plan->slot[r] = -1;
    plan->held_as[r] = mix_program_register_dtype(program, r);
  }
  for (int i = 0; i < program->store_count; i++) plan->used[program->stores[i].reg] = true;
  if (program->reduction != MIX_REDUCE_NOTHING) {
    plan->used[program->reduced] = true;
    plan->only_stored[program->reduced] = false;
  }
  for (int i = 0; i < program->sum_count; i++) {
    plan->used[program->sums[i].reg] = true;
    plan->only_stored[program->sums[i].reg] = false;
  }
  for (int i = program->instruction_count - 1; i >= 0; i--) {
    const mix_instruction *instruction = &program->instructions[i];
    if (!plan->used[program->load_count + i]) continue;
    for (int k = 0; k < mix_opcode_operands(instruction->opcode); k++) {
      plan->used[instruction->operands[k]] = true;
      plan->only_stored[instruction->operands[k]] = false;
    }
  }
}

/* Small integers that are only cast to floating dtypes of at most 32 bits are loaded as float, which is exact
 * for them. */
static void choose_loads(mix_tile_plan *plan) {
  mix_tile_program *p = plan->p;
  const mix_program *program = p->program;
  for (int l = 0; l < program->load_count; l++) {
    mix_tile_load *load = &p->loads[l];
    const mix_dtype dtype = program->loads[l].dtype;
    load->input = program->loads[l].input;
    load->reg = l;
    load->used = plan->used[l];
    load->access = access_of(p, load);
    bool as_float = p->vector->load_as_float[dtype] != NULL && !plan->only_stored[l];
    for (int i = 0; i < program->instruction_count && as_float; i++)
      for (int k = 0; k < mix_opcode_operands(program->instructions[i].opcode); k++)
        if (program->instructions[i].operands[k] == l)
          as_float = as_float && program->instructions[i].opcode == MIX_OPCODE_CAST &&
                     mix_tile_class_of(program->instructions[i].dtype) == MIX_TILE_FLOAT;
    for (int i = 0; i < program->store_count; i++) as_float = as_float && program->stores[i].reg != l;
    as_float = as_float && !(program->reduction != MIX_REDUCE_NOTHING && program->reduced == l);
    for (int i = 0; i < program->sum_count; i++) as_float = as_float && program->sums[i].reg != l;
    load->load = as_float ? p->vector->load_as_float[dtype] : mix_tile_load_of(p->vector, dtype);
    if (as_float) plan->held_as[l] = MIX_FLOAT32;
    load->element = mix_dtype_size(dtype);
    load->offset = program->loads[l].offset * (int64_t)load->element;
    load->held = mix_tile_class_size(mix_tile_held_class(plan, l));
    load->direct = !as_float && (dtype == MIX_FLOAT32 || dtype == MIX_FLOAT64 || dtype == MIX_INT64);
    if (load->access == MIX_TILE_ACCUMULATOR) {
      /* The raw result of a product is float, or double if the product is float64. */
      load->element = dtype == MIX_FLOAT64 ? 8 : 4;
      load->load = mix_tile_load_of(p->vector, dtype == MIX_FLOAT64 ? MIX_FLOAT64 : MIX_FLOAT32);
      load->round = mix_tile_round_of(p->vector, dtype);
      load->direct = !load->round;
      p->accumulator_element = (int)load->element;
    }
    plan->uniform[l] = load->access == MIX_TILE_UNIFORM;
  }
}

static void find_last_uses(mix_tile_plan *plan) {
  const mix_program *program = plan->p->program;
  for (int i = 0; i < program->instruction_count; i++) {
    const mix_instruction *instruction = &program->instructions[i];
    const int reg = program->load_count + i;
    if (!plan->used[reg]) continue;
    bool uniform = !mix_opcode_draws(instruction->opcode) &&
                   (plan->p->count < 8 || !mix_tile_has_tail(plan, reg)); /* below 8 elements all are tail */
    for (int k = 0; k < mix_opcode_operands(instruction->opcode); k++) {
      uniform = uniform && plan->uniform[instruction->operands[k]];
      plan->last[plan->same[instruction->operands[k]]] = i;
    }
    plan->uniform[reg] = uniform;
    plan->last[reg] = i;
    if (mix_tile_choose(plan, i).same) plan->same[reg] = plan->same[instruction->operands[0]];
  }
  for (int i = 0; i < program->store_count; i++) plan->last[plan->same[program->stores[i].reg]] = INT_MAX;
  if (program->reduction != MIX_REDUCE_NOTHING) plan->last[plan->same[program->reduced]] = INT_MAX;
  for (int i = 0; i < program->sum_count; i++) plan->last[plan->same[program->sums[i].reg]] = INT_MAX;
}

/* Finds programs that only test whether a 16-bit gradient, unscaled, is finite: they need no arithmetic
 * (mix_tile_run). */
static void find_finite_test(mix_tile_program *p) {
  const bool only = !p->store_count && mix_program_only_tests(p->program, &p->tested, &p->factor);
  if (!only || p->loads[p->tested].access != MIX_TILE_CONTIGUOUS) p->tested = -1;
}

/* Finds the epilogue that most layers have (biased_rows). */
static void find_bias(mix_tile_program *p) {
  const mix_program *x = p->program;
  p->bias = -1;
  if (x->rank != 2 || x->load_count != 2 || x->store_count != 1 || x->sum_count ||
      x->reduction != MIX_REDUCE_NOTHING || x->instruction_count < 1 || x->instruction_count > 2)
    return;
  const int bias = x->loads[0].input == MIX_FROM_ACCUMULATOR, last = 1 + x->instruction_count;
  const mix_program_load *sum = &x->loads[!bias], *load = &x->loads[bias];
  const mix_instruction *add = &x->instructions[0], *relu = last > 2 ? &x->instructions[1] : NULL;
  const mix_dtype dtype = sum->dtype;
  if (!p->vector->biased_rows[dtype] || load->dtype != dtype || add->dtype != dtype) return;
  if (sum->input != MIX_FROM_ACCUMULATOR || load->input == MIX_FROM_ACCUMULATOR || load->offset ||
      load->strides[0] || load->strides[1] != 1)
    return;
  if (add->opcode != MIX_OPCODE_ADD || add->operands[0] + add->operands[1] != 1) return;
  if (relu && (relu->opcode != MIX_OPCODE_RELU || relu->dtype != dtype || relu->operands[0] != 2)) return;
  if (x->stores[0].reg == last) p->bias = bias, p->relu = relu != NULL;
}

/* NULL with *reason set, or, if out of memory, with *reason NULL and the error recorded. */
static mix_tile_program *build(const mix_program *program, const mix_vector *vector, const char **reason) {
  *reason = program_unsupported_reason(program);
  if (*reason) return NULL;
  const size_t steps = (size_t)(2 * program->instruction_count + program->load_count + program->store_count +
                                program->sum_count + 1);
  mix_tile_program *p = mix_calloc(1, sizeof *p + (size_t)program->load_count * sizeof *p->loads +
                                          2 * steps * sizeof *p->body + sizeof *p->come);
  mix_tile_plan *plan = mix_calloc(1, sizeof *plan);
  if (!p || !plan) {
    mix_free(p);
    mix_free(plan);
    return NULL;
  }
  p->vector = vector;
  p->program = program;
  p->load_count = program->load_count;
  p->register_count = program->load_count + program->instruction_count;
  p->loads = (mix_tile_load *)(p + 1);
  p->preamble = (mix_tile_step *)(p->loads + program->load_count);
  p->body = p->preamble + steps;
  p->come = (atomic_int *)(p->body + steps);
  plan->p = p;
  plan->count = p->register_count;
  merge_dimensions(p);
  find_uses(plan);
  choose_loads(plan);
  find_last_uses(plan);
  mix_tile_fuse_instructions(plan);
  mix_tile_add_steps(plan);
  find_finite_test(p);
  find_bias(p);
  mix_tile_find_normalization(p);
  mix_tile_find_chains(p);
  p->flat = true;
  for (int l = 0; l < p->load_count; l++)
    if (p->loads[l].used &&
        (p->loads[l].access == MIX_TILE_PERIODIC || p->loads[l].access == MIX_TILE_GENERAL))
      p->flat = false;
  p->streams = p->count >= 262144;
  if (p->flat) {
    p->inner = p->count;
    p->rows = 1;
  }
  for (int i = 0; i < p->preamble_count; i++)
    p->preamble[i].held = (int)mix_tile_class_size(mix_tile_held_class(plan, p->preamble[i].result));
  if (!mix_tile_place(plan)) *reason = "the values of the program do not fit into the tile memory";
  mix_free(plan);
  if (!*reason) return p;
  mix_free(p);
  return NULL;
}

const char *mix_tile_unsupported_reason(const mix_program *program) {
  const char *reason = program_unsupported_reason(program);
  /* This many values always fit, in the smallest tiles: 64 elements of 8 bytes. */
  const int always = MIX_TILE_MEMORY / (64 * 8 + MIX_TILE_PADDING);
  if (reason || program->load_count + program->instruction_count + program->store_count < always)
    return reason;
  mix_free(build(program, &mix_vector_generic, &reason));
  return reason;
}

mix_tile_program *mix_tile_prepare_for(const mix_program *program, const mix_vector *vector) {
  const char *reason;
  mix_tile_program *p = build(program, vector, &reason);
  if (!p && reason) mix_fail_unsupported("fused: %s", reason);
  return p;
}

mix_tile_program *mix_tile_prepare(const mix_program *program) {
  return mix_tile_prepare_for(program, mix_vector_current());
}
