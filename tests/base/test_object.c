/* References and scopes: ownership and the time of release. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/ended_object.h"
#include "base/object.h"
#include "support/sanitizer.h"

#include <pthread.h>
#include <string.h>

/* A link of a chain. `finalized` counts the finalized links, `order` records their numbers. */
typedef struct link {
  mix_object object;
  void *next; /* owned */
  int number;
} link;

static atomic_int finalized;
static int order[64];

static void link_finalize(void *object) {
  link *l = object;
  int at = atomic_fetch_add(&finalized, 1);
  if (at < 64) order[at] = l->number;
  mix_release(l->next);
}

static const mix_class link_class = {.name = "link", .finalize = link_finalize};
static const mix_class plain_class = {.name = "plain"};

static link *link_new(int number) {
  link *l = mix_object_new(sizeof *l, &link_class);
  if (l) l->number = number;
  return mix_scoped(l);
}

static int begin(void **state) {
  (void)state;
  finalized = 0;
  return 0;
}

static int end(void **state) {
  (void)state;
  mix_inject_allocation_failure(-1);
  mix_shutdown();
  mix_error_clear();
  return 0;
}

static void references_are_counted(void **state) {
  (void)state;
  link *l = mix_object_new(sizeof *l, &link_class);
  assert_null(l->next);
  assert_int_equal(mix_references(l), 1);
  assert_ptr_equal(mix_retain(l), l);
  assert_int_equal(mix_references(l), 2);
  mix_release(l);
  assert_int_equal(finalized, 0);
  mix_release(l);
  assert_int_equal(finalized, 1);
  void *plain = mix_object_new(sizeof(mix_object), &plain_class); /* no finalizer */
  mix_release(plain);
}

static void null_is_accepted(void **state) {
  (void)state;
  assert_null(mix_retain(NULL));
  mix_release(NULL);
  assert_null(mix_scoped(NULL));
  assert_null(mix_scope_leave(NULL));
  mix_scope_end(NULL);
  assert_int_equal(mix_references(NULL), 0);
  assert_false(mix_is(NULL, &link_class));
  assert_int_equal(mix_error(), MIX_OK);
}

static void classes_are_distinguished(void **state) {
  (void)state;
  link *l = link_new(0);
  assert_true(mix_is(l, &link_class));
  assert_false(mix_is(l, &plain_class));
}

static void a_chain_of_a_million_is_released_without_recursion(void **state) {
  (void)state;
  link *head = NULL;
  for (int i = 0; i < 1000000; i++) {
    link *l = mix_object_new(sizeof *l, &link_class);
    assert_non_null(l);
    l->next = head;
    head = l;
  }
  mix_release(head);
  assert_int_equal(finalized, 1000000);
}

static void a_scope_owns_what_is_made_in_it(void **state) {
  (void)state;
  mix_scope *scope = mix_scope_begin();
  for (int i = 0; i < 20; i++) link_new(i);
  link *kept = mix_retain(link_new(20));
  assert_int_equal(finalized, 0);
  mix_scope_end(scope);
  assert_int_equal(finalized, 20);
  for (int i = 0; i < 20; i++) assert_int_equal(order[i], 19 - i); /* newest first */
  assert_int_equal(mix_references(kept), 1);
  mix_release(kept);
  assert_int_equal(finalized, 21);
}

static void scopes_nest(void **state) {
  (void)state;
  MIX_SCOPE {
    link_new(1);
    MIX_SCOPE { link_new(2); }
    assert_int_equal(finalized, 1);
    link_new(3);
    assert_int_equal(finalized, 1);
  }
  assert_int_equal(finalized, 3);
}

static int returns_from_a_scope(void) {
  MIX_SCOPE {
    link_new(1);
    return finalized;
  }
  return -1;
}

