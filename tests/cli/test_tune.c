/* `mixtape tune-precision` and --float32-layers: a model whose pair of layers overflows float16, from a file
 * and by the program's own options. */
#include "cli/program.h"
#include "train/tune_support.h"
#include <mixtape/saving.h>

#define RUN "--epochs", "3", "--batch-size", "16", "--validation-split", "0.2"

/* A float32 model in Keras's format and its data, in the test's folder. */
static void make_files(char **model, char **data) {
  mix_tensor *x, *y;
  *model = in_folder("pair.keras"), *data = in_folder("pair.npz");
  mix_set_global_policy("float32");
  assert_int_equal(mix_model_save(model_with_a_pair(NULL, NULL), *model), MIX_OK);
  pair_data(320, 0, &x, &y);
  assert_int_equal(mix_npz_save(*data, 2, (const char *const[]){"x", "y"}, (mix_tensor *[]){x, y}), MIX_OK);
}

static void the_pair_of_a_file(void **state) {
  (void)state;
  char *model, *data, *saved = in_folder("tuned.keras");
  make_files(&model, &data);
  assert_code(run_program("tune-precision", "--model", model, "--data", data, RUN, "--json", "--save", saved),
              0);
  json_t *root = printed_object(), *layers = json_object_get(root, "float32_layers");
  assert_string_equal(json_string_value(json_object_get(root, "status")), "found");
  assert_int_equal(json_array_size(layers), 2);
  assert_string_equal(json_string_value(json_array_get(layers, 0)), "up");
  assert_string_equal(json_string_value(json_array_get(layers, 1)), "down");
  json_decref(root);
  /* what was saved has those policies, and the file's weights */
  mix_model *tuned = mix_model_load(saved), *before = mix_model_load(model);
  assert_no_error();
  static const struct {
    const char *layer, *policy;
  } expected[] = {{"before", "mixed_float16"},
                  {"up", "float32"},
                  {"down", "float32"},
                  {"after", "mixed_float16"},
                  {"last", "mixed_float16"}};
  for (int i = 0; i < 5; i++)
    assert_string_equal(mix_policy_name(mix_layer_policy(mix_model_get_layer(tuned, expected[i].layer))),
                        expected[i].policy);
  for (int64_t i = 0; i < 4; i++) assert_near(weight_at(tuned, 0, i), weight_at(before, 0, i), 0);
}

static void the_options_that_it_prints_train(void **state) {
  (void)state;
  char *model, *data;
  make_files(&model, &data);
  assert_code(run_program("tune-precision", "--model", model, "--data", data, RUN), 0);
  assert_has(program_out, "2 of 5 layers in float32: up down\n");
  assert_has(program_out, "Keras 3 and tf_keras, a model under mixed_float16");
  assert_has(program_out, "--policy mixed_float16 --float32-layers up,down\n");
  assert_has(program_err, "tune_precision: run 1 (float32, seed 1)");
  assert_code(run_program("train", "--model", model, "--data", data, RUN, "--policy", "mixed_float16",
                          "--float32-layers", "up,down", "--json"),
              0);
  json_t *root = printed_object(), *history = json_object_get(root, "history");
  json_t *losses = json_object_get(history, "val_loss");
  assert_true(json_real_value(json_array_get(losses, 2)) < json_real_value(json_array_get(losses, 0)));
  json_decref(root);
  assert_code(run_program("train", "--model", model, "--data", data, RUN, "--policy", "mixed_float16",
                          "--float32-layers", "up,dwn"),
              1);
  assert_has(program_err, "the model has no layer 'dwn'; did you mean 'down'?");
}

/* Each run reads the weights anew, from a file with the state of another optimizer. */
static void what_each_run_warns_of_is_said_once(void **state) {
  (void)state;
  mix_tensor *x, *y;
  const char *model = in_folder("state.keras"), *data = in_folder("state.npz");
  mix_set_global_policy("float32");
  pair_data(320, 0, &x, &y);
  assert_int_equal(mix_npz_save(data, 2, (const char *const[]){"x", "y"}, (mix_tensor *[]){x, y}), MIX_OK);
  mix_model *trained = model_with_a_pair(NULL, NULL);
  assert_non_null(mix_model_train_on_batch(trained, x, y));
  assert_int_equal(mix_model_save(trained, model), MIX_OK);
  assert_code(run_program("tune-precision", "--model", model, "--data", data, "--optimizer",
                          "sgd:momentum=0.5", "--init-weights", model, RUN, "--max-trials", "3"),
              1);
  const char *said = strstr(program_err, "the state of the optimizer 'RMSprop' is not read");
  assert_non_null(said);
  assert_null(strstr(said + 1, "the state of the optimizer 'RMSprop' is not read"));
  assert_has(program_err, "tune_precision: run 3");
}

/* Its layers compute in float32 for the float32 runs, which would overflow otherwise. */
static void a_file_in_16_bits(void **state) {
  (void)state;
  char *model, *data, *mixed = in_folder("mixed.keras");
  make_files(&model, &data);
  mix_set_global_policy("mixed_float16");
  assert_int_equal(mix_model_save(model_with_a_pair(NULL, NULL), mixed), MIX_OK);
  mix_set_global_policy("float32");
  assert_code(
      run_program("tune-precision", "--model", mixed, "--data", data, RUN, "--max-trials", "3", "--json"), 1);
  assert_has(program_err, "the search ended with 'limit'");
  json_t *root = printed_object();
  assert_true(json_is_real(json_object_get(json_object_get(root, "float32"), "mean")));
  json_decref(root);
}

