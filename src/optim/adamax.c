/* Two variants of Adam: Adamax divides by an infinity norm (Kingma and Ba, 2015, section 7), Nadam uses
 * Nesterov momentum (Dozat, 2016). */
#include "base/error.h"
#include "optim/optimizer.h"

enum { MOMENTUM, NORM, VELOCITY = NORM };

/* ---- Adamax: u = max(beta_2 u, |g|); w -= lr m / ((1 - beta_1^t) (u + epsilon)) ---- */

/* 1 - beta_1^t: one scalar per dtype. */
static mix_tensor *bias_correction(mix_update *update, mix_dtype dtype) {
  mix_tensor **correction = &update->shared[dtype][0];
  if (*correction) return *correction;
  mix_tensor *power = mix_power(mix_update_cast(update->optimizer->options.adamax.beta_1, dtype),
                                mix_update_step(update, 1, dtype));
  return *correction = mix_subtract(mix_scalar(1, dtype), power);
}

static unsigned adamax_idle(const mix_optimizer *optimizer) {
  return optimizer->rules->sparse_idle_rows_kept ? MIX_IDLE_NOTHING : MIX_IDLE_ALL;
}

static void adamax(mix_update *update, int index, mix_tensor *gradient) {
  mix_optimizer *optimizer = update->optimizer;
  const mix_adamax_options *options = &optimizer->options.adamax;
  mix_variable *variable = optimizer->trainable[index], *norm_slot = optimizer->slots[NORM][index];
  mix_tensor *rate = mix_update_learning_rate(update, mix_update_dtype(update, variable)),
             *correction = bias_correction(update, mix_update_dtype(update, variable));
  mix_tensor *momentum =
      mix_update_running_mean(update, optimizer->slots[MOMENTUM][index], options->beta_1, gradient);
  mix_tensor *norm =
      mix_maximum(mix_multiply(mix_update_number(update, options->beta_2, mix_update_dtype(update, variable)),
                               mix_update_get(update, norm_slot)),
                  mix_update_gradient_abs(update, gradient));
  mix_update_set(update, norm_slot, norm);
  mix_tensor *denominator = mix_add(norm, mix_scalar(options->epsilon, mix_update_dtype(update, variable))),
             *step;
  if (optimizer->rules->adamax_bias_outside)
    step = mix_multiply(mix_divide(rate, correction), mix_divide(momentum, denominator));
  else
    step = mix_divide(mix_multiply(rate, momentum), mix_multiply(correction, denominator));
  mix_update_set(update, variable, mix_subtract(mix_update_get(update, variable), step));
}

#define OPTIONS                                                                                              \
  .learning_rate = 0.001,                                                                                    \
  .options = {{MIX_FIELD(mix_adamax_options, beta_1), &mix_field_number, .number = 0.9},                     \
              {MIX_FIELD(mix_adamax_options, beta_2), &mix_field_number, .number = 0.999},                   \
              {MIX_FIELD(mix_adamax_options, epsilon), &mix_field_number, .number = 1e-7}},                  \
  .interleaved = 2

const mix_optimizer_class mix_adamax_class = {.name = "Adamax",
                                              .lower_case_name = "adamax",
                                              OPTIONS,
                                              .slot_names = {{"m", "m", "momentum"}, {"v", "u", "norm"}},
                                              .idle = adamax_idle,
                                              .update = adamax};

/* ---- Nadam: u_t = beta_1 (1 - 0.96^t / 2); P is the product of all u so far;
 * m^ = u_{t+1} m / (1 - P u_{t+1}) + (1 - u_t) g / (1 - P);
 * w -= lr m^ / (sqrt(v / (1 - beta_2^t)) + epsilon) ---- */

enum { U, NEXT_U, VELOCITY_CORRECTION };

