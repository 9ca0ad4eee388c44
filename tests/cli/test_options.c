/* Options and exit codes: 2 for what is wrong in the options, 1 for what goes wrong while running, and a message that names it. */
#include "cli/program.h"

static void write_data(const char *name, int64_t rows, mix_dtype dtype) {
  MIX_SCOPE {
    mix_tensor *x = mix_cast(mix_reshape(mix_range(0, (double)(rows * 4), 1, MIX_FLOAT32), MIX_SHAPE(rows, 4)), dtype);
    mix_tensor *y = mix_cast(mix_floor_mod(mix_range(0, (double)rows, 1, MIX_INT64), mix_scalar(10, MIX_INT64)), MIX_INT64);
    assert_int_equal(mix_npz_save(in_folder(name), 2, (const char *const[]){"x_train", "y_train"}, (mix_tensor *const[]){x, y}),
                     MIX_OK);
  }
}

static int setup(void **state) {
  if (program_begin(state)) return -1;
  write_data("data.npz", 8, MIX_UINT8);
  return 0;
}

#define TRAIN_SMALL "train", "--data", in_folder("data.npz"), "--units", "4", "--verbose", "0"

static void a_command_is_needed(void **state) {
  (void)state;
  assert_code(run_program_to(NULL, (const char *const[]){NULL}), 2);
  assert_has(program_err, "usage: mixtape COMMAND");
  assert_code(run_program("fly"), 2);
  assert_has(program_err, "unknown command 'fly'");
  assert_code(run_program("--help"), 0);
  assert_has(program_out, "usage: mixtape COMMAND");
  assert_has(program_out, "train");
}

static void help_explains_every_option(void **state) {
  (void)state;
  static const char *const options[] = {"--model",      "--data",         "--policy",       "--units",
                                        "--batch-size", "--epochs",       "--steps",        "--validation-split",
                                        "--no-shuffle", "--seed",         "--class-weight", "--optimizer",
                                        "--loss ",      "--metrics",      "--loss-scale",   "--semantics",
                                        "--accumulate", "--loop",         "--device",       "--threads",
                                        "--verbose",    "--init-weights", "--save",         "--step-log",
                                        "--json",       "--help"};
  assert_code(run_program("train", "--help"), 0);
  for (size_t i = 0; i < sizeof options / sizeof *options; i++) assert_has(program_out, options[i]);
  static const char *const others[] = {"evaluate", "predict", "summary", "devices", "version", "bench"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    assert_code(run_program(others[i], "--help"), 0);
    assert_has(program_out, others[i]);
    assert_has(program_out, "--help");
  }
}

static void unknown_options_end_with_2(void **state) {
  (void)state;
  assert_code(run_program("train", "--polices", "float32"), 2);
  assert_has(program_err, "unknown option '--polices'");
  assert_code(run_program("train", "-x"), 2);
  assert_code(run_program("train", "digits"), 2);
  assert_has(program_err, "'digits' is no option");
  assert_code(run_program("train", "--units"), 2);
  assert_has(program_err, "an argument is missing for '--units'");
  assert_code(run_program("train", "--json=yes"), 2);
  assert_code(run_program("predict", "--epochs", "3"), 2); /* an option of another command */
  assert_code(run_program("version", "--data", "digits"), 2);
  assert_code(run_program("--version", "please"), 2);
  assert_code(run_program("devices", "cpu"), 2);
}

