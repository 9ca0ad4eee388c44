/* Pipeline steps without threads: order, values and cardinality of each, as in tf.data. */
#include "data/pipeline_support.h"

#include <mixtape/ops.h>
#include <stdlib.h>

static int released;
static void count_release(void *context) { released += *(int *)context; }

/* ---- map and filter ---- */

static mix_list *square(void *context, mix_list *element) {
  (void)context;
  return mix_list_of(integer(value_of(element, 0) * value_of(element, 0)));
}
static mix_list *lazily_doubled(void *context, mix_list *element) {
  (void)context;
  mix_tensor *x = mix_list_get(element, 0);
  return mix_list_of(x, mix_add(x, x)); /* lazy */
}
static mix_list *same(void *context, mix_list *element) {
  (void)context;
  return element;
}
static bool is_odd(void *context, mix_list *element) {
  if (context) ++*(int *)context;
  return value_of(element, 0) % 2 != 0;
}

static void map_applies_the_function_to_each_element(void **state) {
  (void)state;
  FOR_EACH_SOURCE(from) {
    assert_string_equal(elements(mix_dataset_map(from(5), square), 9), "0 1 4 9 16");
    assert_string_equal(elements(mix_dataset_map(from(4), lazily_doubled), 9), "0:0 1:2 2:4 3:6");
    assert_string_equal(elements(mix_dataset_batch(mix_dataset_map(from(4), same), 3), 9), "[0 1 2] [3]");
    assert_string_equal(
        elements(mix_dataset_map(mix_dataset_map(from(3), lazily_doubled), lazily_doubled), 9),
        "0:0 1:2 2:4");
    assert_int_equal(mix_dataset_cardinality(mix_dataset_map(from(5), square)), 5);
  }
  assert_int_equal(mix_dataset_cardinality(mix_dataset_map(mix_dataset_repeat(range(2), -1), square)),
                   MIX_INFINITE);
}

/* Tensors that a function retains keep their values, although the memory of rows is reused. */
static mix_list *keep(void *context, mix_list *element) {
  mix_list_append(context, mix_list_get(element, 0));
  return mix_list_of(integer(0));
}
static void a_function_may_retain_its_element(void **state) {
  (void)state;
  mix_list *kept = mix_list_new(0, NULL);
  assert_string_equal(elements(mix_dataset_map(range(4), keep, .context = kept), 9), "0 0 0 0");
  assert_int_equal(mix_list_count(kept), 4);
  for (int i = 0; i < 4; i++) assert_int_equal(value_of(kept, i), i);
}

static void filter_leaves_out_and_forgets_the_length(void **state) {
  (void)state;
  FOR_EACH_SOURCE(from) {
    int calls = 0;
    mix_dataset *odd = mix_dataset_filter(from(7), is_odd, .context = &calls);
    assert_string_equal(elements(odd, 9), "1 3 5");
    assert_int_equal(calls, 7);
    assert_int_equal(mix_dataset_cardinality(odd), MIX_UNKNOWN_CARDINALITY);
    assert_string_equal(elements(mix_dataset_batch(odd, 2), 9), "[1 3] [5]");
    assert_string_equal(elements(mix_dataset_filter(from(1), is_odd), 9), "");
    assert_string_equal(elements(mix_dataset_repeat(mix_dataset_filter(from(1), is_odd), -1), 9), "");
  }
}

static mix_list *fails_at_two(void *context, mix_list *element) {
  (void)context;
  return value_of(element, 0) == 2
             ? mix_list_of(mix_add(mix_list_get(element, 0), mix_scalar(1, MIX_FLOAT32)))
             : element;
}
static mix_list *null_at_two(void *context, mix_list *element) {
  (void)context;
  return value_of(element, 0) == 2 ? NULL : element;
}
static mix_list *hole_at_two(void *context, mix_list *element) {
  (void)context;
  return value_of(element, 0) == 2 ? mix_list_of((void *)NULL) : element;
}
static bool refuses_two(void *context, mix_list *element) {
  (void)context;
  return value_of(element, 0) != 2 || mix_add(mix_list_get(element, 0), mix_scalar(1, MIX_FLOAT32));
}

static void an_error_is_that_of_the_call_that_asked(void **state) {
  (void)state;
  FOR_EACH_SOURCE(from) {
    mix_dataset *failing[] = {mix_dataset_map(from(5), fails_at_two), mix_dataset_map(from(5), null_at_two),
                              mix_dataset_map(from(5), hole_at_two),
                              mix_dataset_filter(from(5), refuses_two)};
    static const mix_status errors[] = {MIX_TYPE_ERROR, MIX_VALUE_ERROR, MIX_VALUE_ERROR, MIX_TYPE_ERROR};
    static const char *const parts[] = {"float32", "returned NULL", "tensor 0", "float32"};
    for (int i = 0; i < 4; i++) {
      mix_iterator *iterator = mix_dataset_iterate(failing[i]);
      assert_string_equal(elements_of(iterator, 2), "0 1");
      assert_null(mix_iterator_next(iterator));
      assert_failed(errors[i], parts[i]);
      assert_null(mix_iterator_next(iterator)); /* the pass is over */
      assert_int_equal(mix_error(), MIX_OK);
    }
  }
}

