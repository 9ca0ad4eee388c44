/* The loss-scale optimizer of the three generations. Fields of the semantics hold the differences: which
 * optimizers are refused, whether the finite test sees scaled gradients, whether a skipped step counts. The
 * update of the scale is in nn/policy/loss_scale.c. */
#include "base/alloc.h"
#include "base/error.h"
#include "nn/keep.h"
#include "nn/policy/loss_scale.h"
#include "nn/policy/policy.h"
#include "ops/table.h"
#include "optim/shard.h"

/* ---- construction ---- */

static bool check_inner(const mix_loss_scale_optimizer_options *options, const mix_semantics *semantics) {
  const mix_optimizer *inner = options->inner;
  if (!mix_is(inner, &mix_optimizer_object_class))
    return mix_fail(semantics->wrapper_inner_error,
                    "loss_scale_optimizer: inner must be an optimizer, such as mix_sgd()");
  if (inner->inner && semantics->wrapper_nested_error)
    return mix_fail(semantics->wrapper_nested_error,
                    "loss_scale_optimizer: cannot wrap another loss-scale optimizer (around %s)",
                    inner->inner->name);
  if (inner->inner)
    return mix_fail_unsupported(
        "loss_scale_optimizer: wrapping a loss-scale optimizer (around %s) is not offered",
        inner->inner->name);
  if (inner->wrapped && semantics->wrapper_twice_refused)
    return mix_fail_value("loss_scale_optimizer: %s is already wrapped by a loss-scale optimizer; "
                          "an optimizer can be wrapped only once",
                          inner->name);
  if (semantics->wrapper_clip_refused &&
      (inner->options.common.clipnorm != 0 || inner->options.common.clipvalue != 0))
    return mix_fail_value("loss_scale_optimizer: %s has clipnorm or clipvalue, "
                          "which cannot be used together with loss scaling",
                          inner->name);
  return true;
}

/* A fixed scale without the checks of FixedLossScale: tf_keras takes any number here. */
static mix_loss_scale *fixed_at(double value) {
  return mix_loss_scale_check(value, MIX_FLOAT32, "loss_scale_optimizer") ? mix_loss_scale_fixed(value)
                                                                          : NULL;
}

static mix_loss_scale *scale_from_object(mix_loss_scale *given, const mix_semantics *semantics) {
  if (semantics->wrapper_takes_object) return given;
  mix_log_message(
      MIX_LOG_WARNING,
      "loss_scale_optimizer: .loss_scale is the deprecated experimental form; use .fixed, .initial_scale and "
      ".dynamic_growth_steps");
  if (!mix_loss_scale_is_dynamic(given)) return fixed_at(mix_loss_scale_initial(given));
  if (semantics->loss_scale_multiplier_two && mix_loss_scale_multiplier(given) != 2)
    return mix_fail_value(
        "loss_scale_optimizer: the multiplier of the loss scale is %g; only 2 can be used here",
        mix_loss_scale_multiplier(given));
  return mix_loss_scale_dynamic(mix_loss_scale_initial(given), mix_loss_scale_increment_period(given), 2,
                                semantics);
}

static mix_loss_scale *choose_scale(const mix_loss_scale_optimizer_options *options,
                                    const mix_semantics *semantics) {
  bool numbers = options->fixed || options->initial_scale != 0 || options->dynamic_growth_steps != 0;
  if (options->loss_scale && numbers)
    return mix_fail_value(
        "loss_scale_optimizer: .loss_scale together with .fixed, .initial_scale or .dynamic_growth_steps; "
        "give one form");
  if (options->loss_scale) return scale_from_object(options->loss_scale, semantics);
  if (semantics->wrapper_takes_object && !numbers)
    return mix_fail_value(
        "loss_scale_optimizer: no loss scale; give .loss_scale, such as mix_loss_scale_get(\"dynamic\")");
  if (!options->fixed) {
    int64_t growth = options->dynamic_growth_steps;
    return mix_loss_scale_dynamic(mix_option_number(options->initial_scale, 0x1p15),
                                  growth == MIX_INT_ZERO ? 0
                                  : growth               ? growth
                                                         : 2000,
                                  2, semantics);
  }
  if (semantics->wrapper_fixed_refused)
    return mix_fail_value("loss_scale_optimizer: a fixed scale is not offered by %s; "
                          "set loss_scale_factor on the inner optimizer",
                          semantics->name);
  if (options->initial_scale == 0) return mix_fail_value("loss_scale_optimizer: .fixed needs .initial_scale");
  if (options->dynamic_growth_steps != 0)
    return mix_fail_value(
        "loss_scale_optimizer: .dynamic_growth_steps is %lld, but a fixed scale never grows",
        (long long)options->dynamic_growth_steps);
  return fixed_at(mix_option_number(options->initial_scale, 0));
}

