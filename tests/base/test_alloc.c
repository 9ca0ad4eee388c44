/* Allocation: failure injection, alignment and accounting of buffers, growable arrays, interned names. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static int clear(void **state) {
  (void)state;
  mix_inject_allocation_failure(-1);
  mix_error_clear();
  return 0;
}

static void assert_out_of_memory(void) {
  assert_int_equal(mix_error(), MIX_MEMORY_ERROR);
  mix_error_clear();
}

static void nothing_is_something(void **state) {
  (void)state;
  void *memory[] = {mix_alloc(0), mix_calloc(0, 8), mix_calloc(8, 0), mix_realloc(NULL, 0)};
  for (int i = 0; i < 4; i++) {
    assert_non_null(memory[i]);
    mix_free(memory[i]);
  }
  mix_free(NULL);
  void *buffer = mix_alloc_buffer(0);
  assert_non_null(buffer);
  mix_free_buffer(buffer, 0);
  mix_free_buffer(NULL, 100);
  assert_null(mix_strdup(NULL));
  assert_int_equal(mix_error(), MIX_OK);
}

static void calloc_gives_zeros(void **state) {
  (void)state;
  unsigned char *memory = mix_calloc(100, 3);
  for (int i = 0; i < 300; i++) assert_int_equal(memory[i], 0);
  mix_free(memory);
}

static void realloc_keeps_the_content(void **state) {
  (void)state;
  char *memory = mix_strdup("mixed precision");
  memory = mix_realloc(memory, 1000);
  assert_string_equal(memory, "mixed precision");
  mix_inject_allocation_failure(0);
  assert_null(mix_realloc(memory, 2000));
  assert_out_of_memory();
  assert_string_equal(memory, "mixed precision"); /* still owned by the caller */
  mix_free(memory);
}

static void impossible_sizes_are_out_of_memory(void **state) {
  (void)state;
  assert_null(mix_alloc(SIZE_MAX));
  assert_out_of_memory();
  assert_null(mix_calloc(SIZE_MAX / 2, 3));
  assert_out_of_memory();
  assert_null(mix_calloc(SIZE_MAX / 4, 2));
  assert_out_of_memory();
  assert_null(mix_alloc_buffer(SIZE_MAX));
  assert_out_of_memory();
  assert_null(mix_alloc_buffer(SIZE_MAX - 60));
  assert_out_of_memory();
}

static void the_chosen_allocation_fails_and_no_other(void **state) {
  (void)state;
  for (int count = 0; count < 6; count++) {
    uint64_t before = mix_inject_allocation_failure(count);
    for (int i = 0; i < 10; i++) {
      void *memory = i % 2 ? mix_alloc(10) : mix_calloc(10, 1);
      assert_true((memory == NULL) == (i == count));
      assert_int_equal(mix_error(), i == count ? MIX_MEMORY_ERROR : MIX_OK);
      mix_error_clear();
      mix_free(memory);
    }
    assert_int_equal(mix_inject_allocation_failure(-1) - before, 10);
  }
  mix_inject_allocation_failure(0);
  assert_null(mix_alloc_buffer(64));
  assert_out_of_memory();
  mix_inject_allocation_failure(0);
  assert_null(mix_strdup("text"));
  assert_out_of_memory();
  mix_inject_allocation_failure(0);
  mix_inject_allocation_failure(-5);
  void *memory = mix_alloc(1);
  assert_non_null(memory);
  mix_free(memory);
}

static void buffers_are_aligned_and_padded(void **state) {
  (void)state;
  const size_t sizes[] = {1, 63, 64, 65, 100000, (4u << 20) - 1, 4u << 20, (4u << 20) + 1, 9u << 20};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    unsigned char *buffer = mix_alloc_buffer(sizes[i]);
    assert_non_null(buffer);
    uintptr_t alignment = sizes[i] >= 4u << 20 ? 2u << 20 : 64;
    assert_int_equal((uintptr_t)buffer % alignment, 0);
    memset(buffer, 0xab, sizes[i]);
    int sum = 0;
    for (int j = 0; j < 64; j++)
      sum += buffer[sizes[i] + (size_t)j]; /* readable: the sanitizer would report it */
    assert_int_equal(sum, 0);
    mix_free_buffer(buffer, sizes[i]);
  }
}