static mix_dataset *repeated(void *context, mix_list *element) {
  return mix_dataset_repeat(mix_dataset_from_element(element), (int64_t)(intptr_t)context);
}

static void contexts_are_released_with_the_data_set(void **state) {
  (void)state;
  int one = 1;
  released = 0;
  MIX_SCOPE {
    mix_dataset *mapped = mix_dataset_map(range(3), same, .context = &one, .release = count_release);
    mix_dataset *filtered = mix_dataset_filter(mapped, is_odd, .context = &one, .release = count_release);
    mix_dataset_interleave(filtered, repeated, .context = &one, .release = count_release);
    assert_int_equal(released, 0);
  }
  assert_int_equal(released, 3);
}

/* ---- several data sets ---- */

static void zip_ends_with_the_shortest(void **state) {
  (void)state;
  FOR_EACH_SOURCE(from) {
    assert_string_equal(elements(mix_dataset_zip(from(3), mix_dataset_range(10, 20, 1)), 9),
                        "0:10 1:11 2:12");
    assert_string_equal(elements(mix_dataset_zip(mix_dataset_range(10, 20, 1), from(2), from(3)), 9),
                        "10:0:0 11:1:1");
    mix_dataset *pairs = mix_dataset_zip(from(3), from(3));
    assert_string_equal(elements(mix_dataset_zip(pairs, from(3)), 9), "0:0:0 1:1:1 2:2:2");
    assert_string_equal(elements(mix_dataset_batch(pairs, 2), 9), "[0 1]:[0 1] [2]:[2]");
    assert_string_equal(elements(pairs, 9), elements(pairs, 9));
    assert_string_equal(elements(mix_dataset_zip(from(2)), 9), "0 1");
  }
  mix_dataset *infinite = mix_dataset_repeat(range(2), -1);
  assert_int_equal(mix_dataset_cardinality(mix_dataset_zip(range(3), range(5))), 3);
  assert_int_equal(mix_dataset_cardinality(mix_dataset_zip(infinite, range(5))), 5);
  assert_int_equal(mix_dataset_cardinality(mix_dataset_zip(infinite, infinite)), MIX_INFINITE);
  assert_int_equal(mix_dataset_cardinality(mix_dataset_zip(range(3), mix_dataset_filter(range(5), is_odd))),
                   MIX_UNKNOWN_CARDINALITY);
}

static void concatenate_continues_with_the_second(void **state) {
  (void)state;
  FOR_EACH_SOURCE(from) {
    mix_dataset *both = mix_dataset_concatenate(from(2), mix_dataset_range(7, 10, 1));
    assert_string_equal(elements(both, 9), "0 1 7 8 9");
    assert_string_equal(elements(both, 9), "0 1 7 8 9");
    assert_string_equal(elements(mix_dataset_batch(both, 3), 9), "[0 1 7] [8 9]");
    assert_string_equal(elements(mix_dataset_concatenate(from(0), from(2)), 9), "0 1");
    assert_string_equal(elements(mix_dataset_concatenate(from(2), from(0)), 9), "0 1");
    mix_dataset *one = from(4); /* with itself, in another order: the same rows */
    assert_string_equal(
        elements(mix_dataset_concatenate(mix_dataset_skip(one, 2), mix_dataset_take(one, 2)), 9), "2 3 0 1");
    assert_int_equal(mix_dataset_cardinality(both), 5);
  }
  mix_dataset *infinite = mix_dataset_repeat(range(2), -1);
  assert_int_equal(mix_dataset_cardinality(mix_dataset_concatenate(range(2), infinite)), MIX_INFINITE);
  assert_int_equal(
      mix_dataset_cardinality(mix_dataset_concatenate(range(2), mix_dataset_filter(range(2), is_odd))),
      MIX_UNKNOWN_CARDINALITY);
  mix_iterator *iterator =
      mix_dataset_iterate(mix_dataset_concatenate(range(2), mix_dataset_zip(range(2), range(2))));
  assert_string_equal(elements_of(iterator, 2), "0 1");
  FAILS(mix_iterator_next(iterator), MIX_TYPE_ERROR, "2 tensors");
  iterator = mix_dataset_iterate(
      mix_dataset_concatenate(range(2), mix_dataset_from_tensor(mix_scalar(1, MIX_FLOAT32))));
  assert_string_equal(elements_of(iterator, 2), "0 1");
  FAILS(mix_iterator_next(iterator), MIX_TYPE_ERROR, "float32");
}