/* 1 - 0.5 * 0.96^step. The experimental family multiplies the exponent by its decay, 0.004. */
static mix_tensor *momentum_decay(mix_update *update, int offset, mix_tensor *base) {
  mix_dtype dtype = mix_tensor_dtype(base);
  const mix_optimizer *optimizer = update->optimizer;
  mix_tensor *exponent = mix_update_step(update, offset, dtype);
  if (optimizer->rules->nadam_schedule_decay != 1)
    exponent = mix_multiply(exponent, mix_scalar(optimizer->options.common.decay, dtype));
  return mix_subtract(mix_scalar(1, dtype), mix_multiply(mix_scalar(0.5, dtype), mix_power(base, exponent)));
}

/* u of the current step (offset 1) or of the next step (offset 2). */
static mix_tensor *decayed_momentum(mix_update *update, int offset, mix_dtype dtype) {
  mix_tensor *decay = momentum_decay(update, offset, mix_update_cast(0.96, dtype));
  return mix_multiply(mix_update_cast(update->optimizer->options.adamax.beta_1, dtype), decay);
}

/* Multiplies P by u. This happens once per step, in tf_keras for almost every variable (see
 * reuses_product). */
static void advance_product(mix_update *update) {
  mix_optimizer *optimizer = update->optimizer;
  mix_dtype dtype = optimizer->product->dtype;
  mix_tensor *product = mix_update_get(update, optimizer->product);
  if (optimizer->rules->nadam_product_uncast) {
    product = mix_multiply(product, mix_scalar(optimizer->options.adamax.beta_1, dtype));
    product = mix_multiply(product, momentum_decay(update, 1, mix_scalar(0.96, dtype)));
  } else {
    product = mix_multiply(product, decayed_momentum(update, 1, dtype));
  }
  mix_update_set(update, optimizer->product, product);
}

static void nadam_begin(mix_update *update) {
  if (!update->optimizer->rules->nadam_product_per_variable) advance_product(update);
}

/* ---- tf_keras' P: TensorFlow traces a training function twice if its first run makes variables, those of
 * the optimizer or of metrics ---- */

mix_status mix_optimizer_build_in_step(mix_optimizer *optimizer, mix_list *variables) {
  optimizer->traced_twice |= !optimizer->built;
  /* an update outside of a function loses nothing */
  return mix_capture_current() ? mix_optimizer_build_for_training(optimizer, variables)
                               : mix_optimizer_build(optimizer, variables);
}

void mix_optimizer_note_metrics(mix_optimizer *optimizer, void *metrics, bool in_training_function) {
  optimizer = mix_optimizer_plain(optimizer);
  if (optimizer->made_metrics == metrics) return;
  mix_release(optimizer->made_metrics);
  optimizer->made_metrics = mix_retain(metrics);
  optimizer->traced_twice |= in_training_function;
}

/* True where tf_keras leaves P unchanged for a variable: it compares iterations + 2 with a Python counter
 * that tracing has made a constant, 1 + i for variable i, and n more of n where the function is traced twice.
 * A match of the first variable while P is 1, where 1 - P would be 0, is not reproduced. */
static mix_tensor *reuses_product(mix_update *update) {
  const mix_optimizer *optimizer = update->optimizer;
  const int traced = optimizer->traced_twice ? update->gradient_count : 0;
  mix_tensor *iterations = mix_update_get(update, optimizer->iterations);
  mix_tensor *matches = mix_equal(iterations, mix_scalar_like(iterations, traced - 1 + update->gradient));
  if (update->gradient > 0) return matches;
  mix_tensor *product = mix_update_get(update, update->optimizer->product);
  return mix_logical_and(matches, mix_less(product, mix_scalar_like(product, 1)));
}

static void advance_or_reuse_product(mix_update *update) {
  mix_variable *variable = update->optimizer->product;
  mix_tensor *product = mix_update_get(update, variable), *reuses = reuses_product(update);
  advance_product(update);
  mix_update_set(update, variable, mix_select(reuses, product, mix_update_get(update, variable)));
}

static void nadam_begin_variable(mix_update *update) {
  if (update->optimizer->rules->nadam_product_per_variable) advance_or_reuse_product(update);
}

