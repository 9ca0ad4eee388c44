/* Emits the steps of a prepared program. A linear scan over last uses assigns registers to tiles; then the
 * tiles get their places in the thread's memory. */
#include "backend/cpu/program/prepare_steps.h"
#include <limits.h>

/* The cost of an instruction on one element, in simple instructions (ops/list.h). Tiles of other types than
 * float take the C library's functions. */
static int cost_of(mix_opcode opcode, mix_tile_class class) {
  enum { SIMPLE = 1, LIBRARY = 100 };
  static const int costs[MIX_OPCODE_COUNT] = {
#define COST(name, code, operands, kind, cost) [MIX_OPCODE_##code] = cost,
      MIX_ELEMENTWISE_OPS(COST)};
  if (class == MIX_TILE_FLOAT) return costs[opcode];
  return costs[opcode] == SIMPLE ? 4 : LIBRARY;
}

static int allocate_slot(mix_tile_plan *plan) {
  for (int s = 0; s < plan->slots; s++)
    if (plan->slot_free[s]) {
      plan->slot_free[s] = false;
      return s;
    }
  return plan->slots++;
}

/* Makes sure that an operand has its tile or uniform value. An instruction has one already; a load is emitted
 * here, before its first use. */
static void ensure_slot(mix_tile_plan *plan, int reg) {
  mix_tile_program *p = plan->p;
  reg = plan->same[reg];
  if (plan->slot[reg] >= 0) return;
  if (plan->uniform[reg]) {
    plan->slot[reg] = plan->uniforms++;
    p->preamble[p->preamble_count++] = (mix_tile_step){.result = reg, .load = reg};
    return;
  }
  /* A periodic load may be filled once for all tiles, so no other value may use its tile, before or after. */
  plan->slot[reg] = p->loads[reg].access == MIX_TILE_PERIODIC ? plan->slots++ : allocate_slot(plan);
  p->body[p->body_count++] = (mix_tile_step){.result = reg, .load = reg};
}

/* Releases the tile of an operand if instruction i is the last that reads it. */
static void release_after_last_use(mix_tile_plan *plan, int reg, int i) {
  reg = plan->same[reg];
  if (plan->uniform[reg] || plan->slot[reg] < 0 || plan->last[reg] != i) return;
  /* The tile of a periodic load is kept. */
  if (reg < plan->p->load_count && plan->p->loads[reg].access == MIX_TILE_PERIODIC) return;
  plan->slot_free[plan->slot[reg]] = true;
}

/* Emits the fused chain that ends with instruction i. */
static void add_chain(mix_tile_plan *plan, int i, const mix_fused_chain *chain) {
  mix_tile_program *p = plan->p;
  const int reg = p->program->load_count + i, first = i - chain->count + 1,
            operands = chain->vectors + chain->numbers;
  mix_tile_step step = {.chain = chain, .operand_count = operands, .result = reg, .load = -1};
  mix_tile_bind_chain(plan, chain, first, step.operands);
  for (int k = 0; k < operands; k++) ensure_slot(plan, step.operands[k]);
  for (int k = 0; k < chain->vectors; k++)
    if (step.operands[k] < p->load_count) p->loads[step.operands[k]].fetched = true;
  for (int k = 0; k < operands; k++) release_after_last_use(plan, step.operands[k], i);
  for (int k = 0; k < chain->result_count; k++) {
    const int result = p->program->load_count + first + chain->results[k] - operands;
    plan->slot[result] = allocate_slot(plan);
    if (result != reg) step.others[k] = result;
  }
  p->body[p->body_count++] = step;
  for (int j = first; j <= i; j++)
    p->cost += p->count * cost_of(p->program->instructions[j].opcode, MIX_TILE_FLOAT);
}

