/* Lion: steps by the sign of an interpolation between momentum and gradient (Chen et al., 2023). */
#include "base/error.h"
#include "optim/optimizer.h"

static double learning_rate_of(const mix_semantics *rules) { return rules->lion_learning_rate; }

/* m * beta + g * (1 - beta). As in Keras, 1 - beta is computed in the variable's dtype. */
static mix_tensor *mixed(mix_tensor *momentum, mix_tensor *gradient, double beta) {
  mix_tensor *scalar = mix_update_cast(beta, mix_tensor_dtype(momentum));
  return mix_add(mix_multiply(momentum, scalar),
                 mix_multiply(gradient, mix_subtract(mix_scalar_like(momentum, 1), scalar)));
}

static void update(mix_update *update, int index, mix_tensor *gradient) {
  mix_optimizer *optimizer = update->optimizer;
  const mix_lion_options *options = &optimizer->options.lion;
  mix_variable *variable = optimizer->trainable[index], *slot = optimizer->slots[0][index];
  mix_tensor *momentum = mix_update_get(update, slot);
  mix_tensor *direction = mix_sign(mixed(momentum, gradient, options->beta_1));
  mix_tensor *step =
      mix_multiply(mix_update_learning_rate(update, mix_update_dtype(update, variable)), direction);
  mix_update_set(update, variable, mix_subtract(mix_update_get(update, variable), step));
  mix_update_set(update, slot, mixed(momentum, gradient, options->beta_2));
}

static bool check(const mix_optimizer *optimizer) {
  double beta = optimizer->options.lion.beta_1;
  if (beta > 0 && beta <= 1) return true;
  return mix_fail_value("lion: beta_1 is %g; expected a number in (0, 1]", beta);
}

const mix_optimizer_class mix_lion_class = {
    .name = "Lion",
    .lower_case_name = "lion",
    .learning_rate_of = learning_rate_of,
    .options = {{MIX_FIELD(mix_lion_options, beta_1), &mix_field_number, .number = 0.9},
                {MIX_FIELD(mix_lion_options, beta_2), &mix_field_number, .number = 0.99}},
    .slot_names = {{"m", "m", "momentum"}},
    .check = check,
    .update = update,
};

MIX_OPTIMIZER(lion, mix_lion_options)
MIX_OPTIMIZER_DEFAULTS(lion)
