/* Learning rate schedules: the graph of the learning rate as a function of the step. */
#include "optim/schedule.h"
#include "base/alloc.h"
#include "base/error.h"
#include <math.h>
#include <mixtape/ops.h>
#include <string.h>

static void schedule_finalize(void *object) {
  mix_schedule *schedule = object;
  mix_free(schedule->boundaries);
  mix_free(schedule->values);
  mix_free(schedule->text);
}
const mix_class mix_schedule_class = {.name = "schedule", .finalize = schedule_finalize};

/* ---- rules ---- */

static mix_tensor *exponential(const mix_schedule *schedule, mix_tensor *step) {
  const double *p = schedule->parameters; /* initial, decay_steps, rate */
  mix_tensor *exponent = mix_divide(step, mix_scalar_like(step, p[1]));
  if (schedule->flag) exponent = mix_floor(exponent);
  return mix_multiply(mix_scalar_like(step, p[0]), mix_power(mix_scalar_like(step, p[2]), exponent));
}

static mix_tensor *inverse_time(const mix_schedule *schedule, mix_tensor *step) {
  const double *p = schedule->parameters; /* initial, decay_steps, rate */
  mix_tensor *ratio = mix_divide(step, mix_scalar_like(step, p[1]));
  if (schedule->flag) ratio = mix_floor(ratio);
  mix_tensor *denominator =
      mix_add(mix_scalar_like(step, 1), mix_multiply(mix_scalar_like(step, p[2]), ratio));
  return mix_divide(mix_scalar_like(step, p[0]), denominator);
}

static mix_tensor *polynomial(const mix_schedule *schedule, mix_tensor *step) {
  const double *p = schedule->parameters; /* initial, decay_steps, end, power */
  mix_tensor *steps = mix_scalar_like(step, p[1]), *one = mix_scalar_like(step, 1),
             *end = mix_scalar_like(step, p[2]);
  if (schedule->flag)
    steps = mix_multiply(steps, mix_maximum(one, mix_ceil(mix_divide(step, steps))));
  else
    step = mix_minimum(step, steps);
  mix_tensor *left = mix_power(mix_subtract(one, mix_divide(step, steps)), mix_scalar_like(step, p[3]));
  return mix_add(mix_multiply(mix_subtract(mix_scalar_like(step, p[0]), end), left), end);
}

/* The step is an integer here, so a fractional boundary is rounded down. */
static mix_tensor *piecewise(const mix_schedule *schedule, mix_tensor *step) {
  mix_dtype dtype = mix_floatx();
  mix_tensor *rate = mix_scalar(schedule->values[schedule->count], dtype);
  for (int i = schedule->count - 1; i >= 0; i--)
    rate = mix_select(mix_less_equal(step, mix_scalar_like(step, floor(schedule->boundaries[i]))),
                      mix_scalar(schedule->values[i], dtype), rate);
  return rate;
}

/* 1 + cos(pi x) */
static mix_tensor *one_plus_cos(mix_tensor *x) {
  return mix_add(mix_scalar_like(x, 1), mix_cos(mix_multiply(mix_scalar_like(x, M_PI), x)));
}

static mix_tensor *cosine(const mix_schedule *schedule, mix_tensor *step) {
  const double *p = schedule->parameters; /* initial, decay_steps, alpha, warmup_target, warmup_steps */
  bool warms = p[4] > 0;
  mix_tensor *initial = mix_scalar_like(step, p[0]), *warmup_steps = mix_scalar_like(step, p[4]);
  mix_tensor *target = warms ? mix_scalar_like(step, p[3]) : initial;
  mix_tensor *done = mix_divide(mix_minimum(mix_subtract(step, warmup_steps), mix_scalar_like(step, p[1])),
                                mix_scalar_like(step, p[1]));
  mix_tensor *wave = mix_multiply(mix_scalar_like(step, 0.5), one_plus_cos(done));
  mix_tensor *decayed =
      mix_add(mix_multiply(mix_scalar_like(step, 1 - p[2]), wave), mix_scalar_like(step, p[2]));
  mix_tensor *rate = mix_multiply(target, decayed);
  if (!warms) return rate;
  mix_tensor *warm =
      mix_add(mix_multiply(mix_subtract(target, initial), mix_divide(step, warmup_steps)), initial);
  return mix_select(mix_less(step, warmup_steps), warm, rate);
}

