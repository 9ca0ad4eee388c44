/* Losses. */
#ifndef MIXTAPE_LOSS_H
#define MIXTAPE_LOSS_H

#include <mixtape/semantics.h>
#include <mixtape/tensor.h>

MIX_BEGIN_DECLARATIONS

/* Names: mean_squared_error (mse), mean_absolute_error (mae), mean_absolute_percentage_error (mape),
 * mean_squared_logarithmic_error (msle), huber, log_cosh, cosine_similarity, hinge, squared_hinge,
 * categorical_hinge, kl_divergence (kld), poisson, binary_crossentropy (bce), binary_focal_crossentropy,
 * categorical_crossentropy, sparse_categorical_crossentropy, categorical_focal_crossentropy.
 * keras3 also: dice, tversky, circle, categorical_generalized_cross_entropy (circle and this one take
 * class numbers, as sparse_categorical_crossentropy does), crossentropy (ce), and ctc. ctc takes labels
 * (batch, labels), padded with the blank 0, and logits (batch, steps, classes); labels that no alignment
 * fits cost 1e30.
 * Aliases may be in lower or upper case. Class names ("MeanSquaredError") are accepted too. */
typedef struct mix_loss_options {
  size_t size;
  const char *loss; /* required; unknown name: ValueError */
  /* "sum_over_batch_size" (default; "auto"; keras3: "mean"), "sum", "none"; keras3:
   * "mean_with_sample_weight". */
  const char *reduction;
  const char *name;               /* NULL: the default name of the loss */
  const char *dtype;              /* keras3: the dtype of the loss; NULL: floatx */
  const mix_semantics *semantics; /* NULL: the default of the process */
  bool from_logits;               /* cross-entropies: predictions are logits */
  double label_smoothing;         /* binary and categorical cross-entropies: in [0, 1] (ValueError) */
  /* Cross-entropies, cosine_similarity: 0 means the last; dice, tversky: 0 means all; MIX_AXIS_0 means 0. */
  int axis;
  double delta; /* huber: 0 means 1 */
  double gamma; /* focal: 0 means 2; circle: 0 means 80; MIX_ZERO is accepted */
  double alpha; /* focal: 0 means 0.25; tversky: 0 means 0.5; MIX_ZERO is accepted */
  double beta;  /* tversky: 0 means 0.5; MIX_ZERO is accepted */
  double q;     /* categorical_generalized_cross_entropy: between 0 and 1 (ValueError); 0 means 0.5 */
  bool apply_class_balancing; /* binary_focal_crossentropy */
  bool has_ignore_class; /* sparse_categorical_crossentropy: ignore elements with the label ignore_class */
  int64_t ignore_class;
  /* Instead of a name: returns one value for each sample. */
  mix_tensor *(*function)(void *context, mix_tensor *y_true, mix_tensor *y_pred);
  void *context;
  double margin;      /* circle: 0 means 0.4; MIX_ZERO is accepted */
  bool keep_diagonal; /* circle: Keras's remove_diagonal=True; true also compares a sample with itself */
} mix_loss_options;
/* Creates a loss from a name or a function, not both. ValueError for an unknown name, reduction or dtype. */
MIX_API mix_loss *mix_loss_with(const mix_loss_options *options);
#ifndef __cplusplus
#define mix_loss_new(...)                                                                                    \
  mix_loss_with(                                                                                             \
      MIX_ARGUMENTS("mix_loss_new", "loss, !reduction", #__VA_ARGS__, mix_loss_options, __VA_ARGS__))
#define MIX_LOSS_NAMED(name, names, text, ...)                                                               \
  mix_loss_with(MIX_ARGUMENTS("mix_" name, names, text, mix_loss_options, .loss = name, __VA_ARGS__))
#define mix_mean_squared_error(...)                                                                          \
  MIX_LOSS_NAMED("mean_squared_error", "!reduction, name, dtype", #__VA_ARGS__, __VA_ARGS__)
#define mix_mean_absolute_error(...)                                                                         \
  MIX_LOSS_NAMED("mean_absolute_error", "!reduction, name, dtype", #__VA_ARGS__, __VA_ARGS__)
#define mix_huber(...) MIX_LOSS_NAMED("huber", "", #__VA_ARGS__, __VA_ARGS__)
#define mix_binary_crossentropy(...) MIX_LOSS_NAMED("binary_crossentropy", "", #__VA_ARGS__, __VA_ARGS__)
#define mix_categorical_crossentropy(...)                                                                    \
  MIX_LOSS_NAMED("categorical_crossentropy", "", #__VA_ARGS__, __VA_ARGS__)
#define mix_sparse_categorical_crossentropy(...)                                                             \
  MIX_LOSS_NAMED("sparse_categorical_crossentropy", "", #__VA_ARGS__, __VA_ARGS__)
#endif

/* The name; the string lives as long as the process. */
MIX_API const char *mix_loss_name(const mix_loss *loss);

typedef struct mix_loss_call_options {
  size_t size;
  mix_tensor *y_pred;        /* required */
  mix_tensor *sample_weight; /* one for each sample, or broadcastable to the values; NULL: none */
  /* bool, broadcastable to the values; NULL: the mask of y_pred. ignore_class applies in addition. */
  mix_tensor *mask;
} mix_loss_call_options;
/* The reduced loss, a scalar; for "none" one value for each sample. tf_keras: labels and weights are cast
 * to y_pred's dtype, which is that of the loss. keras3: all three are cast to the dtype of the loss, by
 * default floatx. */
MIX_API mix_tensor *mix_loss_call_with(mix_loss *loss, mix_tensor *y_true,
                                       const mix_loss_call_options *options);
#ifndef __cplusplus
/* mix_loss_call(loss, y_true, y_pred, .sample_weight = w) */
#define mix_loss_call(loss, y_true, ...)                                                                     \
  mix_loss_call_with(loss, y_true,                                                                           \
                     &(const mix_loss_call_options){.size = sizeof(mix_loss_call_options), __VA_ARGS__})
#endif

MIX_END_DECLARATIONS
#endif
