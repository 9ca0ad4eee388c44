/* Nested elements: each source and step gives them back nested as they came, as in tf.data. */
#include "data/pipeline_support.h"

#include "data/pipeline/pipeline.h"
#include <mixtape/ops.h>

/* An element as text: "((0, 10), {'a': 5})". */
static char *put_item(char *at, void *item) {
  if (!mix_is(item, &mix_list_class)) return put_tensor(at, item);
  mix_list *list = item;
  bool dict = mix_list_is_dict(list);
  at += sprintf(at, dict ? "{" : "(");
  for (int i = 0; i < mix_list_count(list); i++) {
    at += sprintf(at, i ? ", " : "");
    if (dict) at += sprintf(at, "%s=", mix_dict_name(list, i));
    at = put_item(at, mix_list_get(list, i));
  }
  return at + sprintf(at, dict ? "}" : ")");
}
static const char *nested(mix_dataset *dataset, int limit) {
  static char text[4000];
  char *at = text;
  *at = 0;
  mix_iterator *iterator = mix_dataset_iterate(dataset);
  for (mix_list *element; limit-- > 0 && (element = mix_iterator_next(iterator));) {
    if (at != text) at += sprintf(at, " ");
    at = put_item(at, element);
  }
  if (mix_error()) print_message("%s\n", mix_error_message());
  assert_int_equal(mix_error(), MIX_OK);
  return text;
}

static mix_tensor *from(int64_t first, int64_t n) {
  return mix_range((double)first, (double)(first + n), 1, MIX_INT64);
}
/* ((i, 10 + i), {b: 20 + i}) for i below n, from rows of arrays. */
static mix_dataset *rows(int64_t n) {
  return mix_dataset_from_tensors(mix_list_of(from(0, n), from(10, n)), mix_dict_of("b", from(20, n)));
}
/* The same from a generator. */
static mix_list *made(void *context, int64_t i) {
  if (i >= (int64_t)(intptr_t)context) return NULL;
  return mix_list_of(mix_list_of(integer(i), integer(10 + i)), mix_dict_of("b", integer(20 + i)));
}
static mix_dataset *generated(int64_t n) {
  return mix_dataset_from_generator(made, .context = (void *)(intptr_t)n, .cardinality = n);
}
static const source both[2] = {rows, generated};
#define FOR_BOTH(name)                                                                                       \
  for (int i_ = 0; i_ < 2; i_++)                                                                             \
    for (source name = both[i_]; name; name = NULL)

static void sources_give_nested_elements(void **state) {
  (void)state;
  FOR_BOTH(make) assert_string_equal(nested(make(2), 9), "((0, 10), {b=20}) ((1, 11), {b=21})");
  assert_string_equal(nested(mix_dataset_from_list(mix_dict_of("z", from(0, 2), "a", from(5, 2))), 9),
                      "{a=5, z=0} {a=6, z=1}");
  assert_string_equal(nested(mix_dataset_from_tensor(mix_list_of(from(0, 2)), from(3, 1)), 9),
                      "(([0 1]), [3])");
}

static void steps_that_order_elements_keep_them(void **state) {
  (void)state;
  FOR_BOTH(make) {
    const char *second = "((1, 11), {b=21})";
    assert_string_equal(nested(mix_dataset_skip(make(2), 1), 9), second);
    assert_string_equal(nested(mix_dataset_take(mix_dataset_skip(make(9), 1), 1), 9), second);
    assert_string_equal(nested(mix_dataset_shard(make(3), 3, 1), 9), second);
    assert_string_equal(nested(mix_dataset_shuffle(mix_dataset_skip(make(2), 1), 5), 9), second);
    assert_string_equal(nested(mix_dataset_prefetch(mix_dataset_skip(make(2), 1), 2), 9), second);
    assert_string_equal(nested(mix_dataset_repeat(make(1), 2), 9), "((0, 10), {b=20}) ((0, 10), {b=20})");
    mix_dataset *cached = mix_dataset_cache(make(1));
    assert_string_equal(nested(cached, 9), "((0, 10), {b=20})");
    assert_string_equal(nested(cached, 9), "((0, 10), {b=20})");
    assert_string_equal(nested(mix_dataset_concatenate(make(1), make(1)), 9),
                        "((0, 10), {b=20}) ((0, 10), {b=20})");
  }
}

