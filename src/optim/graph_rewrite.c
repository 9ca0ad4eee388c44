/* Turns the automatic mixed precision rewrite on and off (docs/spec/mixed_precision.md, 7.1). */
#include <mixtape/graph_rewrite.h>

#include "base/error.h"
#include "amp/setting.h"
#include "nn/policy/policy.h"
#include "optim/optimizer.h"

mix_graph_rewrite_options mix_graph_rewrite_defaults(void) {
  return (mix_graph_rewrite_options){.size = sizeof(mix_graph_rewrite_options)};
}

static mix_optimizer *wrap(const mix_graph_rewrite_options *options) {
  mix_loss_scale *scale = options->loss_scale;
  const double fixed = options->fixed_loss_scale;
  const bool takes_object = options->optimizer->semantics->wrapper_takes_object;
  if (!scale && !takes_object)
    return mix_loss_scale_optimizer(options->optimizer, .fixed = fixed != 0, .initial_scale = fixed);
  if (!scale) scale = fixed ? mix_fixed_loss_scale(fixed) : mix_loss_scale_get("dynamic");
  if (!takes_object && mix_loss_scale_is_dynamic(scale) && mix_loss_scale_multiplier(scale) != 2)
    return mix_fail_value("enable_mixed_precision_graph_rewrite: the multiplier of the loss scale is %g; "
                          "only 2 can be used here",
                          mix_loss_scale_multiplier(scale));
  return scale ? mix_optimizer_scale(options->optimizer, scale) : NULL;
}

mix_optimizer *mix_enable_mixed_precision_graph_rewrite_with(const mix_graph_rewrite_options *given) {
  MIX_OPTIONS(mix_graph_rewrite_options, options, given, "enable_mixed_precision_graph_rewrite");
  if (mix_mixed_policy_in_use()) return mix_graph_rewrite_set(true), NULL; /* records the reason */
  if (!mix_is(options.optimizer, &mix_optimizer_object_class))
    return mix_fail_value(
        "enable_mixed_precision_graph_rewrite: the optimizer is %s; expected one such as mix_sgd()",
        options.optimizer ? "another object" : "NULL");
  if (options.optimizer->inner)
    return mix_fail_value(
        "enable_mixed_precision_graph_rewrite: the optimizer must not be wrapped in loss scaling already, "
        "but is a %s around %s",
        options.optimizer->name, options.optimizer->inner->name);
  if (options.loss_scale && options.fixed_loss_scale != 0)
    return mix_fail_value(
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
