/* Learning rate schedules: the graph of the learning rate as a function of the step. */
#include "graph/node.h"
#include "optim/schedule.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "ops/with_number.h"
#include <math.h>
#include <string.h>

static void schedule_finalize(void *object) {
  mix_schedule *schedule = object;
  mix_free((void *)schedule->options.boundaries.values);
  mix_free((void *)schedule->options.values.values);
  mix_free(schedule->text);
}
const mix_class mix_schedule_class = {.name = "schedule", .finalize = schedule_finalize};

/* ---- rules ---- */

static mix_tensor *exponential(const mix_schedule_options *options, mix_tensor *step) {
  const double *p = options->parameters; /* initial, decay_steps, rate */
  mix_tensor *exponent = mix_over(step, p[1]);
  if (options->flag) exponent = mix_floor(exponent);
  return mix_multiply(mix_scalar_like(step, p[0]), mix_power(mix_scalar_like(step, p[2]), exponent));
}

static mix_tensor *inverse_time(const mix_schedule_options *options, mix_tensor *step) {
  const double *p = options->parameters; /* initial, decay_steps, rate */
  mix_tensor *ratio = mix_over(step, p[1]);
  if (options->flag) ratio = mix_floor(ratio);
  mix_tensor *denominator =
      mix_add(mix_scalar_like(step, 1), mix_multiply(mix_scalar_like(step, p[2]), ratio));
  return mix_divide(mix_scalar_like(step, p[0]), denominator);
}

static mix_tensor *polynomial(const mix_schedule_options *options, mix_tensor *step) {
  const double *p = options->parameters; /* initial, decay_steps, end, power */
  mix_tensor *steps = mix_scalar_like(step, p[1]), *one = mix_scalar_like(step, 1),
             *end = mix_scalar_like(step, p[2]);
  if (options->flag)
    steps = mix_multiply(steps, mix_maximum(one, mix_ceil(mix_divide(step, steps))));
  else
    step = mix_minimum(step, steps);
  mix_tensor *left = mix_power(mix_subtract(one, mix_divide(step, steps)), mix_scalar_like(step, p[3]));
  return mix_add(mix_multiply(mix_subtract(mix_scalar_like(step, p[0]), end), left), end);
}

/* The step is an integer here, so a fractional boundary is rounded down. */
static mix_tensor *piecewise(const mix_schedule_options *options, mix_tensor *step) {
  mix_dtype dtype = mix_floatx();
  mix_tensor *rate = mix_scalar(options->values.values[options->boundaries.count], dtype);
  for (int i = options->boundaries.count - 1; i >= 0; i--)
    rate = mix_select(mix_less_equal(step, mix_scalar_like(step, floor(options->boundaries.values[i]))),
                      mix_scalar(options->values.values[i], dtype), rate);
  return rate;
}

/* 1 + cos(pi x) */
static mix_tensor *one_plus_cos(mix_tensor *x) {
  return mix_add(mix_scalar_like(x, 1), mix_cos(mix_multiply(mix_scalar_like(x, M_PI), x)));
}

