/* Batches for fit: sizes, orders, reuse of memory. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/backend.h"
#include "base/alloc.h"
#include "base/processor.h"
#include "data/pipeline/array_batches.h"
#include <mixtape/device.h>
#include <mixtape/object.h>
#include <mixtape/ops.h>
#include <mixtape/variable.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "support/input_threads.h"
#include "support/skip.h"

enum { N = 100 };
static float x[N][2];
static int64_t y[N];
static mix_tensor *arrays[3];

static int begin(void **state) {
  (void)state;
  for (int i = 0; i < N; i++) {
    x[i][0] = (float)i;
    x[i][1] = (float)-i;
    y[i] = i;
  }
  arrays[0] = mix_tensor_from(x, MIX_FLOAT32, MIX_SHAPE(N, 2));
  arrays[1] = mix_tensor_from(y, MIX_INT64, MIX_SHAPE(N));
  arrays[2] = NULL;
  return 0;
}

static int end(void **state) {
  (void)state;
  mix_inject_allocation_failure(-1);
  mix_error_clear();
  mix_set_threads(0);
  mix_shutdown();
  return 0;
}

static void assert_failed(mix_status status, const char *part) {
  char message[1000];
  assert_int_equal(mix_error_take(message, sizeof message), status);
  if (!strstr(message, part)) print_message("%s\n", message);
  assert_non_null(strstr(message, part));
}

/* Checks that x matches y in every row of an epoch. Fills `rows` in their order and returns the count. */
static int64_t epoch(mix_batches *batches, int64_t rows[N]) {
  int64_t count = 0;
  for (int64_t i = 0; i < mix_batches_count(batches); i++) {
    mix_list *batch = mix_batches_get(batches, i);
    assert_non_null(batch);
    int64_t n = mix_batches_size(batches, i);
    assert_int_equal(mix_list_count(batch), 3);
    assert_true(mix_shape_equal(mix_tensor_shape(mix_list_get(batch, 0)), MIX_SHAPE(n, 2)));
    assert_true(mix_shape_equal(mix_tensor_shape(mix_list_get(batch, 1)), MIX_SHAPE(n)));
    assert_null(mix_list_get(batch, 2));
    const float *some_x = mix_tensor_data(mix_list_get(batch, 0));
    const int64_t *some_y = mix_tensor_data(mix_list_get(batch, 1));
    for (int64_t j = 0; j < n; j++) {
      assert_true(some_x[2 * j] == (float)some_y[j] && some_x[2 * j + 1] == (float)-some_y[j]);
      rows[count++] = some_y[j];
    }
  }
  return count;
}

static void Y03_a_hundred_rows_make_four_batches_of_32(void **state) {
  (void)state;
  mix_batches *batches = mix_batches_new(3, arrays, 0, -1, 32, "fit");
  int64_t rows[N];
  assert_int_equal(mix_batches_count(batches), 4);
  assert_int_equal(mix_batches_size(batches, 0), 32);
  assert_int_equal(mix_batches_size(batches, 3), 4);
  assert_int_equal(epoch(batches, rows), N);
  for (int i = 0; i < N; i++) assert_int_equal(rows[i], i);
}

/* 60,000 rows split at 48,000 in batches of 8,192: 6 and 2 steps. */
static void Y04_sizes_of_the_guide(void **state) {
  (void)state;
  static int8_t bytes[60000];
  mix_tensor *large = mix_tensor_wrap(bytes, MIX_INT8, MIX_SHAPE(60000), NULL);
  mix_batches *training = mix_batches_new(1, &large, 0, 48000, 8192, "fit");
  mix_batches *validation = mix_batches_new(1, &large, 48000, -1, 8192, "fit");
  assert_int_equal(mix_batches_count(training), 6);
  assert_int_equal(mix_batches_size(training, 5), 7040);
  assert_int_equal(mix_batches_rows(validation), 12000);
  assert_int_equal(mix_batches_count(validation), 2);
  assert_int_equal(mix_batches_size(validation, 1), 3808);
}

