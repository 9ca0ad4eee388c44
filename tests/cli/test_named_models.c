/* Models by name: their layers beside those that tests/oracle/named_models.py recorded of Keras's, and the
 * program with them. */
#include "cli/program.h"

#include "cli/models/models.h"

static mix_list *layers_of(mix_model *model) {
  if (!model) fail_msg("%s", mix_error_message());
  return mix_model_layers(model);
}

/* Are there these layers, with Keras's names, classes and parameters, and no others but the input? */
static void compare_layers(mix_model *model, const char *name) {
  char path[512], line[256];
  snprintf(path, sizeof path, "%s/cli/named_models.txt", getenv("MIXTAPE_TESTS_DIR"));
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  int count = 0;
  mix_list *layers = layers_of(model);
  while (fgets(line, sizeof line, file)) {
    char of[64], layer_name[64], class_name[64];
    long long parameters;
    assert_int_equal(sscanf(line, "%63s %63s %63s %lld", of, layer_name, class_name, &parameters), 4);
    if (strcmp(of, name)) continue;
    mix_layer *layer = mix_model_get_layer(model, layer_name);
    if (!layer) fail_msg("no layer %s in %s", layer_name, name);
    assert_string_equal(mix_layer_class_name(layer), class_name);
    int64_t own = 0;
    mix_list *weights = mix_layer_weights(layer);
    for (int i = 0; i < mix_list_count(weights); i++)
      own += mix_shape_size(mix_variable_shape(mix_list_get(weights, i)));
    if (own != parameters)
      fail_msg("%s has %lld parameters, Keras's %lld", layer_name, (long long)own, parameters);
    count++;
  }
  fclose(file);
  assert_true(count > 0);
  assert_int_equal(mix_list_count(layers), count + 1);
}

static int64_t count_parameters(mix_list *variables) {
  int64_t count = 0;
  for (int i = 0; i < mix_list_count(variables); i++)
    count += mix_shape_size(mix_variable_shape(mix_list_get(variables, i)));
  return count;
}

static void layers_are_those_of_keras(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_model *model = cli_mobilenet_v2(224, 1000);
    compare_layers(model, "mobilenet_v2");
    assert_int_equal(count_parameters(mix_model_weights(model)), 3538984);
    model = cli_resnet50(224, 1000);
    compare_layers(model, "resnet50");
    assert_int_equal(count_parameters(mix_model_trainable_variables(model)), 25557032);
  }
}

/* Convolutions and normalizations of 16 + 9 blocks of each width, two shortcuts, and the classes. */
static void resnet56_has_its_parameters(void **state) {
  (void)state;
  int64_t expected = 27 * 16 + 2 * 16 + 64 * 10 + 10;
  for (int64_t width = 16, before = 16; width <= 64; before = width, width *= 2) {
    expected += 9 * before * width + 17 * 9 * width * width + 18 * 2 * width;
    if (before != width) expected += before * width + 2 * width;
  }
  MIX_SCOPE {
    mix_model *model = cli_resnet56(32, 10);
    int convolutions = 0;
    mix_list *layers = layers_of(model);
    for (int i = 0; i < mix_list_count(layers); i++)
      convolutions += !strcmp(mix_layer_class_name(mix_list_get(layers, i)), "Conv2D");
    assert_int_equal(convolutions, 55 + 2); /* the 56th layer is Dense */
    assert_int_equal(count_parameters(mix_model_trainable_variables(model)), expected);
  }
}

/* The sides of 64 are a 32nd at the end. */
static void resnet50_strides_in_the_3x3(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int side;
  } rows[] = {{"conv1_relu", 32},          {"pool1_pool", 16},         {"conv2_block3_out", 16},
              {"conv3_block1_1_relu", 16}, {"conv3_block1_2_relu", 8}, {"conv5_block3_out", 2}};
  assert_code(run_program("summary", "--model", "resnet50", "--image-size", "64"), 0);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char start[64];
    int side = 0;
    snprintf(start, sizeof start, "\n %s (", rows[i].name);
    assert_has(program_out, start);
    assert_int_equal(sscanf(strstr(strstr(program_out, start), "(None"), "(None, %d,", &side), 1);
    assert_int_equal(side, rows[i].side);
  }
}

