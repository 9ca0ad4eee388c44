/* Rounding to bfloat16 by random bits, which state in 16 bits needs: a change below half the spacing of its
 * numbers is lost by rounding to nearest, each time. */
#include "ops/stochastic_round.h"
#include "ops/rules.h"

static bool infer(mix_node *node) {
  const double stream = ((const mix_alpha_attributes *)node->attributes)->alpha;
  if (!mix_stream_exists(stream))
    return mix_rule_fail(node, "stream is %g; expected -1, or 0 to 2^24 - 1", stream);
  for (int i = 1; i < 3; i++)
    if (mix_input_value(node, i)->shape.rank != 0)
      return mix_rule_fail(node, "expected a scalar seed and a scalar step");
  node->outputs[0].dtype = MIX_BFLOAT16;
  return mix_rule_same(node);
}

static const mix_attribute_row fields[] = {
    {"stream", MIX_ATTRIBUTE_DOUBLE, offsetof(mix_alpha_attributes, alpha)}, {NULL}};

/* Its bits depend on the place of an element in the tensor: no row is like another. */
const mix_op mix_op_stochastic_round = {.name = "stochastic_round",
                                        .signature = "f,l,l->T",
                                        .types = "bfloat16",
                                        .flags = MIX_OP_ELEMENTWISE,
                                        .opcode = MIX_OPCODE_STOCHASTIC_ROUND,
                                        .attributes_size = sizeof(mix_alpha_attributes),
                                        .infer = infer,
                                        .fields = fields,
                                        .scalars = 1u << 1 | 1u << 2};

mix_tensor *mix_stochastic_round(mix_tensor *x, mix_tensor *seed, mix_tensor *step, int stream) {
  return mix_apply(&mix_op_stochastic_round, &(mix_alpha_attributes){stream}, 3,
                   (mix_tensor *[]){x, seed, step});
}
