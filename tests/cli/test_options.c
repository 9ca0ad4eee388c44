/* Options and exit codes: 2 for errors in the options, 1 for errors while running, and messages that name the
 * cause. */
#include "support/skip.h"
#include "cli/program.h"

#include <sys/stat.h>

static void write_data(const char *name, int64_t rows, mix_dtype dtype) {
  MIX_SCOPE {
    mix_tensor *x =
        mix_cast(mix_reshape(mix_range(0, (double)(rows * 4), 1, MIX_FLOAT32), MIX_SHAPE(rows, 4)), dtype);
    mix_tensor *y = mix_cast(
        mix_floor_mod(mix_range(0, (double)rows, 1, MIX_INT64), mix_scalar(10, MIX_INT64)), MIX_INT64);
    assert_int_equal(mix_npz_save(in_folder(name), 2, (const char *const[]){"x_train", "y_train"},
                                  (mix_tensor *const[]){x, y}),
                     MIX_OK);
  }
}

static int setup(void **state) {
  if (folder_begin(state)) return -1;
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
  static const char *const options[] = {
      "--model",         "--data",           "--policy",       "--units",
      "--batch-size",    "--epochs",         "--steps",        "--validation-split",
      "--no-shuffle",    "--seed",           "--class-weight", "--optimizer",
      "--loss ",         "--metrics",        "--loss-scale",   "--semantics",
      "--accumulate",    "--loop",           "--device",       "--threads",
      "--verbose",       "--init-weights",   "--save",         "--step-log",
      "--json",          "--memory",         "--help",         "--float32-precision",
      "--deterministic", "--max-shard-size", "--remat"};
  assert_code(run_program("train", "--help"), 0);
  for (size_t i = 0; i < sizeof options / sizeof *options; i++) assert_has(program_out, options[i]);
  static const char *const others[] = {"evaluate", "predict", "compile", "summary",
                                       "devices",  "version", "bench"};
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

/* Each message repeats the wrong text as given, and says what to do. */
/* The names that a model from a file takes too. */
static void plain_names_are_training_data(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_npz *data = mix_npz_open(in_folder("data.npz"));
    mix_tensor *x = mix_npz_require(data, "x_train"), *y = mix_npz_require(data, "y_train");
    mix_npz_save(in_folder("plain.npz"), 2, (const char *const[]){"x", "y"}, (mix_tensor *const[]){x, y});
    mix_npz_save(in_folder("none.npz"), 1, (const char *const[]){"inputs"}, (mix_tensor *const[]){x});
  }
  static char expected[2][sizeof program_out];
  const char *const files[] = {"data.npz", "plain.npz"};
  for (int i = 0; i < 2; i++) {
    assert_code(run_program("train", "--data", in_folder(files[i]), "--units", "4", "--verbose", "0",
                            "--save", in_folder("w.npz")),
                0);
    assert_code(run_program("evaluate", "--data", in_folder(files[i]), "--units", "4", "--init-weights",
                            in_folder("w.npz")),
                0);
    snprintf(expected[i], sizeof expected[i], "%s", program_out);
  }
  assert_string_equal(expected[0], expected[1]);
  assert_code(run_program("train", "--data", in_folder("none.npz")), 1);
  assert_has(program_err, "no array 'x_train' in the archive; there are: inputs");
}

