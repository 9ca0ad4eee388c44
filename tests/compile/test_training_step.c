/* A whole training step as one plan: updates in place, skipped steps that change nothing, static memory. */
#include "base/ended_object.h"
#include "compile/trainer.h"
#include "support/memory.h"
#include "support/sanitizer.h"

/* The step as a plan against the same step op by op. */
static void variables_are_updated_in_place(void **state) {
  (void)state;
  trainer t = new_trainer(), eager = new_trainer();
  void *addresses[] = {bytes_of_memory(t.kernel->memory), bytes_of_memory(t.bias->memory),
                       bytes_of_memory(t.velocity->memory)};
  mix_function *step = mix_function_new(train_step, &t);
  for (int i = 0; i < 4; i++) {
    mix_list *arguments = mix_list_of(batch(5, 0), labels(5, i % 3));
    double loss = mix_tensor_item(mix_list_get(mix_function_call(step, arguments), 0));
    assert_true(loss == mix_tensor_item(mix_list_get(train_step(&eager, arguments), 0)));
    no_error();
    bytes a = bytes_of(&t), b = bytes_of(&eager);
    assert_memory_equal(&a, &b, sizeof a);
  }
  const mix_variable *const variables[] = {t.kernel, t.bias, t.velocity};
  for (int i = 0; i < 3 && on_host(); i++)
    assert_ptr_equal(addresses[i], bytes_of_memory(variables[i]->memory));
  const char *plan = mix_function_dump(step, "plan");
  assert_non_null(strstr(plan, "-> variable 'kernel'") ? plan : strstr(plan, ", variable 'kernel'"));
}

static void a_skipped_step_writes_no_byte(void **state) {
  (void)state;
  for (int unguarded = 0; unguarded < 2; unguarded++) {
    trainer t = new_trainer();
    t.unguarded = unguarded;
    mix_function *step = mix_function_new(train_step, &t);
    mix_list *results = mix_function_call(step, mix_list_of(batch(5, 0), labels(5, 0)));
    has_values(mix_list_get(results, 1), true);
    const uint32_t negative_zero = 0x80000000; /* skipping must not change it to 0 */
    assert_true(mix_memory_copy_in(t.bias->memory, 4, &negative_zero, 4));
    bytes before = bytes_of(&t);
    const double bad[] = {INFINITY, -INFINITY, NAN};
    for (int i = 0; i < 3; i++) {
      results = mix_function_call(step, mix_list_of(batch(5, bad[i]), labels(5, 0)));
      no_error();
      has_values(mix_list_get(results, 1), false);
      before.skipped++;
      before.iterations += unguarded;
      bytes after = bytes_of(&t);
      assert_memory_equal(&after, &before, sizeof after);
    }
    results = mix_function_call(step, mix_list_of(batch(5, 0), labels(5, 0)));
    has_values(mix_list_get(results, 1), true);
    bytes after = bytes_of(&t);
    assert_memory_not_equal(after.kernel, before.kernel, sizeof after.kernel);
    assert_int_equal(after.iterations, before.iterations + 1);
    assert_int_equal(after.skipped, before.skipped);
  }
}

/* The plan's error word is part of the guard of every variable. */
static void a_label_outside_the_classes_changes_nothing(void **state) {
  (void)state;
  for (int device = 0; device < 2; device++) {
    mix_set_device(device ? "ref" : default_device());
    trainer t = new_trainer();
    t.unguarded = true;
    mix_function *step = mix_function_new(train_step, &t);
    mix_function_call(step, mix_list_of(batch(5, 0), labels(5, 0)));
    bytes before = bytes_of(&t);
    const int wrong[] = {3, -1, INT32_MAX};
    for (int i = 0; i < 3; i++) {
      expect_no_results(mix_function_call(step, mix_list_of(batch(5, 0), labels(5, wrong[i]))));
      expect_error(MIX_VALUE_ERROR, "sparse_softmax_cross_entropy", "model/loss");
      bytes after = bytes_of(&t);
      assert_memory_equal(&after, &before, sizeof after);
    }
    assert_non_null(mix_function_call(step, mix_list_of(batch(5, 0), labels(5, 2))));
    variable_has(t.iterations, 2);
  }
}

