/* The ops that look into a step, and their attributes. */
#pragma once

#include "graph/op.h"
#include "ops/list.h"

#define MIX_DECLARE_OP(name, ...) extern const mix_op mix_op_##name;
MIX_DEBUG_OPS(MIX_DECLARE_OP)
#undef MIX_DECLARE_OP

typedef struct mix_check_numerics_attributes {
  const char *message; /* interned; NULL: none */
} mix_check_numerics_attributes;
/* What is wrong with a tensor that has NaN values, infinite values, or both: static or interned. */
enum { MIX_HAS_NAN = 1, MIX_HAS_INFINITY = 2 };
const char *mix_check_numerics_reason(const mix_check_numerics_attributes *attributes, int has);
/* A node of the op, whose gradient is checked too. */
mix_tensor *mix_check_numerics_node(mix_tensor *tensor, const char *message);

typedef struct mix_print_attributes {
  const char *label; /* interned; NULL: "tensor" */
} mix_print_attributes;
bool mix_op_prints(const mix_op *op);
bool mix_op_checks_numerics(const mix_op *op);
/* A node of the op. `before`: the result of the print before it; NULL: it is the first. */
mix_tensor *mix_print_node(mix_tensor *tensor, const char *label, mix_tensor *before);
