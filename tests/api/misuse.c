/* Every public function with malformed arguments: NULL, objects of other kinds, impossible numbers, shapes,
 * dtypes, texts and sizes. misuse.py writes the calls from the headers. None may crash or end the process; an
 * object of the wrong kind is an error wherever NULL is one, and of an argument that is no object queried.
 * The calls run in a child process, which is started anew behind a call that ended it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/folder.h"
#include <limits.h>
#include <math.h>
#include <mixtape/mixtape.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct misuse {
  void (*call)(void);
  const char *function, *what;
  bool wrong_kind, first_argument;
} misuse;

/* ---- plain arguments ---- */

static char text_buffer[4096], long_text[6000];
static double memory[8192];
static const char *const name_array[16] = {"a", "b", "c", "d", "e", "f", "g", "h",
                                           "i", "j", "k", "l", "m", "n", "o", "p"};

#define SHAPE(rank, size) ((mix_shape){rank, {size, size, size, size, size, size, size, size}})
#define AXES(count, index) ((mix_axes){count, {index, index, index, index, index, index, index, index}})

static mix_tensor *a_tensor(void) {
  return mix_tensor_from_doubles((const double[]){1, 2, 3, 4, 5, 6, 7, 8, 9}, MIX_FLOAT32, MIX_SHAPE(3, 3));
}
static mix_tensor *a_scalar(void) { return mix_scalar(1, MIX_FLOAT32); }
static mix_tensor *true_scalar(void) { return mix_scalar(1, MIX_BOOL); }
static mix_tensor *a_row(void) {
  return mix_tensor_from_doubles((const double[]){1, 2, 3}, MIX_FLOAT32, MIX_SHAPE(3));
}
static mix_tensor *a_bool(void) { return mix_cast(a_tensor(), MIX_BOOL); }
static mix_tensor *an_index(void) {
  return mix_tensor_from((const int64_t[]){0, 2, 1}, MIX_INT64, MIX_SHAPE(3));
}
static mix_tensor *a_state(void) { return mix_tensor_from((const int64_t[]){7, 0}, MIX_INT64, MIX_SHAPE(2)); }
static mix_list *a_list(void) { return mix_list_of(a_tensor()); }
static mix_list *a_list_of(void *item) { return mix_list_of(item); }
static mix_variable *a_variable(void) { return mix_variable_new(a_tensor(), .name = "v"); }
static mix_list *a_list_of_variables(void) { return mix_list_of(a_variable()); }
static mix_tape *a_tape(void) { return mix_tape_begin(); }
static mix_list *body(void *context, mix_list *arguments) {
  (void)context;
  return arguments;
}
static mix_function *a_function(void) { return mix_function_new(body, NULL); }
static mix_generator *a_generator(void) { return mix_generator_new(1); }
static mix_policy *a_policy(void) { return mix_policy_new("mixed_float16"); }
static mix_layer *a_layer(void) { return mix_dense(2); }
static mix_initializer *an_initializer(void) { return mix_initializer_new("zeros"); }
static mix_regularizer *a_regularizer(void) { return mix_regularizer_new("l2"); }
static mix_constraint *a_constraint(void) { return mix_constraint_new("non_neg"); }
static mix_loss *a_loss(void) { return mix_loss_new("mse"); }
static mix_metric *a_metric(void) { return mix_metric_new("mean"); }
static mix_optimizer *an_optimizer(void) { return mix_sgd(.learning_rate = 0.1); }
static mix_optimizer *a_scaling_optimizer(void) { return mix_loss_scale_optimizer(an_optimizer()); }
static mix_loss_scale *a_loss_scale(void) { return mix_dynamic_loss_scale(); }
static mix_list *generate(void *context, int64_t index) { return context && index < 3 ? a_list() : NULL; }
static bool keep(void *context, mix_list *element) { return context && element; }
static mix_tensor *loss_of(void *context) { return context ? a_scalar() : NULL; }
static mix_tensor *step_of(void *context, mix_tensor *step) {
  (void)context;
  return step;
}
static double rate_of(void *context, int64_t epoch, double rate) { return context && epoch ? rate : 1; }
static mix_dataset *a_dataset(void) { return mix_dataset_from_list(mix_list_of(a_tensor(), a_tensor())); }
static mix_dataset *expand(void *context, mix_list *element) {
  (void)context;
  return mix_dataset_from_element(element);
}
static mix_iterator *an_iterator(void) { return mix_dataset_iterate(a_dataset()); }
static mix_model *a_model(void) {
  mix_model *model = mix_sequential(mix_list_of(mix_dense(3, .name = "inner")));
  mix_model_build(model, MIX_SHAPE(3, 3));
  mix_model_compile(model, .optimizer_name = "sgd", .loss = "mse");
  return model;
}
static mix_history *a_history(void) {
  return mix_model_fit(a_model(), a_tensor(), a_tensor(), .verbose = MIX_SILENT);
}
static mix_npz *an_npz(void) {
  mix_tensor *tensor = a_tensor();
  mix_npz_save("archive.npz", 1, name_array, &tensor);
  return mix_npz_open("archive.npz");
}
static mix_callback *a_callback(void) { return mix_terminate_on_nan(); }
static mix_checkpoint *a_checkpoint(void) { return mix_checkpoint_new("checkpoints", .model = a_model()); }
static mix_logs *a_logs(void) { return mix_logs_of(2, name_array, memory); }
static mix_numerics *a_numerics(void) { return mix_numerics_new(); }
static mix_schedule *a_schedule(void) { return mix_exponential_decay(1, 2, 0.5, false); }
static mix_tensor *const *tensor_array(void) {
  static mix_tensor *tensors[16];
  for (int i = 0; i < 16; i++) tensors[i] = a_tensor();
  return tensors;
}
static void *const *object_array(void) { return (void *const *)tensor_array(); }

