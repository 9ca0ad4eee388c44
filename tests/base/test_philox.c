/* Philox 4x32-10 against the known answers of Random123 (kat_vectors, philox4x32 10), and seeds derived with
 * it. */
/* Holds docs/NUMERICS.md: Random numbers. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/philox.h"

#include <mixtape/random.h>
#include <math.h>
#include <string.h>

static void assert_block(mix_philox block, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  assert_int_equal(block.v[0], a);
  assert_int_equal(block.v[1], b);
  assert_int_equal(block.v[2], c);
  assert_int_equal(block.v[3], d);
}

static void known_answers(void **state) {
  (void)state;
  assert_block(mix_philox_block(0, 0, 0), 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8);
  assert_block(mix_philox_block(UINT64_MAX, UINT64_MAX, UINT64_MAX), 0x408f276d, 0x41c83b0e, 0xa20bc7c6,
               0x6d5451fd);
  /* counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0 */
  assert_block(mix_philox_block(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88), 0xd16cfe09,
               0x94fdcceb, 0x5001e420, 0x24126ea1);
}

static void words_are_those_of_the_blocks(void **state) {
  (void)state;
  for (uint64_t i = 0; i < 40; i++)
    assert_int_equal(mix_philox_word(5, 6, i), mix_philox_block(5, 6, i / 4).v[i % 4]);
}

static void seeds_follow_from_seed_and_creation_number(void **state) {
  (void)state;
  uint64_t first[50], again[50], other[50];
  uint64_t state_of_42[2];
  mix_set_seed(42);
  mix_seed_state(state_of_42);
  assert_int_equal(state_of_42[0], 42);
  assert_int_equal(state_of_42[1], 0);
  for (int i = 0; i < 50; i++) first[i] = mix_next_seed();
  mix_set_seed(42);
  for (int i = 0; i < 50; i++) again[i] = mix_next_seed();
  mix_set_seed(43);
  for (int i = 0; i < 50; i++) other[i] = mix_next_seed();
  assert_memory_equal(first, again, sizeof first);
  for (int i = 0; i < 50; i++)
    for (int j = 0; j < 50; j++) {
      assert_true(i == j || first[i] != first[j]);
      assert_true(first[i] != other[j]);
    }
}

static void below_stays_below_and_advances(void **state) {
  (void)state;
  const uint64_t limits[] = {1, 2, 3, 10, 60000, UINT64_C(1) << 63, (UINT64_C(1) << 63) + 1, UINT64_MAX};
  uint64_t position = 0;
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
    for (int j = 0; j < 1000; j++) {
      uint64_t before = position;
      assert_true(mix_philox_below(1, 2, &position, limits[i]) < limits[i]);
      assert_true(position > before);
    }
  uint64_t here = 12, there = 12;
  for (int j = 0; j < 100; j++)
    assert_int_equal(mix_philox_below(1, 2, &here, 1000), mix_philox_below(1, 2, &there, 1000));
  assert_int_equal(here, there);
  assert_int_equal(mix_philox_below(1, 2, &here, 0), 0);
}

/* Chi-square over 10 cells with 100,000 draws: 9 degrees of freedom. 27.88 is exceeded with probability
 * 0.001; the seed is fixed. */
static void below_is_uniform(void **state) {
  (void)state;
  int counts[10] = {0};
  uint64_t position = 0;
  for (int i = 0; i < 100000; i++) counts[mix_philox_below(7, 0, &position, 10)]++;
  double chi = 0;
  for (int i = 0; i < 10; i++) chi += (counts[i] - 1e4) * (counts[i] - 1e4) / 1e4;
  assert_true(chi < 27.88);
}

/* For n = 3*2^62 a method without redraws makes a third of the numbers twice as likely (1/2 instead of 1/3):
 * a remainder the lowest third, a product the multiples of 3. With 10,000 draws the standard deviation of a
 * share is 0.0047; five of them are allowed. */
static void below_is_unbiased_for_large_limits(void **state) {
  (void)state;
  uint64_t position = 0, n = UINT64_C(3) << 62;
  int low = 0, multiples = 0;
  for (int i = 0; i < 10000; i++) {
    uint64_t x = mix_philox_below(8, 0, &position, n);
    low += x < n / 3;
    multiples += x % 3 == 0;
  }
  assert_true(fabs(low / 1e4 - 1.0 / 3) < 5 * 0.0047);
  assert_true(fabs(multiples / 1e4 - 1.0 / 3) < 5 * 0.0047);
}

/* As in the paper, with the division. */
static uint64_t below_by_division(uint64_t key, uint64_t counter, uint64_t *position, uint64_t n) {
  for (uint64_t threshold = -n % n;;) {
    const uint64_t low = mix_philox_word(key, counter, *position),
                   high = mix_philox_word(key, counter, *position + 1);
    *position += 2;
    const unsigned __int128 product = (unsigned __int128)(low | high << 32) * n;
    if ((uint64_t)product >= threshold) return (uint64_t)(product >> 64);
  }
}

static void draws_are_those_of_the_paper(void **state) {
  (void)state;
  static const uint64_t limits[] = {1, 2, 3, 10, 60000, 1ull << 32, 3ull << 61, (1ull << 63) + 1, UINT64_MAX};
  for (size_t l = 0; l < sizeof limits / sizeof *limits; l++) {
    uint64_t here = 0, there = 0;
    for (int i = 0; i < 1000; i++) {
      assert_true(mix_philox_below(9, l, &here, limits[l]) == below_by_division(9, l, &there, limits[l]));
      assert_true(here == there);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(known_answers),
      cmocka_unit_test(words_are_those_of_the_blocks),
      cmocka_unit_test(seeds_follow_from_seed_and_creation_number),
      cmocka_unit_test(below_stays_below_and_advances),
      cmocka_unit_test(below_is_uniform),
      cmocka_unit_test(below_is_unbiased_for_large_limits),
      cmocka_unit_test(draws_are_those_of_the_paper),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