static void a_part_of_the_rows(void **state) {
  (void)state;
  mix_batches *batches = mix_batches_new(3, arrays, 80, -1, 7, "fit");
  int64_t rows[N];
  for (int shuffled = 0; shuffled < 2; shuffled++) {
    assert_true(mix_batches_begin(batches, shuffled ? MIX_ORDER_ROWS : MIX_ORDER_KEPT, 1, 0));
    bool seen[N] = {false};
    assert_int_equal(epoch(batches, rows), 20);
    for (int i = 0; i < 20; i++) {
      assert_true(rows[i] >= 80 && !seen[rows[i]]);
      seen[rows[i]] = true;
      if (!shuffled) assert_int_equal(rows[i], 80 + i);
    }
  }
}

static void orders_are_functions_of_seed_and_epoch(void **state) {
  (void)state;
  mix_batches *batches = mix_batches_new(3, arrays, 0, -1, 32, "fit");
  int64_t first[N], other[N];
  static const uint64_t others[3][2] = {{1, 1}, {2, 0}, {1, 2}};
  assert_true(mix_batches_begin(batches, MIX_ORDER_ROWS, 1, 0));
  epoch(batches, first);
  bool seen[N] = {false};
  for (int i = 0; i < N; i++) {
    assert_false(seen[first[i]]);
    seen[first[i]] = true;
  }
  for (int i = 0; i < 3; i++) {
    assert_true(mix_batches_begin(batches, MIX_ORDER_ROWS, others[i][0], others[i][1]));
    epoch(batches, other);
    assert_memory_not_equal(first, other, sizeof first);
  }
  assert_true(
      mix_batches_begin(batches, MIX_ORDER_ROWS, 1, 0)); /* after other epochs: the first order again */
  epoch(batches, other);
  assert_memory_equal(first, other, sizeof first);
}

static void whole_batches_keep_their_rows(void **state) {
  (void)state;
  mix_batches *batches = mix_batches_new(3, arrays, 0, -1, 9, "fit");
  int64_t rows[N];
  bool moved = false;
  assert_true(mix_batches_begin(batches, MIX_ORDER_BATCHES, 3, 0));
  epoch(batches, rows);
  for (int i = 0; i < 99; i++) {
    assert_int_equal(rows[i] % 9, i % 9);
    assert_int_equal(rows[i] / 9, rows[i - i % 9] / 9);
    moved = moved || rows[i] != i;
  }
  assert_int_equal(rows[99], 99); /* the short batch stays last */
  assert_true(moved);
}

static void memory_is_reused_unless_retained(void **state) {
  (void)state;
  mix_batches *batches = mix_batches_new(3, arrays, 0, -1, 32, "fit");
  assert_true(mix_batches_begin(batches, MIX_ORDER_ROWS, 1, 0));
  const void *memory = mix_tensor_data(mix_list_get(mix_batches_get(batches, 0), 0));
  for (int i = 0; i < 8; i++)
    assert_ptr_equal(mix_tensor_data(mix_list_get(mix_batches_get(batches, i % 4), 0)), memory);
  mix_tensor *kept = mix_retain(mix_list_get(mix_batches_get(batches, 1), 0));
  assert_ptr_not_equal(mix_tensor_data(mix_list_get(mix_batches_get(batches, 2), 0)), memory);
  mix_batches_get(batches, 0);
  int64_t rows[N];
  epoch(batches, rows);
  assert_true(*(const float *)mix_tensor_data(kept) == (float)rows[32]);
  mix_release(kept);
}

static void ordered_rows_are_read_in_place(void **state) {
  (void)state;
  mix_batches *batches = mix_batches_new(3, arrays, 0, -1, 32, "evaluate");
  const char *memory = mix_tensor_data(arrays[0]);
  for (int64_t i = 0; i < 4; i++)
    assert_ptr_equal(mix_tensor_data(mix_list_get(mix_batches_get(batches, i), 0)), memory + i * 32 * 8);
  assert_true(mix_batches_begin(batches, MIX_ORDER_ROWS, 1, 0));
  assert_ptr_not_equal(mix_tensor_data(mix_list_get(mix_batches_get(batches, 1), 0)), memory + 32 * 8);
}