/* They stay, in what is printed and saved too, unless --retune is given. */
static void float32_layers_of_a_mixed_file(void **state) {
  (void)state;
  char *model, *data, *mixed = in_folder("kept.keras"), *saved = in_folder("kept_tuned.keras");
  make_files(&model, &data);
  mix_set_global_policy("mixed_float16");
  assert_int_equal(mix_model_save(model_with_a_pair("float32", NULL), mixed), MIX_OK);
  mix_set_global_policy("float32");
  assert_code(run_program("tune-precision", "--model", mixed, "--data", data, RUN, "--save", saved), 0);
  assert_has(program_out, "1 of 4 layers in float32: down\n");
  assert_has(program_out, "mixtape:\n  --float32-layers down\n");
  mix_model *tuned = mix_model_load(saved);
  assert_no_error();
  assert_string_equal(mix_policy_name(mix_layer_policy(mix_model_get_layer(tuned, "up"))), "float32");
  assert_string_equal(mix_policy_name(mix_layer_policy(mix_model_get_layer(tuned, "down"))), "float32");
  assert_string_equal(mix_policy_name(mix_layer_policy(mix_model_get_layer(tuned, "last"))), "mixed_float16");
  assert_code(run_program("tune-precision", "--model", mixed, "--data", data, RUN, "--retune"), 0);
  assert_has(program_out, "2 of 5 layers in float32: up down\n");
  assert_code(
      run_program("tune-precision", "--model", mixed, "--data", data, RUN, "--policy", "mixed_bfloat16"), 2);
  assert_has(program_err, "leave --policy out, or give --retune");
}

/* The guide's model has the weights that it would have without the option. */
static void layers_of_the_guides_model(void **state) {
  (void)state;
  char *a = in_folder("a.npz"), *b = in_folder("b.npz");
#define GUIDE "train", "--data", "digits", "--units", "8", "--steps", "1", "--seed", "3", "--policy"
  assert_code(run_program(GUIDE, "float32", "--save", a), 0);
  assert_code(run_program(GUIDE, "mixed_float16", "--float32-layers", "dense_1,dense_2,dense_logits",
                          "--loss-scale", "none", "--save", b),
              0);
  mix_npz *first = mix_npz_open(a), *second = mix_npz_open(b);
  assert_int_equal(mix_npz_count(first), 6);
  for (int i = 0; i < 6; i++)
    for (int64_t j = 0; j < 8; j++)
      assert_near(at(mix_npz_get(first, mix_npz_name(first, i)), j),
                  at(mix_npz_get(second, mix_npz_name(first, i)), j), 0);
  assert_code(
      run_program("summary", "--units", "8", "--policy", "mixed_float16", "--float32-layers", "dense_2"), 0);
  assert_has(program_out, "dense_2");
}

/* The runs to compare with are without the simulation, and the layers to choose from are simulated. */
static void layers_that_must_stay_in_16_bits(void **state) {
  (void)state;
  assert_code(run_program("tune-precision", "--data", "digits", "--units", "16", "--batch-size", "64",
                          "--steps", "100", "--policy", "mixed_bfloat16", "--simulate", "nvfp4"),
              0);
  assert_has(program_out, "A simulation of nvfp4 under mixed_bfloat16");
  assert_has(program_out, "16 bits: mean loss");
  assert_has(program_out, "layers in 16 bits\n");
  assert_has(program_out, "No layer needs 16 bits; new seeds confirm it.\n0 of 3 layers in 16 bits: none\n");
  assert_has(program_out, "--policy mixed_bfloat16 --simulate nvfp4\n");
  double compared = 0, simulated = 0;
  assert_int_equal(sscanf(strstr(program_out, "   1  16 bits"), " 1 16 bits 1 %lf", &compared), 1);
  assert_int_equal(sscanf(strstr(program_out, "   4  search"), " 4 search 1 %lf", &simulated), 1);
  assert_true(compared != simulated);
}

static void what_goes_wrong(void **state) {
  (void)state;
  char *model, *data;
  make_files(&model, &data);
  assert_code(run_program("tune-precision", "--model", model, "--data", data, RUN, "--max-trials", "3"), 1);
  assert_has(program_out, "The limit of trials ended the search before a set was found.");
  assert_has(program_err, "the search ended with 'limit'; --max-trials allows more");
  assert_code(run_program("tune-precision", "--model", model, "--data", data, "--optimizer",
                          "sgd:learning_rate=1e30"),
              1);
  assert_has(program_err, "make float32 train first");
  assert_code(run_program("tune-precision", "--policy", "float32"), 2);
  assert_code(run_program("tune-precision", "--seed", "0"), 2);
  assert_has(program_err, "--seed: '0' given; expected a whole number from 1 on");
  assert_code(run_program("tune-precision", "--callback", "NumericsReport:json=a.json"), 2);
  assert_has(program_err, "each run has the search's own report");
  assert_code(run_program("tune-precision", "--seeds", "2", "--data", "digits"), 1);
  assert_has(program_err, "seeds is 2; expected at least 3");
  assert_code(run_program("tune-precision", "--save", "weights.npz"), 2);
  assert_has(program_err, "a name that ends in .keras or .h5");
  assert_code(run_program("train", "--float32-layers", "a,,b"), 2);
  assert_has(program_err, "names of layers with commas between");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(the_pair_of_a_file),
      TEST(the_options_that_it_prints_train),
      TEST(a_file_in_16_bits),
      TEST(float32_layers_of_a_mixed_file),
      TEST(layers_of_the_guides_model),
      TEST(layers_that_must_stay_in_16_bits),
      TEST(what_goes_wrong),
      TEST(what_each_run_warns_of_is_said_once),
  };
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
