/* The device "remote": runs are queued, memory is out of the host's reach, and it finds five mistakes that a
 * device with a queue would suffer from, each planted here. */
#include "compile/trainer.h"
#include "graph/lock.h"

#include "compile/compile.h"
#include "support/captured_graph.h"
#include "support/remote/remote.h"
#include "tensor/memory_inside.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static int begin_remote(void **state) {
  mix_set_device("remote");
  mix_remote_set_seed(7);
  return begin_test(state);
}
#define REMOTE(function) cmocka_unit_test_setup_teardown(function, begin_remote, end_test)

static mix_list *add_to(void *variable, mix_list *arguments) {
  mix_tensor *sum = mix_add(mix_variable_value(variable), mix_list_get(arguments, 0));
  mix_variable_assign(variable, sum);
  return mix_list_of(mix_square(sum));
}
static mix_list *twice(void *variable, mix_list *arguments) {
  (void)arguments;
  return mix_list_of(mix_add(mix_variable_value(variable), mix_variable_value(variable)));
}

static mix_memory *memory_of(mix_tensor *tensor) { return mix_tensor_value(tensor)->memory; }

/* ---- what is right ---- */

static void a_run_waits_until_its_value_is_read(void **state) {
  (void)state;
  mix_variable *v = variable("v", vec(MIX_FLOAT32, 1, 2));
  mix_function *step = mix_function_new(add_to, v);
  mix_list *arguments = mix_list_of(vec(MIX_FLOAT32, 10, 20));
  mix_list *first = mix_function_call(step, arguments), *second = mix_function_call(step, arguments);
  no_error();
  assert_true(mix_remote_waiting() > 0);
  has_values(mix_list_get(second, 0), 21 * 21, 42 * 42);
  has_values(mix_list_get(first, 0), 11 * 11, 22 * 22);
  variable_has(v, 21, 42);
  assert_int_equal(mix_remote_waiting(), 0);
}

static void synchronize_runs_everything(void **state) {
  (void)state;
  mix_variable *v = variable("v", vec(MIX_FLOAT32, 1, 2));
  mix_function_call(mix_function_new(add_to, v), mix_list_of(vec(MIX_FLOAT32, 10, 20)));
  assert_true(mix_remote_waiting() > 0);
  assert_int_equal(mix_synchronize(), MIX_OK);
  assert_int_equal(mix_remote_waiting(), 0);
}

/* Variables move with the device of each call, and readers keep the values that they read. */
static void variables_follow_the_device(void **state) {
  (void)state;
  static const char *const devices[] = {"remote", "cpu", "remote", "ref", "remote"};
  mix_variable *v = variable("v", vec(MIX_FLOAT32, 0, 1));
  mix_function *step = mix_function_new(add_to, v);
  mix_tensor *read[COUNT(devices)];
  for (int i = 0; i < COUNT(devices); i++) {
    mix_set_device(devices[i]);
    read[i] = mix_variable_value(v);
    mix_function_call(step, mix_list_of(vec(MIX_FLOAT32, 1, 1)));
    no_error();
  }
  for (int i = 0; i < COUNT(devices); i++) has_values(read[i], i, i + 1);
  variable_has(v, 5, 6);
}

static void data_of_a_tensor_stay_valid(void **state) {
  (void)state;
  mix_variable *v = variable("v", vec(MIX_FLOAT32, 1, 2));
  mix_function *step = mix_function_new(add_to, v);
  mix_list *arguments = mix_list_of(vec(MIX_FLOAT32, 10, 20));
  mix_tensor *square = mix_list_get(mix_function_call(step, arguments), 0), *value = mix_variable_value(v);
  const float *squares = mix_tensor_data(square), *values = mix_tensor_data(value);
  mix_function_call(step, arguments);
  mix_synchronize();
  assert_true(squares[0] == 121 && squares[1] == 484);
  assert_true(values[0] == 11 && values[1] == 22);
  assert_ptr_equal(mix_tensor_data(square), squares);
}

/* A value error is reported once; no run that was enqueued before then writes a variable, all after it do. */
static void the_error_word_latches(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 20; seed++) {
    mix_remote_set_seed(seed);
    trainer t = new_trainer();
    mix_function *step = mix_function_new(train_step, &t);
    mix_function_call(step, mix_list_of(batch(5, 0), labels(5, 0)));
    mix_function_call(step, mix_list_of(batch(5, 0), labels(5, 7)));
    mix_function_call(step, mix_list_of(batch(5, 0), labels(5, 0)));
    no_error();
    assert_int_equal(mix_synchronize(), MIX_VALUE_ERROR);
    expect_error(MIX_VALUE_ERROR, "sparse_softmax_cross_entropy", "model/loss");
    assert_int_equal(mix_synchronize(), MIX_OK);
    variable_has(t.iterations, 1);
    mix_function_call(step, mix_list_of(batch(5, 0), labels(5, 0)));
    variable_has(t.iterations, 2);
  }
}

/* ---- planted mistakes ---- */

