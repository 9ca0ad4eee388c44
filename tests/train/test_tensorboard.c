/* TensorBoard: events have the bytes of TensorFlow's writer, and a training run's files are read back record
 * by record. */
#include "formats/event_file.h"
#include "base/alloc.h"
#include "train/callbacks/histogram.h"
#include "train/event_reader.h"
#include "train/recorded_events.h"
#include "support/folder.h"
#include <mixtape/callback.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

static int remove_folder(void **state) {
  mix_set_semantics("tf_keras");
  mix_set_global_policy("float32");
  return folder_end(state);
}
static read_events *train_events(const char *log_dir) {
  char pattern[256];
  snprintf(pattern, sizeof pattern, "%s/train/events.out.tfevents.*.v2", in_folder(log_dir));
  return read_events_of(pattern);
}
static read_events *validation_events(const char *log_dir) {
  char pattern[256];
  snprintf(pattern, sizeof pattern, "%s/validation/events.out.tfevents.*.v2", in_folder(log_dir));
  return read_events_of(pattern);
}

/* ---- bytes ---- */

static void checksums_have_their_known_values(void **state) {
  (void)state;
  /* The check value of CRC-32C, and 32 zeros of RFC 3720, B.4, masked by hand. */
  const uint32_t check = 0xe3069283, zeros = 0x8a9136aa;
  assert_int_equal(mix_masked_crc32c("123456789", 9), (uint32_t)((check >> 15 | check << 17) + 0xa282ead8));
  assert_int_equal(mix_masked_crc32c((const char[32]){0}, 32),
                   (uint32_t)((zeros >> 15 | zeros << 17) + 0xa282ead8));
  unsigned char bytes[257];
  for (int i = 0; i < 257; i++) bytes[i] = (unsigned char)(i * 7);
  for (size_t n = 0; n <= 257; n++) assert_int_equal(mix_masked_crc32c(bytes, n), slow_masked_crc(bytes, n));
}

/* A record of `value` at the wall time of a recorded one has the same bytes. */
static void assert_recorded(mix_message *value, int64_t step, const unsigned char *recorded, size_t size) {
  mix_message event = {0};
  double wall_time;
  memcpy(&wall_time, recorded + 13, sizeof wall_time); /* after 12 bytes of framing and the field's number */
  mix_event_of(&event, wall_time, step, value);
  assert_false(event.failed);
  assert_int_equal(event.size, little(recorded, 8));
  assert_int_equal(event.size + 16, size);
  assert_memory_equal(event.data, recorded + 12, event.size);
  assert_int_equal(mix_masked_crc32c(recorded, 8), little(recorded + 8, 4));
  assert_int_equal(mix_masked_crc32c(event.data, event.size), little(recorded + 12 + event.size, 4));
  mix_message_free(&event);
}

static void events_are_tensorflows_to_the_byte(void **state) {
  (void)state;
  mix_message value = {0};
  mix_summary_scalar(&value, "epoch_loss", (float)0.6931471805599453);
  assert_recorded(&value, 3, recorded_scalar, sizeof recorded_scalar);
  mix_summary_scalar(&value, "batch_loss", 2.5f);
  assert_recorded(&value, 0, recorded_scalar_at_zero, sizeof recorded_scalar_at_zero);

  float numbers[200], zeros[5] = {0};
  mix_histogram rows;
  for (int i = 0; i < 200; i++) numbers[i] = (float)(i * 37 % 200 - 90) * 0.013f;
  assert_int_equal(mix_histogram_of(numbers, F32, 200, rows), 30);
  mix_summary_histogram(&value, "dense/kernel/histogram", rows, 30);
  assert_recorded(&value, 1, recorded_histogram, sizeof recorded_histogram);
  assert_int_equal(mix_histogram_of(zeros, F32, 5, rows), 30);
  mix_summary_histogram(&value, "dense/bias/histogram", rows, 30);
  assert_recorded(&value, 1, recorded_histogram_of_one_value, sizeof recorded_histogram_of_one_value);
}

