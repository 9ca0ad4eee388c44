/* What copies of arguments to a device take: memory that is pinned where it is filled again, and half of the
 * bytes where a graph rounds an argument to 16 bits. */
#include "backend/xla/late_plugin.h"
#include "base/alloc.h"
#include "data/pipeline/device_copy.h"
#include "graph/unfilled_tensor.h"

#include <mixtape/mixtape.h>
#include <sys/mman.h>

enum { NUMBERS = 1 << 15 };

/* All patterns of the upper 15 bits, with others below; NaN is one of them. */
static mix_tensor *all_numbers(uint32_t low) {
  static uint32_t bits[NUMBERS];
  for (uint32_t i = 0; i < NUMBERS; i++) {
    bits[i] = i << 17 | (i * 2654435761u + low) >> 15;
    if ((bits[i] & 0x7fffffff) > 0x7f800000) bits[i] = 0x7fc00000;
  }
  return mix_tensor_from(bits, MIX_FLOAT32, MIX_SHAPE(NUMBERS));
}

/* ---- pinned memory ---- */

static int messages_about_pins;
static void count_messages(void *context, mix_log_level level, const char *message) {
  (void)context, (void)level;
  messages_about_pins += strstr(message, "pinning") != NULL;
}

/* Batches in memory that is filled again, of 2 ^ 15 float32 each. */
static void step_over_staged(const char *pins, int steps) {
  enum { COUNT = 1 << 15 };
  mix_memory *place = NULL;
  setenv("MIXTAPE_LATE_PINS", pins, 1);
  mix_set_log_callback(count_messages, NULL);
  CHECK(mix_set_device(late("works")) == MIX_OK);
  mix_function *function = new_function();
  for (int i = 0; i < steps; i++)
    MIX_SCOPE {
      CHECK(mix_memory_reuse(&place, COUNT * sizeof(float)));
      memset(mix_memory_map(place, MIX_MAP_WRITE), i, COUNT * sizeof(float));
      mix_memory_unmap(place);
      mix_tensor *batch = mix_tensor_of_memory(place, MIX_FLOAT32, MIX_SHAPE(COUNT));
      CHECK(mix_function_call(function, mix_list_of(batch)));
    }
  CHECK(mix_synchronize() == MIX_OK && calls("staying") == steps);
  mix_memory_end_reuse(&place);
}
static void pin_both(void) {
  step_over_staged("yes", 20);
  CHECK(calls("pinned") == 20 && calls("pins") == 2 && calls("unpins") == 2 && !messages_about_pins);
}
static void fail_to_pin(void) {
  step_over_staged("fails", 20);
  CHECK(calls("pins") == 0 && calls("unpins") == 0 && messages_about_pins == 1);
}
static void go_without(void) {
  step_over_staged("none", 20);
  CHECK(calls("pins") == 0 && !messages_about_pins);
}
/* Memory that is not filled again is not, nor are small copies. */
static void pin_nothing(void) {
  mix_memory *place = NULL;
  setenv("MIXTAPE_LATE_PINS", "yes", 1);
  CHECK(mix_set_device(late("works")) == MIX_OK);
  mix_function *function = new_function();
  CHECK(mix_function_call(function, mix_list_of(all_numbers(1))));
  CHECK(mix_memory_reuse(&place, 64));
  mix_tensor *small = mix_tensor_of_memory(place, MIX_FLOAT32, MIX_SHAPE(16));
  CHECK(mix_function_call(function, mix_list_of(small)));
  CHECK(calls("staying") == 2 && calls("pins") == 0);
  CHECK(mix_synchronize() == MIX_OK);
  mix_memory_end_reuse(&place);
}
static void memory_of_batches_is_pinned(void **state) {
  (void)state;
  in_child(pin_both);
  in_child(fail_to_pin);
  in_child(go_without);
  in_child(pin_nothing);
}

/* ---- copies of 16 bits ---- */

static mix_list *rounded_to_both(void *context, mix_list *arguments) {
  (void)context;
  mix_tensor *first = mix_list_get(arguments, 0), *second = mix_list_get(arguments, 1);
  mix_list *results = mix_list_of(mix_cast(first, MIX_FLOAT16), mix_cast(second, MIX_BFLOAT16));
  if (mix_list_count(arguments) > 2) mix_list_append(results, mix_negative(first)); /* another use of it */
  return results;
}

static void check_same_bits(mix_list *a, mix_list *b) {
  static double x[NUMBERS], y[NUMBERS];
  for (int r = 0; r < 2; r++) {
    CHECK(mix_tensor_read(mix_list_get(a, r), MIX_FLOAT64, x, NUMBERS) == MIX_OK);
    CHECK(mix_tensor_read(mix_list_get(b, r), MIX_FLOAT64, y, NUMBERS) == MIX_OK);
    for (int i = 0; i < NUMBERS; i++) CHECK(!memcmp(&x[i], &y[i], sizeof *x) || (isnan(x[i]) && isnan(y[i])));
  }
}