static void add_instruction(mix_tile_plan *plan, int i) {
  mix_tile_program *p = plan->p;
  const mix_instruction *instruction = &p->program->instructions[i];
  const int reg = p->program->load_count + i;
  if (plan->chain[reg]) add_chain(plan, i, plan->chain[reg]);
  if (plan->chained[reg]) return;
  const mix_superinstruction *superinstruction = plan->superinstruction[reg];
  mix_tile_choice c = mix_tile_choose(plan, i);
  int operand[3], operands = 0;
  if (plan->fused_into_reader[reg] || c.same) return; /* computed by its reader, or equal to its operand */
  if (superinstruction) {
    const mix_instruction *first =
        mix_tile_plan_instruction(plan, plan->same[instruction->operands[superinstruction->position]]);
    for (int k = 0; k < mix_opcode_operands(first->opcode); k++) operand[operands++] = first->operands[k];
    p->cost += p->count * cost_of(first->opcode, MIX_TILE_FLOAT);
  }
  for (int k = 0; k < mix_opcode_operands(instruction->opcode); k++)
    if (!superinstruction || k != superinstruction->position) operand[operands++] = instruction->operands[k];
  for (int k = 0; k < operands; k++) ensure_slot(plan, operand[k]);
  mix_tile_step step = {.function = superinstruction ? superinstruction->function : c.function,
                        .immediate = instruction->immediate,
                        .result = reg,
                        .load = -1};
  step.by_packets = mix_tile_has_tail(plan, reg);
  step.draws = mix_opcode_draws(instruction->opcode);
  step.operand_count = operands;
  for (int k = 0; k < operands; k++) {
    step.operands[k] = plan->same[operand[k]];
    step.steps[k] = !plan->uniform[operand[k]];
  }
  if (plan->uniform[reg]) {
    plan->slot[reg] = plan->uniforms++;
    p->preamble[p->preamble_count++] = step;
    if (c.round)
      p->preamble[p->preamble_count++] = (mix_tile_step){.function = c.round,
                                                         .operand_count = 1,
                                                         .result = reg,
                                                         .operands = {reg},
                                                         .steps = {1},
                                                         .load = -1};
    return;
  }
  /* The result may take the tile of an operand that is read here for the last time, if the elements have the
   * same size. */
  for (int k = 0; k < operands; k++)
    if (mix_tile_class_size(mix_tile_held_class(plan, plan->same[operand[k]])) ==
        mix_tile_class_size(mix_tile_held_class(plan, reg)))
      release_after_last_use(plan, operand[k], i);
  plan->slot[reg] = allocate_slot(plan);
  /* A cast that only rounds: the rounding function replaces the copy. */
  if (c.round && step.function == p->vector->instruction[MIX_OPCODE_IDENTITY])
    step.function = c.round, c.round = NULL;
  p->body[p->body_count++] = step;
  if (c.round)
    p->body[p->body_count++] = (mix_tile_step){
        .function = c.round, .operand_count = 1, .result = reg, .operands = {reg}, .steps = {1}, .load = -1};
  p->cost += p->count * cost_of(instruction->opcode, mix_tile_held_class(plan, reg));
  for (int k = 0; k < operands; k++)
    if (plan->slot[plan->same[operand[k]]] != plan->slot[reg]) release_after_last_use(plan, operand[k], i);
}

/* A uniform value that is stored or reduced for every element is copied to a tile. Returns the register of
 * the tile. */
static int broadcast(mix_tile_plan *plan, int reg) {
  mix_tile_program *p = plan->p;
  ensure_slot(plan, reg);
  const int source = plan->same[reg];
  if (!plan->uniform[source] || p->count == 1) return source;
  const int tile = p->register_count++;
  plan->same[tile] = tile;
  plan->held_as[tile] = plan->held_as[source];
  plan->uniform[tile] = false;
  plan->slot[tile] = allocate_slot(plan);
  const mix_tile_function copy =
      mix_tile_instruction_of(p->vector, MIX_OPCODE_IDENTITY, mix_tile_held_class(plan, source));
  p->body[p->body_count++] = (mix_tile_step){
      .function = copy, .operand_count = 1, .result = tile, .operands = {source}, .steps = {0}, .load = -1};
  return tile;
}