static void near_misses_get_a_suggestion(void **state) {
  (void)state;
  static const struct {
    const char *arguments[4], *says;
  } rows[] = {
      {{"trian"}, "unknown command 'trian'; did you mean 'train'?"},
      {{"hlep"}, "did you mean 'help'?"},
      {{"help", "fly"}, "unknown command 'fly'"},
      {{"train", "--optimiser", "sgd"}, "unknown option '--optimiser'; did you mean '--optimizer'?"},
      {{"train", "--batch_size", "32"}, "did you mean '--batch-size'?"},
      {{"train", "--step", "3"}, "'--step' may mean --steps --step-log"},
      {{"train", "--epoch", "3"}, "unknown option '--epoch'; did you mean '--epochs'?"},
      {{"train", "--epoch=3"}, "unknown option '--epoch'; did you mean '--epochs'?"},
      {{"train", "--e", "3"}, "unknown option '--e'; did you mean '--epochs'?"},
      {{"train", "--no-shuf"}, "unknown option '--no-shuf'; did you mean '--no-shuffle'?"},
      {{"train", "--resum=force"}, "unknown option '--resum'; did you mean '--resume'?"},
      {{"train", "--he"}, "'--he' may mean --heads --help"},
      {{"train", "--qqqq=3"}, "unknown option '--qqqq'; `mixtape train --help` lists the options"},
      {{"train", "-xy"}, "unknown option '-x'"},
      {{"train", "--json=yes"}, "--json takes no argument"},
      {{"train", "--loss", "categorical_crosentropy"}, "did you mean 'categorical_crossentropy'?"},
      {{"train", "--metrics", "acuracy"}, "did you mean 'accuracy'?"},
      {{"train", "--optimizer", "rmspop"}, "did you mean 'rmsprop'?"},
      {{"train", "--policy", "mixed_flaot16"}, "'mixed_flaot16' given; did you mean 'mixed_float16'?"},
      {{"train", "--policy", "int8_from_float32"}, "`mixtape quantize IN OUT --mode int8` does"},
      {{"train", "--policy", "int4/64_from_mixed_bfloat16"}, "`mixtape quantize IN OUT --mode int4` does"},
      {{"train", "--policy", "gptq/4/128_from_float32"}, "no layer of any class computes in the mode gptq"},
      {{"train", "--policy", "int7_from_float32"}, "'int7_from_float32' given; expected float32|"},
      {{"train", "--semantics", "keras_3"}, "did you mean 'keras3'?"},
      {{"train", "--device", "cup"}, "did you mean 'cpu'?"},
      {{"train", "--callback", "early_stoping"}, "did you mean 'early_stopping'?"},
      {{"summary", "--model", "resnet5"}, "did you mean 'resnet50'?"},
      {{"train", "--epochs", "n"}, "--epochs: 'n' given; expected a positive whole number"},
      {{"train", "--metrics", "mean_io_u"}, "as in mean_io_u:key=value"},
      {{"train", "--metrics", "mean_io_u"}, "'num_classes' is missing"},
      {{"train", "--metrics", "auc:curve=XY"}, "curve is 'XY'"},
      {{"train", "--metrics", "accuracy,,mse"}, "'accuracy,,mse' given; expected names with commas between"},
      {{"train", "--metrics", ","}, "--metrics: ',' given"},
      {{"train", "--metrics", "auc,mse,auc"}, "two metrics are called 'auc'"},
      {{"train", "--metrics", "auc,mse:name=auc"}, "two metrics are called 'auc'"},
      {{"train", "--metrics", "mse,mse,mse,mse,mse,mse,mse,mse,mse,mse,mse,mse,mse,mse,mse,mse,mae"},
       "at most 16"},
      {{"train", "--class-weight", "0=3,0=5"}, "each label once"},
      {{"train", "--model", "my.keras2"}, "|mobilenet_v2|transformer|FILE.keras|FILE.h5|FILE.onnx|FOLDER"},
      {{"train", "--model=my.h5", "--units=4"}, "--units belongs to --model guide, and the model is my.h5"},
      {{"train", "--model=my.h5", "--loop=custom"}, "--loop custom belongs to --model guide"},
      {{"train", "--dtype=fp16", "--policy=float32"}, "short for --policy mixed_float16"},
      {{"predict", "--output", "out.txt"}, "ends in .npz or .npy"},
      {{"summary", "--output", "out.pdf"}, "ends in .dot or .svg or .png"},
      {{"numerics", "--png", "out.svg"}, "ends in .png"},
      {{"amp", "explain", "--output"}, "an argument is missing for --output"},
      {{"amp", "explian"}, "expected rewrite or explain"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_code(run_program_to(NULL, (const char *const[]){rows[i].arguments[0], rows[i].arguments[1],
                                                           rows[i].arguments[2], NULL}),
                2);
    assert_has(program_err, rows[i].says);
  }
  char scale[100] = "dynamic:1";
  memset(scale + strlen(scale), '0', sizeof scale - strlen(scale) - 1); /* must not be cut silently */
  assert_code(run_program("train", "--loss-scale", scale), 2);
}

static void help_has_several_names(void **state) {
  (void)state;
  assert_code(run_program("-h"), 0);
  assert_has(program_out, "usage: mixtape COMMAND");
  static const char *const commands[] = {"train", "amp", "graph"};
  for (int i = 0; i < 3; i++) {
    char usage[40];
    snprintf(usage, sizeof usage, "usage: mixtape %s", commands[i]);
    assert_code(run_program("help", commands[i]), 0);
    assert_has(program_out, usage);
    assert_code(run_program(commands[i], "-h"), 0);
    assert_has(program_out, usage);
  }
}

/* Of the device xla, after its passes. */
static void a_graph_becomes_a_program(void **state) {
  (void)state;
  if (strstr(mix_parts_left_out(), "xla")) SKIP("this build leaves out StableHLO");
  FILE *file = fopen(in_folder("graph.txt"), "w");
  assert_non_null(file);
  fputs("%0:float16(2, 3) = argument 0\n%1:float16(2, 3) = identity(%0)\n%2:float16(3, 3) = matmul(%0, %1) "
        "{transpose_a}\nreturn %2\n",
        file);
  fclose(file);
  assert_code(run_program("graph", "--stablehlo", in_folder("graph.txt")), 0);
  assert_has(program_out, "func.func public @main(%0: tensor<2x3xf16>) -> (tensor<3x3xf16>)");
  assert_has(program_out, "stablehlo.dot_general %0, %0, contracting_dims = [0] x [0]");
  assert_null(strstr(program_out, "// identity")); /* after the passes of the device */
  assert_code(run_program("graph", "--stablehlo", "--pass=fuse", in_folder("graph.txt")), 1);
  assert_has(program_err, "fused of float16: it has no form in StableHLO");
  file = fopen(in_folder("graph.txt"), "w"); /* as a log has it, under jit_compile */
  assert_non_null(file);
  fputs("# compile step: as captured\nexcess_precision\n%0:float16(2, 2) = argument 0\n"
        "%1:float16(2, 2) = matmul(%0, %0)\nreturn %1\n",
        file);
  fclose(file);
  assert_code(run_program("graph", "--stablehlo", in_folder("graph.txt")), 0);
  assert_has(program_out, "tensor<2x2xf16>) -> tensor<2x2xf16>\n");
}

/* Lines of at most 110 columns, except for an option that is longer itself. */
static void help_fits_a_terminal(void **state) {
  (void)state;
  assert_code(run_program("train", "--help"), 0);
  for (const char *line = program_out; *line; line += strcspn(line, "\n") + 1)
    if (strcspn(line, "\n") > 110) fail_msg("%.*s", (int)strcspn(line, "\n"), line);
}

/* The names of metrics do not count the trial runs before training. A metric's arguments reach it. */
static void metrics_have_the_names_of_keras(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_tensor *x = mix_cast(mix_reshape(mix_range(0, 32, 1, MIX_FLOAT32), MIX_SHAPE(8, 4)), MIX_FLOAT32);
    mix_tensor *y = mix_one_hot(mix_range(0, 8, 1, MIX_INT64), 10, MIX_FLOAT32);
    mix_npz_save(in_folder("onehot.npz"), 2, (const char *const[]){"x_train", "y_train"},
                 (mix_tensor *const[]){x, y});
  }
  assert_int_equal(mix_error(), MIX_OK);
  assert_code(
      run_program(
          "evaluate", "--data", in_folder("onehot.npz"), "--units", "4", "--loss", "categorical_crossentropy",
          "--json", "--metrics",
          "AUC,Precision,auc:curve=PR,num_thresholds=20,name=area,iou:num_classes=2,target_class_ids=0:1,"
          "name=overlap"),
      0);
  json_t *object = printed_object(), *test = json_object_get(object, "test");
  static const char *const names[] = {"loss", "auc", "precision", "area", "overlap"};
  assert_int_equal(json_object_size(test), 5);
  for (int i = 0; i < 5; i++) assert_true(json_is_real(json_object_get(test, names[i])));
  json_decref(object);
}