static mix_tensor *zero_count(const void *context) { return mix_scalar(0, MIX_INT64); }
static mix_tensor *zero_rate(const void *context) { return mix_scalar(0, mix_floatx()); }

mix_optimizer *mix_loss_scale_optimizer_with(const mix_loss_scale_optimizer_options *options) {
  MIX_OPTIONS(mix_loss_scale_optimizer_options, given, options, "loss_scale_optimizer");
  bool valid = mix_is(given.inner, &mix_optimizer_object_class);
  const mix_semantics *semantics = given.semantics ? mix_semantics_or_current(given.semantics)
                                   : valid         ? given.inner->semantics
                                                   : mix_semantics_current();
  if (!check_inner(&given, semantics)) return NULL;
  mix_capture *capture = mix_capture_set(NULL);
  mix_loss_scale *scale = choose_scale(&given, semantics);
  mix_capture_set(capture);
  mix_optimizer *optimizer = scale ? mix_object_new(sizeof *optimizer, &mix_optimizer_object_class) : NULL;
  if (!optimizer) return NULL;
  optimizer->semantics = optimizer->rules = semantics;
  optimizer->name = mix_intern(given.name                             ? given.name
                               : semantics->optimizer_name_lower_case ? "loss_scale_optimizer"
                                                                      : "LossScaleOptimizer");
  optimizer->loss_scale = mix_retain(scale);
  if (semantics->wrapper_state_in_variables) {
    optimizer->iterations = mix_optimizer_variable("iteration", zero_count, NULL);
    optimizer->learning_rate = mix_optimizer_variable("learning_rate", zero_rate, NULL);
    given.inner->options.common.loss_scale_factor = 0; /* otherwise gradients would be divided twice */
  }
  optimizer->inner = mix_retain(given.inner);
  given.inner->wrapped = true;
  return mix_scoped(optimizer);
}

mix_optimizer *mix_optimizer_scale(mix_optimizer *optimizer, mix_loss_scale *scale) {
  if (optimizer->semantics->wrapper_takes_object)
    return mix_loss_scale_optimizer(optimizer, .loss_scale = scale);
  return mix_loss_scale_optimizer(optimizer, .fixed = !mix_loss_scale_is_dynamic(scale),
                                  .initial_scale = mix_loss_scale_initial(scale),
                                  .dynamic_growth_steps = mix_loss_scale_increment_period(scale));
}

mix_optimizer *mix_optimizer_for_policy(mix_optimizer *optimizer, const mix_policy *policy) {
  if (!mix_given(optimizer, &mix_optimizer_object_class, "optimizer_for_policy", "an optimizer")) return NULL;
  if (optimizer->inner || !policy) return optimizer;
  if (!mix_given(policy, &mix_policy_class, "optimizer_for_policy", "a policy")) return NULL;
  if (optimizer->semantics->auto_wrap == MIX_AUTO_WRAP_POLICY_LOSS_SCALE) {
    mix_loss_scale *scale = mix_policy_loss_scale(policy);
    return scale ? mix_loss_scale_optimizer(optimizer, .loss_scale = scale) : optimizer;
  }
  const char *name = mix_policy_name(policy);
  return name && name == mix_intern("mixed_float16") ? mix_loss_scale_optimizer(optimizer, .name = NULL)
                                                     : optimizer;
}

/* ---- reading ---- */