static void add_stores(mix_tile_plan *plan) {
  mix_tile_program *p = plan->p;
  const mix_program *program = p->program;
  p->store_count = program->store_count;
  for (int i = 0; i < program->store_count; i++) {
    const int reg = program->stores[i].reg;
    const mix_dtype dtype = mix_program_register_dtype(program, reg);
    mix_tile_store *store = &p->stores[i];
    *store = (mix_tile_store){.output = program->stores[i].output,
                              .reg = broadcast(plan, reg),
                              .defined_by = -1,
                              .store = mix_tile_store_of(p->vector, dtype),
                              .stream = mix_exceeds_caches(p->count * (int64_t)mix_dtype_size(dtype))
                                            ? p->vector->stream[dtype]
                                            : NULL,
                              .element = mix_dtype_size(dtype),
                              .held = mix_tile_class_size(mix_tile_class_of(dtype))};
    p->cost += p->count;
  }
  p->reduced = program->reduction != MIX_REDUCE_NOTHING ? broadcast(plan, program->reduced) : -1;
  if (p->reduced >= 0) p->reduced_class = mix_tile_held_class(plan, p->reduced);
  for (int i = 0; i < program->sum_count; i++) {
    p->summed[i] = broadcast(plan, program->sums[i].reg);
    p->cost += p->count;
  }
  /* The step that computes a value may write it to memory directly, if memory has the layout of a tile and
   * the value has no other direct store. */
  for (int i = 0; i < p->store_count; i++) {
    mix_tile_store *store = &p->stores[i];
    const mix_dtype dtype = mix_program_register_dtype(program, program->stores[i].reg);
    bool taken = !(dtype == MIX_FLOAT32 || dtype == MIX_FLOAT64 || dtype == MIX_INT64);
    for (int j = 0; j < i; j++)
      taken = taken || (p->stores[j].reg == store->reg && p->stores[j].defined_by >= 0);
    for (int s = 0; s < p->body_count && !taken; s++)
      if (mix_tile_computes(&p->body[s], store->reg)) {
        store->defined_by = s;
        break;
      }
  }
  for (int l = 0; l < p->load_count; l++) {
    mix_tile_load *load = &p->loads[l];
    load->last_use = -1;
    for (int s = 0; s < p->body_count; s++)
      for (int k = 0; k < p->body[s].operand_count; k++)
        if (p->body[s].operands[k] == l) load->last_use = s;
    for (int i = 0; i < p->store_count; i++)
      if (p->stores[i].reg == l) load->last_use = INT_MAX, load->stored = i > 0;
    if (p->reduced == l) load->last_use = INT_MAX;
    for (int i = 0; i < program->sum_count; i++)
      if (p->summed[i] == l) load->last_use = INT_MAX;
    if (load->used && load->access != MIX_TILE_UNIFORM) p->cost += p->count;
  }
}

void mix_tile_add_steps(mix_tile_plan *plan) {
  const mix_program *program = plan->p->program;
  for (int i = 0; i < program->instruction_count; i++)
    if (plan->used[program->load_count + i]) add_instruction(plan, i);
  add_stores(plan);
}

/* Does the program only load one operand and store it in another dtype? In the caches, where nothing is
 * prefetched for the next tile, the fewest tiles are fastest. */
static bool only_casts(const mix_tile_plan *plan) {
  const mix_tile_program *p = plan->p;
  return plan->slots == 1 && p->body_count == 1 && p->body[0].load >= 0 && !p->streams;
}

bool mix_tile_place(mix_tile_plan *plan) {
  mix_tile_program *p = plan->p;
  size_t width = 4;
  for (int r = 0; r < p->register_count; r++)
    if (plan->same[r] == r && plan->slot[r] >= 0 && !plan->uniform[r] &&
        mix_tile_class_size(mix_tile_held_class(plan, r)) == 8)
      width = 8;
  const size_t uniform_bytes = (size_t)plan->uniforms * MIX_TILE_PADDING;
  size_t slot_bytes = 0;
  for (p->tile = only_casts(plan) ? MIX_TILE_CAST : MIX_TILE_ELEMENTS; p->tile >= 64; p->tile /= 2) {
    slot_bytes = (size_t)p->tile * width + MIX_TILE_PADDING;
    if (uniform_bytes + (size_t)plan->slots * slot_bytes <= MIX_TILE_MEMORY) break;
  }
  if (p->tile < 64) return false;
  p->memory = uniform_bytes + (size_t)plan->slots * slot_bytes;
  for (int r = 0; r < p->register_count; r++) {
    const bool own = plan->same[r] == r && plan->slot[r] >= 0;
    const size_t slot = own ? (size_t)plan->slot[r] : 0;
    p->home[r] =
        !own ? -1 : (int)(plan->uniform[r] ? slot * MIX_TILE_PADDING : uniform_bytes + slot * slot_bytes);
  }
  return true;
}
