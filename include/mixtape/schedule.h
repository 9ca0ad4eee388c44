/* Learning rate schedules: functions of the step, which is the number of updates before this one. */
#ifndef MIXTAPE_SCHEDULE_H
#define MIXTAPE_SCHEDULE_H

#include <mixtape/optimizer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers of steps are positive, else a ValueError. */
/* initial * rate^(step / decay_steps); staircase takes the floor of the exponent. */
MIX_API mix_schedule *mix_exponential_decay(double initial, double decay_steps, double decay_rate, bool staircase);
/* initial / (1 + rate * step / decay_steps) */
MIX_API mix_schedule *mix_inverse_time_decay(double initial, double decay_steps, double decay_rate, bool staircase);
/* (initial - end) * (1 - step / decay_steps)^power + end; cycle stretches decay_steps to the multiple that lies beyond the step. Keras's
 * defaults: end 0.0001, power 1, no cycle. */
MIX_API mix_schedule *mix_polynomial_decay(double initial, double decay_steps, double end, double power, bool cycle);
/* values[i] up to and including boundaries[i], the last one beyond: count boundaries, count + 1 values. */
MIX_API mix_schedule *mix_piecewise_constant_decay(int count, const double *boundaries, const double *values);
/* Cosine from initial to alpha * initial; with warmup_steps, first a line from initial to warmup_target, which then takes initial's
 * place (Loshchilov and Hutter, 2017). */
MIX_API mix_schedule *mix_cosine_decay(double initial, double decay_steps, double alpha, double warmup_target, double warmup_steps);
/* The same again and again: period i lasts first_decay_steps * t_mul^i, from initial * m_mul^i. Keras's defaults: t_mul 2, m_mul 1,
 * alpha 0. */
MIX_API mix_schedule *mix_cosine_decay_restarts(double initial, double first_decay_steps, double t_mul, double m_mul, double alpha);
/* Any function of the step (int64 scalar), giving a floating scalar; built into the graph. */
MIX_API mix_schedule *mix_schedule_function(mix_tensor *(*function)(void *context, mix_tensor *step), void *context);

/* The learning rate (floatx scalar) at a step (int64 scalar). */
MIX_API mix_tensor *mix_schedule_call(mix_schedule *schedule, mix_tensor *step);

/* {"class_name": "ExponentialDecay", "config": {...}} as the generation's serialize writes it (semantics NULL: the process's), and
 * back. A function has no config: TypeError. The text lives until the next call with the same schedule. */
MIX_API const char *mix_schedule_serialize(mix_schedule *schedule, const mix_semantics *semantics);
MIX_API mix_schedule *mix_schedule_deserialize(const char *json);

#ifdef __cplusplus
}
#endif
#endif
