/* Adafactor: the second moment of a matrix is the product of its row and column means (Shazeer and Stern:
 * Adafactor: adaptive learning rates with sublinear memory cost, 2018). As in Keras, the product is stored
 * too, so that no memory is saved. */
#include "base/error.h"
#include "optim/optimizer.h"

enum { ROWS, COLUMNS, VELOCITY };
enum { RATE, BETA };

/* A variable (..., rows, columns) has slots (..., rows) and (..., columns); vectors and scalars do not. */
static bool slot_shape(const mix_optimizer *optimizer, const mix_variable *variable, int slot,
                       mix_shape *shape) {
  *shape = variable->shape;
  if (slot == VELOCITY) return true;
  if (shape->rank < 2) return false;
  if (slot == COLUMNS) shape->dims[shape->rank - 2] = shape->dims[shape->rank - 1];
  shape->rank--;
  return true;
}

static mix_tensor *root_mean(mix_tensor *squares) {
  return mix_sqrt(mix_reduce_mean(squares, MIX_ALL_AXES, false));
}

/* The rate min(lr, 1 / sqrt(t)) and beta_2 = 1 - t^beta_2_decay. relative_step does not matter: Keras takes
 * the minimum again if the option is off. */
static mix_tensor *const *scalars(mix_update *update, mix_dtype dtype) {
  mix_tensor **shared = update->shared[dtype];
  if (shared[RATE]) return shared;
  mix_tensor *step = mix_update_step(update, 1, dtype);
  mix_tensor *power = mix_power(step, mix_scalar(update->optimizer->options.adafactor.beta_2_decay, dtype));
  shared[BETA] = mix_subtract(mix_scalar(1, dtype), power);
  shared[RATE] = mix_minimum(mix_update_learning_rate(update, dtype), mix_rsqrt(step));
  return shared;
}

/* beta * slot + (1 - beta) * value, assigned to the slot. */
static mix_tensor *running_mean(mix_update *update, mix_variable *slot, mix_tensor *beta, mix_tensor *value) {
  mix_tensor *rest = mix_subtract(mix_scalar(1, mix_update_dtype(update, slot)), beta);
  mix_tensor *mean = mix_add(mix_multiply(beta, mix_update_get(update, slot)), mix_multiply(rest, value));
  mix_update_set(update, slot, mean);
  return mean;
}

/* The means depend on all rows. */
static unsigned idle(const mix_optimizer *optimizer) { return MIX_IDLE_DENSE; }

/* v = (r / mean(r)) c; u = g / sqrt(v);
 * w -= max(epsilon_2, rms(w)) min(lr, 1 / sqrt(t)) u / max(1, rms(u) / clip_threshold) */
static void update(mix_update *update, int index, mix_tensor *gradient) {
  mix_optimizer *optimizer = update->optimizer;
  const mix_adafactor_options *options = &optimizer->options.adafactor;
  mix_variable *variable = optimizer->trainable[index], *rows_slot = optimizer->slots[ROWS][index];
  mix_dtype dtype = mix_update_dtype(update, variable);
  mix_tensor *const *shared = scalars(update, dtype);
  mix_tensor *weight = mix_update_get(update, variable);
  mix_tensor *alpha = mix_multiply(
      mix_maximum(mix_update_cast(options->epsilon_2, dtype), root_mean(mix_square(weight))), shared[RATE]);
  mix_tensor *square = mix_update_gradient_square(update, gradient);
  mix_tensor *squares = mix_add(square, mix_scalar(options->epsilon_1, dtype)), *velocity;
  if (rows_slot) {
    mix_tensor *rows =
        running_mean(update, rows_slot, shared[BETA], mix_reduce_mean(squares, MIX_AXES(-1), false));
    mix_tensor *columns = running_mean(update, optimizer->slots[COLUMNS][index], shared[BETA],
                                       mix_reduce_mean(squares, MIX_AXES(-2), false));
    mix_tensor *share = mix_divide(rows, mix_reduce_mean(rows, MIX_AXES(-1), true));
    velocity = mix_multiply(mix_expand_dims(share, -1), mix_expand_dims(columns, -2));
    mix_update_set(update, optimizer->slots[VELOCITY][index], velocity);
  } else {
    velocity = running_mean(update, optimizer->slots[VELOCITY][index], shared[BETA], squares);
  }
  /* rsqrt: TensorFlow's form of both families' division by a root */
  mix_tensor *inverse = mix_rsqrt(velocity), *step = mix_multiply(gradient, inverse);
  mix_tensor *step_square =
      mix_update_keeps_repeats(update) ? mix_multiply(mix_square(inverse), square) : mix_square(step);
  mix_tensor *excess = mix_divide(root_mean(step_square), mix_scalar(options->clip_threshold, dtype));
  step = mix_divide(step, mix_maximum(mix_scalar(1, dtype), excess));
  mix_update_set(update, variable, mix_subtract(weight, mix_multiply(alpha, step)));
}

#define ROW(field, value)                                                                                    \
  { MIX_FIELD(mix_adafactor_options, field), &mix_field_number, .number = value }
const mix_optimizer_class mix_adafactor_class = {
    .name = "Adafactor",
    .lower_case_name = "adafactor",
    .learning_rate = 0.001,
    .options = {ROW(beta_2_decay, -0.8),
                ROW(epsilon_1, 1e-30),
                ROW(epsilon_2, 1e-3),
                ROW(clip_threshold, 1),
                {"relative_step", offsetof(mix_adafactor_options, no_relative_step), &mix_field_negated}},
    .slot_names = {{"r", "r", "r"}, {"c", "c", "c"}, {"v", "v", "velocity"}},
    .slot_shape = slot_shape,
    .interleaved = 3,
    .idle = idle,
    .update = update,
};
#undef ROW

MIX_OPTIMIZER(adafactor, mix_adafactor_options)
MIX_OPTIMIZER_DEFAULTS(adafactor)