/* The guide's model takes no weights of examples. */
static void weights_of_samples_are_not_ignored_silently(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_npz_save(in_folder("weighted.npz"), 3, (const char *const[]){"x_train", "y_train", "sample_weight"},
                 (mix_tensor *const[]){mix_fill(MIX_SHAPE(8, 4), 1, MIX_FLOAT32),
                                       mix_fill(MIX_SHAPE(8), 1, MIX_INT64),
                                       mix_fill(MIX_SHAPE(8), 2, MIX_FLOAT32)});
  }
  assert_code(run_program("train", "--data", in_folder("weighted.npz"), "--units", "4", "--verbose", "0"), 0);
  assert_has(program_err, "its sample_weight is not used");
}

static void bad_values_end_with_2(void **state) {
  (void)state;
  static const char *const rows[][2] = {{"--model", "resnet"},
                                        {"--model", "keras"},
                                        {"--dtype", "fp8"},
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
                                        {"--loss-scale", "dynamic:1e39"},
                                        {"--loss-scale", "dynamic:1e-45"},
                                        {"--loss-scale", "1e300"},
                                        {"--semantics", "keras4"},
                                        {"--accumulate", "fast"},
                                        {"--memory", "little"},
                                        {"--memory", "0"},
                                        {"--memory", "0.5"},
                                        {"--memory", "512MiBs"},
                                        {"--memory", "512mib"},
                                        {"--memory", "-1GiB"},
                                        {"--memory", "1e300GiB"},
                                        {"--remat", "none"},
                                        {"--remat", "full:3"},
                                        {"--remat", "larger_than:0"},
                                        {"--remat", "larger_than:many"},
                                        {"--remat", "list_of_layers"},
                                        {"--remat", "list_of_layers:a,,b"},
                                        {"--loop", "while"},
                                        {"--device", "tpu"},
                                        {"--threads", "0"},
                                        {"--threads", "5000000000"},
                                        {"--verbose", "3"},
                                        {"--verbose", "-1"},
                                        {"--init-weights", ""},
                                        {"--save", "weights.onnx"},
                                        {"--max-shard-size", "0"},
                                        {"--max-shard-size", "big"}};
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
  assert_code(run_program(TRAIN_SMALL, "--device", "cuda:99"), 1); /* no machine has so many */
  assert_has(program_err, strstr(mix_parts_left_out(), "xla") ? "-DMIXTAPE_XLA=ON" : "cuda");
  assert_code(run_program(TRAIN_SMALL, "--validation-split", "0.99"), 1); /* of 8 rows: floor(8 * 0.01) = 0 */
  assert_has(program_err, "empty");
  assert_code(run_program(TRAIN_SMALL, "--validation-split", "0.99", "--loop", "custom"), 1);
  assert_has(program_err, "empty");
}

