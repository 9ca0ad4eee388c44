/* Data that stay in the memory of a device: the same batches and weights as from the host, and what decides
 * whether arrays stay. */
#include "model/support.h"

#include "support/remote/remote.h"
#include "tensor/memory_inside.h"
#include "train/resident.h"
#include <mixtape/dataset.h>
#include <mixtape/device.h>

enum { ROWS = 22, COLUMNS = 3, BATCH = 4 };

static size_t free_bytes;
static int asked;
static size_t tell_free_bytes(void) {
  asked++;
  return free_bytes;
}

static int begin(void **state) {
  static bool known;
  if (!known && !mix_backend_named("remote")) mix_remote_add();
  known = true;
  if (setup(state)) return 1;
  mix_backend_remote.free_bytes = tell_free_bytes;
  return mix_set_device("remote") != MIX_OK;
}
static int finish(void **state) {
  mix_synchronize();
  mix_set_device("cpu");
  return teardown(state);
}
#define REMOTE(function) cmocka_unit_test_setup_teardown(function, begin, finish)

static mix_tensor *bytes_of_rows(void) {
  double values[ROWS * COLUMNS];
  for (int i = 0; i < ROWS * COLUMNS; i++) values[i] = (i * 37 + 11) % 256;
  return mix_tensor_from_doubles(values, MIX_UINT8, MIX_SHAPE(ROWS, COLUMNS));
}
static mix_tensor *labels_of_rows(void) {
  double values[ROWS];
  for (int i = 0; i < ROWS; i++) values[i] = i / 3.0 - 1;
  return mix_tensor_from_doubles(values, MIX_FLOAT32, MIX_SHAPE(ROWS, 1));
}

static void assert_same(mix_tensor *a, mix_tensor *b) {
  double x[ROWS * COLUMNS], y[ROWS * COLUMNS];
  const int64_t count = mix_shape_size(mix_tensor_shape(a));
  assert_int_equal(mix_tensor_dtype(a), mix_tensor_dtype(b));
  assert_true(mix_shape_equal(mix_tensor_shape(a), mix_tensor_shape(b)));
  assert_int_equal(mix_tensor_read(a, MIX_FLOAT64, x, count), MIX_OK);
  assert_int_equal(mix_tensor_read(b, MIX_FLOAT64, y, count), MIX_OK);
  assert_memory_equal(x, y, sizeof *x * (size_t)count);
}

/* ---- arrays ---- */

static void batches_are_those_of_the_host(void **state) {
  (void)state;
  mix_tensor *arrays[] = {bytes_of_rows(), labels_of_rows(), NULL};
  arrays[2] = arrays[0]; /* as a label that is not given */
  free_bytes = 1 << 20;
  mix_resident *resident = mix_resident_new(mix_list_of(arrays[0], arrays[1], arrays[2]));
  assert_non_null(resident);
  for (mix_batch_order order = MIX_ORDER_KEPT; order <= MIX_ORDER_BATCHES; order++) {
    mix_batches *batches = mix_batches_new(3, arrays, 2, ROWS - 3, BATCH, "fit");
    assert_true(mix_batches_begin(batches, order, 7, 1));
    for (int64_t i = 0; i < mix_batches_count(batches); i++) {
      mix_list *host = mix_batches_get(batches, i), *device = mix_resident_batch(resident, batches, i);
      assert_int_equal(mix_list_count(device), 3);
      for (int k = 0; k < 3; k++) {
        assert_same(mix_list_get(host, k), mix_list_get(device, k));
        assert_ptr_equal(mix_tensor_value(mix_list_get(device, k))->memory->device, &mix_remote_memory);
      }
    }
  }
  mix_resident_free(resident);
}

/* 22 rows of 3 bytes and of a float32. */
static void arrays_stay_that_take_a_quarter(void **state) {
  (void)state;
  const size_t bytes = ROWS * COLUMNS + ROWS * 4;
  mix_tensor *x = bytes_of_rows(), *y = labels_of_rows();
  free_bytes = 4 * bytes;
  mix_resident *resident = mix_resident_new(mix_list_of(x, y, x));
  assert_non_null(resident);
  mix_resident_free(resident);
  free_bytes--;
  assert_null(mix_resident_new(mix_list_of(x, y, x)));
  free_bytes = 0; /* not known */
  assert_null(mix_resident_new(mix_list_of(x, y)));
  mix_set_device("cpu");
  assert_null(mix_resident_new(mix_list_of(x, y)));
  assert_int_equal(mix_error(), MIX_OK);
}

static mix_model *new_model(void) {
  mix_set_seed(3);
  mix_model *model =
      mix_sequential(mix_list_of(mix_rescaling(1 / 255.0), mix_dense(2, .activation = "tanh"), mix_dense(1)));
  mix_model_compile(model, .optimizer = mix_adam(.learning_rate = 0.01), .loss = "mse", .metrics = {"mae"});
  return model;
}

static void assert_same_weights(mix_model *a, mix_model *b) {
  mix_list *x = mix_model_weights(a), *y = mix_model_weights(b);
  assert_int_equal(mix_list_count(x), 4);
  for (int w = 0; w < 4; w++)
    assert_same(mix_variable_value(mix_list_get(x, w)), mix_variable_value(mix_list_get(y, w)));
}

