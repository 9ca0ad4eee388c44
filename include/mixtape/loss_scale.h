/* Loss scales. The loss is multiplied by the scale, so that small float16 gradients do not underflow.
 * These are the objects of the experimental API, and the state of every loss-scale optimizer. */
#ifndef MIXTAPE_LOSS_SCALE_H
#define MIXTAPE_LOSS_SCALE_H

#include <mixtape/semantics.h>
#include <mixtape/variable.h>

MIX_BEGIN_DECLARATIONS

/* A constant scale of at least 1 that float32 holds (ValueError). */
MIX_API mix_loss_scale *mix_fixed_loss_scale(double value);

typedef struct mix_dynamic_loss_scale_options {
  size_t size;
  /* 0: 2^15; MIX_ZERO: 0, as in Keras. ValueError if float32 does not hold it or its reciprocal. */
  double initial_loss_scale;
  int64_t increment_period; /* 0: 2000 */
  double multiplier;        /* 0: 2 */
  /* The generation whose rules for growth, minimum and maximum apply; NULL: the default of the process. */
  const mix_semantics *semantics;
} mix_dynamic_loss_scale_options;
/* A dynamic scale. It is divided by the multiplier after a step whose gradients are not all finite, and
 * multiplied by it after increment_period consecutive finite steps. */
MIX_API mix_loss_scale *mix_dynamic_loss_scale_with(const mix_dynamic_loss_scale_options *options);
#ifndef __cplusplus
#define mix_dynamic_loss_scale(...)                                                                          \
  mix_dynamic_loss_scale_with(MIX_ARGUMENTS("mix_dynamic_loss_scale",                                        \
                                            "!initial_loss_scale, !increment_period, !multiplier",           \
                                            #__VA_ARGS__, mix_dynamic_loss_scale_options, __VA_ARGS__))
#endif

/* The loss scale with that name: "dynamic"; else ValueError. NULL gives NULL. */
MIX_API mix_loss_scale *mix_loss_scale_get(const char *identifier);
/* A loss scale from text: "128", "dynamic", "dynamic:INITIAL" or "dynamic:INITIAL:GROWTH_STEPS", in numbers
 * above 0; "none" gives NULL without an error. ValueError for another text, for a number that float32 does
 * not hold (keras3, where a fixed scale is a factor of the optimizer: float64), and under experimental for a
 * fixed scale below 1. semantics NULL: the default of the process. */
MIX_API mix_loss_scale *mix_loss_scale_from_text(const char *text, const mix_semantics *semantics);
/* Reads {"class_name": "DynamicLossScale", "config": {...}}, a JSON number or "dynamic". null gives NULL
 * without an error. */
MIX_API mix_loss_scale *mix_loss_scale_deserialize(const char *json);
/* The loss scale as JSON: {"class_name": ..., "config": ...}. The string lives as long as the loss scale. */
MIX_API const char *mix_loss_scale_serialize(mix_loss_scale *loss_scale);
/* The config alone, as JSON. The string lives as long as the loss scale. */
MIX_API const char *mix_loss_scale_config(mix_loss_scale *loss_scale);

/* False for a fixed scale. */
MIX_API bool mix_loss_scale_is_dynamic(const mix_loss_scale *loss_scale);
/* The fixed value, or the initial value of a dynamic scale. */
MIX_API double mix_loss_scale_initial(const mix_loss_scale *loss_scale);
/* The number of consecutive finite steps before the scale grows, and the factor. 0 and 0.0 for fixed
 * scales. */
MIX_API int64_t mix_loss_scale_increment_period(const mix_loss_scale *loss_scale);
MIX_API double mix_loss_scale_multiplier(const mix_loss_scale *loss_scale);
/* The state of a dynamic scale, borrowed: current_loss_scale (float32 scalar) and good_steps (int64
 * scalar). NULL for fixed scales. */
MIX_API mix_variable *mix_loss_scale_variable(const mix_loss_scale *loss_scale);
MIX_API mix_variable *mix_loss_scale_good_steps(const mix_loss_scale *loss_scale);
/* The number of updates with non-finite gradients since the scale was created: int64 scalar, borrowed;
 * NULL for fixed scales. Not part of Keras; only reports read it. */
MIX_API mix_variable *mix_loss_scale_skipped_steps(const mix_loss_scale *loss_scale);

/* The current scale, a float32 scalar. May be captured. */
MIX_API mix_tensor *mix_loss_scale_value(mix_loss_scale *loss_scale);
/* Updates the state after a step. `all_finite` is a bool scalar: true if all gradients are finite. Returns
 * whether to apply the gradients: all_finite for a dynamic scale, true for a fixed one. May be captured. */
MIX_API mix_tensor *mix_loss_scale_update(mix_loss_scale *loss_scale, mix_tensor *all_finite);
/* A bool scalar: true if every element of every tensor is finite. NULL items are skipped; an empty list
 * gives true. Of a tensor in the layout "rows" (mix_rows) the values are tested, not their sums. */
MIX_API mix_tensor *mix_all_finite_of(mix_list *gradients);
/* Writes "FixedLossScale(8.0)" or "DynamicLossScale(current_loss_scale=32768.0, ...)" into `text` and
 * returns it. */
MIX_API const char *mix_loss_scale_text(const mix_loss_scale *loss_scale, char *text, size_t size);

MIX_END_DECLARATIONS
#endif
