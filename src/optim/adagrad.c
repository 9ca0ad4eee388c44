/* Adagrad (Duchi, Hazan and Singer, 2011) and Adadelta (Zeiler, 2012): steps scaled by each weight's past
 * gradients. */
#include "base/error.h"
#include "optim/optimizer.h"

/* As in TensorFlow's graph optimizer, a division by a root is a multiplication by rsqrt. */

/* ---- Adagrad: a += g^2; w -= lr * g / sqrt(a + epsilon) ---- */

static double adagrad_start(const mix_optimizer *optimizer, int slot) {
  return optimizer->options.adagrad.initial_accumulator_value;
}

static unsigned adagrad_idle(const mix_optimizer *optimizer) { return MIX_IDLE_NOTHING; }

static void adagrad(mix_update *update, int index, mix_tensor *gradient) {
  mix_optimizer *optimizer = update->optimizer;
  mix_variable *variable = optimizer->trainable[index], *slot = optimizer->slots[0][index];
  mix_tensor *epsilon = mix_scalar(optimizer->options.adagrad.epsilon, mix_update_dtype(update, variable));
  mix_tensor *accumulator =
      mix_add(mix_update_get(update, slot), mix_update_gradient_square(update, gradient));
  mix_update_set(update, slot, accumulator);
  mix_tensor *step =
      mix_multiply(mix_update_learning_rate(update, mix_update_dtype(update, variable)), gradient);
  if (optimizer->rules->adagrad_epsilon_outside)
    step = mix_divide(step, mix_add(mix_sqrt(accumulator), epsilon));
  else
    step = mix_multiply(step, mix_rsqrt(mix_add(accumulator, epsilon)));
  mix_update_set(update, variable, mix_subtract(mix_update_get(update, variable), step));
}

const mix_optimizer_class mix_adagrad_class = {
    .name = "Adagrad",
    .lower_case_name = "adagrad",
    .learning_rate = 0.001,
    .options = {{MIX_FIELD(mix_adagrad_options, initial_accumulator_value), &mix_field_number, .number = 0.1},
                {MIX_FIELD(mix_adagrad_options, epsilon), &mix_field_number, .number = 1e-7}},
    .slot_names = {{"accumulator", "accumulator", "accumulator"}},
    .slot_start = adagrad_start,
    .idle = adagrad_idle,
    .update = adagrad,
};

MIX_OPTIMIZER(adagrad, mix_adagrad_options)
MIX_OPTIMIZER_DEFAULTS(adagrad)

/* ---- Adadelta: a = rho a + (1 - rho) g^2; delta = -sqrt(d + epsilon) / sqrt(a + epsilon) * g;
 * d = rho d + (1 - rho) delta^2; w += lr * delta ---- */

enum { ACCUMULATED_GRADIENT, ACCUMULATED_DELTA };

static mix_tensor *running_mean(mix_update *update, mix_variable *slot, double rho, mix_tensor *value) {
  mix_tensor *mean =
      mix_add(mix_multiply(mix_update_number(update, rho, mix_update_dtype(update, slot)),
                           mix_update_get(update, slot)),
              mix_multiply(mix_update_one_minus(update, rho, mix_update_dtype(update, slot)), value));
  mix_update_set(update, slot, mean);
  return mean;
}

/* Without a gradient delta is 0. */
static unsigned adadelta_idle(const mix_optimizer *optimizer) {
  return optimizer->rules->sparse_idle_rows_kept ? MIX_IDLE_NOTHING : MIX_IDLE_SLOTS;
}

static void adadelta(mix_update *update, int index, mix_tensor *gradient) {
  mix_optimizer *optimizer = update->optimizer;
  const mix_adadelta_options *options = &optimizer->options.adadelta;
  mix_variable *variable = optimizer->trainable[index], *deltas = optimizer->slots[ACCUMULATED_DELTA][index];
  mix_tensor *epsilon = mix_scalar(options->epsilon, mix_update_dtype(update, variable));
  mix_tensor *square = mix_update_gradient_square(update, gradient);
  mix_tensor *squares =
      running_mean(update, optimizer->slots[ACCUMULATED_GRADIENT][index], options->rho, square);
  mix_tensor *root = mix_sqrt(mix_add(mix_update_get(update, deltas), epsilon)),
             *inverse = mix_rsqrt(mix_add(squares, epsilon));
  mix_tensor *delta = mix_negative(mix_multiply(mix_multiply(root, gradient), inverse));
  running_mean(update, deltas, options->rho,
               mix_update_keeps_repeats(update)
                   ? mix_multiply(mix_square(mix_multiply(root, inverse)), square)
                   : mix_square(delta));
  mix_tensor *step =
      mix_multiply(mix_update_learning_rate(update, mix_update_dtype(update, variable)), delta);
  mix_update_set(update, variable, mix_add(mix_update_get(update, variable), step));
}

const mix_optimizer_class mix_adadelta_class = {
    .name = "Adadelta",
    .lower_case_name = "adadelta",
    .learning_rate = 0.001,
    .options = {{MIX_FIELD(mix_adadelta_options, rho), &mix_field_number, .number = 0.95},
                {MIX_FIELD(mix_adadelta_options, epsilon), &mix_field_number, .number = 1e-7}},
    .slot_names = {{"accum_grad", "accumulated_grad", "accumulated_grad"},
                   {"accum_var", "accumulated_delta_var", "accumulated_delta_var"}},
    .interleaved = 2,
    .idle = adadelta_idle,
    .update = adadelta,
};

MIX_OPTIMIZER(adadelta, mix_adadelta_options)
MIX_OPTIMIZER_DEFAULTS(adadelta)
