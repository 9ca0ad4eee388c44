/* Adam (Kingma and Ba, 2015, the form with epsilon hat at the end of section 2), AMSGrad (Reddi, Kale and
 * Kumar, 2018), and AdamW: Adam with the weight decay of apply.c (Loshchilov and Hutter, 2019). */
#include "base/error.h"
#include "optim/optimizer.h"

enum { MOMENTUM, VELOCITY, VELOCITY_HAT };

static bool has_slot(const mix_optimizer *optimizer, int slot) {
  return slot != VELOCITY_HAT || optimizer->options.adam.amsgrad;
}

/* alpha = lr * sqrt(1 - beta_2^t) / (1 - beta_1^t), t = iterations + 1: one scalar per dtype. */
static mix_tensor *step_size(mix_update *update, mix_dtype dtype) {
  mix_tensor **alpha = &update->shared[dtype][0];
  if (*alpha) return *alpha;
  const mix_adam_options *options = &update->optimizer->options.adam;
  mix_tensor *step = mix_update_step(update, 1, dtype), *one = mix_scalar(1, dtype);
  mix_tensor *beta_1_power = mix_power(mix_update_cast(options->beta_1, dtype), step);
  mix_tensor *beta_2_power = mix_power(mix_update_cast(options->beta_2, dtype), step);
  mix_tensor *rate =
      mix_multiply(mix_update_learning_rate(update, dtype), mix_sqrt(mix_subtract(one, beta_2_power)));
  return *alpha = mix_divide(rate, mix_subtract(one, beta_1_power));
}

/* epsilon; with adaptive_epsilon, epsilon * sqrt(1 - beta_2^t), as in the paper's first form. */
static mix_tensor *epsilon_hat(mix_update *update, mix_dtype dtype) {
  const mix_adam_options *options = &update->optimizer->options.adam;
  mix_tensor *epsilon = mix_scalar(options->epsilon, dtype), **hat = &update->shared[dtype][1];
  if (!options->adaptive_epsilon || *hat) return *hat ? *hat : epsilon;
  mix_tensor *beta_2_power =
      mix_power(mix_update_cast(options->beta_2, dtype), mix_update_step(update, 1, dtype));
  return *hat = mix_multiply(epsilon, mix_sqrt(mix_subtract(mix_scalar(1, dtype), beta_2_power)));
}

static bool check(const mix_optimizer *optimizer) {
  if (!optimizer->options.adam.adaptive_epsilon || optimizer->rules->adam_adaptive_epsilon) return true;
  return mix_fail_value("%s: adaptive_epsilon is unknown to the semantics %s; only tf_keras has it",
                        optimizer->class->lower_case_name, optimizer->rules->name);
}

static void update(mix_update *update, int index, mix_tensor *gradient) {
  mix_optimizer *optimizer = update->optimizer;
  mix_variable *variable = optimizer->trainable[index];
  const mix_adam_options *options = &optimizer->options.adam;
  mix_tensor *weight = mix_update_get(update, variable);
  mix_tensor *alpha = step_size(update, mix_update_dtype(update, variable));
  mix_tensor *momentum =
      mix_update_running_mean(update, optimizer->slots[MOMENTUM][index], options->beta_1, gradient);
  mix_tensor *velocity = mix_update_running_mean(update, optimizer->slots[VELOCITY][index], options->beta_2,
                                                 mix_update_gradient_square(update, gradient));
  if (options->amsgrad) {
    mix_variable *slot = optimizer->slots[VELOCITY_HAT][index];
    velocity = mix_maximum(mix_update_get(update, slot), velocity);
    mix_update_set(update, slot, velocity);
  }
  mix_tensor *denominator =
      mix_add(mix_sqrt(velocity), epsilon_hat(update, mix_update_dtype(update, variable)));
  mix_update_set(update, variable,
                 mix_subtract(weight, mix_divide(mix_multiply(momentum, alpha), denominator)));
}

/* Keras's get_config leaves adaptive_epsilon out. */
#define ADAM                                                                                                 \
  .learning_rate = 0.001,                                                                                    \
  .options = {{MIX_FIELD(mix_adam_options, beta_1), &mix_field_number, .number = 0.9},                       \
              {MIX_FIELD(mix_adam_options, beta_2), &mix_field_number, .number = 0.999},                     \
              {MIX_FIELD(mix_adam_options, epsilon), &mix_field_number, .number = 1e-7},                     \
              {MIX_FIELD(mix_adam_options, amsgrad), &mix_field_boolean},                                    \
              {MIX_FIELD(mix_adam_options, adaptive_epsilon), &mix_field_boolean, .except = MIX_ALWAYS}},    \
  .slot_names = {{"m", "m", "momentum"}, {"v", "v", "velocity"}, {"vhat", "vhat", "velocity_hat"}},          \
  .has_slot = has_slot, .interleaved = 2, .check = check, .update = update

const mix_optimizer_class mix_adam_class = {.name = "Adam", .lower_case_name = "adam", ADAM};
const mix_optimizer_class mix_adamw_class = {
    .name = "AdamW", .lower_case_name = "adamw", .weight_decay = 0.004, ADAM};

MIX_OPTIMIZER(adam, mix_adam_options)
MIX_OPTIMIZER(adamw, mix_adam_options)
MIX_OPTIMIZER_DEFAULTS(adam)
