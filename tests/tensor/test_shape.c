/* Shape arithmetic: sizes, broadcasting, texts. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tensor/shape.h"

#include <string.h>

static const int64_t U = MIX_UNKNOWN;

static void sizes(void **state) {
  (void)state;
  assert_int_equal(mix_shape_size(MIX_SCALAR), 1);
  assert_int_equal(mix_shape_size(MIX_SHAPE(2, 3, 4)), 24);
  assert_int_equal(mix_shape_size(MIX_SHAPE(2, 0, 4)), 0);
  assert_int_equal(mix_shape_size(MIX_SHAPE(U, 3)), MIX_UNKNOWN);
  assert_int_equal(mix_shape_size(MIX_SHAPE(INT64_MAX, 3, 7)), INT64_MAX);
  assert_true(mix_shape_is_known(MIX_SCALAR));
  assert_true(mix_shape_is_known(MIX_SHAPE(5, 0)));
  assert_false(mix_shape_is_known(MIX_SHAPE(5, U)));
}

static void checked_sizes(void **state) {
  (void)state;
  const int64_t limit = INT64_MAX / 8; /* elements of float64 whose bytes fit */
  assert_int_equal(mix_shape_checked_size(MIX_SCALAR), 1);
  assert_int_equal(mix_shape_checked_size(MIX_SHAPE(8192, 784)), 8192 * 784);
  assert_int_equal(mix_shape_checked_size(MIX_SHAPE(3, 0)), 0);
  assert_int_equal(mix_shape_checked_size(MIX_SHAPE(limit)), limit);
  assert_int_equal(mix_shape_checked_size(MIX_SHAPE(limit + 1)), -1);
  assert_int_equal(mix_shape_checked_size(MIX_SHAPE(INT64_C(1) << 31, INT64_C(1) << 31)), -1);
  assert_int_equal(mix_shape_checked_size(MIX_SHAPE(0, INT64_MAX, INT64_MAX)),
                   -1); /* its strides would overflow */
  assert_int_equal(mix_shape_checked_size(MIX_SHAPE(U, 3)), -1);
  assert_int_equal(mix_shape_checked_size(MIX_SHAPE(2, -5)), -1);
  assert_int_equal(mix_shape_checked_size((mix_shape){.rank = 9}), -1);
  assert_int_equal(mix_shape_checked_size((mix_shape){.rank = -1}), -1);
  assert_int_equal(mix_value_bytes(MIX_FLOAT16, MIX_SHAPE(3, 5)), 30);
  assert_int_equal(mix_value_bytes(MIX_FLOAT64, MIX_SCALAR), 8);
  assert_int_equal(mix_value_bytes(MIX_BOOL, MIX_SHAPE(0)), 0);
  assert_int_equal(mix_value_bytes(MIX_FLOAT32, MIX_SHAPE(U)), 0);
}

static void equal_and_compatible(void **state) {
  (void)state;
  mix_shape a = MIX_SHAPE(2, 3), beyond = a;
  beyond.dims[5] = 77; /* dimensions beyond the rank are ignored */
  assert_true(mix_shape_equal(a, beyond));
  assert_false(mix_shape_equal(a, MIX_SHAPE(2, 3, 1)));
  assert_false(mix_shape_equal(a, MIX_SHAPE(3, 2)));
  assert_true(mix_shape_equal(MIX_SCALAR, MIX_SCALAR));
  assert_true(mix_shape_equal(MIX_SHAPE(U, 3), MIX_SHAPE(U, 3)));
  assert_false(mix_shape_equal(MIX_SHAPE(U, 3), a));
  assert_true(mix_shape_compatible(MIX_SHAPE(U, 3), a));
  assert_true(mix_shape_compatible(a, MIX_SHAPE(U, U)));
  assert_false(mix_shape_compatible(MIX_SHAPE(U, 4), a));
  assert_false(mix_shape_compatible(MIX_SHAPE(U), a));
}

static void assert_broadcast(mix_shape a, mix_shape b, mix_shape expected) {
  mix_shape result = MIX_SHAPE(99);
  assert_true(mix_shape_broadcast(a, b, &result));
  assert_true(mix_shape_equal(result, expected));
  assert_true(mix_shape_broadcast(b, a, &result));
  assert_true(mix_shape_equal(result, expected));
  assert_true(mix_shape_broadcasts_to(a, expected));
  assert_true(mix_shape_broadcasts_to(b, expected));
}

static void assert_no_broadcast(mix_shape a, mix_shape b) {
  mix_shape result = MIX_SHAPE(99);
  assert_false(mix_shape_broadcast(a, b, &result));
  assert_false(mix_shape_broadcast(b, a, &result));
  assert_true(mix_shape_equal(result, MIX_SHAPE(99))); /* untouched */
}