/* The first expectation is the example of tf.data's documentation of interleave. */
static void interleave_takes_turns(void **state) {
  (void)state;
  mix_dataset *numbers_1_to_5 = mix_dataset_range(1, 6, 1);
  void *six = (void *)(intptr_t)6, *three = (void *)(intptr_t)3;
  mix_dataset *documented =
      mix_dataset_interleave(numbers_1_to_5, repeated, .context = six, .cycle_length = 2, .block_length = 4);
  assert_string_equal(elements(documented, 99),
                      "1 1 1 1 2 2 2 2 1 1 2 2 3 3 3 3 4 4 4 4 3 3 4 4 5 5 5 5 5 5");
  assert_int_equal(mix_dataset_cardinality(documented), MIX_UNKNOWN_CARDINALITY);
  FOR_EACH_SOURCE(from) {
    assert_string_equal(
        elements(mix_dataset_interleave(from(3), repeated, .context = three, .cycle_length = 1), 99),
        "0 0 0 1 1 1 2 2 2"); /* flat_map */
    assert_string_equal(
        elements(mix_dataset_interleave(from(3), repeated, .context = three, .cycle_length = 2), 99),
        "0 1 0 1 0 1 2 2 2");
    assert_string_equal(
        elements(mix_dataset_interleave(from(3), repeated, .context = three, .cycle_length = 9), 99),
        "0 1 2 0 1 2 0 1 2");
    assert_string_equal(elements(mix_dataset_interleave(from(3), repeated, .cycle_length = 2), 99),
                        ""); /* repeated 0 times */
    assert_int_equal(strlen(elements(mix_dataset_interleave(from(3), repeated, .context = three), 99)),
                     2 * 9 - 1);
  }
}
static mix_dataset *no_dataset(void *context, mix_list *element) {
  (void)element;
  return context;
}
static void interleave_reports_a_wrong_result(void **state) {
  (void)state;
  FAILS(mix_iterator_next(mix_dataset_iterate(mix_dataset_interleave(range(3), no_dataset))), MIX_TYPE_ERROR,
        "dataset_interleave");
  mix_tensor *tensor = integer(1);
  FAILS(
      mix_iterator_next(mix_dataset_iterate(mix_dataset_interleave(range(3), no_dataset, .context = tensor))),
      MIX_TYPE_ERROR, "no data set");
}

/* ---- steps of one data set ---- */

static void unbatch_undoes_batch(void **state) {
  (void)state;
  FOR_EACH_SOURCE(from) {
    assert_string_equal(elements(mix_dataset_unbatch(mix_dataset_batch(from(5), 2)), 9), "0 1 2 3 4");
    mix_dataset *pairs = mix_dataset_zip(mix_dataset_batch(from(5), 2), mix_dataset_batch(from(5), 2));
    assert_string_equal(elements(mix_dataset_unbatch(pairs), 9), "0:0 1:1 2:2 3:3 4:4");
    assert_string_equal(
        elements(
            mix_dataset_unbatch(mix_dataset_unbatch(mix_dataset_batch(mix_dataset_batch(from(6), 2), 2))), 9),
        "0 1 2 3 4 5");
  }
  static const float zeros[6];
  mix_tensor *none = mix_tensor_from(zeros, MIX_FLOAT32, MIX_SHAPE(0, 3)),
             *two = mix_tensor_from(zeros, MIX_FLOAT32, MIX_SHAPE(2, 3)),
             *three = mix_tensor_from(zeros, MIX_FLOAT32, MIX_SHAPE(3, 2));
  mix_dataset *some = mix_dataset_concatenate(mix_dataset_from_tensor(none), mix_dataset_from_tensor(two));
  assert_string_equal(elements(mix_dataset_unbatch(some), 9), "[0 0 0] [0 0 0]");
  assert_string_equal(elements(mix_dataset_unbatch(mix_dataset_from_tensors(two)), 9), "0 0 0 0 0 0");
  assert_int_equal(mix_dataset_cardinality(mix_dataset_unbatch(some)), MIX_UNKNOWN_CARDINALITY);
  FAILS(mix_iterator_next(mix_dataset_iterate(mix_dataset_unbatch(range(3)))), MIX_VALUE_ERROR, "scalar");
  FAILS(mix_iterator_next(mix_dataset_iterate(mix_dataset_unbatch(mix_dataset_from_tensor(two, three)))),
        MIX_VALUE_ERROR, "(3, 2)");
}