bool mix_optimizer_scales_loss(const mix_optimizer *optimizer) {
  return mix_is(optimizer, &mix_optimizer_object_class) && optimizer->inner;
}
mix_optimizer *mix_optimizer_inner(const mix_optimizer *optimizer) {
  return mix_is(optimizer, &mix_optimizer_object_class) ? optimizer->inner : NULL;
}
mix_loss_scale *mix_optimizer_loss_scale_object(const mix_optimizer *optimizer) {
  return mix_is(optimizer, &mix_optimizer_object_class) ? optimizer->loss_scale : NULL;
}
bool mix_optimizer_dynamic(const mix_optimizer *optimizer) {
  return mix_optimizer_scales_loss(optimizer) && mix_loss_scale_is_dynamic(optimizer->loss_scale);
}
double mix_optimizer_initial_scale(const mix_optimizer *optimizer) {
  return mix_optimizer_scales_loss(optimizer) ? mix_loss_scale_initial(optimizer->loss_scale) : 0;
}
int64_t mix_optimizer_dynamic_growth_steps(const mix_optimizer *optimizer) {
  return mix_optimizer_dynamic(optimizer) ? mix_loss_scale_increment_period(optimizer->loss_scale) : 0;
}
mix_variable *mix_optimizer_dynamic_counter(const mix_optimizer *optimizer) {
  return mix_optimizer_dynamic(optimizer) ? mix_loss_scale_good_steps(optimizer->loss_scale) : NULL;
}
int64_t mix_optimizer_skipped_steps(const mix_optimizer *optimizer) {
  return mix_optimizer_dynamic(optimizer)
             ? mix_optimizer_count(mix_loss_scale_skipped_steps(optimizer->loss_scale))
             : 0;
}
void mix_optimizer_warn_unapplied(const mix_optimizer *optimizer, const char *call, int64_t steps,
                                  int64_t skipped) {
  if (steps > 0 && skipped >= steps)
    mix_log_message(MIX_LOG_WARNING,
                    "%s: none of the %lld steps was applied: the gradients of each were not all finite, and "
                    "the model is as it was; look at the data and the learning rate, or where the first "
                    "infinity is made (mixtape numerics), or train longer from a smaller loss scale than %g",
                    call, (long long)steps, mix_optimizer_initial_scale(optimizer));
}

mix_tensor *mix_optimizer_loss_scale(mix_optimizer *optimizer) {
  if (mix_optimizer_scales_loss(optimizer)) return mix_loss_scale_value(optimizer->loss_scale);
  const double factor =
      mix_is(optimizer, &mix_optimizer_object_class) ? optimizer->options.common.loss_scale_factor : 0;
  return factor != 0 ? mix_scalar(factor, MIX_FLOAT32) : NULL;
}

/* ---- scaling and unscaling ---- */

static bool offers_unscaled_loop(const mix_optimizer *optimizer, const char *call) {
  if (mix_failed()) return false;
  if (!mix_is(optimizer, &mix_optimizer_object_class))
    return mix_fail_type("%s: expected an optimizer", call);
  if (optimizer->inner && optimizer->semantics->wrapper_unscaled_loop) return true;
  return mix_fail(MIX_ATTRIBUTE_ERROR,
                  "%s: %s %s has no such function; "
                  "mix_optimizer_scale_loss and mix_optimizer_apply serve every optimizer",
                  call, optimizer->semantics->name, mix_optimizer_class_name(optimizer));
}

mix_tensor *mix_optimizer_get_scaled_loss(mix_optimizer *optimizer, mix_tensor *loss) {
  if (!offers_unscaled_loop(optimizer, "get_scaled_loss") ||
      !mix_given(loss, &mix_tensor_class, "get_scaled_loss", "a loss"))
    return NULL;
  optimizer->loss_was_scaled = true;
  return mix_multiply(loss, mix_cast(mix_loss_scale_value(optimizer->loss_scale), mix_tensor_dtype(loss)));
}

mix_tensor *mix_optimizer_get_scaled_loss_of(mix_optimizer *optimizer, mix_loss_function loss,
                                             void *context) {
  if (!offers_unscaled_loop(optimizer, "get_scaled_loss")) return NULL;
  return loss ? mix_optimizer_get_scaled_loss(optimizer, loss(context))
              : mix_fail_type("get_scaled_loss: no function");
}

