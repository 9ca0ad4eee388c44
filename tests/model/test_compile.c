/* compile: loss, metrics and optimizer by name or object, and the wrapping in loss scaling
 * (docs/spec/mixed_precision.md, 6.8 and 9.6). */
#include "model/support.h"

static mix_model *under(const char *policy) {
  mix_set_global_policy(policy);
  return guide_model(8, 4);
}

static mix_optimizer *compiled_with(mix_model *model, mix_optimizer *optimizer) {
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy", .optimizer = optimizer);
  assert_no_error();
  return mix_model_optimizer(model);
}

static void O38_mixed_float16_wraps(void **state) {
  (void)state;
  mix_optimizer *sgd = mix_sgd(.momentum = 0.5), *used = compiled_with(under("mixed_float16"), sgd);
  assert_true(mix_optimizer_scales_loss(used) && mix_optimizer_dynamic(used));
  assert_ptr_equal(mix_optimizer_inner(used), sgd);
  assert_true(mix_optimizer_initial_scale(used) == 32768 && mix_optimizer_dynamic_growth_steps(used) == 2000);
}

static void O39_other_policies_do_not(void **state) {
  (void)state;
  static const char *const policies[] = {"mixed_bfloat16", "float16", "float32", "float64", "bfloat16"};
  for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
    mix_optimizer *sgd = mix_sgd(.momentum = 0.5);
    assert_ptr_equal(compiled_with(under(policies[i]), sgd), sgd);
    assert_false(mix_optimizer_scales_loss(sgd));
  }
}

static void O40_what_is_wrapped_stays_as_it_is(void **state) {
  (void)state;
  mix_optimizer *wrapped =
      mix_loss_scale_optimizer(mix_sgd(.momentum = 0.5), .fixed = true, .initial_scale = 8);
  assert_ptr_equal(compiled_with(under("mixed_float16"), wrapped), wrapped);
  assert_false(mix_optimizer_dynamic(wrapped));
  assert_true(mix_optimizer_initial_scale(wrapped) == 8);
}

static void O41_experimental_takes_the_policys_loss_scale(void **state) {
  (void)state;
  mix_set_semantics("experimental");
  mix_policy *policy = mix_policy_new("mixed_float16", .loss_scale = 8);
  mix_set_global_policy_object(policy);
  mix_optimizer *used = compiled_with(guide_model(8, 4), mix_sgd(.momentum = 0.5));
  assert_true(mix_optimizer_scales_loss(used) && !mix_optimizer_dynamic(used));
  assert_true(mix_tensor_item(mix_optimizer_loss_scale(used)) == 8);
  assert_ptr_equal(mix_optimizer_loss_scale_object(used), mix_policy_loss_scale(policy));
  mix_set_global_policy_object(mix_policy_new("mixed_float16", .no_loss_scale = true));
  assert_false(mix_optimizer_scales_loss(compiled_with(guide_model(8, 4), mix_sgd(.momentum = 0.5))));
}

static void the_policy_of_the_model_decides(void **state) {
  (void)state;
  mix_model *model = under("mixed_float16");
  mix_set_global_policy("float32");
  assert_true(mix_optimizer_scales_loss(compiled_with(model, mix_sgd(.momentum = 0.5))));
}

static void keras3_wraps_unless_disabled(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_model *model = under("mixed_float16");
  assert_true(mix_optimizer_scales_loss(compiled_with(model, mix_sgd(.momentum = 0.5))));
  mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(.momentum = 0.5), .no_auto_scale_loss = true);
  assert_false(mix_optimizer_scales_loss(mix_model_optimizer(model)));
}

/* compile of tf_keras 2.21 has no such argument: TypeError. */
static void only_keras3_can_disable_wrapping(void **state) {
  (void)state;
  static const char *const generations[] = {"tf_keras", "experimental"};
  for (int i = 0; i < 2; i++) {
    mix_set_semantics(generations[i]);
    mix_model *model = under("mixed_float16");
    assert_int_equal(
        mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(), .no_auto_scale_loss = true),
        MIX_TYPE_ERROR);
    assert_non_null(strstr(mix_error_message(), "fixed loss scale of 1"));
    mix_error_clear();
    assert_null(mix_model_optimizer(model));
  }
}

static void the_default_optimizer_is_rmsprop(void **state) {
  (void)state;
  mix_model *model = under("float32");
  assert_null(mix_model_optimizer(model));
  mix_model_compile(model, .loss = "mse");
  assert_string_equal(mix_optimizer_class_name(mix_model_optimizer(model)), "RMSprop");
  mix_model_compile(model, .loss = "mse", .optimizer_name = "adam:learning_rate=0.25");
  assert_string_equal(mix_optimizer_class_name(mix_model_optimizer(model)), "Adam");
  assert_true(mix_optimizer_learning_rate(mix_model_optimizer(model)) == 0.25);
}