static void return_and_goto_end_the_scope(void **state) {
  (void)state;
  assert_int_equal(returns_from_a_scope(), 0);
  assert_int_equal(finalized, 1);
  MIX_SCOPE {
    MIX_SCOPE {
      link_new(2);
      goto out;
    }
  }
out:
  assert_int_equal(finalized, 2);
  assert_int_equal(mix_error(), MIX_OK);
}

static void break_of_a_scope_is_an_error(void **state) {
  (void)state;
  int rounds = 0;
  for (int i = 0; i < 3 && !mix_failed(); i++) {
    rounds++;
    MIX_SCOPE {
      link_new(i);
      break;
    }
  }
  assert_int_equal(rounds, 1);
  assert_int_equal(finalized, 1);
  assert_int_equal(mix_error(), MIX_RUNTIME_ERROR);
  assert_non_null(strstr(mix_error_message(), "test_object.c:"));
  assert_non_null(strstr(mix_error_message(), "left by break"));
  assert_non_null(strstr(mix_error_message(), "MIX_SCOPE_HERE"));
}

static void continue_ends_a_scope(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++)
    MIX_SCOPE {
      link_new(i);
      if (i == 1) continue;
      link_new(i);
    }
  assert_int_equal(finalized, 5);
  assert_int_equal(mix_error(), MIX_OK);
}

/* The statements of the loop itself, with a scope that lasts to the end of the block. */
static void a_scope_of_a_block_leaves_loops_alone(void **state) {
  (void)state;
  int ends = 0;
  for (int i = 0; i < 10; i++) {
    MIX_SCOPE_HERE;
    link_new(i);
    if (i == 1) continue;
    if (i == 3) break;
    assert_int_equal(finalized, i);
    ends++;
  }
  assert_int_equal(ends, 2); /* 0 and 2 */
  assert_int_equal(finalized, 4);
  assert_int_equal(mix_error(), MIX_OK);
}

static void ending_a_scope_ends_those_inside(void **state) {
  (void)state;
  mix_scope *outer = mix_scope_begin();
  link_new(1);
  mix_scope_begin();
  link_new(2);
  mix_scope *innermost = mix_scope_begin();
  link_new(3);
  mix_scope_end(outer);
  assert_int_equal(finalized, 3);
  for (int i = 0; i < 3; i++) assert_int_equal(order[i], 3 - i);
  link_new(4); /* in the root scope again */
  assert_int_equal(finalized, 3);
  mix_scope_end(innermost);
  assert_int_equal(mix_error(), MIX_RUNTIME_ERROR);
  assert_non_null(strstr(mix_error_message(), "scope_end"));
}

static void scopes_work_while_an_error_is_pending(void **state) {
  (void)state;
  mix_scope *scope = mix_scope_begin();
  link_new(1);
  mix_fail(MIX_VALUE_ERROR, "pending");
  MIX_SCOPE { link_new(2); }
  mix_scope_end(scope);
  assert_int_equal(finalized, 2);
  assert_string_equal(mix_error_message(), "pending");
}

static void leaving_moves_one_scope_out(void **state) {
  (void)state;
  mix_scope *a = mix_scope_begin(), *b = mix_scope_begin(), *c = mix_scope_begin();
  link *l = link_new(1);
  link_new(2);
  assert_ptr_equal(mix_scope_leave(l), l); /* now owned by b */
  mix_scope_end(c);
  assert_int_equal(finalized, 1);
  assert_int_equal(order[0], 2);
  mix_scope_leave(l); /* now owned by a */
  mix_scope_end(b);
  assert_int_equal(finalized, 1);
  mix_scope_leave(l); /* now owned by the root scope */
  mix_scope_end(a);
  assert_int_equal(finalized, 1);
  assert_ptr_equal(mix_scope_leave(l), l); /* the root has no outer scope */
  assert_int_equal(mix_references(l), 1);
  mix_shutdown();
  assert_int_equal(finalized, 2);
}

