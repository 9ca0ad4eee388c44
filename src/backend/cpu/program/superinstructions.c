/* Fuses instructions into one pass over a tile, because a pass costs as much as most instructions do. */
#include "backend/cpu/program/prepare_steps.h"

static void count_readers(const mix_tile_plan *plan, int *readers) {
  const mix_program *program = plan->p->program;
  for (int i = 0; i < program->instruction_count; i++) {
    const mix_instruction *instruction = &program->instructions[i];
    const int reg = program->load_count + i;
    for (int k = 0; k < mix_opcode_operands(instruction->opcode) && plan->used[reg] && plan->same[reg] == reg;
         k++)
      readers[plan->same[instruction->operands[k]]]++;
  }
  for (int i = 0; i < program->store_count; i++) readers[plan->same[program->stores[i].reg]]++;
  if (program->reduction != MIX_REDUCE_NOTHING) readers[plan->same[program->reduced]]++;
  for (int i = 0; i < program->sum_count; i++) readers[plan->same[program->sums[i].reg]]++;
}

/* The superinstruction of instruction `second` and the one that computes its operand `position`. */
static const mix_superinstruction *find_superinstruction(const mix_tile_plan *plan, int second,
                                                         int position) {
  const mix_program *program = plan->p->program;
  const mix_vector *vector = plan->p->vector;
  const mix_instruction *instruction = &program->instructions[second];
  const int reg = plan->same[instruction->operands[position]];
  if (reg < program->load_count) return NULL;
  const mix_opcode first = mix_tile_plan_instruction(plan, reg)->opcode;
  const mix_tile_choice choice = mix_tile_choose(plan, reg - program->load_count);
  if (choice.round || choice.function != vector->instruction[first]) return NULL;
  if (mix_tile_choose(plan, second).function != vector->instruction[instruction->opcode]) return NULL;
  for (const mix_superinstruction *superinstruction = vector->superinstructions; superinstruction->function;
       superinstruction++)
    if (superinstruction->first == first && superinstruction->second == instruction->opcode &&
        superinstruction->position == position)
      return superinstruction;
  return NULL;
}

void mix_tile_bind_chain(const mix_tile_plan *plan, const mix_fused_chain *chain, int first, int *bound) {
  for (int j = 0; j < chain->count; j++)
    for (int k = 0; k < mix_opcode_operands(chain->code[j].opcode); k++)
      if (chain->code[j].operands[k] < chain->vectors + chain->numbers)
        bound[chain->code[j].operands[k]] = plan->same[plan->p->program->instructions[first + j].operands[k]];
}

static bool is_result(const mix_fused_chain *chain, int reg) {
  for (int i = 0; i < chain->result_count; i++)
    if (chain->results[i] == reg) return true;
  return false;
}

/* Do the instructions from `first` on match the code of the chain, and are values that are not results of the
 * chain read only inside it? */
static bool is_chain(const mix_tile_plan *plan, const mix_fused_chain *chain, int first, const int *readers) {
  const mix_program *program = plan->p->program;
  const int operands = chain->vectors + chain->numbers, start = program->load_count + first;
  int inside_readers[MIX_CHAIN_CODE] = {0}, bound[MIX_CHAIN_OPERANDS];
  if (first + chain->count > program->instruction_count) return false;
  for (int j = 0; j < chain->count; j++)
    if (program->instructions[first + j].opcode != chain->code[j].opcode) return false;
  mix_tile_bind_chain(plan, chain, first, bound);
  for (int i = 0; i < operands; i++)
    if (plan->uniform[bound[i]] != (i >= chain->vectors)) return false;
  for (int j = 0; j < chain->count; j++) {
    const mix_instruction *instruction = &program->instructions[first + j];
    const mix_tile_choice choice = mix_tile_choose(plan, first + j);
    const int reg = start + j;
    if (!plan->used[reg] || plan->uniform[reg] || plan->same[reg] != reg) return false;
    if (choice.round || choice.function != plan->p->vector->instruction[instruction->opcode]) return false;
    for (int k = 0; k < mix_opcode_operands(instruction->opcode); k++) {
      const int operand = chain->code[j].operands[k], inside = operand - operands;
      if (plan->same[instruction->operands[k]] != (inside < 0 ? bound[operand] : start + inside))
        return false;
      if (inside >= 0) inside_readers[inside]++;
    }
  }
  for (int j = 0; j < chain->count; j++)
    if (!is_result(chain, operands + j) && readers[start + j] != inside_readers[j]) return false;
  return true;
}

static void find_chains(mix_tile_plan *plan, const int *readers) {
  const mix_program *program = plan->p->program;
  int bound[MIX_CHAIN_OPERANDS];
  for (int first = 0; first < program->instruction_count; first++)
    for (const mix_fused_chain *(*const *row)(void) = plan->p->vector->chains; *row; row++) {
      const mix_fused_chain *chain = (*row)();
      if (plan->chained[program->load_count + first] || !is_chain(plan, chain, first, readers)) continue;
      const int last = first + chain->count - 1;
      plan->chain[program->load_count + last] = chain;
      for (int i = first; i <= last; i++) plan->chained[program->load_count + i] = true;
      mix_tile_bind_chain(plan, chain, first, bound);
      for (int i = 0; i < chain->vectors + chain->numbers; i++)
        if (plan->last[bound[i]] < last) plan->last[bound[i]] = last;
    }
}

/* Finds superinstructions: a value that only one instruction reads needs no tile. */
static void find_pairs(mix_tile_plan *plan, const int *readers) {
  const mix_program *program = plan->p->program;
  for (int i = 0; i < program->instruction_count; i++) {
    const mix_instruction *instruction = &program->instructions[i];
    const int reg = program->load_count + i;
    if (!plan->used[reg] || plan->uniform[reg] || plan->same[reg] != reg || plan->chained[reg]) continue;
    for (int k = 0; k < mix_opcode_operands(instruction->opcode) && !plan->superinstruction[reg]; k++) {
      const int first = plan->same[instruction->operands[k]];
      if (plan->uniform[first] || readers[first] != 1 || plan->superinstruction[first] ||
          plan->chained[first])
        continue;
      plan->superinstruction[reg] = find_superinstruction(plan, i, k);
      if (!plan->superinstruction[reg]) continue;
      plan->fused_into_reader[first] = true;
      const mix_instruction *before = mix_tile_plan_instruction(plan, first);
      for (int o = 0; o < mix_opcode_operands(before->opcode); o++) {
        int *last = &plan->last[plan->same[before->operands[o]]];
        if (*last < i) *last = i;
      }
    }
  }
}

void mix_tile_fuse_instructions(mix_tile_plan *plan) {
  int readers[MIX_TILE_REGISTERS] = {0};
  count_readers(plan, readers);
  find_chains(plan, readers);
  find_pairs(plan, readers);
}
