/* Moments, normalisation by them, and gamma and beta: shared by the normalisation layers. */
#pragma once

#include "nn/layers/builtin.h"

/* The dtype of statistics of values of a dtype: float64 for float64, else float32. */
mix_dtype mix_widened(mix_dtype dtype);
/* Mean and biased variance over the axes, which stay with size 1, in x's dtype. For 16-bit x both are
 * computed in float32 and then rounded; `clipped` (keras3) first clips them to +-65504. Where the last axis
 * and others apart from it are reduced, as by groups over images, they are combined from those of rows. */
bool mix_moments(mix_tensor *x, mix_axes axes, bool clipped, mix_tensor **mean, mix_tensor **variance);
/* gamma (x - mean) / sqrt(variance + epsilon) + beta in x's dtype, with broadcasting. gamma and beta may be
 * NULL. */
mix_tensor *mix_normalized(mix_tensor *x, mix_tensor *mean, mix_tensor *variance, double epsilon,
                           mix_tensor *gamma, mix_tensor *beta);
/* x / ||x||_2 along the axes, in x's dtype, by the rule of UnitNormalization in that generation. */
mix_tensor *mix_unit_length(mix_tensor *x, mix_axes axes, const mix_semantics *semantics);
/* The same by the rule of cosine similarities: tf.linalg.l2_normalize, in keras3 utils.normalize. keras3 has
 * a larger lower bound of the length here. */
mix_tensor *mix_l2_normalize(mix_tensor *x, mix_axes axes, const mix_semantics *semantics);

/* How gamma and beta of a layer are made, and where they go. */
typedef struct mix_affine {
  bool center, scale;
  mix_initializer *gamma_initializer, *beta_initializer;
  mix_regularizer *gamma_regularizer, *beta_regularizer;
  mix_constraint *gamma_constraint, *beta_constraint;
  mix_variable **gamma, **beta; /* stay NULL without scale, without center; owned by the layer's list */
} mix_affine;
/* Of an instance with the members options, gamma and beta. */
#define MIX_AFFINE_OF(n)                                                                                     \
  (&(const mix_affine){                                                                                      \
      !(n)->options.no_center, !(n)->options.no_scale, (n)->options.gamma_initializer_object,                \
      (n)->options.beta_initializer_object, (n)->options.gamma_regularizer, (n)->options.beta_regularizer,   \
      (n)->options.gamma_constraint, (n)->options.beta_constraint, &(n)->gamma, &(n)->beta})
/* The rows of these options. */
#define MIX_AFFINE_FIELDS(type)                                                                              \
  {"center", offsetof(type, no_center), &mix_field_negated},                                                 \
      {"scale", offsetof(type, no_scale), &mix_field_negated},                                               \
      MIX_INITIALIZER_FIELD(type, beta_initializer, "zeros"),                                                \
      MIX_INITIALIZER_FIELD(type, gamma_initializer, "ones"),                                                \
      {MIX_FIELD(type, beta_regularizer), &mix_field_regularizer},                                           \
      {MIX_FIELD(type, gamma_regularizer), &mix_field_regularizer},                                          \
      {MIX_FIELD(type, beta_constraint), &mix_field_constraint}, {                                           \
    MIX_FIELD(type, gamma_constraint), &mix_field_constraint                                                 \
  }
/* Adds gamma and beta to the layer. dtype NULL: the policy's variable dtype. */
mix_status mix_affine_build(mix_layer *layer, const mix_affine *affine, mix_shape shape, const char *dtype,
                            bool no_autocast);
/* gamma or beta in that dtype and shape; NULL for NULL. */
mix_tensor *mix_affine_value(mix_variable *variable, mix_dtype dtype, mix_shape shape);
