/* Activation functions by name. */
#ifndef MIXTAPE_ACTIVATION_H
#define MIXTAPE_ACTIVATION_H

#include <mixtape/semantics.h>
#include <mixtape/tensor.h>

MIX_BEGIN_DECLARATIONS

/* Names: linear, relu, leaky_relu, relu6, elu, selu, celu, softplus, softsign, sigmoid, log_sigmoid,
 * hard_sigmoid, silu (swish), hard_silu (hard_swish), gelu, glu, tanh, tanh_shrink, hard_tanh,
 * soft_shrink, hard_shrink, threshold, sparse_plus, sparse_sigmoid, squareplus, exponential, mish,
 * softmax, log_softmax, sparsemax. NULL is linear.
 * tf_keras has relu, softmax, elu, selu, softplus, softsign, swish (silu), gelu, tanh, sigmoid,
 * exponential, hard_sigmoid, linear, mish; others are a ValueError there. The result of softmax and
 * sigmoid keeps a reference to its logits, for the stable cross-entropies. */
typedef struct mix_activate_options {
  size_t size;
  mix_tensor *x;         /* required */
  double negative_slope; /* relu: 0; leaky_relu: 0 means 0.2, MIX_ZERO is accepted */
  double max_value;      /* relu: 0 means none; MIX_ZERO is accepted */
  /* relu: 0. threshold: x must exceed it. soft_shrink, hard_shrink: 0 means 0.5, MIX_ZERO is accepted. */
  double threshold;
  double value;     /* threshold: replaces elements that do not exceed the threshold */
  double alpha;     /* elu, celu: 0 means 1; MIX_ZERO is accepted. squareplus: b, 0 means 4 */
  bool approximate; /* gelu: the tanh approximation */
  int axis;         /* softmax, log_softmax, glu, sparsemax: 0 means the last; MIX_AXIS_0 means 0 */
  const mix_semantics *semantics; /* NULL: the default of the process */
} mix_activate_options;
#define MIX_AXIS_0 INT32_MIN
/* Applies the activation to x. The result has x's shape (glu: half the size along the axis) and dtype.
 * ValueError for an unknown name. */
MIX_API mix_tensor *mix_activate_with(const char *activation, const mix_activate_options *options);
#ifndef __cplusplus
/* mix_activate("gelu", x, .approximate = true) */
#define mix_activate(activation, ...)                                                                        \
  mix_activate_with(activation,                                                                              \
                    MIX_ARGUMENTS("mix_activate", "x", #__VA_ARGS__, mix_activate_options, __VA_ARGS__))
#endif

MIX_END_DECLARATIONS
#endif
