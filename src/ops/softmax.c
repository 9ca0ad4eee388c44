/* Softmax and log-softmax over the last axis. */
#include "ops/rules.h"

static bool softmax_infer(mix_node *node) {
  if (mix_input_value(node, 0)->shape.rank < 1) return mix_rule_fail(node, "expected logits (..., classes)");
  return mix_rule_same(node);
}

static mix_tensor *sum_of_classes(mix_tensor *x) {
  return mix_reduce_sum(x, (mix_axes){.count = 1, .axis = {-1}}, true);
}

/* dx = (dy - sum(dy y)) y. */
static void softmax_gradient(mix_node *node, mix_tensor *const *output_gradients,
                             mix_tensor **input_gradients) {
  mix_tensor *y = mix_tensor_of(node, 0), *dy = output_gradients[0];
  input_gradients[0] = mix_multiply(mix_subtract(dy, sum_of_classes(mix_multiply(dy, y))), y);
}

/* dx = dy - sum(dy) softmax, where softmax = exp(y). */
static void log_softmax_gradient(mix_node *node, mix_tensor *const *output_gradients,
                                 mix_tensor **input_gradients) {
  mix_tensor *softmax = mix_exp(mix_tensor_of(node, 0)), *dy = output_gradients[0];
  input_gradients[0] = mix_subtract(dy, mix_multiply(sum_of_classes(dy), softmax));
}

#define OP(called, tf)                                                                                       \
  const mix_op mix_op_##called = {.name = #called,                                                           \
                                  .tf_name = tf,                                                             \
                                  .signature = "T->T",                                                       \
                                  .types = "float",                                                          \
                                  .infer = softmax_infer,                                                    \
                                  .row_independent = mix_rows_before_classes,                                \
                                  .gradient = called##_gradient};                                            \
  mix_tensor *mix_##called(mix_tensor *logits) { return mix_apply1(&mix_op_##called, logits); }
OP(softmax, "Softmax")
OP(log_softmax, "LogSoftmax")
