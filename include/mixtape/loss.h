/* Losses. */
#ifndef MIXTAPE_LOSS_H
#define MIXTAPE_LOSS_H

#include <mixtape/semantics.h>
#include <mixtape/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Names: mean_squared_error (mse), mean_absolute_error (mae), mean_absolute_percentage_error (mape), mean_squared_logarithmic_error
 * (msle), huber, log_cosh, cosine_similarity, hinge, squared_hinge, categorical_hinge, kl_divergence (kld), poisson,
 * binary_crossentropy (bce), binary_focal_crossentropy, categorical_crossentropy, sparse_categorical_crossentropy,
 * categorical_focal_crossentropy; keras3 also dice, tversky, circle, categorical_generalized_cross_entropy (of class numbers, as
 * sparse_categorical_crossentropy and circle), crossentropy (ce), and ctc of labels (batch, labels) padded with the blank 0 and logits
 * (batch, steps, classes): labels that no alignment fits cost 1e30.
 * Aliases in lower or upper case, and class names ("MeanSquaredError"). */
typedef struct mix_loss_options {
  size_t size;
  const char *loss;               /* required: the name; unknown: ValueError */
  const char *reduction;          /* "sum_over_batch_size" (default; "auto", keras3 "mean"), "sum", "none", keras3 "mean_with_sample_weight" */
  const char *name;               /* NULL: the loss's own */
  const char *dtype;              /* keras3: the dtype of the loss, NULL means floatx */
  const mix_semantics *semantics; /* NULL: the process's */
  bool from_logits;               /* cross-entropies: predictions are logits */
  double label_smoothing;         /* binary and categorical cross-entropies: in [0, 1] (ValueError) */
  int axis;                       /* cross-entropies, cosine_similarity: 0 means the last; dice, tversky: 0 means all; MIX_AXIS_0 means 0 */
  double delta;                   /* huber: 0 means 1 */
  double gamma;                   /* focal: 0 means 2, circle: 0 means 80; MIX_ZERO */
  double alpha;                   /* focal: 0 means 0.25, tversky: 0 means 0.5; MIX_ZERO */
  double beta;                    /* tversky: 0 means 0.5; MIX_ZERO */
  double q;                       /* categorical_generalized_cross_entropy: between 0 and 1 (ValueError), 0 means 0.5 */
  bool apply_class_balancing;     /* binary_focal_crossentropy */
  bool has_ignore_class;          /* sparse_categorical_crossentropy: leave out the elements labelled ignore_class */
  int64_t ignore_class;
  mix_tensor *(*function)(void *context, mix_tensor *y_true, mix_tensor *y_pred); /* instead of a name: values for each sample */
  void *context;
  double margin;                  /* circle: 0 means 0.4; MIX_ZERO */
  bool keep_diagonal;             /* circle: Keras's remove_diagonal=True; a sample is compared with itself too */
} mix_loss_options;
/* A name or a function, not both; an unknown name, reduction or dtype is a ValueError. */
MIX_API mix_loss *mix_loss_with(const mix_loss_options *options);
#ifndef __cplusplus
#define mix_loss_new(...) mix_loss_with(&(const mix_loss_options){.size = sizeof(mix_loss_options), __VA_ARGS__})
#define MIX_LOSS_NAMED(name, ...) mix_loss_with(&(const mix_loss_options){.size = sizeof(mix_loss_options), .loss = name, __VA_ARGS__})
#define mix_mean_squared_error(...) MIX_LOSS_NAMED("mean_squared_error", __VA_ARGS__)
#define mix_mean_absolute_error(...) MIX_LOSS_NAMED("mean_absolute_error", __VA_ARGS__)
#define mix_huber(...) MIX_LOSS_NAMED("huber", __VA_ARGS__)
#define mix_binary_crossentropy(...) MIX_LOSS_NAMED("binary_crossentropy", __VA_ARGS__)
#define mix_categorical_crossentropy(...) MIX_LOSS_NAMED("categorical_crossentropy", __VA_ARGS__)
#define mix_sparse_categorical_crossentropy(...) MIX_LOSS_NAMED("sparse_categorical_crossentropy", __VA_ARGS__)
#endif

/* Lives as long as the process. */
MIX_API const char *mix_loss_name(const mix_loss *loss);

typedef struct mix_loss_call_options {
  size_t size;
  mix_tensor *y_pred;        /* required */
  mix_tensor *sample_weight; /* one for each sample, or broadcastable to the values; NULL: none */
  mix_tensor *mask;          /* bool, broadcastable to the values; NULL: y_pred's own. What ignore_class ignores is left out besides */
} mix_loss_call_options;
/* The reduced loss, a scalar (for "none": one value for each sample). tf_keras: in y_pred's dtype, to which labels and weights are cast;
 * keras3: in floatx, to which all three are cast. */
MIX_API mix_tensor *mix_loss_call_with(mix_loss *loss, mix_tensor *y_true, const mix_loss_call_options *options);
#ifndef __cplusplus
/* mix_loss_call(loss, y_true, y_pred, .sample_weight = w) */
#define mix_loss_call(loss, y_true, ...)                                                                                       \
  mix_loss_call_with(loss, y_true, &(const mix_loss_call_options){.size = sizeof(mix_loss_call_options), __VA_ARGS__})
#endif

#ifdef __cplusplus
}
#endif
#endif