static void enumerate_counts_from_its_start(void **state) {
  (void)state;
  FOR_EACH_SOURCE(from) {
    mix_dataset *numbered = mix_dataset_enumerate(mix_dataset_skip(from(5), 2), 7);
    assert_string_equal(elements(numbered, 9), "7:2 8:3 9:4");
    assert_string_equal(elements(numbered, 9), "7:2 8:3 9:4");
    assert_string_equal(elements(mix_dataset_enumerate(mix_dataset_enumerate(from(2), 5), 0), 9),
                        "0:5:0 1:6:1");
    assert_int_equal(mix_dataset_cardinality(numbered), 3);
    assert_int_equal(mix_tensor_dtype(mix_list_get(mix_iterator_next(mix_dataset_iterate(numbered)), 0)),
                     MIX_INT64);
  }
}

static void shards_are_disjoint_and_whole(void **state) {
  (void)state;
  FOR_EACH_SOURCE(from) {
    static const char *const expected[3] = {"0 3 6", "1 4 7", "2 5"};
    for (int i = 0; i < 3; i++) {
      mix_dataset *shard = mix_dataset_shard(from(8), 3, i);
      assert_string_equal(elements(shard, 9), expected[i]);
      assert_int_equal(mix_dataset_cardinality(shard), i < 2 ? 3 : 2);
    }
    assert_string_equal(elements(mix_dataset_shard(from(2), 5, 4), 9), "");
    assert_string_equal(elements(mix_dataset_shard(from(3), 1, 0), 9), "0 1 2");
  }
  assert_int_equal(mix_dataset_cardinality(mix_dataset_shard(mix_dataset_repeat(range(2), -1), 2, 0)),
                   MIX_INFINITE);
}

static void from_tensor_is_one_element(void **state) {
  (void)state;
  int64_t values[3] = {4, 5, 6};
  mix_tensor *x = mix_tensor_from(values, MIX_INT64, MIX_SHAPE(3));
  mix_list *list = mix_list_of(x, integer(9));
  mix_dataset *one = mix_dataset_from_element(list);
  mix_list_append(list, x);
  assert_string_equal(elements(one, 9), "[4 5 6]:9");
  assert_string_equal(elements(mix_dataset_repeat(one, 2), 9), "[4 5 6]:9 [4 5 6]:9");
  assert_string_equal(elements(mix_dataset_batch(mix_dataset_repeat(one, 2), 2), 9), "[4 5 6 4 5 6]:[9 9]");
  assert_string_equal(elements(mix_dataset_from_tensor(mix_add(x, x)), 9), "[8 10 12]");
  assert_int_equal(mix_dataset_cardinality(one), 1);
}

static void take_and_skip_count_other_steps_too(void **state) {
  (void)state;
  mix_dataset *squares = mix_dataset_map(range(5), square);
  assert_string_equal(elements(mix_dataset_take(squares, -1), 9), "0 1 4 9 16");
  assert_string_equal(elements(mix_dataset_skip(squares, -1), 9), "");
  assert_string_equal(elements(mix_dataset_take(squares, 2), 9), "0 1");
  assert_string_equal(elements(mix_dataset_skip(squares, 3), 9), "9 16");
  assert_string_equal(elements(mix_dataset_shuffle(squares, 1), 9), "0 1 4 9 16");
}

static bool from_the_third_call_on(void *context, mix_list *element) {
  (void)element;
  return (*(int *)context)++ >= 2;
}
static void a_round_without_elements_is_one_of_the_count(void **state) {
  (void)state;
  FOR_EACH_SOURCE(from) {
    int calls = 0;
    mix_dataset *late = mix_dataset_filter(from(2), from_the_third_call_on, .context = &calls);
    assert_string_equal(elements(mix_dataset_repeat(late, 3), 9), "0 1 0 1");
    calls = 0;
    assert_string_equal(elements(mix_dataset_repeat(late, -1), 9), "");
  }
  assert_string_equal(elements(mix_dataset_repeat(range(0), INT64_MAX), 9), ""); /* it is known to be empty */
}

