/* Cross-entropies (docs/spec/keras.md, 10.2). A prediction that keeps a reference to its logits is evaluated
 * from them, in the numerically stable form. */
#include "base/error.h"
#include "nn/formulas.h"
#include "nn/layers/builtin.h"
#include "nn/losses/loss.h"
#include "ops/table.h"
#include "ops/with_number.h"

mix_label_kind mix_label_kind_of(mix_shape y_true, mix_shape y_pred) {
  int64_t last = y_pred.rank ? y_pred.dims[y_pred.rank - 1] : 1,
          label_last = y_true.rank ? y_true.dims[y_true.rank - 1] : 1;
  if (last == 1) return MIX_LABELS_BINARY;
  return y_true.rank < y_pred.rank || label_last == 1 ? MIX_LABELS_SPARSE : MIX_LABELS_CATEGORICAL;
}

/* The logits that softmax or sigmoid made the prediction from, else the prediction. *are_logits: whether the
 * result is logits, also if from_logits is set. */
static mix_tensor *logits_of(const mix_loss *loss, mix_tensor *y_pred, bool *are_logits) {
  *are_logits = loss->options.from_logits;
  if (!y_pred->logits || mix_tensor_dtype(y_pred->logits) != mix_tensor_dtype(y_pred)) return y_pred;
  if (loss->options.from_logits)
    mix_log_message(MIX_LOG_WARNING,
                    "loss %s: from_logits is set, but the predictions come from a softmax or sigmoid; "
                    "its own logits are used",
                    loss->name);
  *are_logits = true;
  return y_pred->logits;
}

static int axis_of(const mix_loss *loss, mix_shape shape) {
  int given = loss->options.axis, axis = mix_axis_normal(given, shape.rank);
  if (axis < 0)
    mix_fail_value("loss %s: axis %d is outside predictions of rank %d", loss->name, given, shape.rank);
  return axis;
}

/* Moves the class axis to the end. */
static mix_tensor *classes_last(mix_tensor *x, int axis) {
  int rank = mix_tensor_shape(x).rank;
  if (axis < 0 || axis == rank - 1) return x;
  mix_axes order = {.count = rank};
  int n = 0;
  for (int i = 0; i < rank; i++)
    if (i != axis) order.axis[n++] = i;
  order.axis[n] = axis;
  return mix_transpose(x, order);
}

static mix_tensor *scaled(mix_tensor *x, double factor, double offset) {
  return mix_add(mix_times(x, factor), mix_scalar_like(x, offset));
}

static bool same_shape(const mix_loss *loss, mix_tensor *y_true, mix_tensor *y_pred) {
  mix_shape y = mix_tensor_shape(y_true), p = mix_tensor_shape(y_pred);
  if (p.rank && mix_shape_compatible(y, p)) return true;
  return mix_fail_value(
      "loss %s: labels have shape %s and predictions %s; expected the same shape (class indices want %s)",
      loss->name, MIX_SHAPE_TEXT(y), MIX_SHAPE_TEXT(p), "sparse_categorical_crossentropy");
}

/* ---- binary ---- */

/* max(x, 0) - x y + log(1 + exp(-|x|)). At x = 0, max and -|x| = min(-x, x) take the derivatives of their
 * first operands, 1 and -1. The total is then sigmoid(0) - y. */
static mix_tensor *sigmoid_cross_entropy(mix_tensor *y, mix_tensor *x) {
  mix_tensor *linear = mix_subtract(mix_maximum(x, mix_scalar_like(x, 0)), mix_multiply(x, y));
  return mix_add(linear, mix_log1p(mix_exp(mix_minimum(mix_negative(x), x))));
}

/* -(y log p + (1 - y) log(1 - p)) with p in [epsilon, 1 - epsilon]; tf_keras adds epsilon inside the
 * logarithms too. */
static mix_tensor *bernoulli_cross_entropy(const mix_loss *loss, mix_tensor *y, mix_tensor *p) {
  p = mix_clip_between(p, MIX_EPSILON, 1 - MIX_EPSILON);
  mix_tensor *q = mix_one_minus(p), *epsilon = mix_scalar_like(p, MIX_EPSILON);
  if (loss->semantics->cross_entropy_epsilon_in_logs) {
    p = mix_add(p, epsilon);
    q = mix_add(q, epsilon);
  }
  return mix_negative(mix_add(mix_multiply(y, mix_log(p)), mix_multiply(mix_one_minus(y), mix_log(q))));
}

static mix_tensor *smoothed_binary(const mix_loss *loss, mix_tensor *y) {
  double s = loss->options.label_smoothing;
  return s ? scaled(y, 1 - s, s / 2) : y;
}

