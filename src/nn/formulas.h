/* Formulas that layers, losses, metrics and operations share. Each returns NULL with the error recorded. */
#pragma once

#include <mixtape/ops.h>

/* a / b; 0 where b is 0, which does not reach the gradient either. */
mix_tensor *mix_divide_no_nan(mix_tensor *a, mix_tensor *b);
/* log(sum(exp(x))) along the axes. The largest element is taken out first unless it is infinite, so that no
 * exponential overflows. */
mix_tensor *mix_log_sum_exp(mix_tensor *x, mix_axes axes, bool keep_dims);
/* x / sqrt(max(sum of squares along the axes, epsilon)), by a reciprocal square root. */
mix_tensor *mix_scale_to_unit(mix_tensor *x, mix_axes axes, double epsilon);
/* The mean of the squared distances from the mean. */
mix_tensor *mix_reduce_variance(mix_tensor *x, mix_axes axes, bool keep_dims);
/* Over the last axis; of a scalar itself. */
mix_tensor *mix_mean_last(mix_tensor *x);
mix_tensor *mix_sum_last(mix_tensor *x);
/* With constants of x's dtype. */
mix_tensor *mix_clip_between(mix_tensor *x, double low, double high);
mix_tensor *mix_one_minus(mix_tensor *x);