/* Kernels expect values aligned to 64 bytes; 9 rows of x are 72. */
static void rows_that_begin_elsewhere_are_copied(void **state) {
  (void)state;
  mix_batches *batches = mix_batches_new(3, arrays, 0, -1, 9, "evaluate");
  int64_t rows[N];
  assert_int_equal(epoch(batches, rows), N);
  for (int64_t i = 0; i < N; i++) assert_int_equal(rows[i], i);
  const char *memory = mix_tensor_data(arrays[0]),
             *second = mix_tensor_data(mix_list_get(mix_batches_get(batches, 1), 0));
  assert_true(second < memory || second >= memory + sizeof x);
  assert_int_equal((uintptr_t)second % 64, 0);
}

static void batches_outlive_their_arrays(void **state) {
  (void)state;
  mix_tensor *kept = NULL;
  MIX_SCOPE {
    mix_tensor *array = mix_tensor_from(x, MIX_FLOAT32, MIX_SHAPE(N, 2));
    kept = mix_retain(mix_list_get(mix_batches_get(mix_batches_new(1, &array, 0, -1, 32, "evaluate"), 1), 0));
  }
  for (int i = 0; i < 32; i++) assert_true(((const float *)mix_tensor_data(kept))[2 * i] == (float)(32 + i));
  mix_release(kept);
}

/* ---- the thread that gathers ---- */

enum { WIDE = 1 << 12, MANY = 160 }; /* batches of 16 rows take 256 KiB */

/* Row i is i everywhere. The last plan takes one thread. */
static mix_tensor *wide_rows(void) {
  mix_set_threads(1);
  mix_tensor *sum = mix_add(arrays[0], arrays[0]);
  assert_int_equal(mix_evaluate(1, &sum), MIX_OK);
  float *values = mix_alloc(sizeof *values * WIDE * MANY);
  for (int i = 0; i < WIDE * MANY; i++) values[i] = (float)(i / WIDE);
  mix_tensor *rows = mix_tensor_from(values, MIX_FLOAT32, MIX_SHAPE(MANY, WIDE));
  mix_free(values);
  return rows;
}

static void assert_wide_batch(mix_batches *batches, mix_list *batch, int64_t index) {
  assert_non_null(batch);
  const float *values = mix_tensor_data(mix_list_get(batch, 0));
  for (int64_t r = 0; r < 16; r++) {
    const float row = (float)mix_batches_row(batches, index, r);
    assert_true(values[r * WIDE] == row && values[r * WIDE + WIDE - 1] == row);
  }
}

/* Batches are those of the rows' order, also out of their own order and
 * in another epoch; what is retained stays as it was; the thread ends with the pass, on demand and with the
 * batches. */
static void a_free_core_gathers_ahead(void **state) {
  (void)state;
  if (mix_cpu_cores() < 2) SKIP("one core");
  assert_int_equal(input_threads(), 0);
  MIX_SCOPE {
    mix_tensor *rows = wide_rows();
    mix_batches *batches = mix_batches_new(1, &rows, 0, -1, 16, "fit");
    assert_true(mix_batches_begin(batches, MIX_ORDER_ROWS, 1, 0));
    for (int i = 0; i < 5; i++) assert_wide_batch(batches, mix_batches_get(batches, i), i);
    assert_true(await_input_threads(1));
    mix_list *kept = mix_retain(mix_batches_get(batches, 5));
    assert_wide_batch(batches, mix_batches_get(batches, 6), 6);
    assert_wide_batch(batches, mix_batches_get(batches, 2), 2);
    for (int i = 3; i < 10; i++) assert_wide_batch(batches, mix_batches_get(batches, i), i);
    assert_wide_batch(batches, kept, 5);
    mix_release(kept);
    mix_batches_stop(batches);
    assert_true(await_input_threads(0));
    assert_true(mix_batches_begin(batches, MIX_ORDER_ROWS, 1, 1));
    for (int i = 0; i < 4; i++) assert_wide_batch(batches, mix_batches_get(batches, i), i);
    assert_true(await_input_threads(1));
    assert_true(mix_batches_begin(batches, MIX_ORDER_KEPT, 1, 2));
    assert_true(await_input_threads(0));
    assert_wide_batch(batches, mix_batches_get(batches, 9), 9);
    assert_true(mix_batches_begin(batches, MIX_ORDER_BATCHES, 1, 3));
    assert_wide_batch(batches, mix_batches_get(batches, 0), 0);
    assert_true(await_input_threads(1)); /* and is released in the middle */
  }
  assert_true(await_input_threads(0));
}