static void histograms_leave_out_what_is_not_finite(void **state) {
  (void)state;
  mix_histogram rows;
  const float some[] = {NAN, 0, INFINITY, 30, -INFINITY, 15}, none[] = {NAN, INFINITY};
  assert_int_equal(mix_histogram_of(some, F32, 6, rows), 30);
  double total = 0;
  for (int b = 0; b < 30; b++) total += rows[b][2];
  assert_true(total == 3 && rows[0][0] == 0 && rows[0][2] == 1 && rows[15][2] == 1 && rows[29][1] == 30 &&
              rows[29][2] == 1);
  assert_int_equal(mix_histogram_of(none, F32, 2, rows), 0);
  assert_int_equal(mix_histogram_of(some, F32, 0, rows), 0);
}

static void exponents_are_those_of_the_16_bit_copy(void **state) {
  (void)state;
  mix_histogram rows;
  /* In float16 1e-9 becomes 0 and 1e6 infinity; 65519 rounds down to 65504; 2^-24 is the smallest number.
   * 2047.9 rounds up to 2^11. */
  const float numbers[] = {1e-9f, 1e6f, 65519, 0x1p-24f, 2047.9f, 1, -1.5f, 0, NAN};
  assert_int_equal(mix_histogram_of_exponents(numbers, MIX_FLOAT16, 9, rows), 15 + 24 + 1);
  for (int r = 0; r < 40; r++) {
    int e = r - 24;
    assert_true(rows[r][0] == e && rows[r][1] == e + 1);
    assert_true(rows[r][2] == (e == 15 || e == -24 || e == 11 ? 1 : e == 0 ? 2 : 0));
  }
  /* bfloat16 has all of them except 0 and NaN: from 2^-30 to 2^19. */
  assert_int_equal(mix_histogram_of_exponents(numbers, MIX_BFLOAT16, 9, rows), 19 + 30 + 1);
  assert_true(rows[0][0] == -30 && rows[0][2] == 1 && rows[49][2] == 1);
  const float ends[] = {0x1p-133f, 0x1.fep127f};
  assert_int_equal(mix_histogram_of_exponents(ends, MIX_BFLOAT16, 2, rows), MIX_HISTOGRAM_MAX);
  assert_int_equal(mix_histogram_of_exponents(numbers, MIX_FLOAT16, 1, rows), 0);
}

/* ---- training ---- */

static void an_epochs_scalars_have_keras_tags(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0.0625);
  mix_callback *board = mix_tensorboard(in_folder("epochs"));
  mix_history *history =
      mix_model_fit(model, counting(4), mix_fill(MIX_SHAPE(4, 1), 0, F32), .epochs = 3, .batch_size = 2,
                    .verbose = MIX_SILENT, .validation_x = counting(2),
                    .validation_y = mix_fill(MIX_SHAPE(2, 1), 1, F32), .callbacks = mix_list_of(board));
  assert_no_error();
  read_events *train = train_events("epochs"), *validation = validation_events("epochs");
  assert_string_equal(train->list[0].version, "brain.Event:2");
  assert_string_equal(train->list[0].writer, "mixtape");
  assert_true(train->list[0].wall_time > 1.6e9);
  const read_event *graph = event_of(train, "keras", 0);
  assert_non_null(graph);
  assert_string_equal(graph->plugin, "graph_keras_model");
  assert_string_equal(graph->content, "1");
  assert_int_equal(graph->dtype, 7); /* DT_STRING */
  assert_int_equal(train->count, 2 + 3 * 2);
  assert_int_equal(validation->count, 1 + 3 * 2);
  for (int e = 0; e < 3; e++) {
    const mix_logs *logs = mix_history_epoch(history, e);
    const read_event *loss = event_of(train, "epoch_loss", e);
    assert_int_equal(loss->step, e);
    assert_true(scalar_in(loss) == (float)mix_logs_get(logs, "loss"));
    assert_true(scalar_in(event_of(train, "epoch_learning_rate", e)) == 0.0625f);
    assert_int_equal(event_of(validation, "epoch_loss", e)->step, e);
    assert_true(scalar_in(event_of(validation, "epoch_loss", e)) == (float)mix_logs_get(logs, "val_loss"));
    const read_event *evaluation = event_of(validation, "evaluation_loss_vs_iterations", e);
    assert_int_equal(evaluation->step, 2 * (e + 1));
    assert_true(scalar_in(evaluation) == (float)mix_logs_get(logs, "val_loss"));
  }
  assert_null(event_of(train, "epoch_loss_scale", 0)); /* no loss scaling */
  free_events(train);
  free_events(validation);
}

