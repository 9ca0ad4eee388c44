/* Preparing element-wise programs for the tile executor: loads classified, values that are the same for all elements computed once,
 * conversions that change nothing dropped, registers assigned to tiles by a linear scan over their last uses. */
#include "backend/cpu/tile_program.h"
#include "base/alloc.h"
#include "base/error.h"
#include "tensor/convert.h"
#include <limits.h>
#include <string.h>

enum { STREAM_BYTES = 4 << 20 }; /* stored in 16 bits: more goes past the caches */

/* ---- the opcodes that need care ---- */

/* Results are operands, constants of few bits or integers next to an operand: representable where the operands are. */
static bool is_exact(mix_opcode opcode, mix_tile_class class) {
  switch (opcode) {
  case MIX_OPCODE_IDENTITY:
  case MIX_OPCODE_SIGN:
  case MIX_OPCODE_FLOOR:
  case MIX_OPCODE_CEIL:
  case MIX_OPCODE_ROUND:
  case MIX_OPCODE_RELU:
  case MIX_OPCODE_RELU6:
  case MIX_OPCODE_MAXIMUM:
  case MIX_OPCODE_MINIMUM:
  case MIX_OPCODE_SELECT:
  case MIX_OPCODE_CLIP:
  case MIX_OPCODE_RELU_GRAD:
  case MIX_OPCODE_RELU6_GRAD: return true;
  case MIX_OPCODE_NEGATIVE:
  case MIX_OPCODE_ABS: return class == MIX_TILE_FLOAT;
  default: return false;
  }
}

/* In simple instructions: vector polynomials, and functions of the C library. */
static int cost_of(mix_opcode opcode, mix_tile_class class) {
  switch (opcode) {
  case MIX_OPCODE_EXP:
  case MIX_OPCODE_EXPM1:
  case MIX_OPCODE_LOG:
  case MIX_OPCODE_LOG1P:
  case MIX_OPCODE_TANH:
  case MIX_OPCODE_SIGMOID:
  case MIX_OPCODE_ERF:
  case MIX_OPCODE_ELU:
  case MIX_OPCODE_SELU:
  case MIX_OPCODE_SOFTPLUS:
  case MIX_OPCODE_SOFTPLUS_GRAD: return class == MIX_TILE_FLOAT ? 8 : 100;
  case MIX_OPCODE_SIN:
  case MIX_OPCODE_COS:
  case MIX_OPCODE_ERFC:
  case MIX_OPCODE_POWER:
  case MIX_OPCODE_FLOOR_MOD: return 100;
  default: return class == MIX_TILE_FLOAT ? 1 : 4;
  }
}

static int operand_of_class(const mix_instruction *instruction) { return instruction->opcode == MIX_OPCODE_SELECT ? 1 : 0; }

static mix_dtype operand_dtype(const mix_program *program, const mix_instruction *instruction) {
  return mix_program_register_dtype(program, instruction->operands[operand_of_class(instruction)]);
}

static const char *refusal(const mix_program *program) {
  if (program->load_count + program->instruction_count + program->store_count + 1 > MIX_TILE_REGISTERS)
    return "more registers than the tile executor holds";
  if (program->store_count > MIX_TILE_STORES) return "more stores than the tile executor holds";
  for (int i = 0; i < program->instruction_count; i++) {
    const mix_instruction *instruction = &program->instructions[i];
    const mix_dtype dtype = operand_dtype(program, instruction);
    const mix_tile_class class = mix_tile_class_of(dtype);
    if (instruction->opcode == MIX_OPCODE_CAST) continue;
    if (mix_tile_instruction_of(&mix_vector_generic, instruction->opcode, class)) continue;
    return class == MIX_TILE_INTEGER ? "integer division and power can fail" : "an instruction has no meaning for its dtype";
  }
  return NULL;
}

/* ---- the iteration space ---- */

