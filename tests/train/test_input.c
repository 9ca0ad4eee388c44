/* Threads that make the input of fit: however it ends, none is left behind; errors say which element; signals
 * are not theirs. */
#include "support/input_threads.h"
#include "base/alloc.h"
#include "base/processor.h"
#include "data/pipeline/array_batches.h"
#include "model/support.h"
#include "support/skip.h"
#include "train/wide_model.h"
#include <mixtape/callback.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { WIDTH = 1 << 12, ROWS = 320, BATCH = 16 }; /* a batch takes 256 KiB */

static mix_tensor *wide_rows(void) {
  mix_tensor *x = mix_random_uniform(mix_generator_new(1), MIX_SHAPE(ROWS, WIDTH), F32);
  assert_int_equal(mix_evaluate(1, &x), MIX_OK);
  return x;
}

static mix_list *with_label(void *context, mix_list *element) {
  const int64_t *failing = context;
  const double number = mix_tensor_item(mix_list_get(element, 0));
  if (failing && number == (double)*failing) return mix_list_get(element, 7), NULL;
  return mix_list_of(mix_fill(MIX_SHAPE(WIDTH), number, F32), mix_fill(MIX_SHAPE(1), 1, F32));
}

/* Elements made by two threads, batches by a third one. */
static mix_dataset *threaded_data(int64_t *failing) {
  mix_dataset *data =
      mix_dataset_map(mix_dataset_range(0, ROWS, 1), with_label, .context = failing, .num_parallel_calls = 2);
  return mix_dataset_prefetch(mix_dataset_batch(data, BATCH), 2);
}

typedef struct watch {
  int64_t stop_after; /* -1: never */
  int most;           /* threads seen */
  pthread_t thread;   /* on which the callback ran */
} watch;

static mix_status look(void *context, mix_model *model, int64_t batch, mix_logs *logs) {
  (void)logs;
  watch *w = context;
  const int seen = input_threads();
  if (seen > w->most) w->most = seen;
  w->thread = pthread_self();
  return batch == w->stop_after ? mix_model_set_stop_training(model, true) : MIX_OK;
}
static mix_list *watched_by(watch *w) {
  return mix_list_of(mix_callback_new(.on_train_batch_end = look, .context = w, .no_batch_logs = true));
}

static void assert_none_left(void) {
  if (!await_input_threads(0)) fail_msg("%d threads are left", input_threads());
}

static void no_thread_outlives_fit(void **state) {
  (void)state;
  if (mix_cpu_cores() < 2) SKIP("one core");
  mix_tensor *x = wide_rows(), *y = mix_fill(MIX_SHAPE(ROWS, 1), 1, F32);
  for (int64_t stop_after = -1; stop_after <= 7; stop_after += 8) {
    watch of_arrays = {.stop_after = stop_after}, of_data = of_arrays;
    mix_model_fit(wide_model(), x, y, .batch_size = BATCH, .epochs = 2, .quiet = true,
                  .callbacks = watched_by(&of_arrays));
    assert_no_error();
    assert_none_left();
    assert_int_equal(of_arrays.most, 1);
    mix_model_fit(wide_model(), threaded_data(NULL), NULL, .quiet = true, .callbacks = watched_by(&of_data));
    assert_no_error();
    assert_none_left();
    assert_true(of_data.most >= 1 && of_data.most <= 3);
  }
  mix_model_fit(wide_model(), x, y, .batch_size = BATCH, .steps = 5, .quiet = true);
  assert_no_error();
  assert_none_left();
}

/* The rows of a batch of fit's order, in memory of their own. */
static mix_tensor *rows_of(mix_tensor *x, const mix_batches *batches, int64_t index) {
  int64_t rows[BATCH];
  for (int64_t i = 0; i < BATCH; i++) rows[i] = mix_batches_row(batches, index, i);
  return mix_gather(x, mix_tensor_from(rows, MIX_INT64, MIX_SHAPE(BATCH)), 0);
}