static void batches_are_written_at_their_frequency(void **state) {
  (void)state;
  mix_model *model = product_model(1, 0);
  mix_callback *board = mix_tensorboard(in_folder("batches"), .update_freq = 2,
                                        .write_steps_per_second = true, .no_write_graph = true);
  mix_model_fit(model, counting(3), mix_fill(MIX_SHAPE(3, 1), 0, F32), .epochs = 2, .batch_size = 1,
                .no_shuffle = true, .verbose = MIX_SILENT, .callbacks = mix_list_of(board));
  assert_no_error();
  read_events *train = train_events("batches");
  /* Losses are 0, 1, 4 in a batch. Running means at batch 2 of the first epoch, and at batches 1 and 3 of the
   * second. */
  const float losses[] = {0.5f, 0, (float)(5.0 / 3)};
  for (int i = 0; i < 3; i++) {
    const read_event *loss = event_of(train, "batch_loss", i);
    assert_non_null(loss);
    assert_int_equal(loss->step, 2 * (i + 1));
    assert_near(scalar_in(loss), losses[i], 2e-7); /* one rounding of a quotient */
    assert_true(scalar_in(event_of(train, "batch_steps_per_second", i)) > 0);
  }
  assert_null(event_of(train, "batch_loss", 3));
  assert_null(event_of(train, "keras", 0));
  assert_true(scalar_in(event_of(train, "epoch_steps_per_second", 1)) > 0);
  free_events(train);
}

/* x is NaN in every fourth batch: those steps are skipped and halve the scale. */
static void loss_scale_and_skipped_steps_are_scalars(void **state) {
  (void)state;
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(1));
  mix_model *model = mix_model_new(
      inputs, mix_call(mix_dense(.units = 1, .no_bias = true, .kernel_initializer = "ones"), inputs));
  mix_optimizer *optimizer = mix_loss_scale_optimizer(mix_sgd(.learning_rate = 0.125), .initial_scale = 1024);
  assert_int_equal(mix_model_compile(model, .loss = "mse", .optimizer = optimizer), MIX_OK);
  assert_int_equal(mix_optimizer_skipped_steps(mix_model_optimizer(model)), 0);
  mix_tensor *x = ARRAY(F32, MIX_SHAPE(8, 1), 1, NAN, 1, 1, 1, NAN, 1, 1);
  mix_model_fit(model, x, mix_fill(MIX_SHAPE(8, 1), 0, F32), .epochs = 2, .batch_size = 1, .no_shuffle = true,
                .verbose = MIX_SILENT,
                .callbacks = mix_list_of(mix_tensorboard(in_folder("scale"), .update_freq = 1)));
  assert_no_error();
  assert_int_equal(mix_optimizer_skipped_steps(mix_model_optimizer(model)), 4);
  assert_int_equal(mix_optimizer_skipped_steps(mix_sgd()), 0);
  assert_int_equal(mix_optimizer_skipped_steps(NULL), 0);
  read_events *train = train_events("scale");
  int skipped = 0;
  for (int step = 1; step <= 16; step++) {
    skipped += step % 4 == 2;
    assert_int_equal(event_of(train, "batch_skipped_steps", step - 1)->step, step);
    assert_true(scalar_in(event_of(train, "batch_skipped_steps", step - 1)) == (float)skipped);
    assert_true(scalar_in(event_of(train, "batch_loss_scale", step - 1)) == (float)(1024 >> skipped));
  }
  assert_true(scalar_in(event_of(train, "epoch_skipped_steps", 0)) == 2 &&
              scalar_in(event_of(train, "epoch_skipped_steps", 1)) == 4);
  assert_true(scalar_in(event_of(train, "epoch_loss_scale", 0)) == 256 &&
              scalar_in(event_of(train, "epoch_loss_scale", 1)) == 64);
  free_events(train);
}

