/* float8 by a plug-in: the same casts as on the CPU, through StableHLO's f8E4M3FN and f8E5M2. */
/* Holds docs/NUMERICS.md: The device xla. */
#include "compile/support.h"
#include "support/xla.h"

#include "backend/float8_casts.h"

static int begin_xla(void **state) {
  if (begin_test(state)) return 1;
  if (xla_device()) mix_set_device(xla_device());
  return mix_error() != MIX_OK;
}
#define XLA(function) cmocka_unit_test_setup_teardown(function, begin_xla, end_test)

static void casts_to_float8(void **state) {
  (void)state;
  XLA_OR_SKIP();
  check_float8_casts();
}

static void casts_from_float8(void **state) {
  (void)state;
  XLA_OR_SKIP();
  check_every_float8_code();
}

int main(void) {
  const struct CMUnitTest tests[] = {XLA(casts_to_float8), XLA(casts_from_float8)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
