/* Handles of objects whose scope has ended, under MIXTAPE_DEBUG=scopes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/ended_object.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct named {
  mix_object object;
  char *text; /* owned */
} named;

static void named_finalize(void *object) { mix_free(((named *)object)->text); }
static const char *name_of(const void *object) { return ((const named *)object)->text; }
static const mix_class named_class = {.name = "thing", .finalize = named_finalize, .name_of = name_of};

static named *named_new(const char *text) {
  named *n = mix_object_new(sizeof *n, &named_class);
  n->text = mix_alloc(strlen(text) + 1);
  memcpy(n->text, text, strlen(text) + 1);
  return mix_scoped(n);
}

static int end(void **state) {
  (void)state;
  mix_error_clear();
  mix_shutdown();
  mix_error_clear();
  return 0;
}

/* The pending error contains all of the texts. */
static void assert_refused(const char *call, int begin_line, int end_line) {
  char place[64];
  assert_int_equal(mix_error(), MIX_RUNTIME_ERROR);
  const char *message = mix_error_message();
  assert_non_null(strstr(message, call));
  assert_non_null(strstr(message, "test_ended_object.c"));
  snprintf(place, sizeof place, "test_ended_object.c:%d ended", begin_line);
  assert_non_null(strstr(message, place));
  if (end_line) {
    snprintf(place, sizeof place, "test_ended_object.c:%d;", end_line);
    assert_non_null(strstr(message, place));
  } else {
    assert_non_null(strstr(message, "with its block"));
  }
  mix_error_clear();
}

static void a_use_names_object_scope_and_end(void **state) {
  (void)state;
  const int begin = __LINE__ + 1;
  mix_scope *scope = mix_scope_begin();
  named *thing = named_new("kernel");
  const int ended = __LINE__ + 1;
  mix_scope_end(scope);
  assert_false(mix_is(thing, &named_class));
  assert_refused("thing 'kernel'", begin, ended);
  assert_false(mix_given(thing, &named_class, "some_call", "a thing"));
  assert_refused("some_call: ", begin, ended);
  /* Without a class it may be no object at all, such as a text at any address. */
  assert_true(mix_given(&"text"[1], NULL, "some_call", "a text"));
}

static void references_to_an_ended_object_are_refused(void **state) {
  (void)state;
  named *thing = NULL;
  const int begin = __LINE__ + 1;
  MIX_SCOPE { thing = named_new("kernel"); }
  assert_null(mix_retain(thing));
  assert_refused("thing 'kernel'", begin, 0);
  mix_release(thing);
  assert_refused("thing 'kernel'", begin, 0);
  assert_null(mix_scope_leave(thing));
  assert_refused("thing 'kernel'", begin, 0);
  mix_release(thing); /* any number of times */
  assert_refused("thing 'kernel'", begin, 0);
  mix_list *list = mix_list_of(thing);
  assert_null(list);
  assert_refused("thing 'kernel'", begin, 0);
}

static void a_public_call_refuses_an_ended_list(void **state) {
  (void)state;
  mix_list *list = NULL;
  const int begin = __LINE__ + 1;
  MIX_SCOPE { list = mix_list_new(0, NULL); }
  assert_int_equal(mix_list_count(list), 0);
  assert_refused("the list went", begin, 0);
  assert_int_not_equal(mix_list_append(list, NULL), MIX_OK);
  assert_refused("list", begin, 0);
}

static void an_outer_end_is_the_end_of_inner_scopes(void **state) {
  (void)state;
  mix_scope *outer = mix_scope_begin();
  const int begin = __LINE__ + 1;
  mix_scope_begin();
  named *thing = named_new("x");
  const int ended = __LINE__ + 1;
  mix_scope_end(outer);
  assert_false(mix_is(thing, &named_class));
  assert_refused("thing 'x'", begin, ended);
}

static void the_root_scope_has_no_place(void **state) {
  (void)state;
  named *thing = named_new("x");
  mix_shutdown();
  assert_false(mix_is(thing, &named_class));
  assert_int_equal(mix_error(), MIX_RUNTIME_ERROR);
  assert_non_null(strstr(mix_error_message(), "the thing 'x' went"));
  assert_non_null(strstr(mix_error_message(), "with its thread ended in mix_shutdown"));
}

static void a_last_release_is_named_as_such(void **state) {
  (void)state;
  named *thing = NULL;
  MIX_SCOPE { thing = mix_retain(named_new("x")); }
  assert_true(mix_is(thing, &named_class)); /* it was retained */
  mix_release(thing);
  mix_release(thing);
  assert_int_equal(mix_error(), MIX_RUNTIME_ERROR);
  assert_non_null(strstr(mix_error_message(), "thing 'x' was given up by its last mix_release"));
}

/* A million handles of 200 bytes and more would take 200 MB. */
static void few_handles_are_kept(void **state) {
  (void)state;
  for (int i = 0; i < 1000000; i++)
    MIX_SCOPE { named_new("x"); }
  assert_in_range(mix_kept_handle_bytes(), (size_t)1 << 20, (size_t)16 << 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(a_use_names_object_scope_and_end, end),
      cmocka_unit_test_teardown(references_to_an_ended_object_are_refused, end),
      cmocka_unit_test_teardown(a_public_call_refuses_an_ended_list, end),
      cmocka_unit_test_teardown(an_outer_end_is_the_end_of_inner_scopes, end),
      cmocka_unit_test_teardown(the_root_scope_has_no_place, end),
      cmocka_unit_test_teardown(a_last_release_is_named_as_such, end),
      cmocka_unit_test_teardown(few_handles_are_kept, end),
  };
  setenv("MIXTAPE_DEBUG", "scopes", 1);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