static void leaving_finds_the_scope_that_owns(void **state) {
  (void)state;
  mix_scope *outer = mix_scope_begin();
  link *l = link_new(1);
  mix_scope *inner = mix_scope_begin();
  mix_scope_leave(l); /* from outer to the root scope, although inner is the innermost */
  mix_scope_end(inner);
  mix_scope_end(outer);
  assert_int_equal(finalized, 0);
  link *unowned = mix_object_new(sizeof *unowned, &link_class);
  MIX_SCOPE { assert_ptr_equal(mix_scope_leave(unowned), unowned); }
  assert_int_equal(mix_references(unowned), 1);
  mix_release(unowned);
}

static void leaving_keeps_the_others_in_order(void **state) {
  (void)state;
  mix_scope *scope = mix_scope_begin();
  link *links[5];
  for (int i = 0; i < 5; i++) links[i] = link_new(i);
  mix_scope_leave(links[2]);
  mix_scope_leave(links[4]);
  mix_scope_end(scope);
  assert_int_equal(finalized, 3);
  const int expected[] = {3, 1, 0};
  assert_memory_equal(order, expected, sizeof expected);
}

static void an_object_owned_twice_leaves_once(void **state) {
  (void)state;
  mix_scope *outer = mix_scope_begin();
  link *l = link_new(1);
  mix_scope *inner = mix_scope_begin();
  mix_scoped(mix_retain(l));
  mix_scope_leave(l);
  mix_scope_end(inner);
  assert_int_equal(mix_references(l), 2);
  mix_scope_end(outer);
  assert_int_equal(finalized, 1);
}

static void a_loop_of_scopes_allocates_nothing(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++)
    MIX_SCOPE {
      for (int j = 0; j < 100; j++) link_new(j);
    }
  link *l = mix_object_new(sizeof *l, &link_class);
  uint64_t before = mix_inject_allocation_failure(-1);
  for (int i = 0; i < 1000; i++)
    MIX_SCOPE {
      for (int j = 0; j < 100; j++) mix_scoped(mix_retain(l));
    }
  assert_int_equal(mix_inject_allocation_failure(-1), before);
  assert_int_equal(mix_references(l), 1);
  mix_release(l);
}

static void failed_allocations_leak_nothing(void **state) {
  (void)state;
  mix_shutdown(); /* no recycled scope or array */
  int k = 0;
  for (bool complete = false; !complete; k++) {
    int made = finalized;
    mix_inject_allocation_failure(k);
    mix_scope *outer = mix_scope_begin(), *inner = outer ? mix_scope_begin() : NULL;
    int created = 0, seen = 0;
    for (int i = 0; inner && i < 20; i++) {
      link *l = mix_object_new(sizeof *l, &link_class);
      created += l != NULL;
      if (mix_scoped(l)) seen++;
      if (i == 10) mix_scope_leave(l);
    }
    mix_inject_allocation_failure(-1);
    complete = mix_error() == MIX_OK;
    if (!complete) assert_int_equal(mix_error(), MIX_MEMORY_ERROR);
    if (complete)
      assert_int_equal(seen, 20);
    else
      assert_true(!inner || seen >= 10);
    mix_error_clear();
    mix_scope_end(outer);
    assert_int_equal(finalized - made, created);
    mix_shutdown();
  }
  assert_in_range(k, 20, 60); /* 20 objects, two scopes, their arrays */
}

static void *thread_main(void *with_open_scope) {
  link_new(1);
  mix_scope *scope = mix_scope_begin();
  link_new(2);
  mix_scope_begin();
  link_new(3);
  if (!with_open_scope) mix_scope_end(scope);
  return NULL;
}

static void thread_exit_releases_root_and_open_scopes(void **state) {
  (void)state;
  link_new(4); /* belongs to this thread: stays */
  int flag = 1;
  for (int i = 0; i < 2; i++) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, thread_main, i ? &flag : NULL), 0);
    pthread_join(thread, NULL);
    assert_int_equal(finalized, 3 * (i + 1));
  }
  mix_shutdown();
  assert_int_equal(finalized, 7);
}