#include "misuse_calls.h"

enum { CALLS = sizeof calls / sizeof calls[0] };

/* ---- running the calls ---- */

typedef struct outcomes {
  int next; /* the call that runs, or is to run */
  mix_status status[CALLS];
  bool ended[CALLS];       /* the call ended the process */
  char message[CALLS][96]; /* the beginning of its error */
} outcomes;

static outcomes *shared;

static void run_call(int i) {
  mix_set_semantics("tf_keras");
  mix_set_global_policy("float32");
  mix_error_clear();
  MIX_SCOPE {
    alarm(300); /* a call that waits for ever ends here */
    calls[i].call();
    shared->status[i] = mix_error_take(shared->message[i], sizeof shared->message[i]);
  }
  mix_error_clear();
}

static void run_child(void) {
  for (int i = 1; i < 32; i++) signal(i, SIG_DFL); /* cmocka catches some */
  if (!freopen("child.txt", "a", stderr) || !freopen("/dev/null", "a", stdout)) _exit(126);
  struct rlimit files = {1 << 26, 1 << 26}; /* bytes of a file that a call writes */
  setrlimit(RLIMIT_FSIZE, &files);
  memset(long_text, 'x', sizeof long_text - 1);
  for (; shared->next < CALLS; shared->next++) run_call(shared->next);
  _exit(0);
}

static int run_calls(void **state) {
  (void)state;
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED || chdir(test_folder) != 0) return -1;
  while (shared->next < CALLS) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) run_child();
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child) return -1;
    if (shared->next < CALLS) shared->ended[shared->next++] = true;
  }
  return 0;
}

static void no_call_ends_the_process(void **state) {
  (void)state;
  int ended = 0;
  for (int i = 0; i < CALLS; i++)
    if (shared->ended[i]) {
      print_error("%s, %s: the process ended\n", calls[i].function, calls[i].what);
      ended++;
    }
  assert_int_equal(ended, 0);
}

/* The status of the call of the same function in which the argument of call `i` is NULL. */
static mix_status status_of_null(int i) {
  while (i > 0 && strcmp(calls[i - 1].function, calls[i].function) == 0 && calls[i].wrong_kind) i--;
  return shared->status[i];
}

static void objects_of_the_wrong_kind_are_errors(void **state) {
  (void)state;
  int accepted = 0, tried = 0;
  for (int i = 0; i < CALLS; i++) {
    if (!calls[i].wrong_kind || shared->ended[i]) continue;
    tried++;
    const bool query = calls[i].first_argument && status_of_null(i) == MIX_OK;
    if (query || shared->status[i] != MIX_OK) continue;
    print_error("%s, %s: accepted\n", calls[i].function, calls[i].what);
    accepted++;
  }
  assert_true(tried > 500);
  assert_int_equal(accepted, 0);
}

/* Otherwise the malformed argument would not be what the call refuses. */
static void most_plain_calls_succeed(void **state) {
  (void)state;
  int failed = 0;
  for (int i = 0; i < CALLS; i++) {
    if (strcmp(calls[i].what, "plain arguments") || shared->status[i] == MIX_OK) continue;
    print_message("%s: %s\n", calls[i].function, shared->message[i]);
    failed++;
  }
  assert_true(failed * 10 <= FUNCTIONS);
}

/* An allocation of an impossible size is an error of the library, not of the sanitizer. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1:detect_leaks=0"; }

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(no_call_ends_the_process),
                                     cmocka_unit_test(objects_of_the_wrong_kind_are_errors),
                                     cmocka_unit_test(most_plain_calls_succeed)};
  if (folder_begin(NULL) != 0) return 1;
  return cmocka_run_group_tests(tests, run_calls, folder_end);
}