static void normalise(mix_tile_program *p) {
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
    for (int i = 0; i < program->load_count; i++) p->loads[i].strides[rank - 1] = program->loads[i].strides[d];
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

/* ---- what becomes of each register ---- */

typedef struct plan {
  mix_tile_program *p;
  int count;                                       /* registers of the program */
  bool used[MIX_TILE_REGISTERS];                   /* by something that is stored or reduced */
  const mix_tile_joint *joint[MIX_TILE_REGISTERS]; /* computes this one and the one before it; NULL: none */
  bool joined[MIX_TILE_REGISTERS];                 /* computed by the joint of its reader */
  const mix_tile_chain *chain[MIX_TILE_REGISTERS]; /* computes this one and those before it; NULL: none */
  bool chained[MIX_TILE_REGISTERS];                /* computed by a chain */
  bool only_stored[MIX_TILE_REGISTERS];            /* the store's own rounding does */
  bool uniform[MIX_TILE_REGISTERS];
  int same[MIX_TILE_REGISTERS];          /* the register whose tile holds its value */
  int last[MIX_TILE_REGISTERS];          /* by `same`: the last instruction that reads it, INT_MAX: a store or the reduction */
  mix_dtype held_as[MIX_TILE_REGISTERS]; /* the dtype of the value in the tile: float32 for a small integer loaded as float */
  int slot[MIX_TILE_REGISTERS];          /* tile of `same`, -1 before it is made */
  bool slot_free[MIX_TILE_REGISTERS];
  int slots;
  int uniforms;
} plan;

static mix_tile_class held_class(const plan *plan, int reg) { return mix_tile_class_of(plan->held_as[reg]); }

static void find_uses(plan *plan) {
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
  for (int i = program->instruction_count - 1; i >= 0; i--) {
    const mix_instruction *instruction = &program->instructions[i];
    if (!plan->used[program->load_count + i]) continue;
    for (int k = 0; k < mix_opcode_operands(instruction->opcode); k++) {
      plan->used[instruction->operands[k]] = true;
      plan->only_stored[instruction->operands[k]] = false;
    }
  }
}

/* Small integers that are only cast to floating dtypes of at most 32 bits are loaded as float, which holds them exactly. */
static void choose_loads(plan *plan) {
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
    load->load = as_float ? p->vector->load_as_float[dtype] : mix_tile_load_of(p->vector, dtype);
    if (as_float) plan->held_as[l] = MIX_FLOAT32;
    load->element = mix_dtype_size(dtype);
    load->held = mix_tile_class_size(held_class(plan, l));
    load->direct = !as_float && (dtype == MIX_FLOAT32 || dtype == MIX_FLOAT64 || dtype == MIX_INT64);
    if (load->access == MIX_TILE_ACCUMULATOR) {
      /* raw results are float, of float64 products double */
      load->element = dtype == MIX_FLOAT64 ? 8 : 4;
      load->load = mix_tile_load_of(p->vector, dtype == MIX_FLOAT64 ? MIX_FLOAT64 : MIX_FLOAT32);
      load->round = mix_tile_round_of(p->vector, dtype);
      load->direct = !load->round;
      p->accumulator_element = (int)load->element;
    }
    plan->uniform[l] = load->access == MIX_TILE_UNIFORM;
  }
}

/* What an instruction is on tiles. */
typedef struct choice {
  mix_tile_function function, round; /* round: NULL where nothing is to be rounded */
  bool same;                         /* the operand's tile serves */
} choice;

/* An operand may hold numbers that the result's dtype does not: programs with excess precision. */
static bool narrows(const mix_program *program, const mix_instruction *instruction) {
  for (int k = operand_of_class(instruction); k < mix_opcode_operands(instruction->opcode); k++)
    if (mix_program_register_dtype(program, instruction->operands[k]) != instruction->dtype) return true;
  return false;
}

static choice choose(const plan *plan, int i) {
  const mix_program *program = plan->p->program;
  const mix_vector *vector = plan->p->vector;
  const mix_instruction *instruction = &program->instructions[i];
  const int reg = program->load_count + i, operand = instruction->operands[operand_of_class(instruction)];
  const mix_dtype from = plan->held_as[operand], to = instruction->dtype;
  const mix_tile_class class = mix_tile_class_of(from);
  choice c = {.round = mix_tile_round_of(vector, to)};
  if (instruction->opcode == MIX_OPCODE_CAST) {
    bool rounded;
    c.function = mix_tile_cast_of(vector, from, to, &rounded);
    if (rounded || from == to) c.round = NULL;
  } else {
    c.function = mix_tile_instruction_of(vector, instruction->opcode, class);
    if (is_exact(instruction->opcode, class) && !narrows(program, instruction)) c.round = NULL;
  }
  if (plan->only_stored[reg]) c.round = NULL;
  c.same = !c.round && class == mix_tile_class_of(to) &&
           (instruction->opcode == MIX_OPCODE_CAST || instruction->opcode == MIX_OPCODE_IDENTITY);
  return c;
}

