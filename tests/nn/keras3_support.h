/* Tests under the semantics of Keras 3. */
#pragma once

#include "nn/sines.h"

static int fresh_keras3(void **state) {
  const int failed = fresh(state);
  mix_set_semantics("keras3");
  return failed;
}
#undef TEST
#define TEST(function) cmocka_unit_test_setup_teardown(function, fresh_keras3, finish)
