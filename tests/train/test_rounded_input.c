/* fit's arrays in 16 bits, where a step does nothing with an argument but round it: the bits are those of
 * steps that round it themselves, and what is not rounded there is given as it is. */
#include "compile/function.h"
#include "data/pipeline/array_batches.h"
#include "model/support.h"
#include "train/data_adapter.h"
#include <mixtape/callback.h>

/* Widths that are no multiple of a vector; the last batch of an epoch is smaller. A batch takes 79 KB. */
enum { WIDTH = 77, BATCH = 256, BATCHES = 5, ROWS = BATCH * BATCHES - 9 };

static mix_model *small_model(const char *policy) {
  assert_int_equal(mix_set_global_policy(policy), MIX_OK);
  mix_set_seed(5);
  mix_model *model = mix_sequential(mix_list_of(mix_dense(8, "relu"), mix_dense(1, .dtype = "float32")));
  assert_int_equal(mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(.learning_rate = 1e-2)),
                   MIX_OK);
  return model;
}

static mix_tensor *inputs(void) {
  mix_tensor *x = mix_random_normal(mix_generator_new(1), MIX_SHAPE(ROWS, WIDTH), F32);
  assert_int_equal(mix_evaluate(1, &x), MIX_OK);
  return x;
}
static mix_tensor *targets(void) { return mix_fill(MIX_SHAPE(ROWS, 1), 1, F32); }

static mix_tensor *rows_of(mix_tensor *x, const mix_batches *batches, int64_t index) {
  int64_t rows[BATCH], count = mix_batches_size(batches, index);
  for (int64_t i = 0; i < count; i++) rows[i] = mix_batches_row(batches, index, i);
  return mix_gather(x, mix_tensor_from(rows, MIX_INT64, MIX_SHAPE(count)), 0);
}

static void assert_same_weights(mix_model *a, mix_model *b) {
  size_t size, other;
  unsigned char *bits = bits_of(mix_model_weights(a), &size),
                *expected = bits_of(mix_model_weights(b), &other);
  assert_int_equal(size, other);
  assert_memory_equal(bits, expected, size);
  free(bits);
  free(expected);
}

static void weights_are_those_of_steps_that_round(void **state) {
  (void)state;
  static const char *const policies[] = {"mixed_bfloat16", "mixed_float16", "float32"};
  mix_tensor *x = inputs(), *y = targets();
  for (int p = 0; p < 3; p++)
    for (int threads = 1; threads <= 2; threads++) {
      mix_set_threads(threads);
      mix_model *fitted = small_model(policies[p]), *stepped = small_model(policies[p]);
      mix_model_fit(fitted, x, y, .batch_size = BATCH, .epochs = 2, .seed = 3, .quiet = true);
      assert_no_error();
      mix_batches *batches = mix_batches_new(1, &x, 0, -1, BATCH, "fit");
      for (uint64_t epoch = 0; epoch < 2; epoch++) {
        assert_true(mix_batches_begin(batches, MIX_ORDER_ROWS, 3, epoch));
        for (int64_t i = 0; i < BATCHES; i++)
          MIX_SCOPE {
            assert_non_null(
                mix_model_train_on_batch(stepped, rows_of(x, batches, i), rows_of(y, batches, i)));
          }
      }
      assert_no_error();
      assert_same_weights(fitted, stepped);
    }
}

/* ---- which arguments ---- */

static mix_list *rounded_and_read(void *context, mix_list *arguments) {
  (void)context;
  mix_tensor *a = mix_list_get(arguments, 0), *b = mix_list_get(arguments, 1),
             *c = mix_list_get(arguments, 2), *d = mix_list_get(arguments, 3);
  return mix_list_of(mix_add(mix_cast(a, MIX_BFLOAT16), mix_cast(a, MIX_BFLOAT16)), /* rounded alone */
                     mix_add(mix_cast(b, MIX_FLOAT16), mix_cast(mix_exp(b), MIX_FLOAT16)),
                     mix_cast(mix_cast(c, MIX_FLOAT16), F32), mix_cast(c, MIX_BFLOAT16), d,
                     mix_cast(d, MIX_FLOAT16));
}

