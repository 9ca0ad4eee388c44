/* Threads that share a model: predict and evaluate side by side, and MIX_BUSY for what changes it. */
#include "model/support.h"
#include "backend/host/executor.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 4, CALLS = 12, ROWS = 7, FEATURES = 6 };

typedef struct work {
  mix_model *model;
  mix_tensor *x, *y;
  mix_tensor *outputs[ROWS]; /* what predict gives on one thread, by batch size, and evaluate */
  mix_logs *logs;
  int64_t first; /* batch size */
  int done, wrong, failed;
} work;

static int differences(mix_tensor *a, mix_tensor *b) {
  return !a || memcmp(mix_tensor_data(a), mix_tensor_data(b),
                      sizeof(float) * (size_t)mix_shape_size(mix_tensor_shape(b))) != 0;
}

/* Batches of another size a call: the plans are captured while others run. */
static void *predicts(void *context) {
  work *w = context;
  for (int i = 0; i < CALLS; i++) {
    const int64_t size = 1 + (w->first + i) % ROWS;
    MIX_SCOPE {
      mix_list *outputs = mix_model_predict(w->model, w->x, .batch_size = size);
      if (outputs)
        w->wrong += differences(mix_list_get(outputs, 0), w->outputs[size - 1]);
      else
        w->failed++;
    }
  }
  return NULL;
}

static void *evaluates(void *context) {
  work *w = context;
  for (int i = 0; i < CALLS; i++) {
    MIX_SCOPE {
      mix_logs *logs = mix_model_evaluate(w->model, w->x, w->y, .verbose = MIX_SILENT);
      if (!logs) w->failed++;
      for (int k = 0; logs && k < mix_logs_count(w->logs); k++)
        w->wrong += mix_logs_value(logs, k) != mix_logs_value(w->logs, k);
    }
  }
  return NULL;
}

static void *reads(void *context) {
  work *w = context;
  for (int i = 0; i < CALLS; i++) {
    MIX_SCOPE {
      mix_list *weights = mix_model_get_weights(w->model);
      w->failed += !weights || mix_tensor_data(mix_list_get(weights, 0)) == NULL;
      w->failed += !mix_model_summary(w->model) || !mix_model_to_json(w->model);
      mix_tensor *output = mix_model_call(w->model, w->x);
      w->wrong += differences(output, w->outputs[ROWS - 1]);
    }
  }
  return NULL;
}

static work work_of(mix_model *model) {
  examples e = examples_of(ROWS, FEATURES, 3);
  work w = {.model = model, .x = e.x, .y = e.y};
  mix_tensor_data(w.x), mix_tensor_data(w.y);
  for (int64_t i = 0; i < ROWS; i++)
    w.outputs[i] = mix_list_get(mix_model_predict(model, w.x, .batch_size = i + 1), 0);
  w.logs = mix_model_evaluate(model, w.x, w.y, .verbose = MIX_SILENT);
  assert_no_error();
  return w;
}

static void run_together(int count, void *(*const *bodies)(void *), work *all) {
  pthread_t threads[THREADS];
  for (int i = 0; i < count; i++) assert_int_equal(pthread_create(&threads[i], NULL, bodies[i], &all[i]), 0);
  for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < count; i++) {
    assert_int_equal(all[i].failed, 0);
    assert_int_equal(all[i].wrong, 0);
  }
}

static void predicts_of_several_threads_are_right(void **state) {
  (void)state;
  mix_set_threads(1);
  work all[THREADS], one = work_of(compiled_guide_model(FEATURES, 8));
  for (int i = 0; i < THREADS; i++) all[i] = one, all[i].first = i;
  run_together(THREADS, (void *(*const[])(void *)){predicts, predicts, predicts, predicts}, all);
}

static void evaluates_of_several_threads_are_right(void **state) {
  (void)state;
  mix_set_threads(1);
  work all[THREADS], one = work_of(compiled_guide_model(FEATURES, 8));
  for (int i = 0; i < THREADS; i++) all[i] = one;
  run_together(THREADS, (void *(*const[])(void *)){evaluates, predicts, evaluates, reads}, all);
}

/* ---- what changes the model ---- */

typedef struct blocked {
  mix_model *model;
  examples e;
  const char *path;
  atomic_bool running, leave;
  mix_status statuses[12];
  char message[256];
  int inside;
} blocked;

static mix_status ended_with(void) {
  mix_status status = mix_error();
  mix_error_clear();
  return status;
}