static void find_last_uses(plan *plan) {
  const mix_program *program = plan->p->program;
  for (int i = 0; i < program->instruction_count; i++) {
    const mix_instruction *instruction = &program->instructions[i];
    const int reg = program->load_count + i;
    if (!plan->used[reg]) continue;
    bool uniform = true;
    for (int k = 0; k < mix_opcode_operands(instruction->opcode); k++) {
      uniform = uniform && plan->uniform[instruction->operands[k]];
      plan->last[plan->same[instruction->operands[k]]] = i;
    }
    plan->uniform[reg] = uniform;
    plan->last[reg] = i;
    if (choose(plan, i).same) plan->same[reg] = plan->same[instruction->operands[0]];
  }
  for (int i = 0; i < program->store_count; i++) plan->last[plan->same[program->stores[i].reg]] = INT_MAX;
  if (program->reduction != MIX_REDUCE_NOTHING) plan->last[plan->same[program->reduced]] = INT_MAX;
}

/* ---- several instructions in one pass ---- */

static void count_readers(const plan *plan, int *readers) {
  const mix_program *program = plan->p->program;
  for (int i = 0; i < program->instruction_count; i++) {
    const mix_instruction *instruction = &program->instructions[i];
    const int reg = program->load_count + i;
    for (int k = 0; k < mix_opcode_operands(instruction->opcode) && plan->used[reg] && plan->same[reg] == reg; k++)
      readers[plan->same[instruction->operands[k]]]++;
  }
  for (int i = 0; i < program->store_count; i++) readers[plan->same[program->stores[i].reg]]++;
  if (program->reduction != MIX_REDUCE_NOTHING) readers[plan->same[program->reduced]]++;
}

static const mix_instruction *instruction_of(const plan *plan, int reg) {
  return &plan->p->program->instructions[reg - plan->p->program->load_count];
}

/* The joint of instruction `second` with the one that makes its operand `position`. */
static const mix_tile_joint *find_joint(const plan *plan, int second, int position) {
  const mix_program *program = plan->p->program;
  const mix_vector *vector = plan->p->vector;
  const mix_instruction *instruction = &program->instructions[second];
  const int reg = plan->same[instruction->operands[position]];
  if (reg < program->load_count) return NULL;
  const mix_opcode first = instruction_of(plan, reg)->opcode;
  const choice made = choose(plan, reg - program->load_count);
  if (made.round || made.function != vector->instruction[first]) return NULL;
  if (choose(plan, second).function != vector->instruction[instruction->opcode]) return NULL;
  for (const mix_tile_joint *joint = vector->joints; joint->function; joint++)
    if (joint->first == first && joint->second == instruction->opcode && joint->position == position) return joint;
  return NULL;
}

/* Is the program's code from instruction `first` on that of the chain? `bound`: the program's registers for the chain's operands. */
static bool is_chain(const plan *plan, const mix_tile_chain *chain, int first, const int *readers, int *bound) {
  const mix_program *program = plan->p->program;
  const int operands = chain->vectors + chain->numbers, start = program->load_count + first;
  int within[MIX_CHAIN_CODE] = {0};
  if (first + chain->count > program->instruction_count) return false;
  for (int i = 0; i < operands; i++) bound[i] = -1;
  for (int j = 0; j < chain->count; j++) {
    const mix_instruction *instruction = &program->instructions[first + j];
    const mix_opcode opcode = chain->code[j].opcode;
    const choice made = choose(plan, first + j);
    if (instruction->opcode != opcode || !plan->used[start + j] || plan->uniform[start + j] || plan->same[start + j] != start + j ||
        made.round || made.function != plan->p->vector->instruction[opcode])
      return false;
    for (int k = 0; k < mix_opcode_operands(opcode); k++) {
      const int wanted = chain->code[j].operands[k], reg = plan->same[instruction->operands[k]];
      if (wanted >= operands) {
        if (reg != start + wanted - operands) return false;
        within[wanted - operands]++;
      } else {
        if (bound[wanted] < 0) bound[wanted] = reg;
        if (bound[wanted] != reg || plan->uniform[reg] != (wanted >= chain->vectors)) return false;
      }
    }
  }
  for (int j = 0; j < chain->count; j++) {
    bool result = false;
    for (int i = 0; i < chain->result_count; i++) result = result || chain->results[i] == operands + j;
    if (!result && readers[start + j] != within[j]) return false;
  }
  return true;
}

