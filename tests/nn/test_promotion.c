/* The dtype in which two operands of an operation of Keras meet, for all pairs, as Keras has recorded it. */
#include "nn/support.h"

#include "nn/layers/operations/operation.h"

static const struct {
  const char *first, *second, *result;
} recorded[] = {
#include "nn/recorded/promotion.inc"
};

static void all_pairs(void **state) {
  (void)state;
  enum { DTYPES = 10, PAIRS = sizeof recorded / sizeof *recorded };
  assert_int_equal(PAIRS, DTYPES * DTYPES);
  for (int i = 0; i < PAIRS; i++) {
    const mix_dtype a = mix_dtype_from_name(recorded[i].first), b = mix_dtype_from_name(recorded[i].second);
    assert_true(a != MIX_DTYPE_NONE && b != MIX_DTYPE_NONE);
    const char *got = mix_dtype_name(mix_promoted_dtype(a, b));
    if (strcmp(got, recorded[i].result))
      fail_msg("%s and %s meet in %s; in Keras in %s", recorded[i].first, recorded[i].second, got,
               recorded[i].result);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_pairs)};
  return cmocka_run_group_tests_name("nn/promotion", tests, NULL, NULL);
}