static void files_of_the_wrong_kind_end_with_1(void **state) {
  (void)state;
  assert_code(run_program("graph", "/dev/zero"), 1); /* endless */
  assert_has(program_err, "/dev/zero is longer than 256 MiB");
  assert_code(run_program("graph", "/"), 1);
  assert_has(program_err, "Is a directory");
  assert_int_equal(mkdir(in_folder("folder.npz"), 0777), 0);
  assert_code(run_program("evaluate", "--data", in_folder("folder.npz")), 1);
  assert_has(program_err, "folder.npz is not a regular file");
  assert_code(run_program("evaluate", "--data", in_folder("data.npz"), "--units", "4", "--init-weights",
                          in_folder("folder.npz")),
              1);
  assert_has(program_err, "folder.npz is not a regular file");
}

static void a_directory_without_mnist_ends_with_1(void **state) {
  (void)state;
  char *former = getenv("MIXTAPE_DATA_DIR"), kept[1024] = "";
  if (former) snprintf(kept, sizeof kept, "%s", former);
  setenv("MIXTAPE_DATA_DIR", test_folder, 1);
  setenv("KERAS_HOME", test_folder, 1);
  setenv("HOME", test_folder, 1);
  setenv("MIXTAPE_OFFLINE", "1", 1);
  assert_code(run_program("train", "--data", "mnist"), 1);
  assert_has(program_err, "MIXTAPE_OFFLINE");
  assert_has(program_err, test_folder);
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
  assert_null(strstr(program_err, "data:")); /* the error comes before anything is loaded */
  assert_int_equal(symlink("/dev/full", in_folder("full.npz")), 0);
  assert_code(run_program(TRAIN_SMALL, "--save", in_folder("full.npz")), 1);
  assert_has(program_err, "not a regular file");
  assert_code(run_program(TRAIN_SMALL, "--step-log", in_folder("no/such/steps.jsonl")), 1);
  assert_has(program_err, "--step-log");
  assert_code(run_program("predict", "--data", in_folder("data.npz"), "--units", "4", "--output",
                          in_folder("no/such/out.npy")),
              1);
  assert_has(program_err, "out.npy");
}

