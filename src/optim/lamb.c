/* Lamb: Adam's step scaled by a trust ratio for each variable, which permits large batches and large steps
 * (You et al.: Large batch optimization for deep learning: training BERT in 76 minutes, 2020). */
#include "base/error.h"
#include "optim/optimizer.h"

enum { MOMENTUM, VELOCITY };
enum { MOMENTUM_CORRECTION, VELOCITY_CORRECTION };

/* 1 - beta^t: one scalar per dtype. */
static mix_tensor *correction(mix_update *update, int which, mix_dtype dtype) {
  mix_tensor **shared = &update->shared[dtype][which];
  if (*shared) return *shared;
  const mix_lamb_options *options = &update->optimizer->options.lamb;
  mix_tensor *beta = mix_update_cast(which == MOMENTUM_CORRECTION ? options->beta_1 : options->beta_2, dtype);
  return *shared = mix_subtract(mix_scalar(1, dtype), mix_power(beta, mix_update_step(update, 1, dtype)));
}

static mix_tensor *norm(mix_tensor *x) {
  return mix_sqrt(mix_reduce_sum(mix_square(x), MIX_ALL_AXES, false));
}

/* The norms depend on all rows. */
static unsigned idle(const mix_optimizer *optimizer) { return MIX_IDLE_DENSE; }

/* r = m^ / (sqrt(v^) + epsilon); w -= lr (|w| / |r|) r. The ratio is 1 if either norm is 0. */
static void update(mix_update *update, int index, mix_tensor *gradient) {
  mix_optimizer *optimizer = update->optimizer;
  const mix_lamb_options *options = &optimizer->options.lamb;
  mix_variable *variable = optimizer->trainable[index];
  mix_dtype dtype = mix_update_dtype(update, variable);
  mix_tensor *weight = mix_update_get(update, variable), *zero = mix_scalar(0, dtype),
             *one = mix_scalar(1, dtype);
  mix_tensor *momentum =
      mix_update_running_mean(update, optimizer->slots[MOMENTUM][index], options->beta_1, gradient);
  mix_tensor *velocity = mix_update_running_mean(update, optimizer->slots[VELOCITY][index], options->beta_2,
                                                 mix_update_gradient_square(update, gradient));
  mix_tensor *root = mix_sqrt(mix_divide(velocity, correction(update, VELOCITY_CORRECTION, dtype)));
  mix_tensor *step = mix_divide(mix_divide(momentum, correction(update, MOMENTUM_CORRECTION, dtype)),
                                mix_add(root, mix_scalar(options->epsilon, dtype)));
  mix_tensor *weight_norm = norm(weight), *step_norm = norm(step);
  mix_tensor *both = mix_logical_and(mix_greater(weight_norm, zero), mix_greater(step_norm, zero));
  mix_tensor *ratio = mix_select(both, mix_divide(weight_norm, step_norm), one);
  mix_tensor *rate = mix_multiply(ratio, mix_update_learning_rate(update, dtype));
  mix_update_set(update, variable, mix_subtract(weight, mix_multiply(rate, step)));
}

const mix_optimizer_class mix_lamb_class = {
    .name = "Lamb",
    .lower_case_name = "lamb",
    .learning_rate = 0.001,
    .options = {{MIX_FIELD(mix_lamb_options, beta_1), &mix_field_number, .number = 0.9},
                {MIX_FIELD(mix_lamb_options, beta_2), &mix_field_number, .number = 0.999},
                {MIX_FIELD(mix_lamb_options, epsilon), &mix_field_number, .number = 1e-7}},
    .slot_names = {{"m", "m", "momentum"}, {"v", "v", "velocity"}},
    .interleaved = 2,
    .keras3_only = true,
    .idle = idle,
    .update = update,
};

MIX_OPTIMIZER(lamb, mix_lamb_options)
MIX_OPTIMIZER_DEFAULTS(lamb)
