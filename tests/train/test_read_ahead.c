/* fit reads data sets ahead beside its steps: the same elements, state and errors as without a thread, and
 * functions of the user stay on the caller's. Also runs under ThreadSanitizer. */
#include "support/input_threads.h"
#include "base/processor.h"
#include "data/pipeline/pipeline.h"
#include "model/support.h"
#include "support/skip.h"
#include "train/wide_model.h"
#include <mixtape/callback.h>
#include <pthread.h>

/* A batch takes 2 MiB: no thread copies it within the 10 us below which nothing is made in advance. */
enum { WIDTH = 1 << 12, BATCH = 128, BATCHES = 6, ROWS = BATCH * BATCHES };

static mix_dataset *rows(int64_t count) {
  mix_tensor *x = mix_random_uniform(mix_generator_new(1), MIX_SHAPE(count, WIDTH), F32);
  return mix_dataset_from_tensors(x, mix_fill(MIX_SHAPE(count, 1), 1, F32));
}

typedef struct watch {
  step_losses_seen seen;
  int most;         /* threads seen */
  int64_t pause_at; /* after this step the thread has time to go on */
} watch;

static mix_status look(void *context, mix_model *model, int64_t batch, mix_logs *logs) {
  (void)model, (void)batch, (void)logs;
  watch *w = context;
  const int seen = input_threads();
  if (seen > w->most) w->most = seen;
  if (w->seen.count == w->pause_at) nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
  return MIX_OK;
}

static mix_history *fit_watched(mix_model *model, mix_dataset *data, int64_t steps_per_epoch, int64_t steps,
                                watch *w) {
  return mix_model_fit(model, data, NULL, .epochs = 3, .steps_per_epoch = steps_per_epoch, .steps = steps,
                       .quiet = true, .on_step = see_step, .context = &w->seen,
                       .callbacks = mix_list_of(mix_callback_new(.on_train_batch_end = look, .context = w,
                                                                 .no_batch_logs = true)));
}

/* ---- recipes ---- */

static mix_dataset *shuffled(void) { return mix_dataset_shuffle(rows(ROWS), ROWS, .seed = 3); }
static mix_dataset *batches(void) { return mix_dataset_batch(shuffled(), BATCH); }
/* The last batch of a round has rows of the next one. */
static mix_dataset *batches_across_rounds(void) {
  return mix_dataset_batch(
      mix_dataset_repeat(mix_dataset_shuffle(rows(ROWS - BATCH / 2), ROWS, .seed = 3), -1), BATCH);
}
static mix_dataset *repeated_batches(void) { return mix_dataset_repeat(batches(), -1); }
static mix_dataset *cached(void) { return mix_dataset_batch(mix_dataset_cache(shuffled()), BATCH); }
static mix_dataset *concatenated(void) { return mix_dataset_concatenate(batches(), batches()); }

static const struct {
  const char *name;
  mix_dataset *(*make)(void);
  int64_t steps_per_epoch, steps;
} recipes[] = {
    {"batches", batches, 0, 0},
    {"batches, left", batches, 0, BATCHES + 3},
    {"rounds", batches_across_rounds, BATCHES - 1, 0},
    {"rounds, left at their end", repeated_batches, BATCHES, BATCHES},
    {"rounds, left at another's end", repeated_batches, BATCHES - 1, 2 * BATCHES},
    {"cached", cached, 0, 0},
    {"cached, left before the end", cached, BATCHES, BATCHES},
    {"concatenated, left between them", concatenated, 0, BATCHES},
};

typedef struct outcome {
  watch watch;
  uint64_t state[16];
  int state_count;
  unsigned char *weights;
  size_t size;
} outcome;

static void run(size_t recipe, bool ahead, outcome *outcome) {
  *outcome = (struct outcome){.watch.pause_at = recipes[recipe].steps};
  mix_model *model = wide_model();
  mix_dataset *data = recipes[recipe].make();
  fit_watched(model, ahead ? data : mix_dataset_prefetch(data, 0), recipes[recipe].steps_per_epoch,
              recipes[recipe].steps, &outcome->watch);
  assert_no_error();
  outcome->state_count = mix_dataset_save_state(data, NULL);
  assert_in_range(outcome->state_count, 1, 16);
  mix_dataset_save_state(data, outcome->state);
  outcome->weights = bits_of(mix_model_weights(model), &outcome->size);
}

static void elements_and_state_are_those_without_a_thread(void **state) {
  (void)state;
  if (mix_cpu_cores() < 2) SKIP("one core");
  for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
    outcome ahead, alone;
    MIX_SCOPE {
      run(i, true, &ahead);
      run(i, false, &alone);
    }
    print_message("%s\n", recipes[i].name);
    assert_int_equal(ahead.watch.most, 1);
    assert_int_equal(alone.watch.most, 0);
    assert_true(await_input_threads(0));
    assert_int_equal(ahead.watch.seen.count, alone.watch.seen.count);
    assert_memory_equal(ahead.watch.seen.loss, alone.watch.seen.loss,
                        sizeof *alone.watch.seen.loss * (size_t)alone.watch.seen.count);
    assert_int_equal(ahead.state_count, alone.state_count);
    assert_memory_equal(ahead.state, alone.state, sizeof *alone.state * (size_t)alone.state_count);
    assert_int_equal(ahead.size, alone.size);
    assert_memory_equal(ahead.weights, alone.weights, alone.size);
    free(ahead.weights);
    free(alone.weights);
  }
}

