/* Each allocation of a model's life fails in turn: an ordinary error, no leak (checked by the sanitizers), no
 * lasting effect. */
#include "model/support.h"

#include "base/alloc.h"
#include <mixtape/callback.h>
#include <mixtape/numerics.h>
#include <unistd.h>

static void life_of_a_model(bool mixed) {
  mix_set_global_policy(mixed ? "mixed_float16" : "float32");
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(3));
  mix_tensor *x = mix_call(mix_dense(.units = 4, .activation = "relu"), inputs);
  mix_model *model = mix_model_new(inputs, mix_call(mix_activation("softmax", .dtype = "float32"), x));
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                    .optimizer = mix_adam(.learning_rate = 0.01), .metrics = {"accuracy"});
  mix_tensor *data = mix_fill(MIX_SHAPE(5, 3), 0.5, F32), *y = mix_fill(MIX_SHAPE(5), 1, MIX_INT64);
  mix_model_fit(model, data, y, .batch_size = 2, .validation_split = 0.4, .verbose = 2,
                .class_weight_count = mixed ? 2 : 0, .class_labels = {0, 1}, .class_weights = {1, 2});
  mix_model_predict(model, data);
  mix_model_summary(model);
  mix_model_set_weights(model, mix_model_get_weights(model));
}

/* fit, evaluate and predict over data sets, with sample weights and every callback. */
static void life_with_callbacks(bool mixed) {
  (void)mixed;
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(1));
  mix_model *model = mix_model_new(
      inputs, mix_call(mix_dense(.units = 1, .no_bias = true, .kernel_initializer = "ones"), inputs));
  mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(.learning_rate = 0.125));
  mix_tensor *x = counting(3), *y = mix_fill(MIX_SHAPE(3, 1), 0, F32), *w = mix_fill(MIX_SHAPE(3), 1, F32);
  mix_dataset *data = mix_dataset_batch(mix_dataset_from_tensors(x, y, w), 2);
  mix_list *callbacks = mix_list_of(
      mix_callback_from_text("early_stopping:restore_best_weights=true"), mix_reduce_lr_on_plateau(),
      mix_model_checkpoint("memory-{epoch}-{loss:.0f}.npz", .save_best_only = true),
      mix_csv_logger("memory.csv"), mix_terminate_on_nan());
  mix_model_fit(model, data, NULL, .validation_x = x, .validation_y = y, .validation_sample_weight = w,
                .epochs = 2, .verbose = 2, .callbacks = callbacks);
  mix_model_predict(model, data);
}

static bool draws(void) { return !strstr(mix_parts_left_out(), "drawing"); }

/* The numerics report in all its forms; a build that does not draw writes the page alone. */
static void life_with_a_report(bool mixed) {
  mix_set_global_policy(mixed ? "mixed_float16" : "float32");
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(1));
  mix_model *model = mix_model_new(
      inputs, mix_call(mix_dense(.units = 1, .no_bias = true, .kernel_initializer = "ones"), inputs));
  mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(.learning_rate = 0.125));
  mix_numerics *report =
      mix_numerics_run(model, counting(3), mix_fill(MIX_SHAPE(3, 1), NAN, F32), .steps = 2, .batch_size = 2);
  mix_numerics_table(report, true);
  mix_numerics_json(report);
  mix_numerics_write_html(report, "memory.html");
  if (draws()) mix_numerics_write_png(report, "memory.png");
}

static void check_life(void (*life)(bool mixed), bool mixed) {
  for (int64_t count = 0;; count++) {
    assert_true(count < 100000);
    mix_status status = MIX_OK;
    bool unused = false;
    MIX_SCOPE {
      mix_inject_allocation_failure(count);
      life(mixed);
      unused = mix_allocation_failure_injected();
      mix_inject_allocation_failure(-1);
      status = mix_error_take(NULL, 0);
    }
    assert_int_equal(mix_error(), MIX_OK);
    if (unused && status == MIX_OK) {
      assert_true(count > 1000); /* the number of allocations */
      return;
    }
    if (status != MIX_MEMORY_ERROR)
      fail_msg("allocation %lld failed, and the result was %s", (long long)count, mix_status_name(status));
  }
}

static void check(bool mixed) { check_life(life_of_a_model, mixed); }
static void any_allocation_may_fail_under_callbacks(void **state) {
  (void)state;
  check_life(life_with_callbacks, false);
  assert_int_equal(unlink("memory.csv"), 0); /* written by the run that completed */
  /* Losses: rows 0 and 1 give 1/2 and w = 7/8, row 2 gives 4 * 49/64 and w = 0: in all 65/48. val_loss is 0
   * from then on. */
  assert_int_equal(unlink("memory-1-1.npz"), 0);
  assert_int_not_equal(unlink("memory-2-0.npz"), 0);
}
static void any_allocation_may_fail_under_a_report(void **state) {
  (void)state;
  check_life(life_with_a_report, true);
  assert_int_equal(unlink("memory.html"), 0);
  if (draws()) assert_int_equal(unlink("memory.png"), 0);
}
static void any_allocation_may_fail_in_float32(void **state) { (void)state, check(false); }
static void any_allocation_may_fail_in_mixed_float16(void **state) { (void)state, check(true); }

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(any_allocation_may_fail_in_float32), TEST(any_allocation_may_fail_in_mixed_float16),
      TEST(any_allocation_may_fail_under_callbacks), TEST(any_allocation_may_fail_under_a_report)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
