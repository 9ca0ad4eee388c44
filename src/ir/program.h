/* Fused element-wise programs: load and widen, compute, round to each node's own dtype in registers,
 * store. The reference backend interprets them element by element; the CPU backend runs them over vector
 * tiles. A single element-wise op is a program of one instruction, so backends need no other form. */
#pragma once

#include "base/text.h"
#include "base/text_reader.h"
#include "graph/op.h"
#include "ops/elementwise.h"
#include "tensor/type.h"

/* An element-wise program as a node. Only passes create it. */
extern const mix_op mix_op_fused;

/* Registers are numbered in order of definition: first the loads 0 .. load_count-1, then one for each
 * instruction. The dtype determines the representation: float16, bfloat16 and float32 as float; float64 as
 * double; integers as int64 wrapped to their width; bool as 0 or 1. A register's value is always
 * representable in its dtype. Operands of an instruction may differ in dtype if they have one
 * representation: under jit_compile float32 mixes with 16-bit registers. */
typedef struct mix_instruction {
  mix_opcode opcode;
  mix_dtype dtype; /* of the result, which is rounded to it */
  int operands[3]; /* registers */
  double immediate;
} mix_instruction;

#define MIX_FROM_ACCUMULATOR (-1)

/* Operand `input` of the step, indexed by the iteration space: element (i0, i1, ...) is at `offset` plus the
 * sum of i*strides, in elements. Strides are 0 along broadcast dimensions. MIX_FROM_ACCUMULATOR: the float32
 * (or float64) result of the product that the program is the epilogue of. */
typedef struct mix_program_load {
  int input;
  mix_dtype dtype;
  int64_t strides[MIX_MAX_RANK], offset;
} mix_program_load;

/* Register to output of the step. Outputs are contiguous over the iteration space. An output may alias a
 * load of the same step element by element (in-place update of an optimizer). */
typedef struct mix_program_store {
  int output;
  int reg;
} mix_program_store;

/* A sum or mean of each `row` consecutive elements, or, of elements in rows of `column`, of each column; the
 * other of the two is 0. */
typedef struct mix_program_sum {
  mix_reduction_kind kind;
  int reg, output;
  int64_t row, column;
} mix_program_sum;
enum { MIX_PROGRAM_SUMS = 8 };
/* Are these the ends of one program over that many elements? Lengths of rows divide one another and the
 * columns, of which there is one number; beside rows these have more than `one_chain` elements. */
bool mix_program_sums_fit(const mix_program_sum *sums, int count, int64_t elements, int64_t one_chain);

typedef struct mix_program {
  int rank; /* at least 1; dimensions are merged as far as all loads allow */
  int64_t dims[MIX_MAX_RANK];
  int load_count, instruction_count, store_count;
  mix_program_load *loads;
  mix_instruction *instructions;
  mix_program_store *stores;
  /* At most one reduction over the whole space, of register `reduced` into output `reduction_output`.
   * ALL_FINITE gives a bool scalar. SUM and MEAN give a scalar of the register's dtype; they add in the
   * order of the reduction kernels and so give the same bits. */
  mix_reduction_kind reduction;
  int reduced, reduction_output;
  /* SUM and MEAN: one result for each `row` consecutive elements; 0: one for the whole space. */
  int64_t row;
  /* Instead of that reduction: sums of columns, or several sums. */
  int sum_count;
  mix_program_sum *sums;
} mix_program;

/* The rows and columns of a contraction's result, over which its epilogue runs: the last dimension is the
 * columns. Of less than two dimensions: as it is. */
mix_shape mix_epilogue_space(mix_shape result);

static inline mix_dtype mix_program_register_dtype(const mix_program *program, int reg) {
  return reg < program->load_count ? program->loads[reg].dtype
                                   : program->instructions[reg - program->load_count].dtype;
}

/* True for a program that only tests 16-bit values for finiteness, possibly times a float32 that is the
 * same for all. Sets the registers of both loads; factor -1: none. The program may also store the values. */
bool mix_program_only_tests(const mix_program *program, int *tested, int *factor);
/* The same for an epilogue that stores and tests its product and does nothing else. */
bool mix_program_only_tests_product(const mix_program *program, int *product, int *factor);

/* ---- text form (program_text.c) ---- */

/* Writes one load, instruction, store or reduction a line, each line after the indentation. */
void mix_program_put(const mix_program *program, const char *indent, mix_text *text);

enum { MIX_PROGRAM_MAX = 256 }; /* maximum of loads, instructions and stores in a text */
/* A program that is being read. The arrays of `program` are the members below. */
typedef struct mix_program_reading {
  mix_program program;
  mix_program_load loads[MIX_PROGRAM_MAX];
  mix_instruction instructions[MIX_PROGRAM_MAX];
  mix_program_store stores[MIX_PROGRAM_MAX];
  mix_program_sum sums[MIX_PROGRAM_SUMS];
  bool begun;
} mix_program_reading;
void mix_program_read_begin(mix_program_reading *reading);
/* Reads one line. Returns false with the reason in `problem`. */
bool mix_program_read_line(mix_program_reading *reading, mix_scan *line, char *problem, size_t size);
/* Checks registers, dtypes and strides against operands and results of these types. Returns false with the
 * reason in `problem`. */
bool mix_program_check(const mix_program *program, int input_count, const mix_type *inputs, int output_count,
                       const mix_type *outputs, char *problem, size_t size);

/* True if an instruction can fail on invalid values. Part of the results may then already be written. */
bool mix_program_may_fail(const mix_program *program);
