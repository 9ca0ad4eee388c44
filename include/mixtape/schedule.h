/* Learning rate schedules: functions of the step, which is the number of updates so far. Formulas are
 * those of keras.optimizers.schedules. Numbers of steps must be positive (ValueError). */
#ifndef MIXTAPE_SCHEDULE_H
#define MIXTAPE_SCHEDULE_H

#include <mixtape/optimizer.h>

MIX_BEGIN_DECLARATIONS

/* initial * rate^(step / decay_steps). With staircase the exponent is rounded down. */
MIX_API mix_schedule *mix_exponential_decay(double initial, double decay_steps, double decay_rate,
                                            bool staircase);
/* initial / (1 + rate * step / decay_steps). With staircase the quotient is rounded down. */
MIX_API mix_schedule *mix_inverse_time_decay(double initial, double decay_steps, double decay_rate,
                                             bool staircase);
/* (initial - end) * (1 - step / decay_steps)^power + end. With cycle, decay_steps is replaced by its
 * smallest multiple that is not below step. Keras's defaults: end 0.0001, power 1, no cycle. */
MIX_API mix_schedule *mix_polynomial_decay(double initial, double decay_steps, double end, double power,
                                           bool cycle);
/* values[i] for steps up to and including boundaries[i], and the last value beyond. `count` boundaries,
 * count + 1 values. */
MIX_API mix_schedule *mix_piecewise_constant_decay(int count, const double *boundaries, const double *values);
/* Cosine decay from initial to alpha * initial (Loshchilov and Hutter, SGDR, 2017). With warmup_steps > 0,
 * first a linear warmup from initial to warmup_target, which then replaces initial. */
MIX_API mix_schedule *mix_cosine_decay(double initial, double decay_steps, double alpha, double warmup_target,
                                       double warmup_steps);
/* Cosine decay with restarts: period i lasts first_decay_steps * t_mul^i and starts at initial * m_mul^i.
 * Keras's defaults: t_mul 2, m_mul 1, alpha 0. */
MIX_API mix_schedule *mix_cosine_decay_restarts(double initial, double first_decay_steps, double t_mul,
                                                double m_mul, double alpha);
/* Any function of the step (an int64 scalar) that returns a floating scalar. It becomes part of the graph. */
MIX_API mix_schedule *mix_schedule_function(mix_tensor *(*function)(void *context, mix_tensor *step),
                                            void *context);

/* The learning rate (floatx scalar) at a step (int64 scalar). */
MIX_API mix_tensor *mix_schedule_call(mix_schedule *schedule, mix_tensor *step);

/* {"class_name": "ExponentialDecay", "config": {...}} as the generation's serialize writes it (semantics
 * NULL: the default of the process), and back. A function has no config: TypeError. The string lives until
 * the next call with the same schedule. */
MIX_API const char *mix_schedule_serialize(mix_schedule *schedule, const mix_semantics *semantics);
MIX_API mix_schedule *mix_schedule_deserialize(const char *json);

MIX_END_DECLARATIONS
#endif
