/* A program while it is prepared: shared by what decides about its values (tile.c), what joins instructions (tile_join.c) and what makes
 * steps and places tiles (tile_steps.c). */
#ifndef MIX_BACKEND_CPU_PROGRAM_PREPARE_STEPS_H
#define MIX_BACKEND_CPU_PROGRAM_PREPARE_STEPS_H

#include "backend/cpu/program/prepared_program.h"

/* What becomes of each register. */
typedef struct mix_tile_plan {
  mix_tile_program *p;
  int count;                                       /* registers of the program */
  bool used[MIX_TILE_REGISTERS];                   /* by something that is stored or reduced */
  const mix_superinstruction *superinstruction[MIX_TILE_REGISTERS]; /* computes this one and the one before it; NULL: none */
  bool fused_into_reader[MIX_TILE_REGISTERS];                 /* computed by the superinstruction of its reader */
  const mix_fused_chain *chain[MIX_TILE_REGISTERS]; /* computes this one and those before it; NULL: none */
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
} mix_tile_plan;

static inline mix_tile_class mix_tile_held_class(const mix_tile_plan *plan, int reg) {
  return mix_tile_class_of(plan->held_as[reg]);
}

static inline const mix_instruction *mix_tile_plan_instruction(const mix_tile_plan *plan, int reg) {
  return &plan->p->program->instructions[reg - plan->p->program->load_count];
}

/* Do the bits of the instruction depend on the place of an element (vector_math.inc.h)? */
static inline bool mix_tile_has_tail(const mix_tile_plan *plan, int reg) {
  return mix_opcode_has_tail(mix_tile_plan_instruction(plan, reg)->opcode) && mix_tile_held_class(plan, reg) == MIX_TILE_FLOAT;
}

/* The operand whose dtype says what is computed: of a select the second one. */
static inline int mix_tile_operand_of_class(const mix_instruction *instruction) { return instruction->opcode == MIX_OPCODE_SELECT ? 1 : 0; }

static inline mix_dtype mix_tile_operand_dtype(const mix_program *program, const mix_instruction *instruction) {
  return mix_program_register_dtype(program, instruction->operands[mix_tile_operand_of_class(instruction)]);
}

/* What an instruction is on tiles. */
typedef struct mix_tile_choice {
  mix_tile_function function, round; /* round: NULL where nothing is to be rounded */
  bool same;                         /* the operand's tile serves */
} mix_tile_choice;
/* choose_functions.c */
mix_tile_choice mix_tile_choose(const mix_tile_plan *plan, int instruction);

/* Finds instructions that share a pass: superinstructions and chains. */
void mix_tile_fuse_instructions(mix_tile_plan *plan);
/* The program's registers for the operands of a chain whose code starts at instruction `first`. */
void mix_tile_bind_chain(const mix_tile_plan *plan, const mix_fused_chain *chain, int first, int *bound);

/* Preamble, body and stores of the program. */
void mix_tile_add_steps(mix_tile_plan *plan);
/* Offsets of uniform values and tiles, and the largest tile that lets all of them fit. False: none does. */
bool mix_tile_place(mix_tile_plan *plan);

#endif