/* Five numbers, restarted at their end: one more read after the end would begin again. */
static mix_list *rewinding(void *context, int64_t index) {
  int64_t *next = context;
  (void)index;
  if (*next < 5) return mix_list_of(integer((*next)++));
  *next = 0;
  return NULL;
}
static mix_dataset *several(void *context, mix_list *element) {
  (void)context;
  return mix_dataset_from_element(element);
}
static void an_ended_source_is_not_read_again(void **state) {
  (void)state;
  int64_t next = 0;
  mix_dataset *five = mix_dataset_from_generator(rewinding, .context = &next);
  assert_string_equal(elements(mix_dataset_batch(five, 2), 9), "[0 1] [2 3] [4]");
  assert_string_equal(elements(mix_dataset_batch(five, 2, .drop_remainder = true), 9), "[0 1] [2 3]");
  assert_string_equal(elements(mix_dataset_padded_batch(five, 2), 9), "[0 1] [2 3] [4]");
  assert_string_equal(elements(mix_dataset_padded_batch(five, 2, .drop_remainder = true), 9), "[0 1] [2 3]");
  assert_string_equal(elements(mix_dataset_batch(mix_dataset_enumerate(five, 0), 2), 9),
                      "[0 1]:[0 1] [2 3]:[2 3] [4]:[4]");
  assert_string_equal(elements(mix_dataset_batch(mix_dataset_concatenate(range(1), five), 4), 9),
                      "[0 0 1 2] [3 4]");
  assert_string_equal(elements(mix_dataset_batch(mix_dataset_prefetch(five, 2), 2), 9), "[0 1] [2 3] [4]");
  assert_string_equal(elements(mix_dataset_window(five, 2), 9), "[0 1] [2 3] [4]");
  assert_string_equal(elements(mix_dataset_unbatch(mix_dataset_batch(five, 3)), 9), "0 1 2 3 4");
  assert_string_equal(elements(mix_dataset_batch(mix_dataset_zip(five, range(9)), 2), 9),
                      "[0 1]:[0 1] [2 3]:[2 3] [4]:[4]");
  assert_string_equal(elements(mix_dataset_interleave(five, several, .cycle_length = 2), 9), "0 1 2 3 4");
  mix_dataset *drawn = mix_dataset_batch(mix_dataset_shuffle(five, 3, .seed = 1), 2);
  assert_int_equal(strlen(elements(drawn, 9)), strlen("[0 1] [2 3] [4]"));
  assert_string_equal(elements(mix_dataset_batch(mix_dataset_repeat(five, 2), 4), 9),
                      "[0 1 2 3] [4 0 1 2] [3 4]");
}

/* Each receiver has a list of its own, although several hold the tensors. */
static mix_list *appended(void *context, mix_list *element) {
  (void)context;
  mix_list_append(element, integer(9));
  return element;
}
static bool appends(void *context, mix_list *element) {
  (void)context;
  return mix_list_append(element, integer(9)) == MIX_OK;
}
static mix_dataset *appends_once(void *context, mix_list *element) {
  (void)context;
  mix_list_append(element, integer(9));
  return mix_dataset_from_element(element);
}
static void receivers_may_append_to_an_element(void **state) {
  (void)state;
  mix_dataset *one = mix_dataset_repeat(mix_dataset_from_tensor(integer(1)), 3);
  assert_string_equal(elements(mix_dataset_map(one, appended), 9), "1:9 1:9 1:9");
  assert_string_equal(elements(mix_dataset_map(one, appended, .num_parallel_calls = 2), 9), "1:9 1:9 1:9");
  assert_string_equal(elements(mix_dataset_interleave(one, appends_once, .cycle_length = 2), 9),
                      "1:9 1:9 1:9");
  assert_string_equal(elements(one, 9), "1 1 1");
  FOR_EACH_SOURCE(from) {
    mix_dataset *cached = mix_dataset_cache(from(2));
    for (int pass = 0; pass < 3; pass++) {
      assert_string_equal(elements(mix_dataset_map(cached, appended), 9), "0:9 1:9");
      mix_iterator *iterator = mix_dataset_iterate(cached);
      for (mix_list *element; (element = mix_iterator_next(iterator));) mix_list_append(element, integer(7));
      assert_string_equal(elements(mix_dataset_filter(cached, appends), 9), "0 1");
    }
    assert_string_equal(elements(cached, 9), "0 1");
    assert_string_equal(elements(mix_dataset_filter(from(2), appends), 9), "0 1");
  }
}

/* ---- padded batches ---- */

/* Element n is [n n ... n], n times. */
static mix_list *lengthened(void *context, mix_list *element) {
  (void)context;
  int64_t n = value_of(element, 0), values[16];
  for (int i = 0; i < n; i++) values[i] = n;
  return mix_list_of(mix_tensor_from(values, MIX_INT64, MIX_SHAPE(n)), integer(n));
}

