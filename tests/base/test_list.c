/* Lists of objects. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/object.h"

static int finalized;
static void count_finalize(void *object) {
  (void)object;
  finalized++;
}
static const mix_class thing_class = {.name = "thing", .finalize = count_finalize};

static void *thing(void) { return mix_scoped(mix_object_new(sizeof(mix_object), &thing_class)); }

static int begin(void **state) {
  (void)state;
  finalized = 0;
  return 0;
}

static int end(void **state) {
  (void)state;
  mix_inject_allocation_failure(-1);
  mix_error_clear();
  mix_shutdown();
  return 0;
}

static void assert_error(mix_status status) {
  assert_int_equal(mix_error(), status);
  mix_error_clear();
}

static void lists_hold_and_retain(void **state) {
  (void)state;
  mix_list *list = NULL;
  MIX_SCOPE {
    void *a = thing(), *b = thing();
    list = mix_retain(mix_list_of(a, NULL, b));
    assert_int_equal(mix_list_count(list), 3);
    assert_ptr_equal(mix_list_get(list, 0), a);
    assert_null(mix_list_get(list, 1));
    assert_ptr_equal(mix_list_get(list, 2), b);
    assert_ptr_equal(mix_list_items(list)[2], b);
    assert_int_equal(mix_references(a), 2);
  }
  assert_int_equal(finalized, 0);
  assert_int_equal(mix_error(), MIX_OK); /* a missing item is no error */
  mix_release(list);
  assert_int_equal(finalized, 2);
}

static void lists_may_be_empty_and_grow(void **state) {
  (void)state;
  mix_list *list = mix_list_new(0, NULL);
  assert_non_null(list);
  assert_int_equal(mix_list_count(list), 0);
  void *items[100];
  for (int i = 0; i < 100; i++)
    assert_int_equal(mix_list_append(list, items[i] = i % 7 ? thing() : NULL), MIX_OK);
  assert_int_equal(mix_list_count(list), 100);
  assert_memory_equal(mix_list_items(list), items, sizeof items);
}

static void lists_of_lists(void **state) {
  (void)state;
  mix_list *list = NULL;
  MIX_SCOPE { list = mix_retain(mix_list_of(mix_list_of(thing()), mix_list_of(thing(), thing()))); }
  assert_int_equal(finalized, 0);
  assert_int_equal(mix_list_count(mix_list_get(list, 1)), 2);
  mix_release(list);
  assert_int_equal(finalized, 3);
}

static void misuse_is_an_error(void **state) {
  (void)state;
  mix_list *list = mix_list_of(thing(), thing());
  const int outside[] = {-1, 2, 1000};
  for (int i = 0; i < 3; i++) {
    assert_null(mix_list_get(list, outside[i]));
    assert_error(MIX_VALUE_ERROR);
  }
  assert_null(mix_list_new(-1, NULL));
  assert_error(MIX_VALUE_ERROR);
  assert_null(mix_list_new(2, NULL));
  assert_error(MIX_VALUE_ERROR);
  assert_null(mix_list_get(NULL, 0));
  assert_error(MIX_TYPE_ERROR);
  assert_null(mix_list_get(thing(), 0));
  assert_error(MIX_TYPE_ERROR);
  assert_int_equal(mix_list_append(NULL, list), MIX_TYPE_ERROR);
  assert_error(MIX_TYPE_ERROR);
  assert_int_equal(mix_list_append(list, list), MIX_VALUE_ERROR);
  assert_error(MIX_VALUE_ERROR);
  assert_int_equal(mix_list_count(list), 2);
  assert_int_equal(mix_list_count(NULL), 0);
  assert_null(mix_list_items(NULL));
  assert_int_equal(mix_error(), MIX_OK);
}

static void a_pending_error_stops_making_but_not_reading(void **state) {
  (void)state;
  void *item = thing();
  mix_list *list = mix_list_of(item);
  mix_fail(MIX_BUSY, "pending");
  assert_null(mix_list_of(item));
  assert_int_equal(mix_list_append(list, item), MIX_BUSY);
  assert_int_equal(mix_list_count(list), 1);
  assert_ptr_equal(mix_list_get(list, 0), item);
  assert_string_equal(mix_error_message(), "pending");
}

static void failed_allocations_leak_nothing(void **state) {
  (void)state;
  bool complete = false;
  for (int k = 0; !complete; k++) {
    assert_in_range(k, 0, 50);
    MIX_SCOPE {
      void *item = thing();
      mix_shutdown();
      mix_inject_allocation_failure(k);
      mix_list *list = mix_list_of(item, item);
      for (int i = 0; list && i < 40; i++) mix_list_append(list, item);
      mix_inject_allocation_failure(-1);
      complete = mix_error() == MIX_OK;
      if (complete)
        assert_int_equal(mix_list_count(list), 42);
      else
        assert_error(MIX_MEMORY_ERROR);
    }
    assert_int_equal(finalized, k + 1);
  }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(lists_hold_and_retain),
      TEST(lists_may_be_empty_and_grow),
      TEST(lists_of_lists),
      TEST(misuse_is_an_error),
      TEST(a_pending_error_stops_making_but_not_reading),
      TEST(failed_allocations_leak_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
