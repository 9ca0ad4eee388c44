/* The example programs, run as a user runs them: what they print and their exit codes. The data are a few
 * drawn digits in MNIST's file format, so that each run takes seconds. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "support/count.h"
#include "support/skip.h"
#include <glob.h>

#include <mixtape/arrays.h>
#include <mixtape/mnist.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[256], output[16384], messages[16384];

static void read_file(const char *name, char *text, size_t size) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  text[fread(text, 1, size - 1, file)] = 0;
  fclose(file);
}

/* Runs an example. Fills `output` (standard output) and `messages` (standard error) and returns its exit
 * code. */
static int run(const char *example, const char *arguments) {
  const char *built = getenv("MIXTAPE_EXAMPLES_DIR");
  if (!built) SKIP("MIXTAPE_EXAMPLES_DIR is not set");
  char command[2048];
  const char *under = getenv("MIXTAPE_EXAMPLES_UNDER"); /* "valgrind ..." */
  snprintf(command, sizeof command, "%s '%s/%s' %s >'%s/output' 2>'%s/messages'", under ? under : "", built,
           example, arguments, folder, folder);
  const int status = system(command);
  read_file("output", output, sizeof output);
  read_file("messages", messages, sizeof messages);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Under valgrind, some hundred times slower, the longest examples run one epoch, whose scores say nothing. */
static bool is_under_valgrind(void) { return getenv("MIXTAPE_EXAMPLES_UNDER") != NULL; }

static void assert_ends_well(int code) {
  if (code != 0) print_message("exit code %d\n%s\n%s\n", code, output, messages);
  assert_int_equal(code, 0);
}

/* Is this whole line in the text? */
static void assert_line(const char *text, const char *line) {
  const size_t length = strlen(line);
  for (const char *p = text; (p = strstr(p, line)); p++)
    if ((p == text || p[-1] == '\n') && (p[length] == '\n' || !p[length])) return;
  fail_msg("no line '%s' in:\n%s", line, text);
}

/* The number after the last occurrence of `label`. */
static double number_after(const char *text, const char *label) {
  const char *found = NULL;
  for (const char *p = text; (p = strstr(p, label)); p++) found = p;
  if (!found) fail_msg("no '%s' in:\n%s", label, text);
  return strtod(found + strlen(label), NULL);
}

/* 2,000 + 500 drawn digits as mnist.npz. */
static int make_data(void **state) {
  (void)state;
  char path[512];
  snprintf(folder, sizeof folder, "%s/mixtape-examples-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
  if (!mkdtemp(folder)) return -1;
  mix_scope *scope = mix_scope_begin();
  mix_images digits = mix_digits_load(.train = 2000, .test = 500, .bytes = true);
  snprintf(path, sizeof path, "%s/mnist.npz", folder);
  mix_tensor *tensors[] = {digits.x_train, digits.y_train, digits.x_test, digits.y_test};
  const mix_status status =
      mix_npz_save(path, 4, (const char *const[]){"x_train", "y_train", "x_test", "y_test"}, tensors);
  mix_scope_end(scope);
  return status == MIX_OK ? setenv("MIXTAPE_DATA_DIR", folder, 1) : -1;
}

static int remove_data(void **state) {
  (void)state;
  char command[512];
  snprintf(command, sizeof command, "rm -r '%s'", folder);
  mix_shutdown();
  return system(command);
}

/* 1,600 images in batches of 100: 16 steps an epoch, 64 in all. Guessing gives 0.1; such runs reach 0.95
 * (0.93 in the custom loop). */
static void guide_trains_and_evaluates(void **state) {
  (void)state;
  assert_ends_well(run("01_guide", "mnist 64 100 4"));
  assert_line(output, "Compute dtype: float16");
  assert_line(output, "Variable dtype: float32");
  assert_line(output, "Outputs dtype: float32");
  assert_true(number_after(output, "Test accuracy: ") > 0.85);
  assert_true(number_after(output, "Test loss: ") < 0.6);
  assert_line(output, "Loss scale: 32768"); /* 64 steps are too few to grow, and none overflows */
  assert_line(messages, "Epoch 4/4");
  assert_non_null(strstr(messages, "16/16 - "));
  assert_non_null(strstr(messages, "val_accuracy: "));
}

/* 2,000 images in batches of 150: 14 steps an epoch, the last one a batch of 50. */
static void custom_loop_trains(void **state) {
  (void)state;
  assert_ends_well(run("02_custom_loop", "mnist 64 150 4"));
  assert_line(output, "Loss scale: 32768 after 56 steps");
  assert_true(number_after(output, "Epoch 4: loss=") < 0.6 * number_after(output, "Epoch 1: loss="));
  assert_true(number_after(output, "test accuracy=") > 0.85);
}

static void W23_W24_W25_custom_layers_print_their_dtypes(void **state) {
  (void)state;
  assert_ends_well(run("03_custom_layers", ""));
  assert_line(output, "SimpleDense result: float16");
  assert_line(output, "SimpleDense kernel: float32");
  assert_line(output, "AddRandom result: float16");
  assert_line(output, "MyLayer first result: float64");
  assert_line(output, "MyLayer second result: float32");
  assert_line(output, "float16 + float32: TypeError");
  assert_non_null(strstr(messages, "float16"));
}

static void a_model_comes_back_from_json(void **state) {
  (void)state;
  assert_ends_well(run("09_model_json", ""));
  assert_line(output, "registered as example>Scale: yes");
  assert_line(output, "policy of 'half': mixed_float16");
  assert_line(output, "same results: yes");
  assert_line(output, "layers of the clone: 3");
}

/* Every number here is exact: powers of two, infinity, and (1e-5)^2 in bfloat16, which is 1.0004417e-10. */
static void W14_loss_scale_moves_as_the_rule_says(void **state) {
  (void)state;
  assert_ends_well(run("04_loss_scale", ""));
  static const char *const lines[] = {
      "float16: 256^2 = inf, (1e-5)^2 = 0",
      "bfloat16: 256^2 = 65536, (1e-5)^2 = 1.00044e-10",
      "FixedLossScale(1024.0)",
      "after an overflow: apply 0, scale 16384",
      "fixed scale 1024: loss 2 becomes 2048, gradient 1024 becomes 1",
      "gradient 1: weight 0.75, loss scale 32768, good steps 1",
      "gradient 1: weight 0.5, loss scale 65536, good steps 0",
      "gradient inf: weight 0.5, loss scale 32768, good steps 0",
      "gradient 1: weight 0.25, loss scale 32768, good steps 1",
      "iterations: 4",
  };
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) assert_line(output, lines[i]);
  assert_string_equal(messages, "");
}

/* The layer that overflows is named. In float32 it does not overflow. */
static void numerics_names_the_layer_and_the_remedy(void **state) {
  (void)state;
  assert_ends_well(run("06_numerics", ""));
  assert_non_null(strstr(output, "Verdict: stalled."));
  assert_line(output, "The layer to blame: totals");
  assert_line(output, "With totals in float32: healthy, 0 of 160 steps skipped");
  assert_true(number_after(output, ", of the last ") <
              0.1 * number_after(output, "loss of the first epoch "));
}

/* Of five layers the two that see numbers beyond float16's range, and no other, are kept. */
static void precision_tuning_finds_the_pair(void **state) {
  (void)state;
  assert_ends_well(run("13_precision_tuning", ""));
  assert_line(output, "2 of 5 layers in float32: totals normal");
  assert_line(output, "  --policy mixed_float16 --float32-layers totals,normal");
}

/* 12,000 digits in parts of 32, four an update: 93 updates an epoch; the scale skips few or none. */
static void accumulated_gradients_train(void **state) {
  (void)state;
  assert_ends_well(run("14_gradient_accumulation", "2"));
  assert_non_null(strstr(output, "Epoch 1: loss "));
  const char *second = strstr(output, "Epoch 2: loss ");
  assert_non_null(second);
  assert_true(number_after(second, "loss ") < 0.7 * number_after(output, "Epoch 1: loss "));
  assert_true(number_after(output, " after ") <= 2 * 93 && number_after(output, " after ") > 2 * 93 - 20);
}

/* The mean image as the prediction of all has the cross-entropy 0.287 (of 4,000 and 1,000 of these digits).
 * The divergence is that of 8 numbers which tell ten digits apart: more than log(10) = 2.3. */
static void an_autoencoder_learns_digits(void **state) {
  (void)state;
  assert_ends_well(run("19_vae", is_under_valgrind() ? "1" : "3"));
  assert_true(is_under_valgrind() || number_after(strstr(output, "Epoch 3"), "test loss ") < 0.26);
  assert_true(number_after(output, "divergence ") > 2.3);
  assert_non_null(strstr(output, "test loss "));
}

/* The rates and the range of skipped steps are known: each skip halves the scale of 2^30 until float16's
 * gradients fit, at about 2^17 to 2^19. */
static void callbacks_set_rates_and_write_files(void **state) {
  (void)state;
  char arguments[300], text[16384];
  snprintf(arguments, sizeof arguments, "'%s'", folder);
  assert_ends_well(run("05_callbacks", arguments));
  static const char *const rates[] = {"0: learning rate 0.001,", "2: learning rate 0.001,",
                                      "3: learning rate 0.0005,", "4: learning rate 0.00025,"};
  for (int i = 0; i < 4; i++) {
    char line[64];
    snprintf(line, sizeof line, "Epoch %s", rates[i]);
    assert_non_null(strstr(output, line));
  }
  const char *first = strstr(output, "loss scale "), *end = strstr(output, " of 30 epochs, test accuracy ");
  assert_non_null(first);
  assert_non_null(end);
  const double scale = strtod(first + strlen("loss scale "), NULL),
               skipped = strtod(strchr(first, ',') + 1, NULL);
  assert_true(scale == (double)(1 << 30) / (double)(1 << (int)skipped)); /* too few steps to grow */
  assert_true(skipped >= 9 && skipped <= 16);
  assert_true(1 + count_of(output, "\nEpoch ") < 30); /* the first line, and others; early stopping */
  const double accuracy = number_after(output, "test accuracy ");
  assert_true(accuracy > 0.95);
  /* The best weights in memory and in the file differ by at most min_delta. */
  assert_true(number_after(output, "from the file ") > accuracy - 0.01);
  read_file("log.csv", text, sizeof text);
  assert_memory_equal(text, "epoch,accuracy,loss,loss_scale,lr,val_accuracy,val_loss\r\n", 57);
  char pattern[512];
  glob_t found;
  snprintf(pattern, sizeof pattern, "%s/logs/*/events.out.tfevents.*", folder);
  assert_int_equal(glob(pattern, 0, NULL, &found), 0);
  assert_int_equal(found.gl_pathc, 2); /* train and validation */
  globfree(&found);
}

/* 12,000 images in whole batches of 128: 93 steps an epoch. */
static void data_pipelines_train_and_report_errors(void **state) {
  (void)state;
  assert_ends_well(run("07_data_pipeline", "2"));
  assert_line(output, "<tensor int64 (2) [4, 6]>");
  assert_line(output, "<tensor int64 (1) [8]>");
  assert_line(output, "12000 images, 186 steps");
  assert_true(number_after(output, "val_accuracy ") > 0.9);
  assert_line(
      output,
      "fit returned NULL: ValueError: reshape: got uint8 (28, 28); 784 elements do not fill the shape (7, "
      "7) (element 9 of dataset_map)");
  assert_string_equal(messages, "");
}

/* The same program in float32 and rewritten: on 500 images, five epochs of 16 steps, the accuracies differ by
 * no more than two seeds do. */
static void graph_rewrite_trains_as_float32_does(void **state) {
  (void)state;
  assert_ends_well(run("08_graph_rewrite", "mnist 5"));
  assert_line(output, "rewritten to float16, loss scale 32768, 80 steps");
  assert_true(number_after(output, "float32: test accuracy ") > 0.8);
  assert_true(number_after(output, "rewritten: test accuracy ") > 0.8);
  double difference = number_after(output, "difference: ");
  assert_true(difference > -0.03 && difference < 0.03);
}

/* 2,000 drawn images in batches of 50, for no CIFAR-10 is here: 120 steps. Guessing gives
 * 0.1; such runs reach 0.9. */
static void resnet_trains_on_drawn_images(void **state) {
  (void)state;
  assert_ends_well(
      run("10_resnet", is_under_valgrind() ? "digits mixed_float16 1" : "digits mixed_float16 3"));
  assert_line(output, "Data: the built-in digits in random colours");
  assert_true(is_under_valgrind() || number_after(output, "mixed_float16: test accuracy ") > 0.75);
  assert_line(messages, is_under_valgrind() ? "Epoch 1/1" : "Epoch 3/3");
  assert_int_equal(run("10_resnet", "cifar10"), 1);
  assert_non_null(strstr(messages, "cifar-10-batches-bin"));
}

/* 3,000 sequences in batches of 50: 600 steps. Guessing gives 0.25. */
static void lstm_remembers_the_order_of_marks(void **state) {
  (void)state;
  assert_ends_well(run("11_lstm", is_under_valgrind() ? "mixed_float16 1" : "mixed_float16 10"));
  assert_true(is_under_valgrind() || number_after(output, "mixed_float16: test accuracy ") > 0.9);
  assert_line(messages, is_under_valgrind() ? "Epoch 1/1" : "Epoch 10/10");
}

/* One epoch. Guessing translates none, and such runs nearly all. */
static void transformer_translates_numbers(void **state) {
  (void)state;
  assert_ends_well(run("12_transformer", "mixed_float16 1"));
  assert_true(number_after(output, "mixed_float16: greedy search: ") > 0.6);
  assert_true(number_after(output, "mixed_float16: beam search: ") > 0.6);
}

/* In one process, where there is no launcher: tests/distribute/test_mpi.c trains in several. Guessing gives
 * 0.1. */
static void ranks_train_alone_too(void **state) {
  (void)state;
  assert_ends_well(run("15_mpi", "mixed_float16 2"));
  assert_non_null(strstr(output, "ranks: 1, "));
  assert_true(number_after(output, "test accuracy ") > 0.5);
}

/* Missing data end the programs with code 1 and a message that lists the searched folders. */
/* The share of numbers said rightly, in the modern or the old order, in the line that begins so. */
static double share_of(const char *line, const char *order) {
  const char *found = strstr(output, line);
  found = found ? strstr(found, order) : NULL;
  assert_non_null(found);
  return strtod(found + strlen(order), NULL);
}

/* About 0.7 of the numbers have tens and units, whose order only the adapter knows. */
static void an_adapter_learns_the_old_order(void **state) {
  (void)state;
  char arguments[300], path[300];
  snprintf(arguments, sizeof arguments, "'%s' 1", folder);
  assert_ends_well(run("18_finetune", arguments));
  assert_non_null(strstr(output, "merged into float weights: "));
  assert_true(share_of("pretrained: ", "modern order ") > 0.9);
  assert_true(share_of("in 4 bits: ", "old order ") < 0.35);
  assert_true(share_of("fine-tuned: ", "old order ") > 0.8);
  assert_true(share_of("loaded again: ", "old order ") == share_of("fine-tuned: ", "old order "));
  assert_true(share_of("merged into float weights: ", "old order ") > 0.75);
  static const char *const files[] = {"base.keras", "old.npz", "old.keras"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, files[i]);
    assert_int_equal(access(path, R_OK), 0);
  }
}

