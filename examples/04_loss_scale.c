/* Why and how losses are scaled: the narrow range of float16, the wide range of bfloat16, fixed and dynamic
 * loss scales, and the effect of an overflow on a step. */
#include <mixtape/mixtape.h>

#include <stdio.h>

static double squared(double value, mix_dtype dtype) {
  return mix_tensor_item(mix_square(mix_scalar(value, dtype)));
}

static double item(mix_variable *variable) { return mix_tensor_item(mix_variable_value(variable)); }

/* Takes one step with this gradient, as a custom loop does after unscaling. */
static void step(mix_optimizer *optimizer, mix_variable *weight, double gradient) {
  mix_optimizer_apply_gradients(optimizer, mix_list_of(mix_scalar(gradient, MIX_FLOAT32)),
                                mix_list_of(weight));
  printf("gradient %g: weight %g, loss scale %g, good steps %g\n", gradient, item(weight),
         mix_tensor_item(mix_optimizer_loss_scale(optimizer)),
         item(mix_optimizer_dynamic_counter(optimizer)));
}

int main(void) {
  mix_scope *scope = mix_scope_begin();
  const mix_dtype dtypes[] = {MIX_FLOAT16, MIX_BFLOAT16};
  for (int i = 0; i < 2; i++)
    printf("%s: 256^2 = %g, (1e-5)^2 = %g\n", mix_dtype_name(dtypes[i]), squared(256, dtypes[i]),
           squared(1e-5, dtypes[i]));

  /* Loss scales as objects, as in the experimental API. */
  char text[160];
  mix_loss_scale *fixed = mix_fixed_loss_scale(1024),
                 *dynamic = mix_dynamic_loss_scale(.increment_period = 2);
  printf("%s\n", mix_loss_scale_text(fixed, text, sizeof text));
  printf("%s\n", mix_loss_scale_text(dynamic, text, sizeof text));
  /* Some gradient was not finite. */
  mix_tensor *apply = mix_loss_scale_update(dynamic, mix_scalar(0, MIX_BOOL));
  printf("after an overflow: apply %g, scale %g\n", mix_tensor_item(apply),
         mix_tensor_item(mix_loss_scale_value(dynamic)));

  /* A fixed scale in an optimizer: the loss is multiplied, the gradients are divided. */
  mix_optimizer *scaled_sgd = mix_loss_scale_optimizer(mix_sgd(), .fixed = true, .initial_scale = 1024);
  mix_tensor *scaled = mix_optimizer_get_scaled_loss(scaled_sgd, mix_scalar(2, MIX_FLOAT32));
  mix_list *unscaled =
      mix_optimizer_get_unscaled_gradients(scaled_sgd, mix_list_of(mix_scalar(1024, MIX_FLOAT32)));
  printf("fixed scale 1024: loss 2 becomes %g, gradient 1024 becomes %g\n", mix_tensor_item(scaled),
         mix_tensor_item(mix_list_get(unscaled, 0)));

  /* A dynamic scale doubles after two good steps. An overflow halves it and leaves the weight unchanged. */
  mix_variable *weight = mix_variable_new(mix_scalar(1, MIX_FLOAT32), .name = "weight");
  mix_optimizer *optimizer =
      mix_loss_scale_optimizer(mix_sgd(.learning_rate = 0.25), .dynamic_growth_steps = 2);
  step(optimizer, weight, 1);
  step(optimizer, weight, 1);
  step(optimizer, weight, squared(256, MIX_FLOAT16));
  step(optimizer, weight, 1);
  /* tf_keras counts the skipped step too. */
  printf("iterations: %lld\n", (long long)mix_optimizer_iterations(optimizer));

  mix_scope_end(scope);
  return MIX_EXIT_CODE();
}
