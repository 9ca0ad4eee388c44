/* ScheduleFreeAdamW: no schedule that must know the last step, for the weights are an average of what the
 * steps reach (Defazio and others: The road less scheduled, 2024). Weight decay is that of apply.c. */
#include "base/error.h"
#include "optim/optimizer.h"

enum { MOMENTUM, VELOCITY };                 /* momentum: z of the paper */
enum { RATE, CORRECTION, SHARE, OLD_SHARE }; /* shared scalars */

static mix_tensor *one_minus(mix_tensor *x) { return mix_subtract(mix_scalar_like(x, 1), x); }

/* lr min(t / warmup, 1), 1 - beta_2^t, 1 / t and 1 - 1 / t: one of each per dtype. */
static mix_tensor *const *scalars(mix_update *update, mix_dtype dtype) {
  mix_tensor **shared = update->shared[dtype];
  if (shared[RATE]) return shared;
  const mix_schedule_free_adamw_options *options = &update->optimizer->options.schedule_free_adamw;
  mix_tensor *step = mix_update_step(update, 1, dtype), *one = mix_scalar(1, dtype);
  shared[RATE] = mix_update_learning_rate(update, dtype);
  if (options->warmup_steps > 0) {
    mix_tensor *share = mix_divide(step, mix_scalar((double)options->warmup_steps, dtype));
    shared[RATE] = mix_multiply(shared[RATE], mix_minimum(share, one));
  }
  shared[CORRECTION] = one_minus(mix_power(mix_update_cast(options->beta_2, dtype), step));
  shared[SHARE] = mix_divide(one, step);
  shared[OLD_SHARE] = one_minus(shared[SHARE]);
  return shared;
}

/* z -= lr g / (sqrt(v^) + epsilon); x = (1 - 1 / t) x + z / t; w = (1 - beta_1) z + beta_1 x, where the old x
 * follows from the old w. Keras means the old z there, but on TensorFlow reads the new one. */
static void update(mix_update *update, int index, mix_tensor *gradient) {
  mix_optimizer *optimizer = update->optimizer;
  const mix_schedule_free_adamw_options *options = &optimizer->options.schedule_free_adamw;
  mix_variable *variable = optimizer->trainable[index], *slot = optimizer->slots[MOMENTUM][index],
               *squares = optimizer->slots[VELOCITY][index];
  mix_dtype dtype = mix_update_dtype(update, variable);
  mix_tensor *const *shared = scalars(update, dtype);
  mix_tensor *beta_1 = mix_update_cast(options->beta_1, dtype), *rest = one_minus(beta_1);
  mix_tensor *old = mix_update_get(update, squares), *square = mix_update_gradient_square(update, gradient);
  mix_tensor *fresh = one_minus(mix_update_cast(options->beta_2, dtype));
  mix_tensor *velocity = mix_add(old, mix_multiply(mix_subtract(square, old), fresh));
  mix_update_set(update, squares, velocity);
  mix_tensor *denominator =
      mix_add(mix_sqrt(mix_divide(velocity, shared[CORRECTION])), mix_update_cast(options->epsilon, dtype));
  mix_tensor *z = mix_subtract(mix_update_get(update, slot),
                               mix_divide(mix_multiply(shared[RATE], gradient), denominator));
  mix_update_set(update, slot, z);
  mix_tensor *own = mix_multiply(rest, z);
  mix_tensor *average = mix_divide(mix_subtract(mix_update_get(update, variable), own), beta_1);
  average = mix_add(mix_multiply(shared[OLD_SHARE], average), mix_multiply(shared[SHARE], z));
  mix_update_set(update, variable, mix_add(own, mix_multiply(beta_1, average)));
}

static bool check(const mix_optimizer *optimizer) {
  const mix_schedule_free_adamw_options *options = &optimizer->options.schedule_free_adamw;
  if (options->beta_1 != 0) return true;
  return mix_fail_value("schedulefreeadamw: beta_1 is 0, by which the update divides; expected a number in "
                        "(0, 1)");
}

const mix_optimizer_class mix_schedule_free_adamw_class = {
    .name = "ScheduleFreeAdamW",
    .lower_case_name = "schedulefreeadamw",
    .learning_rate = 0.0025,
    .options = {{MIX_FIELD(mix_schedule_free_adamw_options, beta_1), &mix_field_number, .number = 0.9},
                {MIX_FIELD(mix_schedule_free_adamw_options, beta_2), &mix_field_number, .number = 0.999},
                {MIX_FIELD(mix_schedule_free_adamw_options, epsilon), &mix_field_number, .number = 1e-8},
                {MIX_FIELD(mix_schedule_free_adamw_options, warmup_steps), &mix_field_integer,
                 .range = MIX_NOT_NEGATIVE}},
    .slot_names = {{"m", "m", "momentum"}, {"v", "v", "velocity"}},
    .starts_at_weight = 1 << MOMENTUM,
    .interleaved = 2,
    .keras3_only = true,
    .check = check,
    .update = update,
};

MIX_OPTIMIZER(schedule_free_adamw, mix_schedule_free_adamw_options)
MIX_OPTIMIZER_DEFAULTS(schedule_free_adamw)