/* A surrogate that predicts no change has the error 1. The second run has nothing left to do, and gives the
 * error of the first. */
static void a_solver_trains_its_surrogate(void **state) {
  (void)state;
  char arguments[512];
  snprintf(arguments, sizeof arguments, "%d '%s/restart'", is_under_valgrind() ? 20 : 400, folder);
  assert_ends_well(run("16_in_situ", arguments));
  assert_line(output, "1 ranks, 48 x 48 cells, from step 0");
  const double error = number_after(output, "error of the surrogate: ");
  assert_true(is_under_valgrind() || error < 0.5);
  assert_ends_well(run("16_in_situ", arguments));
  assert_line(output, is_under_valgrind() ? "1 ranks, 48 x 48 cells, from step 20"
                                          : "1 ranks, 48 x 48 cells, from step 400");
  assert_true(number_after(output, "error of the surrogate: ") == error);
}

/* A text of one sentence, which the model knows by heart after 200 steps, goes on where a prompt ends. */
static void a_gpt_goes_on_with_its_text(void **state) {
  (void)state;
  static const char sentence[] = "the cat sat on the mat and the dog ran. ";
  char path[300], arguments[400];
  snprintf(path, sizeof path, "%s/sentences.txt", folder);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  for (int i = 0; i < 40; i++) fputs(sentence, file);
  assert_int_equal(fclose(file), 0);
  snprintf(arguments, sizeof arguments, "'%s' %d 'the cat'", path, is_under_valgrind() ? 2 : 200);
  assert_ends_well(run("20_gpt", arguments));
  assert_line(output, "greedy:");
  assert_line(output, "4 beams:");
  assert_true(is_under_valgrind() ||
              strstr(output, "greedy:\nthe cat sat on the mat and the dog ran. the cat sat on the mat"));
  assert_int_equal(run("20_gpt", "/nonexistent"), 1);
  assert_non_null(strstr(messages, "'/nonexistent' has 0 characters"));
}