static mix_tensor *mean_along(const mix_loss *loss, mix_tensor *values) {
  int axis = values ? axis_of(loss, mix_tensor_shape(values)) : -1;
  return axis < 0 ? NULL : mix_mean_last(classes_last(values, axis));
}

mix_tensor *mix_loss_binary_crossentropy(const mix_loss *loss, mix_tensor *y_true, mix_tensor *y_pred) {
  bool are_logits;
  mix_tensor *y = smoothed_binary(loss, y_true), *x = logits_of(loss, y_pred, &are_logits);
  bool broadcasts = loss->semantics->binary_cross_entropy_broadcasts && !are_logits;
  if (!broadcasts && mix_tensor_shape(x).rank && !same_shape(loss, y_true, x)) return NULL;
  return mean_along(loss, are_logits ? sigmoid_cross_entropy(y, x) : bernoulli_cross_entropy(loss, y, x));
}

/* Lin et al.: Focal loss for dense object detection; arXiv:1708.02002. */
mix_tensor *mix_loss_binary_focal_crossentropy(const mix_loss *loss, mix_tensor *y_true, mix_tensor *y_pred) {
  double gamma = loss->options.gamma, alpha = loss->options.alpha;
  bool are_logits; /* logits feed only the entropy, not the focus */
  mix_tensor *y = smoothed_binary(loss, y_true),
             *p = loss->options.from_logits ? mix_sigmoid(y_pred) : y_pred;
  mix_tensor *x = logits_of(loss, y_pred, &are_logits);
  mix_tensor *p_t = mix_add(mix_multiply(y, p), mix_multiply(mix_one_minus(y), mix_one_minus(p)));
  mix_tensor *focus = mix_power(mix_one_minus(p_t), mix_scalar_like(p, gamma));
  mix_tensor *values =
      mix_multiply(focus, are_logits ? sigmoid_cross_entropy(y, x) : bernoulli_cross_entropy(loss, y, p));
  if (loss->options.apply_class_balancing)
    values = mix_multiply(scaled(y, 2 * alpha - 1, 1 - alpha), values); /* y a + (1 - y)(1 - a) */
  return mean_along(loss, values);
}

/* ---- categorical ---- */

static mix_tensor *smoothed_categorical(const mix_loss *loss, mix_tensor *y) {
  double s = loss->options.label_smoothing;
  mix_shape shape = mix_tensor_shape(y);
  return s ? scaled(y, 1 - s, s / (double)shape.dims[shape.rank - 1]) : y;
}

/* p / sum(p) over the last axis, clipped to [epsilon, 1 - epsilon] */
static mix_tensor *normalised(mix_tensor *p) {
  return mix_clip_between(mix_divide(p, mix_reduce_sum(p, MIX_AXES(-1), true)), MIX_EPSILON, 1 - MIX_EPSILON);
}

mix_tensor *mix_loss_categorical_crossentropy(const mix_loss *loss, mix_tensor *y_true, mix_tensor *y_pred) {
  bool are_logits;
  mix_tensor *x = logits_of(loss, y_pred, &are_logits);
  int axis = same_shape(loss, y_true, x) ? axis_of(loss, mix_tensor_shape(x)) : -1;
  if (axis < 0) return NULL;
  x = classes_last(x, axis);
  mix_tensor *y = smoothed_categorical(loss, classes_last(y_true, axis));
  if (are_logits) return mix_softmax_cross_entropy(y, x);
  return mix_negative(mix_sum_last(mix_multiply(y, mix_log(normalised(x)))));
}

mix_tensor *mix_loss_categorical_focal_crossentropy(const mix_loss *loss, mix_tensor *y_true,
                                                    mix_tensor *y_pred) {
  double gamma = loss->options.gamma, alpha = loss->options.alpha;
  int axis = same_shape(loss, y_true, y_pred) ? axis_of(loss, mix_tensor_shape(y_pred)) : -1;
  if (axis < 0) return NULL;
  bool are_logits = loss->options.from_logits;
  if (loss->semantics->categorical_focal_by_logits) y_pred = logits_of(loss, y_pred, &are_logits);
  mix_tensor *x = classes_last(y_pred, axis), *y = smoothed_categorical(loss, classes_last(y_true, axis));
  mix_tensor *p = normalised(are_logits ? mix_softmax(x) : x);
  mix_tensor *entropy = mix_negative(mix_multiply(y, mix_log(p)));
  mix_tensor *focus = mix_power(mix_one_minus(p), mix_scalar_like(p, gamma));
  return mix_sum_last(mix_multiply(mix_multiply(mix_scalar_like(p, alpha), focus), entropy));
}

