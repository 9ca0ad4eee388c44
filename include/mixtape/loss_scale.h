/* Loss scales: what the loss is multiplied by, so that small float16 gradients survive. The experimental API's objects, and the state
 * of every loss-scale optimizer. */
#ifndef MIXTAPE_LOSS_SCALE_H
#define MIXTAPE_LOSS_SCALE_H

#include <mixtape/semantics.h>
#include <mixtape/variable.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A constant scale of at least 1 (ValueError). */
MIX_API mix_loss_scale *mix_fixed_loss_scale(double value);

typedef struct mix_dynamic_loss_scale_options {
  size_t size;
  double initial_loss_scale;      /* 0: 2^15; MIX_ZERO: 0. Not checked, as in Keras */
  int64_t increment_period;       /* 0: 2000 */
  double multiplier;              /* 0: 2 */
  const mix_semantics *semantics; /* whose rule for growth, floor and cap; NULL: the process's */
} mix_dynamic_loss_scale_options;
/* Halved (by the multiplier) after a step whose gradients are not all finite, multiplied after increment_period good ones in a row. */
MIX_API mix_loss_scale *mix_dynamic_loss_scale_with(const mix_dynamic_loss_scale_options *options);
#ifndef __cplusplus
#define mix_dynamic_loss_scale(...)                                                                                            \
  mix_dynamic_loss_scale_with(&(const mix_dynamic_loss_scale_options){.size = sizeof(mix_dynamic_loss_scale_options), __VA_ARGS__})
#endif

/* The loss scale that a name stands for: "dynamic"; else ValueError. NULL gives NULL. */
MIX_API mix_loss_scale *mix_loss_scale_get(const char *identifier);
/* From {"class_name": "DynamicLossScale", "config": {...}}, a JSON number or "dynamic"; null gives NULL without an error. */
MIX_API mix_loss_scale *mix_loss_scale_deserialize(const char *json);
/* {"class_name": ..., "config": ...}; the text lives as long as the loss scale. */
MIX_API const char *mix_loss_scale_serialize(mix_loss_scale *loss_scale);
/* The config alone. */
MIX_API const char *mix_loss_scale_config(mix_loss_scale *loss_scale);

/* Does it change? False for a fixed one. */
MIX_API bool mix_loss_scale_is_dynamic(const mix_loss_scale *loss_scale);
/* The fixed value, or the initial one of a dynamic scale. */
MIX_API double mix_loss_scale_initial(const mix_loss_scale *loss_scale);
/* Good steps in a row after which it grows, and by what factor. 0 and 0.0 for fixed scales. */
MIX_API int64_t mix_loss_scale_increment_period(const mix_loss_scale *loss_scale);
MIX_API double mix_loss_scale_multiplier(const mix_loss_scale *loss_scale);
/* The state of a dynamic scale: current_loss_scale (float32 scalar), good_steps (int64 scalar). NULL for fixed ones. Borrowed. */
MIX_API mix_variable *mix_loss_scale_variable(const mix_loss_scale *loss_scale);
MIX_API mix_variable *mix_loss_scale_good_steps(const mix_loss_scale *loss_scale);
/* Updates with gradients that were not all finite, since the scale was made: int64 scalar; NULL for fixed ones. Borrowed. Keras has no
 * such number, and nothing but reports reads it. */
MIX_API mix_variable *mix_loss_scale_skipped_steps(const mix_loss_scale *loss_scale);

/* The scale now, a float32 scalar. Graph: works inside captures. */
MIX_API mix_tensor *mix_loss_scale_value(mix_loss_scale *loss_scale);
/* Moves the state by one step whose gradients are all finite or not (a bool scalar), and returns whether to apply them: all_finite
 * for a dynamic scale, true for a fixed one. Graph: works inside captures and outside. */
MIX_API mix_tensor *mix_loss_scale_update(mix_loss_scale *loss_scale, mix_tensor *all_finite);
/* Is every element of every tensor finite? A bool scalar; NULL items are skipped, an empty list is finite. */
MIX_API mix_tensor *mix_all_finite_of(mix_list *gradients);
/* "FixedLossScale(8.0)", "DynamicLossScale(current_loss_scale=32768.0, ...)". */
MIX_API const char *mix_loss_scale_text(const mix_loss_scale *loss_scale, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