static void bad_values_end_with_2(void **state) {
  (void)state;
  static const char *const rows[][2] = {{"--model", "resnet"},
                                        {"--model", "my.keras"},
                                        {"--data", "cifar"},
                                        {"--data", ""},
                                        {"--data", "x.npy"},
                                        {"--policy", "float12"},
                                        {"--policy", "int32"},
                                        {"--units", "0"},
                                        {"--units", "-4"},
                                        {"--units", "4.5"},
                                        {"--units", "many"},
                                        {"--units", ""},
                                        {"--units", "99999999999999999999"},
                                        {"--batch-size", "0"},
                                        {"--epochs", "0"},
                                        {"--steps", "-1"},
                                        {"--validation-split", "1"},
                                        {"--validation-split", "-0.1"},
                                        {"--validation-split", "nan"},
                                        {"--seed", "-1"},
                                        {"--seed", "x"},
                                        {"--class-weight", "0"},
                                        {"--class-weight", "0=a"},
                                        {"--class-weight", "=1"},
                                        {"--class-weight", "0=1,"},
                                        {"--class-weight", "-1=1"},
                                        {"--class-weight", "0=-1"},
                                        {"--class-weight", "0=nan"},
                                        {"--optimizer", "sdg"},
                                        {"--optimizer", "sgd:momentun=1"},
                                        {"--optimizer", "sgd:momentum=2"},
                                        {"--optimizer", "sgd:learning_rate"},
                                        {"--loss", "cross"},
                                        {"--metrics", "accuracy,speed"},
                                        {"--loss-scale", "0"},
                                        {"--loss-scale", "-8"},
                                        {"--loss-scale", "inf"},
                                        {"--loss-scale", "dynamics"},
                                        {"--loss-scale", "dynamic:"},
                                        {"--loss-scale", "dynamic:8:0"},
                                        {"--loss-scale", "dynamic:8:1.5"},
                                        {"--loss-scale", "dynamic:0"},
                                        {"--semantics", "keras4"},
                                        {"--accumulate", "fast"},
                                        {"--loop", "while"},
                                        {"--device", "tpu"},
                                        {"--threads", "0"},
                                        {"--threads", "5000000000"},
                                        {"--verbose", "3"},
                                        {"--verbose", "-1"},
                                        {"--init-weights", ""},
                                        {"--save", "weights.keras"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int code = run_program(TRAIN_SMALL, rows[i][0], rows[i][1]);
    if (code != 2) fail_msg("%s '%s' ended with %d: %s", rows[i][0], rows[i][1], code, program_err);
    assert_has(program_err, rows[i][0]);
    assert_string_equal(program_out, "");
  }
}

static void options_that_exclude_each_other_end_with_2(void **state) {
  (void)state;
  assert_code(run_program(TRAIN_SMALL, "--loop", "custom", "--class-weight", "0=1"), 2);
  assert_code(run_program(TRAIN_SMALL, "--loop", "custom", "--metrics", "mse"), 2);
  assert_has(program_err, "--metrics belongs to --loop fit");
}

static void what_fails_while_running_ends_with_1(void **state) {
  (void)state;
  assert_code(run_program("train", "--data", in_folder("none.npz")), 1);
  assert_has(program_err, "none.npz");
  assert_code(run_program(TRAIN_SMALL, "--init-weights", in_folder("none.npz")), 1);
  assert_has(program_err, "none.npz");
  assert_code(run_program(TRAIN_SMALL, "--device", "cuda"), 1); /* this version has none */
  assert_has(program_err, "cuda");
  assert_code(run_program(TRAIN_SMALL, "--validation-split", "0.99"), 1); /* of 8 rows: floor(8 * 0.01) = 0 */
  assert_has(program_err, "empty");
  assert_code(run_program(TRAIN_SMALL, "--validation-split", "0.99", "--loop", "custom"), 1);
  assert_has(program_err, "empty");
}

static void a_directory_without_mnist_ends_with_1(void **state) {
  (void)state;
  char *former = getenv("MIXTAPE_DATA_DIR"), kept[1024] = "";
  if (former) snprintf(kept, sizeof kept, "%s", former);
  setenv("MIXTAPE_DATA_DIR", program_folder, 1);
  setenv("KERAS_HOME", program_folder, 1);
  setenv("HOME", program_folder, 1);
  setenv("MIXTAPE_OFFLINE", "1", 1);
  assert_code(run_program("train", "--data", "mnist"), 1);
  assert_has(program_err, "MIXTAPE_OFFLINE");
  assert_has(program_err, program_folder);
  unsetenv("MIXTAPE_OFFLINE");
  unsetenv("KERAS_HOME");
  if (former)
    setenv("MIXTAPE_DATA_DIR", kept, 1);
  else
    unsetenv("MIXTAPE_DATA_DIR");
}

static void what_cannot_be_written_ends_with_1(void **state) {
  (void)state;
  assert_code(run_program(TRAIN_SMALL, "--save", in_folder("no/such/folder.npz")), 1);
  assert_has(program_err, "--save");
  assert_null(strstr(program_err, "data:")); /* said before anything is loaded */
  assert_code(run_program(TRAIN_SMALL, "--save", "/dev/full"), 1);
  assert_has(program_err, "not a regular file");
  assert_code(run_program(TRAIN_SMALL, "--step-log", in_folder("no/such/steps.jsonl")), 1);
  assert_has(program_err, "--step-log");
  assert_code(run_program("predict", "--data", in_folder("data.npz"), "--units", "4", "--output", in_folder("no/such/out.npy")), 1);
  assert_has(program_err, "out.npy");
}

/* The run goes on and the weights are saved, but it is no success. */
static void a_full_disk_under_the_step_log_ends_with_1(void **state) {
  (void)state;
  if (access("/dev/full", W_OK)) skip();
  assert_code(run_program(TRAIN_SMALL, "--step-log", "/dev/full", "--save", in_folder("saved.npz")), 1);
  assert_has(program_err, "'/dev/full' could not be written whole: No space left on device");
  assert_int_equal(access(in_folder("saved.npz"), R_OK), 0);
}

static void a_full_standard_output_ends_with_1(void **state) {
  (void)state;
  if (access("/dev/full", W_OK)) skip();
  assert_code(run_program_to("/dev/full", (const char *const[]){TRAIN_SMALL, "--json", NULL}), 1);
  assert_has(program_err, "cannot write to standard output");
  assert_code(run_program_to("/dev/full", (const char *const[]){"version", NULL}), 1);
  assert_code(run_program_to("/dev/full", (const char *const[]){"--help", NULL}), 1);
}

static void a_size_that_no_machine_has_is_an_ordinary_error(void **state) {
  (void)state;
  assert_code(run_program("train", "--data", in_folder("data.npz"), "--units", "4611686018427387904"), 1);
  assert_has(program_err, "mixtape: ");
  assert_code(run_program("summary", "--units", "9223372036854775807"), 1);
}

static void a_bad_environment_ends_with_1(void **state) {
  (void)state;
  setenv("MIXTAPE_THREADS", "lots", 1);
  assert_code(run_program(TRAIN_SMALL), 1);
  assert_has(program_err, "MIXTAPE_THREADS");
  unsetenv("MIXTAPE_THREADS");
}

static void everything_that_names_a_number_is_accepted(void **state) {
  (void)state;
  assert_code(run_program(TRAIN_SMALL, "--loss-scale", "dynamic:1024:5", "--policy", "mixed_float16", "--semantics", "keras3",
                          "--threads", "1", "--seed", "0"),
              0);
  assert_code(run_program(TRAIN_SMALL, "--loss-scale", "0.5", "--policy", "float16"), 0);
  assert_code(run_program(TRAIN_SMALL, "--loss-scale", "none", "--policy", "mixed_float16", "--optimizer",
                          "sgd:learning_rate=0.1,momentum=0.9,nesterov=true"),
              0);
  assert_code(run_program(TRAIN_SMALL, "--semantics", "experimental", "--loss-scale", "dynamic", "--device", "ref", "--batch-size",
                          "1000000000000"),
              0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_command_is_needed),
      cmocka_unit_test(help_explains_every_option),
      cmocka_unit_test(unknown_options_end_with_2),
      cmocka_unit_test(bad_values_end_with_2),
      cmocka_unit_test(options_that_exclude_each_other_end_with_2),
      cmocka_unit_test(what_fails_while_running_ends_with_1),
      cmocka_unit_test(a_directory_without_mnist_ends_with_1),
      cmocka_unit_test(what_cannot_be_written_ends_with_1),
      cmocka_unit_test(a_full_disk_under_the_step_log_ends_with_1),
      cmocka_unit_test(a_full_standard_output_ends_with_1),
      cmocka_unit_test(a_size_that_no_machine_has_is_an_ordinary_error),
      cmocka_unit_test(a_bad_environment_ends_with_1),
      cmocka_unit_test(everything_that_names_a_number_is_accepted),
  };
  return cmocka_run_group_tests(tests, setup, program_end);
}