static void weights_are_histograms(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(3));
  mix_layer *dense = mix_dense(.units = 2, .kernel_initializer = "zeros", .name = "dense");
  mix_model *model = mix_sequential(
      mix_list_of(mix_model_layer(mix_model_new(inputs, mix_call(dense, inputs), .name = "inner"))));
  assert_int_equal(mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(.learning_rate = MIX_ZERO)),
                   MIX_OK);
  mix_model_build(model, MIX_SHAPE(MIX_UNKNOWN, 3));
  mix_model_set_weights(model, mix_list_of(ARRAY(F32, MIX_SHAPE(3, 2), 0, 1, 2, 1e-9, 1e6, 30),
                                           mix_fill(MIX_SHAPE(2), 0, F32)));
  mix_model_fit(model, mix_fill(MIX_SHAPE(1, 3), 0, F32), mix_fill(MIX_SHAPE(1, 2), 0, F32), .epochs = 5,
                .verbose = MIX_SILENT,
                .callbacks = mix_list_of(mix_tensorboard(in_folder("weights"), .histogram_freq = 2)));
  assert_no_error();
  read_events *train = train_events("weights");
  char tag[128], narrow[160];
  const char *name = mix_variable_name(mix_list_get(mix_model_weights(model), 0));
  snprintf(tag, sizeof tag, "%s/histogram", name);
  snprintf(narrow, sizeof narrow, "%s/float16_exponents/histogram", name);
  for (int i = 0; i < 3; i++) { /* epochs 0, 2, 4 */
    const read_event *kernel = event_of(train, tag, i), *copy = event_of(train, narrow, i);
    assert_non_null(kernel);
    assert_non_null(copy);
    assert_int_equal(kernel->step, 2 * i);
    assert_int_equal(kernel->dims[0], 30);
    assert_true(histogram_at(kernel, 0, 2) == 5 && histogram_at(kernel, 29, 2) == 1 &&
                histogram_at(kernel, 29, 1) == 1e6);
    assert_int_equal(copy->dims[0], 5); /* 1, 2, 30: exponents 0, 1, 4 */
    assert_true(histogram_at(copy, 0, 0) == 0 && histogram_at(copy, 0, 2) == 1 &&
                histogram_at(copy, 2, 2) == 0 && histogram_at(copy, 4, 2) == 1);
  }
  assert_null(event_of(train, tag, 3));
  free_events(train);
}

static void the_graph_holds_layers_and_connections(void **state) {
  (void)state;
  mix_tensor *a = mix_input(.shape = MIX_SHAPE(2), .name = "a"),
             *b = mix_input(.shape = MIX_SHAPE(2), .name = "b");
  mix_layer *shared = mix_dense(.units = 2, .name = "shared");
  mix_tensor *sum =
      mix_call(mix_add_layer(.name = "sum"), mix_list_of(mix_call(shared, a), mix_call(shared, b)));
  mix_model *model = mix_model_new(mix_list_of(a, b), sum, .name = "two");
  mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(.learning_rate = MIX_ZERO));
  mix_tensor *x = mix_fill(MIX_SHAPE(1, 2), 0, F32);
  mix_model_fit(model, mix_list_of(x, x), x, .verbose = MIX_SILENT,
                .callbacks = mix_list_of(mix_tensorboard(in_folder("graph"))));
  assert_no_error();
  read_events *train = train_events("graph");
  const read_event *graph = event_of(train, "keras", 0);
  assert_non_null(graph);
  char text[8192];
  assert_true(graph->size < sizeof text);
  memcpy(text, graph->data, graph->size);
  text[graph->size] = 0;
  /* The sum's inputs are the first result of the first and second call of the shared layer. */
  const char *inputs = strstr(text, "\"class_name\": \"Add\"");
  assert_non_null(inputs);
  assert_non_null(strstr(inputs, "\"keras_history\": [\"shared\", 0, 0]"));
  assert_non_null(strstr(inputs, "\"keras_history\": [\"shared\", 1, 0]"));
  assert_non_null(strstr(text, "\"input_layers\": [[\"a\", 0, 0], [\"b\", 0, 0]]"));
  assert_non_null(strstr(text, "\"output_layers\": [[\"sum\", 0, 0]]"));
  free_events(train);
}