/* A child by fork goes on without the thread, which stayed in the parent. */
static void a_child_gathers_by_itself(void **state) {
  (void)state;
  mix_tensor *rows = wide_rows();
  mix_batches *batches = mix_batches_new(1, &rows, 0, -1, 16, "fit");
  assert_true(mix_batches_begin(batches, MIX_ORDER_ROWS, 1, 0));
  for (int i = 0; i < 4; i++) assert_wide_batch(batches, mix_batches_get(batches, i), i);
  const pid_t child = fork();
  if (!child) {
    bool good = true;
    for (int64_t i = 4; i < 10 && good; i++) {
      mix_list *batch = mix_batches_get(batches, i);
      good = batch &&
             *(const float *)mix_tensor_data(mix_list_get(batch, 0)) == (float)mix_batches_row(batches, i, 0);
    }
    _exit(!good);
  }
  int result;
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_int_equal(result, 0);
  for (int i = 4; i < 10; i++) assert_wide_batch(batches, mix_batches_get(batches, i), i);
}

/* A variable's value is copied: the batch keeps it when the variable is assigned. */
static void batches_keep_their_values(void **state) {
  (void)state;
  mix_variable *variable = mix_variable_new(arrays[0], .name = "data");
  mix_tensor *value = mix_variable_true_value(variable);
  for (int shared = 0; shared < 2; shared++) { /* the second time `value` is the old value */
    mix_list *batch = mix_batches_get(mix_batches_new(1, &value, 0, -1, 32, "evaluate"), 1);
    assert_non_null(batch);
    mix_variable_assign(variable, mix_zeros_like(arrays[0]));
    assert_true(((const float *)mix_tensor_data(mix_variable_true_value(variable)))[64] == 0);
    for (int i = 0; i < 32; i++)
      assert_true(((const float *)mix_tensor_data(mix_list_get(batch, 0)))[2 * i] == (float)(32 + i));
  }
}

static int releases;
static void count_release(void *data) { (void)data, releases++; }

/* The caller's memory is read in place if it is aligned, and given back with the last batch. */
static void batches_of_wrapped_memory(void **state) {
  (void)state;
  static _Alignas(64) char memory[sizeof x + 64];
  for (size_t offset = 0; offset < 64; offset += 16) {
    float *own = memcpy(memory + offset, x, sizeof x);
    mix_tensor *kept = NULL;
    releases = 0;
    MIX_SCOPE {
      mix_tensor *array = mix_tensor_wrap(own, MIX_FLOAT32, MIX_SHAPE(N, 2), count_release);
      kept =
          mix_retain(mix_list_get(mix_batches_get(mix_batches_new(1, &array, 0, -1, 32, "evaluate"), 1), 0));
    }
    const float *batch = mix_tensor_data(kept);
    assert_int_equal(batch == own + 64, offset == 0);
    assert_int_equal(releases, offset != 0);
    for (int i = 0; i < 32; i++) assert_true(batch[2 * i] == (float)(32 + i));
    mix_release(kept);
    assert_int_equal(releases, 1);
  }
}

