/* Loss scaling, gradients and updates through one interface for plain and loss-scale optimizers. */
#include "base/error.h"
#include "base/float_modes.h"
#include "distribute/distribute.h"
#include "ops/with_number.h"
#include "optim/shard.h"

mix_tensor *mix_optimizer_scale_loss(mix_optimizer *optimizer, mix_tensor *loss) {
  if (!mix_given(loss, &mix_tensor_class, "optimizer_scale_loss", "a loss")) return NULL;
  if (!mix_is(optimizer, &mix_optimizer_object_class))
    return mix_fail_type("optimizer_scale_loss: expected an optimizer");
  if (!optimizer->inner) {
    double factor = optimizer->options.common.loss_scale_factor;
    return factor ? mix_times(loss, factor) : loss;
  }
  mix_tensor *scale = mix_loss_scale_value(optimizer->loss_scale);
  if (!optimizer->semantics->scaled_loss_widened) return mix_optimizer_get_scaled_loss(optimizer, loss);
  mix_dtype dtype = mix_tensor_dtype(loss);
  mix_tensor *wide = dtype == MIX_FLOAT64 ? loss : mix_cast(loss, MIX_FLOAT32);
  return mix_multiply(wide, mix_cast(scale, mix_tensor_dtype(wide)));
}

/* The largest of all ranks: what replaces a weight is no sum over the rows of a batch. */
static mix_tensor *largest_of_ranks(mix_tensor *value) {
  mix_shape shape = mix_tensor_shape(value), row = {.rank = shape.rank + 1, .dims = {1}};
  for (int i = 0; i < shape.rank; i++) row.dims[i + 1] = shape.dims[i];
  return mix_reduce_max(mix_all_gather(mix_reshape(value, row)), MIX_AXES(0), false);
}

static mix_list *sums_of_ranks(mix_optimizer *plain, mix_list *gradients, mix_list *variables) {
  if (plain->shards) return mix_shards_sum(plain, gradients, variables);
  mix_list *summed = mix_list_new(0, NULL);
  for (int i = 0; i < mix_list_count(gradients) && !mix_failed(); i++) {
    const bool replaces = mix_optimizer_overwrites(plain, mix_list_get(variables, i));
    mix_list_append(summed, replaces ? NULL : mix_list_get(gradients, i));
  }
  return mix_sum_gradients(summed);
}

/* Over all ranks: sums of gradients, and the largest of values that replace weights. */
static mix_list *gradients_of_ranks(const mix_optimizer *optimizer, mix_list *gradients,
                                    mix_list *variables) {
  mix_optimizer *plain = mix_optimizer_plain(optimizer);
  if (mix_shards_wanted() && mix_optimizer_build_in_step(plain, variables) != MIX_OK) return NULL;
  if (!mix_shards_match(plain)) return NULL;
  if (!mix_is_distributed()) return gradients;
  if (!mix_share_checks()) return NULL;
  mix_list *summed = sums_of_ranks(plain, gradients, variables), *result = mix_list_new(0, NULL);
  for (int i = 0; i < mix_list_count(gradients) && !mix_failed(); i++) {
    mix_tensor *gradient = mix_list_get(gradients, i);
    const bool replaces = gradient && mix_optimizer_overwrites(plain, mix_list_get(variables, i));
    mix_list_append(result, replaces ? largest_of_ranks(gradient) : mix_list_get(summed, i));
  }
  return mix_failed() ? NULL : result;
}

mix_status mix_optimizer_apply(mix_optimizer *optimizer, mix_list *scaled_gradients, mix_list *variables) {
  MIX_OWN_FLOAT_MODES;
  if (!mix_optimizer_check_lists("optimizer_apply", optimizer, scaled_gradients, variables))
    return mix_error();
  if (!(scaled_gradients = gradients_of_ranks(optimizer, scaled_gradients, variables))) return mix_error();
  if (!optimizer->inner) return mix_optimizer_step(optimizer, scaled_gradients, variables, NULL, false);
  if (optimizer->semantics->finite_test_scaled)
    return mix_loss_scale_optimizer_step(optimizer, scaled_gradients, variables);
  optimizer->loss_was_scaled = true; /* by scale_loss or minimize */
  mix_list *gradients = mix_optimizer_get_unscaled_gradients(optimizer, scaled_gradients);
  return gradients ? mix_loss_scale_optimizer_step(optimizer, gradients, variables) : mix_error();
}

