/* evaluate, predict, summary, devices, version. */
#include "base/processor.h"
#include "cli/program.h"

enum { ROWS = 20 };

static int setup(void **state) {
  if (folder_begin(state)) return -1;
  static uint8_t x[ROWS][6];
  static int64_t y[ROWS];
  for (int i = 0; i < ROWS * 6; i++) x[i / 6][i % 6] = (uint8_t)(i * 37 % 256);
  for (int i = 0; i < ROWS; i++) y[i] = i % 3;
  MIX_SCOPE {
    mix_tensor *images = mix_tensor_from(x, MIX_UINT8, MIX_SHAPE(ROWS, 6)),
               *labels = mix_tensor_from(y, MIX_INT64, MIX_SHAPE(ROWS));
    mix_npz_save(in_folder("data.npz"), 2, (const char *const[]){"x_train", "y_train"},
                 (mix_tensor *const[]){images, labels});
    mix_npz_save(in_folder("test.npz"), 2, (const char *const[]){"x_test", "y_test"},
                 (mix_tensor *const[]){images, labels});
    mix_npz_save(in_folder("images.npz"), 1, (const char *const[]){"x_test"}, (mix_tensor *const[]){images});
  }
  return mix_error() == MIX_OK ? 0 : -1;
}

static void evaluate_prints_loss_and_metrics(void **state) {
  (void)state;
  assert_code(run_program("evaluate", "--data", in_folder("test.npz"), "--units", "4", "--seed", "1"), 0);
  double loss, accuracy;
  assert_int_equal(sscanf(program_out, "Test loss: %lf\nTest accuracy: %lf\n", &loss, &accuracy), 2);
  assert_true(loss > 0 && accuracy >= 0 && accuracy <= 1);
  assert_has(program_err, "weights: random"); /* random weights are reported */
  assert_code(run_program("evaluate", "--data", in_folder("data.npz"), "--units", "4", "--seed", "1",
                          "--verbose", "0"),
              0); /* no test data: evaluates the training data */
  double again;
  assert_int_equal(sscanf(program_out, "Test loss: %lf\n", &again), 1);
  assert_true(again == loss);
  assert_code(run_program("evaluate", "--data", in_folder("images.npz"), "--units", "4"), 1);
  assert_has(program_err, "y_test");
}

/* Metrics are float32 and printed as Python prints their double. k / 20 of the examples are right; these are
 * Python's texts. */
static void W17_results_are_printed_as_python_prints_them(void **state) {
  (void)state;
  static const char *const texts[] = {
      "0.0",  "0.05000000074505806", "0.10000000149011612", "0.15000000596046448", "0.20000000298023224",
      "0.25", "0.30000001192092896", "0.3499999940395355",  "0.4000000059604645",  "0.44999998807907104",
      "0.5",  "0.550000011920929",   "0.6000000238418579",  "0.6499999761581421",  "0.699999988079071",
      "0.75", "0.800000011920929",   "0.8500000238418579",  "0.8999999761581421",  "0.949999988079071",
      "1.0"};
  assert_int_equal(sizeof texts / sizeof *texts, ROWS + 1);
  int seen = 0;
  for (int seed = 1; seed <= 6; seed++) {
    char number[16], accuracy[64];
    snprintf(number, sizeof number, "%d", seed);
    assert_code(run_program("evaluate", "--data", in_folder("test.npz"), "--units", "4", "--seed", number,
                            "--verbose", "0"),
                0);
    assert_int_equal(sscanf(program_out, "Test loss: %*s\nTest accuracy: %63s\n", accuracy), 1);
    int k = (int)lround(strtod(accuracy, NULL) * ROWS);
    assert_in_range(k, 0, ROWS);
    assert_string_equal(accuracy, texts[k]);
    seen |= k > 0;
  }
  assert_true(seen);
}

static void predict_prints_classes_or_writes_outputs(void **state) {
  (void)state;
  assert_code(run_program("predict", "--data", in_folder("images.npz"), "--units", "4", "--seed", "1"),
              0); /* needs no labels */
  int classes[ROWS], count = 0;
  for (char *line = strtok(program_out, "\n"); line; line = strtok(NULL, "\n")) {
    assert_true(count < ROWS);
    classes[count++] = atoi(line);
  }
  assert_int_equal(count, ROWS);
  assert_code(run_program("predict", "--data", in_folder("images.npz"), "--units", "4", "--seed", "1",
                          "--policy", "mixed_float16", "--output", in_folder("out.npy")),
              0);
  assert_code(run_program("predict", "--data", in_folder("images.npz"), "--units", "4", "--seed", "1",
                          "--batch-size", "7", "--output", in_folder("out.npy")),
              0);
  assert_string_equal(program_out, "");
  MIX_SCOPE {
    mix_tensor *outputs = mix_npy_load(in_folder("out.npy"));
    assert_int_equal(mix_tensor_dtype(outputs), MIX_FLOAT32);
    assert_true(mix_shape_equal(mix_tensor_shape(outputs), MIX_SHAPE(ROWS, 10)));
    float values[ROWS * 10];
    assert_int_equal(mix_tensor_read(outputs, MIX_FLOAT32, values, ROWS * 10), MIX_OK);
    for (int i = 0; i < ROWS; i++) {
      int best = 0;
      double sum = 0;
      for (int c = 0; c < 10; c++) {
        sum += values[10 * i + c];
        if (values[10 * i + c] > values[10 * i + best]) best = c;
      }
      assert_true(fabs(sum - 1) < 1e-5); /* a softmax of ten in float32 */
      assert_int_equal(best, classes[i]);
    }
  }
}

