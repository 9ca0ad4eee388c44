/* The loss object, its kinds, and the values for each sample, which metrics share. */
#pragma once

#include "base/did_you_mean.h"
#include "base/fields.h"
#include "base/object.h"
#include "nn/policy/semantics.h"
#include <mixtape/loss.h>

typedef enum mix_reduction {
  MIX_REDUCTION_SUM_OVER_BATCH_SIZE,
  MIX_REDUCTION_SUM,
  MIX_REDUCTION_NONE,
  MIX_REDUCTION_MEAN_WITH_SAMPLE_WEIGHT,
} mix_reduction;

typedef mix_tensor *mix_loss_rule(const mix_loss *loss, mix_tensor *y_true, mix_tensor *y_pred);

typedef struct mix_loss_kind {
  const char *name;       /* "mean_squared_error" */
  const char *class_name; /* "MeanSquaredError" */
  const char *aliases[3]; /* matched in lower and upper case */
  mix_loss_rule *function;
  bool keras3_only;
  bool integer_labels;    /* y_true is neither cast to the predictions' dtype nor aligned with them */
  const mix_field_row *fields; /* of its own options; NULL: none */
} mix_loss_kind;

struct mix_loss {
  mix_object object;
  const mix_loss_kind *kind; /* NULL: a user's function */
  const char *name;          /* interned */
  mix_reduction reduction;
  mix_dtype dtype;           /* keras3: the dtype of the loss */
  const mix_semantics *semantics;
  mix_loss_options options; /* resolved; texts are interned */
};
extern const mix_class mix_loss_class;
/* True if the labels of the loss are class numbers. */
static inline bool mix_loss_takes_class_numbers(const mix_loss *loss) {
  return loss->kind && loss->kind->integer_labels;
}
/* Offers the names of that generation's losses as spelling suggestions. */
void mix_loss_names_try(mix_did_you_mean *nearest, const mix_semantics *semantics);
/* The kind with that name, alias or class name; NULL without an error if there is none. */
const mix_loss_kind *mix_loss_kind_named(const char *name, const mix_semantics *semantics);
/* Values for each sample, in y_pred's dtype, with the labels cast and aligned as the kind requires. */
mix_tensor *mix_loss_values(mix_loss *loss, mix_tensor *y_true, mix_tensor *y_pred);
/* Weights in values' dtype, made broadcastable to `values` by squeezing or expanding one trailing dimension
 * of 1. */
mix_tensor *mix_align_weights(mix_tensor *values, mix_tensor *weights);
/* How "accuracy" and "crossentropy" choose a kind by shape. Binary: the predictions' last dimension is 1.
 * Sparse: the labels have one dimension less, or a last dimension of 1. */
typedef enum mix_label_kind { MIX_LABELS_BINARY, MIX_LABELS_SPARSE, MIX_LABELS_CATEGORICAL } mix_label_kind;
mix_label_kind mix_label_kind_of(mix_shape y_true, mix_shape y_pred);
json_t *mix_loss_to_json(mix_loss *loss);
mix_loss *mix_loss_from_json(const json_t *json, const mix_semantics *semantics);

#define MIX_EPSILON 1e-7 /* Keras's backend epsilon */

/* regression.c, crossentropy.c, region.c, ctc.c */
mix_loss_rule mix_loss_mean_squared_error, mix_loss_mean_absolute_error,
    mix_loss_mean_absolute_percentage_error, mix_loss_mean_squared_logarithmic_error, mix_loss_huber,
    mix_loss_log_cosh, mix_loss_cosine_similarity, mix_loss_hinge, mix_loss_squared_hinge,
    mix_loss_categorical_hinge, mix_loss_kl_divergence, mix_loss_poisson, mix_loss_binary_crossentropy,
    mix_loss_binary_focal_crossentropy, mix_loss_categorical_crossentropy,
    mix_loss_sparse_categorical_crossentropy, mix_loss_categorical_focal_crossentropy, mix_loss_crossentropy,
    mix_loss_dice, mix_loss_circle, mix_loss_ctc, mix_loss_tversky,
    mix_loss_categorical_generalized_cross_entropy;
