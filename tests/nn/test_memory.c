/* Every allocation of nn/ may fail: each attempt ends in MemoryError or succeeds, and the state stays
 * usable. */
#include "nn/support.h"
#include "base/alloc.h"
#include "base/error.h"
#include <mixtape/optimizer.h>

/* Policies, layers, losses, metrics and loss scales, each created and used once. */
static void use_everything(void) {
  mix_policy *policy = mix_policy_new("mixed_float16", .semantics = mix_semantics_named("experimental"));
  mix_policy_serialize(policy);
  mix_policy_scope *scope = mix_policy_scope_begin(policy);
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(3));
  mix_layer *dense =
      mix_dense(.units = 2, .activation = "relu", .kernel_regularizer = mix_regularizer_new("l2"),
                .bias_constraint = mix_constraint_new("non_neg"));
  mix_layer *dropout = mix_dropout(.rate = 0.5), *softmax = mix_activation("softmax", .dtype = "float32");
  mix_call(softmax, mix_call(dropout, mix_call(dense, x)));
  mix_tensor *p =
      mix_call(softmax, mix_call(dropout, mix_call(dense, mix_fill(MIX_SHAPE(2, 3), 1, MIX_FLOAT32)),
                                 .training = MIX_TRUE));
  mix_layer_losses(dense);
  mix_layer_config(dense);
  mix_layer_set_weights(dense, mix_layer_get_weights(dense));
  mix_tensor *y = mix_fill(MIX_SHAPE(2), 1, MIX_INT32);
  mix_tensor *loss = mix_loss_call(mix_loss_new("sparse_categorical_crossentropy"), y, p);
  mix_metric *metric = mix_metric_new("accuracy");
  mix_metric_update(metric, y, p);
  mix_metric_result(metric);
  mix_loss_scale_update(mix_policy_loss_scale(policy), mix_all_finite_of(mix_list_of(loss)));
  mix_initializer_call(mix_initializer_new("orthogonal"), MIX_SHAPE(3, 2), MIX_FLOAT32);
  mix_policy_scope_end(scope);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  bool failed = true;
  int64_t count = 0;
  MIX_SCOPE { use_everything(); } /* caches interned names and compiled plans */
  assert_int_equal(mix_error(), MIX_OK);
  for (; failed && count < 100000; count++) {
    mix_inject_allocation_failure(count);
    MIX_SCOPE { use_everything(); }
    mix_inject_allocation_failure(-1);
    failed = mix_error() != MIX_OK;
    if (failed && mix_error() != MIX_MEMORY_ERROR)
      fail_msg("allocation %lld: %s", (long long)count, mix_error_message());
    mix_error_clear();
    assert_string_equal(mix_policy_name(mix_global_policy()), "float32");
    assert_int_equal(mix_cast_dtype(), MIX_DTYPE_NONE);
  }
  assert_false(failed);
  assert_true(count > 100); /* some allocations failed */
}

/* Integers are cast for the product; if the cast fails, the missing tensor is not read. Optimizers create all
 * of their state or none, and create it later. */
static void cast_and_step(mix_layer *layer, mix_tensor *ids, mix_variable *weight, mix_tensor *gradient) {
  mix_call(layer, ids);
  mix_optimizer *optimizer = mix_adam(.use_ema = true, .gradient_accumulation_steps = 2);
  if (!optimizer) return;
  mix_optimizer_apply_gradients(optimizer, mix_list_of(gradient), mix_list_of(weight));
  mix_status status = mix_error();
  if (status == MIX_OK) return;
  char message[1024];
  mix_error_take(message, sizeof message);
  int made = mix_list_count(mix_optimizer_variables(optimizer));
  /* Iteration and learning rate; and average, accumulator and two slots. */
  assert_true(made == 2 || made == 6);
  mix_optimizer_apply_gradients(optimizer, mix_list_of(gradient), mix_list_of(weight));
  assert_int_equal(mix_list_count(mix_optimizer_variables(optimizer)), 6);
  assert_int_equal(mix_error(), MIX_OK);
  mix_fail(status, "%s", message);
}

static void failures_leave_no_partial_state(void **state) {
  (void)state;
  mix_layer *layer = mix_dense(.units = 2);
  mix_tensor *ids = mix_fill(MIX_SHAPE(2, 3), 1, MIX_INT32),
             *gradient = mix_fill(MIX_SHAPE(2), 1, MIX_FLOAT32);
  mix_variable *weight = mix_variable_new(gradient);
  bool failed = true;
  int64_t count = 0;
  MIX_SCOPE { cast_and_step(layer, ids, weight, gradient); }
  assert_int_equal(mix_error(), MIX_OK);
  for (; failed && count < 100000; count++) {
    mix_inject_allocation_failure(count);
    MIX_SCOPE { cast_and_step(layer, ids, weight, gradient); }
    mix_inject_allocation_failure(-1);
    failed = mix_error() != MIX_OK;
    if (failed && mix_error() != MIX_MEMORY_ERROR)
      fail_msg("allocation %lld: %s", (long long)count, mix_error_message());
    mix_error_clear();
  }
  assert_false(failed);
  assert_true(count > 30);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(every_allocation_may_fail), TEST(failures_leave_no_partial_state)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
