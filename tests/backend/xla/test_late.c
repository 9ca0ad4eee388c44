/* Copies of arguments that finish late (support/pjrt/late.c): a steady step waits for nothing and allocates
 * nothing, the values are those of copies that finish at once, and an error names the argument. */
#include "backend/xla/late_plugin.h"
#include "backend/xla/xla.h"
#include "base/ended_object.h"
#include "graph/variable.h"
#include "support/sanitizer.h"
#include "train/logs.h"

#include <mixtape/mixtape.h>
#include <pthread.h>
#include <sys/mman.h>

/* ---- steps of a loop ---- */

static mix_tensor *batch_of(int step) {
  double values[64];
  for (int i = 0; i < 64; i++) values[i] = step + i;
  return mix_tensor_from_doubles(values, MIX_FLOAT32, MIX_SHAPE(64));
}

static void step_often(mix_function *function, mix_list **batches, int steps) {
  for (int i = 0; i < steps; i++)
    MIX_SCOPE { CHECK(mix_function_call(function, batches[i % 4])); }
}

/* Beyond the number of runs that may wait; batches are used again while their copies are under way. */
static void run_steadily(const char *device) {
  CHECK(mix_set_device(device) == MIX_OK);
  mix_function *function = new_function_of(mix_variable_new(scalar(0), .name = "count"));
  mix_list *batches[4];
  for (int i = 0; i < 4; i++) batches[i] = mix_list_of(batch_of(i));
  step_often(function, batches, 8);
  const int awaits = calls("awaits"), downloads = calls("downloads"), staying = calls("staying");
  const uint64_t allocations = mix_inject_allocation_failure(-1);
  step_often(function, batches, 200);
  CHECK(mix_inject_allocation_failure(-1) == allocations || UNDER_ADDRESS_SANITIZER || mix_keeps_handles());
  CHECK(calls("awaits") == awaits && calls("downloads") == downloads);
  CHECK(calls("staying") == staying + 200);
  CHECK(mix_synchronize() == MIX_OK);
}
static void a_loop_over_a_fake(void) { run_steadily(late("pairs")); }
static void a_loop_waits_for_nothing(void **state) {
  (void)state;
  in_child(a_loop_over_a_fake);
}

