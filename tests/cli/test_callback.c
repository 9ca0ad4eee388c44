/* --callback: by name, several of them, and errors. */
#include "cli/program.h"
#include <glob.h>

static void write_data(void) {
  MIX_SCOPE {
    double x[40 * 4], y[40];
    for (int i = 0; i < 160; i++) x[i] = i % 7 / 7.0;
    for (int i = 0; i < 40; i++) y[i] = i % 3;
    const char *names[] = {"x_train", "y_train"};
    mix_tensor *tensors[] = {mix_tensor_from_doubles(x, MIX_FLOAT32, MIX_SHAPE(40, 4)),
                             mix_tensor_from_doubles(y, MIX_INT64, MIX_SHAPE(40))};
    assert_int_equal(mix_npz_save(in_folder("data.npz"), 2, names, tensors), MIX_OK);
  }
}

static int run_with(const char *first, const char *second, const char *loop) {
  const char *arguments[] = {"train",
                             "--data",
                             in_folder("data.npz"),
                             "--units",
                             "4",
                             "--epochs",
                             "6",
                             "--device",
                             "cpu",
                             "--loop",
                             loop,
                             "--callback",
                             first,
                             second ? "--callback" : NULL,
                             second,
                             NULL};
  return run_program_to(NULL, arguments);
}

static void callbacks_of_the_command_line_are_called(void **state) {
  (void)state;
  write_data();
  char log[600], saved[600];
  snprintf(log, sizeof log, "csv_logger:filename=%s", in_folder("log.csv"));
  /* No epoch improves the loss by more than 100: training stops after the second. */
  assert_int_equal(
      run_with("early_stopping:monitor=loss,min_delta=100,restore_best_weights=True", log, "fit"), 0);
  char text[4096];
  read_text(in_folder("log.csv"), text, sizeof text);
  int lines = 0;
  for (const char *at = text; *at; at++) lines += *at == '\n';
  assert_int_equal(lines, 3);
  assert_memory_equal(text, "epoch,accuracy,loss,val_accuracy,val_loss\r\n", 43);
  snprintf(saved, sizeof saved, "ModelCheckpoint:filepath=%s,monitor=loss", in_folder("w{epoch:02d}.npz"));
  assert_int_equal(run_with(saved, NULL, "fit"), 0);
  assert_int_equal(access(in_folder("w06.npz"), F_OK), 0);
}

static void wrong_callbacks_are_refused(void **state) {
  (void)state;
  write_data();
  static const struct {
    const char *text, *part;
  } wrong[] = {{"remote_monitor", "early_stopping"},
               {"early_stopping:patience=x", "patience"},
               {"model_checkpoint:filepath=a.onnx", ".npz"},
               {"numerics_report", "give json, table, png or html"},
               {"early_stopping:restore_best_weights=yes", "expected true or false"}};
  for (int i = 0; i < 5; i++) {
    assert_int_equal(run_with(wrong[i].text, NULL, "fit"), 2);
    assert_non_null(strstr(program_err, wrong[i].part));
  }
  assert_int_equal(run_with("terminate_on_nan", NULL, "custom"), 2);
  assert_non_null(strstr(program_err, "--callback belongs to --loop fit"));
  const char *custom[] = {"train", "--data", in_folder("data.npz"), "--loop", "custom", "--tensorboard",
                          "x",     NULL};
  assert_int_equal(run_program_to(NULL, custom), 2);
  assert_non_null(strstr(program_err, "--tensorboard belongs to --loop fit"));
  assert_int_equal(run_with("csv_logger:filename=/proc/none/log.csv", NULL, "fit"), 1);
  assert_non_null(strstr(program_err, "/proc/none/log.csv"));
}

static void the_message_names_all_callbacks(void **state) {
  (void)state;
  assert_null(mix_callback_from_text("early_stoping"));
  assert_int_equal(mix_error(), MIX_VALUE_ERROR);
  assert_string_equal(mix_error_message(),
                      "callback_from_text: 'early_stoping' is not known; did you mean 'early_stopping'?; "
                      "expected one of early_stopping, reduce_lr_on_plateau, model_checkpoint, csv_logger, "
                      "tensorboard, backup_and_restore, progbar_logger, terminate_on_nan, numerics_report");
  mix_error_clear();
}

/* Both ways of enabling it write an event file to each folder. */
static void tensorboard_gets_its_files(void **state) {
  (void)state;
  write_data();
  char text[600];
  snprintf(text, sizeof text, "tensorboard:log_dir=%s,update_freq=batch", in_folder("named"));
  assert_int_equal(run_with(text, NULL, "fit"), 0);
  const char *arguments[] = {"train",           "--data", in_folder("data.npz"), "--units", "4",
                             "--device",        "cpu",    "--validation-split",  "0.25",    "--tensorboard",
                             in_folder("logs"), NULL};
  assert_int_equal(run_program_to(NULL, arguments), 0);
  static const char *const patterns[] = {"named/train/events.out.tfevents.*.v2",
                                         "logs/train/events.out.tfevents.*.v2",
                                         "logs/validation/events.out.tfevents.*.v2"};
  for (int i = 0; i < 3; i++) {
    glob_t found;
    assert_int_equal(glob(in_folder(patterns[i]), 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    globfree(&found);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(callbacks_of_the_command_line_are_called),
                                     cmocka_unit_test(tensorboard_gets_its_files),
                                     cmocka_unit_test(wrong_callbacks_are_refused),
                                     cmocka_unit_test(the_message_names_all_callbacks)};
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
