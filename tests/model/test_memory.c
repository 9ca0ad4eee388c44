/* Every allocation of a model's life made to fail, one after the other: an ordinary error, nothing leaked (the sanitizers look), nothing left behind. */
#include "model/support.h"

#include "base/alloc.h"

static void life_of_a_model(bool mixed) {
  mix_set_global_policy(mixed ? "mixed_float16" : "float32");
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(3));
  mix_tensor *x = mix_call(mix_dense(.units = 4, .activation = "relu"), inputs);
  mix_model *model = mix_model_new(inputs, mix_call(mix_activation("softmax", .dtype = "float32"), x));
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy", .optimizer = mix_adam(.learning_rate = 0.01),
                    .metrics = {"accuracy"});
  mix_tensor *data = mix_fill(MIX_SHAPE(5, 3), 0.5, F32), *y = mix_fill(MIX_SHAPE(5), 1, MIX_INT64);
  mix_model_fit(model, data, y, .batch_size = 2, .validation_split = 0.4, .verbose = 2, .class_weight_count = mixed ? 2 : 0,
                .class_labels = {0, 1}, .class_weights = {1, 2});
  mix_model_predict(model, data);
  mix_model_summary(model);
  mix_model_set_weights(model, mix_model_get_weights(model));
}

static void check(bool mixed) {
  for (int64_t count = 0;; count++) {
    assert_true(count < 100000);
    mix_status status = MIX_OK;
    bool unused = false;
    MIX_SCOPE {
      mix_inject_allocation_failure(count);
      life_of_a_model(mixed);
      unused = mix_allocation_failure_injected();
      mix_inject_allocation_failure(-1);
      status = mix_error_take(NULL, 0);
    }
    assert_int_equal(mix_error(), MIX_OK);
    if (unused && status == MIX_OK) {
      assert_true(count > 1000); /* so many there are */
      return;
    }
    if (status != MIX_MEMORY_ERROR)
      fail_msg("allocation %lld failed, and the result was %s", (long long)count, mix_status_name(status));
  }
}

static void any_allocation_may_fail_in_float32(void **state) { (void)state, check(false); }
static void any_allocation_may_fail_in_mixed_float16(void **state) { (void)state, check(true); }

int main(void) {
  const struct CMUnitTest tests[] = {TEST(any_allocation_may_fail_in_float32), TEST(any_allocation_may_fail_in_mixed_float16)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