static void steps_that_stack_and_split_keep_the_structure(void **state) {
  (void)state;
  FOR_BOTH(make) {
    assert_string_equal(nested(mix_dataset_batch(make(3), 2), 9),
                        "(([0 1], [10 11]), {b=[20 21]}) (([2], [12]), {b=[22]})");
    assert_string_equal(nested(mix_dataset_window(make(3), 2, .shift = 1, .drop_remainder = true), 9),
                        "(([0 1], [10 11]), {b=[20 21]}) (([1 2], [11 12]), {b=[21 22]})");
    assert_string_equal(nested(mix_dataset_padded_batch(make(2), 2), 9), "(([0 1], [10 11]), {b=[20 21]})");
    assert_string_equal(nested(mix_dataset_unbatch(mix_dataset_batch(make(2), 2)), 9),
                        "((0, 10), {b=20}) ((1, 11), {b=21})");
    assert_string_equal(nested(mix_dataset_enumerate(make(1), 7), 9), "(7, ((0, 10), {b=20}))");
  }
}

/* (x, {sum}) of ((a, b), {b: c}). */
static mix_list *sum(void *context, mix_list *element) {
  (void)context;
  mix_list *pair = mix_list_get(element, 0);
  mix_tensor *b = mix_dict_get(mix_list_get(element, 1), "b");
  mix_tensor *both = mix_add(mix_list_get(pair, 0), mix_list_get(pair, 1)); /* lazy */
  mix_list_append(pair, b); /* the element is the function's own */
  return mix_list_of(b, mix_dict_of("sum", both));
}
static mix_list *same_nested(void *context, mix_list *element) {
  (void)context;
  return element;
}
static bool is_second(void *context, mix_list *element) {
  (void)context;
  return value_of(mix_list_get(element, 0), 0) == 1;
}
static mix_dataset *expand(void *context, mix_list *element) {
  (void)context;
  return mix_dataset_repeat(mix_dataset_from_element(mix_list_of(element)), 2);
}
static mix_list *give_null(void *context, mix_list *element) {
  (void)context;
  return mix_list_of(mix_list_of(mix_list_get(mix_list_get(element, 0), 0), NULL));
}

static void functions_take_and_give_nested_elements(void **state) {
  (void)state;
  FOR_BOTH(make) {
    for (int threads = 0; threads <= 2; threads += 2)
      assert_string_equal(nested(mix_dataset_map(make(2), sum, .num_parallel_calls = threads), 9),
                          "(20, {sum=10}) (21, {sum=12})");
    assert_string_equal(nested(mix_dataset_filter(make(3), is_second), 9), "((1, 11), {b=21})");
    assert_string_equal(nested(mix_dataset_interleave(make(1), expand), 9),
                        "(((0, 10), {b=20})) (((0, 10), {b=20}))");
    FAILS(mix_iterator_next(mix_dataset_iterate(mix_dataset_map(make(1), give_null))), MIX_VALUE_ERROR,
          "component (0, 1) of the element that the function made is NULL");
  }
}

