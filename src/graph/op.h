/* The record of an operation. Each operation is one constant, in one file of ops/, with its name,
 * operands, dtypes, shape rule and gradient. */
#ifndef MIX_GRAPH_OP_H
#define MIX_GRAPH_OP_H

#include <mixtape/tensor.h>

typedef struct mix_node mix_node;

enum {
  MIX_OP_ELEMENTWISE = 1 << 0,   /* `opcode` identifies it; may be part of a fused program */
  /* never merged or folded; no op has it today, as random ops are functions of their state */
  MIX_OP_STATEFUL = 1 << 1,
  MIX_OP_KEEP = 1 << 2,          /* the rewrite leaves it unchanged */
  MIX_OP_SOURCE = 1 << 3,        /* placeholder, constant, read: no kernel */
  /* Invalid operand values are errors at run time: kernels set args->failure. */
  MIX_OP_CHECKS_VALUES = 1 << 5,
  MIX_OP_VIEW = 1 << 4, /* the same bytes with another shape (reshape): the planner may share the memory */
};

/* The kind of a member of an attribute struct, for graph text. */
typedef enum mix_field_kind {
  MIX_FIELD_BOOL,        /* bool: written as its name if true */
  MIX_FIELD_INT,         /* int */
  MIX_FIELD_INT64,       /* int64_t */
  MIX_FIELD_DOUBLE,      /* double */
  MIX_FIELD_DTYPE,       /* mix_dtype */
  MIX_FIELD_SHAPE,       /* mix_shape: (2, 3) */
  MIX_FIELD_NUMBERS,     /* a list of numbers in a mix_shape: [0, 2] */
  MIX_FIELD_AXES,        /* int count, axes[MIX_MAX_RANK]: [0, 2] */
  MIX_FIELD_PERMUTATION, /* int[MIX_MAX_RANK]: [1, 0]; trailing axes that do not move are left out */
} mix_field_kind;
typedef struct mix_field {
  const char *name;
  mix_field_kind kind;
  size_t offset;
} mix_field;

typedef struct mix_op {
  const char *name;    /* "add": this project's name */
  const char *tf_name; /* "AddV2": TensorFlow's name, or NULL */
  /* Operand and result types, one letter each: "T,T->T", "B,T,T->T", "S->D", "T*->T" (any number of
   * operands). Letters: T U B S D a type variable, whose dtypes `types` names; b bool; i int32 or int64; f
   * float32; l int64. */
  const char *signature;
  /* The dtypes of each type variable, in order of appearance, separated by commas: "float", "int", "bool",
   * "number" (float and int), "any", or names: "float16 bfloat16 float32". */
  const char *types;
  unsigned flags;
  int opcode;             /* mix_opcode of ops/elementwise.h */
  size_t attributes_size; /* bytes of the attribute struct; 0: none */
  /* Sets the shapes of node->outputs from inputs and attributes, and the dtypes of result letters that no
   * operand binds. Operand dtypes have already been checked. Returns false with an error that names op,
   * shapes and dtypes. */
  bool (*infer)(mix_node *node);
  /* Builds the gradient with the public operations. output_gradients[i] is NULL if nothing flows back to
   * result i. Sets input_gradients[i] (owned by the scope) or leaves it NULL. A NULL function: not
   * differentiable, gradients stop here. */
  bool (*gradient)(mix_node *node, mix_tensor *const *output_gradients, mix_tensor **input_gradients);
  /* The members of the attribute struct, for graph text, ended by a row without a name; NULL: none. */
  const mix_field *fields;
} mix_op;

/* All ops, ended by NULL, for tests, dumps and the rewrite (ops/table.c). */
extern const mix_op *const mix_all_ops[];
const mix_op *mix_op_by_name(const char *name);
/* True if the op's type variable `variable` (0: the first of the signature) may have that dtype. */
bool mix_op_allows(const mix_op *op, int variable, mix_dtype dtype);

#endif