/* tf.data's window(...).flat_map(lambda w: w.batch(size)). */
static void windows_slide_over_the_input(void **state) {
  (void)state;
  FOR_EACH_SOURCE(from) {
    assert_string_equal(elements(mix_dataset_window(from(7), 3), 9), "[0 1 2] [3 4 5] [6]");
    assert_string_equal(elements(mix_dataset_window(from(7), 3, .drop_remainder = true), 9),
                        "[0 1 2] [3 4 5]");
    assert_string_equal(elements(mix_dataset_window(from(5), 3, .shift = 1), 9),
                        "[0 1 2] [1 2 3] [2 3 4] [3 4] [4]");
    assert_string_equal(elements(mix_dataset_window(from(5), 3, .shift = 1, .drop_remainder = true), 9),
                        "[0 1 2] [1 2 3] [2 3 4]");
    assert_string_equal(elements(mix_dataset_window(from(7), 3, .stride = 2), 9), "[0 2 4] [3 5] [6]");
    assert_string_equal(elements(mix_dataset_window(from(9), 2, .shift = 4), 9), "[0 1] [4 5] [8]");
    assert_string_equal(elements(mix_dataset_window(from(2), 3, .drop_remainder = true), 9), "");
    assert_int_equal(mix_dataset_cardinality(mix_dataset_window(from(9), 2, .shift = 4)), 3);
    assert_int_equal(mix_dataset_cardinality(
                         mix_dataset_window(from(9), 3, .shift = 2, .stride = 2, .drop_remainder = true)),
                     3);
    assert_int_equal(mix_dataset_cardinality(mix_dataset_window(from(2), 3, .drop_remainder = true)), 0);
    /* Of unknown length, and infinite. */
    mix_dataset *odd =
        mix_dataset_window(mix_dataset_filter(from(9), is_odd), 3, .shift = 1, .drop_remainder = true);
    assert_int_equal(mix_dataset_cardinality(odd), MIX_UNKNOWN_CARDINALITY);
    assert_string_equal(elements(odd, 9), "[1 3 5] [3 5 7]");
    mix_dataset *endless = mix_dataset_window(mix_dataset_repeat(from(3), -1), 2, .shift = 1);
    assert_int_equal(mix_dataset_cardinality(endless), MIX_INFINITE);
    assert_string_equal(elements(endless, 4), "[0 1] [1 2] [2 0] [0 1]");
  }
}

static void padded_batch_pads_to_the_largest(void **state) {
  (void)state;
  mix_dataset *uneven = mix_dataset_map(range(5), lengthened);
  assert_string_equal(elements(mix_dataset_padded_batch(uneven, 2), 9),
                      "[0 1]:[0 1] [2 2 0 3 3 3]:[2 3] [4 4 4 4]:[4]");
  assert_string_equal(elements(mix_dataset_padded_batch(uneven, 2, .drop_remainder = true), 9),
                      "[0 1]:[0 1] [2 2 0 3 3 3]:[2 3]");
  assert_string_equal(elements(mix_dataset_padded_batch(uneven, 3, .padding_values = {-1}), 9),
                      "[-1 -1 1 -1 2 2]:[0 1 2] [3 3 3 -1 4 4 4 4]:[3 4]");
  assert_string_equal(
      elements(mix_dataset_padded_batch(mix_dataset_take(uneven, 2), 2, .padded_shapes = {MIX_SHAPE(3)},
                                        .padding_values = {7}),
               9),
      "[7 7 7 1 7 7]:[0 1]");
  assert_int_equal(mix_dataset_cardinality(mix_dataset_padded_batch(uneven, 2)), 3);
  assert_int_equal(mix_dataset_cardinality(mix_dataset_padded_batch(uneven, 2, .drop_remainder = true)), 2);
  FOR_EACH_SOURCE(from) assert_string_equal(elements(mix_dataset_padded_batch(from(3), 2), 9), "[0 1] [2]");
  FAILS(mix_iterator_next(mix_dataset_iterate(
            mix_dataset_padded_batch(mix_dataset_skip(uneven, 4), 2, .padded_shapes = {MIX_SHAPE(3)}))),
        MIX_VALUE_ERROR, "padded_shapes[0]");
  FAILS(mix_iterator_next(
            mix_dataset_iterate(mix_dataset_padded_batch(uneven, 2, .padded_shapes = {MIX_SHAPE(3, 3)}))),
        MIX_VALUE_ERROR, "2 dimensions");
}

/* Every element of shape (a, b, c) up to (3, 3, 3), padded by -1 in float16, compared with a direct
 * computation. */
static mix_list *block(void *context, mix_list *element) {
  (void)context;
  int64_t n = value_of(element, 0), a = n / 9 + 1, b = n / 3 % 3 + 1, c = n % 3 + 1;
  double values[27];
  for (int i = 0; i < a * b * c; i++) values[i] = (double)(n + i);
  return mix_list_of(mix_tensor_from_doubles(values, MIX_FLOAT16, MIX_SHAPE(a, b, c)));
}
static void padding_goes_to_the_end_of_each_axis(void **state) {
  (void)state;
  mix_dataset *blocks =
      mix_dataset_padded_batch(mix_dataset_map(range(27), block), 27, .padding_values = {-1});
  mix_tensor *batch = mix_list_get(mix_iterator_next(mix_dataset_iterate(blocks)), 0);
  assert_true(mix_shape_equal(mix_tensor_shape(batch), MIX_SHAPE(27, 3, 3, 3)));
  double values[27][3][3][3];
  assert_int_equal(mix_tensor_read(batch, MIX_FLOAT64, values, 27 * 27), MIX_OK);
  for (int n = 0; n < 27; n++)
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 3; j++)
        for (int k = 0; k < 3; k++) {
          int a = n / 9 + 1, b = n / 3 % 3 + 1, c = n % 3 + 1;
          assert_true(values[n][i][j][k] == (i < a && j < b && k < c ? n + (i * b + j) * c + k : -1));
        }
}