static void *end_elsewhere(void *scope) {
  mix_scope_end(scope);
  return (void *)(intptr_t)mix_error_take(NULL, 0);
}

static void a_scope_belongs_to_its_thread(void **state) {
  (void)state;
  mix_scope *scope = mix_scope_begin();
  link_new(1);
  pthread_t thread;
  void *result;
  assert_int_equal(pthread_create(&thread, NULL, end_elsewhere, scope), 0);
  pthread_join(thread, &result);
  assert_int_equal((intptr_t)result, MIX_RUNTIME_ERROR);
  assert_int_equal(finalized, 0);
  mix_scope_end(scope);
  assert_int_equal(finalized, 1);
}

static void *retain_and_release(void *object) {
  for (int i = 0; i < 20000; i++) mix_release(mix_retain(object));
  mix_release(object);
  return NULL;
}

static void references_are_shared_between_threads(void **state) {
  (void)state;
  link *l = mix_object_new(sizeof *l, &link_class);
  pthread_t threads[4];
  for (int i = 0; i < 4; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, retain_and_release, mix_retain(l)), 0);
  mix_release(l);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  assert_int_equal(finalized, 1);
}

/* ---- memory that threads share ---- */

typedef struct wide {
  mix_object object;
  char rest[900];
} wide;

static void *make_one(void *unused) {
  (void)unused;
  return mix_object_new(sizeof(wide), &plain_class);
}

static wide *made_elsewhere(void) {
  pthread_t thread;
  void *made;
  assert_int_equal(pthread_create(&thread, NULL, make_one, NULL), 0);
  pthread_join(thread, &made);
  assert_non_null(made);
  return made;
}

/* A thread that makes an object for another one takes several that threads share, and leaves them. */
static void what_a_thread_took_is_left_when_it_ends(void **state) {
  (void)state;
  enum { MANY = 600, THREADS = 5 }; /* more than a thread keeps for itself */
  static wide *made[MANY];
  for (int i = 0; i < MANY; i++) assert_non_null(made[i] = make_one(NULL));
  for (int i = 0; i < MANY; i++) mix_release(made[i]);
  const uint64_t allocations = mix_inject_allocation_failure(-1);
  for (int i = 0; i < THREADS; i++) made[i] = made_elsewhere();
  for (int i = THREADS; i < MANY; i++) made[i] = make_one(NULL);
  assert_true(mix_inject_allocation_failure(-1) == allocations || UNDER_ADDRESS_SANITIZER ||
              mix_keeps_handles());
  for (int i = 0; i < MANY; i++) mix_release(made[i]);
}

/* A finalizer that creates objects: they belong to the scope around the one that ends. */
static void creating_finalize(void *object) {
  (void)object;
  link_new(50);
}
static const mix_class creating_class = {.name = "fertile", .finalize = creating_finalize};

static void finalizers_may_make_objects(void **state) {
  (void)state;
  mix_scope *outer = mix_scope_begin(), *inner = mix_scope_begin();
  mix_scoped(mix_object_new(sizeof(mix_object), &creating_class));
  mix_scope_end(inner);
  assert_int_equal(finalized, 0);
  mix_scope_end(outer);
  assert_int_equal(finalized, 1);
  mix_scoped(mix_object_new(sizeof(mix_object), &creating_class));
  mix_shutdown();
  assert_int_equal(finalized, 2);
}

static void *creating_thread(void *unused) {
  mix_scoped(mix_object_new(sizeof(mix_object), &creating_class));
  return unused;
}

static void objects_of_finalizers_at_thread_exit_are_released(void **state) {
  (void)state;
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, creating_thread, NULL), 0);
  pthread_join(thread, NULL);
  assert_int_equal(finalized, 1);
}

