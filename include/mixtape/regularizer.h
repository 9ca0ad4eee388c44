/* Weight regularizers, which are added to the loss and use the variable's stored value, and constraints,
 * which are applied after the update. */
#ifndef MIXTAPE_REGULARIZER_H
#define MIXTAPE_REGULARIZER_H

#include <mixtape/ops.h>
#include <mixtape/semantics.h>

MIX_BEGIN_DECLARATIONS

typedef struct mix_regularizer_options {
  size_t size;
  /* "l1", "l2", "l1_l2", "orthogonal_regularizer", or Keras's class names; unknown name: ValueError. */
  const char *regularizer;
  /* 0: Keras's default for that name (0.01; 0 for l1_l2 in keras3); MIX_ZERO is accepted. Must not be
   * negative. */
  double l1, l2;
  double factor;    /* orthogonal_regularizer: 0 means 0.01 */
  const char *mode; /* orthogonal_regularizer: "rows" (default) or "columns" */
  mix_tensor *(*function)(void *context, mix_tensor *weight); /* instead of a name: any scalar function */
  void *context;
  const mix_semantics *semantics;
} mix_regularizer_options;
/* Creates a regularizer from a name or a function, not both (ValueError). */
MIX_API mix_regularizer *mix_regularizer_with(const mix_regularizer_options *options);
#ifndef __cplusplus
#define mix_regularizer_new(...)                                                                             \
  mix_regularizer_with(MIX_ARGUMENTS("mix_regularizer_new", "regularizer", #__VA_ARGS__,                     \
                                     mix_regularizer_options, __VA_ARGS__))
#endif
/* The name; NULL for a function. */
MIX_API const char *mix_regularizer_name(const mix_regularizer *regularizer);
/* The penalty, a scalar of the weight's dtype. */
MIX_API mix_tensor *mix_regularizer_call(mix_regularizer *regularizer, mix_tensor *weight);

typedef struct mix_constraint_options {
  size_t size;
  /* "max_norm", "unit_norm", "non_neg", "min_max_norm", "radial_constraint" (tf_keras; of kernels of Conv2D),
   * or Keras's class names; unknown name: ValueError. */
  const char *constraint;
  double min_value; /* min_max_norm: 0 */
  double max_value; /* 0: 2 for max_norm, 1 for min_max_norm; MIX_ZERO is accepted */
  double rate;      /* min_max_norm: 0 means 1; MIX_ZERO is accepted */
  int axis;         /* the axis of the norm: 0 */
  mix_tensor *(*function)(void *context, mix_tensor *weight); /* instead of a name */
  void *context;
  mix_axes axes; /* of the norm instead of `axis`, as 0, 1 and 2 of a convolution's kernel */
} mix_constraint_options;
/* Creates a constraint from a name or a function, not both (ValueError). */
MIX_API mix_constraint *mix_constraint_with(const mix_constraint_options *options);
#ifndef __cplusplus
#define mix_constraint_new(...)                                                                              \
  mix_constraint_with(MIX_ARGUMENTS("mix_constraint_new", "constraint; MIX_AXES(axes)", #__VA_ARGS__,        \
                                    mix_constraint_options, __VA_ARGS__))
#endif
/* The name; NULL for a function. */
MIX_API const char *mix_constraint_name(const mix_constraint *constraint);
/* The projected weight, with the same shape and dtype. */
MIX_API mix_tensor *mix_constraint_call(mix_constraint *constraint, mix_tensor *weight);

MIX_END_DECLARATIONS
#endif