static mix_tensor *cosine(const mix_schedule_options *options, mix_tensor *step) {
  const double *p = options->parameters; /* initial, decay_steps, alpha, warmup_target, warmup_steps */
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
static mix_tensor *cosine_restarts(const mix_schedule_options *options, mix_tensor *step) {
  const double *p = options->parameters; /* initial, first_decay_steps, t_mul, m_mul, alpha */
  mix_tensor *done = mix_over(step, p[1]), *one = mix_scalar_like(step, 1), *period;
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

/* A number of steps: whole numbers are integers in configs. */
static json_t *write_steps(const mix_field *field) { return mix_number_json(*(double *)field->value); }
static const mix_value_kind steps_kind = {"a number",  sizeof(double),  mix_resolve_number, NULL,
                                          write_steps, mix_read_number, mix_parse_number};
/* A list of numbers with a point. */
static json_t *write_values(const mix_field *field) {
  const mix_numbers *numbers = field->value;
  json_t *list = json_array();
  for (int i = 0; i < numbers->count; i++) mix_json_append(list, json_real(numbers->values[i]));
  return list;
}
static bool read_values(const mix_field *field, const json_t *value) {
  return mix_field_numbers.read(field, value);
}
static const mix_value_kind values_kind = {
    .expected = "a list of numbers", .size = sizeof(mix_numbers), .write = write_values, .read = read_values};

static json_t *write_boundaries(const mix_field *field) {
  json_t *list = mix_field_numbers.write(field);
  return json_is_null(list) ? json_array() : list;
}
static const mix_value_kind boundaries_kind = {.expected = "a list of numbers",
                                               .size = sizeof(mix_numbers),
                                               .write = write_boundaries,
                                               .read = read_values};

#define PARAMETER(i) offsetof(mix_schedule_options, parameters[i])
#define NUMBER(name, i)                                                                                      \
  { name, PARAMETER(i), &mix_field_number, .required = true }
#define STEPS(name, i)                                                                                       \
  { name, PARAMETER(i), &steps_kind, .required = true, .range = MIX_POSITIVE }
#define DEFAULT(name, i, value)                                                                              \
  { name, PARAMETER(i), &mix_field_number, .number = value }
#define FLAG(name)                                                                                           \
  { name, offsetof(mix_schedule_options, flag), &mix_field_boolean }
const mix_field_row mix_schedule_name_field[] = {{MIX_FIELD(mix_schedule_options, name), &mix_field_text},
                                                 {0}};
const mix_schedule_kind mix_schedule_exponential = {"ExponentialDecay",
                                                    "ExponentialDecay",
                                                    exponential,
                                                    {NUMBER("initial_learning_rate", 0),
                                                     STEPS("decay_steps", 1), NUMBER("decay_rate", 2),
                                                     FLAG("staircase")}};
const mix_schedule_kind mix_schedule_inverse_time = {"InverseTimeDecay",
                                                     "InverseTimeDecay",
                                                     inverse_time,
                                                     {NUMBER("initial_learning_rate", 0),
                                                      STEPS("decay_steps", 1), NUMBER("decay_rate", 2),
                                                      FLAG("staircase")}};
const mix_schedule_kind mix_schedule_polynomial = {
    "PolynomialDecay",
    "PolynomialDecay",
    polynomial,
    {NUMBER("initial_learning_rate", 0), STEPS("decay_steps", 1), DEFAULT("end_learning_rate", 2, 0.0001),
     DEFAULT("power", 3, 1), FLAG("cycle")}};
const mix_schedule_kind mix_schedule_piecewise = {
    "PiecewiseConstantDecay",
    "PiecewiseConstant",
    piecewise,
    {{MIX_FIELD(mix_schedule_options, boundaries), &boundaries_kind},
     {MIX_FIELD(mix_schedule_options, values), &values_kind}}};
/* Without a warm-up the target is infinite. */
const mix_schedule_kind mix_schedule_cosine = {"CosineDecay",
                                               "CosineDecay",
                                               cosine,
                                               {NUMBER("initial_learning_rate", 0),
                                                STEPS("decay_steps", 1),
                                                DEFAULT("alpha", 2, 0),
                                                DEFAULT("warmup_target", 3, INFINITY),
                                                {"warmup_steps", PARAMETER(4), &steps_kind}}};
const mix_schedule_kind mix_schedule_cosine_restarts = {
    "CosineDecayRestarts",
    "SGDRDecay",
    cosine_restarts,
    {NUMBER("initial_learning_rate", 0), STEPS("first_decay_steps", 1), DEFAULT("t_mul", 2, 2),
     DEFAULT("m_mul", 3, 1), DEFAULT("alpha", 4, 0)}};

const mix_schedule_kind *const mix_schedule_kinds[] = {&mix_schedule_exponential,
                                                       &mix_schedule_inverse_time,
                                                       &mix_schedule_polynomial,
                                                       &mix_schedule_piecewise,
                                                       &mix_schedule_cosine,
                                                       &mix_schedule_cosine_restarts,
                                                       NULL};

static bool is_number(const mix_schedule_kind *kind, const char *name, double x) {
  if (isnan(x)) mix_fail_value("%s: %s is nan; expected a number", kind->class_name, name);
  return !isnan(x);
}

static bool are_numbers(const mix_schedule_kind *kind, const mix_schedule_options *options) {
  for (const mix_field_row *row = kind->fields; row->name; row++)
    if ((row->kind == &mix_field_number || row->kind == &steps_kind) &&
        !is_number(kind, row->name, *(const double *)mix_field_at(row, options)))
      return false;
  for (int i = 0; i < options->boundaries.count; i++)
    if (!is_number(kind, "a boundary", options->boundaries.values[i])) return false;
  for (int i = 0; i < options->values.count; i++)
    if (!is_number(kind, "a value", options->values.values[i])) return false;
  return true;
}

/* Replaces a caller's list by a copy of `count` numbers. */
static bool copy_list(mix_numbers *list, int count) {
  double *copy = mix_alloc(((size_t)count + 1) * sizeof *copy);
  if (copy && count) memcpy(copy, list->values, (size_t)count * sizeof *copy);
  *list = (mix_numbers){.count = count, .values = copy};
  return copy != NULL;
}

mix_schedule *mix_schedule_new(const mix_schedule_kind *kind, const mix_schedule_options *options) {
  if (mix_failed()) return NULL;
  bool piecewise = kind == &mix_schedule_piecewise;
  if (kind && !piecewise && !(options->parameters[1] > 0))
    return mix_fail_value("%s: %s is %g; expected a positive number", kind->class_name, kind->fields[1].name,
                          options->parameters[1]);
  if (kind && !are_numbers(kind, options)) return NULL;
  mix_schedule *schedule = mix_object_new(sizeof *schedule, &mix_schedule_class);
  if (!schedule) return NULL;
  schedule->kind = kind;
  if (!kind) return mix_scoped(schedule);
  schedule->options = *options;
  mix_schedule_options *own = &schedule->options;
  own->boundaries.values = own->values.values = NULL; /* until they are copies */
  mix_numbers boundaries = options->boundaries, values = options->values;
  bool good = !piecewise;
  if (piecewise && copy_list(&boundaries, boundaries.count)) {
    own->boundaries = boundaries;
    if ((good = copy_list(&values, boundaries.count + 1))) own->values = values;
  }
  if (good) return mix_scoped(schedule);
  mix_release(schedule);
  return NULL;
}

#define NEW(kind, flag_, ...)                                                                                \
  mix_schedule_new(&mix_schedule_##kind, &(mix_schedule_options){.parameters = {__VA_ARGS__}, .flag = flag_})
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
  return NEW(cosine, false, initial, decay_steps, alpha, warmup_steps > 0 ? warmup_target : INFINITY,
             warmup_steps);
}
mix_schedule *mix_cosine_decay_restarts(double initial, double first_decay_steps, double t_mul, double m_mul,
                                        double alpha) {
  return NEW(cosine_restarts, false, initial, first_decay_steps, t_mul, m_mul, alpha);
}
#undef NEW

mix_schedule *mix_piecewise_constant_decay(int count, const double *boundaries, const double *values) {
  if (mix_failed()) return NULL;
  if (count < 0 || !values || (count > 0 && !boundaries))
    return mix_fail_value(
        "piecewise_constant_decay: expected count boundaries and one value more, got count %d", count);
  return mix_schedule_new(&mix_schedule_piecewise, &(mix_schedule_options){.boundaries = {count, boundaries},
                                                                           .values = {count + 1, values}});
}

mix_schedule *mix_schedule_function(mix_tensor *(*function)(void *, mix_tensor *), void *context) {
  if (mix_failed()) return NULL;
  if (!function) return mix_fail_type("schedule_function: no function");
  mix_schedule *schedule = mix_schedule_new(NULL, NULL);
  if (!schedule) return NULL;
  schedule->function = function;
  schedule->context = context;
  return schedule;
}

mix_tensor *mix_schedule_call(mix_schedule *schedule, mix_tensor *step) {
  if (!mix_given(step, &mix_tensor_class, "schedule_call", "a step, an int64 scalar")) return NULL;
  if (!mix_is(schedule, &mix_schedule_class)) return mix_fail_type("schedule_call: expected a schedule");
  if (!schedule->kind) {
    mix_tensor *rate = mix_returned(schedule->function(schedule->context, step), "schedule");
    return rate ? mix_cast(rate, mix_floatx()) : NULL;
  }
  return schedule->kind->call(
      &schedule->options, schedule->kind == &mix_schedule_piecewise ? step : mix_cast(step, mix_floatx()));
}
