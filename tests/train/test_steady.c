/* Steps of fit in a steady epoch allocate nothing: handles are recycled, also those that a thread of the
 * input makes and the step releases, and buffers are filled again. tests/backend/xla/test_late.c has it for a
 * device with memory of its own. */
#include "model/support.h"

#include "base/alloc.h"
#include "base/ended_object.h"
#include "support/sanitizer.h"
#include "support/skip.h"
#include <mixtape/callback.h>
#include <mixtape/dataset.h>

enum { ROWS = 480, COLUMNS = 12, BATCH = 4, STEPS = ROWS / BATCH, EPOCHS = 12 };

/* Allocations until the end of each step of the last epoch. */
static uint64_t allocations[STEPS];
static mix_status count(void *context, mix_model *model, int64_t step, mix_logs *logs) {
  (void)context, (void)model, (void)logs;
  allocations[step] = mix_inject_allocation_failure(-1);
  return MIX_OK;
}

static mix_callback *counter(void) {
  return mix_callback_new(.name = "counter", .on_train_batch_end = count, .no_batch_logs = true);
}

static void assert_steady(uint64_t most) {
  if (UNDER_ADDRESS_SANITIZER || mix_keeps_handles()) SKIP("handles are not recycled");
  assert_true(allocations[0] > 0);
  assert_in_range(allocations[STEPS - 1] - allocations[STEPS / 2], 0, most);
}

static mix_tensor *values_of(int columns) {
  double values[ROWS * COLUMNS];
  for (int i = 0; i < ROWS * columns; i++) values[i] = (i * 37 + i / 7) % 101 / 50.0 - 1;
  return mix_tensor_from_doubles(values, MIX_FLOAT32, MIX_SHAPE(ROWS, columns));
}

static mix_model *new_model(void) {
  mix_model *model = mix_sequential(mix_list_of(mix_dense(7, .activation = "relu"), mix_dense(1)));
  mix_model_compile(model, .optimizer = mix_adam(), .loss = "mse", .metrics = {"mae"});
  return model;
}

static void fit(uint64_t most, mix_fit_options options) {
  MIX_SCOPE {
    options.size = sizeof options;
    options.epochs = EPOCHS;
    options.quiet = options.verbose == 0;
    options.callbacks = mix_list_of(counter());
    assert_non_null(mix_model_fit_with(new_model(), &options));
  }
  assert_steady(most);
}
#define FIT(most, ...) fit(most, (mix_fit_options){__VA_ARGS__})

static void arrays(void **state) {
  (void)state;
  FIT(0, .x = values_of(COLUMNS), .y = values_of(1), .batch_size = BATCH);
}
static void a_16_bit_policy(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  FIT(0, .x = values_of(COLUMNS), .y = values_of(1), .batch_size = BATCH);
  mix_set_global_policy("float32");
}
static void sample_weights_and_validation(void **state) {
  (void)state;
  FIT(0, .x = values_of(COLUMNS), .y = values_of(1), .sample_weight = values_of(1), .batch_size = BATCH,
      .validation_x = values_of(COLUMNS), .validation_y = values_of(1));
}
static mix_dataset *batches(void) {
  mix_dataset *rows = mix_dataset_from_tensors(values_of(COLUMNS), values_of(1));
  return mix_dataset_batch(mix_dataset_shuffle(rows, 50), BATCH);
}
static void a_data_set(void **state) {
  (void)state;
  FIT(0, .x = batches());
}
/* Its threads take another buffer where more wait than ever before, as often as the machine's load decides.
 * Handles would be 9 a step: half of them is refused. */
static void a_data_set_that_is_prefetched(void **state) {
  (void)state;
  FIT(9 * (STEPS / 2) / 2, .x = mix_dataset_prefetch(batches(), 2));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(arrays),
      TEST(a_16_bit_policy),
      TEST(sample_weights_and_validation),
      TEST(a_data_set),
      TEST(a_data_set_that_is_prefetched),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
