/* State that the functions of a parallel map share: lazy tensors and variables. Also runs under
 * ThreadSanitizer. */
#include "data/pipeline_support.h"

#include <mixtape/ops.h>
#include <mixtape/random.h>
#include <mixtape/variable.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { THREADS = 4, ROUNDS = 40, ELEMENTS = 12, ROWS = 8, COLUMNS = 5000 };

typedef struct shared {
  mix_tensor *lazy;
  mix_generator *generator;
  mix_variable *variable;
  atomic_int arrived;
} shared;

/* The first calls wait for each other by spinning, so that they do what follows at the same time. */
static void together(shared *s) {
  atomic_fetch_add(&s->arrived, 1);
  for (int tries = 0; tries < 5000 && atomic_load(&s->arrived) < THREADS; tries++) sched_yield();
}

static mix_dataset *mapped(shared *s, mix_dataset_function function) {
  s->arrived = 0;
  return mix_dataset_map(range(ELEMENTS), function, .context = s, .num_parallel_calls = THREADS);
}

/* 49, through many nodes. */
static mix_tensor *chain(void) {
  mix_tensor *one = integer(1), *y = mix_multiply(integer(3), integer(3));
  for (int i = 0; i < 40; i++) y = mix_add(mix_multiply(y, one), one);
  return y;
}

static mix_list *hand_on(void *context, mix_list *element) {
  shared *s = context;
  together(s);
  return mix_list_of(mix_list_get(element, 0), s->lazy);
}
static mix_list *compute_with(void *context, mix_list *element) {
  shared *s = context;
  together(s);
  return mix_list_of(mix_add(mix_list_get(element, 0), s->lazy));
}
static mix_list *read_item(void *context, mix_list *element) {
  shared *s = context;
  together(s);
  return mix_list_of(integer(value_of(element, 0) + (int64_t)mix_tensor_item(s->lazy)));
}

static void functions_share_lazy_tensors(void **state) {
  (void)state;
  mix_set_threads(1);
  for (int round = 0; round < ROUNDS; round++)
    MIX_SCOPE {
      shared s = {.lazy = chain()};
      assert_string_equal(elements(mapped(&s, hand_on), 99),
                          "0:49 1:49 2:49 3:49 4:49 5:49 6:49 7:49 8:49 9:49 10:49 11:49");
      s.lazy = chain();
      assert_string_equal(elements(mapped(&s, compute_with), 99), "49 50 51 52 53 54 55 56 57 58 59 60");
      s.lazy = chain();
      assert_string_equal(elements(mapped(&s, read_item), 99), "49 50 51 52 53 54 55 56 57 58 59 60");
    }
}

static mix_list *times_variable(void *context, mix_list *element) {
  shared *s = context;
  together(s);
  mix_tensor *value = mix_variable_value(s->variable);
  return mix_list_of(mix_multiply(mix_list_get(element, 0), value), value);
}

/* And the retained part stays as it was. */
static void functions_read_a_variable(void **state) {
  (void)state;
  mix_set_threads(1);
  for (int round = 0; round < ROUNDS; round++)
    MIX_SCOPE {
      shared s = {.variable = mix_variable_new(integer(2), .name = "v")};
      mix_iterator *iterator = mix_dataset_iterate(mapped(&s, times_variable));
      mix_list *kept = mix_list_new(0, NULL);
      for (mix_list *element; (element = mix_iterator_next(iterator));) mix_list_append(kept, element);
      assert_int_equal(mix_list_count(kept), ELEMENTS);
      assert_int_equal(mix_variable_assign(s.variable, integer(5)), MIX_OK);
      for (int i = 0; i < ELEMENTS; i++) {
        assert_int_equal(value_of(mix_list_get(kept, i), 0), 2 * i);
        assert_int_equal(value_of(mix_list_get(kept, i), 1), 2);
      }
    }
}

static mix_list *count(void *context, mix_list *element) {
  shared *s = context;
  together(s);
  mix_variable_assign_add(s->variable, integer(1));
  return element;
}