/* 128 rows of 784, in any order, by one thread and by several. */
static void threads_copy_the_same_rows(void **state) {
  (void)state;
  enum { ROWS = 300, WIDTH = 784, BATCH = 128 };
  float *values = mix_alloc(sizeof(float) * ROWS * WIDTH), *first = mix_alloc(sizeof(float) * BATCH * WIDTH);
  assert_non_null(values);
  assert_non_null(first);
  for (int i = 0; i < ROWS * WIDTH; i++) values[i] = (float)i;
  mix_tensor *array = mix_tensor_from(values, MIX_FLOAT32, MIX_SHAPE(ROWS, WIDTH));
  mix_batches *batches = mix_batches_new(1, &array, 0, -1, BATCH, "fit");
  assert_true(mix_batches_begin(batches, MIX_ORDER_ROWS, 3, 0));
  for (int threads = 1; threads <= 3; threads++) {
    mix_set_threads(threads);
    mix_evaluate(1, (mix_tensor *[]){mix_negative(array)});
    assert_int_equal(mix_threads_awake(), threads);
    const float *batch = mix_tensor_data(mix_list_get(mix_batches_get(batches, 1), 0));
    for (int i = 0; i < BATCH; i++) {
      assert_int_equal((int)batch[i * WIDTH] % WIDTH, 0);
      for (int j = 1; j < WIDTH; j++) assert_true(batch[i * WIDTH + j] == batch[i * WIDTH] + (float)j);
    }
    if (threads > 1) assert_memory_equal(batch, first, sizeof(float) * BATCH * WIDTH);
    memcpy(first, batch, sizeof(float) * BATCH * WIDTH);
  }
  mix_free(values);
  mix_free(first);
}

static void wrong_arguments_are_errors(void **state) {
  (void)state;
  mix_tensor *short_y = mix_tensor_from(y, MIX_INT64, MIX_SHAPE(99));
  assert_null(mix_batches_new(2, (mix_tensor *[]){arrays[0], short_y}, 0, -1, 32, "fit"));
  assert_failed(MIX_VALUE_ERROR, "fit: tensor 1 has shape (99)");
  assert_null(mix_batches_new(3, arrays, 0, -1, 0, "fit"));
  assert_failed(MIX_VALUE_ERROR, "batch_size is 0");
  assert_null(mix_batches_new(3, arrays, 0, 0, 32, "fit"));
  assert_failed(MIX_VALUE_ERROR, "rows 0 to 0");
  assert_null(mix_batches_new(3, arrays, 90, 11, 32, "fit"));
  assert_failed(MIX_VALUE_ERROR, "rows 90 to 101");
  assert_null(mix_batches_new(3, arrays, N, -1, 32, "fit"));
  assert_failed(MIX_VALUE_ERROR, "rows 100 to 100");
  assert_null(mix_batches_new(1, arrays + 2, 0, -1, 32, "fit"));
  assert_failed(MIX_VALUE_ERROR, "no tensors");
  mix_batches *batches = mix_batches_new(3, arrays, 0, -1, 32, "fit");
  assert_null(mix_batches_get(batches, 4));
  assert_failed(MIX_VALUE_ERROR, "batch 4");
}

static void allocation_failures_are_errors(void **state) {
  (void)state;
  for (int64_t count = 0;; count++) {
    bool good = false;
    mix_inject_allocation_failure(count);
    MIX_SCOPE {
      mix_batches *batches = mix_batches_new(3, arrays, 0, -1, 32, "fit");
      good = batches && mix_batches_begin(batches, MIX_ORDER_ROWS, 1, 0) && mix_batches_get(batches, 3);
    }
    mix_inject_allocation_failure(-1);
    if (good) break;
    assert_int_equal(mix_error(), MIX_MEMORY_ERROR);
    mix_error_clear();
    assert_true(count < 200);
  }
}

int main(void) {
#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)
  const struct CMUnitTest tests[] = {
      TEST(Y03_a_hundred_rows_make_four_batches_of_32),
      TEST(Y04_sizes_of_the_guide),
      TEST(a_part_of_the_rows),
      TEST(orders_are_functions_of_seed_and_epoch),
      TEST(whole_batches_keep_their_rows),
      TEST(memory_is_reused_unless_retained),
      TEST(ordered_rows_are_read_in_place),
      TEST(rows_that_begin_elsewhere_are_copied),
      TEST(batches_outlive_their_arrays),
      TEST(batches_keep_their_values),
      TEST(batches_of_wrapped_memory),
      TEST(threads_copy_the_same_rows),
      TEST(a_free_core_gathers_ahead),
      TEST(a_child_gathers_by_itself),
      TEST(wrong_arguments_are_errors),
      TEST(allocation_failures_are_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