/* Period i lasts first_decay_steps * t_mul^i and starts at initial * m_mul^i. */
static mix_tensor *cosine_restarts(const mix_schedule *schedule, mix_tensor *step) {
  const double *p = schedule->parameters; /* initial, first_decay_steps, t_mul, m_mul, alpha */
  mix_tensor *done = mix_divide(step, mix_scalar_like(step, p[1])), *one = mix_scalar_like(step, 1), *period;
  if (p[2] == 1) {
    period = mix_floor(done);
    done = mix_subtract(done, period);
  } else { /* the sum of the previous periods is (1 - t_mul^i) / (1 - t_mul) */
    mix_tensor *t_mul = mix_scalar_like(step, p[2]), *rest = mix_subtract(one, t_mul);
    period = mix_floor(mix_divide(mix_log(mix_subtract(one, mix_multiply(done, rest))), mix_log(t_mul)));
    mix_tensor *length = mix_power(t_mul, period);
    done = mix_divide(mix_subtract(done, mix_divide(mix_subtract(one, length), rest)), length);
  }
  mix_tensor *alpha = mix_scalar_like(step, p[4]), *height = mix_power(mix_scalar_like(step, p[3]), period);
  mix_tensor *wave = mix_multiply(mix_multiply(mix_scalar_like(step, 0.5), height), one_plus_cos(done));
  return mix_multiply(mix_scalar_like(step, p[0]),
                      mix_add(mix_multiply(mix_subtract(one, alpha), wave), alpha));
}

/* ---- kinds ---- */

#define INITIAL                                                                                              \
  { "initial_learning_rate", .steps = false }
const mix_schedule_kind mix_schedule_exponential = {
    "ExponentialDecay",
    "ExponentialDecay",
    exponential,
    {INITIAL, {"decay_steps", .steps = true}, {.name = "decay_rate"}},
    "staircase"};
const mix_schedule_kind mix_schedule_inverse_time = {
    "InverseTimeDecay",
    "InverseTimeDecay",
    inverse_time,
    {INITIAL, {"decay_steps", .steps = true}, {.name = "decay_rate"}},
    "staircase"};
const mix_schedule_kind mix_schedule_polynomial = {
    "PolynomialDecay",
    "PolynomialDecay",
    polynomial,
    {INITIAL,
     {"decay_steps", .steps = true},
     {"end_learning_rate", .optional = true, .default_value = 0.0001},
     {"power", .optional = true, .default_value = 1}},
    "cycle"};
const mix_schedule_kind mix_schedule_piecewise = {
    "PiecewiseConstantDecay", "PiecewiseConstant", piecewise, {{0}}, NULL};
const mix_schedule_kind mix_schedule_cosine = {"CosineDecay",
                                               "CosineDecay",
                                               cosine,
                                               {INITIAL,
                                                {"decay_steps", .steps = true},
                                                {"alpha", .optional = true},
                                                {"warmup_target", .optional = true},
                                                {"warmup_steps", .optional = true, .steps = true}},
                                               NULL};
const mix_schedule_kind mix_schedule_cosine_restarts = {"CosineDecayRestarts",
                                                        "SGDRDecay",
                                                        cosine_restarts,
                                                        {INITIAL,
                                                         {"first_decay_steps", .steps = true},
                                                         {"t_mul", .optional = true, .default_value = 2},
                                                         {"m_mul", .optional = true, .default_value = 1},
                                                         {"alpha", .optional = true}},
                                                        NULL};
#undef INITIAL

const mix_schedule_kind *const mix_schedule_kinds[] = {&mix_schedule_exponential,
                                                       &mix_schedule_inverse_time,
                                                       &mix_schedule_polynomial,
                                                       &mix_schedule_piecewise,
                                                       &mix_schedule_cosine,
                                                       &mix_schedule_cosine_restarts,
                                                       NULL};

