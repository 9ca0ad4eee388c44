/* optimization_barrier: a value under another name, so that no pass merges what is computed from it with what
 * was computed from the value before. XLA, which orders by itself, must wait for the second operand. */
#include "ops/rules.h"

static bool barrier_infer(mix_node *node) {
  return mix_rule_output(node, 0, mix_input_value(node, 0)->shape);
}

static void barrier_gradient(mix_node *node, mix_tensor *const *output_gradients,
                             mix_tensor **input_gradients) {
  input_gradients[0] = output_gradients[0];
}

static bool barrier_rows(const mix_row_query *query) { return query->batched[0]; }

const mix_op mix_op_optimization_barrier = {.name = "optimization_barrier",
                                            .tf_name = "Identity",
                                            .signature = "T,U->T",
                                            .types = "any,any",
                                            .flags = MIX_OP_BARRIER,
                                            .infer = barrier_infer,
                                            .row_independent = barrier_rows,
                                            .gradient = barrier_gradient};
