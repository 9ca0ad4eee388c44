/* StableHLO text of a graph before fusion: a module whose function `main` is one run. Its parameters are, in
 * this order, the arguments, the variables, large constants, and the error word; its results are those of the
 * graph, the new values of the variables that it assigns, and the new error word. */
#pragma once

#include "backend/host/kernel.h"

/* The error word is int64 (3): the number of a check, from 1 on (0: no bad value yet), the element and the
 * value that it met. Once it is set it stays, and main returns the former values of all variables. */
enum { MIX_XLA_ERROR_CHECK, MIX_XLA_ERROR_ELEMENT, MIX_XLA_ERROR_VALUE, MIX_XLA_ERROR_WORDS };

typedef enum mix_xla_parameter_kind {
  MIX_XLA_ARGUMENT,
  MIX_XLA_VARIABLE,
  MIX_XLA_CONSTANT, /* too large for the text: the same in each run */
  MIX_XLA_ERROR,
} mix_xla_parameter_kind;
typedef struct mix_xla_parameter {
  mix_xla_parameter_kind kind;
  MIX_TYPE_MEMBERS;
  int index; /* of the argument or the variable; of a constant: its node */
  /* The constant's node: its bytes are mix_ir_map_constant's. */
  const mix_ir_node *constant;
  /* The result of main that replaces it, into which it is donated (the error word is kept); -1: none. */
  int result;
} mix_xla_parameter;

/* Where a run can meet a bad value. */
typedef struct mix_xla_check {
  const mix_op *op;
  const char *scope;
  int input_count;
  const mix_type *input_types;
  mix_bad_value bad; /* its element and value are those of the error word */
} mix_xla_check;

/* In the memory of the graph. */
typedef struct mix_xla_signature {
  mix_xla_parameter *parameters; /* all arguments and variables of the graph, in its order, then the others */
  int parameter_count;
  mix_type *results; /* of main: those of the graph come first */
  int result_count;
  mix_xla_check *checks;
  int check_count;
  int error_parameter; /* -1: the graph neither checks nor assigns anything */
  int error_result;    /* -1: the error word stays as it is */
} mix_xla_signature;

/* The text (mix_free), and the signature of its main. NULL with the error recorded, which names an op that
 * has no form there. Equal graphs have equal texts. */
char *mix_xla_emit(mix_ir *graph, mix_xla_signature *signature);
/* Has the op a form for operands of a dtype? */
bool mix_xla_supports(const mix_op *op, mix_dtype dtype);
/* The message of a value error, from an error word that is set. */
void mix_xla_error_text(const mix_xla_signature *signature, const int64_t word[MIX_XLA_ERROR_WORDS],
                        char *text, size_t size);