/* ---- class indices ---- */

/* Logits with the class axis last. As in Keras, the logarithms of clipped probabilities serve as logits,
 * which normalises them. Elements that are not `valid` (NULL: all are) get no gradient, even if they are
 * NaN. */
static mix_tensor *sparse_logits(const mix_loss *loss, mix_tensor *y_pred, int axis, mix_tensor *valid) {
  bool are_logits = loss->options.from_logits,
       ignores_logits = valid && loss->semantics->ignore_class_forgets_logits;
  mix_tensor *x = classes_last(ignores_logits ? y_pred : logits_of(loss, y_pred, &are_logits), axis);
  if (valid) x = mix_select(mix_expand_dims(valid, -1), x, mix_scalar_like(x, 0));
  return are_logits ? x : mix_log(mix_clip_between(x, MIX_EPSILON, 1 - MIX_EPSILON));
}

/* Labels as class numbers, one for each prediction; a last dimension of 1 is squeezed. What is no class
 * number, the kernel rejects as out of range. */
static mix_tensor *class_numbers(const mix_loss *loss, mix_tensor *y_true, mix_shape predictions) {
  mix_shape labels = mix_tensor_shape(y_true);
  if (labels.rank && labels.rank == predictions.rank && labels.dims[labels.rank - 1] == 1)
    y_true = mix_squeeze(y_true, MIX_AXES(-1));
  if (mix_tensor_shape(y_true).rank >= predictions.rank) {
    return mix_fail_value("loss %s: labels have shape %s and predictions %s; expected a class index for each "
                          "(one-hot labels want categorical_crossentropy)",
                          loss->name, MIX_SHAPE_TEXT(labels), MIX_SHAPE_TEXT(predictions));
  }
  mix_tensor *numbers = mix_index_values(y_true);
  return numbers ? mix_cast(numbers, MIX_INT64) : NULL;
}

mix_tensor *mix_loss_sparse_categorical_crossentropy(const mix_loss *loss, mix_tensor *y_true,
                                                     mix_tensor *y_pred) {
  int axis = axis_of(loss, mix_tensor_shape(y_pred));
  mix_tensor *y = axis < 0 ? NULL : class_numbers(loss, y_true, mix_tensor_shape(y_pred));
  if (!y) return NULL;
  if (!loss->options.has_ignore_class)
    return mix_sparse_softmax_cross_entropy(y, sparse_logits(loss, y_pred, axis, NULL));
  mix_tensor *valid = mix_not_equal(y, mix_scalar((double)loss->options.ignore_class, MIX_INT64));
  mix_tensor *x = sparse_logits(loss, y_pred, axis, valid);
  mix_tensor *values = mix_sparse_softmax_cross_entropy(mix_select(valid, y, mix_scalar(0, MIX_INT64)), x);
  values = mix_select(valid, values, mix_scalar_like(values, 0));
  if (values) values->mask = mix_retain(valid); /* the mean leaves them out */
  return values;
}

/* keras3: the shapes choose among the three cross-entropies. */
mix_tensor *mix_loss_crossentropy(const mix_loss *loss, mix_tensor *y_true, mix_tensor *y_pred) {
  mix_label_kind kind = mix_label_kind_of(mix_tensor_shape(y_true), mix_tensor_shape(y_pred));
  if (kind == MIX_LABELS_SPARSE) return mix_loss_sparse_categorical_crossentropy(loss, y_true, y_pred);
  y_true = mix_cast(y_true, mix_tensor_dtype(y_pred));
  return kind == MIX_LABELS_BINARY ? mix_loss_binary_crossentropy(loss, y_true, y_pred)
                                   : mix_loss_categorical_crossentropy(loss, y_true, y_pred);
}

/* Zhang, Sabuncu: Generalized cross entropy loss for training deep neural networks with noisy labels;
 * arXiv:1805.07836. */
mix_tensor *mix_loss_categorical_generalized_cross_entropy(const mix_loss *loss, mix_tensor *y_true,
                                                           mix_tensor *y_pred) {
  double q = loss->options.q;
  mix_shape shape = mix_tensor_shape(y_pred);
  mix_tensor *y = class_numbers(loss, y_true, shape);
  if (!y) return NULL;
  mix_tensor *p = mix_sum_last(
      mix_multiply(y_pred, mix_one_hot(y, shape.dims[shape.rank - 1], mix_tensor_dtype(y_pred))));
  return mix_divide(mix_one_minus(mix_power(p, mix_scalar_like(p, q))), mix_scalar_like(p, q));
}