static void find_chains(plan *plan) {
  const mix_program *program = plan->p->program;
  int readers[MIX_TILE_REGISTERS] = {0}, bound[MIX_CHAIN_OPERANDS];
  count_readers(plan, readers);
  for (int first = 0; first < program->instruction_count; first++)
    for (const mix_tile_chain *(*const *row)(void) = plan->p->vector->chains; *row; row++) {
      const mix_tile_chain *chain = (*row)();
      if (plan->chained[program->load_count + first] || !is_chain(plan, chain, first, readers, bound)) continue;
      const int last = first + chain->count - 1;
      plan->chain[program->load_count + last] = chain;
      for (int i = first; i <= last; i++) plan->chained[program->load_count + i] = true;
      for (int i = 0; i < chain->vectors + chain->numbers; i++)
        if (plan->last[bound[i]] < last) plan->last[bound[i]] = last;
    }
}

/* Values that one instruction alone reads need no tile: a pass more costs as much as most instructions do. */
static void join_instructions(plan *plan) {
  const mix_program *program = plan->p->program;
  int readers[MIX_TILE_REGISTERS] = {0};
  count_readers(plan, readers);
  for (int i = 0; i < program->instruction_count; i++) {
    const mix_instruction *instruction = &program->instructions[i];
    const int reg = program->load_count + i;
    if (!plan->used[reg] || plan->uniform[reg] || plan->same[reg] != reg || plan->chained[reg]) continue;
    for (int k = 0; k < mix_opcode_operands(instruction->opcode) && !plan->joint[reg]; k++) {
      const int first = plan->same[instruction->operands[k]];
      if (plan->uniform[first] || readers[first] != 1 || plan->joint[first] || plan->chained[first]) continue;
      plan->joint[reg] = find_joint(plan, i, k);
      if (!plan->joint[reg]) continue;
      plan->joined[first] = true;
      const mix_instruction *before = instruction_of(plan, first);
      for (int o = 0; o < mix_opcode_operands(before->opcode); o++) {
        int *last = &plan->last[plan->same[before->operands[o]]];
        if (*last < i) *last = i;
      }
    }
  }
}

/* ---- steps ---- */

static int take_slot(plan *plan) {
  for (int s = 0; s < plan->slots; s++)
    if (plan->slot_free[s]) {
      plan->slot_free[s] = false;
      return s;
    }
  return plan->slots++;
}

/* The tile (or uniform value) of an operand: instructions have theirs, loads get it where they are first needed. */
static void need(plan *plan, int reg) {
  mix_tile_program *p = plan->p;
  reg = plan->same[reg];
  if (plan->slot[reg] >= 0) return;
  if (plan->uniform[reg]) {
    plan->slot[reg] = plan->uniforms++;
    p->preamble[p->preamble_count++] = (mix_tile_step){.result = reg, .load = reg};
    return;
  }
  /* the rows of a period are made once for all tiles: nothing else may have used their place */
  plan->slot[reg] = p->loads[reg].access == MIX_TILE_PERIODIC ? plan->slots++ : take_slot(plan);
  p->body[p->body_count++] = (mix_tile_step){.result = reg, .load = reg};
}