/* Bits are those of steps over batches that this thread makes one by one. */
static void weights_do_not_depend_on_who_gathers(void **state) {
  (void)state;
  mix_tensor *x = wide_rows(), *y = mix_fill(MIX_SHAPE(ROWS, 1), 1, F32);
  mix_model *fitted = wide_model(), *stepped = wide_model();
  mix_model_fit(fitted, x, y, .batch_size = BATCH, .epochs = 2, .seed = 3, .quiet = true);
  assert_no_error();
  mix_batches *batches = mix_batches_new(1, &x, 0, -1, BATCH, "fit");
  for (uint64_t epoch = 0; epoch < 2; epoch++) {
    assert_true(mix_batches_begin(batches, MIX_ORDER_ROWS, 3, epoch));
    for (int64_t i = 0; i < ROWS / BATCH; i++)
      MIX_SCOPE {
        assert_non_null(mix_model_train_on_batch(stepped, rows_of(x, batches, i), rows_of(y, batches, i)));
      }
  }
  size_t size, other;
  unsigned char *bits = bits_of(mix_model_weights(fitted), &size),
                *expected = bits_of(mix_model_weights(stepped), &other);
  assert_int_equal(size, other);
  assert_memory_equal(bits, expected, size);
  assert_true(weight_at(fitted, 0, 0) != 0);
  free(bits);
  free(expected);
}

/* Batches of a MiB: two are made ahead of the one that is in use, and no others take memory, whoever gathers
 * them. */
static void batches_take_three_buffers(void **state) {
  (void)state;
  if (mix_cpu_cores() < 2) SKIP("one core");
  enum { LARGE = (1 << 20) / (WIDTH * (int)sizeof(float)), COUNT = 10 };
  mix_set_threads(1);
  mix_tensor *x = mix_random_uniform(mix_generator_new(1), MIX_SHAPE(COUNT * LARGE, WIDTH), F32);
  assert_non_null(mix_tensor_data(x));
  mix_batches *batches = mix_batches_new(1, &x, 0, -1, LARGE, "fit");
  const size_t before = mix_buffer_bytes();
  int most = 0;
  for (uint64_t epoch = 0; epoch < 3; epoch++) {
    assert_true(mix_batches_begin(batches, MIX_ORDER_ROWS, 3, epoch));
    for (int64_t i = 0; i < COUNT; i++) {
      assert_non_null(mix_batches_get(batches, i));
      const int seen = input_threads();
      if (seen > most) most = seen;
      assert_in_range(mix_buffer_bytes() - before, 1 << 20, 3 << 20);
    }
  }
  assert_int_equal(most, 1);
}

static void an_error_names_the_element_and_ends_the_threads(void **state) {
  (void)state;
  int64_t failing = 137;
  mix_model *model = wide_model();
  assert_null(mix_model_fit(model, threaded_data(&failing), NULL, .quiet = true));
  assert_non_null(strstr(mix_error_message(), "index is 7"));
  assert_error(MIX_VALUE_ERROR, "(element 137 of dataset_map)");
  assert_none_left();
  failing = -1; /* the model goes on */
  mix_model_fit(model, threaded_data(&failing), NULL, .quiet = true);
  assert_no_error();
  assert_none_left();
}

static pthread_t handled_by;
static volatile sig_atomic_t handled;
static void handle(int number) {
  (void)number;
  handled_by = pthread_self();
  handled++;
}
static mix_status send(void *context, mix_model *model, int64_t batch, mix_logs *logs) {
  (void)context, (void)model, (void)batch, (void)logs;
  assert_int_equal(kill(getpid(), SIGUSR1), 0);
  return MIX_OK;
}

static void signals_go_to_the_programs_threads(void **state) {
  (void)state;
  void (*former)(int) = signal(SIGUSR1, handle);
  mix_callback *sender = mix_callback_new(.on_train_batch_end = send, .no_batch_logs = true);
  mix_model_fit(wide_model(), threaded_data(NULL), NULL, .quiet = true, .callbacks = mix_list_of(sender));
  signal(SIGUSR1, former);
  assert_no_error();
  assert_int_equal(handled, ROWS / BATCH);
  assert_true(pthread_equal(handled_by, pthread_self()));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(no_thread_outlives_fit),
      TEST(weights_do_not_depend_on_who_gathers),
      TEST(batches_take_three_buffers),
      TEST(an_error_names_the_element_and_ends_the_threads),
      TEST(signals_go_to_the_programs_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