/* ---- cache ---- */

static mix_list *counted(void *context, mix_list *element) {
  ++*(int *)context;
  return element;
}

static void cache_replays_the_first_whole_pass(void **state) {
  (void)state;
  FOR_EACH_SOURCE(from) {
    int calls = 0;
    mix_dataset *cached = mix_dataset_cache(mix_dataset_map(from(4), counted, .context = &calls));
    assert_string_equal(elements(cached, 2), "0 1"); /* left early: caches nothing */
    assert_int_equal(calls, 2);
    assert_string_equal(elements(cached, 9), "0 1 2 3");
    assert_int_equal(calls, 6);
    assert_string_equal(elements(cached, 9), "0 1 2 3");
    assert_string_equal(elements(mix_dataset_batch(mix_dataset_repeat(cached, 2), 3), 9),
                        "[0 1 2] [3 0 1] [2 3]");
    assert_int_equal(calls, 6);
    assert_int_equal(mix_dataset_cardinality(cached), 4);
  }
}

static void cache_keeps_the_order_of_a_shuffle_before_it(void **state) {
  (void)state;
  FOR_EACH_SOURCE(from) {
    mix_dataset *cached = mix_dataset_cache(mix_dataset_shuffle(from(12), 12, .seed = 3));
    char first[100];
    strcpy(first, elements(cached, 99));
    assert_string_equal(elements(cached, 99), first);
    mix_dataset *after = mix_dataset_shuffle(cached, 12, .seed = 3);
    strcpy(first, elements(after, 99));
    assert_string_not_equal(elements(after, 99), first);
  }
}

static void passes_of_a_cache_may_overlap(void **state) {
  (void)state;
  mix_dataset *cached = mix_dataset_cache(numbers(3));
  mix_iterator *a = mix_dataset_iterate(cached), *b = mix_dataset_iterate(cached);
  assert_string_equal(elements_of(a, 2), "0 1");
  assert_string_equal(elements_of(b, 9), "0 1 2");
  assert_string_equal(elements_of(a, 9), "2");
  assert_string_equal(elements(cached, 9), "0 1 2");
  mix_dataset *failing =
      mix_dataset_cache(mix_dataset_map(range(5), fails_at_two)); /* a failed pass caches nothing either */
  for (int pass = 0; pass < 2; pass++) {
    mix_iterator *iterator = mix_dataset_iterate(failing);
    assert_string_equal(elements_of(iterator, 2), "0 1");
    FAILS(mix_iterator_next(iterator), MIX_TYPE_ERROR, "float32");
  }
}

/* ---- errors ---- */

