/* A plan: what the compiler hands to a backend. Steps in order, each value in a slot of known place; nothing here is device code. */
#ifndef MIX_BACKEND_PLAN_H
#define MIX_BACKEND_PLAN_H

#include "ir/program.h"
#include "graph/op.h"

typedef enum mix_slot_kind {
  MIX_SLOT_ARGUMENT, /* index: which argument of the call */
  MIX_SLOT_VARIABLE, /* index: which variable; the address is fixed */
  MIX_SLOT_CONSTANT, /* data: the bytes, living as long as the plan */
  MIX_SLOT_ARENA,    /* offset into the arena */
  MIX_SLOT_RESULT,   /* index: which result; the buffer is bound at each call */
} mix_slot_kind;

typedef struct mix_slot {
  mix_slot_kind kind;
  int index;
  size_t offset;
  const void *data;
  MIX_TYPE_MEMBERS;
  size_t bytes;
} mix_slot;

typedef struct mix_step {
  const mix_op *op;          /* &mix_op_fused for a program of its own */
  const void *attributes;
  const mix_program *program; /* of a fused step, or the epilogue of a product; NULL: none */
  int input_count, output_count;
  const int *inputs, *outputs; /* slots. A product with an epilogue: inputs 0 and 1 are its operands, the program's loads name inputs by
                                * the same numbering; its own raw result has no slot */
  int guard;                 /* slot of a bool scalar: run only if true; -1: always */
  bool writes_variable;      /* runs only while the plan has no run-time error */
  const char *scope;         /* layer, for messages and profiles; may be NULL */
} mix_step;

typedef struct mix_plan {
  int slot_count, step_count;
  mix_slot *slots;
  mix_step *steps;
  int argument_count, variable_count, result_count;
  void **variables;          /* addresses, fixed */
  size_t arena_bytes;
} mix_plan;


/* Is every element of the product of matrices (k, m), transposed, and (k, n), rounded to `dtype`, finite whatever the order of its sums?
 * By Cauchy and Schwarz none exceeds the largest norm of a column of the first times that of a column of the second: finite where that
 * product is at most half the dtype's largest number (the other half is for the sums' own rounding), and where the third operand, a
 * float32 that the elements are then multiplied by, if there is one, is at most 1. Two results, bool scalars: finite, and its opposite:
 * unsure, a guard. Made by plans only (compile/foresee.c). */
typedef struct mix_finite_bound_attributes { mix_dtype dtype; } mix_finite_bound_attributes;
extern const mix_op mix_op_matmul_finite_bound;
/* The decision, from the largest squares of the norms. What is NaN or infinite is unsure. */
static inline bool mix_finite_bound_holds(mix_dtype dtype, double square_a, double square_b, float factor) {
  const double half = dtype == MIX_FLOAT16 ? 32752 : 0x1.fep126;
  return square_a * square_b <= half * half && factor >= -1 && factor <= 1;
}

#endif