static void free_if_last(plan *plan, int reg, int i) {
  reg = plan->same[reg];
  if (plan->uniform[reg] || plan->slot[reg] < 0 || plan->last[reg] != i) return;
  /* the rows of a period stay for all tiles */
  if (reg < plan->p->load_count && plan->p->loads[reg].access == MIX_TILE_PERIODIC) return;
  plan->slot_free[plan->slot[reg]] = true;
}

/* The chain that ends with instruction i. */
static void add_chain(plan *plan, int i, const mix_tile_chain *chain) {
  mix_tile_program *p = plan->p;
  const int reg = p->program->load_count + i, first = i - chain->count + 1, operands = chain->vectors + chain->numbers;
  int readers[MIX_TILE_REGISTERS] = {0};
  mix_tile_step step = {.chain = chain, .operand_count = operands, .result = reg, .load = -1};
  count_readers(plan, readers);
  is_chain(plan, chain, first, readers, step.operands);
  for (int k = 0; k < operands; k++) need(plan, step.operands[k]);
  for (int k = 0; k < chain->vectors; k++)
    if (step.operands[k] < p->load_count) p->loads[step.operands[k]].fetched = true;
  for (int k = 0; k < operands; k++) free_if_last(plan, step.operands[k], i);
  for (int k = 0; k < chain->result_count; k++) {
    const int result = p->program->load_count + first + chain->results[k] - operands;
    plan->slot[result] = take_slot(plan);
    if (result != reg) step.others[k] = result;
  }
  p->body[p->body_count++] = step;
  for (int j = first; j <= i; j++) p->cost += p->count * cost_of(p->program->instructions[j].opcode, MIX_TILE_FLOAT);
}

static void add_instruction(plan *plan, int i) {
  mix_tile_program *p = plan->p;
  const mix_instruction *instruction = &p->program->instructions[i];
  const int reg = p->program->load_count + i;
  if (plan->chain[reg]) add_chain(plan, i, plan->chain[reg]);
  if (plan->chained[reg]) return;
  const mix_tile_joint *joint = plan->joint[reg];
  choice c = choose(plan, i);
  int operand[3], operands = 0;
  if (plan->joined[reg] || c.same) return; /* who reads it does the work */
  if (joint) {
    const mix_instruction *first = instruction_of(plan, plan->same[instruction->operands[joint->position]]);
    for (int k = 0; k < mix_opcode_operands(first->opcode); k++) operand[operands++] = first->operands[k];
    p->cost += p->count * cost_of(first->opcode, MIX_TILE_FLOAT);
  }
  for (int k = 0; k < mix_opcode_operands(instruction->opcode); k++)
    if (!joint || k != joint->position) operand[operands++] = instruction->operands[k];
  for (int k = 0; k < operands; k++) need(plan, operand[k]);
  mix_tile_step step = {
      .function = joint ? joint->function : c.function, .immediate = instruction->immediate, .result = reg, .load = -1};
  step.operand_count = operands;
  for (int k = 0; k < operands; k++) {
    step.operands[k] = plan->same[operand[k]];
    step.steps[k] = !plan->uniform[operand[k]];
  }
  if (plan->uniform[reg]) {
    plan->slot[reg] = plan->uniforms++;
    p->preamble[p->preamble_count++] = step;
    if (c.round)
      p->preamble[p->preamble_count++] =
          (mix_tile_step){.function = c.round, .operand_count = 1, .result = reg, .operands = {reg}, .steps = {1}, .load = -1};
    return;
  }
  /* in place of an operand that ends here, where elements have one size */
  for (int k = 0; k < operands; k++)
    if (mix_tile_class_size(held_class(plan, plan->same[operand[k]])) == mix_tile_class_size(held_class(plan, reg)))
      free_if_last(plan, operand[k], i);
  plan->slot[reg] = take_slot(plan);
  /* A cast: rounding is the pass, and nothing is copied first. */
  if (c.round && step.function == p->vector->instruction[MIX_OPCODE_IDENTITY]) step.function = c.round, c.round = NULL;
  p->body[p->body_count++] = step;
  if (c.round)
    p->body[p->body_count++] =
        (mix_tile_step){.function = c.round, .operand_count = 1, .result = reg, .operands = {reg}, .steps = {1}, .load = -1};
  p->cost += p->count * cost_of(instruction->opcode, held_class(plan, reg));
  for (int k = 0; k < operands; k++)
    if (plan->slot[plan->same[operand[k]]] != plan->slot[reg]) free_if_last(plan, operand[k], i);
}