/* The run continues and saves the weights, but the exit code is an error. */
static void a_full_disk_under_the_step_log_ends_with_1(void **state) {
  (void)state;
  if (access("/dev/full", W_OK)) SKIP("there is no /dev/full");
  assert_code(run_program(TRAIN_SMALL, "--step-log", "/dev/full", "--save", in_folder("saved.npz")), 1);
  assert_has(program_err, "'/dev/full' could not be written whole: No space left on device");
  assert_int_equal(access(in_folder("saved.npz"), R_OK), 0);
}

static void a_full_standard_output_ends_with_1(void **state) {
  (void)state;
  if (access("/dev/full", W_OK)) SKIP("there is no /dev/full");
  assert_code(run_program_to("/dev/full", (const char *const[]){TRAIN_SMALL, "--json", NULL}), 1);
  assert_has(program_err, "cannot write to standard output");
  assert_code(run_program_to("/dev/full", (const char *const[]){"version", NULL}), 1);
  assert_code(run_program_to("/dev/full", (const char *const[]){"--help", NULL}), 1);
}

/* The last write succeeds and leaves no reason in errno. */
static void an_earlier_write_that_failed_is_named(void **state) {
  (void)state;
  const char *failing = getenv("MIXTAPE_FAILING_PROGRAM"), *former = getenv("MIXTAPE_PROGRAM");
  if (!failing || !former) SKIP("MIXTAPE_FAILING_PROGRAM is not set");
  char kept[4096];
  snprintf(kept, sizeof kept, "%s", former);
  setenv("MIXTAPE_PROGRAM", failing, 1);
  setenv("MIXTAPE_FAIL_WRITE", "1", 1);
  assert_code(run_program("--help"), 1);
  unsetenv("MIXTAPE_FAIL_WRITE");
  setenv("MIXTAPE_PROGRAM", kept, 1);
  assert_string_equal(
      program_err,
      "mixtape: cannot write to standard output: an earlier write failed, and that part is missing\n");
}

/* The size limit is between the size of the step log and that of the weights. */
static void weights_that_cannot_be_saved_leave_the_results(void **state) {
  (void)state;
  char command[2048];
  snprintf(command, sizeof command,
           "ulimit -f 8 && '%s' train --data '%s' --units 64 --json --step-log '%s' --save '%s' >'%s' 2>'%s'",
           getenv("MIXTAPE_PROGRAM"), in_folder("data.npz"), in_folder("limit.jsonl"), in_folder("limit.npz"),
           in_folder("stdout"), in_folder("stderr"));
  int status = system(command);
  read_text(in_folder("stdout"), program_out, sizeof program_out);
  read_text(in_folder("stderr"), program_err, sizeof program_err);
  assert_true(WIFEXITED(status));
  assert_code(WEXITSTATUS(status), 1);
  assert_has(program_err, "limit.npz cannot be written: File too large");
  json_t *object = printed_object();
  assert_int_equal(json_array_size(json_object_get(json_object_get(object, "history"), "loss")), 1);
  json_decref(object);
  assert_int_not_equal(access(in_folder("limit.npz"), F_OK), 0);
}

