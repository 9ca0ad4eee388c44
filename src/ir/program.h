/* Fused element-wise programs: load and widen, compute, round to each node's own dtype in registers, store. The reference backend
 * interprets them element by element, the CPU over vector tiles, the GPU prints them as CUDA C. A plain element-wise op is a
 * program of one instruction, so that no backend has another form of it. */
#ifndef MIX_IR_PROGRAM_H
#define MIX_IR_PROGRAM_H

#include "base/text.h"
#include "base/text_reader.h"
#include "graph/op.h"
#include "ops/elementwise.h"
#include "tensor/type.h"
#include <mixtape/dtype.h>

/* An element-wise program as a node; only passes make it. */
extern const mix_op mix_op_fused;

/* Registers are numbered in order of definition: the loads 0 .. load_count-1, then one for each instruction. What a register holds
 * follows from its dtype: float16, bfloat16, float32 compute as float; float64 as double; integers as int64 wrapped to their width;
 * bool as 0 or 1. Values in a register are always exactly representable in its dtype. Operands of an instruction may be of any dtypes
 * that compute alike: under jit_compile float32 stands among 16-bit registers. */
typedef struct mix_instruction {
  mix_opcode opcode;
  mix_dtype dtype;         /* of the result, rounded to it */
  int operands[3];         /* registers */
  double immediate;
} mix_instruction;

#define MIX_FROM_ACCUMULATOR (-1)

/* Operand `input` of the step, seen through the iteration space: element (i0, i1, ...) is at sum of i*strides (in elements);
 * 0 along broadcast dimensions. `input` MIX_FROM_ACCUMULATOR: the float32 (float64) result of the product whose epilogue this is. */
typedef struct mix_program_load {
  int input;
  mix_dtype dtype;
  int64_t strides[MIX_MAX_RANK];
} mix_program_load;

/* Register to output of the step; outputs are contiguous over the iteration space. They may alias a load of the same step, element
 * for element (an optimizer's update in place). */
typedef struct mix_program_store {
  int output;
  int reg;
} mix_program_store;

typedef enum mix_program_reduction { MIX_REDUCE_NOTHING, MIX_REDUCE_ALL_FINITE, MIX_REDUCE_TO_SUM, MIX_REDUCE_TO_MEAN } mix_program_reduction;

typedef struct mix_program {
  int rank;                     /* dimensions merged as far as every load allows; at least 1 */
  int64_t dims[MIX_MAX_RANK];
  int load_count, instruction_count, store_count;
  mix_program_load *loads;
  mix_instruction *instructions;
  mix_program_store *stores;
  /* At most one reduction over the whole space: of register `reduced` into output `reduction_output` (bool scalar for ALL_FINITE; a
   * scalar of that register's dtype for SUM and MEAN, in the order of the reductions' own kernels, so that the bits are theirs). */
  mix_program_reduction reduction;
  int reduced, reduction_output;
  int64_t row; /* SUM and MEAN: of each `row` elements that follow each other, into an output of as many; 0: of the whole space */
} mix_program;

static inline mix_dtype mix_program_register_dtype(const mix_program *program, int reg) {
  return reg < program->load_count ? program->loads[reg].dtype : program->instructions[reg - program->load_count].dtype;
}

/* A program that does nothing but test numbers of 16 bits, perhaps times a float32 that is the same for all: the loads of both; factor -1:
 * none. It may store the numbers too. */
bool mix_program_only_tests(const mix_program *program, int *tested, int *factor);
/* The same of an epilogue that stores and tests its product, nothing else. */
bool mix_program_only_tests_product(const mix_program *program, int *product, int *factor);

/* ---- as text (program_text.c) ---- */

/* One load, instruction, store or reduction a line, each line behind the indentation. */
void mix_program_put(const mix_program *program, const char *indent, mix_text *text);

enum { MIX_PROGRAM_MAX = 256 }; /* loads, instructions and stores that a text may have */
/* A program whose lines are being read; the arrays of `program` are its own. */
typedef struct mix_program_reading {
  mix_program program;
  mix_program_load loads[MIX_PROGRAM_MAX];
  mix_instruction instructions[MIX_PROGRAM_MAX];
  mix_program_store stores[MIX_PROGRAM_MAX];
  bool begun;
} mix_program_reading;
void mix_program_read_begin(mix_program_reading *reading);
/* One line. False with what is wrong in `problem`. */
bool mix_program_read_line(mix_program_reading *reading, mix_scan *line, char *problem, size_t size);
/* Does the whole fit: are registers, dtypes and strides those of operands and results of these types? False with what is wrong. */
bool mix_program_check(const mix_program *program, int input_count, const mix_type *inputs, int output_count,
                       const mix_type *outputs, char *problem, size_t size);

/* Can an instruction meet values that it fails on? Found when part of the results is written already. */
bool mix_program_may_fail(const mix_program *program);

#endif
