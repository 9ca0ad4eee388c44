/* Stochastic gradient descent with momentum (Nesterov's form: Sutskever, Martens, Dahl and Hinton, 2013). */
#include "base/error.h"
#include "optim/optimizer.h"

static bool has_slot(const mix_optimizer *optimizer, int slot) {
  return slot == 0 && (optimizer->options.sgd.momentum != 0 || optimizer->rules->sgd_slot_always);
}

static bool check(const mix_optimizer *optimizer) {
  double momentum = optimizer->options.sgd.momentum;
  if (momentum >= 0 && momentum <= 1) return true;
  return mix_fail(MIX_VALUE_ERROR, "sgd: momentum is %g; expected a number in [0, 1]", momentum), false;
}

static void update(mix_update *update, int index, mix_tensor *gradient) {
  mix_optimizer *optimizer = update->optimizer;
  mix_variable *variable = optimizer->trainable[index];
  const mix_sgd_options *options = &optimizer->options.sgd;
  mix_tensor *weight = mix_update_get(update, variable);
  mix_tensor *descent = mix_multiply(gradient, mix_update_learning_rate(update, variable->dtype));
  mix_variable *slot = optimizer->slots[0] ? optimizer->slots[0][index] : NULL;
  if (options->momentum == 0) {
    if (slot) mix_update_set(update, slot, mix_negative(descent));
    mix_update_set(update, variable, mix_subtract(weight, descent));
    return;
  }
  mix_tensor *momentum = mix_update_cast(options->momentum, variable->dtype);
  mix_tensor *velocity = mix_subtract(mix_multiply(mix_update_get(update, slot), momentum), descent);
  mix_update_set(update, slot, velocity);
  mix_tensor *step = options->nesterov ? mix_subtract(mix_multiply(velocity, momentum), descent) : velocity;
  mix_update_set(update, variable, mix_add(weight, step));
}

const mix_optimizer_class mix_sgd_class = {
    .name = "SGD",
    .lower_case_name = "sgd",
    .learning_rate = 0.01,
    .options = {{"momentum", MIX_OPTION_NUMBER, .offset = offsetof(mix_sgd_options, momentum)},
                {"nesterov", MIX_OPTION_BOOLEAN, .offset = offsetof(mix_sgd_options, nesterov)}},
    .slot_names = {{"momentum", "m", "momentum"}},
    .has_slot = has_slot,
    .check = check,
    .update = update,
};

mix_optimizer *mix_sgd_with(const mix_sgd_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_sgd_options, given, options, "sgd");
  return mix_optimizer_new(&mix_sgd_class, &given, sizeof given);
}

mix_sgd_options mix_sgd_defaults(void) { return (mix_sgd_options){.size = sizeof(mix_sgd_options)}; }
