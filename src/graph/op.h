/* The record of an operation. Each operation is one constant, in one file of ops/, with its name,
 * operands, dtypes, shape rule, gradient and traits. */
#pragma once

#include <mixtape/tensor.h>

typedef struct mix_node mix_node;

enum {
  MIX_OP_ELEMENTWISE = 1 << 0, /* `opcode` identifies it; may be part of a fused program */
  MIX_OP_KEEP = 1 << 1,        /* the rewrite leaves it unchanged */
  MIX_OP_SOURCE = 1 << 2,      /* placeholder, constant, read: no kernel */
  MIX_OP_READ = 1 << 3,        /* the value of a variable */
  MIX_OP_PROGRAM = 1 << 4,     /* is its node's element-wise program, and nothing else */
  MIX_OP_UNIFORM = 1 << 5,     /* every element is the `value` of its mix_shape_attributes */
  /* Invalid operand values are errors at run time: kernels call mix_kernel_fail. */
  MIX_OP_CHECKS_VALUES = 1 << 6,

  /* Data movement: elements of the result are elements of the operands, or of a padding. */
  MIX_OP_VIEW = 1 << 7,      /* the same bytes with another shape: the planner may share the memory */
  MIX_OP_TRANSPOSE = 1 << 8, /* permutes axes: mix_transpose_attributes */
  MIX_OP_BROADCAST = 1 << 9, /* repeats its operand along dimensions: mix_shape_attributes */
  MIX_OP_PARTS = 1 << 10,    /* takes parts of its operands, or joins them: slice, gather, concat, pad */
  MIX_OP_LAYOUT = MIX_OP_VIEW | MIX_OP_TRANSPOSE | MIX_OP_BROADCAST, /* of all values of its one operand */
  MIX_OP_MOVEMENT = MIX_OP_LAYOUT | MIX_OP_PARTS,

  /* The values of a random op depend on its state operand alone. So equal ones merge, but no pass draws
   * them a second time or ahead of the run. */
  MIX_OP_RANDOM = 1 << 11,
  MIX_OP_STATEFUL = 1 << 12, /* that it runs matters: not removed, merged, cloned, fused or folded */
  /* Exchanges values with other processes: stateful, and all of them run in program order. */
  MIX_OP_COLLECTIVE = 1 << 13 | MIX_OP_STATEFUL,

  /* Has the layout "rows": operand 0 holds values and operand 1 their indices, also once it is computed. */
  MIX_OP_ROWS = 1 << 14,
  /* Result 0 is operand 0 with some of its elements replaced. Where both are one memory, its kernel accesses
   * only these. */
  MIX_OP_UPDATES = 1 << 15,
  /* Runs the graph that its node has as its body (graph/body.h). Operands and results are of any number and
   * types: the signature names none. */
  MIX_OP_LOOP = 1 << 16,
  MIX_OP_EINSUM = 1 << 17, /* sums products over labels: mix_einsum_attributes */
  MIX_OP_SLICE = 1 << 18,  /* a block of its operand: mix_slice_attributes */
  MIX_OP_PAD = 1 << 19,    /* its operand as a block of its result: mix_pad_attributes */
  MIX_OP_SUM = 1 << 20,    /* the sum of any number of operands, which may broadcast */
  MIX_OP_WAITS = 1 << 21,  /* of a collective: only waits for what an earlier one began */
  /* Result i is operand i, and its gradient needs the others: the import into the ir drops the op. */
  MIX_OP_ALIAS = 1 << 22,
  /* Result 0 has the bytes and the memory of operand 0, but passes do not look through it. */
  MIX_OP_BARRIER = 1 << 23,
  /* Result 0 is the complex number of operands 0 and 1, its parts. No other op has it as an operand. */
  MIX_OP_COMPLEX = 1 << 24,
};

/* The reductions that a program can end in. They give the bits of the op's own kernel. */
typedef enum mix_reduction_kind {
  MIX_REDUCE_NOTHING,
  MIX_REDUCE_ALL_FINITE,
  MIX_REDUCE_TO_SUM,
  MIX_REDUCE_TO_MEAN
} mix_reduction_kind;

/* The kind of a member of an attribute struct, for graph text. */
typedef enum mix_attribute_kind {
  MIX_ATTRIBUTE_BOOL,        /* bool: written as its name if true */
  MIX_ATTRIBUTE_INT,         /* int */
  MIX_ATTRIBUTE_INT64,       /* int64_t */
  MIX_ATTRIBUTE_DOUBLE,      /* double */
  MIX_ATTRIBUTE_DTYPE,       /* mix_dtype */
  MIX_ATTRIBUTE_SHAPE,       /* mix_shape: (2, 3) */
  MIX_ATTRIBUTE_NUMBERS,     /* a list of numbers in a mix_shape: [0, 2] */
  MIX_ATTRIBUTE_AXES,        /* int count, axes[MIX_MAX_RANK]: [0, 2] */
  MIX_ATTRIBUTE_PERMUTATION, /* int[MIX_MAX_RANK]: [1, 0]; trailing axes that do not move are left out */
  MIX_ATTRIBUTE_TEXT,        /* const char *, interned: 'a label'; NULL is left out */
} mix_attribute_kind;
typedef struct mix_attribute_row {
  const char *name;
  mix_attribute_kind kind;
  size_t offset;
} mix_attribute_row;

