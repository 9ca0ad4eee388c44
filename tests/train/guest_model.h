/* A small model under mixed_float16, whose first steps overflow and are skipped, for tests of what the
 * library does to the program that it is in. Include cmocka.h first. */
#ifndef TESTS_TRAIN_GUEST_MODEL_H
#define TESTS_TRAIN_GUEST_MODEL_H

#include "support/folder.h"
#include <mixtape/mixtape.h>

enum { GUEST_ROWS = 64, GUEST_INPUTS = 20, GUEST_UNITS = 24, GUEST_WEIGHTS = GUEST_INPUTS * GUEST_UNITS };

/* Of integers: they are the same however the host program rounds. */
static mix_tensor *guest_array(int64_t columns, int first) {
  static float values[GUEST_ROWS * GUEST_INPUTS];
  for (int i = 0; i < GUEST_ROWS * columns; i++) values[i] = (float)((first + 37 * i) % 101 - 50) / 32;
  return mix_tensor_from(values, MIX_FLOAT32, MIX_SHAPE(GUEST_ROWS, columns));
}

/* Trains, predicts, saves and loads, checkpoints too; the first kernel goes to `kernel`. Fails the test on an
 * error. */
static void guest_train(float kernel[GUEST_WEIGHTS]) {
  mix_scope *scope = mix_scope_begin();
  mix_set_seed(7);
  mix_set_global_policy("mixed_float16");
  mix_model *model = mix_sequential(mix_list_of(mix_dense(GUEST_UNITS, "relu"), mix_dense(1)));
  mix_model_compile(model,
                    .optimizer = mix_loss_scale_optimizer(mix_adam(0.01), .initial_scale = 0x1p40,
                                                          .dynamic_growth_steps = 10),
                    .loss = "mse");
  mix_tensor *x = guest_array(GUEST_INPUTS, 0), *y = guest_array(1, 1);
  mix_history *history = mix_model_fit(model, x, y, .epochs = 12, .batch_size = 16, .verbose = MIX_SILENT);
  if (!history) fail_msg("%s", mix_error_message());
  if (mix_model_save(model, in_folder("guest.keras"))) fail_msg("%s", mix_error_message());
  mix_checkpoint *checkpoint = mix_checkpoint_new(NULL, .model = model);
  mix_tensor *bytes = mix_checkpoint_to_memory(checkpoint, 3, NULL);
  if (!bytes) fail_msg("%s", mix_error_message());
  const size_t size = (size_t)mix_shape_size(mix_tensor_shape(bytes));
  assert_int_equal(mix_checkpoint_from_memory(checkpoint, mix_tensor_data(bytes), size, NULL), 3);
  mix_model *again = mix_model_load(in_folder("guest.keras"));
  if (!again || !mix_model_predict(again, x)) fail_msg("%s", mix_error_message());
  mix_variable *first = mix_list_get(mix_model_weights(again), 0);
  mix_tensor_read(mix_variable_value(first), MIX_FLOAT32, kernel, GUEST_WEIGHTS);
  if (mix_error()) fail_msg("%s", mix_error_message());
  mix_scope_end(scope);
}

#endif
