/* Values that are divided among ranks: who has which rows, shapes, and errors. What ranks exchange is tested
 * with ranks (tests/distribute/test_mpi_shard.c). */
#include "support.h"

#include "ops/collective.h"
#include <mixtape/status.h>

/* Every row has one rank, shares follow each other, and begin at whole packets of eight elements. */
static void shares_cover_all_rows(void **state) {
  (void)state;
  for (int64_t rows = 0; rows < 70; rows++)
    for (int64_t row_size = 1; row_size < 20; row_size++)
      for (int ranks = 2; ranks < 6; ranks++) {
        const mix_division d = {MIX_BY_ROWS, rows, row_size};
        assert_int_equal(mix_division_row(&d, ranks, 0), 0);
        assert_int_equal(mix_division_row(&d, ranks, ranks), rows);
        for (int r = 0; r < ranks; r++) {
          assert_true(mix_division_rows(&d, ranks, r) >= mix_division_reaches(&d, ranks));
          assert_int_equal(mix_division_begin(&d, ranks, r) % 8, 0);
        }
      }
}

static void an_owner_has_all_rows(void **state) {
  (void)state;
  const mix_division d = mix_division_of(MIX_SHAPE(5, 3), 1), scalar = mix_division_of(MIX_SHAPE(), 2);
  for (int r = 0; r < 3; r++) {
    assert_int_equal(mix_division_rows(&d, 3, r), r == 1 ? 5 : 0);
    assert_int_equal(mix_division_rows(&scalar, 3, r), r == 2);
    assert_int_equal(mix_division_begin(&d, 3, r), r > 1 ? 15 : 0);
  }
}

static void assert_shape(mix_tensor *x, mix_shape shape) {
  if (!x) fail_msg("%s", mix_error_message());
  assert_true(mix_shape_equal(mix_tensor_shape(x), shape));
}

static void shapes_are_those_of_the_shares(void **state) {
  (void)state;
  mix_tensor *x = mix_fill(MIX_SHAPE(17, 4), 1, MIX_BFLOAT16);
  const mix_division by_rows = mix_division_of(mix_tensor_shape(x), MIX_BY_ROWS);
  const mix_division owned = mix_division_of(mix_tensor_shape(x), 1);
  for (int r = 0; r < 2; r++) {
    mix_tensor *pending = mix_reduce_scatter_start(x, by_rows, r, 2);
    assert_shape(pending, MIX_SHAPE(17, 4));
    mix_tensor *own = mix_reduce_scatter_done(pending);
    assert_shape(own, MIX_SHAPE(r ? 9 : 8, 4));
    assert_shape(mix_collect_shares(own, MIX_SHAPE(17, 4), by_rows, r, 2), MIX_SHAPE(17, 4));
    own = mix_reduce_scatter_done(mix_reduce_scatter_start(x, owned, r, 2));
    assert_shape(own, r ? MIX_SHAPE(17, 4) : MIX_SHAPE());
    assert_shape(mix_collect_shares(own, MIX_SHAPE(17, 4), owned, r, 2), MIX_SHAPE(17, 4));
  }
}

static void assert_refused(mix_tensor *x, const char *text) {
  assert_null(x);
  assert_int_equal(mix_error(), MIX_VALUE_ERROR);
  if (!strstr(mix_error_message(), text)) fail_msg("%s", mix_error_message());
  mix_error_clear();
}

static void what_does_not_fit_is_refused(void **state) {
  (void)state;
  mix_tensor *x = mix_fill(MIX_SHAPE(6, 4), 1, MIX_FLOAT32);
  const mix_division by_rows = mix_division_of(mix_tensor_shape(x), MIX_BY_ROWS);
  assert_refused(mix_reduce_scatter_start(x, mix_division_of(MIX_SHAPE(6, 4), 2), 0, 2),
                 "not one of the ranks");
  assert_refused(mix_reduce_scatter_start(x, by_rows, 2, 2), "not one of the ranks");
  assert_refused(mix_reduce_scatter_start(x, by_rows, 0, 4), "too few rows"); /* two rows make a packet */
  assert_refused(mix_collect_shares(x, MIX_SHAPE(6, 4), by_rows, 0, 2), "is not this rank's share");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(shares_cover_all_rows),
      TEST(an_owner_has_all_rows),
      TEST(shapes_are_those_of_the_shares),
      TEST(what_does_not_fit_is_refused),
  };
  return cmocka_run_group_tests_name("divided", tests, NULL, NULL);
}
