/* Dicts, and nested lists as one list of leaves with a structure. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/structure.h"
#include <stdio.h>
#include <string.h>

static const mix_class thing_class = {.name = "thing"};
static void *thing(void) { return mix_scoped(mix_object_new(sizeof(mix_object), &thing_class)); }

static int end(void **state) {
  (void)state;
  mix_inject_allocation_failure(-1);
  mix_error_clear();
  mix_shutdown();
  return 0;
}
static void assert_failed(mix_status status, const char *part) {
  char message[1000];
  assert_int_equal(mix_error_take(message, sizeof message), status);
  if (!strstr(message, part)) fail_msg("'%s' is missing in: %s", part, message);
}

static void a_dict_has_names_in_the_given_order(void **state) {
  (void)state;
  void *x = thing(), *y = thing();
  mix_list *dict = mix_dict_of("b", x, "a", y);
  assert_int_equal(mix_list_count(dict), 2);
  assert_string_equal(mix_dict_name(dict, 0), "b");
  assert_ptr_equal(mix_dict_get(dict, "a"), y);
  assert_ptr_equal(mix_list_get(dict, 0), x);
  assert_null(mix_dict_name(dict, 2));
  assert_null(mix_dict_name(mix_list_of(x), 0));
  assert_int_equal(mix_dict_set(dict, "b", y), MIX_OK);
  assert_int_equal(mix_dict_set(dict, "c", NULL), MIX_OK);
  assert_ptr_equal(mix_dict_get(dict, "b"), y);
  assert_null(mix_dict_get(dict, "c"));
  assert_int_equal(mix_error(), MIX_OK);
  assert_int_equal(mix_references(x), 2); /* the scope's, and that of the list without names */
}

static void a_wrong_use_of_a_dict_says_so(void **state) {
  (void)state;
  void *x = thing();
  mix_list *dict = mix_dict_of("a", x);
  assert_null(mix_dict_get(dict, "q"));
  assert_failed(MIX_VALUE_ERROR, "no item is named 'q'; the names are 'a'");
  assert_null(mix_dict_get(mix_list_of(x), "a"));
  assert_failed(MIX_TYPE_ERROR, "the list has no names");
  assert_null(mix_dict_get(NULL, "a"));
  assert_failed(MIX_TYPE_ERROR, "expected a list");
  assert_null(mix_dict_get(dict, NULL));
  assert_failed(MIX_TYPE_ERROR, "the name is NULL");
  mix_list_append(dict, x);
  assert_failed(MIX_TYPE_ERROR, "use mix_dict_set");
  mix_dict_set(dict, "self", dict);
  assert_failed(MIX_VALUE_ERROR, "the dict itself");
  assert_null(mix_dict_of("a", x, "a", x));
  assert_failed(MIX_VALUE_ERROR, "the name 'a' is given twice");
  assert_null(mix_dict_of("a"));
  assert_failed(MIX_VALUE_ERROR, "1 arguments");
  assert_null(mix_dict_new(2, (const char *[]){"a", "a"}, (void *[]){x, x}));
  assert_failed(MIX_VALUE_ERROR, "twice");
  assert_null(mix_dict_new(1, (const char *[]){NULL}, (void *[]){x}));
  assert_failed(MIX_TYPE_ERROR, "name 0 is NULL");
}

static void a_dict_may_be_long(void **state) {
  (void)state;
  mix_list *dict = mix_dict_new(0, NULL, NULL);
  char name[16];
  for (int i = 0; i < 100; i++) {
    snprintf(name, sizeof name, "n%d", i);
    assert_int_equal(mix_dict_set(dict, name, thing()), MIX_OK);
  }
  assert_ptr_equal(mix_dict_get(dict, "n77"), mix_list_get(dict, 77));
}