mix_schedule *mix_schedule_new(const mix_schedule_kind *kind,
                               const double parameters[MIX_SCHEDULE_PARAMETERS], bool flag) {
  if (mix_failed()) return NULL;
  if (parameters && !(parameters[1] > 0))
    return mix_fail(MIX_VALUE_ERROR, "%s: %s is %g; expected a positive number", kind->class_name,
                    kind->parameters[1].name, parameters[1]);
  mix_schedule *schedule = mix_object_new(sizeof *schedule, &mix_schedule_class);
  if (!schedule) return NULL;
  schedule->kind = kind;
  schedule->flag = flag;
  if (parameters) memcpy(schedule->parameters, parameters, sizeof schedule->parameters);
  return mix_scoped(schedule);
}

#define NEW(kind, flag, ...)                                                                                 \
  mix_schedule_new(&mix_schedule_##kind, (double[MIX_SCHEDULE_PARAMETERS]){__VA_ARGS__}, flag)
mix_schedule *mix_exponential_decay(double initial, double decay_steps, double decay_rate, bool staircase) {
  return NEW(exponential, staircase, initial, decay_steps, decay_rate);
}
mix_schedule *mix_inverse_time_decay(double initial, double decay_steps, double decay_rate, bool staircase) {
  return NEW(inverse_time, staircase, initial, decay_steps, decay_rate);
}
mix_schedule *mix_polynomial_decay(double initial, double decay_steps, double end, double power, bool cycle) {
  return NEW(polynomial, cycle, initial, decay_steps, end, power);
}
mix_schedule *mix_cosine_decay(double initial, double decay_steps, double alpha, double warmup_target,
                               double warmup_steps) {
  return NEW(cosine, false, initial, decay_steps, alpha, warmup_target, warmup_steps);
}
mix_schedule *mix_cosine_decay_restarts(double initial, double first_decay_steps, double t_mul, double m_mul,
                                        double alpha) {
  return NEW(cosine_restarts, false, initial, first_decay_steps, t_mul, m_mul, alpha);
}
#undef NEW

mix_schedule *mix_piecewise_constant_decay(int count, const double *boundaries, const double *values) {
  if (mix_failed()) return NULL;
  if (count < 0 || !values || (count > 0 && !boundaries))
    return mix_fail(MIX_VALUE_ERROR,
                    "piecewise_constant_decay: expected count boundaries and one value more, got count %d",
                    count);
  mix_schedule *schedule = mix_schedule_new(&mix_schedule_piecewise, NULL, false);
  if (!schedule) return NULL;
  size_t size = (size_t)count * sizeof(double);
  schedule->boundaries = mix_alloc(size + sizeof(double));
  schedule->values = mix_alloc(size + sizeof(double));
  if (!schedule->boundaries || !schedule->values) return NULL;
  if (count) memcpy(schedule->boundaries, boundaries, size);
  memcpy(schedule->values, values, size + sizeof(double));
  schedule->count = count;
  return schedule;
}

mix_schedule *mix_schedule_function(mix_tensor *(*function)(void *, mix_tensor *), void *context) {
  if (mix_failed()) return NULL;
  if (!function) return mix_fail(MIX_TYPE_ERROR, "schedule_function: no function");
  mix_schedule *schedule = mix_schedule_new(NULL, NULL, false);
  if (!schedule) return NULL;
  schedule->function = function;
  schedule->context = context;
  return schedule;
}

mix_tensor *mix_schedule_call(mix_schedule *schedule, mix_tensor *step) {
  if (!mix_given(step, "schedule_call", "a step, an int64 scalar")) return NULL;
  if (!mix_is(schedule, &mix_schedule_class))
    return mix_fail(MIX_TYPE_ERROR, "schedule_call: expected a schedule");
  if (!schedule->kind) {
    mix_tensor *rate = mix_returned(schedule->function(schedule->context, step), "schedule");
    return rate ? mix_cast(rate, mix_floatx()) : NULL;
  }
  return schedule->kind->call(
      schedule, schedule->kind == &mix_schedule_piecewise ? step : mix_cast(step, mix_floatx()));
}
