/* Adam (Kingma and Ba, 2015, the form with epsilon hat at the end of section 2) and AMSGrad (Reddi, Kale and Kumar, 2018). */
#include "base/error.h"
#include "optim/optimizer.h"

enum { MOMENTUM, VELOCITY, VELOCITY_HAT };

static bool has_slot(const mix_optimizer *optimizer, int slot) { return slot != VELOCITY_HAT || optimizer->options.adam.amsgrad; }

/* alpha = lr * sqrt(1 - beta_2^t) / (1 - beta_1^t), t = iterations + 1: one scalar for each dtype. */
static mix_tensor *step_size(mix_update *update, mix_dtype dtype) {
  if (update->shared[dtype]) return update->shared[dtype];
  const mix_adam_options *options = &update->optimizer->options.adam;
  mix_tensor *iterations = mix_update_get(update, update->optimizer->iterations);
  mix_tensor *step = mix_cast(mix_add(iterations, mix_scalar_like(iterations, 1)), dtype);
  mix_tensor *one = mix_scalar(1, dtype);
  mix_tensor *beta_1_power = mix_power(mix_scalar(options->beta_1, dtype), step);
  mix_tensor *beta_2_power = mix_power(mix_scalar(options->beta_2, dtype), step);
  return update->shared[dtype] =
             mix_divide(mix_multiply(mix_update_learning_rate(update, dtype), mix_sqrt(mix_subtract(one, beta_2_power))),
                        mix_subtract(one, beta_1_power));
}

/* slot + (value - slot) * (1 - beta), assigned to the slot. */
static mix_tensor *running_mean(mix_update *update, mix_variable *slot, double beta, mix_tensor *value) {
  mix_tensor *old = mix_update_get(update, slot);
  mix_tensor *mean = mix_add(old, mix_multiply(mix_subtract(value, old), mix_scalar(1 - beta, slot->dtype)));
  mix_update_set(update, slot, mean);
  return mean;
}

static void update(mix_update *update, int index, mix_tensor *gradient) {
  mix_optimizer *optimizer = update->optimizer;
  mix_variable *variable = optimizer->trainable[index];
  const mix_adam_options *options = &optimizer->options.adam;
  mix_tensor *weight = mix_update_get(update, variable);
  mix_tensor *alpha = step_size(update, variable->dtype);
  mix_tensor *momentum = running_mean(update, optimizer->slots[MOMENTUM][index], options->beta_1, gradient);
  mix_tensor *velocity = running_mean(update, optimizer->slots[VELOCITY][index], options->beta_2, mix_square(gradient));
  if (options->amsgrad) {
    mix_variable *slot = optimizer->slots[VELOCITY_HAT][index];
    velocity = mix_maximum(mix_update_get(update, slot), velocity);
    mix_update_set(update, slot, velocity);
  }
  mix_tensor *denominator = mix_add(mix_sqrt(velocity), mix_scalar(options->epsilon, variable->dtype));
  mix_update_set(update, variable, mix_subtract(weight, mix_divide(mix_multiply(momentum, alpha), denominator)));
}

const mix_optimizer_class mix_adam_class = {
    .name = "Adam",
    .lower_case_name = "adam",
    .learning_rate = 0.001,
    .options = {{"beta_1", MIX_OPTION_NUMBER, .standard = 0.9, .offset = offsetof(mix_adam_options, beta_1)},
                {"beta_2", MIX_OPTION_NUMBER, .standard = 0.999, .offset = offsetof(mix_adam_options, beta_2)},
                {"epsilon", MIX_OPTION_NUMBER, .standard = 1e-7, .offset = offsetof(mix_adam_options, epsilon)},
                {"amsgrad", MIX_OPTION_BOOLEAN, .offset = offsetof(mix_adam_options, amsgrad)}},
    .slot_names = {{"m", "m", "momentum"}, {"v", "v", "velocity"}, {"vhat", "vhat", "velocity_hat"}},
    .has_slot = has_slot,
    .interleaved = 2,
    .update = update,
};

mix_optimizer *mix_adam_with(const mix_adam_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_adam_options, given, options, "adam");
  return mix_optimizer_new(&mix_adam_class, &given, sizeof given);
}

mix_adam_options mix_adam_defaults(void) { return (mix_adam_options){.size = sizeof(mix_adam_options)}; }
