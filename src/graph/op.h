/* What an operation is. One constant for each, in one file of ops/ that says everything about it: name, operands, dtypes, shape
 * rule, gradient. */
#ifndef MIX_GRAPH_OP_H
#define MIX_GRAPH_OP_H

#include <mixtape/tensor.h>

typedef struct mix_node mix_node;

enum {
  MIX_OP_ELEMENTWISE = 1 << 0,   /* `opcode` says which; can be part of a fused program */
  MIX_OP_STATEFUL = 1 << 1,      /* never merged or folded (none of today's: random ops are functions of their state) */
  MIX_OP_KEEP = 1 << 2,          /* the rewrite leaves it alone */
  MIX_OP_SOURCE = 1 << 3,        /* placeholder, constant, read: has no kernel */
  MIX_OP_CHECKS_VALUES = 1 << 5, /* values that its operands may not have are errors at run time: kernels set args->failure */
  MIX_OP_VIEW = 1 << 4,          /* the same bytes under another shape (reshape): the planner lets it share memory */
};

/* A member of an attribute struct, as the text of graphs shows it. */
typedef enum mix_field_kind {
  MIX_FIELD_BOOL,        /* bool: its name alone, where it is true */
  MIX_FIELD_INT,         /* int */
  MIX_FIELD_INT64,       /* int64_t */
  MIX_FIELD_DOUBLE,      /* double */
  MIX_FIELD_DTYPE,       /* mix_dtype */
  MIX_FIELD_SHAPE,       /* mix_shape: (2, 3) */
  MIX_FIELD_NUMBERS,     /* mix_shape that is no shape: [0, 2] */
  MIX_FIELD_AXES,        /* int count, axes[MIX_MAX_RANK]: [0, 2] */
  MIX_FIELD_PERMUTATION, /* int[MIX_MAX_RANK]: [1, 0]; axes behind the last that moves are left out */
} mix_field_kind;
typedef struct mix_field {
  const char *name;
  mix_field_kind kind;
  size_t offset;
} mix_field;

typedef struct mix_op {
  const char *name;    /* "add": this project's */
  const char *tf_name; /* "AddV2": TensorFlow's; NULL where it has none */
  /* Operand and result types, one letter a type vertex: "T,T->T", "B,T,T->T", "S->D", "T*->T" (any number of operands).
   * Letters: T U any type named in `types`; b bool; i int32 or int64; f float32; l int64. */
  const char *signature;
  /* Dtypes that T (and after a comma U, D, S, in order of appearance) may have: "float", "int", "bool", "number" (float and int),
   * "any", or names: "float16 bfloat16 float32". */
  const char *types;
  unsigned flags;
  int opcode;             /* mix_opcode of ops/elementwise.h */
  size_t attributes_size; /* bytes of the attribute struct; 0: none */
  /* Fills the shapes (and, for result letters that no operand binds, the dtypes) of node->outputs from inputs and attributes.
   * Dtypes of operands have been checked against the signature. False with an error that names op, shapes and dtypes. */
  bool (*infer)(mix_node *node);
  /* Appends the gradient nodes: output_gradients[i] is NULL where nothing flows back; sets input_gradients[i] (owned by the scope)
   * or leaves NULL. NULL function: not differentiable, gradients stop here. Builds with the public operations. */
  bool (*gradient)(mix_node *node, mix_tensor *const *output_gradients, mix_tensor **input_gradients);
  const mix_field *fields; /* what the attribute struct holds, for texts; ended by a row without a name. NULL: nothing */
} mix_op;

/* Every op of the library, for tests, dumps and the rewrite: ended by NULL (ops/table.c). */
extern const mix_op *const mix_all_ops[];
const mix_op *mix_op_by_name(const char *name);
/* May the op's type variable with this number (T 0, what comes after a comma of `types` 1, ...) be of that dtype? */
bool mix_op_allows(const mix_op *op, int variable, mix_dtype dtype);

#endif