static void bytes_and_peak_are_counted(void **state) {
  (void)state;
  size_t start = mix_buffer_bytes();
  mix_buffer_peak_reset();
  assert_int_equal(mix_buffer_peak(), start);
  void *a = mix_alloc_buffer(1000), *b = mix_alloc_buffer(5000);
  assert_int_equal(mix_buffer_bytes(), start + 6000);
  mix_free_buffer(b, 5000);
  void *c = mix_alloc_buffer(2000);
  assert_int_equal(mix_buffer_bytes(), start + 3000);
  assert_int_equal(mix_buffer_peak(), start + 6000);
  mix_buffer_peak_reset();
  assert_int_equal(mix_buffer_peak(), start + 3000);
  mix_free_buffer(a, 1000);
  mix_free_buffer(c, 2000);
  assert_int_equal(mix_buffer_bytes(), start);
  mix_inject_allocation_failure(0);
  assert_null(mix_alloc_buffer(7));
  assert_int_equal(mix_buffer_bytes(), start); /* a rejected one does not count */
}

static void arrays_grow(void **state) {
  (void)state;
  double *array = NULL;
  int capacity = 0, growths = 0;
  for (int i = 0; i < 10000; i++) {
    int before = capacity;
    assert_true(mix_reserve(&array, &capacity, i + 1, sizeof *array));
    assert_true(capacity > i);
    growths += capacity != before;
    array[i] = i;
  }
  assert_in_range(growths, 1, 12); /* doubling from 8 to 16384 */
  for (int i = 0; i < 10000; i++) assert_true(array[i] == i);
  assert_true(mix_reserve(&array, &capacity, 100000, sizeof *array));
  assert_int_equal(capacity, 100000);
  double *same = array;
  mix_inject_allocation_failure(0);
  assert_false(mix_reserve(&array, &capacity, 100001, sizeof *array));
  assert_out_of_memory();
  assert_ptr_equal(array, same);
  assert_int_equal(capacity, 100000);
  assert_false(mix_reserve(&array, &capacity, INT_MAX, SIZE_MAX / 4));
  assert_out_of_memory();
  mix_free(array);
}

static void equal_names_are_one(void **state) {
  (void)state;
  char text[] = "dense_1/kernel";
  const char *name = mix_intern(text);
  assert_ptr_not_equal(name, text);
  assert_string_equal(name, "dense_1/kernel");
  assert_ptr_equal(mix_intern("dense_1/kernel"), name);
  assert_ptr_not_equal(mix_intern("dense_1/bias"), name);
  assert_string_equal(mix_intern(""), "");
  assert_null(mix_intern(NULL));
}

static void names_survive_growth(void **state) {
  (void)state;
  enum { COUNT = 5000 };
  static const char *names[COUNT];
  char text[32];
  for (int i = 0; i < COUNT; i++) {
    snprintf(text, sizeof text, "layer_%d", i);
    names[i] = mix_intern(text);
  }
  for (int i = 0; i < COUNT; i++) {
    snprintf(text, sizeof text, "layer_%d", i);
    assert_string_equal(names[i], text);
    assert_ptr_equal(mix_intern(text), names[i]);
  }
}

static void interning_survives_failed_allocations(void **state) {
  (void)state;
  char text[32];
  int failures = 0;
  for (int i = 0; i < 20000; i++) {
    snprintf(text, sizeof text, "scarce_%d", i);
    mix_inject_allocation_failure(0);
    const char *name = mix_intern(text);
    assert_null(name);
    assert_out_of_memory();
    failures++;
    mix_inject_allocation_failure(1); /* when the table grows, the copy of the name fails */
    name = mix_intern(text);
    if (!name) assert_out_of_memory();
    mix_inject_allocation_failure(-1);
    assert_string_equal(mix_intern(text), text);
  }
  assert_int_equal(failures, 20000);
}

static void *intern_many(void *result) {
  char text[32];
  const char **names = result;
  for (int i = 0; i < 2000; i++) {
    snprintf(text, sizeof text, "shared_%d", i);
    names[i] = mix_intern(text);
  }
  return NULL;
}

static void threads_share_names(void **state) {
  (void)state;
  static const char *names[4][2000];
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, intern_many, names[i]), 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  for (int i = 1; i < 4; i++) assert_memory_equal(names[i], names[0], sizeof names[0]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(nothing_is_something, clear),
      cmocka_unit_test_teardown(calloc_gives_zeros, clear),
      cmocka_unit_test_teardown(realloc_keeps_the_content, clear),
      cmocka_unit_test_teardown(impossible_sizes_are_out_of_memory, clear),
      cmocka_unit_test_teardown(the_chosen_allocation_fails_and_no_other, clear),
      cmocka_unit_test_teardown(buffers_are_aligned_and_padded, clear),
      cmocka_unit_test_teardown(bytes_and_peak_are_counted, clear),
      cmocka_unit_test_teardown(arrays_grow, clear),
      cmocka_unit_test_teardown(equal_names_are_one, clear),
      cmocka_unit_test_teardown(names_survive_growth, clear),
      cmocka_unit_test_teardown(interning_survives_failed_allocations, clear),
      cmocka_unit_test_teardown(threads_share_names, clear),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
