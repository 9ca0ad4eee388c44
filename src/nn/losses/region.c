/* Overlap losses of segmentation and the circle loss of embeddings (keras3). An overlap loss is one value
 * for the whole batch, or one for each index of the axes that are not reduced. */
#include "base/error.h"
#include "graph/node.h"
#include "nn/fields.h"
#include "nn/formulas.h"
#include "nn/losses/loss.h"
#include "ops/with_number.h"
#include "tensor/shape.h"
#include <math.h>

/* The sum over all axes, or over the axis of the options. */
static mix_tensor *total(const mix_loss *loss, mix_tensor *x) {
  int axis = mix_axis_number(loss->options.axis), rank = x ? mix_tensor_shape(x).rank : 0;
  if (!loss->options.axis || !x) return mix_reduce_sum(x, MIX_ALL_AXES, false);
  if (mix_axis_normal(axis, rank) < 0)
    return mix_fail_value("loss %s: axis %d is outside predictions of rank %d", loss->name, axis, rank);
  return mix_reduce_sum(x, MIX_AXES(axis), false);
}
static mix_tensor *ratio_loss(mix_tensor *above, mix_tensor *below) {
  return mix_one_minus(mix_divide(above, mix_plus(below, MIX_EPSILON)));
}

/* 1 - 2 sum(y p) / (sum y + sum p + epsilon) */
mix_tensor *mix_loss_dice(const mix_loss *loss, mix_tensor *y_true, mix_tensor *y_pred) {
  mix_tensor *common = total(loss, mix_multiply(y_true, y_pred));
  if (!common) return NULL;
  return ratio_loss(mix_multiply(mix_scalar_like(common, 2), common),
                    mix_add(total(loss, y_true), total(loss, y_pred)));
}

/* Salehi et al.: Tversky loss function for image segmentation; arXiv:1706.05721. As in Keras, alpha weighs
 * sum(y (1 - p)) and beta sum((1 - y) p). */
mix_tensor *mix_loss_tversky(const mix_loss *loss, mix_tensor *y_true, mix_tensor *y_pred) {
  double alpha = loss->options.alpha, beta = loss->options.beta;
  mix_tensor *common = total(loss, mix_multiply(y_true, y_pred));
  mix_tensor *missed = total(loss, mix_multiply(mix_one_minus(y_pred), y_true));
  mix_tensor *added = total(loss, mix_multiply(y_pred, mix_one_minus(y_true)));
  if (!common || !missed || !added) return NULL;
  mix_tensor *below = mix_add(mix_add(common, mix_multiply(mix_scalar_like(common, alpha), missed)),
                              mix_multiply(mix_scalar_like(common, beta), added));
  return ratio_loss(common, below);
}

/* log(sum(exp(x))) over the last axis, of the elements in the mask; -infinity if there are none. */
static mix_tensor *log_sum_exp(mix_tensor *x, mix_tensor *mask) {
  mix_tensor *chosen = mix_select(mask, x, mix_scalar_like(x, -INFINITY));
  return mix_log_sum_exp(chosen, MIX_AXES(-1), false);
}

/* Sun et al.: Circle loss: a unified perspective of pair similarity optimization; arXiv:2002.10857. Labels
 * (samples), embeddings (samples, dimensions) of unit length. The mean leaves out samples with zero loss. */
mix_tensor *mix_loss_circle(const mix_loss *loss, mix_tensor *y_true, mix_tensor *y_pred) {
  double gamma = loss->options.gamma, margin = loss->options.margin;
  mix_shape shape = mix_tensor_shape(y_pred), labels = mix_tensor_shape(y_true);
  if (shape.rank != 2 || mix_shape_size(labels) != shape.dims[0])
    return mix_fail_value("loss %s: expects a label for each sample and embeddings (samples, dimensions)",
                          loss->name);
  mix_tensor *label = mix_reshape(mix_cast(y_true, MIX_INT64), MIX_SHAPE(shape.dims[0], 1));
  mix_tensor *positive = mix_equal(label, mix_reshape(label, MIX_SHAPE(1, shape.dims[0]))),
             *negative = mix_logical_not(positive);
  if (!loss->options.keep_diagonal) {
    mix_tensor *row = mix_range(0, (double)shape.dims[0], 1, MIX_INT64);
    positive = mix_logical_and(positive, mix_not_equal(mix_expand_dims(row, -1), row));
  }
  mix_tensor *distance = mix_relu(mix_one_minus(mix_matmul(y_pred, y_pred, false, true))),
             *zero = mix_scalar_like(distance, 0);
  mix_tensor *near =
      mix_relu(mix_select(positive, mix_add(mix_scalar_like(distance, margin), distance), zero));
  mix_tensor *far =
      mix_relu(mix_select(negative, mix_subtract(mix_scalar_like(distance, 1 + margin), distance), zero));
  mix_tensor *pull = mix_multiply(mix_multiply(mix_scalar_like(distance, -gamma), near),
                                  mix_subtract(mix_scalar_like(distance, margin), distance));
  mix_tensor *push = mix_multiply(mix_multiply(mix_scalar_like(distance, gamma), far),
                                  mix_subtract(mix_scalar_like(distance, 1 - margin), distance));
  mix_tensor *values = mix_softplus(mix_add(log_sum_exp(pull, positive), log_sum_exp(push, negative)));
  if (values) values->mask = mix_retain(mix_greater(values, mix_scalar_like(values, 0)));
  return values;
}