/* A model of KerasHub's class learns it too, 600 steps with all its weights and as many by its adapter. */
static void gpt2_is_finetuned(void **state) {
  (void)state;
  static const char sentence[] = "the cat sat on the mat and the dog ran. ";
  char path[300], arguments[400];
  snprintf(path, sizeof path, "%s/lines.txt", folder);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  for (int i = 0; i < 40; i++) fputs(sentence, file);
  assert_int_equal(fclose(file), 0);
  snprintf(arguments, sizeof arguments, "'%s' %d", path, is_under_valgrind() ? 2 : 600);
  assert_ends_well(run("21_finetune_gpt2", arguments));
  assert_true(is_under_valgrind() || strstr(output, "the cat sat on the mat and the d\n"));
  assert_int_equal(run("21_finetune_gpt2", "/nonexistent"), 1);
}

static void missing_data_are_an_error(void **state) {
  (void)state;
  static const char *const places[] = {"MIXTAPE_DATA_DIR", "KERAS_HOME", "HOME"};
  for (int i = 0; i < 3; i++) setenv(places[i], "/nonexistent", 1);
  setenv("MIXTAPE_OFFLINE", "1", 1);
  static const char *const examples[] = {"01_guide", "02_custom_loop"};
  for (int i = 0; i < 2; i++) {
    assert_int_equal(run(examples[i], "mnist 64 100 1"), 1);
    assert_non_null(strstr(messages, "/nonexistent"));
    assert_null(strstr(output, "Epoch"));
  }
}