mix_list *mix_optimizer_get_unscaled_gradients(mix_optimizer *optimizer, mix_list *gradients) {
  if (!offers_unscaled_loop(optimizer, "get_unscaled_gradients")) return NULL;
  if (!mix_is(gradients, &mix_list_class))
    return mix_fail_type("get_unscaled_gradients: expected a list of gradients");
  optimizer->gradients_were_unscaled = true;
  mix_tensor *scale = mix_loss_scale_value(optimizer->loss_scale);
  mix_tensor *reciprocal = mix_kept(mix_divide(mix_scalar_like(scale, 1), scale));
  mix_list *unscaled = mix_list_new(0, NULL);
  for (int i = 0; unscaled && i < mix_list_count(gradients); i++) {
    mix_tensor *gradient = mix_list_get(gradients, i);
    if (gradient && !mix_given(gradient, &mix_tensor_class, "get_unscaled_gradients", "a gradient")) break;
    gradient = mix_optimizer_gradient(gradient);
    mix_tensor *factor = gradient ? mix_kept(mix_cast(reciprocal, mix_tensor_dtype(gradient))) : NULL;
    if (gradient)
      gradient =
          mix_kept(mix_with_values(gradient, mix_kept(mix_multiply(mix_rows_values(gradient), factor))));
    mix_list_append(unscaled, gradient);
  }
  return mix_failed() ? NULL : unscaled;
}

/* keras3: g / scale, in float32 for a 16-bit gradient. Gradients that overwrite their variable are not
 * divided. */
static mix_list *divided(const mix_optimizer *optimizer, mix_list *gradients, mix_list *variables) {
  mix_tensor *scale = mix_loss_scale_value(optimizer->loss_scale);
  mix_list *unscaled = mix_list_new(0, NULL);
  for (int i = 0; unscaled && i < mix_list_count(gradients); i++) {
    mix_tensor *gradient = mix_optimizer_gradient(mix_list_get(gradients, i));
    if (gradient && !mix_optimizer_overwrites(optimizer->inner, mix_list_get(variables, i))) {
      mix_tensor *wide = mix_rows_values(gradient);
      if (mix_tensor_dtype(wide) != MIX_FLOAT64) wide = mix_kept(mix_cast(wide, MIX_FLOAT32));
      wide = mix_kept(mix_divide(wide, mix_cast(scale, mix_tensor_dtype(wide))));
      gradient = mix_kept(mix_with_values(gradient, wide));
    }
    mix_list_append(unscaled, gradient);
  }
  return mix_failed() ? NULL : unscaled;
}

static void warn_unused(const mix_optimizer *optimizer) {
  if (!optimizer->semantics->wrapper_warns_unused ||
      (optimizer->loss_was_scaled && optimizer->gradients_were_unscaled))
    return;
  const char *missing =
      optimizer->loss_was_scaled           ? "get_unscaled_gradients (get_scaled_loss was called, however)"
      : optimizer->gradients_were_unscaled ? "get_scaled_loss (get_unscaled_gradients was called, however)"
                                           : "get_scaled_loss and get_unscaled_gradients";
  mix_log_message(
      MIX_LOG_WARNING,
      "apply_gradients of a loss-scale optimizer without %s before: the model will likely be worse for it",
      missing);
}

mix_status mix_loss_scale_optimizer_step(mix_optimizer *optimizer, mix_list *gradients, mix_list *variables) {
  warn_unused(optimizer);
  mix_release(optimizer->applied);
  optimizer->applied = NULL;
  mix_optimizer *inner = optimizer->inner;
  if (mix_list_count(gradients) == 0 || mix_optimizer_build_in_step(inner, variables) != MIX_OK)
    return mix_error();
  for (int i = 0; i < mix_list_count(variables); i++)
    if (mix_optimizer_index(inner, mix_list_get(variables, i), i) < 0)
      return mix_fail_status(MIX_VALUE_ERROR,
                             "%s: variable '%s' is not one of those it was built for; "
                             "make a new optimizer for a new set of variables",
                             inner->name, mix_variable_name(mix_list_get(variables, i)));
  mix_scope *scope = mix_scope_begin();
  mix_list *tested = mix_list_new(0, NULL);
  for (int i = 0; tested && i < mix_list_count(gradients); i++)
    mix_list_append(tested, mix_optimizer_gradient(mix_list_get(gradients, i)));
  mix_tensor *apply = NULL;
  if (mix_loss_scale_is_dynamic(optimizer->loss_scale)) {
    mix_list *unscaled =
        optimizer->semantics->finite_test_scaled ? divided(optimizer, tested, variables) : tested;
    apply = mix_loss_scale_update(optimizer->loss_scale, mix_shards_all_finite(inner, tested));
    tested = unscaled;
  }
  if (!mix_failed())
    mix_optimizer_step(inner, tested, variables, apply, optimizer->semantics->iteration_on_skip);
  optimizer->applied = mix_retain(mix_failed() ? NULL : apply);
  if (scope) mix_scope_end(scope);
  return mix_error();
}
