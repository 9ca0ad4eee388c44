/* Learning rate schedules as graph of the step. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/object.h"
#include <math.h>
#include <mixtape/ops.h>
#include <mixtape/schedule.h>
#include <string.h>

enum { MAX_PARAMETERS = 5 };

struct mix_schedule {
  mix_object object;
  mix_tensor *(*call)(const mix_schedule *schedule, mix_tensor *step); /* step in floatx */
  double parameters[MAX_PARAMETERS];
  bool flag; /* staircase, cycle */
  int count; /* boundaries */
  double *boundaries, *values;
  mix_tensor *(*function)(void *context, mix_tensor *step);
  void *context;
};

static void schedule_finalize(void *object) {
  mix_schedule *schedule = object;
  mix_free(schedule->boundaries);
  mix_free(schedule->values);
}
static const mix_class schedule_class = {.name = "schedule", .finalize = schedule_finalize};

static mix_schedule *schedule_new(mix_tensor *(*call)(const mix_schedule *, mix_tensor *), const double parameters[MAX_PARAMETERS],
                                  bool flag) {
  if (mix_failed()) return NULL;
  mix_schedule *schedule = mix_object_new(sizeof *schedule, &schedule_class);
  if (!schedule) return NULL;
  schedule->call = call;
  schedule->flag = flag;
  if (parameters) memcpy(schedule->parameters, parameters, sizeof schedule->parameters);
  return mix_scoped(schedule);
}

static mix_tensor *number(mix_tensor *like, double value) { return mix_scalar(value, mix_tensor_dtype(like)); }

static mix_tensor *exponential(const mix_schedule *schedule, mix_tensor *step) {
  const double *p = schedule->parameters; /* initial, decay_steps, rate */
  mix_tensor *exponent = mix_divide(step, number(step, p[1]));
  if (schedule->flag) exponent = mix_floor(exponent);
  return mix_multiply(number(step, p[0]), mix_power(number(step, p[2]), exponent));
}

static mix_tensor *inverse_time(const mix_schedule *schedule, mix_tensor *step) {
  const double *p = schedule->parameters;
  mix_tensor *ratio = mix_divide(step, number(step, p[1]));
  if (schedule->flag) ratio = mix_floor(ratio);
  return mix_divide(number(step, p[0]), mix_add(number(step, 1), mix_multiply(number(step, p[2]), ratio)));
}

static mix_tensor *polynomial(const mix_schedule *schedule, mix_tensor *step) {
  const double *p = schedule->parameters; /* initial, decay_steps, end, power */
  mix_tensor *steps = number(step, p[1]);
  if (schedule->flag)
    steps = mix_multiply(steps, mix_maximum(number(step, 1), mix_ceil(mix_divide(step, steps))));
  else
    step = mix_minimum(step, steps);
  mix_tensor *left = mix_subtract(number(step, 1), mix_divide(step, steps));
  return mix_add(mix_multiply(number(step, p[0] - p[2]), mix_power(left, number(step, p[3]))), number(step, p[2]));
}

static mix_tensor *piecewise(const mix_schedule *schedule, mix_tensor *step) {
  mix_tensor *rate = number(step, schedule->values[schedule->count]);
  for (int i = schedule->count - 1; i >= 0; i--)
    rate = mix_select(mix_less_equal(step, number(step, schedule->boundaries[i])), number(step, schedule->values[i]), rate);
  return rate;
}

static mix_tensor *cosine(const mix_schedule *schedule, mix_tensor *step) {
  const double *p = schedule->parameters; /* initial, decay_steps, alpha, warmup_target, warmup_steps */
  double top = p[4] > 0 ? p[3] : p[0];
  mix_tensor *done = mix_subtract(step, number(step, p[4]));
  done = mix_divide(mix_minimum(done, number(step, p[1])), number(step, p[1]));
  mix_tensor *wave = mix_multiply(number(step, 0.5), mix_add(number(step, 1), mix_cos(mix_multiply(number(step, M_PI), done))));
  mix_tensor *decayed = mix_add(mix_multiply(number(step, 1 - p[2]), wave), number(step, p[2]));
  mix_tensor *rate = mix_multiply(number(step, top), decayed);
  if (p[4] <= 0) return rate;
  mix_tensor *warm = mix_add(mix_multiply(number(step, p[3] - p[0]), mix_divide(step, number(step, p[4]))), number(step, p[0]));
  return mix_select(mix_less(step, number(step, p[4])), warm, rate);
}

mix_schedule *mix_exponential_decay(double initial, double decay_steps, double decay_rate, bool staircase) {
  return schedule_new(exponential, (double[MAX_PARAMETERS]){initial, decay_steps, decay_rate}, staircase);
}
mix_schedule *mix_inverse_time_decay(double initial, double decay_steps, double decay_rate, bool staircase) {
  return schedule_new(inverse_time, (double[MAX_PARAMETERS]){initial, decay_steps, decay_rate}, staircase);
}
mix_schedule *mix_polynomial_decay(double initial, double decay_steps, double end, double power, bool cycle) {
  return schedule_new(polynomial, (double[MAX_PARAMETERS]){initial, decay_steps, end, power}, cycle);
}
mix_schedule *mix_cosine_decay(double initial, double decay_steps, double alpha, double warmup_target, double warmup_steps) {
  if (decay_steps <= 0)
    return mix_fail(MIX_VALUE_ERROR, "cosine_decay: decay_steps is %g; expected a positive number", decay_steps);
  return schedule_new(cosine, (double[MAX_PARAMETERS]){initial, decay_steps, alpha, warmup_target, warmup_steps}, false);
}

mix_schedule *mix_piecewise_constant_decay(int count, const double *boundaries, const double *values) {
  if (count < 0 || !values || (count > 0 && !boundaries))
    return mix_fail(MIX_VALUE_ERROR, "piecewise_constant_decay: expected count boundaries and one value more, got count %d", count);
  mix_schedule *schedule = schedule_new(piecewise, NULL, false);
  if (!schedule) return NULL;
  size_t size = (size_t)count * sizeof(double);
  schedule->boundaries = mix_alloc(size);
  schedule->values = mix_alloc(size + sizeof(double));
  if (!schedule->boundaries || !schedule->values) return NULL;
  if (count) memcpy(schedule->boundaries, boundaries, size);
  memcpy(schedule->values, values, size + sizeof(double));
  schedule->count = count;
  return schedule;
}

static mix_tensor *custom(const mix_schedule *schedule, mix_tensor *step) { return schedule->function(schedule->context, step); }

mix_schedule *mix_schedule_function(mix_tensor *(*function)(void *, mix_tensor *), void *context) {
  if (!function) return mix_fail(MIX_TYPE_ERROR, "schedule_function: no function");
  mix_schedule *schedule = schedule_new(custom, NULL, false);
  if (!schedule) return NULL;
  schedule->function = function;
  schedule->context = context;
  return schedule;
}

mix_tensor *mix_schedule_call(mix_schedule *schedule, mix_tensor *step) {
  if (mix_failed() || !step) return NULL;
  if (!mix_is(schedule, &schedule_class)) return mix_fail(MIX_TYPE_ERROR, "schedule_call: expected a schedule");
  if (schedule->call == custom) return mix_cast(schedule->call(schedule, step), mix_floatx());
  return schedule->call(schedule, mix_cast(step, mix_floatx()));
}