static mix_tensor *const *nadam_scalars(mix_update *update, mix_dtype dtype) {
  mix_tensor **shared = update->shared[dtype];
  if (shared[U]) return shared;
  mix_tensor *beta_2_power = mix_power(mix_update_cast(update->optimizer->options.adamax.beta_2, dtype),
                                       mix_update_step(update, 1, dtype));
  shared[U] = decayed_momentum(update, 1, dtype);
  shared[NEXT_U] = decayed_momentum(update, 2, dtype);
  shared[VELOCITY_CORRECTION] = mix_subtract(mix_scalar(1, dtype), beta_2_power);
  return shared;
}

/* slot + (value - slot) * (1 - beta). As in Keras, 1 - beta is computed in the variable's dtype: for 0.999
 * the float32 result differs from the double's by 1.3e-5. */
static mix_tensor *running_mean(mix_update *update, mix_variable *slot, double beta, mix_tensor *value) {
  mix_tensor *old = mix_update_get(update, slot);
  mix_tensor *rest = mix_subtract(mix_scalar(1, mix_update_dtype(update, slot)),
                                  mix_update_cast(beta, mix_update_dtype(update, slot)));
  mix_tensor *mean = mix_add(old, mix_multiply(mix_subtract(value, old), rest));
  mix_update_set(update, slot, mean);
  return mean;
}

/* The experimental family moves the averages everywhere and the weights where there is a gradient. */
static unsigned nadam_idle(const mix_optimizer *optimizer) {
  return optimizer->rules->sparse_idle_rows_kept ? MIX_IDLE_SLOTS : MIX_IDLE_ALL;
}

static void nadam(mix_update *update, int index, mix_tensor *gradient) {
  mix_optimizer *optimizer = update->optimizer;
  const mix_adamax_options *options = &optimizer->options.adamax;
  mix_variable *variable = optimizer->trainable[index];
  mix_tensor *const *scalars = nadam_scalars(update, mix_update_dtype(update, variable)),
                    *one = mix_scalar(1, mix_update_dtype(update, variable));
  mix_tensor *product =
      mix_cast(mix_update_get(update, optimizer->product), mix_update_dtype(update, variable));
  mix_tensor *momentum = running_mean(update, optimizer->slots[MOMENTUM][index], options->beta_1, gradient);
  mix_tensor *velocity = running_mean(update, optimizer->slots[VELOCITY][index], options->beta_2,
                                      mix_update_gradient_square(update, gradient));
  mix_tensor *next_product = mix_multiply(product, scalars[NEXT_U]);
  mix_tensor *next = mix_divide(mix_multiply(scalars[NEXT_U], momentum), mix_subtract(one, next_product));
  mix_tensor *now =
      mix_divide(mix_multiply(mix_subtract(one, scalars[U]), gradient), mix_subtract(one, product));
  mix_tensor *root = mix_sqrt(mix_divide(velocity, scalars[VELOCITY_CORRECTION]));
  mix_tensor *step = mix_divide(
      mix_multiply(mix_add(next, now), mix_update_learning_rate(update, mix_update_dtype(update, variable))),
      mix_add(root, mix_scalar(options->epsilon, mix_update_dtype(update, variable))));
  mix_update_set(update, variable, mix_subtract(mix_update_get(update, variable), step));
}

static bool nadam_check(const mix_optimizer *optimizer) {
  if (!optimizer->options.common.schedule || !optimizer->rules->nadam_schedule_refused) return true;
  return mix_fail_value("nadam: this generation's Nadam takes no learning rate schedule");
}

const mix_optimizer_class mix_nadam_class = {
    .name = "Nadam",
    .lower_case_name = "nadam",
    OPTIONS,
    .slot_names = {{"m", "m", "momentum"}, {"v", "v", "velocity"}},
    .product_names = {"momentum_cache", "momentum_product", "momentum_product"},
    .decays_itself = true,
    .check = nadam_check,
    .begin = nadam_begin,
    .begin_variable = nadam_begin_variable,
    .idle = nadam_idle,
    .update = nadam};

MIX_OPTIMIZER(adamax, mix_adamax_options)
MIX_OPTIMIZER(nadam, mix_adamax_options)
MIX_OPTIMIZER_DEFAULTS(adamax)
