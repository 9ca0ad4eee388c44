/* Ftrl-proximal with TensorFlow's L2 shrinkage and beta (McMahan et al.: Ad click prediction: a view from
 * the trenches, 2013). */
#include "base/error.h"
#include "optim/optimizer.h"

enum { ACCUMULATOR, LINEAR };

static double slot_start(const mix_optimizer *optimizer, int slot) {
  return slot == ACCUMULATOR ? optimizer->options.ftrl.initial_accumulator_value : 0;
}

/* x^(-learning_rate_power). The default power is a square root. */
static mix_tensor *powered(mix_tensor *x, double learning_rate_power) {
  return learning_rate_power == -0.5 ? mix_sqrt(x) : mix_power(x, mix_scalar_like(x, -learning_rate_power));
}

static unsigned idle(const mix_optimizer *optimizer) {
  return optimizer->rules->sparse_idle_rows_kept ? MIX_IDLE_NOTHING : MIX_IDLE_ALL;
}

/* n = a + g^2
 * z += g + 2 shrinkage w - ((n^-p - a^-p) / lr) w
 * w = (clip(z, -l1, l1) - z) / (n^-p / lr + 2 (l2 + beta / (2 lr)))
 * a = n */
static void update(mix_update *update, int index, mix_tensor *gradient) {
  mix_optimizer *optimizer = update->optimizer;
  const mix_ftrl_options *o = &optimizer->options.ftrl;
  mix_variable *variable = optimizer->trainable[index];
  mix_variable *accumulator_slot = optimizer->slots[ACCUMULATOR][index],
               *linear_slot = optimizer->slots[LINEAR][index];
  mix_dtype dtype = mix_update_dtype(update, variable);
  mix_tensor *rate = mix_update_learning_rate(update, dtype), *weight = mix_update_get(update, variable);
  mix_tensor *l2 = mix_scalar(o->l2_regularization_strength, dtype);
  if (o->beta != 0)
    l2 = mix_add(l2, mix_divide(mix_scalar(o->beta, dtype), mix_multiply(mix_scalar(2, dtype), rate)));
  mix_tensor *shrunk = gradient;
  if (o->l2_shrinkage_regularization_strength != 0)
    shrunk = mix_add(gradient,
                     mix_multiply(mix_scalar(2 * o->l2_shrinkage_regularization_strength, dtype), weight));

  mix_tensor *old = mix_update_get(update, accumulator_slot),
             *accumulator = mix_add(old, mix_update_gradient_square(update, gradient));
  mix_tensor *power = powered(accumulator, o->learning_rate_power);
  mix_tensor *pull =
      mix_multiply(mix_divide(mix_subtract(power, powered(old, o->learning_rate_power)), rate), weight);
  mix_tensor *linear = mix_add(mix_update_get(update, linear_slot), mix_subtract(shrunk, pull));
  mix_tensor *quadratic = mix_add(mix_divide(power, rate), mix_multiply(mix_scalar(2, dtype), l2));
  mix_tensor *clipped = mix_clip(linear, mix_scalar(-o->l1_regularization_strength, dtype),
                                 mix_scalar(o->l1_regularization_strength, dtype));
  mix_update_set(update, accumulator_slot, accumulator);
  mix_update_set(update, linear_slot, linear);
  mix_tensor *next = mix_divide(mix_subtract(clipped, linear), quadratic);
  if (optimizer->rules->ftrl_zero_within_l1) /* OptimizerV2 calls TensorFlow's kernel */
    next = mix_select(mix_greater(mix_abs(linear), mix_scalar(o->l1_regularization_strength, dtype)), next,
                      mix_zeros_like(next));
  mix_update_set(update, variable, next);
}

static bool check(const mix_optimizer *optimizer) {
  double power = optimizer->options.ftrl.learning_rate_power;
  if (!(power > 0)) return true;
  return mix_fail_value("ftrl: learning_rate_power is %g; expected a number that is not positive", power);
}

#define ROW(field, value, ...)                                                                               \
  { MIX_FIELD(mix_ftrl_options, field), &mix_field_number, .number = value, __VA_ARGS__ }
const mix_optimizer_class mix_ftrl_class = {
    .name = "Ftrl",
    .lower_case_name = "ftrl",
    .learning_rate = 0.001,
    .options = {ROW(learning_rate_power, -0.5),
                ROW(initial_accumulator_value, 0.1, .range = MIX_NOT_NEGATIVE),
                ROW(l1_regularization_strength, 0, .range = MIX_NOT_NEGATIVE),
                ROW(l2_regularization_strength, 0, .range = MIX_NOT_NEGATIVE),
                ROW(l2_shrinkage_regularization_strength, 0, .range = MIX_NOT_NEGATIVE), ROW(beta, 0)},
    .slot_names = {{"accumulator", "accumulator", "accumulator"}, {"linear", "linear", "linear"}},
    .slot_start = slot_start,
    .interleaved = 2,
    .interleaved_everywhere = true,
    .check = check,
    .idle = idle,
    .update = update,
};
#undef ROW

MIX_OPTIMIZER(ftrl, mix_ftrl_options)
MIX_OPTIMIZER_DEFAULTS(ftrl)
