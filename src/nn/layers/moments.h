/* Moments, normalisation by them, and gamma and beta: shared by the normalisation layers. */
#ifndef MIX_NN_LAYERS_MOMENTS_H
#define MIX_NN_LAYERS_MOMENTS_H

#include "nn/layers/builtin.h"

/* The dtype of statistics of values of a dtype: float64 for float64, else float32. */
mix_dtype mix_widened(mix_dtype dtype);
/* Mean and biased variance over the axes, which stay with size 1, in x's dtype. For 16-bit x both are
 * computed in float32 and then rounded; `clipped` (keras3) first clips them to +-65504. */
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

/* gamma and beta of a layer: the variables and how they are made. The objects are retained. */
typedef struct mix_affine {
  bool center, scale;
  mix_initializer *gamma_initializer, *beta_initializer;
  mix_regularizer *gamma_regularizer, *beta_regularizer;
  mix_constraint *gamma_constraint, *beta_constraint;
  /* Owned by the layer's list. gamma is NULL without scale, beta without center. */
  mix_variable *gamma, *beta;
} mix_affine;
/* From an options struct that has these fields. The objects are not retained yet. */
#define MIX_AFFINE_OF(o, call)                                                                               \
  ((mix_affine){                                                                                             \
      .center = !(o).no_center,                                                                              \
      .scale = !(o).no_scale,                                                                                \
      .gamma_initializer =                                                                                   \
          mix_initializer_or((o).gamma_initializer, (o).gamma_initializer_object, "ones", call),             \
      .beta_initializer =                                                                                    \
          mix_initializer_or((o).beta_initializer, (o).beta_initializer_object, "zeros", call),              \
      .gamma_regularizer = (o).gamma_regularizer,                                                            \
      .beta_regularizer = (o).beta_regularizer,                                                              \
      .gamma_constraint = (o).gamma_constraint,                                                              \
      .beta_constraint = (o).beta_constraint})
/* Fills these fields of an options struct from a config. */
#define MIX_AFFINE_FROM(o, config, semantics)                                                                \
  ((o).no_center = !mix_json_boolean_or(config, "center", true),                                             \
   (o).no_scale = !mix_json_boolean_or(config, "scale", true),                                               \
   (o).gamma_initializer_object = mix_initializer_from_json(json_object_get(config, "gamma_initializer")),   \
   (o).beta_initializer_object = mix_initializer_from_json(json_object_get(config, "beta_initializer")),     \
   (o).gamma_regularizer =                                                                                   \
       mix_regularizer_from_json(json_object_get(config, "gamma_regularizer"), semantics),                   \
   (o).beta_regularizer = mix_regularizer_from_json(json_object_get(config, "beta_regularizer"), semantics), \
   (o).gamma_constraint = mix_constraint_from_json(json_object_get(config, "gamma_constraint")),             \
   (o).beta_constraint = mix_constraint_from_json(json_object_get(config, "beta_constraint")))
void mix_affine_retain(mix_affine *affine);
void mix_affine_release(mix_affine *affine);
/* Adds gamma and beta to the layer. dtype NULL: the policy's variable dtype. */
mix_status mix_affine_build(mix_layer *layer, mix_affine *affine, mix_shape shape, const char *dtype,
                            bool no_autocast);
/* Writes "center", "scale", initializers, regularizers and constraints into a config. */
bool mix_affine_config(const mix_affine *affine, json_t *object);
/* gamma or beta in that dtype and shape; NULL for NULL. */
mix_tensor *mix_affine_value(mix_variable *variable, mix_dtype dtype, mix_shape shape);

#endif