static void wrong_arguments_are_errors(void **state) {
  (void)state;
  mix_dataset *five = range(5);
  mix_dataset *tensor = (mix_dataset *)(void *)integer(1);
  FAILS(mix_dataset_map(five, NULL), MIX_TYPE_ERROR, "function is NULL");
  FAILS(mix_dataset_map(NULL, same), MIX_TYPE_ERROR, "dataset_map");
  FAILS(mix_dataset_map(five, same, .num_parallel_calls = -2), MIX_VALUE_ERROR, "num_parallel_calls is -2");
  FAILS(mix_dataset_map(five, same, .num_parallel_calls = 1025), MIX_VALUE_ERROR, "1024");
  FAILS(mix_dataset_filter(five, NULL), MIX_TYPE_ERROR, "predicate is NULL");
  FAILS(mix_dataset_filter(tensor, is_odd), MIX_TYPE_ERROR, "no data set");
  FAILS(mix_dataset_interleave(five, NULL), MIX_TYPE_ERROR, "function is NULL");
  FAILS(mix_dataset_interleave(five, repeated, .cycle_length = -1), MIX_VALUE_ERROR, "cycle_length is -1");
  FAILS(mix_dataset_interleave(five, repeated, .block_length = -1), MIX_VALUE_ERROR, "block_length is -1");
  FAILS(mix_dataset_zip_list(mix_list_new(0, NULL)), MIX_VALUE_ERROR, "no data sets");
  FAILS(mix_dataset_zip(five, NULL), MIX_TYPE_ERROR, "dataset_zip");
  FAILS(mix_dataset_zip(five, tensor), MIX_TYPE_ERROR, "no data set");
  FAILS(mix_dataset_concatenate(five, NULL), MIX_TYPE_ERROR, "dataset_concatenate");
  FAILS(mix_dataset_unbatch(NULL), MIX_TYPE_ERROR, "dataset_unbatch");
  FAILS(mix_dataset_enumerate(NULL, 0), MIX_TYPE_ERROR, "dataset_enumerate");
  FAILS(mix_dataset_cache(NULL), MIX_TYPE_ERROR, "dataset_cache");
  FAILS(mix_dataset_prefetch(NULL, 1), MIX_TYPE_ERROR, "dataset_prefetch");
  FAILS(mix_dataset_prefetch(five, -2), MIX_VALUE_ERROR, "count is -2");
  FAILS(mix_dataset_shard(five, 0, 0), MIX_VALUE_ERROR, "count is 0");
  FAILS(mix_dataset_shard(five, 2, 2), MIX_VALUE_ERROR, "index is 2");
  FAILS(mix_dataset_from_element(NULL), MIX_TYPE_ERROR, "NULL");
  FAILS(mix_dataset_from_tensor((void *)NULL), MIX_VALUE_ERROR, "tensor 0 is NULL");
  FAILS(mix_dataset_from_element(mix_list_new(0, NULL)), MIX_VALUE_ERROR, "no tensors");
  FAILS(mix_dataset_padded_batch(five, 0), MIX_VALUE_ERROR, "batch_size is 0");
  FAILS(mix_dataset_window(NULL, 3), MIX_TYPE_ERROR, "dataset_window");
  FAILS(mix_dataset_window(five, 0), MIX_VALUE_ERROR, "window is 0");
  FAILS(mix_dataset_window(five, 2, .shift = -1), MIX_VALUE_ERROR, "shift is -1");
  FAILS(mix_dataset_window(five, 1 << 20, .stride = 1 << 20), MIX_VALUE_ERROR, "spans more than 2^31");
  FAILS(mix_dataset_padded_batch(NULL, 1), MIX_TYPE_ERROR, "dataset_padded_batch");
}

static void allocation_failures_are_errors(void **state) {
  (void)state;
  FOR_EACH_SOURCE(from)
  for (int64_t count = 0;; count++) {
    bool good = false;
    mix_inject_allocation_failure(count);
    MIX_SCOPE {
      mix_dataset *odd = mix_dataset_filter(mix_dataset_cache(mix_dataset_enumerate(from(4), 0)), is_odd);
      mix_dataset *pairs =
          mix_dataset_zip(odd, mix_dataset_concatenate(mix_dataset_shard(from(4), 2, 0), from(1)));
      mix_dataset *all = mix_dataset_interleave(mix_dataset_map(pairs, same), repeated,
                                                .context = (void *)(intptr_t)2, .cycle_length = 2);
      mix_dataset *dataset =
          mix_dataset_unbatch(mix_dataset_window(mix_dataset_unbatch(mix_dataset_padded_batch(all, 3)), 2));
      mix_iterator *iterator = mix_dataset_iterate(dataset);
      int seen = 0;
      while (mix_iterator_next(iterator)) seen++;
      good = seen == 4 && mix_error() == MIX_OK;
    }
    mix_inject_allocation_failure(-1);
    if (good) break;
    assert_int_equal(mix_error(), MIX_MEMORY_ERROR);
    mix_error_clear();
    assert_true(count < 2000);
  }
}

int main(void) {
#define TEST(test) cmocka_unit_test_teardown(test, end)
  const struct CMUnitTest tests[] = {
      TEST(map_applies_the_function_to_each_element),
      TEST(a_function_may_retain_its_element),
      TEST(filter_leaves_out_and_forgets_the_length),
      TEST(an_error_is_that_of_the_call_that_asked),
      TEST(contexts_are_released_with_the_data_set),
      TEST(zip_ends_with_the_shortest),
      TEST(concatenate_continues_with_the_second),
      TEST(interleave_takes_turns),
      TEST(interleave_reports_a_wrong_result),
      TEST(unbatch_undoes_batch),
      TEST(enumerate_counts_from_its_start),
      TEST(shards_are_disjoint_and_whole),
      TEST(from_tensor_is_one_element),
      TEST(take_and_skip_count_other_steps_too),
      TEST(a_round_without_elements_is_one_of_the_count),
      TEST(an_ended_source_is_not_read_again),
      TEST(receivers_may_append_to_an_element),
      TEST(windows_slide_over_the_input),
      TEST(padded_batch_pads_to_the_largest),
      TEST(padding_goes_to_the_end_of_each_axis),
      TEST(cache_replays_the_first_whole_pass),
      TEST(cache_keeps_the_order_of_a_shuffle_before_it),
      TEST(passes_of_a_cache_may_overlap),
      TEST(wrong_arguments_are_errors),
      TEST(allocation_failures_are_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