static void zip_nests_as_its_list_of_data_sets(void **state) {
  (void)state;
  mix_dataset *a = range(2), *b = mix_dataset_range(10, 12, 1), *c = mix_dataset_range(20, 22, 1);
  assert_string_equal(nested(mix_dataset_zip(a, b), 1), "(0, 10)");
  assert_string_equal(nested(mix_dataset_zip(mix_list_of(a, b), c), 9), "((0, 10), 20) ((1, 11), 21)");
  assert_string_equal(nested(mix_dataset_zip_list(mix_dict_of("y", a, "x", b)), 1), "{x=10, y=0}");
  assert_string_equal(nested(mix_dataset_zip(rows(1), a), 1), "(((0, 10), {b=20}), 0)");
  mix_dataset *pairs = mix_dataset_from_tensors(from(0, 2), from(5, 2));
  assert_string_equal(nested(mix_dataset_zip(pairs, a), 1), "(0, 5, 0)"); /* flat: its tensors join */
  assert_string_equal(nested(mix_dataset_zip(mix_list_of(pairs), a), 1), "((0, 5), 0)");
  assert_string_equal(nested(mix_dataset_zip(pairs, rows(1)), 1), "(0, 5, ((0, 10), {b=20}))");
  assert_string_equal(nested(mix_dataset_zip_list(mix_dict_of("p", pairs, "r", rows(1))), 1),
                      "{p=(0, 5), r=((0, 10), {b=20})}");
  assert_int_equal(mix_dataset_cardinality(mix_dataset_zip(mix_list_of(a, range(1)), c)), 1);
  FAILS(mix_dataset_zip(mix_list_of(a, from(0, 1))), MIX_TYPE_ERROR, "no data set");
  FAILS(mix_dataset_zip(mix_list_of(mix_list_new(0, NULL))), MIX_VALUE_ERROR, "no data sets");
}

/* A pair first, then a dict. */
static mix_list *changing(void *context, int64_t i) {
  (void)context;
  return i == 0 ? mix_list_of(mix_list_of(integer(0)), integer(1))
                : mix_list_of(mix_dict_of("a", integer(0)), integer(1));
}
static mix_list *growing(void *context, int64_t i) {
  (void)context;
  return mix_list_of(mix_dict_of("a", mix_fill(MIX_SHAPE(i + 1), 0, MIX_INT64)), integer(1));
}

static void errors_name_the_component(void **state) {
  (void)state;
  FAILS(mix_dataset_from_tensors(mix_list_of(from(0, 2), from(0, 3)), from(0, 2)), MIX_VALUE_ERROR,
        "component (0, 1) has shape (3)");
  FAILS(mix_dataset_from_list(mix_dict_of("a", integer(1))), MIX_VALUE_ERROR, "component ('a') is a scalar");
  FAILS(mix_dataset_from_list(mix_dict_of("a", NULL)), MIX_VALUE_ERROR, "component ('a') is NULL");
  FAILS(mix_dataset_from_tensor(mix_list_of(NULL)), MIX_VALUE_ERROR, "component (0, 0) is NULL");
  mix_dataset *data = mix_dataset_from_generator(changing);
  FAILS(mix_iterator_next(mix_dataset_iterate(mix_dataset_batch(data, 2))), MIX_VALUE_ERROR,
        "element 1 of a batch has the structure ({'a': .}, .), its first element ((.,), .)");
  FAILS(mix_iterator_next(mix_dataset_iterate(mix_dataset_padded_batch(data, 2))), MIX_VALUE_ERROR,
        "nested alike");
  FAILS(mix_iterator_next(mix_dataset_iterate(mix_dataset_batch(mix_dataset_from_generator(growing), 2))),
        MIX_VALUE_ERROR, "component (0, 'a') of element 1 of a batch is int64 (2)");
  FAILS(mix_iterator_next(mix_dataset_iterate(mix_dataset_unbatch(rows(1)))), MIX_VALUE_ERROR,
        "component (0, 0) of an element is a scalar");
  mix_iterator *pass = mix_dataset_iterate(mix_dataset_concatenate(rows(1), range(1)));
  assert_non_null(mix_iterator_next(pass));
  FAILS(mix_iterator_next(pass), MIX_TYPE_ERROR, "an element has 1 tensors, the first one 3");
  mix_dataset *other = mix_dataset_from_tensors(from(0, 1), from(0, 1), from(0, 1));
  pass = mix_dataset_iterate(mix_dataset_concatenate(rows(1), other));
  assert_non_null(mix_iterator_next(pass));
  FAILS(mix_iterator_next(pass), MIX_TYPE_ERROR, "has the structure (., ., .)");
}

