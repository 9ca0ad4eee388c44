/* Rounding of products' operands to narrow formats, which the pass "simulate_formats" makes. */
#include "ops/block_quantize.h"
#include "ops/convolution.h"
#include "ops/rules.h"

#define FIELD(name, kind, member)                                                                            \
  { name, MIX_ATTRIBUTE_##kind, offsetof(mix_block_attributes, member) }
static const mix_attribute_row fields[] = {
    FIELD("format", INT, format),      FIELD("axis", INT, axis),
    FIELD("count", INT, count),        FIELD("groups", INT64, groups),
    FIELD("gradient", BOOL, gradient), FIELD("stochastic", BOOL, stochastic),
    FIELD("seed", INT64, seed),        {NULL}};

const mix_op mix_op_block_quantize = {.name = "block_quantize",
                                      .signature = "T->T",
                                      .types = "float16 bfloat16",
                                      .attributes_size = sizeof(mix_block_attributes),
                                      .infer = mix_rule_same,
                                      .fields = fields};

bool mix_contracted_axes(const mix_op *op, const void *attributes, const mix_shape operands[2], int operand,
                         mix_block_attributes *axes) {
  const int rank = operands[operand].rank;
  axes->count = 1, axes->groups = 1;
  if (op->contraction->transpose[0]) { /* matrices: columns of A, rows of B */
    axes->axis = rank - (mix_op_transposes(op, attributes, operand) == (operand == 0) ? 2 : 1);
    return true;
  }
  const mix_conv_kind kind = mix_conv_kind_of(op);
  const mix_conv_attributes *convolution = attributes;
  const bool kernel = operand == 1 && kind == MIX_CONV_FORWARD;
  if (!convolution->groups) return false; /* depthwise */
  if (kernel || kind == MIX_CONV_KERNEL_GRADIENT)
    axes->axis = 0, axes->count = rank - 1; /* all but the channels */
  else
    axes->axis = rank - 1, axes->groups = convolution->groups;
  return true;
}
