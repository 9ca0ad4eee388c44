/* Threads: the same bits for any number of them if nothing is summed, values shared between threads, results
 * released on another thread. */
#include "compile/support.h"
#include "backend/host/executor.h"
#include "support/memory.h"

#include <pthread.h>

enum { ROWS = 37, COLUMNS = 1031, READERS = 4 };

static mix_list *elementwise(void *context, mix_list *arguments) {
  (void)context;
  mix_tensor *x = mix_list_get(arguments, 0), *row = mix_list_get(arguments, 1);
  mix_tensor *y = mix_add(mix_multiply(mix_tanh(x), row), mix_exp(mix_negative(mix_square(x))));
  mix_tensor *z = mix_cast(mix_softplus(y), MIX_FLOAT16);
  return mix_list_of(y, z, mix_select(mix_greater(y, row), x, y), mix_all_finite(y));
}

static void the_same_bits_for_any_number_of_threads(void **state) {
  (void)state;
  mix_tensor *x =
      mix_sin(mix_reshape(mix_range(0, ROWS * COLUMNS, 1, MIX_FLOAT32), MIX_SHAPE(ROWS, COLUMNS)));
  mix_tensor *row = mix_cos(mix_range(0, COLUMNS, 1, MIX_FLOAT32));
  mix_function *function = mix_function_new(elementwise, NULL);
  mix_list *results[3];
  for (int i = 0; i < 3; i++) {
    assert_int_equal(mix_set_threads(i + 1), MIX_OK);
    results[i] = mix_function_call(function, mix_list_of(x, row));
    no_error();
  }
  for (int i = 1; i < 3; i++)
    for (int r = 0; r < 4; r++) {
      mix_tensor *a = mix_list_get(results[0], r), *b = mix_list_get(results[i], r);
      assert_memory_equal(mix_tensor_data(a), mix_tensor_data(b),
                          mix_memory_bytes(mix_tensor_value(a)->memory));
    }
  has_values(mix_list_get(results[2], 3), true);
}

typedef struct reader {
  mix_tensor *tensor;
  double sum;
} reader;

static void *read_all(void *context) {
  reader *r = context;
  double numbers[1000];
  for (int i = 0; i < 50; i++) {
    MIX_SCOPE {
      mix_retain(r->tensor);
      mix_tensor_read(r->tensor, MIX_FLOAT64, numbers, 1000);
      for (int k = 0; k < 1000; k++) r->sum += numbers[k];
      r->sum += mix_tensor_item(mix_reduce_sum(r->tensor, MIX_ALL_AXES, false));
      mix_release(r->tensor);
    }
  }
  if (mix_error() != MIX_OK) r->sum = NAN;
  return NULL;
}

static void evaluated_tensors_are_read_from_several_threads(void **state) {
  (void)state;
  mix_set_threads(1);
  mix_tensor *x = mix_multiply(mix_range(0, 1000, 1, MIX_FLOAT32), scalar(0.5));
  assert_non_null(mix_tensor_data(x));
  pthread_t threads[READERS];
  reader readers[READERS];
  for (int i = 0; i < READERS; i++) {
    readers[i] = (reader){.tensor = x};
    assert_int_equal(pthread_create(&threads[i], NULL, read_all, &readers[i]), 0);
  }
  for (int i = 0; i < READERS; i++) {
    pthread_join(threads[i], NULL);
    assert_true(readers[i].sum == 100 * 249750.0); /* sums of halves below 2^23: exact */
  }
  assert_int_equal(mix_references(x), 1);
}

/* ---- functions ---- */

typedef struct caller {
  mix_function *function;
  mix_tensor *argument;
  int done, busy, wrong;
} caller;

static mix_list *double_it(void *context, mix_list *arguments) {
  (void)context;
  return mix_list_of(mix_add(mix_list_get(arguments, 0), mix_list_get(arguments, 0)));
}

static void *call_often(void *context) {
  caller *c = context;
  for (int i = 0; i < 300; i++) {
    MIX_SCOPE {
      mix_list *results = mix_function_call(c->function, mix_list_of(c->argument));
      if (results) {
        c->done++;
        const float *in = mix_tensor_data(c->argument), *out = mix_tensor_data(mix_list_get(results, 0));
        for (int k = 0; k < 100; k++) c->wrong += out[k] != 2 * in[k];
      } else {
        c->busy += mix_error() == MIX_BUSY;
        mix_error_clear();
      }
    }
  }
  return NULL;
}

/* Each call either runs on its own argument, or fails because the function is busy. */
static void a_function_is_shared_between_threads(void **state) {
  (void)state;
  mix_set_threads(1);
  mix_function *function = mix_function_new(double_it, NULL);
  pthread_t threads[READERS];
  caller callers[READERS];
  for (int i = 0; i < READERS; i++) {
    mix_tensor *argument = mix_add(mix_range(0, 100, 1, MIX_FLOAT32), scalar(1000 * i));
    mix_tensor_data(argument);
    callers[i] = (caller){.function = function, .argument = argument};
    assert_int_equal(pthread_create(&threads[i], NULL, call_often, &callers[i]), 0);
  }
  int done = 0;
  for (int i = 0; i < READERS; i++) {
    pthread_join(threads[i], NULL);
    assert_int_equal(callers[i].wrong, 0);
    assert_int_equal(callers[i].done + callers[i].busy, 300);
    done += callers[i].done;
  }
  assert_true(done > 0);
}

static void *release_list(void *list) {
  mix_release(list);
  return NULL;
}

static void results_released_elsewhere_come_back(void **state) {
  (void)state;
  mix_function *function = mix_function_new(double_it, NULL);
  mix_tensor *x = mix_range(0, 100, 1, MIX_FLOAT32);
  mix_tensor_data(x);
  size_t bytes = 0;
  for (int i = 0; i < 5; i++) {
    mix_list *results = NULL;
    MIX_SCOPE { results = mix_retain(mix_function_call(function, mix_list_of(x))); }
    no_error();
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, release_list, results), 0);
    pthread_join(thread, NULL);
    if (i == 0) bytes = mix_buffer_bytes();
    assert_int_equal(mix_buffer_bytes(), bytes);
  }
}

int main(void) {
  mix_host_take_all_threads(true);
  const struct CMUnitTest tests[] = {
      TEST(the_same_bits_for_any_number_of_threads),
      TEST(evaluated_tensors_are_read_from_several_threads),
      TEST(a_function_is_shared_between_threads),
      TEST(results_released_elsewhere_come_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