/* The gradients of scale * loss, computed with an upstream gradient of `scale`: the tape may have ended
 * before the loss was scaled. */
static mix_list *scaled_gradients(mix_optimizer *optimizer, mix_tensor *loss, mix_tape *tape,
                                  mix_list *variables) {
  mix_tensor *upstream = NULL;
  if (optimizer->inner)
    upstream = mix_multiply(mix_ones_like(loss),
                            mix_cast(mix_loss_scale_value(optimizer->loss_scale), mix_tensor_dtype(loss)));
  else if (optimizer->options.common.loss_scale_factor != 0)
    upstream =
        mix_multiply(mix_ones_like(loss), mix_scalar_like(loss, optimizer->options.common.loss_scale_factor));
  return mix_tape_gradient_from(tape, mix_list_of(loss), upstream ? mix_list_of(upstream) : NULL, variables);
}

static bool can_differentiate(const char *call, mix_optimizer *optimizer, mix_tensor *loss) {
  if (mix_failed()) return false;
  if (mix_is(optimizer, &mix_optimizer_object_class) && mix_is(loss, &mix_tensor_class)) return true;
  return mix_fail_type("%s: expected an optimizer and a loss", call);
}

mix_list *mix_optimizer_compute_gradients(mix_optimizer *optimizer, mix_tensor *loss, mix_tape *tape,
                                          mix_list *variables) {
  if (!can_differentiate("optimizer_compute_gradients", optimizer, loss)) return NULL;
  mix_list *gradients = scaled_gradients(optimizer, loss, tape, variables);
  if (!gradients || !optimizer->inner || optimizer->semantics->finite_test_scaled) return gradients;
  optimizer->loss_was_scaled = true;
  return mix_optimizer_get_unscaled_gradients(optimizer, gradients);
}

mix_status mix_optimizer_minimize(mix_optimizer *optimizer, mix_tensor *loss, mix_tape *tape,
                                  mix_list *variables) {
  MIX_OWN_FLOAT_MODES;
  if (!can_differentiate("optimizer_minimize", optimizer, loss)) return mix_error();
  mix_list *gradients = scaled_gradients(optimizer, loss, tape, variables);
  return gradients ? mix_optimizer_apply(optimizer, gradients, variables) : mix_error();
}

mix_list *mix_optimizer_compute_gradients_of(mix_optimizer *optimizer, mix_loss_function loss, void *context,
                                             mix_list *variables) {
  if (mix_failed()) return NULL;
  if (!loss) return mix_fail_type("optimizer_compute_gradients_of: no function");
  mix_scope *scope = mix_scope_begin();
  mix_tape *tape = mix_tape_begin();
  mix_tensor *value = loss(context);
  mix_tape_end(tape);
  mix_list *gradients =
      mix_failed() ? NULL : mix_optimizer_compute_gradients(optimizer, value, tape, variables);
  mix_retain(gradients);
  if (scope) mix_scope_end(scope);
  return mix_scoped(gradients);
}

mix_status mix_optimizer_minimize_function(mix_optimizer *optimizer, mix_loss_function loss, void *context,
                                           mix_list *variables) {
  MIX_OWN_FLOAT_MODES;
  if (mix_failed()) return mix_error();
  if (!loss) return mix_fail_status(MIX_TYPE_ERROR, "optimizer_minimize_function: no function");
  mix_scope *scope = mix_scope_begin();
  mix_tape *tape = mix_tape_begin();
  mix_tensor *value = loss(context);
  mix_tape_end(tape);
  if (!mix_failed()) mix_optimizer_minimize(optimizer, value, tape, variables);
  if (scope) mix_scope_end(scope);
  return mix_error();
}

mix_status mix_optimizer_apply_gradients(mix_optimizer *optimizer, mix_list *gradients, mix_list *variables) {
  MIX_OWN_FLOAT_MODES;
  if (!mix_optimizer_check_lists("apply_gradients", optimizer, gradients, variables)) return mix_error();
  if (!(gradients = gradients_of_ranks(optimizer, gradients, variables))) return mix_error();
  if (optimizer->inner) return mix_loss_scale_optimizer_step(optimizer, gradients, variables);
  return mix_optimizer_step(optimizer, gradients, variables, NULL, false);
}
