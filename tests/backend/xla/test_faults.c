/* What goes wrong around a plug-in that works: allocations that fail, threads that share variables, and
 * fork. With fakes, also under the sanitizers; with the plug-in for CPUs where it is at hand. */
#include "backend/xla/support.h"
#include "support/sanitizer.h"
#include "support/xla.h"

#include <pthread.h>

/* ---- allocations ---- */

static mix_variable *count;

/* The fake's programs give zeros. */
static bool use_all(void) {
  bool good = mix_set_device(fake("pairs")) == MIX_OK;
  MIX_SCOPE {
    mix_function *function = new_function_of(count);
    for (int i = 0; i < 2 && good; i++) {
      mix_list *results = call(function);
      good = results && mix_tensor_item(mix_list_get(results, 0)) == 0 &&
             mix_tensor_item(mix_variable_value(count)) == 0;
    }
    good = good && mix_devices_text() && mix_synchronize() == MIX_OK;
  }
  return good && mix_error() == MIX_OK;
}

enum { FINISHED = 7 };

/* The error says so, the variable has its former or its new value, and then everything works. */
static void with_a_failure(int allocation) {
  char message[2048];
  mix_error_clear();
  count = mix_variable_new(scalar(3), .name = "count");
  mix_inject_allocation_failure(allocation);
  const bool good = use_all();
  mix_inject_allocation_failure(-1);
  if (!good) {
    mix_error_take(message, sizeof message);
    if (!strstr(message, "out of memory")) fprintf(stderr, "allocation %d: %s\n", allocation, message);
    CHECK(strstr(message, "out of memory"));
  }
  const double value = mix_tensor_item(mix_variable_value(count));
  CHECK(value == 3 || value == 0);
  CHECK(use_all());
  CHECK(mix_set_device("cpu") == MIX_OK);
  mix_list *results = call(new_function_of(count));
  CHECK(results && mix_tensor_item(mix_list_get(results, 0)) == 41);
  CHECK(mix_synchronize() == MIX_OK);
  CHECK(mix_tensor_item(mix_variable_value(count)) == 1);
  if (good) _exit(FINISHED);
}

static void each_allocation_may_fail(void **state) {
  (void)state;
  int failures = 0, status = 0;
  for (; failures < 3000; failures++) {
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
      alarm(60);
      with_a_failure(failures);
      _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || (WEXITSTATUS(status) && WEXITSTATUS(status) != FINISHED))
      fail_msg("allocation %d: the child ended with status %d", failures, status);
    if (WEXITSTATUS(status) == FINISHED) break;
  }
  assert_int_equal(WEXITSTATUS(status), FINISHED);
  assert_true(failures > 100);
}

/* ---- threads ---- */

enum { THREADS = 3, CALLS = 100 };

typedef struct worker {
  mix_function *function;
  int done;
} worker;

static void *call_often(void *context) {
  worker *w = context;
  for (int i = 0; i < CALLS; i++)
    MIX_SCOPE {
      mix_list *results = call(w->function);
      w->done +=
          results && mix_tensor_read(mix_list_get(results, 0), MIX_FLOAT64, (double[1]){0}, 1) == MIX_OK;
    }
  if (mix_error() != MIX_OK) fprintf(stderr, "%s\n", mix_error_message());
  return NULL;
}

static void run_workers(worker *workers) {
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, call_often, &workers[i]) == 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; i++) CHECK(workers[i].done == CALLS);
}

static mix_list *read_twice(void *variable, mix_list *arguments) {
  mix_tensor *sum = mix_add(mix_list_get(arguments, 0), mix_variable_value(variable));
  return mix_list_of(sum, mix_square(sum));
}

/* Each has a function of its own; the first calls move the variable to the device. */
static void read_one_variable(const char *device) {
  for (int round = 0; round < 5; round++)
    MIX_SCOPE {
      CHECK(mix_set_device(device) == MIX_OK);
      mix_variable *shared = mix_variable_new(scalar(5), .name = "shared");
      worker workers[THREADS];
      for (int i = 0; i < THREADS; i++) workers[i] = (worker){mix_function_new(read_twice, shared)};
      run_workers(workers);
      CHECK(mix_tensor_item(mix_variable_value(shared)) == 5);
    }
}
static void write_own_variables(const char *device) {
  CHECK(mix_set_device(device) == MIX_OK);
  worker workers[THREADS];
  for (int i = 0; i < THREADS; i++)
    workers[i] = (worker){new_function_of(mix_variable_new(scalar(0), .name = "own"))};
  run_workers(workers);
}

