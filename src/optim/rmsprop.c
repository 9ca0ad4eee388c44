/* RMSprop: divides the gradient by its running root mean square (Tieleman and Hinton, 2012; centred: Graves,
 * 2013). */
#include "optim/optimizer.h"

enum { VELOCITY, MOMENTUM, AVERAGE_GRADIENT };

static bool has_slot(const mix_optimizer *optimizer, int slot) {
  const mix_rmsprop_options *options = &optimizer->options.rmsprop;
  return slot == VELOCITY || (slot == MOMENTUM && options->momentum > 0) ||
         (slot == AVERAGE_GRADIENT && options->centered);
}

/* rho * average + (1 - rho) * value, assigned to the slot. The CPU's chain wants the new part first; nested
 * calls would leave that to the compiler. */
static mix_tensor *running_mean(mix_update *update, mix_variable *slot, double rho, mix_tensor *value) {
  mix_tensor *added = mix_multiply(mix_update_one_minus(update, rho, mix_update_dtype(update, slot)), value);
  mix_tensor *decayed = mix_multiply(mix_update_number(update, rho, mix_update_dtype(update, slot)),
                                     mix_update_get(update, slot));
  mix_tensor *mean = mix_add(decayed, added);
  mix_update_set(update, slot, mean);
  return mean;
}

/* Without a gradient the increment is 0 but for momentum. */
static unsigned idle(const mix_optimizer *optimizer) {
  if (optimizer->options.rmsprop.momentum == 0) return MIX_IDLE_SLOTS;
  return optimizer->rules->sparse_idle_rows_kept ? MIX_IDLE_NOTHING : MIX_IDLE_ALL;
}

static void update(mix_update *update, int index, mix_tensor *gradient) {
  mix_optimizer *optimizer = update->optimizer;
  mix_variable *variable = optimizer->trainable[index];
  const mix_rmsprop_options *options = &optimizer->options.rmsprop;
  mix_tensor *weight = mix_update_get(update, variable);
  mix_tensor *learning_rate = mix_update_learning_rate(update, mix_update_dtype(update, variable));
  mix_tensor *epsilon = mix_scalar(options->epsilon, mix_update_dtype(update, variable));
  bool momentum = options->momentum > 0, outside = optimizer->rules->rmsprop_epsilon_outside && !momentum;

  mix_tensor *denominator = running_mean(update, optimizer->slots[VELOCITY][index], options->rho,
                                         mix_update_gradient_square(update, gradient));
  if (options->centered) {
    mix_tensor *square =
        mix_square(running_mean(update, optimizer->slots[AVERAGE_GRADIENT][index], options->rho, gradient));
    denominator =
        outside ? mix_subtract(denominator, square) : mix_add(mix_subtract(epsilon, square), denominator);
  } else if (!outside) {
    denominator = mix_add(denominator, epsilon);
  }
  /* As TensorFlow runs it: its graph optimizer turns Keras 3's division by a root into rsqrt and reorders
   * products and sums. */
  mix_tensor *root = outside ? mix_add(mix_sqrt(denominator), epsilon) : mix_rsqrt(denominator);
  bool rate_with_root = optimizer->rules->rmsprop_rate_with_root;
  mix_tensor *scaled = mix_multiply(learning_rate, rate_with_root ? root : gradient);
  mix_tensor *increment = outside          ? mix_divide(scaled, root)
                          : rate_with_root ? mix_multiply(gradient, scaled)
                                           : mix_multiply(scaled, root);
  if (momentum) {
    mix_variable *slot = optimizer->slots[MOMENTUM][index];
    increment =
        mix_add(mix_multiply(mix_update_number(update, options->momentum, mix_update_dtype(update, slot)),
                             mix_update_get(update, slot)),
                increment);
    mix_update_set(update, slot, increment);
  }
  mix_update_set(update, variable, mix_subtract(weight, increment));
}

const mix_optimizer_class mix_rmsprop_class = {
    .name = "RMSprop",
    .lower_case_name = "rmsprop",
    .learning_rate = 0.001,
    .options = {{MIX_FIELD(mix_rmsprop_options, rho), &mix_field_number, .number = 0.9},
                {MIX_FIELD(mix_rmsprop_options, momentum), &mix_field_number},
                {MIX_FIELD(mix_rmsprop_options, epsilon), &mix_field_number, .number = 1e-7},
                {MIX_FIELD(mix_rmsprop_options, centered), &mix_field_boolean}},
    .slot_names = {{"rms", "velocity", "velocity"},
                   {"momentum", "momentum", "momentum"},
                   {"mg", "average_gradient", "average_gradient"}},
    .has_slot = has_slot,
    .idle = idle,
    .overwrites = true,
    .update = update,
};

MIX_OPTIMIZER(rmsprop, mix_rmsprop_options)
MIX_OPTIMIZER_DEFAULTS(rmsprop)