static void an_error_comes_at_its_element(void **state) {
  (void)state;
  if (mix_cpu_cores() < 2) SKIP("one core");
  mix_tensor *bytes = mix_fill(MIX_SHAPE(ROWS, WIDTH), 1, MIX_UINT8);
  mix_dataset *other = mix_dataset_from_tensors(bytes, mix_fill(MIX_SHAPE(ROWS, 1), 1, F32));
  mix_dataset *data = mix_dataset_concatenate(batches(), mix_dataset_batch(other, BATCH));
  char messages[2][1024];
  for (int alone = 0; alone < 2; alone++) {
    watch w = {.pause_at = -1};
    assert_null(fit_watched(wide_model(), alone ? mix_dataset_prefetch(data, 0) : data, 0, 0, &w));
    assert_int_equal(mix_error_take(messages[alone], sizeof messages[alone]), MIX_TYPE_ERROR);
    assert_int_equal(w.seen.count, BATCHES);
    assert_int_equal(w.most, !alone);
    assert_true(await_input_threads(0));
  }
  assert_string_equal(messages[0], messages[1]);
  assert_non_null(strstr(messages[0], "dataset_concatenate"));
}

/* ---- functions of the user ---- */

typedef struct called {
  pthread_t by;
  int calls, elsewhere;
  mix_list *element; /* retained */
} called;

static mix_list *made(called *c) {
  c->calls++;
  c->elsewhere += !pthread_equal(pthread_self(), c->by);
  nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); /* a thread would pay */
  return c->element;
}
static mix_list *generate(void *context, int64_t index) { return index < 12 ? made(context) : NULL; }
static mix_list *change(void *context, mix_list *element) { return made(context), element; }
static bool keep(void *context, mix_list *element) { return made(context) != NULL; }

static void functions_of_the_user_stay_on_the_callers_thread(void **state) {
  (void)state;
  if (mix_cpu_cores() < 2) SKIP("one core");
  called c = {.by = pthread_self(),
              .element =
                  mix_list_of(mix_fill(MIX_SHAPE(4, WIDTH), 1, F32), mix_fill(MIX_SHAPE(4, 1), 1, F32))};
  mix_dataset *few = mix_dataset_take(batches(), 12);
  mix_dataset *const data[] = {
      mix_dataset_from_generator(generate, .context = &c),
      mix_dataset_map(few, change, .context = &c),
      mix_dataset_filter(few, keep, .context = &c),
      mix_dataset_repeat(mix_dataset_filter(few, keep, .context = &c), 2),
      mix_dataset_zip(mix_dataset_from_generator(generate, .context = &c)),
  };
  for (size_t i = 0; i < sizeof data / sizeof *data; i++) {
    watch w = {.pause_at = -1};
    fit_watched(wide_model(), data[i], 0, 0, &w);
    assert_no_error();
    assert_int_equal(w.most, 0);
  }
  assert_int_equal(c.elsewhere, 0);
  assert_true(c.calls >= 3 * 12);
}

/* Calls that may come from threads do, also where a step of the receiver's comes after. */
static void functions_with_threads_run_ahead(void **state) {
  (void)state;
  if (mix_cpu_cores() < 2) SKIP("one core");
  called c = {.by = pthread_self()};
  mix_dataset *mapped = mix_dataset_map(batches(), change, .context = &c, .num_parallel_calls = 1);
  watch w = {.pause_at = -1};
  fit_watched(wide_model(), mix_dataset_take(mapped, BATCHES), 0, 0, &w);
  assert_no_error();
  assert_int_equal(c.elsewhere, c.calls);
  assert_true(await_input_threads(0));
}

static void evaluate_and_predict_read_ahead_too(void **state) {
  (void)state;
  if (mix_cpu_cores() < 2) SKIP("one core");
  mix_model *model = wide_model();
  mix_dataset *data = batches();
  watch w = {.pause_at = -1};
  mix_logs *logs = mix_model_evaluate(
      model, data, NULL, .quiet = true,
      .callbacks = mix_list_of(mix_callback_new(.on_test_batch_end = look, .context = &w)));
  assert_no_error();
  assert_true(mix_logs_get(logs, "loss") == 1);
  assert_int_equal(w.most, 1);
  w.most = 0;
  mix_model_predict(model, data, .quiet = true,
                    .callbacks = mix_list_of(mix_callback_new(.on_predict_batch_end = look, .context = &w)));
  assert_no_error();
  assert_int_equal(w.most, 1);
  assert_true(await_input_threads(0));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(elements_and_state_are_those_without_a_thread),
      TEST(an_error_comes_at_its_element),
      TEST(functions_of_the_user_stay_on_the_callers_thread),
      TEST(functions_with_threads_run_ahead),
      TEST(evaluate_and_predict_read_ahead_too),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