/* /dev/stdout is standard output: first the steps, then the results. */
static void steps_may_go_to_standard_output(void **state) {
  (void)state;
  assert_code(run_program(TRAIN_SMALL, "--json", "--step-log", "/dev/stdout", "--epochs", "3"), 0);
  const char *line = program_out;
  for (int step = 1; step <= 3; step++, line = strchr(line, '\n') + 1) {
    char begins[32];
    snprintf(begins, sizeof begins, "{\"step\":%d,", step);
    assert_true(!strncmp(line, begins, strlen(begins)));
  }
  json_t *object = json_loads(line, 0, NULL);
  assert_int_equal(json_array_size(json_object_get(json_object_get(object, "history"), "loss")), 3);
  json_decref(object);
}

/* Files that the program opens must not reuse the descriptors of closed standard streams, nor receive what is
 * printed there. */
static void closed_standard_files_stay_closed(void **state) {
  (void)state;
  char command[2048];
  snprintf(
      command, sizeof command,
      "'%s' train --data '%s' --units 4 --seed 1 --json --step-log '%s' --callback 'csv_logger:filename=%s' "
      "<&- >&- 2>&-",
      getenv("MIXTAPE_PROGRAM"), in_folder("data.npz"), in_folder("closed.jsonl"), in_folder("closed.csv"));
  int status = system(command);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1); /* the JSON object could not be written */
  json_t *lines = lines_of(in_folder("closed.jsonl"));
  assert_int_equal(json_array_size(lines), 1);
  json_decref(lines);
  static char text[1024];
  read_text(in_folder("closed.csv"), text, sizeof text);
  assert_true(!strncmp(text, "epoch,accuracy,loss", 19));
  assert_null(strstr(text, "step"));
  snprintf(command, sizeof command, "'%s' train --data '%s' --units 4 --tensorboard '%s' >/dev/null 2>&-",
           getenv("MIXTAPE_PROGRAM"), in_folder("data.npz"), in_folder("events"));
  assert_int_equal(system(command), 0);
  /* The progress line. */
  snprintf(command, sizeof command, "grep -q 's/epoch' '%s'/train/*", in_folder("events"));
  assert_int_not_equal(system(command), 0);
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
  static const char *const names[] = {"MIXTAPE_DEVICE", "MIXTAPE_ACCUMULATE", "MIXTAPE_FLOAT32_PRECISION",
                                      "MIXTAPE_MEMORY", "MIXTAPE_DETERMINISTIC"};
  for (int i = 0; i < 5; i++) {
    setenv(names[i], "odd", 1);
    assert_code(run_program(TRAIN_SMALL), 1);
    assert_has(program_err, names[i]);
    assert_null(strstr(program_err, "--")); /* no option is wrong */
    assert_null(strstr(program_err, "data:"));
    unsetenv(names[i]);
  }
  setenv("MIXTAPE_ACCUMULATE", "odd", 1);
  assert_code(run_program("devices"), 1);
  assert_has(program_out, "cpu: ");
  assert_has(program_err, "MIXTAPE_ACCUMULATE");
  unsetenv("MIXTAPE_ACCUMULATE");
  setenv("MIXTAPE_VERBOSE", "dispach", 1);
  assert_code(run_program(TRAIN_SMALL), 0);
  assert_has(program_err, "MIXTAPE_VERBOSE: 'dispach' is ignored; expected dispatch, compile or amp");
  unsetenv("MIXTAPE_VERBOSE");
}