/* A contraction sums products over dimensions that its operands 0 and 1 share: a matrix product, a
 * convolution. */
enum { MIX_CONTRACTED = 2 }; /* its operands; those after them belong to the epilogue */
typedef struct mix_contraction {
  const mix_attribute_row *transpose[MIX_CONTRACTED]; /* flags that transpose operands; NULL: none */
  bool swaps;                                         /* has both flags, and (A B)^T = B^T A^T */
  bool epilogue; /* its kernels run a program on the result: rows of the last dimension */
  /* The same on operands of the accumulator's dtype, with a result rounded to 16 bits: the dtype in the
   * member `result_dtype` of its attributes, which are those of this op in all else. NULL: none. */
  const struct mix_op *downcast;
  const mix_attribute_row *result_dtype;
  const mix_attribute_row *round_operands; /* the flag that rounds operands to that dtype as they are read */
  /* The op that proves the result finite from the operands, as mix_op_matmul_finite_bound does; NULL: none
   * for these attributes. A NULL function: none at all. */
  const struct mix_op *(*finite_bound)(const void *attributes);
  double (*multiplications)(const void *attributes, const mix_shape operands[MIX_CONTRACTED]);
} mix_contraction;

/* A node of which some operands have a batch: their axis 0 counts its rows. */
typedef struct mix_row_query {
  const void *attributes;
  int input_count;
  const mix_shape *inputs;
  const bool *batched; /* by operand; one that has the batch has a rank of 1 or more */
  mix_shape result;    /* of result 0 */
} mix_row_query;

/* What passes, planner and threads ask about an op stands here; they never ask for an op by name. */
typedef struct mix_op {
  const char *name;    /* "add": this project's name */
  const char *tf_name; /* "AddV2": TensorFlow's name, or NULL */
  /* Operand and result types, one letter each: "T,T->T", "B,T,T->T", "S->D", "T*->T" (any number of
   * operands), "->" (given with each node). Letters: T U B S D a type variable, whose dtypes `types` names;
   * b bool; i int32 or int64; f float32; l int64. */
  const char *signature;
  /* The dtypes of each type variable, in order of appearance, separated by commas: "float" (without float8),
   * "int", "bool", "number" (float and int), "any", or names: "float16 bfloat16 float32". */
  const char *types;
  unsigned flags;
  int opcode;             /* mix_opcode of ops/elementwise.h */
  size_t attributes_size; /* bytes of the attribute struct; 0: none */
  /* Sets the shapes of node->outputs from inputs and attributes, and the dtypes of result letters that no
   * operand binds. Operand dtypes have already been checked. Returns false with an error that names op,
   * shapes and dtypes. */
  bool (*infer)(mix_node *node);
  /* Builds the gradient with the public operations. output_gradients[i] is NULL if nothing flows back to
   * result i. Sets input_gradients[i] (owned by the scope) or leaves it NULL. What fails leaves an error
   * pending. A NULL function: not differentiable, gradients stop here. */
  void (*gradient)(mix_node *node, mix_tensor *const *output_gradients, mix_tensor **input_gradients);
  /* The members of the attribute struct, for graph text, ended by a row without a name; NULL: none. */
  const mix_attribute_row *fields;
  const mix_contraction *contraction; /* NULL: it is none */
  mix_reduction_kind reduction;       /* what it reduces to, where a program can end in it */
  const mix_attribute_row *axes;      /* of a reduction: the member with its axes; NULL: over all */
  /* Of sums of 16-bit operands: the dtype of partial sums, which are rounded once at the end. Operands of an
   * element-wise op that has one may be such partial sums. MIX_DTYPE_NONE: each result is rounded. */
  mix_dtype accumulator;
  /* The element-wise op that computes it if operands broadcast (bias_add: add), or that takes in one operand
   * after the other (add_n: add). NULL: none. */
  const struct mix_op *elementwise;
  unsigned scalars; /* bit i: operand i of this element-wise op is a scalar (the bounds of clip) */
  /* What public calls ensure beyond the shape rule, and kernels rely on: NULL, or what is wrong (static
   * text). A NULL function: nothing. */
  const char *(*violation)(const mix_node *node);
  /* Does every result have the batch as its axis 0 too, row i computed from row i of the operands that have
   * it and from the others, in one way for every i and every number of rows? At least one operand has it. A
   * NULL function: never. */
  bool (*row_independent)(const mix_row_query *query);
} mix_op;

static inline bool mix_op_is_collective(const mix_op *op) {
  return (op->flags & MIX_OP_COLLECTIVE) == MIX_OP_COLLECTIVE;
}
/* May a pass compute it a second time, or ahead of the run? */
static inline bool mix_op_is_repeatable(const mix_op *op) {
  return !(op->flags & (MIX_OP_RANDOM | MIX_OP_STATEFUL));
}
/* Do the attributes of a contraction transpose this operand? */
static inline bool mix_op_transposes(const mix_op *op, const void *attributes, int operand) {
  const mix_attribute_row *flag = op->contraction->transpose[operand];
  return flag && *(const bool *)((const char *)attributes + flag->offset);
}

/* All ops, ended by NULL, for tests, dumps and the rewrite (ops/table.c). */
extern const mix_op *const mix_all_ops[];
const mix_op *mix_op_by_name(const char *name);
/* True if the op's type variable `variable` (0: the first of the signature) may have that dtype. */
bool mix_op_allows(const mix_op *op, int variable, mix_dtype dtype);
