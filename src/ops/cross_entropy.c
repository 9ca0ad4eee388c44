/* Softmax cross-entropies. Operands (logits, labels); results: losses (...) and backprop (..., classes).
 * backprop is softmax(logits) - labels, which is d loss / d logits for labels that sum to 1. Gradients as
 * in TensorFlow (python/ops/nn_grad.py). */
#include "ops/rules.h"

/* Sets the shapes of losses and backprop from that of the logits. */
static bool results(mix_node *node, mix_shape logits) {
  if (!mix_rule_output(node, 1, logits)) return false;
  logits.rank--;
  return mix_rule_output(node, 0, logits);
}

static bool softmax_cross_entropy_infer(mix_node *node) {
  mix_shape logits = mix_input_value(node, 0)->shape, labels = mix_input_value(node, 1)->shape;
  bool fit = logits.rank >= 1 && logits.rank == labels.rank;
  for (int axis = 0; fit && axis < logits.rank; axis++)
    fit = mix_dimension_merge(logits.dims[axis], labels.dims[axis], &logits.dims[axis]);
  if (!fit) return mix_rule_fail(node, "expected logits and labels of one shape (..., classes)");
  return results(node, logits);
}

static bool sparse_softmax_cross_entropy_infer(mix_node *node) {
  mix_shape logits = mix_input_value(node, 0)->shape, labels = mix_input_value(node, 1)->shape;
  bool fit = logits.rank >= 1 && labels.rank == logits.rank - 1;
  for (int axis = 0; fit && axis < labels.rank; axis++)
    fit = mix_dimension_merge(logits.dims[axis], labels.dims[axis], &logits.dims[axis]);
  if (!fit) return mix_rule_fail(node, "expected logits (..., classes) and labels (...)");
  return results(node, logits);
}

/* The gradient of the logits from both results: loss_gradient backprop + (g - sum(g softmax)) softmax,
 * where g is the gradient of backprop. */
static mix_tensor *logits_gradient(mix_node *node, mix_tensor *const *output_gradients) {
  mix_tensor *from_losses = NULL, *from_backprop = NULL;
  if (output_gradients[0])
    from_losses = mix_multiply(mix_expand_dims(output_gradients[0], -1), mix_tensor_of(node, 1));
  if (output_gradients[1]) {
    mix_tensor *softmax = mix_softmax(mix_node_input(node, 0)), *gradient = output_gradients[1];
    mix_tensor *mean =
        mix_reduce_sum(mix_multiply(gradient, softmax), (mix_axes){.count = 1, .axis = {-1}}, true);
    from_backprop = mix_multiply(mix_subtract(gradient, mean), softmax);
  }
  return from_losses && from_backprop ? mix_add(from_losses, from_backprop)
         : from_losses                ? from_losses
                                      : from_backprop;
}

/* The gradient of the labels: -log_softmax(logits) from the losses, -1 from backprop (TensorFlow omits the
 * latter). */
static mix_tensor *labels_gradient(mix_node *node, mix_tensor *const *output_gradients) {
  mix_tensor *from_losses = NULL, *from_backprop = NULL;
  if (output_gradients[0])
    from_losses = mix_multiply(mix_expand_dims(output_gradients[0], -1),
                               mix_negative(mix_log_softmax(mix_node_input(node, 0))));
  if (output_gradients[1]) from_backprop = mix_negative(output_gradients[1]);
  return from_losses && from_backprop ? mix_add(from_losses, from_backprop)
         : from_losses                ? from_losses
                                      : from_backprop;
}

static void softmax_cross_entropy_gradient(mix_node *node, mix_tensor *const *output_gradients,
                                           mix_tensor **input_gradients) {
  input_gradients[0] = logits_gradient(node, output_gradients);
  input_gradients[1] = labels_gradient(node, output_gradients);
}

static void sparse_softmax_cross_entropy_gradient(mix_node *node, mix_tensor *const *output_gradients,
                                                  mix_tensor **input_gradients) {
  input_gradients[0] = logits_gradient(node, output_gradients);
}

#define OP(called, tf, letters, dtypes, flag)                                                                \
  const mix_op mix_op_##called = {.name = #called,                                                           \
                                  .tf_name = tf,                                                             \
                                  .signature = letters,                                                      \
                                  .types = dtypes,                                                           \
                                  .flags = flag,                                                             \
                                  .infer = called##_infer,                                                   \
                                  .row_independent = mix_rows_before_classes,                                \
                                  .gradient = called##_gradient};                                            \
  mix_tensor *mix_##called(mix_tensor *labels, mix_tensor *logits) {                                         \
    return mix_apply2(&mix_op_##called, logits, labels);                                                     \
  }
OP(softmax_cross_entropy, "SoftmaxCrossEntropyWithLogits", "T,T->T,T", "float", 0)
OP(sparse_softmax_cross_entropy, "SparseSoftmaxCrossEntropyWithLogits", "T,U->T,T", "float,int",
   MIX_OP_CHECKS_VALUES)