/* A uniform value that is stored for every element (or summed) fills a tile of its own; returns the register. */
static int spread(plan *plan, int reg) {
  mix_tile_program *p = plan->p;
  need(plan, reg);
  const int source = plan->same[reg];
  if (!plan->uniform[source] || p->count == 1) return source;
  const int tile = p->register_count++;
  plan->same[tile] = tile;
  plan->held_as[tile] = plan->held_as[source];
  plan->uniform[tile] = false;
  plan->slot[tile] = take_slot(plan);
  const mix_tile_function copy = mix_tile_instruction_of(p->vector, MIX_OPCODE_IDENTITY, held_class(plan, source));
  p->body[p->body_count++] =
      (mix_tile_step){.function = copy, .operand_count = 1, .result = tile, .operands = {source}, .steps = {0}, .load = -1};
  return tile;
}

static void add_stores(plan *plan) {
  mix_tile_program *p = plan->p;
  const mix_program *program = p->program;
  p->store_count = program->store_count;
  for (int i = 0; i < program->store_count; i++) {
    const int reg = program->stores[i].reg;
    const mix_dtype dtype = mix_program_register_dtype(program, reg);
    mix_tile_store *store = &p->stores[i];
    *store = (mix_tile_store){.output = program->stores[i].output,
                              .reg = spread(plan, reg),
                              .defined_by = -1,
                              .store = mix_tile_store_of(p->vector, dtype),
                              .stream = p->count * (int64_t)mix_dtype_size(dtype) >= STREAM_BYTES ? p->vector->stream[dtype] : NULL,
                              .element = mix_dtype_size(dtype),
                              .held = mix_tile_class_size(mix_tile_class_of(dtype))};
    p->cost += p->count;
  }
  p->reduced = program->reduction != MIX_REDUCE_NOTHING ? spread(plan, program->reduced) : -1;
  if (p->reduced >= 0) p->reduced_class = held_class(plan, p->reduced);
  /* The step that makes a value may write it to memory, where memory has the form of a tile and nobody else does. */
  for (int i = 0; i < p->store_count; i++) {
    mix_tile_store *store = &p->stores[i];
    const mix_dtype dtype = mix_program_register_dtype(program, program->stores[i].reg);
    bool taken = !(dtype == MIX_FLOAT32 || dtype == MIX_FLOAT64 || dtype == MIX_INT64);
    for (int j = 0; j < i; j++) taken = taken || (p->stores[j].reg == store->reg && p->stores[j].defined_by >= 0);
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
      if (p->stores[i].reg == l) load->last_use = INT_MAX;
    if (p->reduced == l) load->last_use = INT_MAX;
    if (load->used && load->access != MIX_TILE_UNIFORM) p->cost += p->count;
  }
}

/* A gradient in 16 bits, unscaled, is it finite? That needs no arithmetic (mix_tile_run). */
static void find_tested(mix_tile_program *p) {
  const bool only = !p->store_count && mix_tile_only_tests(p->program, &p->tested, &p->factor);
  if (!only || p->loads[p->tested].access != MIX_TILE_CONTIGUOUS) p->tested = -1;
}

/* Offsets of uniform values and tiles, and the largest tile that lets all of them fit. */
static bool place(plan *plan) {
  mix_tile_program *p = plan->p;
  size_t width = 4;
  for (int r = 0; r < p->register_count; r++)
    if (plan->same[r] == r && plan->slot[r] >= 0 && !plan->uniform[r] && mix_tile_class_size(held_class(plan, r)) == 8) width = 8;
  const size_t uniform_bytes = (size_t)plan->uniforms * MIX_TILE_PADDING;
  size_t slot_bytes = 0;
  for (p->tile = MIX_TILE_ELEMENTS; p->tile >= 64; p->tile /= 2) {
    slot_bytes = (size_t)p->tile * width + MIX_TILE_PADDING;
    if (uniform_bytes + (size_t)plan->slots * slot_bytes <= MIX_TILE_MEMORY) break;
  }
  if (p->tile < 64) return false;
  p->memory = uniform_bytes + (size_t)plan->slots * slot_bytes;
  for (int r = 0; r < p->register_count; r++) {
    const bool own = plan->same[r] == r && plan->slot[r] >= 0;
    const size_t slot = own ? (size_t)plan->slot[r] : 0;
    p->home[r] = !own ? -1 : (int)(plan->uniform[r] ? slot * MIX_TILE_PADDING : uniform_bytes + slot * slot_bytes);
  }
  return true;
}

