/* Long chains of steps and steps that are used many times: work, memory and stack grow as the number of
 * steps. */
#include "data/pipeline_support.h"

#include "data/pipeline/steps.h"
#include <mixtape/ops.h>

static int64_t first_of(mix_dataset *data) {
  mix_list *element = mix_iterator_next(mix_dataset_iterate(data));
  assert_int_equal(mix_error(), MIX_OK);
  return element ? (int64_t)mix_tensor_item(mix_list_get(element, 0)) : -1;
}

/* Puts `depth` such steps around the data set, which it releases. */
static mix_dataset *nested(mix_dataset *(*step)(mix_dataset *, int64_t), mix_dataset *data, int64_t count,
                           int64_t depth) {
  for (int64_t i = 0; i < depth; i++) {
    mix_dataset *outer = NULL;
    MIX_SCOPE { outer = mix_retain(step(data, count)); }
    assert_non_null(outer);
    mix_release(data);
    data = outer;
  }
  return data;
}
static mix_dataset *started(int64_t length) {
  mix_dataset *data = NULL;
  MIX_SCOPE { data = mix_retain(mix_dataset_range(0, length, 1)); }
  return data;
}

/* A recursion for each step would need some hundred megabytes of stack. */
static void millions_of_nested_steps(void **state) {
  (void)state;
  enum { DEPTH = 2000000 };
  mix_dataset *data = nested(mix_dataset_take, started(10), 5, DEPTH);
  assert_int_equal(mix_dataset_cardinality(data), 5);
  MIX_SCOPE {
    mix_iterator *iterator = mix_dataset_iterate(data);
    for (int i = 0; i < 5; i++)
      assert_true(mix_tensor_item(mix_list_get(mix_iterator_next(iterator), 0)) == i);
    assert_null(mix_iterator_next(iterator));
  }
  mix_release(data);
  data = nested(mix_dataset_skip, started(DEPTH + 10), 1, DEPTH);
  assert_int_equal(mix_dataset_cardinality(data), 10);
  MIX_SCOPE { assert_int_equal(first_of(data), DEPTH); }
  mix_release(data);
  assert_int_equal(mix_error(), MIX_OK);
}

/* Steps that pull by a call are refused beyond a depth that every stack holds. */
static void steps_too_deep_are_an_error(void **state) {
  (void)state;
  for (int depth = 9000; depth <= 1000000; depth += 991000) {
    mix_dataset *data = nested(mix_dataset_repeat, started(3), 1, depth);
    assert_int_equal(mix_dataset_cardinality(data), 3);
    MIX_SCOPE {
      if (depth == 9000)
        assert_int_equal(first_of(data), 0);
      else
        FAILS(mix_iterator_next(mix_dataset_iterate(data)), MIX_UNSUPPORTED, "one inside the other");
    }
    mix_release(data);
  }
}

/* A data set with itself, again and again: 2^60 elements of 61 steps. */
static void a_data_set_with_itself(void **state) {
  (void)state;
  enum { TIMES = 60 };
  mix_dataset *chained = mix_dataset_range(0, 1, 1), *zipped = mix_dataset_shuffle(chained, 4);
  for (int i = 0; i < TIMES; i++) chained = mix_dataset_concatenate(chained, chained);
  assert_true(mix_dataset_cardinality(chained) == INT64_C(1) << TIMES);
  assert_int_equal(first_of(chained), 0);
  mix_steps steps = {0};
  assert_true(mix_steps_collect(&steps, chained, false));
  assert_int_equal(steps.count, TIMES + 1);
  mix_steps_clear(&steps);
  for (int i = 0; i < TIMES; i++) zipped = mix_dataset_zip(zipped, zipped);
  assert_int_equal(mix_dataset_cardinality(zipped), 1);
  assert_int_equal(mix_dataset_save_state(zipped, NULL),
                   mix_dataset_save_state(mix_dataset_shuffle(chained, 4), NULL));
  assert_true(mix_steps_collect(&steps, zipped, true));
  assert_int_equal(steps.count, TIMES + 2);
  for (int i = 0; i < steps.count - 1; i++) assert_true(steps.items[i] != steps.items[i + 1]);
  mix_steps_clear(&steps);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(millions_of_nested_steps, end),
                                     cmocka_unit_test_teardown(steps_too_deep_are_an_error, end),
                                     cmocka_unit_test_teardown(a_data_set_with_itself, end)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