static void the_host_reads_memory_of_the_device(void **state) {
  (void)state;
  mix_memory *memory = mix_memory_new(&mix_remote_memory, 64);
  assert_non_null(memory);
  const char *mapped = mix_memory_map(memory, MIX_MAP_READ);
  assert_int_equal(*(volatile const unsigned char *)mapped, 0xff);
  mix_memory_unmap(memory);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    _exit(*(volatile const char *)memory->address == 0);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
  mix_release(memory);
}

static void a_result_is_read_before_its_wait(void **state) {
  (void)state;
  mix_variable *v = variable("v", vec(MIX_FLOAT32, 1, 2));
  mix_tensor *result = mix_list_get(mix_function_call(mix_function_new(twice, v), NULL), 0);
  mix_memory *memory = mix_remote_whole(memory_of(result));
  const mix_ticket ticket = memory->written;
  assert_true(ticket > 0);
  memory->written = memory->used = 0; /* the ticket is forgotten */
  const float *early = mix_remote_kernel_address(memory->address);
  assert_true(isnan(early[0]));
  assert_null(mix_memory_map(memory, MIX_MAP_READ));
  expect_error(MIX_INTERNAL_ERROR, "reads", "still writes");
  memory->written = memory->used = ticket;
  has_values(result, 2, 4);
}

static mix_list *chain(void *variable, mix_list *arguments) {
  mix_tensor *x = mix_list_get(arguments, 0), *w = mix_variable_value(variable);
  mix_tensor *a = mix_matmul(x, w, false, false), *b = mix_matmul(a, w, false, false);
  return mix_list_of(mix_matmul(a, b, false, false));
}

static void slots_overlap_while_both_are_alive(void **state) {
  (void)state;
  graph g;
  mix_variable *w = variable("w", mix_reshape(vec(MIX_FLOAT32, 1, 2, 3, 4), MIX_SHAPE(2, 2)));
  begin_graph(&g);
  mix_list *results = chain(w, mix_list_of(argument(&g, MIX_FLOAT32, MIX_SHAPE(2, 2))));
  mix_compiled *compiled = mix_compile(end_graph(&g, results), NULL, false);
  no_error();
  mix_plan plan = compiled->plan;
  int arena[2], count = 0;
  for (int t = 0; t < plan.step_count && count < 2; t++)
    if (plan.slots[plan.steps[t].outputs[0]].kind == MIX_SLOT_ARENA)
      arena[count++] = plan.steps[t].outputs[0];
  assert_int_equal(count, 2);
  mix_executable *right = mix_backend_remote.compile(&plan, &compiled->context);
  assert_non_null(right);
  mix_backend_remote.destroy(right);
  plan.slots[arena[1]].offset = plan.slots[arena[0]].offset;
  assert_null(mix_backend_remote.compile(&plan, &compiled->context));
  expect_error(MIX_INTERNAL_ERROR, "share bytes of the arena while both are alive");
  mix_compiled_free(compiled);
}

static void a_variable_is_read_after_it_was_replaced(void **state) {
  (void)state;
  mix_variable *v = variable("v", vec(MIX_FLOAT32, 1, 2));
  mix_function *step = mix_function_new(add_to, v);
  mix_list *arguments = mix_list_of(vec(MIX_FLOAT32, 10, 20));
  mix_function_call(step, arguments); /* moves it to the device */
  mix_memory *former = mix_retain(v->memory);
  mix_function_call(step, arguments);
  no_error();
  assert_ptr_not_equal(former, v->memory);
  assert_null(mix_memory_map(former, MIX_MAP_READ));
  expect_error(MIX_INTERNAL_ERROR, "after a run has replaced it");
  mix_release(former);
  variable_has(v, 21, 42);
}

static void an_assignment_does_not_wait_for_readers(void **state) {
  (void)state;
  mix_variable *v = variable("v", vec(MIX_FLOAT32, 1, 2));
  mix_function *function = mix_function_new(twice, v);
  has_values(mix_list_get(mix_function_call(function, NULL), 0), 2, 4); /* moves it to the device */
  mix_tensor *result = mix_list_get(mix_function_call(function, NULL), 0);
  const mix_ticket ticket = v->memory->used;
  assert_true(ticket > 0);
  v->memory->used = 0; /* the ticket of the run that reads it is forgotten */
  mix_variable_assign(v, vec(MIX_FLOAT32, 5, 6));
  expect_error(MIX_INTERNAL_ERROR, "writes", "still uses");
  v->memory->used = ticket;
  mix_variable_assign(v, vec(MIX_FLOAT32, 5, 6));
  has_values(result, 2, 4);
  variable_has(v, 5, 6);
}

int main(void) {
  if (strcmp(default_device(), "remote")) mix_remote_add();
  const struct CMUnitTest tests[] = {
      REMOTE(a_run_waits_until_its_value_is_read),
      REMOTE(synchronize_runs_everything),
      REMOTE(variables_follow_the_device),
      REMOTE(data_of_a_tensor_stay_valid),
      REMOTE(the_error_word_latches),
      REMOTE(the_host_reads_memory_of_the_device),
      REMOTE(a_result_is_read_before_its_wait),
      REMOTE(slots_overlap_while_both_are_alive),
      REMOTE(a_variable_is_read_after_it_was_replaced),
      REMOTE(an_assignment_does_not_wait_for_readers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