/* Options that would do nothing or overwrite another option's results. */
static void options_without_effect_are_errors(void **state) {
  (void)state;
  static const char *const taken[] = {"mse:name=loss", "mse:name=step", "mse:name=applied",
                                      "mse:name=loss_scale"};
  for (int i = 0; i < 4; i++) {
    assert_code(run_program(TRAIN_SMALL, "--metrics", taken[i]), 2);
    assert_has(program_err, "give another name");
  }
  assert_code(run_program(TRAIN_SMALL, "--graph-rewrite", "bfloat16", "--loss-scale", "128"), 2);
  assert_has(program_err, "leave --loss-scale out");
  assert_code(run_program(TRAIN_SMALL, "--metrics", "sparse_top_k_categorical_accuracy:k=0"), 2);
  assert_has(program_err, "k is 0; expected a positive number");
  assert_code(run_program(TRAIN_SMALL, "--metrics", "mean_io_u:num_classes=10"), 1);
  assert_has(program_err, "sparse_y_pred=false");
  assert_code(run_program(TRAIN_SMALL, "--metrics", "mean_io_u:num_classes=10,sparse_y_pred=false"), 0);
  assert_code(run_program("amp", "explain", "--model", "guide", "--save", in_folder("w.npz")), 2);
  assert_has(program_err, "--save belongs to train");
  assert_code(run_program("amp", "explain", "--model", "guide", "--policy", "mixed_float16", "--json"), 2);
  assert_has(program_err, "--json belongs to the rewrite of float32 models");
  assert_code(run_program("graph", "--pass=none", in_folder("data.npz")), 2);
  assert_has(program_err, "--pass none: no such pass; `mixtape graph --help` lists them");
  assert_code(run_program("graph", "--pass=dce,fold_transpose", in_folder("data.npz")), 2);
  assert_has(program_err, "--pass fold_transpose: no such pass; did you mean 'fold_transposes'?");
  assert_code(run_program("graph", "--graph"), 2);
  assert_has(program_err, "its value is missing");
  assert_code(run_program("graph", "--graph=18446744073709551617", in_folder("data.npz")), 2);
  assert_has(program_err, "expected a number from 1");
  assert_code(run_program("amp", "explain", "--output=x.gif", "x.json"), 2);
  assert_has(program_err, "ends in .dot, .svg or .png");
}

/* Keras 3's fixed scale is an argument of the optimizer. */
static void a_fixed_scale_of_keras3_is_in_the_log(void **state) {
  (void)state;
  static const char *const given[][2] = {
      {"sgd", "128"}, {"sgd:", "128"}, {"sgd:loss_scale_factor=128", "auto"}};
  for (int i = 0; i < 3; i++) {
    assert_code(run_program(TRAIN_SMALL, "--semantics", "keras3", "--optimizer", given[i][0], "--loss-scale",
                            given[i][1], "--step-log", "/dev/stdout"),
                0);
    assert_has(program_out, "\"loss_scale\":128.0");
  }
}

/* Errors that are known before training are reported before it, and keep the files of an earlier run. */
static void errors_are_reported_before_training(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_tensor *x = mix_fill(MIX_SHAPE(8, 4), 1, MIX_FLOAT32), *y = mix_fill(MIX_SHAPE(8), 1, MIX_INT64);
    mix_tensor *none = mix_fill(MIX_SHAPE(0, 4), 1, MIX_FLOAT32),
               *short_y = mix_fill(MIX_SHAPE(7), 1, MIX_INT64);
    static const char *const names[] = {"x_train", "y_train", "x_test", "y_test"};
    mix_npz_save(in_folder("empty.npz"), 4, names, (mix_tensor *const[]){x, y, none, y});
    mix_npz_save(in_folder("short.npz"), 4, names, (mix_tensor *const[]){x, y, x, short_y});
  }
  assert_code(run_program("train", "--data", in_folder("empty.npz")), 1);
  assert_has(program_err, "empty.npz: x_test holds no examples");
  assert_code(run_program("train", "--data", in_folder("short.npz")), 1);
  assert_has(program_err, "x_test has 8 rows, y_test 7");
  assert_code(
      run_program("predict", "--data", in_folder("data.npz"), "--output", in_folder("no/such/out.npy")), 1);
  assert_null(strstr(program_err, "data:"));
  assert_int_equal(symlink("/no/such/folder.npz", in_folder("dangling.npz")), 0);
  assert_code(run_program(TRAIN_SMALL, "--save", in_folder("dangling.npz")), 1);
  assert_null(strstr(program_err, "data:"));
  assert_code(run_program(TRAIN_SMALL, "--checkpoint", in_folder("data.npz/run")), 1);
  assert_has(program_err, "data.npz/run");
  assert_null(strstr(program_err, "data:"));
  if (geteuid()) { /* root may write anywhere */
    assert_int_equal(mkdir(in_folder("locked"), 0555), 0);
    assert_code(run_program(TRAIN_SMALL, "--checkpoint", in_folder("locked/run")), 1);
    assert_has(program_err, "--checkpoint: cannot write to");
    assert_null(strstr(program_err, "data:"));
  }
  char longest[256];
  snprintf(longest, sizeof longest, "%0250d.npz", 1); /* the longest file name */
  assert_code(run_program(TRAIN_SMALL, "--save", in_folder(longest)), 0);
  assert_int_equal(access(in_folder(longest), R_OK), 0);
  assert_code(run_program("numerics", "--data", in_folder("data.npz"), "--png", in_folder("no/such/out.png")),
              1);
  assert_null(strstr(program_err, "data:"));
  assert_code(run_program(TRAIN_SMALL, "--step-log", in_folder("kept.jsonl"), "--epochs", "3"), 0);
  assert_code(
      run_program(TRAIN_SMALL, "--step-log", in_folder("kept.jsonl"), "--metrics", "binary_crossentropy"), 1);
  assert_has(program_err, "class indices want sparse_categorical_crossentropy");
  json_t *lines = lines_of(in_folder("kept.jsonl"));
  assert_int_equal(json_array_size(lines), 3);
  json_decref(lines);
  /* A successful run replaces it. */
  assert_code(run_program(TRAIN_SMALL, "--step-log", in_folder("kept.jsonl")), 0);
  lines = lines_of(in_folder("kept.jsonl"));
  assert_int_equal(json_array_size(lines), 1);
  json_decref(lines);
}