static void functions_change_a_variable(void **state) {
  (void)state;
  mix_set_threads(1);
  shared s = {.variable = mix_variable_new(integer(0), .name = "v")};
  for (int round = 0; round < ROUNDS; round++)
    MIX_SCOPE { assert_string_equal(elements(mapped(&s, count), 99), "0 1 2 3 4 5 6 7 8 9 10 11"); }
  assert_int_equal((int)mix_tensor_item(mix_variable_value(s.variable)), ROUNDS * ELEMENTS);
}

static mix_list *draw(void *context, mix_list *element) {
  (void)element;
  shared *s = context;
  together(s);
  return mix_list_of(mix_random_uniform(s->generator, MIX_SCALAR, MIX_FLOAT64));
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Several threads draw as many different numbers as one thread, and the same ones. */
static void functions_draw_from_one_generator(void **state) {
  (void)state;
  mix_set_threads(1);
  double alone[ELEMENTS], numbers[ELEMENTS];
  for (int round = 0; round < ROUNDS; round++)
    MIX_SCOPE {
      shared s = {.generator = mix_generator_new(7)};
      for (int i = 0; i < ELEMENTS; i++)
        alone[i] = mix_tensor_item(mix_random_uniform(s.generator, MIX_SCALAR, MIX_FLOAT64));
      s.generator = mix_generator_new(7);
      mix_iterator *iterator = mix_dataset_iterate(mapped(&s, draw));
      for (int i = 0; i < ELEMENTS; i++)
        numbers[i] = mix_tensor_item(mix_list_get(mix_iterator_next(iterator), 0));
      assert_int_equal(mix_error(), MIX_OK);
      qsort(alone, ELEMENTS, sizeof *alone, by_size);
      qsort(numbers, ELEMENTS, sizeof *numbers, by_size);
      assert_memory_equal(numbers, alone, sizeof alone);
    }
}

/* A data set of a variable's value has the value at its creation, copied while other threads assign or
 * not. */
static void batches_of_a_variable_see_no_assignment(void **state) {
  (void)state;
  for (int round = 0; round < ROUNDS; round++)
    MIX_SCOPE {
      mix_variable *v = mix_variable_new(mix_fill(MIX_SHAPE(ROWS, COLUMNS), 1, MIX_FLOAT32), .name = "v");
      mix_tensor *value = mix_variable_value(v), *two = mix_fill(MIX_SHAPE(ROWS, COLUMNS), 2, MIX_FLOAT32);
      mix_tensor_data(two);
      mix_dataset *whole = mix_dataset_repeat(mix_dataset_from_tensor(value), 4), *made;
      mix_dataset *rows = mix_dataset_repeat(mix_dataset_from_tensors(value), 4);
      made = round % 4 == 0   ? mix_dataset_batch(whole, 2)
             : round % 4 == 1 ? mix_dataset_padded_batch(whole, 2)
             : round % 4 == 2 ? mix_dataset_batch(rows, 3)
                              : rows;
      mix_iterator *iterator = mix_dataset_iterate(mix_dataset_prefetch(made, 2));
      mix_list *element = mix_iterator_next(iterator);
      mix_variable_assign(v, two);
      for (; element; element = mix_iterator_next(iterator)) {
        mix_tensor *batch = mix_list_get(element, 0);
        const float *numbers = mix_tensor_data(batch);
        for (int64_t i = 0; i < mix_shape_size(mix_tensor_shape(batch)); i++)
          if (numbers[i] != 1) fail_msg("round %d: %g", round, (double)numbers[i]);
      }
      assert_int_equal(mix_error(), MIX_OK);
    }
}

int main(void) {
#define TEST(test) cmocka_unit_test_teardown(test, end)
  const struct CMUnitTest tests[] = {
      TEST(functions_share_lazy_tensors),
      TEST(functions_read_a_variable),
      TEST(functions_change_a_variable),
      TEST(functions_draw_from_one_generator),
      TEST(batches_of_a_variable_see_no_assignment),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
