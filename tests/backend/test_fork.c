/* A forked child after plans and passes of several threads: it works or gets an error, and ends. A child that
 * hangs is ended by its alarm, which the parent sees. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <mixtape/mixtape.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 512, SECONDS = 60, ROWS = 4096 };

/* A product of several threads, as bytes. */
static bool product(float *to) {
  bool good = false;
  MIX_SCOPE {
    mix_tensor *x = mix_random_uniform(mix_generator_new(1), MIX_SHAPE(SIZE, SIZE), MIX_FLOAT32);
    mix_tensor *y = mix_matmul(x, x, false, false);
    good = mix_tensor_read(y, MIX_FLOAT32, to, SIZE * SIZE) == MIX_OK;
  }
  return good;
}

/* The exit status of a child that runs `work`; a signal's number plus 128. */
static int in_child(int (*work)(void *), void *context) {
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    alarm(SECONDS);
    _exit(work(context));
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int same_product(void *expected) {
  static float again[SIZE * SIZE];
  return !product(again) || memcmp(again, expected, sizeof again) != 0;
}

static int same_product_in_a_grandchild(void *expected) {
  return same_product(expected) || in_child(same_product, expected);
}

static void a_child_computes_the_same_bits(void **state) {
  (void)state;
  static float expected[SIZE * SIZE];
  mix_set_threads(2);
  assert_true(product(expected));
  assert_int_equal(in_child(same_product_in_a_grandchild, expected), 0);
  assert_int_equal(same_product(expected), 0);
}

/* A sum whose threads wait for each other. */
static double sum_of_many(void) {
  double sum = 0;
  MIX_SCOPE {
    mix_tensor *x = mix_random_uniform(mix_generator_new(1), MIX_SHAPE(ROWS, SIZE), MIX_FLOAT32);
    mix_evaluate(1, &x);
    sum = mix_tensor_item(mix_reduce_sum(x, MIX_ALL_AXES, false));
  }
  return sum;
}

static int same_sum(void *expected) { return sum_of_many() != *(double *)expected; }

static void a_child_does_not_wait_for_threads_that_it_lacks(void **state) {
  (void)state;
  mix_set_threads(2);
  double expected = sum_of_many();
  assert_true(expected > 0);
  assert_int_equal(in_child(same_sum, &expected), 0);
}

static mix_list *same(void *context, mix_list *element) { return (void)context, element; }

static mix_dataset *mapped(void) {
  return mix_dataset_map(mix_dataset_range(0, 9, 1), same, .context = NULL, .num_parallel_calls = 2);
}

static int count(mix_iterator *iterator) {
  int elements = 0;
  while (mix_iterator_next(iterator)) elements++;
  return elements;
}

static int pass_fails(void *iterator) {
  if (mix_iterator_next(iterator) || mix_error() != MIX_RUNTIME_ERROR) return 1;
  if (!strstr(mix_error_message(), "before fork")) return 2;
  mix_error_clear();
  mix_release(iterator);
  return count(mix_dataset_iterate(mapped())) == 9 ? 0 : 3;
}

static void a_pass_of_the_parent_fails(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_dataset *steps[] = {mapped(), mix_dataset_prefetch(mix_dataset_range(0, 9, 1), 9)};
    for (int i = 0; i < 2; i++) {
      mix_iterator *iterator = mix_retain(mix_dataset_iterate(steps[i]));
      mix_list *last = NULL;
      for (int n = 0; n < 9; n++) assert_non_null(last = mix_iterator_next(iterator));
      assert_int_equal(in_child(pass_fails, iterator), 0);
      assert_null(mix_iterator_next(iterator)); /* the parent's is as it was */
      assert_int_equal(mix_error(), MIX_OK);
      mix_release(iterator);
    }
  }
}

/* Rows are gathered by several threads, too. */
static int batch_of_rows(void *array) {
  int64_t rows = 0;
  MIX_SCOPE {
    mix_dataset *data = mix_dataset_from_tensors(array);
    data = mix_dataset_batch(mix_dataset_shuffle(data, ROWS, .seed = 3), ROWS);
    mix_list *batch = mix_iterator_next(mix_dataset_iterate(data));
    if (batch) rows = mix_tensor_shape(mix_list_get(batch, 0)).dims[0];
  }
  return rows == ROWS ? 0 : 1;
}

static void a_child_gathers_rows(void **state) {
  (void)state;
  mix_set_threads(2);
  MIX_SCOPE {
    mix_tensor *array = mix_fill(MIX_SHAPE(ROWS, 256), 1, MIX_FLOAT32);
    assert_int_equal(batch_of_rows(array), 0);
    assert_int_equal(in_child(batch_of_rows, array), 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_child_computes_the_same_bits),
                                     cmocka_unit_test(a_child_does_not_wait_for_threads_that_it_lacks),
                                     cmocka_unit_test(a_pass_of_the_parent_fails),
                                     cmocka_unit_test(a_child_gathers_rows)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