static mix_status refuse_config(mix_layer *layer, mix_config *config) {
  (void)layer, (void)config;
  return MIX_VALUE_ERROR;
}
static mix_list *pass_on(mix_layer *layer, const mix_call_args *args) {
  (void)layer;
  return args->inputs;
}
static char warning[512];
static void keep_warning(void *context, mix_log_level level, const char *message) {
  (void)context;
  if (level == MIX_LOG_WARNING) snprintf(warning, sizeof warning, "%s", message);
}
static void a_layer_without_config_costs_only_the_graph(void **state) {
  (void)state;
  const mix_layer_class class = {
      .size = sizeof class, .name = "Silent", .call = pass_on, .get_config = refuse_config};
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(1));
  mix_tensor *x = mix_call(mix_layer_new(.layer_class = &class), mix_call(mix_dense(.units = 1), inputs));
  mix_model *model = mix_model_new(inputs, x);
  mix_model_compile(model, .loss = "mse");
  mix_set_log_callback(keep_warning, NULL);
  mix_model_fit(model, counting(2), counting(2), .verbose = MIX_SILENT,
                .callbacks = mix_list_of(mix_tensorboard(in_folder("silent"))));
  mix_set_log_callback(NULL, NULL);
  assert_no_error();
  if (!strstr(warning, "gives no config")) fail_msg("the warning is: %s", warning);
  read_events *train = train_events("silent");
  assert_null(event_of(train, "keras", 0));
  assert_non_null(event_of(train, "epoch_loss", 0));
  free_events(train);
}

static void evaluation_alone_writes_validation(void **state) {
  (void)state;
  mix_model *model = product_model(2, 0);
  MIX_SCOPE {
    mix_callback *board = mix_tensorboard(in_folder("evaluation"));
    for (int i = 0; i < 2; i++)
      mix_model_evaluate(model, counting(2), mix_fill(MIX_SHAPE(2, 1), 0, F32), .verbose = MIX_SILENT,
                         .callbacks = mix_list_of(board));
    assert_no_error();
    /* Before the callback is released: each evaluation is flushed. */
    read_events *validation = validation_events("evaluation");
    assert_int_equal(validation->count, 3);
    assert_true(scalar_in(event_of(validation, "evaluation_loss_vs_iterations", 1)) == 2);
    free_events(validation);
  }
  assert_int_not_equal(access(in_folder("evaluation/train"), F_OK), 0);
}

/* ---- resumed runs ---- */

static mix_status fail_at(void *context, mix_model *model, int64_t batch, mix_logs *logs) {
  (void)model, (void)batch, (void)logs;
  return --*(int *)context ? MIX_OK : MIX_RUNTIME_ERROR;
}

/* Three epochs of four steps with a validation; the run ends with an error after step `stop`, if any. */
static void train_logged(const char *log_dir, const char *backup, int64_t save_freq, int stop) {
  mix_clear_names();
  mix_set_seed(3);
  mix_model *model = product_model(1, 0.0625);
  mix_list *callbacks =
      mix_list_of(mix_tensorboard(in_folder(log_dir), .update_freq = 1, .histogram_freq = 2),
                  mix_callback_new(.name = "stop", .context = &stop, .on_train_batch_end = fail_at),
                  mix_backup_and_restore(in_folder(backup), .save_freq = save_freq, .keep_checkpoint = true));
  mix_history *history =
      mix_model_fit(model, counting(4), mix_fill(MIX_SHAPE(4, 1), 0, F32), .epochs = 3, .batch_size = 1,
                    .seed = 5, .verbose = MIX_SILENT, .validation_x = counting(2),
                    .validation_y = mix_fill(MIX_SHAPE(2, 1), 1, F32), .callbacks = callbacks);
  assert_true((history == NULL) == (stop == 0));
  mix_error_clear();
}

