/* Gradient clipping by value, by the norm of each gradient and by the global norm (Pascanu, Mikolov and
 * Bengio, 2013). The norms of 16-bit gradients are computed in float32. Of row-sparse gradients the values
 * are clipped and measured as they are, also where an index repeats: Keras combines them later, if at all. */
#include "base/alloc.h"
#include "base/error.h"
#include "ops/table.h"
#include "optim/shard.h"

static mix_tensor *widened(mix_tensor *x) {
  mix_dtype dtype = mix_tensor_dtype(x);
  return dtype == MIX_FLOAT16 || dtype == MIX_BFLOAT16 ? mix_cast(x, MIX_FLOAT32) : x;
}

/* g * c / max(|g|, c). A zero gradient stays zero. */
static mix_tensor *by_norm(mix_tensor *gradient, double clip) {
  mix_tensor *wide = widened(mix_rows_values(gradient));
  mix_tensor *limit = mix_scalar(clip, mix_tensor_dtype(wide));
  mix_tensor *norm = mix_sqrt(mix_reduce_sum(mix_square(wide), MIX_ALL_AXES, false));
  mix_tensor *clipped = mix_divide(mix_multiply(wide, limit), mix_maximum(norm, limit));
  return mix_with_values(gradient, mix_cast(clipped, mix_tensor_dtype(gradient)));
}

static mix_tensor *sum_of_squares(mix_tensor *gradient, mix_dtype dtype) {
  return mix_cast(mix_reduce_sum(mix_square(widened(mix_rows_values(gradient))), MIX_ALL_AXES, false), dtype);
}

/* By gradient. What one rank alone has computed becomes known to all, so that all add in one order. */
static bool sums_of_squares(const mix_optimizer *optimizer, int count, mix_tensor *const *gradients,
                            const int *indices, mix_dtype dtype, mix_tensor **sums) {
  for (int i = 0; i < count; i++)
    if (gradients[i] && (!optimizer->shards || mix_shards_gives(optimizer, indices[i])))
      sums[i] = sum_of_squares(gradients[i], dtype);
  return !optimizer->shards || mix_shards_share_scalars(count, sums, dtype);
}

/* g * (c * min(1/N, 1/c) + (N - N)) with the global norm N. As in TensorFlow, an N that is not finite makes
 * every gradient NaN. */
static void by_global_norm(const mix_optimizer *optimizer, int count, mix_tensor **gradients,
                           const int *indices, double clip) {
  mix_dtype dtype = MIX_FLOAT32;
  for (int i = 0; i < count; i++)
    if ((gradients[i] ? mix_tensor_dtype(gradients[i]) : optimizer->shards->summed[indices[i]]) ==
        MIX_FLOAT64)
      dtype = MIX_FLOAT64;
  mix_tensor **sums = mix_calloc((size_t)count + 1, sizeof *sums), *sum = NULL;
  if (sums && sums_of_squares(optimizer, count, gradients, indices, dtype, sums))
    for (int i = 0; i < count; i++) sum = sum ? mix_add(sum, sums[i]) : sums[i];
  mix_free(sums);
  if (!sum) return;
  mix_tensor *norm = mix_sqrt(sum), *one = mix_scalar(1, dtype);
  mix_tensor *scale =
      mix_multiply(mix_scalar(clip, dtype), mix_minimum(mix_divide(one, norm), mix_scalar(1 / clip, dtype)));
  scale = mix_add(scale, mix_subtract(norm, norm));
  for (int i = 0; i < count; i++) {
    /* keras3 makes row-sparse gradients dense here, and so sums the rows with the same index. */
    if (!gradients[i]) continue;
    const bool keeps_rows = optimizer->rules->sparse_repeats_summed;
    mix_tensor *wide = widened(keeps_rows ? mix_rows_values(gradients[i]) : gradients[i]);
    mix_tensor *scaled = mix_multiply(wide, mix_cast(scale, mix_tensor_dtype(wide)));
    scaled = mix_cast(scaled, mix_tensor_dtype(gradients[i]));
    gradients[i] = keeps_rows ? mix_with_values(gradients[i], scaled) : scaled;
  }
}

bool mix_clip_gradients(const mix_optimizer *optimizer, int count, mix_tensor **gradients,
                        const int *indices) {
  const mix_optimizer_common *options = &optimizer->options.common;
  /* OptimizerV2 applies all, in the order value, norm, global norm. The others apply the first that is set
   * of norm, global norm, value. */
  bool all = optimizer->rules->clip_rule == MIX_CLIP_ALL;
  bool norm = options->clipnorm > 0, global = options->global_clipnorm > 0 && (all || !norm);
  bool value = options->clipvalue > 0 && (all || (!norm && !global));
  for (int i = 0; value && i < count; i++) {
    if (!gradients[i]) continue;
    mix_dtype dtype = mix_tensor_dtype(gradients[i]);
    mix_tensor *clipped = mix_clip(mix_rows_values(gradients[i]), mix_scalar(-options->clipvalue, dtype),
                                   mix_scalar(options->clipvalue, dtype));
    gradients[i] = mix_with_values(gradients[i], clipped);
  }
  for (int i = 0; norm && i < count; i++)
    if (gradients[i]) gradients[i] = by_norm(gradients[i], options->clipnorm);
  if (global) by_global_norm(optimizer, count, gradients, indices, options->global_clipnorm);
  return !mix_failed();
}