static void contradictions_are_refused(void **state) {
  (void)state;
  mix_model *model = under("float32");
  mix_loss *loss = mix_loss_new("mse");
  mix_optimizer *sgd = mix_sgd(.momentum = 0.5);
  mix_model_compile(model, .loss = "mse", .loss_object = loss);
  assert_error(MIX_VALUE_ERROR, "give one of loss");
  mix_model_compile(model, .loss = "mse", .optimizer = sgd, .optimizer_name = "sgd");
  assert_error(MIX_VALUE_ERROR, "not both");
  mix_model_compile(model, .loss = "cross");
  assert_error(MIX_VALUE_ERROR, "cross");
  mix_model_compile(model, .loss = "mse", .metrics = {"speed"});
  assert_error(MIX_VALUE_ERROR, "speed");
  mix_model_compile(model, .loss = "mse", .optimizer_name = "sdg");
  assert_error(MIX_VALUE_ERROR, "sdg");
  mix_model_compile(model, .loss_objects = mix_list_of(loss, loss));
  assert_error(MIX_VALUE_ERROR, "2 loss_objects; the model has 1 outputs");
  mix_model_compile(model, .loss_objects = mix_list_of(sgd));
  assert_error(MIX_TYPE_ERROR, "output 0");
  mix_model_compile(model, .loss = "mse", .metric_objects = mix_list_of(sgd));
  assert_error(MIX_TYPE_ERROR, "not a metric");
  mix_model_compile(model, .loss = "mse", .optimizer = (mix_optimizer *)loss);
  assert_error(MIX_TYPE_ERROR, NULL);
  assert_null(mix_model_optimizer(model)); /* the failed call had no effect */
}

static void an_uncompiled_model_cannot_be_trained(void **state) {
  (void)state;
  mix_model *model = under("float32");
  examples e = examples_of(4, 8, 3);
  assert_non_null(mix_model_predict(model, e.x)); /* needs no compile, and does not replace it */
  assert_null(mix_model_fit(model, e.x, e.y));
  assert_error(MIX_RUNTIME_ERROR, "compile");
  assert_null(mix_model_evaluate(model, e.x, e.y));
  assert_error(MIX_RUNTIME_ERROR, "compile");
  assert_null(mix_model_train_on_batch(model, e.x, e.y));
  assert_error(MIX_RUNTIME_ERROR, "compile");
}

static void fit_without_a_loss_is_an_error(void **state) {
  (void)state;
  mix_model *model = under("float32");
  mix_model_compile(model, .optimizer = mix_sgd(.momentum = 0.5));
  examples e = examples_of(4, 8, 3);
  assert_null(mix_model_fit(model, e.x, e.y, .verbose = MIX_SILENT));
  assert_error(MIX_VALUE_ERROR, "has no loss");
}

/* A second compile starts over: a new optimizer without the state of the first. */
static void compiling_again_starts_over(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0.25);
  mix_model_train_on_batch(model, ARRAY(F32, MIX_SHAPE(1, 1), 1), ARRAY(F32, MIX_SHAPE(1, 1), 0));
  assert_true(weight_at(model, 0, 0) == 0.5);
  assert_int_equal(mix_optimizer_iterations(mix_model_optimizer(model)), 1);
  mix_model_compile(model, .loss = "mae", .optimizer = mix_sgd(.learning_rate = 0.125));
  assert_true(mix_logs_get(mix_model_train_on_batch(model, ARRAY(F32, MIX_SHAPE(1, 1), 1),
                                                    ARRAY(F32, MIX_SHAPE(1, 1), 0)),
                           "loss") == 0.5);
  assert_true(weight_at(model, 0, 0) == 0.375);
  assert_int_equal(mix_optimizer_iterations(mix_model_optimizer(model)), 1);
}

static mix_tensor *twice(void *context, mix_tensor *y_true, mix_tensor *y_pred) {
  (void)context;
  return mix_multiply(mix_add(mix_squeeze(y_true, MIX_AXES(-1)), mix_squeeze(y_pred, MIX_AXES(-1))),
                      mix_scalar_like(y_pred, 2));
}
static void losses_and_metrics_may_be_functions(void **state) {
  (void)state;
  mix_model *model = product_model(3, 0);
  mix_model_compile(model, .loss_object = mix_loss_new(.function = twice),
                    .optimizer = mix_sgd(.learning_rate = MIX_ZERO),
                    .metric_objects = mix_list_of(mix_metric_new(.function = twice, .name = "doubled")));
  assert_no_error();
  mix_logs *logs =
      mix_model_test_on_batch(model, ARRAY(F32, MIX_SHAPE(2, 1), 1, 2), ARRAY(F32, MIX_SHAPE(2, 1), 10, 20));
  assert_true(mix_logs_get(logs, "loss") == 39 &&
              mix_logs_get(logs, "doubled") == 39); /* mean of 2 * 13 and 2 * 26 */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(O38_mixed_float16_wraps),
      TEST(O39_other_policies_do_not),
      TEST(O40_what_is_wrapped_stays_as_it_is),
      TEST(O41_experimental_takes_the_policys_loss_scale),
      TEST(the_policy_of_the_model_decides),
      TEST(keras3_wraps_unless_disabled),
      TEST(only_keras3_can_disable_wrapping),
      TEST(the_default_optimizer_is_rmsprop),
      TEST(contradictions_are_refused),
      TEST(an_uncompiled_model_cannot_be_trained),
      TEST(fit_without_a_loss_is_an_error),
      TEST(compiling_again_starts_over),
      TEST(losses_and_metrics_may_be_functions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