static void the_last_activation_is_float32(void **state) {
  (void)state;
  static const char *const policies[] = {"mixed_float16", "mixed_bfloat16", "float16"};
  static mix_model *(*const builds[])(int64_t, int64_t) = {cli_resnet50, cli_resnet56, cli_mobilenet_v2};
  for (int p = 0; p < 3; p++)
    for (int m = 0; m < 3; m++)
      MIX_SCOPE {
        mix_set_global_policy(policies[p]);
        mix_model *model = builds[m](32, 3);
        mix_layer *last = mix_model_get_layer(model, "predictions");
        assert_string_equal(mix_policy_name(mix_layer_policy(last)), "float32");
        mix_layer *pool = mix_list_get(layers_of(model), mix_list_count(mix_model_layers(model)) - 2);
        assert_string_equal(mix_policy_name(mix_layer_policy(pool)), policies[p]);
      }
  mix_set_global_policy("float32");
}

/* A small loss scale: from the usual one, float16 skips the first steps of these models, as in Keras. */
static void each_trains_a_step_under_each_policy(void **state) {
  (void)state;
  static const char *const models[] = {"resnet50", "resnet56", "mobilenet_v2"}, *const dtypes[] = {
                                                                                    "fp32", "fp16", "bf16"};
  for (int m = 0; m < 3; m++)
    for (int d = 0; d < 3; d++) {
      assert_code(run_program("train", "--model", models[m], "--dtype", dtypes[d], "--loss-scale",
                              d == 1 ? "8" : "auto", "--image-size", "32", "--classes", "3", "--batch-size",
                              "4", "--steps", "1", "--step-log", in_folder("steps.jsonl"), "--json"),
                  0);
      assert_has(program_err, "data: synthetic");
      json_t *steps = lines_of(in_folder("steps.jsonl")), *step = json_array_get(steps, 0);
      assert_int_equal(json_array_size(steps), 1);
      assert_true(json_is_true(json_object_get(step, "applied")));
      const double loss = number_in(json_object_get(step, "loss"));
      assert_true(loss > 0 && loss < 20);
      json_decref(steps);
    }
}

static void other_commands_take_them(void **state) {
  (void)state;
  assert_code(run_program("summary", "--model", "resnet56", "--classes", "7"), 0);
  assert_has(program_out, "(None, 7)");
  assert_code(run_program("evaluate", "--model", "resnet56", "--batch-size", "2"), 0);
  assert_has(program_err, "weights: random");
  assert_code(run_program("predict", "--model", "mobilenet_v2", "--image-size", "32", "--batch-size", "2"),
              0);
  assert_code(run_program("bench", "--model", "resnet56", "--quick", "--batch-size", "2", "--json"), 0);
  json_t *object = printed_object();
  assert_int_equal(json_array_size(json_object_get(json_object_get(object, "model_steps"), "policies")), 3);
  json_decref(object);
  assert_code(run_program("bench", "--model", "mobilenet_v2", "--image-size", "32", "--advise"), 0);
  assert_has(program_out, "block_1_expand");
}

static void bad_options_are_reported(void **state) {
  (void)state;
  assert_code(run_program("train", "--model", "resnet18"), 2);
  assert_has(program_err,
             "expected guide|resnet50|resnet56|mobilenet_v2|transformer|FILE.keras|FILE.h5|FILE.onnx|"
             "FOLDER");
  assert_code(run_program("train", "--model", "resnet56", "--image-size", "31"), 2);
  assert_has(program_err, "--image-size 31: resnet56 takes sides from 32 to 4096");
  assert_code(run_program("train", "--model", "resnet56", "--image-size", "5000"), 2);
  assert_code(run_program("train", "--model", "resnet56", "--classes", "-1"), 2);
  assert_has(program_err, "a positive whole number");
  assert_code(run_program("train", "--model", "resnet56", "--units", "8"), 2);
  assert_has(program_err, "--units belongs to --model guide, and the model is resnet56");
  assert_code(run_program("train", "--model", "resnet56", "--loop", "custom"), 2);
  assert_code(run_program("train", "--model", "resnet56", "--data", "digits"), 1);
  assert_has(program_err, "the images have 784 values each; the model takes (rows, 32, 32, 3)");
  assert_code(run_program("summary", "--image-size", "64"), 2);
  assert_has(program_err, "--image-size belongs to a model by name, and the model is guide");
  assert_code(run_program("bench", "--classes", "5"), 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(layers_are_those_of_keras),
      cmocka_unit_test(resnet56_has_its_parameters),
      cmocka_unit_test(resnet50_strides_in_the_3x3),
      cmocka_unit_test(the_last_activation_is_float32),
      cmocka_unit_test(each_trains_a_step_under_each_policy),
      cmocka_unit_test(other_commands_take_them),
      cmocka_unit_test(bad_options_are_reported),
  };
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