static mix_model *fit_arrays(size_t free, int64_t epochs) {
  mix_model *model = new_model();
  free_bytes = free;
  assert_non_null(mix_model_fit(model, bytes_of_rows(), labels_of_rows(), .batch_size = BATCH, .seed = 5,
                                .epochs = epochs, .validation_split = 0.2, .quiet = true));
  return model;
}
static void fit_gives_the_same_weights(void **state) {
  (void)state;
  assert_same_weights(fit_arrays(0, 3), fit_arrays(1 << 20, 3));
  assert_int_equal(mix_error(), MIX_OK);
}
/* One epoch would copy no less. More ask for the training and for the validation data. */
static void one_epoch_does_not_ask(void **state) {
  (void)state;
  asked = 0;
  fit_arrays(1 << 20, 1);
  assert_int_equal(asked, 0);
  fit_arrays(1 << 20, 2);
  assert_int_equal(asked, 2);
  fit_arrays(0, 4);
  assert_int_equal(asked, 4);
}

/* The training data stay, and leave no room for those of the validation. */
static size_t leave_no_room(void) { return asked++ ? 0 : 1 << 20; }
static void validation_gives_the_same_logs(void **state) {
  (void)state;
  size_t (*const rooms[])(void) = {NULL, tell_free_bytes, leave_no_room};
  mix_history *histories[3];
  free_bytes = 1 << 20;
  for (int i = 0; i < 3; i++) {
    asked = 0;
    mix_backend_remote.free_bytes = rooms[i];
    mix_model *model = new_model();
    mix_list *weights = mix_list_of(labels_of_rows());
    histories[i] = mix_model_fit(model, bytes_of_rows(), labels_of_rows(), .batch_size = BATCH, .seed = 5,
                                 .epochs = 5, .validation_x = bytes_of_rows(),
                                 .validation_y = labels_of_rows(), .validation_sample_weight = weights,
                                 .validation_freq = 2, .validation_batch_size = 5, .quiet = true);
    assert_non_null(histories[i]);
  }
  for (int64_t epoch = 0; epoch < 5; epoch++)
    for (int i = 1; i < 3; i++) {
      const mix_logs *a = mix_history_epoch(histories[0], epoch), *b = mix_history_epoch(histories[i], epoch);
      assert_int_equal(mix_logs_count(a), epoch % 2 ? 4 : 2);
      assert_int_equal(mix_logs_count(b), mix_logs_count(a));
      for (int k = 0; k < mix_logs_count(a); k++) assert_true(mix_logs_value(a, k) == mix_logs_value(b, k));
    }
}

/* ---- data sets ---- */

static mix_dataset *cached(bool device) {
  mix_dataset *rows = mix_dataset_from_tensors(bytes_of_rows(), labels_of_rows());
  return mix_dataset_cache(mix_dataset_batch(mix_dataset_shuffle(rows, 5, .seed = 2), BATCH),
                           .device = device);
}

static void cached_batches_stay(void **state) {
  (void)state;
  mix_dataset *host = cached(false), *device = cached(true);
  for (int pass = 0; pass < 2; pass++) {
    mix_iterator *a = mix_dataset_iterate(host), *b = mix_dataset_iterate(device);
    int count = 0;
    for (mix_list *x, *y; (x = mix_iterator_next(a)) && (y = mix_iterator_next(b)); count++)
      for (int k = 0; k < 2; k++) {
        assert_ptr_equal(mix_tensor_value(mix_list_get(x, k))->memory->device, &mix_host_memory);
        assert_ptr_equal(mix_tensor_value(mix_list_get(y, k))->memory->device, &mix_remote_memory);
        assert_same(mix_list_get(x, k), mix_list_get(y, k));
      }
    assert_int_equal(count, (ROWS + BATCH - 1) / BATCH);
    assert_null(mix_iterator_next(b));
  }
  assert_int_equal(mix_error(), MIX_OK);
}

static void fit_from_cached_batches(void **state) {
  (void)state;
  mix_model *models[] = {new_model(), new_model()};
  for (int i = 0; i < 2; i++)
    assert_non_null(mix_model_fit(models[i], cached(i == 1), NULL, .epochs = 3, .quiet = true));
  assert_same_weights(models[0], models[1]);
}

/* The host's memory is the device's. */
static void the_cpu_copies_nothing(void **state) {
  (void)state;
  mix_set_device("cpu");
  mix_list *element = mix_iterator_next(mix_dataset_iterate(cached(true)));
  assert_ptr_equal(mix_tensor_value(mix_list_get(element, 0))->memory->device, &mix_host_memory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      REMOTE(batches_are_those_of_the_host),  REMOTE(arrays_stay_that_take_a_quarter),
      REMOTE(fit_gives_the_same_weights),     REMOTE(one_epoch_does_not_ask),
      REMOTE(validation_gives_the_same_logs), REMOTE(cached_batches_stay),
      REMOTE(fit_from_cached_batches),        REMOTE(the_cpu_copies_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