static void nested_lists_flatten_and_pack(void **state) {
  (void)state;
  void *a = thing(), *b = thing(), *c = thing(), *d = thing();
  char text[200];
  mix_list *nested = mix_list_of(mix_list_of(a, mix_list_of(b)), mix_dict_of("z", c, "m", d));
  mix_list *flat = mix_list_flatten(nested, "test");
  assert_int_equal(mix_list_count(flat), 4);
  assert_ptr_equal(mix_list_get(flat, 2), d); /* sorted by name, as in tf.nest */
  assert_ptr_equal(mix_list_get(flat, 3), c);
  assert_string_equal(mix_structure_text(flat, NULL, NULL, text, sizeof text),
                      "((., (.,)), {'m': ., 'z': .})");
  assert_string_equal(mix_leaf_text(mix_list_structure(flat), 1, text, sizeof text), "component (0, 1, 0)");
  assert_string_equal(mix_leaf_text(mix_list_structure(flat), 3, text, sizeof text), "component (1, 'z')");
  mix_list *packed = mix_list_pack(flat);
  assert_ptr_equal(mix_list_get(mix_list_get(mix_list_get(packed, 0), 1), 0), b);
  assert_ptr_equal(mix_dict_get(mix_list_get(packed, 1), "z"), c);
  assert_string_equal(mix_dict_name(mix_list_get(packed, 1), 0), "m");
}

static void equal_structures_are_one(void **state) {
  (void)state;
  void *a = thing(), *b = thing();
  const mix_structure *one = mix_list_structure(mix_list_flatten(mix_dict_of("x", a, "y", b), "test"));
  assert_non_null(one);
  assert_ptr_equal(mix_list_structure(mix_list_flatten(mix_dict_of("y", a, "x", b), "test")), one);
  assert_ptr_not_equal(mix_list_structure(mix_list_flatten(mix_dict_of("y", a, "z", b), "test")), one);
  assert_ptr_not_equal(mix_list_structure(mix_list_flatten(mix_list_of(mix_list_of(a, b)), "test")), one);
}

static void a_list_of_leaves_stays_as_it_is(void **state) {
  (void)state;
  mix_list *flat = mix_list_of(thing(), NULL);
  char text[100];
  assert_ptr_equal(mix_list_flatten(flat, "test"), flat);
  assert_ptr_equal(mix_list_pack(flat), flat);
  assert_string_equal(mix_leaf_text(NULL, 1, text, sizeof text), "tensor 1");
  assert_string_equal(mix_structure_text(flat, NULL, NULL, text, sizeof text), "(., .)");
}

static void nesting_has_an_end(void **state) {
  (void)state;
  mix_list *deep = mix_list_of(thing());
  for (int i = 0; i < 20; i++) deep = mix_list_of(deep);
  assert_null(mix_list_flatten(deep, "test"));
  assert_failed(MIX_VALUE_ERROR, "test: lists are nested more than 16 deep");
  assert_null(mix_list_flatten(thing(), "test"));
  assert_failed(MIX_TYPE_ERROR, "test: got another object");
}

static void refused_memory_is_an_error(void **state) {
  (void)state;
  for (int i = 0; i < 40; i++) {
    MIX_SCOPE {
      mix_inject_allocation_failure(i);
      char name[32];
      snprintf(name, sizeof name, "refused%d", i);
      mix_list *dict = mix_dict_of(name, thing(), "b", thing());
      mix_list *flat = dict ? mix_list_flatten(mix_list_of(dict, thing()), "test") : NULL;
      mix_list *packed = flat ? mix_list_pack(flat) : NULL;
      mix_inject_allocation_failure(-1);
      assert_true(packed || mix_error() == MIX_MEMORY_ERROR);
      mix_error_clear();
    }
  }
}

#define TEST(test) cmocka_unit_test_teardown(test, end)
int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_dict_has_names_in_the_given_order),
      TEST(a_wrong_use_of_a_dict_says_so),
      TEST(a_dict_may_be_long),
      TEST(nested_lists_flatten_and_pack),
      TEST(equal_structures_are_one),
      TEST(a_list_of_leaves_stays_as_it_is),
      TEST(nesting_has_an_end),
      TEST(refused_memory_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
