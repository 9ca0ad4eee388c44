/* A plan: what the compiler hands to a backend. It lists the steps in order; every value has a slot with a
 * known place. Nothing here is device code. */
#pragma once

#include "ir/program.h"
#include "tensor/memory.h"

typedef enum mix_slot_kind {
  MIX_SLOT_ARGUMENT, /* index: argument of the call */
  MIX_SLOT_VARIABLE, /* index: which variable; its memory is bound at each call */
  MIX_SLOT_CONSTANT, /* memory, offset: where the bytes are, living as long as the plan */
  MIX_SLOT_ARENA,    /* offset into the arena */
  MIX_SLOT_RESULT,   /* index: result; its buffer is bound at each call */
} mix_slot_kind;

typedef struct mix_slot {
  mix_slot_kind kind;
  int index;
  size_t offset;
  mix_memory *memory; /* of a constant, which the plan's owner retains */
  MIX_TYPE_MEMBERS;
  size_t bytes;
} mix_slot;

typedef struct mix_step {
  const mix_op *op; /* &mix_op_fused for a program of its own */
  const void *attributes;
  const mix_program *program;  /* of a fused step, or the epilogue of a product; NULL: none */
  const struct mix_plan *body; /* of a loop: the plan of one step, of its own arena; NULL: none */
  int input_count, output_count;
  /* Slots. Inputs 0 and 1 of a product with an epilogue are its operands. The loads of the program number
   * the inputs of the step in the same way. The raw result of the product has no slot. */
  const int *inputs, *outputs;
  int guard;            /* slot of a bool scalar: the step runs only if it is true; -1: always */
  bool writes_variable; /* the step runs only while the plan has no run-time error */
  const char *scope;    /* layer, for messages and profiles; may be NULL */
} mix_step;

typedef struct mix_plan {
  int slot_count, step_count;
  mix_slot *slots;
  mix_step *steps;
  int argument_count, variable_count, result_count;
  bool repeated;       /* a step of a loop: the threads are there already, and meet before and after it */
  int fixed_arguments; /* of the plan of a step of a loop: the last so many are the same in all steps */
  bool keeps_packed;   /* what kernels pack of variables that no step writes stays there for later runs */
  /* By variable: which it is, while the plan lives. Plans share what they pack of one; NULL: they do not. */
  const void *const *variable_names;
  size_t arena_bytes;
  struct mix_communicator *communicator; /* of its collectives (communicator.h); NULL: one process */
} mix_plan;
