/* A model whose step is short beside its wide rows, for tests of the threads that bring them. */
#pragma once

#include "model/support.h"

/* Plans of one thread leave the other cores free. */
static mix_model *wide_model(void) {
  mix_set_threads(1);
  mix_model *model = mix_sequential(
      mix_list_of(mix_dense(.units = 1, .kernel_initializer_object = mix_initializer_new("zeros"))));
  assert_int_equal(mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(.learning_rate = 1e-6)),
                   MIX_OK);
  return model;
}