/* A caller that releases its results: no buffer or handle is allocated again, and all signatures share the
 * arena. */
static void the_steady_state_allocates_nothing(void **state) {
  (void)state;
  trainer t = new_trainer();
  mix_function *step = mix_function_new(train_step, &t);
  mix_list *arguments[] = {mix_list_of(batch(5, 0), labels(5, 0)), mix_list_of(batch(2, 0), labels(2, 0))};
  for (int i = 0; i < 4; i++)
    MIX_SCOPE { mix_function_call(step, arguments[i % 2]); }
  uint64_t before = mix_inject_allocation_failure(-1);
  size_t bytes = mix_buffer_bytes();
  for (int i = 0; i < 10; i++)
    MIX_SCOPE { mix_function_call(step, arguments[i % 2]); }
  uint64_t made = mix_inject_allocation_failure(-1) - before;
  no_error();
  assert_int_equal(mix_buffer_bytes(), bytes);
  /* a list, two nodes, two tensors, which neither the address sanitizer nor kept handles let recycle */
  const bool recycles = !UNDER_ADDRESS_SANITIZER && !mix_keeps_handles();
  assert_int_equal(made, recycles ? 0 : 10 * 5);
}

static void several_signatures_share_the_arena(void **state) {
  (void)state;
  trainer t = new_trainer();
  mix_function *step = mix_function_new(train_step, &t);
  size_t bytes = mix_buffer_bytes();
  mix_plan_report large, small;
  MIX_SCOPE { mix_function_call(step, mix_list_of(batch(16, 0), labels(16, 0))); }
  mix_function_report(step, &large, sizeof large);
  size_t first = mix_buffer_bytes() - bytes;
  MIX_SCOPE { mix_function_call(step, mix_list_of(batch(2, 0), labels(2, 0))); }
  mix_function_report(step, &small, sizeof small);
  size_t second = mix_buffer_bytes() - bytes - first;
  assert_true(small.arena_bytes <= large.arena_bytes);
  assert_true(first >= second + large.arena_bytes - 64); /* the second plan has no arena of its own */
}

/* Any failing allocation of capture, compilation and run: an error, nothing changes, nothing leaks, and the
 * next call works. */
static void failed_allocations(void **state) {
  (void)state;
  mix_set_threads(1);
  trainer t = new_trainer();
  mix_tensor *x = batch(3, 0), *y = labels(3, 0);
  mix_list *arguments = mix_list_of(x, y);
  MIX_SCOPE { mix_function_call(mix_function_new(train_step, &t), arguments); } /* moves the variables */
  size_t bytes_before = mix_buffer_bytes();
  bool complete = false;
  for (int k = 0; !complete; k++) {
    assert_in_range(k, 0, 20000);
    bytes before = bytes_of(&t);
    MIX_SCOPE {
      mix_function *step = mix_function_new(train_step, &t);
      mix_inject_allocation_failure(k);
      mix_list *results = mix_function_call(step, arguments);
      mix_inject_allocation_failure(-1);
      complete = mix_error() == MIX_OK;
      if (complete)
        assert_int_equal(mix_list_count(results), 2);
      else if (mix_error() != MIX_MEMORY_ERROR)
        fail_msg("allocation %d: %s: %s", k, mix_status_name(mix_error()), mix_error_message());
      mix_error_clear();
      bytes after = bytes_of(&t);
      if (!complete) assert_memory_equal(&after, &before, sizeof after);
      if (!complete && k % 16 == 0) {
        assert_non_null(mix_function_call(step, arguments));
        no_error();
      }
    }
    assert_int_equal(mix_buffer_bytes(), bytes_before);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(variables_are_updated_in_place),
      TEST(a_skipped_step_writes_no_byte),
      TEST(a_label_outside_the_classes_changes_nothing),
      TEST(the_steady_state_allocates_nothing),
      TEST(several_signatures_share_the_arena),
      TEST(failed_allocations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
