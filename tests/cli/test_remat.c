/* --remat: the same weights, from layers that are computed again for the backward pass. */
#include "cli/program.h"

/* Gradients of its activations and normalisations read more than a layer's results. */
#define MODEL "--model transformer --layers 1 --units 8 --heads 2 --filter-size 16 --classes 12 --length 4"

/* Trains two steps; are there repeated layers in what is compiled? */
static bool repeats(const char *options) {
  char command[1024], line[64] = "";
  snprintf(command, sizeof command,
           "MIXTAPE_VERBOSE=compile \"$MIXTAPE_PROGRAM\" train --data synthetic --batch-size 2 --steps 2 "
           "--verbose 0 --save %s/weights.npz %s 2>&1 | grep -c optimization_barrier",
           test_folder, options);
  FILE *lines = popen(command, "r");
  assert_non_null(lines);
  assert_non_null(fgets(line, sizeof line, lines));
  pclose(lines);
  return atoi(line) > 0;
}

/* The weights that were saved, whose file is gone then. */
static size_t take_weights(char *bytes, size_t size) {
  const char *path = in_folder("weights.npz");
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  const size_t count = fread(bytes, 1, size, file);
  fclose(file);
  assert_true(count > 0 && count < size);
  assert_int_equal(remove(path), 0);
  return count;
}

/* A layer's results have 64 numbers here, or less: 2 sequences of 4 tokens of 8 units. */
static void repeated_layers_leave_the_weights_as_they_are(void **state) {
  (void)state;
  static const struct {
    const char *options;
    bool repeats;
  } rows[] = {{"--remat full", true},           {"--remat activations", true},
              {"--remat larger_than", false},   {"--remat larger_than:1000000", false},
              {"--remat larger_than:32", true}, {"--remat list_of_layers:encoder_0_self_attention", true}};
  static const char *const policies[] = {"float32", "mixed_float16"};
  static char plain[1 << 18], weights[1 << 18];
  char options[512];
  for (int p = 0; p < 2; p++) {
    snprintf(options, sizeof options, MODEL " --policy %s", policies[p]);
    assert_false(repeats(options));
    const size_t size = take_weights(plain, sizeof plain);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
      snprintf(options, sizeof options, MODEL " --policy %s %s", policies[p], rows[i].options);
      assert_int_equal(repeats(options), rows[i].repeats);
      assert_int_equal(take_weights(weights, sizeof weights), size);
      assert_memory_equal(weights, plain, size);
    }
  }
}

/* Its layers are made as the file is read. */
static void layers_of_a_file_are_repeated(void **state) {
  (void)state;
  char options[1024];
  assert_code(run_program("train", "--data", "synthetic", "--model", "resnet56", "--image-size", "32",
                          "--steps", "1", "--batch-size", "2", "--verbose", "0", "--save",
                          in_folder("model.keras")),
              0);
  for (int repeated = 0; repeated < 2; repeated++) {
    snprintf(options, sizeof options, "--model %s/model.keras%s", test_folder,
             repeated ? " --remat full" : "");
    assert_int_equal(repeats(options), repeated);
  }
}

static void wrong_layers_and_models_are_named(void **state) {
  (void)state;
  assert_code(run_program("train", "--data", "digits", "--remat", "list_of_layers:dense_1,dense_7"), 1);
  assert_has(program_err, "--remat: the model has no layer 'dense_7'");
  assert_code(run_program("bench", "--remat", "full"), 2);
  assert_has(program_err, "--remat belongs to --model");
  assert_code(run_program("train", "--data", "digits", "--remat", "larger_then"), 2);
  assert_has(program_err, "expected full, activations, larger_than");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(repeated_layers_leave_the_weights_as_they_are),
                                     cmocka_unit_test(layers_of_a_file_are_repeated),
                                     cmocka_unit_test(wrong_layers_and_models_are_named)};
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
