/* Maps of addresses and other numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/key_map.h"

static void keys_have_values(void **state) {
  (void)state;
  enum { COUNT = 5000 };
  mix_key_map map = {0};
  assert_int_equal(mix_key_map_get(&map, 0), -1);
  for (int i = 0; i < COUNT; i++) assert_true(mix_key_map_set(&map, (uint64_t)i << 20, i));
  for (int i = 0; i < COUNT; i++) {
    assert_int_equal(mix_key_map_get(&map, (uint64_t)i << 20), i);
    assert_int_equal(mix_key_map_get(&map, ((uint64_t)i << 20) + 1), -1);
  }
  assert_true(mix_key_map_set(&map, 0, 7));
  assert_int_equal(mix_key_map_get(&map, 0), 7);
  assert_int_equal(map.key_count, COUNT);
  mix_key_map_clear(&map);
  assert_int_equal(mix_key_map_get(&map, 0), -1);
}

static void memory_runs_out(void **state) {
  (void)state;
  mix_key_map map = {0};
  mix_inject_allocation_failure(0);
  assert_false(mix_key_map_set(&map, 1, 1));
  mix_inject_allocation_failure(-1);
  assert_int_equal(mix_error(), MIX_MEMORY_ERROR);
  mix_error_clear();
  assert_int_equal(mix_key_map_get(&map, 1), -1);
  mix_key_map_clear(&map);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(keys_have_values), cmocka_unit_test(memory_runs_out)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
