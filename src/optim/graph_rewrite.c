/* Turns the automatic mixed precision rewrite on and off (docs/spec/mixed_precision.md, 7.1). */
#include <mixtape/graph_rewrite.h>

#include "base/error.h"
#include "amp/setting.h"
#include "nn/policy/policy.h"
#include "optim/optimizer.h"

mix_graph_rewrite_options mix_graph_rewrite_defaults(void) {
  return (mix_graph_rewrite_options){.size = sizeof(mix_graph_rewrite_options)};
}

/* Wraps in the loss-scale optimizer of the optimizer's generation. The experimental one keeps the loss scale
 * object, the later ones take its numbers. */
static mix_optimizer *wrap(const mix_graph_rewrite_options *options) {
  mix_loss_scale *scale = options->loss_scale;
  mix_loss_scale_optimizer_options wrapper = {.size = sizeof wrapper, .inner = options->optimizer};
  if (options->optimizer->semantics->wrapper_takes_object) {
    wrapper.loss_scale = scale                       ? scale
                         : options->fixed_loss_scale ? mix_fixed_loss_scale(options->fixed_loss_scale)
                                                     : mix_loss_scale_get("dynamic");
    return wrapper.loss_scale ? mix_loss_scale_optimizer_with(&wrapper) : NULL;
  }
  if (scale && mix_loss_scale_is_dynamic(scale) && mix_loss_scale_multiplier(scale) != 2)
    return mix_fail(MIX_VALUE_ERROR,
                    "enable_mixed_precision_graph_rewrite: the multiplier of the loss scale is %g; "
                    "only 2 can be used here",
                    mix_loss_scale_multiplier(scale));
  wrapper.fixed = scale ? !mix_loss_scale_is_dynamic(scale) : options->fixed_loss_scale != 0;
  wrapper.initial_scale = scale ? mix_loss_scale_initial(scale) : options->fixed_loss_scale;
  if (scale && !wrapper.fixed) wrapper.dynamic_growth_steps = mix_loss_scale_increment_period(scale);
  return mix_loss_scale_optimizer_with(&wrapper);
}

mix_optimizer *mix_enable_mixed_precision_graph_rewrite_with(const mix_graph_rewrite_options *given) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_graph_rewrite_options, options, given, "enable_mixed_precision_graph_rewrite");
  if (mix_mixed_policy_in_use()) return mix_graph_rewrite_set(true), NULL; /* records the reason */
  if (!mix_is(options.optimizer, &mix_optimizer_object_class))
    return mix_fail(
        MIX_VALUE_ERROR,
        "enable_mixed_precision_graph_rewrite: the optimizer is %s; expected one such as mix_sgd()",
        options.optimizer ? "another object" : "NULL");
  if (options.optimizer->inner)
    return mix_fail(
        MIX_VALUE_ERROR,
        "enable_mixed_precision_graph_rewrite: the optimizer must not be wrapped in loss scaling already, "
        "but is a %s around %s",
        options.optimizer->name, options.optimizer->inner->name);
  if (options.loss_scale && options.fixed_loss_scale != 0)
    return mix_fail(MIX_VALUE_ERROR,
                    "enable_mixed_precision_graph_rewrite: .loss_scale together with .fixed_loss_scale; "
                    "give one of them");
  mix_optimizer *optimizer = wrap(&options);
  return optimizer && mix_graph_rewrite_set(true) == MIX_OK ? optimizer : NULL;
}

mix_status mix_disable_mixed_precision_graph_rewrite(void) {
  if (mix_failed()) return mix_error();
  if (mix_graph_rewrite_enabled()) return mix_graph_rewrite_set(false);
  mix_log_message(MIX_LOG_WARNING,
                  "disable_mixed_precision_graph_rewrite: the mixed precision graph rewrite is not enabled");
  return MIX_OK;
}

mix_status mix_set_graph_rewrite(const char *dtype) {
  if (mix_failed()) return mix_error();
  mix_dtype target = dtype ? mix_dtype_from_name(dtype) : MIX_DTYPE_NONE;
  if (dtype && target != MIX_FLOAT16 && target != MIX_BFLOAT16)
    return mix_fail_status(MIX_VALUE_ERROR,
                           "set_graph_rewrite: \"%s\"; expected \"float16\", \"bfloat16\" or NULL", dtype);
  mix_amp_set_target(target);
  mix_warn_of_rewrite_and_policy("set_graph_rewrite");
  return MIX_OK;
}

mix_dtype mix_graph_rewrite_dtype(void) { return mix_amp_target(); }