/* Threads with functions of their own, and the same arguments; each waits now and then for all runs. */
static mix_list *arguments_of_all;
static void *step_and_wait(void *function) {
  for (int i = 0; i < 60; i++)
    MIX_SCOPE {
      CHECK(mix_function_call(function, arguments_of_all));
      if (i % 20 == 19) CHECK(mix_synchronize() == MIX_OK);
    }
  return NULL;
}
static void run_threads(void) {
  enum { THREADS = 3 };
  pthread_t threads[THREADS];
  CHECK(mix_set_device(late("pairs")) == MIX_OK);
  arguments_of_all = mix_list_of(batch_of(1));
  for (int i = 0; i < THREADS; i++) {
    mix_function *function = new_function_of(mix_variable_new(scalar(0), .name = "own"));
    CHECK(pthread_create(&threads[i], NULL, step_and_wait, function) == 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  CHECK(calls("staying") == THREADS * 60);
  CHECK(mix_synchronize() == MIX_OK);
}
static void threads_share_arguments(void **state) {
  (void)state;
  in_child(run_threads);
}

/* The host's memory may change at once where it is the caller's. */
static void wrap_and_overwrite(void) {
  float values[64] = {0};
  CHECK(mix_set_device(late("works")) == MIX_OK);
  mix_function *function = new_function();
  for (int i = 0; i < 10; i++)
    MIX_SCOPE {
      mix_tensor *wrapped = mix_tensor_wrap(values, MIX_FLOAT32, MIX_SHAPE(64), NULL);
      CHECK(mix_function_call(function, mix_list_of(wrapped)));
      for (int k = 0; k < 64; k++) values[k] += 1;
    }
  CHECK(calls("uploads") >= 10 && calls("staying") == 0);
  CHECK(mix_synchronize() == MIX_OK);
}
static void memory_of_the_caller_is_copied(void **state) {
  (void)state;
  in_child(wrap_and_overwrite);
}

static void fail_a_copy(void) {
  char message[1024];
  setenv("MIXTAPE_LATE_FAILS", "3", 1);
  CHECK(mix_set_device(late("works")) == MIX_OK);
  mix_function_options options = {.size = sizeof options, .body = twice_and_one, .name = "my_step"};
  mix_function *function = mix_function_with(&options);
  for (int i = 0; i < 3; i++) CHECK(mix_function_call(function, mix_list_of(batch_of(i))));
  CHECK(mix_synchronize() != MIX_OK);
  CHECK(mix_error_take(message, sizeof message) == MIX_RUNTIME_ERROR);
  CHECK(strstr(message, "xla: copying argument 0 of my_step, float32 (64), to the device: the copy failed"));
  CHECK(mix_function_call(function, mix_list_of(batch_of(3))));
  CHECK(mix_synchronize() == MIX_OK);
}
static void an_error_names_the_argument(void **state) {
  (void)state;
  in_child(fail_a_copy);
}

/* ---- variables when a copy fails ---- */

/* Of a variable that nobody else holds, of one whose former value is read later, and of one whose memory
 * somebody holds. */
static mix_list *count_up(void *variables, mix_list *arguments) {
  for (int i = 0; i < mix_list_count(variables); i++)
    mix_variable_assign_add(mix_list_get(variables, i), scalar(1));
  return mix_list_of(mix_add(mix_list_get(arguments, 0), scalar(1)));
}

static void check_counts(mix_list *variables, double own, double read) {
  CHECK(mix_tensor_item(mix_variable_value(mix_list_get(variables, 0))) == own);
  CHECK(mix_tensor_item(mix_variable_value(mix_list_get(variables, 1))) == read);
}

/* The third copy fails while the run that needs it and the next one are under way. */
static void fail_between_steps(void) {
  char message[1024];
  setenv("MIXTAPE_LATE_FAILS", "3", 1);
  mix_list *variables = mix_list_of(mix_variable_new(scalar(10), .name = "own"),
                                    mix_variable_new(scalar(20), .name = "read"),
                                    mix_variable_new(scalar(30), .name = "held")),
           *results[4];
  CHECK(mix_set_device(late(NULL)) == MIX_OK);
  mix_function *function = mix_function_new(count_up, variables);
  mix_tensor *former = NULL;
  mix_memory *held = NULL;
  for (int i = 0; i < 4; i++) {
    mix_variable *third = mix_list_get(variables, 2);
    if (i == 2) former = mix_variable_value(mix_list_get(variables, 1)), held = mix_retain(third->memory);
    CHECK((results[i] = mix_function_call(function, mix_list_of(batch_of(i)))));
  }
  CHECK(mix_synchronize() == MIX_RUNTIME_ERROR);
  mix_error_take(message, sizeof message);
  CHECK(strstr(message, "xla: copying argument 0 of "));
  check_counts(variables, 12, 22);
  CHECK(mix_tensor_item(mix_variable_value(mix_list_get(variables, 2))) == 32);
  CHECK(mix_tensor_item(former) == 22);
  double values[64];
  CHECK(mix_tensor_read(mix_list_get(results[1], 0), MIX_FLOAT64, values, 64) == MIX_OK && values[0] == 2);
  CHECK(mix_tensor_read(mix_list_get(results[2], 0), MIX_FLOAT64, values, 64) == MIX_RUNTIME_ERROR);
  mix_error_clear();
  CHECK(mix_function_call(function, mix_list_of(batch_of(4))));
  check_counts(variables, 13, 23);
  CHECK(mix_tensor_item(mix_variable_value(mix_list_get(variables, 2))) == 33);
  mix_release(held);
}

static void fail_and_keep(void) {
  setenv("MIXTAPE_LATE_PLATFORM", "of_late", 1);
  fail_between_steps();
}
/* What may be kept is less than the variables: runs wait for their copies, and the third does not begin. */
static void fail_and_wait(void) {
  setenv("MIXTAPE_LATE_PLATFORM", "of_late", 1);
  setenv("MIXTAPE_LATE_FAILS", "3", 1);
  mix_xla_waiting_bytes = 7;
  mix_list *variables =
      mix_list_of(mix_variable_new(scalar(10), .name = "own"), mix_variable_new(scalar(20), .name = "read"));
  CHECK(mix_set_device(late(NULL)) == MIX_OK);
  mix_function *function = mix_function_new(count_up, variables);
  for (int i = 0; i < 2; i++) CHECK(mix_function_call(function, mix_list_of(batch_of(i))));
  CHECK(!mix_function_call(function, mix_list_of(batch_of(2))));
  CHECK(mix_error() == MIX_RUNTIME_ERROR);
  mix_error_clear();
  check_counts(variables, 12, 22);
  CHECK(mix_function_call(function, mix_list_of(batch_of(4))));
  check_counts(variables, 13, 23);
}

/* Six runs are under way, and the copies of the latest alone: a run copies 256 bytes, and the numbers of the
 * variable are kept until its copy is done. */
static int blocked_steps(int numbers, size_t waiting_bytes) {
  setenv("MIXTAPE_LATE_PLATFORM", "of_late", 1);
  setenv("MIXTAPE_LATE_RUNS", "6", 1);
  mix_xla_waiting_bytes = waiting_bytes;
  CHECK(mix_set_device(late(NULL)) == MIX_OK);
  mix_variable *variable = mix_variable_new(mix_fill(MIX_SHAPE(numbers), 0, MIX_FLOAT32), .name = "many");
  mix_function *function = new_function_of(variable);
  for (int i = 0; i < 30; i++)
    MIX_SCOPE { CHECK(mix_function_call(function, mix_list_of(batch_of(i)))); }
  const int blocked = calls("blocked");
  CHECK(mix_synchronize() == MIX_OK && calls("blocked") > blocked);
  return blocked;
}
static void wait_for_none(void) { CHECK(blocked_steps(1024, 4 * 4096) == 0); }
static void wait_rather_than_keep(void) { CHECK(blocked_steps(1024, 2 * 4096 - 1) > 0); }
static void wait_rather_than_copy(void) { CHECK(blocked_steps(1, 3 * 256) > 0); }
static void values_count_while_they_are_kept(void **state) {
  (void)state;
  XLA_OR_SKIP();
  in_child(wait_for_none);
  in_child(wait_rather_than_keep);
  in_child(wait_rather_than_copy);
}

static void variables_survive_a_failed_copy(void **state) {
  (void)state;
  XLA_OR_SKIP();
  in_child(fail_and_keep);
  in_child(fail_and_wait);
}

/* The call that finds it says so. */
static void go_on_after_it(void) {
  char message[1024];
  setenv("MIXTAPE_LATE_FAILS", "1", 1);
  CHECK(mix_set_device(late("pairs")) == MIX_OK);
  mix_variable *variable = mix_variable_new(scalar(7), .name = "count");
  mix_function *function = new_function_of(variable);
  int calls_made = 0;
  while (calls_made < 9 && mix_function_call(function, mix_list_of(batch_of(calls_made)))) calls_made++;
  CHECK(calls_made == 2);
  CHECK(mix_error_take(message, sizeof message) == MIX_RUNTIME_ERROR);
  CHECK(strstr(message, "xla: copying argument 0 of "));
  CHECK(mix_tensor_item(mix_variable_value(variable)) == 7);
  CHECK(mix_function_call(function, mix_list_of(batch_of(1))));
  CHECK(mix_tensor_item(mix_variable_value(variable)) == 0); /* as programs of the fake give */
}
static void the_next_call_reports_it(void **state) {
  (void)state;
  in_child(go_on_after_it);
}

/* ---- fit ---- */

enum { ROWS = 96, INPUTS = 8, UNITS = 16, CLASSES = 4, BATCH = 8, WEIGHTS = 4, KINDS = 4 };

static mix_tensor *rows_of(int rows, mix_dtype dtype, int columns, int modulus) {
  static double values[20 * ROWS * INPUTS];
  CHECK(rows * columns <= (int)(sizeof values / sizeof *values));
  for (int i = 0; i < rows * columns; i++) values[i] = (i * 37 + i / 5) % modulus;
  return mix_tensor_from_doubles(values, dtype, columns > 1 ? MIX_SHAPE(rows, columns) : MIX_SHAPE(rows));
}

static mix_model *new_model(const char *device) {
  CHECK(mix_set_device(device) == MIX_OK);
  mix_set_seed(5);
  mix_model *model = mix_sequential(
      mix_list_of(mix_dense(UNITS, .activation = "relu"), mix_dense(CLASSES, .activation = "softmax")));
  mix_model_compile(model, .optimizer = mix_adam(.learning_rate = 0.01),
                    .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"});
  return model;
}

/* Calls that wait or read back, and allocations, at the second step of an epoch and at its latest one. */
static int second[3], latest[3];
static mix_status note_calls(void *context, mix_model *model, int64_t step, mix_logs *logs) {
  (void)context, (void)model, (void)logs;
  if (!getenv("MIXTAPE_LATE_PJRT")) return MIX_OK; /* the plug-in alone */
  latest[0] = calls("blocked"), latest[1] = calls("downloads");
  latest[2] = (int)mix_inject_allocation_failure(-1);
  if (step == 1) memcpy(second, latest, sizeof second);
  return MIX_OK;
}

static void train(mix_model *model, int rows, int64_t epochs, int verbose) {
  mix_model_fit(model, rows_of(rows, MIX_FLOAT32, INPUTS, 11), rows_of(rows, MIX_INT32, 1, CLASSES),
                .batch_size = BATCH, .epochs = epochs, .seed = 3, .verbose = verbose,
                .callbacks = mix_list_of(mix_callback_new(.name = "calls", .on_train_batch_end = note_calls,
                                                          .no_batch_logs = true)));
  CHECK(mix_error() == MIX_OK);
}

/* Shared with the children. */
static float (*shared)[WEIGHTS][INPUTS * UNITS];

static void keep_weights(const char *device, float (*to)[INPUTS * UNITS]) {
  mix_model *model = new_model(device);
  train(model, ROWS, 2, MIX_SILENT);
  mix_list *weights = mix_model_weights(model);
  CHECK(mix_list_count(weights) == WEIGHTS);
  for (int w = 0; w < WEIGHTS; w++) {
    mix_tensor *value = mix_variable_value(mix_list_get(weights, w));
    CHECK(mix_tensor_read(value, MIX_FLOAT32, to[w], mix_shape_size(mix_tensor_shape(value))) == MIX_OK);
  }
}
static void keep_weights_of_xla(void) { keep_weights(xla_device(), shared[0]); }
static void keep_weights_of_late(void) { keep_weights(late(NULL), shared[1]); }
static void keep_weights_and_former_ones(void) {
  setenv("MIXTAPE_LATE_PLATFORM", "of_late", 1);
  keep_weights(late(NULL), shared[3]);
}

/* Arrays that stay on the device: a step brings no more than the numbers of its rows. */
static void keep_weights_of_arrays_that_stay(void) {
  setenv("MIXTAPE_LATE_MEMORY", "1000000", 1);
  keep_weights(late(NULL), shared[2]);
  CHECK(calls("staying") == 2 * ROWS / BATCH);
}
/* A plug-in for processors does not say what is free: nothing is copied. */
static void ask_the_plug_in(void) {
  CHECK(mix_set_device(xla_device()) == MIX_OK);
  CHECK(mix_backend_current()->free_bytes() == 0);
  CHECK(mix_error() == MIX_OK);
}

/* After two epochs of twelve steps. */
static void weights_are_the_same(void **state) {
  (void)state;
  XLA_OR_SKIP();
  shared = mmap(NULL, KINDS * sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(shared, MAP_FAILED);
  in_child(keep_weights_of_xla);
  in_child(keep_weights_of_late);
  in_child(keep_weights_of_arrays_that_stay);
  in_child(keep_weights_and_former_ones);
  in_child(ask_the_plug_in);
  assert_true(shared[0][0][0] != 0);
  for (int i = 1; i < KINDS; i++) assert_memory_equal(shared[0], shared[i], sizeof shared[0]);
  munmap(shared, KINDS * sizeof *shared);
}

static char shown[1 << 16];
static void keep_progress(void *context, mix_log_level level, const char *message) {
  (void)context;
  if (level != MIX_LOG_PROGRESS) return;
  const size_t used = strlen(shown);
  snprintf(shown + used, sizeof shown - used, "%s", message);
}

/* The calls of two epochs with some steps, and with ten times as many. */
static void compare_calls(mix_model *model, int verbose) {
  int blocked[2];
  train(model, ROWS, 1, verbose); /* compiles all */
  for (int i = 0; i < 2; i++) {
    const int before = calls("blocked");
    train(model, ROWS * (1 + 9 * i), 2, verbose);
    blocked[i] = calls("blocked") - before;
  }
  CHECK(blocked[0] == blocked[1]);
  CHECK(latest[0] == second[0]);
  /* A bar reads what is there. */
  CHECK(verbose == 1 || latest[1] == second[1]);
  CHECK(verbose == 1 || latest[2] == second[2] || UNDER_ADDRESS_SANITIZER || mix_keeps_handles());
}

/* The metrics of a run that is not over yet are shown later. */
static void show_what_is_over(mix_model *model) {
  mix_function *function = new_function();
  const int blocked = calls("blocked");
  mix_model_forget_logs(model);
  CHECK(!mix_model_finished_logs(model) && mix_error() == MIX_OK);
  CHECK(!mix_model_finished_logs(model));
  for (int i = 0; i < 2; i++) CHECK(mix_function_call(function, mix_list_of(batch_of(i))));
  mix_logs *logs = mix_model_finished_logs(model);
  CHECK(logs && calls("blocked") == blocked);
  const mix_logs *current = mix_model_current_logs(model);
  CHECK(mix_logs_count(logs) == 2 && mix_logs_count(current) == 2);
  for (int i = 0; i < 2; i++) CHECK(mix_logs_value(logs, i) == mix_logs_value(current, i));
}

static void count_calls(void) {
  mix_model *model = new_model(late(NULL));
  mix_set_log_callback(keep_progress, NULL);
  compare_calls(model, MIX_SILENT);
  CHECK(calls("staying") > 0 && !*shown);
  compare_calls(model, 1);
  CHECK(strstr(shown, "12/12") && strstr(shown, "accuracy: "));
  show_what_is_over(model);
}
static void count_calls_over_arrays_that_stay(void) {
  setenv("MIXTAPE_LATE_MEMORY", "100000000", 1);
  compare_calls(new_model(late(NULL)), MIX_SILENT);
  CHECK(calls("kibibytes") < 200);
}
/* It waits at the end of an epoch. */
static void more_steps_of_fit_wait_no_more(void **state) {
  (void)state;
  XLA_OR_SKIP();
  in_child(count_calls);
  in_child(count_calls_over_arrays_that_stay);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_loop_waits_for_nothing),        TEST(threads_share_arguments),
      TEST(memory_of_the_caller_is_copied),  TEST(an_error_names_the_argument),
      TEST(variables_survive_a_failed_copy), TEST(values_count_while_they_are_kept),
      TEST(the_next_call_reports_it),        TEST(weights_are_the_same),
      TEST(more_steps_of_fit_wait_no_more),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
