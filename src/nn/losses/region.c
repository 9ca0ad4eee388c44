/* Overlap losses of segmentation (keras3): one value for the whole batch. */
#include "nn/loss.h"
#include <mixtape/ops.h>

static mix_tensor *total(mix_tensor *x) { return mix_reduce_sum(x, MIX_ALL_AXES, false); }
static mix_tensor *ratio_loss(mix_tensor *above, mix_tensor *below) {
  return mix_one_minus(mix_divide(above, mix_add(below, mix_scalar_like(below, MIX_EPSILON))));
}

/* 1 - 2 sum(y p) / (sum y + sum p + epsilon) */
mix_tensor *mix_loss_dice(const mix_loss *loss, mix_tensor *y_true, mix_tensor *y_pred) {
  (void)loss;
  mix_tensor *common = total(mix_multiply(y_true, y_pred));
  return ratio_loss(mix_multiply(mix_scalar_like(common, 2), common), mix_add(total(y_true), total(y_pred)));
}

/* Salehi et al.: Tversky loss function for image segmentation; arXiv:1706.05721. alpha weighs false positives, beta false negatives. */
mix_tensor *mix_loss_tversky(const mix_loss *loss, mix_tensor *y_true, mix_tensor *y_pred) {
  double alpha = mix_option_number(loss->options.alpha, 0.5), beta = mix_option_number(loss->options.beta, 0.5);
  mix_tensor *common = total(mix_multiply(y_true, y_pred));
  mix_tensor *false_positive = total(mix_multiply(mix_one_minus(y_true), y_pred));
  mix_tensor *false_negative = total(mix_multiply(y_true, mix_one_minus(y_pred)));
  mix_tensor *below = mix_add(mix_add(common, mix_multiply(mix_scalar_like(common, alpha), false_positive)),
                              mix_multiply(mix_scalar_like(common, beta), false_negative));
  return ratio_loss(common, below);
}