static pthread_key_t deferred_key;
static void make_late(void *unused) {
  (void)unused;
  link_new(60);
}
static void *late_thread(void *unused) {
  link_new(61);
  pthread_setspecific(deferred_key, &deferred_key);
  return unused;
}

/* The test's key is created after the library's, so its destructor runs after the root scope is released. */
static void objects_made_after_the_root_scope_are_released(void **state) {
  (void)state;
  link_new(1); /* creates the library's key */
  assert_int_equal(pthread_key_create(&deferred_key, make_late), 0);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, late_thread, NULL), 0);
  pthread_join(thread, NULL);
  assert_int_equal(finalized, 2);
  pthread_key_delete(deferred_key);
}

/* A recycle hook that keeps one object; otherwise the memory is freed. */
static link *pool;
static bool link_recycle(void *object) {
  if (pool) return false;
  pool = object;
  return true;
}
static const mix_class pooled_class = {.name = "pooled", .finalize = link_finalize, .recycle = link_recycle};

static void a_recycled_object_waits_for_its_owner(void **state) {
  (void)state;
  pool = NULL;
  link *l = mix_object_new(sizeof *l, &pooled_class);
  mix_release(l);
  assert_ptr_equal(pool, l);
  assert_int_equal(finalized, 0);
  assert_int_equal(mix_references(l), 0);
  atomic_store(&l->object.references, 1); /* in use again; meanwhile the pool is full */
  mix_release(l);
  assert_int_equal(finalized, 1);
}

static int hook_calls[2];
static void first_hook(void) { hook_calls[0]++; }
static void second_hook(void) {
  assert_int_equal(hook_calls[0], hook_calls[1]); /* last registered, first called */
  hook_calls[1]++;
}

static void shutdown_calls_each_hook_once(void **state) {
  (void)state;
  mix_shutdown();
  for (int i = 0; i < 3; i++) assert_true(mix_on_shutdown(first_hook));
  assert_true(mix_on_shutdown(second_hook));
  mix_shutdown();
  assert_int_equal(hook_calls[0], 1);
  assert_int_equal(hook_calls[1], 1);
  mix_shutdown(); /* hooks register again when there is something to release */
  assert_int_equal(hook_calls[0], 1);
}

static void shutdown_leaves_open_scopes(void **state) {
  (void)state;
  link_new(1);
  mix_scope *scope = mix_scope_begin();
  link_new(2);
  mix_shutdown();
  assert_int_equal(finalized, 1);
  mix_scope_end(scope);
  assert_int_equal(finalized, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(references_are_counted),
      TEST(null_is_accepted),
      TEST(classes_are_distinguished),
      TEST(a_chain_of_a_million_is_released_without_recursion),
      TEST(a_scope_owns_what_is_made_in_it),
      TEST(scopes_nest),
      TEST(return_and_goto_end_the_scope),
      TEST(break_of_a_scope_is_an_error),
      TEST(continue_ends_a_scope),
      TEST(a_scope_of_a_block_leaves_loops_alone),
      TEST(ending_a_scope_ends_those_inside),
      TEST(scopes_work_while_an_error_is_pending),
      TEST(leaving_moves_one_scope_out),
      TEST(leaving_finds_the_scope_that_owns),
      TEST(leaving_keeps_the_others_in_order),
      TEST(an_object_owned_twice_leaves_once),
      TEST(a_loop_of_scopes_allocates_nothing),
      TEST(failed_allocations_leak_nothing),
      TEST(thread_exit_releases_root_and_open_scopes),
      TEST(a_scope_belongs_to_its_thread),
      TEST(references_are_shared_between_threads),
      TEST(what_a_thread_took_is_left_when_it_ends),
      TEST(finalizers_may_make_objects),
      TEST(objects_of_finalizers_at_thread_exit_are_released),
      TEST(objects_made_after_the_root_scope_are_released),
      TEST(a_recycled_object_waits_for_its_owner),
      TEST(shutdown_calls_each_hook_once),
      TEST(shutdown_leaves_open_scopes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
