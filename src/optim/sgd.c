/* Stochastic gradient descent with momentum (Nesterov's form: Sutskever, Martens, Dahl and Hinton, 2013). */
#include "optim/optimizer.h"

static bool has_slot(const mix_optimizer *optimizer, int slot) {
  return slot == 0 && (optimizer->options.sgd.momentum != 0 || optimizer->rules->sgd_slot_always);
}

/* Without momentum the slot, which nothing reads, keeps what it has where a sparse gradient has no row. */
static unsigned idle(const mix_optimizer *optimizer) {
  return optimizer->options.sgd.momentum == 0 || optimizer->rules->sparse_idle_rows_kept ? MIX_IDLE_NOTHING
                                                                                         : MIX_IDLE_ALL;
}

static void update(mix_update *update, int index, mix_tensor *gradient) {
  mix_optimizer *optimizer = update->optimizer;
  mix_variable *variable = optimizer->trainable[index];
  const mix_sgd_options *options = &optimizer->options.sgd;
  mix_tensor *weight = mix_update_get(update, variable);
  mix_tensor *descent =
      mix_multiply(gradient, mix_update_learning_rate(update, mix_update_dtype(update, variable)));
  mix_variable *slot = optimizer->slots[0] ? optimizer->slots[0][index] : NULL;
  if (options->momentum == 0) {
    if (slot) mix_update_set(update, slot, mix_negative(descent));
    mix_update_set(update, variable, mix_subtract(weight, descent));
    return;
  }
  mix_tensor *momentum = mix_update_cast(options->momentum, mix_update_dtype(update, variable));
  mix_tensor *velocity = mix_subtract(mix_multiply(mix_update_get(update, slot), momentum), descent);
  mix_update_set(update, slot, velocity);
  mix_tensor *step = options->nesterov ? mix_subtract(mix_multiply(velocity, momentum), descent) : velocity;
  mix_update_set(update, variable, mix_add(weight, step));
}

const mix_optimizer_class mix_sgd_class = {
    .name = "SGD",
    .lower_case_name = "sgd",
    .learning_rate = 0.01,
    .options = {{MIX_FIELD(mix_sgd_options, momentum), &mix_field_number, .range = MIX_UNIT_INTERVAL},
                {MIX_FIELD(mix_sgd_options, nesterov), &mix_field_boolean}},
    .slot_names = {{"momentum", "m", "momentum"}},
    .has_slot = has_slot,
    .idle = idle,
    .update = update,
};

MIX_OPTIMIZER(sgd, mix_sgd_options)
MIX_OPTIMIZER_DEFAULTS(sgd)
