/* A busy machine changes no bit: which thread does which share follows from the load, what the shares are
 * does not. */
#include "model/support.h"
#include "backend/host/executor.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BUSY = 4, SECONDS = 600, ROWS = 640, WIDTH = 300 };

static void start_busy(pid_t *processes) {
  for (int i = 0; i < BUSY; i++) {
    processes[i] = fork();
    assert_true(processes[i] >= 0);
    if (processes[i]) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(SECONDS);
    for (volatile unsigned n = 0;; n++) continue;
  }
}

static void stop_busy(const pid_t *processes) {
  for (int i = 0; i < BUSY; i++) {
    kill(processes[i], SIGKILL);
    waitpid(processes[i], NULL, 0);
  }
}

/* Trains and predicts on that many threads; the bits of all weights, slots and predictions. */
static unsigned char *bits_of_run(int threads, const char *policy, size_t *size) {
  unsigned char *bits = NULL;
  mix_set_threads(threads);
  MIX_SCOPE {
    mix_set_global_policy(policy);
    mix_set_seed(1);
    const examples e = examples_of(ROWS, WIDTH, 10);
    mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(WIDTH));
    mix_tensor *hidden = mix_call(mix_dense(.units = 128, .activation = "relu"), inputs);
    mix_tensor *dropped = mix_call(mix_dropout(.rate = 0.5), hidden);
    mix_tensor *outputs = mix_call(mix_dense(.units = 10, .dtype = "float32"), dropped);
    mix_model *model = mix_model_new(inputs, outputs);
    mix_model_compile(model, .optimizer = mix_adam(), .loss = "mse");
    mix_tensor *targets = mix_one_hot(e.y, 10, MIX_FLOAT32);
    mix_model_fit(model, e.x, targets, .batch_size = 64, .epochs = 3, .verbose = MIX_SILENT);
    mix_tensor *predicted =
        mix_list_get(mix_model_predict(model, e.x, .batch_size = 128, .verbose = MIX_SILENT), 0);
    mix_list *all = mix_list_of(mix_variable_new(predicted)), *weights = mix_model_weights(model),
             *slots = mix_optimizer_variables(mix_model_optimizer(model));
    for (int i = 0; i < mix_list_count(weights); i++) mix_list_append(all, mix_list_get(weights, i));
    for (int i = 0; i < mix_list_count(slots); i++) mix_list_append(all, mix_list_get(slots, i));
    assert_no_error();
    bits = bits_of(all, size);
    mix_set_global_policy("float32");
  }
  return bits;
}

static void expect_the_same_bits(const char *policy) {
  size_t size, other;
  unsigned char *quiet = bits_of_run(2, policy, &size);
  for (int threads = 1; threads <= 3; threads++) {
    pid_t processes[BUSY];
    start_busy(processes);
    unsigned char *busy = bits_of_run(threads, policy, &other);
    stop_busy(processes);
    assert_int_equal(size, other);
    assert_memory_equal(quiet, busy, size);
    free(busy);
  }
  free(quiet);
}

static void float32(void **state) {
  (void)state;
  expect_the_same_bits("float32");
}
static void mixed_float16(void **state) {
  (void)state;
  expect_the_same_bits("mixed_float16");
}

int main(void) {
  mix_host_take_all_threads(true);
  const struct CMUnitTest tests[] = {cmocka_unit_test(float32), cmocka_unit_test(mixed_float16)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