static void all_spellings_of_numbers_are_accepted(void **state) {
  (void)state;
  assert_code(run_program(TRAIN_SMALL, "--loss-scale", "dynamic:1024:5", "--policy", "mixed_float16",
                          "--semantics", "keras3", "--threads", "1", "--seed", "0"),
              0);
  assert_code(run_program(TRAIN_SMALL, "--loss-scale", "0.5", "--policy", "float16"), 0);
  assert_code(run_program(TRAIN_SMALL, "--loss-scale", "none", "--policy", "mixed_float16", "--optimizer",
                          "sgd:learning_rate=0.1,momentum=0.9,nesterov=true"),
              0);
  assert_code(run_program(TRAIN_SMALL, "--semantics", "experimental", "--loss-scale", "dynamic", "--device",
                          "ref", "--batch-size", "1000000000000"),
              0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_command_is_needed),
      cmocka_unit_test(help_explains_every_option),
      cmocka_unit_test(unknown_options_end_with_2),
      cmocka_unit_test(plain_names_are_training_data),
      cmocka_unit_test(near_misses_get_a_suggestion),
      cmocka_unit_test(help_has_several_names),
      cmocka_unit_test(a_graph_becomes_a_program),
      cmocka_unit_test(help_fits_a_terminal),
      cmocka_unit_test(metrics_have_the_names_of_keras),
      cmocka_unit_test(weights_of_samples_are_not_ignored_silently),
      cmocka_unit_test(bad_values_end_with_2),
      cmocka_unit_test(options_that_exclude_each_other_end_with_2),
      cmocka_unit_test(what_fails_while_running_ends_with_1),
      cmocka_unit_test(files_of_the_wrong_kind_end_with_1),
      cmocka_unit_test(a_directory_without_mnist_ends_with_1),
      cmocka_unit_test(what_cannot_be_written_ends_with_1),
      cmocka_unit_test(a_full_disk_under_the_step_log_ends_with_1),
      cmocka_unit_test(a_full_standard_output_ends_with_1),
      cmocka_unit_test(an_earlier_write_that_failed_is_named),
      cmocka_unit_test(weights_that_cannot_be_saved_leave_the_results),
      cmocka_unit_test(steps_may_go_to_standard_output),
      cmocka_unit_test(closed_standard_files_stay_closed),
      cmocka_unit_test(a_size_that_no_machine_has_is_an_ordinary_error),
      cmocka_unit_test(a_bad_environment_ends_with_1),
      cmocka_unit_test(errors_are_reported_before_training),
      cmocka_unit_test(options_without_effect_are_errors),
      cmocka_unit_test(a_fixed_scale_of_keras3_is_in_the_log),
      cmocka_unit_test(all_spellings_of_numbers_are_accepted),
  };
  return cmocka_run_group_tests(tests, setup, folder_end);
}
