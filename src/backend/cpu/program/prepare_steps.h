/* The state of a program while it is prepared. prepare.c analyses the registers, superinstructions.c fuses
 * instructions, choose_functions.c selects vector functions, steps.c emits the steps and places the tiles.
 *
 * A register of the program is a load or the result of an instruction. Its value is either uniform (one
 * value for all elements, computed in the preamble) or a tile. A register whose value equals that of an
 * earlier one (a cast that changes nothing) shares its tile. Tiles are reused once their last reader has
 * run. */
#pragma once

#include "backend/cpu/program/prepared_program.h"

/* Arrays are indexed by register. */
typedef struct mix_tile_plan {
  mix_tile_program *p;
  int count;                     /* registers of the program */
  bool used[MIX_TILE_REGISTERS]; /* a store or the reduction depends on it */
  /* The superinstruction that computes this register and the one that it reads; NULL: none. */
  const mix_superinstruction *superinstruction[MIX_TILE_REGISTERS];
  bool fused_into_reader[MIX_TILE_REGISTERS]; /* computed by the superinstruction of its only reader */
  /* The fused chain that ends with this register; NULL: none. */
  const mix_fused_chain *chain[MIX_TILE_REGISTERS];
  bool chained[MIX_TILE_REGISTERS];     /* computed by a fused chain */
  bool only_stored[MIX_TILE_REGISTERS]; /* read by stores alone, which round it; no rounding before */
  bool uniform[MIX_TILE_REGISTERS];
  int same[MIX_TILE_REGISTERS]; /* the register whose tile holds its value: itself or an earlier one */
  /* Indexed by `same`: the last instruction that reads the value. INT_MAX: a store or the reduction reads
   * it. */
  int last[MIX_TILE_REGISTERS];
  /* The dtype of the value in the tile: float32 for a small integer that is loaded as float. */
  mix_dtype held_as[MIX_TILE_REGISTERS];
  int slot[MIX_TILE_REGISTERS]; /* indexed by `same`: the number of the tile or uniform value; -1: none yet */
  bool slot_free[MIX_TILE_REGISTERS]; /* indexed by tile */
  int slots;                          /* tiles */
  int uniforms;                       /* uniform values */
} mix_tile_plan;

static inline mix_tile_class mix_tile_held_class(const mix_tile_plan *plan, int reg) {
  return mix_tile_class_of(plan->held_as[reg]);
}

static inline const mix_instruction *mix_tile_plan_instruction(const mix_tile_plan *plan, int reg) {
  return &plan->p->program->instructions[reg - plan->p->program->load_count];
}

/* Is the instruction computed differently for the tail, the elements after the last whole SIMD packet of
 * eight of the space (simd/vector_math.inc.h)? */
static inline bool mix_tile_has_tail(const mix_tile_plan *plan, int reg) {
  return mix_opcode_has_tail(mix_tile_plan_instruction(plan, reg)->opcode) &&
         mix_tile_held_class(plan, reg) == MIX_TILE_FLOAT;
}

/* The operand whose dtype is the dtype of the computation: the second one of a select, else the first. */
static inline int mix_tile_operand_of_class(const mix_instruction *instruction) {
  return instruction->opcode == MIX_OPCODE_SELECT ? 1 : 0;
}

static inline mix_dtype mix_tile_operand_dtype(const mix_program *program,
                                               const mix_instruction *instruction) {
  return mix_program_register_dtype(program, instruction->operands[mix_tile_operand_of_class(instruction)]);
}

/* The vector functions of an instruction. */
typedef struct mix_tile_choice {
  mix_tile_function function, round; /* round: NULL if no rounding is needed */
  bool same;                         /* no computation is needed: the operand's tile is the result */
} mix_tile_choice;
/* choose_functions.c */
mix_tile_choice mix_tile_choose(const mix_tile_plan *plan, int instruction);

/* superinstructions.c: finds the fused chains and the superinstructions. */
void mix_tile_fuse_instructions(mix_tile_plan *plan);
/* Sets bound[k] to the register that is operand k of a chain whose code starts at instruction `first`. */
void mix_tile_bind_chain(const mix_tile_plan *plan, const mix_fused_chain *chain, int first, int *bound);

/* steps.c: emits the preamble, the body and the stores. */
void mix_tile_add_steps(mix_tile_plan *plan);
/* steps.c: chooses the largest tile size for which all tiles and uniform values fit into the thread's
 * memory, and sets their offsets. False: no size fits. */
bool mix_tile_place(mix_tile_plan *plan);