/* NULL with *reason, or with NULL in *reason and the error recorded where memory is out. */
static mix_tile_program *build(const mix_program *program, const mix_vector *vector, const char **reason) {
  *reason = refusal(program);
  if (*reason) return NULL;
  const size_t steps = (size_t)(2 * program->instruction_count + program->load_count + program->store_count + 1);
  mix_tile_program *p =
      mix_calloc(1, sizeof *p + (size_t)program->load_count * sizeof *p->loads + 2 * steps * sizeof *p->body + sizeof *p->come);
  plan *plan = mix_calloc(1, sizeof *plan);
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
  normalise(p);
  find_uses(plan);
  choose_loads(plan);
  find_last_uses(plan);
  find_chains(plan);
  join_instructions(plan);
  for (int i = 0; i < program->instruction_count; i++)
    if (plan->used[program->load_count + i]) add_instruction(plan, i);
  add_stores(plan);
  find_tested(p);
  p->flat = true;
  for (int l = 0; l < p->load_count; l++)
    if (p->loads[l].used && (p->loads[l].access == MIX_TILE_PERIODIC || p->loads[l].access == MIX_TILE_GENERAL)) p->flat = false;
  p->streams = p->count >= 262144;
  if (p->flat) {
    p->inner = p->count;
    p->rows = 1;
  }
  for (int i = 0; i < p->preamble_count; i++)
    p->preamble[i].held = (int)mix_tile_class_size(held_class(plan, p->preamble[i].result));
  if (!place(plan)) *reason = "the values of the program do not fit into the tile memory";
  mix_free(plan);
  if (!*reason) return p;
  mix_free(p);
  return NULL;
}

const char *mix_tile_refuses(const mix_program *program) {
  const char *reason = refusal(program);
  /* So many values of 64 elements of 8 bytes always fit. */
  const int always = MIX_TILE_MEMORY / (64 * 8 + MIX_TILE_PADDING);
  if (reason || program->load_count + program->instruction_count + program->store_count < always) return reason;
  mix_free(build(program, &mix_vector_generic, &reason));
  return reason;
}

mix_tile_program *mix_tile_prepare_for(const mix_program *program, const mix_vector *vector) {
  const char *reason;
  mix_tile_program *p = build(program, vector, &reason);
  if (!p && reason) mix_fail(MIX_UNSUPPORTED, "fused: %s", reason);
  return p;
}

mix_tile_program *mix_tile_prepare(const mix_program *program) { return mix_tile_prepare_for(program, mix_vector_current()); }

void mix_cpu_convert(const void *source, mix_dtype source_dtype, void *result, mix_dtype result_dtype, int64_t count) {
  const mix_vector *vector = mix_vector_current();
  const bool floats = mix_tile_class_of(source_dtype) == MIX_TILE_FLOAT && mix_tile_class_of(result_dtype) == MIX_TILE_FLOAT;
  if (!floats || source_dtype == result_dtype) {
    mix_convert(source, source_dtype, result, result_dtype, count);
  } else if (result_dtype == MIX_FLOAT32) {
    vector->load[source_dtype](result, source, count);
  } else if (source_dtype == MIX_FLOAT32) {
    vector->store[result_dtype](result, source, count);
  } else {
    float part[MIX_TILE_ELEMENTS];
    for (int64_t i = 0; i < count; i += MIX_TILE_ELEMENTS) {
      const int64_t n = count - i < MIX_TILE_ELEMENTS ? count - i : MIX_TILE_ELEMENTS;
      vector->load[source_dtype](part, (const uint16_t *)source + i, n);
      vector->store[result_dtype]((uint16_t *)result + i, part, n);
    }
  }
}