static void broadcasting(void **state) {
  (void)state;
  assert_broadcast(MIX_SCALAR, MIX_SCALAR, MIX_SCALAR);
  assert_broadcast(MIX_SCALAR, MIX_SHAPE(2, 3), MIX_SHAPE(2, 3));
  assert_broadcast(MIX_SHAPE(3), MIX_SHAPE(2, 3), MIX_SHAPE(2, 3));
  assert_broadcast(MIX_SHAPE(2, 1), MIX_SHAPE(1, 3), MIX_SHAPE(2, 3));
  assert_broadcast(MIX_SHAPE(8, 1, 6, 1), MIX_SHAPE(7, 1, 5),
                   MIX_SHAPE(8, 7, 6, 5)); /* NumPy's own example */
  assert_broadcast(MIX_SHAPE(1, 0), MIX_SHAPE(4, 1), MIX_SHAPE(4, 0));
  assert_no_broadcast(MIX_SHAPE(2), MIX_SHAPE(3));
  assert_no_broadcast(MIX_SHAPE(2, 3), MIX_SHAPE(2, 1, 2));
  assert_no_broadcast(MIX_SHAPE(0), MIX_SHAPE(2));
  assert_true(mix_shape_broadcast(MIX_SHAPE(2), MIX_SHAPE(1), NULL));
  assert_false(mix_shape_broadcast((mix_shape){.rank = 9}, MIX_SHAPE(1), NULL));
  int64_t d[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  mix_shape full = {.rank = 8};
  memcpy(full.dims, d, sizeof d);
  assert_broadcast(full, MIX_SHAPE(7, 1), full);
}

static void broadcasting_unknown_dimensions(void **state) {
  (void)state;
  assert_broadcast(MIX_SHAPE(U, 3), MIX_SHAPE(3), MIX_SHAPE(U, 3));
  assert_broadcast(MIX_SHAPE(U), MIX_SHAPE(1), MIX_SHAPE(U));
  assert_broadcast(MIX_SHAPE(U), MIX_SHAPE(5), MIX_SHAPE(5));
  assert_broadcast(MIX_SHAPE(U), MIX_SHAPE(0), MIX_SHAPE(0));
  assert_broadcast(MIX_SHAPE(U, 1), MIX_SHAPE(U, 4), MIX_SHAPE(U, 4));
  assert_no_broadcast(MIX_SHAPE(U, 3), MIX_SHAPE(U, 4));
}

static void broadcasting_to(void **state) {
  (void)state;
  assert_true(mix_shape_broadcasts_to(MIX_SHAPE(3), MIX_SHAPE(2, 3)));
  assert_true(mix_shape_broadcasts_to(MIX_SHAPE(1, 3), MIX_SHAPE(2, 3)));
  assert_false(mix_shape_broadcasts_to(MIX_SHAPE(2, 3), MIX_SHAPE(3)));
  assert_false(mix_shape_broadcasts_to(MIX_SHAPE(2, 3), MIX_SHAPE(1, 3)));
  assert_false(mix_shape_broadcasts_to(MIX_SHAPE(2), MIX_SHAPE(2, 3)));
  assert_true(mix_shape_broadcasts_to(MIX_SHAPE(U), MIX_SHAPE(2, 3)));
}

static void axes(void **state) {
  (void)state;
  for (int axis = 0; axis < 4; axis++) {
    assert_int_equal(mix_axis_normal(axis, 4), axis);
    assert_int_equal(mix_axis_normal(axis - 4, 4), axis);
  }
  assert_int_equal(mix_axis_normal(4, 4), -1);
  assert_int_equal(mix_axis_normal(-5, 4), -1);
  assert_int_equal(mix_axis_normal(0, 0), -1);
}

static void texts(void **state) {
  (void)state;
  char text[160];
  assert_string_equal(mix_shape_text(MIX_SCALAR, text, sizeof text), "()");
  assert_string_equal(mix_shape_text(MIX_SHAPE(784), text, sizeof text), "(784)");
  assert_string_equal(mix_shape_text(MIX_SHAPE(128, 784), text, sizeof text), "(128, 784)");
  assert_string_equal(mix_shape_text(MIX_SHAPE(U, 28, 28, U), text, sizeof text), "(None, 28, 28, None)");
  assert_string_equal(mix_shape_text(MIX_SHAPE(3, -7), text, sizeof text), "(3, -7)");
  assert_string_equal(mix_shape_text((mix_shape){.rank = 12}, text, sizeof text), "(a shape of rank 12)");
  char small[6];
  assert_string_equal(mix_shape_text(MIX_SHAPE(128, 784), small, sizeof small), "(128,");
  assert_string_equal(mix_shape_text(MIX_SHAPE(128, 784), small, 1), "");
  assert_string_equal(mix_shape_text(MIX_SHAPE(128, 784), small, 0), "");
  assert_ptr_equal(mix_shape_text(MIX_SCALAR, text, sizeof text), text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sizes),
      cmocka_unit_test(checked_sizes),
      cmocka_unit_test(equal_and_compatible),
      cmocka_unit_test(broadcasting),
      cmocka_unit_test(broadcasting_unknown_dimensions),
      cmocka_unit_test(broadcasting_to),
      cmocka_unit_test(axes),
      cmocka_unit_test(texts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