static void only_arguments_that_are_rounded_alone(void **state) {
  (void)state;
  mix_function *function = mix_function_new(rounded_and_read, NULL);
  assert_int_equal(mix_function_rounds(function, 0), MIX_DTYPE_NONE); /* not known before the first call */
  mix_list *arguments = mix_list_new(0, NULL);
  for (int i = 0; i < 4; i++) mix_list_append(arguments, mix_fill(MIX_SHAPE(3), 0.1 + i, F32));
  mix_list *results = mix_function_call(function, arguments);
  assert_no_error();
  static const mix_dtype expected[] = {MIX_BFLOAT16, MIX_DTYPE_NONE, MIX_DTYPE_NONE, MIX_DTYPE_NONE};
  for (int i = 0; i < 4; i++) assert_int_equal(mix_function_rounds(function, i), expected[i]);

  mix_list *rounded = mix_list_new(0, NULL);
  mix_list_append(rounded, mix_cast(mix_list_get(arguments, 0), MIX_BFLOAT16));
  for (int i = 1; i < 4; i++) mix_list_append(rounded, mix_list_get(arguments, i));
  assert_int_equal(mix_evaluate(1, &(mix_tensor *){mix_list_get(rounded, 0)}), MIX_OK);
  mix_list *same = mix_function_call_rounded(function, rounded);
  assert_non_null(same);
  for (int i = 0; i < mix_list_count(results); i++) {
    mix_tensor *a = mix_list_get(results, i), *b = mix_list_get(same, i);
    assert_int_equal(mix_tensor_dtype(a), mix_tensor_dtype(b));
    assert_memory_equal(mix_tensor_data(a), mix_tensor_data(b),
                        3 * (size_t)mix_dtype_size(mix_tensor_dtype(a)));
  }
  /* Without a capture of the shapes, or in another dtype, the call wants them as they were. */
  mix_list *others = mix_list_new(4, mix_list_items(rounded));
  mix_tensor *other = mix_cast(mix_list_get(arguments, 0), MIX_FLOAT16);
  assert_int_equal(mix_evaluate(1, &other), MIX_OK);
  others = mix_list_of(other, mix_list_get(others, 1), mix_list_get(others, 2), mix_list_get(others, 3));
  assert_null(mix_function_call_rounded(function, others));
  assert_no_error();
}

/* ---- what a fit gives its steps ---- */

static mix_list *batch_after_a_step(mix_model *model, mix_tensor *x, mix_tensor *y, int64_t batch_size,
                                    mix_batch_order order) {
  static mix_data_adapter adapter;
  mix_data_adapter_close(&adapter);
  assert_true(mix_data_adapter_open(&adapter, model,
                                    &(mix_data_adapter_data){.x = x, .y = y, .batch_size = batch_size},
                                    MIX_ADAPTER_TRAIN, "fit"));
  assert_true(mix_data_adapter_begin(&adapter, order, 3, 0));
  mix_list *batch = mix_data_adapter_next(&adapter);
  assert_int_equal(mix_tensor_dtype(mix_list_get(batch, 0)), F32);
  assert_non_null(mix_data_adapter_run(&adapter, mix_model_train_step(model), &batch));
  batch = mix_retain(mix_data_adapter_next(&adapter));
  mix_data_adapter_close(&adapter);
  return mix_scoped(batch);
}

static mix_dtype dtype_of(mix_list *batch, int index) { return mix_tensor_dtype(mix_list_get(batch, index)); }

static void batches_are_rounded_from_the_second_step_on(void **state) {
  (void)state;
  mix_tensor *x = inputs(), *y = targets();
  mix_list *batch = batch_after_a_step(small_model("mixed_bfloat16"), x, y, BATCH, MIX_ORDER_ROWS);
  assert_int_equal(dtype_of(batch, 0), MIX_BFLOAT16);
  assert_int_equal(dtype_of(batch, 1), F32); /* the loss reads labels in float32 */
  mix_model *other = small_model("mixed_float16");
  assert_int_equal(dtype_of(batch_after_a_step(other, x, y, BATCH, MIX_ORDER_ROWS), 0), MIX_FLOAT16);
  /* Rows in their order are read where they lie; small batches and float32 gain nothing. */
  assert_int_equal(dtype_of(batch_after_a_step(other, x, y, BATCH, MIX_ORDER_KEPT), 0), F32);
  assert_int_equal(dtype_of(batch_after_a_step(other, x, y, 16, MIX_ORDER_ROWS), 0), F32);
  mix_model *wide = small_model("float32");
  assert_int_equal(dtype_of(batch_after_a_step(wide, x, y, BATCH, MIX_ORDER_ROWS), 0), F32);
}

/* The step is captured anew when a callback freezes a layer. */
static mix_status freeze(void *context, mix_model *model, int64_t batch, mix_logs *logs) {
  (void)logs;
  if (batch == *(const int64_t *)context)
    mix_layer_set_trainable(mix_list_get(mix_model_layers(model), 0), false);
  return MIX_OK;
}

static void a_new_capture_gets_what_was_given(void **state) {
  (void)state;
  mix_tensor *x = inputs(), *y = targets();
  mix_model *fitted = small_model("mixed_bfloat16"), *stepped = small_model("mixed_bfloat16");
  int64_t at = 2;
  mix_model_fit(fitted, x, y, .batch_size = BATCH, .seed = 3, .quiet = true,
                .callbacks = mix_list_of(mix_callback_new(.on_train_batch_end = freeze, .context = &at)));
  assert_no_error();
  mix_batches *batches = mix_batches_new(1, &x, 0, -1, BATCH, "fit");
  assert_true(mix_batches_begin(batches, MIX_ORDER_ROWS, 3, 0));
  for (int64_t i = 0; i < BATCHES; i++) {
    assert_non_null(mix_model_train_on_batch(stepped, rows_of(x, batches, i), rows_of(y, batches, i)));
    assert_int_equal(freeze(&at, stepped, i, NULL), MIX_OK);
  }
  assert_no_error();
  assert_same_weights(fitted, stepped);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(weights_are_those_of_steps_that_round),
      TEST(only_arguments_that_are_rounded_alone),
      TEST(batches_are_rounded_from_the_second_step_on),
      TEST(a_new_capture_gets_what_was_given),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