static void assert_same_events(const read_events *a, const read_events *b, int stop) {
  if (a->count != b->count)
    fail_msg("stopped after step %d: %d records instead of %d", stop, b->count, a->count);
  for (int i = 0; i < a->count; i++) {
    const read_event *x = &a->list[i], *y = &b->list[i];
    assert_string_equal(x->tag, y->tag);
    assert_int_equal(x->step, y->step);
    assert_int_equal(x->size, y->size);
    if (x->size) assert_memory_equal(x->data, y->data, x->size);
  }
}

/* Whenever it is killed, the files of a resumed run have the records of a run without a stop, each once. */
static void a_resumed_run_holds_no_record_twice(void **state) {
  (void)state;
  char logs[32], backup[32];
  for (int save_freq = 0; save_freq <= 3; save_freq += 3) {
    snprintf(logs, sizeof logs, "whole%d", save_freq);
    snprintf(backup, sizeof backup, "backup%d", save_freq);
    MIX_SCOPE { train_logged(logs, backup, save_freq, -1); }
    read_events *train = train_events(logs), *validation = validation_events(logs);
    for (int stop = 5; stop <= 12; stop++) {
      snprintf(logs, sizeof logs, "logs%d-%d", save_freq, stop);
      snprintf(backup, sizeof backup, "backup%d-%d", save_freq, stop);
      MIX_SCOPE { train_logged(logs, backup, save_freq, stop); }
      MIX_SCOPE { train_logged(logs, backup, save_freq, -1); }
      read_events *resumed = train_events(logs), *validated = validation_events(logs);
      assert_same_events(train, resumed, stop);
      assert_same_events(validation, validated, stop);
      free_events(resumed);
      free_events(validated);
    }
    free_events(train);
    free_events(validation);
  }
}

static void a_resumed_run_without_its_file_begins_a_new_one(void **state) {
  (void)state;
  MIX_SCOPE { train_logged("gone", "gone-backup", 0, 6); }
  char command[4096];
  snprintf(command, sizeof command, "rm '%s'/train/*", in_folder("gone"));
  assert_int_equal(system(command), 0);
  warning[0] = 0;
  mix_set_log_callback(keep_warning, NULL);
  MIX_SCOPE { train_logged("gone", "gone-backup", 0, -1); }
  mix_set_log_callback(NULL, NULL);
  assert_non_null(strstr(warning, "is missing or shorter than at the checkpoint; a new file begins"));
  read_events *train = train_events("gone");
  assert_non_null(event_of(train, "keras", 0));
  assert_int_equal(event_of(train, "epoch_loss", 0)->step, 1);
  free_events(train);
}

/* ---- bad input ---- */

static void wrong_arguments_are_refused(void **state) {
  (void)state;
  assert_null(mix_tensorboard("logs", .histogram_freq = -1));
  assert_error(MIX_VALUE_ERROR, "histogram_freq is -1");
  assert_null(mix_tensorboard("logs", .update_freq = -2));
  assert_error(MIX_VALUE_ERROR, "update_freq is -2");
  assert_null(mix_tensorboard(""));
  assert_error(MIX_VALUE_ERROR, "log_dir is empty");
  assert_null(mix_callback_from_text("tensorboard:update_freq=often"));
  assert_error(MIX_VALUE_ERROR, "expected epoch, batch or a number of batches");
  assert_null(mix_callback_from_text("tensorboard:write_graph=no"));
  assert_error(MIX_VALUE_ERROR, "true or false");
  assert_non_null(
      mix_callback_from_text("TensorBoard:log_dir=x,histogram_freq=1,update_freq=batch,write_graph=false"));
  assert_non_null(mix_callback_from_text("tensorboard:update_freq=epoch"));
  assert_no_error();
}

static mix_history *train_into(const char *log_dir) {
  return mix_model_fit(product_model(1, 0), counting(2), mix_fill(MIX_SHAPE(2, 1), 0, F32), .epochs = 50,
                       .verbose = MIX_SILENT,
                       .callbacks = mix_list_of(mix_tensorboard(log_dir, .histogram_freq = 1)));
}