static void the_spec_describes_the_first_element(void **state) {
  (void)state;
  assert_string_equal(mix_dataset_element_spec(mix_dataset_batch(rows(4), 2)),
                      "((int64 (2), int64 (2)), {'b': int64 (2)})");
  assert_string_equal(mix_dataset_element_spec(range(1)), "(int64 (),)");
  FAILS(mix_dataset_element_spec(range(0)), MIX_VALUE_ERROR, "no elements");
  mix_dataset *shuffled = mix_dataset_shuffle(range(20), 20, .seed = 3),
              *asked = mix_dataset_shuffle(range(20), 20, .seed = 3);
  assert_non_null(mix_dataset_element_spec(asked)); /* it does not count as a pass */
  assert_string_equal(elements(asked, 20), elements(shuffled, 20));
}

static void appending_to_an_element_does_not_change_the_data(void **state) {
  (void)state;
  mix_dataset *data = mix_dataset_from_tensor(mix_list_of(from(0, 1)), from(5, 1));
  mix_list *element = mix_iterator_next(mix_dataset_iterate(data));
  mix_list_append(element, from(0, 1));
  mix_list_append(mix_list_get(element, 0), from(0, 1));
  assert_string_equal(nested(data, 1), "(([0]), [5])");
}

static void a_pass_can_be_continued(void **state) {
  (void)state;
  FOR_BOTH(make) {
    mix_dataset *data = mix_dataset_batch(mix_dataset_shuffle(make(8), 8, .seed = 4), 2);
    const int states = mix_dataset_save_state(data, NULL);
    uint64_t begun[16];
    assert_true(states <= 16);
    mix_dataset_save_state(data, begun);
    char rest[4000];
    mix_iterator *pass = mix_dataset_iterate(data);
    for (int i = 0; i < 2; i++) assert_non_null(mix_iterator_next(pass));
    put_item(rest, mix_iterator_next(pass));
    assert_true(mix_dataset_restore_state(data, begun));
    mix_iterator *resumed = mix_dataset_iterate(data);
    assert_true(mix_iterator_pass_over(resumed, 2));
    char again[4000];
    put_item(again, mix_iterator_next(resumed));
    assert_string_equal(again, rest);
  }
}

static void refused_memory_is_an_error(void **state) {
  (void)state;
  for (int64_t i = 0; i < 120; i++) {
    MIX_SCOPE {
      mix_inject_allocation_failure(i);
      mix_dataset *data =
          mix_dataset_zip(mix_list_of(rows(3), range(3)), mix_dataset_enumerate(generated(3), 0));
      mix_iterator *pass =
          data ? mix_dataset_iterate(mix_dataset_batch(mix_dataset_map(data, same_nested), 2)) : NULL;
      mix_list *element = pass ? mix_iterator_next(pass) : NULL;
      mix_inject_allocation_failure(-1);
      assert_true(element || mix_error() == MIX_MEMORY_ERROR);
      mix_error_clear();
    }
  }
}

#define TEST(test) cmocka_unit_test_teardown(test, end)
int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(sources_give_nested_elements),
      TEST(steps_that_order_elements_keep_them),
      TEST(steps_that_stack_and_split_keep_the_structure),
      TEST(functions_take_and_give_nested_elements),
      TEST(zip_nests_as_its_list_of_data_sets),
      TEST(errors_name_the_component),
      TEST(the_spec_describes_the_first_element),
      TEST(appending_to_an_element_does_not_change_the_data),
      TEST(a_pass_can_be_continued),
      TEST(refused_memory_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
