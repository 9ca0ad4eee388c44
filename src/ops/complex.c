#include "ops/complex.h"

#include "ops/rules.h"

static const mix_op op_complex = {.name = "complex",
                                  .signature = "T,T->T",
                                  .types = "float",
                                  .flags = MIX_OP_ALIAS | MIX_OP_COMPLEX,
                                  .infer = mix_rule_one_shape};

mix_tensor *mix_complex(mix_tensor *real, mix_tensor *imaginary) {
  return mix_apply2(&op_complex, real, imaginary);
}

bool mix_is_complex(const mix_tensor *x) { return x && x->node->op->flags & MIX_OP_COMPLEX; }

/* One of the two; of a symbolic tensor, which has no operands, another symbolic one. */
static mix_tensor *part_of(mix_tensor *x, int part) {
  if (!x->node->symbolic) return mix_node_input(x->node, part);
  mix_node *node = mix_failed() ? NULL : mix_node_placeholder(mix_tensor_dtype(x), mix_tensor_shape(x), true);
  mix_tensor *tensor = mix_tensor_of(node, 0);
  mix_release(node);
  return tensor;
}

mix_tensor *mix_real_part(mix_tensor *x) { return mix_is_complex(x) ? part_of(x, 0) : mix_identity(x); }
mix_tensor *mix_imaginary_part(mix_tensor *x) {
  return mix_is_complex(x) ? part_of(x, 1) : mix_zeros_like(x);
}
mix_tensor *mix_conjugate(mix_tensor *x) {
  return mix_is_complex(x) ? mix_complex(part_of(x, 0), mix_negative(part_of(x, 1))) : mix_identity(x);
}
/* TensorFlow's gradient is 0 at 0. */
mix_tensor *mix_magnitude(mix_tensor *x) {
  if (!mix_is_complex(x)) return mix_abs(x);
  mix_tensor *square = mix_add(mix_square(part_of(x, 0)), mix_square(part_of(x, 1))),
             *zero = mix_scalar_like(square, 0);
  mix_tensor *none = mix_equal(square, zero);
  return mix_select(none, zero, mix_sqrt(mix_select(none, mix_scalar_like(square, 1), square)));
}