static void a_folder_that_cannot_be_made_ends_fit(void **state) {
  (void)state;
  FILE *file = fopen(in_folder("file"), "w");
  assert_non_null(file);
  fclose(file);
  assert_null(train_into(in_folder("file/logs")));
  assert_error(MIX_IO_ERROR, "file/logs");
}

/* A limit on the file size simulates a full disk during training. */
static void a_full_disk_ends_fit_with_its_history(void **state) {
  (void)state;
  struct rlimit before, small;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  small = before;
  small.rlim_cur = 6000;
  void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  mix_model *model = product_model(1, 0);
  mix_history *history = mix_model_fit(
      model, counting(2), mix_fill(MIX_SHAPE(2, 1), 0, F32), .epochs = 50, .verbose = MIX_SILENT,
      .callbacks =
          mix_list_of(mix_tensorboard(in_folder("full"), .histogram_freq = 1, .no_write_graph = true)));
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  assert_null(history);
  assert_error(MIX_IO_ERROR, "cannot be written");
  /* A histogram of 30 rows takes about 800 bytes: some epochs succeed. */
  assert_in_range(mix_history_epochs(mix_model_history(model)), 2, 10);
}

static void any_allocation_may_fail(void **state) {
  (void)state;
  for (int64_t count = 0;; count++) {
    mix_status status = MIX_OK;
    bool unused = false;
    MIX_SCOPE {
      mix_inject_allocation_failure(count);
      mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(1));
      mix_model *model = mix_model_new(inputs, mix_call(mix_dense(.units = 1), inputs));
      mix_model_compile(model, .loss = "mse");
      mix_model_fit(model, counting(2), counting(2), .verbose = MIX_SILENT, .validation_x = counting(2),
                    .validation_y = counting(2),
                    .callbacks = mix_list_of(
                        mix_tensorboard(in_folder("memory"), .histogram_freq = 1, .update_freq = 1)));
      unused = mix_allocation_failure_injected();
      mix_inject_allocation_failure(-1);
      status = mix_error_take(NULL, 0);
    }
    if (unused && status == MIX_OK) {
      assert_true(count > 100);
      return;
    }
    if (status != MIX_MEMORY_ERROR)
      fail_msg("allocation %lld failed, and the result was %s", (long long)count, mix_status_name(status));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(checksums_have_their_known_values),
      cmocka_unit_test(events_are_tensorflows_to_the_byte),
      cmocka_unit_test(histograms_leave_out_what_is_not_finite),
      cmocka_unit_test(exponents_are_those_of_the_16_bit_copy),
      cmocka_unit_test_setup_teardown(an_epochs_scalars_have_keras_tags, folder_begin, remove_folder),
      cmocka_unit_test_setup_teardown(batches_are_written_at_their_frequency, folder_begin, remove_folder),
      cmocka_unit_test_setup_teardown(loss_scale_and_skipped_steps_are_scalars, folder_begin, remove_folder),
      cmocka_unit_test_setup_teardown(weights_are_histograms, folder_begin, remove_folder),
      cmocka_unit_test_setup_teardown(the_graph_holds_layers_and_connections, folder_begin, remove_folder),
      cmocka_unit_test_setup_teardown(a_layer_without_config_costs_only_the_graph, folder_begin,
                                      remove_folder),
      cmocka_unit_test_setup_teardown(evaluation_alone_writes_validation, folder_begin, remove_folder),
      cmocka_unit_test_setup_teardown(a_resumed_run_holds_no_record_twice, folder_begin, remove_folder),
      cmocka_unit_test_setup_teardown(a_resumed_run_without_its_file_begins_a_new_one, folder_begin,
                                      remove_folder),
      cmocka_unit_test(wrong_arguments_are_refused),
      cmocka_unit_test_setup_teardown(a_folder_that_cannot_be_made_ends_fit, folder_begin, remove_folder),
      cmocka_unit_test_setup_teardown(a_full_disk_ends_fit_with_its_history, folder_begin, remove_folder),
      cmocka_unit_test_setup_teardown(any_allocation_may_fail, folder_begin, remove_folder),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