static void summary_shows_layers_and_policy(void **state) {
  (void)state;
  assert_code(run_program("summary", "--policy", "mixed_float16", "--units", "64"), 0);
  static const char *const parts[] = {"Model: \"model\"",
                                      "dense_1 (Dense)",
                                      "dense_2 (Dense)",
                                      "dense_logits (Dense)",
                                      "predictions (Activation)",
                                      "(None, 64)",
                                      "50240",
                                      "4160",
                                      "650",
                                      "Total params: 55050",
                                      "Policy: mixed_float16",
                                      "accumulation: ",
                                      "Large products in float16: gemm_f16_"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) assert_has(program_out, parts[i]);
}

/* With auto, of a small and of a large model, whose products have chains of 16 and of 32. */
static void summary_shows_how_the_models_products_sum(void **state) {
  (void)state;
  const uint32_t features = mix_cpu_features();
  const bool blocks = features & MIX_CPU_AVX512_FP16 && !(features & MIX_CPU_AMX_BF16);
  static const struct {
    const char *policy, *units;
  } rows[] = {{"mixed_bfloat16", "64"},
              {"mixed_float16", "64"},
              {"mixed_bfloat16", "1024"},
              {"mixed_float16", "1024"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_code(run_program("summary", "--policy", rows[i].policy, "--accumulate", "auto", "--device", "cpu",
                            "--units", rows[i].units),
                0);
    assert_has(program_out, blocks ? "accumulation: blocked\n" : "accumulation: exact\n");
  }
}

static void W03_64_units_without_a_gpu(void **state) {
  (void)state;
  assert_code(run_program("summary", "--policy", "mixed_float16"), 0);
  assert_has(program_out, "50240"); /* 784 * 64 + 64: units default to 64 without a GPU */
}

static void devices_lists_them(void **state) {
  (void)state;
  assert_code(run_program("devices"), 0);
  assert_has(program_out, "cpu: ");
  assert_has(program_out, "cuda: ");
  assert_has(program_out, "matmul of float16");
}

static void version_is_the_headers(void **state) {
  (void)state;
  assert_code(run_program("version"), 0);
  char expected[256];
  const char *out = mix_parts_left_out();
  snprintf(expected, sizeof expected, "mixtape " MIXTAPE_VERSION "\nparts: %s\n%s%s%s", mix_parts(),
           *out ? "left out: " : "", out, *out ? "\n" : "");
  if (!*out) assert_string_equal(mix_parts(), "cli, download, drawing, hub, images, mpi, onnx, xla");
  assert_string_equal(program_out, expected);
  assert_code(run_program("--version"), 0);
  assert_string_equal(program_out, expected);
}

/* A file's names must not forge a line of a table, move its columns or control the terminal. */
static void names_that_forge(void **state) {
  (void)state;
  char *path = in_folder("forged.keras");
  static const char name[] = "x\nTotal params: 1\x1b[2J_and_so_on_and_so_on_and_so_on_and_so_on_to_the_end";
  mix_tensor *in = mix_input(.shape = MIX_SHAPE(4));
  mix_model *model = mix_model_new(in, mix_call(mix_dense(2, .name = name), in));
  mix_model_compile(model, .loss = "mse");
  assert_int_equal(mix_model_save(model, path), MIX_OK);
  assert_code(run_program("summary", "--model", path), 0);
  assert_null(strchr(program_out, 0x1b));
  assert_null(strstr(program_out, "\nTotal params: 1\x1b"));
  assert_has(program_out, "x\\nTotal");
  assert_code(run_program("numerics", "--model", path, "--data", "synthetic", "--steps", "2"), 0);
  assert_null(strchr(program_out, 0x1b));
  assert_has(program_out, "x\\nTotal params: 1\\x1b[2J");
  const char *head = strstr(program_out, "\n  tensor "), *row = strstr(program_out, "  x\\nTotal");
  assert_true(head && row && row[1] == ' ');
  head++;
  assert_int_equal(strstr(head, " dtype ") - head, strstr(row, " float32 ") - row);
  assert_code(run_program("bench", "--advise", "--model", path, "--policy", "mixed_float16"), 0);
  assert_null(strchr(program_out, 0x1b));
  assert_has(program_out, "\n  x\\nTotal params: 1\\x1b[2J_and_so_on_a... gradient of kernel");
  assert_code(run_program("train", "--model", path, "--data", "synthetic", "--float32-layers", name,
                          "--init-weights", "a\nb\x1b.npz"),
              1);
  assert_null(strchr(program_err, 0x1b));
  assert_has(program_err, "a\\nb\\x1b.npz");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_that_forge),
      cmocka_unit_test(evaluate_prints_loss_and_metrics),
      cmocka_unit_test(W17_results_are_printed_as_python_prints_them),
      cmocka_unit_test(predict_prints_classes_or_writes_outputs),
      cmocka_unit_test(summary_shows_layers_and_policy),
      cmocka_unit_test(summary_shows_how_the_models_products_sum),
      cmocka_unit_test(W03_64_units_without_a_gpu),
      cmocka_unit_test(devices_lists_them),
      cmocka_unit_test(version_is_the_headers),
  };
  return cmocka_run_group_tests(tests, setup, folder_end);
}