static void round_on_the_host(void) {
  enum { WHOLE = 4 * NUMBERS >> 10, HALF = WHOLE / 2 };
  CHECK(mix_set_device(late(NULL)) == MIX_OK);
  mix_function *function = mix_function_new(rounded_to_both, NULL);
  mix_list *host = mix_list_of(all_numbers(1), all_numbers(99)), *device = mix_device_copy(host);
  int bytes = calls("kibibytes");
  mix_list *of_host = mix_function_call(function, host), *of_device = mix_function_call(function, device);
  CHECK(of_host && of_device);
  CHECK(calls("kibibytes") == bytes + 2 * HALF);
  check_same_bits(of_host, of_device);
  bytes = calls("kibibytes");
  mix_list_append(host, scalar(0));
  CHECK((of_host = mix_function_call(function, host)));
  check_same_bits(of_host, of_device);
  CHECK(calls("kibibytes") == bytes + WHOLE + HALF);
}
static void arguments_that_are_cast_are_halved(void **state) {
  (void)state;
  XLA_OR_SKIP();
  in_child(round_on_the_host);
}

/* ---- fit under a 16-bit policy ---- */

enum { ROWS = 64, INPUTS = 2048, UNITS = 4, BATCH = 16, EPOCHS = 2, WEIGHTS = INPUTS * UNITS };

static float (*shared)[WEIGHTS]; /* with the children */

/* With batches that take 64 KiB in 16 bits; where they are copied to the device, and where they are gathered
 * there from the float32 array. */
static mix_model *train(const char *free_bytes, bool validate) {
  static float x[ROWS * INPUTS];
  for (int i = 0; i < ROWS * INPUTS; i++) x[i] = (float)((i * 37 + i / 5) % 1001) / 701;
  setenv("MIXTAPE_LATE_MEMORY", free_bytes, 1);
  CHECK(mix_set_device(late(NULL)) == MIX_OK);
  CHECK(mix_set_global_policy("mixed_float16") == MIX_OK);
  mix_set_seed(5);
  mix_model *model = mix_sequential(mix_list_of(mix_dense(UNITS, .activation = "tanh")));
  mix_model_compile(model, .optimizer = mix_adam(.learning_rate = 0.01), .loss = "mse");
  mix_tensor *rows = mix_tensor_from(x, MIX_FLOAT32, MIX_SHAPE(ROWS, INPUTS)),
             *labels = mix_reshape(mix_slice(rows, MIX_SHAPE(0, 0), MIX_SHAPE(ROWS, UNITS)),
                                   MIX_SHAPE(ROWS, UNITS));
  CHECK(mix_model_fit(model, rows, labels, .batch_size = BATCH, .epochs = EPOCHS, .seed = 3, .quiet = true,
                      .validation_x = validate ? rows : NULL, .validation_y = validate ? labels : NULL));
  return model;
}
static void keep(mix_model *model, float *weights) {
  mix_tensor *kernel = mix_variable_value(mix_list_get(mix_model_weights(model), 0));
  CHECK(mix_tensor_read(kernel, MIX_FLOAT32, weights, WEIGHTS) == MIX_OK);
}
static void train_from_the_host(void) {
  const int whole = 4 * ROWS * INPUTS * EPOCHS >> 10, labels = 4 * ROWS * UNITS * EPOCHS >> 10;
  keep(train("0", false), shared[0]);
  CHECK(calls("kibibytes") >= whole / 2 && calls("kibibytes") <= whole / 2 + labels);
}
static void train_on_the_device(void) { keep(train("100000000", true), shared[1]); }

static void narrow_copies_give_the_same_weights(void **state) {
  (void)state;
  XLA_OR_SKIP();
  shared = mmap(NULL, 2 * sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(shared, MAP_FAILED);
  in_child(train_from_the_host);
  in_child(train_on_the_device);
  assert_true(shared[0][0] != 0);
  assert_memory_equal(shared[0], shared[1], sizeof *shared);
  munmap(shared, 2 * sizeof *shared);
}

/* Of arrays that stay no more than the numbers of rows are copied, in each epoch and validation of it. */
static void validate_on_the_device(void) {
  enum { NUMBERS_OF_ROWS = 2 * EPOCHS * ROWS * (int)sizeof(int64_t) >> 10 };
  train("100000000", true);
  CHECK(calls("kibibytes") == NUMBERS_OF_ROWS && calls("staying") == 2 * EPOCHS * ROWS / BATCH);
}
static void validation_data_are_copied_once(void **state) {
  (void)state;
  XLA_OR_SKIP();
  in_child(validate_on_the_device);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(memory_of_batches_is_pinned),
      cmocka_unit_test(arguments_that_are_cast_are_halved),
      cmocka_unit_test(narrow_copies_give_the_same_weights),
      cmocka_unit_test(validation_data_are_copied_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