/* Damaged data are an error too, also where other data would do. */
static void damaged_data_are_an_error(void **state) {
  (void)state;
  char cifar[300], mnist[300];
  snprintf(cifar, sizeof cifar, "%s/data_batch_1.bin", folder);
  snprintf(mnist, sizeof mnist, "%s/mnist.npz", folder);
  const char *const paths[] = {cifar, mnist};
  for (int i = 0; i < 2; i++) {
    FILE *file = fopen(paths[i], "w");
    assert_non_null(file);
    assert_int_equal(fputs("damaged", file) < 0, 0);
    assert_int_equal(fclose(file), 0);
  }
  setenv("MIXTAPE_DATA_DIR", folder, 1);
  assert_int_equal(run("10_resnet", ""), 1);
  assert_non_null(strstr(messages, "data_batch_1.bin: 7 bytes"));
  assert_null(strstr(output, "Data:"));
  static const char *const examples[] = {"01_guide", "02_custom_loop", "08_graph_rewrite"};
  for (int i = 0; i < 3; i++) {
    assert_int_equal(run(examples[i], ""), 1);
    assert_non_null(strstr(messages, "mnist.npz"));
    assert_null(strstr(output, "Data:"));
  }
  assert_int_equal(run("10_resnet", "cifar"), 2);
  assert_non_null(strstr(messages, "no data set 'cifar'"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(guide_trains_and_evaluates),
      cmocka_unit_test(custom_loop_trains),
      cmocka_unit_test(W23_W24_W25_custom_layers_print_their_dtypes),
      cmocka_unit_test(W14_loss_scale_moves_as_the_rule_says),
      cmocka_unit_test(numerics_names_the_layer_and_the_remedy),
      cmocka_unit_test(precision_tuning_finds_the_pair),
      cmocka_unit_test(accumulated_gradients_train),
      cmocka_unit_test(an_autoencoder_learns_digits),
      cmocka_unit_test(callbacks_set_rates_and_write_files),
      cmocka_unit_test(data_pipelines_train_and_report_errors),
      cmocka_unit_test(graph_rewrite_trains_as_float32_does),
      cmocka_unit_test(a_model_comes_back_from_json),
      cmocka_unit_test(resnet_trains_on_drawn_images),
      cmocka_unit_test(lstm_remembers_the_order_of_marks),
      cmocka_unit_test(transformer_translates_numbers),
      cmocka_unit_test(ranks_train_alone_too),
      cmocka_unit_test(an_adapter_learns_the_old_order),
      cmocka_unit_test(a_gpt_goes_on_with_its_text),
      cmocka_unit_test(gpt2_is_finetuned),
      cmocka_unit_test(a_solver_trains_its_surrogate),
      cmocka_unit_test(missing_data_are_an_error),
      cmocka_unit_test(damaged_data_are_an_error),
  };
  return cmocka_run_group_tests(tests, make_data, remove_data);
}
