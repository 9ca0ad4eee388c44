/* Legacy files with the weights of CuDNNLSTM and CuDNNGRU, read into LSTM and GRU: the numbers are those of
 * _convert_rnn_weights of tf_keras 2.21 (hdf5_format.py). */
#include "formats/file.h"
#include "formats/hdf5_writer.h"
#include "formats/written_hdf5.h"
#include "model/support.h"
#include <unistd.h>

enum { INPUTS = 3, UNITS = 2 };

static char path[64];
static int file_setup(void **state) {
  strcpy(path, "/tmp/mixtape-test-XXXXXX.h5");
  int file = mkstemps(path, 3);
  if (file >= 0) close(file);
  return file < 0 ? -1 : setup(state);
}
static int file_teardown(void **state) {
  unlink(path);
  return teardown(state);
}
#define FILE_TEST(function) cmocka_unit_test_setup_teardown(function, file_setup, file_teardown)

static mix_tensor *counted(double first, mix_shape shape) {
  double numbers[64];
  for (int i = 0; i < 64; i++) numbers[i] = first + i;
  return mix_tensor_from_doubles(numbers, MIX_FLOAT32, shape);
}

/* A file of one layer with `sets` triples of weights: kernels from 0, recurrent kernels from 100, biases from
 * 200, the second set 1000 higher. */
static void write_file(int gates, mix_shape bias, int sets) {
  static const char *const layers[] = {"rnn"}, *const names[] = {"a/k:0", "a/r:0", "a/b:0",
                                                                 "b/k:0", "b/r:0", "b/b:0"};
  mix_hdf5_writer *file = mix_hdf5_writer_new("test");
  mix_hdf5_write_texts(file, "", "layer_names", 1, layers);
  mix_hdf5_write_group(file, "rnn");
  mix_hdf5_write_texts(file, "rnn", "weight_names", 3 * sets, names);
  for (int i = 0; i < sets; i++) {
    char name[32];
    const mix_shape shapes[] = {MIX_SHAPE(INPUTS, gates * UNITS), MIX_SHAPE(UNITS, gates * UNITS), bias};
    for (int k = 0; k < 3; k++) {
      snprintf(name, sizeof name, "rnn/%s", names[3 * i + k]);
      mix_hdf5_write_tensor(file, name, counted(1000 * i + 100 * k, shapes[k]));
    }
  }
  written_hdf5 written = {0};
  assert_true(take_hdf5(file, &written));
  assert_true(mix_file_replace(path, &(mix_bytes){written.data, written.size}, 1, "test"));
  free(written.data);
}

static mix_model *model_of(mix_layer *layer) {
  mix_model *model = mix_sequential(mix_list_of(layer));
  mix_model_build(model, MIX_SHAPE(MIX_UNKNOWN, MIX_UNKNOWN, INPUTS));
  return model;
}

static void check_weight(mix_model *model, int weight, int count, const int *expected, int more) {
  for (int i = 0; i < count; i++) assert_near(weight_at(model, weight, i), expected[i] + more, 0);
}

static const int lstm_kernel[] = {0, 9,  2, 11, 4, 13, 6,  15, 1,  16, 3,  18,
                                  5, 20, 7, 22, 8, 17, 10, 19, 12, 21, 14, 23},
                 lstm_recurrent[] = {100, 108, 102, 110, 104, 112, 106, 114,
                                     101, 109, 103, 111, 105, 113, 107, 115},
                 lstm_bias[] = {408, 410, 412, 414, 416, 418, 420, 422},
                 gru_kernel[] = {0, 7, 2, 9, 4, 11, 1, 12, 3, 14, 5, 16, 6, 13, 8, 15, 10, 17},
                 gru_recurrent[] = {100, 106, 102, 108, 104, 110, 101, 107, 103, 109, 105, 111},
                 gru_bias[] = {200, 201, 202, 203, 204, 205, 206, 207, 208, 209, 210, 211};

static void lstm_and_both_directions(void **state) {
  (void)state;
  for (int both = 0; both < 2; both++) {
    mix_layer *lstm = mix_lstm(.units = UNITS);
    mix_model *model = model_of(both ? mix_bidirectional(lstm) : lstm);
    write_file(4, MIX_SHAPE(16), both ? 2 : 1);
    assert_int_equal(mix_model_load_weights(model, path), MIX_OK);
    for (int i = 0; i <= both; i++) {
      check_weight(model, 3 * i, 24, lstm_kernel, 1000 * i);
      check_weight(model, 3 * i + 1, 16, lstm_recurrent, 1000 * i);
      check_weight(model, 3 * i + 2, 8, lstm_bias, 2000 * i);
    }
  }
}

static void gru_with_reset_after(void **state) {
  (void)state;
  mix_model *model = model_of(mix_gru(.units = UNITS));
  write_file(3, MIX_SHAPE(12), 1);
  assert_int_equal(mix_model_load_weights(model, path), MIX_OK);
  check_weight(model, 0, 18, gru_kernel, 0);
  check_weight(model, 1, 12, gru_recurrent, 0);
  check_weight(model, 2, 12, gru_bias, 0);
}

/* Keras's own layouts stay as they are. */
static void own_layouts(void **state) {
  (void)state;
  mix_model *model = model_of(mix_lstm(.units = UNITS));
  write_file(4, MIX_SHAPE(8), 1);
  assert_int_equal(mix_model_load_weights(model, path), MIX_OK);
  for (int i = 0; i < 24; i++) assert_near(weight_at(model, 0, i), i, 0);
  model = model_of(mix_gru(.units = UNITS));
  write_file(3, MIX_SHAPE(2, 6), 1);
  assert_int_equal(mix_model_load_weights(model, path), MIX_OK);
  for (int i = 0; i < 18; i++) assert_near(weight_at(model, 0, i), i, 0);
}

/* Keras: "CuDNNGRU is not compatible with GRU(reset_after=False)". The model keeps its weights. */
static void other_biases(void **state) {
  (void)state;
  const struct {
    int gates, before;
    mix_shape bias;
    const char *message;
  } rows[] = {{3, 1, MIX_SHAPE(12), "reset_after"},
              {3, 1, MIX_SHAPE(2, 6), "reset_after"},
              {3, 0, MIX_SHAPE(6), "reset_after"},
              {4, 0, MIX_SHAPE(12), "has shape (8)"}};
  for (int i = 0; i < 4; i++) {
    mix_model *model = model_of(rows[i].gates == 4 ? mix_lstm(.units = UNITS)
                                                   : mix_gru(.units = UNITS, .reset_before = rows[i].before));
    const double before = weight_at(model, 0, 1);
    write_file(rows[i].gates, rows[i].bias, 1);
    assert_int_equal(mix_model_load_weights(model, path), MIX_VALUE_ERROR);
    if (!strstr(mix_error_message(), rows[i].message)) fail_msg("row %d: %s", i, mix_error_message());
    mix_error_clear();
    assert_near(weight_at(model, 0, 1), before, 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {FILE_TEST(lstm_and_both_directions), FILE_TEST(gru_with_reset_after),
                                     FILE_TEST(own_layouts), FILE_TEST(other_biases)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