static void readers_of_a_fake(void) { read_one_variable(fake("pairs")); }
static void writers_of_a_fake(void) { write_own_variables(fake("pairs")); }
static void threads_of_a_fake(void **state) {
  (void)state;
  in_child(readers_of_a_fake);
  in_child(writers_of_a_fake);
}

/* More than is promised: threads that add to the same variable lose nothing. */
static void threads_of_a_plug_in(void) {
  read_one_variable(xla_device());
  write_own_variables(xla_device());
  mix_variable *sum = mix_variable_new(scalar(0), .name = "sum");
  worker workers[THREADS];
  for (int i = 0; i < THREADS; i++) workers[i] = (worker){new_function_of(sum)};
  run_workers(workers);
  CHECK(mix_tensor_item(mix_variable_value(sum)) == THREADS * CALLS);
}
static void threads_of_the_plug_in_for_cpus(void **state) {
  (void)state;
  XLA_OR_SKIP();
  in_child(threads_of_a_plug_in);
}

/* ---- fork ---- */

static mix_function *function;
static mix_tensor *kept;

static void check_lost(mix_status status) {
  char message[2048];
  CHECK(mix_error_take(message, sizeof message) == status);
  CHECK(strstr(message, "in use before fork"));
}

/* What a child asks of the device is an error, not a wait; the CPU works in it, and it ends by exit. */
static void use_in_child(void) {
  alarm(60);
  CHECK(mix_synchronize() == MIX_OK); /* it has no runs */
  CHECK(!call(function));
  check_lost(MIX_RUNTIME_ERROR);
  CHECK(!call(new_function_of(count))); /* is compiled */
  check_lost(MIX_RUNTIME_ERROR);
  double value;
  CHECK(mix_tensor_read(kept, MIX_FLOAT64, &value, 1) != MIX_OK);
  check_lost(MIX_RUNTIME_ERROR);
  CHECK(mix_set_device("xla") != MIX_OK);
  check_lost(MIX_UNSUPPORTED);
  CHECK(mix_set_device(fake("works")) != MIX_OK);
  check_lost(MIX_UNSUPPORTED);
  CHECK(strstr(mix_devices_text(), "xla: unavailable: the plug-in was in use before fork"));
  CHECK(mix_set_device("cpu") == MIX_OK);
  mix_list *results = call(new_function_of(NULL));
  CHECK(results && mix_tensor_item(mix_list_get(results, 0)) == 41);
  mix_release(function);
  mix_release(kept);
  exit(0);
}

static void fork_with(const char *device) {
  alarm(120);
  CHECK(mix_set_device(device) == MIX_OK);
  count = mix_variable_new(scalar(0), .name = "count");
  function = mix_retain(new_function_of(count));
  mix_list *results = call(function);
  CHECK(results);
  kept = mix_retain(mix_list_get(results, 0));
  int status;
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) use_in_child();
  CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
  CHECK(call(function)); /* the parent goes on */
  CHECK(mix_synchronize() == MIX_OK);
}

static void fork_with_a_fake(void) { fork_with(fake("pairs")); }
static void fork_with_a_plug_in(void) { fork_with(xla_device()); }
/* The child of a process with threads makes its own, for which the thread sanitizer ends it. */
#define NEED_CHILDREN_WITH_THREADS()                                                                         \
  if (UNDER_THREAD_SANITIZER) SKIP("the thread sanitizer ends a child that makes threads")
static void a_child_of_a_fakes_process(void **state) {
  (void)state;
  NEED_CHILDREN_WITH_THREADS();
  in_child(fork_with_a_fake);
}
static void a_child_of_the_plug_ins_process(void **state) {
  (void)state;
  NEED_CHILDREN_WITH_THREADS();
  XLA_OR_SKIP();
  in_child(fork_with_a_plug_in);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(each_allocation_may_fail),        TEST(threads_of_a_fake),
      TEST(threads_of_the_plug_in_for_cpus), TEST(a_child_of_a_fakes_process),
      TEST(a_child_of_the_plug_ins_process),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
