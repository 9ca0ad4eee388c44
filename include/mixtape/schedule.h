/* Learning rate schedules: functions of the step, which is the number of updates before this one. */
#ifndef MIXTAPE_SCHEDULE_H
#define MIXTAPE_SCHEDULE_H

#include <mixtape/optimizer.h>

#ifdef __cplusplus
extern "C" {
#endif

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
/* Any function of the step (int64 scalar), giving a floating scalar; built into the graph. */
MIX_API mix_schedule *mix_schedule_function(mix_tensor *(*function)(void *context, mix_tensor *step), void *context);

/* The learning rate (floatx scalar) at a step (int64 scalar). */
MIX_API mix_tensor *mix_schedule_call(mix_schedule *schedule, mix_tensor *step);

#ifdef __cplusplus
}
#endif
#endif