/* Stays in the call until the other thread has tried all of its own. */
static void wait_inside(void *context, const mix_step_record *record) {
  (void)record;
  blocked *b = context;
  /* the same thread goes on as before */
  b->inside += mix_model_predict(b->model, b->e.x) != NULL;
  b->inside += mix_model_evaluate(b->model, b->e.x, b->e.y, .verbose = MIX_SILENT) != NULL;
  b->inside += mix_model_get_weights(b->model) != NULL;
  atomic_store(&b->running, true);
  while (!atomic_load(&b->leave)) usleep(100);
}

static void *fits(void *context) {
  blocked *b = context;
  MIX_SCOPE {
    mix_model_fit(b->model, b->e.x, b->e.y, .verbose = MIX_SILENT, .batch_size = ROWS, .on_step = wait_inside,
                  .context = b);
  }
  if (mix_error()) b->inside = -1;
  atomic_store(&b->running, true);
  return NULL;
}

static int try_all(blocked *b) {
  int n = 0;
  mix_list *none = mix_list_new(0, NULL);
  mix_model_predict(b->model, b->e.x);
  snprintf(b->message, sizeof b->message, "%s", mix_error_message());
  b->statuses[n++] = ended_with();
  mix_model_evaluate(b->model, b->e.x, b->e.y, .verbose = MIX_SILENT), b->statuses[n++] = ended_with();
  mix_model_fit(b->model, b->e.x, b->e.y, .verbose = MIX_SILENT), b->statuses[n++] = ended_with();
  mix_model_train_on_batch(b->model, b->e.x, b->e.y), b->statuses[n++] = ended_with();
  mix_model_test_on_batch(b->model, b->e.x, b->e.y), b->statuses[n++] = ended_with();
  mix_model_get_weights(b->model), b->statuses[n++] = ended_with();
  mix_model_set_weights(b->model, none), b->statuses[n++] = ended_with();
  mix_model_save_weights(b->model, b->path), b->statuses[n++] = ended_with();
  mix_model_load_weights(b->model, b->path), b->statuses[n++] = ended_with();
  mix_model_compile(b->model, .loss = "mse"), b->statuses[n++] = ended_with();
  mix_model_summary(b->model), b->statuses[n++] = ended_with();
  mix_model_call(b->model, b->e.x), b->statuses[n++] = ended_with();
  return n;
}

static void nothing_runs_beside_fit(void **state) {
  (void)state;
  mix_set_threads(1);
  blocked b = {.model = compiled_guide_model(FEATURES, 8),
               .e = examples_of(ROWS, FEATURES, 3),
               .path = "/nonexistent/weights.npz"};
  mix_tensor_data(b.e.x), mix_tensor_data(b.e.y);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, fits, &b), 0);
  while (!atomic_load(&b.running)) usleep(100);
  int count = try_all(&b);
  atomic_store(&b.leave, true);
  pthread_join(thread, NULL);
  for (int i = 0; i < count; i++) assert_int_equal(b.statuses[i], MIX_BUSY);
  assert_int_equal(b.inside, 3);
  assert_non_null(strstr(b.message, "predict: '"));
  assert_non_null(strstr(b.message, "in use by fit on another thread"));
  assert_non_null(mix_model_predict(b.model, b.e.x)); /* it is free again */
}

/* A first call builds the weights: until then one thread alone. */
static void *predicts_once(void *context) {
  work *w = context;
  mix_list *outputs = NULL;
  MIX_SCOPE { outputs = mix_retain(mix_model_predict(w->model, w->x)); }
  w->failed = mix_error() && mix_error() != MIX_BUSY;
  w->wrong = !outputs && !mix_error();
  w->done = outputs != NULL;
  mix_release(outputs);
  return NULL;
}

static void a_first_call_builds_the_model_alone(void **state) {
  (void)state;
  mix_set_threads(1);
  work all[THREADS];
  mix_model *model = mix_sequential(mix_list_of(mix_dense(.units = 8), mix_dense(.units = 3)));
  mix_tensor *x = examples_of(ROWS, FEATURES, 3).x;
  mix_tensor_data(x);
  for (int i = 0; i < THREADS; i++) all[i] = (work){.model = model, .x = x};
  run_together(THREADS,
               (void *(*const[])(void *)){predicts_once, predicts_once, predicts_once, predicts_once}, all);
  int done = 0;
  for (int i = 0; i < THREADS; i++) done += all[i].done;
  assert_true(done >= 1);
  assert_int_equal(mix_list_count(mix_model_weights(model)), 4);
}

int main(void) {
  mix_host_take_all_threads(true);
  const struct CMUnitTest tests[] = {
      TEST(predicts_of_several_threads_are_right),
      TEST(evaluates_of_several_threads_are_right),
      TEST(nothing_runs_beside_fit),
      TEST(a_first_call_builds_the_model_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
